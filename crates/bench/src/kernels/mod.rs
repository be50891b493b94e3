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

use crate::benchmark::{Benchmark, Subject, count, square};

macro_rules! benchmark {
    ($name:ident in $place:ident, $tolerance:expr, $size:expr, $shown:expr) => {
        Benchmark {
            name: stringify!($name),
            peer: include_str!(concat!("../../peers/", stringify!($name), ".cpp")),
            tolerance: $tolerance,
            size: $size,
            shown: $shown,
            subject: Subject::Kernel {
                ptx: include_str!(concat!("../../kernels/", stringify!($name), ".ptx")),
                ready: $place::$name,
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
