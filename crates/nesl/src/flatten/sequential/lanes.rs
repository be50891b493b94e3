//! Loops that are distributed over the lanes of a warp.
//!
//! In the form for warps all lanes have the same values in their registers and take the same branches. All of
//! them write memory, with the same values. A loop with independent rounds gives each lane every 32nd round.
//! In the code of such a round, values differ between lanes. It may compute scalars and read memory, but not
//! allocate memory, call a function or contain another loop. If it does, the loop is written again, and all
//! lanes execute all rounds.
//!
//! - If a round fails, its lane records that and continues; all lanes fail together after the loop.
//! - Lanes wait for each other before and after a loop, so that each sees the memory written by the others.
//! - A filter counts, for each lane, the earlier lanes whose element is kept. A reduction combines the
//!   results of lanes at the end.

use super::CodeResult;
use super::code::{Class, Kind, Label, Mark, Reg};
use super::expr::{Seq, Val, Writer};
use crate::core::{Each, LocalId};
use crate::primitives::Fold;
use crate::types::TypeId;
use crate::vcode::Shape;
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier as M, Special};
use std::collections::HashMap;
use std::rc::Rc;

/// Lanes of a warp.
pub(super) const LANES: u32 = 32;

/// Number of rows of 32 rounds whose loads are in flight together, while enough rounds are left.
const ROWS: u32 = 4;

/// Loop over indices in which each lane processes its own.
pub(super) struct Lanes {
    /// The index of the first lane, equal in all lanes.
    base: Reg,
    /// The lane's own index.
    pub(super) index: Reg,
    head: Label,
    end: Label,
    /// The label for lanes without a round, or with a finished one.
    join: Label,
    /// The label for lanes whose round fails.
    failed: Label,
    /// 1 in lanes with a failed round.
    has_failed: Reg,
    /// The failure label of the enclosing code.
    fail: Label,
    mark: Mark,
}

/// State of a writer before code that may be refused.
struct WriterState {
    mark: Mark,
    locals: HashMap<LocalId, Val>,
}

impl Writer<'_, '_, '_> {
    /// Writes a loop with independent rounds: `load` returns registers, `store` takes them.
    pub(super) fn spread(
        &mut self,
        length: Reg,
        mut load: impl FnMut(&mut Self, Reg) -> CodeResult<Vec<Reg>>,
        mut store: impl FnMut(&mut Self, Reg, &[Reg]),
    ) -> CodeResult<()> {
        let spread = self.try_in_lanes(|w, lane| {
            let (base, end) = w.chunk(length);
            w.rows_in_lanes(lane, end, base, &mut load, &mut store)?;
            let mut lanes = w.begin_lanes(lane, end, base);
            let regs = load(w, lanes.index)?;
            store(w, lanes.index, &regs);
            w.join_lanes(&mut lanes);
            w.end_lanes(&lanes);
            Ok(())
        });
        if spread.is_some() {
            return Ok(());
        }
        let each = self.begin(length);
        let regs = load(self, each.index)?;
        store(self, each.index, &regs);
        self.end(each);
        Ok(())
    }

    /// Writes a loop over several rows of rounds at once. It starts at `base` and advances it. Writes nothing
    /// if a round can fail.
    pub(super) fn rows_in_lanes(
        &mut self,
        lane: Reg,
        length: Reg,
        base: Reg,
        load: &mut dyn FnMut(&mut Self, Reg) -> CodeResult<Vec<Reg>>,
        store: &mut dyn FnMut(&mut Self, Reg, &[Reg]),
    ) -> CodeResult<()> {
        let mark = self.code.mark();
        self.code.meet();
        let (head, end, failed) = (self.code.label(), self.code.label(), self.code.label());
        let (behind, done) = (self.code.reg(Class::B32), self.code.reg(Class::Pred));
        self.code.place(head);
        self.code.to(behind).add(M::U32, base, ROWS * LANES);
        self.code.to(done).setp((M::Gt, M::U32), behind, length);
        self.code.go_if(done, end);
        let fail = std::mem::replace(&mut self.fail, failed);
        self.varying = true;
        let first = self.code.reg(Class::B32);
        self.code.to(first).add(M::U32, base, lane);
        let mut rows = vec![];
        for row in 0..ROWS {
            let index = self.code.reg(Class::B32);
            self.code.to(index).add(M::U32, first, row * LANES);
            rows.push((index, load(self, index)?));
        }
        (self.varying, self.fail) = (false, fail);
        if self.code.goes_to(failed, mark) {
            self.code.rewind(mark);
            return Ok(());
        }
        self.code.meet();
        for (index, regs) in &rows {
            store(self, *index, regs);
        }
        self.code.to(base).mov(M::U32, behind);
        self.code.go(head);
        self.code.place(end);
        Ok(())
    }

    /// Writes the loop of an apply-to-each whose elements are computed by lanes. Returns the number of
    /// elements that the filter keeps; `None` if the loop cannot be distributed.
    pub(super) fn each_in_lanes(
        &mut self,
        each: &Each,
        sources: &[Rc<Seq>],
        length: Reg,
        (shape, arrays): (&Shape, &[Reg]),
    ) -> Option<Reg> {
        if !shape.is_scalar() {
            return None;
        }
        let mut kinds = vec![];
        super::slots(shape, &mut kinds);
        let put = |w: &mut Self, index: Reg, regs: &[Reg]| {
            for ((kind, array), reg) in kinds.iter().zip(arrays).zip(regs) {
                w.code.store_at(*kind, *array, index, *reg);
            }
        };
        self.try_in_lanes(|w, lane| {
            let kept = w.code.length(0);
            let (base, end) = w.chunk(length);
            let Some(filter) = each.filter else {
                let mut load = |w: &mut Self, index: Reg| {
                    w.bind_elements(each, sources, index)?;
                    let value = w.expr(each.body)?;
                    w.stored(&value)
                };
                w.rows_in_lanes(lane, end, base, &mut load, &mut |w, index, regs| put(w, index, regs))?;
                let mut lanes = w.begin_lanes(lane, end, base);
                let regs = load(w, lanes.index)?;
                put(w, lanes.index, &regs);
                w.join_lanes(&mut lanes);
                w.end_lanes(&lanes);
                return Ok(kept);
            };
            // The last register tells whether the element is kept.
            let mut load = |w: &mut Self, index: Reg| {
                w.bind_elements(each, sources, index)?;
                let value = w.expr(each.body)?;
                let holds = w.scalar(filter)?;
                let mut regs = w.stored(&value)?;
                regs.push(holds);
                Ok(regs)
            };
            // A team counts first: the elements of a warp come after those that the earlier warps keep.
            let all = match w.code.team {
                Some(_) => Some(w.count_kept(lane, (base, end), kept, &mut load)?),
                None => None,
            };
            let keep = |w: &mut Self, flag: Reg, regs: &[Reg]| {
                let [all, before, below, rank, place, count] = [(); 6].map(|()| w.code.reg(Class::B32));
                let next = w.code.label();
                w.code.to(all).vote_sync((M::Ballot, M::B32), flag, 0xffffffffu32);
                w.code.go_unless(flag, next);
                w.code.to(below).mov(M::U32, Special::LanemaskLt);
                w.code.to(before).and(M::B32, all, below);
                w.code.to(rank).popc(M::B32, before);
                w.code.to(place).add(M::U32, kept, rank);
                put(w, place, regs);
                w.code.place(next);
                w.code.to(count).popc(M::B32, all);
                w.code.to(kept).add(M::U32, kept, count);
            };
            w.rows_in_lanes(lane, end, base, &mut load, &mut |w, _, regs| {
                if let [regs @ .., holds] = regs {
                    keep(w, *holds, regs);
                }
            })?;
            let keeps = w.code.length(0);
            let mut lanes = w.begin_lanes(lane, end, base);
            let regs = load(w, lanes.index)?;
            let [regs @ .., holds] = &regs[..] else { return Err("no filter".to_owned()) };
            w.code.to(keeps).selp(M::U32, 1, 0, holds);
            w.join_lanes(&mut lanes);
            let flag = w.code.reg(Class::Pred);
            w.code.to(flag).setp((M::Ne, M::U32), keeps, 0);
            keep(w, flag, regs);
            w.code.to(keeps).mov(M::U32, 0);
            w.end_lanes(&lanes);
            Ok(all.unwrap_or(kept))
        })
    }

    /// Reduces the values of the rounds of a loop.
    pub(super) fn reduce(
        &mut self,
        fold: Fold,
        ty: TypeId,
        length: Reg,
        mut value: impl FnMut(&mut Self, Reg) -> CodeResult<Reg>,
    ) -> CodeResult<Val> {
        let reduced = self.try_in_lanes(|w, lane| {
            let (base, end) = w.chunk(length);
            w.code.is_held = true;
            let reduced = w.reduce_in_lanes(lane, (fold, ty), (base, end), &mut value);
            w.code.is_held = false;
            let (kind, own) = reduced?;
            if w.code.team.is_none() {
                return Ok(Val::Base(kind, own));
            }
            w.reduce_of_warps(lane, (fold, ty), length, (kind, own))
        });
        if let Some(reduced) = reduced {
            return Ok(reduced);
        }
        let (kind, out) = self.neutral(fold, ty)?;
        let around = self.begin(length);
        let mark = self.code.copy(Kind::Pointer, self.top);
        let own = value(self, around.index)?;
        self.combine(fold, kind, out, own, Some(around.index))?;
        self.code.to(self.top).mov(M::B64, mark);
        self.end(around);
        Ok(Val::Base(kind, out))
    }

    /// Reduces the values of the rounds from a base to an end in one warp.
    pub(super) fn reduce_in_lanes(
        &mut self,
        lane: Reg,
        (fold, ty): (Fold, TypeId),
        (base, end): (Reg, Reg),
        value: &mut dyn FnMut(&mut Self, Reg) -> CodeResult<Reg>,
    ) -> CodeResult<(Kind, Reg)> {
        let (kind, out) = self.neutral(fold, ty)?;
        let [rounds, count] = [(); 2].map(|()| self.code.length(0));
        self.code.to(count).sub(M::U32, end, base);
        let mut lanes = self.begin_lanes(lane, end, base);
        let own = value(self, lanes.index)?;
        self.combine(fold, kind, out, own, Some(rounds))?;
        self.join_lanes(&mut lanes);
        self.code.to(rounds).add(M::U32, rounds, 1);
        self.end_lanes(&lanes);
        for behind in [16, 8, 4, 2, 1] {
            let other = self.code.lane_value(kind, out, Some(behind));
            // Lanes without an element have nothing to combine.
            let (partner, none, next) = (self.code.reg(Class::B32), self.code.reg(Class::Pred), self.code.label());
            self.code.to(partner).add(M::U32, lane, behind);
            self.code.to(none).setp((M::Ge, M::U32), partner, count);
            self.code.go_if(none, next);
            self.combine(fold, kind, out, other, None)?;
            self.code.place(next);
        }
        Ok((kind, self.code.lane_value(kind, out, None)))
    }

    /// Moves elements to a lower address. Source and destination may overlap.
    pub(super) fn move_down(&mut self, kind: Kind, from: Reg, to: Reg, length: Reg) {
        let Some(lane) = self.code.lane else {
            let each = self.begin(length);
            let value = self.code.load_at(kind, from, each.index);
            self.code.store_at(kind, to, each.index, value);
            return self.end(each);
        };
        let base = self.code.length(0);
        let mut load = |w: &mut Self, index: Reg| Ok(vec![w.code.load_at(kind, from, index)]);
        // All lanes load before any lane stores. A copy cannot fail.
        let mut store = |w: &mut Self, index: Reg, regs: &[Reg]| w.code.store_at(kind, to, index, regs[0]);
        let _ = self.rows_in_lanes(lane, length, base, &mut load, &mut store);
        let mut lanes = self.begin_lanes(lane, length, base);
        let value = self.code.load_at(kind, from, lanes.index);
        self.join_lanes(&mut lanes);
        let (outside, next) = (self.code.reg(Class::Pred), self.code.label());
        self.code.to(outside).setp((M::Ge, M::U32), lanes.index, length);
        self.code.go_if(outside, next);
        self.code.store_at(kind, to, lanes.index, value);
        self.code.place(next);
        self.end_lanes(&lanes);
    }

    /// Writes code with loops that are distributed over lanes. Writes nothing if a thread runs a call, inside
    /// a distributed loop, and if the rounds contain operations that all lanes must execute together.
    pub(super) fn try_in_lanes<T>(&mut self, write: impl FnOnce(&mut Self, Reg) -> CodeResult<T>) -> Option<T> {
        let lane = self.code.lane.filter(|_| !self.varying)?;
        let before = WriterState { mark: self.code.mark(), locals: self.locals.clone() };
        let fail = self.fail;
        self.refused = false;
        let written = write(self, lane);
        if let (Ok(written), false) = (written, self.refused) {
            return Some(written);
        }
        (self.varying, self.refused, self.fail) = (false, false, fail);
        self.code.is_held = false;
        self.code.rewind(before.mark);
        self.locals = before.locals;
        None
    }

    /// Begins a loop at a base. The following code is that of a round.
    pub(super) fn begin_lanes(&mut self, lane: Reg, length: Reg, base: Reg) -> Lanes {
        self.code.meet();
        let has_failed = self.code.length(0);
        let (index, done, outside) = (self.code.reg(Class::B32), self.code.reg(Class::Pred), self.code.reg(Class::Pred));
        let [head, end, join, failed] = [(); 4].map(|()| self.code.label());
        self.code.place(head);
        self.code.to(done).setp((M::Ge, M::U32), base, length);
        self.code.go_if(done, end);
        self.code.to(index).add(M::U32, base, lane);
        self.code.to(outside).setp((M::Ge, M::U32), index, length);
        self.code.go_if(outside, join);
        let fail = std::mem::replace(&mut self.fail, failed);
        self.varying = true;
        Lanes { base, index, head, end, join, failed, has_failed, fail, mark: self.code.mark() }
    }

    /// Synchronises the lanes after a round.
    pub(super) fn join_lanes(&mut self, lanes: &mut Lanes) {
        self.varying = false;
        self.fail = lanes.fail;
        if self.code.goes_to(lanes.failed, lanes.mark) {
            self.code.go(lanes.join);
            self.code.place(lanes.failed);
            self.code.to(lanes.has_failed).mov(M::U32, 1);
        }
        self.code.place(lanes.join);
        self.code.meet();
    }

    pub(super) fn end_lanes(&mut self, lanes: &Lanes) {
        self.next_lanes(lanes);
        if self.code.goes_to(lanes.failed, lanes.mark) {
            let (own, any) = (self.code.reg(Class::Pred), self.code.reg(Class::Pred));
            self.code.to(own).setp((M::Ne, M::U32), lanes.has_failed, 0);
            self.code.to(any).vote_sync((M::Any, M::Pred), own, 0xffffffffu32);
            let any = self.code.any_of_team(any);
            self.fail_if(any);
        }
        self.code.sync();
    }

    /// Goes to the next round.
    pub(super) fn next_lanes(&mut self, lanes: &Lanes) {
        self.code.to(lanes.base).add(M::U32, lanes.base, LANES);
        self.code.go(lanes.head);
        self.code.place(lanes.end);
    }
}
