//! Output: results to standard output, diagnostics to standard error.
//!
//! A reader that has read enough (`| head`) closes the pipe. This is not a failure: later results are
//! dropped, and the exit code is unaffected. A full disk is a failure.

use crate::failure::{Exit, Failure};
use broadloom::cpu::Notice;
use broadloom::diag::{Diagnostic, Sources};
use clap::ValueEnum;
use serde_json::Value;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "what stands here would be shown as help")]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    fn applies_to(self, stream: &impl IsTerminal) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

/// Text style on the terminal.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    /// Headings.
    Bold,
    /// Secondary text.
    Dim,
}

/// Receiver of the output of kernels.
pub type Sink = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Buffered standard output, with its first write error.
#[derive(Debug)]
struct StandardOutput {
    out: BufWriter<Stdout>,
    error: Option<io::Error>,
}

impl StandardOutput {
    fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }
}

/// Standard output and standard error.
#[derive(Clone, Debug)]
pub struct Terminal {
    results: Arc<Mutex<StandardOutput>>,
    color_out: bool,
    color_err: bool,
}

impl Terminal {
    /// Creates the terminal of the process.
    pub fn new(color: Color) -> Self {
        let out = io::stdout();
        let (color_out, color_err) = (color.applies_to(&out), color.applies_to(&io::stderr()));
        let results = StandardOutput { out: BufWriter::new(out), error: None };
        Terminal { results: Arc::new(Mutex::new(results)), color_out, color_err }
    }

    fn results(&self) -> MutexGuard<'_, StandardOutput> {
        // A panic elsewhere leaves the buffer intact.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the receiver of notices about long compilations; `None` if standard error is not a terminal or
    /// `BROADLOOM_QUIET` is set.
    pub fn progress(&self) -> Option<Notice> {
        let is_wanted = io::stderr().is_terminal() && !broadloom::device::settings::is_quiet();
        is_wanted.then(|| -> Notice { Arc::new(|compiling| drop(writeln!(io::stderr(), "broadloom: {compiling}"))) })
    }

    /// Writes results.
    pub fn write(&mut self, text: &str) {
        self.results().write(text.as_bytes());
    }

    /// Writes results of a program that may not end, unbuffered on a terminal. An error means that no one
    /// reads the results.
    pub fn try_write(&mut self, text: &str) -> io::Result<()> {
        let mut results = self.results();
        results.write(text.as_bytes());
        if io::stdout().is_terminal() {
            results.flush();
        }
        results.error.as_ref().map_or(Ok(()), |error| Err(error.kind().into()))
    }

    /// Returns the receiver of kernel output: standard output, unbuffered on a terminal.
    pub fn sink(&self) -> Sink {
        let (terminal, watched) = (self.clone(), io::stdout().is_terminal());
        Arc::new(move |bytes| {
            let mut results = terminal.results();
            results.write(bytes);
            if watched {
                results.flush();
            }
        })
    }

    /// Tests if standard output shows styles.
    pub fn has_colors(&self) -> bool {
        self.color_out
    }

    /// Applies a style if standard output shows styles.
    pub fn styled(&self, style: Style, text: &str) -> String {
        let start = match style {
            Style::Bold => "\x1b[1m",
            Style::Dim => "\x1b[2m",
        };
        if self.color_out { format!("{start}{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Writes a remark to standard error, on its own line.
    pub fn remark(&mut self, text: &str) {
        self.flush();
        // A closed standard error is ignored.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Writes a diagnostic to standard error.
    pub fn diagnostic(&mut self, sources: &Sources, diagnostic: &Diagnostic) {
        self.flush();
        self.announce(sources, diagnostic);
    }

    /// Writes a diagnostic to standard error, without waiting for standard output.
    pub fn announce(&self, sources: &Sources, diagnostic: &Diagnostic) {
        let text = if self.color_err { sources.render_styled(diagnostic) } else { sources.render(diagnostic) };
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Writes a failure to standard error and returns its exit code.
    pub fn report(&mut self, failure: &Failure) -> Exit {
        for (index, diagnostic) in failure.diagnostics.condensed().iter().enumerate() {
            if index > 0 {
                self.remark("");
            }
            self.diagnostic(&failure.sources, diagnostic);
        }
        if failure.diagnostics.left_out() > 0 {
            self.remark(&format!("… and {} more", failure.diagnostics.left_out()));
        }
        failure.exit
    }

    /// Flushes the results.
    pub fn flush(&mut self) {
        self.results().flush();
    }

    /// Flushes the results. The exit code tells if all of them arrived.
    pub fn finish(mut self, exit: Exit) -> Exit {
        self.flush();
        let error = self.results().error.take();
        match error {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                self.remark(&format!("error: standard output cannot be written: {error}"));
                if exit == Exit::Done { Exit::Machine } else { exit }
            }
            Some(_) | None => exit,
        }
    }
}

/// Writes JSON to a file; `-` is standard output.
pub fn write_json(path: &Path, value: &Value, terminal: &mut Terminal) -> Result<(), Failure> {
    let text = format!("{value:#}\n");
    if path.as_os_str() == "-" {
        terminal.write(&text);
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| Failure::cannot_write(path, &error))
}

/// Formats a count: `1 byte`, `2 bytes`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
