//! Failures of the command and its exit codes.

use broadloom::diag::{Diagnostic, Diagnostics, Sources};
use std::fmt::Display;
use std::path::Path;

/// Exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Done = 0,
    /// The program failed, or a check found something.
    Failed = 1,
    /// Usage error: a mistake in the command line or in a file.
    Usage = 2,
    /// Machine error: no device, no memory, no disk.
    Machine = 3,
    /// Stopped by SIGHUP.
    HungUp = 129,
    /// Stopped by SIGINT.
    Interrupted = 130,
    /// Stopped by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Returns the exit code for a signal, the one that shells use.
    pub fn stopped(signal: i32) -> Exit {
        match signal {
            1 => Exit::HungUp,
            15 => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }
}

/// Error codes of the command itself.
pub mod codes {
    use broadloom::diag::Code;

    /// Unreadable file.
    pub const CANNOT_READ: Code = Code("C0001");
    /// File that is not text.
    pub const NOT_TEXT: Code = Code("C0002");
    /// File that is too large.
    pub const TOO_LARGE: Code = Code("C0003");
    /// File that cannot be written.
    pub const CANNOT_WRITE: Code = Code("C0004");
    /// Missing or unknown kernel name.
    pub const WHICH_KERNEL: Code = Code("C0005");
    /// Missing arguments.
    pub const MISSING_ARGUMENTS: Code = Code("C0006");
    /// Unavailable device.
    pub const NO_DEVICE: Code = Code("C0007");
    /// Launch that the kernel or the device does not allow.
    pub const BAD_LAUNCH: Code = Code("C0008");
    /// Out of memory.
    pub const OUT_OF_MEMORY: Code = Code("C0009");
    /// Device error that is not the user's fault.
    pub const DEVICE: Code = Code("C0010");
    /// Internal error of Broadloom.
    pub const INTERNAL: Code = Code("C0011");
    /// Unknown benchmark.
    pub const WHICH_BENCHMARK: Code = Code("C0012");
    /// Cache folder that cannot be read or cleared.
    pub const CACHE: Code = Code("C0013");
    /// Missing replacement library for NVIDIA's, or no usable folder for it.
    pub const STAND_IN: Code = Code("C0014");
    /// Environment variable with an invalid value.
    pub const SETTING: Code = Code("C0015");
    /// Instruction that PTX does not have.
    pub const UNKNOWN_INSTRUCTION: Code = Code("C0016");
    /// Command that did not end within its time limit.
    pub const TIME_LIMIT: Code = Code("time-limit");
    /// Command that was stopped by a signal.
    pub const INTERRUPTED: Code = Code("interrupted");
    /// Effect that cannot run: its name, settings, images or files are wrong.
    pub const EFFECT: Code = Code("C0017");
}

/// Failure of the command: diagnostics, their sources, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// Diagnostics.
    pub diagnostics: Diagnostics,
    /// Sources of the diagnostics.
    pub sources: Sources,
}

impl Failure {
    /// Creates a usage error without a location.
    pub fn usage(diagnostic: Diagnostic) -> Self {
        Failure::new(Exit::Usage, diagnostic)
    }

    /// Creates the failure for a file that cannot be written.
    pub fn cannot_write(path: &Path, error: &dyn Display) -> Self {
        let message = format!("{} cannot be written: {error}", path.display());
        Failure::new(Exit::Machine, Diagnostic::error(codes::CANNOT_WRITE, message))
    }

    /// Creates a failure without a location.
    pub fn new(exit: Exit, diagnostic: Diagnostic) -> Self {
        Failure { exit, diagnostics: diagnostic.into(), sources: Sources::new() }
    }
}
