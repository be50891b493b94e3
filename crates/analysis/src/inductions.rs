//! Bounds of loop counters.
//!
//! A parameter of a loop's header is an *induction* if every back edge passes its own value plus the same
//! loop-invariant step. A comparison of one with a loop-invariant bound, passed on every back edge, limits
//! the number of iterations. That bounds all inductions: after `k` iterations, `x` is `x₀ + k·step`.
//!
//! The limit holds only if the compared counter does not wrap. This is checked: the largest value that
//! passes, plus a step, must fit. With `!=` the counter must reach the bound exactly: the step is a power of
//! two, counter and bound are multiples of it, and the counter starts on the right side.
//!
//! If lanes iterate together as long as the comparison holds for one of them, by a vote, the counters of the
//! others continue too. All lanes end at the same time; none may wrap until the comparison fails for all.

use crate::cfg::Cfg;
use crate::conditions::{Conditions, Test};
use crate::dominators::Dominators;
use crate::integer::{Arg, InstructionReader, Op, Relation};
use crate::loops::{Loop, Loops};
use crate::range::{Range, limits};
use broadloom_ptx::{Block, Function, Reg};
use cranelift_entity::SecondaryMap;

/// Parameter of a header that changes by a step in each iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Induction {
    /// Index among the header's parameters.
    pub(crate) param: usize,
    pub(crate) step: Arg,
    /// True if the step is subtracted.
    pub(crate) falls: bool,
    pub(crate) bits: u32,
}

/// Comparison that holds on every back edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    /// Index of the compared induction.
    pub(crate) counter: usize,
    /// True if its next value is compared, not the current one.
    pub(crate) next: bool,
    pub(crate) relation: Relation,
    pub(crate) signed: bool,
    pub(crate) bound: Arg,
    /// True if it only holds for some lane of the warp.
    pub(crate) in_some_lane: bool,
}

/// Inductions of a loop and their limits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inductions {
    pub(crate) all: Vec<Induction>,
    pub(crate) limits: Vec<Limit>,
}

/// Input of the search for inductions.
pub(crate) struct Finder<'a> {
    pub(crate) function: &'a Function,
    pub(crate) cfg: &'a Cfg,
    pub(crate) dominators: &'a Dominators,
    pub(crate) loops: &'a Loops,
    pub(crate) reader: &'a InstructionReader<'a>,
    pub(crate) conditions: &'a Conditions<'a>,
    /// Block in which each register is defined.
    pub(crate) home: &'a SecondaryMap<Reg, Option<Block>>,
}

impl Finder<'_> {
    /// Returns the inductions of a loop; `None` if nothing limits them.
    pub(crate) fn inductions(&self, id: Loop) -> Option<Inductions> {
        let data = &self.loops[id];
        let params = &self.function.blocks[data.header].params;
        let mut all = vec![];
        let mut next_of: Vec<Vec<Reg>> = vec![];
        for (index, param) in params.iter().enumerate() {
            let mut step = None;
            let mut nexts = vec![];
            let back = data.latches.iter().flat_map(|latch| &self.function.blocks[*latch].edges);
            let is_one = back.filter(|edge| edge.target == data.header).all(|edge| {
                let next = edge.args[index];
                nexts.push(next);
                match self.step_of(id, *param, next) {
                    Some(found) => *step.get_or_insert(found) == found,
                    None => false,
                }
            });
            if let (true, Some((step, falls))) = (is_one, step) {
                all.push(Induction { param: index, step, falls, bits: self.function.regs[*param].ty.bits() });
                next_of.push(nexts);
            }
        }
        let mut limits = vec![];
        let always = data.blocks.iter().filter(|block| self.loops.innermost(**block) == Some(id));
        for block in always.filter(|block| data.latches.iter().all(|latch| self.dominators.dominates(**block, *latch))) {
            let targets = self.cfg.successors(*block);
            let mut staying = (0..targets.len()).filter(|index| self.loops.contains(id, targets[*index]));
            let (Some(stays), None) = (staying.next(), staying.next()) else { continue };
            for test in self.conditions.on_edge(*block, stays) {
                for (counter, induction) in all.iter().enumerate() {
                    let param = params[induction.param];
                    limits.extend(self.limit(id, &test, counter, param, &next_of[counter]));
                }
            }
        }
        (!limits.is_empty()).then_some(Inductions { all, limits })
    }

    /// Returns the step by which a register differs from another.
    fn step_of(&self, id: Loop, param: Reg, next: Reg) -> Option<(Arg, bool)> {
        let inst = self.conditions.definition(next)?;
        let data = &self.function.insts[inst];
        // The result of a guarded instruction is unspecified if the guard is false.
        if data.guard.is_some() || data.writes() != [next] {
            return None;
        }
        let step = self.reader.step(inst);
        let [a, b, _] = step.args;
        let (step, falls) = match step.op {
            Op::Add if a == Arg::Reg(param) => (b, false),
            Op::Add if b == Arg::Reg(param) => (a, false),
            Op::Sub if a == Arg::Reg(param) => (b, true),
            _ => return None,
        };
        self.is_invariant(id, step).then_some((step, falls))
    }

    fn is_invariant(&self, id: Loop, arg: Arg) -> bool {
        match arg {
            Arg::Reg(reg) => self.home[reg].is_none_or(|home| !self.loops.contains(id, home)),
            Arg::Const(_) => true,
            Arg::Special(_) | Arg::Other => false,
        }
    }

    fn limit(&self, id: Loop, test: &Test, counter: usize, param: Reg, nexts: &[Reg]) -> Option<Limit> {
        let counted = |arg: Arg| match arg {
            Arg::Reg(reg) if reg == param => Some(false),
            Arg::Reg(reg) if nexts.iter().all(|next| *next == reg) => Some(true),
            _ => None,
        };
        let (next, relation, bound) = match (counted(test.a), counted(test.b)) {
            (Some(next), None) => (next, test.relation, test.b),
            (None, Some(next)) => (next, test.relation.swapped(), test.a),
            _ => return None,
        };
        let Test { signed, in_some_lane, .. } = *test;
        self.is_invariant(id, bound).then_some(Limit { counter, next, relation, signed, bound, in_some_lane })
    }
}

impl Inductions {
    /// Returns the operands of steps and limits.
    pub(crate) fn args(&self) -> impl Iterator<Item = Arg> + '_ {
        self.all.iter().map(|induction| induction.step).chain(self.limits.iter().map(|limit| limit.bound))
    }

    /// Returns the inductions with renamed parameters and arguments; `None` if a parameter is gone.
    pub(crate) fn renamed(&self, param: impl Fn(usize) -> Option<usize>, arg: impl Fn(Arg) -> Arg) -> Option<Inductions> {
        let all = self.all.iter().map(|old| Some(Induction { param: param(old.param)?, step: arg(old.step), ..*old }));
        let limits = self.limits.iter().map(|old| Limit { bound: arg(old.bound), ..*old });
        Some(Inductions { all: all.collect::<Option<_>>()?, limits: limits.collect() })
    }

    /// Returns the ranges of the inductions, given their start values; `None` where nothing is known. `read`
    /// returns the range of a loop-invariant value in a width.
    pub(crate) fn reach(&self, starts: &[Range], read: impl Fn(Arg, u32) -> Range) -> Vec<Option<Range>> {
        let steps: Vec<(i128, i128)> = self
            .all
            .iter()
            .map(|induction| {
                let (low, high) = read(induction.step, induction.bits).bounds(true);
                if induction.falls { (-high, -low) } else { (low, high) }
            })
            .collect();
        let times = self.limits.iter().filter_map(|limit| {
            let bound = read(limit.bound, self.all[limit.counter].bits);
            times_back(limit, &starts[limit.counter], steps[limit.counter], &bound)
        });
        let Some(times) = times.min() else { return vec![None; self.all.len()] };
        let reached = self.all.iter().zip(starts).zip(&steps).map(|((induction, start), step)| {
            if start.is_empty() {
                return None;
            }
            let bounds = |signed: bool| {
                let (low, high) = start.bounds(signed);
                (low + times.saturating_mul(step.0).min(0), high + times.saturating_mul(step.1).max(0))
            };
            let zeros = start.zeros().min(read(induction.step, induction.bits).zeros());
            Some(Range::made(induction.bits, bounds(true), bounds(false), zeros))
        });
        reached.collect()
    }
}

/// Returns the maximum number of iterations.
fn times_back(limit: &Limit, start: &Range, step: (i128, i128), bound: &Range) -> Option<i128> {
    if start.is_empty() || bound.is_empty() {
        return None;
    }
    let bits = start.bits();
    let once = i128::from(!limit.next);
    match limit.relation {
        Relation::Lt | Relation::Le if step.0 >= 1 => {
            let (_, most) = limits(bits, limit.signed);
            let (low, high) = start.bounds(limit.signed);
            let passes = bound.bounds(limit.signed).1 - i128::from(limit.relation == Relation::Lt);
            let wraps = passes + step.1 > most || limit.next && high + step.1 > most;
            let times = if passes < low { 0 } else { (passes - low) / step.0 + once };
            let other_wraps = limit.in_some_lane && high + (times + 1).saturating_mul(step.1) > most;
            (!wraps && !other_wraps).then_some(times)
        }
        Relation::Gt | Relation::Ge if step.1 <= -1 => {
            let (least, _) = limits(bits, limit.signed);
            let (low, high) = start.bounds(limit.signed);
            let passes = bound.bounds(limit.signed).0 + i128::from(limit.relation == Relation::Gt);
            let wraps = passes + step.0 < least || limit.next && low + step.0 < least;
            let times = if high < passes { 0 } else { (high - passes) / -step.1 + once };
            let other_wraps = limit.in_some_lane && low + (times + 1).saturating_mul(step.0) < least;
            (!wraps && !other_wraps).then_some(times)
        }
        Relation::Ne if step.0 == step.1 && step.0 != 0 && !limit.in_some_lane => {
            let stride = step.0.unsigned_abs();
            let multiple = stride.trailing_zeros();
            if !stride.is_power_of_two() || start.zeros() < multiple || bound.zeros() < multiple {
                return None;
            }
            [true, false].into_iter().find_map(|signed| {
                let (low, high) = start.bounds(signed);
                let (least, most) = bound.bounds(signed);
                let first = if limit.next { step.0 } else { 0 };
                let (ahead, distance) = match step.0 > 0 {
                    true => (high + first <= least, most - low),
                    false => (low + first >= most, high - least),
                };
                ahead.then(|| (distance / stride as i128 - i128::from(limit.next)).max(0))
            })
        }
        Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge | Relation::Eq | Relation::Ne => None,
    }
}
