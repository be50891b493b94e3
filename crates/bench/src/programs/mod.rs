//! The group `programs`: programs as users write them with `Array`, which nobody tuned, each against a plain
//! parallel loop in C++ where there is a natural one.
//!
//! The first part is that of machine learning, simulation, image processing and graphs, the second that of
//! signals, finance, statistics and linear algebra. Some jobs are written in several ways: `_mat` and `_hot`
//! by matrix products, `_sum` by sums, `_by4` with four steps in a function. All use accurate arithmetic. In
//! a program with rounds, a repetition runs all of them.

mod bodies;
mod chance;
mod clusters;
mod floats;
mod graphs;
mod grids;
mod matrices;
mod rows;
mod selection;
mod series;
mod tables;

use crate::arrays::Expression;
use crate::benchmark::{Benchmark, count, square};
use crate::group;
use crate::job::Scale;
use broadloom::array::Precision;

macro_rules! program {
    ($name:ident in $place:ident, $peer:literal, $tolerance:expr, $gpu:expr, $cpu:expr, $quick:expr, $shown:expr) => {
        Benchmark {
            group: group::PROGRAMS,
            name: stringify!($name),
            peer: include_str!(concat!("../../peers/programs/", $peer, ".cpp")),
            tolerance: $tolerance,
            size: |scale: Scale| scale.either($gpu, $cpu, $quick),
            shown: $shown,
            subject: &Expression($place::$name, Precision::Accurate),
        }
    };
    ($name:ident in $place:ident, $tolerance:expr, $gpu:expr, $cpu:expr, $quick:expr, $shown:expr) => {
        Benchmark { peer: "", ..program!($name in $place, "no_peer", $tolerance, $gpu, $cpu, $quick, $shown) }
    };
}

/// All programs, in run order.
pub(crate) const ALL: &[Benchmark] = &[
    program!(heat in grids, "heat", 1e-5, 1024, 1024, 40, |n| format!("{n}×{n}, 20 steps")),
    program!(heat_by4 in grids, "heat", 1e-5, 1024, 1024, 40, |n| format!("{n}×{n}, 20 steps")),
    program!(heat_large in grids, "heat", 1e-5, 8192, 3072, 40, |n| format!("{n}×{n}, 20 steps")),
    program!(kmeans in clusters, "kmeans", 1e-3, 1_000_000, 200_000, 300, |n| format!("{n}×8, 16 means, 2 rounds")),
    program!(kmeans_mat in clusters, "kmeans", 1e-3, 1_000_000, 200_000, 300, |n| format!("{n}×8, 16 means, 2 rounds")),
    program!(kmeans_hot in clusters, "kmeans", 1e-3, 1_000_000, 200_000, 300, |n| format!("{n}×8, 16 means, 2 rounds")),
    program!(kmeans_hot_mat in clusters, "kmeans", 1e-3, 1_000_000, 200_000, 300, |n| format!("{n}×8, 16 means, 2 rounds")),
    program!(logistic in clusters, "logistic", 1e-3, 1_000_000, 200_000, 300, |n| format!("{n}×32, 5 rounds")),
    program!(logistic_sum in clusters, "logistic", 1e-3, 1_000_000, 200_000, 300, |n| format!("{n}×32, 5 rounds")),
    program!(edges in grids, "edges", 1e-2, 4096, 2048, 40, square),
    program!(page_rank in graphs, "page_rank", 1e-4, 1_000_000, 200_000, 200, |n| format!("{n} nodes, 3 rounds")),
    program!(paths_hash in chance, "paths_hash", 1e-3, 10_000_000, 1_000_000, 400, |n| format!("{n} paths, 8 steps")),
    program!(paths_random in chance, 1e-3, 10_000_000, 1_000_000, 400, |n| format!("{n} paths, 8 steps")),
    program!(gradients in grids, "gradients", 1e-3, 2048, 1024, 32, |n| format!("{n}×{n}, 10 rounds")),
    program!(run_lengths in selection, "run_lengths", 1e-12, 50_000_000, 8_000_000, 600, count),
    program!(compact in selection, "compact", 1e-12, 50_000_000, 8_000_000, 600, count),
    program!(compact_padded in selection, "compact", 1e-12, 50_000_000, 8_000_000, 600, count),
    program!(bodies in bodies, "bodies", 1e-3, 16384, 4096, 60, |n| format!("{n}, 2 steps")),
    program!(batched in matrices, "batched", 1e-3, 10_000, 10_000, 20, |n| format!("{n} of 16×16, 2 times")),
    program!(batched_mid in matrices, "batched", 1e-3, 10_000, 10_000, 20, |n| format!("{n} of 16×16, 2 times")),
    program!(search_frontier in graphs, "search", 1e-12, 1_000_000, 100_000, 200, |n| format!("{n} nodes")),
    program!(search_dense in graphs, "search", 1e-12, 1_000_000, 100_000, 200, |n| format!("{n} nodes")),
    program!(softmax in rows, "softmax", 1e-4, 8192, 2048, 40, square),
    program!(layer_norm in rows, "layer_norm", 1e-4, 4096, 2048, 40, square),
    program!(top_k in selection, "top_k", 1e-12, 10_000_000, 2_000_000, 300, |n| format!("100 of {n}")),
    program!(sort_floats in selection, "sort_floats", 1e-12, 10_000_000, 2_000_000, 300, count),
    program!(argsort in selection, "argsort", 1e-12, 10_000_000, 2_000_000, 300, count),
    program!(column_moments in tables, "column_moments", 1e-4, 2_000_000, 258_064, 100, |n| format!("{n}×31")),
    program!(covariance in tables, "covariance", 1e-3, 2_000_000, 400_000, 100, |n| format!("{n}×16")),
    program!(group_by in tables, "group_by", 1e-4, 20_000_000, 2_000_000, 500, |n| format!("{n} rows, 10000 keys")),
    program!(bin_sums in tables, "bin_sums", 1e-4, 20_000_000, 1_000_000, 500, |n| format!("{n} into 16 and {n}/10")),
    program!(many_bins in tables, "many_bins", 1e-12, 50_000_000, 4_000_000, 500, |n| format!("{n} into 1000000")),
    program!(short_rows in rows, "short_rows", 1e-4, 16_000_000, 2_000_000, 64, |n| format!("{n} by 4, 8 and 16")),
    program!(power in matrices, "power", 1e-3, 8192, 2000, 40, |n| format!("{n}×{n}, 3 rounds")),
    program!(cholesky in matrices, "cholesky", 1e-3, 200_000, 40_000, 30, |n| format!("{n} of 8×8")),
    program!(fourier in series, "fourier", 1e-3, 4096, 256, 8, |n| format!("{n} of 1024")),
    program!(rolling in series, "rolling", 1e-3, 50_000_000, 4_000_000, 300, |n| format!("{n}, window of 64")),
    program!(kalman in series, "kalman", 1e-3, 1_000_000, 100_000, 20, |n| format!("{n} series, 12 steps")),
    program!(drawdown in series, "drawdown", 1e-4, 100_000, 8_192, 20, |n| format!("{n} series of 250")),
    program!(components in graphs, "components", 1e-12, 1_000_000, 100_000, 200, |n| format!("{n} nodes, 8 rounds")),
];
