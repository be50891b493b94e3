//! The group `streams`: programs of `examples/stream` without their sources and sinks, against the same job
//! in C++ with OpenMP.
//!
//! Input and output are buffers of the device. A repetition launches the kernels of the program over them.
//! Each program is measured twice: restructured, and as its straight translation, one kernel for each filter
//! with all tapes in global memory. Peer and program make the same inputs from [`crate::inputs`].

mod elements;
mod signals;
mod sorts;
mod task;
mod transforms;

use crate::benchmark::{Benchmark, PreparedJob, Setup, Subject, count, square};
use crate::error::Failure;
use crate::group;
use crate::job::Scale;
use crate::measure::by_turns;
use crate::report::StraightTimes;
use task::{CompiledTask, Task};

/// Function that makes the task of a stream program of a size.
struct StreamProgram(fn(usize) -> Task);

impl Subject for StreamProgram {
    fn prepare(&self, setup: &Setup, _tiny: usize, size: usize) -> Result<PreparedJob, Failure> {
        let CompiledTask { job, launches, compile } = (self.0)(size).compile(&setup.device, false, setup.prefetch)?;
        // The first launch has one-time work too.
        let overhead = setup.first_overhead(&job)?;
        Ok(PreparedJob::new(job, launches, compile + overhead))
    }

    fn straight(&self, setup: &Setup, size: usize) -> Result<Option<StraightTimes>, Failure> {
        let CompiledTask { job, launches, .. } = (self.0)(size).compile(&setup.device, true, None)?;
        let times = by_turns(&setup.device, &job, &mut [], setup.effort())?;
        job.judge(times.repetitions)?;
        Ok(Some(StraightTimes { ms: times.ours.as_secs_f64() * 1e3, device_ms: setup.device_ms(&job)?, launches }))
    }
}

macro_rules! benchmark {
    ($name:ident in $place:ident, $peer:literal $(behind $($header:literal)+)?, $tolerance:expr, $size:expr, $shown:expr) => {
        Benchmark {
            group: group::STREAMS,
            name: stringify!($name),
            peer: concat!(
                $($(include_str!(concat!("../../peers/", $header, ".h")),)+)?
                include_str!(concat!("../../peers/", $peer, ".cpp"))
            ),
            tolerance: $tolerance,
            size: $size,
            shown: $shown,
            subject: &StreamProgram($place::$name),
        }
    };
}

/// A peer that uses an optional library.
pub(crate) struct LibraryPeer {
    /// Name of the benchmark.
    pub(crate) benchmark: &'static str,
    /// The display name.
    pub(crate) name: &'static str,
    /// The name of its file.
    pub(crate) file: &'static str,
    /// Its text.
    pub(crate) peer: &'static str,
    /// Flags of the linker.
    pub(crate) flags: &'static [&'static str],
}

const GNU_RADIO: &[&str] = &[
    "-lgnuradio-runtime",
    "-lgnuradio-blocks",
    "-lgnuradio-filter",
    "-lgnuradio-pmt",
    "-lspdlog",
    "-lfmt",
    "-Wl,--allow-shlib-undefined",
];

/// Peers by libraries. Libraries that are not installed are left out.
pub(crate) const LIBRARY_PEERS: &[LibraryPeer] = &[
    LibraryPeer {
        benchmark: "fir",
        name: "liquid-dsp",
        file: "fir_liquid",
        peer: concat!(include_str!("../../peers/low_pass.h"), include_str!("../../peers/fir_liquid.cpp")),
        flags: &["-lliquid"],
    },
    LibraryPeer {
        benchmark: "fir",
        name: "VOLK",
        file: "fir_volk",
        peer: concat!(include_str!("../../peers/low_pass.h"), include_str!("../../peers/fir_volk.cpp")),
        flags: &["-lvolk"],
    },
    LibraryPeer {
        benchmark: "long_fir",
        name: "liquid-dsp",
        file: "long_fir_liquid",
        peer: concat!(include_str!("../../peers/low_pass.h"), include_str!("../../peers/long_fir_liquid.cpp")),
        flags: &["-lliquid"],
    },
    LibraryPeer {
        benchmark: "fm_radio",
        name: "GNU Radio",
        file: "fm_radio_gnuradio",
        peer: concat!(include_str!("../../peers/low_pass.h"), include_str!("../../peers/fm_radio_gnuradio.cpp")),
        flags: GNU_RADIO,
    },
    LibraryPeer {
        benchmark: "filter_bank",
        name: "GNU Radio",
        file: "filter_bank_gnuradio",
        peer: include_str!("../../peers/filter_bank_gnuradio.cpp"),
        flags: GNU_RADIO,
    },
];

fn rows(n: usize) -> String {
    format!("{n}×{}", sorts::ROW)
}

fn samples(scale: Scale) -> usize {
    scale.either(1 << 26, 1 << 22, 1 << 10)
}

/// All benchmarks, in run order.
pub(crate) const ALL: &[Benchmark] = &[
    benchmark!(vector_add in elements, "vector_add", 1e-6, |scale| scale.either(100_000_000, 10_000_000, 1000), count),
    benchmark!(black_scholes in elements, "black_scholes", 1e-4, |scale| scale.either(10_000_000, 10_000_000, 500), count),
    benchmark!(black_scholes_fast in elements, "black_scholes", 1e-4, |scale| scale.either(10_000_000, 10_000_000, 500), count),
    benchmark!(histogram in elements, "histogram", 1e-12, |scale| scale.either(100_000_000, 100_000_000, 20_000), |n| format!("{n} bytes")),
    benchmark!(dct in transforms, "dct", 1e-5, |scale| scale.either(4096, 4096, 16), square),
    benchmark!(fft in transforms, "fft", 1e-5, |scale| scale.either(1 << 26, 1 << 20, 2048), |n| format!("{}×{} points", n >> 10, 1024)),
    benchmark!(matrix_multiply in transforms, "small_products", 1e-4, |scale| scale.either(4096, 1024, 2), |n| format!("{n} of {0}×{0}", transforms::SIDE)),
    benchmark!(blocked_matrix_multiply in transforms, "small_products", 1e-4, |scale| scale.either(4096, 1024, 2), |n| format!("{n} of {0}×{0}", transforms::SIDE)),
    benchmark!(bitonic_sort in sorts, "rows_of_32" behind "rows_of_floats", 1e-12, |scale| scale.either(1_000_000, 1_000_000, 40), rows),
    benchmark!(batcher_sort in sorts, "rows_of_32" behind "rows_of_floats", 1e-12, |scale| scale.either(1_000_000, 1_000_000, 40), rows),
    benchmark!(merge_sort in sorts, "rows_of_32" behind "rows_of_floats", 1e-12, |scale| scale.either(1_000_000, 1_000_000, 40), rows),
    benchmark!(comparison_counting in sorts, "rows_of_32" behind "rows_of_floats", 1e-12, |scale| scale.either(1_000_000, 1_000_000, 40), rows),
    benchmark!(radix_sort in sorts, "rows_of_32" behind "rows_of_integers", 1e-12, |scale| scale.either(1_000_000, 1_000_000, 40), rows),
    benchmark!(fir in signals, "fir" behind "taps_64" "low_pass", 1e-4, samples, count),
    benchmark!(long_fir in signals, "fir" behind "taps_512" "low_pass", 1e-4, samples, count),
    benchmark!(fm_radio in signals, "fm_radio" behind "low_pass", 1e-3, |scale| samples(scale) / 4, count),
    benchmark!(filter_bank in signals, "filter_bank", 1e-3, samples, count),
    benchmark!(vocoder in signals, "vocoder", 1e-3, samples, count),
    benchmark!(beamformer in signals, "beamformer", 1e-3, |scale| samples(scale) / 4, count),
];
