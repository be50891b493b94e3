//! Parts of the work in a separate process: a kernel that destroys its context destroys the only one of the
//! process.

use crate::part::Summary;
use broadloom_filetest::Failure;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time limit of a test file's process.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);

/// Runs this program again with other arguments and reads its report, with a time limit.
pub(crate) fn run(words: &[&str], limit: Duration) -> Result<Summary, Failure> {
    run_at(words, limit, None)
}

/// Runs this program again at an optimisation level of the assembler.
pub(crate) fn run_at(words: &[&str], limit: Duration, level: Option<u8>) -> Result<Summary, Failure> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let program = std::env::current_exe()?;
    let path = std::env::temp_dir().join(format!("broadloom-gpubundle-{}-{serial}", std::process::id()));
    let file = std::fs::File::create(&path)?;
    let mut call = Command::new(program);
    if let Some(level) = level {
        call.env("BROADLOOM_CUDA_LEVEL", level.to_string());
    }
    let mut child = call.args(words).arg("--alone").stdout(file).spawn()?;
    let start = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.to_string(),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                break format!("did not end within {limit:?}");
            }
        }
    };
    let text = std::fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    let report = text.split_once("==== report ====").map(|(_, report)| report);
    let report = report.ok_or_else(|| format!("{ended}, without a report: {}", text.lines().last().unwrap_or_default()))?;
    let mut summary = Summary::default();
    for line in report.lines() {
        if let Some((_, counts)) = line.split_once(": ").filter(|_| line.contains(" passed, ") && !line.starts_with(' ')) {
            summary.passed += counts.split(' ').next().and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        } else if let Some(name) = line.strip_prefix("  FAILED ") {
            summary.failed.push((name.to_owned(), String::new()));
        } else if let (Some(why), Some((_, known))) = (line.strip_prefix("      "), summary.failed.last_mut()) {
            known.push_str(why);
            known.push('\n');
        }
    }
    Ok(summary)
}

impl Summary {
    /// Adds the result of a part. A part that could not be run counts as failed.
    pub(crate) fn add(&mut self, name: &str, other: Result<Summary, Failure>) {
        match other {
            Ok(other) => {
                self.passed += other.passed;
                self.failed.extend(other.failed);
            }
            Err(why) => self.failed.push((name.to_owned(), why.0)),
        }
    }
}
