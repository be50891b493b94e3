//! Loops in which a lane may wait for another lane of its warp.
//!
//! Lanes that have left a loop wait for those still in it. If these wait for an action of the others after
//! the loop, no lane makes progress: a spin lock. Such a loop is divergent, and its exit condition depends on
//! an access to memory that others change, at an address that is equal in each iteration:
//! - a volatile, relaxed or acquire load;
//! - an atomic exchange, or one that may leave the value unchanged (`and`, `or`, `xor`, `min`, `max`, `add`
//!   of zero);
//! - `cas`, if its comparison value is equal in each iteration;
//! - a poll of an mbarrier's phase;
//! - a plain load, if nothing else ends the loop: see [`Waiting`].
//!
//! A `cas` that compares with a value read in the loop retries because another lane has succeeded, so some
//! lane always makes progress. A lock that is released in the loop is allowed for that reason too.
//!
//! Lanes that poll the same phase of the same mbarrier get the same answer and leave together. But they must
//! not leave other lanes behind that might complete the phase: see [`refuse_asking_apart`].
//!
//! If blocks wait only for earlier blocks, no lane waits for a lane of its warp: see [`WaitAddresses`].
//!
//! Values that went through the thread's memory are not tracked: they may come from any such access of the
//! loop, and a called function may contain one.

use super::levels::Levels;
use super::places::WaitAddresses;
use super::plan::LevelPlan;
use super::polls::{asks, waits};
use super::reason::Reason;
use super::sides::apart_from;
use crate::purity::{is_plain_load, is_speculable};
use broadloom_analysis::waiting::is_zero;
use broadloom_analysis::{Cfg, Dominators, Loops, Waiting};
use broadloom_ptx::{
    Address, Base, Block, Callee, Func, Function, Inst, InstData, Modifier, Module, Opcode, Operand, Reg, Space,
};
use cranelift_entity::SecondaryMap;
use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Rejects a function in which lanes may wait for each other in a loop.
pub(super) fn refuse_spinning(
    module: &Module,
    function: &Function,
    cfg: &Cfg,
    dominators: &Dominators,
    levels: &Levels,
    plans: &[LevelPlan],
    shape: Option<[u32; 3]>,
) -> Result<(), Reason> {
    let is_global_load = |inst: &Inst| {
        let data = &function.insts[*inst];
        data.opcode() == Some(Opcode::Ld) && data.space() == Space::Global
    };
    let upwards = LazyCell::new(|| WaitAddresses::new(function, cfg, dominators, shape).are_awaited_upwards());
    let waiting = LazyCell::new(|| Waiting::new(module, function, cfg, dominators, &Loops::new(cfg, dominators)));
    for index in (1..levels.levels.len()).filter(|index| plans[*index].divergent) {
        let inside = |block: &Block| levels.is_inside(levels.innermost(*block), index);
        let blocks: Vec<Block> = cfg.order().iter().copied().filter(inside).collect();
        let insts = || blocks.iter().flat_map(|block| &function.blocks[*block].insts);
        let any = |what: &dyn Fn(&InstData) -> bool| insts().any(|inst| what(&function.insts[*inst]));
        let strong = any(&waits) || any(&|data| data.callee().is_some());
        let mut spinning = if strong { Loop::new(module, function, cfg, dominators, blocks.clone()).spinning() } else { vec![] };
        if any(&is_plain_load) {
            let header = Some(levels.levels[index].header);
            let is_plain = |inst: &Inst| is_plain_load(&function.insts[*inst]);
            spinning.extend(waiting.waits().iter().filter(|wait| wait.header == header).map(|wait| wait.inst).filter(is_plain));
        }
        let Some(inst) = spinning.first().copied() else { continue };
        if !spinning.iter().all(is_global_load) || !*upwards {
            let text = format!("lanes may wait for each other in a loop around `{}`", function.insts[inst].mnemonic_text());
            return Err(Reason::new(text, Some(inst)));
        }
    }
    Ok(())
}

/// Rejects a function in which some lanes of a warp may poll an mbarrier in a loop while others have yet to
/// do what they wait for.
pub(super) fn refuse_asking_apart(
    function: &Function,
    cfg: &Cfg,
    levels: &Levels,
    is_divergent: &dyn Fn(Block) -> bool,
) -> Result<(), Reason> {
    let in_loops = cfg.order().iter().filter(|block| levels.innermost(**block) != 0);
    let asking: Vec<(Block, Inst)> = in_loops
        .flat_map(|block| function.blocks[*block].insts.iter().map(|inst| (*block, *inst)))
        .filter(|(_, inst)| asks(&function.insts[*inst]))
        .collect();
    if asking.is_empty() {
        return Ok(());
    }
    let acts = |data: &InstData| !is_speculable(data) && !is_plain_load(data) && !data.is_control();
    let apart = apart_from(function, cfg, is_divergent, &acts);
    match asking.iter().find(|(block, _)| apart.contains_key(block)) {
        Some((_, inst)) => {
            let text = format!("lanes may come apart to `{}` in a loop", function.insts[*inst].mnemonic_text());
            Err(Reason::new(text, Some(*inst)))
        }
        None => Ok(()),
    }
}

/// Returns whether a function, or one that it calls, contains an access that waits. Functions without a body
/// are provided by the device and never wait.
fn function_waits(module: &Module, func: Func, seen: &mut HashSet<Func>) -> bool {
    seen.insert(func)
        && module.functions[func].instructions().any(|(_, data)| match data.callee() {
            Some(Callee::Direct(func)) => function_waits(module, func, seen),
            Some(Callee::Indirect { .. }) => true,
            None => waits(data),
        })
}

struct Loop<'f> {
    module: &'f Module,
    function: &'f Function,
    cfg: &'f Cfg,
    dominators: &'f Dominators,
    blocks: Vec<Block>,
    inside: BTreeSet<Block>,
    makers: SecondaryMap<Reg, Option<Inst>>,
    homes: HashMap<Reg, Block>,
}

impl<'f> Loop<'f> {
    fn new(module: &'f Module, function: &'f Function, cfg: &'f Cfg, dominators: &'f Dominators, blocks: Vec<Block>) -> Self {
        let mut makers = SecondaryMap::new();
        let mut homes = HashMap::new();
        for block in &blocks {
            for inst in &function.blocks[*block].insts {
                function.insts[*inst].writes().into_iter().for_each(|reg| makers[reg] = Some(*inst));
            }
            homes.extend(function.blocks[*block].params.iter().map(|reg| (*reg, *block)));
        }
        let inside = blocks.iter().copied().collect();
        Loop { module, function, cfg, dominators, blocks, inside, makers, homes }
    }

    /// Returns the accesses that a lane may wait at.
    fn spinning(&self) -> Vec<Inst> {
        let (deciding, through_memory) = self.deciding();
        if through_memory && let Some(call) = self.waiting_call() {
            return vec![call];
        }
        let compared = self.compared(&deciding);
        let spins = |inst: &Inst| {
            let data = &self.function.insts[*inst];
            let ignored = data.writes().iter().all(|reg| compared.contains(reg));
            data.address().is_some_and(|address| self.is_same_place(address))
                && !ignored
                && self.may_wait(data)
                && !self.is_given_back(*inst)
        };
        deciding.into_iter().filter(spins).collect()
    }

    /// Returns the accesses that decide whether a lane leaves, and whether the decision went through memory.
    fn deciding(&self) -> (Vec<Inst>, bool) {
        let leaves = |block: &&Block| self.cfg.successors(**block).iter().any(|to| !self.inside.contains(to));
        let mut work: Vec<Reg> = self.blocks.iter().filter(leaves).filter_map(|block| self.condition(*block)).collect();
        let mut seen: HashSet<Reg> = HashSet::new();
        let mut found = vec![];
        let mut through_memory = false;
        while let Some(reg) = work.pop() {
            if !seen.insert(reg) {
                continue;
            }
            if let Some(inst) = self.makers[reg] {
                let data = &self.function.insts[inst];
                if waits(data) {
                    found.push(inst);
                    continue;
                }
                let own = match data.space() {
                    Space::Local | Space::Param | Space::Generic => true,
                    Space::Reg | Space::Const | Space::Global | Space::Shared | Space::Tex => false,
                };
                through_memory |= data.callee().is_some() || (own && is_plain_load(data));
                work.extend(data.reads());
            } else if let Some(block) = self.homes.get(&reg) {
                work.extend(self.passed(*block, reg));
                work.extend(self.choices(*block));
            }
        }
        if through_memory {
            found = self.insts().filter(|inst| waits(&self.function.insts[*inst])).collect();
        }
        (found, through_memory)
    }

    fn insts(&self) -> impl Iterator<Item = Inst> + '_ {
        self.blocks.iter().flat_map(|block| &self.function.blocks[*block].insts).copied()
    }

    /// Returns a call of a function that may wait.
    fn waiting_call(&self) -> Option<Inst> {
        self.insts().find(|inst| match self.function.insts[*inst].callee() {
            Some(Callee::Direct(func)) => function_waits(self.module, func, &mut HashSet::new()),
            Some(Callee::Indirect { .. }) => true,
            None => false,
        })
    }

    fn condition(&self, block: Block) -> Option<Reg> {
        let last = self.function.blocks[block].insts.last()?;
        self.function.insts[*last].guard.map(|guard| guard.reg)
    }

    /// Returns the arguments of a parameter from within the loop.
    fn passed(&self, block: Block, param: Reg) -> Vec<Reg> {
        let index = self.function.blocks[block].params.iter().position(|reg| *reg == param);
        let edges = self.blocks.iter().flat_map(|from| &self.function.blocks[*from].edges).filter(|edge| edge.target == block);
        edges.filter_map(|edge| edge.args.get(index?).copied()).collect()
    }

    /// Returns the conditions that decide by which path control reaches a block: those between it and its
    /// dominator.
    fn choices(&self, block: Block) -> Vec<Reg> {
        let Some(above) = self.dominators.immediate(block).filter(|above| self.inside.contains(above)) else { return vec![] };
        let between =
            |from: &&Block| self.dominators.dominates(above, **from) && self.cfg.position(**from) < self.cfg.position(block);
        self.blocks.iter().filter(between).filter_map(|from| self.condition(*from)).collect()
    }

    /// Returns the comparison values of retries. They are read in the loop and wait for nothing.
    fn compared(&self, deciding: &[Inst]) -> HashSet<Reg> {
        let tries = deciding.iter().map(|inst| &self.function.insts[*inst]).filter(|data| data.has(Modifier::Cas));
        let operands = tries.filter_map(|data| data.operands.get(2));
        let mut work: Vec<Reg> =
            operands.filter_map(|operand| if let Operand::Reg(reg) = operand { Some(*reg) } else { None }).collect();
        let mut found = HashSet::new();
        while let Some(reg) = work.pop() {
            if !found.insert(reg) {
                continue;
            }
            if let Some(data) = self.makers[reg].map(|inst| &self.function.insts[inst])
                && is_speculable(data)
            {
                work.extend(data.reads());
            }
            if let Some(block) = self.homes.get(&reg) {
                work.extend(self.passed(*block, reg));
            }
        }
        found
    }

    fn is_same_place(&self, address: Address) -> bool {
        match address.base {
            Base::Reg(reg) => self.is_same(reg, &mut HashSet::new()),
            Base::Symbol(_) | Base::Absolute => true,
        }
    }

    /// Returns whether a register is equal in each iteration, as far as can be derived.
    fn is_same(&self, reg: Reg, seen: &mut HashSet<Reg>) -> bool {
        if !seen.insert(reg) {
            return true;
        }
        if let Some(inst) = self.makers[reg] {
            let data = &self.function.insts[inst];
            // A value loaded from one address may be equal each time, such as a pointer to the lock.
            let steady = is_speculable(data) || is_plain_load(data);
            return steady && data.reads().into_iter().all(|reg| self.is_same(reg, seen));
        }
        match self.homes.get(&reg) {
            None => true,
            Some(block) => self
                .passed(*block, reg)
                .into_iter()
                .all(|arg| arg == reg || self.is_same(arg, &mut seen.clone()) && self.is_outside(arg)),
        }
    }

    fn is_outside(&self, reg: Reg) -> bool {
        self.makers[reg].is_none() && !self.homes.contains_key(&reg)
    }

    /// Returns whether an access may read the same value repeatedly until another thread changes it.
    fn may_wait(&self, data: &InstData) -> bool {
        if data.opcode() == Some(Opcode::Ld) || asks(data) {
            return true;
        }
        let operand_is_same = |index: usize| match data.operands.get(index) {
            Some(Operand::Reg(reg)) => self.is_same(*reg, &mut HashSet::new()),
            _ => true,
        };
        if data.has(Modifier::Cas) {
            return operand_is_same(2);
        }
        if data.has(Modifier::Add) {
            return data.operands.get(2).is_some_and(is_zero);
        }
        !(data.has(Modifier::Inc) || data.has(Modifier::Dec))
    }

    /// Returns whether another instruction of the loop writes to the same address: the lock is released in
    /// the same iteration.
    fn is_given_back(&self, taken: Inst) -> bool {
        if asks(&self.function.insts[taken]) {
            return false;
        }
        let place = self.function.insts[taken].address();
        self.insts().any(|inst| {
            let data = &self.function.insts[inst];
            let writes = data.is_atomic() || data.is_store();
            inst != taken && writes && data.address() == place
        })
    }
}
