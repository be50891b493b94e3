//! Interface of watchers of a run.
//!
//! The engine is generic over its watcher. [`NoWatch`] costs nothing: every call is empty and inlined away.
//! The checker ([`crate::check`]) keeps shadow memory and clocks.

use crate::cta::{CodeSite, Cta};
use crate::names::Names;
use broadloom_device::FaultKind;
use broadloom_ptx::Space;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ByteMemory {
    /// Allocation, by serial number.
    Device(u64),
    /// Shared memory of the block.
    Shared,
    /// Shared memory of another block of the cluster, by number.
    Peer(u64),
    /// Local memory of the thread.
    Local,
    /// Parameters of the kernel.
    Param,
}

/// Memory order of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Plain: two of them must not be concurrent.
    Weak,
    /// Volatile or relaxed: atomic, without order.
    Relaxed,
    /// Acquires what was released.
    Acquire,
    /// Releases what was done before.
    Release,
    /// Both.
    AcquireRelease,
}

/// Scope of an ordered access or a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The block.
    Cta,
    /// The device, and clusters, whose scope is the same here.
    Gpu,
    System,
}

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    /// Atomic read and write.
    Atomic,
}

/// Access to memory that is in bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) kind: Kind,
    pub(crate) home: ByteMemory,
    /// First byte within its home.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
}

/// Synchronisation object other than a barrier of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Meeting {
    /// An mbarrier, by the number of the block in whose shared memory it lies, and its offset there.
    Mbarrier { block: u64, offset: u64 },
    /// The barrier of a cluster, by the number of the cluster.
    Cluster(u64),
}

/// Watcher of a run.
pub(crate) trait Watch {
    /// True if it needs reports on registers, and takes faults without ending the run.
    const ON: bool;

    /// Reports that an allocation was filled from outside the kernel.
    fn define(&mut self, _serial: u64, _bytes: u64) {}

    /// Reports the start of a launch, with the names of the memory that it can access.
    fn named(&mut self, _names: &Names) {}

    /// Reports the start of a block.
    fn start(&mut self, _cta: &Cta) {}

    /// Reports the end of a block.
    fn end(&mut self, _cta: &Cta) {}

    /// Reports that an instruction is about to run.
    fn instruction(&mut self) {}

    /// Reports an access to memory.
    fn access(&mut self, _cta: &Cta, _site: CodeSite<'_>, _access: Access) {}

    /// Reports the read of a register. `slot` is its index among the registers of all frames of the thread.
    fn read_register(&mut self, _cta: &Cta, _site: CodeSite<'_>, _slot: usize) {}

    /// Reports the write of a register.
    fn write_register(&mut self, _cta: &Cta, _thread: usize, _slot: usize) {}

    /// Reports a new frame of registers, all undefined. Those from `from` on are fresh.
    fn fresh_registers(&mut self, _cta: &Cta, _thread: usize, _from: usize, _count: usize) {}

    /// Reports new bytes of a thread's local memory, undefined.
    fn fresh_local(&mut self, _cta: &Cta, _thread: usize, _from: u64, _bytes: u64) {}

    /// Reports that a call wrote bytes of local memory, as arguments or results.
    fn define_local(&mut self, _cta: &Cta, _thread: usize, _from: u64, _bytes: u64) {}

    /// Reports that a kernel allocated memory from the heap.
    fn malloc(&mut self, _cta: &Cta, _site: CodeSite<'_>, _serial: u64, _bytes: u64) {}

    /// Reports that a kernel freed memory of the heap.
    fn free(&mut self, _cta: &Cta, _site: CodeSite<'_>, _serial: u64) {}

    /// Reports the arrival of a thread at a barrier of the block.
    fn arrive(&mut self, _cta: &Cta, _site: CodeSite<'_>, _barrier: u8, _waits: bool) {}

    /// Reports a complete barrier: the waiting threads continue, after the others arrived.
    fn barrier(&mut self, _cta: &Cta, _barrier: u8, _waiting: &[u32], _arrived: &[u32]) {}

    /// Reports that these threads met at a warp instruction with this mask.
    fn warp(&mut self, _cta: &Cta, _site: CodeSite<'_>, _threads: &[usize], _mask: u32) {}

    /// Reports that a lane read a value of an inactive lane.
    fn inactive_lane(&mut self, _cta: &Cta, _site: CodeSite<'_>, _lane: u32) {}

    /// Reports that a warp instruction ran without some lanes of its mask, which have exited.
    fn absent_lanes(&mut self, _cta: &Cta, _site: CodeSite<'_>, _mask: u32, _absent: u32) {}

    /// Reports a fence.
    fn fence(&mut self, _cta: &Cta, _site: CodeSite<'_>, _scope: Scope) {}

    /// Reports the arrival of a thread at a meeting. It releases its earlier actions to those who wait there.
    fn arrive_at(&mut self, _cta: &Cta, _thread: usize, _meeting: Meeting) {}

    /// Reports a complete meeting.
    fn complete(&mut self, _meeting: Meeting) {}

    /// Reports that a thread has waited for a complete meeting. It acquires what was released there.
    fn learn_from(&mut self, _cta: &Cta, _thread: usize, _meeting: Meeting) {}

    /// Reports the start or end of the lifetime of a meeting: its past is forgotten.
    fn renew(&mut self, _cta: &Cta, _site: CodeSite<'_>, _meeting: Meeting) {}

    /// Reports that a thread uses a meeting, for any purpose.
    fn visit(&mut self, _cta: &Cta, _site: CodeSite<'_>, _meeting: Meeting) {}

    /// Reports that a thread has issued an asynchronous copy into shared memory.
    fn copy(&mut self, _cta: &Cta, _site: CodeSite<'_>, _offset: u64, _bytes: u64) {}

    /// Reports that a thread commits a group of its copies.
    fn commit_copies(&mut self, _cta: &Cta, _thread: usize) {}

    /// Reports that a thread has waited until at most `left` of its latest groups are pending; without a
    /// number, until no copy is pending.
    fn wait_for_copies(&mut self, _cta: &Cta, _thread: usize, _left: Option<u64>) {}

    /// Reports that a thread exits.
    fn exit(&mut self, _cta: &Cta, _thread: usize) {}

    /// Reports a fault that would end an unwatched run. The watcher records it, and the run continues as if
    /// the access had not happened.
    fn fault(&mut self, _cta: &Cta, _site: CodeSite<'_>, _kind: FaultKind, _space: Space, _address: Option<u64>, _message: &str) {
    }
}

/// Watcher that does nothing.
pub(crate) struct NoWatch;

impl Watch for NoWatch {
    const ON: bool = false;
}
