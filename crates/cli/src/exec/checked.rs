//! `broadloom check -- ./program`: a compiled CUDA program with every kernel checked.
//!
//! The replacement library prints findings on standard error after each launch and appends them to a report.
//! The report is read here when the program has ended. If a program is killed or starts other programs, its
//! findings up to that point are kept.

use super::launch::{GRACE, command, limit_time, not_started};
use super::shims::failed;
use crate::failure::{Exit, Failure};
use crate::findings::{count_text, stop_text};
use crate::options::Check;
use crate::terminal::{Terminal, write_json};
use crate::watch;
use broadloom::cpu::signals::restore_file_size;
use broadloom::cpu::supervise::{ProgramEnd, supervise};
use broadloom::device::StopReason;
use broadloom::device::private::Temporary;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitStatus;

/// Runs a program and reports the errors of its kernels.
pub fn check(options: &Check, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let Some((program, arguments)) = options.program.split_first() else { return Ok(Exit::Usage) };
    let time_limit = options.launch.time_limit;
    let report = ReportFile::new()?;
    let mut command = command(program, arguments, "interp")?;
    command.env("BROADLOOM_CHECK", "1").env("BROADLOOM_CHECK_REPORT", report.path());
    if options.strict_barriers {
        command.env("BROADLOOM_STRICT_BARRIERS", "1");
    }
    limit_time(&mut command, time_limit);
    restore_file_size(&mut command);
    let limit = time_limit.map(|limit| limit + watch::GRACE);
    let ProgramEnd { status, stopped } = supervise(&mut command, GRACE, limit).map_err(|error| not_started(program, &error))?;
    let stopped = stopped.map(|reason| match reason {
        StopReason::Signal(signal) => (Exit::stopped(signal), reason.to_string()),
        StopReason::TimeLimit => (Exit::Failed, reason.to_string()),
    });
    let lines = report.lines();
    let findings: Vec<&Value> = lines.iter().filter(|line| line.get("kind").is_some()).collect();
    if let Some(path) = &options.json {
        let name = program.to_string_lossy();
        write_json(
            path,
            &json!({ "program": name, "findings": findings, "stopped": stopped.as_ref().map(|(_, name)| name) }),
            terminal,
        )?;
    }
    let name = program.to_string_lossy();
    let found = match findings.len() {
        0 if lines.is_empty() => "it launched no kernels, so nothing was checked".to_owned(),
        count => count_text(count),
    };
    if let Some((exit, signal)) = stopped {
        terminal.remark(&format!("`{name}`: {found}{}", stop_text(Some(&signal))));
        return Ok(exit);
    }
    match ending(status) {
        None => terminal.remark(&format!("`{name}`: {found}")),
        Some(ending) => terminal.remark(&format!("`{name}`: {found}; {ending}")),
    }
    Ok(if findings.is_empty() && status.success() { Exit::Done } else { Exit::Failed })
}

/// Describes how a program ended, if it did not end normally.
fn ending(status: ExitStatus) -> Option<String> {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("it ended with code {code}")),
        (None, Some(signal)) => Some(format!("it was ended by signal {signal}")),
        (None, None) => Some("it did not end by itself".to_owned()),
    }
}

/// File in a new private folder, removed on drop. No other user can have replaced it.
struct ReportFile(Temporary);

impl ReportFile {
    fn new() -> Result<ReportFile, Failure> {
        let folder = Temporary::new("broadloom-check");
        folder.map(ReportFile).map_err(|refusal| failed(format!("there is no folder for the report of the check: {refusal}")))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("report.jsonl")
    }

    /// Returns the lines of the report, without an incomplete last line. A program without kernels writes no
    /// report.
    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}
