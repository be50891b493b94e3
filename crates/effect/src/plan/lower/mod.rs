//! Lowering: calls of functors become nodes of the graph.
//!
//! | form | use |
//! | --- | --- |
//! | [`points`] | known offsets: each read is a view of its input, which the planner fuses with neighbours |
//! | [`window`] | computed offsets, in windows of images of one size: the window can be staged |
//! | [`compute`] | reads anywhere, and windows of images of different sizes |
//! | [`moving`] | a state carried along lines |
//!
//! Arrays have the axes component, row, column. A transposed image exchanges the last two axes, and so do all
//! its offsets, windows and positions. The functions of kernels are not changed.

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

/// Array that a call reads: the available part of one picture.
#[derive(Clone, Debug)]
pub(crate) struct ReadPart {
    pub(crate) node: Node,
    /// Region that the array covers.
    pub(crate) region: Rect,
    /// Region of definition.
    pub(crate) bounds: Rect,
    /// True if its lines are computed on demand.
    pub(crate) lines: bool,
}

/// Call that is lowered.
pub(crate) struct CallSite<'a> {
    pub(crate) context: &'a Context,
    pub(crate) primitive: &'a Primitive,
    /// Pictures of the call.
    pub(crate) parts: Vec<ReadPart>,
    /// Number of components that are computed one at a time.
    pub(crate) components: usize,
    /// Region of definition of the result.
    pub(crate) bounds: Rect,
    /// Region that is computed.
    pub(crate) region: Rect,
    pub(crate) transposed: bool,
    /// True if components that were computed together are read one by one.
    pub(crate) splits: bool,
    /// True if components are computed one by one.
    pub(crate) alone: bool,
    /// The component, if a single one is computed.
    pub(crate) component: Option<usize>,
}

/// Returns a value for the row and one for the column, in the order of the axes.
pub(crate) fn axes<T>(transposed: bool, row: T, column: T) -> [T; 2] {
    if transposed { [column, row] } else { [row, column] }
}

/// Returns the distance between the corners of two regions: rows and columns.
pub(crate) fn distance(from: Rect, to: Rect) -> [i64; 2] {
    [i64::from(to.y) - i64::from(from.y), i64::from(to.x) - i64::from(from.x)]
}

/// Returns the shape of a region with the given number of components.
pub(crate) fn shape(components: usize, region: Rect, transposed: bool) -> Shape {
    let [rows, columns] = axes(transposed, region.height as usize, region.width as usize);
    Shape::from([components, rows, columns])
}

/// Returns the part of an array that covers another region.
pub(crate) fn cropped(node: &Node, from: Rect, to: Rect, transposed: bool) -> Result<Node> {
    let components = node.shape().extents()[0];
    let [row, column] = distance(from, to);
    let [row, column] = axes(transposed, row, column);
    let maps = [AxisMap::same(0), AxisMap { offset: row, ..AxisMap::same(1) }, AxisMap { offset: column, ..AxisMap::same(2) }];
    Ok(node.affine("crop", &maps, shape(components, to, transposed), None)?)
}

/// Returns the components of an array, if each is an array of its own.
pub(crate) fn components(node: &Node) -> Option<Vec<Node>> {
    node.concatenated().filter(|parts| parts.iter().all(|part| part.shape().extents()[0] == 1))
}

impl CallSite<'_> {
    /// Returns the part of a picture that a slot reads.
    pub(crate) fn part(&self, slot: &Slot) -> &ReadPart {
        &self.parts[slot.picture]
    }

    /// Returns the region that windows around the result need, if it is the same for all pictures.
    pub(crate) fn common_window(&self, reach: Reach) -> Option<Rect> {
        // A margin consists of views with the boundary rule. No read leaves them.
        if !self.primitive.margin.is_point() {
            return with_margin(self.region, reach);
        }
        let mut regions = self.parts.iter().map(|part| grown(self.region, reach, part.bounds, self.primitive.boundary));
        let first = regions.next()?;
        let fits = regions.all(|region| region == first) && self.parts.iter().all(|part| part.region.contains(first));
        fits.then_some(first)
    }

    /// Returns the array of a slot in a region, with as many components as are computed.
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

    /// Returns the component of a slot's picture for a component of the result.
    pub(crate) fn plane(&self, slot: &Slot) -> AxisMap {
        let own = self.part(slot).node.shape().extents()[0];
        match slot.component {
            Some(component) => AxisMap::fixed(component as i64),
            None if own == 1 => AxisMap::fixed(0),
            None => self.component.map_or(AxisMap::same(0), |component| AxisMap::fixed(component as i64)),
        }
    }

    /// Returns the call for one component.
    pub(crate) fn of_component(&self, component: usize) -> CallSite<'_> {
        let part = |part: &ReadPart| {
            let apart = components(&part.node).and_then(|parts| parts.get(component).cloned());
            ReadPart { node: apart.unwrap_or_else(|| part.node.clone()), ..part.clone() }
        };
        // Pictures that are read as whole pixels are not changed.
        let is_single =
            |picture: usize| self.primitive.code.slots.iter().any(|slot| slot.picture == picture && slot.component.is_none());
        let parts = self.parts.iter().enumerate();
        let parts = parts.map(|(number, own)| if is_single(number) { part(own) } else { own.clone() }).collect();
        CallSite { parts, components: 1, component: Some(component), ..*self }
    }

    /// Computes components one by one and concatenates them.
    pub(crate) fn in_components(
        &self,
        compute: impl Fn(&CallSite<'_>) -> Result<Option<Vec<Node>>>,
    ) -> Result<Option<Vec<Node>>> {
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

    /// Returns a scalar of the graph with the given value.
    pub(crate) fn scalar(&self, value: impl Into<Literal>) -> Result<Node> {
        Ok(Node::fill(self.context, Shape::from([]), &[value.into()])?)
    }

    /// Returns the arguments of the canonical function after the position, for a result that is computed in a
    /// region.
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

    /// Returns the component, row and column of each position.
    pub(crate) fn positions(&self, shape: &Shape) -> Result<Vec<Node>> {
        let [row, column] = axes(self.transposed, 1, 2);
        let position = |axis: usize| Node::position(self.context, shape.clone(), axis, Element::I32);
        let component = match self.component {
            Some(component) => self.scalar(component as i32)?,
            None => position(0)?,
        };
        Ok(vec![component, position(row)?, position(column)?])
    }

    /// Converts the results of a kernel to outputs of the functor. Components of a pixel become one array.
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
