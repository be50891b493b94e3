//! Ranges of the integers of a function, in any thread of a launch.
//!
//! The facts of a launch ([`Facts`]) bound special registers and parameters. Instructions propagate these
//! bounds ([`crate::range`]). Branches narrow them in the blocks that they guard. Loops are bounded by their
//! counters, or else widened until nothing changes and narrowed again. A result of a guarded instruction has
//! the bounds of the instruction, for any guard: if the guard is false it is unspecified, and code that
//! computes it for such a lane anyway stays within the bounds too.
//!
//! A [`RangePlan`] holds everything that depends on the function alone. It is built once, and then evaluated
//! for each launch, which takes microseconds.

use crate::arithmetic::{Exact, exact, resized, result};
use crate::cfg::Cfg;
use crate::conditions::{Conditions, Test};
use crate::dominators::Dominators;
use crate::facts::{Facts, rounded_alike};
use crate::inductions::{Finder, Inductions};
use crate::integer::{Arg, InstructionReader, Op, Step};
use crate::loops::Loops;
use crate::range::Range;
use broadloom_ptx::{Block, BodyForm, Function, Inst, Param, Reg};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Number of rounds without widening.
const PATIENCE: usize = 2;
/// Number of rounds after which everything that depends on a block parameter is unknown.
const ROUNDS: usize = 64;
/// Number of narrowing rounds.
const NARROWING: usize = 2;

/// Precomputed input for the ranges of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct RangePlan {
    /// Width of each register; 0 for those that are not integers of up to 64 bits.
    pub(crate) bits: Vec<u32>,
    /// Registers whose instruction gives no bounds.
    pub(crate) unknown: Vec<bool>,
    /// Blocks, each after its immediate dominator.
    pub(crate) blocks: Vec<PlannedBlock>,
    pub(crate) place: SecondaryMap<Block, Option<u32>>,
    pub(crate) home: SecondaryMap<Reg, Option<Block>>,
    pub(crate) moves: usize,
}

/// Block in a plan of ranges: what to compute in it and on its edges.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedBlock {
    /// Index of its immediate dominator.
    pub(crate) parent: Option<usize>,
    pub(crate) depth: usize,
    /// Conditions that hold at its head.
    pub(crate) tests: Vec<Test>,
    pub(crate) params: Vec<MergedParameter>,
    /// True if control also comes from a place that is not before this one.
    pub(crate) is_entered_again: bool,
    pub(crate) inductions: Option<Inductions>,
    pub(crate) steps: Vec<Step>,
    pub(crate) edges: Vec<OutgoingEdge>,
}

/// Parameter of a block and the moves that define it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MergedParameter {
    pub(crate) reg: Reg,
    /// Moves from outside the loop, if the block is its header; else all.
    pub(crate) first: Vec<usize>,
    pub(crate) again: Vec<usize>,
}

/// Edge out of a block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutgoingEdge {
    pub(crate) tests: Vec<Test>,
    /// Numbers of moves, and the registers that they move.
    pub(crate) moves: Vec<(usize, Reg)>,
}

impl RangePlan {
    /// Builds the plan of a function in SSA form. In register form, where registers change, everything is
    /// unknown.
    pub fn new(function: &Function, cfg: &Cfg, dominators: &Dominators, loops: &Loops) -> RangePlan {
        let bits: Vec<u32> = function.regs.values().map(|reg| if reg.ty.bits() <= 64 { reg.ty.bits() } else { 0 }).collect();
        let mut plan = RangePlan {
            unknown: bits.iter().map(|_| true).collect(),
            bits,
            blocks: vec![],
            place: SecondaryMap::new(),
            home: SecondaryMap::new(),
            moves: 0,
        };
        if function.form == BodyForm::Registers {
            return plan;
        }
        plan.find_homes(function, cfg);
        let reader = InstructionReader::new(function);
        let conditions = Conditions::new(function, &reader);
        let home = plan.home.clone();
        let finder = Finder { function, cfg, dominators, loops, reader: &reader, conditions: &conditions, home: &home };
        for block in dominators.preorder() {
            plan.place[block] = Some(plan.blocks.len() as u32);
            plan.add_block(block, &finder);
        }
        plan.connect(&finder);
        for param in function.params.iter().chain(&function.results) {
            match param {
                Param::Reg(reg) => plan.unknown[reg.index()] = true,
                Param::Memory(_) => {}
            }
        }
        plan
    }

    /// Returns the ranges of all registers in launches that satisfy the facts.
    pub fn ranges<'a>(&'a self, facts: &'a Facts) -> Ranges<'a> {
        Ranges::new(self, facts, false)
    }

    /// Returns the ranges in a small launch: unknown values are assumed to be harmless. A condition that
    /// fails even then is not worth assuming.
    pub(crate) fn modest_ranges<'a>(&'a self, facts: &'a Facts) -> Ranges<'a> {
        Ranges::new(self, facts, true)
    }

    /// Returns the block in which a register is defined.
    pub(crate) fn home(&self, reg: Reg) -> Option<Block> {
        self.home[reg]
    }

    fn find_homes(&mut self, function: &Function, cfg: &Cfg) {
        for block in cfg.order() {
            let data = &function.blocks[*block];
            let written = data.insts.iter().flat_map(|inst| function.insts[*inst].writes());
            for reg in written.chain(data.params.iter().copied()) {
                self.home[reg] = Some(*block);
            }
        }
    }

    fn add_block(&mut self, block: Block, finder: &Finder<'_>) {
        let data = &finder.function.blocks[block];
        let mut steps = vec![];
        for inst in &data.insts {
            let step = finder.reader.step(*inst);
            let says_nothing = matches!(step.op, Op::Other | Op::Compare(_));
            match step.result.filter(|reg| !says_nothing && self.bits[reg.index()] > 0) {
                Some(reg) if finder.function.insts[*inst].writes() == [reg] => {
                    self.unknown[reg.index()] = false;
                    steps.push(step);
                }
                _ => {}
            }
        }
        let mut edges = vec![];
        for (index, edge) in data.edges.iter().enumerate() {
            let mut tests = finder.conditions.on_edge(block, index);
            tests.retain(|test| !test.in_some_lane);
            let moves = edge.args.iter().map(|arg| {
                self.moves += 1;
                (self.moves - 1, *arg)
            });
            edges.push(OutgoingEdge { tests, moves: moves.collect() });
        }
        let parent = finder.dominators.immediate(block).and_then(|parent| self.place[parent]).map(|parent| parent as usize);
        let depth = parent.map_or(0, |parent| self.blocks[parent].depth + 1);
        for param in &data.params {
            self.unknown[param.index()] = self.bits[param.index()] == 0;
        }
        let inductions = finder.loops.headed_by(block).and_then(|id| finder.inductions(id));
        let params = data.params.iter().map(|reg| MergedParameter { reg: *reg, first: vec![], again: vec![] }).collect();
        self.blocks.push(PlannedBlock {
            parent,
            depth,
            tests: vec![],
            params,
            is_entered_again: false,
            inductions,
            steps,
            edges,
        });
    }

    /// Records the predecessors of each block.
    fn connect(&mut self, finder: &Finder<'_>) {
        for from in finder.cfg.order() {
            let Some(source) = self.place[*from].map(|place| place as usize) else { continue };
            for (index, target) in finder.cfg.successors(*from).iter().enumerate() {
                let Some(place) = self.place[*target].map(|place| place as usize) else { continue };
                let leaving = self.blocks[source].edges[index].clone();
                let inside = finder.loops.headed_by(*target).is_some_and(|id| finder.loops.contains(id, *from));
                let entered = &mut self.blocks[place];
                entered.is_entered_again |= source >= place;
                for (param, (number, _)) in entered.params.iter_mut().zip(&leaving.moves) {
                    if inside { param.again.push(*number) } else { param.first.push(*number) }
                }
                if finder.cfg.predecessors(*target).len() == 1 && *target != finder.cfg.entry() {
                    entered.tests = leaving.tests;
                }
            }
        }
    }
}

/// Ranges of a function's registers in some launches.
#[derive(Clone, Debug)]
pub struct Ranges<'a> {
    plan: &'a RangePlan,
    facts: &'a Facts,
    modest: bool,
    ranges: Vec<Range>,
}

impl<'a> Ranges<'a> {
    fn new(plan: &'a RangePlan, facts: &'a Facts, modest: bool) -> Ranges<'a> {
        let start = |(index, bits): (usize, &u32)| match plan.unknown[index] {
            true => Range::full((*bits).max(1)),
            false => Range::empty((*bits).max(1)),
        };
        let ranges: Vec<Range> = plan.bits.iter().enumerate().map(start).collect();
        let mut found = Ranges { plan, facts, modest, ranges };
        found.ranges = RangeSolver::new(&found).solve();
        found
    }

    /// Returns the integers that a register can hold, wherever it is read. Registers that are never reached
    /// may hold anything.
    pub fn range(&self, reg: Reg) -> Range {
        let range = self.ranges[reg.index()];
        if range.is_empty() { Range::full(range.bits()) } else { range }
    }

    /// Returns the integers that a register can hold in a block, narrowed by the branches on the way there.
    pub fn range_in(&self, reg: Reg, block: Block) -> Range {
        let mut range = self.range(reg);
        let mut place = self.plan.place[block].map(|place| place as usize);
        while let Some(at) = place {
            for test in &self.plan.blocks[at].tests {
                range = self.narrowed(reg, range, test);
            }
            place = self.plan.blocks[at].parent;
        }
        range
    }

    fn narrowed(&self, reg: Reg, range: Range, test: &Test) -> Range {
        if range.bits() != test.bits {
            return range;
        }
        let read = |arg: Arg| self.read(arg, test.bits, |reg| self.range(reg));
        let mut narrow = range;
        if test.a == Arg::Reg(reg) {
            narrow = narrow.related(test.relation, test.signed, &read(test.b));
        }
        if test.b == Arg::Reg(reg) {
            narrow = narrow.related(test.relation.swapped(), test.signed, &read(test.a));
        }
        if narrow.is_empty() { range } else { narrow }
    }

    /// Returns whether an addition, subtraction, multiplication or left shift never overflows; other
    /// instructions are unknown.
    pub fn exact(&self, function: &Function, block: Block, inst: Inst) -> Exact {
        if function.form == BodyForm::Registers {
            return Exact::default();
        }
        let step = InstructionReader::new(function).step(inst);
        let args = arguments(&step, |arg, bits| self.read(arg, bits, |reg| self.range_in(reg, block)));
        exact(&step, &args)
    }

    fn read(&self, arg: Arg, bits: u32, register: impl FnOnce(Reg) -> Range) -> Range {
        match arg {
            Arg::Reg(reg) => resized(&register(reg), bits, false),
            Arg::Const(value) => Range::constant(bits, value),
            Arg::Special(special) => match self.special(special) {
                Some((low, high)) => Range::between(bits, low, high).intersection(&Range::full(bits)),
                None => Range::full(bits),
            },
            Arg::Other => Range::full(bits),
        }
    }

    fn special(&self, special: broadloom_ptx::Special) -> Option<(u64, u64)> {
        self.facts.special(special, self.facts.grid.or(self.modest.then_some([4; 3])))
    }

    /// Returns the range of a value in the parameter block.
    fn parameter(&self, step: &Step, offset: u64) -> Range {
        let bits = step.ty.bits();
        match self.facts.params.get(offset, step.ty.bytes() as usize) {
            Some(value) if self.facts.rounded => {
                let (least, most) = rounded_alike(value);
                Range::between(bits, least, most.min(u64::MAX >> (64 - bits.clamp(1, 64))))
            }
            Some(value) => Range::constant(bits, value),
            None if self.modest => Range::between(bits, 1, 16),
            None => Range::full(bits),
        }
    }
}

/// Returns the ranges of a step's operands, in the widths that it requires.
fn arguments(step: &Step, read: impl Fn(Arg, u32) -> Range) -> [Range; 3] {
    let bits = step.ty.bits();
    let widths = match step.op {
        Op::Shl | Op::Shr | Op::BitField => [bits, 32, 32],
        Op::MadWide => [bits, bits, 2 * bits],
        Op::Convert(from) => [from.bits(); 3],
        _ => [bits; 3],
    };
    [0, 1, 2].map(|index| read(step.args[index], widths[index]))
}

/// Update mode of block parameters.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Grow,
    Widen,
    Narrow,
}

struct RangeSolver<'a, 'b> {
    asked: &'b Ranges<'a>,
    /// Ranges at the definitions.
    ranges: Vec<Range>,
    /// Ranges at the current point of the walk, narrowed by the conditions there.
    current: Vec<Range>,
    undo: Vec<(usize, Reg, Range)>,
    moved: Vec<Range>,
    changed: bool,
}

impl<'a, 'b> RangeSolver<'a, 'b> {
    fn new(asked: &'b Ranges<'a>) -> Self {
        let ranges = asked.ranges.clone();
        let moved = vec![Range::empty(1); asked.plan.moves];
        RangeSolver { asked, current: ranges.clone(), ranges, undo: vec![], moved, changed: true }
    }

    fn solve(mut self) -> Vec<Range> {
        let mut rounds = 0;
        while std::mem::replace(&mut self.changed, false) {
            rounds += 1;
            if rounds > ROUNDS {
                return self.ranges.iter().map(|range| Range::full(range.bits())).collect();
            }
            self.round(if rounds <= PATIENCE { Mode::Grow } else { Mode::Widen });
        }
        if rounds > 1 {
            (0..NARROWING).for_each(|_| self.round(Mode::Narrow));
        }
        self.ranges
    }

    fn round(&mut self, mode: Mode) {
        for place in &self.asked.plan.blocks {
            self.leave(place.depth);
            for test in &place.tests {
                self.hold(place.depth, test);
            }
            self.merge(place, mode);
            for step in &place.steps {
                self.step(step);
            }
            for edge in &place.edges {
                for test in &edge.tests {
                    self.hold(usize::MAX, test);
                }
                for (number, arg) in &edge.moves {
                    self.moved[*number] = self.current[arg.index()];
                }
                self.leave(usize::MAX);
            }
        }
        self.leave(0);
    }

    /// Drops the conditions at a depth of the dominator tree and below.
    fn leave(&mut self, depth: usize) {
        while let Some((_, reg, range)) = self.undo.pop_if(|(held, ..)| *held >= depth) {
            self.current[reg.index()] = range;
        }
    }

    fn hold(&mut self, depth: usize, test: &Test) {
        let [a, b] = [test.a, test.b].map(|arg| self.asked.read(arg, test.bits, |reg| self.current[reg.index()]));
        for (arg, narrow) in
            [(test.a, a.related(test.relation, test.signed, &b)), (test.b, b.related(test.relation.swapped(), test.signed, &a))]
        {
            if let Arg::Reg(reg) = arg {
                let old = self.current[reg.index()];
                if old.bits() == test.bits && !narrow.is_empty() && narrow != old {
                    self.undo.push((depth, reg, old));
                    self.current[reg.index()] = narrow;
                }
            }
        }
    }

    fn merge(&mut self, place: &PlannedBlock, mode: Mode) {
        let mut reach: Vec<Option<Range>> = vec![None; place.params.len()];
        if let Some(inductions) = &place.inductions {
            let start = |param: usize| {
                let merged = &place.params[param];
                union(merged.first.iter().map(|number| &self.moved[*number]), self.ranges[merged.reg.index()].bits())
            };
            let starts: Vec<Range> = inductions.all.iter().map(|induction| start(induction.param)).collect();
            let read = |arg: Arg, bits: u32| self.asked.read(arg, bits, |reg| self.current[reg.index()]);
            for (induction, reached) in inductions.all.iter().zip(inductions.reach(&starts, read)) {
                reach[induction.param] = reached;
            }
        }
        for (merged, reach) in place.params.iter().zip(reach) {
            let index = merged.reg.index();
            if self.asked.plan.unknown[index] {
                continue;
            }
            let old = self.ranges[index];
            let all = merged.first.iter().chain(&merged.again).map(|number| &self.moved[*number]);
            let next = match (reach, mode) {
                (Some(reach), Mode::Grow | Mode::Widen) => old.union(&reach),
                (None, Mode::Grow) => old.union(&union(all, old.bits())),
                (None, Mode::Widen) if place.is_entered_again => old.widened(&union(all, old.bits())),
                (None, Mode::Widen) => old.union(&union(all, old.bits())),
                (reach, Mode::Narrow) => {
                    let mut next = union(all, old.bits()).intersection(&old);
                    if let Some(reach) = reach {
                        next = next.intersection(&reach);
                    }
                    if next.is_empty() { old } else { next }
                }
            };
            self.changed |= next != old;
            self.ranges[index] = next;
            self.current[index] = next;
        }
    }

    fn step(&mut self, step: &Step) {
        let Some(reg) = step.result.filter(|reg| !self.asked.plan.unknown[reg.index()]) else { return };
        let bits = self.ranges[reg.index()].bits();
        let value = match step.op {
            Op::Param(offset) => resized(&self.asked.parameter(step, offset), bits, step.ty.is_signed()),
            Op::Load => resized(&Range::full(step.ty.bits()), bits, step.ty.is_signed()),
            _ => {
                let args = arguments(step, |arg, bits| self.asked.read(arg, bits, |reg| self.current[reg.index()]));
                let needed = step.args.iter().zip(&args).take(operands(step.op));
                if needed.into_iter().any(|(_, range)| range.is_empty()) {
                    return;
                }
                result(step, &args, bits)
            }
        };
        self.ranges[reg.index()] = value;
        self.current[reg.index()] = value;
    }
}

/// Returns the number of integer operands of an operation.
fn operands(op: Op) -> usize {
    match op {
        Op::Copy | Op::Neg | Op::Not | Op::Abs | Op::Convert(_) | Op::Count => 1,
        Op::Add | Op::Sub | Op::Mul | Op::MulWide | Op::Min | Op::Max | Op::Div | Op::Rem => 2,
        Op::Shl | Op::Shr | Op::And | Op::Or | Op::Xor | Op::Select | Op::Compare(_) => 2,
        Op::Mad | Op::MadWide | Op::BitField => 3,
        Op::Param(_) | Op::Load | Op::Other => 0,
    }
}

fn union<'r>(ranges: impl Iterator<Item = &'r Range>, bits: u32) -> Range {
    ranges.fold(Range::empty(bits), |all, range| all.union(range))
}
