//! Options of the compilation of a kernel.

use super::machine::Machine;

/// Options of the compilation of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Target machine.
    pub machine: Machine,
    /// True to optimise code.
    pub optimise: bool,
    /// True to run kernels as vectors; otherwise they run one thread at a time.
    pub vectorise: bool,
    /// True to assume that index arithmetic does not wrap around. The launch must have proved it.
    pub assume_no_wrap: bool,
    /// True to assume that pointer parameters of a kernel point to different buffers, if that is useful. The
    /// launch must have checked it.
    pub assume_apart: bool,
    /// Maximum bytes of local memory for the frames of a thread, if functions are recursive.
    pub stack_bytes: u64,
    /// Check of addresses before accesses.
    pub checks: Checks,
}

/// Check of addresses before accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Checks {
    /// None: the host's memory protection finds what it can. For kernels whose buffers are right.
    #[default]
    None,
    /// Accesses reach the device's memory and what the program shares with it, nothing else of the process.
    Confined,
    /// Each access is aligned and inside of one allocation, or of the shared or local memory.
    Strict,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            machine: Machine::host().clone(),
            optimise: true,
            vectorise: true,
            assume_no_wrap: false,
            assume_apart: false,
            stack_bytes: 1 << 20,
            checks: Checks::None,
        }
    }
}
