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
    broadloom::diag::codes! {
        CANNOT_READ "C0001" "Unreadable file.";
        NOT_TEXT "C0002" "File that is not text.";
        TOO_LARGE "C0003" "File that is too large.";
        CANNOT_WRITE "C0004" "File that cannot be written.";
        WHICH_KERNEL "C0005" "Missing or unknown kernel name.";
        MISSING_ARGUMENTS "C0006" "Missing arguments.";
        NO_DEVICE "C0007" "Unavailable device.";
        BAD_LAUNCH "C0008" "Launch that the kernel or the device does not allow.";
        OUT_OF_MEMORY "C0009" "Out of memory.";
        DEVICE "C0010" "Device error that is not the user's fault.";
        INTERNAL "C0011" "Internal error of Broadloom.";
        WHICH_BENCHMARK "C0012" "Unknown benchmark.";
        CACHE "C0013" "Cache folder that cannot be read or cleared.";
        STAND_IN "C0014" "Missing replacement library for NVIDIA's, or no usable folder for it.";
        SETTING "C0015" "Environment variable with an invalid value.";
        UNKNOWN_INSTRUCTION "C0016" "Instruction that PTX does not have.";
        TIME_LIMIT "time-limit" "Command that did not end within its time limit.";
        INTERRUPTED "interrupted" "Command that was stopped by a signal.";
        EFFECT "C0017" "Effect that cannot run: its name, settings, images or files are wrong.";
    }
}

/// Failure of the command: diagnostics, their sources, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// What is printed, with its places.
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
