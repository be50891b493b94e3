//! `broadloom exec --trace`, `--stats`: record of a program as a file or as a table.
//!
//! The replacement library writes a trace when the program ends, and the table is computed from it. Kernels
//! and copies are timed on the device, calls in the program.

use super::launch::{GRACE, finish, not_started};
use crate::failure::{Exit, Failure, codes};
use crate::options::Exec;
use crate::terminal::Terminal;
use crate::watch;
use broadloom::cpu::signals::restore_file_size;
use broadloom::cpu::supervise::supervise;
use broadloom::device::private::Temporary;
use broadloom::diag::Diagnostic;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 20;

fn failed(path: &Path, what: &str, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("{} cannot be {what}: {error}", path.display());
    Failure::new(Exit::Machine, Diagnostic::error(codes::CANNOT_WRITE, message))
}

/// Returns the absolute path of a trace, because the program may change its working folder. An unwritable
/// path is reported before the program starts.
pub fn writable_path(path: &Path) -> Result<PathBuf, Failure> {
    File::create(path).map_err(|error| Failure::cannot_write(path, &error))?;
    path.canonicalize().map_err(|error| Failure::cannot_write(path, &error))
}

/// Runs a program and prints the table of times.
pub fn run(mut command: Command, options: &Exec, terminal: &mut Terminal) -> Result<Exit, Failure> {
    // No other user can have replaced a file in a new private folder.
    let own = Temporary::new("broadloom-trace").map_err(|refusal| failed(&refusal.path, "used", &refusal))?;
    let path = writable_path(options.trace.as_deref().unwrap_or(&own.path().join("trace.json")))?;
    command.env("BROADLOOM_TRACE", &path);
    restore_file_size(&mut command);
    let limit = options.time_limit.map(|limit| limit + watch::GRACE);
    let ended = supervise(&mut command, GRACE, limit).map_err(|error| not_started(&options.program, &error))?;
    let text = fs::read_to_string(&path);
    drop(own);
    let text = text.map_err(|error| failed(&path, "read", &error))?;
    match serde_json::from_str::<Value>(&text) {
        Ok(trace) => tables(&trace).iter().for_each(|line| terminal.remark(line)),
        Err(_) => terminal.remark("the program called nothing of CUDA, or did not come to its end"),
    }
    finish(options, ended, terminal)
}

/// Count, total time and maximum time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CallTimes {
    count: u64,
    total: f64,
    longest: f64,
}

/// Builds the tables of a trace: work of each device, and calls.
fn tables(trace: &Value) -> Vec<String> {
    let events = trace["traceEvents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |kind: &str, name: &str| {
        let found = events.iter().filter(move |event| event["ph"] == "M" && event["name"] == *kind);
        let named: BTreeMap<(u64, u64), String> = found
            .filter_map(|event| {
                let lane = (event["pid"].as_u64()?, event["tid"].as_u64()?);
                Some((lane, event["args"][name].as_str()?.to_owned()))
            })
            .collect();
        named
    };
    let (processes, lanes) = (of("process_name", "name"), of("thread_name", "name"));
    let mut groups: BTreeMap<u64, BTreeMap<&str, CallTimes>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (Some(pid), Some(tid)) = (event["pid"].as_u64(), event["tid"].as_u64()) else { continue };
        let (Some(name), Some(time)) = (event["name"].as_str(), event["dur"].as_f64()) else { continue };
        // Only calls of the host and stream work of devices are listed. Work of cores is part of stream work.
        let wanted = match processes.get(&(pid, 0)).map(String::as_str) {
            Some("host") => name.starts_with("cu") || name.starts_with("__cuda"),
            _ => lanes.get(&(pid, tid)).is_some_and(|lane| lane.starts_with("stream")),
        };
        if wanted {
            let times = groups.entry(pid).or_default().entry(name).or_default();
            times.count += 1;
            times.total += time;
            times.longest = times.longest.max(time);
        }
    }
    let mut lines = vec![];
    // Devices come before the host.
    for (pid, rows) in groups.into_iter().rev() {
        let process = processes.get(&(pid, 0)).map_or("?", String::as_str);
        let title = if process == "host" { "calls".to_owned() } else { format!("work of {process}") };
        lines.push(format!("{title:<48} {:>9} {:>12} {:>12} {:>12}", "times", "all", "mean", "longest"));
        let mut rows: Vec<(&str, CallTimes)> = rows.into_iter().collect();
        rows.sort_by(|(_, a), (_, b)| b.total.total_cmp(&a.total));
        for (name, times) in rows.iter().take(MOST_ROWS) {
            let mean = times.total / times.count as f64;
            let [all, mean, longest] = [times.total, mean, times.longest].map(duration);
            let name: String = name.chars().take(46).collect();
            lines.push(format!("  {name:<46} {:>9} {all:>12} {mean:>12} {longest:>12}", times.count));
        }
        if rows.len() > MOST_ROWS {
            lines.push(format!("  … and {} more", rows.len() - MOST_ROWS));
        }
    }
    lines
}

/// Formats microseconds.
fn duration(microseconds: f64) -> String {
    match microseconds {
        time if time >= 1e6 => format!("{:.3} s", time / 1e6),
        time if time >= 1e3 => format!("{:.3} ms", time / 1e3),
        time => format!("{time:.1} µs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_have_calls_and_the_work_of_streams() {
        let named = |kind: &str, pid: u64, tid: u64, name: &str| json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": { "name": name } });
        let span = |pid: u64, tid: u64, name: &str, dur: f64| json!({ "ph": "X", "name": name, "pid": pid, "tid": tid, "ts": 0.0, "dur": dur });
        let trace = json!({ "traceEvents": [
            named("process_name", 1, 0, "host"), named("process_name", 2, 0, "cpu"), named("thread_name", 2, 0, "stream 0"),
            named("thread_name", 2, 1, "core 0"), span(1, 0, "cudaMalloc", 10.0), span(1, 0, "compile", 99.0),
            span(1, 0, "cudaMalloc", 30.0), span(2, 0, "saxpy", 2e6), span(2, 1, "saxpy", 5.0),
        ] });
        let lines = tables(&trace);
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert!(lines[0].starts_with("work of cpu ") && lines[2].starts_with("calls "), "{lines:#?}");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines[1]), ["saxpy", "1", "2.000", "s", "2.000", "s", "2.000", "s"]);
        assert_eq!(words(&lines[3]), ["cudaMalloc", "2", "40.0", "µs", "20.0", "µs", "30.0", "µs"]);
        assert_eq!(tables(&json!({})), Vec::<String>::new());
    }
}
