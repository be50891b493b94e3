//! The group `nesl_programs`: `problem(n)` of every program of `examples/nesl`.

use super::CompiledFunction;
use crate::error::Failure;
use crate::group;
use crate::measure::median;
use crate::report::Row;
use broadloom::device::Device;
use broadloom::nesl::Column;
use std::time::{Duration, Instant};

/// Number of repetitions for the median, and the time after which no further one begins.
const REPETITIONS: usize = 3;
const ENOUGH: Duration = Duration::from_secs(10);

/// A program and its problem size.
pub(crate) struct Example {
    /// The name of its file.
    pub(crate) name: &'static str,
    text: &'static str,
    size: i64,
    quick: i64,
}

macro_rules! examples {
    ($($name:literal $size:literal $quick:literal)*) => {
        &[$(Example {
            name: $name,
            text: include_str!(concat!("../../../../examples/nesl/", $name, ".nesl")),
            size: $size,
            quick: $quick,
        }),*]
    };
}

/// All programs.
pub(crate) const PROGRAMS: &[Example] = examples![
    "dot_product" 10_000_000 100
    "quicksort" 1_000_000 50
    "black_scholes" 10_000_000 50
    "convex_hull" 5_000_000 50
    "barnes_hut" 75_000 20
    "sparse_product" 600_000 30
    "string_search" 1_000_000 60
    "connected_components" 200_000 40
    "delaunay" 1_000 8
    "fft" 18 4
    "primes" 1_000_000 100
    "adaptive_integration" 10_000 2
    "conjugate_gradient" 20_000 20
    "sample_sort" 500_000 40
    "radix_sort" 1_000_000 40
    "remove_duplicates" 500_000 40
    "histogram" 1_000_000 60
    "breadth_first_search" 100_000 20
    "independent_set" 100_000 20
    "matching" 100_000 20
    "spanning_forest" 100_000 20
    "nearest_neighbours" 100_000 20
    "suffix_array" 100_000 30
    "word_counts" 100_000 20
    "inverted_index" 20_000 8
];

/// Measures a program. Its result must confirm that it is correct.
pub(crate) fn run(example: &Example, device: &Device, quick: bool) -> Result<Row, Failure> {
    let size = if quick { example.quick } else { example.size };
    let start = Instant::now();
    let mut function = CompiledFunction::new(device, example.text, "problem", None)?;
    let mut compile = start.elapsed();
    let mut problem = |size: i64| -> Result<Duration, Failure> {
        let start = Instant::now();
        let results = function.call(&[Column::Ints(vec![size])])?;
        let time = start.elapsed();
        for column in &results {
            let flags = match column {
                Column::Bools(flags) => flags.clone(),
                Column::Device(node) if node.ty().to_string() == "bool" => {
                    super::numbers(column)?.iter().map(|flag| *flag != 0.0).collect()
                }
                Column::Ints(_) | Column::Floats(_) | Column::Device(_) => continue,
            };
            if flags.contains(&false) {
                return Err(Failure::Wrong(format!("`problem({size})` finds that its result is wrong")));
            }
        }
        Ok(time)
    };
    // Later calls reuse the plans and kernels of the first call.
    let first = problem(size)?;
    let mut times = vec![];
    while !quick && times.len() < REPETITIONS && (times.is_empty() || times.iter().sum::<Duration>() < ENOUGH) {
        times.push(problem(size)?);
    }
    if times.is_empty() {
        times.push(first);
    }
    let time = median(times).unwrap_or(first);
    compile += first.saturating_sub(time);
    let before = function.statistics();
    function.call(&[Column::Ints(vec![size])])?;
    let after = function.statistics();
    Ok(Row {
        launches: after.launches - before.launches,
        waits: Some(after.waits - before.waits),
        compile_ms: Some(compile.as_secs_f64() * 1e3),
        ..Row::timed(group::NESL_PROGRAMS, example.name, format!("n = {size}"), device.machine().id.clone(), time)
    })
}
