//! Places in memory, and the kinds of access to them.

use crate::id::{Id, SharedId};
use crate::types::Element;

/// The start of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A global address, a `u64`.
    Global(Id),
    /// An array in shared memory, with an offset in bytes (a `u32`) from its start.
    Shared(SharedId, Option<Id>),
    /// An address in shared memory, a `u32`.
    SharedAt(Id),
}

impl Base {
    /// Calls a function for each operand.
    pub fn each_operand(&self, mut see: impl FnMut(Id)) {
        match self {
            Base::Global(id) | Base::SharedAt(id) | Base::Shared(_, Some(id)) => see(*id),
            Base::Shared(_, None) => {}
        }
    }

    /// Returns true if it is in shared memory.
    pub const fn is_shared(self) -> bool {
        matches!(self, Base::Shared(..) | Base::SharedAt(_))
    }
}

/// The threads among which accesses are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the device.
    Device,
    /// All threads that see the memory.
    System,
}

/// Memory order of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// No order: no other thread accesses the place at the same time.
    #[default]
    Weak,
    /// The access is performed exactly as written.
    Volatile,
    /// The access is atomic, without order relative to others.
    Relaxed(Scope),
    /// A load: later accesses happen after it.
    Acquire(Scope),
    /// A store: earlier accesses happen before it.
    Release(Scope),
    /// An atomic operation: both acquire and release.
    AcquireRelease(Scope),
}

/// Cache policies of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cache {
    /// Default caching.
    #[default]
    Normal,
    /// A load from memory that is not written while the kernel runs.
    ReadOnly,
    /// Used once: evicted first.
    Streaming,
    /// A load from memory that is not written while the kernel runs, used once.
    ReadOnlyStreaming,
}

/// A cache level for prefetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// First-level cache.
    First,
    /// Second-level cache.
    Second,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// Type of an element in memory. The index counts these, also if several are accessed at once.
    pub element: Element,
    /// Constant that is added to the index.
    pub offset: i32,
    /// Memory order.
    pub order: Order,
    /// Cache policy.
    pub cache: Cache,
}

impl Access {
    /// Returns an access with default order and caching.
    pub const fn of(element: Element) -> Access {
        Access { element, offset: 0, order: Order::Weak, cache: Cache::Normal }
    }

    /// Returns the access with an order.
    #[must_use]
    pub const fn order(mut self, order: Order) -> Access {
        self.order = order;
        self
    }

    /// Returns the access with a cache policy.
    #[must_use]
    pub const fn cache(mut self, cache: Cache) -> Access {
        self.cache = cache;
        self
    }

    /// Returns true if a load may be removed when its value is not used.
    pub const fn is_plain(self) -> bool {
        matches!(self.order, Order::Weak)
    }
}
