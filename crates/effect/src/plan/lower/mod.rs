//! Lowering: calls of functors become nodes of the graph.
//!
//! | form | for |
//! | --- | --- |
//! | [`points`] | known offsets: each is a view of the input, so the planner fuses it with everything around it |
//! | [`window`] | offsets that are computed, in windows of images of one size: the window can be staged |
//! | [`compute`] | reads anywhere, and windows of images of different sizes |
//! | [`moving`] | a state carried along lines |
//!
//! Arrays have the axes component, row, column. In a transposed image the last two are exchanged, and so are all offsets,
//! windows and positions; the functions of kernels stay what they are.

pub(crate) mod compute;
pub(crate) mod moving;
pub(crate) mod points;
pub(crate) mod window;

use crate::functor::trace::Slot;
use crate::functor::{Primitive, Reach};
use crate::graph::region::{grown, with_margin};
use crate::{Rect, Result};
use broadloom_graph::{AxisMap, Context, Node, Shape};
use broadloom_scalar::{Element, Literal};

/// An array that a call reads: one picture, in the part that is there.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) node: Node,
    /// The region that the array has.
    pub(crate) region: Rect,
    /// The region of definition.
    pub(crate) bounds: Rect,
    /// Whether its lines are computed as they are read.
    pub(crate) lines: bool,
}

/// A call that is lowered.
pub(crate) struct Site<'a> {
    pub(crate) context: &'a Context,
    pub(crate) primitive: &'a Primitive,
    /// The pictures of the call.
    pub(crate) parts: Vec<Part>,
    /// The components that are computed one at a time.
    pub(crate) components: usize,
    /// The region of definition of the result.
    pub(crate) bounds: Rect,
    /// The region that is computed.
    pub(crate) region: Rect,
    pub(crate) transposed: bool,
    /// Whether components that were computed together are read one by one.
    pub(crate) splits: bool,
    /// Whether components are computed one by one.
    pub(crate) alone: bool,
    /// The component, where one alone is computed.
    pub(crate) component: Option<usize>,
}

/// A pair of a row's and a column's number, in the order of the axes.
pub(crate) fn axes<T>(transposed: bool, row: T, column: T) -> [T; 2] {
    if transposed { [column, row] } else { [row, column] }
}

/// The distance of the corners of two regions: rows and columns.
pub(crate) fn distance(from: Rect, to: Rect) -> [i64; 2] {
    [i64::from(to.y) - i64::from(from.y), i64::from(to.x) - i64::from(from.x)]
}

/// The shape of so many components of a region.
pub(crate) fn shape(components: usize, region: Rect, transposed: bool) -> Shape {
    let [rows, columns] = axes(transposed, region.height as usize, region.width as usize);
    Shape::from([components, rows, columns])
}

/// Returns a part of an array.
pub(crate) fn cropped(node: &Node, from: Rect, to: Rect, transposed: bool) -> Result<Node> {
    let components = node.shape().extents()[0];
    let [row, column] = distance(from, to);
    let [row, column] = axes(transposed, row, column);
    let maps = [AxisMap::same(0), AxisMap { offset: row, ..AxisMap::same(1) }, AxisMap { offset: column, ..AxisMap::same(2) }];
    Ok(node.affine("crop", &maps, shape(components, to, transposed), None)?)
}

/// Returns the components of an array, where each is an array of its own.
pub(crate) fn components(node: &Node) -> Option<Vec<Node>> {
    node.concatenated().filter(|parts| parts.iter().all(|part| part.shape().extents()[0] == 1))
}

impl Site<'_> {
    /// The part of a picture that a slot reads.
    pub(crate) fn part(&self, slot: &Slot) -> &Part {
        &self.parts[slot.picture]
    }

    /// The region that windows around the result need in all pictures, if it is the same for all.
    pub(crate) fn common_window(&self, reach: Reach) -> Option<Rect> {
        // A margin is made of views with the boundary rule, which nothing leaves.
        if !self.primitive.margin.is_point() {
            return with_margin(self.region, reach);
        }
        let mut regions = self.parts.iter().map(|part| grown(self.region, reach, part.bounds, self.primitive.boundary));
        let first = regions.next()?;
        let fits = regions.all(|region| region == first) && self.parts.iter().all(|part| part.region.contains(first));
        fits.then_some(first)
    }

    /// The array of a slot in a region, with as many components as are computed.
    pub(crate) fn array(&self, slot: &Slot, region: Rect) -> Result<Node> {
        let part = self.part(slot);
        let [row, column] = distance(part.region, region);
        let [row, column] = axes(self.transposed, row, column);
        let maps =
            [self.plane(slot), AxisMap { offset: row, ..AxisMap::same(1) }, AxisMap { offset: column, ..AxisMap::same(2) }];
        let rule = self.primitive.boundary.rule();
        let rule = (!part.region.contains(region)).then_some(&rule);
        Ok(part.node.affine("crop", &maps, shape(self.components, region, self.transposed), rule)?)
    }

    /// The component of a slot's picture at a component of the result.
    pub(crate) fn plane(&self, slot: &Slot) -> AxisMap {
        let own = self.part(slot).node.shape().extents()[0];
        match slot.component {
            Some(component) => AxisMap::fixed(component as i64),
            None if own == 1 => AxisMap::fixed(0),
            None => self.component.map_or(AxisMap::same(0), |component| AxisMap::fixed(component as i64)),
        }
    }

    /// The call for one component.
    pub(crate) fn of_component(&self, component: usize) -> Site<'_> {
        let part = |part: &Part| {
            let apart = components(&part.node).and_then(|parts| parts.get(component).cloned());
            Part { node: apart.unwrap_or_else(|| part.node.clone()), ..part.clone() }
        };
        // Pictures that are read as whole pixels stay what they are.
        let is_single =
            |picture: usize| self.primitive.code.slots.iter().any(|slot| slot.picture == picture && slot.component.is_none());
        let parts = self.parts.iter().enumerate();
        let parts = parts.map(|(number, own)| if is_single(number) { part(own) } else { own.clone() }).collect();
        Site { parts, components: 1, component: Some(component), ..*self }
    }

    /// Computes components one by one, and joins them.
    pub(crate) fn in_components(&self, compute: impl Fn(&Site<'_>) -> Result<Option<Vec<Node>>>) -> Result<Option<Vec<Node>>> {
        let mut each = vec![];
        for component in 0..self.components {
            let Some(results) = compute(&self.of_component(component))? else { return Ok(None) };
            each.push(results);
        }
        let joined = |result: usize| {
            let parts: Vec<&Node> = each.iter().map(|results| &results[result]).collect();
            Ok(Node::concatenate(0, &parts)?)
        };
        let count = each.first().map_or(0, Vec::len);
        (0..count).map(joined).collect::<Result<Vec<Node>>>().map(Some)
    }

    /// A value of the run.
    pub(crate) fn scalar(&self, value: impl Into<Literal>) -> Result<Node> {
        Ok(Node::fill(self.context, Shape::from([]), &[value.into()])?)
    }

    /// The arguments of the canonical function behind the position, for a result that is computed in a region.
    pub(crate) fn scalars(&self, region: Rect) -> Result<Vec<Node>> {
        let [top, left] = distance(self.bounds, region);
        let mut nodes = vec![];
        for number in [left, top, self.bounds.width.into(), self.bounds.height.into()] {
            nodes.push(self.scalar(number as i32)?);
        }
        let mut picture = 0;
        for indexer in &self.primitive.code.inputs {
            if indexer.reach().is_none() {
                let bounds = self.parts[picture].bounds;
                nodes.push(self.scalar(bounds.width as i32)?);
                nodes.push(self.scalar(bounds.height as i32)?);
            }
            picture += indexer.frame_count();
        }
        for parameter in &*self.primitive.parameters {
            nodes.push(self.scalar(*parameter)?);
        }
        Ok(nodes)
    }

    /// The component, row and column of each position.
    pub(crate) fn positions(&self, shape: &Shape) -> Result<Vec<Node>> {
        let [row, column] = axes(self.transposed, 1, 2);
        let position = |axis: usize| Node::position(self.context, shape.clone(), axis, Element::I32);
        let component = match self.component {
            Some(component) => self.scalar(component as i32)?,
            None => position(0)?,
        };
        Ok(vec![component, position(row)?, position(column)?])
    }

    /// The results of a kernel as outputs of the functor: components of a pixel become one array.
    pub(crate) fn outputs(&self, results: Vec<Node>) -> Result<Vec<Node>> {
        use crate::functor::Output;
        let (mut results, mut outputs) = (results.into_iter(), vec![]);
        for output in &self.primitive.code.outputs {
            match output {
                Output::Component => outputs.extend(results.next()),
                Output::Pixel(count) => {
                    let components: Vec<Node> = results.by_ref().take(*count).collect();
                    outputs.push(Node::concatenate(0, &components.iter().collect::<Vec<&Node>>())?);
                }
            }
        }
        Ok(outputs)
    }
}
