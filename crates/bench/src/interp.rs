//! The group `interp`: the speed of the interpreter.
//!
//! Each kernel is launched several times on one core, both plain and watched by the checker. The fastest
//! launch counts. The unit is the thread-instruction: one instruction of one thread. Time is CPU time of the
//! thread if the system reports it, so that other processes of the machine have little effect. A kernel in
//! which the checker finds a fault gives no figure.

use crate::error::Failure;
use crate::report::{Rate, Row};
use crate::{group, module};
use broadloom::device::Device;
use broadloom::diag::Sources;
use broadloom::interp::{Interp, Options};
use broadloom::launch::{LaunchError, LaunchSpec, PreparedLaunch, prepare, split_words};
use std::path::Path;
use std::time::{Duration, Instant};

/// A kernel and its launch.
pub(crate) struct InterpBenchmark {
    pub(crate) name: &'static str,
    text: &'static str,
    launch: &'static str,
}

/// All benchmarks, in run order.
pub(crate) const ALL: &[InterpBenchmark] = &[
    InterpBenchmark {
        name: "integers",
        text: include_str!("../kernels/integers.ptx"),
        launch: "--grid 16 --block 256 --arg u32[4096]:zero --arg u32:500",
    },
    InterpBenchmark {
        name: "floats",
        text: include_str!("../kernels/floats.ptx"),
        launch: "--grid 16 --block 256 --arg f32[4096]:zero --arg u32:500",
    },
    InterpBenchmark {
        name: "saxpy",
        text: include_str!("../../../examples/saxpy.ptx"),
        launch: "--grid 2048 --block 256 --arg f32:2 --arg f32[524288]:random --arg f32[524288]:random(1) --arg u32:524288",
    },
    InterpBenchmark {
        name: "reduce",
        text: include_str!("../../../examples/reduce.ptx"),
        launch: "--grid 512 --block 256 --arg f32[131072]:random --arg f32[1]:zero --arg i32:131072",
    },
    InterpBenchmark {
        name: "mandelbrot",
        text: include_str!("../../../corpus/ptx/mandelbrot.sm75.ptx"),
        launch: "--kernel mandelbrot --grid 16,16 --block 16,16 --arg u16[65536]:zero --arg u32:256 --arg u32:256 \
                 --arg f32:-2 --arg f32:-1.25 --arg f32:0.01 --arg u32:256",
    },
    InterpBenchmark {
        name: "shuffles",
        text: include_str!("../../../corpus/ptx/reduce_shuffle.sm75.ptx"),
        launch: "--grid 512 --block 256 --arg f32[131072]:random --arg f32[512]:zero --arg u32:131072",
    },
];

/// Minimum time of all launches together, before the fastest one counts.
const MIN_TIME: Duration = Duration::from_millis(1500);

/// The measurement: thread-instructions of a launch, and the time of the fastest launch.
struct LaunchMeasurement {
    instructions: u64,
    time: Duration,
}

impl LaunchMeasurement {
    fn millions_per_second(&self) -> f64 {
        self.instructions as f64 / self.time.as_secs_f64() / 1e6
    }
}

/// Measures one benchmark.
pub(crate) fn run(benchmark: &InterpBenchmark, quick: bool) -> Result<Row, Failure> {
    let min_time = if quick { Duration::ZERO } else { MIN_TIME };
    let plain = measure(benchmark, false, min_time)?;
    let watched = measure(benchmark, true, min_time)?;
    let size = format!("{} instr.", plain.instructions);
    Ok(Row {
        rate: Some(Rate::Instructions { plain: plain.millions_per_second(), watched: watched.millions_per_second() }),
        launches: 1,
        ..Row::timed(group::INTERP, benchmark.name, size, "interp".to_owned(), plain.time)
    })
}

fn measure(benchmark: &InterpBenchmark, check: bool, min_time: Duration) -> Result<LaunchMeasurement, Failure> {
    let interp = Interp::new(Options { check, ..Options::default() });
    let prepared = prepare_launch(benchmark, &interp)?;
    let mut fastest = Duration::MAX;
    let start = Instant::now();
    loop {
        let clock = Clock::start();
        prepared.launch()?;
        fastest = fastest.min(clock.elapsed());
        if start.elapsed() >= min_time {
            break;
        }
    }
    let statistics = interp.statistics();
    if let Some(finding) = interp.findings().first() {
        return Err(Failure::Wrong(finding.to_string()));
    }
    Ok(LaunchMeasurement { instructions: statistics.instructions / statistics.launches, time: fastest })
}

/// A clock for CPU time, or wall time if the system does not report CPU time.
struct Clock {
    wall: Instant,
    core: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Clock { wall: Instant::now(), core: core_time() }
    }

    fn elapsed(&self) -> Duration {
        match (self.core, core_time()) {
            (Some(start), Some(now)) if now > start => now - start,
            _ => self.wall.elapsed(),
        }
    }
}

/// Returns the CPU time of this thread: the first number of Linux's `schedstat`, in nanoseconds.
fn core_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn prepare_launch(benchmark: &InterpBenchmark, interp: &Interp) -> Result<PreparedLaunch, Failure> {
    let module = module::load(&Device::new(interp.clone()), benchmark.name, benchmark.text)?;
    let mut sources = Sources::new();
    let words = split_words(benchmark.launch).unwrap_or_default();
    let spec = LaunchSpec::parse(&mut sources, &words).map_err(|wrong| Failure::Module(sources.render_all(&wrong)))?;
    prepare(&module, &spec, Path::new("")).map_err(|error| match error {
        LaunchError::Wrong(wrong) => Failure::Module(sources.render_all(&wrong)),
        LaunchError::Device(error) => Failure::Device(error),
    })
}
