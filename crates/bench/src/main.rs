//! How fast the interpreter is.
//!
//! Each kernel is launched several times on one core, plainly and watched; the fastest launch counts. The unit is the
//! thread-instruction: one instruction of one thread. Time is time on the core where the system tells it, so that others who use
//! the machine count little. The output is a table in Markdown.

#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use broadloom::device::Device;
use broadloom::diag::Sources;
use broadloom::interp::{Interp, Options};
use broadloom::launch::{LaunchSpec, Prepared, prepare, split_words};
use broadloom::ptx;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A kernel and how it is launched.
struct Benchmark {
    name: &'static str,
    what: &'static str,
    text: &'static str,
    launch: &'static str,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "integers",
        what: "integer arithmetic in registers",
        text: include_str!("../kernels/integers.ptx"),
        launch: "--grid 16 --block 256 --arg u32[4096]:zero --arg u32:500",
    },
    Benchmark {
        name: "floats",
        what: "floating point in registers",
        text: include_str!("../kernels/floats.ptx"),
        launch: "--grid 16 --block 256 --arg f32[4096]:zero --arg u32:500",
    },
    Benchmark {
        name: "saxpy",
        what: "global memory, one element per thread",
        text: include_str!("../../../examples/saxpy.ptx"),
        launch: "--grid 2048 --block 256 --arg f32:2 --arg f32[524288]:random --arg f32[524288]:random(1) --arg u32:524288",
    },
    Benchmark {
        name: "reduce",
        what: "shared memory and barriers",
        text: include_str!("../../../examples/reduce.ptx"),
        launch: "--grid 512 --block 256 --arg f32[131072]:random --arg f32[1]:zero --arg i32:131072",
    },
    Benchmark {
        name: "mandelbrot",
        what: "divergent loops",
        text: include_str!("../../../corpus/ptx/mandelbrot.sm75.ptx"),
        launch: "--kernel mandelbrot --grid 16,16 --block 16,16 --arg u16[65536]:zero --arg u32:256 --arg u32:256 \
                 --arg f32:-2 --arg f32:-1.25 --arg f32:0.01 --arg u32:256",
    },
    Benchmark {
        name: "shuffles",
        what: "warp shuffles and barriers",
        text: include_str!("../../../corpus/ptx/reduce_shuffle.sm75.ptx"),
        launch: "--grid 512 --block 256 --arg f32[131072]:random --arg f32[512]:zero --arg u32:131072",
    },
];

/// A launch takes at least this long, all repeats together, before the fastest one is believed.
const LEAST: Duration = Duration::from_millis(1500);

/// What was measured: thread-instructions of a launch, and the time of the fastest.
struct Measured {
    instructions: u64,
    time: Duration,
}

impl Measured {
    fn millions_per_second(&self) -> f64 {
        self.instructions as f64 / self.time.as_secs_f64() / 1e6
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| kernel | what it does most | thread-instructions | ms | million per second | watched |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for benchmark in BENCHMARKS {
        let plain = measure(benchmark, false)?;
        let watched = measure(benchmark, true)?;
        println!(
            "| {} | {} | {} | {:.1} | {:.1} | {:.1} |",
            benchmark.name,
            benchmark.what,
            plain.instructions,
            plain.time.as_secs_f64() * 1e3,
            plain.millions_per_second(),
            watched.millions_per_second()
        );
    }
    Ok(())
}

fn measure(benchmark: &Benchmark, check: bool) -> Result<Measured, Box<dyn Error>> {
    let interp = Interp::new(Options { check, ..Options::default() });
    let prepared = ready(benchmark, &interp)?;
    let mut fastest = Duration::MAX;
    let start = Instant::now();
    while start.elapsed() < LEAST {
        let clock = Clock::start();
        prepared.launch()?;
        fastest = fastest.min(clock.elapsed());
    }
    let statistics = interp.statistics();
    if let Some(finding) = interp.findings().first() {
        return Err(format!("{}: {finding}", benchmark.name).into());
    }
    Ok(Measured { instructions: statistics.instructions / statistics.launches, time: fastest })
}

/// Measures time on the core, or what passed on the wall where the system does not tell.
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

/// How long this thread has run on a core: the first number of Linux's `schedstat`, in nanoseconds.
fn core_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn ready(benchmark: &Benchmark, interp: &Interp) -> Result<Prepared, Box<dyn Error>> {
    let mut sources = Sources::new();
    let id = sources.add(benchmark.name, benchmark.text);
    let module = ptx::parse(&sources, id).and_then(ptx::verify).map_err(|wrong| sources.render_all(&wrong))?;
    let module = Device::new(interp.clone()).load(&Arc::new(module))?;
    let words = split_words(benchmark.launch).ok_or("a quote is not closed")?;
    let spec = LaunchSpec::parse(&mut sources, &words).map_err(|wrong| sources.render_all(&wrong))?;
    Ok(prepare(&module, &spec, Path::new(""))?)
}
