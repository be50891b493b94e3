//! `broadloom run x.nesl`: a NESL program, executed form by form as at the top level of the language.
//!
//! Answers go to standard output, errors and remarks to standard error. A form that fails does not stop the program;
//! the exit code says that one did.

use crate::failure::{Exit, Failure, codes};
use crate::input::Input;
use crate::options::Run;
use crate::terminal::Terminal;
use broadloom::diag::Diagnostic;
use broadloom::nesl::eval::System;
use broadloom::nesl::session::{Output, Session, Settings};
use std::path::Path;

/// Returns whether a file holds NESL, by its name.
pub fn is_program(file: Option<&Path>) -> bool {
    file.and_then(Path::extension).is_some_and(|extension| extension == "nesl")
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
        ("--device", launch.device.is_some()),
        ("--stats", options.stats),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("{option} is for kernels: a NESL program is evaluated on the host");
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message).help(format!("leave {option} out"))));
    }
    let input = Input::read(launch.file.as_deref().unwrap_or(Path::new("-")))?;
    let mut session = Session::new(Settings::default(), Box::new(System)).map_err(|error| {
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
