//! A program from its text to its run.

use crate::core;
use crate::elaborate::elaborate;
use crate::eval::{self, Host, Limits, Outcome, Settings, with_stack};
use crate::graph::Graph;
use crate::lower::lower;
use crate::schedule::{Schedule, Style, schedule};
use crate::syntax::{ast, parse};
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Sources};
use std::fmt;

/// Returns a number and a noun: "1 item", "2 items".
pub(crate) fn plural(count: impl Into<u128>, noun: &str) -> String {
    let count = count.into();
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The largest text of a program, in bytes.
const MAX_TEXT: usize = 64 << 20;

/// A program that was compiled: checked, elaborated, and scheduled where its rates are all known.
#[derive(Clone, Debug)]
pub struct Program {
    /// The text, for messages.
    pub sources: Sources,
    /// The typed program.
    pub core: core::Program,
    /// The elaborated graph.
    pub graph: Graph,
    /// The schedule; absent where rates are dynamic.
    pub schedule: Option<Schedule>,
}

/// The mistakes of a program, with the text they point into.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The text.
    pub sources: Sources,
    /// The mistakes.
    pub diagnostics: Diagnostics,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sources.render_all(&self.diagnostics))
    }
}

impl std::error::Error for Failure {}

impl Program {
    /// Compiles a program of one text. The host provides files that initialise arrays.
    pub fn compile(name: &str, text: &str, host: &mut dyn Host, limits: &Limits) -> Result<Program, Failure> {
        Program::compile_files(&[(name, text)], host, limits)
    }

    /// Compiles a program of several texts, given as names and contents.
    pub fn compile_files(files: &[(&str, &str)], host: &mut dyn Host, limits: &Limits) -> Result<Program, Failure> {
        let mut sources = Sources::new();
        let ids: Vec<SourceId> = files.iter().map(|(name, text)| sources.add(*name, *text)).collect();
        let compiled = with_stack(|| {
            if files.iter().map(|(_, text)| text.len()).sum::<usize>() > MAX_TEXT {
                let message = format!("the program is larger than {} MiB", MAX_TEXT >> 20);
                return Err(Diagnostic::error(crate::codes::TOO_LARGE, message).into());
            }
            let mut program = ast::Program::default();
            let mut errors = Diagnostics::new();
            for (id, (_, text)) in ids.iter().zip(files) {
                match parse(*id, text) {
                    Ok(parsed) => program.append(parsed),
                    Err(found) => errors.extend(found),
                }
            }
            if errors.has_errors() {
                return Err(errors);
            }
            let core = lower(&program)?;
            let graph = elaborate(&core, host, limits).map_err(|error| Diagnostics::from(*error))?;
            let mut made = None;
            if graph.is_static() {
                made = Some(schedule(&graph, limits, Style::Phased).map_err(|error| Diagnostics::from(*error))?);
            }
            Ok((core, graph, made))
        });
        match flatten(compiled) {
            Ok((core, graph, schedule)) => Ok(Program { sources, core, graph, schedule }),
            Err(diagnostics) => Err(Failure { sources, diagnostics }),
        }
    }

    /// Runs the program from its start.
    pub fn run(&self, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Failure> {
        let outcome =
            with_stack(|| eval::run(&self.core, &self.graph, host, settings).map_err(|error| Diagnostics::from(*error)));
        flatten(outcome).map_err(|diagnostics| Failure { sources: self.sources.clone(), diagnostics })
    }
}

fn flatten<T>(result: std::io::Result<Result<T, Diagnostics>>) -> Result<T, Diagnostics> {
    result.unwrap_or_else(|error| {
        Err(Diagnostic::error(crate::codes::MEMORY, format!("there is no thread for the program: {error}")).into())
    })
}
