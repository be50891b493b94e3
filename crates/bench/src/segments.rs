//! The group `segments`: sums and prefix sums within segments, beside those of the whole line.
//!
//! The line is the same for every row; the segments are tiny, of a thousand elements, or one that has all elements beside
//! ten thousand without any. The column of the peer is the time of the whole line without segments, so that the ratio is
//! the cost of segments. Runs of both alternate, and the fastest of each counts. Rows `anew` make a descriptor from
//! lengths in every run, with what the operation needs of it.

use crate::error::Failure;
use crate::inputs::hashed;
use crate::job::equal;
use crate::report::Row;
use broadloom::device::Device;
use broadloom::{Array, Context, Segments};
use std::time::{Duration, Instant};

pub(crate) const GROUP: &str = "segments";
pub(crate) const NAME: &str = "ragged";

/// Elements of the line.
const COUNT: usize = 10_000_000;
/// Elements of the line of a quick run.
const QUICK: usize = 5000;
/// Runs of which the fastest counts.
const RUNS: usize = 15;

/// The result of a program.
type Made = Result<Array<u32>, Failure>;

/// A computation that is measured.
type Act<'a> = &'a dyn Fn() -> Made;

/// A way to cut a line: its name, and the lengths of the segments of so many elements.
struct Cut {
    name: &'static str,
    lengths: fn(usize) -> Vec<u32>,
}

const CUTS: [Cut; 3] = [
    Cut { name: "0 to 8", lengths: tiny },
    Cut { name: "1000", lengths: |n| vec![1000; n / 1000] },
    Cut { name: "1 and 10000 empty", lengths: giant },
];

/// Lengths from 0 to 8.
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

/// Ten thousand segments without elements, half of them before one that has all.
fn giant(n: usize) -> Vec<u32> {
    let mut lengths = vec![0; 10_001];
    lengths[5000] = n as u32;
    lengths
}

/// Times of two programs by turns: the fastest run of each.
fn fastest(device: &Device, runs: usize, programs: [Act<'_>; 2]) -> Result<[(Duration, Array<u32>); 2], Failure> {
    let run = |program: &dyn Fn() -> Made| -> Result<(Duration, Array<u32>), Failure> {
        let start = Instant::now();
        let result = program()?;
        result.evaluate()?;
        device.synchronise()?;
        Ok((start.elapsed(), result))
    };
    let [flat, cut] = programs;
    // Plans are made and code is compiled first.
    let mut best = [run(flat)?, run(cut)?];
    best[0].0 = Duration::MAX;
    best[1].0 = Duration::MAX;
    for _ in 0..runs {
        for (best, program) in best.iter_mut().zip(programs) {
            best.0 = best.0.min(run(program)?.0);
        }
    }
    Ok(best)
}

/// Measures all cuts.
pub(crate) fn run(device: &Device, quick: bool) -> Result<Vec<Row>, Failure> {
    let (n, runs) = if quick { (QUICK, 1) } else { (COUNT, RUNS) };
    let context = Context::new(device);
    let values: Vec<u32> = (0..n as u32).map(|i| hashed(i, 1) >> 24).collect();
    let x = Array::line(&context, &values)?;
    let mut rows = vec![];
    for cut in &CUTS {
        let lengths = (cut.lengths)(n);
        let offsets: Vec<usize> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, length| {
                *end += *length as usize;
                Some(*end)
            }))
            .collect();
        let on_device = Array::line(&context, &lengths)?;
        let made = || Segments::from_lengths(&on_device, n);
        let segments = made()?;
        let flat_sum = || -> Made { Ok(x.sum()) };
        let flat_scan = || -> Made { Ok(x.cumulative_sum(0)?) };
        let sum = || -> Made { Ok(x.segmented_sum(&segments)?) };
        let scan = || -> Made { Ok(x.segmented_cumulative_sum(&segments)?) };
        let sum_anew = || -> Made { Ok(x.segmented_sum(&made()?)?) };
        let scan_anew = || -> Made { Ok(x.segmented_cumulative_sum(&made()?)?) };
        let programs: [(&str, [Act<'_>; 2]); 4] = [
            ("sum", [&flat_sum, &sum]),
            ("scan", [&flat_scan, &scan]),
            ("sum_anew", [&flat_sum, &sum_anew]),
            ("scan_anew", [&flat_scan, &scan_anew]),
        ];
        for (name, programs) in programs {
            let [(flat, _), (time, result)] = fastest(device, runs, programs)?;
            let found = result.to_vec()?;
            let part = |segment: usize| &values[offsets[segment]..offsets[segment + 1]];
            if name.starts_with("sum") {
                equal(&found, |segment| part(segment).iter().sum())?;
            } else {
                let mut sums = vec![];
                for segment in 0..lengths.len() {
                    sums.extend(part(segment).iter().scan(0u32, |sum, value| {
                        *sum += value;
                        Some(*sum)
                    }));
                }
                equal(&found, |place| sums[place])?;
            }
            let (size, device) = (cut.name.to_owned(), device.machine().id.clone());
            rows.push(Row {
                peer: Some("without segments".to_owned()),
                peer_ms: Some(flat.as_secs_f64() * 1e3),
                ..Row::timed(GROUP, name, size, device, time)
            });
        }
    }
    Ok(rows)
}
