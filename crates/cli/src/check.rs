//! `broadloom check`: runs a kernel, a graph or a whole program under the checker and reports its errors.
//!
//! Findings are printed on standard error, or as JSON. The kernel's output and the requested buffers are
//! results, as in `run`. The exit code tells if there were findings, or which signal stopped the check. A
//! check that is stopped by a signal, by its time limit or by a limit of the language reports its findings up
//! to then, and names the reason.

use crate::failure::{Exit, Failure, codes};
use crate::graph;
use crate::launching::{Executor, Launched, deliver, failure, launch, no_device};
use crate::nesl;
use crate::options::Check;
use crate::stream;
use crate::terminal::Terminal;
use crate::watch::{Watch, before_end};
use broadloom::cpu::signals::STOP;
use broadloom::device::{Error, FaultKind, StopReason};
use broadloom::diag::{Diagnostic, Sources};
use broadloom::interp::check::Finding;
use broadloom::interp::{self, Interp};
use broadloom::machines;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a kernel, a graph or a program and reports the errors of its kernels.
pub fn run(options: &Check, terminal: &mut Terminal) -> Result<Exit, Failure> {
    if !options.program.is_empty() {
        return crate::exec::check(options, terminal);
    }
    let (mut watching, device) = (None, options.launch.device.as_deref());
    let file = options.launch.file.as_deref();
    if !stream::is_program(file) {
        options.math.refuse()?;
    }
    let subject = format!("the check of `{}`", file.unwrap_or(Path::new("-")).display());
    let watch = |terminal: &Terminal| Watch::check(options.launch.time_limit, &subject, terminal);
    if nesl::is_program(file) || nesl::is_vcode(file) {
        let interp = watcher(device, options.strict_barriers, terminal)?;
        let _watch = watch(terminal);
        return nesl::check(options, &interp, terminal);
    }
    if stream::is_program(file) {
        let interp = watcher(device, options.strict_barriers, terminal)?;
        let _watch = watch(terminal);
        return stream::check(options, &interp, terminal);
    }
    if options.iterations.is_some() {
        let message = "--iterations is for StreamIt programs, whose files end in `.str`";
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
    }
    if graph::is_graph(file) {
        let interp = watcher(device, options.strict_barriers, terminal)?;
        let _watch = watch(terminal);
        return graph::check(options, &interp, terminal);
    }
    let _watch = watch(terminal);
    let open = |terminal: &Terminal| {
        let interp = watcher(device, options.strict_barriers, terminal)?;
        watching = Some(interp.clone());
        Ok(Executor::Interp(interp))
    };
    let launched = launch("check", &options.launch, open, terminal)?;
    let findings = watching.map(|interp| interp.findings()).unwrap_or_default();
    let stopped = match &launched.outcome {
        Err(Error::Fault(fault)) if fault.kind == FaultKind::Interrupted => STOP.reason().map(|reason| reason.to_string()),
        Err(Error::Fault(fault)) if fault.kind == FaultKind::TimeLimit => Some(StopReason::TimeLimit.to_string()),
        Ok(_) | Err(_) => None,
    };
    if let Some(path) = &options.json {
        write_json(path, &launched, &findings, stopped.as_deref(), terminal)?;
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
    terminal.remark(&format!("kernel `{}`: {}{}", launched.kernel, counted(findings.len()), stopped_by(stopped.as_deref())));
    Ok(match STOP.signal() {
        Some(signal) => Exit::stopped(signal),
        None if findings.is_empty() => Exit::Done,
        None => Exit::Failed,
    })
}

/// Returns the end of the summary for a check that was stopped.
pub fn stopped_by(what: Option<&str>) -> String {
    what.map(|what| format!("; the check was stopped before its end by {what}")).unwrap_or_default()
}

/// Opens the checking interpreter. No other device can check.
fn watcher(device: Option<&str>, strict_barriers: bool, terminal: &Terminal) -> Result<Interp, Failure> {
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

fn write_json(
    path: &Path,
    launched: &Launched,
    findings: &[Finding],
    stopped: Option<&str>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let list = |sources: &Sources| findings.iter().map(|finding| finding.to_json(sources)).collect::<Vec<_>>();
    let report = json!({ "kernel": launched.kernel, "findings": list(&launched.sources), "stopped": stopped });
    write_report(path, &report, terminal)
}

/// Returns the number of findings in words.
pub fn counted(findings: usize) -> String {
    match findings {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        several => format!("{several} findings"),
    }
}

/// Report about the kernels that a program launches. It is written once: at the end of the check, or at the
/// end of the process if the check does not end by itself.
#[derive(Clone, Debug)]
pub struct Report {
    program: PathBuf,
    json: Option<PathBuf>,
    interp: Interp,
    is_written: Arc<AtomicBool>,
}

impl Report {
    /// Prepares the report of a program.
    pub fn new(program: &Path, options: &Check, interp: &Interp) -> Report {
        let (program, interp) = (program.to_owned(), interp.clone());
        let report = Report { program, json: options.json.clone(), interp, is_written: Arc::default() };
        let last = report.clone();
        before_end(move |terminal, reason| {
            let summary = |what: &str| format!("kernels of `{}`: {what}", last.program.display());
            if let Err(failure) = last.write(Some(&reason.to_string()), summary, terminal) {
                terminal.report(&failure);
            }
        });
        report
    }

    /// Writes the findings and the summary, and returns the exit code. `ended` is the end of the program, and
    /// `limit` the limit of the language that has stopped it. `summary` is the summary for a number of
    /// findings.
    pub fn end(
        &self,
        ended: Result<Exit, Failure>,
        limit: Option<String>,
        summary: impl FnOnce(&str) -> String,
        terminal: &mut Terminal,
    ) -> Result<Exit, Failure> {
        let reason = STOP.reason();
        let stopped = reason.map(|reason| reason.to_string()).or(limit);
        let exit = match ended {
            Ok(exit) => exit,
            Err(failure) => {
                let exit = terminal.report(&failure);
                terminal.remark("");
                exit
            }
        };
        let findings = self.write(stopped.as_deref(), summary, terminal)?;
        Ok(match reason {
            Some(StopReason::Signal(signal)) => Exit::stopped(signal),
            _ if findings > 0 || stopped.is_some() => Exit::Failed,
            _ => exit,
        })
    }

    /// Writes the findings and the summary. Returns the number of findings.
    fn write(
        &self,
        stopped: Option<&str>,
        summary: impl FnOnce(&str) -> String,
        terminal: &mut Terminal,
    ) -> Result<usize, Failure> {
        if self.is_written.swap(true, Ordering::SeqCst) {
            // Another thread writes it, and then ends the process.
            loop {
                std::thread::park();
            }
        }
        let (findings, sources) = (self.interp.findings(), Sources::new());
        if let Some(path) = &self.json {
            let list: Vec<_> = findings.iter().map(|finding| finding.to_json(&sources)).collect();
            let program = self.program.display().to_string();
            write_report(path, &json!({ "program": program, "findings": list, "stopped": stopped }), terminal)?;
        }
        for finding in &findings {
            terminal.diagnostic(&sources, &finding.diagnostic());
            terminal.remark("");
        }
        terminal.remark(&format!("{}{}", summary(&counted(findings.len())), stopped_by(stopped)));
        Ok(findings.len())
    }
}

/// Writes a report to a file, or to standard output.
pub fn write_report(path: &Path, report: &Value, terminal: &mut Terminal) -> Result<(), Failure> {
    let text = format!("{report:#}\n");
    if path.as_os_str() == "-" {
        terminal.write(&text);
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| {
        let message = format!("{} cannot be written: {error}", path.display());
        Failure::new(Exit::Machine, Diagnostic::error(codes::CANNOT_WRITE, message))
    })
}
