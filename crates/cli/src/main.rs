//! The `broadloom` command.
//!
//! Each subcommand is a module with a `run` that takes its options and a [`Terminal`], and returns an
//! [`Exit`] or a [`Failure`]. Results go to standard output, everything else to standard error.
//!
//! Invariants: no input causes a panic; a closed pipe ends the output quietly; the exit code is one of
//! [`Exit`].

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the crate that prints")]
#![allow(unreachable_pub, reason = "nobody is outside of a program; `pub` means beyond the module")]

mod bench;
mod cache;
mod check;
mod devices;
mod effect;
mod exec;
mod explain;
mod failure;
mod findings;
mod graph;
mod input;
mod kernel;
mod launching;
mod nesl;
mod options;
mod pointers;
mod ptxas;
mod repl;
mod run;
mod statistics;
mod stream;
mod terminal;
mod tracing;
mod watch;

use broadloom::cpu::compile::Machine;
use broadloom::cpu::signals;
use broadloom::device::settings;
use broadloom::diag::{Diagnostic, Diagnostics, Sources};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use failure::{Exit, Failure, codes};
use options::{Command, Options};
use std::ffi::OsString;
use std::process::ExitCode;
use terminal::{Color, Terminal};
use watch::Watch;

fn main() -> ExitCode {
    signals::ignore_file_size();
    let words = options::split_output_arguments(options::called_as(std::env::args_os()));
    let options = match Options::try_parse_from(&words) {
        Ok(options) => options,
        Err(answer) if answer.use_stderr() => return print_usage_error(&answer, &words),
        Err(answer) => return ExitCode::from(print_answer(&answer) as u8),
    };
    let mut terminal = Terminal::new(options.color);
    let limit = options.command.limit();
    let watch = limit.and_then(|(limit, subject)| Watch::start(Some(limit), &signals::STOP, &subject, &terminal));
    let exit = check_settings()
        .and_then(|()| perform(&options.command, &mut terminal))
        .unwrap_or_else(|failure| terminal.report(&failure));
    let exit = terminal.finish(exit);
    drop(watch);
    ExitCode::from(exit as u8)
}

/// Prints a mistake in the command line, and what to write instead of a parameter of an effect as an option.
fn print_usage_error(answer: &clap::Error, words: &[OsString]) -> ExitCode {
    // A closed standard error is ignored.
    let _ = answer.print();
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(ContextValue::String(option)) = answer.get(ContextKind::InvalidArg)
        && let Some(advice) = effect::advice_on_option(option, &words)
    {
        Terminal::new(Color::Auto).remark(&format!("help: {advice}"));
    }
    ExitCode::from(answer.exit_code() as u8)
}

/// Prints the help or the version.
fn print_answer(answer: &clap::Error) -> Exit {
    let mut terminal = Terminal::new(Color::Auto);
    let text = answer.render();
    terminal.write(&if terminal.has_colors() { text.ansi().to_string() } else { text.to_string() });
    terminal.finish(Exit::Done)
}

/// Fails if an environment variable has an invalid value.
fn check_settings() -> Result<(), Failure> {
    let mut diagnostics = Diagnostics::new();
    for problem in settings::problems() {
        diagnostics
            .push(Diagnostic::error(codes::SETTING, problem.to_string()).help(format!("correct {} or unset it", problem.name)));
    }
    if let Err(error) = Machine::told() {
        diagnostics.push(Diagnostic::error(codes::SETTING, error.to_string()).help("correct BROADLOOM_CPU or unset it"));
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(Failure { exit: Exit::Usage, diagnostics, sources: Sources::new() }) }
}

fn perform(command: &Command, terminal: &mut Terminal) -> Result<Exit, Failure> {
    match command {
        Command::Run(options) => run::run(options, terminal),
        Command::Repl(options) => repl::run(options, terminal),
        Command::Check(options) => check::run(options, terminal),
        Command::Bench(options) => bench::run(options, terminal),
        Command::Cache(options) => cache::run(options, terminal),
        Command::Devices(options) => Ok(devices::run(options, terminal)),
        Command::Effect(options) => effect::run(options, terminal),
        Command::Exec(options) => exec::run(options, terminal),
        Command::Explain(options) => explain::run(options, terminal),
        Command::Ptxas(options) => ptxas::run(options, terminal),
    }
}
