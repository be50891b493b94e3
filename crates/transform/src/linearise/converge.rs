//! Convergence of lanes at barriers and warp operations.
//!
//! A barrier waits for all threads of the block that have not exited, a warp operation for the lanes in its
//! member mask. When a warp runs in lockstep, all of its lanes reach a barrier at once, so none of them may
//! have another barrier ahead elsewhere.
//!
//! Only blocks from which a barrier or warp operation can be reached count. Lanes that go to another block
//! have none ahead and do not matter (`if (i >= n) return;` before a barrier). In this graph, lanes are apart
//! between a divergent branch and the block where its sides meet again.
//!
//! A warp operation there is valid in three cases. Its member mask was computed there, by `activemask`,
//! `vote.ballot` or `match`. Or the thread indices determine which lanes are there, and those are named
//! ([`super::arriving_lanes`]). Or lanes that reach a loop together name all lanes in its first iteration, and in
//! each later one the lanes found in the iteration before ([`Rounds`]).

use super::arriving_lanes::ArrivingLanes;
use super::definitions::Definitions;
use super::guard::is_collective;
use super::polls::asks;
use super::reason::Reason;
use super::sides::{Side, apart_from};
use broadloom_analysis::{Cfg, Dominators, Loops};
use broadloom_ptx::{Block, Class, Effects, Function, Inst, InstData, Opcode, Operand};
use std::collections::BTreeMap;

/// Barriers and warp operations that not all required lanes reach together.
#[derive(Clone, Debug, Default)]
pub struct Convergence {
    /// One entry for each instruction that lanes may reach apart.
    pub reasons: Vec<Reason>,
}

impl Convergence {
    /// Returns whether all lanes come together.
    pub fn holds(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Checks that all required lanes reach each barrier and warp operation of a function in SSA form together,
/// if they diverge at the divergent branches.
///
/// `shape` is that of the thread blocks, if it is known.
pub fn barriers_are_convergent(
    function: &Function,
    cfg: &Cfg,
    is_divergent: &dyn Fn(Block) -> bool,
    shape: Option<[u32; 3]>,
) -> Convergence {
    let mut reasons = vec![];
    let apart = apart_from(function, cfg, is_divergent, &gathers);
    let definitions = Definitions::new(function, cfg);
    let arriving_lanes = ArrivingLanes::new(&definitions, shape);
    let rounds = Rounds::new(cfg, &definitions);
    for (block, sides) in in_order(cfg, &apart) {
        for inst in &function.blocks[block].insts {
            let data = &function.insts[*inst];
            let is_counted = || rounds.are_counted(block, data, sides);
            if let Some(text) = objection_at(data, &definitions, arriving_lanes.as_ref(), sides).filter(|_| !is_counted()) {
                reasons.push(Reason::new(text, Some(*inst)));
            }
        }
    }
    Convergence { reasons }
}

/// Returns the blocks that lanes reach apart, in the order of the graph.
fn in_order<'a>(cfg: &'a Cfg, apart: &'a BTreeMap<Block, Vec<Side>>) -> impl Iterator<Item = (Block, &'a [Side])> {
    cfg.order().iter().filter_map(|block| Some((*block, apart.get(block)?.as_slice())))
}

/// Returns an instruction, if there is one, that lanes must reach together with others that the function did
/// not compute itself: the caller must provide them. Polls of an mbarrier belong to these, since they may
/// wait for other lanes of the warp.
pub fn meets_others(function: &Function, cfg: &Cfg) -> Option<Inst> {
    let definitions = Definitions::new(function, cfg);
    let insts = cfg.order().iter().flat_map(|block| &function.blocks[*block].insts).copied();
    let meets = |data: &InstData| objection(data, &definitions).is_some() || asks(data);
    insts.into_iter().find(|inst| meets(&function.insts[*inst]))
}

/// Returns an error text for the first instruction that lanes may reach apart from others that must reach it
/// too. `call_meets` tells which calls are of functions that meet others ([`meets_others`]). A called
/// function must reconverge its lanes before they return, since their callers may have to synchronise.
pub fn comes_apart(
    function: &Function,
    cfg: &Cfg,
    is_divergent: &dyn Fn(Block) -> bool,
    call_meets: &dyn Fn(&InstData) -> bool,
    shape: Option<[u32; 3]>,
) -> Option<Reason> {
    let returns = |data: &InstData| !function.is_kernel && data.opcode() == Some(Opcode::Ret);
    let apart = apart_from(function, cfg, is_divergent, &|data| gathers(data) || call_meets(data) || returns(data));
    let definitions = Definitions::new(function, cfg);
    let arriving_lanes = ArrivingLanes::new(&definitions, shape);
    let rounds = Rounds::new(cfg, &definitions);
    let insts_of = |(block, sides)| function.blocks[block].insts.iter().map(move |inst: &Inst| (block, *inst, sides));
    let mut insts = in_order(cfg, &apart).flat_map(insts_of);
    insts.find_map(|(block, inst, sides)| {
        let data = &function.insts[inst];
        let call = || call_meets(data).then(|| "lanes may come apart to a call".to_owned());
        let text =
            objection_at(data, &definitions, arriving_lanes.as_ref(), sides).filter(|_| !rounds.are_counted(block, data, sides));
        text.or_else(call).map(|text| Reason::new(text, Some(inst)))
    })
}

/// Returns an error text for an instruction that lanes with these branch decisions reach.
fn objection_at(
    data: &InstData,
    definitions: &Definitions<'_>,
    arriving_lanes: Option<&ArrivingLanes<'_>>,
    sides: &[Side],
) -> Option<String> {
    let text = objection(data, definitions)?;
    let are_named =
        |arriving_lanes: &ArrivingLanes<'_>| data.members().is_some_and(|members| arriving_lanes.are_named(data, members, sides));
    (is_collective(data) || !arriving_lanes.is_some_and(are_named)).then_some(text)
}

/// Loops in which the lanes are computed anew in every iteration:
/// `do { …; mask = __ballot_sync(mask, more); } while (more);`.
struct Rounds<'f> {
    dominators: Dominators,
    loops: Loops,
    definitions: &'f Definitions<'f>,
}

impl<'f> Rounds<'f> {
    fn new(cfg: &Cfg, definitions: &'f Definitions<'f>) -> Self {
        let dominators = Dominators::new(cfg);
        Rounds { loops: Loops::new(cfg, &dominators), dominators, definitions }
    }

    /// Returns whether lanes diverge only after an instruction of a loop, and its mask holds the lanes found
    /// in the iteration before.
    fn are_counted(&self, block: Block, data: &InstData, sides: &[Side]) -> bool {
        let Some(around) = self.loops.innermost(block).filter(|_| !is_collective(data)) else { return false };
        let Some(Operand::Reg(named)) = data.members().map(|index| &data.operands[index]) else { return false };
        let blocks = &self.definitions.function.blocks;
        let header = self.loops[around].header;
        let Some(index) = blocks[header].params.iter().position(|param| param == named) else { return false };
        let behind = |side: &Side| self.loops.contains(around, side.head) && self.dominators.dominates(block, side.head);
        let back = self.loops[around].latches.iter().flat_map(|latch| &blocks[*latch].edges).filter(|edge| edge.target == header);
        sides.iter().all(behind) && back.into_iter().all(|edge| self.definitions.were_found(edge.args[index]))
    }
}

/// Returns an error text for an instruction that lanes reach apart.
fn objection(data: &InstData, definitions: &Definitions<'_>) -> Option<String> {
    if is_collective(data) {
        return Some(format!("lanes may come apart to `{}`", data.mnemonic_text()));
    }
    let named = match &data.operands[data.members()?] {
        Operand::Reg(reg) => definitions.were_found(*reg),
        _ => false,
    };
    (!named).then(|| format!("`{}` may name lanes that are elsewhere", data.mnemonic_text()))
}

/// Returns whether lanes may have to reach an instruction together with others. [`comes_apart`] handles
/// calls.
fn gathers(data: &InstData) -> bool {
    is_collective(data) || data.members().is_some() || (data.class() == Some(Class::Warp) && data.effects().has(Effects::WARP))
}
