//! Errors of patterns and programs.

use broadloom_scalar::Type;

/// Reason why a program could not be made or run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A function that does not fit its use.
    #[error("`{function}` does not fit: {reason}")]
    Function {
        /// Name of the function.
        function: String,
        /// Why the function does not fit its use.
        reason: String,
    },
    /// A pattern whose parts do not fit together.
    #[error("{pattern}: {reason}")]
    Pattern {
        /// The name of the pattern that was made.
        pattern: &'static str,
        /// Why the pattern cannot be made.
        reason: String,
    },
    /// A function with too many operations.
    #[error(
        "`{operation}`: a closure of {count} operations, and at most {most} are possible; several calls, one behind the other, may do more"
    )]
    Operations {
        /// The function.
        operation: String,
        /// Number of its operations. An elementary function counts as a large number of operations.
        count: u64,
        /// The maximum.
        most: u64,
    },
    /// A call with another number of buffers, scalars or sizes than the program takes.
    #[error("`{program}` is called with {given} {what}, not {wanted}")]
    Number {
        /// The name of the program that was called.
        program: String,
        /// Kind of thing that is counted.
        what: &'static str,
        /// Expected number.
        wanted: usize,
        /// Number that was given.
        given: usize,
    },
    /// A scalar of another type.
    #[error("scalar {index} of `{program}` is `{wanted}`, not `{given}`")]
    Scalar {
        /// The name of the program that was called.
        program: String,
        /// Number of the scalar.
        index: usize,
        /// Expected type.
        wanted: Type,
        /// Type that was given.
        given: Type,
    },
    /// A buffer that is too short for the sizes.
    #[error("output {index} of `{program}` needs {wanted} bytes and has {given}")]
    Output {
        /// The name of the program that was called.
        program: String,
        /// Number of the output.
        index: usize,
        /// Required bytes.
        wanted: u64,
        /// Bytes of the buffer.
        given: u64,
    },
    /// Sizes that exceed the range of the program's indices, or whose product exceeds all memory.
    #[error("the sizes {sizes:?} are too large for `{program}`")]
    Sizes {
        /// The name of the program that was called.
        program: String,
        /// The sizes of the call.
        sizes: Vec<u64>,
    },
    /// Sizes below the minimum of the program.
    #[error("the sizes {sizes:?} are too small for `{program}`: one must be at least {least}")]
    Small {
        /// The name of the program that was called.
        program: String,
        /// The sizes of the call.
        sizes: Vec<u64>,
        /// The minimum size.
        least: u64,
    },
    /// Building or lowering code failed.
    #[error(transparent)]
    Code(#[from] broadloom_scalar::Error),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] broadloom_device::Error),
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
