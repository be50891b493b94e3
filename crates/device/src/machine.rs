//! The machine description that planners read.

use broadloom_ptx::IsaVersion;

/// Kinds of executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MachineKind {
    /// The reference interpreter.
    Interp,
    /// Vector code on the host.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

/// A machine, as planners see it. Numbers that are not known are `None`, never invented.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its kind.
    pub kind: MachineKind,
    /// How it is chosen on the command line: `interp`, `cpu`, `cuda:0`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Threads that run in step.
    pub warp_size: u32,
    /// Multiprocessors, or cores.
    pub multiprocessors: u32,
    /// Most threads of a block.
    pub max_threads_per_block: u32,
    /// Most threads of a block in each direction.
    pub max_block: [u32; 3],
    /// Most blocks in each direction.
    pub max_grid: [u32; 3],
    /// Most shared memory of a block, static and dynamic together, in bytes.
    pub max_shared_bytes: u32,
    /// Registers of 32 bits per multiprocessor.
    pub registers: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Last-level cache in bytes.
    pub cache_bytes: Option<u64>,
    /// Memory bandwidth in bytes per second, read and written; known once it was measured ([`crate::Device::measured_machine`]).
    pub bandwidth: Option<f64>,
    /// Time of an empty launch in seconds, likewise.
    pub launch_cost: Option<f64>,
    /// The newest PTX that it takes.
    pub isa: IsaVersion,
    /// The newest target that it takes.
    pub sm: u16,
}
