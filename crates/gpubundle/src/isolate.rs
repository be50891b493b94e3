//! Parts of the work in a process of their own: a kernel that takes its context with it takes the process's only one.

use crate::Summary;
use std::process::Command;

/// Runs this program again with other words, and takes what its report says.
pub(crate) fn run(words: &[&str]) -> Result<Summary, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).args(words).arg("--alone").output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = text.split_once("==== report ====").map(|(_, report)| report);
    let report = report.ok_or_else(|| format!("ended with {} and no report", output.status))?;
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
    /// Takes in what came of a part; what could not be run counts as failed.
    pub(crate) fn add(&mut self, name: &str, other: Result<Summary, String>) {
        match other {
            Ok(other) => {
                self.passed += other.passed;
                self.failed.extend(other.failed);
            }
            Err(why) => self.failed.push((name.to_owned(), why)),
        }
    }
}
