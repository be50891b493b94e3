//! Transforms and products of matrices.

use super::task::{Task, floats, program};
use crate::inputs::{unit, weighed};
use crate::job::{Work, close_at};
use broadloom::stream::compiled::Precision;
use std::f64::consts::PI;

/// Returns the outputs that are compared with the reference, spread over all of them.
fn some(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by((count / 500).max(1)).map(move |place| (place + place / 1000 % 97).min(count - 1))
}

fn centred(index: u32) -> f32 {
    unit(index, 1) - 0.5
}

/// Makes the task for an image, row by row.
pub(super) fn dct(side: usize) -> Task {
    Task {
        text: program!("dct"),
        stream: format!("ImageDct({side})"),
        states: (side / 8) as u64,
        input: |word| centred(word).to_bits(),
        precision: Precision::Fast,
        work: Work::memory(8 * side * side, 32 * side * side),
        judge: Box::new(move |words| {
            let got = floats(words);
            let weight = |k: usize, i: usize| {
                (if k == 0 { 0.125f64.sqrt() } else { 0.5 }) * (PI * (2 * i + 1) as f64 * k as f64 / 16.0).cos()
            };
            let want = |place: usize| {
                let (y, x) = (place / side, place % side);
                let mut sum = 0.0;
                for (i, j) in (0..64).map(|k| (k / 8, k % 8)) {
                    let at = (y / 8 * 8 + i) * side + x / 8 * 8 + j;
                    sum += weight(y % 8, i) * weight(x % 8, j) * f64::from(centred(at as u32));
                }
                sum
            };
            close_at(&got, some(got.len()), want, 1e-5, 1e-5)?;
            Ok(weighed(got.iter().map(|&value| f64::from(value)), 0).into())
        }),
    }
}

/// Number of points of a transform.
const POINTS: usize = 1024;

pub(super) fn fft(points: usize) -> Task {
    let transforms = (points / POINTS).max(1);
    Task {
        text: program!("fft"),
        stream: format!("Fft({POINTS})"),
        states: transforms as u64,
        input: |word| centred(word).to_bits(),
        precision: Precision::Fast,
        work: Work::memory(16 * transforms * POINTS, 50 * transforms * POINTS),
        judge: Box::new(move |words| {
            let got = floats(words);
            let want = |place: usize| {
                let (first, k, imaginary) = (place / (2 * POINTS) * POINTS, place / 2 % POINTS, place % 2 == 1);
                let mut sum = 0.0;
                for i in 0..POINTS {
                    let at = 2 * (first + i) as u32;
                    let (re, im) = (f64::from(centred(at)), f64::from(centred(at + 1)));
                    let (sin, cos) = (-2.0 * PI * (i * k % POINTS) as f64 / POINTS as f64).sin_cos();
                    sum += if imaginary { re * sin + im * cos } else { re * cos - im * sin };
                }
                sum
            };
            close_at(&got, some(got.len()), want, 1e-5, 1e-4)?;
            Ok(weighed(got.iter().map(|&value| f64::from(value)), 0).into())
        }),
    }
}

/// Number of rows of the multiplied matrices.
pub(super) const SIDE: usize = 32;

fn product(text: &'static str, stream: String, pairs: usize) -> Task {
    Task {
        text,
        stream,
        states: pairs as u64,
        input: |word| centred(word).to_bits(),
        precision: Precision::Fast,
        work: Work::memory(12 * pairs * SIDE * SIDE, 2 * pairs * SIDE * SIDE * SIDE),
        judge: Box::new(move |words| {
            let got = floats(words);
            let want = |place: usize| {
                let (pair, i, j) = (place / (SIDE * SIDE), place / SIDE % SIDE, place % SIDE);
                let at = |matrix: usize, row: usize, column: usize| {
                    f64::from(centred(((2 * pair + matrix) * SIDE * SIDE + row * SIDE + column) as u32))
                };
                (0..SIDE).map(|k| at(0, i, k) * at(1, k, j)).sum()
            };
            close_at(&got, some(got.len()), want, 1e-5, 1e-5)?;
            Ok(weighed(got.iter().map(|&value| f64::from(value)), 0).into())
        }),
    }
}

pub(super) fn matrix_multiply(pairs: usize) -> Task {
    product(program!("matrix_multiply"), format!("MatrixMultiply({SIDE})"), pairs)
}

pub(super) fn blocked_matrix_multiply(pairs: usize) -> Task {
    product(program!("blocked_matrix_multiply"), format!("BlockedMatrixMultiply({SIDE}, 8)"), pairs)
}
