//! Kernels of dataflow graphs: actors that fire again and again and pass items over buffers.
//!
//! A *unit* is the smallest number of firings that leaves buffers as they were. A *round* is one pass through
//! a loop of a firing. A *word* is a number of an item, of 4 or 8 bytes. A *batch* is the work of one launch
//! of all kernels.

use super::{Costs, Each, Execution};

// Firings as scalar code.

/// Maximum words of the state of an actor.
pub const STATE_WORDS: u64 = 1 << 24;
/// Maximum words of an item.
pub const ITEM_WORDS: u64 = 1 << 14;
/// Maximum words of a buffer, so that indices have 32 bits.
pub const BUFFER_WORDS: i64 = 1 << 29;
/// Maximum scalars of an array of a thread.
pub const ARRAY_SCALARS: u32 = 1 << 14;
/// Maximum rounds of all conditional loops of a firing. A firing with more rounds fails.
pub const CONDITIONAL_ROUNDS: i32 = 1 << 24;
/// Maximum rounds of nested counted loops of a firing.
pub const COUNTED_ROUNDS: u64 = 1 << 28;
/// Maximum number of calls inside of calls.
pub const CALL_DEPTH: usize = 64;
/// Maximum rounds of a loop whose rounds are operations of their own.
pub const INDEPENDENT_ROUNDS: u32 = 1 << 14;
/// Minimum scalars of a value that is compared with others by address only: comparing all of them takes
/// longer than a second translation.
pub const COMPARED_SCALARS: usize = 1 << 14;

/// Maximum firings of a steady state that the evaluator runs while kernels are compiled. More of them might take longer
/// than the compilation.
pub const EVALUATED_FIRINGS: u64 = 1 << 16;

// Firings that threads of a block share.

/// Minimum input words of a firing whose loops threads share.
pub const SHARED_FIRING_WORDS: u64 = 256;
/// Minimum rounds of a loop that threads share.
pub const SHARED_LOOP_ROUNDS: u32 = 128;
/// True if threads share sums of floats even in accurate programs: one thread for each firing would leave most
/// threads idle. Cores of a CPU add in the written order.
pub const SHARES_FLOAT_SUMS: Each<bool> = Each { vectors: false, threads: true };
/// Maximum elements of an array in shared memory.
pub const SHARED_ARRAY_ELEMENTS: u32 = 4096;
/// Words that a thread of a shared loop loads together: an access of 16 bytes.
pub const ROW_WORDS: u32 = 4;
/// Minimum rounds of each thread before a shared loop is split among blocks.
pub const SPLIT_ROUNDS: Each<u32> = Each { vectors: 512, threads: 16 };
/// Maximum blocks per core among which a shared loop is split.
pub const SPLIT_BLOCKS: Each<u64> = Each { vectors: 4, threads: 8 };
/// Maximum words that all parts of a split loop store.
pub const SPLIT_WORDS: u32 = 1 << 22;
/// Maximum operations of a round that is unrolled for each word of a row.
pub const UNROLLED_ROUND: u64 = 64;

// Sections: actors that become kernels together.

/// Threads of a block.
pub const THREADS: Each<u32> = Each { vectors: 64, threads: 128 };
/// Threads of a block that runs one firing.
pub const FIRING_THREADS: Each<u32> = Each { vectors: 128, threads: 256 };
/// Threads of a block that runs many firings whose items are added up. They share the copies of counters.
pub const TOTAL_THREADS: Each<u32> = Each { vectors: 128, threads: 512 };
/// Maximum words that a thread keeps between the actors of a unit.
pub const THREAD_WORDS: Each<u64> = Each { vectors: 256, threads: 64 };
/// Maximum bytes of shared memory for the buffers of a block, so that several blocks are resident.
pub const SHARED_BYTES: u64 = 40 << 10;
/// Approximate firings of each actor per thread of a block.
pub const THREAD_FIRINGS: i64 = 4;
/// Maximum units of a block.
pub const BLOCK_UNITS: i64 = 1 << 14;
/// Maximum number of actors that are added to a kernel one by one. The number of actors of a larger kernel is
/// found by bisection.
pub const COUNTED_ACTORS: usize = 64;
/// Maximum number of actors of a kernel. The time to compile straight code grows with more than its length.
pub const KERNEL_ACTORS: usize = 512;
/// Minimum firings of an actor in a unit for which the threads of a block share them, unless all are
/// unrolled.
pub const MANY_FIRINGS: i64 = 32;
/// Maximum firings of a unit for which each has a block on threads, even if its items are strided. These are
/// too few for one thread per firing.
pub const BLOCK_FIRINGS: i64 = 4096;
/// Maximum operations of a unit whose firings are unrolled, so that items between actors are registers.
pub const UNROLLED_UNIT: u64 = 6144;
/// Maximum operations of a unit for which a thread runs several units.
pub const SHORT_UNIT: u64 = 256;
/// Numbers of units of a thread that are tried, the largest first.
pub const THREAD_UNITS: [i64; 2] = [4, 2];
/// Maximum words of the units of a thread that runs several.
pub const THREAD_UNIT_WORDS: i64 = 32;
/// Maximum words of a buffer in a unit that are kept in registers.
pub const REGISTER_WORDS: i64 = 64;
/// Words that a lane of vectors loads and stores together.
pub const QUAD: i64 = 4;
/// Maximum bytes of an access to global memory, and the alignment of buffers that such accesses need.
pub const ACCESS_BYTES: u32 = 16;
/// Maximum number of targets that are computed for the table of a window.
pub const TABLE_TARGETS: i64 = 1 << 16;
/// Maximum rounds of a joiner after which its targets repeat.
pub const JOINER_ROUNDS: i64 = 1 << 14;
/// Maximum ports of a joiner that is not a permutation and is resolved to index arithmetic.
pub const JOINER_PORTS: usize = 4;
/// Maximum steps of index arithmetic behind such a joiner.
pub const JOINER_STEPS: usize = 12;

// Copies between global and shared memory.

/// Accesses of a thread that are in flight together.
pub const COPIES_IN_FLIGHT: i64 = 4;
/// Maximum accesses of a thread that are unrolled.
pub const UNROLLED_COPIES: i64 = 16;
/// Maximum accesses of a thread whose words wait in registers, over all inputs of a prefetched tile.
pub const PREFETCHED_ACCESSES: i64 = 8;

// Components: firings of several actors that a thread runs in registers.

/// Maximum live words of a component in registers.
pub const COMPONENT_WORDS: usize = 32;
/// Maximum live words of a component that is a single operation: they are loaded at their first read.
pub const SINGLE_OPERATION_WORDS: usize = 256;
/// Maximum operations of an actor in a unit.
pub const COMPONENT_ROUNDS: i64 = 4096;
/// Maximum number of actors that are tried together.
pub const COMPONENT_ACTORS: usize = 16;
/// Maximum number of actors of a kernel that is searched. In larger kernels each actor has few firings.
pub const SEARCHED_ACTORS: usize = 128;
/// Maximum operations of a component, because its code is unrolled.
pub const COMPONENT_OPERATIONS: usize = 256;
/// Maximum number of indices that are computed for the rounds of an actor.
pub const COMPONENT_INDICES: i64 = 1 << 16;
/// Maximum number of classes of components.
pub const COMPONENT_CLASSES: usize = 4;

// Linear actors: their coefficients and their combination.

/// Maximum number of items that a linear actor reads, and writes.
pub const LINEAR_ITEMS: u32 = 512;
/// Maximum product of read items and operations of a combined actor, because its matrix is unrolled.
pub const LINEAR_MATRIX: u64 = 1 << 20;
/// Maximum operations of a firing whose coefficients are searched.
pub const LINEAR_OPERATIONS: u64 = 1 << 20;
/// Maximum number of items that several firings of an actor write together if they are merged into one.
pub const LINEAR_MERGED_ITEMS: i64 = 64;
/// Maximum number of branches that are combined where combining a single branch does not pay off.
pub const LINEAR_BRANCHES: usize = 64;
/// Maximum rows of coefficients that share the loads of items. Each has its sum in a register.
pub const LINEAR_SHARED_ROWS: usize = 8;
/// Maximum coefficients of a row that are unrolled. Larger rows are a loop over a table.
pub const UNROLLED_COEFFICIENTS: usize = 16;
/// Numbers of coefficients of a convolution for which the fast Fourier transform may be faster. The maximum
/// is the largest of [`TRANSFORM_POINTS`].
pub const CONVOLUTION_COEFFICIENTS: std::ops::RangeInclusive<i64> = 64..=4096;
/// Sizes of transforms, in points.
pub const TRANSFORM_POINTS: [u32; 3] = [256, 1024, 4096];
/// The time of a point in a pass of a transform, in products with coefficients: a quarter of a radix-4
/// butterfly, and the exchange with other threads.
const TRANSFORM_POINT: Each<u64> = Each { vectors: 18, threads: 24 };

// Recurrences: states that are scanned.

/// Maximum numbers in a state.
pub const RECURRENCE_STATES: usize = 4;
/// Maximum to which a power of a coefficient may grow.
pub const RECURRENCE_GROWTH: f64 = 1e4;
/// Minimum operations per firing for which vectors scan firings instead of running them in order.
const SCANNED_FIRING: u64 = 256;
/// Firings of a thread of a scan.
pub const SCAN_FIRINGS: u32 = 16;
/// Threads of a block of a scan.
pub const SCAN_THREADS: u32 = 256;

// Islands: actors whose firings run one after the other.

/// Maximum words of a buffer within an island that a thread keeps in registers or a local array.
pub const ISLAND_WORDS: u64 = 64;
/// Maximum elements of a field that a thread keeps in a local array.
pub const ISLAND_ELEMENTS: u64 = 32;
/// Maximum steps of a round, a period of the order of firings.
pub const ISLAND_STEPS: usize = 512;
/// Maximum filters in a row that become one island.
pub const ISLAND_FILTERS: usize = ISLAND_STEPS / 4;
/// Maximum steps that are searched for a round.
pub const ISLAND_SEARCH: usize = 64 * ISLAND_STEPS;
/// Units of a round in which the threads of a block share the firings of a step, the largest first.
pub const ISLAND_ROUNDS: [i64; 3] = [256, 64, 16];
/// Maximum threads of a block that share these firings.
pub const ISLAND_THREADS: i64 = 256;
/// Maximum operations of stateless actors that an island takes in, for each firing of a stateful actor beside
/// them. They are hidden by its loads and stores. Outside of the island, vectors would run them on all cores;
/// threads have more memory latency to hide.
pub const ABSORBED_OPERATIONS: Each<u64> = Each { vectors: 8, threads: 32 };

// Batches.

/// Approximate bytes of a buffer in a batch. Threads need many firings. On vectors, the buffers of a batch
/// should stay in the cache.
const BATCH_BYTES: Each<u64> = Each { vectors: 4 << 20, threads: 64 << 20 };
/// The part of the memory that a buffer has in a batch, at most.
const BATCH_SHARE: u64 = 64;
/// Items per batch of a buffer between a kernel and the host.
pub const HOST_ITEMS: u64 = 1 << 20;
/// Maximum items of a file that pass together to or from the host. They stay in the cache.
pub const FILE_ITEMS: u64 = 1 << 12;
/// Maximum number of units in a batch.
pub const BATCH_UNITS: u64 = 1 << 24;
/// Maximum number of units in a batch whose output is put into order.
pub const ORDERED_BATCH_UNITS: u64 = 1 << 16;

/// Returns whether padding of a buffer in shared memory pays: an access waits for more than one and a half
/// others of its bank, on average. Padding costs some operations for each access.
pub fn pads(conflicts: u64, accesses: u64) -> bool {
    2 * conflicts > 3 * accesses
}

/// Returns whether few firings of a block are computed again for another block: an eighth of its own, at
/// most.
pub fn repeats_few(again: i64, own: i64) -> bool {
    again * 8 <= own
}

/// Returns whether a block has so few firings that its threads share the rounds of each.
pub fn shares_rounds(firings: i64, threads: u32) -> bool {
    firings < 2 * i64::from(threads)
}

/// Returns whether rows of coefficients share their loads: a quarter of all coefficients lies at items that
/// some rows do not use, at most.
pub fn rows_share_loads(apart: usize, all: usize) -> bool {
    apart * 4 <= all
}

/// Returns whether a table of anchors does not pay: the items of a firing need more than half as many
/// anchors, and more than two.
pub fn anchors_differ(anchors: i64, items: i64) -> bool {
    anchors * 2 > items.max(4)
}

/// Returns whether the threads of a block share the firings of a round of an island: actors fire in few
/// steps, and each step has enough firings.
pub fn shares_steps(steps: usize, actors: usize, least_firings: i64) -> bool {
    steps <= 2 * actors && least_firings >= 8
}

impl Costs<'_> {
    /// Returns whether a state is scanned, if a firing takes `operations`. A core runs cheap firings faster
    /// one after the other than twice in parallel.
    pub fn scans_states(&self, operations: u64) -> bool {
        self.execution == Execution::Threads || operations >= SCANNED_FIRING
    }

    /// Returns the size of the transform with which a convolution takes less time than with a product for
    /// each of its coefficients, if there is one.
    pub fn transform(&self, coefficients: u64) -> Option<u32> {
        // Times per item, with a common factor. The two transforms of a window serve two windows.
        const SCALE: u64 = 64;
        let time = |points: u32| {
            let valid = (u64::from(points) + 1).saturating_sub(coefficients);
            let passes = u64::from(points.ilog2() / 2);
            let all = passes * self.pick(TRANSFORM_POINT) * u64::from(points) * SCALE;
            Some((all.checked_div(valid)?, points))
        };
        let (best, points) = TRANSFORM_POINTS.into_iter().filter_map(time).min()?;
        (best < coefficients * SCALE).then_some(points)
    }

    /// Returns the approximate bytes of a buffer in a batch.
    pub fn batch_bytes(&self) -> u64 {
        self.pick(BATCH_BYTES).min(self.machine.memory_bytes / BATCH_SHARE)
    }
}
