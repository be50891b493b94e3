//! Reads anywhere, and windows of images of different sizes: every read has a computed position.

use super::{CallSite, axes, distance, shape};
use crate::Result;
use crate::functor::trace::Slot;
use crate::functor::{Axis, Reach};
use broadloom_graph::{Node, Reads};
use broadloom_scalar::{AccessorKind, Binding, Builder, Function, Type, Value, reading, windowing};

/// Environment for inlining a canonical function into a function of positions.
pub(crate) struct InlineFrame<'a> {
    pub(crate) builder: &'a Builder,
    /// Component, row and column that the canonical function receives.
    pub(crate) position: [Value; 3],
    /// Other arguments of the canonical function.
    pub(crate) scalars: Vec<Value>,
}

/// Access of a function of positions to the samples of a slot.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    /// The sample at the position is an argument. No other sample is read.
    Given(Value),
    /// An accessor reads the samples. Row and column of the array's first element, counted from the corner of
    /// the computed region; along columns, the row is counted from the first one of the image.
    Read([Value; 2]),
    /// An accessor reads anywhere in a part of the image. Row and column of the array's first element, counted from the
    /// corner of the image.
    Part([Value; 2]),
    /// An accessor reads the line of the position along an axis of the image. The index counts along the
    /// line; the number is that of the first sample of the array, if it is not the first of the line.
    Line(Axis, Option<Value>),
}

/// Inlines a canonical function that reads arrays at positions, with an access for each slot. Accessors are
/// created for the slots that are read, in their order.
pub(crate) fn inlined(site: &CallSite<'_>, frame: &InlineFrame<'_>, function: &Function, accesses: &[Access]) -> Vec<Value> {
    let f = frame.builder;
    let slots = &site.primitive.code.slots;
    let transposed = site.transposed;
    let [component, row, column] = frame.position;
    // Arrays of one component have one plane.
    let only = site.component.map(|_| f.literal(0i32));
    let mut windows: Vec<Box<dyn Binding + '_>> = vec![];
    for (slot, access) in slots.iter().zip(accesses) {
        let [top, left] = match *access {
            Access::Given(value) => {
                windows.push(Box::new(windowing(move |_: &Builder, _: &[Value]| value)));
                continue;
            }
            Access::Line(axis, first) => {
                let accessor = f.accessor("input", AccessorKind::Input, Type::F32, 1);
                windows.push(Box::new(reading(move |f: &Builder, position: &[Value]| {
                    let place = match axis {
                        Axis::Horizontal => position[2],
                        Axis::Vertical => position[1],
                    };
                    let place = first.map_or(place, |first| f.sub(place, first));
                    f.read(accessor, &[place.into()])
                })));
                continue;
            }
            Access::Part([top, left]) => {
                let accessor = f.accessor("input", AccessorKind::Input, Type::F32, 3);
                windows.push(Box::new(reading(move |f: &Builder, position: &[Value]| {
                    let [first, second] = axes(transposed, f.sub(position[1], top), f.sub(position[2], left));
                    f.read(accessor, &[only.unwrap_or(position[0]).into(), first.into(), second.into()])
                })));
                continue;
            }
            Access::Read(origin) => origin,
        };
        let along = slot.along;
        let accessor = f.accessor("input", AccessorKind::Input, Type::F32, 3);
        match slot.reach {
            Some(_) => windows.push(Box::new(windowing(move |f: &Builder, offsets: &[Value]| {
                let down = f.sub(f.add(row, offsets[1]), top);
                let along = f.sub(f.add(column, offsets[2]), left);
                let [first, second] = axes(transposed, down, along);
                f.read(accessor, &[only.unwrap_or(component).into(), first.into(), second.into()])
            }))),
            None => windows.push(Box::new(reading(move |f: &Builder, position: &[Value]| {
                let [down, across] = match along {
                    None => [position[1], position[2]],
                    Some(Axis::Horizontal) => [f.sub(row, top), position[2]],
                    Some(Axis::Vertical) => [f.sub(position[1], top), f.sub(column, left)],
                };
                let [first, second] = axes(transposed, down, across);
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

/// Tests whether a slot reads only the sample at the position, and its array contains the computed region.
fn is_given(site: &CallSite<'_>, slot: &Slot) -> bool {
    slot.reach.is_some_and(Reach::is_point) && site.part(slot).region.contains(site.region)
}

/// Returns the axis along which a slot reads lines, if the array and the result have the same extent across
/// it.
fn line_of(site: &CallSite<'_>, slot: &Slot) -> Option<Axis> {
    let axis = slot.along?;
    let [own, of] = [site.part(slot).region, site.region].map(|region| match axis {
        Axis::Horizontal => (region.y, region.height),
        Axis::Vertical => (region.x, region.width),
    });
    (own == of).then_some(axis)
}

/// Returns the number of the first sample of a slot's array along an axis; `None` if it is 0.
fn first_of_line(site: &CallSite<'_>, slot: &Slot, axis: Axis) -> Option<i32> {
    let [down, across] = distance(site.part(slot).bounds, site.part(slot).region);
    let first = if axis == Axis::Vertical { down } else { across };
    Some(first as i32).filter(|first| *first != 0)
}

/// Returns whether a slot reads anywhere in an array that covers a part of its image.
fn is_part(site: &CallSite<'_>, slot: &Slot) -> bool {
    let part = site.part(slot);
    slot.reach.is_none() && slot.along.is_none() && part.region != part.bounds
}

/// Lowers a call with reads at computed positions, for all components together or one by one.
pub(crate) fn compute(site: &CallSite<'_>, function: &Function) -> Result<Vec<Node>> {
    if site.alone && site.components > 1 {
        return Ok(site.in_components(|own| computed(own, function).map(Some))?.unwrap_or_default());
    }
    computed(site, function)
}

fn computed(site: &CallSite<'_>, function: &Function) -> Result<Vec<Node>> {
    let shape = shape(site.components, site.region, site.transposed);
    let scalars = site.scalars(site.region)?;
    let rule = site.primitive.boundary.rule();
    // Samples at the position are elements of arrays of the computed region. Other arrays are read in full.
    let (mut beside, mut arrays, mut relays) = (scalars.clone(), vec![], false);
    for slot in &site.primitive.code.slots {
        let own = site.part(slot).region;
        if is_given(site, slot) {
            beside.push(site.array(slot, site.region)?);
        } else {
            if let Some(axis) = line_of(site, slot) {
                let [number, _] = if axis == Axis::Vertical { axes(site.transposed, 1, 2) } else { axes(site.transposed, 2, 1) };
                arrays.push((site.array(slot, own)?, Reads::Along(number, rule.clone())));
                if let Some(first) = first_of_line(site, slot, axis) {
                    beside.push(site.scalar(first)?);
                }
                relays |= site.part(slot).lines;
                continue;
            }
            arrays.push((site.array(slot, own)?, Reads::At(rule.clone())));
            let [mut top, mut left] = distance(site.region, own);
            if slot.along == Some(Axis::Vertical) {
                // Rows are counted from the first one of the image.
                top = distance(site.part(slot).bounds, own)[0];
            }
            if is_part(site, slot) {
                [top, left] = distance(site.part(slot).bounds, own);
            }
            for number in [top, left] {
                beside.push(site.scalar(number as i32)?);
            }
        }
    }
    let f = Builder::function(function.name());
    let indices = ["c", "i", "j"].map(|name| f.parameter(name, Type::I32));
    let [row, column] = axes(site.transposed, indices[1], indices[2]);
    let own: Vec<Value> = scalars.iter().map(|node| f.parameter("s", node.ty())).collect();
    let mut accesses = vec![];
    for slot in &site.primitive.code.slots {
        accesses.push(match (is_given(site, slot), line_of(site, slot)) {
            (true, _) => Access::Given(f.parameter("e", Type::F32)),
            (false, Some(axis)) => Access::Line(axis, first_of_line(site, slot, axis).map(|_| f.parameter("first", Type::I32))),
            (false, None) if is_part(site, slot) => Access::Part(["o", "o"].map(|name| f.parameter(name, Type::I32))),
            (false, None) => Access::Read(["o", "o"].map(|name| f.parameter(name, Type::I32))),
        });
    }
    let component = site.component.map_or(indices[0], |component| f.literal(component as i32));
    let frame = InlineFrame { builder: &f, position: [component, row, column], scalars: own };
    let results = inlined(site, &frame, function, &accesses);
    let function = f.finish_function(&results)?;
    let beside: Vec<&Node> = beside.iter().collect();
    let inputs: Vec<(&Node, Reads)> = arrays.iter().map(|(array, reads)| (array, reads.clone())).collect();
    let relayed = if relays { Node::relay(&function, &shape, &beside, &inputs)? } else { None };
    if let Some(results) = relayed {
        return Ok(results);
    }
    Ok(Node::compute(&function, &shape, &beside, &inputs, &[])?)
}
