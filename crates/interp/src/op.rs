//! Decoded instructions: modifiers as a set, operands as slots of the register file, branch targets as
//! indices.
//!
//! A register is a slot of 64 bits (two for `.b128`) that holds exactly the bits of its type, zero above
//! them. An unsigned value can therefore be used directly; a signed one is extended where its sign is needed.

use broadloom_eval::matrix::{Product, Rows, Transfer};
use broadloom_eval::texture::{Fetch, Query, SurfaceAccess};
use broadloom_eval::{Carry, One, Operation, Pair};
use broadloom_ptx::{Inst, Space, Special};
use std::ops::Deref;

/// Handler of an instruction.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// Function of its inputs only.
    Pure(One),
    /// Function with two results.
    Pair(Pair),
    /// Function with the carry flag; the modifiers or the opcode decide whether the flag is written.
    Carry(Carry),
    /// Instruction that needs the thread, its block or memory.
    Machine(Machine),
    /// Not run by this executor.
    Refused,
}

/// Instructions that need more than their inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// `mov`, with packing and unpacking.
    Move,
    /// `ld`, `ldu`.
    Load,
    /// `st`.
    Store,
    /// `atom`, `red`.
    Atomic,
    /// `cvta`, `cvta.to`.
    Convert,
    /// `isspacep`.
    IsSpace,
    /// `bra`.
    Branch,
    /// `brx.idx`.
    BranchIndexed,
    /// `call`.
    Call,
    /// `ret`.
    Return,
    /// `exit`.
    Exit,
    /// `trap`.
    Trap,
    /// `bar`, `barrier` in all forms.
    Barrier,
    /// Instructions of whole warps.
    Warp(Exchange),
    /// `wmma.load`, `wmma.store`.
    Fragment,
    /// `mbarrier.*`
    Mbarrier(MbarrierOp),
    /// Textures and surfaces.
    Image,
    /// `cp.async` and its groups.
    Copy(CopyOp),
    /// `barrier.cluster.arrive`
    ClusterArrive,
    /// `barrier.cluster.wait`
    ClusterWait,
    /// `mapa`
    MapAddress,
    /// `getctarank`
    RankOfAddress,
    /// `st.async`
    StoreAsync,
    /// `red.async`
    ReduceAsync,
    /// `st.bulk`
    StoreBulk,
    /// `fence`, `membar`.
    Fence,
    /// `nanosleep`.
    Sleep,
    /// Hints without effect: `prefetch`, `pmevent`, …
    Nothing,
    /// `stacksave`.
    SaveStack,
    /// `stackrestore`.
    RestoreStack,
    /// `alloca`.
    Allocate,
}

/// Operation on an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MbarrierOp {
    /// `mbarrier.init`
    Init,
    /// `mbarrier.inval`
    Invalidate,
    /// `mbarrier.expect_tx`
    ExpectTx,
    /// `mbarrier.complete_tx`
    CompleteTx,
    /// `mbarrier.arrive`
    Arrive,
    /// `mbarrier.arrive_drop`
    ArriveAndDrop,
    /// `mbarrier.test_wait`, `mbarrier.try_wait`
    Wait,
    /// `mbarrier.check_layout`
    CheckLayout,
}

/// Operation on asynchronous copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyOp {
    /// `cp.async`
    Start,
    /// `cp.async.commit_group`
    Commit,
    /// `cp.async.wait_group`
    WaitGroup,
    /// `cp.async.wait_all`
    WaitAll,
    /// `cp.async.mbarrier.arrive`
    Arrive,
}

/// Exchange between lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// `shfl`: a value of another lane.
    Shuffle,
    /// `vote`: the lanes for which a predicate holds.
    Vote,
    /// `match.any`: the lanes that hold the same value.
    MatchAny,
    /// `match.all`: whether all lanes hold the same value.
    MatchAll,
    /// `redux`: a reduction of the values of all lanes.
    Reduce,
    /// `elect`: one of the lanes.
    Elect,
    /// `activemask`: the active lanes.
    Members,
    /// `bar.warp.sync`: nothing.
    Nothing,
    /// `mma`, `ldmatrix` and similar: elements of matrices.
    Matrix,
}

/// Matrix operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matrix {
    /// `mma`, `wmma.mma`.
    Product(Product),
    /// `ldmatrix`.
    Load(Rows),
    /// `stmatrix`.
    Store(Rows),
    /// `movmatrix`.
    Transpose,
    /// `wmma.load`, `wmma.store`.
    Fragment(Transfer),
}

/// Decoded operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    /// A register: its slot and the mask of its bits.
    Reg { slot: u32, mask: u64 },
    /// A `.b128` register: two slots, low half first.
    Wide { slot: u32 },
    /// Negated predicate.
    Not { slot: u32 },
    /// Register of a video instruction; the operation knows the selected part.
    Part { slot: u32 },
    /// Value known at load time, including addresses of globals, functions and kernel parameters.
    Imm(u64),
    /// A special register.
    Special(Special),
    /// Address of a shared variable: its number and an offset. Its place depends on the kernel.
    Shared { variable: u32, offset: i64 },
    /// Address in the frame of the function, in the local space.
    Frame { offset: i64 },
    /// Address of a variable in the `.param` space of a function.
    FrameParam { offset: i64 },
    /// Address in brackets: the sum of both, truncated by the mask to the width of the address.
    Memory { base: Box<Arg>, offset: i64, mask: u64 },
    /// Several operands.
    Vector(Box<[Arg]>),
    /// Index in the code.
    Target(u32),
    /// Indices in the code.
    Targets(Box<[u32]>),
    /// Discarded or omitted operand.
    Sink,
}

/// Decoded instruction.
#[derive(Clone)]
pub(crate) struct Op {
    pub(crate) handler: Handler,
    /// Name, types and modifiers.
    pub(crate) operation: Operation,
    /// State space among the modifiers.
    pub(crate) space: Space,
    /// Slot and negation of the guard.
    pub(crate) guard: Option<(u32, bool)>,
    /// Written operands, in order.
    pub(crate) writes: Box<[Arg]>,
    /// Read operands, in order; omitted operands in between are [`Arg::Sink`].
    pub(crate) reads: Box<[Arg]>,
    /// Instruction it was decoded from.
    pub(crate) inst: Inst,
    /// Call, for call instructions.
    pub(crate) call: Option<Box<CallSite>>,
    /// Operation, for matrix instructions.
    pub(crate) matrix: Option<Box<Matrix>>,
    /// Operation and operands, for texture and surface instructions.
    pub(crate) image: Option<Box<ImageSite>>,
}

/// Texture or surface operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// `tex`, `tld4`.
    Fetch(Fetch),
    /// `txq`, `suq`.
    Query(Query),
    /// `suld`, `sust`, `sured`.
    Surface(SurfaceAccess),
}

/// Decoded texture or surface instruction.
#[derive(Clone, Debug)]
pub(crate) struct ImageSite {
    pub(crate) what: Image,
    /// Handle of the texture or surface.
    pub(crate) handle: Arg,
    /// Coordinates and all that follows, word by word.
    pub(crate) words: Box<[Arg]>,
}

/// Decoded call.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    /// Callee: a function by number, or the register with its address.
    pub(crate) callee: CalleeArg,
    /// Arguments: a value with its size, or bytes of the frame.
    pub(crate) arguments: Box<[PassedValue]>,
    /// Destinations of results.
    pub(crate) results: Box<[PassedValue]>,
}

/// Callee of a call.
#[derive(Clone, Debug)]
pub(crate) enum CalleeArg {
    /// A function by number.
    Direct(u32),
    /// The function whose address a register holds.
    Indirect(Arg),
}

/// Argument or result of a call.
#[derive(Clone, Debug)]
pub(crate) enum PassedValue {
    /// Bytes of the caller's frame: a `.param` variable.
    Memory { offset: i64, bytes: u64 },
    /// A register or an immediate.
    Value(Arg),
}

impl Deref for Op {
    type Target = Operation;

    #[inline(always)]
    fn deref(&self) -> &Operation {
        &self.operation
    }
}
