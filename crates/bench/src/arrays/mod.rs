//! The group `arrays`: whole-array expressions with `Array`, against the same job in C++ with OpenMP.
//!
//! A benchmark has an expression, a peer in `peers/NAME.cpp`, a size and a reference in plain Rust. The
//! expression is built anew in every repetition. If it has many operations, it is a `array::Function` that
//! every repetition calls. Peer and expression make the same inputs from [`crate::inputs`].

mod images;
pub(crate) mod job;
mod lines;
mod motion;
mod order;
mod vision;

pub(crate) use images::bell;
pub(crate) use vision::{CORNERS, corners};

use crate::benchmark::{Benchmark, PreparedJob, Setup, Subject, count, square};
use crate::error::Failure;
use crate::group;
use crate::job::Job;
use broadloom::Context;
use broadloom::array::Precision;
use order::ROW;

macro_rules! benchmark {
    ($name:ident in $place:ident, $tolerance:expr, $full:expr, $quick:expr, $shown:expr) => {
        Benchmark {
            group: group::ARRAYS,
            name: stringify!($name),
            peer: include_str!(concat!("../../peers/", stringify!($name), ".cpp")),
            tolerance: $tolerance,
            size: |scale| scale.fixed($full, $quick),
            shown: $shown,
            // The peers are compiled with fast arithmetic too.
            subject: &Expression($place::$name, Precision::Fast),
        }
    };
}

/// All benchmarks, in run order.
pub(crate) const ALL: &[Benchmark] = &[
    benchmark!(sum_abs in lines, 1e-4, 8192 * 8192, 5000, count),
    benchmark!(dot in lines, 1e-4, 10_000_000, 5000, count),
    benchmark!(matrix_vector in lines, 1e-4, 8192, 75, square),
    benchmark!(matrix_product in lines, 1e-4, 4096, 75, square),
    benchmark!(black_scholes in lines, 1e-4, 10_000_000, 1000, count),
    benchmark!(scan in lines, 1e-12, 100_000_000, 5000, count),
    benchmark!(segmented_sum in lines, 1e-4, 1_000_000, 500, |n| format!("{n} segments")),
    benchmark!(sort in order, 1e-12, 100_000_000, 5000, count),
    benchmark!(sort_rows in order, 1e-12, 100_000, 70, |n| format!("{n}×{ROW}")),
    benchmark!(histogram in order, 1e-12, 100_000_000, 5000, |n| format!("{n} bytes")),
    benchmark!(pack in order, 1e-12, 100_000_000, 5000, count),
    benchmark!(life in images, 1e-12, 8192, 75, square),
    benchmark!(convolution in images, 1e-5, 8192, 75, square),
    benchmark!(rotation in images, 1e-3, 4096, 64, |n| format!("3×{n}×{n}")),
    benchmark!(demosaic in vision, 1e-5, 1000, 75, square),
    benchmark!(corner in vision, 1e-4, 1000, 75, square),
    benchmark!(motion in motion, 1e-12, 512, 64, square),
    benchmark!(stereo in vision, 1e-12, 1000, 40, square),
];

/// Function that prepares an expression over inputs of a size, and the precision of its arithmetic.
pub(crate) struct Expression(pub(crate) fn(&Context, usize) -> Result<Job, Failure>, pub(crate) Precision);

impl Subject for Expression {
    fn prepare(&self, setup: &Setup, tiny: usize, size: usize) -> Result<PreparedJob, Failure> {
        let context = Context::with_precision(&setup.device, self.1);
        // Planning and compilation happen on tiny arrays. The code serves all sizes.
        let compile = setup.first_overhead(&(self.0)(&context, tiny)?)?;
        let job = (self.0)(&context, size)?;
        let before = context.statistics().kernels;
        setup.repetition(&job)?;
        let launches = context.statistics().kernels - before;
        // A quick run measures nothing.
        let predicted_ms = if setup.scale.quick { None } else { job.predicted_ms(&setup.device.measured_machine())? };
        Ok(PreparedJob { predicted_ms, ..PreparedJob::new(job, launches, compile) })
    }
}
