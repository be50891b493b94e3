//! Moving averages: a state carried along lines.
//!
//! The state before the first pixel of a line is computed from the window there. The other pixels follow step
//! by step. A line can be cut into parts, each with its own initial state, to give work to more threads.

use super::compute::{Access, InlineFrame, inlined};
use super::{CallSite, cropped, shape};
use crate::Result;
use crate::functor::trace::PLACES;
use crate::functor::{Axis, Motion, Reach};
use broadloom_graph::{Node, Reads, Shape, Step};
use broadloom_scalar::{AccessorKind, Binding, Builder, Function, Literal, Type, Value, windowing};

/// Lowers a moving average whose lines are cut into `parts` parts; `None` if the images have different sizes.
pub(crate) fn moving(site: &CallSite<'_>, motion: &Motion, reach: Reach, parts: usize) -> Result<Option<Vec<Node>>> {
    let Some(region) = site.common_window(reach) else { return Ok(None) };
    let slots = &site.primitive.code.slots;
    let arrays = slots.iter().map(|slot| site.array(slot, region)).collect::<Result<Vec<Node>>>()?;
    let full = shape(site.components, region, site.transposed);
    let axis = if (motion.axis == Axis::Vertical) != site.transposed { 1 } else { 2 };
    let scalars = site.scalars(region)?;
    let mut extents = full.extents().to_vec();
    let (length, run) = (extents[axis] as i32, extents[axis].div_ceil(parts.max(1)) as i32);
    extents[axis] = parts.max(1);
    let starts = if parts > 1 { Shape::from(extents) } else { full.without(&[axis as u8], false) };
    let [first, run] = if motion.backwards { [length - 1, -run] } else { [0, run] };
    let along = [site.scalar(first)?, site.scalar(run)?];
    let mut start = states(site, motion, &arrays, &scalars, &along, &starts, axis)?;
    if !motion.step.places {
        start.truncate(motion.states);
    }
    start.extend(scalars);
    let step = Step {
        function: step(site, motion)?,
        states: motion.states + usize::from(motion.step.places),
        reach: stepped(motion, reach),
        backwards: motion.backwards,
        boundary: site.primitive.boundary.rules(arrays.len()),
        split: None,
    };
    let start: Vec<&Node> = start.iter().collect();
    let results = Node::sweep(&step, axis, &arrays.iter().collect::<Vec<&Node>>(), &start)?;
    let crop = |result: &Node| cropped(result, region, site.region, site.transposed);
    results.iter().map(crop).collect::<Result<Vec<Node>>>().map(Some)
}

/// Returns the window of a step: the recorded reads if all offsets are known, otherwise the declared window.
pub(crate) fn stepped(motion: &Motion, reach: Reach) -> (u32, u32) {
    match &motion.step.points {
        Some((_, taps)) => {
            let along = taps.iter().map(|tap| match motion.axis {
                Axis::Vertical => tap.y,
                Axis::Horizontal => tap.x,
            });
            along.fold((0, 0), |(before, behind), offset| {
                (before.max(offset.min(0).unsigned_abs()), behind.max(offset.max(0).unsigned_abs()))
            })
        }
        None => match motion.axis {
            Axis::Vertical => (reach.above, reach.below),
            Axis::Horizontal => (reach.left, reach.right),
        },
    }
}

/// Returns the position of a pixel of a line: its row and its column.
fn place<T>(axis: Axis, along: T, across: T) -> [T; 2] {
    match axis {
        Axis::Vertical => [along, across],
        Axis::Horizontal => [across, along],
    }
}

/// Computes the states before the first pixels of the parts of lines, followed by the position of each: along
/// the line, its component, and across the line.
fn states(
    site: &CallSite<'_>,
    motion: &Motion,
    arrays: &[Node],
    scalars: &[Node],
    along: &[Node; 2],
    starts: &Shape,
    axis: usize,
) -> Result<Vec<Node>> {
    let function = &motion.start.function;
    let f = Builder::function(function.name());
    let indices: Vec<Value> = (0..starts.rank()).map(|_| f.parameter("i", Type::I32)).collect();
    let own: Vec<Value> = scalars.iter().map(|node| f.parameter("s", node.ty())).collect();
    let [first, run] = ["first", "run"].map(|name| f.parameter(name, Type::I32));
    let (across, from) = match indices[..] {
        [_, i, j] if axis == 1 => (j, f.add(first, f.mul(i, run))),
        [_, i, j] => (i, f.add(first, f.mul(j, run))),
        _ => (indices[1], first),
    };
    let [row, column] = place(motion.axis, from, across);
    let origin = [f.literal(0i32); 2];
    let frame = InlineFrame { builder: &f, position: [indices[0], row, column], scalars: own };
    let mut results = inlined(site, &frame, function, &vec![Access::Read(origin); arrays.len()]);
    results.extend([from, indices[0], across]);
    let function = f.finish_function(&results)?;
    let rule = site.primitive.boundary.rule();
    let inputs: Vec<(&Node, Reads)> = arrays.iter().map(|array| (array, Reads::At(rule.clone()))).collect();
    let beside: Vec<&Node> = scalars.iter().chain(along).collect();
    Ok(Node::compute(&function, starts, &beside, &inputs, &[])?)
}

/// Builds the step of a sweep. Its windows have one index. The index along the line is part of the state if
/// it is used.
fn step(site: &CallSite<'_>, motion: &Motion) -> Result<Function> {
    let own = &motion.step.function;
    let f = Builder::function(own.name());
    let states: Vec<Value> = (0..motion.states).map(|_| f.parameter("s", Type::F64)).collect();
    let places = motion.step.places;
    let whole = |name: &str| f.parameter(name, Type::I32);
    let place = places.then(|| {
        let [along, component, across] = ["i", "c", "line"].map(whole);
        (along, component, place(motion.axis, along, across))
    });
    let (component, [row, column]) = match place {
        Some((_, component, place)) => (component, place),
        None => (f.literal(0i32), [f.literal(0i32); 2]),
    };
    let mut arguments = vec![component, row, column];
    let scalars = own.parameters().len() - 3 - motion.states;
    debug_assert_eq!(scalars, PLACES - 3 + site.primitive.parameters.len(), "the arguments of a moving average");
    arguments.extend(own.parameters()[3..3 + scalars].iter().map(|parameter| f.parameter(&parameter.name, parameter.ty)));
    arguments.extend(&states);
    let along = match motion.axis {
        Axis::Vertical => 1,
        Axis::Horizontal => 2,
    };
    let windows: Vec<_> =
        own.accessors().iter().map(|window| f.accessor(&window.name, AccessorKind::Window, window.ty, 1)).collect();
    let mut bindings: Vec<_> = windows
        .into_iter()
        .map(|window| windowing(move |f: &Builder, offsets: &[Value]| f.window(window, &[offsets[along].into()])))
        .collect();
    let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
    let mut results = f.inline(own, &arguments, &mut bindings);
    if let Some((along, ..)) = place {
        let next = f.add(along, f.literal(Literal::from(if motion.backwards { -1i32 } else { 1 })));
        results.insert(motion.states, next);
    }
    Ok(f.finish_function(&results)?)
}
