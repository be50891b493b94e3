//! Diagnostics: an error with its location and advice.

use crate::Span;
use std::fmt;

/// Stable code of a kind of diagnostic: a letter for the part of the system and four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

/// Defines the codes of a crate: name, code and description.
#[macro_export]
macro_rules! codes {
    ($($name:ident $code:literal $text:literal;)*) => {
        $(#[doc = $text] pub const $name: $crate::Code = $crate::Code($code);)*
    };
}

/// Defines an enumeration whose variants have names, with the list of all variants and the name of each.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        pub enum $type { $($(#[$doc])* $variant,)* }

        impl $type {
            /// All variants.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$variant,)*];

            /// Returns the word that messages and texts use.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Warning; the work continues.
    Warning,
    /// Error; the input cannot be used.
    Error,
}

/// Text at a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Location.
    pub span: Span,
    /// Text beside it; may be empty.
    pub text: String,
}

/// Finding about a user's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious the diagnostic is.
    pub severity: Severity,
    /// The stable number that documents refer to.
    pub code: Code,
    /// Description in one sentence.
    pub message: String,
    /// Location of the fault.
    pub primary: Option<Label>,
    /// Other locations that explain it.
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

    /// Creates an error without a location.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// Creates a warning without a location.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    /// Sets the location and the text there.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Adds another location.
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

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.helps.push(text.into());
        self
    }

    /// Tests if it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Diagnostics in the order found. At most [`Diagnostics::LIMIT`] are kept, so that malicious input cannot
/// exhaust memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    left_out: usize,
}

impl Diagnostics {
    /// Maximum number of diagnostics kept; further ones are only counted.
    pub const LIMIT: usize = 100;

    /// Maximum number of diagnostics with the same code and message that are shown.
    pub const SAME: usize = 3;

    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.is_error());
        if self.list.len() < Self::LIMIT {
            self.list.push(diagnostic);
        } else {
            self.left_out += 1;
        }
    }

    /// Appends another list.
    pub fn extend(&mut self, other: Diagnostics) {
        self.left_out += other.left_out;
        self.errors += other.errors - other.list.iter().filter(|d| d.is_error()).count();
        other.list.into_iter().for_each(|d| self.push(d));
    }

    /// Tests if there is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns the number of errors, including those not kept.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Returns the number of diagnostics not kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Tests if there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Tests if no more diagnostics are kept, so that continuing is pointless.
    pub fn is_full(&self) -> bool {
        self.list.len() >= Self::LIMIT
    }

    /// Returns the diagnostics for display. Of several with the same code and message, at most
    /// [`Diagnostics::SAME`] are kept, each at a place of its own; the last one counts the others.
    pub fn condensed(&self) -> Vec<Diagnostic> {
        let mut shown: Vec<(Diagnostic, usize)> = vec![];
        for diagnostic in &self.list {
            let is_same = |other: &Diagnostic| {
                (other.code, other.severity, &other.message) == (diagnostic.code, diagnostic.severity, &diagnostic.message)
            };
            let same: Vec<usize> = (0..shown.len()).filter(|index| is_same(&shown[*index].0)).collect();
            match same.last() {
                Some(last) if same.len() >= Self::SAME || same.iter().any(|index| shown[*index].0 == *diagnostic) => {
                    shown[*last].1 += 1;
                }
                _ => shown.push((diagnostic.clone(), 0)),
            }
        }
        let counted = |(diagnostic, more): (Diagnostic, usize)| match more {
            0 => diagnostic,
            more => diagnostic.note(format!("and {more} more like this")),
        };
        shown.into_iter().map(counted).collect()
    }

    /// Iterates over the kept diagnostics.
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
