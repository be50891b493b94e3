//! State of a function's translation by subject: checks, counters, streams, special registers.
//!
//! The types have no code that emits anything. The [`super::emitter`] holds one of each.

use super::llvm::Val;
use broadloom_ptx::{Guard, Inst, Reg, Special, Symbol};
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

/// Accesses that share a check: base register, guard, distance, and whether they name `.global` or `.const`.
pub(super) type SharedCheck = (Reg, Option<Guard>, i64, bool);

/// Checks of accesses that a block has, for those that share one ([`super::bounds`]).
#[derive(Default)]
pub(super) struct BlockChecks {
    /// Instructions of the block, in order.
    pub(super) insts: Vec<Inst>,
    pub(super) done: HashSet<SharedCheck>,
    /// Instruction whose site was recorded last, and the number of the site.
    pub(super) site: Option<(Inst, u64)>,
}

impl BlockChecks {
    /// Begins a block.
    pub(super) fn begin(&mut self, insts: &[Inst]) {
        self.insts.clear();
        self.insts.extend(insts);
        self.done.clear();
    }
}

/// Array of counters.
pub(super) struct CounterTable {
    pub(super) symbol: Symbol,
    /// Offset in shared memory.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// Offset of its copies among all copies.
    pub(super) place: u64,
}

impl CounterTable {
    /// Returns the distance between two copies in bytes. An unaligned address between two counters stays
    /// within the copy. Equal counters of two copies have different offsets in a page; otherwise a core would
    /// take one for the other for a while (false aliasing).
    pub(super) fn stride(&self) -> u64 {
        self.bytes.next_multiple_of(64) + 64
    }
}

/// Arrays of counters of a kernel ([`super::counters`]).
pub(crate) struct Counters {
    pub(super) tables: Vec<CounterTable>,
    /// For each piece, true if it counts.
    pub(super) counts: Vec<bool>,
    /// For each piece, true if it has other accesses to shared memory.
    pub(super) looks: Vec<bool>,
    /// Offset of the copies, after the values that warps keep.
    pub(super) place: u64,
    /// Bytes of all copies.
    pub(crate) bytes: u64,
    /// Number of additions before copies are made. One more than that means that copies exist.
    pub(super) limit: u64,
    /// Address of the number of additions.
    pub(super) done: Val,
    /// True if lanes add one by one somewhere.
    pub(super) one_by_one: Cell<bool>,
}

/// Recipe for the address of an access in the next iteration of a loop ([`super::far`]).
pub(crate) struct NextAddress {
    /// Parameters of the loop's head, and the instructions that compute their next values.
    pub(super) params: Vec<(Reg, Inst)>,
    /// Instructions that compute the address, in order.
    pub(super) chain: Vec<Inst>,
}

/// Parameter, by name and offset.
pub(super) type Root = (Symbol, i64);

/// Write-only arrays that are written in whole rows ([`super::roots`]).
#[derive(Default)]
pub(crate) struct NonTemporalArrays {
    pub(super) written: HashSet<Root>,
    /// Bytes of all arrays that a thread touches; 0 if no store is non-temporal.
    pub(crate) thread_bytes: u64,
    /// True if no thread of another block reads the stored values before the launch ends.
    pub(crate) are_free: bool,
}

/// Special registers that a kernel reads ([`super::special`]).
#[derive(Default)]
pub(crate) struct Specials(pub(super) BTreeMap<Special, SpecialValue>);

/// Value of a special register.
#[derive(Clone, Copy)]
pub(super) enum SpecialValue {
    /// Value of lane 0, and stride between lanes.
    Scalar(Val, i64),
    /// Values of all lanes.
    Vector(Val),
}
