//! Figures of the device as a whole: the cost of an empty launch, and the speed-up of multiple threads.

use crate::error::Failure;
use crate::measure::median;
use crate::report::{Figure, Row};
use crate::{compile, group, module};
use broadloom::device::private::Temporary;
use broadloom::device::{Device, Launch};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Benchmarks that are bound by computation.
const COMPUTING: [&str; 3] = ["black_scholes", "nbody", "mandelbrot"];

/// Measures the caller's time for a launch of an empty kernel, in microseconds: the median over batches of
/// 100.
pub(crate) fn empty_launch(device: &Device) -> Result<Figure, Failure> {
    let kernel = module::load(device, "empty.ptx", include_str!("../kernels/empty.ptx"))?.kernel("empty")?;
    let launch = Launch::linear(1, 32);
    let mut times = vec![];
    for _ in 0..50 {
        let start = Instant::now();
        for _ in 0..100 {
            kernel.launch(&launch, &[])?;
        }
        times.push(start.elapsed() / 100);
        device.synchronise()?;
    }
    let value = median(times).unwrap_or_default().as_secs_f64() * 1e6;
    Ok(Figure { key: "empty_launch_us".to_owned(), value, text: format!("an empty launch takes {value:.2} µs of the caller") })
}

/// Measures the speed-up of compute-bound benchmarks with all threads over one thread. `rows` has the times
/// with all threads.
pub(crate) fn scaling(command: &Path, rows: &[Row], quick: bool) -> Result<Vec<Figure>, Failure> {
    let rows: Vec<&Row> =
        rows.iter().filter(|row| row.group == group::KERNELS && COMPUTING.contains(&row.name.as_str())).collect();
    let names: Vec<String> = rows.iter().map(|row| format!("{}/{}", row.group, row.name)).collect();
    let (Some(first), false) = (rows.first(), names.is_empty()) else { return Ok(vec![]) };
    let single = child(command, &names, &first.device, quick, "BROADLOOM_THREADS", "1".as_ref())?;
    let figure = |row: &&Row| {
        let alone = single.iter().find(|(name, _, _)| *name == row.name)?.2;
        let value = alone / row.ms;
        let text = format!("{}: {value:.2} times as fast with all threads as with one ({alone:.1} ms)", row.name);
        Some(Figure { key: format!("scaling_{}", row.name), value, text })
    };
    Ok(rows.iter().filter_map(figure).collect())
}

/// Number of processes that find their kernels in the cache. A kernel is found in a fraction of a
/// millisecond, and an interruption takes many times as long. Therefore the minimum counts.
const CACHED_RUNS: usize = 3;

/// Measures the group `compile` in its own processes: first with an empty cache, then with the cache that the
/// first process left.
pub(crate) fn compile_apart(command: &Path, device: &str) -> Result<Vec<Row>, Failure> {
    let folder = Temporary::new("broadloom-bench").map_err(|refusal| Failure::Outside(refusal.to_string()))?;
    let names = [format!("{}/{}", group::COMPILE, compile::NAME)];
    let measure = || child(command, &names, device, false, "BROADLOOM_CACHE", folder.path());
    let cold = measure()?;
    let mut warm = measure()?;
    for _ in 1..CACHED_RUNS {
        for (best, other) in warm.iter_mut().zip(measure()?) {
            if other.2 < best.2 {
                *best = other;
            }
        }
    }
    let rows = |list: Vec<(String, String, f64)>, prefix: &str| {
        let row =
            |(name, size, ms): (String, String, f64)| compile::row(device.to_owned(), &name.replace("corpus", prefix), size, ms);
        list.into_iter().map(row).collect::<Vec<_>>()
    };
    Ok([rows(cold, "corpus"), rows(warm, "cached")].concat())
}

/// Runs benchmarks in a separate process with an environment variable set. Returns name, size and
/// milliseconds of each.
fn child(
    command: &Path,
    names: &[String],
    device: &str,
    quick: bool,
    variable: &str,
    value: &Path,
) -> Result<Vec<(String, String, f64)>, Failure> {
    let mut call = Command::new(command);
    call.arg("bench").args(names).args(["--device", device, "--no-peers", "--in-process", "--json", "-"]);
    if quick {
        call.arg("--quick");
    }
    let output = call.env(variable, value).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::Outside(format!("{} cannot be run: {error}", command.display())))?;
    let complaint = || {
        let text = String::from_utf8_lossy(&output.stderr);
        Failure::Outside(format!("with {variable} set, it failed: {}", text.trim()))
    };
    if !output.status.success() {
        return Err(complaint());
    }
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| complaint())?;
    let row = |row: &Value| Some((row["name"].as_str()?.to_owned(), row["size"].as_str()?.to_owned(), row["ms"].as_f64()?));
    Ok(report["results"].as_array().into_iter().flatten().filter_map(row).collect())
}
