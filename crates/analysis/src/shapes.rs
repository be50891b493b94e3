//! Shapes of all registers of a function across the lanes of a warp, and divergent branches.
//!
//! The analysis works on a function in SSA form. It starts optimistically with no shape known and propagates
//! facts until none changes: a value that is never found to differ between lanes does not differ. A block
//! parameter is the merge of its arguments, in groups of lanes that arrive by the same path
//! ([`crate::divergence`] determines these, and how lanes run together). If all edges pass the same register,
//! the parameter equals it. A value that is read outside a loop that lanes leave in different iterations is
//! known only in groups of lanes that leave together.
//!
//! In an irreducible graph with a divergent branch every register is unknown. With one lane everything is
//! uniform.

use crate::bit_set::BitSet;
use crate::cfg::Cfg;
use crate::divergence::{DivergentRegion, Paths};
use crate::facts::Facts;
use crate::loops::{Loop, Loops};
use crate::obligations::Obligation;
use crate::ranges::RangePlan;
use crate::rules::{InstructionSite, Rules};
use crate::shape::{LANE_BITS, Shape};
use broadloom_ptx::{Base, Block, BodyForm, Function, Inst, Opcode, Operand, Param, Reg};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Permitted assumptions about lanes that differ by known amounts in 32 bits when they are read as wider
/// integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assume {
    /// None beyond what the facts prove.
    Nothing,
    /// Lanes do not wrap, wherever this is provable for some conceivable launch. Assumptions are
    /// [recorded](Shapes::obligations), to be [proved](crate::Ranges::proves) for each launch.
    NoWrap,
}

/// Shapes of a function's registers.
#[derive(Clone, Debug)]
pub struct Shapes {
    shapes: Vec<Shape>,
    /// Shapes as read anywhere.
    everywhere: Vec<Shape>,
    home: SecondaryMap<Reg, Option<Block>>,
    /// For the loops around each block, from the innermost out, the size of the groups in which lanes leave
    /// together.
    around: SecondaryMap<Block, Vec<(Loop, u32)>>,
    /// Size of the groups in which lanes take the same edge out of a block.
    together: SecondaryMap<Block, Option<u32>>,
    divergent_loops: BTreeMap<Loop, u32>,
    partial: BitSet<Block>,
    obligations: Vec<Obligation>,
}

impl Shapes {
    /// Computes the shapes. The plan is that of the same function.
    pub fn new(function: &Function, cfg: &Cfg, loops: &Loops, plan: &RangePlan, facts: &Facts, assume: Assume) -> Shapes {
        let ranges = plan.ranges(facts);
        let modest = match assume {
            Assume::Nothing => None,
            Assume::NoWrap => Some(plan.modest_ranges(facts)),
        };
        let rules = Rules::new(function, facts, &ranges, modest.as_ref());
        if facts.lanes == 1 || function.form == BodyForm::Registers {
            let group = if facts.lanes == 1 { LANE_BITS } else { 0 };
            return Shapes::all_alike(function, cfg, &rules, group);
        }
        let mut solver = ShapeSolver::new(function, cfg, loops, plan, rules);
        if !solver.solve() {
            return Shapes::all_alike(function, cfg, &solver.rules, 0);
        }
        solver.finish()
    }

    fn all_alike(function: &Function, cfg: &Cfg, rules: &Rules<'_>, group: u32) -> Shapes {
        let shapes: Vec<Shape> = function.regs.keys().map(|reg| Shape::same_in_groups(rules.bits(reg), group)).collect();
        let mut together = SecondaryMap::new();
        let mut partial = BitSet::new();
        if group < LANE_BITS {
            partial.extend(cfg.order().iter().copied());
            for block in cfg.order().iter().filter(|block| branch(function, **block).is_some()) {
                together[*block] = Some(0);
            }
        }
        Shapes {
            everywhere: shapes.clone(),
            shapes,
            home: SecondaryMap::new(),
            around: SecondaryMap::new(),
            together,
            divergent_loops: BTreeMap::new(),
            partial,
            obligations: vec![],
        }
    }

    /// Returns the shape of a register wherever it is read.
    pub fn shape(&self, reg: Reg) -> Shape {
        self.everywhere[reg.index()]
    }

    /// Returns the shape of a register as read in a block: more may be known inside the loop in which it is
    /// defined.
    pub fn shape_in(&self, reg: Reg, block: Block) -> Shape {
        let shape = self.shapes[reg.index()];
        let Some(home) = self.home[reg] else { return shape };
        let left = self.around[home].iter().filter(|(id, _)| !self.around[block].iter().any(|(around, _)| around == id));
        shape.reduced(left.map(|(_, group)| *group).min().unwrap_or(LANE_BITS))
    }

    /// Returns whether a register is equal in all lanes, wherever it is read.
    pub fn is_uniform(&self, reg: Reg) -> bool {
        self.shape(reg).is_uniform()
    }

    /// Returns whether a register is equal in all lanes that read it in a block.
    pub fn is_uniform_in(&self, reg: Reg, block: Block) -> bool {
        self.shape_in(reg, block).is_uniform()
    }

    /// Returns whether lanes may take different edges out of a block, or exit there while others continue.
    pub fn is_divergent_branch(&self, block: Block) -> bool {
        self.together[block].is_some_and(|group| group < LANE_BITS)
    }

    /// Returns the largest `g` such that the lanes of each aligned group of `2^g` take the same edge out of a
    /// block: 5 if all do.
    pub fn branch_group(&self, block: Block) -> u32 {
        self.together[block].unwrap_or(LANE_BITS)
    }

    /// Returns the blocks that end in a divergent branch.
    pub fn divergent_branches(&self) -> impl Iterator<Item = Block> + '_ {
        self.together.iter().filter(|(_, group)| group.is_some_and(|group| group < LANE_BITS)).map(|(block, _)| block)
    }

    /// Returns whether lanes may leave a loop in different iterations.
    pub fn is_divergent_loop(&self, id: Loop) -> bool {
        self.divergent_loops.contains_key(&id)
    }

    /// Returns whether a block may run with only some of the lanes.
    pub fn is_partial(&self, block: Block) -> bool {
        self.partial.contains(block)
    }

    /// Returns the assumptions, to be proved for each launch.
    pub fn obligations(&self) -> &[Obligation] {
        &self.obligations
    }

    /// Returns the shape of the address at which an instruction of a block accesses memory; `None` if it has
    /// none.
    pub fn address(&self, function: &Function, block: Block, inst: Inst) -> Option<Shape> {
        let address = function.insts[inst].bracketed()?;
        Some(match address.base {
            Base::Reg(reg) => {
                let base = self.shape_in(reg, block);
                base.plus(&Shape::constant(base.bits(), address.offset as u64))
            }
            Base::Symbol(_) => Shape::uniform(64),
            Base::Absolute => Shape::constant(64, address.offset as u64),
        })
    }
}

/// Returns the registers that decide which edge control takes out of a block; `None` if there is no choice.
fn branch(function: &Function, block: Block) -> Option<Vec<Reg>> {
    let last = &function.insts[*function.blocks[block].insts.last()?];
    if !last.is_control() {
        return None;
    }
    let mut decide: Vec<Reg> = last.guard.iter().map(|guard| guard.reg).collect();
    if let (Some(Opcode::BrxIdx), Some(Operand::Reg(index))) = (last.opcode(), last.operands.first()) {
        decide.push(*index);
    }
    (!decide.is_empty()).then_some(decide)
}

struct ShapeSolver<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    plan: &'a RangePlan,
    rules: Rules<'a>,
    shapes: Vec<Option<Shape>>,
    /// Size of the groups in which lanes reach a block by the same path.
    joined: SecondaryMap<Block, Option<u32>>,
    left: BTreeMap<Loop, u32>,
    together: SecondaryMap<Block, Option<u32>>,
    apart: BTreeMap<Block, DivergentRegion>,
    partial: BitSet<Block>,
    changed: bool,
    obligations: Vec<Obligation>,
}

impl<'a> ShapeSolver<'a> {
    fn new(function: &'a Function, cfg: &'a Cfg, loops: &'a Loops, plan: &'a RangePlan, rules: Rules<'a>) -> Self {
        let mut solver = ShapeSolver {
            function,
            cfg,
            loops,
            plan,
            shapes: vec![None; function.regs.len()],
            rules,
            joined: SecondaryMap::new(),
            left: BTreeMap::new(),
            together: SecondaryMap::new(),
            apart: BTreeMap::new(),
            partial: BitSet::new(),
            changed: true,
            obligations: vec![],
        };
        for param in function.params.iter().chain(&function.results) {
            if let Param::Reg(reg) = param {
                solver.shapes[reg.index()] = Some(Shape::varying(solver.rules.bits(*reg)));
            }
        }
        if !function.is_kernel {
            solver.partial.extend(cfg.order().iter().copied());
        }
        solver
    }

    /// Solves the equations. Returns `false` if everything is unknown.
    fn solve(&mut self) -> bool {
        let paths = Paths::new(self.function, self.cfg, self.loops);
        for block in self.cfg.order() {
            let mut insts = self.function.blocks[*block].insts.iter();
            // The callee may end lanes.
            if insts.any(|inst| self.function.insts[*inst].opcode() == Some(Opcode::Call)) {
                self.partial.insert(*block);
                self.partial.union_with(&paths.reachable(*block));
            }
        }
        while std::mem::replace(&mut self.changed, false) {
            self.round();
            if !self.branches(&paths) {
                return false;
            }
        }
        true
    }

    fn round(&mut self) {
        self.obligations.clear();
        for index in 0..self.cfg.order().len() {
            let block = self.cfg.order()[index];
            for (position, param) in self.function.blocks[block].params.iter().enumerate() {
                if let Some(shape) = self.merged(block, position) {
                    self.lower(*param, shape);
                }
            }
            for inst in &self.function.blocks[block].insts {
                let site = InstructionSite {
                    inst: *inst,
                    block,
                    whole: !self.partial.contains(block),
                    shape: &|reg| self.read(reg, block),
                    whole_at: &|reg| self.plan.home(reg).is_some_and(|home| !self.partial.contains(home)),
                    assumed: RefCell::new(vec![]),
                };
                let Some(results) = self.rules.results(&site) else { continue };
                let assumed = site.assumed.into_inner();
                self.obligations.extend(assumed);
                for (reg, shape) in self.function.insts[*inst].writes().into_iter().zip(results) {
                    self.lower(reg, shape);
                }
            }
        }
    }

    /// Returns the merged shape of the arguments of a block parameter.
    fn merged(&self, block: Block, position: usize) -> Option<Shape> {
        let sources = self.cfg.predecessors(block).iter();
        let mut args: Vec<Reg> = sources
            .flat_map(|from| &self.function.blocks[*from].edges)
            .filter(|edge| edge.target == block)
            .map(|edge| edge.args[position])
            .collect();
        args.sort_unstable();
        args.dedup();
        // An argument counts as read at the target of the edge: it may come out of a loop.
        if let [only] = args[..] {
            return self.read(only, block);
        }
        let shapes = args.into_iter().filter_map(|arg| self.read(arg, block));
        let met = shapes.reduce(|a, b| a.meet(&b))?;
        Some(met.reduced(self.joined[block].unwrap_or(LANE_BITS)))
    }

    fn read(&self, reg: Reg, block: Block) -> Option<Shape> {
        let shape = self.shapes[reg.index()]?;
        let Some(home) = self.plan.home(reg) else { return Some(shape) };
        let left = self.loops.around(home).take_while(|id| !self.loops.contains(*id, block));
        let group = left.filter_map(|id| self.left.get(&id)).min();
        Some(shape.reduced(group.copied().unwrap_or(LANE_BITS)))
    }

    fn lower(&mut self, reg: Reg, shape: Shape) {
        let old = &mut self.shapes[reg.index()];
        let new = match old {
            Some(old) => old.meet(&shape),
            None => shape,
        };
        self.changed |= *old != Some(new);
        *old = Some(new);
    }

    /// Finds newly divergent branches and their consequences.
    fn branches(&mut self, paths: &Paths<'_>) -> bool {
        for block in self.cfg.order() {
            let Some(decide) = branch(self.function, *block) else { continue };
            let groups = decide.iter().filter_map(|reg| self.read(*reg, *block)).map(|shape| shape.uniform_group());
            let group = groups.min().unwrap_or(LANE_BITS);
            if self.together[*block].replace(group) == Some(group) || group == LANE_BITS {
                continue;
            }
            self.changed = true;
            if !self.loops.is_reducible() {
                return false;
            }
            if self.cfg.successors(*block).len() < 2 {
                self.partial.union_with(&paths.reachable(*block));
                continue;
            }
            let apart = self.apart.entry(*block).or_insert_with(|| paths.apart(*block));
            for join in apart.joins.iter() {
                let held = self.joined[join].get_or_insert(LANE_BITS);
                *held = (*held).min(group);
            }
            for id in &apart.loops {
                let held = self.left.entry(*id).or_insert(LANE_BITS);
                *held = (*held).min(group);
            }
            self.partial.union_with(&apart.partial);
        }
        true
    }

    fn finish(self) -> Shapes {
        let unknown = |index: usize| Shape::varying(self.rules.bits(Reg::new(index)));
        let shapes: Vec<Shape> =
            self.shapes.iter().enumerate().map(|(index, shape)| shape.unwrap_or_else(|| unknown(index))).collect();
        let mut home = SecondaryMap::new();
        for reg in self.function.regs.keys() {
            home[reg] = self.plan.home(reg);
        }
        let mut around = SecondaryMap::new();
        for block in self.cfg.order() {
            let group = |id: Loop| (id, self.left.get(&id).copied().unwrap_or(LANE_BITS));
            around[*block] = self.loops.around(*block).map(group).collect();
        }
        let mut found = Shapes {
            everywhere: shapes.clone(),
            shapes,
            home,
            around,
            together: self.together,
            divergent_loops: self.left,
            partial: self.partial,
            obligations: self.obligations,
        };
        for block in self.cfg.order() {
            let data = &self.function.blocks[*block];
            let inside = data.insts.iter().flat_map(|inst| self.function.insts[*inst].reads()).map(|reg| (reg, *block));
            let leaving = data.edges.iter().flat_map(|edge| edge.args.iter().map(|arg| (*arg, edge.target)));
            for (reg, place) in inside.chain(leaving) {
                let shape = found.shape_in(reg, place);
                let held = &mut found.everywhere[reg.index()];
                *held = held.meet(&shape);
            }
        }
        found
    }
}
