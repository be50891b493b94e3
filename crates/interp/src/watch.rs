//! What a watcher of a run is told.
//!
//! The engine is generic over its watcher. [`Unwatched`] costs nothing: every call is empty and inlined away. The checker
//! ([`crate::check`]) keeps shadow memory and clocks.

use crate::cta::{Cta, Site};
use crate::names::Names;
use broadloom_device::FaultKind;
use broadloom_ptx::Space;

/// Where a byte lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Home {
    /// In an allocation, by serial number.
    Device(u64),
    /// In the block's shared memory.
    Shared,
    /// In the shared memory of another block of the cluster, by number.
    Peer(u64),
    /// In the thread's local memory.
    Local,
    /// In the kernel's parameters.
    Param,
}

/// How an access is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Plain: two of them must not meet.
    Weak,
    /// Volatile or relaxed: single steps without order.
    Relaxed,
    /// Sees what was released.
    Acquire,
    /// Releases what was done before.
    Release,
    /// Both.
    AcquireRelease,
}

/// Who an ordered access or a fence speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The block.
    Cta,
    /// The device, and clusters, which are no larger here.
    Gpu,
    /// Everyone.
    System,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes in one step.
    Atomic,
}

/// An access to memory that is in bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) kind: Kind,
    pub(crate) home: Home,
    /// First byte within its home.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
}

/// Where threads meet without a barrier of their block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Meeting {
    /// An mbarrier, by the number of the block in whose shared memory it lies, and its place there.
    Mbarrier { block: u64, offset: u64 },
    /// The barrier of a cluster, by the number of the cluster.
    Cluster(u64),
}

/// Someone who watches a run.
pub(crate) trait Watch {
    /// Whether it wants to know of registers, and takes faults without ending the run.
    const ON: bool;

    /// An allocation was filled from outside of the kernel.
    fn define(&mut self, _serial: u64, _bytes: u64) {}

    /// A launch starts, with the names of the memory that it can reach.
    fn named(&mut self, _names: &Names) {}

    /// A block starts.
    fn start(&mut self, _cta: &Cta) {}

    /// A block has ended.
    fn end(&mut self, _cta: &Cta) {}

    /// An instruction is about to run.
    fn instruction(&mut self) {}

    /// Memory is accessed.
    fn access(&mut self, _cta: &Cta, _site: Site<'_>, _access: Access) {}

    /// A register is read. `slot` is its index among the registers of all frames of the thread.
    fn read_register(&mut self, _cta: &Cta, _site: Site<'_>, _slot: usize) {}

    /// A register is written.
    fn write_register(&mut self, _cta: &Cta, _thread: usize, _slot: usize) {}

    /// A frame of registers comes into being, all undefined. Those from `from` on are fresh.
    fn fresh_registers(&mut self, _cta: &Cta, _thread: usize, _from: usize, _count: usize) {}

    /// Bytes of a thread's local memory come into being, undefined.
    fn fresh_local(&mut self, _cta: &Cta, _thread: usize, _from: u64, _bytes: u64) {}

    /// Bytes of local memory are written by a call, as arguments or results.
    fn define_local(&mut self, _cta: &Cta, _thread: usize, _from: u64, _bytes: u64) {}

    /// Memory was taken from the heap by a kernel.
    fn malloc(&mut self, _cta: &Cta, _site: Site<'_>, _serial: u64, _bytes: u64) {}

    /// Memory was given back to the heap by a kernel.
    fn free(&mut self, _cta: &Cta, _site: Site<'_>, _serial: u64) {}

    /// A thread comes to a barrier of the block.
    fn arrive(&mut self, _cta: &Cta, _site: Site<'_>, _barrier: u8, _waits: bool) {}

    /// A barrier is complete: these threads go on, after these arrived.
    fn barrier(&mut self, _cta: &Cta, _barrier: u8, _waiting: &[u32], _arrived: &[u32]) {}

    /// These threads met at an instruction of the warp with this mask.
    fn warp(&mut self, _cta: &Cta, _site: Site<'_>, _threads: &[usize], _mask: u32) {}

    /// A lane read a value of a lane that did not take part.
    fn inactive_lane(&mut self, _cta: &Cta, _site: Site<'_>, _lane: u32) {}

    /// An instruction of the warp happened without some lanes of its mask, which have ended.
    fn absent_lanes(&mut self, _cta: &Cta, _site: Site<'_>, _mask: u32, _absent: u32) {}

    /// A fence.
    fn fence(&mut self, _cta: &Cta, _site: Site<'_>, _scope: Scope) {}

    /// A thread arrives somewhere, and releases what it did before to those who wait there.
    fn arrive_at(&mut self, _cta: &Cta, _thread: usize, _meeting: Meeting) {}

    /// A meeting is complete.
    fn complete(&mut self, _meeting: Meeting) {}

    /// A thread has waited for a meeting that is complete, and acquires what was released there.
    fn learn_from(&mut self, _cta: &Cta, _thread: usize, _meeting: Meeting) {}

    /// A meeting begins or ends its life: what happened there before is forgotten.
    fn renew(&mut self, _cta: &Cta, _site: Site<'_>, _meeting: Meeting) {}

    /// A thread comes to a meeting, whatever for.
    fn visit(&mut self, _cta: &Cta, _site: Site<'_>, _meeting: Meeting) {}

    /// A thread has issued a copy into shared memory that goes on meanwhile.
    fn copy(&mut self, _cta: &Cta, _site: Site<'_>, _offset: u64, _bytes: u64) {}

    /// A thread closes a group of its copies.
    fn commit_copies(&mut self, _cta: &Cta, _thread: usize) {}

    /// A thread has waited until at most so many of its latest groups go on; without a number, until none does and no copy of any group.
    fn wait_for_copies(&mut self, _cta: &Cta, _thread: usize, _left: Option<u64>) {}

    /// A thread ends.
    fn exit(&mut self, _cta: &Cta, _thread: usize) {}

    /// Something that would end an unwatched run. The watcher takes note, and the run goes on as if the access had not been.
    fn fault(&mut self, _cta: &Cta, _site: Site<'_>, _kind: FaultKind, _space: Space, _address: Option<u64>, _message: &str) {}
}

/// Nobody watches.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    const ON: bool = false;
}
