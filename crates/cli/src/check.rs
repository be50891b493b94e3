//! `broadloom check`: runs a kernel or a whole program under the checker and reports its errors.
//!
//! Findings are printed on standard error, or as JSON. The kernel's output and the requested buffers are
//! results, as in `run`. The exit code tells if there were findings, or which signal stopped the check. A
//! stopped check reports its findings up to then.

use crate::failure::{Exit, Failure, codes};
use crate::launching::{Executor, Launched, deliver, failure, launch, no_device};
use crate::nesl;
use crate::options::Check;
use crate::stream;
use crate::terminal::Terminal;
use broadloom::cpu::signals;
use broadloom::device::{Error, FaultKind, signal_name};
use broadloom::diag::{Diagnostic, Sources};
use broadloom::interp::check::Finding;
use broadloom::interp::{self, Interp};
use broadloom::machines;
use serde_json::{Value, json};
use std::path::Path;

/// Runs a kernel and reports its errors.
pub fn run(options: &Check, terminal: &mut Terminal) -> Result<Exit, Failure> {
    if !options.program.is_empty() {
        return crate::exec::check(&options.program, options.json.as_deref(), options.launch.time_limit, terminal);
    }
    let (mut watching, device) = (None, options.launch.device.as_deref());
    let file = options.launch.file.as_deref();
    if !stream::is_program(file) {
        options.math.refuse()?;
    }
    if nesl::is_program(file) || nesl::is_vcode(file) {
        return nesl::check(options, &watcher(device, terminal)?, terminal);
    }
    if stream::is_program(file) {
        return stream::check(options, &watcher(device, terminal)?, terminal);
    }
    if options.iterations.is_some() {
        let message = "--iterations is for StreamIt programs, whose files end in `.str`";
        return Err(Failure::usage(Diagnostic::error(codes::BAD_LAUNCH, message)));
    }
    let open = |terminal: &Terminal| {
        let interp = watcher(device, terminal)?;
        watching = Some(interp.clone());
        Ok(Executor::Interp(interp))
    };
    let launched = launch("check", &options.launch, open, terminal)?;
    let findings = watching.map(|interp| interp.findings()).unwrap_or_default();
    let stopped = match &launched.outcome {
        Err(Error::Fault(fault)) if fault.kind == FaultKind::Interrupted => signals::STOP.signal().map(signal_name),
        Err(Error::Fault(fault)) if fault.kind == FaultKind::TimeLimit => Some("the time limit".to_owned()),
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
    Ok(match signals::STOP.signal() {
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
fn watcher(device: Option<&str>, terminal: &Terminal) -> Result<Interp, Failure> {
    match device {
        None | Some("interp") => {}
        Some(name) if machines().iter().any(|machine| machine.id == name) => {
            let message = format!("the device `{name}` does not watch what kernels do");
            let help = "leave `--device` away: `check` runs on `interp`";
            return Err(Failure::usage(Diagnostic::error(codes::NO_DEVICE, message).help(help)));
        }
        Some(name) => return Err(no_device(name)),
    }
    // No thread waits for the signals, because the interpreter polls the flag.
    let _ = signals::catch();
    let stop = Some(&signals::STOP);
    Ok(Interp::new(interp::Options { check: true, output: terminal.sink(), stop, ..interp::Options::default() }))
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

/// Reports the findings about the kernels of a program, and optionally writes them to a JSON file.
pub fn report_findings(
    program: &Path,
    findings: &[Finding],
    json: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let sources = Sources::new();
    if let Some(path) = json {
        let list: Vec<_> = findings.iter().map(|finding| finding.to_json(&sources)).collect();
        write_report(path, &json!({ "program": program.display().to_string(), "findings": list }), terminal)?;
    }
    for finding in findings {
        terminal.diagnostic(&sources, &finding.diagnostic());
        terminal.remark("");
    }
    Ok(())
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
