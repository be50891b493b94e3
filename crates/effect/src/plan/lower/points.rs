//! Known offsets: each read is a view of its input.

use super::{Site, axes, distance, shape};
use crate::Result;
use crate::functor::trace::Trace;
use broadloom_graph::{AxisMap, Node};

/// Lowers a call whose offsets are all known; nothing where they are not.
pub(crate) fn points(site: &Site<'_>, trace: &Trace) -> Result<Option<Vec<Node>>> {
    let Some((function, taps)) = &trace.points else { return Ok(None) };
    let shape = shape(site.components, site.region, site.transposed);
    let mut inputs = vec![];
    let scalars = site.scalars(site.region)?;
    if trace.places {
        inputs.extend(site.positions(&shape)?);
        inputs.extend(scalars);
    } else {
        // Without places only parameters are left: no input is read anywhere.
        inputs.extend(scalars.into_iter().skip(4));
    }
    let rule = site.primitive.boundary.rule();
    for tap in taps {
        let slot = &site.primitive.code.slots[tap.array];
        let part = site.part(slot);
        let [row, column] = distance(part.region, site.region);
        let [row, column] = axes(site.transposed, row + i64::from(tap.y), column + i64::from(tap.x));
        let maps =
            [site.plane(slot), AxisMap { offset: row, ..AxisMap::same(1) }, AxisMap { offset: column, ..AxisMap::same(2) }];
        inputs.push(part.node.affine(site.primitive.name(), &maps, shape.clone(), Some(&rule))?);
    }
    if inputs.is_empty() {
        // A constant image: the shape comes from a position that is not used.
        return Ok(None);
    }
    let mut results = Node::call(function, &inputs.iter().collect::<Vec<&Node>>())?;
    for result in &mut results {
        *result = result.broadcast_to(&shape)?;
    }
    site.outputs(results).map(Some)
}
