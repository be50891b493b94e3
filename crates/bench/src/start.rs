//! The group `start`: the time of the command from its start to the first result of a small kernel, and to
//! its end.
//!
//! Each time is that of a whole process, as a user at a command line sees it. Each is measured with an empty
//! cache of compiled code, which is emptied before each run, and with the cache that the previous run left.
//! The median counts.

use crate::error::Failure;
use crate::group;
use crate::measure::{median, time_command};
use crate::report::Row;
use broadloom::device::private::Temporary;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const NAME: &str = "first_result";

const KERNEL: &str = include_str!("../../../examples/saxpy.ptx");
const ARGUMENTS: [&str; 12] =
    ["--grid", "2", "--block", "4", "--arg", "f32:10", "--arg", "f32[6]:iota", "--arg", "f32[6]:iota=", "--arg", "u32:6"];
const RESULT: &str = "y: f32[6]\n  0: 0.0 11.0 22.0 33.0 44.0 55.0\n";
/// Number of processes of each kind.
const RUNS: usize = 31;

/// Measures processes of the command.
pub(crate) fn run(command: &Path, device: &str, quick: bool) -> Result<Vec<Row>, Failure> {
    let folder = Temporary::new("broadloom-start").map_err(|refusal| Failure::Outside(refusal.to_string()))?;
    let (cache, file) = (folder.path().join("cache"), folder.path().join("saxpy.ptx"));
    let written = std::fs::write(&file, KERNEL);
    written.map_err(|error| Failure::Outside(format!("{} cannot be made: {error}", file.display())))?;
    let runs = if quick { 1 } else { RUNS };
    let (mut cold, mut warm) = (vec![], vec![]);
    for _ in 0..runs {
        let _ = std::fs::remove_dir_all(&cache);
        cold.push(time_kernel(command, device, &file, &cache)?);
        warm.push(time_kernel(command, device, &file, &cache)?);
    }
    let row = |name: &str, times: Vec<Duration>| {
        let time = median(times).unwrap_or_default();
        Row { launches: 1, ..Row::timed(group::START, name, format!("{runs} processes"), device.to_owned(), time) }
    };
    Ok(vec![row("empty_cache", cold), row("from_the_cache", warm)])
}

fn time_kernel(command: &Path, device: &str, file: &Path, cache: &Path) -> Result<Duration, Failure> {
    let mut call = Command::new(command);
    call.arg("run").arg(file).args(ARGUMENTS).args(["--device", device]).env("BROADLOOM_CACHE", cache).stdin(Stdio::null());
    time_command(&mut call, RESULT)
}
