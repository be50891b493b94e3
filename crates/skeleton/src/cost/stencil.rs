//! Stencils: patches, strips, chains and relays, and the accesses that neighbouring positions share.

use super::gain::Gain;
use super::{Costs, LANES};
use broadloom_device::MachineKind;

/// Maximum bytes of shared memory for the rows between the stages of a chain: an eighth of a core's own
/// cache, so that inputs and results do not evict them.
pub const CHAIN_BYTES: u64 = 256 << 10;
/// Possible columns of a block of a chain. Half of the smallest number is a warp, so no part of a line is
/// shorter than a warp.
pub const CHAIN_COLUMNS: [u32; 9] = [64, 96, 128, 192, 256, 384, 512, 768, 1024];
/// Blocks of a chain for each core.
pub const CHAIN_BLOCKS: u64 = 8;
/// Minimum rows of a block of a chain per row above or below them that the block also computes.
pub const CHAIN_ROWS: u32 = 8;
/// Minimum rows of a block of a chain.
pub const CHAIN_LEAST_ROWS: u32 = 64;
/// Operations that take as long as a byte of a chain's ring.
pub const STAGED_BALANCE: u64 = 1;
/// Cost of a value of a chain that is stored in a ring and read again.
pub const STAGED_VALUE: u64 = 4;
/// Maximum number of kernels that are joined to a chain.
pub const CHAIN_LENGTH: usize = 16;
/// Gain of a plan with chains over one without that pays for larger kernels.
pub const CHAIN_GAIN: Gain = Gain::new(75);
/// Blocks of a relay for each core. Rows of a block are consecutive and share inputs of their lines.
pub const RELAY_BLOCKS: u64 = 32;
/// Rows of a relay that are computed together: indices that they share are computed once.
pub const RELAY_ROWS: u32 = 4;
/// Maximum values of a line that 32 results of a relay read if most of them read one row of 32 values, and if
/// they read two: a few more than neighbouring results read.
pub const RELAY_NEAR: [u32; 2] = [24, 54];
/// Maximum operations of a function that reads lines for which separate code is emitted for each number of
/// rows.
pub const RELAY_OPERATIONS: u64 = 256;
/// Rows of a patch of results of a thread.
pub const PATCH_ROWS: [u32; 5] = [1, 2, 4, 8, 16];
/// Distances of the rows of a patch.
pub const PATCH_STEPS: [u32; 4] = [1, 2, 4, 8];
/// Columns of a patch: one, or those of an access of 16 bytes.
pub const PATCH_COLUMNS: [u32; 2] = [1, 4];
/// Bytes of the elements of a patch.
pub const PATCH_BYTES: u32 = 4;
/// Maximum values that a thread keeps for its patch.
pub const PATCH_LIVE: u32 = 96;
/// Maximum values that a thread reads for a patch of several columns. Registers do not hold the loads of
/// more.
pub const PATCH_READS: u64 = 1024;
/// Gain of a patch over a smaller one that pays for its larger code.
pub const PATCH_GAIN: Gain = Gain::new(95);
/// Gain of a patch of more than eight rows over a lower one that pays: more rows remain below the last patch
/// as well. On an H200 the sparse filter of `diffusion`, 91 hundredths by this model, took 0.104 ms with 16
/// rows and 0.094 with eight. Means along both axes in one kernel are 69.
pub const TALL_PATCH_GAIN: Gain = Gain::new(80);
/// Gain of a plan over one with more kernels that pays for larger kernels.
pub const JOIN_GAIN: Gain = Gain::new(95);
/// Time of a kernel of patches that is bound by memory, in hundredths of the time of its bytes.
pub const PATCH_MEMORY: u64 = 120;
/// Threads per row and column of an image that compute the positions around its patches.
pub const FRAME_THREADS: u32 = 16;
/// The same number if most of these positions are computed in strips.
pub const BORDER_THREADS: u32 = 4;
/// Maximum positions of such a strip. Longer strips share more, but the code of strips and patches together
/// would exceed the instruction cache.
pub const BORDER_POSITIONS: u32 = 4;
/// Minimum operations per position for which positions around patches may be computed in strips. The code of
/// strips has to be compiled as well.
pub const BORDER_WORK: u64 = 64;
/// Gain per position of such a strip, compared with a single position, that pays for its code.
pub const BORDER_GAIN: Gain = Gain::new(60);
/// Operations of a thread for its index, the test for the interior and addresses.
pub const PATCH_START: u64 = 32;
/// Cost of a coalesced read that is aligned to a line of the first cache: a quarter as many lanes load as
/// compute. An unaligned read takes two lines. A mean of 17 neighbours takes 90 us on an H200, as long as 33
/// such accesses of all threads.
pub const ROW_READ: u64 = 4;
/// Cost of a coalesced read without alignment.
pub const SHIFTED_READ: u64 = 8;
/// Cost of a value that a shuffle takes from another lane.
pub const EXCHANGE: u64 = 3;
/// Maximum number of lanes at both ends of a warp that compute values for other lanes only.
pub const MOST_REACH: u32 = LANES / 4;
/// Maximum number of lanes at both ends of a warp whose values other lanes add up.
pub const SUMMED_REACH: u32 = LANES / 2;
/// Cost of a strided read.
pub const SCATTERED_READ: u64 = 16;

/// Gain of a strip whose lanes exchange values over one whose lanes do not.
pub const SHARED_STRIP_GAIN: Gain = Gain::new(90);
/// Gain of a strip over single rows, reads not counted. With less, the rows share only their reads.
pub const STRIP_COMPUTATION_GAIN: Gain = Gain::new(95);
/// Maximum cost of a position of a strip in hundredths of the cost of a position alone.
const STRIP_COST: u64 = 95;

/// Gain of a separable filter with a first pass along rows over one with a first pass along columns, in
/// elements between the passes. The second order reads rows while they are in the cache.
pub const ROWS_FIRST_GAIN: Gain = Gain::new(50);

/// Returns whether results have much of what they read in common: they are twice as many, or more.
pub fn shares_reads(results: usize, read: usize) -> bool {
    results / 2 >= read
}

/// Returns the cost of a position in hundredths of an operation, for a strip of `rows` rows that costs `cost`
/// operations. `lanes` lanes of a warp have results.
pub fn strip_cost(cost: u64, rows: u32, lanes: u64) -> u64 {
    cost * 100 * u64::from(LANES) / (u64::from(rows) * lanes)
}

/// Returns whether strips pay: a position costs `hundredths` of an operation in a strip, and `alone`
/// operations without one.
pub fn strip_pays(hundredths: u64, alone: u64) -> bool {
    hundredths <= alone * STRIP_COST
}

/// Returns the gain over a lower patch that a patch of `rows` rows needs, because its code is larger.
pub fn patch_gain(rows: u32) -> Gain {
    if rows > 8 { TALL_PATCH_GAIN } else { PATCH_GAIN }
}

/// Returns the cost of an operation in hundredths, for threads that keep `live` values: fewer threads are
/// resident, and they hide less latency.
pub fn patch_share(live: u32) -> u64 {
    100 + u64::from(live) / 2
}

impl Costs<'_> {
    /// Returns whether code at neighbouring positions is written side by side in one thread. Threads of a GPU
    /// have neighbouring positions each; a lane of vectors, and the interpreter, have no such neighbours.
    pub fn side_by_side(&self) -> bool {
        self.machine.kind != MachineKind::Cuda
    }

    /// Returns whether lanes take values from other lanes instead of computing them again: a shuffle of
    /// vectors is one instruction.
    pub fn lanes_share(&self) -> bool {
        self.in_vectors()
    }

    /// Returns whether kernels are joined to chains. A core computes a chain row by row, and rows that are
    /// read again stay in its cache. On an H200, chains took 1.4 to 1.7 times as long as the kernels that
    /// they replaced.
    pub fn chains(&self) -> bool {
        self.in_vectors()
    }

    /// Returns whether lines of `bytes` bytes that one function computes and another reads are kept in shared
    /// memory. On vectors shared memory is the cache of a core. The lines must leave room for inputs and
    /// results.
    pub fn relays(&self, bytes: u64) -> bool {
        self.chains() && bytes.saturating_mul(RELAY_ROWS.into()) <= u64::from(self.core_cache(8).min(self.shared_bytes() / 2))
    }

    /// Returns whether kernels of a chain compute one component of a picture at a time, so that fewer rows
    /// have to stay in the cache of a core.
    pub fn splits_components(&self) -> bool {
        self.chains()
    }

    /// Returns whether a lane computes several rows whose reads overlap. Shared values stay in registers;
    /// threads of a GPU find them in the first cache.
    pub fn rows_share(&self) -> bool {
        self.in_vectors()
    }

    /// Returns the operations that all lanes start while `bytes` bytes are read or written, in hundredths.
    /// The peak of the machine counts a multiplication and an addition of each lane in a cycle.
    pub fn started(&self, bytes: u64) -> u64 {
        bytes * self.balance() * 100 / 2
    }

    /// Returns whether threads compute patches of several rows and columns, which save accesses to the first
    /// cache.
    pub fn takes_patches(&self) -> bool {
        !self.in_vectors()
    }

    /// Returns whether stencils that read each other may become one kernel of patches.
    pub fn joins_stencils(&self) -> bool {
        self.machine.kind == MachineKind::Cuda
    }
}
