//! The group `overhead`: what the host does for an expression of ten operations on arrays before the device has its work.
//!
//! The expression is built, its plan found, its kernel launched, again and again on arrays of few elements; the device is waited for between, and that does not count.
//! Nothing is planned or compiled while it is measured. The median counts.

use crate::error::Failure;
use crate::measure::median;
use crate::report::Row;
use broadloom::device::Device;
use broadloom::{Array, Context};
use std::time::{Duration, Instant};

pub(crate) const GROUP: &str = "overhead";
pub(crate) const NAME: &str = "ten_operations";

/// Elements of an array.
const COUNT: usize = 64;
/// Expressions that are measured.
const RUNS: usize = 2000;

/// Ten operations, with another scalar each time.
fn expression(x: &Array<f32>, y: &Array<f32>, scalar: f32) -> Array<f32> {
    let z = x * y + scalar;
    let z = (&z - x) * (&z + y);
    (z.abs().sqrt() * 0.5 - y).exp()
}

/// What it is, in Rust.
fn expected(x: f32, y: f32, scalar: f32) -> f32 {
    let z = x * y + scalar;
    let z = (z - x) * (z + y);
    (z.abs().sqrt() * 0.5 - y).exp()
}

/// Measures the host.
pub(crate) fn run(device: &Device, quick: bool) -> Result<Vec<Row>, Failure> {
    let context = Context::new(device);
    let values = |first: f32| (0..COUNT).map(|i| first + i as f32 / COUNT as f32).collect::<Vec<f32>>();
    let (a, b) = (values(1.0), values(0.5));
    let (x, y) = (Array::line(&context, &a)?, Array::line(&context, &b)?);
    let runs = if quick { 3 } else { RUNS };
    let mut times: Vec<Duration> = vec![];
    for run in 0..runs + 1 {
        let scalar = run as f32 / 8.0;
        let start = Instant::now();
        let z = expression(&x, &y, scalar);
        z.evaluate()?;
        let time = start.elapsed();
        device.synchronise()?;
        // The first has its plan made.
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
    Ok(vec![Row {
        group: GROUP,
        name: NAME.to_owned(),
        size: format!("{COUNT} elements"),
        device: device.machine().id.clone(),
        ms: median(times).unwrap_or_default().as_secs_f64() * 1e3,
        rate: None,
        limit_share: None,
        launches: 1,
        compile_ms: None,
        device_ms: None,
        peer: None,
        peer_ms: None,
        others: vec![],
    }])
}
