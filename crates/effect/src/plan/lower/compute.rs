//! Reads anywhere, and windows of images of different sizes: every read is at a computed place.

use super::{Site, axes, distance, shape};
use crate::functor::trace::Slot;
use crate::{Rect, Result};
use broadloom_graph::{Node, Reads};
use broadloom_scalar::{AccessorKind, Binding, Builder, Function, Type, Value, reading, windowing};

/// The code of a function of positions that a canonical function is inlined into.
pub(crate) struct Frame<'a> {
    pub(crate) builder: &'a Builder,
    /// The component, row and column that the canonical function is given.
    pub(crate) position: [Value; 3],
    /// Its other arguments.
    pub(crate) scalars: Vec<Value>,
}

/// Writes a canonical function that reads arrays at positions. `origins` has for each array the row and the column of its
/// first element, counted from the corner of the region that is computed.
pub(crate) fn inlined(site: &Site<'_>, frame: &Frame<'_>, function: &Function, origins: &[[Value; 2]]) -> Vec<Value> {
    let f = frame.builder;
    let slots = &site.primitive.code.slots;
    let accessors: Vec<_> = slots.iter().map(|_| f.accessor("input", AccessorKind::Input, Type::F32, 3)).collect();
    let transposed = site.transposed;
    let [component, row, column] = frame.position;
    // Arrays of one component have one plane.
    let only = site.component.map(|_| f.literal(0i32));
    let mut windows: Vec<Box<dyn Binding + '_>> = vec![];
    for ((slot, accessor), origin) in slots.iter().zip(accessors).zip(origins) {
        let [top, left] = *origin;
        match slot.reach {
            Some(_) => windows.push(Box::new(windowing(move |f: &Builder, offsets: &[Value]| {
                let down = f.sub(f.add(row, offsets[1]), top);
                let along = f.sub(f.add(column, offsets[2]), left);
                let [first, second] = axes(transposed, down, along);
                f.read(accessor, &[only.unwrap_or(component).into(), first.into(), second.into()])
            }))),
            None => windows.push(Box::new(reading(move |f: &Builder, position: &[Value]| {
                let [first, second] = axes(transposed, position[1], position[2]);
                f.read(accessor, &[only.unwrap_or(position[0]).into(), first.into(), second.into()])
            }))),
        }
    }
    let mut bindings: Vec<&mut dyn Binding> = vec![];
    for window in &mut windows {
        bindings.push(&mut **window);
    }
    let arguments: Vec<Value> = [component, row, column].into_iter().chain(frame.scalars.iter().copied()).collect();
    f.inline(function, &arguments, &mut bindings)
}

/// Arrays as they are read at positions, and the corners of their regions.
type Accesses<'n> = (Vec<(&'n Node, Reads)>, Vec<Node>);

/// Returns the arrays of all slots as they are read.
pub(crate) fn reads<'n>(site: &Site<'_>, arrays: &'n [Node], region: Rect) -> Result<Accesses<'n>> {
    let rule = site.primitive.boundary.rule();
    let mut origins = vec![];
    for slot in &site.primitive.code.slots {
        for number in distance(region, site.part(slot).region) {
            origins.push(site.scalar(number as i32)?);
        }
    }
    Ok((arrays.iter().map(|array| (array, Reads::At(rule.clone()))).collect(), origins))
}

/// The arrays of all slots as they are, with as many components as are computed.
pub(crate) fn whole(site: &Site<'_>) -> Result<Vec<Node>> {
    let array = |slot: &Slot| site.array(slot, site.part(slot).region);
    site.primitive.code.slots.iter().map(array).collect()
}

/// Lowers a call by reads at computed places, for all components or one by one.
pub(crate) fn compute(site: &Site<'_>, function: &Function) -> Result<Vec<Node>> {
    if site.alone && site.components > 1 {
        return Ok(site.in_components(|own| computed(own, function).map(Some))?.unwrap_or_default());
    }
    computed(site, function)
}

fn computed(site: &Site<'_>, function: &Function) -> Result<Vec<Node>> {
    let shape = shape(site.components, site.region, site.transposed);
    let scalars = site.scalars(site.region)?;
    let arrays = whole(site)?;
    let (inputs, origins) = reads(site, &arrays, site.region)?;
    let f = Builder::function(function.name());
    let indices = ["c", "i", "j"].map(|name| f.parameter(name, Type::I32));
    let [row, column] = axes(site.transposed, indices[1], indices[2]);
    let own: Vec<Value> = scalars.iter().map(|node| f.parameter("s", node.ty())).collect();
    let corners: Vec<Value> = origins.iter().map(|node| f.parameter("o", node.ty())).collect();
    let corners: Vec<[Value; 2]> = corners.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    let component = site.component.map_or(indices[0], |component| f.literal(component as i32));
    let frame = Frame { builder: &f, position: [component, row, column], scalars: own };
    let results = inlined(site, &frame, function, &corners);
    let function = f.finish_function(&results)?;
    let beside: Vec<&Node> = scalars.iter().chain(&origins).collect();
    Ok(Node::compute(&function, &shape, &beside, &inputs, &[])?)
}
