//! Programs with elementwise computations or histograms.

use super::task::{Task, floats, program};
use crate::inputs::{between, hashed, unit, weighed};
use crate::job::{Work, close, equal};
use crate::kernels::option;
use broadloom::stream::compiled::Precision;

pub(super) fn vector_add(n: usize) -> Task {
    Task {
        text: program!("vector_add"),
        stream: "VectorAdd".into(),
        states: n as u64,
        input: |word| unit(word / 2, 1 + word % 2).to_bits(),
        precision: Precision::Fast,
        work: Work::memory(12 * n, n),
        judge: Box::new(|words| {
            let got = floats(words);
            close(&got, |i| f64::from(unit(i as u32, 1) + unit(i as u32, 2)), 0.0, 0.0)?;
            Ok(weighed(got.iter().map(|&x| f64::from(x)), 0).into())
        }),
    }
}

/// Makes the task with accurate functions and divisions.
pub(super) fn black_scholes(n: usize) -> Task {
    options(n, Precision::Accurate)
}

/// Makes the task with hardware functions and divisions, within the bounds of the accurate ones.
pub(super) fn black_scholes_fast(n: usize) -> Task {
    options(n, Precision::Fast)
}

fn options(n: usize, precision: Precision) -> Task {
    Task {
        text: program!("black_scholes"),
        stream: "BlackScholes(0.02, 0.30)".into(),
        states: n as u64,
        input: |word| {
            let (from, to) = [(5.0, 30.0), (1.0, 100.0), (0.25, 10.0)][word as usize % 3];
            between(word / 3, 1 + word % 3, from, to).to_bits()
        },
        precision,
        work: Work { in_memory: false, ..Work::memory(20 * n, 57 * n) },
        judge: Box::new(move |words| {
            let got = floats(words);
            let want = |i: usize| if i.is_multiple_of(2) { option(i as u32 / 2).0 } else { option(i as u32 / 2).1 };
            close(&got, want, 1e-4, 1e-4)?;
            let sum = |parity: usize, first| weighed(got.iter().skip(parity).step_by(2).map(|&x| f64::from(x)), first);
            Ok((sum(0, 0) + sum(1, n)).into())
        }),
    }
}

/// Number of words whose bytes one firing counts.
const BLOCK: usize = 2500;

/// Makes the task for `n` bytes. They are those of the peer, four in a word.
pub(super) fn histogram(n: usize) -> Task {
    let blocks = (n / 4 / BLOCK).max(1);
    let byte = |i: u32| (hashed(i, 1) >> 24) as u8;
    Task {
        text: program!("histogram"),
        stream: format!("Histogram({blocks}, {BLOCK})"),
        states: 1,
        input: |word| u32::from_le_bytes([0, 1, 2, 3].map(|k| (hashed(4 * word + k, 1) >> 24) as u8)),
        precision: Precision::Fast,
        work: Work::reading(n, 0),
        judge: Box::new(move |words| {
            let mut want = [0u32; 256];
            (0..(4 * blocks * BLOCK) as u32).for_each(|i| want[usize::from(byte(i))] += 1);
            equal(words, |i| want[i])?;
            Ok(weighed(words.iter().map(|&count| f64::from(count)), 0).into())
        }),
    }
}
