//! Device errors.

use crate::place::SourcePlace;
use broadloom_diag::{Diagnostics, Span};
use std::fmt;

/// Result of a device call.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a device call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An allocation that does not fit into the device's memory.
    #[error("out of memory: {requested} bytes asked for, {available} available")]
    OutOfMemory {
        /// Requested bytes.
        requested: u64,
        /// Available bytes.
        available: u64,
    },
    /// Address outside of all buffers, or range that exceeds one.
    #[error("{call}: the range of {bytes} bytes at {address:#x} is not inside of a buffer")]
    BadAddress {
        /// Name of the call.
        call: &'static str,
        /// The address that belongs to no allocation.
        address: u64,
        /// Length of the range.
        bytes: u64,
    },
    /// Kernel that the module does not have.
    #[error("no kernel `{name}` in this module; it has {}", list(.available))]
    UnknownKernel {
        /// Requested name.
        name: String,
        /// Kernels of the module.
        available: Vec<String>,
    },
    /// Arguments that do not match the kernel.
    #[error("kernel `{kernel}`: {reason}")]
    BadArgument {
        /// Name of the launched kernel.
        kernel: String,
        /// Why the launch was refused.
        reason: String,
    },
    /// Launch that the machine or the kernel does not allow.
    #[error("kernel `{kernel}`: {reason}")]
    BadLaunch {
        /// Name of the kernel that was compiled.
        kernel: String,
        /// Why it could not be compiled.
        reason: String,
    },
    /// Code that this device does not support, each with its location.
    #[error("this device cannot run the module: {} problem(s)", .0.error_count())]
    Unsupported(Diagnostics),
    /// Invalid texture or surface, or device without textures.
    #[error("no such texture: {reason}")]
    BadTexture {
        /// What the driver or the executor reported.
        reason: String,
    },
    /// Fault of a kernel.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// A stream that does not exist or was destroyed.
    #[error("no stream {0}")]
    UnknownStream(u32),
    /// Unknown event, or event that was not recorded.
    #[error("no event {0}, or it has not been recorded")]
    UnknownEvent(u64),
    /// Missing or unavailable device.
    #[error("the device `{device}` is not here: {reason}")]
    NotHere {
        /// Name of the device.
        device: String,
        /// Failed call.
        reason: String,
    },
    /// Lost device. The contents of its memory are gone.
    #[error("the device `{device}` is lost: {reason}; it must be opened again")]
    Lost {
        /// Name of the device.
        device: String,
        /// Cause of the loss.
        reason: String,
    },
    /// Driver call that failed.
    #[error("{call}: {message}")]
    Driver {
        /// Function of the driver.
        call: &'static str,
        /// Error code.
        code: u32,
        /// Error message.
        message: String,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "no kernels".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Kind of a kernel's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Access out of bounds.
    OutOfBounds,
    /// Misaligned access.
    Misaligned,
    /// Access through an address of another state space.
    WrongSpace,
    /// Access to freed memory.
    UseAfterFree,
    /// Invalid `free`.
    BadFree,
    /// `trap`.
    Trap,
    /// Failed `assert`.
    Assert,
    /// Threads that wait for each other forever.
    Deadlock,
    /// Call of an address that is not a function.
    BadCall,
    /// Too many nested calls, or too much local memory.
    StackOverflow,
    /// Invalid use of a barrier or shuffle.
    BadBarrier,
    /// Unsupported instruction.
    Unsupported,
    /// Time limit exceeded.
    TimeLimit,
    /// Stop requested by a signal.
    Interrupted,
}

/// Fault of a kernel with its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Description in one sentence.
    pub message: String,
    /// Name of the kernel that failed.
    pub kernel: String,
    /// Running function, if it is not the kernel itself.
    pub function: Option<String>,
    /// Block index.
    pub block: Option<[u32; 3]>,
    /// Thread index in its block.
    pub thread: Option<[u32; 3]>,
    /// Instruction as text.
    pub instruction: Option<String>,
    /// Location in the PTX text.
    pub span: Option<Span>,
    /// Location in the high-level source.
    pub source: Option<SourcePlace>,
    /// Faulting address.
    pub address: Option<u64>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", self.kernel, self.message)?;
        if let Some([x, y, z]) = self.block {
            write!(f, "\n  in block ({x}, {y}, {z})")?;
            if let Some([x, y, z]) = self.thread {
                write!(f, ", thread ({x}, {y}, {z})")?;
            }
        }
        if let Some(function) = &self.function {
            write!(f, "\n  in function `{function}`")?;
        }
        if let Some(instruction) = &self.instruction {
            write!(f, "\n  at `{instruction}`")?;
        }
        if let Some(source) = &self.source {
            for note in source.notes() {
                write!(f, "\n  {note}")?;
            }
        }
        Ok(())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Error::Fault(Box::new(fault))
    }
}
