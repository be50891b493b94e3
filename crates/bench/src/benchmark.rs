//! Benchmarks of the groups `kernels`, `arrays`, `effects`, `nesl` and `streams`: the same job for us and for a peer.

use crate::effects::Effect;
use crate::error::Failure;
use crate::job::{Job, Scale};
use crate::nesl::{self, Contest};
use crate::streams::Task;
use broadloom::Context;
use broadloom::device::{Module, Result};

/// A benchmark that has a peer.
pub(crate) struct Benchmark {
    /// Its name, and that of its files.
    pub(crate) name: &'static str,
    /// The peer.
    pub(crate) peer: &'static str,
    /// How far the peer's checksum may be from ours, relative to it.
    pub(crate) tolerance: f64,
    /// How many elements, points of a side, rows or bodies.
    pub(crate) size: fn(Scale) -> usize,
    /// The size, for people.
    pub(crate) shown: fn(usize) -> String,
    /// What is measured.
    pub(crate) subject: Subject,
}

/// What is measured, and what makes its inputs ready.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    /// A kernel, and its launches.
    Kernel {
        /// Its text.
        ptx: &'static str,
        /// Makes inputs and launches ready.
        ready: fn(&Module, usize) -> Result<Job>,
    },
    /// A function of a NESL program, with arguments of a size.
    Nesl(fn(usize) -> Contest),
    /// A stream program.
    Stream(fn(usize) -> Task),
    /// An expression of arrays.
    Arrays(fn(&Context, usize) -> std::result::Result<Job, Failure>),
    /// An image effect.
    Effect(&'static Effect),
}

impl Benchmark {
    /// The group that it belongs to.
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

/// A size that is a number of elements.
pub(crate) fn count(n: usize) -> String {
    n.to_string()
}

/// A size that is the side of a square.
pub(crate) fn square(n: usize) -> String {
    format!("{n}×{n}")
}
