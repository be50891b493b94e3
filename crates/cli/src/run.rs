//! `broadloom run`: launches a kernel and prints or saves its buffers, computes a graph, or runs a NESL,
//! VCODE or StreamIt program.

use crate::failure::{Exit, Failure, codes};
use crate::graph;
use crate::input::FileKind;
use crate::launching::{deliver, failure, launch, open};
use crate::nesl;
use crate::options::Run;
use crate::statistics;
use crate::stream;
use crate::terminal::Terminal;
use crate::tracing::traced;
use broadloom::diag::Diagnostic;
use std::path::Path;

/// Runs a kernel, a graph, or a NESL, VCODE or StreamIt program.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    traced(options.trace.as_deref(), || perform(options, terminal))
}

fn perform(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let kind = FileKind::of(options.launch.file.as_deref().unwrap_or(Path::new("-")));
    if kind == FileKind::Stream {
        return stream::run(options, terminal);
    }
    let given = [
        ("--iterations", options.iterations.is_some()),
        ("--latency", options.latency.is_some()),
        ("more than one file", !options.more.is_empty() && kind != FileKind::Nesl),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option);
    if let Some(option) = given.or(options.files.first()) {
        let message = format!("{option} is for StreamIt programs, whose files end in `.str`");
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
    }
    let is_nesl = matches!(kind, FileKind::Nesl | FileKind::Vcode);
    let (of_nesl, of_all) = ("NESL and VCODE, whose files end in `.nesl` and `.vcode`", "NESL, VCODE and StreamIt");
    let given = [
        ("--int", options.int.is_some(), of_nesl),
        ("--float", options.float.is_some(), of_nesl),
        ("--math", options.math.is_given(), of_all),
    ];
    if let Some((option, _, languages)) = given.into_iter().find(|(_, is_given, _)| *is_given && !is_nesl) {
        let message = format!("{option} is for programs in {languages}");
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
    }
    match kind {
        FileKind::Nesl => nesl::run(options, terminal),
        FileKind::Vcode => nesl::run_vcode(options, terminal),
        FileKind::Graph => graph::run(options, terminal),
        FileKind::Ptx | FileKind::Stream => run_kernel(options, terminal),
    }
}

/// Launches a kernel and delivers the contents of its buffers.
fn run_kernel(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let device = options.launch.device.as_deref();
    let launched = launch("run", &options.launch, |terminal| open(device, options.stats, terminal), terminal)?;
    if options.stats {
        statistics::write(&launched, terminal);
    }
    let outputs = launched.outcome.map_err(|error| failure(error, launched.sources))?;
    deliver(&outputs, terminal)?;
    Ok(Exit::Done)
}
