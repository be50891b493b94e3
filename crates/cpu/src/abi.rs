//! Binary interface between generated code and the runtime.
//!
//! Generated code is one function per kernel, `extern "C" fn(*mut Warp)`. Its argument is the state of one
//! warp. Everything else is reached through it: parameters, shared and local memory, addresses of variables,
//! and the services of the runtime. The code contains no address of this process, so it can be stored on disk
//! and loaded again.
//!
//! A *warp* here is a group of threads that run in lockstep: 32 lanes on the vector path, one thread on the
//! slow path ([`Kind::Threads`]). All addresses are host addresses. A generic address is a pointer, and so
//! are global, shared and local addresses after `cvta`. An address in the shared window is an offset from
//! [`Warp::shared`]. An address in the local window is an offset from the lane's part of [`Warp::local`]. The
//! address of a function is a number, see [`function_address`]: code compares it and never jumps to it.
//!
//! In a cluster of several blocks, the shared memory of the block with rank `r` lies `r` times [`WINDOW`]
//! after that of the first block. In the shared window, an address of another block's shared memory is
//! `(FAR + r)` times [`WINDOW`] plus the offset there. Only instructions for `.shared::cluster` can follow
//! such an address. No memory is mapped at that distance after a block's own window.
//!
//! Code is called with the default floating-point environment: rounding to nearest, denormals kept,
//! exceptions masked. Its stack ends at a guard page. Frames larger than a page must probe it, so that a
//! stack overflow is found there.

use crate::arena::{self, ArenaPart};
use broadloom_ptx::Func;

/// Address of the first function of a module; the others follow.
pub const FUNCTION_BASE: u64 = 0x7fff_0000_0000;
/// Distance between the addresses of two functions.
pub const FUNCTION_STRIDE: u64 = 16;

/// Returns the address of a function, as kernels see it.
pub fn function_address(func: Func) -> u64 {
    FUNCTION_BASE + FUNCTION_STRIDE * u64::from(func.as_u32())
}

/// Distance between the shared memory of the blocks of a cluster. A block has less shared memory than this.
pub const WINDOW: u64 = 1 << 20;
/// Number of windows before those of other blocks in the shared window. No cluster has more blocks.
pub const FAR: u64 = 16;

/// Execution mode of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Warps never wait: one call runs all warps of a block, one after the other. The code itself sets
    /// [`Warp::first`].
    Block,
    /// Each warp runs on its own stack, so that it can wait for the others.
    Warps,
    /// Each thread runs on its own stack. Used for code whose lanes wait for each other.
    Threads,
}

/// State of a warp, as generated code sees it. The compiler knows the order of the fields: see [`offset`].
#[repr(C)]
#[derive(Debug)]
pub struct Warp {
    /// Functions of the runtime.
    pub services: *const Services,
    /// Parameter block of the launch.
    pub params: *const u8,
    /// Shared memory of the block: static variables, then the dynamic part. Aligned to 256 bytes, all zero
    /// when a block starts.
    pub shared: *mut u8,
    /// Local memory of the first lane. Lane `l` starts `l` times the kernel's local bytes later. Aligned to
    /// 64 bytes. The contents are those left by the previous use.
    pub local: *mut u8,
    /// Size of the local window in bytes, all lanes together. On the slow path this is the thread's stack.
    pub local_bytes: u64,
    /// Addresses of the module's variables that the kernel names, in the kernel's order.
    pub variables: *const u64,
    /// The runtime's data for this warp. Generated code only passes it on.
    pub owner: *mut std::ffi::c_void,
    /// Address of the state of grid-wide barriers in a cooperative launch: `%envreg1` is its high half,
    /// `%envreg2` its low half.
    pub workspace: u64,
    /// `%ctaid`.
    pub ctaid: [u32; 3],
    /// `%nctaid`.
    pub nctaid: [u32; 3],
    /// Linear index of the first lane within the block.
    pub first: u32,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared_bytes: u32,
    /// Offset of the dynamic part of shared memory.
    pub dynamic_shared_offset: u32,
    /// Number that differs for each launch: `%gridid`.
    pub grid: u32,
    /// Lanes that have exited while others continue. The code sets it before it reaches a barrier. Zero when
    /// the code is called.
    pub exited: u32,
    /// 1 if the launch touches more memory than the cache holds, else 0. If set, stores to write-only memory
    /// are non-temporal.
    pub streams: u32,
    /// Memory that was last admitted at each site, if accesses are checked.
    pub admitted: *mut AdmittedRange,
    /// Bounds of the device's memory, if accesses are checked.
    pub bounds: Bounds,
}

/// Addresses at which an access needs no further check: `count` of them from `start` on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmittedRange {
    /// First address.
    pub start: u64,
    /// Number of addresses.
    pub count: u64,
}

/// Bounds of the arena: see `crates/cpu/src/arena.rs`. No address is inside if there is no arena.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Memory that an access to `.global` or `.const` may reach.
    pub data: AdmittedRange,
    /// Memory that a generic access may reach.
    pub all: AdmittedRange,
}

impl Bounds {
    /// Returns the bounds of the arena of this process.
    pub(crate) fn of_arena() -> Bounds {
        let admitted =
            |range: std::ops::Range<usize>| AdmittedRange { start: range.start as u64, count: (range.end - range.start) as u64 };
        arena::reserved().map_or_else(Bounds::default, |arena| Bounds {
            data: admitted(arena.range(ArenaPart::Data)),
            all: admitted(arena.both()),
        })
    }
}

/// Access that [`Services::admit`] is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Bytes from the first to the last that each lane accesses.
    pub bytes: u32,
    /// Alignment of the access, a power of two.
    pub align: u16,
    /// Space that the instruction names.
    pub space: AccessSpace,
}

/// State space that an access names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AccessSpace {
    /// `.global`, `.const` and generic addresses, and addresses of parameters.
    Device,
    /// `.shared`, of any block of the cluster.
    Shared,
    /// `.local`.
    Local,
}

impl Access {
    /// Returns the access as generated code passes it.
    pub fn bits(self) -> u64 {
        u64::from(self.bytes) | u64::from(self.align) << 32 | (self.space as u64) << 48
    }

    /// Returns the access that generated code passed.
    pub fn from_bits(bits: u64) -> Access {
        let space = match bits >> 48 & 0xff {
            1 => AccessSpace::Shared,
            2 => AccessSpace::Local,
            _ => AccessSpace::Device,
        };
        Access { bytes: bits as u32, align: (bits >> 32) as u16, space }
    }
}

/// Byte offsets of the fields of [`Warp`].
pub mod offset {
    use super::Warp;
    use std::mem::offset_of;

    macro_rules! offsets {
        ($($name:ident $field:ident;)*) => { $(#[doc = concat!("Of `", stringify!($field), "`.")] pub const $name: u64 = offset_of!(Warp, $field) as u64;)* };
    }

    offsets! {
        SERVICES services;
        PARAMS params;
        SHARED shared;
        LOCAL local;
        LOCAL_BYTES local_bytes;
        VARIABLES variables;
        CTAID ctaid;
        NCTAID nctaid;
        FIRST first;
        DYNAMIC_SHARED_BYTES dynamic_shared_bytes;
        DYNAMIC_SHARED_OFFSET dynamic_shared_offset;
        GRID grid;
        WORKSPACE workspace;
        EXITED exited;
        STREAMS streams;
        ADMITTED admitted;
        BOUNDS bounds;
    }
}

/// Effect of a barrier on the threads that reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum BarrierKind {
    /// `bar.sync`: waits.
    Sync,
    /// `bar.arrive`: counts the thread and does not wait.
    Arrive,
    /// `bar.red.popc`: waits, and returns the number of threads with a true predicate.
    Count,
    /// `bar.red.and`: waits, and returns whether all predicates are true.
    All,
    /// `bar.red.or`: waits, and returns whether any predicate is true.
    Any,
}

/// Exchanges between lanes on the slow path, where each lane is a warp of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Exchange {
    /// `bar.warp.sync`.
    Wait,
    /// `shfl.up`.
    ShuffleUp,
    /// `shfl.down`.
    ShuffleDown,
    /// `shfl.bfly`.
    ShuffleXor,
    /// `shfl.idx`.
    ShuffleIndex,
    /// `vote.all`.
    VoteAll,
    /// `vote.any`.
    VoteAny,
    /// `vote.uni`.
    VoteUniform,
    /// `vote.ballot`.
    Ballot,
    /// `match.any`.
    MatchAny,
    /// `match.all`.
    MatchAll,
    /// `redux.add`.
    Add,
    /// `redux.min.s32`.
    MinSigned,
    /// `redux.max.s32`.
    MaxSigned,
    /// `redux.min.u32`.
    MinUnsigned,
    /// `redux.max.u32`.
    MaxUnsigned,
    /// `redux.and`.
    And,
    /// `redux.or`.
    Or,
    /// `redux.xor`.
    Xor,
    /// `redux.min.f32`, with `.abs` and `.NaN` in the control word's lowest two bits.
    MinFloat,
    /// `redux.max.f32`, with the same control word.
    MaxFloat,
    /// `elect`.
    Elect,
    /// `activemask`.
    Members,
    /// `mma`. The value is the address of the thread's registers: inputs, then space for outputs, 64 bits
    /// each. The lane is the index of the product in [`crate::code::Code::operations`].
    Product,
}

/// Input and output of a thread in an exchange. Code on the slow path keeps frame pointers, so that the
/// runtime can find the calls by which a thread reached the exchange.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ExchangeOperands {
    /// Member mask.
    pub members: u32,
    /// Lane or distance of a shuffle.
    pub select: u32,
    /// Clamp and segment mask of a shuffle.
    pub control: u32,
    /// Second result, as 0 or 1.
    pub flag: u32,
    /// Number of the instruction, equal in all threads.
    pub site: u32,
    /// 1 for instructions without a member mask (`shfl`, `vote`, `activemask`). Their members are the threads
    /// that reach the instruction together.
    pub convergent: u32,
    /// Value on entry, result on return.
    pub value: u64,
}

/// Operations on an mbarrier or on the cluster barrier, and other operations that the runtime does on shared
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Meeting {
    /// `mbarrier.init`, with the count.
    Init,
    /// `mbarrier.inval`.
    Invalidate,
    /// `mbarrier.expect_tx`, with the bytes.
    ExpectBytes,
    /// `mbarrier.complete_tx`, with the bytes. Asynchronous stores do it after their access.
    CompleteBytes,
    /// `mbarrier.arrive`, with the count. Returns the state.
    Arrive,
    /// `mbarrier.arrive.expect_tx`, with the bytes.
    ArriveExpecting,
    /// `mbarrier.arrive.noComplete`, with the count.
    ArriveBefore,
    /// `mbarrier.arrive_drop`, with the count.
    Drop,
    /// `mbarrier.arrive_drop.expect_tx`, with the bytes.
    DropExpecting,
    /// `mbarrier.arrive_drop.noComplete`, with the count.
    DropBefore,
    /// `mbarrier.test_wait` and `mbarrier.try_wait`, with a state. Returns whether its phase is complete.
    Ask,
    /// `mbarrier.test_wait.parity` and `mbarrier.try_wait.parity`, with a parity. Returns whether its phase
    /// is complete.
    AskParity,
    /// `mbarrier.check_layout`. Returns that there is an mbarrier.
    Look,
    /// `barrier.cluster.arrive`.
    ArriveAtCluster,
    /// `barrier.cluster.wait`.
    WaitForCluster,
    /// `st.bulk`, with the bytes.
    Zero,
}

/// Functions of the runtime. `mask` has a bit for each active lane.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Services {
    /// `barrier(warp, id, threads, kind, mask, predicates)`: `threads` is 0 for all threads of the block.
    /// Returns the reduction.
    pub barrier: unsafe extern "C" fn(*mut Warp, u32, u32, u32, u32, u32) -> u32,
    /// `pause(warp)`: lets other strands run first. Called in loops that wait for memory to change, and by
    /// `nanosleep`.
    pub pause: unsafe extern "C" fn(*mut Warp),
    /// `fault(warp, reason, site, mask, address)`: ends the launch with an error and does not return. Reasons
    /// are the numbers of [`Reason`], sites are indices into [`crate::code::Code::sites`].
    pub fault: unsafe extern "C" fn(*mut Warp, u32, u32, u32, u64) -> !,
    /// `evaluate(warp, operation, mask, inputs, outputs)`: evaluates a rare pure instruction. Its number is
    /// the index in [`crate::code::Code::operations`]. Inputs are `[operand][lane]` in the order of
    /// `broadloom_eval::inputs`, outputs `[result][lane]`, 64 bits each. A carry flag that is read is one
    /// more input after the others, one that is written one more output. There are 32 lanes, on the slow path
    /// one. A matrix product is evaluated once for all 32 lanes.
    pub evaluate: unsafe extern "C" fn(*mut Warp, u32, u32, *const u64, *mut u64),
    /// `exchange(warp, kind, exchanged)`: exchanges values between threads on the slow path.
    pub exchange: unsafe extern "C" fn(*mut Warp, u32, *mut ExchangeOperands),
    /// `builtin(warp, which, mask, arguments, result)`: calls a function of [`Builtin`], by number. Arguments
    /// are `[argument][lane]`, the result `[lane]`, 64 bits each. There are 32 lanes, on the slow path one.
    pub builtin: unsafe extern "C" fn(*mut Warp, u32, u32, *const u64, *mut u64),
    /// `clock(which)`: reads a clock of [`Clock`], by number.
    pub clock: extern "C" fn(u32) -> u64,
    /// `exit(warp)`: on the slow path, ends the thread from within a called function. Does not return.
    pub exit: unsafe extern "C" fn(*mut Warp) -> !,
    /// `meet(warp, what, site, mask, inputs, outputs)`: does an operation of [`Meeting`], by number. Sites
    /// are indices into [`crate::code::Code::sites`]. Inputs are `[operand][lane]`: a host address and the
    /// operand named at [`Meeting`]. Outputs are `[lane]`, 64 bits each. There are 32 lanes, on the slow path
    /// one.
    pub meet: unsafe extern "C" fn(*mut Warp, u32, u32, u32, *const u64, *mut u64),
    /// `image(warp, kind, bits, site, mask, inputs, outputs)`: does an operation of [`ImageKind`], by number.
    /// `bits` is the instruction as encoded by `broadloom_eval::texture`. Sites are indices into
    /// [`crate::code::Code::sites`]. Inputs are `[word][lane]`: the handle and the words of the instruction
    /// (a query has the level). Outputs are `[result][lane]`, 64 bits each. There are 32 lanes, on the slow
    /// path one.
    pub image: unsafe extern "C" fn(*mut Warp, u32, u64, u32, u32, *const u64, *mut u64),
    /// `admit(warp, site, mask, access, addresses)`: checks an access at one address for each lane. Returns if
    /// all active lanes may do it, else ends the launch with an error. `access` is an [`Access`] as bits. There
    /// are 32 addresses, on the slow path one.
    pub admit: unsafe extern "C" fn(*mut Warp, u32, u32, u64, *const u64),
}

/// Operations on a texture or surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ImageKind {
    /// `tex`, `tld4`.
    Fetch,
    /// `txq`.
    TextureQuery,
    /// `suq`.
    SurfaceQuery,
    /// `suld`, `sust`, `sured`.
    Surface,
}

/// Clocks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Clock {
    /// `%clock64`: ticks of the core.
    Ticks,
    /// `%globaltimer`: nanoseconds.
    Nanoseconds,
}

/// Functions that every device provides without a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Builtin {
    /// `vprintf(format, arguments)`.
    Printf,
    /// `malloc(bytes)`.
    Malloc,
    /// `free(pointer)`.
    Free,
    /// `__assertfail(message, file, line, function, size)`.
    Assert,
}

/// Reasons for which generated code faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reason {
    /// `trap`.
    Trap,
    /// Call of an address that is not a function.
    BadCall,
    /// Too many nested calls, or too much taken by `alloca`.
    StackOverflow,
    /// Call of a function that is declared but not defined.
    Undefined,
    /// Index outside the targets of `brx.idx`; the address is the index.
    BadTarget,
    /// `stackrestore` of a value that is not a saved top of the stack.
    BadStack,
    /// `mapa` to a rank that the cluster does not have; the address is the rank.
    BadRank,
    /// Instruction that all lanes of a warp must reach; the address is the number of lanes that did.
    MissingLanes,
}
