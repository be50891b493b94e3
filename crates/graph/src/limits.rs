//! Limits of plans.
//!
//! They bound the code of a kernel, the time of planning and compilation, and the size of the caches of a
//! context. None depends on the machine: numbers that do are in [`cost`](broadloom_skeleton::cost). Larger
//! work is cut into several kernels. Work that cannot be cut is refused with an error that names the limit.

/// Items of the code of a kernel: operations, reads and indices.
pub(crate) const MAX_ITEMS: usize = 700;
/// Items that a kernel leaves free for views and boundary rules that are added later.
pub(crate) const ROOM: usize = 100;
/// Reciprocal of the part of a kernel's items above which a node is a running state: it is kept where others are.
pub(crate) const STATE_PART: usize = 4;
/// Dependency depth of items.
pub(crate) const MAX_DEPTH: usize = 160;
/// Levels of sums of positions that a trace follows to find the stride of an index.
pub(crate) const MAX_LEVELS: u32 = 4;
/// Operations of one called function. Compilers take long for many more.
pub(crate) const MOST_OPERATIONS: u64 = 32768;
/// Emitted operations of a kernel of several fused nodes. Beyond that, recomputing takes longer than memory
/// traffic.
pub(crate) const MAX_FUSED: u64 = 8192;
/// Emitted operations of a kernel, including a called function.
pub(crate) const MAX_EMITTED: u64 = MOST_OPERATIONS + MAX_FUSED;
/// Emitted operations of the operands of a pattern. The pattern repeats them for each element that a thread
/// holds at a time.
pub(crate) const MAX_COMBINED: u64 = 1024;
/// Buffers that a kernel reads.
pub(crate) const MAX_BUFFERS: usize = 24;
/// Buffers that joined kernels read if they share nothing.
pub(crate) const MAX_JOINED: usize = 16;
/// Results of a kernel.
pub(crate) const MAX_RESULTS: usize = 8;
/// Lanes between a lane and the lane that it takes a value from.
pub(crate) const MAX_SLIDE: i64 = 8;
/// Items of the code of a strip of rows.
pub(crate) const MAX_STRIP: usize = 600;
/// Items of the code of a strip near edges on a CPU. Longer code computes one row at a time there: boundary
/// rules turn most reads into gathers, each of which takes tens of instructions and compile time.
pub(crate) const MAX_EDGE: usize = 200;
/// Items of the code of a patch of rows and columns.
pub(crate) const MAX_PATCH: usize = 4096;
/// Items of the code of a position for which patches are tried: the smallest has two positions.
pub(crate) const MAX_PATCHED: usize = MAX_PATCH / 2;
/// Nodes that are tried as parts of the kernels that read them. Each trial takes another cut.
pub(crate) const MAX_TRIED: usize = 24;
/// Rounds of these trials.
pub(crate) const JOIN_ROUNDS: usize = 3;
/// Items of a function that is repeated for several rows of results. Most of them are indices, which lanes
/// share.
pub(crate) const MAX_REPEATED: usize = 128;
/// Rows or columns around those of a block that a kernel of a chain also computes.
pub(crate) const MAX_AROUND: u32 = 48;
/// Rows or columns between a node and its reader, if the node may be kept in a ring.
pub(crate) const MAX_STAGED: i64 = 24;
/// Reads of a kernel that are transposed through shared memory.
pub(crate) const MAX_TRANSPOSED: usize = 3;
/// Rounds of the search for work shared by kernels.
pub(crate) const ROUNDS: usize = 64;
/// Inputs of one concatenation. More are joined in parts first.
pub(crate) const MAX_PARTS: usize = 64;
/// Arrays that a function of elements takes. One kernel can read this many, each with a boundary rule.
pub const MAX_ARGUMENTS: usize = 300;
/// Lines of one pack. More are split into several packs.
pub(crate) const MAX_LINES: usize = 6;
/// Elements that a position appends to all queues together.
pub(crate) const MOST_APPENDED: usize = 256;
/// Plans that a context caches.
pub(crate) const MAX_PLANS: usize = 512;
/// Sizes for which the fits of a plan or a template are cached.
pub(crate) const MAX_FITS: usize = 8;
/// Reciprocal of the fraction of the device's memory above which the length of an array is read at once.
pub(crate) const WASTE: u64 = 8;
