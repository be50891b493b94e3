//! Ends of an evaluation.

use broadloom_diag::{Code as ErrorCode, Diagnostic, Span};

/// The reason why evaluation ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An error of the program.
    Error(Box<Diagnostic>),
    /// A source has no more items.
    EndOfInput,
    /// A firing neither pushed nor popped.
    Idle,
    /// The output is no longer read.
    OutputClosed,
}

/// Help text for files that cannot be opened.
pub(crate) const PATHS: &str = "paths are relative to the folder in which the program is run";

impl Stop {
    pub(crate) fn error(code: ErrorCode, message: impl Into<String>, span: Span) -> Self {
        Stop::Error(Box::new(Diagnostic::error(code, message).at(span, "")))
    }

    /// Adds a help text to an error.
    pub(crate) fn help(self, advice: &str) -> Self {
        match self {
            Stop::Error(error) => Stop::Error(Box::new(error.help(advice))),
            other => other,
        }
    }
}

/// Combines the ends of two steps that both ran. An error counts more than another end, the first one more than the
/// second.
pub(crate) fn both<T>(first: Result<T, Stop>, second: Result<(), Stop>) -> Result<T, Stop> {
    match (first, second) {
        (Err(Stop::Error(error)), _) | (_, Err(Stop::Error(error))) => Err(Stop::Error(error)),
        (first, second) => first.and_then(|value| second.map(|()| value)),
    }
}

impl From<Box<Diagnostic>> for Stop {
    fn from(error: Box<Diagnostic>) -> Stop {
        Stop::Error(error)
    }
}
