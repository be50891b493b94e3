//! Blocks of kernels: their number, their threads, and the work of each.

use super::{Costs, Each, Execution, LANES};

// Blocks of vectors that a core runs one after the other: enough for all cores to finish at about the same
// time, even if other processes use some of them. On threads, all blocks are resident together
// ([`Costs::blocks`]).

/// Blocks of a stencil: few, so that the strips of a block share the rows that they read in its cache.
pub const STENCIL_BLOCKS: u64 = 16;
/// Blocks of a histogram, which are short.
pub const HISTOGRAM_BLOCKS: u64 = 64;
/// Blocks per core of a split reduction whose neighbouring threads compute neighbouring results.
pub const REDUCE_COLUMN_BLOCKS: u64 = 8;
/// Blocks per core of a split reduction whose blocks compute one result each.
pub const REDUCE_ROW_BLOCKS: u64 = 16;
/// Blocks per core of a split scan whose neighbouring threads scan neighbouring lines.
pub const SCAN_COLUMN_BLOCKS: u64 = 8;
/// Blocks per core of a split scan whose blocks scan one line each.
pub const SCAN_ROW_BLOCKS: u64 = 16;
/// Blocks of a pack in three steps.
pub const PACK_BLOCKS: u64 = 16;
/// Blocks per multiprocessor that a sort is divided into.
pub const SORT_BLOCKS: u64 = 8;
/// Blocks of a sweep whose lines are split.
pub const SWEEP_BLOCKS: u64 = 16;
/// Parts of a reduction of segments.
pub const SEGMENT_PARTS: u64 = 16;

// When there is enough work in parallel: results or lines for each core, below which one is split among
// blocks.

/// Results that keep a core of vectors busy if neighbouring threads compute neighbouring results.
const ENOUGH_COLUMNS: u64 = 512;
/// Results that keep a core of vectors busy if each block computes one result.
const ENOUGH_ROWS: u64 = 4;
/// Lines that keep a core of vectors busy if neighbouring threads scan neighbouring lines.
const ENOUGH_SCAN_COLUMNS: u64 = 128;
/// Lines that keep a core of vectors busy in a sweep: one warp.
const ENOUGH_SWEEPS: u64 = LANES as u64;
/// Lines that keep a core busy if each block scans one line.
pub const ENOUGH_SCAN_ROWS: u64 = 4;
/// Minimum results per core for which a block of vectors computes several results.
pub const FEW_ROWS: u64 = 32;
/// Results of fewer elements are computed by neighbouring threads, whatever the order in memory.
pub const SHORT_FOLD: Each<u64> = Each { vectors: 32, threads: 16 };
/// Number of elements of a thread if several short results share a warp.
pub const SHORT_ITEMS: u32 = 4;
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
/// Results of more elements are computed by the threads of a block together. A core of vectors runs through
/// 65,536 elements faster alone than several cores that share them.
pub const LONG_FOLD: Each<u64> = Each { vectors: 1 << 16, threads: 1024 };
/// Minimum elements along an axis for which splitting it pays: a second kernel has to combine the parts.
pub const SPLIT_COLUMNS: u64 = 64;
/// The same minimum if each block computes one result or line.
pub const SPLIT_ROWS: u64 = 8192;

// The size of a block's work.

/// Elements that a warp of vectors processes in one block. With this many, the start of a block costs little.
pub const STRETCH: u32 = 4096;
/// Elements that a block of vectors reduces at a time; a multiple of four warps.
pub const REDUCE_TILE: u32 = 4096;
/// Results that a warp of vectors computes at a time. Values that all of them need are read once.
pub const REDUCE_RESULTS: u32 = 4;
/// Threads of a block whose neighbouring threads compute neighbouring results or lines: one warp on vectors.
pub const COLUMN_THREADS: Each<u32> = Each { vectors: 32, threads: 128 };
/// Threads of a block on vectors whose threads have short results.
pub const LONG_BLOCK: u32 = 512;
/// Threads of a block that computes one result, one tile or one sequence of segments.
pub const BLOCK_THREADS: u32 = 256;
/// Maximum tiles of a block of a reduction if several blocks compute one result.
pub const REDUCE_TILES: u32 = 64;
/// Segments that a lane examines for starts of tiles. Their loads are in flight together.
pub const STARTED_SEGMENTS: u32 = 4;
/// Elements of a thread that numbers segments, in rows of four. A block searches once for all of its
/// elements.
pub const NUMBERED_ITEMS: u32 = 16;
/// Threads of a block that combines the parts of a result.
pub const COMBINE_THREADS: Each<u32> = Each { vectors: 32, threads: 256 };
/// Threads of a block of a scatter. On vectors a block is a loop over its warps, and long loops cost less to
/// start.
pub const SCATTER_THREADS: Each<u32> = Each { vectors: 1024, threads: 256 };
/// Minimum positions that a thread of a histogram counts before the counters of its block are added up. A
/// block of vectors has fewer threads.
pub const COUNTED: Each<u32> = Each { vectors: 512, threads: 64 };
/// Rows of threads in a block that transposes a tile or stages a window.
pub const TILE_ROWS: u32 = 8;
/// Warps of a block of a pack, if blocks are threads.
pub const PACK_WARPS: u32 = 8;
/// Warps of a block of a histogram on vectors. With more than one, barriers enclose the counting, and each
/// lane can have its own counters.
pub const HISTOGRAM_WARPS: u32 = 2;
/// Accesses of a thread of a histogram that are in flight together.
pub const HISTOGRAM_PIECES: u32 = 2;
/// Rows of 16 bytes that a thread loads together in a loop that threads share. Vectors load the words of
/// neighbouring lanes together anyway.
pub const LOOP_ROWS: Each<u32> = Each { vectors: 0, threads: 2 };
/// Numbers of copies of counters in shared memory. With 32 copies each lane has its own bank.
const COUNTER_COPIES: [u32; 2] = [32, 16];
/// Maximum bytes of all copies, so that several blocks are resident.
const COUNTER_BYTES: u64 = 32 << 10;
/// Minimum additions per copy of a counter: each copy is set to zero before and read behind.
const COUNTER_ADDITIONS: u64 = 8;
/// Bytes of shared memory that the machine itself needs for a block.
const BLOCK_SHARED: u32 = 1024;
/// Cycles of a load from the memory of a GPU while other loads keep it busy.
const LOAD_CYCLES: u64 = 4000;
/// Maximum resident blocks of a core for which each block loads its next tile while it computes.
const LONE_BLOCKS: u64 = 1;
/// Lanes that a core of a GPU executes in a cycle.
const CORE_LANES: u64 = 128;
/// Registers of a thread for addresses, indices and loads in flight.
const ADDRESS_REGISTERS: u32 = 24;
/// Maximum resident threads of a stencil per core: loads in flight need registers too.
const RESIDENT_STENCIL: u32 = 1280;
/// Warps of a block that wait for other blocks.
pub const WAITING_WARPS: u32 = 3;
/// Results of a lane of vectors in one row, at the distance of a warp.
pub const REDUCE_COLUMNS: u32 = 4;
/// Minimum positions of a part of a sweep.
pub const SWEEP_PART: u32 = 64;
/// Maximum nodes of a function for which 32 registers per thread are enough.
pub const FEW_REGISTERS: usize = 128;
/// Minimum rows for which threads compute strips of rows.
pub const TALL: usize = 16;
/// Minimum elements of an image that does not stay in the caches of cores from one kernel to the next.
pub const LARGE: usize = 1 << 20;
/// Minimum elements of a part of a sort or a pack on vectors.
pub const PART: u32 = 2048;
/// Maximum bins of a histogram that are counted in shared memory: 32 KiB of counters for threads, and 128 KiB
/// of a core's own cache for vectors.
pub const SHARED_BINS: Each<u32> = Each { vectors: 32768, threads: 8192 };
/// Bytes of the places that a block of a scatter on vectors has in its shared memory: half of a core's own
/// cache of 256 KiB.
const SCATTER_ROOM: u64 = 128 << 10;
/// Bytes of the places of a block if the places need several blocks: most of the shared memory.
const LARGE_SCATTER_ROOM: u64 = 224 << 10;
/// Times that a scatter on vectors goes through its positions, at most, each time for other places.
const SCATTER_RANGES: u64 = 8;
/// Blocks of a scatter for each core of vectors, each with its own places.
const SCATTER_BLOCKS: u64 = 2;
/// Places for each position up to which a block of vectors has a table of all places: to set a place and to
/// combine it costs a fraction of an atomic operation between cores.
pub const SCATTER_SPARSE: u32 = 8;
/// Minimum positions per bin for which a block of a histogram counts in shared memory.
pub const COUNTED_PER_BIN: u32 = 4;
/// Maximum operations of a function for which rows are prefetched. More operations take longer than memory.
pub const PREFETCHED: u64 = 256;
/// Maximum operations of a reduction of few elements on vectors that is written out without a loop.
pub const UNROLLED_FOLD: u64 = 256;
/// Resident threads of a multiprocessor, if they are not known.
const RESIDENT: u32 = 2048;
/// Maximum operations that are applied to all elements before a pack. More operations follow the pack, and
/// are applied to the packed elements only.
pub const UNCHOSEN: u64 = 64;

/// The memory in which the blocks of a scatter combine values. Every choice gives correct results for all
/// sizes. On a GPU all blocks combine in one memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScatterTables {
    /// All blocks combine in one memory.
    #[default]
    Common,
    /// Each block of a CPU combines this number of places in its shared memory.
    Shared(u32),
    /// Each block of a CPU combines all places in a table of its own in memory. For sums of `f32`, which would
    /// flush subnormal numbers there, the same as [`ScatterTables::Common`].
    Own,
}

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

    /// Returns the number of threads that take neighbouring elements in a loop that the `threads` of a block
    /// share. Warps of vectors run one after the other, so each has its own stretch.
    pub fn taken_together(&self, threads: u32) -> u32 {
        if self.in_vectors() { LANES.min(threads) } else { threads }
    }

    /// Returns how many copies of its `counters` in shared memory a block has, if it makes `additions` in
    /// all.
    ///
    /// Lanes of a warp that add to counters of one bank wait for each other. With one copy per lane they do
    /// not wait, but all copies have to be set to zero before and added up behind.
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
    /// If the operations take less time than a load, all threads would wait for memory at once. A core of
    /// vectors prefetches sequential reads by itself.
    pub fn prefetches(&self, threads: u64, operations: u64) -> bool {
        !self.in_vectors() && threads.saturating_mul(operations) < LOAD_CYCLES * CORE_LANES
    }

    /// Returns whether a block runs several tiles and loads staged words of its next one before it computes
    /// the current one. `blocks` are resident on a core.
    ///
    /// With several resident blocks, one loads while others compute. A core of vectors prefetches sequential
    /// reads by itself.
    pub fn prefetches_tiles(&self, blocks: u64) -> bool {
        !self.in_vectors() && blocks <= LONE_BLOCKS
    }

    /// Returns the tables of a scatter to places of `bytes` bytes, for `count` positions. `flushes`: sums in
    /// memory would flush subnormal numbers.
    pub fn scatter_tables(&self, places: u64, count: u64, bytes: u32, flushes: bool) -> ScatterTables {
        let most = SCATTER_ROOM / u64::from(bytes.max(1));
        let is_dense = count >= places.saturating_mul(SCATTER_BLOCKS);
        if !self.in_vectors() {
            ScatterTables::Common
        } else if is_dense && places <= most {
            ScatterTables::Shared(places.clamp(256, most).next_power_of_two() as u32)
        } else if flushes {
            let large = LARGE_SCATTER_ROOM / u64::from(bytes.max(1));
            let fits = is_dense && places <= large * SCATTER_RANGES;
            if fits { ScatterTables::Shared(large as u32) } else { ScatterTables::Common }
        } else if count.saturating_mul(SCATTER_SPARSE.into()) >= places {
            ScatterTables::Own
        } else {
            ScatterTables::Common
        }
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

    /// Returns the number of results that keep all cores busy if neighbouring threads compute neighbouring
    /// results.
    pub fn enough_columns(&self) -> u64 {
        self.enough(ENOUGH_COLUMNS, 2)
    }

    /// Returns the number of results that keep all cores busy if each block computes one result.
    pub fn enough_rows(&self) -> u64 {
        self.enough(ENOUGH_ROWS, BLOCK_THREADS.into())
    }

    /// Returns whether each thread reads a short row, if there are `rows` of them.
    pub fn reads_short_rows(&self, rows: u64) -> bool {
        !self.in_vectors() && rows >= self.enough_columns()
    }

    /// Returns the number of lines that keep all cores busy if neighbouring threads scan neighbouring lines.
    pub fn enough_scan_columns(&self) -> u64 {
        self.enough(ENOUGH_SCAN_COLUMNS, 4)
    }

    /// Returns the number of lines that keep all cores busy in a sweep. A thread keeps its state in
    /// registers, so fewer threads are resident.
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

    /// Returns the number of blocks, of one warp each, of a sweep whose lines are split.
    pub fn sweep_blocks(&self) -> u64 {
        self.enough(SWEEP_BLOCKS, 4 * u64::from(LANES))
    }
}
