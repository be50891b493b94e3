//! The group `segments`: sums, prefix sums, packs, sorts and distributed values within segments, compared
//! with the whole line.
//!
//! The line is the same for every row. The segments are tiny, of a thousand elements, or a single one with
//! all elements beside ten thousand empty ones. The peer column is the time of the whole line without
//! segments, so that the ratio is the cost of segments. Runs of both alternate, and the fastest of each
//! counts. Rows `anew` make a segment descriptor from lengths in every run, with everything that the
//! operation needs of it.

use crate::error::Failure;
use crate::group;
use crate::inputs::hashed;
use crate::job::equal;
use crate::report::Row;
use broadloom::device::Device;
use broadloom::{Array, Context, Segments};
use std::time::{Duration, Instant};

pub(crate) const NAME: &str = "ragged";

/// Number of elements in the line.
const COUNT: usize = 10_000_000;
/// Number of elements in the line of a quick run.
const QUICK: usize = 5000;
/// Number of runs, of which the fastest counts.
const RUNS: usize = 15;

/// Result of a program.
type ArrayResult = Result<Array<u32>, Failure>;

/// Measured computation.
type Program<'a> = &'a dyn Fn() -> ArrayResult;

/// The expected elements of a program.
type Reference<'a> = &'a dyn Fn() -> Vec<u32>;

/// A division of the line: its name, and a function for the lengths of the segments of a line.
struct Division {
    name: &'static str,
    lengths: fn(usize) -> Vec<u32>,
}

const DIVISIONS: [Division; 3] = [
    Division { name: "0 to 8", lengths: tiny },
    Division { name: "1000", lengths: |n| vec![1000; n / 1000] },
    Division { name: "1 and 10000 empty", lengths: giant },
];

/// Returns lengths from 0 to 8.
fn tiny(n: usize) -> Vec<u32> {
    let mut left = n as u32;
    let mut lengths = vec![];
    for number in 0.. {
        let length = (hashed(number, 3) % 9).min(left);
        left -= length;
        lengths.push(length);
        if left == 0 {
            break;
        }
    }
    lengths
}

/// Returns ten thousand empty segments, half of them before one with all elements.
fn giant(n: usize) -> Vec<u32> {
    let mut lengths = vec![0; 10_001];
    lengths[5000] = n as u32;
    lengths
}

/// Measures two programs by turns. Returns the fastest run of each.
fn fastest(device: &Device, runs: usize, programs: [Program<'_>; 2]) -> Result<[(Duration, Array<u32>); 2], Failure> {
    let run = |program: &dyn Fn() -> ArrayResult| -> Result<(Duration, Array<u32>), Failure> {
        let start = Instant::now();
        let result = program()?;
        result.evaluate()?;
        device.synchronise()?;
        Ok((start.elapsed(), result))
    };
    let [flat, segmented] = programs;
    // Plans are made and code is compiled first.
    let mut best = [run(flat)?, run(segmented)?];
    best[0].0 = Duration::MAX;
    best[1].0 = Duration::MAX;
    for _ in 0..runs {
        for (best, program) in best.iter_mut().zip(programs) {
            best.0 = best.0.min(run(program)?.0);
        }
    }
    Ok(best)
}

/// Measures all operations for each division of the line.
pub(crate) fn run(device: &Device, quick: bool) -> Result<Vec<Row>, Failure> {
    let (n, runs) = if quick { (QUICK, 1) } else { (COUNT, RUNS) };
    let context = Context::new(device);
    let values: Vec<u32> = (0..n as u32).map(|i| hashed(i, 1) >> 24).collect();
    let x = Array::line(&context, &values)?;
    let chosen = Array::line(&context, &values.iter().map(|value| value % 2 == 1).collect::<Vec<bool>>())?;
    let mut rows = vec![];
    for division in &DIVISIONS {
        let lengths = (division.lengths)(n);
        let offsets: Vec<usize> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, length| {
                *end += *length as usize;
                Some(*end)
            }))
            .collect();
        let on_device = Array::line(&context, &lengths)?;
        let new_segments = || Segments::from_lengths(&on_device, n);
        let segments = new_segments()?;
        let longest = lengths.iter().max().map_or(0, |longest| *longest as usize);
        let part = |segment: usize| &values[offsets[segment]..offsets[segment + 1]];
        let each =
            |of: &dyn Fn(&[u32]) -> Vec<u32>| -> Vec<u32> { (0..lengths.len()).flat_map(|segment| of(part(segment))).collect() };
        let sums = || each(&|part| vec![part.iter().sum()]);
        let prefixes = || {
            each(&|part| {
                let add = |sum: &mut u32, value: &u32| {
                    *sum += value;
                    Some(*sum)
                };
                part.iter().scan(0, add).collect()
            })
        };
        let lengths_of_elements = || each(&|part| vec![part.len() as u32; part.len()]);
        let odd = || each(&|part| part.iter().copied().filter(|value| value % 2 == 1).collect());
        let sorted = || {
            each(&|part| {
                let mut part = part.to_vec();
                part.sort_unstable();
                part
            })
        };
        let flat_sum = || -> ArrayResult { Ok(x.sum()) };
        let flat_scan = || -> ArrayResult { Ok(x.cumulative_sum(0)?) };
        let flat_copy = || -> ArrayResult { Ok(&x + 1u32) };
        let flat_pack = || -> ArrayResult { Ok(x.pack(&chosen)?) };
        let flat_sort = || -> ArrayResult { Ok(x.sort(0)?) };
        let sum = || -> ArrayResult { Ok(x.segmented_sum(&segments)?) };
        let scan = || -> ArrayResult { Ok(x.segmented_cumulative_sum(&segments)?) };
        let distribute = || -> ArrayResult { Ok(on_device.distributed(&segments)?) };
        let pack = || -> ArrayResult {
            let (kept, left) = x.segmented_filter(&segments, &chosen)?;
            left.lengths()?.evaluate()?;
            Ok(kept)
        };
        let sort = || -> ArrayResult { Ok(x.segmented_sort(&segments.clone().no_longer_than(longest))?) };
        let sum_anew = || -> ArrayResult { Ok(x.segmented_sum(&new_segments()?)?) };
        let scan_anew = || -> ArrayResult { Ok(x.segmented_cumulative_sum(&new_segments()?)?) };
        let distribute_anew = || -> ArrayResult { Ok(on_device.distributed(&new_segments()?)?) };
        let programs: [(&str, [Program<'_>; 2], Reference<'_>); 8] = [
            ("sum", [&flat_sum, &sum], &sums),
            ("scan", [&flat_scan, &scan], &prefixes),
            ("distribute", [&flat_copy, &distribute], &lengths_of_elements),
            ("pack", [&flat_pack, &pack], &odd),
            ("sort", [&flat_sort, &sort], &sorted),
            ("sum_anew", [&flat_sum, &sum_anew], &sums),
            ("scan_anew", [&flat_scan, &scan_anew], &prefixes),
            ("distribute_anew", [&flat_copy, &distribute_anew], &lengths_of_elements),
        ];
        for (name, programs, wanted) in programs {
            let runs = if name == "sort" { runs.div_ceil(5) } else { runs };
            let [(flat, _), (time, result)] = fastest(device, runs, programs)?;
            let (found, wanted) = (result.to_vec()?, wanted());
            if found.len() != wanted.len() {
                return Err(Failure::Wrong(format!("{} elements, the reference has {}", found.len(), wanted.len())));
            }
            equal(&found, |place| wanted[place])?;
            let (size, device) = (division.name.to_owned(), device.machine().id.clone());
            rows.push(Row {
                peer: Some("without segments".to_owned()),
                peer_ms: Some(flat.as_secs_f64() * 1e3),
                ..Row::timed(group::SEGMENTS, name, size, device, time)
            });
        }
    }
    Ok(rows)
}
