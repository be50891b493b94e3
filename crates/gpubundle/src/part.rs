//! Options and result of a part of the program.

use std::io::Write;

/// Command line options.
#[derive(Debug)]
pub(crate) struct Options {
    /// Parts to run; all but those on request if empty.
    pub(crate) parts: Vec<String>,
    /// Number of random kernels.
    pub(crate) kernels: u64,
    /// Number of draws of every pure instruction.
    pub(crate) sweeps: usize,
    /// First seed.
    pub(crate) seed: u64,
    /// True for a process started by another one of this program.
    pub(crate) alone: bool,
    /// Text that names of tests must contain.
    pub(crate) filter: String,
    /// File of a saved kernel, or of one to save.
    pub(crate) kernel: Option<String>,
}

/// Result of a part.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Number of passed tests.
    pub(crate) passed: usize,
    /// Skipped tests with the reasons.
    pub(crate) skipped: Vec<(String, String)>,
    /// Failed tests with the reasons.
    pub(crate) failed: Vec<(String, String)>,
    /// Lines for the report.
    pub(crate) lines: Vec<String>,
}

/// Prints a line at once, because a hanging GPU loses buffered output.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
