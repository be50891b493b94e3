//! Places in memory, and how they are accessed.

use crate::op::{Id, SharedId};
use crate::types::Element;

/// The start of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A global address, a `u64`.
    Global(Id),
    /// An array in shared memory, so many bytes (a `u32`) behind its start.
    Shared(SharedId, Option<Id>),
    /// An address in shared memory, a `u32`.
    SharedAt(Id),
}

impl Base {
    /// Shows the values that it is made of.
    pub fn each_operand(&self, mut see: impl FnMut(Id)) {
        match self {
            Base::Global(id) | Base::SharedAt(id) | Base::Shared(_, Some(id)) => see(*id),
            Base::Shared(_, None) => {}
        }
    }

    /// Returns whether it is in shared memory.
    pub const fn is_shared(self) -> bool {
        matches!(self, Base::Shared(..) | Base::SharedAt(_))
    }
}

/// Whose accesses are ordered.
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
    /// Nothing: nobody else accesses the place at the same time.
    #[default]
    Weak,
    /// It happens, as it stands.
    Volatile,
    /// It happens at once, in no order with others.
    Relaxed(Scope),
    /// A load: what follows comes after it.
    Acquire(Scope),
    /// A store: what stands before comes before it.
    Release(Scope),
    /// An atomic operation: both.
    AcquireRelease(Scope),
}

/// Cache policies of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cache {
    /// As usual.
    #[default]
    Normal,
    /// A load from memory that nobody writes while the kernel runs.
    ReadOnly,
    /// Used once: first to leave the cache.
    Streaming,
    /// A load from memory that nobody writes while the kernel runs, used once.
    ReadOnlyStreaming,
}

/// A cache that memory is brought into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The nearest one.
    First,
    /// The one behind it.
    Second,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// The type of an element in memory; the index counts these, also where several are accessed at once.
    pub element: Element,
    /// Added to the index.
    pub offset: i32,
    /// Memory order.
    pub order: Order,
    /// Cache policy.
    pub cache: Cache,
}

impl Access {
    /// As usual.
    pub const fn of(element: Element) -> Access {
        Access { element, offset: 0, order: Order::Weak, cache: Cache::Normal }
    }

    /// With an order.
    #[must_use]
    pub const fn order(mut self, order: Order) -> Access {
        self.order = order;
        self
    }

    /// With a hint for the caches.
    #[must_use]
    pub const fn cache(mut self, cache: Cache) -> Access {
        self.cache = cache;
        self
    }

    /// Returns whether a load need not happen when nobody uses the value.
    pub const fn is_plain(self) -> bool {
        matches!(self.order, Order::Weak)
    }
}
