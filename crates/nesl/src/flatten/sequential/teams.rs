//! Calls that teams run. A team is a number of warps of the grid, at least two.
//!
//! As in a warp, all lanes of a team have the same values in their registers and take the same branches. A
//! loop with independent rounds is divided among the warps, and ends with a barrier. Between loops no lane
//! reads data that only another lane has written, so no other barriers are needed.
//!
//! - An apply-to-each of recursive calls splits the team: the calls are halved until one is left, and each
//!   half gets warps, memory and fuel in proportion to its elements. Calls for a single warp run in the form
//!   for warps. After the calls all warps of the team wait for each other.
//! - Warps of a team in one block wait at a barrier of the block. If a team has warps in several blocks, the
//!   first warp of each block then waits at a counter in memory, so the launch is cooperative.
//! - The name of a barrier is a boundary between two warps of the team. The barrier after the calls is named
//!   by the boundary at which the team was split. That boundary is inside none of the parts, so warps may
//!   wait there while the parts still use their own barriers. Each block uses the first such boundary in it.
//!   Otherwise the name is the boundary after the first warp of the team, and in each block the one after the
//!   first warp of the team there.
//! - A call with few elements is left to the first warp of its team.
//! - A team allocates memory and does not release it: it would overwrite elements that others still read. It
//!   keeps memory for code after the calls before it gives the rest to them.
//!
//! A function has no form for teams if it has loops whose rounds run in order, or arguments or results of
//! nested sequences.
//!
//! The memory for barriers has a record of [`RECORD`] bytes for each warp: a counter, the number of times it
//! was full, and a `u32` and a `u64` for values that the others read.

use super::code::{Class, Code, Kind, Label, Reg, Team};
use super::expr::{Seq, Val, Writer};
use super::lanes::LANES;
use super::{CallResults, CodeResult, FrameRegisters, Module, Signature};
use crate::core::{Each, ExprId};
use crate::primitives::Fold;
use crate::types::TypeId;
use crate::vcode::Shape;
use crate::vcode::team::RECORD;
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier as M, Special, Type};
use std::rc::Rc;

/// Constant part of the weight of a call; the number of its elements is added.
pub(super) const WEIGHT: u32 = 32;
/// Minimum weight of a call that more than one warp runs.
const TEAM_WEIGHT: u32 = WEIGHT + 64;
/// Bytes that a team keeps before it gives memory to its parts, in addition to the bytes that the function
/// has taken so far. They are: bytes per element of the calls, a constant, and a fraction of its memory,
/// given as a right shift.
const KEPT_OF_ELEMENT: u32 = 16;
const KEPT: u32 = 1 << 9;
const KEPT_SHARE: u32 = 7;
/// A split moves to the next block boundary if the distance is at most this fraction (1 / `SNAP`) of the
/// smaller part.
const SNAP: u32 = 8;
/// Fuel of a call of one warp, in addition to its share.
const WARP_FUEL: u32 = 1 << 16;

/// PTX functions of every module with teams: the barrier of a team, and the sum of one number per warp.
pub(super) const FUNCTIONS: &str = include_str!("teams.ptx");

/// Part of a team: a range of calls, with the team, memory and fuel for them.
pub(super) struct TeamPart {
    pub(super) low: Reg,
    pub(super) high: Reg,
    pub(super) team: Team,
    pub(super) base: Reg,
    pub(super) limit: Reg,
    pub(super) fuel: Reg,
    /// The weight of all calls of the range.
    weight: Reg,
    /// The name of the barrier after the calls, and whether it is that of a split.
    join: Reg,
    is_split: Reg,
    /// The name in the own block, and whether it is that of a split; the first boundary between warps of the
    /// team in the block, and the end of these boundaries.
    inner: Reg,
    is_apart: Reg,
    whole: [Reg; 2],
    head: Label,
    end: Label,
    pub(super) middle: Reg,
}

/// Sum over indices in one warp.
pub(super) struct WarpSum {
    pub(super) index: Reg,
    base: Reg,
    sum: Reg,
    head: Label,
    end: Label,
    next: Label,
}

impl Team {
    /// Returns the arguments of the functions of teams. The last one differs.
    fn arguments(&self, last: Reg) -> [(Type, Reg); 5] {
        let Team { first, warps, sync, point, .. } = *self;
        [(Type::B32, first), (Type::B32, warps), (Type::B32, point), (Type::B64, sync), (Type::B32, last)]
    }
}

impl Code {
    /// Calls the barrier of a team.
    pub(super) fn sync_team(&mut self, team: &Team) {
        self.call("team_sync", &team.arguments(team.inner), 0, &[]);
    }

    /// Sums a number of each warp of the team. Returns the sum of the warps before the own one, and the sum
    /// of all. A barrier must follow before the next sum.
    pub(super) fn sum_of_team(&mut self, team: &Team, number: Reg) -> (Reg, Reg) {
        let (before, all) = (self.reg(Class::B32), self.reg(Class::B32));
        let results = [(Type::B32, 0, before), (Type::B32, 4, all)];
        self.call("team_sum", &team.arguments(number), 8, &results);
        (before, all)
    }

    /// Returns whether a predicate, equal in all lanes of a warp, holds in any warp of the team.
    pub(super) fn any_of_team(&mut self, pred: Reg) -> Reg {
        let Some(team) = self.team else { return pred };
        let (number, any) = (self.number(pred), self.reg(Class::Pred));
        // Other warps may still read the numbers of the previous sum.
        self.sync_team(&team);
        let (_, all) = self.sum_of_team(&team, number);
        self.sync_team(&team);
        self.to(any).setp((M::Ne, M::U32), all, 0);
        any
    }

    /// Computes the registers of a team that are derived from its first warp.
    pub(super) fn name_team(&mut self, team: &Team) {
        let Team { first, point, inner, own, .. } = team;
        let [block, threads, thread] = [(); 3].map(|()| self.reg(Class::B32));
        self.to(block).mov(M::U32, Special::CtaidX);
        self.to(threads).mov(M::U32, Special::NtidX);
        self.to(thread).mov(M::U32, Special::TidX);
        self.to(own).mad((M::Lo, M::U32), block, threads, thread);
        self.to(own).shr(M::U32, own, 5);
        self.to(own).sub(M::U32, own, first);
        self.to(point).add(M::U32, first, 1);
        self.to(threads).shr(M::U32, threads, 5);
        self.to(inner).mul((M::Lo, M::U32), block, threads);
        self.to(inner).max(M::U32, inner, first);
        self.to(inner).add(M::U32, inner, 1);
    }

    /// Returns registers for a team.
    pub(super) fn team_regs(&mut self, sync: Reg) -> Team {
        let [first, warps, point, inner, own] = [(); 5].map(|()| self.reg(Class::B32));
        Team { first, warps, sync, point, inner, own }
    }

    /// Returns the value of a register in the first lane of the team, or of the warp.
    pub(super) fn first_value(&mut self, kind: Kind, value: Reg) -> Reg {
        let Some(team) = self.team else { return self.lane_value(kind, value, None) };
        let (address, to) = (self.reg(Class::B64), self.of(kind));
        let bits = self.bits(kind);
        self.to(address).mad((M::Wide, M::U32), team.first, RECORD, team.sync);
        self.to(address).add(M::U64, address, 16);
        self.in_first_lane(|code| code.run().st((M::Global, bits), address.at(0), value));
        self.sync_team(&team);
        self.to(to).ld((M::Global, bits), address.at(0));
        self.sync_team(&team);
        to
    }

    /// Begins to halve a range of calls among the warps of a team.
    pub(super) fn begin_parts(&mut self, team: &Team, [low, high, base, limit, fuel, weight]: [Reg; 6]) -> TeamPart {
        let own = Team {
            first: self.copy(Kind::Length, team.first),
            warps: self.copy(Kind::Length, team.warps),
            own: self.copy(Kind::Length, team.own),
            point: self.copy(Kind::Length, team.point),
            inner: self.copy(Kind::Length, team.inner),
            sync: team.sync,
        };
        let (low, high) = (self.copy(Kind::Length, low), self.copy(Kind::Length, high));
        let [base, limit, fuel, weight] = [base, limit, fuel, weight].map(|reg| self.copy(Kind::Pointer, reg));
        let (join, is_split) = (self.copy(Kind::Length, team.point), self.length(0));
        let (inner, is_apart) = (self.copy(Kind::Length, team.inner), self.length(0));
        // Warps of the team in the own block are before `inner`.
        let [behind, of_block, block] = [(); 3].map(|()| self.reg(Class::B32));
        self.to(block).mov(M::U32, Special::CtaidX);
        self.to(of_block).mov(M::U32, Special::NtidX);
        self.to(of_block).shr(M::U32, of_block, 5);
        self.to(behind).mad((M::Lo, M::U32), block, of_block, of_block);
        self.to(block).add(M::U32, team.first, team.warps);
        self.to(behind).min(M::U32, behind, block);
        let whole = [self.copy(Kind::Length, team.inner), behind];
        let (head, end) = (self.label(), self.label());
        let [count, middle] = [(); 2].map(|()| self.reg(Class::B32));
        let [is_one, is_warp] = [(); 2].map(|()| self.reg(Class::Pred));
        self.place(head);
        self.to(count).sub(M::U32, high, low);
        self.to(is_one).setp((M::Lt, M::U32), count, 2);
        self.go_if(is_one, end);
        self.to(is_warp).setp((M::Lt, M::U32), own.warps, 2);
        self.go_if(is_warp, end);
        self.to(middle).shr(M::U32, count, 1);
        self.to(middle).add(M::U32, middle, low);
        TeamPart { low, high, team: own, base, limit, fuel, weight, join, is_split, inner, is_apart, whole, head, end, middle }
    }

    /// Assigns a part to each half, and continues with the own half. `first` is the weight of the first half.
    pub(super) fn end_parts(&mut self, parts: &TeamPart, first: Reg) {
        let TeamPart { low, high, team, base, limit, fuel, weight, join, is_split, head, end, middle, .. } = parts;
        let [of_block, taken, most, at, near, less] = [(); 6].map(|()| self.reg(Class::B32));
        let [is_inside, is_near, is_second, is_old] = [(); 4].map(|()| self.reg(Class::Pred));
        let [wide, share, half, rest, of_weight, cut] = [(); 6].map(|()| self.reg(Class::B64));
        self.to(wide).cvt((M::U64, M::U32), team.warps);
        self.to(half).shr(M::U64, weight, 1);
        self.to(share).mad((M::Lo, M::U64), wide, first, half);
        self.to(share).div(M::U64, share, weight);
        self.to(taken).cvt((M::U32, M::U64), share);
        self.to(most).sub(M::U32, team.warps, 1);
        self.to(taken).max(M::U32, taken, 1);
        self.to(taken).min(M::U32, taken, most);
        // Barriers within a block are faster.
        self.to(of_block).mov(M::U32, Special::NtidX);
        self.to(of_block).shr(M::U32, of_block, 5);
        self.to(at).shr(M::U32, of_block, 1);
        self.to(at).add(M::U32, at, taken);
        self.to(at).add(M::U32, at, team.first);
        self.to(at).div(M::U32, at, of_block);
        self.to(at).mul((M::Lo, M::U32), at, of_block);
        self.to(at).sub(M::U32, at, team.first);
        self.to(less).sub(M::U32, team.warps, taken);
        self.to(less).min(M::U32, less, taken);
        self.to(near).sub(M::S32, at, taken);
        self.to(near).abs(M::S32, near);
        self.to(near).mul((M::Lo, M::U32), near, SNAP);
        self.to(is_near).setp((M::Le, M::U32), near, less);
        // As unsigned numbers, boundaries before the team are larger than every number of warps.
        self.to(near).sub(M::U32, at, 1);
        self.to(is_inside).setp((M::Lt, M::U32), near, most);
        self.to(is_near).and(M::Pred, is_near, is_inside);
        self.to(taken).selp(M::U32, at, taken, is_near);
        self.to(rest).sub(M::U64, limit, base);
        self.to(of_weight).div(M::U64, rest, weight);
        self.to(cut).mul((M::Lo, M::U64), of_weight, first);
        self.to(cut).and(M::B64, cut, -8);
        self.to(cut).add(M::U64, cut, base);
        self.to(fuel).div(M::U64, fuel, weight);
        // The first split determines the name of the barrier after the calls, in memory and in the own block.
        let split = self.reg(Class::B32);
        self.to(split).add(M::U32, team.first, taken);
        let (TeamPart { inner, is_apart, whole: [start, behind], .. }, [is_in, is_before, was]) =
            (parts, [(); 3].map(|()| self.reg(Class::Pred)));
        let number = self.reg(Class::B32);
        self.to(is_in).setp((M::Ge, M::U32), split, start);
        self.to(is_before).setp((M::Lt, M::U32), split, behind);
        self.to(is_in).and(M::Pred, is_in, is_before);
        self.to(was).setp((M::Eq, M::U32), is_apart, 0);
        self.to(is_in).and(M::Pred, is_in, was);
        self.to(inner).selp(M::U32, split, inner, is_in);
        self.to(number).selp(M::U32, 1, 0, is_in);
        self.to(is_apart).or(M::B32, is_apart, number);
        self.to(is_old).setp((M::Ne, M::U32), is_split, 0);
        self.to(join).selp(M::U32, join, split, is_old);
        self.to(is_split).mov(M::U32, 1);
        let (second, next) = (self.label(), self.label());
        self.to(is_second).setp((M::Ge, M::U32), team.own, taken);
        self.go_if(is_second, second);
        self.to(high).mov(M::U32, middle);
        self.to(team.warps).mov(M::U32, taken);
        self.to(limit).mov(M::U64, cut);
        self.to(weight).mov(M::U64, first);
        self.go(next);
        self.place(second);
        self.to(low).mov(M::U32, middle);
        self.to(team.first).add(M::U32, team.first, taken);
        self.to(team.warps).sub(M::U32, team.warps, taken);
        self.to(base).mov(M::U64, cut);
        self.to(weight).sub(M::U64, weight, first);
        self.place(next);
        self.to(fuel).mul((M::Lo, M::U64), fuel, weight);
        self.name_team(team);
        self.go(*head);
        self.place(*end);
        // The other warps of a call with few elements are idle.
        let [is_small, is_warp, is_first] = [(); 3].map(|()| self.reg(Class::Pred));
        let behind = self.label();
        self.to(is_small).setp((M::Lt, M::U64), weight, TEAM_WEIGHT);
        self.to(is_warp).setp((M::Lt, M::U32), team.warps, 2);
        self.go_unless(is_small, behind);
        self.go_if(is_warp, behind);
        self.to(is_split).mov(M::U32, 1);
        self.to(team.warps).mov(M::U32, 1);
        self.to(is_first).setp((M::Eq, M::U32), team.own, 0);
        self.go_if(is_first, behind);
        self.to(low).mov(M::U32, high);
        self.place(behind);
        self.meet();
    }

    /// Makes the warps of a team wait after the calls of its parts.
    pub(super) fn join_parts(&mut self, team: &Team, parts: &TeamPart) {
        let (next, is_whole) = (self.label(), self.reg(Class::Pred));
        self.meet();
        self.to(is_whole).setp((M::Eq, M::U32), parts.is_split, 0);
        self.go_if(is_whole, next);
        self.sync_team(&Team { point: parts.join, inner: parts.inner, ..*team });
        self.place(next);
    }

    /// Begins a sum over indices in one warp. The following code computes a number for the index of a lane.
    pub(super) fn begin_sum(&mut self, low: Reg, high: Reg) -> WarpSum {
        let lane = self.lane.unwrap_or(low);
        let (base, sum) = (self.copy(Kind::Length, low), self.reg(Class::B64));
        let (index, done, outside) = (self.reg(Class::B32), self.reg(Class::Pred), self.reg(Class::Pred));
        let [head, end, next] = [(); 3].map(|()| self.label());
        self.meet();
        self.to(sum).mov(M::U64, 0);
        self.place(head);
        self.to(done).setp((M::Ge, M::U32), base, high);
        self.go_if(done, end);
        self.to(index).add(M::U32, base, lane);
        self.to(outside).setp((M::Ge, M::U32), index, high);
        self.go_if(outside, next);
        WarpSum { index, base, sum, head, end, next }
    }

    /// Adds numbers of an index and ends the sum. Returns its value, with the weight of each index.
    pub(super) fn end_sum(&mut self, summed: &WarpSum, numbers: &[Reg]) -> Reg {
        let WarpSum { base, sum, head, end, next, .. } = summed;
        let wide = self.reg(Class::B64);
        for number in numbers {
            self.to(wide).cvt((M::U64, M::U32), number);
            self.to(sum).add(M::U64, sum, wide);
        }
        self.to(sum).add(M::U64, sum, WEIGHT);
        self.place(*next);
        self.meet();
        self.to(base).add(M::U32, base, LANES);
        self.go(*head);
        self.place(*end);
        for behind in [16, 8, 4, 2, 1] {
            let other = self.lane_value(Kind::Pointer, *sum, Some(behind));
            self.to(sum).add(M::U64, sum, other);
        }
        self.lane_value(Kind::Pointer, *sum, None)
    }
}

impl Module<'_, '_> {
    /// Calls a function for a part of a team. A part with one warp uses the form for warps.
    pub(super) fn call_in_part(
        &self,
        code: &mut Code,
        (of_team, of_warp): (&Signature, &Signature),
        given: &FrameRegisters,
        parts: &TeamPart,
        regs: &[Reg],
    ) -> CallResults {
        let (status, top, fuel) = (code.reg(Class::B32), code.reg(Class::B64), code.reg(Class::B64));
        let kinds = &of_team.results;
        let results: Vec<Reg> =
            kinds.iter().map(|kind| if *kind == Kind::Bool { code.reg(Class::B32) } else { code.of(*kind) }).collect();
        let (is_warp, warp, next) = (code.reg(Class::Pred), code.label(), code.label());
        code.to(is_warp).setp((M::Eq, M::U32), parts.team.warps, 1);
        code.go_if(is_warp, warp);
        for (signature, team) in [(of_team, Some(parts.team)), (of_warp, None)] {
            let called = match team {
                Some(_) => self.call(code, signature, &FrameRegisters { team, ..*given }, regs),
                None => {
                    code.place(warp);
                    let more = code.reg(Class::B64);
                    code.to(more).add(M::U64, given.fuel, WARP_FUEL);
                    self.call(code, signature, &FrameRegisters { team, fuel: more, ..*given }, regs)
                }
            };
            code.to(status).mov(M::U32, called.status);
            code.to(top).mov(M::U64, called.top);
            code.to(fuel).mov(M::U64, called.fuel);
            for ((kind, to), from) in kinds.iter().zip(&results).zip(&called.results) {
                let bits = if *kind == Kind::Bool { Type::B32 } else { code.bits(*kind) };
                code.to(to).mov(bits, from);
            }
            if team.is_some() {
                code.go(next);
            }
        }
        code.place(next);
        code.meet();
        CallResults { status, top, fuel, results }
    }
}

impl Writer<'_, '_, '_> {
    /// Returns the range of rounds of a loop for the own warp: the first one, and the end.
    pub(super) fn chunk(&mut self, length: Reg) -> (Reg, Reg) {
        let Some(team) = self.code.team else { return (self.code.length(0), length) };
        let [base, end] = [(); 2].map(|()| self.code.reg(Class::B32));
        let rounds = self.rounds_of_warp(length, &team);
        self.code.to(base).mul((M::Lo, M::U32), rounds, team.own);
        self.code.to(base).min(M::U32, base, length);
        self.code.to(end).add(M::U32, base, rounds);
        self.code.to(end).min(M::U32, end, length);
        (base, end)
    }

    /// Returns the number of rounds of a loop per warp of a team.
    fn rounds_of_warp(&mut self, length: Reg, team: &Team) -> Reg {
        let rounds = self.code.reg(Class::B32);
        self.code.to(rounds).add(M::U32, length, LANES - 1);
        self.code.to(rounds).shr(M::U32, rounds, 5);
        self.code.to(rounds).add(M::U32, rounds, team.warps);
        self.code.to(rounds).sub(M::U32, rounds, 1);
        self.code.to(rounds).div(M::U32, rounds, team.warps);
        self.code.to(rounds).shl(M::B32, rounds, 5);
        rounds
    }

    /// Counts the elements that a filter keeps. Sets `kept` to the number before the rounds of the own warp,
    /// and returns the total. The last register of `load` tells whether an element is kept.
    pub(super) fn count_kept(
        &mut self,
        lane: Reg,
        (base, end): (Reg, Reg),
        kept: Reg,
        load: &mut dyn FnMut(&mut Self, Reg) -> CodeResult<Vec<Reg>>,
    ) -> CodeResult<Reg> {
        let Some(team) = self.code.team else { return Err("no team".to_owned()) };
        let (start, own) = (self.code.copy(Kind::Length, base), self.code.length(0));
        let count = |w: &mut Self, flag: Reg| {
            let [all, number] = [(); 2].map(|()| w.code.reg(Class::B32));
            w.code.to(all).vote_sync((M::Ballot, M::B32), flag, 0xffffffffu32);
            w.code.to(number).popc(M::B32, all);
            w.code.to(own).add(M::U32, own, number);
        };
        self.rows_in_lanes(lane, end, base, load, &mut |w, _, regs| {
            if let Some(holds) = regs.last() {
                count(w, *holds);
            }
        })?;
        let (keeps, flag) = (self.code.length(0), self.code.reg(Class::Pred));
        self.code.is_held = true;
        let mut lanes = self.begin_lanes(lane, end, base);
        let regs = load(self, lanes.index)?;
        let Some(holds) = regs.last() else { return Err("no filter".to_owned()) };
        self.code.to(keeps).selp(M::U32, 1, 0, holds);
        self.join_lanes(&mut lanes);
        self.code.to(flag).setp((M::Ne, M::U32), keeps, 0);
        count(self, flag);
        self.code.to(keeps).mov(M::U32, 0);
        self.end_lanes(&lanes);
        self.code.is_held = false;
        let (before, all) = self.code.sum_of_team(&team, own);
        self.code.to(kept).mov(M::U32, before);
        self.code.to(base).mov(M::U32, start);
        Ok(all)
    }

    /// Combines the results of the warps of a team.
    pub(super) fn reduce_of_warps(
        &mut self,
        lane: Reg,
        what: (Fold, TypeId),
        length: Reg,
        (kind, own): (Kind, Reg),
    ) -> CodeResult<Val> {
        let Some(team) = self.code.team else { return Err("no team".to_owned()) };
        let values = self.take(team.warps, kind);
        // Warps without a round have no result.
        let rounds = self.rounds_of_warp(length, &team);
        let [count, at_least] = [(); 2].map(|()| self.code.reg(Class::B32));
        let (is_idle, next) = (self.code.reg(Class::Pred), self.code.label());
        self.code.to(at_least).max(M::U32, rounds, 1);
        self.code.to(count).add(M::U32, length, at_least);
        self.code.to(count).sub(M::U32, count, 1);
        self.code.to(count).div(M::U32, count, at_least);
        self.code.to(is_idle).setp((M::Ge, M::U32), team.own, count);
        self.code.go_if(is_idle, next);
        self.code.store_at(kind, values, team.own, own);
        self.code.place(next);
        self.code.sync();
        let base = self.code.length(0);
        self.code.is_held = true;
        let reduced = self.reduce_in_lanes(lane, what, (base, count), &mut |w, index| Ok(w.code.load_at(kind, values, index)));
        self.code.is_held = false;
        let (kind, all) = reduced?;
        Ok(Val::Base(kind, all))
    }

    /// Writes an apply-to-each whose elements are calls of a recursive function, in parts of the team.
    /// Returns false for any other apply-to-each.
    pub(super) fn each_in_parts(
        &mut self,
        each: &Each,
        sources: &[Rc<Seq>],
        length: Reg,
        (shape, arrays): (&Shape, &[Reg]),
    ) -> CodeResult<bool> {
        let (Some(team), false, None) = (self.code.team, self.varying, each.filter) else { return Ok(false) };
        let Some((callee, argument)) = self.recurring_call(each) else { return Ok(false) };
        self.m.has_parts = true;
        let (of_team, of_warp) = (self.m.function(&callee, true)?, self.m.function(&callee, false)?);
        let (_, result) = self.m.c.shapes(&callee)?;
        let statuses = self.take(length, Kind::Length);

        let none = self.code.length(0);
        let weight = self.weight(each, sources, argument, (none, length))?;
        let [used, kept, base, start] = [(); 4].map(|()| self.code.reg(Class::B64));
        let full = self.code.reg(Class::Pred);
        self.code.to(used).sub(M::U64, self.top, self.mark);
        self.code.to(kept).mul((M::Lo, M::U64), weight, KEPT_OF_ELEMENT);
        self.code.to(kept).add(M::U64, kept, KEPT);
        self.code.to(kept).add(M::U64, kept, used);
        self.code.to(used).sub(M::U64, self.limit, self.top);
        self.code.to(used).shr(M::U64, used, KEPT_SHARE);
        self.code.to(used).and(M::B64, used, -8);
        self.code.to(kept).add(M::U64, kept, used);
        self.code.to(base).add(M::U64, self.top, kept);
        self.code.to(full).setp((M::Gt, M::U64), base, self.limit);
        self.fail_if(full);
        self.code.to(start).mov(M::U64, base);
        let parts = self.code.begin_parts(&team, [none, length, base, self.limit, self.fuel, weight]);
        let first = self.weight(each, sources, argument, (parts.low, parts.middle))?;
        self.code.end_parts(&parts, first);
        // The parts have used the rest of the memory.
        self.code.to(self.consumed).mov(M::U64, self.limit);
        self.code.to(self.limit).mov(M::U64, start);

        let (index, head, end) = (self.code.copy(Kind::Length, parts.low), self.code.label(), self.code.label());
        let [done, has_failed] = [(); 2].map(|()| self.code.reg(Class::Pred));
        let failed = self.code.label();
        self.code.place(head);
        self.code.to(done).setp((M::Ge, M::U32), index, parts.high);
        self.code.go_if(done, end);
        let fail = std::mem::replace(&mut self.fail, failed);
        let before = self.code.mark();
        self.bind_elements(each, sources, index)?;
        let value = self.expr(argument)?;
        let regs = self.stored(&value)?;
        self.fail = fail;
        if self.code.goes_to(failed, before) {
            return Err("an argument of a call that is run by a part of a team can fail".to_owned());
        }
        let regs: Vec<Reg> =
            regs.iter().map(|reg| if reg.class == Class::Pred { self.code.number(*reg) } else { *reg }).collect();
        let TeamPart { base, limit, fuel, .. } = parts;
        let given = FrameRegisters { top: base, limit, depth: self.depth, fuel, queue: self.queue, team: None };
        let called = self.m.call_in_part(&mut self.code, (&of_team, &of_warp), &given, &parts, &regs);
        self.code.store_at(Kind::Length, statuses, index, called.status);
        self.code.to(has_failed).setp((M::Ne, M::U32), called.status, 0);
        let next = self.code.label();
        self.code.go_if(has_failed, next);
        self.code.to(base).mov(M::U64, called.top);
        let value = self.returned(&of_team, &result, &called.results)?;
        self.put(arrays, shape, index, &value)?;
        self.code.place(next);
        self.code.to(index).add(M::U32, index, 1);
        self.code.go(head);
        self.code.place(end);
        self.code.join_parts(&team, &parts);

        // All warps read all statuses, so they fail together.
        let Some(lane) = self.code.lane else { return Err("no lanes".to_owned()) };
        let (base, wrong, own) = (self.code.length(0), self.code.length(0), self.code.reg(Class::Pred));
        let mut lanes = self.begin_lanes(lane, length, base);
        let status = self.code.load_at(Kind::Length, statuses, lanes.index);
        self.code.to(wrong).or(M::B32, wrong, status);
        self.join_lanes(&mut lanes);
        self.next_lanes(&lanes);
        let any = self.code.reg(Class::Pred);
        self.code.to(own).setp((M::Ne, M::U32), wrong, 0);
        self.code.to(any).vote_sync((M::Any, M::Pred), own, 0xffffffffu32);
        self.fail_if(any);
        Ok(true)
    }

    /// Returns the weight of the calls of a range.
    fn weight(&mut self, each: &Each, sources: &[Rc<Seq>], argument: ExprId, (low, high): (Reg, Reg)) -> CodeResult<Reg> {
        let summed = self.code.begin_sum(low, high);
        self.refused = false;
        let (locals, failed, mark) = (self.locals.clone(), self.code.label(), self.code.mark());
        let fail = std::mem::replace(&mut self.fail, failed);
        self.varying = true;
        self.bind_elements(each, sources, summed.index)?;
        let value = self.expr(argument)?;
        let regs = self.stored(&value)?;
        (self.varying, self.fail, self.locals) = (false, fail, locals);
        if self.refused || self.code.goes_to(failed, mark) {
            return Err("an argument of a call that is run by a part of a team takes memory or can fail".to_owned());
        }
        let mut kinds = vec![];
        super::slots(&self.shape_of(&value), &mut kinds);
        let lengths: Vec<Reg> = regs.iter().zip(kinds).filter(|(_, kind)| *kind == Kind::Length).map(|(reg, _)| *reg).collect();
        Ok(self.code.end_sum(&summed, &lengths))
    }
}
