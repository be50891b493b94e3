//! Known offsets: each read is a view of its input.
//!
//! Components of pixels that were computed together are separate arrays until they are stored. A functor of
//! single components can read these arrays directly. It then becomes one call per component, and all calls
//! can be links of one chain.

use super::{CallSite, axes, components, distance, shape};
use crate::Result;
use crate::functor::trace::{Slot, Trace};
use broadloom_graph::{AxisMap, Node};

/// Returns the array that a slot reads, and the map of its first axis.
fn source(site: &CallSite<'_>, slot: &Slot) -> (Node, AxisMap) {
    let node = &site.part(slot).node;
    match (slot.component, components(node)) {
        (Some(own), Some(parts)) if own < parts.len() => (parts[own].clone(), AxisMap::fixed(0)),
        _ => (node.clone(), site.plane(slot)),
    }
}

/// Calls the function of samples.
fn called(site: &CallSite<'_>, trace: &Trace) -> Result<Option<Vec<Node>>> {
    let Some((function, taps)) = &trace.points else { return Ok(None) };
    let shape = shape(site.components, site.region, site.transposed);
    let mut inputs = vec![];
    let scalars = site.scalars(site.region)?;
    if trace.places {
        inputs.extend(site.positions(&shape)?);
        inputs.extend(scalars);
    } else {
        // Without positions only the parameters remain: no input is read anywhere.
        inputs.extend(scalars.into_iter().skip(4));
    }
    let rule = site.primitive.boundary.rule();
    for tap in taps {
        let slot = &site.primitive.code.slots[tap.array];
        let (node, plane) = source(site, slot);
        let [row, column] = distance(site.part(slot).region, site.region);
        let [row, column] = axes(site.transposed, row + i64::from(tap.y), column + i64::from(tap.x));
        let maps = [plane, AxisMap { offset: row, ..AxisMap::same(1) }, AxisMap { offset: column, ..AxisMap::same(2) }];
        inputs.push(node.affine(site.primitive.name(), &maps, shape.clone(), Some(&rule))?);
    }
    if inputs.is_empty() {
        // The image is constant: its shape would come from a position that is not used.
        return Ok(None);
    }
    let mut results = Node::call(function, &inputs.iter().collect::<Vec<&Node>>())?;
    for result in &mut results {
        *result = result.broadcast_to(&shape)?;
    }
    Ok(Some(results))
}

/// Lowers a call whose offsets are all known; `None` if they are not.
pub(crate) fn points(site: &CallSite<'_>, trace: &Trace) -> Result<Option<Vec<Node>>> {
    let is_apart = |slot: &Slot| {
        let apart = components(&site.part(slot).node);
        slot.component.is_none() && apart.is_some_and(|parts| parts.len() == site.components)
    };
    let is_split = site.splits && site.components > 1 && site.primitive.code.slots.iter().any(is_apart);
    let results = if is_split { site.in_components(|own| called(own, trace))? } else { called(site, trace)? };
    results.map(|results| site.outputs(results)).transpose()
}
