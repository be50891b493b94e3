//! `broadloom check`: a kernel launched and watched; what it does wrong.
//!
//! Findings are told on standard error, or as JSON; what the kernel prints and the buffers asked for are its results, as in
//! `run`. The exit code says whether there were findings.

use crate::failure::{Exit, Failure, codes};
use crate::launching::{Executor, Launched, deliver, failure, launch, no_device, party, with_source_line};
use crate::options::Check;
use crate::terminal::Terminal;
use broadloom::device::Error;
use broadloom::diag::{Code, Diagnostic, Sources};
use broadloom::interp::check::{Finding, Location};
use broadloom::interp::{self, Interp};
use broadloom::machines;
use serde_json::json;
use std::path::Path;

/// Runs a kernel and reports what it does wrong.
pub fn run(options: &Check, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let (mut watching, device) = (None, options.launch.device.as_deref());
    let open = |terminal: &Terminal| {
        let interp = watcher(device, terminal)?;
        watching = Some(interp.clone());
        Ok(Executor::Interp(interp))
    };
    let launched = launch("check", &options.launch, open, terminal)?;
    let findings = watching.map(|interp| interp.findings()).unwrap_or_default();
    if let Some(path) = &options.json {
        write_json(path, &launched, &findings, terminal)?;
    }
    for finding in &findings {
        terminal.diagnostic(&launched.sources, &describe(finding));
        terminal.remark("");
    }
    match launched.outcome {
        Ok(outputs) => deliver(&outputs, terminal)?,
        // Told above, as a finding.
        Err(Error::Fault(_)) => {}
        Err(error) => return Err(failure(error, launched.sources)),
    }
    let what = match findings.len() {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        several => format!("{several} findings"),
    };
    terminal.remark(&format!("kernel `{}`: {what}", launched.kernel));
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The interpreter, watching: no other device can.
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
    Ok(Interp::new(interp::Options { check: true, output: terminal.sink(), ..interp::Options::default() }))
}

/// A finding as a diagnostic at the places of those who took part.
fn describe(finding: &Finding) -> Diagnostic {
    let message = format!("kernel `{}`: {}", finding.kernel, finding.message);
    let mut diagnostic = Diagnostic::error(Code(finding.kind.name()), message);
    let parties = finding.location.iter().chain(&finding.other);
    for (index, location) in parties.clone().enumerate() {
        let who = party(location.block, location.thread);
        let function = if location.function == finding.kernel { String::new() } else { format!(", in `{}`", location.function) };
        diagnostic = match (location.span.is_synthetic(), index) {
            (true, _) => diagnostic.note(format!("{who}{function}: `{}`", location.instruction)),
            (false, 0) => diagnostic.at(location.span, format!("{who}{function}")),
            (false, _) => diagnostic.label(location.span, format!("{who}{function}")),
        };
    }
    let mut sources: Vec<&String> = parties.filter_map(|location: &Location| location.source.as_ref()).collect();
    sources.dedup();
    for source in sources {
        diagnostic = diagnostic.note(format!("from {}", with_source_line(source)));
    }
    match finding.count {
        0 | 1 => diagnostic,
        count => diagnostic.note(format!("seen {count} times; this is the first")),
    }
}

fn write_json(path: &Path, launched: &Launched, findings: &[Finding], terminal: &mut Terminal) -> Result<(), Failure> {
    let list = |sources: &Sources| findings.iter().map(|finding| finding.to_json(sources)).collect::<Vec<_>>();
    let text = format!("{:#}\n", json!({ "kernel": launched.kernel, "findings": list(&launched.sources) }));
    if path.as_os_str() == "-" {
        terminal.write(&text);
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| {
        let message = format!("{} cannot be written: {error}", path.display());
        Failure::new(Exit::Machine, Diagnostic::error(codes::CANNOT_WRITE, message))
    })
}
