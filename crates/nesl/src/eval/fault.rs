//! Run-time errors.

use broadloom_diag::{Code, Diagnostic, Span};

/// A run-time error.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind.
    pub code: Code,
    /// The error in one sentence.
    pub message: String,
    /// The place, if it is known.
    pub span: Option<Span>,
    /// Called functions, the innermost first; only the first few.
    pub trace: Vec<(String, Span)>,
    /// Advice.
    pub help: Option<String>,
}

/// Outcome of a part of a run.
pub(crate) type Run<T> = Result<T, Box<Fault>>;

impl Fault {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Box<Self> {
        Box::new(Fault { code, message: message.into(), span: None, trace: vec![], help: None })
    }

    pub(crate) fn at_run_time<T>(message: impl Into<String>) -> Run<T> {
        Err(Fault::new(crate::codes::RUN_TIME, message))
    }

    /// Returns the error of sequences whose total number of elements exceeds the range of ints.
    pub(crate) fn too_many(elements: usize) -> Box<Self> {
        let message = format!("sequences have {elements} elements together, more than ints of 32 bits count");
        let mut fault = Fault::new(crate::codes::MEMORY, message);
        fault.help = Some("`--int 64` gives ints of 64 bits".to_owned());
        fault
    }

    /// Returns the error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut error = Diagnostic::error(self.code, self.message.clone());
        if let Some(span) = self.span {
            error = error.at(span, "");
        }
        for (name, _) in &self.trace {
            error = error.note(format!("in the function `{name}`"));
        }
        match &self.help {
            Some(help) => error.help(help.clone()),
            None => error,
        }
    }
}
