//! The group `kernels`: kernels in CUDA C++, against the same job in C++ with OpenMP.
//!
//! A benchmark is a kernel in `kernels/NAME.cu` with the PTX that `nvcc` makes of it, a peer in
//! `peers/NAME.cpp`, and here its size, its launches and its reference in plain Rust. All three make the same
//! inputs from [`crate::inputs`].

mod dense;
mod elements;
mod grids;
mod irregular;
mod reductions;

pub(crate) use elements::option;

use crate::benchmark::{Benchmark, PreparedJob, Setup, Subject, count, square};
use crate::error::Failure;
use crate::group;
use crate::job::Job;
use crate::module;
use broadloom::device::{self, Module};
use std::time::Instant;

macro_rules! benchmark {
    ($name:ident in $place:ident, $tolerance:expr, $size:expr, $shown:expr) => {
        Benchmark {
            group: group::KERNELS,
            name: stringify!($name),
            peer: include_str!(concat!("../../peers/", stringify!($name), ".cpp")),
            tolerance: $tolerance,
            size: $size,
            shown: $shown,
            subject: &Kernel {
                file: concat!(stringify!($name), ".ptx"),
                text: include_str!(concat!("../../kernels/", stringify!($name), ".ptx")),
                job: $place::$name,
            },
        }
    };
}

/// All benchmarks, in run order.
pub(crate) const ALL: &[Benchmark] = &[
    benchmark!(vector_add in elements, 1e-12, |scale| scale.elements(12, 1 << 20, 1000), count),
    benchmark!(saxpy in elements, 1e-5, |scale| scale.elements(8, 1 << 20, 1000), count),
    benchmark!(reduction in reductions, 1e-4, |scale| scale.elements(4, 1 << 20, 5000), count),
    benchmark!(scan in reductions, 1e-12, |scale| scale.elements(8, 1 << 20, 2 * reductions::TILE), count),
    benchmark!(stencil5 in grids, 1e-6, |scale| scale.side(8, 512, 75), square),
    benchmark!(stencil25 in grids, 1e-6, |scale| scale.side(8, 512, 75), square),
    benchmark!(transpose in grids, 1e-12, |scale| scale.side(8, 512, 96), square),
    benchmark!(matrix_product in dense, 1e-5, |scale| scale.fixed(1024, 64), square),
    benchmark!(black_scholes in elements, 1e-4, |scale| scale.fixed(10_000_000, 1000), count),
    benchmark!(nbody in dense, 1e-3, |scale| scale.fixed(16384, 256), count),
    benchmark!(mandelbrot in elements, 1e-2, |scale| scale.fixed(2048, 75), square),
    benchmark!(histogram in reductions, 1e-12, |scale| scale.elements(1, 1 << 20, 10_000), |n| format!("{n} bytes")),
    benchmark!(sparse_product in irregular, 1e-5, |scale| scale.elements(irregular::ROW_BYTES, 1 << 16, 100), |n| {
        format!("{n} rows")
    }),
    benchmark!(bitonic_sort in irregular, 1e-12, |scale| scale.fixed(16384, 2), |n| format!("{n}×{}", irregular::KEYS)),
    benchmark!(life in grids, 1e-12, |scale| scale.side(8, 512, 75), square),
];

/// Kernel and the job that launches it.
struct Kernel {
    /// Name of its file.
    file: &'static str,
    /// PTX text.
    text: &'static str,
    /// Prepares the inputs and launches of a size.
    job: fn(&Module, usize) -> device::Result<Job>,
}

impl Subject for Kernel {
    fn prepare(&self, setup: &Setup, tiny: usize, size: usize) -> Result<PreparedJob, Failure> {
        let module = module::parse(self.file, self.text)?;
        let start = Instant::now();
        let module = setup.device.load(&module)?;
        let loading = start.elapsed();
        // A first launch on tiny inputs does the remaining one-time work. Its own cost is negligible.
        let tiny = (self.job)(&module, tiny)?;
        let start = Instant::now();
        tiny.prepare()?;
        let first = start.elapsed() + setup.repetition(&tiny)?;
        let again = setup.repetition(&tiny)?;
        let job = (self.job)(&module, size)?;
        let launches = job.launches() as u64;
        Ok(PreparedJob::new(job, launches, loading + first.saturating_sub(again)))
    }
}
