//! Diagnostics: the error, its place, and the advice.

use crate::Span;
use std::fmt;

/// A stable name for one kind of diagnostic: a letter for the part of the system and four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the work goes on.
    Warning,
    /// The input cannot be used.
    Error,
}

/// A remark at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The text beside it; may be empty.
    pub text: String,
}

/// One finding about a person's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Its kind.
    pub code: Code,
    /// The finding in one sentence.
    pub message: String,
    /// The place at fault.
    pub primary: Option<Label>,
    /// Other places that explain it.
    pub labels: Vec<Label>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// Advice.
    pub helps: Vec<String>,
}

impl Diagnostic {
    fn new(severity: Severity, code: Code, message: String) -> Self {
        Diagnostic { severity, code, message, primary: None, labels: vec![], notes: vec![], helps: vec![] }
    }

    /// An error, still without a place.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// A warning, still without a place.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    /// Says where, and what is the matter there.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Points to another place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.helps.push(text.into());
        self
    }

    /// Whether it stops the work.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Diagnostics in the order found, at most [`Diagnostics::LIMIT`] of them, so that hostile input cannot fill memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    left_out: usize,
}

impl Diagnostics {
    /// How many are kept; the rest is only counted.
    pub const LIMIT: usize = 100;

    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.is_error());
        if self.list.len() < Self::LIMIT {
            self.list.push(diagnostic);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: Diagnostics) {
        self.left_out += other.left_out;
        self.errors += other.errors - other.list.iter().filter(|d| d.is_error()).count();
        other.list.into_iter().for_each(|d| self.push(d));
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there were, those left out included.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// How many were not kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no more are kept, so that looking further is pointless.
    pub fn is_full(&self) -> bool {
        self.list.len() >= Self::LIMIT
    }

    /// Those that were kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        let mut list = Diagnostics::new();
        list.push(diagnostic);
        list
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(items: I) -> Self {
        let mut list = Diagnostics::new();
        items.into_iter().for_each(|d| list.push(d));
        list
    }
}
