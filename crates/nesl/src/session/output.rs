//! Answers of a session.

use broadloom_diag::{Diagnostic, Diagnostics, Span};
use std::fmt;

/// One answer, in the order in which things happen.
#[derive(Clone, Debug)]
pub enum Output {
    /// Text that the program or a command printed.
    Text(Vec<u8>),
    /// The value of a form.
    Result(Binding),
    /// A remark, such as a definition that replaces another.
    Note(String),
    /// A form that failed. The session goes on.
    Error(Report),
    /// The program requested to leave.
    Exit,
}

/// A name, its value and its type, as the top level prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name or the pattern; `it` for an expression.
    pub name: String,
    /// The value; `fn` for a function.
    pub value: String,
    /// The type.
    pub ty: String,
}

/// Errors of a failed form.
#[derive(Clone, Debug)]
pub struct Report {
    /// The errors.
    pub diagnostics: Diagnostics,
    /// The errors with their places, as text for a person; it begins with `Error`.
    pub text: String,
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} : {}", self.name, self.value, self.ty)
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Text(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Output::Result(binding) => writeln!(f, "{binding}"),
            Output::Note(note) => writeln!(f, "{note}"),
            Output::Error(report) => f.write_str(&report.text),
            Output::Exit => Ok(()),
        }
    }
}

/// Error of a program: the text for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Gives errors without a place the place of their command.
pub(super) fn placed(errors: &Diagnostics, span: Span) -> Diagnostics {
    let place = |error: &Diagnostic| if error.primary.is_some() { error.clone() } else { error.clone().at(span, "") };
    errors.iter().map(place).collect()
}
