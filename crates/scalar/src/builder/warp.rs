//! What a thread knows of its place, and what threads do together. Kernels only.

use super::{Builder, Operand, Value};
use crate::body::Statement;
use crate::memory::Scope;
use crate::op::{Axis, Op, Shuffle, Special, Vote, WarpReduce};
use crate::types::{Element, Type};

impl Builder {
    /// A special value of the thread.
    #[track_caller]
    pub fn special(&self, special: Special) -> Value {
        self.kernel_only("a special value");
        self.pure(Op::Special(special), Type::U32)
    }

    /// The index of the thread in its block.
    #[track_caller]
    pub fn thread(&self, axis: Axis) -> Value {
        self.special(Special::Thread(axis))
    }

    /// The index of the block in its grid.
    #[track_caller]
    pub fn block(&self, axis: Axis) -> Value {
        self.special(Special::Block(axis))
    }

    /// Threads of a block.
    #[track_caller]
    pub fn block_size(&self, axis: Axis) -> Value {
        self.special(Special::BlockSize(axis))
    }

    /// Blocks of the grid.
    #[track_caller]
    pub fn grid_size(&self, axis: Axis) -> Value {
        self.special(Special::GridSize(axis))
    }

    /// `block * block_size + thread`, as a `u32`.
    #[track_caller]
    pub fn global_thread(&self, axis: Axis) -> Value {
        self.add(self.mul(self.block(axis), self.block_size(axis)), self.thread(axis))
    }

    /// All threads of the block wait for each other, and see each other's accesses. Every thread of the block must come here.
    #[track_caller]
    pub fn barrier(&self) {
        self.kernel_only("a barrier");
        self.statement(Statement::Barrier);
    }

    /// All threads of the block wait for each other; gives how many of them said true, a `u32`.
    #[track_caller]
    pub fn barrier_count(&self, predicate: impl Into<Operand>) -> Value {
        self.kernel_only("a barrier");
        let Some(predicate) = self.resolve(predicate.into(), Type::BOOL) else { return self.poison() };
        self.place(Op::BarrierCount(predicate.id), Type::U32)
    }

    /// The lanes of the warp wait for each other, and see each other's accesses.
    #[track_caller]
    pub fn warp_barrier(&self) {
        self.kernel_only("a barrier");
        let members = self.literal(u32::MAX);
        self.statement(Statement::WarpBarrier(members.id));
    }

    /// Accesses before come before accesses behind, for the threads of the scope.
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

    /// The value of another lane; `amount` is a `u32`. All 32 lanes take part. A function that has this is not evaluated, and stands only where all lanes of
    /// a warp come by.
    #[track_caller]
    pub fn shuffle(&self, kind: Shuffle, value: Value, amount: impl Into<Operand>) -> Value {
        self.shuffle_in(kind, value, amount, 32, None)
    }

    /// The value of another lane of the same group of 32, 16, 8, 4 or 2 lanes; `members` are the lanes that take part, a `u32`, all of them
    /// when not said.
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

    /// A question to all lanes of the warp, or to those in the mask `members`.
    #[track_caller]
    pub fn vote(&self, vote: Vote, predicate: impl Into<Operand>, members: Option<Value>) -> Value {
        let (Some(predicate), Some(members)) = (self.resolve(predicate.into(), Type::BOOL), self.members(members)) else {
            return self.poison();
        };
        self.place(Op::Vote(vote, predicate.id, members.id), Type::BOOL)
    }

    /// The mask of lanes in which it is true, a `u32`.
    #[track_caller]
    pub fn ballot(&self, predicate: impl Into<Operand>, members: Option<Value>) -> Value {
        let (Some(predicate), Some(members)) = (self.resolve(predicate.into(), Type::BOOL), self.members(members)) else {
            return self.poison();
        };
        self.place(Op::Ballot(predicate.id, members.id), Type::U32)
    }

    /// The mask of lanes that have the same value, a `u32`.
    #[track_caller]
    pub fn match_any(&self, value: Value, members: Option<Value>) -> Value {
        let (Some(value), Some(members)) = (self.checked(value), self.members(members)) else { return self.poison() };
        let ty = self.type_of(value);
        if !ty.is_scalar() || ty.element() == Element::Bool {
            return self.fail(format!("a match of `{ty}`"));
        }
        self.place(Op::Match(value.id, members.id), Type::U32)
    }

    /// A reduction over the lanes of the warp, of `i32` or `u32`; every lane gets the result.
    #[track_caller]
    pub fn warp_reduce(&self, op: WarpReduce, value: Value, members: Option<Value>) -> Value {
        let (Some(value), Some(members)) = (self.checked(value), self.members(members)) else { return self.poison() };
        let ty = self.type_of(value);
        if !ty.is_scalar() || !ty.element().is_integer() || ty.element().bits() != 32 {
            return self.fail(format!("a reduction of `{ty}` by the warp"));
        }
        self.place(Op::WarpReduce(op, value.id, members.id), ty)
    }

    /// The mask of lanes that are here, a `u32`.
    #[track_caller]
    pub fn active_mask(&self) -> Value {
        self.kernel_only("an operation of a warp");
        self.place(Op::ActiveMask, Type::U32)
    }
}
