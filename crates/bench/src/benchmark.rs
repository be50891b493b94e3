//! Benchmarks of the groups `kernels`, `arrays`, `effects`, `nesl` and `streams`: the same job for Broadloom
//! and a peer.

use crate::effects::Effect;
use crate::error::Failure;
use crate::job::{Job, Scale};
use crate::nesl::{self, Contest};
use crate::streams::Task;
use broadloom::Context;
use broadloom::device::{Module, Result};

/// A benchmark that has a peer.
pub(crate) struct Benchmark {
    /// Its name, also the name of its files.
    pub(crate) name: &'static str,
    /// The source text of the peer.
    pub(crate) peer: &'static str,
    /// Allowed difference of the peer's checksum, relative to ours.
    pub(crate) tolerance: f64,
    /// The size: number of elements, points of a side, rows or bodies.
    pub(crate) size: fn(Scale) -> usize,
    /// The size, as text.
    pub(crate) shown: fn(usize) -> String,
    /// The measured subject.
    pub(crate) subject: Subject,
}

/// The measured subject, and the function that prepares its inputs.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    /// A kernel and its launches.
    Kernel {
        /// Its text.
        ptx: &'static str,
        /// Prepares inputs and launches.
        ready: fn(&Module, usize) -> Result<Job>,
    },
    /// A function of a NESL program, with arguments of a given size.
    Nesl(fn(usize) -> Contest),
    /// A stream program.
    Stream(fn(usize) -> Task),
    /// An expression of arrays.
    Arrays(fn(&Context, usize) -> std::result::Result<Job, Failure>),
    /// An image effect.
    Effect(&'static Effect),
}

impl Benchmark {
    /// Returns the group of the benchmark.
    pub(crate) fn group(&self) -> &'static str {
        match self.subject {
            Subject::Kernel { .. } => "kernels",
            Subject::Arrays(_) => "arrays",
            Subject::Effect(_) => "effects",
            Subject::Nesl(_) => nesl::GROUP,
            Subject::Stream(_) => "streams",
        }
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
