//! NESL and VCODE programs. `broadloom run x.nesl` executes a NESL program form by form, as at the top level
//! of the language. `check` and `explain` also accept NESL programs.
//!
//! Answers go to standard output, errors and remarks to standard error. A form that fails does not stop the
//! program. The exit code reports that a form failed.

use crate::failure::{Exit, Failure, codes};
use crate::findings::FindingsReport;
use crate::input::{FileKind, Input};
use crate::launching::open;
use crate::options::{Check, Emit, Explain, LaunchOptions, Run};
use crate::terminal::Terminal;
use crate::watch::Watch;
use broadloom::cpu::signals::STOP;
use broadloom::device::{Device, StopReason};
use broadloom::diag::{Diagnostic, Diagnostics};
use broadloom::interp::Interp;
use broadloom::nesl::codes as codes_of_nesl;
use broadloom::nesl::eval::{self, System};
use broadloom::nesl::run::{Accelerator, Statistics, Target};
use broadloom::nesl::session::{Engine, Output, Session, Settings};
use broadloom::nesl::{machine, vcode};
use std::path::Path;

/// Reason for refusing the options of a launch.
const REFUSED: &str = "a NESL or VCODE program launches its own";

/// Returns the device for large vectors. A named device is opened at once, the default one on first use.
pub fn target(device: Option<&str>, terminal: &Terminal) -> Result<Target, Failure> {
    match device {
        Some(_) => {
            let device = open(device, false, terminal)?.device();
            Ok(on(device))
        }
        None => Ok(Target::new(|| broadloom::open("cpu").map_err(|error| error.to_string()))),
    }
}

/// Returns an open device as a target.
fn on(device: Device) -> Target {
    Target::new(move || Ok(device.clone()))
}

/// Returns the limits and number widths of a run.
pub fn widths(int: Option<&str>, float: Option<&str>) -> eval::Options {
    let mut limits = eval::Options { stop: Some(&STOP), ..eval::Options::default() };
    limits.widths.wide_int = int == Some("64");
    limits.widths.narrow_float = float == Some("32");
    limits
}

/// Runs a program.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    options.launch.refuse(REFUSED)?;
    let target = target(options.launch.device.as_deref(), terminal)?.with_precision(options.math.precision());
    let options_of_run = widths(options.int.as_deref(), options.float.as_deref());
    let settings = Settings { options: options_of_run, ..Settings::default() };
    let _watch = watch(&options.launch, terminal);
    let arguments: Vec<String> = options.more.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let (exit, _, statistics) = answer_with(file_of(&options.launch), &arguments, settings, Some(target), terminal)?;
    if options.stats {
        write_statistics(&statistics, terminal);
    }
    Ok(after_signal(exit))
}

/// Lets a signal stop the run, which then ends with the place and the function that it has reached.
fn watch(launch: &LaunchOptions, terminal: &Terminal) -> Option<Watch> {
    Watch::check(None, &format!("the run of `{}`", file_of(launch).display()), terminal)
}

/// Returns the exit code of a run, which a signal may have stopped.
fn after_signal(exit: Exit) -> Exit {
    match STOP.reason() {
        Some(StopReason::Signal(signal)) => Exit::stopped(signal),
        Some(StopReason::TimeLimit) | None => exit,
    }
}

fn file_of(launch: &LaunchOptions) -> &Path {
    launch.file.as_deref().unwrap_or(Path::new("-"))
}

/// Prints the statistics of the device.
fn write_statistics(statistics: &Statistics, terminal: &mut Terminal) {
    let Some(device) = &statistics.device else {
        return terminal.remark("no device was needed: all vectors were small");
    };
    let counts = format!(
        "device `{device}`: {} kernels, {} launches, {} plans for {} evaluations, {} waits",
        statistics.programs, statistics.launches, statistics.plans, statistics.evaluations, statistics.waits
    );
    terminal.remark(&counts);
    let milliseconds = statistics.waited.as_secs_f64() * 1e3;
    terminal.remark(&format!("{milliseconds:.1} ms to plan, to compile and to wait for the device"));
}

/// Executes a program with every operation on the checking interpreter, and reports the errors of its
/// kernels. A form that is stopped, or that reaches a limit, ends the check.
pub fn check(options: &Check, interp: &Interp, terminal: &mut Terminal) -> Result<Exit, Failure> {
    options.launch.refuse(REFUSED)?;
    let target = on(Device::new(interp.clone())).with_threshold(0);
    let file = file_of(&options.launch);
    let limits = eval::Options { ends_at_limit: true, ..widths(None, None) };
    let summary = |what: &str| format!("kernels of `{}`: {what}", file.display());
    if FileKind::of(file) == FileKind::Vcode {
        let (input, program) = read_vcode(file)?;
        let report = FindingsReport::new(file, options, interp);
        let ended = run_vcode_program(input, program, limits, target, terminal);
        let limit = ended.as_ref().err().and_then(|failure| limit(&failure.diagnostics));
        return report.end(ended.map(|(exit, _)| exit), limit, summary, terminal);
    }
    let report = FindingsReport::new(file, options, interp);
    let settings = Settings { options: limits, ..Settings::default() };
    let (exit, limit, _) = answer(file, settings, Some(target), terminal)?;
    report.end(Ok(exit), limit, summary, terminal)
}

/// Returns the description of the limit that a run has reached, if its errors name one.
fn limit(errors: &Diagnostics) -> Option<String> {
    let error = errors.iter().find(|error| codes_of_nesl::LIMITS.contains(&error.code))?;
    Some(format!("a limit: {}", error.message))
}

/// Writes the code to which a program is compiled, or the types of its forms, its VCODE and its kernels.
pub fn explain(options: &Explain, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let code = |engine| Settings { engine, options: widths(None, None), ..Settings::default() };
    let (file, device) = (options.file.as_path(), options.device.as_deref());
    match options.emit {
        Some(Emit::Vcode) => return Ok(answer(file, code(Engine::EmitVcode), None, terminal)?.0),
        Some(Emit::Flat) => return Ok(answer(file, code(Engine::EmitFlat), None, terminal)?.0),
        Some(Emit::Stage(_) | Emit::Cpu(_) | Emit::Dot | Emit::Kernels | Emit::Svg | Emit::KernelsSvg) => {
            let message = "this form is for PTX: a NESL program has the forms `flat`, `vcode` and `ptx`";
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("use --emit vcode")));
        }
        None | Some(Emit::Ptx) => {}
    }
    let target = target(device, terminal)?.with_threshold(0).explained();
    let (mut types, mut exit) = (String::new(), Exit::Done);
    let statistics = execute(
        file,
        &[],
        Settings { options: widths(None, None), ..Settings::default() },
        Some(target),
        |output| match output {
            Output::Result(binding) => types += &format!("  {} : {}\n", binding.name, binding.ty),
            Output::Error(report) => {
                exit = Exit::Failed;
                types += &report.text;
            }
            Output::Text(_) | Output::Note(_) | Output::Exit => {}
        },
    )?;
    if options.emit.is_some() {
        terminal.write(&statistics.ptx.join("\n"));
        return Ok(exit);
    }
    terminal.write(&format!("types\n{types}\nVCODE\n"));
    answer(file, code(Engine::EmitVcode), None, terminal)?;
    for (number, plan) in statistics.summaries.iter().enumerate() {
        terminal.write(&format!("\nplan {}: {plan}", number + 1));
    }
    Ok(exit)
}

/// Runs a VCODE program. Writes the remaining stack as vectors, the top of the stack last.
pub fn run_vcode(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    options.launch.refuse(REFUSED)?;
    let target = target(options.launch.device.as_deref(), terminal)?.with_precision(options.math.precision());
    let (input, program) = read_vcode(file_of(&options.launch))?;
    let _watch = watch(&options.launch, terminal);
    let limits = widths(options.int.as_deref(), options.float.as_deref());
    let ended = run_vcode_program(input, program, limits, target, terminal);
    let (exit, statistics) = ended.map_err(|failure| Failure { exit: after_signal(failure.exit), ..failure })?;
    if options.stats {
        write_statistics(&statistics, terminal);
    }
    Ok(exit)
}

/// Reads and verifies a VCODE program.
fn read_vcode(file: &Path) -> Result<(Input, vcode::Program), Failure> {
    let input = Input::read(file)?;
    let text = input.sources.get(input.id).map_or("", |source| source.text());
    match vcode::parse(input.id, text).and_then(|program| vcode::verify(&program).map(|_| program)) {
        Ok(program) => Ok((input, program)),
        Err(diagnostics) => Err(Failure { exit: Exit::Usage, diagnostics, sources: input.sources }),
    }
}

fn run_vcode_program(
    input: Input,
    program: vcode::Program,
    options: eval::Options,
    target: Target,
    terminal: &mut Terminal,
) -> Result<(Exit, Statistics), Failure> {
    let mut accelerator = Accelerator::new(target);
    let mut out = |bytes: &[u8]| terminal.write(&String::from_utf8_lossy(bytes));
    match machine::run_on(&program, options, &mut System, &mut out, Some(&mut accelerator)) {
        Ok(ended) => {
            terminal.write(&ended.stack.concat());
            Ok((Exit::Done, accelerator.statistics()))
        }
        Err(fault) => Err(Failure { exit: Exit::Failed, diagnostics: fault.diagnostic().into(), sources: input.sources }),
    }
}

/// Executes a file and writes the results. Also returns the limit that a form has reached.
fn answer(
    file: &Path,
    settings: Settings,
    target: Option<Target>,
    terminal: &mut Terminal,
) -> Result<(Exit, Option<String>, Statistics), Failure> {
    answer_with(file, &[], settings, target, terminal)
}

/// Executes a file with arguments of the program, as [`answer`] does.
fn answer_with(
    file: &Path,
    arguments: &[String],
    settings: Settings,
    target: Option<Target>,
    terminal: &mut Terminal,
) -> Result<(Exit, Option<String>, Statistics), Failure> {
    let (mut exit, mut reached) = (Exit::Done, None);
    let mut equal = EqualErrors::default();
    let statistics = execute(file, arguments, settings, target, |output| {
        if let Output::Error(report) = &output {
            exit = Exit::Failed;
            reached = reached.take().or_else(|| limit(&report.diagnostics));
            if equal.is_known(&report.diagnostics) {
                return;
            }
        }
        write_output(&output, terminal);
    })?;
    equal.write_counts(terminal);
    Ok((exit, reached, statistics))
}

/// Counts of errors with equal messages, in the order of their first form. [`Diagnostics::SAME`] are written.
#[derive(Default)]
struct EqualErrors(Vec<(String, usize)>);

impl EqualErrors {
    /// Counts the errors of a form. Returns true if enough equal ones were written.
    fn is_known(&mut self, errors: &Diagnostics) -> bool {
        let message = errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ");
        let known = self.0.iter().position(|(other, _)| *other == message).unwrap_or_else(|| {
            self.0.push((message, 0));
            self.0.len() - 1
        });
        let count = &mut self.0[known].1;
        *count += 1;
        *count > Diagnostics::SAME
    }

    /// Writes how many errors were not written.
    fn write_counts(&self, terminal: &mut Terminal) {
        for (message, count) in self.0.iter().filter(|(_, count)| *count > Diagnostics::SAME) {
            terminal.remark(&format!("{message}: and {} more like this", count - Diagnostics::SAME));
        }
    }
}

/// Starts a session on the files and the console of the machine.
pub fn session(settings: Settings, target: Option<Target>) -> Result<Session, Failure> {
    let session = match target {
        Some(target) => Session::with_device(settings, Box::new(System), target),
        None => Session::new(settings, Box::new(System)),
    };
    session.map_err(|error| {
        let message = format!("there is no thread for the program: {error}");
        Failure::new(Exit::Machine, Diagnostic::error(codes::OUT_OF_MEMORY, message))
    })
}

/// Writes one answer. Returns true if it is an error.
pub fn write_output(output: &Output, terminal: &mut Terminal) -> bool {
    match output {
        Output::Text(_) | Output::Result(_) => terminal.write(&output.to_string()),
        Output::Note(note) => terminal.remark(note),
        Output::Error(report) => terminal.remark(report.text.trim_end()),
        Output::Exit => {}
    }
    matches!(output, Output::Error(_))
}

/// Executes a file and passes the results on.
fn execute(
    file: &Path,
    arguments: &[String],
    settings: Settings,
    target: Option<Target>,
    take: impl FnMut(Output),
) -> Result<Statistics, Failure> {
    let input = Input::read(file)?;
    let mut session = session(settings, target)?;
    let text = input.sources.get(input.id).map_or("", |source| source.text());
    session.set_arguments(arguments);
    session.eval_each(input.name(), text, take);
    Ok(session.statistics())
}
