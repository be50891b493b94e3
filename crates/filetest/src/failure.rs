//! Failures of commands and of test files.

use std::fmt::Display;

/// Reason why a command of a test has no output, as the text that the test prints. Every error converts to it.
#[derive(Clone, Debug)]
pub struct Failure(pub String);

impl<M: Display> From<M> for Failure {
    fn from(message: M) -> Failure {
        Failure(message.to_string())
    }
}
