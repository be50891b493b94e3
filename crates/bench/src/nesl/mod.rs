//! The groups `nesl` and `nesl_programs`: functions of NESL programs, compiled once and called with arrays of
//! the device.
//!
//! A benchmark of the group `nesl` has peers: the same algorithm in C++ with OpenMP (`peers/nesl_NAME.cpp`,
//! or the peer of a kernel with the same job), and for ragged data Awkward Array. Floats have 32 bits, as in
//! the peers, which are compiled for fast arithmetic. Contests use the functions of the hardware too, except
//! for `black_scholes`, which is accurate. `black_scholes_fast` is the same program with hardware functions.
//!
//! The group `nesl_programs` is `problem(n)` of every program of `examples/nesl`, which makes its inputs and
//! checks its result itself.
//!
//! A repetition of either group has a time limit ([`LIMIT`]). A repetition beyond it is stopped and gives no
//! figure.

mod contests;
mod front;
mod programs;
mod ragged;

pub(crate) use contests::ALL;
pub(crate) use front::{NAME as FRONT_NAME, run as run_front};
pub(crate) use programs::{Example, PROGRAMS, run as run_program};

use crate::benchmark::{PreparedJob, Setup, Subject};
use crate::error::Failure;
use crate::job::{Job, Work};
use broadloom::array::{Element, Precision};
use broadloom::device::{Device, Stop};
use broadloom::graph::Node;
use broadloom::nesl::eval::Options;
use broadloom::nesl::run::{Statistics, Target};
use broadloom::nesl::{Column, Pending, Program};
use broadloom::{Array, Context};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Time limit of a repetition.
const LIMIT: Duration = Duration::from_secs(60);

/// A function of a program, and a flag that stops its calls.
struct CompiledFunction {
    program: Program,
    stop: &'static Stop,
    /// Takes a message when a call begins and another when it ends.
    clock: Sender<()>,
}

/// Starts a thread that sets the flag when a call exceeds the time limit. The thread ends with its sender.
fn clock(stop: &'static Stop) -> Sender<()> {
    let (sender, calls) = channel();
    std::thread::spawn(move || {
        while calls.recv().is_ok() {
            if calls.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                stop.request_by_time_limit();
                let _ = calls.recv();
            }
        }
    });
    sender
}

impl CompiledFunction {
    /// Compiles a function of a program. Floats have 32 bits if there is a precision for them, else 64.
    fn new(device: &Device, text: &str, function: &str, narrow: Option<Precision>) -> Result<Self, Failure> {
        // The flags of all programs of a run are leaked; there are only a few.
        let stop: &'static Stop = Box::leak(Box::default());
        let mut options = Options { stop: Some(stop), max_bytes: 64 << 30, max_steps: u64::MAX, ..Options::default() };
        options.widths.narrow_float = narrow.is_some();
        let device = device.clone();
        let target = Target::new(move || Ok(device.clone())).with_precision(narrow.unwrap_or_default());
        let program = Program::new(text, function, options, target).map_err(|failure| Failure::Outside(failure.0))?;
        Ok(CompiledFunction { program, stop, clock: clock(stop) })
    }

    /// Calls the function and waits for its results, within the time limit.
    fn call(&mut self, arguments: &[Column]) -> Result<Vec<Column>, Failure> {
        self.stop.clear();
        // The clock counts the calls that begin and end. Sending fails if its thread is gone.
        let _ = self.clock.send(());
        let results = self.program.call(arguments);
        let _ = self.clock.send(());
        let results = self.name_time_limit(results)?;
        evaluate(&results)?;
        Ok(results)
    }

    /// Begins a call, within the time limit. Results on the device may still be pending when it returns.
    fn submit(&mut self, arguments: &[Column]) -> Result<Pending, Failure> {
        self.stop.clear();
        let _ = self.clock.send(());
        let pending = self.program.submit(arguments);
        let _ = self.clock.send(());
        let pending = self.name_time_limit(pending)?;
        evaluate(pending.results().unwrap_or_default())?;
        Ok(pending)
    }

    /// Returns the results of a call, or its error.
    fn finish(&mut self, pending: Pending) -> Result<Vec<Column>, Failure> {
        self.program.finish(pending).map_err(|failure| Failure::Outside(failure.0))
    }

    /// Names the time limit in the error of a stopped call.
    fn name_time_limit<T>(&self, result: Result<T, broadloom::nesl::program::Failure>) -> Result<T, Failure> {
        result.map_err(|failure| {
            let late = self.stop.is_requested();
            Failure::Outside(if late { format!("stopped at the time limit of {LIMIT:?}") } else { failure.0 })
        })
    }

    /// Returns the counters of the device.
    fn statistics(&mut self) -> Statistics {
        self.program.statistics()
    }

    /// Returns the context of the device.
    fn context(&mut self) -> Result<Context, Failure> {
        self.program.context().map_err(|failure| Failure::Outside(failure.0))
    }
}

/// Launches the remaining computations of results on the device.
fn evaluate(results: &[Column]) -> Result<(), Failure> {
    let nodes: Vec<Node> = results.iter().filter_map(node_of).cloned().collect();
    match nodes.first() {
        Some(first) => first.context().evaluate(&nodes).map_err(outside_failure),
        None => Ok(()),
    }
}

fn node_of(column: &Column) -> Option<&Node> {
    match column {
        Column::Device(node) => Some(node),
        Column::Ints(_) | Column::Floats(_) | Column::Bools(_) => None,
    }
}

fn outside_failure(error: impl std::fmt::Display) -> Failure {
    Failure::Outside(error.to_string())
}

/// Uploads a line of numbers: floats of 32 bits, ints, or offsets of 64 bits.
fn line<T: Element>(context: &Context, values: &[T]) -> Result<Column, Failure> {
    Ok(Column::Device(Array::line(context, values)?.node().clone()))
}

/// Returns the numbers of a column.
fn numbers(column: &Column) -> Result<Vec<f64>, Failure> {
    match column {
        Column::Ints(values) => Ok(values.iter().map(|&value| value as f64).collect()),
        Column::Floats(values) => Ok(values.clone()),
        Column::Bools(values) => Ok(values.iter().map(|&value| f64::from(u8::from(value))).collect()),
        Column::Device(node) => {
            let array = node.read().map_err(outside_failure)?;
            Ok(array
                .lanes
                .iter()
                .map(|lane| lane.as_f64().or(lane.as_i128().map(|value| value as f64)).unwrap_or(f64::NAN))
                .collect())
        }
    }
}

type MakeArguments = Box<dyn Fn(&Context) -> Result<Vec<Column>, Failure>>;
type ContestJudge = Box<dyn Fn(&[Vec<f64>]) -> Result<f64, Failure>>;

/// A benchmark of the group: a text with the function `contest`, its arguments, and the judge of its results.
struct Contest {
    text: String,
    /// The precision of floats.
    precision: Precision,
    work: Work,
    arguments: MakeArguments,
    /// Compares the columns of a result with the reference and returns their checksum.
    judge: ContestJudge,
}

/// Contest that is ready to run on a device.
struct CompiledContest {
    job: Job,
    function: Rc<RefCell<CompiledFunction>>,
}

/// Compiles the function `contest` of a benchmark and moves its arguments to the device.
fn compile(device: &Device, contest: Contest) -> Result<CompiledContest, Failure> {
    let Contest { text, precision, work, arguments, judge } = contest;
    let mut function = CompiledFunction::new(device, &text, "contest", Some(precision))?;
    let arguments = arguments(&function.context()?)?;
    let function = Rc::new(RefCell::new(function));
    let last: Rc<RefCell<Option<Pending>>> = Rc::default();
    let (again, finished, pending) = (function.clone(), function.clone(), last.clone());
    let repetition = move || {
        let begun = again.borrow_mut().submit(&arguments)?;
        *last.borrow_mut() = Some(begun);
        Ok(())
    };
    // A failed condition stays recorded in the template, so the last call reports the failures of all calls.
    let results: RefCell<Vec<Column>> = RefCell::default();
    let judge = move |_| {
        if let Some(pending) = pending.borrow_mut().take() {
            *results.borrow_mut() = finished.borrow_mut().finish(pending)?;
        }
        judge(&results.borrow().iter().map(numbers).collect::<Result<Vec<_>, _>>()?)
    };
    Ok(CompiledContest { job: Job::new(work, judge).expression(repetition), function })
}

/// Function that makes the contest of a size.
struct NeslFunction(fn(usize) -> Contest);

impl Subject for NeslFunction {
    fn prepare(&self, setup: &Setup, tiny: usize, size: usize) -> Result<PreparedJob, Failure> {
        // Kernels are compiled for a tiny problem, as far as a large one needs the same kernels.
        let start = Instant::now();
        let tiny = compile(&setup.device, (self.0)(tiny))?;
        let first = start.elapsed() + setup.repetition(&tiny.job)?;
        let again = setup.repetition(&tiny.job)?;
        let CompiledContest { job, function } = compile(&setup.device, (self.0)(size))?;
        setup.repetition(&job)?;
        let before = function.borrow_mut().statistics();
        setup.repetition(&job)?;
        let after = function.borrow_mut().statistics();
        let prepared = PreparedJob::new(job, after.launches - before.launches, first.saturating_sub(again));
        Ok(PreparedJob { waits: Some(after.waits - before.waits), ..prepared })
    }
}

/// Fails if a number differs too much from the reference.
fn near(name: &str, got: f64, want: f64, relative: f64, absolute: f64) -> Result<(), Failure> {
    // Written so that NaN fails.
    if (got - want).abs() <= relative * want.abs() + absolute {
        return Ok(());
    }
    Err(Failure::Wrong(format!("{name} is {got}, the reference says {want}")))
}
