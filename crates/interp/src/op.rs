//! Instructions made ready to run: modifiers as a set, operands as slots of the register file, branch targets as positions.
//!
//! A register is a slot of 64 bits (two for `.b128`) that holds exactly as many bits as its type has, zero above them. So an
//! unsigned value can be used as it is, and a signed one is extended by whoever needs its sign.

use broadloom_eval::matrix::{Product, Rows, Transfer};
use broadloom_eval::texture::{Fetch, Query, SurfaceAccess};
use broadloom_eval::{Carry, One, Operation, Pair};
use broadloom_ptx::{Inst, Space, Special};
use std::ops::Deref;

/// How an instruction is run.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// A function of its inputs alone.
    Pure(One),
    /// The same with two results.
    Pair(Pair),
    /// The same with the carry flag; the flag is written when the modifiers or the opcode say so.
    Carry(Carry),
    /// Something that needs the thread, its block or memory.
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
    Mbarrier(Counting),
    /// Textures and surfaces.
    Image,
    /// `cp.async` and its groups.
    Copy(Copying),
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
    /// Hints that change nothing: `prefetch`, `pmevent`, …
    Nothing,
    /// `stacksave`.
    SaveStack,
    /// `stackrestore`.
    RestoreStack,
    /// `alloca`.
    Allocate,
}

/// What is done with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
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

/// What is done with asynchronous copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
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

/// What lanes of a warp exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// `shfl`: a value of another lane.
    Shuffle,
    /// `vote`: for which lanes a predicate holds.
    Vote,
    /// `match.any`: which lanes hold the same value.
    MatchAny,
    /// `match.all`: whether all lanes hold the same value.
    MatchAll,
    /// `redux`: a value out of those of all lanes.
    Reduce,
    /// `elect`: one lane of them all.
    Elect,
    /// `activemask`: which lanes are there.
    Members,
    /// `bar.warp.sync`: nothing.
    Nothing,
    /// `mma`, `ldmatrix` and their kin: elements of matrices.
    Matrix,
}

/// What an instruction does with matrices.
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

/// An operand made ready.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    /// A register: its slot and the mask of its bits.
    Reg { slot: u32, mask: u64 },
    /// A `.b128` register: two slots, low half first.
    Wide { slot: u32 },
    /// A predicate that is negated.
    Not { slot: u32 },
    /// A register of a video instruction; which part of it is meant, the operation knows.
    Part { slot: u32 },
    /// A value known when the module is loaded; addresses of globals, functions and kernel parameters too.
    Imm(u64),
    /// A special register.
    Special(Special),
    /// The address of a shared variable: its number and an offset. Where it lies depends on the kernel.
    Shared { variable: u32, offset: i64 },
    /// An address in the frame of the function, in the local space.
    Frame { offset: i64 },
    /// The same for a variable in the `.param` space of a function.
    FrameParam { offset: i64 },
    /// An address in brackets: the sum of both, cut off by the mask to as many bits as the address has.
    Memory { base: Box<Arg>, offset: i64, mask: u64 },
    /// Several.
    Vector(Box<[Arg]>),
    /// A position in the code.
    Target(u32),
    /// Positions in the code.
    Targets(Box<[u32]>),
    /// Thrown away, or left out.
    Sink,
}

/// An instruction made ready.
#[derive(Clone)]
pub(crate) struct Op {
    pub(crate) handler: Handler,
    /// Name, types and modifiers.
    pub(crate) operation: Operation,
    /// The state space among the modifiers.
    pub(crate) space: Space,
    /// Slot and negation of the guard.
    pub(crate) guard: Option<(u32, bool)>,
    /// What is written, in the order of the operands.
    pub(crate) writes: Box<[Arg]>,
    /// What is read, in the order of the operands; left-out operands in between are [`Arg::Sink`].
    pub(crate) reads: Box<[Arg]>,
    /// The instruction it was made from.
    pub(crate) inst: Inst,
    /// For calls: which one.
    pub(crate) call: Option<Box<CallSite>>,
    /// For instructions of matrices: what they do.
    pub(crate) matrix: Option<Box<Matrix>>,
    /// For instructions of textures and surfaces: what they do, and with what.
    pub(crate) image: Option<Box<ImageSite>>,
}

/// What an instruction does with a texture or surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// `tex`, `tld4`.
    Fetch(Fetch),
    /// `txq`, `suq`.
    Query(Query),
    /// `suld`, `sust`, `sured`.
    Surface(SurfaceAccess),
}

/// An instruction of a texture or surface made ready.
#[derive(Clone, Debug)]
pub(crate) struct ImageSite {
    pub(crate) what: Image,
    /// The texture or surface.
    pub(crate) handle: Arg,
    /// Coordinates and all that follows, word by word.
    pub(crate) words: Box<[Arg]>,
}

/// A call made ready.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    /// The callee: a function by number, or the register with its address.
    pub(crate) callee: CalleeArg,
    /// What is passed: a value with its size, or bytes of the frame.
    pub(crate) arguments: Box<[Passed]>,
    /// Where results go.
    pub(crate) results: Box<[Passed]>,
}

/// Who is called.
#[derive(Clone, Debug)]
pub(crate) enum CalleeArg {
    /// A function by number.
    Direct(u32),
    /// The function whose address a register holds.
    Indirect(Arg),
}

/// One argument or result of a call.
#[derive(Clone, Debug)]
pub(crate) enum Passed {
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
