//! `broadloom run x.str`: a StreamIt program, on the host or, with `--device`, partly on a device.
//!
//! Output of the program goes to standard output, mistakes to standard error. A mistake in the text ends the
//! command with the exit code of a wrong call; a mistake that shows only in the run ends it with that of a
//! failed program.

use crate::failure::{Exit, Failure, codes};
use crate::input::Input;
use crate::launching::open;
use crate::options::{Emit, Explain, Run};
use crate::terminal::Terminal;
use broadloom::diag::Diagnostic;
use broadloom::stream::Program;
use broadloom::stream::compiled::Compiled;
use broadloom::stream::eval::{Host, Limits, Settings, System};
use std::path::Path;

/// Returns whether a file holds StreamIt, by its name.
pub fn is_program(file: Option<&Path>) -> bool {
    file.and_then(Path::extension).is_some_and(|extension| extension == "str")
}

/// Explains which filters of a program run where and why, or draws its graph.
pub fn explain(options: &Explain, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let mut printer = terminal.clone();
    let mut host = System(move |text: &str| printer.try_write(text));
    let program = compile(&[Input::read(&options.file)?], &mut host)?;
    let compiled = |terminal: &Terminal| -> Result<String, Failure> {
        let device = open(options.device.as_deref(), false, terminal)?.device();
        let compiled = Compiled::new(&program, &device).map_err(|error| failure(Exit::Machine, error))?;
        Ok(if options.emit == Some(Emit::Kernels) { compiled.to_dot() } else { compiled.explain() })
    };
    let text = match options.emit {
        None | Some(Emit::Kernels) => compiled(terminal)?,
        Some(Emit::Dot) => program.graph.to_dot(&program.core),
        Some(Emit::Ptx | Emit::Stage(_) | Emit::Cpu(_) | Emit::Vcode | Emit::Flat) => {
            let message = "this form is not for StreamIt programs; they have `dot` and `kernels`";
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
        }
    };
    terminal.write(&text);
    Ok(Exit::Done)
}

fn failure(exit: Exit, failure: broadloom::stream::Failure) -> Failure {
    Failure { exit, diagnostics: failure.diagnostics, sources: failure.sources }
}

/// Compiles the texts of a program.
fn compile(inputs: &[Input], host: &mut dyn Host) -> Result<Program, Failure> {
    let files: Vec<(&str, &str)> =
        inputs.iter().map(|input| (input.name(), input.sources.get(input.id).map_or("", |source| source.text()))).collect();
    Program::compile_files(&files, host, &Limits::default()).map_err(|error| failure(Exit::Usage, error))
}

/// Runs a program.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let launch = &options.launch;
    let given = [
        ("--kernel", launch.kernel.is_some()),
        ("--grid", launch.grid.is_some()),
        ("--block", launch.block.is_some()),
        ("--cluster", launch.cluster.is_some()),
        ("--arg", !launch.arguments.is_empty()),
        ("--shared", launch.shared != 0),
        ("--cooperative", launch.cooperative),
        ("--time-limit", launch.time_limit.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("{option} is for kernels: a StreamIt program says itself what runs");
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help(format!("leave {option} out"))));
    }
    let first = launch.file.as_deref().unwrap_or(Path::new("-"));
    let inputs = std::iter::once(first).chain(options.more.iter().map(AsRef::as_ref)).map(Input::read);
    let inputs = inputs.collect::<Result<Vec<Input>, Failure>>()?;
    let mut printer = terminal.clone();
    let mut host = System(move |text: &str| printer.try_write(text));
    let program = compile(&inputs, &mut host)?;
    let settings = Settings { iterations: options.iterations, limits: Limits::default(), style: None };
    let Some(device) = launch.device.as_deref() else {
        if options.stats {
            let message = "--stats tells how long sections took on a device, and none is named";
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("add --device")));
        }
        program.run(&mut host, &settings).map_err(|error| failure(Exit::Failed, error))?;
        return Ok(Exit::Done);
    };
    let device = open(Some(device), false, terminal)?.device();
    let compiled = Compiled::new(&program, &device).map_err(|error| failure(Exit::Machine, error))?;
    compiled.run(&mut host, &settings).map_err(|error| failure(Exit::Failed, error))?;
    if options.stats {
        compiled.report().lines().for_each(|line| terminal.remark(line));
    }
    Ok(Exit::Done)
}
