//! Signal processing: every output depends on a window of the input.

use super::task::{Task, floats, program};
use crate::inputs::{unit, weighed};
use crate::job::{Verdict, Work, close_at};
use broadloom::stream::compiled::Precision;
use std::f64::consts::PI;

/// Returns a sample of the input.
fn sample(index: usize) -> f64 {
    f64::from(unit(index as u32, 1) - 0.5)
}

fn task(text: &'static str, stream: &str, states: usize, work: Work, want: impl Fn(usize) -> f64 + 'static) -> Task {
    Task {
        text,
        stream: stream.to_owned(),
        states: states as u64,
        input: |word| (unit(word, 1) - 0.5).to_bits(),
        precision: Precision::Fast,
        work,
        judge: Box::new(move |words| {
            let got = floats(words);
            let places = (0..got.len()).step_by((got.len() / 200).max(1));
            close_at(&got, places, &want, 1e-4, 1e-4)?;
            Ok(Verdict::from(weighed(got.iter().map(|&value| f64::from(value)), 0)))
        }),
    }
}

/// Returns the weights of a low pass by a windowed sinc. The middle need not be a whole number.
fn low_pass(rate: f64, cutoff: f64, taps: usize, middle: f64) -> Vec<f64> {
    let w = 2.0 * PI * cutoff / rate;
    let weight = |i: usize| {
        let x = i as f64 - middle;
        let sinc = if x == 0.0 { w / PI } else { (w * x).sin() / (PI * x) };
        sinc * (0.54 - 0.46 * (2.0 * PI * i as f64 / (taps - 1) as f64).cos())
    };
    (0..taps).map(weight).collect()
}

fn filtered(weights: &[f64], signal: impl Fn(usize) -> f64) -> f64 {
    weights.iter().enumerate().map(|(i, weight)| weight * signal(i)).sum()
}

fn convolution(n: usize, taps: usize) -> Task {
    let weights = low_pass(8000.0, 1000.0, taps, (taps - 1) as f64 / 2.0);
    let want = move |place: usize| filtered(&weights, |i| sample(place + i));
    task(program!("low_pass"), &format!("Fir(8000, 1000, {taps})"), n, Work::memory(8 * n, 2 * taps * n), want)
}

pub(super) fn fir(n: usize) -> Task {
    convolution(n, 64)
}

/// Makes a convolution with many taps, where transforms take less time than products.
pub(super) fn long_fir(n: usize) -> Task {
    convolution(n, 512)
}

/// Makes the task for `n` output samples. The input has four times as many.
pub(super) fn fm_radio(n: usize) -> Task {
    let (rate, bands, taps) = (250_000.0, 10, 64);
    let front = low_pass(rate, 60_000.0, taps, 32.0);
    let band = |b: i32| low_pass(rate / 4.0, 55.0 * 1.6f64.powi(b), taps, 32.0);
    let limits: Vec<Vec<f64>> = (0..=bands).map(band).collect();
    let want = move |place: usize| {
        let decimated = |i: usize| filtered(&front, |k| sample(4 * i + k));
        let signal: Vec<f64> = (0..=taps).map(|i| decimated(place + i)).collect();
        let demodulated = |i: usize| rate / 4.0 / (7500.0 * PI) * (signal[i] * signal[i + 1]).atan();
        let passed: Vec<f64> = limits.iter().map(|weights| filtered(weights, demodulated)).collect();
        (0..bands as usize).map(|b| (b + 1) as f64 * (passed[b + 1] - passed[b])).sum()
    };
    let operations = n * (2 * taps + 4 * taps * bands as usize);
    task(program!("fm_radio"), "Receiver(250000, 10, 64)", n, Work::memory(20 * n, operations), want)
}

pub(super) fn filter_bank(n: usize) -> Task {
    let (bands, taps) = (8, 32);
    let weights = move |b: usize| -> Vec<f64> {
        let weight = |i: usize| {
            let x = PI * (i as f64 - (taps - 1) as f64 / 2.0) / bands as f64;
            let low = if x == 0.0 { 1.0 } else { (x / 2.0).sin() / (x / 2.0) };
            let window = 0.54 - 0.46 * (2.0 * PI * i as f64 / (taps - 1) as f64).cos();
            window * low * (x * (b as f64 + 0.5)).cos() / bands as f64
        };
        (0..taps).map(weight).collect()
    };
    let all: Vec<Vec<f64>> = (0..bands).map(weights).collect();
    let want = move |place: usize| {
        let of_band = |b: usize| -> f64 {
            let weights: &Vec<f64> = &all[b];
            let kept = |at: usize| filtered(weights, |k| sample(at + k)) * (1.0 + 0.25 * b as f64) * bands as f64;
            // The initial schedule makes the first output of the stream, so the index is one further.
            let at = |i: usize| place + i + 1;
            filtered(weights, |i| if at(i).is_multiple_of(bands) { kept(at(i)) } else { 0.0 })
        };
        (0..bands).map(of_band).sum()
    };
    let states = n / bands;
    // Both filters of each band. The second one uses a sample at every eighth tap.
    task(program!("filter_bank"), "FilterBank(8, 32)", states, Work::memory(8 * n, 4 * taps * n), want)
}

/// Makes the task for `n` output samples. Voice and carrier both have `n` samples.
pub(super) fn vocoder(n: usize) -> Task {
    let (rate, bands, taps, smooth, step) = (8000.0, 8, 32, 64, 16);
    let weights = move |b: usize| -> Vec<f64> {
        let middle = rate / 4.0 * (b as f64 + 0.5) / bands as f64;
        let turn = |x: f64| (2.0 * PI * x).cos();
        let weight = |i: usize| {
            let window = 1.0 - turn((i + 1) as f64 / (taps + 1) as f64);
            window * turn(middle * (i as f64 - taps as f64 / 2.0) / rate) / taps as f64
        };
        (0..taps).map(weight).collect()
    };
    let all: Vec<Vec<f64>> = (0..bands).map(weights).collect();
    let want = move |place: usize| {
        let of_band = |weights: &Vec<f64>| {
            let voice = |at: usize| filtered(weights, |k| sample(2 * (at + k)));
            let loudness = |group: usize| (0..smooth).map(|i| voice(group * step + i).abs()).sum::<f64>() / smooth as f64;
            let carrier = filtered(weights, |k| sample(2 * (place + k) + 1));
            let (now, next) = (loudness(place / step), loudness(place / step + 1));
            carrier * (now + (next - now) * (place % step) as f64 / step as f64)
        };
        all.iter().map(of_band).sum()
    };
    let operations = n * bands * (4 * taps + 2 * smooth / step + 4);
    task(program!("vocoder"), "Vocoder(8000, 8, 32, 64, 16)", n / step, Work::memory(12 * n, operations), want)
}

/// Makes the task for `n` samples of each antenna.
pub(super) fn beamformer(n: usize) -> Task {
    let (antennas, beams, taps, decimation) = (12, 4, 64, 2);
    let window = |i: usize| (1.0 - (2.0 * PI * (i + 1) as f64 / (taps + 1) as f64).cos()) / (taps + 1) as f64;
    let weights: Vec<f64> = (0..taps).map(window).collect();
    let want = move |word: usize| {
        let (place, beam, imaginary) = (word / 2 / beams, word / 2 % beams, word % 2 == 1);
        let of_antenna = |a: usize| {
            let part = |part: usize| {
                filtered(&weights, |k| sample(2 * ((place * decimation + k) * antennas + a) + part)) / antennas as f64
            };
            let angle = PI * a as f64 * (2.0 * beam as f64 + 1.0 - beams as f64) / beams as f64;
            let (sin, cos) = (-angle).sin_cos();
            let (re, im) = (part(0), part(1));
            if imaginary { re * sin + im * cos } else { re * cos - im * sin }
        };
        (0..antennas).map(of_antenna).sum()
    };
    let (outputs, operations) = (n / decimation, 4 * taps * antennas + 8 * antennas * beams);
    let work = Work::memory(8 * (antennas * n + beams * outputs), operations * outputs);
    task(program!("beamformer"), "Beamformer(12, 4, 64, 2)", outputs, work, want)
}
