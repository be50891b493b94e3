//! Indices of a thread, and cooperation of threads. Kernels only.

use super::{Builder, Operand, Value};
use crate::body::Statement;
use crate::memory::Scope;
use crate::op::{Axis, Op, Shuffle, Special, Vote, WarpReduce};
use crate::types::{Element, Type};

impl Builder {
    /// Returns a special register of the thread.
    #[track_caller]
    pub fn special(&self, special: Special) -> Value {
        self.kernel_only("a special value");
        self.pure(Op::Special(special), Type::U32)
    }

    /// Returns the index of the thread in its block.
    #[track_caller]
    pub fn thread(&self, axis: Axis) -> Value {
        self.special(Special::Thread(axis))
    }

    /// Returns the index of the block in its grid.
    #[track_caller]
    pub fn block(&self, axis: Axis) -> Value {
        self.special(Special::Block(axis))
    }

    /// Returns the number of threads of a block.
    #[track_caller]
    pub fn block_size(&self, axis: Axis) -> Value {
        self.special(Special::BlockSize(axis))
    }

    /// Returns the number of blocks of the grid.
    #[track_caller]
    pub fn grid_size(&self, axis: Axis) -> Value {
        self.special(Special::GridSize(axis))
    }

    /// Returns `block * block_size + thread`, as a `u32`.
    #[track_caller]
    pub fn global_thread(&self, axis: Axis) -> Value {
        self.add(self.mul(self.block(axis), self.block_size(axis)), self.thread(axis))
    }

    /// Waits for all threads of the block. Earlier accesses become visible to them. Every thread of the block
    /// must reach the barrier.
    #[track_caller]
    pub fn barrier(&self) {
        self.kernel_only("a barrier");
        self.statement(Statement::Barrier);
    }

    /// Waits for all threads of the block. Returns the number of threads whose predicate is true, a `u32`.
    #[track_caller]
    pub fn barrier_count(&self, predicate: impl Into<Operand>) -> Value {
        self.kernel_only("a barrier");
        let Some(predicate) = self.resolve(predicate.into(), Type::BOOL) else { return self.poison() };
        self.place(Op::BarrierCount(predicate.id), Type::U32)
    }

    /// Waits for the lanes of the warp. Earlier accesses become visible to them.
    #[track_caller]
    pub fn warp_barrier(&self) {
        self.kernel_only("a barrier");
        let members = self.literal(u32::MAX);
        self.statement(Statement::WarpBarrier(members.id));
    }

    /// Orders earlier accesses before later ones, for the threads of the scope.
    #[track_caller]
    pub fn fence(&self, scope: Scope) {
        self.kernel_only("a fence");
        self.statement(Statement::Fence(scope));
    }

    #[track_caller]
    fn members(&self, members: Option<Value>) -> Option<Value> {
        self.kernel_only("an operation of a warp");
        self.members_or_all(members)
    }

    #[track_caller]
    fn members_or_all(&self, members: Option<Value>) -> Option<Value> {
        match members {
            Some(members) => self.resolve(members.into(), Type::U32),
            None => Some(self.literal(u32::MAX)),
        }
    }

    /// Returns the value of another lane. `amount` is a `u32`. All 32 lanes take part. A function with a
    /// shuffle cannot be evaluated, and may be used only where all lanes of a warp execute it.
    #[track_caller]
    pub fn shuffle(&self, kind: Shuffle, value: Value, amount: impl Into<Operand>) -> Value {
        self.shuffle_in(kind, value, amount, 32, None)
    }

    /// Returns the value of another lane in a group of 32, 16, 8, 4 or 2 lanes. `members` is the mask of the
    /// lanes that take part, a `u32`. By default all lanes take part.
    #[track_caller]
    pub fn shuffle_in(
        &self,
        kind: Shuffle,
        value: Value,
        amount: impl Into<Operand>,
        width: u32,
        members: Option<Value>,
    ) -> Value {
        let (Some(value), Some(amount), Some(members)) =
            (self.checked(value), self.resolve(amount.into(), Type::U32), self.members_or_all(members))
        else {
            return self.poison();
        };
        if !matches!(width, 2 | 4 | 8 | 16 | 32) {
            return self.fail(format!("a shuffle in groups of {width} lanes"));
        }
        let element = self.type_of(value).element();
        self.each_lane(&[value], |lane| self.place(Op::Shuffle(kind, width as u8, lane[0].id, amount.id, members.id), element))
    }

    /// Applies a vote to all lanes of the warp, or to those in the mask `members`.
    #[track_caller]
    pub fn vote(&self, vote: Vote, predicate: impl Into<Operand>, members: Option<Value>) -> Value {
        let (Some(predicate), Some(members)) = (self.resolve(predicate.into(), Type::BOOL), self.members(members)) else {
            return self.poison();
        };
        self.place(Op::Vote(vote, predicate.id, members.id), Type::BOOL)
    }

    /// Returns the mask of lanes in which the predicate is true, a `u32`.
    #[track_caller]
    pub fn ballot(&self, predicate: impl Into<Operand>, members: Option<Value>) -> Value {
        let (Some(predicate), Some(members)) = (self.resolve(predicate.into(), Type::BOOL), self.members(members)) else {
            return self.poison();
        };
        self.place(Op::Ballot(predicate.id, members.id), Type::U32)
    }

    /// Returns the mask of lanes with the same value, a `u32`.
    #[track_caller]
    pub fn match_any(&self, value: Value, members: Option<Value>) -> Value {
        let (Some(value), Some(members)) = (self.checked(value), self.members(members)) else { return self.poison() };
        let ty = self.type_of(value);
        if !ty.is_scalar() || ty.element() == Element::Bool {
            return self.fail(format!("a match of `{ty}`"));
        }
        self.place(Op::Match(value.id, members.id), Type::U32)
    }

    /// Reduces `i32` or `u32` values over the lanes of the warp. Every lane gets the result.
    #[track_caller]
    pub fn warp_reduce(&self, op: WarpReduce, value: Value, members: Option<Value>) -> Value {
        let (Some(value), Some(members)) = (self.checked(value), self.members(members)) else { return self.poison() };
        let ty = self.type_of(value);
        if !ty.is_scalar() || !ty.element().is_integer() || ty.element().bits() != 32 {
            return self.fail(format!("a reduction of `{ty}` by the warp"));
        }
        self.place(Op::WarpReduce(op, value.id, members.id), ty)
    }

    /// Returns the mask of active lanes, a `u32`.
    #[track_caller]
    pub fn active_mask(&self) -> Value {
        self.kernel_only("an operation of a warp");
        self.place(Op::ActiveMask, Type::U32)
    }
}
