//! The benchmarks behind `broadloom bench`.
//!
//! - `kernels`: kernels in CUDA C++, each against the same job in C++ with OpenMP;
//! - `arrays`: expressions of whole arrays, each against the same job in C++ with OpenMP;
//! - `effects`: image effects, optimised and in straight translation, each against the same job in C++ with
//!   OpenMP;
//! - `streams`: StreamIt programs, each against the same job in C++ with OpenMP and against its straight
//!   translation;
//! - `segments`: segmented operations, compared with the whole line;
//! - `overhead`: the host overhead of array expressions;
//! - `nesl`: functions of NESL programs, each against the same algorithm in C++ with OpenMP, ragged ones
//!   against Awkward Array too;
//! - `nesl_programs`: the programs of `examples/nesl`;
//! - `compile`: the time to compile the kernels of the corpus on a device;
//! - `start`: the time of the command from its start to the result of a small kernel and of a NESL program,
//!   and the time to compile a NESL program;
//! - `interp`: thread-instructions per second of the interpreter.
//!
//! Invariants:
//! - Times of Broadloom and of the peers come from the same run, by turns.
//! - A result that differs from the reference, or a checksum that differs from the peer's, is a failure and
//!   gives no figure.
//! - A value that was not measured is absent, never invented.
//! - Nothing here prints: rows are reported as they come.

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

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Groups, benchmarks, or `GROUP/BENCHMARK`. Empty means all.
    pub names: Vec<String>,
    /// The device. By default the first one of this machine.
    pub device: Option<String>,
    /// Runs tiny sizes once, as a functional test without figures.
    pub quick: bool,
    /// Runs without peers.
    pub no_peers: bool,
    /// A Python interpreter. Its libraries become peers too.
    pub python: Option<PathBuf>,
    /// The size of benchmarks with a peer. By default their own.
    pub size: Option<usize>,
    /// Enables prefetch in stream programs where possible. By default the cost model decides.
    pub prefetch: Option<bool>,
    /// A folder for traces: `NAME.json` for each benchmark that has a peer.
    pub trace: Option<PathBuf>,
    /// The folder of compiled peers. By default the cache folder.
    pub peer_folder: Option<PathBuf>,
    /// The `broadloom` command, for figures that need a separate process. Without it these figures are left
    /// out.
    pub command: Option<PathBuf>,
}

/// A progress report.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A benchmark is done.
    Row(&'a Row),
    /// A figure of the device is available.
    Figure(&'a Figure),
    /// A remark about the figures.
    Remark(String),
    /// A benchmark gave no figure: its name, and the reason.
    Failed(&'a str, String),
}

/// Runs the selected benchmarks in sequence.
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
    // The device itself measures the values that are not measured here.
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

/// Returns the size of the host's last-level cache, or a large guess if it is not known.
fn cache_bytes() -> u64 {
    machines().iter().find(|machine| machine.kind == MachineKind::Cpu).and_then(|machine| machine.cache_bytes).unwrap_or(64 << 20)
}

/// Parses and verifies a kernel's text.
fn parse(name: &str, text: &str) -> Result<Arc<ptx::Verified>, Failure> {
    let mut sources = Sources::new();
    let id = sources.add(format!("{name}.ptx"), text);
    let module = ptx::parse(&sources, id).and_then(ptx::verify);
    module.map(Arc::new).map_err(|wrong| Failure::Module(sources.render_all(&wrong)))
}

/// Loads a kernel's text on a device.
fn load(device: &Device, name: &str, text: &str) -> Result<Module, Failure> {
    Ok(device.load(&parse(name, text)?)?)
}

/// A benchmark that is ready on the device.
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

    /// Finds the compiler for peers and measures the limits of the host.
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
            // A quick run measures nothing.
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
        // Peers are started first, so that they prepare their inputs meanwhile.
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
        // A first launch on tiny inputs does the remaining one-time work. Its own cost is negligible.
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
        // The peers are compiled with fast arithmetic too.
        let context = Context::with_precision(&self.device, Precision::Fast);
        // Planning and compilation happen on tiny arrays. The code serves all sizes.
        let tiny = ready(&context, tiny)?;
        let first = measure::repetition(&self.device, &tiny)?;
        let again = measure::repetition(&self.device, &tiny)?;
        let compile_ms = first.saturating_sub(again).as_secs_f64() * 1e3;
        let job = ready(&context, size)?;
        let before = context.statistics().kernels;
        measure::repetition(&self.device, &job)?;
        let launches = context.statistics().kernels - before;
        // A quick run measures nothing.
        let predicted_ms = if self.scale.quick { None } else { job.predicted_ms(&self.device.measured_machine())? };
        Ok(Ready { job, launches, waits: None, compile_ms, predicted_ms, straight_ms: None })
    }

    /// Prepares an effect, and measures its straight translation.
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
        // Kernels are compiled for a tiny problem, as far as a large one needs the same kernels.
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
        // One-time work of the first launch.
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

    /// Returns the milliseconds that a GPU works for a repetition.
    fn device_ms(&self, job: &Job) -> Result<Option<f64>, Failure> {
        let is_gpu = self.report.machine.kind == MachineKind::Cuda && !self.scale.quick;
        Ok(if is_gpu { measure::device_time(&self.device, job)?.map(|time| time.as_secs_f64() * 1e3) } else { None })
    }

    /// Reports why a peer gives no figure.
    fn without(&mut self, benchmark: &Benchmark, peer: &str, reason: &str) {
        (self.tell)(Event::Remark(format!("{}: no peer in {peer}: {reason}", benchmark.name)));
    }

    /// Runs a job and its peers by turns and compares their results.
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

/// The display name of peers in C++.
const IN_CPP: &str = "C++";

fn is_near(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours - theirs).abs() <= tolerance * theirs.abs()
}
