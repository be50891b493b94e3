//! The benchmarks behind `broadloom bench`.
//!
//! - `kernels`: kernels as people write them in CUDA C++, each against the same job in C++ with OpenMP;
//! - `arrays`: expressions of whole arrays, each against the same job in C++ with OpenMP;
//! - `effects`: image effects, optimised and in straight translation, each against the same job in C++ with OpenMP;
//! - `streams`: StreamIt programs, each against the same job in C++ with OpenMP and against its straight translation;
//! - `segments`: sums and prefix sums within segments, beside those of the whole line;
//! - `overhead`: what the host does for an expression of arrays;
//! - `nesl`: functions of NESL programs, each against the same algorithm in C++ with OpenMP, ragged ones against Awkward Array too;
//! - `nesl_programs`: the programs of `examples/nesl`;
//! - `compile`: what a device takes to make the kernels of the corpus ready;
//! - `start`: what the command takes from its start to the result of a small kernel and of a NESL program, and what it takes to
//!   compile a NESL program;
//! - `interp`: thread-instructions per second of the interpreter.
//!
//! Invariants: ours and the peer's times come from the same run, by turns. A result that is not the reference's, or a checksum that is
//! not the peer's, is a failure and gives no figure. What was not measured is absent, never invented. Nothing here prints: rows are
//! told as they come.

mod arrays;
mod benchmark;
mod catalogue;
mod compile;
mod effects;
mod error;
mod figures;
mod inputs;
mod interp;
mod job;
mod kernels;
mod limits;
mod measure;
mod nesl;
mod overhead;
mod peer;
mod python;
mod report;
mod segments;
mod start;
mod streams;

pub use catalogue::groups;
pub use error::{Error, Failure};
pub use limits::Limits;
pub use report::{Figure, Rate, Report, Row, Straight};

use benchmark::{Benchmark, Subject};
use broadloom::array::Precision;
use broadloom::device::{self, Device, MachineKind, Module};
use broadloom::diag::Sources;
use broadloom::{Context, machines, open, ptx};
use catalogue::{Entry, Selection};
use job::{Job, Scale, Unit};
use measure::Effort;
use peer::{Compiler, Peer};
use python::Python;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use streams::{Made, Task};

/// What to measure, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Groups, benchmarks, or `GROUP/BENCHMARK`; none is all.
    pub names: Vec<String>,
    /// The device; the first of this machine when it is not named.
    pub device: Option<String>,
    /// Tiny sizes, once: whether it works, not how fast.
    pub quick: bool,
    /// Without peers.
    pub no_peers: bool,
    /// A Python interpreter: with its libraries arrays are compared too.
    pub python: Option<PathBuf>,
    /// The size of benchmarks that have a peer, when not their own.
    pub size: Option<usize>,
    /// Whether stream programs prefetch, where they can; without it the cost model decides.
    pub prefetch: Option<bool>,
    /// A folder for traces: `NAME.json` for each benchmark that has a peer.
    pub trace: Option<PathBuf>,
    /// Where compiled peers are kept, when not where caches are.
    pub peer_folder: Option<PathBuf>,
    /// The `broadloom` command, for figures that need a process of their own; without it there are none.
    pub command: Option<PathBuf>,
}

/// What is told while it happens.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A benchmark is done.
    Row(&'a Row),
    /// A figure of the device is there.
    Figure(&'a Figure),
    /// Something that a reader of the figures should know.
    Remark(String),
    /// A benchmark gave no figure: its name, and why.
    Failed(&'a str, String),
}

/// Runs benchmarks one after the other.
pub fn run(options: &Options, tell: &mut dyn FnMut(Event<'_>)) -> Result<Report, Error> {
    let selection = catalogue::select(&options.names)?;
    let name = options.device.clone().or_else(|| machines().first().map(|machine| machine.id.clone())).unwrap_or_default();
    let device = open(&name)?;
    let is_slow = device.machine().kind == MachineKind::Interp;
    let quick = options.quick || is_slow;
    if quick && selection.entries.iter().any(|entry| matches!(entry, Entry::Contest(_))) {
        let why = if options.quick { "as asked for" } else { "that the interpreter can finish" };
        tell(Event::Remark(format!("tiny sizes {why}, once each: the results are checked, the times mean nothing")));
    }
    // What is not measured here the device measures.
    let machine = match device.machine().kind {
        MachineKind::Cuda => device.measured_machine(),
        MachineKind::Cpu | MachineKind::Interp => device.machine().clone(),
    };
    let machine_kind = machine.kind;
    let report = Report { machine, limits: Limits::default(), rows: vec![], figures: vec![], failures: vec![] };
    let scale = Scale { quick, gpu: machine_kind == MachineKind::Cuda, cache_bytes: cache_bytes() };
    let mut run = Run { options, device, scale, compiler: None, python: None, report, tell };
    run.all(&selection);
    Ok(run.report)
}

/// The last-level cache of the host, or a guess that is larger than most where it does not tell.
fn cache_bytes() -> u64 {
    machines().iter().find(|machine| machine.kind == MachineKind::Cpu).and_then(|machine| machine.cache_bytes).unwrap_or(64 << 20)
}

/// A kernel's text, parsed and verified.
fn parse(name: &str, text: &str) -> Result<Arc<ptx::Verified>, Failure> {
    let mut sources = Sources::new();
    let id = sources.add(format!("{name}.ptx"), text);
    let module = ptx::parse(&sources, id).and_then(ptx::verify);
    module.map(Arc::new).map_err(|wrong| Failure::Module(sources.render_all(&wrong)))
}

/// A kernel's text, made ready on a device.
fn load(device: &Device, name: &str, text: &str) -> Result<Module, Failure> {
    Ok(device.load(&parse(name, text)?)?)
}

/// A benchmark made ready on the device.
struct Ready {
    job: Job,
    launches: u64,
    waits: Option<u64>,
    compile_ms: f64,
    predicted_ms: Option<f64>,
    straight_ms: Option<f64>,
}

/// A run of benchmarks.
struct Run<'a> {
    options: &'a Options,
    device: Device,
    scale: Scale,
    compiler: Option<Compiler>,
    python: Option<Python>,
    report: Report,
    tell: &'a mut dyn FnMut(Event<'_>),
}

impl Run<'_> {
    fn all(&mut self, selection: &Selection) {
        if selection.entries.iter().any(|entry| matches!(entry, Entry::Contest(_))) {
            self.look_around();
        }
        for &entry in &selection.entries {
            let outcome = match entry {
                Entry::Contest(benchmark) => self.contest(benchmark).map(|row| vec![row]),
                Entry::Interp(benchmark) => interp::run(benchmark, self.options.quick).map(|row| vec![row]),
                Entry::Compile => match &self.options.command {
                    Some(command) => figures::compile_apart(command, &self.report.machine.id),
                    None => compile::run(&self.device),
                },
                Entry::NeslProgram(example) => nesl::run_program(example, &self.device, self.scale.quick).map(|row| vec![row]),
                Entry::NeslFront => nesl::run_front(self.options.command.as_deref(), &self.report.machine.id, self.options.quick),
                Entry::Overhead => overhead::run(&self.device, self.options.quick),
                Entry::Segments => segments::run(&self.device, self.scale.quick),
                Entry::Start => match &self.options.command {
                    Some(command) => start::run(command, &self.report.machine.id, self.options.quick),
                    None => Ok(vec![]),
                },
            };
            match outcome {
                Ok(rows) => {
                    rows.iter().for_each(|row| (self.tell)(Event::Row(row)));
                    self.report.rows.extend(rows);
                }
                Err(failure) => self.failed(entry.name(), &failure),
            }
        }
        if selection.with_figures {
            self.figures();
        }
    }

    fn failed(&mut self, name: &str, failure: &Failure) {
        let reason = failure.to_string();
        (self.tell)(Event::Failed(name, reason.clone()));
        self.report.failures.push((name.to_owned(), reason));
    }

    /// The compiler for peers and the limits of the host.
    fn look_around(&mut self) {
        if !self.options.no_peers {
            match Compiler::find(self.options.peer_folder.as_deref()) {
                Ok(compiler) => {
                    (self.tell)(Event::Remark(format!("peer: {} ({})", compiler.describe(), compiler.version)));
                    self.compiler = Some(compiler);
                }
                Err(reason) => (self.tell)(Event::Remark(format!("no peer: {reason}"))),
            }
        }
        if let Some(interpreter) = &self.options.python {
            let folder = self.options.peer_folder.clone().unwrap_or_else(peer::cache_folder);
            match Python::find(interpreter, &folder) {
                Ok(python) => {
                    (self.tell)(Event::Remark(format!("Python: {}", python.describe())));
                    self.python = Some(python);
                }
                Err(reason) => (self.tell)(Event::Remark(format!("no Python: {reason}"))),
            }
        }
        let machine = &self.report.machine;
        self.report.limits = match machine.kind {
            // A quick run is no measurement.
            _ if self.scale.quick => Limits::default(),
            MachineKind::Cpu | MachineKind::Interp => Limits::measure(self.scale, self.compiler.as_ref()),
            MachineKind::Cuda => Limits { read: machine.bandwidth, triad: machine.bandwidth, operations: None },
        };
        let Limits { read, triad, operations } = self.report.limits;
        if let (Some(read), Some(triad)) = (read, triad) {
            let operations = operations.map_or(String::new(), |rate| format!(", {:.0} GFLOP/s", rate / 1e9));
            let text = format!("limit: {:.1} GB/s read, {:.1} GB/s read and written{operations}", read / 1e9, triad / 1e9);
            (self.tell)(Event::Remark(text));
        }
    }

    /// Measures a benchmark against its peer.
    fn contest(&mut self, benchmark: &Benchmark) -> Result<Row, Failure> {
        let size = self.options.size.unwrap_or_else(|| (benchmark.size)(self.scale));
        // Started first, so that they make their inputs while we get ready.
        let in_cpp = self.compiler.as_ref().map(|compiler| compiler.start(benchmark.name, benchmark.peer, size));
        let by_libraries: Vec<_> = match (benchmark.subject, &self.compiler) {
            (Subject::Stream(_), Some(compiler)) => {
                let others = streams::LIBRARIES.iter().filter(|other| other.benchmark == benchmark.name);
                others
                    .map(|other| (other.name.to_owned(), compiler.start_with(other.file, other.peer, other.flags, size)))
                    .collect()
            }
            (Subject::Kernel { .. } | Subject::Arrays(_) | Subject::Effect(_) | Subject::Nesl(_) | Subject::Stream(_), _) => {
                vec![]
            }
        };
        let in_python = match (benchmark.subject, &self.python) {
            (Subject::Arrays(_) | Subject::Effect(_) | Subject::Nesl(_), Some(python)) => python.start(benchmark.name, size),
            (Subject::Kernel { .. } | Subject::Arrays(_) | Subject::Effect(_) | Subject::Nesl(_) | Subject::Stream(_), _) => {
                vec![]
            }
        };
        let tiny = (benchmark.size)(Scale { quick: true, ..self.scale });
        let ready = match benchmark.subject {
            Subject::Kernel { ptx, ready } => self.kernel(benchmark.name, ptx, ready, [tiny, size])?,
            Subject::Arrays(ready) => self.arrays(ready, [tiny, size])?,
            Subject::Effect(effect) => self.effect(effect, [tiny, size])?,
            Subject::Nesl(contest) => self.nesl(contest, [tiny, size])?,
            Subject::Stream(task) => self.stream(task, size)?,
        };
        let mut peers = vec![];
        for (name, peer) in in_cpp.map(|peer| (IN_CPP.to_owned(), peer)).into_iter().chain(by_libraries).chain(in_python) {
            match peer {
                Ok(peer) => peers.push((name, peer)),
                Err(reason) => self.without(benchmark, &name, &reason),
            }
        }
        let mut row = self.measured(benchmark, (benchmark.shown)(size), peers, &ready.job)?;
        let Ready { job, launches, waits, compile_ms, predicted_ms, straight_ms } = ready;
        if let Subject::Stream(task) = benchmark.subject {
            drop(job);
            row.straight = Some(self.straight(task, size)?);
        }
        Ok(Row { launches, waits, compile_ms: Some(compile_ms), predicted_ms, straight_ms, ..row })
    }

    fn kernel(
        &self,
        name: &str,
        ptx: &str,
        ready: fn(&Module, usize) -> device::Result<Job>,
        [tiny, size]: [usize; 2],
    ) -> Result<Ready, Failure> {
        let module = parse(name, ptx)?;
        let start = Instant::now();
        let module = self.device.load(&module)?;
        let loading = start.elapsed();
        // Whatever is left to the first launch happens on a tiny one, which costs next to nothing itself.
        let tiny = ready(&module, tiny)?;
        let start = Instant::now();
        tiny.prepare()?;
        let first = start.elapsed() + measure::repetition(&self.device, &tiny)?;
        let again = measure::repetition(&self.device, &tiny)?;
        let compile_ms = (loading + first.saturating_sub(again)).as_secs_f64() * 1e3;
        let job = ready(&module, size)?;
        Ok(Ready { launches: job.launches() as u64, waits: None, job, compile_ms, predicted_ms: None, straight_ms: None })
    }

    fn arrays(&self, ready: fn(&Context, usize) -> Result<Job, Failure>, [tiny, size]: [usize; 2]) -> Result<Ready, Failure> {
        // As the peers are compiled, too.
        let context = Context::with_precision(&self.device, Precision::Fast);
        // Planning and compilation happen on tiny arrays: the code serves all sizes.
        let tiny = ready(&context, tiny)?;
        let first = measure::repetition(&self.device, &tiny)?;
        let again = measure::repetition(&self.device, &tiny)?;
        let compile_ms = first.saturating_sub(again).as_secs_f64() * 1e3;
        let job = ready(&context, size)?;
        let before = context.statistics().kernels;
        measure::repetition(&self.device, &job)?;
        let launches = context.statistics().kernels - before;
        // A quick run is no measurement.
        let predicted_ms = if self.scale.quick { None } else { job.predicted_ms(&self.device.measured_machine())? };
        Ok(Ready { job, launches, waits: None, compile_ms, predicted_ms, straight_ms: None })
    }

    /// Makes an effect ready, and measures its straight translation.
    fn effect(&self, effect: &'static effects::Effect, [tiny, size]: [usize; 2]) -> Result<Ready, Failure> {
        let context = Context::new(&self.device);
        let [job, _] = effects::ready(&context, effect, tiny, self.scale.quick)?;
        let first = measure::repetition(&self.device, &job)?;
        let again = measure::repetition(&self.device, &job)?;
        let compile_ms = first.saturating_sub(again).as_secs_f64() * 1e3;
        let [job, straight] = effects::ready(&context, effect, size, self.scale.quick)?;
        let effort = if self.scale.quick { Effort::QUICK } else { Effort::FULL };
        let time = measure::by_turns(&self.device, &straight, &mut [], effort)?.ours;
        straight.judge(1)?;
        drop(straight);
        let before = context.statistics().kernels;
        measure::repetition(&self.device, &job)?;
        let launches = context.statistics().kernels - before;
        Ok(Ready { job, launches, waits: None, compile_ms, predicted_ms: None, straight_ms: Some(time.as_secs_f64() * 1e3) })
    }

    fn nesl(&self, contest: fn(usize) -> nesl::Contest, [tiny, size]: [usize; 2]) -> Result<Ready, Failure> {
        // Kernels are compiled for a tiny problem, as far as a large one needs the same.
        let start = Instant::now();
        let ready = nesl::ready(&self.device, contest(tiny))?;
        let first = start.elapsed() + measure::repetition(&self.device, &ready.job)?;
        let again = measure::repetition(&self.device, &ready.job)?;
        let compile_ms = first.saturating_sub(again).as_secs_f64() * 1e3;
        let ready = nesl::ready(&self.device, contest(size))?;
        measure::repetition(&self.device, &ready.job)?;
        let before = ready.called.borrow_mut().statistics();
        measure::repetition(&self.device, &ready.job)?;
        let after = ready.called.borrow_mut().statistics();
        let (launches, waits) = (after.launches - before.launches, Some(after.waits - before.waits));
        Ok(Ready { job: ready.job, launches, waits, compile_ms, predicted_ms: None, straight_ms: None })
    }

    fn stream(&self, task: fn(usize) -> Task, size: usize) -> Result<Ready, Failure> {
        let Made { job, launches, compile } = task(size).ready(&self.device, false, self.options.prefetch)?;
        // Whatever is left to the first launch.
        let first = measure::repetition(&self.device, &job)?;
        let again = measure::repetition(&self.device, &job)?;
        let compile_ms = (compile + first.saturating_sub(again)).as_secs_f64() * 1e3;
        Ok(Ready { job, launches: launches as u64, waits: None, compile_ms, predicted_ms: None, straight_ms: None })
    }

    /// Measures the straight translation of a stream program.
    fn straight(&self, task: fn(usize) -> Task, size: usize) -> Result<Straight, Failure> {
        let made = task(size).ready(&self.device, true, None)?;
        let times = measure::by_turns(&self.device, &made.job, &mut [], self.effort())?;
        made.job.judge(times.repetitions)?;
        let device_ms = self.device_ms(&made.job)?;
        Ok(Straight { ms: times.ours.as_secs_f64() * 1e3, device_ms, launches: made.launches as u64 })
    }

    fn effort(&self) -> Effort {
        if self.scale.quick { Effort::QUICK } else { Effort::FULL }
    }

    /// Returns the milliseconds that a GPU is at work for a repetition.
    fn device_ms(&self, job: &Job) -> Result<Option<f64>, Failure> {
        let is_gpu = self.report.machine.kind == MachineKind::Cuda && !self.scale.quick;
        Ok(if is_gpu { measure::device_time(&self.device, job)?.map(|time| time.as_secs_f64() * 1e3) } else { None })
    }

    /// Says why a peer gives no figure.
    fn without(&mut self, benchmark: &Benchmark, peer: &str, reason: &str) {
        (self.tell)(Event::Remark(format!("{}: no peer in {peer}: {reason}", benchmark.name)));
    }

    /// Runs a job and its peers by turns and compares what they found.
    fn measured(&mut self, benchmark: &Benchmark, size: String, peers: Vec<(String, Peer)>, job: &Job) -> Result<Row, Failure> {
        let (names, mut peers): (Vec<String>, Vec<Peer>) = peers.into_iter().unzip();
        let times = measure::by_turns(&self.device, job, &mut peers, self.effort())?;
        let verdict = job.judge(times.repetitions)?;
        if let Some(folder) = &self.options.trace
            && let Err(error) = measure::traced(&self.device, job, &folder.join(format!("{}.json", benchmark.name)))?
        {
            (self.tell)(Event::Remark(format!("{}: no trace: {error}", benchmark.name)));
        }
        let device_ms = self.device_ms(job)?;
        let (mut peer_time, mut peer_least, mut others) = (None, None, vec![]);
        for ((name, peer), time) in names.into_iter().zip(&mut peers).zip(times.peers) {
            match time.and_then(|time| Ok((time, peer.checksum()?))) {
                Ok(([time, least], theirs)) if is_near(verdict.checksum, theirs, benchmark.tolerance) => {
                    if name == IN_CPP {
                        peer_time = Some(time);
                        peer_least = Some(least.as_secs_f64() * 1e3);
                    } else {
                        others.push((name, time.as_secs_f64() * 1e3));
                    }
                }
                Ok((_, theirs)) => {
                    let (ours, tolerance) = (verdict.checksum, benchmark.tolerance);
                    let text =
                        format!("the checksum is {ours}, that of the peer in {name} {theirs} (allowed: {tolerance:e} of it)");
                    return Err(Failure::Wrong(text));
                }
                Err(reason) => self.without(benchmark, &name, &reason),
            }
        }
        let work = job::Work { operations: verdict.operations.unwrap_or(job.work.operations), ..job.work };
        let seconds = times.ours.as_secs_f64().max(1e-9);
        let rate = match work.unit {
            Unit::Bytes => Rate::Gbps(work.bytes / seconds / 1e9),
            Unit::Operations => Rate::Gflops(work.operations / seconds / 1e9),
        };
        Ok(Row {
            group: benchmark.group(),
            name: benchmark.name.to_owned(),
            size,
            device: self.report.machine.id.clone(),
            ms: seconds * 1e3,
            rate: Some(rate),
            limit_share: self.report.limits.least_seconds(&work).map(|least| least / seconds),
            launches: 0,
            waits: None,
            compile_ms: None,
            device_ms,
            predicted_ms: None,
            straight_ms: None,
            bytes: matches!(benchmark.subject, Subject::Effect(_)).then_some(work.bytes),
            fastest_ms: matches!(benchmark.subject, Subject::Effect(_))
                .then_some((times.fastest.as_secs_f64() * 1e3, peer_least)),
            peer: peer_time.and(self.compiler.as_ref()).map(Compiler::describe),
            peer_ms: peer_time.map(|time| time.as_secs_f64() * 1e3),
            others,
            straight: None,
        })
    }

    fn figures(&mut self) {
        let mut found = vec![];
        match figures::empty_launch(&self.device) {
            Ok(figure) => found.push(figure),
            Err(failure) => self.failed("empty_launch", &failure),
        }
        if let (Some(command), MachineKind::Cpu) = (&self.options.command, self.report.machine.kind) {
            match figures::scaling(command, &self.report.rows, self.scale.quick) {
                Ok(figures) => found.extend(figures),
                Err(failure) => self.failed("scaling", &failure),
            }
        }
        found.iter().for_each(|figure| (self.tell)(Event::Figure(figure)));
        self.report.figures.extend(found);
    }
}

/// What a peer in C++ is called.
const IN_CPP: &str = "C++";

fn is_near(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours - theirs).abs() <= tolerance * theirs.abs()
}
