//! Self-contained proof for a launch: obligations, and the parts of the plan that they depend on.
//!
//! In a function of thousands of instructions a few dozen decide where its accesses go. A register is
//! *needed* if an obligation is about it, or if something that defines or narrows a needed one reads it.
//! Steps, moves and tests that concern no needed register are dropped. The ranges of needed registers are
//! unchanged, and a proof is small enough to be stored with compiled code ([`Proof::encode`]).

mod bytes;

use crate::facts::Facts;
use crate::integer::{Arg, Op, Step};
use crate::obligations::Obligation;
use crate::ranges::{MergedParameter, OutgoingEdge, PlannedBlock, RangePlan};
use broadloom_ptx::{Block, Reg};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Condition on a launch under which the assumptions on all its threads hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    plan: RangePlan,
    /// Obligations. Blocks are numbered by their index in the plan.
    obligations: Vec<Obligation>,
}

impl Proof {
    /// Extracts the part of a function's plan that its obligations need; `None` if there are none.
    pub fn new(plan: &RangePlan, obligations: &[Obligation]) -> Option<Proof> {
        (!obligations.is_empty()).then(|| NeededRegisters::new(plan, obligations).proof(obligations))
    }

    /// Returns the parameters that it depends on: the offset and the number of bytes of each, in order.
    pub fn params(&self) -> Vec<(u64, usize)> {
        let steps = self.plan.blocks.iter().flat_map(|place| &place.steps);
        let mut read: Vec<(u64, usize)> = steps
            .filter_map(|step| match step.op {
                Op::Param(offset) => Some((offset, step.ty.bytes() as usize)),
                _ => None,
            })
            .collect();
        read.sort_unstable();
        read.dedup();
        read
    }

    /// Returns whether it holds for launches that satisfy the facts.
    pub fn holds(&self, facts: &Facts) -> bool {
        self.plan.ranges(facts).proves(&self.obligations)
    }
}

/// Needed registers of a plan.
struct NeededRegisters<'a> {
    plan: &'a RangePlan,
    /// Register of each move.
    moved: Vec<Reg>,
    needed: Vec<bool>,
    grows: bool,
}

impl<'a> NeededRegisters<'a> {
    fn new(plan: &'a RangePlan, obligations: &[Obligation]) -> Self {
        let mut moved = vec![Reg::from_u32(0); plan.moves];
        for (number, reg) in plan.blocks.iter().flat_map(|place| &place.edges).flat_map(|edge| &edge.moves) {
            moved[*number] = *reg;
        }
        let mut found = NeededRegisters { plan, moved, needed: vec![false; plan.bits.len()], grows: true };
        obligations.iter().for_each(|obligation| found.need(obligation.reg));
        // Most needed registers are found on the backward walk through the function; loops require another
        // round.
        while std::mem::replace(&mut found.grows, false) {
            plan.blocks.iter().rev().for_each(|place| found.place(place));
        }
        found
    }

    fn need(&mut self, reg: Reg) {
        self.grows |= !std::mem::replace(&mut self.needed[reg.index()], true);
    }

    fn need_arg(&mut self, arg: Arg) {
        match arg {
            Arg::Reg(reg) => self.need(reg),
            Arg::Const(_) | Arg::Special(_) | Arg::Other => {}
        }
    }

    fn is_needed(&self, reg: Reg) -> bool {
        self.needed[reg.index()]
    }

    fn is_needed_arg(&self, arg: Arg) -> bool {
        matches!(arg, Arg::Reg(reg) if self.is_needed(reg))
    }

    fn place(&mut self, place: &PlannedBlock) {
        for test in place.edges.iter().flat_map(|edge| &edge.tests).chain(&place.tests) {
            if self.is_needed_arg(test.a) || self.is_needed_arg(test.b) {
                self.need_arg(test.a);
                self.need_arg(test.b);
            }
        }
        for step in place.steps.iter().rev() {
            if step.result.is_some_and(|reg| self.is_needed(reg)) {
                step.args.iter().for_each(|arg| self.need_arg(*arg));
            }
        }
        // Inductions bound each other.
        if let Some(inductions) = &place.inductions
            && place.params.iter().any(|param| self.is_needed(param.reg))
        {
            inductions.all.iter().for_each(|induction| self.need(place.params[induction.param].reg));
            inductions.args().for_each(|arg| self.need_arg(arg));
        }
        for param in &place.params {
            if self.is_needed(param.reg) {
                param.first.iter().chain(&param.again).for_each(|number| self.need(self.moved[*number]));
            }
        }
    }

    /// Builds the plan without the rest.
    fn proof(self, obligations: &[Obligation]) -> Proof {
        let mut names: Vec<Option<Reg>> = vec![None; self.needed.len()];
        let (mut bits, mut unknown) = (vec![], vec![]);
        for (index, _) in self.needed.iter().enumerate().filter(|(_, needed)| **needed) {
            names[index] = Some(Reg::from_u32(bits.len() as u32));
            bits.push(self.plan.bits[index]);
            unknown.push(self.plan.unknown[index]);
        }
        let mut kept = Renumbering { needed: &self, names, numbers: vec![None; self.plan.moves], moves: 0 };
        let blocks: Vec<PlannedBlock> = self.plan.blocks.iter().map(|place| kept.params(place)).collect();
        let blocks: Vec<PlannedBlock> = self.plan.blocks.iter().zip(blocks).map(|(old, place)| kept.rest(old, place)).collect();
        let obligation = |old: &Obligation| Obligation {
            block: Block::from_u32(self.plan.place[old.block].unwrap_or(blocks.len() as u32)),
            reg: kept.name(old.reg),
            ..*old
        };
        let obligations = obligations.iter().map(obligation).collect();
        let moves = kept.moves;
        Proof { plan: RangePlan::of_places(bits, unknown, blocks, moves), obligations }
    }
}

/// New names of registers and numbers of moves, for the parts of a plan that are kept.
struct Renumbering<'a, 'p> {
    needed: &'a NeededRegisters<'p>,
    names: Vec<Option<Reg>>,
    /// New numbers of moves.
    numbers: Vec<Option<usize>>,
    moves: usize,
}

impl Renumbering<'_, '_> {
    fn name(&self, reg: Reg) -> Reg {
        // Only needed registers are looked up, and those have names.
        self.names[reg.index()].unwrap_or(Reg::from_u32(0))
    }

    fn arg(&self, arg: Arg) -> Arg {
        match arg {
            Arg::Reg(reg) => Arg::Reg(self.name(reg)),
            Arg::Const(_) | Arg::Special(_) | Arg::Other => arg,
        }
    }

    fn number(&mut self, old: usize) -> usize {
        *self.numbers[old].get_or_insert_with(|| {
            self.moves += 1;
            self.moves - 1
        })
    }

    /// Returns a place with its needed parameters, which determine the needed moves.
    fn params(&mut self, old: &PlannedBlock) -> PlannedBlock {
        let mut at = vec![None; old.params.len()];
        let mut params = vec![];
        for (index, param) in old.params.iter().enumerate().filter(|(_, param)| self.needed.is_needed(param.reg)) {
            at[index] = Some(params.len());
            params.push(MergedParameter {
                reg: self.name(param.reg),
                first: param.first.iter().map(|number| self.number(*number)).collect(),
                again: param.again.iter().map(|number| self.number(*number)).collect(),
            });
        }
        let inductions = old.inductions.as_ref().filter(|_| !params.is_empty());
        let inductions = inductions.and_then(|inductions| inductions.renamed(|param| at[param], |arg| self.arg(arg)));
        PlannedBlock { params, inductions, tests: vec![], steps: vec![], edges: vec![], ..*old }
    }

    fn rest(&self, old: &PlannedBlock, place: PlannedBlock) -> PlannedBlock {
        let tests = |tests: &[crate::conditions::Test]| -> Vec<_> {
            let wanted = tests.iter().filter(|test| self.needed.is_needed_arg(test.a) || self.needed.is_needed_arg(test.b));
            wanted.map(|test| crate::conditions::Test { a: self.arg(test.a), b: self.arg(test.b), ..*test }).collect()
        };
        let edge = |edge: &OutgoingEdge| {
            let moves = edge.moves.iter().filter_map(|(number, reg)| Some((self.numbers[*number]?, self.name(*reg))));
            OutgoingEdge { tests: tests(&edge.tests), moves: moves.collect() }
        };
        let steps = old.steps.iter().filter(|step| step.result.is_some_and(|reg| self.needed.is_needed(reg)));
        let step = |step: &Step| Step {
            result: step.result.map(|reg| self.name(reg)),
            args: step.args.map(|arg| self.arg(arg)),
            ..*step
        };
        PlannedBlock {
            tests: tests(&old.tests),
            steps: steps.map(step).collect(),
            edges: old.edges.iter().map(edge).filter(|edge| !edge.moves.is_empty()).collect(),
            ..place
        }
    }
}

impl RangePlan {
    /// Builds a plan from places; blocks are numbered by them.
    pub(crate) fn of_places(bits: Vec<u32>, unknown: Vec<bool>, blocks: Vec<PlannedBlock>, moves: usize) -> RangePlan {
        let mut place = SecondaryMap::new();
        for index in 0..blocks.len() as u32 {
            place[Block::from_u32(index)] = Some(index);
        }
        RangePlan { bits, unknown, blocks, place, home: SecondaryMap::new(), moves }
    }
}
