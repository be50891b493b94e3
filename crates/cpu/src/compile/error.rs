//! Errors of compilation, and the reasons why a kernel is not vectorised.

use crate::object::ObjectError;
use broadloom_transform::Broken;
use broadloom_transform::pipeline;

/// Error for a kernel that could not be compiled. It is always an internal error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("internal error: kernel `{kernel}` could not be compiled for the CPU: {source}; please report this")]
pub struct CompileError {
    /// Name of the kernel that was compiled.
    pub kernel: String,
    /// Cause.
    pub source: CompileFailure,
}

/// Cause of a [`CompileError`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileFailure {
    /// Function without a body.
    #[error("a function without a body")]
    NoBody,
    /// Called function that ends threads, in a module in which no function does.
    #[error("a called function contains `exit`, and none is found")]
    NoExit,
    /// Failed pass.
    #[error(transparent)]
    Pass(#[from] pipeline::Failure),
    /// Pass that left a function invalid.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Instruction without a translation.
    #[error("{0}")]
    Untranslated(String),
    /// Error of LLVM.
    #[error("{0}")]
    Llvm(String),
    /// Machine that LLVM does not know.
    #[error("LLVM has no machine `{0}`")]
    UnknownMachine(String),
    /// Code that the process cannot run.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Compilation while the process ends.
    #[error("the process ends")]
    ProcessEnds,
}

impl CompileFailure {
    /// Converts a message of LLVM.
    pub(crate) fn llvm(message: impl ToString) -> CompileFailure {
        CompileFailure::Llvm(message.to_string())
    }
}

/// Reason why code cannot run in lockstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle(pub(crate) String);

/// Result of preparing code for lockstep: the code, or the obstacle to it.
pub(crate) type InStep<T> = Result<Result<T, Obstacle>, CompileFailure>;
