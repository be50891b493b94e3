//! The cost model: the cost of work on a machine. No other place asks for the kind of a machine.
//!
//! `device` describes a machine: its cores, caches, bandwidth, the time of a launch. [`Costs`] turns that
//! into what patterns and planners ask: how blocks are executed, how many blocks keep all cores busy, how
//! many operations a byte is worth, how long a kernel will take. Nobody else asks what kind of machine it is;
//! `crates/tidy` holds that.
//!
//! Numbers that depend on cores, resident threads, registers, caches or bandwidth are functions of [`Costs`]. A
//! constant below is a property of an algorithm or of PTX, with its reason; where it differs between vectors and
//! threads, it is an [`Each`]. They were found on the machines of `docs/PERFORMANCE.md`, an Intel Xeon with
//! AVX-512 and an H200, which have the sizes that are assumed where a description has none.
//!
//! Operations are counted in *simple operations*: an addition of one lane is 1 ([`operation`], [`function`]).
//! The cost of a position is the sum over all that is computed there; loops count their rounds.

mod workers;

pub use workers::{Teams, Workers};

use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{BinaryOp, Function, Op, Type, UnaryOp};
use std::time::Duration;

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

// Blocks of vectors that a core has in turn: so many that cores are done at about the same time, also where
// other processes use some of them. On threads there are as many blocks as are resident together
// ([`Costs::blocks`]).

/// Blocks of a stencil. So few that the strips of one share the rows that they read in its cache.
pub const STENCIL_BLOCKS: u64 = 16;
/// Blocks of a histogram, which are short.
pub const HISTOGRAM_BLOCKS: u64 = 64;
/// Blocks among which a reduction is split, where neighbouring threads have neighbouring results.
pub const REDUCE_COLUMN_BLOCKS: u64 = 8;
/// Blocks among which a reduction is split, where the threads of a block have one result.
pub const REDUCE_ROW_BLOCKS: u64 = 16;
/// Blocks among which lines of a scan are split, where neighbouring threads have neighbouring lines.
pub const SCAN_COLUMN_BLOCKS: u64 = 8;
/// Blocks among which lines of a scan are split, where the threads of a block have one line.
pub const SCAN_ROW_BLOCKS: u64 = 16;
/// Blocks of a pack in three steps.
pub const PACK_BLOCKS: u64 = 16;
/// Blocks of a sort.
pub const SORT_BLOCKS: u64 = 8;
/// Blocks of a sweep whose lines are split.
pub const SWEEP_BLOCKS: u64 = 16;
/// Parts of a reduction of segments.
pub const SEGMENT_PARTS: u64 = 16;

// When there is enough work in parallel: results or lines for each core, below which one is split among
// blocks.

/// Results for each core of vectors, where neighbouring threads have neighbouring results.
const ENOUGH_COLUMNS: u64 = 512;
/// Results for each core of vectors, where the threads of a block have one result.
const ENOUGH_ROWS: u64 = 4;
/// Lines of a scan for each core of vectors, where neighbouring threads have neighbouring lines.
const ENOUGH_SCAN_COLUMNS: u64 = 128;
/// Lines of a sweep for each core of vectors: one warp.
const ENOUGH_SWEEPS: u64 = LANES as u64;
/// Lines of a scan for each core, where the threads of a block have one line.
pub const ENOUGH_SCAN_ROWS: u64 = 4;
/// Results for each core, below which a block of vectors has one result.
pub const FEW_ROWS: u64 = 32;
/// Elements of a result, below which neighbouring threads have neighbouring results whatever their order in
/// memory.
pub const SHORT_FOLD: Each<u64> = Each { vectors: 32, threads: 16 };
/// Elements of a result, above which the threads of a block have one together. On vectors a core runs through
/// 65,536 elements faster than several share them.
pub const LONG_FOLD: Each<u64> = Each { vectors: 1 << 16, threads: 1024 };
/// Elements along the split axis, below which splitting costs more than it saves: a second kernel combines
/// the parts.
pub const SPLIT_COLUMNS: u64 = 64;
/// Elements along the split axis, below which splitting costs more than it saves, where the threads of a block have one
/// result or line.
pub const SPLIT_ROWS: u64 = 8192;

// The size of a block's work.

/// Elements that a warp of vectors runs through before its block ends: starting a block then costs little.
pub const STRETCH: u32 = 4096;
/// Elements that a block of vectors reduces at a time; a multiple of four warps.
pub const REDUCE_TILE: u32 = 4096;
/// Results that a warp of vectors has at a time: what is read for all of them is read once.
pub const REDUCE_RESULTS: u32 = 4;
/// Threads of a block in which neighbouring threads have neighbouring results or lines: one warp on vectors.
pub const COLUMN_THREADS: Each<u32> = Each { vectors: 32, threads: 128 };
/// Threads of a block of threads whose threads have one result, tile or sequence of segments together.
pub const BLOCK_THREADS: u32 = 256;
/// Tiles that a block of a reduction has at most where several blocks have one result.
pub const REDUCE_TILES: u32 = 64;
/// Segments of a lane that looks for the tiles that start in them: their loads are under way together.
pub const STARTED_SEGMENTS: u32 = 4;
/// Elements of a thread whose segments are numbered, in rows of four: a block searches once for all of its elements.
pub const NUMBERED_ITEMS: u32 = 16;
/// Threads of a block that combines the parts of a result.
pub const COMBINE_THREADS: Each<u32> = Each { vectors: 32, threads: 256 };
/// Threads of a block that scatters: on vectors a block is a loop over its warps, and longer ones cost less
/// to start.
pub const SCATTER_THREADS: Each<u32> = Each { vectors: 1024, threads: 256 };
/// Positions that a thread of a histogram counts before its block adds up, at least. A block of vectors has
/// fewer threads.
pub const COUNTED: Each<u32> = Each { vectors: 512, threads: 64 };
/// Rows of a block of threads that moves a tile from one order of axes to another, or stages a window.
pub const TILE_ROWS: u32 = 8;
/// Warps of a block of a pack on threads.
pub const PACK_WARPS: u32 = 8;
/// Warps of a block of a histogram on vectors: more than one, so that barriers stand around their counting and each lane can have counters.
pub const HISTOGRAM_WARPS: u32 = 2;
/// Accesses of a thread of a histogram that are under way together.
pub const HISTOGRAM_PIECES: u32 = 2;
/// Rows of 16 bytes that a thread of a loop over memory loads together, where threads share the loop. Vectors load the words
/// of neighbouring lanes together anyway.
pub const LOOP_ROWS: Each<u32> = Each { vectors: 0, threads: 2 };
/// Copies of counters in shared memory that lanes of a warp add to side by side: with 32 of them, a bank for each lane.
const COUNTER_COPIES: [u32; 2] = [32, 16];
/// Bytes of all copies, at most: several blocks are resident.
const COUNTER_BYTES: u64 = 32 << 10;
/// Additions for each copy of a counter, at least: it is set to zero and read once.
const COUNTER_ADDITIONS: u64 = 8;
/// Bytes of shared memory that the machine itself needs for a block.
const BLOCK_SHARED: u32 = 1024;
/// Cycles of a load from the memory of a GPU while other loads keep it busy.
const LOAD_CYCLES: u64 = 4000;
/// Resident blocks of a core, up to which each loads its next tile while it computes.
const LONE_BLOCKS: u64 = 1;
/// Lanes that a core of a GPU executes in a cycle.
const CORE_LANES: u64 = 128;
/// Registers of a thread for addresses, indices and the loads that are under way.
const ADDRESS_REGISTERS: u32 = 24;
/// Threads of a stencil that a core holds, at most: loads that are under way need registers too.
const RESIDENT_STENCIL: u32 = 1280;
/// The longest segment that a block of threads sorts in shared memory.
pub const SORTED_SEGMENT: u64 = 1024;
/// The longest segment that the lanes of vectors sort together.
pub const SORTED_BY_LANES: u64 = 1 << 14;
/// The longest segment that one warp of threads sorts.
pub const SORTED_IN_WARP: u32 = 256;
/// Threads of a block that sorts a segment.
pub const SEGMENT_SORT_THREADS: u32 = 128;
/// Segments that a lane of vectors sorts in turn: a block is worth some work.
pub const SEGMENT_SORT_TURNS: u32 = 4;
/// Places of a segmented sort that a thread holds in registers.
pub const SEGMENT_SORT_HELD: u32 = 8;
/// Bits of a digit of a radix sort on threads: a block has a thread for each of its values.
pub const SORT_BITS: u32 = 8;
/// Counters for each value of a digit on vectors, so that equal neighbours do not wait for each other.
pub const SORT_TABLES: u32 = 4;
/// Elements that a sort on vectors moves together where a part keeps its order.
pub const SORT_TOGETHER: u32 = 16;
/// Tiles that a thread of a sort looks at together, back from its own.
pub const SORT_LOOKS: u32 = 4;
/// Warps of a block that wait for other blocks.
pub const WAITING_WARPS: u32 = 3;
/// Columns of results of a lane of vectors, a warp apart, where it has one row of them.
pub const REDUCE_COLUMNS: u32 = 4;
/// Rows of a strip of a product with sums of 32 bits: they fill three quarters of the vector registers of AVX-512.
const PRODUCT_STRIP: u32 = 12;
/// Rows of a tile of a product, at most: the right factor is copied once for all of them.
const PRODUCT_ROWS: u32 = 1032;
/// Panels of a tile of a product, at least.
pub const PRODUCT_PANELS: u32 = 4;
/// Positions of a part of a sweep, at least.
pub const SWEEP_PART: u32 = 64;
/// Nodes of a function, up to which a thread gets by with 32 registers.
pub const FEW_REGISTERS: usize = 128;
/// Rows above a last axis, from which on threads have strips of rows.
pub const TALL: usize = 16;
/// Elements of an image, from which on it does not stay in the caches of cores from one kernel to the next.
pub const LARGE: usize = 1 << 20;
/// Elements of the smallest part of a sort or a pack on vectors.
pub const PART: u32 = 2048;
/// Elements of the smallest part of a line of segments on vectors.
pub const SEGMENT_PART: u32 = 4096;
/// Elements of the longest segment that a lane of vectors has for itself: others wait for it.
pub const SHORT_SEGMENT: u32 = 32;
/// Elements of a segment in the mean, up to which a warp of vectors reads rows of elements rather than rows of each segment. By measurement on a Xeon with AVX-512, one
/// thread beside other work: sums of 500,000 `f32` take 0.75 ms in rows of elements for means of 5.5 and 6.5, and 0.56, 0.47 and 0.38 in rows of each segment for 8, 9.5 and
/// 12; of `f64` 1.3, and 0.86, 0.72 and 0.61. The second grows with the number of segments and would meet the first between 5 and 6.
pub const SPARSE_SEGMENT: u32 = 7;
/// Steps of a scan of a warp, each a combination, an exchange of lanes and a choice.
const SCAN_STEPS: u64 = 5;
/// An element in a row of segments besides its scan: where segments end, and their results. By measurement on a Xeon with AVX-512, as is the next one.
const SEGMENTED_ELEMENT: u64 = 46;
/// A read of elements at places that lanes compute each for itself.
const GATHER: u64 = 51;
/// Rounds of a warp for each that a lane needs, where each lane goes through its own segment and waits for the longest.
const WAITING: u64 = 2;

// Caches and memory.

/// Bytes of a line of the cache, the same on all x86 CPUs.
pub const CACHE_LINE: u32 = 64;
/// Elements between two that mostly lie in one line of a cache.
pub const NEIGHBOURS: i64 = 4;
/// Lanes of a warp, fixed by PTX. A last axis of as many elements is long: neighbouring threads work along it.
pub const LANES: u32 = 32;
/// Blocks in the second direction of a grid, at most; the same on all GPUs.
pub const GRID_ROWS: u32 = 65535;
/// Bytes of static shared memory of a block of threads, at most; fixed by PTX.
pub const STATIC_SHARED: u64 = 48 << 10;
/// Bytes of shared memory of a block of a sweep, at most.
pub const SWEEP_SHARED: u32 = 40 << 10;
/// Bytes of shared memory for the rows between the stages of a chain, at most: an eighth of a core's own cache, so that
/// inputs and results that pass through do not displace them.
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
/// Cost of a plan with chains, in hundredths of that of a plan without, from which on chains are not worth their larger kernels.
pub const CHAIN_GAIN: u128 = 75;
/// Blocks of a relay for each core: rows of a block follow each other and share what their lines are computed from.
pub const RELAY_BLOCKS: u64 = 32;
/// Rows of a relay that are computed together: places that they read alike are computed once.
pub const RELAY_ROWS: u32 = 4;
/// Values of a line for 32 results of a relay, up to which these mostly read one row of 32 values, or two: a few more than for results side by side.
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
/// Values that a thread reads for a patch of several columns, at most: loads of more are further ahead of their use than registers reach.
pub const PATCH_READS: u64 = 1024;
/// Cost of a patch in hundredths of that of a smaller one, from which on its larger code does not pay.
pub const PATCH_GAIN: u64 = 95;
/// Cost of a patch of more than eight rows in hundredths of that of a lower one, from which on it does not pay: more rows remain below the last patch as well. On an H200
/// the sparse filter of `diffusion`, 91 by this model, took 0.104 ms with 16 rows and 0.094 with eight. Means along both axes in one kernel are 69.
pub const TALL_PATCH_GAIN: u64 = 80;
/// Cost of a plan in hundredths of that of one with more kernels, from which on larger kernels do not pay.
pub const JOIN_GAIN: u128 = 95;
/// Time of a kernel of patches whose bytes take longer than its operations, in hundredths of the time of the bytes.
pub const PATCH_MEMORY: u64 = 120;
/// Threads for the positions around the patches of an image, for each of its rows and columns.
pub const FRAME_THREADS: u32 = 16;
/// Threads for each row and column where most positions around the patches are computed in strips.
pub const BORDER_THREADS: u32 = 4;
/// Positions of such a strip, at most. Longer strips share more, but their code and that of patches together exceed the cache of instructions.
pub const BORDER_POSITIONS: u32 = 4;
/// Operations of a position from which on those around patches may be computed in strips, whose code has to be compiled.
pub const BORDER_WORK: u64 = 64;
/// Cost of a position of such a strip, at most, in hundredths of that of a position alone.
pub const BORDER_GAIN: u64 = 60;
/// Operations of a thread besides those of its positions: where it is, whether that is in the interior, addresses.
pub const PATCH_START: u64 = 32;
/// A read of neighbouring elements by neighbouring threads, which starts at a multiple of a row of the first cache: threads read by a quarter of the lanes that
/// compute. One that starts elsewhere takes two rows. A mean of 17 neighbours takes 90 us on an H200, as long as 33 such accesses of all threads.
pub const ROW_READ: u64 = 4;
/// A read of neighbouring elements by neighbouring threads that starts anywhere.
pub const SHIFTED_READ: u64 = 8;
/// Cost of a value that a shuffle takes from another lane.
pub const EXCHANGE: u64 = 3;
/// Maximum number of lanes at both ends of a warp that compute values for other lanes only.
pub const MOST_REACH: u32 = LANES / 4;
/// A read of elements that lie several elements apart.
pub const SCATTERED_READ: u64 = 16;

/// Returns the cost of a patch of so many rows in hundredths of that of a lower one, from which on its larger code does not pay.
pub fn patch_gain(rows: u32) -> u64 {
    if rows > 8 { TALL_PATCH_GAIN } else { PATCH_GAIN }
}

/// Returns the hundredfold of the cost of an operation where threads keep so many values: with fewer threads at a time less latency is hidden.
pub fn patch_share(live: u32) -> u64 {
    100 + u64::from(live) / 2
}

/// Bytes of shared memory for the elements of a tile of a sort: several blocks are resident on a core.
pub const SORT_TILE: u32 = 24 << 10;
/// Bytes of shared memory for the elements of a tile of segments. Blocks leave half of a core's memory to its first cache, which has
/// a line for every load at a computed place that is under way.
pub const SEGMENT_TILE: u32 = 20 << 10;
/// Bytes of shared memory for what a pack chooses in a tile.
pub const PACK_TILE: u32 = 32 << 10;
/// Bytes of the lines that a sort on vectors collects that have a fixed place in shared memory, at most.
pub const SORT_STATIC: u32 = 32 << 10;
/// Measured cost of a round of a sort on vectors, by the bits of a digit; the unit does not matter.
pub const SORT_ROUNDS: [(u32, u32); 4] = [(8, 30), (9, 32), (10, 37), (11, 44)];
/// Reads of a window at a position, from which on a tile of it is staged in shared memory. On an H200, a box blur of 9
/// reads takes 87 us from memory and 67 us from a tile, one of 25 reads 145 and 89.
pub const STAGED_READS: u64 = 8;
/// Values of a tile with its halo for each position of the tile, at most: more are mostly loaded in vain where the radius
/// of a call is less than the declared one.
pub const STAGED_GROWTH: u64 = 4;
/// Bins of a histogram that are counted in shared memory, at most: 32 KiB of counters of threads. Those of a core of vectors
/// may fill 128 KiB of its own cache.
pub const SHARED_BINS: Each<u32> = Each { vectors: 32768, threads: 8192 };
/// Positions that a block of a histogram counts for each bin in its shared memory, at least.
pub const COUNTED_PER_BIN: u32 = 4;
/// Elements of segments that are prefetched before their row is reduced: a core that is busy with the ends of segments does not look ahead so far. By
/// measurement on a Xeon with AVX-512, 128 to 2048 are about as good.
pub const ELEMENTS_AHEAD: u32 = 512;
/// Rows of a reduction along columns that are prefetched before they are reduced.
pub const ROWS_AHEAD: u32 = 8;
/// Operations of a function, up to which rows are prefetched: more take longer than memory does.
pub const PREFETCHED: u64 = 256;
/// Rows of the right factor of a product that are prefetched before they are copied.
pub const FACTOR_ROWS_AHEAD: u32 = 4;
/// Rows of a panel of a product that are prefetched before they are multiplied.
pub const PANEL_ROWS_AHEAD: u32 = 16;
/// Elements between rows of a copied factor, so that rows do not fall onto each other in a cache.
pub const ROW_PADDING: u32 = 16;
/// Resident threads of a multiprocessor, where they are not known.
const RESIDENT: u32 = 2048;
/// Bytes of a core's own cache, where they are not known.
const CORE_CACHE: u64 = 2 << 20;
/// Bytes and number of the vector registers of a core, where they are not known.
const VECTOR_REGISTERS: (u32, u32) = (64, 32);
/// The part of the peak bandwidth that kernels reach.
const REACHED: f64 = 0.9;
/// Bandwidth of the last-level cache, as a multiple of that of memory: about, where the arrays of a kernel
/// fit into it.
const CACHE_SPEED: f64 = 3.0;
/// The part of the last-level cache that a kernel's arrays can have.
const CACHE_SHARE: u64 = 2;

// Sequential calls. A recursive function with nested parallelism is flattened level by level, or its calls run in one
// thread each. Figures are those of quicksort on the machines of `docs/PERFORMANCE.md`.

/// Launches of a flattened level.
const LEVEL_LAUNCHES: f64 = 24.0;
/// Bytes that the kernels of a flattened level read and write for each element of its calls.
const LEVEL_BYTES: f64 = 200.0;
/// Flattened levels for each level of a balanced recursion: flattened code goes on until the deepest call ends.
const LEVELS: f64 = 2.0;
/// Dependent accesses of a thread to memory for each element and each level of a balanced recursion.
const THREAD_ACCESSES: f64 = 10.0;
/// Dependent accesses of a warp to memory for each element of a call, where other warps take parts of it.
const WARP_ACCESSES: f64 = 1.0;
/// The smallest number of elements of a call that another warp may take, and that another core may take.
const TASK_ELEMENTS: u32 = 96;
const CORE_TASK_ELEMENTS: u32 = 1 << 12;
/// Elements of a small call as a multiple of a worker's part of all elements, at most: other workers wait for the call, or
/// take parts of it.
const PART_OF_WORKER: f64 = 1.5;
const PART_OF_CORE: f64 = 2.0;
/// The part of the memory that arenas of sequential calls take, at most.
const ARENA_SHARE: u64 = 16;
/// Bytes of an arena for each element of a call, on a GPU and on a CPU, and besides. Memory of a CPU that is not used takes
/// no page.
const ARENA_OF_ELEMENT: u64 = 96;
const CORE_ARENA_OF_ELEMENT: u64 = 192;
const ARENA: u64 = 1 << 13;
/// Elements of a part of a call that a worker without calls can take in any case: its arena is made for them.
const TASK_ARENA_ELEMENTS: u64 = 1 << 12;
/// Threads of a multiprocessor for sequential calls: half of those that are resident.
const WORKERS_SHARE: u64 = 2;
/// Warps of a block for sequential calls.
const WARPS_OF_BLOCK: u32 = 2;
/// Calls that teams of warps run, at most, and the smallest number of elements of the largest of them.
const TEAM_CALLS: u64 = 1 << 10;
const TEAM_ELEMENTS: u64 = 1 << 12;
/// Threads of a block of teams, and blocks of a multiprocessor.
const TEAM_THREADS: u32 = 512;
const TEAM_BLOCKS: u32 = 2;
/// Bytes of the arena of teams for each element and for each call, and besides. A team releases no memory, so they are for all
/// levels of a recursion together.
const TEAM_ARENA_OF_ELEMENT: u64 = 1536;
const TEAM_ARENA_OF_CALL: u64 = 1 << 15;
const TEAM_ARENA: u64 = 1 << 22;
/// Bytes of the stack of a thread for a call in a call.
const TEAM_FRAME: u64 = 384;
/// The part of the memory that the arena of teams takes, at most.
const TEAM_ARENA_SHARE: u64 = 4;
/// Elements of a call that runs in one thread of a GPU, at most, where there are calls for that many threads.
const THREAD_ELEMENTS: u64 = 128;
/// Threads of a multiprocessor for such calls: an eighth of those that are resident.
const THREADS_SHARE: u64 = 8;
/// Threads of a block for such calls, at most. They take different branches, and a warp executes one branch at a time.
const THREADS_OF_BLOCK: u32 = 8;

// Simple operations.

/// A read that a cache answers.
pub const READ: u64 = 1;
/// A division, a remainder, a square root that is correctly rounded.
pub const DIVISION: u64 = 6;
/// An elementary function.
pub const MATH: u64 = 20;
/// An index that a boundary rule tests, for each axis.
pub const GUARD: u64 = 3;
/// Operations that a pattern may compute again for each of its reads of an input, instead of keeping the
/// input.
pub const CHEAP: u64 = 4;
/// Operations that are done for elements that a pack does not choose, at most, instead of packing them first.
pub const UNCHOSEN: u64 = 64;
/// An element in a round of a radix sort: its rank among the elements of its block, and its move. By
/// measurement, 340 on an H200 and 320 on a Xeon with AVX-512.
pub const SORT_ROUND: u64 = 330;
/// An element in a step of a sorting network. By measurement, 14 on an H200 and 12 on a Xeon with AVX-512.
pub const NETWORK_STEP: u64 = 13;
/// Rounds of a loop whose number is not known.
const UNKNOWN_ROUNDS: u64 = 16;

/// Returns what an operation of scalar code costs, in simple operations.
pub fn operation(op: &Op) -> u64 {
    match op {
        Op::Literal(_) | Op::Parameter(_) | Op::Vector(_) | Op::Lane(..) => 0,
        Op::Math(..) => MATH,
        Op::Binary(op, ..) => binary(*op),
        Op::Unary(op, _) => unary(*op),
        _ => 1,
    }
}

/// Returns what an operation on two values costs.
pub fn binary(op: BinaryOp) -> u64 {
    if matches!(op, BinaryOp::Div | BinaryOp::Rem) { DIVISION } else { 1 }
}

/// Returns what an operation on one value costs.
pub fn unary(op: UnaryOp) -> u64 {
    if op == UnaryOp::Sqrt { DIVISION } else { 1 }
}

/// Returns what a call of a function costs, loops with their rounds. All its results together cost that once.
pub fn function(function: &Function) -> u64 {
    let costs = function.body().nodes().map(|(_, node)| operation(&node.op));
    match function.times(UNKNOWN_ROUNDS) {
        None => costs.sum(),
        Some(times) => costs.zip(times).fold(0u64, |sum, (cost, times)| sum.saturating_add(cost.saturating_mul(times))),
    }
}

/// Returns whether an operation only changes the sign of a float or takes its magnitude: instructions of a GPU do that to their operands.
pub fn is_sign(op: UnaryOp, ty: Type) -> bool {
    matches!(op, UnaryOp::Neg | UnaryOp::Abs) && ty.element().is_float()
}

/// Returns what the signs and magnitudes in a call of a function cost, loops with their rounds.
pub fn signs(function: &Function) -> u64 {
    let times = function.times(UNKNOWN_ROUNDS);
    let signs =
        function.body().nodes().enumerate().filter(|(_, (_, node))| matches!(node.op, Op::Unary(op, _) if is_sign(op, node.ty)));
    signs.fold(0u64, |sum, (number, _)| sum.saturating_add(times.as_ref().map_or(1, |times| times[number])))
}

/// Returns how many values a function reads of its windows in a call, loops with their rounds.
pub fn window_reads(function: &Function) -> u64 {
    let times = function.times(UNKNOWN_ROUNDS);
    let is_read = |op: &Op| matches!(op, Op::Window(..));
    let reads = function.body().nodes().enumerate().filter(|(_, (_, node))| is_read(&node.op));
    reads.fold(0u64, |sum, (number, _)| sum.saturating_add(times.as_ref().map_or(1, |times| times[number])))
}

/// The work of a kernel, as far as it takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Launches.
    pub launches: u64,
    /// Bytes that are read and written.
    pub bytes: u64,
    /// Simple operations.
    pub operations: u64,
}

/// The blocking of a product on vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Rows of a strip, whose sums stay in registers.
    pub rows: u32,
    /// Strips of a tile, at most.
    pub strips: u32,
    /// Panels of a tile, at most.
    pub panels: u32,
    /// Elements of a piece of the common axis, at most.
    pub depth: u32,
}

/// Latencies of a machine, in seconds.
struct Latencies {
    /// An access of one worker to memory that the next one depends on, with the instructions around it.
    access: f64,
    /// A launch, with the time in which the host prepares it: its instructions, nodes and arguments.
    launch: f64,
    /// A transfer of some bytes that the host waits for.
    wait: f64,
    /// A byte that all threads move together.
    byte: f64,
}

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

    /// Returns whether a warp of vectors reads segments in rows of neighbours, whose lanes scan them, rather than each lane its own segment, which is a
    /// gather for each element. A source has so many inputs; an operator combines so many values in so many operations, in their order.
    pub fn scans_segments(&self, inputs: u64, values: u64, operations: u64) -> bool {
        let scanned = SEGMENTED_ELEMENT + SCAN_STEPS * (operations + 2 * values);
        scanned <= WAITING * (inputs * GATHER + operations)
    }

    /// Returns whether a reduction of segments knows the segment of an element when it reads that. A tile of threads reads its
    /// elements before it knows where segments end.
    pub fn knows_segments(&self) -> bool {
        self.in_vectors()
    }

    /// Returns the number for this machine.
    pub fn pick<T>(&self, each: Each<T>) -> T {
        match self.execution {
            Execution::Vectors => each.vectors,
            Execution::Threads => each.threads,
        }
    }

    /// Returns how many blocks keep all cores busy, at so many for each.
    pub fn busy(&self, per_core: u64) -> u64 {
        u64::from(self.machine.multiprocessors) * per_core
    }

    fn resident_threads(&self) -> u64 {
        self.machine.resident_threads.unwrap_or(RESIDENT).into()
    }

    /// Returns how many blocks keep all cores busy: on vectors as many in turn for each core, on threads those of so many
    /// threads that are resident together.
    pub fn blocks(&self, in_turn: u64, threads: u32) -> u64 {
        self.busy(match self.execution {
            Execution::Vectors => in_turn,
            Execution::Threads => (self.resident_threads() / u64::from(threads.max(1))).max(1),
        })
    }

    /// Returns how many blocks of so many threads, with so many bytes of shared memory, are resident on a core.
    pub fn resident_blocks(&self, threads: u32, shared: u32) -> u64 {
        let by_threads = self.resident_threads() / u64::from(threads.max(1));
        by_threads.min(u64::from(self.shared_bytes() / shared.saturating_add(BLOCK_SHARED))).max(1)
    }

    /// Returns how many blocks of so many threads a core should hold, where a thread keeps so many values at the same time. Fewer registers than that would
    /// have threads store values in local memory; more blocks hide the latency of memory no better.
    pub fn register_blocks(&self, threads: u32, live: u32) -> u32 {
        let registers = self.machine.registers.unwrap_or(1 << 16);
        (registers / ((live + ADDRESS_REGISTERS) * threads)).clamp(1, (RESIDENT_STENCIL / threads).max(1))
    }

    /// Returns how many of the threads of a block take neighbouring elements of a loop that they share. Warps of vectors run
    /// one after the other, so each has a stretch of its own.
    pub fn taken_together(&self, threads: u32) -> u32 {
        if self.in_vectors() { LANES.min(threads) } else { threads }
    }

    /// Returns how many copies a block has of counters in shared memory, to which it adds so often in all.
    ///
    /// Lanes of a warp that add to counters of one bank wait for each other. With a copy for each lane they do not, but all
    /// copies are set to zero before and added up behind.
    pub fn counter_copies(&self, counters: u32, additions: u64) -> u32 {
        let pays = |copies: &u32| {
            let all = u64::from(counters) * u64::from(*copies);
            all * 4 <= COUNTER_BYTES && additions >= all * COUNTER_ADDITIONS
        };
        if self.in_vectors() { 1 } else { COUNTER_COPIES.into_iter().find(pays).unwrap_or(1) }
    }

    /// Returns whether a loop loads the data of its next iteration before it works on that of the current one, where so many
    /// threads are resident on a core and each executes so many operations in an iteration.
    ///
    /// Threads wait for memory together where their operations take less time than a load. A core of vectors prefetches data
    /// that is read in order by itself.
    pub fn prefetches(&self, threads: u64, operations: u64) -> bool {
        !self.in_vectors() && threads.saturating_mul(operations) < LOAD_CYCLES * CORE_LANES
    }

    /// Returns whether a block runs several tiles and loads staged words of its next one before it computes the current one,
    /// where so many blocks are resident on a core.
    ///
    /// Where blocks are several, one loads while others compute. A core of vectors prefetches data that is read in order by
    /// itself.
    pub fn prefetches_tiles(&self, blocks: u64) -> bool {
        !self.in_vectors() && blocks <= LONE_BLOCKS
    }

    /// Returns how many results or lines keep all cores busy: as many for each core of vectors, and a part of the resident
    /// threads.
    fn enough(&self, vectors: u64, part: u64) -> u64 {
        self.busy(match self.execution {
            Execution::Vectors => vectors,
            Execution::Threads => self.resident_threads() / part,
        })
    }

    /// Returns how many results are enough, where neighbouring threads have neighbouring results.
    pub fn enough_columns(&self) -> u64 {
        self.enough(ENOUGH_COLUMNS, 2)
    }

    /// Returns how many results are enough, where the threads of a block have one result.
    pub fn enough_rows(&self) -> u64 {
        self.enough(ENOUGH_ROWS, BLOCK_THREADS.into())
    }

    /// Returns how many lines of a scan are enough, where neighbouring threads have neighbouring lines.
    pub fn enough_scan_columns(&self) -> u64 {
        self.enough(ENOUGH_SCAN_COLUMNS, 4)
    }

    /// Returns how many lines of a sweep are enough. A thread keeps its state in registers, so fewer are resident.
    pub fn enough_sweeps(&self) -> u64 {
        self.enough(ENOUGH_SWEEPS, 4)
    }

    /// Returns how many blocks of one warp a sweep has, where lines are split.
    pub fn sweep_blocks(&self) -> u64 {
        self.enough(SWEEP_BLOCKS, 4 * u64::from(LANES))
    }

    /// Returns the bytes of shared memory of a block, static and dynamic.
    pub fn shared_bytes(&self) -> u32 {
        self.machine.max_shared_bytes
    }

    /// Returns a part of a core's own cache, in bytes.
    fn core_cache(&self, part: u64) -> u32 {
        u32::try_from(self.machine.core_cache_bytes.unwrap_or(CORE_CACHE) / part).unwrap_or(u32::MAX)
    }

    /// Returns the bytes of inputs that stay in a core's own cache while a block goes through them twice, and
    /// while its results and other blocks of the core pass through it.
    pub fn read_twice(&self) -> u32 {
        self.core_cache(16)
    }

    /// Returns the bytes for lines of the cache that a sort on vectors collects before it stores them, at most.
    /// Other data that passes through the cache may not displace them.
    pub fn collected_lines(&self) -> u32 {
        self.core_cache(16).min(self.shared_bytes() / 4 * 3)
    }

    /// Returns the bytes that a round of a sort moves, from which on its stores are non-temporal: the next round
    /// does not find them in the cache.
    pub fn non_temporal(&self) -> u32 {
        self.core_cache(2)
    }

    /// Returns the blocking of a product on vectors, for sums of so many bytes.
    ///
    /// The panels of a tile have half of a core's own cache, and one of them a sixteenth of that.
    pub fn blocking(&self, bytes: u32) -> Blocking {
        let row = LANES * bytes;
        let rows = if bytes == 8 { PRODUCT_STRIP / 2 } else { PRODUCT_STRIP };
        let depth = (self.core_cache(32) / row).clamp(64, 1024);
        let panels = (self.core_cache(2) / (depth * row)).max(PRODUCT_PANELS);
        Blocking { rows, strips: PRODUCT_ROWS.div_ceil(rows), panels, depth }
    }

    /// Returns how many elements of a sort a thread keeps in registers, at most: a key, a place and a value
    /// for each, with three blocks resident on a core.
    pub fn sorted_by_thread(&self, with_values: bool) -> u32 {
        match self.machine.registers {
            Some(registers) if registers >= 1 << 16 && !with_values => 18,
            Some(registers) if registers >= 1 << 16 => 12,
            _ => 4,
        }
    }

    /// Returns how many simple operations take as long as reading or writing a byte of memory: by the peaks of the machine
    /// where they are known; else 15 on a GPU, as on an H200, and 8 on vectors of 64 bytes.
    pub fn balance(&self) -> u64 {
        if let (Some(operations), Some(bandwidth)) = (self.machine.peak_operations, self.machine.peak_bandwidth) {
            return (operations / (REACHED * bandwidth)).round().clamp(1.0, 1000.0) as u64;
        }
        match self.machine.kind {
            MachineKind::Cuda => 15,
            MachineKind::Cpu | MachineKind::Interp => {
                u64::from(self.machine.vector_registers.unwrap_or(VECTOR_REGISTERS).0 / 8).max(1)
            }
        }
    }

    /// Returns how many simple operations take as long as a byte of an array that stays in the caches of the cores from one
    /// kernel to the next.
    pub fn balance_in_cache(&self) -> u64 {
        if self.in_vectors() { (self.balance() as f64 / CACHE_SPEED).ceil() as u64 } else { self.balance() }
    }

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

    /// Returns whether kernels are joined to chains: a core walks down the rows, and those that are read again stay in its cache. On an H200, chains took 1.4 to
    /// 1.7 times as long as the kernels that they replaced.
    pub fn chains(&self) -> bool {
        self.in_vectors()
    }

    /// Returns whether lines of so many bytes that one function computes and another reads are kept in shared memory: on vectors that is the cache of a core,
    /// from which inputs and results that pass through do not displace them.
    pub fn relays(&self, bytes: u64) -> bool {
        self.chains() && bytes.saturating_mul(RELAY_ROWS.into()) <= u64::from(self.core_cache(8).min(self.shared_bytes() / 2))
    }

    /// Returns whether kernels of a chain take the components of a picture one by one: fewer rows stay in the cache of a core.
    pub fn splits_components(&self) -> bool {
        self.chains()
    }

    /// Returns whether a lane has several rows of results where rows read much the same: what they share
    /// stays in registers. Threads of a GPU find it in the first cache.
    pub fn rows_share(&self) -> bool {
        self.in_vectors()
    }

    /// Returns the operations that all lanes start while so many bytes are read or written, in hundredths. The peak of the
    /// machine counts a multiplication and an addition of each lane in a cycle.
    pub fn started(&self, bytes: u64) -> u64 {
        bytes * self.balance() * 100 / 2
    }

    /// Returns whether threads take patches of several rows and columns, which pay for accesses to the first cache.
    pub fn takes_patches(&self) -> bool {
        !self.in_vectors()
    }

    /// Returns whether stencils that read each other become one kernel by the cost of their patches.
    pub fn joins_stencils(&self) -> bool {
        self.machine.kind == MachineKind::Cuda
    }

    /// Returns whether factors of a product are brought into another order first, which pays where they are
    /// used for many rows and columns.
    pub fn orders_factors(&self) -> bool {
        self.in_vectors()
    }

    /// Returns whether the machine starts a kernel while the one before it ends, if the kernel waits itself.
    pub fn starts_early(&self) -> bool {
        self.machine.kind == MachineKind::Cuda && self.machine.sm >= 90
    }

    /// Returns whether fast arithmetic takes subnormal numbers as zero.
    pub fn flushes(&self) -> bool {
        self.machine.kind == MachineKind::Cuda
    }

    fn latencies(&self) -> Latencies {
        let (access, host, wait) = match self.machine.kind {
            MachineKind::Cpu => (1e-9, 2e-6, 20e-6),
            // The host of an H200 takes 31 ms for 1327 launches of quicksort.
            MachineKind::Cuda => (50e-9, 20e-6, 15e-6),
            MachineKind::Interp => (1e-6, 2e-6, 0.0),
        };
        Latencies { access, launch: host + self.launch_cost(), wait, byte: 1.0 / self.bandwidth() }
    }

    /// Returns the bytes per second that a kernel reads and writes: as measured, else by the peak of the
    /// machine, else those of small machines.
    fn bandwidth(&self) -> f64 {
        let peak = self.machine.peak_bandwidth.map(|peak| REACHED * peak);
        let small = match self.machine.kind {
            MachineKind::Cpu => 20e9,
            MachineKind::Cuda => 500e9,
            MachineKind::Interp => 50e6,
        };
        self.machine.bandwidth.or(peak).unwrap_or(small).max(1.0)
    }

    /// Returns the seconds of an empty launch, as measured or as usual for the kind of machine.
    fn launch_cost(&self) -> f64 {
        self.machine.launch_cost.unwrap_or(match self.machine.kind {
            MachineKind::Cpu => 4e-6,
            MachineKind::Cuda => 2e-6,
            MachineKind::Interp => 100e-6,
        })
    }

    /// Returns the seconds of a flattened level, whatever its calls are.
    fn level(&self) -> f64 {
        let latencies = self.latencies();
        LEVEL_LAUNCHES * latencies.launch + latencies.wait
    }

    /// Returns how many elements a call has at most that runs sequentially, where all calls together have so many.
    ///
    /// A thread needs `n · log2(n) · THREAD_ACCESSES` accesses for a call of `n` elements, a warp `n · WARP_ACCESSES`. Flattened
    /// code needs `LEVELS · log2(n)` levels. Calls of a thread are small up to the size at which both take equally long. Calls
    /// of a warp are small up to the size at which the largest call takes as much longer as a level less saves. The bytes of
    /// a level count only for calls that do not take much more than a worker's part of all elements: other workers would
    /// wait for them. Cores wait less where they take parts of calls (`has_tasks`).
    pub fn sequential_limit(&self, elements: u64, has_tasks: bool) -> u64 {
        let latencies = self.latencies();
        let (accesses, levels) = match self.machine.kind {
            MachineKind::Cuda => (WARP_ACCESSES, LEVELS * std::f64::consts::LOG2_E),
            MachineKind::Cpu | MachineKind::Interp => (THREAD_ACCESSES, LEVELS),
        };
        let element = accesses * latencies.access;
        let bytes = elements as f64 * LEVEL_BYTES * latencies.byte;
        let (few, many) = (levels * self.level() / element, levels * (self.level() + bytes) / element);
        let share = match self.machine.kind {
            MachineKind::Cpu | MachineKind::Interp if has_tasks => PART_OF_CORE,
            MachineKind::Cpu | MachineKind::Interp | MachineKind::Cuda => PART_OF_WORKER,
        };
        let part = elements as f64 * share / self.workers() as f64;
        few.max(many.min(part)) as u64
    }

    /// Returns whether some small calls run sequentially while the large ones stay flattened, where all have so many elements
    /// and the small ones so many.
    ///
    /// The levels of the large calls remain, so only bytes are saved. That pays where they take longer than the launches of
    /// a level do, and where most of them are saved.
    pub fn separates_calls(&self, elements: u64, small: u64) -> bool {
        let bytes = elements as f64 * LEVEL_BYTES * self.latencies().byte;
        small > 0 && small >= elements / 2 && bytes >= self.level()
    }

    /// Returns how many workers run sequential calls at the same time.
    fn workers(&self) -> u64 {
        match self.machine.kind {
            MachineKind::Cpu => self.busy(1).max(1),
            MachineKind::Cuda => self.busy(self.resident_threads() / WORKERS_SHARE / u64::from(LANES)).max(1),
            // Two, so that they share the counter of calls.
            MachineKind::Interp => 2,
        }
    }

    /// Returns how so many calls are launched, of which the largest has so many elements. `has_tasks` is set where threads can
    /// take parts of calls.
    pub fn sequential_workers(&self, calls: u64, largest: u64, has_tasks: bool) -> Workers {
        let of_element = match self.machine.kind {
            MachineKind::Cuda => ARENA_OF_ELEMENT,
            MachineKind::Cpu | MachineKind::Interp => CORE_ARENA_OF_ELEMENT,
        };
        let arena = |elements: u64| {
            let bytes = ARENA.saturating_add(elements.saturating_mul(of_element));
            bytes.checked_next_multiple_of(256).unwrap_or(u64::MAX)
        };
        let threads = self.busy(self.resident_threads() / THREADS_SHARE).max(1);
        let (lanes, of_block, depth, all, grain) = match self.machine.kind {
            // Many short calls keep all threads busy, each with its own. The shortest ones have nothing for the lanes to share.
            MachineKind::Cuda if largest <= LANES.into() || calls >= threads && largest <= THREAD_ELEMENTS => {
                let of_block = (calls / self.workers()).clamp(1, THREADS_OF_BLOCK.into());
                (1, of_block as u32, 48, threads, 0)
            }
            MachineKind::Cuda => (LANES, WARPS_OF_BLOCK, 64, self.workers(), TASK_ELEMENTS),
            MachineKind::Cpu | MachineKind::Interp if has_tasks => (1, 1, 96, self.workers(), CORE_TASK_ELEMENTS),
            MachineKind::Cpu | MachineKind::Interp => (1, 1, 96, self.workers(), 0),
        };
        let tasks = largest.checked_div(grain.into()).unwrap_or(0);
        let memory = self.machine.memory_bytes / ARENA_SHARE;
        let (least, arena) = (arena(largest.min(TASK_ARENA_ELEMENTS)), arena(largest));
        let callers = all.min(calls).min(memory / arena).max(1);
        let left = memory.saturating_sub(callers.saturating_mul(arena));
        let task_arena = (left / all / 256 * 256).clamp(least, arena);
        let others = left / task_arena;
        let workers = all.min(calls.saturating_mul(1 + tasks)).min(callers + others).max(1);
        let of_block = of_block.min(workers as u32);
        let blocks = u32::try_from(workers.div_ceil(of_block.into())).unwrap_or(u32::MAX);
        let callers = u32::try_from(callers).unwrap_or(u32::MAX);
        Workers { blocks, threads: of_block * lanes, lanes, grain, callers, arena, task_arena, depth }
    }

    /// Returns how teams of warps run so many calls with so many elements, of which the largest has so many; `None` where
    /// single warps or flattened code do. Teams are `forced` for tests, where the machine has few threads.
    ///
    /// A team takes a few microseconds for a pass over the elements of a call, a flattened level hundreds for its launches.
    /// Calls for many warps have no need of it.
    pub fn sequential_teams(&self, calls: u64, elements: u64, largest: u64, forced: bool) -> Option<Teams> {
        let (blocks, threads) = match self.machine.kind {
            MachineKind::Cuda => (self.machine.multiprocessors.max(1) * TEAM_BLOCKS, TEAM_THREADS),
            MachineKind::Cpu | MachineKind::Interp if forced => (3, 5 * LANES),
            MachineKind::Cpu | MachineKind::Interp => return None,
        };
        if !forced && (calls > TEAM_CALLS || largest < TEAM_ELEMENTS) {
            return None;
        }
        let of_elements = elements.checked_mul(TEAM_ARENA_OF_ELEMENT)?;
        let arena = of_elements.checked_add(calls.checked_mul(TEAM_ARENA_OF_CALL)?)?.checked_add(TEAM_ARENA)?;
        let arena = arena.checked_next_multiple_of(256)?;
        let depth = match self.machine.kind {
            // All resident threads together have a sixteenth of the memory as stack.
            MachineKind::Cuda => {
                let stack = self.machine.memory_bytes / 16 / self.busy(self.resident_threads()).max(1);
                (stack / TEAM_FRAME).clamp(16, 80)
            }
            MachineKind::Cpu | MachineKind::Interp => 64,
        };
        (arena <= self.machine.memory_bytes / TEAM_ARENA_SHARE).then_some(Teams { blocks, threads, arena, depth })
    }

    /// Predicts how long work takes; `None` on the interpreter, which is not for speed. Where the machine was
    /// not measured, the prediction follows its peaks, or is that of a small machine.
    ///
    /// Launches follow each other. Memory and arithmetic go on at the same time, so the slower of both
    /// counts. Arrays that fit into the last-level cache are read from there.
    pub fn predict(&self, work: &Work) -> Option<Duration> {
        let (bandwidth, launch) = match self.machine.kind {
            MachineKind::Interp => return None,
            MachineKind::Cpu | MachineKind::Cuda => (self.bandwidth(), self.launch_cost()),
        };
        let is_cached = self.machine.cache_bytes.is_some_and(|cache| work.bytes <= cache / CACHE_SHARE);
        let memory = work.bytes as f64 / (bandwidth * if is_cached { CACHE_SPEED } else { 1.0 });
        let arithmetic = work.operations as f64 / (bandwidth * self.balance() as f64);
        Duration::try_from_secs_f64(work.launches as f64 * launch + memory.max(arithmetic)).ok()
    }
}
