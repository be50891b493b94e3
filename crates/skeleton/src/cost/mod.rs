//! The cost model: the cost of work on a machine. No other module reads the kind of a machine; `crates/tidy`
//! checks that.
//!
//! `device` describes a machine: its cores, caches, bandwidth, the time of a launch. From that, [`Costs`]
//! answers the questions of patterns and planners: how blocks are executed, how many blocks keep all cores
//! busy, how many operations take as long as a byte, how long a kernel will take.
//!
//! Numbers that depend on cores, resident threads, registers, caches or bandwidth are functions of [`Costs`].
//! A constant is a property of an algorithm or of PTX, with its reason. A constant that differs between
//! vectors and threads is an [`Each`]. Constants were found on the machines of `docs/PERFORMANCE.md`, an
//! Intel Xeon with AVX-512 and an H200. Missing values of a description are those of these machines.
//!
//! Operations are counted in *simple operations*: an addition of one lane is 1 ([`operation`], [`function`]).
//! The cost of a position is the sum over all that is computed there; loops count their rounds.

mod blocks;
pub mod dataflow;
mod gain;
mod memory;
mod operations;
mod segments;
mod sequential;
mod sort;
mod stencil;
mod time;
mod workers;

pub use blocks::*;
pub use gain::Gain;
pub use memory::*;
pub use operations::*;
pub use segments::*;
pub use sequential::{ArenaBytes, ByWorker, FlattenedLevels, SequentialCalls, TeamCalls, are_large_calls};
pub use sort::*;
pub use stencil::*;
pub use time::*;
pub use workers::{Teams, Workers};

use broadloom_device::{Machine, MachineKind};

/// Ways in which a machine executes the blocks of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Execution {
    /// A block is vector code on one core. Its warps run one after the other, shared memory is memory in the
    /// cache, and caches and prefetches hide the latency of memory. Blocks are few and long.
    Vectors,
    /// A block is many threads that are resident together, and other threads run while some wait. Blocks are
    /// many and short.
    Threads,
}

/// A number for each way of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Each<T> {
    /// For [`Execution::Vectors`].
    pub vectors: T,
    /// For [`Execution::Threads`].
    pub threads: T,
}

/// Lanes of a warp, fixed by PTX. A last axis with at least this many elements is long: neighbouring threads
/// work along it.
pub const LANES: u32 = 32;

/// The cost of work on a machine.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'m> {
    machine: &'m Machine,
    execution: Execution,
}

impl<'m> Costs<'m> {
    /// The costs of a machine.
    pub fn of(machine: &'m Machine) -> Costs<'m> {
        // The interpreter runs what a GPU runs, so that it can judge it.
        let execution = match machine.kind {
            MachineKind::Cpu => Execution::Vectors,
            MachineKind::Cuda | MachineKind::Interp => Execution::Threads,
        };
        Costs { machine, execution }
    }

    /// Returns how blocks are executed.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// Returns whether a block is vector code on one core.
    pub fn in_vectors(&self) -> bool {
        self.execution == Execution::Vectors
    }

    /// Returns the number for this machine.
    pub fn pick<T>(&self, each: Each<T>) -> T {
        match self.execution {
            Execution::Vectors => each.vectors,
            Execution::Threads => each.threads,
        }
    }

    /// Returns whether the machine starts a kernel while the one before it ends, if the kernel waits itself.
    pub fn starts_early(&self) -> bool {
        self.machine.kind == MachineKind::Cuda && self.machine.sm >= 90
    }

    /// Returns whether fast arithmetic takes subnormal numbers as zero.
    pub fn flushes(&self) -> bool {
        self.machine.kind == MachineKind::Cuda
    }
}
