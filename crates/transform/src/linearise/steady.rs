//! Values that are equal in all lanes, including those that are masked off.
//!
//! A uniform branch inside masked code is uniform among the lanes that run it. Masked-off lanes execute the
//! same instructions, except loads and other guarded ones. A value is *steady* if that makes no difference:
//! it is computed from constants and kernel parameters, and at joins all lanes arrive together. A branch on a
//! steady value needs no vote. Memory that is written does not count as steady even at a steady address:
//! masked-off lanes may run ahead of a store.
//!
//! The analysis starts from the optimistic assumption, so a loop counter is steady if nothing contradicts it.

use super::levels::{Kind, Level, Levels, Node};
use super::plan::{LevelPlan, MaskedCode, Plan, left};
use crate::purity::{is_plain_load, is_pure};
use broadloom_analysis::Cfg;
use broadloom_ptx::{Base, Block, Function, Inst, InstData, Modifier, Operand, Param, Reg, Space, Symbol};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, HashSet};

/// Steady values of a function.
pub(super) struct SteadyValues {
    loads: HashSet<Inst>,
    guards: HashSet<(Inst, usize)>,
}

impl SteadyValues {
    /// Returns whether an instruction is a load that may run in all lanes.
    pub(super) fn is_load(&self, inst: Inst) -> bool {
        self.loads.contains(&inst)
    }

    /// Returns whether the guard of an instruction of a level is steady.
    pub(super) fn guard(&self, inst: Option<&Inst>, level: usize) -> bool {
        inst.is_some_and(|inst| self.guards.contains(&(*inst, level)))
    }

    pub(super) fn new(
        function: &Function,
        cfg: &Cfg,
        levels: &Levels,
        plans: &[LevelPlan],
        homes: &SecondaryMap<Reg, usize>,
    ) -> SteadyValues {
        let mut finder = Finder { function, levels, plans, homes, regs: SecondaryMap::with_default(true) };
        let blended = blended_blocks(levels, plans);
        for param in &function.params {
            if let Param::Reg(reg) = param {
                finder.regs[*reg] = false;
            }
        }
        for block in &blended {
            function.blocks[*block].params.iter().for_each(|param| finder.regs[*param] = false);
        }
        while finder.round(cfg) {}
        let mut loads = HashSet::new();
        let mut guards = HashSet::new();
        for block in cfg.order() {
            let level = levels.innermost(*block);
            for inst in &function.blocks[*block].insts {
                let data = &function.insts[*inst];
                if finder.is_steady_load(data, level) {
                    loads.insert(*inst);
                }
                if data.guard.is_some_and(|guard| finder.is_steady(guard.reg, level)) {
                    guards.insert((*inst, level));
                }
            }
        }
        SteadyValues { loads, guards }
    }
}

struct Finder<'a> {
    function: &'a Function,
    levels: &'a Levels,
    plans: &'a [LevelPlan],
    homes: &'a SecondaryMap<Reg, usize>,
    regs: SecondaryMap<Reg, bool>,
}

impl Finder<'_> {
    /// Returns whether a register is steady for a reader in a level. After a divergent loop, lanes hold the
    /// value they left with.
    fn is_steady(&self, reg: Reg, level: usize) -> bool {
        self.regs[reg] && left(self.levels, self.plans, self.homes[reg], level).is_none()
    }

    fn round(&mut self, cfg: &Cfg) -> bool {
        let mut changed = false;
        for block in cfg.order() {
            let level = self.levels.innermost(*block);
            let data = &self.function.blocks[*block];
            for inst in &data.insts {
                let data = &self.function.insts[*inst];
                if !self.gives_steady(data, level) {
                    for reg in data.writes() {
                        changed |= std::mem::replace(&mut self.regs[reg], false);
                    }
                }
            }
            for edge in &data.edges {
                for (param, arg) in self.function.blocks[edge.target].params.iter().zip(&edge.args) {
                    if !self.is_steady(*arg, level) {
                        changed |= std::mem::replace(&mut self.regs[*param], false);
                    }
                }
            }
        }
        changed
    }

    fn gives_steady(&self, data: &InstData, level: usize) -> bool {
        let steady = is_pure(data) && data.operands.iter().all(is_steady_operand);
        (steady && data.reads().into_iter().all(|reg| self.is_steady(reg, level)))
            || (self.is_steady_load(data, level) && is_constant_load(data))
    }

    /// Returns whether a load is steady. Memory of a thread differs between lanes at the same address, and a
    /// generic address may point there.
    fn is_steady_load(&self, data: &InstData, level: usize) -> bool {
        let shared = match data.space() {
            Space::Global | Space::Shared | Space::Const => true,
            Space::Param => data.operands.iter().all(|operand| self.is_kernel_param(operand)),
            Space::Generic | Space::Reg | Space::Local | Space::Tex => false,
        };
        shared && is_plain_load(data) && data.reads().into_iter().all(|reg| self.is_steady(reg, level))
    }

    fn is_kernel_param(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Memory(address) => match address.base {
                Base::Symbol(Symbol::Local(var)) => self.function.is_kernel && self.function.params.contains(&Param::Memory(var)),
                Base::Symbol(Symbol::Var(_) | Symbol::Func(_)) | Base::Reg(_) | Base::Absolute => false,
            },
            _ => true,
        }
    }
}

/// Returns whether the loaded memory is never written.
fn is_constant_load(data: &InstData) -> bool {
    match data.space() {
        Space::Const | Space::Param => true,
        Space::Global => data.has(Modifier::Nc),
        Space::Generic | Space::Reg | Space::Shared | Space::Local | Space::Tex => false,
    }
}

/// Returns whether an operand that is not a register is equal in all lanes.
fn is_steady_operand(operand: &Operand) -> bool {
    match operand {
        Operand::Special(special) => special.is_same_in_block(),
        Operand::Vector(list) => list.iter().all(is_steady_operand),
        // The address of a variable in a window is equal in each thread, whatever its contents.
        Operand::Symbol(..) | Operand::Reg(_) | Operand::Not(_) | Operand::Part { .. } | Operand::Imm(_) => true,
        Operand::Sink | Operand::Absent => true,
        Operand::Memory(_) | Operand::Texture(_) | Operand::Label(_) | Operand::Targets(_) => false,
        Operand::Pair(_) | Operand::Call(_) => false,
    }
}

/// Returns the blocks whose parameters are selected by masks.
fn blended_blocks(levels: &Levels, plans: &[LevelPlan]) -> HashSet<Block> {
    let mut blended = HashSet::new();
    for (index, plan) in plans.iter().enumerate() {
        let level = &levels.levels[index];
        let target = |node: Node| match level.kinds[node] {
            Kind::Block(block) | Kind::Exit(block) => Some(block),
            Kind::Loop(inner) => Some(levels.levels[inner].header),
            Kind::Back => Some(level.header),
            Kind::End => None,
        };
        in_plan(level, &plan.plan, &mut |node| blended.extend(target(node)));
    }
    blended
}

fn in_plan(level: &Level, plan: &Plan, blend: &mut dyn FnMut(Node)) {
    for step in &plan.steps {
        if let Some(masked) = &step.masked {
            in_masked(level, step.node, masked, blend);
        }
    }
}

fn in_masked(level: &Level, head: Node, masked: &MaskedCode, blend: &mut dyn FnMut(Node)) {
    // A node has one value for its parameters if a single edge leads there. Two edges to one node count
    // twice.
    let mut ways: BTreeMap<Node, usize> = BTreeMap::new();
    let mut leave = |node: Node| {
        let targets = &level.successors[node];
        targets.iter().for_each(|to| *ways.entry(*to).or_default() += if targets.len() == 1 { 2 } else { 1 });
    };
    leave(head);
    masked.parts.iter().filter(|part| part.inner.is_none()).for_each(|part| leave(part.entry));
    for part in &masked.parts {
        if let Some(plan) = &part.inner {
            in_plan(level, plan, blend);
            part.stop.iter().for_each(|stop| *ways.entry(*stop).or_default() += 1);
        }
    }
    for (node, count) in ways {
        if count > 1 || matches!(level.kinds[node], Kind::Exit(_)) {
            blend(node);
        }
    }
}
