//! Measured limits of the host: memory bandwidth, and operations per second in registers.

use crate::job::{Scale, Work};
use crate::peer::Compiler;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Number of tries, of which the best counts.
const TRIES: usize = 6;

/// The limits of the host. A limit that was not measured is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Bytes per second if memory is only read.
    pub read: Option<f64>,
    /// Bytes per second of a triad: two arrays read and one written.
    pub triad: Option<f64>,
    /// Operations per second on floats of 32 bits. A multiply-add counts as two.
    pub operations: Option<f64>,
}

impl Limits {
    /// Measures the limits. Operations need a C++ compiler, because this program is compiled for any CPU.
    pub(crate) fn measure(scale: Scale, compiler: Option<&Compiler>) -> Limits {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let count = scale.elements(12, 1 << 10, 1 << 10);
        let (mut a, b, c) = (vec![0.0f32; count], vec![1.0f32; count], vec![2.0f32; count]);
        let part = count.div_ceil(threads);
        let triad = best(|| {
            thread::scope(|scope| {
                for ((a, b), c) in a.chunks_mut(part).zip(b.chunks(part)).zip(c.chunks(part)) {
                    scope.spawn(move || a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = *b + 3.0 * *c));
                }
            });
        });
        let read = best(|| {
            thread::scope(|scope| {
                for part in a.chunks(part).chain(b.chunks(part)).chain(c.chunks(part)) {
                    scope.spawn(move || black_box(sum(part)));
                }
            });
        });
        let bytes = 12.0 * count as f64;
        let operations = compiler.and_then(operations);
        Limits { read: Some(bytes / read.as_secs_f64()), triad: Some(bytes / triad.as_secs_f64()), operations }
    }

    /// Returns the minimum time for the work. Returns `None` if the decisive limit is not known.
    pub(crate) fn least_seconds(&self, work: &Work) -> Option<f64> {
        let bandwidth = if work.reads_only { self.read } else { self.triad };
        let moved = if work.in_memory { work.bytes / bandwidth? } else { 0.0 };
        let computed = if work.operations > 0.0 { self.operations.map(|limit| work.operations / limit) } else { Some(0.0) };
        let least = match computed {
            Some(computed) => moved.max(computed),
            None if work.in_memory => moved,
            None => return None,
        };
        (least > 0.0).then_some(least)
    }
}

/// Returns a sum in a form that the compiler can vectorise.
fn sum(values: &[f32]) -> u32 {
    values.iter().fold(0u32, |sum, value| sum.wrapping_add(value.to_bits()))
}

fn best(mut run: impl FnMut()) -> Duration {
    let tries = (0..TRIES).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    tries.min().unwrap_or_default().max(Duration::from_nanos(1))
}

fn operations(compiler: &Compiler) -> Option<f64> {
    let mut peer = compiler.start("limits", include_str!("../peers/limits.cpp"), 0).ok()?;
    let threads = peer.checksum().ok()?;
    let times: Option<Vec<Duration>> = (0..4 * TRIES).map(|_| peer.run(1).ok()).collect();
    let fastest = times?.into_iter().min()?;
    Some(threads * 384e6 / fastest.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_limit_counts() {
        let limits = Limits { read: Some(20e9), triad: Some(10e9), operations: Some(100e9) };
        assert_eq!(limits.least_seconds(&Work::memory(10_000_000_000, 1)), Some(1.0));
        assert_eq!(limits.least_seconds(&Work::reading(10_000_000_000, 1)), Some(0.5));
        assert_eq!(limits.least_seconds(&Work::arithmetic(1, 200e9)), Some(2.0));
        assert_eq!(Limits::default().least_seconds(&Work::arithmetic(1, 200e9)), None);
        assert_eq!(Limits::default().least_seconds(&Work::memory(1, 1)), None);
    }
}
