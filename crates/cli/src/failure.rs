//! Why a command stopped, and the exit code that says so.

use broadloom::diag::{Code, Diagnostic, Diagnostics, Sources};

/// How the command ends. The numbers are the process's exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All done.
    Done = 0,
    /// The program failed, or a check found something.
    Failed = 1,
    /// The call was wrong: a mistake in the command line or in a file.
    Usage = 2,
    /// The machine could not: no device, no memory, no disk.
    Machine = 3,
    /// It was stopped by SIGHUP.
    HungUp = 129,
    /// It was stopped by SIGINT.
    Interrupted = 130,
    /// It was stopped by SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Returns how the command ends when a signal stopped it: with the code that shells have for it.
    pub fn stopped(signal: i32) -> Exit {
        match signal {
            1 => Exit::HungUp,
            15 => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }
}

/// The codes of what only the command can get wrong. Those of the languages are theirs.
pub mod codes {
    use super::Code;

    /// A file that cannot be read.
    pub const CANNOT_READ: Code = Code("C0001");
    /// A file that is not text.
    pub const NOT_TEXT: Code = Code("C0002");
    /// A file that is too large.
    pub const TOO_LARGE: Code = Code("C0003");
    /// A file that cannot be written.
    pub const CANNOT_WRITE: Code = Code("C0004");
    /// A kernel that has to be named, or does not exist.
    pub const WHICH_KERNEL: Code = Code("C0005");
    /// Arguments that are missing.
    pub const MISSING_ARGUMENTS: Code = Code("C0006");
    /// A device that is not here.
    pub const NO_DEVICE: Code = Code("C0007");
    /// A launch that the kernel or the device does not allow.
    pub const BAD_LAUNCH: Code = Code("C0008");
    /// Too little memory.
    pub const OUT_OF_MEMORY: Code = Code("C0009");
    /// A call to a device that failed for no fault of the person's.
    pub const DEVICE: Code = Code("C0010");
    /// A mistake of Broadloom's own.
    pub const INTERNAL: Code = Code("C0011");
    /// A benchmark that does not exist.
    pub const WHICH_BENCHMARK: Code = Code("C0012");
    /// A folder of compiled kernels that cannot be read or emptied.
    pub const CACHE: Code = Code("C0013");
    /// The stand-in for NVIDIA's libraries is not there, or cannot be put where programs find it.
    pub const STAND_IN: Code = Code("C0014");
    /// A variable of the environment whose value cannot be used.
    pub const SETTING: Code = Code("C0015");
    /// An instruction that PTX does not have.
    pub const UNKNOWN_INSTRUCTION: Code = Code("C0016");
    /// An effect that cannot run: its name, settings, images or files are wrong.
    pub const EFFECT: Code = Code("C0017");
}

/// Why a command stopped: diagnostics, the texts that they point into, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What was wrong.
    pub diagnostics: Diagnostics,
    /// What the diagnostics point into.
    pub sources: Sources,
}

impl Failure {
    /// A wrong call, with no place in a file.
    pub fn usage(diagnostic: Diagnostic) -> Self {
        Failure::new(Exit::Usage, diagnostic)
    }

    /// A failure with no place in a file.
    pub fn new(exit: Exit, diagnostic: Diagnostic) -> Self {
        Failure { exit, diagnostics: diagnostic.into(), sources: Sources::new() }
    }
}
