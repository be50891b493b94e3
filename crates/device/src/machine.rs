//! Machine description for planners.

use broadloom_ptx::IsaVersion;

/// Kind of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MachineKind {
    /// The reference interpreter.
    Interp,
    /// Vectorised code on the host.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

/// Machine description. Unknown numbers are `None`, never invented.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Kind of the executor.
    pub kind: MachineKind,
    /// Name on the command line: `interp`, `cpu`, `cuda:0`.
    pub id: String,
    /// Product name.
    pub name: String,
    /// Number of threads in a warp.
    pub warp_size: u32,
    /// Number of multiprocessors or cores.
    pub multiprocessors: u32,
    /// Maximum number of threads per block.
    pub max_threads_per_block: u32,
    /// Maximum block size in each direction.
    pub max_block: [u32; 3],
    /// Maximum grid size in each direction.
    pub max_grid: [u32; 3],
    /// Maximum shared memory per block, static and dynamic together, in bytes.
    pub max_shared_bytes: u32,
    /// Number of 32-bit registers per multiprocessor.
    pub registers: Option<u32>,
    /// Maximum number of resident threads per multiprocessor.
    pub resident_threads: Option<u32>,
    /// Width of the vector registers of a core in bytes, and their number.
    pub vector_registers: Option<(u32, u32)>,
    /// Memory size in bytes.
    pub memory_bytes: u64,
    /// Size of the last-level cache in bytes.
    pub cache_bytes: Option<u64>,
    /// Size of the second-level cache that a core has for itself, in bytes.
    pub core_cache_bytes: Option<u64>,
    /// Operations per second of all lanes at the maximum clock rate; a fused multiply-add counts as two.
    pub peak_operations: Option<f64>,
    /// Memory bandwidth in bytes per second by the clock rate and the width of the bus.
    pub peak_bandwidth: Option<f64>,
    /// Memory bandwidth in bytes per second, reads plus writes; known after a measurement
    /// ([`crate::Device::measured_machine`]).
    pub bandwidth: Option<f64>,
    /// Time of an empty launch in seconds, known after a measurement.
    pub launch_cost: Option<f64>,
    /// Newest supported PTX version.
    pub isa: IsaVersion,
    /// Newest supported target.
    pub sm: u16,
}
