//! A kernel compiled for a block shape: what the compiler gives, the cache keeps and the runtime runs.

use crate::abi::Kind;
use broadloom_ptx::{Func, Inst, Var};

/// How memory accesses of a kernel were translated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// One access for the whole warp.
    pub uniform: u32,
    /// A plain vector access.
    pub contiguous: u32,
    /// A few vector accesses, or one with a known distance between lanes.
    pub strided: u32,
    /// Gathers and scatters.
    pub scattered: u32,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// An object file in memory (ELF, relocatable) whose only exported function is `kernel`.
    pub object: Vec<u8>,
    /// How it is run.
    pub kind: Kind,
    /// Local memory of one lane in bytes, a multiple of 16.
    pub local_bytes: u64,
    /// Static shared memory in bytes; the dynamic part follows, aligned to 16.
    pub shared_bytes: u64,
    /// The module's variables and functions whose addresses the code takes from [`crate::abi::Warp::variables`].
    pub variables: Vec<Named>,
    /// Pure instructions that the runtime evaluates, by their place.
    pub operations: Vec<Site>,
    /// Instructions that can fault by themselves.
    pub sites: Vec<Site>,
    /// Why the kernel is not run as vectors, when it is not.
    pub not_vectorised: Option<String>,
    /// How loads were translated.
    pub loads: Accesses,
    /// How stores were translated.
    pub stores: Accesses,
}

/// What has an address that only a loaded module knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// A global or constant variable of the module.
    Variable(Var),
    /// One that is declared inside of a function.
    Local(Func, Var),
    /// A function: [`crate::abi::function_address`] of it.
    Function(Func),
}

/// An instruction of the module: function and instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The function.
    pub function: Func,
    /// The instruction of it.
    pub inst: Inst,
}
