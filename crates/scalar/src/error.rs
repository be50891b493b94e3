//! Errors of this crate.

use thiserror::Error as ThisError;

/// Reason why code could not be built, lowered or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Error {
    /// Calls of the builder that do not fit together. Each problem names the mistake and, if known, its place
    /// in the Rust source.
    #[error("`{name}` is not valid: {}", problems.join("; "))]
    Invalid {
        /// The function or kernel.
        name: String,
        /// Mistakes, in order.
        problems: Vec<String>,
    },
    /// An elementary function that does not exist for a type.
    #[error("`{function}` of `{element}` is not available")]
    NoSuchMath {
        /// Name of the elementary function.
        function: &'static str,
        /// The type.
        element: &'static str,
    },
    /// An operation without a result in the evaluator: an index outside of its array, a broken promise, too
    /// many steps.
    #[error("in `{name}`: {reason}")]
    Evaluation {
        /// The function.
        name: String,
        /// Why there is no result.
        reason: String,
    },
    /// A kernel beyond a limit of PTX that only its machine code reaches: the total size of local arrays of a
    /// thread, parameters, registers.
    #[error("`{name}` is too large: {reason}")]
    TooLarge {
        /// The kernel.
        name: String,
        /// The limit, and by how much it is exceeded.
        reason: String,
    },
    /// Invalid PTX. This is a fault of the lowering.
    #[error("the PTX of `{name}` is not valid, please report this: {reason}")]
    Lowering {
        /// The kernel.
        name: String,
        /// Diagnostics of the verifier.
        reason: String,
    },
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
