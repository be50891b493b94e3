//! Errors of devices.

use crate::place::SourcePlace;
use broadloom_diag::{Diagnostics, Span};
use std::fmt;

/// The result of a call to a device.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call to a device failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Not enough memory.
    #[error("out of memory: {requested} bytes asked for, {available} available")]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes that could have been had.
        available: u64,
    },
    /// An address that is not in any buffer, or a range that leaves one.
    #[error("{call}: the range of {bytes} bytes at {address:#x} is not inside of a buffer")]
    BadAddress {
        /// The call that was given it.
        call: &'static str,
        /// The address.
        address: u64,
        /// The length of the range.
        bytes: u64,
    },
    /// A kernel that the module does not have.
    #[error("no kernel `{name}` in this module; it has {}", list(.available))]
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The kernels there are.
        available: Vec<String>,
    },
    /// Arguments that do not fit the kernel.
    #[error("kernel `{kernel}`: {reason}")]
    BadArgument {
        /// The kernel.
        kernel: String,
        /// The reason.
        reason: String,
    },
    /// A launch that the machine or the kernel does not allow.
    #[error("kernel `{kernel}`: {reason}")]
    BadLaunch {
        /// The kernel.
        kernel: String,
        /// The reason.
        reason: String,
    },
    /// Code that this device does not run, each with its place.
    #[error("this device cannot run the module: {} problem(s)", .0.error_count())]
    Unsupported(Diagnostics),
    /// A texture or surface that there cannot be, or that the device does not have.
    #[error("no such texture: {reason}")]
    BadTexture {
        /// The reason.
        reason: String,
    },
    /// A kernel did something wrong.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// A stream that does not exist.
    #[error("no stream {0}")]
    UnknownStream(u32),
    /// An event that does not exist, or that has not been recorded.
    #[error("no event {0}, or it has not been recorded")]
    UnknownEvent(u64),
    /// A device that is not here, or not to be had.
    #[error("the device `{device}` is not here: {reason}")]
    NotHere {
        /// Its name.
        device: String,
        /// The call that failed.
        reason: String,
    },
    /// A device that can no longer be used. What was in its memory is gone.
    #[error("the device `{device}` is lost: {reason}; it must be opened again")]
    Lost {
        /// Its name.
        device: String,
        /// The cause of the loss.
        reason: String,
    },
    /// A driver refused a call.
    #[error("{call}: {message}")]
    Driver {
        /// The function of the driver.
        call: &'static str,
        /// The driver's number for what went wrong.
        code: u32,
        /// Its message.
        message: String,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "no kernels".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Kinds of faults of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// An access outside of all memory.
    OutOfBounds,
    /// An access whose address is not a multiple of its size.
    Misaligned,
    /// An access through an address of another state space.
    WrongSpace,
    /// An access to memory that was freed.
    UseAfterFree,
    /// A free of something that is not there to be freed.
    BadFree,
    /// `trap`.
    Trap,
    /// A failed `assert`.
    Assert,
    /// Threads that wait for each other forever.
    Deadlock,
    /// A call of something that is not a function.
    BadCall,
    /// Too many nested calls, or too much local memory.
    StackOverflow,
    /// A barrier or shuffle used against its rules.
    BadBarrier,
    /// An instruction that the device does not have.
    Unsupported,
    /// The time limit ran out.
    TimeLimit,
    /// Somebody asked to stop: a signal.
    Interrupted,
}

/// A fault of a kernel, and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// The finding in one sentence.
    pub message: String,
    /// The kernel.
    pub kernel: String,
    /// The function that was running, when it is not the kernel itself.
    pub function: Option<String>,
    /// The block.
    pub block: Option<[u32; 3]>,
    /// The thread within its block.
    pub thread: Option<[u32; 3]>,
    /// The instruction as text.
    pub instruction: Option<String>,
    /// The place in the PTX text.
    pub span: Option<Span>,
    /// The place in the high-level source.
    pub source: Option<SourcePlace>,
    /// The address at fault.
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
