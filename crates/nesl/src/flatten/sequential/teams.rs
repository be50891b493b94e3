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

use super::code::{Class, Code, Kind, Label, Reg, Team, emit};
use super::expr::{Seq, Val, Writer};
use super::lanes::LANES;
use super::{CallResults, CodeResult, FrameRegisters, Module, Signature};
use crate::core::{Each, ExprId};
use crate::primitives::Fold;
use crate::types::TypeId;
use crate::vcode::Shape;
use crate::vcode::team::RECORD;
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

impl Code {
    /// Calls the barrier of a team.
    pub(super) fn sync_team(&mut self, team: &Team) {
        let Team { first, warps, sync, point, inner, .. } = team;
        emit!(self, "{{");
        emit!(self, ".param .b32 x0; .param .b32 x1; .param .b32 x2; .param .b64 x3; .param .b32 x4;");
        emit!(self, "st.param.b32 [x0], {first}; st.param.b32 [x1], {warps}; st.param.b32 [x4], {inner};");
        emit!(self, "st.param.b32 [x2], {point}; st.param.b64 [x3], {sync};");
        emit!(self, "call team_sync, (x0, x1, x2, x3, x4);");
        emit!(self, "}}");
    }

    /// Sums a number of each warp of the team. Returns the sum of the warps before the own one, and the sum
    /// of all. A barrier must follow before the next sum.
    pub(super) fn sum_of_team(&mut self, team: &Team, number: Reg) -> (Reg, Reg) {
        let Team { first, warps, sync, point, .. } = team;
        let (before, all) = (self.reg(Class::B32), self.reg(Class::B32));
        emit!(self, "{{");
        emit!(self, ".param .b32 x0; .param .b32 x1; .param .b32 x2; .param .b64 x3; .param .b32 x4; .param .align 8 .b8 y[8];");
        emit!(self, "st.param.b32 [x0], {first}; st.param.b32 [x1], {warps};");
        emit!(self, "st.param.b32 [x2], {point}; st.param.b64 [x3], {sync}; st.param.b32 [x4], {number};");
        emit!(self, "call (y), team_sum, (x0, x1, x2, x3, x4);");
        emit!(self, "ld.param.b32 {before}, [y]; ld.param.b32 {all}, [y+4];");
        emit!(self, "}}");
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
        emit!(self, "setp.ne.u32 {any}, {all}, 0;");
        any
    }

    /// Computes the registers of a team that are derived from its first warp.
    pub(super) fn name_team(&mut self, team: &Team) {
        let Team { first, point, inner, own, .. } = team;
        let [block, threads, thread] = [(); 3].map(|()| self.reg(Class::B32));
        emit!(self, "mov.u32 {block}, %ctaid.x;");
        emit!(self, "mov.u32 {threads}, %ntid.x;");
        emit!(self, "mov.u32 {thread}, %tid.x;");
        emit!(self, "mad.lo.u32 {own}, {block}, {threads}, {thread};");
        emit!(self, "shr.u32 {own}, {own}, 5;");
        emit!(self, "sub.u32 {own}, {own}, {first};");
        emit!(self, "add.u32 {point}, {first}, 1;");
        emit!(self, "shr.u32 {threads}, {threads}, 5;");
        emit!(self, "mul.lo.u32 {inner}, {block}, {threads};");
        emit!(self, "max.u32 {inner}, {inner}, {first};");
        emit!(self, "add.u32 {inner}, {inner}, 1;");
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
        emit!(self, "mad.wide.u32 {address}, {}, {RECORD}, {};", team.first, team.sync);
        emit!(self, "add.u64 {address}, {address}, 16;");
        self.in_first_lane(|code| emit!(code, "st.global.{bits} [{address}], {value};"));
        self.sync_team(&team);
        emit!(self, "ld.global.{bits} {to}, [{address}];");
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
        emit!(self, "mov.u32 {block}, %ctaid.x;");
        emit!(self, "mov.u32 {of_block}, %ntid.x;");
        emit!(self, "shr.u32 {of_block}, {of_block}, 5;");
        emit!(self, "mad.lo.u32 {behind}, {block}, {of_block}, {of_block};");
        emit!(self, "add.u32 {block}, {}, {};", team.first, team.warps);
        emit!(self, "min.u32 {behind}, {behind}, {block};");
        let whole = [self.copy(Kind::Length, team.inner), behind];
        let (head, end) = (self.label(), self.label());
        let [count, middle] = [(); 2].map(|()| self.reg(Class::B32));
        let [is_one, is_warp] = [(); 2].map(|()| self.reg(Class::Pred));
        self.place(head);
        emit!(self, "sub.u32 {count}, {high}, {low};");
        emit!(self, "setp.lt.u32 {is_one}, {count}, 2;");
        self.go_if(is_one, end);
        emit!(self, "setp.lt.u32 {is_warp}, {}, 2;", own.warps);
        self.go_if(is_warp, end);
        emit!(self, "shr.u32 {middle}, {count}, 1;");
        emit!(self, "add.u32 {middle}, {middle}, {low};");
        TeamPart { low, high, team: own, base, limit, fuel, weight, join, is_split, inner, is_apart, whole, head, end, middle }
    }

    /// Assigns a part to each half, and continues with the own half. `first` is the weight of the first half.
    pub(super) fn end_parts(&mut self, parts: &TeamPart, first: Reg) {
        let TeamPart { low, high, team, base, limit, fuel, weight, join, is_split, head, end, middle, .. } = parts;
        let [of_block, taken, most, at, near, less] = [(); 6].map(|()| self.reg(Class::B32));
        let [is_inside, is_near, is_second, is_old] = [(); 4].map(|()| self.reg(Class::Pred));
        let [wide, share, half, rest, of_weight, cut] = [(); 6].map(|()| self.reg(Class::B64));
        emit!(self, "cvt.u64.u32 {wide}, {};", team.warps);
        emit!(self, "shr.u64 {half}, {weight}, 1;");
        emit!(self, "mad.lo.u64 {share}, {wide}, {first}, {half};");
        emit!(self, "div.u64 {share}, {share}, {weight};");
        emit!(self, "cvt.u32.u64 {taken}, {share};");
        emit!(self, "sub.u32 {most}, {}, 1;", team.warps);
        emit!(self, "max.u32 {taken}, {taken}, 1;");
        emit!(self, "min.u32 {taken}, {taken}, {most};");
        // Barriers within a block are faster.
        emit!(self, "mov.u32 {of_block}, %ntid.x;");
        emit!(self, "shr.u32 {of_block}, {of_block}, 5;");
        emit!(self, "shr.u32 {at}, {of_block}, 1;");
        emit!(self, "add.u32 {at}, {at}, {taken};");
        emit!(self, "add.u32 {at}, {at}, {};", team.first);
        emit!(self, "div.u32 {at}, {at}, {of_block};");
        emit!(self, "mul.lo.u32 {at}, {at}, {of_block};");
        emit!(self, "sub.u32 {at}, {at}, {};", team.first);
        emit!(self, "sub.u32 {less}, {}, {taken};", team.warps);
        emit!(self, "min.u32 {less}, {less}, {taken};");
        emit!(self, "sub.s32 {near}, {at}, {taken};");
        emit!(self, "abs.s32 {near}, {near};");
        emit!(self, "mul.lo.u32 {near}, {near}, {SNAP};");
        emit!(self, "setp.le.u32 {is_near}, {near}, {less};");
        // As unsigned numbers, boundaries before the team are larger than every number of warps.
        emit!(self, "sub.u32 {near}, {at}, 1;");
        emit!(self, "setp.lt.u32 {is_inside}, {near}, {most};");
        emit!(self, "and.pred {is_near}, {is_near}, {is_inside};");
        emit!(self, "selp.u32 {taken}, {at}, {taken}, {is_near};");
        emit!(self, "sub.u64 {rest}, {limit}, {base};");
        emit!(self, "div.u64 {of_weight}, {rest}, {weight};");
        emit!(self, "mul.lo.u64 {cut}, {of_weight}, {first};");
        emit!(self, "and.b64 {cut}, {cut}, -8;");
        emit!(self, "add.u64 {cut}, {cut}, {base};");
        emit!(self, "div.u64 {fuel}, {fuel}, {weight};");
        // The first split determines the name of the barrier after the calls, in memory and in the own block.
        let split = self.reg(Class::B32);
        emit!(self, "add.u32 {split}, {}, {taken};", team.first);
        let (TeamPart { inner, is_apart, whole: [start, behind], .. }, [is_in, is_before, was]) =
            (parts, [(); 3].map(|()| self.reg(Class::Pred)));
        let number = self.reg(Class::B32);
        emit!(self, "setp.ge.u32 {is_in}, {split}, {start};");
        emit!(self, "setp.lt.u32 {is_before}, {split}, {behind};");
        emit!(self, "and.pred {is_in}, {is_in}, {is_before};");
        emit!(self, "setp.eq.u32 {was}, {is_apart}, 0;");
        emit!(self, "and.pred {is_in}, {is_in}, {was};");
        emit!(self, "selp.u32 {inner}, {split}, {inner}, {is_in};");
        emit!(self, "selp.u32 {number}, 1, 0, {is_in};");
        emit!(self, "or.b32 {is_apart}, {is_apart}, {number};");
        emit!(self, "setp.ne.u32 {is_old}, {is_split}, 0;");
        emit!(self, "selp.u32 {join}, {join}, {split}, {is_old};");
        emit!(self, "mov.u32 {is_split}, 1;");
        let (second, next) = (self.label(), self.label());
        emit!(self, "setp.ge.u32 {is_second}, {}, {taken};", team.own);
        self.go_if(is_second, second);
        emit!(self, "mov.u32 {high}, {middle};");
        emit!(self, "mov.u32 {}, {taken};", team.warps);
        emit!(self, "mov.u64 {limit}, {cut};");
        emit!(self, "mov.u64 {weight}, {first};");
        self.go(next);
        self.place(second);
        emit!(self, "mov.u32 {low}, {middle};");
        emit!(self, "add.u32 {}, {}, {taken};", team.first, team.first);
        emit!(self, "sub.u32 {}, {}, {taken};", team.warps, team.warps);
        emit!(self, "mov.u64 {base}, {cut};");
        emit!(self, "sub.u64 {weight}, {weight}, {first};");
        self.place(next);
        emit!(self, "mul.lo.u64 {fuel}, {fuel}, {weight};");
        self.name_team(team);
        self.go(*head);
        self.place(*end);
        // The other warps of a call with few elements are idle.
        let [is_small, is_warp, is_first] = [(); 3].map(|()| self.reg(Class::Pred));
        let behind = self.label();
        emit!(self, "setp.lt.u64 {is_small}, {weight}, {TEAM_WEIGHT};");
        emit!(self, "setp.lt.u32 {is_warp}, {}, 2;", team.warps);
        self.go_unless(is_small, behind);
        self.go_if(is_warp, behind);
        emit!(self, "mov.u32 {is_split}, 1;");
        emit!(self, "mov.u32 {}, 1;", team.warps);
        emit!(self, "setp.eq.u32 {is_first}, {}, 0;", team.own);
        self.go_if(is_first, behind);
        emit!(self, "mov.u32 {low}, {high};");
        self.place(behind);
        self.meet();
    }

    /// Makes the warps of a team wait after the calls of its parts.
    pub(super) fn join_parts(&mut self, team: &Team, parts: &TeamPart) {
        let (next, is_whole) = (self.label(), self.reg(Class::Pred));
        self.meet();
        emit!(self, "setp.eq.u32 {is_whole}, {}, 0;", parts.is_split);
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
        emit!(self, "mov.u64 {sum}, 0;");
        self.place(head);
        emit!(self, "setp.ge.u32 {done}, {base}, {high};");
        self.go_if(done, end);
        emit!(self, "add.u32 {index}, {base}, {lane};");
        emit!(self, "setp.ge.u32 {outside}, {index}, {high};");
        self.go_if(outside, next);
        WarpSum { index, base, sum, head, end, next }
    }

    /// Adds numbers of an index and ends the sum. Returns its value, with the weight of each index.
    pub(super) fn end_sum(&mut self, summed: &WarpSum, numbers: &[Reg]) -> Reg {
        let WarpSum { base, sum, head, end, next, .. } = summed;
        let wide = self.reg(Class::B64);
        for number in numbers {
            emit!(self, "cvt.u64.u32 {wide}, {number};");
            emit!(self, "add.u64 {sum}, {sum}, {wide};");
        }
        emit!(self, "add.u64 {sum}, {sum}, {WEIGHT};");
        self.place(*next);
        self.meet();
        emit!(self, "add.u32 {base}, {base}, {LANES};");
        self.go(*head);
        self.place(*end);
        for behind in [16, 8, 4, 2, 1] {
            let other = self.lane_value(Kind::Pointer, *sum, Some(behind));
            emit!(self, "add.u64 {sum}, {sum}, {other};");
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
        emit!(code, "setp.eq.u32 {is_warp}, {}, 1;", parts.team.warps);
        code.go_if(is_warp, warp);
        for (signature, team) in [(of_team, Some(parts.team)), (of_warp, None)] {
            let called = match team {
                Some(_) => self.call(code, signature, &FrameRegisters { team, ..*given }, regs),
                None => {
                    code.place(warp);
                    let more = code.reg(Class::B64);
                    emit!(code, "add.u64 {more}, {}, {WARP_FUEL};", given.fuel);
                    self.call(code, signature, &FrameRegisters { team, fuel: more, ..*given }, regs)
                }
            };
            emit!(code, "mov.u32 {status}, {};", called.status);
            emit!(code, "mov.u64 {top}, {};", called.top);
            emit!(code, "mov.u64 {fuel}, {};", called.fuel);
            for ((kind, to), from) in kinds.iter().zip(&results).zip(&called.results) {
                let bits = if *kind == Kind::Bool { "b32" } else { code.bits(*kind) };
                emit!(code, "mov.{bits} {to}, {from};");
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
        emit!(self.code, "mul.lo.u32 {base}, {rounds}, {};", team.own);
        emit!(self.code, "min.u32 {base}, {base}, {length};");
        emit!(self.code, "add.u32 {end}, {base}, {rounds};");
        emit!(self.code, "min.u32 {end}, {end}, {length};");
        (base, end)
    }

    /// Returns the number of rounds of a loop per warp of a team.
    fn rounds_of_warp(&mut self, length: Reg, team: &Team) -> Reg {
        let rounds = self.code.reg(Class::B32);
        emit!(self.code, "add.u32 {rounds}, {length}, {};", LANES - 1);
        emit!(self.code, "shr.u32 {rounds}, {rounds}, 5;");
        emit!(self.code, "add.u32 {rounds}, {rounds}, {};", team.warps);
        emit!(self.code, "sub.u32 {rounds}, {rounds}, 1;");
        emit!(self.code, "div.u32 {rounds}, {rounds}, {};", team.warps);
        emit!(self.code, "shl.b32 {rounds}, {rounds}, 5;");
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
            emit!(w.code, "vote.sync.ballot.b32 {all}, {flag}, 0xffffffff;");
            emit!(w.code, "popc.b32 {number}, {all};");
            emit!(w.code, "add.u32 {own}, {own}, {number};");
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
        emit!(self.code, "selp.u32 {keeps}, 1, 0, {holds};");
        self.join_lanes(&mut lanes);
        emit!(self.code, "setp.ne.u32 {flag}, {keeps}, 0;");
        count(self, flag);
        emit!(self.code, "mov.u32 {keeps}, 0;");
        self.end_lanes(&lanes);
        self.code.is_held = false;
        let (before, all) = self.code.sum_of_team(&team, own);
        emit!(self.code, "mov.u32 {kept}, {before};");
        emit!(self.code, "mov.u32 {base}, {start};");
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
        emit!(self.code, "max.u32 {at_least}, {rounds}, 1;");
        emit!(self.code, "add.u32 {count}, {length}, {at_least};");
        emit!(self.code, "sub.u32 {count}, {count}, 1;");
        emit!(self.code, "div.u32 {count}, {count}, {at_least};");
        emit!(self.code, "setp.ge.u32 {is_idle}, {}, {count};", team.own);
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
        emit!(self.code, "sub.u64 {used}, {}, {};", self.top, self.mark);
        emit!(self.code, "mul.lo.u64 {kept}, {weight}, {KEPT_OF_ELEMENT};");
        emit!(self.code, "add.u64 {kept}, {kept}, {KEPT};");
        emit!(self.code, "add.u64 {kept}, {kept}, {used};");
        emit!(self.code, "sub.u64 {used}, {}, {};", self.limit, self.top);
        emit!(self.code, "shr.u64 {used}, {used}, {KEPT_SHARE};");
        emit!(self.code, "and.b64 {used}, {used}, -8;");
        emit!(self.code, "add.u64 {kept}, {kept}, {used};");
        emit!(self.code, "add.u64 {base}, {}, {kept};", self.top);
        emit!(self.code, "setp.gt.u64 {full}, {base}, {};", self.limit);
        self.fail_if(full);
        emit!(self.code, "mov.u64 {start}, {base};");
        let parts = self.code.begin_parts(&team, [none, length, base, self.limit, self.fuel, weight]);
        let first = self.weight(each, sources, argument, (parts.low, parts.middle))?;
        self.code.end_parts(&parts, first);
        // The parts have used the rest of the memory.
        emit!(self.code, "mov.u64 {}, {};", self.consumed, self.limit);
        emit!(self.code, "mov.u64 {}, {start};", self.limit);

        let (index, head, end) = (self.code.copy(Kind::Length, parts.low), self.code.label(), self.code.label());
        let [done, has_failed] = [(); 2].map(|()| self.code.reg(Class::Pred));
        let failed = self.code.label();
        self.code.place(head);
        emit!(self.code, "setp.ge.u32 {done}, {index}, {};", parts.high);
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
        emit!(self.code, "setp.ne.u32 {has_failed}, {}, 0;", called.status);
        let next = self.code.label();
        self.code.go_if(has_failed, next);
        emit!(self.code, "mov.u64 {base}, {};", called.top);
        let value = self.returned(&of_team, &result, &called.results)?;
        self.put(arrays, shape, index, &value)?;
        self.code.place(next);
        emit!(self.code, "add.u32 {index}, {index}, 1;");
        self.code.go(head);
        self.code.place(end);
        self.code.join_parts(&team, &parts);

        // All warps read all statuses, so they fail together.
        let Some(lane) = self.code.lane else { return Err("no lanes".to_owned()) };
        let (base, wrong, own) = (self.code.length(0), self.code.length(0), self.code.reg(Class::Pred));
        let mut lanes = self.begin_lanes(lane, length, base);
        let status = self.code.load_at(Kind::Length, statuses, lanes.index);
        emit!(self.code, "or.b32 {wrong}, {wrong}, {status};");
        self.join_lanes(&mut lanes);
        self.next_lanes(&lanes);
        let any = self.code.reg(Class::Pred);
        emit!(self.code, "setp.ne.u32 {own}, {wrong}, 0;");
        emit!(self.code, "vote.sync.any.pred {any}, {own}, 0xffffffff;");
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
