//! The group `overhead`: the host's work for an expression of arrays before the device gets its work.
//!
//! - An expression of ten operations on small arrays is built, its plan is looked up, and its kernels are
//!   launched, in every run.
//! - An expression of two hundred operations (corner detection) runs the same way, and also as a function.
//! - The ten operations are also called as a function with arrays of a different size each time. Its plans
//!   are fitted to the sizes.
//! - A function of NESL is called with a different size each time. It is launched from a template, and
//!   executed by the machine, by turns.
//! - A round of a loop of NESL counts with its wait. In all other cases the host waits for the device between
//!   runs, and that time does not count.
//!
//! Nothing is planned or compiled during the measurement. The median counts.

use crate::arrays::{CORNERS, bell, corners};
use crate::error::Failure;
use crate::group;
use crate::job::close;
use crate::measure::median;
use crate::report::Row;
use broadloom::array::Function;
use broadloom::device::Device;
use broadloom::nesl::run::Target;
use broadloom::nesl::{Column, Program};
use broadloom::{Array, Context};
use std::time::{Duration, Instant};

pub(crate) const NAME: &str = "ten_operations";

/// Number of elements in an array.
const COUNT: usize = 64;
/// Number of rows and columns of an image.
const SIDE: usize = 64;
/// Number of measured expressions.
const RUNS: usize = 2000;

/// Returns an expression of ten operations, with a different scalar each time.
fn expression(x: &Array<f32>, y: &Array<f32>, scalar: f32) -> Array<f32> {
    let z = x * y + scalar;
    let z = (&z - x) * (&z + y);
    (z.abs().sqrt() * 0.5 - y).exp()
}

/// Computes the expression in Rust.
fn expected(x: f32, y: f32, scalar: f32) -> f32 {
    let z = x * y + scalar;
    let z = (z - x) * (z + y);
    (z.abs().sqrt() * 0.5 - y).exp()
}

fn row(device: &Device, name: &str, size: String, times: Vec<Duration>, launches: u64) -> Row {
    let time = median(times).unwrap_or_default();
    Row { launches, ..Row::timed(group::OVERHEAD, name, size, device.machine().id.clone(), time) }
}

/// Measures all rows of the group.
pub(crate) fn run(device: &Device, quick: bool) -> Result<Vec<Row>, Failure> {
    let runs = if quick { 3 } else { RUNS };
    let mut rows = vec![ten_operations(device, runs)?, new_sizes(device, runs)?];
    rows.extend(nesl_sizes(device, runs)?);
    rows.extend(nesl_rounds(device, runs)?);
    rows.extend(many_operations(device, runs)?);
    Ok(rows)
}

fn ten_operations(device: &Device, runs: usize) -> Result<Row, Failure> {
    let context = Context::new(device);
    let values = |first: f32| (0..COUNT).map(|i| first + i as f32 / COUNT as f32).collect::<Vec<f32>>();
    let (a, b) = (values(1.0), values(0.5));
    let (x, y) = (Array::line(&context, &a)?, Array::line(&context, &b)?);
    let mut times: Vec<Duration> = vec![];
    for run in 0..runs + 1 {
        let scalar = run as f32 / 8.0;
        let start = Instant::now();
        let z = expression(&x, &y, scalar);
        z.evaluate()?;
        let time = start.elapsed();
        device.synchronise()?;
        // The first run makes the plan.
        if run > 0 {
            times.push(time);
        }
        let found = z.to_vec()?;
        let wrong = found.iter().zip(a.iter().zip(&b)).find(|(z, (x, y))| {
            let expected = expected(**x, **y, scalar);
            (**z - expected).abs() > 1e-4 * expected.abs()
        });
        if wrong.is_some() {
            return Err(Failure::Wrong(format!("expression {run} gave {found:?}")));
        }
    }
    if context.statistics().plans != 1 {
        return Err(Failure::Wrong(format!("{} plans were made of one expression", context.statistics().plans)));
    }
    Ok(row(device, NAME, format!("{COUNT} elements"), times, 1))
}

/// Measures ten operations as a function, called with arrays of a different size each time.
fn new_sizes(device: &Device, runs: usize) -> Result<Row, Failure> {
    let context = Context::new(device);
    let function = Function::new(&context, |x: &Array<f32>, y: &Array<f32>| expression(x, y, 0.25));
    let values = |first: f32, count: usize| (0..count).map(|i| first + i as f32 / count as f32).collect::<Vec<f32>>();
    let mut times: Vec<Duration> = vec![];
    let mut before = context.statistics();
    for run in 0..runs + 1 {
        let (a, b) = (values(1.0, COUNT + run), values(0.5, COUNT + run));
        let (x, y) = (Array::line(&context, &a)?, Array::line(&context, &b)?);
        let start = Instant::now();
        let z = function.call((&x, &y))?;
        let time = start.elapsed();
        device.synchronise()?;
        let wanted = |i: usize| f64::from(expected(a[i], b[i], 0.25));
        close(&z.to_vec()?, wanted, 1e-4, 0.0)?;
        // The first run is traced.
        if run == 0 {
            before = context.statistics();
        } else {
            times.push(time);
        }
    }
    let after = context.statistics();
    if (after.traces, after.plans) != (before.traces, before.plans) {
        return Err(Failure::Wrong("a function was traced again for other sizes".into()));
    }
    Ok(row(device, "new_sizes", "10 operations".to_owned(), times, 1))
}

/// A function of NESL without data-dependent branches.
const NESL: &str = "function scores(a) : [float] -> ([float], float) = \
    let n = float(#a); m = sum(a) / n; v = sum({(x - m) * (x - m) : x in a}) / n \
    in ({(x - m) * (x - m) / n + v : x in a}, v);";

/// Measures a function of NESL, called with lines of a different size each time: launched from a template,
/// and executed by the machine.
fn nesl_sizes(device: &Device, runs: usize) -> Result<[Row; 2], Failure> {
    let program = |target: fn(Target) -> Target| {
        let device = device.clone();
        let target = target(Target::new(move || Ok(device.clone())).with_threshold(COUNT));
        Program::new(NESL, "scores", Default::default(), target).map_err(|failure| Failure::Outside(failure.0))
    };
    let mut programs = [program(|target| target)?, program(Target::without_templates)?];
    let mut times: [Vec<Duration>; 2] = [vec![], vec![]];
    for run in 0..runs + 2 {
        let values: Vec<f64> = (0..COUNT + run).map(|i| i as f64 / 8.0).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let spread = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        for (program, times) in programs.iter_mut().zip(&mut times) {
            let outside = |failure: broadloom::nesl::program::Failure| Failure::Outside(failure.0);
            let context = program.context().map_err(outside)?;
            let column = Column::Device(Array::line(&context, &values)?.node().clone());
            let start = Instant::now();
            let results = program.call(&[column]).map_err(outside)?;
            let time = start.elapsed();
            device.synchronise()?;
            // The second call is traced.
            if run >= 2 {
                times.push(time);
            }
            let Some(Column::Device(found)) = results.last() else {
                return Err(Failure::Wrong("a result is not on the device".into()));
            };
            let found = found.read().map_err(|error| Failure::Outside(error.to_string()))?;
            let found = found.lanes.first().and_then(|lane| lane.as_f64()).unwrap_or(f64::NAN);
            if (found - spread).abs() > 1e-9 * spread.abs() {
                return Err(Failure::Wrong(format!("call {run} gave {found}, not {spread}")));
            }
        }
    }
    let [templates, machine] = programs.map(|mut program| program.statistics());
    if (templates.traces, templates.templates, machine.traces) != (1, runs as u64 + 1, 0) {
        return Err(Failure::Wrong(format!("{} traces, {} calls of templates", templates.traces, templates.templates)));
    }
    let launches = |done: &broadloom::nesl::run::Statistics| done.launches / (runs as u64 + 2);
    let size = "12 operations".to_owned();
    let [with, without] = times;
    Ok([
        row(device, "nesl_new_sizes", size.clone(), with, launches(&templates)),
        row(device, "nesl_machine", size, without, launches(&machine)),
    ])
}

/// A loop of NESL that waits for the device in each round.
const ROUNDS: &str = "function rounds(a, n) : ([int], int) -> int = \
    if max_val(a) < 1 then n else rounds({max(x - 1, 0) : x in a}, n + 1); \
    function g(a) : [int] -> int = rounds(a, 0);";

/// Measures rounds of a loop of NESL between two waits: launched from a template, and executed by the
/// machine. The time is that of a round, with its launches and its wait.
fn nesl_rounds(device: &Device, runs: usize) -> Result<[Row; 2], Failure> {
    let outside = |failure: broadloom::nesl::program::Failure| Failure::Outside(failure.0);
    let program = |target: fn(Target) -> Target| {
        let device = device.clone();
        let target = target(Target::new(move || Ok(device.clone())).with_threshold(COUNT));
        Program::new(ROUNDS, "g", Default::default(), target).map_err(outside)
    };
    let mut programs = [program(|target| target)?, program(Target::without_templates)?];
    let rounds = runs.max(100);
    let mut times: [Vec<Duration>; 2] = [vec![], vec![]];
    // The first call makes its plans and traces the region.
    for run in 0..6 {
        for (program, times) in programs.iter_mut().zip(&mut times) {
            let context = program.context().map_err(outside)?;
            let values: Vec<i32> = (0..COUNT).map(|i| (rounds - i) as i32).collect();
            let column = Column::Device(Array::line(&context, &values)?.node().clone());
            let start = Instant::now();
            let results = program.call(&[column]).map_err(outside)?;
            let time = start.elapsed();
            if run > 0 {
                times.push(time / rounds as u32);
            }
            let found = match results.first() {
                Some(Column::Ints(found)) => found.first().copied(),
                Some(Column::Device(found)) => {
                    let found = found.read().map_err(|error| Failure::Outside(error.to_string()))?;
                    found.lanes.first().and_then(|lane| lane.as_i128()).map(|found| found as i64)
                }
                _ => None,
            };
            if found != Some(rounds as i64) {
                return Err(Failure::Wrong(format!("{rounds} rounds gave {found:?}")));
            }
        }
    }
    let [served, walked] = programs.map(|mut program| program.statistics());
    let few = 8;
    if served.regions + few < 6 * rounds as u64 || walked.regions > 0 || served.launches > walked.launches {
        return Err(Failure::Wrong(format!("{} rounds were launched from templates: {served:?}, {walked:?}", served.regions)));
    }
    let launches = |done: &broadloom::nesl::run::Statistics| done.launches / (6 * rounds as u64);
    let size = format!("{COUNT} elements");
    let [with, without] = times;
    Ok([
        row(device, "nesl_region", size.clone(), with, launches(&served)),
        row(device, "nesl_walk", size, without, launches(&walked)),
    ])
}

/// Measures an expression that is built anew each time, and as a function.
fn many_operations(device: &Device, runs: usize) -> Result<[Row; 2], Failure> {
    let context = Context::new(device);
    let values: Vec<f32> = (0..SIDE * SIDE).map(|i| (i * i % 97) as f32 / 97.0).collect();
    let image = Array::new(&context, &values, [SIDE, SIDE])?;
    let (narrow, wide) = (bell::<5>(1.0), bell::<9>(2.0));
    let function = Function::new(&context, move |image: &Array<f32>| corners(image, &narrow, &wide));
    let wanted = corners(&image, &narrow, &wide)?.to_vec()?;
    // Equal weights are one value in a function and several in an expression, so products may be rounded
    // differently.
    let most = wanted.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    close(&function.call(&image)?.to_vec()?, |i| f64::from(wanted[i]), 0.0, 1e-6 * f64::from(most))?;
    let before = context.statistics();
    let (mut anew, mut called): (Vec<Duration>, Vec<Duration>) = (vec![], vec![]);
    for _ in 0..runs {
        let start = Instant::now();
        let corners = corners(&image, &narrow, &wide)?;
        corners.evaluate()?;
        anew.push(start.elapsed());
        device.synchronise()?;
        let start = Instant::now();
        let corners = function.call(&image)?;
        called.push(start.elapsed());
        device.synchronise()?;
        drop(corners);
    }
    let after = context.statistics();
    if after.plans != before.plans {
        return Err(Failure::Wrong("an expression was planned again".into()));
    }
    let launches = (after.kernels - before.kernels) / (2 * runs as u64);
    let size = format!("{CORNERS} operations");
    Ok([row(device, "corner_anew", size.clone(), anew, launches), row(device, "corner_function", size, called, launches)])
}
