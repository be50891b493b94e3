//! What can go wrong.

use thiserror::Error as ThisError;

/// Why code could not be built, lowered or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Error {
    /// Calls of the builder that do not fit together; each says what and, where it was written, the place in the Rust source.
    #[error("`{name}` is not valid: {}", problems.join("; "))]
    Invalid {
        /// The function or kernel.
        name: String,
        /// Mistakes, the first one first.
        problems: Vec<String>,
    },
    /// An elementary function that is not there for a type.
    #[error("`{function}` of `{element}` is not available")]
    NoSuchMath {
        /// The function.
        function: &'static str,
        /// The type.
        element: &'static str,
    },
    /// The evaluator met something that has no result: an index outside of its array, a broken promise, too many steps.
    #[error("in `{name}`: {reason}")]
    Evaluation {
        /// The function.
        name: String,
        /// Why.
        reason: String,
    },
    /// A kernel beyond a limit of PTX that only its machine code meets: the local arrays of a thread in all, parameters, registers.
    #[error("`{name}` is too large: {reason}")]
    TooLarge {
        /// The kernel.
        name: String,
        /// Which limit, and by how much.
        reason: String,
    },
    /// The PTX that came out is not valid; this is a fault of the lowering.
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
