//! StreamIt programs. `broadloom run x.str` runs a program on the host or, with `--device`, partly on a
//! device. `broadloom check x.str` runs it with its kernels checked.
//!
//! Output of the program goes to standard output, errors to standard error. An error in the source ends the
//! command with the exit code of a usage error. An error at run time ends it with the exit code of a failed
//! program.

use crate::failure::{Exit, Failure, codes};
use crate::findings::FindingsReport;
use crate::input::Input;
use crate::launching::open;
use crate::options::{Check, Emit, Explain, Run};
use crate::terminal::{Terminal, counted};
use broadloom::cpu::signals::STOP;
use broadloom::device::Device;
use broadloom::diag::Diagnostic;
use broadloom::interp::Interp;
use broadloom::stream::Program;
use broadloom::stream::codes as codes_of_streams;
use broadloom::stream::compiled::{Compiled, Options};
use broadloom::stream::eval::{Host, Limits, Settings};
use broadloom::stream::picture::Picture;
use std::fs::File;
use std::io;
use std::path::Path;

/// The host of programs in the command: the files of this machine, the standard output, and a list of warnings.
struct Console {
    terminal: Terminal,
    warnings: Vec<Diagnostic>,
}

impl Console {
    fn new(terminal: &Terminal) -> Console {
        Console { terminal: terminal.clone(), warnings: vec![] }
    }

    /// Writes the warnings about a run to standard error.
    fn report(self, program: &Program, terminal: &mut Terminal) {
        self.warnings.iter().for_each(|warning| terminal.diagnostic(&program.sources, warning));
    }
}

impl Host for Console {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.terminal.try_write(text)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn io::Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn io::Write + Send>> {
        Ok(Box::new(File::create(path)?))
    }

    fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }
}

/// Reason for refusing the options of a launch.
const REFUSED: &str = "a StreamIt program says itself what runs";

/// Explains where each filter of a program runs and why, or draws its graph.
pub fn explain(options: &Explain, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let mut host = Console::new(terminal);
    let program = compile(&[Input::read(&options.file)?], &mut host)?;
    let compiled = |terminal: &Terminal| -> Result<String, Failure> {
        let device = open(options.device.as_deref(), false, terminal)?.device();
        let prefetch = options.prefetch.wish();
        let chosen = Options { precision: options.math.precision(), prefetch, ..Options::default() };
        let compiled = Compiled::with(&program, &device, chosen).map_err(|error| failure(Exit::Machine, error))?;
        match options.emit {
            Some(Emit::Kernels) => Ok(compiled.to_dot()),
            Some(Emit::KernelsSvg) => svg(&compiled.picture()),
            Some(Emit::Ptx) => compiled.ptx().map_err(|error| failure(Exit::Machine, error)),
            _ => Ok(compiled.explain()),
        }
    };
    let text = match options.emit {
        None | Some(Emit::Kernels | Emit::KernelsSvg | Emit::Ptx) => compiled(terminal)?,
        Some(Emit::Svg) => svg(&program.graph.picture())?,
        Some(Emit::Dot) => program.graph.to_dot(&program.core),
        Some(Emit::Stage(_) | Emit::Cpu(_) | Emit::Vcode | Emit::Flat) => {
            let message = "this form is not for StreamIt programs; they have `ptx`, `dot`, `kernels`, `svg` and `kernels-svg`";
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
        }
    };
    terminal.write(&text);
    Ok(Exit::Done)
}

/// Draws a picture. Fails for a graph that is too large, with a hint to use `--emit dot`.
fn svg(picture: &Picture) -> Result<String, Failure> {
    let too_large = |message: String| Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("take `--emit dot`"));
    picture.to_svg().map_err(too_large)
}

fn failure(exit: Exit, failure: broadloom::stream::Failure) -> Failure {
    Failure { exit, diagnostics: failure.diagnostics, sources: failure.sources }
}

/// Compiles the sources of a program.
fn compile(inputs: &[Input], host: &mut dyn Host) -> Result<Program, Failure> {
    let files: Vec<(&str, &str)> =
        inputs.iter().map(|input| (input.name(), input.sources.get(input.id).map_or("", |source| source.text()))).collect();
    Program::compile_files(&files, host, &limits()).map_err(|error| {
        let is_stopped = error.diagnostics.iter().any(|diagnostic| diagnostic.code == codes_of_streams::STOPPED);
        failure(if is_stopped { Exit::Failed } else { Exit::Usage }, error)
    })
}

/// Returns the limits of a program, which the time limit or a signal can stop.
fn limits() -> Limits {
    Limits { stop: Some(&STOP), ..Limits::default() }
}

/// Default number of steady states of a check.
const CHECKED: u64 = 10;

/// Runs a program with its kernels checked.
pub fn check(options: &Check, interp: &Interp, terminal: &mut Terminal) -> Result<Exit, Failure> {
    options.launch.refuse(REFUSED)?;
    let file = options.launch.file.as_deref().unwrap_or(Path::new("-"));
    let mut host = Console::new(terminal);
    let report = FindingsReport::new(file, options, interp);
    let program = match compile(&[Input::read(file)?], &mut host) {
        Err(failure) if STOP.is_requested() => {
            return report.end(Err(failure), None, |what| format!("`{}`: {what}", file.display()), terminal);
        }
        compiled => compiled?,
    };
    let (device, chosen) = (Device::new(interp.clone()), Options { precision: options.math.precision(), ..Options::default() });
    let compiled = Compiled::with(&program, &device, chosen).map_err(|error| failure(Exit::Machine, error))?;
    let iterations = options.iterations.unwrap_or(CHECKED);
    let outcome = compiled.run(&mut host, &Settings { iterations: Some(iterations), limits: limits(), style: None });
    let (kernels, states) = (compiled.summary().kernels, compiled.statistics().states);
    let count = counted(kernels as u64, "kernel");
    let has_ended = outcome.is_ok();
    let summary = |what: &str| match (kernels, states) {
        (0, _) if has_ended => {
            format!("`{}`: nothing was checked: the program has no kernels, all filters run on the host", file.display())
        }
        (_, 0) if has_ended => {
            format!("`{}`: nothing was checked: {count} did not run for a single steady state", file.display())
        }
        _ => format!("`{}`: {what} in {count}, watched for {}", file.display(), counted(states, "steady state")),
    };
    let limit = outcome.as_ref().err().and_then(|failure| {
        let error = failure.diagnostics.iter().find(|error| codes_of_streams::LIMITS.contains(&error.code))?;
        Some(format!("a limit: {}", error.message))
    });
    let has_checked = states > 0 || kernels == 0;
    let exit = if has_checked { Exit::Done } else { Exit::Failed };
    let ended = outcome.map(|_| exit).map_err(|error| failure(Exit::Failed, error));
    host.report(&program, terminal);
    report.end(ended, limit, summary, terminal)
}

/// Runs a program.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let launch = &options.launch;
    launch.refuse(REFUSED)?;
    let first = launch.file.as_deref().unwrap_or(Path::new("-"));
    let inputs = std::iter::once(first).chain(options.more.iter().map(AsRef::as_ref)).map(Input::read);
    let inputs = inputs.collect::<Result<Vec<Input>, Failure>>()?;
    let mut host = Console::new(terminal);
    let program = compile(&inputs, &mut host)?;
    let settings = Settings { iterations: options.iterations, limits: limits(), style: None };
    let Some(device) = launch.device.as_deref() else {
        let needed = [
            (options.stats, "--stats tells how long sections took on a device, and none is named"),
            (options.latency.is_some(), "--latency bounds the launches on a device, and none is named"),
            (options.math.is_given(), "--math is for floats on a device, and none is named"),
        ];
        if let Some((_, message)) = needed.into_iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("add --device")));
        }
        program.run(&mut host, &settings).map_err(|error| failure(Exit::Failed, error))?;
        host.report(&program, terminal);
        return Ok(Exit::Done);
    };
    let opened = open(Some(device), false, terminal)?.device();
    let precision = options.math.precision();
    let chosen = Options { latency: options.latency, timed: options.stats, precision, ..Options::default() };
    let compiled = Compiled::with(&program, &opened, chosen).map_err(|error| failure(Exit::Machine, error))?;
    compiled.run(&mut host, &settings).map_err(|error| failure(Exit::Failed, error))?;
    host.report(&program, terminal);
    if options.stats {
        compiled.report().lines().for_each(|line| terminal.remark(line));
    }
    Ok(Exit::Done)
}
