//! The benchmarks behind `broadloom bench`.
//!
//! - `kernels`: kernels in CUDA C++, each against the same job in C++ with OpenMP;
//! - `arrays`: expressions of whole arrays, each against the same job in C++ with OpenMP;
//! - `programs`: programs as users write them, which nobody tuned, most against a plain parallel loop in C++;
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
mod group;
mod inputs;
mod interp;
mod job;
mod kernels;
mod limits;
mod measure;
mod module;
mod nesl;
mod overhead;
mod peer;
mod programs;
mod python;
mod report;
mod segments;
mod start;
mod streams;

pub use catalogue::groups;
pub use error::{Error, Failure};
pub use limits::Limits;
pub use report::{Figure, Rate, Report, Row, StraightTimes};

use benchmark::{Benchmark, PreparedJob, Setup};
use broadloom::device::MachineKind;
use broadloom::{machines, open};
use catalogue::{Entry, Selection};
use job::{Job, Scale, Unit};
use peer::{Compiler, Peer, PeerError};
use python::Python;
use std::path::PathBuf;

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
    let setup = Setup { device, scale, prefetch: options.prefetch };
    let mut run = Run { options, setup, compiler: None, python: None, report, tell };
    run.run_all(&selection);
    Ok(run.report)
}

/// Returns the size of the host's last-level cache, or a large guess if it is not known.
fn cache_bytes() -> u64 {
    machines().iter().find(|machine| machine.kind == MachineKind::Cpu).and_then(|machine| machine.cache_bytes).unwrap_or(64 << 20)
}

/// A run of benchmarks.
struct Run<'a> {
    options: &'a Options,
    setup: Setup,
    compiler: Option<Compiler>,
    python: Option<Python>,
    report: Report,
    tell: &'a mut dyn FnMut(Event<'_>),
}

impl Run<'_> {
    fn run_all(&mut self, selection: &Selection) {
        if selection.entries.iter().any(|entry| matches!(entry, Entry::Contest(_))) {
            self.find_peers_and_limits();
        }
        for &entry in &selection.entries {
            let outcome = match entry {
                Entry::Contest(benchmark) => self.contest(benchmark).map(|row| vec![row]),
                Entry::Interp(benchmark) => interp::run(benchmark, self.options.quick).map(|row| vec![row]),
                Entry::Compile => match &self.options.command {
                    Some(command) => figures::compile_apart(command, &self.report.machine.id),
                    None => compile::run(&self.setup.device),
                },
                Entry::NeslProgram(example) => {
                    nesl::run_program(example, &self.setup.device, self.setup.scale.quick).map(|row| vec![row])
                }
                Entry::NeslFront => nesl::run_front(self.options.command.as_deref(), &self.report.machine.id, self.options.quick),
                Entry::Overhead => overhead::run(&self.setup.device, self.options.quick),
                Entry::Segments => segments::run(&self.setup.device, self.setup.scale.quick),
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
                Err(failure) => self.report_failure(entry.name(), &failure),
            }
        }
        if selection.with_figures {
            self.figures();
        }
    }

    fn report_failure(&mut self, name: &str, failure: &Failure) {
        let reason = failure.to_string();
        (self.tell)(Event::Failed(name, reason.clone()));
        self.report.failures.push((name.to_owned(), reason));
    }

    /// Finds the compiler for peers and measures the limits of the host.
    fn find_peers_and_limits(&mut self) {
        if !self.options.no_peers {
            match Compiler::find(self.options.peer_folder.as_deref()) {
                Ok(compiler) => {
                    (self.tell)(Event::Remark(format!("peer: {} ({})", compiler.describe(), compiler.version)));
                    self.compiler = Some(compiler);
                }
                Err(error) => (self.tell)(Event::Remark(format!("no peer: {error}"))),
            }
        }
        if let Some(interpreter) = &self.options.python {
            let folder = self.options.peer_folder.clone().unwrap_or_else(peer::cache_folder);
            match Python::find(interpreter, &folder) {
                Ok(python) => {
                    (self.tell)(Event::Remark(format!("Python: {}", python.describe())));
                    self.python = Some(python);
                }
                Err(error) => (self.tell)(Event::Remark(format!("no Python: {error}"))),
            }
        }
        let machine = &self.report.machine;
        self.report.limits = match machine.kind {
            // A quick run measures nothing.
            _ if self.setup.scale.quick => Limits::default(),
            MachineKind::Cpu | MachineKind::Interp => Limits::measure(self.setup.scale, self.compiler.as_ref()),
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
        let size = self.options.size.unwrap_or_else(|| (benchmark.size)(self.setup.scale));
        // Peers are started first, so that they prepare their inputs meanwhile.
        let compiler = self.compiler.as_ref().filter(|_| !benchmark.peer.is_empty());
        let in_cpp = compiler.map(|compiler| compiler.start(benchmark.name, benchmark.peer, size));
        let by_libraries: Vec<_> = match &self.compiler {
            Some(compiler) if benchmark.group == group::STREAMS => {
                let others = streams::LIBRARY_PEERS.iter().filter(|other| other.benchmark == benchmark.name);
                others
                    .map(|other| (other.name.to_owned(), compiler.start_with(other.file, other.peer, other.flags, size)))
                    .collect()
            }
            _ => vec![],
        };
        let in_python = match &self.python {
            Some(python) if GROUPS_IN_PYTHON.contains(&benchmark.group) => {
                python.start(benchmark.name, size, self.setup.scale.gpu && benchmark.group == group::PROGRAMS)
            }
            _ => vec![],
        };
        let tiny = (benchmark.size)(Scale { quick: true, ..self.setup.scale });
        let prepared = benchmark.subject.prepare(&self.setup, tiny, size)?;
        let mut peers = vec![];
        for (name, peer) in in_cpp.map(|peer| (IN_CPP.to_owned(), peer)).into_iter().chain(by_libraries).chain(in_python) {
            match peer {
                Ok(peer) => peers.push((name, peer)),
                Err(error) => self.report_missing_peer(benchmark, &name, &error),
            }
        }
        let row = self.measure_against_peers(benchmark, (benchmark.shown)(size), peers, &prepared.job)?;
        let PreparedJob { job, launches, waits, compile_ms, predicted_ms, straight_ms } = prepared;
        // The memory of the job is free before the straight translation is made.
        drop(job);
        let straight = benchmark.subject.straight(&self.setup, size)?;
        Ok(Row { launches, waits, compile_ms: Some(compile_ms), predicted_ms, straight_ms, straight, ..row })
    }

    /// Reports why a peer gives no figure.
    fn report_missing_peer(&mut self, benchmark: &Benchmark, peer: &str, error: &PeerError) {
        (self.tell)(Event::Remark(format!("{}: no peer in {peer}: {error}", benchmark.name)));
    }

    /// Runs a job and its peers by turns and compares their results.
    fn measure_against_peers(
        &mut self,
        benchmark: &Benchmark,
        size: String,
        peers: Vec<(String, Peer)>,
        job: &Job,
    ) -> Result<Row, Failure> {
        let (names, mut peers): (Vec<String>, Vec<Peer>) = peers.into_iter().unzip();
        let times = measure::by_turns(&self.setup.device, job, &mut peers, self.setup.effort())?;
        let verdict = job.judge(times.repetitions)?;
        if let Some(folder) = &self.options.trace
            && let Err(error) = measure::write_trace(&self.setup.device, job, &folder.join(format!("{}.json", benchmark.name)))?
        {
            (self.tell)(Event::Remark(format!("{}: no trace: {error}", benchmark.name)));
        }
        let device_ms = self.setup.device_ms(job)?;
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
                Err(error) => self.report_missing_peer(benchmark, &name, &error),
            }
        }
        let work = job::Work { operations: verdict.operations.unwrap_or(job.work.operations), ..job.work };
        let seconds = times.ours.as_secs_f64().max(1e-9);
        let rate = match work.unit {
            Unit::Bytes => Rate::Gbps(work.bytes / seconds / 1e9),
            Unit::Operations => Rate::Gflops(work.operations / seconds / 1e9),
        };
        let is_effect = benchmark.group == group::EFFECTS;
        Ok(Row {
            ms: seconds * 1e3,
            rate: Some(rate),
            limit_share: self.report.limits.least_seconds(&work).map(|least| least / seconds),
            device_ms,
            bytes: is_effect.then_some(work.bytes),
            fastest_ms: is_effect.then_some((times.fastest.as_secs_f64() * 1e3, peer_least)),
            peer: peer_time.and(self.compiler.as_ref()).map(Compiler::describe),
            peer_ms: peer_time.map(|time| time.as_secs_f64() * 1e3),
            others,
            ..Row::timed(benchmark.group, benchmark.name, size, self.report.machine.id.clone(), times.ours)
        })
    }

    fn figures(&mut self) {
        let mut found = vec![];
        match figures::empty_launch(&self.setup.device) {
            Ok(figure) => found.push(figure),
            Err(failure) => self.report_failure("empty_launch", &failure),
        }
        if let (Some(command), MachineKind::Cpu) = (&self.options.command, self.report.machine.kind) {
            match figures::scaling(command, &self.report.rows, self.setup.scale.quick) {
                Ok(figures) => found.extend(figures),
                Err(failure) => self.report_failure("scaling", &failure),
            }
        }
        found.iter().for_each(|figure| (self.tell)(Event::Figure(figure)));
        self.report.figures.extend(found);
    }
}

/// Groups that have peers in Python.
const GROUPS_IN_PYTHON: [&str; 4] = [group::ARRAYS, group::PROGRAMS, group::EFFECTS, group::NESL];

/// The display name of peers in C++.
const IN_CPP: &str = "C++";

fn is_near(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours - theirs).abs() <= tolerance * theirs.abs()
}
