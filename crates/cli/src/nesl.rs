//! `broadloom run x.nesl`: a NESL program, executed form by form as at the top level of the language.
//!
//! Answers go to standard output, errors and remarks to standard error. A form that fails does not stop the program;
//! the exit code says that one did.

use crate::failure::{Exit, Failure, codes};
use crate::input::Input;
use crate::options::{Emit, Run};
use crate::terminal::Terminal;
use broadloom::diag::Diagnostic;
use broadloom::nesl::eval::{self, System};
use broadloom::nesl::session::{Engine, Output, Session, Settings};
use broadloom::nesl::vcode;
use std::path::Path;

/// Returns whether a file holds NESL, by its name.
pub fn is_program(file: Option<&Path>) -> bool {
    file.and_then(Path::extension).is_some_and(|extension| extension == "nesl")
}

/// Returns whether a file holds VCODE, by its name.
pub fn is_vcode(file: Option<&Path>) -> bool {
    file.and_then(Path::extension).is_some_and(|extension| extension == "vcode")
}

/// Refuses options of kernels.
fn refuse_launch(options: &Run, what: &str) -> Result<(), Failure> {
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
        ("--device", launch.device.is_some()),
        ("--stats", options.stats),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("{option} is for kernels: {what} on the host");
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help(format!("leave {option} out"))));
    }
    Ok(())
}

/// Runs a program.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    refuse_launch(options, "a NESL program is evaluated")?;
    answer(options.launch.file.as_deref().unwrap_or(Path::new("-")), Settings::default(), terminal)
}

/// Writes the code that a program is compiled to.
pub fn explain(file: &Path, emit: Option<Emit>, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let engine = match emit {
        None | Some(Emit::Vcode) => Engine::EmitVcode,
        Some(Emit::Flat) => Engine::EmitFlat,
        Some(Emit::Ptx | Emit::Stage(_) | Emit::Cpu(_) | Emit::Dot | Emit::Kernels) => {
            let message = "this form is for PTX: a NESL program has the forms `flat` and `vcode`";
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help("use --emit vcode")));
        }
    };
    answer(file, Settings { engine, ..Settings::default() }, terminal)
}

/// Runs a VCODE program. What it leaves on the stack is written as vectors, the top last.
pub fn run_vcode(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    refuse_launch(options, "a VCODE program runs")?;
    let input = Input::read(options.launch.file.as_deref().unwrap_or(Path::new("-")))?;
    let text = input.sources.get(input.id).map_or("", |source| source.text());
    let program = match vcode::parse(input.id, text).and_then(|program| vcode::verify(&program).map(|_| program)) {
        Ok(program) => program,
        Err(diagnostics) => return Err(Failure { exit: Exit::Usage, diagnostics, sources: input.sources }),
    };
    let mut out = |bytes: &[u8]| terminal.write(&String::from_utf8_lossy(bytes));
    match vcode::run(&program, eval::Options::default(), &mut System, &mut out) {
        Ok(ended) => {
            terminal.write(&ended.stack.concat());
            Ok(Exit::Done)
        }
        Err(fault) => Err(Failure { exit: Exit::Failed, diagnostics: fault.diagnostic().into(), sources: input.sources }),
    }
}

/// Executes a file and writes the answers.
fn answer(file: &Path, settings: Settings, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let input = Input::read(file)?;
    let mut session = Session::new(settings, Box::new(System)).map_err(|error| {
        Failure::new(
            Exit::Machine,
            Diagnostic::error(codes::OUT_OF_MEMORY, format!("there is no thread for the program: {error}")),
        )
    })?;
    let text = input.sources.get(input.id).map_or("", |source| source.text());
    let mut exit = Exit::Done;
    session.eval_each(input.name(), text, |output| match &output {
        Output::Text(_) | Output::Result(_) => terminal.write(&output.to_string()),
        Output::Note(note) => terminal.remark(note),
        Output::Error(report) => {
            exit = Exit::Failed;
            terminal.remark(report.text.trim_end());
        }
        Output::Exit => {}
    });
    Ok(exit)
}
