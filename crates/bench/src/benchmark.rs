//! Benchmarks of the groups `kernels`, `arrays`, `programs`, `effects`, `nesl` and `streams`: the same job
//! for Broadloom and a peer.

use crate::error::Failure;
use crate::job::{Job, Scale};
use crate::measure::{self, MeasurementEffort};
use crate::report::StraightTimes;
use broadloom::device::Device;
use std::time::Duration;

/// A benchmark that has a peer.
pub(crate) struct Benchmark {
    pub(crate) group: &'static str,
    /// Its name, also the name of its files.
    pub(crate) name: &'static str,
    /// The source text of the peer. Empty if there is none.
    pub(crate) peer: &'static str,
    /// Allowed difference of the peer's checksum, relative to ours.
    pub(crate) tolerance: f64,
    /// The size: number of elements, points of a side, rows or bodies.
    pub(crate) size: fn(Scale) -> usize,
    /// The size, as text.
    pub(crate) shown: fn(usize) -> String,
    /// The measured subject.
    pub(crate) subject: &'static dyn Subject,
}

/// Subject of a benchmark: a kernel, an expression of arrays, an effect, a function or a stream program.
pub(crate) trait Subject: Sync {
    /// Prepares a job of a size. A job of the tiny size does the one-time work first, and its time is the
    /// compile time.
    fn prepare(&self, setup: &Setup, tiny: usize, size: usize) -> Result<PreparedJob, Failure>;

    /// Measures the straight translation of a stream program.
    fn straight(&self, _setup: &Setup, _size: usize) -> Result<Option<StraightTimes>, Failure> {
        Ok(None)
    }
}

/// Device and options that all benchmarks of a run share.
pub(crate) struct Setup {
    /// The measured device.
    pub(crate) device: Device,
    /// The conditions that decide sizes.
    pub(crate) scale: Scale,
    /// Enables prefetch in stream programs. By default the cost model decides.
    pub(crate) prefetch: Option<bool>,
}

impl Setup {
    /// Returns the amount of measurement for each benchmark.
    pub(crate) fn effort(&self) -> MeasurementEffort {
        if self.scale.quick { MeasurementEffort::QUICK } else { MeasurementEffort::FULL }
    }

    /// Measures one repetition, until its results are available.
    pub(crate) fn repetition(&self, job: &Job) -> Result<Duration, Failure> {
        measure::repetition(&self.device, job)
    }

    /// Measures the one-time work in the first of two repetitions.
    pub(crate) fn first_overhead(&self, job: &Job) -> Result<Duration, Failure> {
        let first = self.repetition(job)?;
        Ok(first.saturating_sub(self.repetition(job)?))
    }

    /// Measures the milliseconds that a GPU works for a repetition.
    pub(crate) fn device_ms(&self, job: &Job) -> Result<Option<f64>, Failure> {
        let is_measured = self.scale.gpu && !self.scale.quick;
        Ok(if is_measured { measure::device_time(&self.device, job)?.map(|time| time.as_secs_f64() * 1e3) } else { None })
    }
}

/// Job that is ready on the device, with the figures of its preparation.
pub(crate) struct PreparedJob {
    pub(crate) job: Job,
    /// Number of launches in a repetition.
    pub(crate) launches: u64,
    /// Number of host waits for the device in a repetition, if they are counted.
    pub(crate) waits: Option<u64>,
    /// Milliseconds to make the kernels ready.
    pub(crate) compile_ms: f64,
    /// Milliseconds that the planner predicts for a repetition.
    pub(crate) predicted_ms: Option<f64>,
    /// Milliseconds of a repetition of the straight translation, for an effect.
    pub(crate) straight_ms: Option<f64>,
}

impl PreparedJob {
    /// Makes a prepared job without waits, prediction and straight translation.
    pub(crate) fn new(job: Job, launches: u64, compile: Duration) -> Self {
        let compile_ms = compile.as_secs_f64() * 1e3;
        PreparedJob { job, launches, waits: None, compile_ms, predicted_ms: None, straight_ms: None }
    }
}

/// Formats a size that is a number of elements.
pub(crate) fn count(n: usize) -> String {
    n.to_string()
}

/// Formats a size that is the side of a square.
pub(crate) fn square(n: usize) -> String {
    format!("{n}×{n}")
}
