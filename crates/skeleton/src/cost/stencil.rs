//! Stencils: patches, strips, chains and relays, and the accesses that neighbouring positions share.

use super::gain::Gain;
use super::{Costs, LANES};
use broadloom_device::MachineKind;

/// Bytes of shared memory for the rows between the stages of a chain, at most: an eighth of a core's own
/// cache, so that inputs and results that pass through do not displace them.
pub const CHAIN_BYTES: u64 = 256 << 10;
/// Columns of a block of a chain. Half of the least is a warp, so that no part of a line is shorter.
pub const CHAIN_COLUMNS: [u32; 9] = [64, 96, 128, 192, 256, 384, 512, 768, 1024];
/// Blocks of a chain for each core.
pub const CHAIN_BLOCKS: u64 = 8;
/// Rows of a block of a chain for each row above or below them that it computes besides.
pub const CHAIN_ROWS: u32 = 8;
/// Rows of a block of a chain, at least.
pub const CHAIN_LEAST_ROWS: u32 = 64;
/// Operations in the time of a byte of a chain's ring.
pub const STAGED_BALANCE: u64 = 1;
/// A value of a chain that is stored in a ring and read again.
pub const STAGED_VALUE: u64 = 4;
/// Kernels that are joined to a chain, at most.
pub const CHAIN_LENGTH: usize = 16;
/// Cost of a plan with chains, in hundredths of that of a plan without, from which on chains are not worth
/// their larger kernels.
pub const CHAIN_GAIN: Gain = Gain::new(75);
/// Blocks of a relay for each core: rows of a block follow each other and share what their lines are computed
/// from.
pub const RELAY_BLOCKS: u64 = 32;
/// Rows of a relay that are computed together: places that they read alike are computed once.
pub const RELAY_ROWS: u32 = 4;
/// Values of a line for 32 results of a relay, up to which these mostly read one row of 32 values, or two: a
/// few more than for results side by side.
pub const RELAY_NEAR: [u32; 2] = [24, 54];
/// Operations of a function that reads lines, up to which it is written out for each number of rows.
pub const RELAY_OPERATIONS: u64 = 256;
/// Rows of a patch of results of a thread.
pub const PATCH_ROWS: [u32; 5] = [1, 2, 4, 8, 16];
/// Distances of the rows of a patch.
pub const PATCH_STEPS: [u32; 4] = [1, 2, 4, 8];
/// Columns of a patch: one, or those of an access of 16 bytes.
pub const PATCH_COLUMNS: [u32; 2] = [1, 4];
/// Bytes of the elements of a patch.
pub const PATCH_BYTES: u32 = 4;
/// Values that a thread keeps for its patch, at most.
pub const PATCH_LIVE: u32 = 96;
/// Values that a thread reads for a patch of several columns, at most: loads of more are further ahead of
/// their use than registers reach.
pub const PATCH_READS: u64 = 1024;
/// Cost of a patch in hundredths of that of a smaller one, from which on its larger code does not pay.
pub const PATCH_GAIN: Gain = Gain::new(95);
/// Cost of a patch of more than eight rows in hundredths of that of a lower one, from which on it does not
/// pay: more rows remain below the last patch as well. On an H200 the sparse filter of `diffusion`, 91 by
/// this model, took 0.104 ms with 16 rows and 0.094 with eight. Means along both axes in one kernel are 69.
pub const TALL_PATCH_GAIN: Gain = Gain::new(80);
/// Cost of a plan in hundredths of that of one with more kernels, from which on larger kernels do not pay.
pub const JOIN_GAIN: Gain = Gain::new(95);
/// Time of a kernel of patches whose bytes take longer than its operations, in hundredths of the time of the
/// bytes.
pub const PATCH_MEMORY: u64 = 120;
/// Threads for the positions around the patches of an image, for each of its rows and columns.
pub const FRAME_THREADS: u32 = 16;
/// Threads for each row and column where most positions around the patches are computed in strips.
pub const BORDER_THREADS: u32 = 4;
/// Positions of such a strip, at most. Longer strips share more, but their code and that of patches together
/// exceed the cache of instructions.
pub const BORDER_POSITIONS: u32 = 4;
/// Operations of a position from which on those around patches may be computed in strips, whose code has to
/// be compiled.
pub const BORDER_WORK: u64 = 64;
/// Cost of a position of such a strip, at most, in hundredths of that of a position alone.
pub const BORDER_GAIN: Gain = Gain::new(60);
/// Operations of a thread besides those of its positions: where it is, whether that is in the interior,
/// addresses.
pub const PATCH_START: u64 = 32;
/// A read of neighbouring elements by neighbouring threads, which starts at a multiple of a row of the first
/// cache: threads read by a quarter of the lanes that compute. One that starts elsewhere takes two rows. A
/// mean of 17 neighbours takes 90 us on an H200, as long as 33 such accesses of all threads.
pub const ROW_READ: u64 = 4;
/// A read of neighbouring elements by neighbouring threads that starts anywhere.
pub const SHIFTED_READ: u64 = 8;
/// Cost of a value that a shuffle takes from another lane.
pub const EXCHANGE: u64 = 3;
/// Maximum number of lanes at both ends of a warp that compute values for other lanes only.
pub const MOST_REACH: u32 = LANES / 4;
/// A read of elements that lie several elements apart.
pub const SCATTERED_READ: u64 = 16;

/// Cost of a strip whose rows share what lanes compute, in hundredths of that of one whose rows do not, from
/// which on it does not pay.
pub const SHARED_STRIP_GAIN: Gain = Gain::new(90);
/// Cost of the computation of a strip in hundredths of that of its rows one by one, from which on its rows
/// share nothing but what they read.
pub const STRIP_COMPUTATION_GAIN: Gain = Gain::new(95);
/// Cost of a position of a strip in hundredths of that of a position alone, up to which the larger code of a
/// strip pays.
const STRIP_COST: u64 = 95;

/// Returns the cost of a position in hundredths, where a strip of so many rows costs so much and so many
/// lanes of a warp have results.
pub fn strip_cost(cost: u64, rows: u32, lanes: u64) -> u64 {
    cost * 100 * u64::from(LANES) / (u64::from(rows) * lanes)
}

/// Returns whether strips whose positions cost so many hundredths pay, where a position alone costs so much.
pub fn strip_pays(hundredths: u64, alone: u64) -> bool {
    hundredths <= alone * STRIP_COST
}

/// Returns the cost of a patch of so many rows in hundredths of that of a lower one, from which on its larger
/// code does not pay.
pub fn patch_gain(rows: u32) -> Gain {
    if rows > 8 { TALL_PATCH_GAIN } else { PATCH_GAIN }
}

/// Returns the hundredfold of the cost of an operation where threads keep so many values: with fewer threads
/// at a time less latency is hidden.
pub fn patch_share(live: u32) -> u64 {
    100 + u64::from(live) / 2
}

impl Costs<'_> {
    /// Returns whether code at neighbouring positions is written side by side in one thread. Threads of a GPU
    /// have neighbouring positions each; a lane of vectors, and the interpreter, have no such neighbours.
    pub fn side_by_side(&self) -> bool {
        self.machine.kind != MachineKind::Cuda
    }

    /// Returns whether lanes take values from each other rather than compute them again: a shuffle of vectors
    /// is one instruction.
    pub fn lanes_share(&self) -> bool {
        self.in_vectors()
    }

    /// Returns whether kernels are joined to chains: a core walks down the rows, and those that are read
    /// again stay in its cache. On an H200, chains took 1.4 to 1.7 times as long as the kernels that they
    /// replaced.
    pub fn chains(&self) -> bool {
        self.in_vectors()
    }

    /// Returns whether lines of so many bytes that one function computes and another reads are kept in shared
    /// memory: on vectors that is the cache of a core, from which inputs and results that pass through do not
    /// displace them.
    pub fn relays(&self, bytes: u64) -> bool {
        self.chains() && bytes.saturating_mul(RELAY_ROWS.into()) <= u64::from(self.core_cache(8).min(self.shared_bytes() / 2))
    }

    /// Returns whether kernels of a chain take the components of a picture one by one: fewer rows stay in the
    /// cache of a core.
    pub fn splits_components(&self) -> bool {
        self.chains()
    }

    /// Returns whether a lane has several rows of results where rows read much the same: what they share
    /// stays in registers. Threads of a GPU find it in the first cache.
    pub fn rows_share(&self) -> bool {
        self.in_vectors()
    }

    /// Returns the operations that all lanes start while so many bytes are read or written, in hundredths.
    /// The peak of the machine counts a multiplication and an addition of each lane in a cycle.
    pub fn started(&self, bytes: u64) -> u64 {
        bytes * self.balance() * 100 / 2
    }

    /// Returns whether threads take patches of several rows and columns, which pay for accesses to the first
    /// cache.
    pub fn takes_patches(&self) -> bool {
        !self.in_vectors()
    }

    /// Returns whether stencils that read each other become one kernel by the cost of their patches.
    pub fn joins_stencils(&self) -> bool {
        self.machine.kind == MachineKind::Cuda
    }
}
