//! The group `streams`: programs of `examples/stream` without their sources and sinks, against the same job
//! in C++ with OpenMP.
//!
//! Input and output are buffers of the device. A repetition launches the kernels of the program over them.
//! Each program is measured twice: restructured, and as its straight translation, one kernel for each filter
//! with all tapes in global memory. Peer and program make the same inputs from [`crate::inputs`].

mod elements;
mod signals;
mod sorts;
mod transforms;

use crate::benchmark::{Benchmark, PreparedJob, Setup, Subject, count, square};
use crate::error::Failure;
use crate::group;
use crate::job::{Job, Scale, Verdict, Work};
use crate::measure::by_turns;
use crate::report::StraightTimes;
use broadloom::device::Device;
use broadloom::stream::Program;
use broadloom::stream::compiled::{Compiled, Options, Precision, Resident};
use broadloom::stream::eval::{Limits, Memory};
use std::time::{Duration, Instant};

/// Compares the words of an output with the reference.
type Judge = Box<dyn Fn(&[u32]) -> Result<Verdict, Failure>>;

/// A stream program with its inputs and its judge.
struct Task {
    /// The text of the program.
    text: &'static str,
    /// The measured stream.
    stream: String,
    /// Number of steady states in a repetition.
    states: u64,
    /// Returns the input word with a number: a float, an int or half of a complex number, as its bits.
    input: fn(u32) -> u32,
    /// The accuracy of its floats. Peers are compiled with fast arithmetic, so most programs use it too.
    precision: Precision,
    /// The work of a repetition.
    work: Work,
    /// Compares the output with the reference.
    judge: Judge,
}

/// Job of a compiled stream program.
struct CompiledTask {
    job: Job,
    /// Number of launches in a repetition.
    launches: u64,
    /// Time from the text to loaded kernels.
    compile: Duration,
}

impl Task {
    /// Compiles the program, restructured or straight, and uploads its input.
    fn compile(self, device: &Device, straight: bool, prefetch: Option<bool>) -> Result<CompiledTask, Failure> {
        let failed = |failure: broadloom::stream::Failure| Failure::Outside(failure.to_string());
        let start = Instant::now();
        let files = [("benchmark.str", self.text)];
        // A histogram is one steady state, regardless of the number of words.
        let limits = Limits { schedule: 1 << 30, ..Limits::default() };
        let program = Program::compile_stream(&files, &self.stream, &mut Memory::default(), &limits);
        // A job owns what it runs, and compiled programs borrow theirs. Therefore they are leaked and live as
        // long as the process.
        let program: &'static Program = Box::leak(Box::new(program.map_err(failed)?));
        let options = Options { straight, prefetch, precision: self.precision, ..Options::default() };
        let compiled = Compiled::with(program, device, options).map_err(failed)?;
        let compiled: &'static Compiled<'static> = Box::leak(Box::new(compiled));
        let compile = start.elapsed();
        let resident = std::rc::Rc::new(Resident::new(compiled).map_err(failed)?);
        let words = resident.input_bytes(self.states) / 4;
        let input = device.upload(&(0..words as u32).map(self.input).collect::<Vec<u32>>())?;
        let output = device.zeros::<u32>((resident.output_bytes(self.states) / 4) as usize)?;
        let (again, result, states) = (resident.clone(), output.clone(), self.states);
        let judge = move |_| {
            again.check().map_err(failed)?;
            (self.judge)(&result.read()?)
        };
        let launches = resident.launches() as u64;
        let run = move || resident.run(&input, &output, states).map_err(failed);
        Ok(CompiledTask { job: Job::new(self.work, judge).expression(run), launches, compile })
    }
}

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

/// Returns the floats that words represent.
fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|&word| f32::from_bits(word)).collect()
}

/// Includes the text of an example program.
macro_rules! program {
    ($name:literal) => {
        include_str!(concat!("../../../../examples/stream/", $name, ".str"))
    };
}
use program;

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
