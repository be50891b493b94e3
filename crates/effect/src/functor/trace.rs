//! Tracing: a kernel becomes a function of windows.
//!
//! Every kernel is traced into one *canonical* function. Its parameters are, in this order:
//!
//! - the component, row and column of a pixel of the region that is computed;
//! - the column and row where that region starts, counted from the corner of the region of definition;
//! - the width and height of the region of definition;
//! - the width and height of each input that is read anywhere;
//! - the parameters of the functor;
//! - the state, for a moving average.
//!
//! The function has an accessor for each array: a window of three indices, or an input that is read at
//! positions. All other forms are made from it by inlining: see [`crate::plan`].
//!
//! A second function takes the samples themselves if all offsets are known and few. The planner then sees
//! every read.

use super::indexer::{Axis, Indexer, Reach};
use super::kernel::{DeclaredInput, Kernel, Shared, Tap};
use crate::{Error, Result};
use broadloom_scalar::{AccessorKind, Binding, Builder, Function, Literal, Type, Value, windowing};
use std::cell::{Cell, RefCell};

/// Maximum number of reads at known offsets that become views of the inputs.
pub(crate) const MOST_TAPS: usize = 64;
/// Number of parameters before those of inputs that are read anywhere.
pub(crate) const PLACES: usize = 7;

/// An array that a functor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Index of the picture among those of a call.
    pub(crate) picture: usize,
    /// Component that is read; `None` for all components, one at a time.
    pub(crate) component: Option<usize>,
    /// Window of the reads; `None` if the array is read anywhere.
    pub(crate) reach: Option<Reach>,
    /// Axis of an array that is read anywhere along an axis.
    pub(crate) along: Option<Axis>,
}

/// The result of tracing.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Canonical function.
    pub(crate) function: Function,
    /// Canonical function with a report of reads outside their windows as its last result; `None` if such
    /// reads are impossible.
    pub(crate) checked: Option<Function>,
    /// Function of samples at known offsets. Its parameters are those of the canonical function, then the
    /// samples. The position and size parameters are omitted if none is used.
    pub(crate) points: Option<(Function, Vec<Tap>)>,
    /// True if the function depends on positions or sizes.
    pub(crate) places: bool,
}

/// Returns the arrays of inputs. Frames are consecutive, and each has an array per component that is read
/// together.
pub(crate) fn slots(inputs: &[Indexer]) -> Vec<Slot> {
    let (mut slots, mut picture) = (vec![], 0);
    for indexer in inputs {
        for _ in 0..indexer.frame_count() {
            let (reach, along) = (indexer.reach(), indexer.along_axis());
            match indexer.pixel {
                Some(count) => {
                    slots.extend((0..count).map(|component| Slot { picture, component: Some(component), reach, along }))
                }
                None => slots.push(Slot { picture, component: None, reach, along }),
            }
            picture += 1;
        }
    }
    slots
}

/// A kernel with the declarations for which it is traced.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) inputs: &'a [Indexer],
    pub(crate) parameters: usize,
    pub(crate) states: usize,
    /// Number and types of the results.
    pub(crate) results: &'a [Type],
    /// True if loops are never unrolled.
    pub(crate) rolled: bool,
}

/// Emits a kernel: takes its state and returns its results.
pub(crate) type Body<'a> = dyn for<'k> Fn(Kernel<'k>, &[Value]) -> Vec<Value> + 'a;

struct TracedFunction {
    function: Function,
    taps: Option<Vec<Tap>>,
    places: bool,
    /// True if reads can lie outside their windows.
    reduced: bool,
}

fn once(subject: &Subject<'_>, checking: bool, body: &Body<'_>) -> Result<TracedFunction> {
    let b = Builder::function(subject.name);
    let whole = |name: &str| b.parameter(name, Type::I32);
    let [component, row, column] = ["c", "y", "x"].map(whole);
    let [left, top, width, height] = ["left", "top", "width", "height"].map(whole);
    let slots = slots(subject.inputs);
    let (mut inputs, mut first) = (vec![], 0);
    for indexer in subject.inputs {
        let size = indexer.reach().is_none().then(|| [whole("width"), whole("height")]);
        inputs.push(DeclaredInput { indexer: indexer.clone(), first, size });
        first += indexer.frame_count() * indexer.pixel.unwrap_or(1);
    }
    let parameters: Vec<Value> = (0..subject.parameters).map(|_| b.parameter("p", Type::F32)).collect();
    let states: Vec<Value> = (0..subject.states).map(|_| b.parameter("s", Type::F64)).collect();
    let accessor = |slot: &Slot| match slot.reach {
        Some(_) => b.accessor("input", AccessorKind::Window, Type::F32, 3),
        None => b.accessor("input", AccessorKind::Input, Type::F32, 3),
    };
    let accessors = slots.iter().map(accessor).collect();
    let outside = checking.then(|| b.variable(Type::I64));
    let shared = Shared {
        name: subject.name.to_owned(),
        inputs,
        accessors,
        parameters,
        position: [component, b.add(row, top), b.add(column, left)],
        size: [width, height],
        taps: RefCell::new(Some(vec![])),
        places: Cell::new(false),
        rolled: subject.rolled,
        outside,
    };
    let mut results = body(Kernel { builder: &b, shared: &shared }, &states);
    let given: Vec<Type> = results.iter().map(|result| b.type_of(*result)).collect();
    if given.len() != subject.results.len() && !b.has_failed() {
        let reason = format!("its kernel gives {} results, and {} are declared", given.len(), subject.results.len());
        return Err(Error::Functor { name: subject.name.to_owned(), reason });
    }
    results.extend(outside.map(|outside| b.get(outside)));
    // Products are fused with sums only here. The bits of a result therefore do not depend on the kernel that
    // the functor becomes a part of.
    let function = b.finish_function(&results).and_then(|function| function.settle_products());
    let function = function.map_err(|error| Error::functor(subject.name, error))?;
    let taps = shared.taps.take();
    // A report that is never set is a literal zero or a variable without assignments. Checking the taps is
    // sufficient.
    let reduced = taps.is_none();
    Ok(TracedFunction { function, taps, places: shared.places.get(), reduced })
}

/// Traces a kernel.
pub(crate) fn trace(subject: &Subject<'_>, body: &Body<'_>) -> Result<Trace> {
    let plain = once(subject, false, body)?;
    let anywhere = subject.inputs.iter().any(|indexer| indexer.reach().is_none());
    let checked = match plain.reduced {
        true => Some(once(subject, true, body)?.function),
        false => None,
    };
    let points = match plain.taps {
        Some(taps) if !anywhere && taps.len() <= MOST_TAPS => {
            Some((points(&plain.function, &taps, plain.places).map_err(|error| Error::functor(subject.name, error))?, taps))
        }
        _ => None,
    };
    Ok(Trace { function: plain.function, checked, points, places: plain.places })
}

/// Returns the function of the samples at known offsets.
fn points(function: &Function, taps: &[Tap], places: bool) -> broadloom_scalar::Result<Function> {
    let f = Builder::function(function.name());
    let own = function.parameters().iter().enumerate();
    let arguments: Vec<Value> = own
        .map(|(number, parameter)| match number < PLACES && !places {
            true => f.literal(Literal::zero(parameter.ty.element())),
            false => f.parameter(&parameter.name, parameter.ty),
        })
        .collect();
    let samples: Vec<Value> = taps.iter().map(|_| f.parameter("v", Type::F32)).collect();
    let sample = |array: usize, builder: &Builder, offsets: &[Value]| {
        let known = |value: Value| builder.as_literal(value).and_then(Literal::as_i128);
        let tap = taps.iter().position(|tap| {
            tap.array == array && known(offsets[1]) == Some(i128::from(tap.y)) && known(offsets[2]) == Some(i128::from(tap.x))
        });
        tap.map_or_else(|| builder.fail("a read at an offset that was not noted"), |tap| samples[tap])
    };
    let mut bindings: Vec<_> = (0..function.accessors().len())
        .map(|array| windowing(move |builder: &Builder, offsets: &[Value]| sample(array, builder, offsets)))
        .collect();
    let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
    let results = f.inline(function, &arguments, &mut bindings);
    f.finish_function(&results)
}
