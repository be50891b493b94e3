//! What generated code and the runtime know of each other.
//!
//! Generated code is one function per kernel, `extern "C" fn(*mut Warp)`. It gets the state of one warp and reaches everything
//! else through it: parameters, shared and local memory, addresses of variables, and the services of the runtime. It contains no
//! address of this process, so that it can be kept on disk and loaded again.
//!
//! A *warp* here is what runs in step: 32 lanes on the vector path, one thread on the slow path ([`Kind::Threads`]). All
//! addresses are those of the host: a generic address is a pointer, and so are global, shared and local ones after `cvta`; an
//! address in the shared window is an offset from [`Warp::shared`], one in the local window an offset from the lane's part of
//! [`Warp::local`]. The address of a function is a number, see [`function_address`]: code compares it, and never jumps to it.
//!
//! In a cluster of several blocks, shared memory of the block with rank `r` lies `r` times [`WINDOW`] behind that of the first. An
//! address of another block's shared memory is, in the shared window, `FAR + r` times [`WINDOW`] and the offset there, which
//! instructions for `.shared::cluster` alone know how to follow: behind a block's own window nothing is mapped for so long.
//!
//! Code is called with the default floating-point environment: rounding to nearest, denormals kept, exceptions masked. Its stack
//! ends at a guard page; frames larger than a page must probe it, so that running out of stack is found there.

use broadloom_ptx::Func;

/// The address of the first function of a module; the others follow.
pub const FUNCTION_BASE: u64 = 0x7fff_0000_0000;
/// The distance between the addresses of two functions.
pub const FUNCTION_STRIDE: u64 = 16;

/// The address of a function, as kernels see it.
pub fn function_address(func: Func) -> u64 {
    FUNCTION_BASE + FUNCTION_STRIDE * u64::from(func.as_u32())
}

/// The distance between the shared memory of the blocks of a cluster; a block has less.
pub const WINDOW: u64 = 1 << 20;
/// Windows in front of those of other blocks in the shared window; no cluster has more blocks.
pub const FAR: u64 = 16;

/// How a kernel is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Warps never wait: one call runs all warps of a block, one after the other. [`Warp::first`] is set by the code itself.
    Block,
    /// Each warp is called on a stack of its own, so that it can wait for the others.
    Warps,
    /// Each thread is called on a stack of its own: for code whose lanes wait for each other.
    Threads,
}

/// The state of a warp, as generated code sees it. The order of the fields is known to the compiler: see [`offset`].
#[repr(C)]
#[derive(Debug)]
pub struct Warp {
    /// Functions of the runtime.
    pub services: *const Services,
    /// The parameter block of the launch.
    pub params: *const u8,
    /// Shared memory of the block: static variables, then the dynamic part. Aligned to 256 bytes, all zero when a block starts.
    pub shared: *mut u8,
    /// Local memory of the first lane; that of lane `l` is `l` times the kernel's local bytes behind it. Aligned to 64 bytes, its
    /// contents are what the last one left.
    pub local: *mut u8,
    /// Bytes of the local window, of all lanes together; on the slow path that is the thread's stack.
    pub local_bytes: u64,
    /// Addresses of the module's variables that the kernel names, in the kernel's order.
    pub variables: *const u64,
    /// What the runtime knows of this warp; generated code passes it on.
    pub owner: *mut std::ffi::c_void,
    /// The address of the state of grid-wide barriers, in a cooperative launch: `%envreg1` is its high half, `%envreg2` its low one.
    pub workspace: u64,
    /// `%ctaid`.
    pub ctaid: [u32; 3],
    /// `%nctaid`.
    pub nctaid: [u32; 3],
    /// The linear index within the block of the first lane.
    pub first: u32,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared_bytes: u32,
    /// Where the dynamic part of shared memory starts.
    pub dynamic_shared_offset: u32,
    /// A number that differs for each launch: `%gridid`.
    pub grid: u32,
    /// Lanes that have ended while others go on; the code sets it before it comes to a barrier. Zero when the code is called.
    pub exited: u32,
    /// Whether a launch touches more than the cache holds: stores to what is only written go around it. 0 or 1.
    pub streams: u32,
}

/// Places of [`Warp`]'s fields in bytes.
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
    }
}

/// What a barrier does with those who come to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum BarrierKind {
    /// `bar.sync`: waits.
    Sync,
    /// `bar.arrive`: is counted and goes on.
    Arrive,
    /// `bar.red.popc`: waits, and gets how many threads brought a true predicate.
    Count,
    /// `bar.red.and`: waits, and gets whether all did.
    All,
    /// `bar.red.or`: waits, and gets whether one did.
    Any,
}

/// What lanes exchange on the slow path, where each lane is a warp of its own.
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
    /// `redux.max.f32`, likewise.
    MaxFloat,
    /// `elect`.
    Elect,
    /// `activemask`.
    Members,
    /// `mma`: the value is the address of the thread's registers, inputs and then room for outputs, 64 bits each; the lane is the number of
    /// the product among [`crate::code::Code::operations`].
    Product,
}

/// What a thread brings to an exchange, and what it gets. Code on the slow path keeps frame pointers, so that the runtime can tell by
/// which calls a thread came to the exchange.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchanged {
    /// The member mask.
    pub members: u32,
    /// The lane or distance of a shuffle.
    pub select: u32,
    /// The clamp and segment mask of a shuffle.
    pub control: u32,
    /// Whether the second result is true.
    pub flag: u32,
    /// A number for the instruction, the same in all threads.
    pub site: u32,
    /// 1 for instructions without a member mask (`shfl`, `vote`, `activemask`): the members are those that come to the instruction
    /// together.
    pub convergent: u32,
    /// The value, and then the result.
    pub value: u64,
}

/// What threads do at an mbarrier or at the barrier of their cluster, and other things of shared memory that need a look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Meeting {
    /// `mbarrier.init`, with the count.
    Init,
    /// `mbarrier.inval`.
    Invalidate,
    /// `mbarrier.expect_tx`, with the bytes.
    ExpectBytes,
    /// `mbarrier.complete_tx`, with the bytes; what asynchronous stores do behind their access.
    CompleteBytes,
    /// `mbarrier.arrive`, with the count; gives the state.
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
    /// `mbarrier.test_wait` and `mbarrier.try_wait`, with a state; gives whether its phase is complete.
    Ask,
    /// The same, with a parity.
    AskParity,
    /// `mbarrier.check_layout`; gives that there is one.
    Look,
    /// `barrier.cluster.arrive`.
    ArriveAtCluster,
    /// `barrier.cluster.wait`.
    WaitForCluster,
    /// `st.bulk`, with the bytes.
    Zero,
}

/// Functions of the runtime. `mask` has a bit for each lane that takes part.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Services {
    /// `barrier(warp, id, threads, kind, mask, predicates)`: threads is 0 for all of the block. Gives the reduction.
    pub barrier: unsafe extern "C" fn(*mut Warp, u32, u32, u32, u32, u32) -> u32,
    /// `pause(warp)`: others may go on first. Called in loops that wait for memory to change, and by `nanosleep`.
    pub pause: unsafe extern "C" fn(*mut Warp),
    /// `fault(warp, reason, site, mask, address)`: ends the launch with an error; does not return. Reasons are the numbers of
    /// [`Reason`], sites those of [`crate::code::Code::sites`].
    pub fault: unsafe extern "C" fn(*mut Warp, u32, u32, u32, u64) -> !,
    /// `evaluate(warp, operation, mask, inputs, outputs)`: a rare pure instruction, the number is its place in
    /// [`crate::code::Code::operations`]. Inputs are `[operand][lane]` in the order of `broadloom_eval::inputs`, outputs
    /// `[result][lane]`, 64 bits each; a carry flag that is read is one more input behind the others, one that is written one more
    /// output. There are 32 lanes, on the slow path one. A product of matrices is one for all 32 lanes together.
    pub evaluate: unsafe extern "C" fn(*mut Warp, u32, u32, *const u64, *mut u64),
    /// `exchange(warp, kind, exchanged)`: on the slow path.
    pub exchange: unsafe extern "C" fn(*mut Warp, u32, *mut Exchanged),
    /// `builtin(warp, which, mask, arguments, result)`: the numbers of [`Builtin`]. Arguments are `[argument][lane]`, the result
    /// `[lane]`, 64 bits each. There are 32 lanes, on the slow path one.
    pub builtin: unsafe extern "C" fn(*mut Warp, u32, u32, *const u64, *mut u64),
    /// `clock(which)`: the numbers of [`Clock`].
    pub clock: extern "C" fn(u32) -> u64,
    /// `exit(warp)`: on the slow path, ends the thread from within a called function; does not return.
    pub exit: unsafe extern "C" fn(*mut Warp) -> !,
    /// `meet(warp, what, site, mask, inputs, outputs)`: the numbers of [`Meeting`], sites those of [`crate::code::Code::sites`].
    /// Inputs are `[operand][lane]`: an address of the host, and what [`Meeting`] says; outputs `[lane]`, 64 bits each. There are 32
    /// lanes, on the slow path one.
    pub meet: unsafe extern "C" fn(*mut Warp, u32, u32, u32, *const u64, *mut u64),
    /// `image(warp, kind, bits, site, mask, inputs, outputs)`: the numbers of [`ImageKind`], what `broadloom_eval::texture` makes a number of, sites
    /// those of [`crate::code::Code::sites`]. Inputs are `[word][lane]`: the handle, and the words of the instruction (a query has the level);
    /// outputs `[result][lane]`, 64 bits each. There are 32 lanes, on the slow path one.
    pub image: unsafe extern "C" fn(*mut Warp, u32, u64, u32, u32, *const u64, *mut u64),
}

/// What is done with a texture or surface.
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

/// Functions that every device has without defining them.
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

/// Why generated code gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reason {
    /// `trap`.
    Trap,
    /// A call of something that is not a function.
    BadCall,
    /// Too many nested calls, or too much taken by `alloca`.
    StackOverflow,
    /// A call of a function that is declared and defined nowhere.
    Undefined,
    /// An index outside of the targets of `brx.idx`; the address is the index.
    BadTarget,
    /// `stackrestore` of something that is not a saved top of the stack.
    BadStack,
    /// `mapa` to a rank that the cluster does not have; the address is the rank.
    BadRank,
    /// An instruction that all lanes of a warp must come to; the address is how many have.
    MissingLanes,
}
