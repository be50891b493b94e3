//! Blocks of kernels: their number, their threads, and the work of each.

use super::{Costs, Each, Execution, LANES};

// Blocks of vectors that a core runs one after the other: enough for all cores to finish at about the same
// time, even if other processes use some of them. On threads, all blocks are resident together
// ([`Costs::blocks`]).

/// Blocks of a stencil: few, so that the strips of a block share the rows that they read in its cache.
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
/// Results of a row, from which on neighbouring threads have them where that brings reads together.
pub const NARROW_ROW: u64 = 8;
/// Warps of a block of threads in which each warp has a row.
pub const ROW_WARPS: u32 = 8;
/// Part of the shared memory of a core of threads that the rows of a block fill, at most: several blocks are
/// resident, so that one loads while another computes.
pub const ROW_SHARE: u64 = 2;
/// Elements of a row that a warp of threads has, at most, and those that a block of the usual size has.
const WARP_ROW: u64 = 1024;
const BLOCK_ROW: u64 = 16 << 10;
/// Rounds of a loop of a thread over the elements of its result, whose loads are in flight together.
pub const COLUMN_ROUNDS: u8 = 4;
/// Elements of a result, above which the threads of a block have one together. On vectors a core runs through
/// 65,536 elements faster than several share them.
pub const LONG_FOLD: Each<u64> = Each { vectors: 1 << 16, threads: 1024 };
/// Elements along the split axis, below which splitting costs more than it saves: a second kernel combines
/// the parts.
pub const SPLIT_COLUMNS: u64 = 64;
/// Elements along the split axis, below which splitting costs more than it saves, where the threads of a
/// block have one result or line.
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
/// Threads of a block on vectors whose threads have short results.
pub const LONG_BLOCK: u32 = 512;
/// Threads of a block of threads whose threads have one result, tile or sequence of segments together.
pub const BLOCK_THREADS: u32 = 256;
/// Tiles that a block of a reduction has at most where several blocks have one result.
pub const REDUCE_TILES: u32 = 64;
/// Segments of a lane that looks for the tiles that start in them: their loads are under way together.
pub const STARTED_SEGMENTS: u32 = 4;
/// Elements of a thread whose segments are numbered, in rows of four: a block searches once for all of its
/// elements.
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
/// Warps of a block of a histogram on vectors: more than one, so that barriers stand around their counting
/// and each lane can have counters.
pub const HISTOGRAM_WARPS: u32 = 2;
/// Accesses of a thread of a histogram that are under way together.
pub const HISTOGRAM_PIECES: u32 = 2;
/// Rows of 16 bytes that a thread of a loop over memory loads together, where threads share the loop. Vectors
/// load the words of neighbouring lanes together anyway.
pub const LOOP_ROWS: Each<u32> = Each { vectors: 0, threads: 2 };
/// Copies of counters in shared memory that lanes of a warp add to side by side: with 32 of them, a bank for
/// each lane.
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
/// Warps of a block that wait for other blocks.
pub const WAITING_WARPS: u32 = 3;
/// Columns of results of a lane of vectors, a warp apart, where it has one row of them.
pub const REDUCE_COLUMNS: u32 = 4;
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
/// Bins of a histogram that are counted in shared memory, at most: 32 KiB of counters of threads. Those of a
/// core of vectors may fill 128 KiB of its own cache.
pub const SHARED_BINS: Each<u32> = Each { vectors: 32768, threads: 8192 };
/// Bytes of the places that a block of a scatter on vectors has in its own memory: half of a core's own cache
/// of 256 KiB.
const SCATTER_ROOM: u64 = 128 << 10;
/// Times that a scatter on vectors goes through its positions, at most, each time for other places.
const SCATTER_RANGES: u64 = 8;
/// Blocks of a scatter for each core of vectors, each with its own places.
const SCATTER_BLOCKS: u64 = 2;
/// Positions that a block of a histogram counts for each bin in its shared memory, at least.
pub const COUNTED_PER_BIN: u32 = 4;
/// Operations of a function, up to which rows are prefetched: more take longer than memory does.
pub const PREFETCHED: u64 = 256;
/// Resident threads of a multiprocessor, where they are not known.
const RESIDENT: u32 = 2048;
/// Operations that are done for elements that a pack does not choose, at most, instead of packing them first.
pub const UNCHOSEN: u64 = 64;

impl Costs<'_> {
    /// Returns how many blocks keep all cores busy, with `per_core` blocks for each core.
    pub fn busy(&self, per_core: u64) -> u64 {
        u64::from(self.machine.multiprocessors) * per_core
    }

    pub(super) fn resident_threads(&self) -> u64 {
        self.machine.resident_threads.unwrap_or(RESIDENT).into()
    }

    /// Returns how many blocks keep all cores busy: on vectors, `in_turn` for each core; on threads, all
    /// blocks of `threads` threads that are resident together.
    pub fn blocks(&self, in_turn: u64, threads: u32) -> u64 {
        self.busy(match self.execution {
            Execution::Vectors => in_turn,
            Execution::Threads => (self.resident_threads() / u64::from(threads.max(1))).max(1),
        })
    }

    /// Returns how many blocks of `threads` threads and `shared` bytes of shared memory are resident on a
    /// core.
    pub fn resident_blocks(&self, threads: u32, shared: u32) -> u64 {
        let by_threads = self.resident_threads() / u64::from(threads.max(1));
        by_threads.min(u64::from(self.shared_bytes() / shared.saturating_add(BLOCK_SHARED))).max(1)
    }

    /// Returns how many blocks of `threads` threads a core should hold, if a thread keeps `live` values at
    /// the same time. With more blocks, threads would have too few registers and spill. More blocks than that
    /// also hide no more latency.
    pub fn register_blocks(&self, threads: u32, live: u32) -> u32 {
        let registers = self.machine.registers.unwrap_or(1 << 16);
        (registers / ((live + ADDRESS_REGISTERS) * threads)).clamp(1, (RESIDENT_STENCIL / threads).max(1))
    }

    /// Returns how many of the threads of a block take neighbouring elements of a loop that they share. Warps
    /// of vectors run one after the other, so each has a stretch of its own.
    pub fn taken_together(&self, threads: u32) -> u32 {
        if self.in_vectors() { LANES.min(threads) } else { threads }
    }

    /// Returns how many copies of its `counters` in shared memory a block has, if it makes `additions` in
    /// all.
    ///
    /// Lanes of a warp that add to counters of one bank wait for each other. With a copy for each lane they
    /// do not, but all copies are set to zero before and added up behind.
    pub fn counter_copies(&self, counters: u32, additions: u64) -> u32 {
        let pays = |copies: &u32| {
            let all = u64::from(counters) * u64::from(*copies);
            all * 4 <= COUNTER_BYTES && additions >= all * COUNTER_ADDITIONS
        };
        if self.in_vectors() { 1 } else { COUNTER_COPIES.into_iter().find(pays).unwrap_or(1) }
    }

    /// Returns whether a loop loads the data of its next iteration before it works on that of the current
    /// one. `threads` are resident on a core, and each executes `operations` in an iteration.
    ///
    /// Threads wait for memory together where their operations take less time than a load. A core of vectors
    /// prefetches data that is read in order by itself.
    pub fn prefetches(&self, threads: u64, operations: u64) -> bool {
        !self.in_vectors() && threads.saturating_mul(operations) < LOAD_CYCLES * CORE_LANES
    }

    /// Returns whether a block runs several tiles and loads staged words of its next one before it computes
    /// the current one. `blocks` are resident on a core.
    ///
    /// Where blocks are several, one loads while others compute. A core of vectors prefetches data that is
    /// read in order by itself.
    pub fn prefetches_tiles(&self, blocks: u64) -> bool {
        !self.in_vectors() && blocks <= LONE_BLOCKS
    }

    /// Returns how many places of `bytes` bytes the blocks of a scatter have in memory of their own, for
    /// `count` positions; `None` if all combine in one memory.
    pub fn scatter_room(&self, places: u64, count: u64, bytes: u32) -> Option<u32> {
        let most = SCATTER_ROOM / u64::from(bytes.max(1));
        let fits = places <= most * SCATTER_RANGES && count >= places.saturating_mul(SCATTER_BLOCKS);
        (self.in_vectors() && fits).then(|| places.clamp(256, most).next_power_of_two() as u32)
    }

    /// Returns how many blocks of a scatter have parts of the positions.
    pub fn scatter_blocks(&self) -> u64 {
        self.busy(SCATTER_BLOCKS)
    }

    /// Returns how many threads have a row of `length` elements in several passes.
    pub fn row_threads(&self, length: u64) -> u32 {
        if self.in_vectors() || length <= WARP_ROW {
            LANES
        } else if length <= BLOCK_ROW {
            BLOCK_THREADS
        } else {
            4 * BLOCK_THREADS
        }
    }

    /// Returns whether a block for each row keeps the machine busy, or rows are so short that it does not
    /// matter.
    pub fn keeps_rows(&self, rows: u64, length: u64) -> bool {
        rows >= self.busy(1) || length <= BLOCK_ROW
    }

    /// Returns how many results or lines keep all cores busy: `vectors` for each core of vectors, or the
    /// resident threads divided by `part`.
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

    /// Returns how many lines of a sweep are enough. A thread keeps its state in registers, so fewer are
    /// resident.
    fn enough_sweeps(&self) -> u64 {
        self.enough(ENOUGH_SWEEPS, 4)
    }

    /// Returns whether a sweep along the last axis stages tiles of lines in shared memory: most lanes of a
    /// warp have a line, and a tile is filled.
    pub fn stages_sweeps(&self, lines: u64, length: u64) -> bool {
        lines >= u64::from(LANES) / 2 && length >= u64::from(LANES)
    }

    /// Returns whether a sweep splits its lines into parts: there are few lines, and each has many parts.
    pub fn splits_sweeps(&self, lines: u64, length: u64) -> bool {
        lines < self.enough_sweeps() && length >= 16 * u64::from(SWEEP_PART)
    }

    /// Returns how many blocks of one warp a sweep has, where lines are split.
    pub fn sweep_blocks(&self) -> u64 {
        self.enough(SWEEP_BLOCKS, 4 * u64::from(LANES))
    }
}
