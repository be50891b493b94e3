//! Findings of a check, as text and as JSON.

use crate::failure::{Exit, Failure};
use crate::options::Check;
use crate::terminal::{Terminal, counted, write_json};
use crate::watch::before_end;
use broadloom::cpu::signals::STOP;
use broadloom::device::StopReason;
use broadloom::diag::Sources;
use broadloom::interp::Interp;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the number of findings in words.
pub fn count_text(findings: usize) -> String {
    match findings {
        0 => "no findings".to_owned(),
        count => counted(count as u64, "finding"),
    }
}

/// Returns the end of the summary for a check that was stopped.
pub fn stop_text(reason: Option<&str>) -> String {
    reason.map(|reason| format!("; the check was stopped before its end by {reason}")).unwrap_or_default()
}

/// Report about the kernels that a program launches. It is written once: at the end of the check, or at the
/// end of the process if the check does not end by itself.
#[derive(Clone, Debug)]
pub struct FindingsReport {
    program: PathBuf,
    json: Option<PathBuf>,
    interp: Interp,
    is_written: Arc<AtomicBool>,
}

impl FindingsReport {
    /// Prepares the report of a program.
    pub fn new(program: &Path, options: &Check, interp: &Interp) -> FindingsReport {
        let (program, interp) = (program.to_owned(), interp.clone());
        let report = FindingsReport { program, json: options.json.clone(), interp, is_written: Arc::default() };
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
            write_json(path, &json!({ "program": program, "findings": list, "stopped": stopped }), terminal)?;
        }
        for finding in &findings {
            terminal.diagnostic(&sources, &finding.diagnostic());
            terminal.remark("");
        }
        terminal.remark(&format!("{}{}", summary(&count_text(findings.len())), stop_text(stopped)));
        Ok(findings.len())
    }
}
