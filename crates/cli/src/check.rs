//! `broadloom check`: runs a kernel, a graph or a whole program under the checker and reports its errors.
//!
//! Findings are printed on standard error, or as JSON. The kernel's output and the requested buffers are
//! results, as in `run`. The exit code tells if there were findings, or which signal stopped the check. A
//! check that is stopped by a signal, by its time limit or by a limit of the language reports its findings up
//! to then, and names the reason.

use crate::failure::{Exit, Failure, codes};
use crate::findings::{count_text, stop_text};
use crate::graph;
use crate::input::FileKind;
use crate::launching::{Executor, deliver, failure, launch, no_device};
use crate::nesl;
use crate::options::Check;
use crate::stream;
use crate::terminal::{Terminal, write_json};
use crate::watch::Watch;
use broadloom::cpu::signals::STOP;
use broadloom::device::{Error, FaultKind, StopReason};
use broadloom::diag::Diagnostic;
use broadloom::interp::{self, Interp};
use broadloom::machines;
use serde_json::json;
use std::path::Path;

/// Runs a kernel, a graph or a program and reports the errors of its kernels.
pub fn run(options: &Check, terminal: &mut Terminal) -> Result<Exit, Failure> {
    if !options.program.is_empty() {
        return crate::exec::check(options, terminal);
    }
    let device = options.launch.device.as_deref();
    let file = options.launch.file.as_deref().unwrap_or(Path::new("-"));
    let kind = FileKind::of(file);
    if kind != FileKind::Stream {
        options.math.refuse()?;
        if options.iterations.is_some() {
            let message = "--iterations is for StreamIt programs, whose files end in `.str`";
            return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
        }
    }
    let subject = format!("the check of `{}`", file.display());
    let watch = |terminal: &Terminal| Watch::check(options.launch.time_limit, &subject, terminal);
    let check = match kind {
        FileKind::Nesl | FileKind::Vcode => nesl::check,
        FileKind::Stream => stream::check,
        FileKind::Graph => graph::check,
        FileKind::Ptx => return check_kernel(options, watch, terminal),
    };
    let interp = checking_interpreter(device, options.strict_barriers, terminal)?;
    let _watch = watch(terminal);
    check(options, &interp, terminal)
}

/// Launches a kernel on the checking interpreter and reports its errors.
fn check_kernel(
    options: &Check,
    watch: impl FnOnce(&Terminal) -> Option<Watch>,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let mut checking = None;
    let _watch = watch(terminal);
    let open = |terminal: &Terminal| {
        let interp = checking_interpreter(options.launch.device.as_deref(), options.strict_barriers, terminal)?;
        checking = Some(interp.clone());
        Ok(Executor::Interp(interp))
    };
    let launched = launch("check", &options.launch, open, terminal)?;
    let findings = checking.map(|interp| interp.findings()).unwrap_or_default();
    let stopped = match &launched.outcome {
        Err(Error::Fault(fault)) if fault.kind == FaultKind::Interrupted => STOP.reason().map(|reason| reason.to_string()),
        Err(Error::Fault(fault)) if fault.kind == FaultKind::TimeLimit => Some(StopReason::TimeLimit.to_string()),
        Ok(_) | Err(_) => None,
    };
    if let Some(path) = &options.json {
        let list: Vec<_> = findings.iter().map(|finding| finding.to_json(&launched.sources)).collect();
        let report = json!({ "kernel": launched.kernel, "findings": list, "stopped": stopped });
        write_json(path, &report, terminal)?;
    }
    for finding in &findings {
        terminal.diagnostic(&launched.sources, &finding.diagnostic());
        terminal.remark("");
    }
    match launched.outcome {
        Ok(outputs) => deliver(&outputs, terminal)?,
        Err(Error::Fault(fault)) if fault.kind == FaultKind::Interrupted => {
            terminal.report(&failure(Error::Fault(fault), launched.sources));
            terminal.remark("");
        }
        // Already reported as a finding.
        Err(Error::Fault(_)) => {}
        Err(error) => return Err(failure(error, launched.sources)),
    }
    terminal.remark(&format!("kernel `{}`: {}{}", launched.kernel, count_text(findings.len()), stop_text(stopped.as_deref())));
    Ok(match STOP.signal() {
        Some(signal) => Exit::stopped(signal),
        None if findings.is_empty() => Exit::Done,
        None => Exit::Failed,
    })
}

/// Opens the checking interpreter. No other device can check.
fn checking_interpreter(device: Option<&str>, strict_barriers: bool, terminal: &Terminal) -> Result<Interp, Failure> {
    match device {
        None | Some("interp") => {}
        Some(name) if machines().iter().any(|machine| machine.id == name) => {
            let message = format!("the device `{name}` does not watch what kernels do");
            let help = "leave `--device` away: `check` runs on `interp`";
            return Err(Failure::usage(Diagnostic::error(codes::NO_DEVICE, message).help(help)));
        }
        Some(name) => return Err(no_device(name)),
    }
    Ok(Interp::new(interp::Options {
        check: true,
        strict_barriers,
        output: terminal.sink(),
        stop: Some(&STOP),
        ..interp::Options::default()
    }))
}
