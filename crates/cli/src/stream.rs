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
use crate::options::{Check, Emit, Explain, Latency, Run, StreamFiles};
use crate::terminal::{Terminal, counted};
use broadloom::cpu::signals::STOP;
use broadloom::device::Device;
use broadloom::diag::Diagnostic;
use broadloom::interp::Interp;
use broadloom::stream::codes as codes_of_streams;
use broadloom::stream::compiled::{Compiled, Options};
use broadloom::stream::core::Type;
use broadloom::stream::eval::{Host, Limits, Settings, amend_file, create_file, file_item, open_file};
use broadloom::stream::format::{Decoder, FORMATS, Format};
use broadloom::stream::graph::NodeKind;
use broadloom::stream::picture::Picture;
use broadloom::stream::{Binding, Program};
use std::io;
use std::path::Path;
use std::time::Duration;

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
        open_file(path)
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn io::Write + Send>> {
        create_file(path)
    }

    fn amend(&mut self, path: &str, start: &[u8]) -> io::Result<bool> {
        amend_file(path, start)
    }

    fn has_file_threads(&self) -> bool {
        true
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
    let program = compile(&[Input::read(&options.file)?], &Binding::default(), &mut host)?;
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
    let too_large = |error: String| Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, error).help("take `--emit dot`"));
    picture.to_svg().map_err(|error| too_large(error.to_string()))
}

fn failure(exit: Exit, failure: broadloom::stream::Failure) -> Failure {
    Failure { exit, diagnostics: failure.diagnostics, sources: failure.sources }
}

/// Compiles the sources of a program.
fn compile(inputs: &[Input], binding: &Binding<'_>, host: &mut dyn Host) -> Result<Program, Failure> {
    let files: Vec<(&str, &str)> =
        inputs.iter().map(|input| (input.name(), input.sources.get(input.id).map_or("", |source| source.text()))).collect();
    Program::compile_bound(&files, binding, host, &limits()).map_err(|error| {
        let is_stopped = error.diagnostics.iter().any(|diagnostic| diagnostic.code == codes_of_streams::STOPPED);
        failure(if is_stopped { Exit::Failed } else { Exit::Usage }, error)
    })
}

/// Returns the limits of a program, which the time limit or a signal can stop.
fn limits() -> Limits {
    Limits { stop: Some(&STOP), ..Limits::default() }
}

/// Time that a run waits for its kernels before the evaluator begins.
const PATIENCE: Duration = Duration::from_millis(30);

/// Default number of steady states of a check.
const CHECKED: u64 = 10;

/// Runs a program with its kernels checked.
pub fn check(options: &Check, interp: &Interp, terminal: &mut Terminal) -> Result<Exit, Failure> {
    options.launch.refuse(REFUSED)?;
    let file = options.launch.file.as_deref().unwrap_or(Path::new("-"));
    let mut host = Console::new(terminal);
    let report = FindingsReport::new(file, options, interp);
    let program = match compile(&[Input::read(file)?], &Binding::default(), &mut host) {
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

/// Puts the files of the command line in place of those of a program.
fn bind(program: &mut Program, files: &StreamFiles) -> Result<(), Failure> {
    let parse = |text: &Option<String>| match text {
        None => Ok(Format::default()),
        Some(text) => Format::parse(text)
            .map_err(|error| Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, error.to_string()).help(FORMATS))),
    };
    let format = parse(&files.format)?;
    let formats = [format, if files.output_format.is_some() { parse(&files.output_format)? } else { format }];
    for (at, given) in [&files.input, &files.output].into_iter().enumerate() {
        let reads = at == 0;
        let own = |node: &NodeKind| match node {
            NodeKind::FileReader(_, own) if reads => Some(own.name.to_string()),
            NodeKind::FileWriter(_, own) if !reads => Some(own.name.to_string()),
            _ => None,
        };
        let names: Vec<String> = program.graph.nodes.values().filter_map(|node| own(&node.kind)).collect();
        let has_format = if reads { files.format.is_some() } else { files.output_format.is_some() };
        if given.is_empty() && (files.stream.is_some() || has_format) {
            // A stream in place of the top level stands between the standard input and output.
            let file = if files.stream.is_some() { "-" } else { names.first().map_or("", String::as_str) };
            program.bind_file(reads, None, file, formats[at]).map_err(|error| failure(Exit::Usage, error))?;
        }
        for text in given {
            let (name, file) = match text.split_once('=') {
                Some((name, file)) if names.iter().any(|own| own == name) => (Some(name), file),
                _ => (None, &**text),
            };
            program.bind_file(reads, name, file, formats[at]).map_err(|error| failure(Exit::Usage, error))?;
        }
    }
    Ok(())
}

/// Returns the rate of items that the header of a WAV file states. A pipe is not opened twice.
fn file_rate(name: &str, format: &Format, ty: &Type) -> Option<f64> {
    if !std::fs::metadata(name).is_ok_and(|file| file.is_file()) {
        return None;
    }
    Decoder::new(open_file(name).ok()?, name, format, file_item(ty)?).ok()?.rate()
}

/// Returns the steady states of a latency.
fn states_of(latency: Latency, program: &Program, files: &StreamFiles) -> Result<u64, Failure> {
    let usage = |message: &str, help: &str| Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help(help));
    if let Latency::States(states) = latency {
        return Ok(states);
    }
    // The first reader counts, or the first writer of a program that reads nothing.
    let ends = |reads: bool| {
        program.graph.nodes.iter().find_map(move |(id, node)| match &node.kind {
            NodeKind::FileReader(layout, file) if reads => Some((id, layout.ty(), file)),
            NodeKind::FileWriter(layout, file) if !reads => Some((id, layout.ty(), file)),
            _ => None,
        })
    };
    let Some((end, ty, file)) = ends(true).or_else(|| ends(false)) else {
        return Err(usage("the latency counts items of files, and the program has none", "give a number of iterations"));
    };
    let Some(schedule) = &program.schedule else { return Ok(1) };
    let items = match latency {
        Latency::States(states) => return Ok(states),
        Latency::Items(items) => items as f64,
        Latency::Seconds(seconds) => {
            let of_file = || file_rate(&file.name, &file.format, &ty).filter(|_| ends(true).is_some());
            let Some(rate) = files.rate.or_else(of_file).or(file.format.rate.map(f64::from)) else {
                let help = "add `--rate 48000`, with the items of the input in a second";
                return Err(usage("a latency in seconds needs the rate of the items", help));
            };
            seconds * rate
        }
    };
    Ok((items / schedule.repetition(end).max(1) as f64).max(1.0) as u64)
}

/// Runs a program.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let launch = &options.launch;
    launch.refuse(REFUSED)?;
    let first = launch.file.as_deref().unwrap_or(Path::new("-"));
    // `taps=64` is a value, `a=b.str` a file.
    let is_value = |word: &Path| word.extension().is_none_or(|ending| ending != "str") && word.to_string_lossy().contains('=');
    let (values, more): (Vec<&Path>, Vec<&Path>) = options.more.iter().map(AsRef::as_ref).partition(|word| is_value(word));
    let values: Vec<String> = values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let inputs = std::iter::once(first).chain(more).map(Input::read).collect::<Result<Vec<Input>, Failure>>()?;
    let mut host = Console::new(terminal);
    let binding = Binding { stream: options.files.stream.as_deref(), values: &values };
    let mut program = compile(&inputs, &binding, &mut host)?;
    bind(&mut program, &options.files)?;
    let latency = options.latency.map(|latency| states_of(latency, &program, &options.files)).transpose()?;
    let settings = Settings { iterations: options.iterations, limits: limits(), style: None };
    let Some(device) = launch.device.as_deref() else {
        let needed = [
            (options.stats, "--stats tells how long sections took on a device, and none is named"),
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
    let patience = (!options.stats).then_some(PATIENCE);
    let chosen = Options { latency, timed: options.stats, precision, patience, ..Options::default() };
    let compiled = Compiled::with(&program, &opened, chosen).map_err(|error| failure(Exit::Machine, error))?;
    compiled.run(&mut host, &settings).map_err(|error| failure(Exit::Failed, error))?;
    host.report(&program, terminal);
    if options.stats {
        compiled.report().lines().for_each(|line| terminal.remark(line));
    }
    Ok(Exit::Done)
}
