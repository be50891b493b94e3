//! `f32`: functions of one argument on all arguments, by a kernel that compares them with the functions of
//! `f64`.
//!
//! Those are exact to a billionth of an `f32` ulp, as other tests check against separate references, so the
//! difference is the error. The arguments with the greatest errors are also compared with the reference.
//! `BROADLOOM_MATH_EVERY=1` takes all 4,294,967,296 arguments, as `make soak` does. Every 4,099th is the
//! default. `lgamma` and `tgamma` of `f32` are those of `f64`, rounded; for these the test shows only that.

use crate::applied::{Applied, cpu};
use crate::reference::{reference, single_error};
use broadloom_device::{Argument, Device, Launch};
use broadloom_scalar::{Axis, Builder, Element, Kernel, MathFunction, Precision, Type, Unroll, Value, lower};
use std::sync::Arc;

/// Number of threads.
const THREADS: u32 = 1 << 16;
/// Greater than any finite error.
const WRONG: f64 = 1e30;

fn step() -> u64 {
    let step = std::env::var("BROADLOOM_MATH_EVERY").ok();
    let step =
        step.map(|text| text.parse().unwrap_or_else(|_| panic!("BROADLOOM_MATH_EVERY is `{text}`, and it takes a number")));
    step.filter(|step| *step > 0).unwrap_or(4_099)
}

/// Computes the distance of a result of `f32` from that of `f64`, in units in the last place.
fn error(b: &Builder, single: Value, double: Value) -> Value {
    let wide = b.convert(single, Type::F64);
    let rounded = b.convert(double, Type::F32);
    let (single_bits, rounded_bits) = (b.bitcast(single, Element::U32), b.bitcast(rounded, Element::U32));
    let bits = b.bitcast(double, Element::U64);
    // The exponent. Subnormal numbers have that of the least normal one.
    let exponent = b.max(b.and(b.shr(bits, 52), 0x7ffu64), 897u64);
    let ulp = b.bitcast(b.shl(b.sub(exponent, 23u64), 52), Element::F64);
    let apart = |x: Value, y: Value| b.abs(b.sub(x, y));
    let distance = b.div(apart(wide, double), ulp);
    let limit = 2f64.powi(128);
    let held = |x: Value| b.max(b.min(x, limit), -limit);
    let beyond = b.div(apart(held(wide), held(double)), 2f64.powi(104));
    let is_infinite = |x: Value| b.eq(b.abs(x), f32::INFINITY);
    let is_beyond = b.or(is_infinite(single), is_infinite(rounded));
    let beyond = b.select(b.eq(b.abs(double), f64::INFINITY), WRONG, beyond);
    let are_zero = b.and(b.eq(single, 0f32), b.eq(double, 0f64));
    let is_same = b.eq(single_bits, rounded_bits);
    let (is_nan, should_be) = (b.ne(single, single), b.ne(double, double));
    let (none, wrong) = (b.literal(0f64), b.literal(WRONG));
    let of_numbers =
        b.select(are_zero, b.select(is_same, none, wrong), b.select(is_beyond, b.select(is_same, none, beyond), distance));
    b.select(b.or(is_nan, should_be), b.select(b.and(is_nan, should_be), none, wrong), of_numbers)
}

/// Returns a kernel in which every thread visits its arguments and keeps the greatest error.
fn kernel(function: MathFunction) -> Kernel {
    let b = Builder::kernel("every");
    let (errors, arguments) = (b.pointer("errors", Element::F64), b.pointer("arguments", Element::U32));
    let (step, count) = (b.parameter("step", Type::U32), b.parameter("count", Type::U32));
    let thread = b.global_thread(Axis::X);
    let worst = b.variable_with(b.literal(0f64));
    let at = b.variable_with(b.literal(0u32));
    b.for_step(0u32, count, 1u32, Unroll::Never, |round| {
        let bits = b.mul(b.add(b.mul(round, THREADS), thread), step);
        let x = b.bitcast(bits, Element::F32);
        let single = b.math(function, Precision::Accurate, &[x]);
        let double = b.math(function, Precision::Accurate, &[b.convert(x, Type::F64)]);
        let error = error(&b, single, double);
        let is_worse = b.gt(error, b.get(worst));
        b.set(at, b.select(is_worse, bits, b.get(at)));
        b.set(worst, b.select(is_worse, error, b.get(worst)));
    });
    b.store(errors, thread, b.get(worst));
    b.store(arguments, thread, b.get(at));
    b.finish_kernel().unwrap()
}

/// Returns the greatest error of each thread, in decreasing order.
fn worst(device: &Device, function: MathFunction) -> Vec<(f64, f32)> {
    let module = Arc::new(lower(&[kernel(function)]).unwrap());
    let kernel = device.load(&module).unwrap().kernel("every").unwrap();
    let errors = device.zeros::<f64>(THREADS as usize).unwrap();
    let arguments = device.zeros::<u32>(THREADS as usize).unwrap();
    let count = (1u64 << 32).div_ceil(step() * u64::from(THREADS)) as u32;
    let values = [Argument::from(&errors), Argument::from(&arguments), Argument::from(step() as u32), Argument::from(count)];
    kernel.launch(&Launch::linear(THREADS / 64, 64), &values).unwrap();
    let arguments = arguments.read().unwrap().into_iter().map(f32::from_bits);
    let mut found: Vec<(f64, f32)> = errors.read().unwrap().into_iter().zip(arguments).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

#[test]
fn every_argument_is_as_exact_as_stated() {
    let device = cpu();
    let mut wrong = vec![];
    let only = std::env::var("BROADLOOM_MATH_ONLY").ok();
    let asked = |f: &MathFunction| f.arguments() == 1 && only.as_ref().is_none_or(|only| only == f.name());
    for function in MathFunction::ALL.iter().copied().filter(asked) {
        let stated = function.accuracy().single;
        let (errors, arguments): (Vec<f64>, Vec<f32>) = worst(&device, function).into_iter().take(64).unzip();
        let results = Applied::new(&device, function, Precision::Accurate, Type::F32).run(&[&arguments]);
        for ((error, x), result) in errors.into_iter().zip(arguments).zip(results) {
            let by_reference = single_error(result, reference(function, x.into(), 0.0));
            // Large terms cancel in the reference near the zeros of lgamma.
            let is_doubtful = function == MathFunction::Lgamma && x < 0.0;
            if error > stated || by_reference > stated && !is_doubtful {
                let bits = x.to_bits();
                wrong.push(format!(
                    "{function}({x:e}, bits {bits:08x}): {error} ulp, {by_reference} by the reference, stated {stated}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The kernel detects errors: it distinguishes the results of a coarser function, and its measure is that of
/// the other tests.
#[test]
fn errors_are_found() {
    let b = Builder::function("error");
    let (single, double) = (b.parameter("single", Type::F32), b.parameter("double", Type::F64));
    let measure = b.finish_function(&[error(&b, single, double)]).unwrap();
    let right = |x: f32| reference(MathFunction::Exp, x.into(), 0.0);
    for x in [-100.0f32, -90.0, -1.0, 0.0, 1e-3, 1.0, 10.0, 88.0, 88.72, 89.0, 1000.0, f32::NEG_INFINITY, f32::NAN] {
        for off in [-3i32, -1, 0, 1, 2] {
            let exact = right(x);
            let rounded = exact as f32;
            let result = if rounded.is_nan() {
                rounded
            } else {
                f32::from_bits(rounded.to_bits().saturating_add_signed(off).min(0x7f80_0000))
            };
            let found = measure.evaluate(&[result.into(), exact.into()]).unwrap()[0];
            let found = f64::from_bits(found.bits());
            let expected = single_error(result, exact).min(WRONG);
            assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "exp({x}) = {result:e}: {found}, not {expected}");
        }
    }
    assert_eq!(f64::from_bits(measure.evaluate(&[(-0.0f32).into(), 0f64.into()]).unwrap()[0].bits()), WRONG);
}
