//! Whether those come together who must.
//!
//! A barrier waits for all threads of the block that have not ended, a warp operation for the lanes that it names. When a warp runs in
//! step, all of its lanes come to a barrier at once, so none of them may have another barrier elsewhere before it.
//!
//! Only blocks count from which a barrier or warp operation can be reached: who goes to another block has none before it any more,
//! and is out of the way of those that do (`if (i >= n) return;` before a barrier). In that graph, between a divergent branch and
//! the block where its ways meet again, lanes are apart.
//!
//! There a warp operation is right if it names lanes that were found there: by `activemask`, `vote.ballot` or `match`.

use super::Reason;
use super::guard::{is_collective, members};
use super::spin::asks;
use broadloom_analysis::{Cfg, PostDominators};
use broadloom_ptx::{Block, Class, Effects, Function, Inst, InstData, Modifier, Opcode, Operand, Reg};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Which barriers and warp operations not all come to who must.
#[derive(Clone, Debug, Default)]
pub struct Convergence {
    /// One for each instruction that lanes may come to apart.
    pub reasons: Vec<Reason>,
}

impl Convergence {
    /// Whether all come together.
    pub fn holds(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Whether all lanes that must come to each barrier and warp operation of a function in SSA form together, if they go apart at the
/// branches that are divergent.
pub fn barriers_are_convergent(function: &Function, cfg: &Cfg, is_divergent: &dyn Fn(Block) -> bool) -> Convergence {
    let mut reasons = vec![];
    let apart = apart(function, cfg, is_divergent);
    let definitions = Definitions::new(function, cfg);
    for block in cfg.order().iter().filter(|block| apart.contains(*block)) {
        for inst in &function.blocks[*block].insts {
            let data = &function.insts[*inst];
            if let Some(text) = objection(data, &definitions) {
                reasons.push(Reason::new(text, Some(*inst)));
            }
        }
    }
    Convergence { reasons }
}

/// The instruction of a function, if there is one, to which lanes must come together with others that the function did not look for
/// itself: whoever calls it must bring them. To such belongs what asks an mbarrier, which may wait for others of the warp.
pub fn meets_others(function: &Function, cfg: &Cfg) -> Option<Inst> {
    let definitions = Definitions::new(function, cfg);
    let insts = cfg.order().iter().flat_map(|block| &function.blocks[*block].insts).copied();
    let meets = |data: &InstData| objection(data, &definitions).is_some() || asks(data);
    insts.into_iter().find(|inst| meets(&function.insts[*inst]))
}

/// What is wrong with the first instruction that lanes may come to apart from others that must come too, if some calls are of functions that meet others
/// ([`meets_others`]). A function that is called must bring its lanes together before they return: their callers may have something
/// to meet at.
pub fn comes_apart(
    function: &Function,
    cfg: &Cfg,
    is_divergent: &dyn Fn(Block) -> bool,
    call_meets: &dyn Fn(&InstData) -> bool,
) -> Option<Reason> {
    let returns = |data: &InstData| !function.is_kernel && data.opcode() == Some(Opcode::Ret);
    let apart = apart_from(function, cfg, is_divergent, &|data| gathers(data) || call_meets(data) || returns(data));
    let definitions = Definitions::new(function, cfg);
    let blocks = cfg.order().iter().filter(|block| apart.contains(*block));
    let mut insts = blocks.flat_map(|block| &function.blocks[*block].insts).copied();
    insts.find_map(|inst| {
        let data = &function.insts[inst];
        let call = || call_meets(data).then(|| "lanes may come apart to a call".to_owned());
        objection(data, &definitions).or_else(call).map(|text| Reason::new(text, Some(inst)))
    })
}

/// What is wrong with an instruction to which lanes come apart.
fn objection(data: &InstData, definitions: &Definitions<'_>) -> Option<String> {
    if is_collective(data) {
        return Some(format!("lanes may come apart to `{}`", data.mnemonic_text()));
    }
    let named = match &data.operands[members(data)?] {
        Operand::Reg(reg) => definitions.were_found(*reg),
        _ => false,
    };
    (!named).then(|| format!("`{}` may name lanes that are elsewhere", data.mnemonic_text()))
}

/// Whether somebody may have to come to an instruction together with others. Calls are looked at by [`comes_apart`].
fn gathers(data: &InstData) -> bool {
    is_collective(data) || members(data).is_some() || (data.class() == Some(Class::Warp) && data.effects().has(Effects::WARP))
}

/// The blocks to which lanes may come apart from others that have yet to come.
fn apart(function: &Function, cfg: &Cfg, is_divergent: &dyn Fn(Block) -> bool) -> BTreeSet<Block> {
    apart_from(function, cfg, is_divergent, &gathers)
}

/// The blocks to which lanes may come apart from others that have something of a kind before them.
pub(super) fn apart_from(
    function: &Function,
    cfg: &Cfg,
    is_divergent: &dyn Fn(Block) -> bool,
    counts: &dyn Fn(&InstData) -> bool,
) -> BTreeSet<Block> {
    let holds = |block: &Block| function.blocks[*block].insts.iter().any(|inst| counts(&function.insts[*inst]));
    let mut relevant: HashSet<Block> = HashSet::new();
    let mut work: Vec<Block> = cfg.order().iter().copied().filter(holds).collect();
    while let Some(block) = work.pop() {
        if relevant.insert(block) {
            work.extend(cfg.predecessors(block));
        }
    }
    let mut found = BTreeSet::new();
    if !relevant.contains(&cfg.entry()) {
        return found;
    }
    let mut successors: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in cfg.order().iter().filter(|block| relevant.contains(*block)) {
        successors[*block] = cfg.successors(*block).iter().copied().filter(|to| relevant.contains(to)).collect();
    }
    let graph = Cfg::from_successors(cfg.entry(), successors);
    let joins = PostDominators::new(&graph);
    for head in graph.order() {
        if function.blocks[*head].edges.len() < 2 || !is_divergent(*head) {
            continue;
        }
        let join = joins.immediate(*head);
        let mut seen: HashSet<Block> = HashSet::new();
        let mut work = graph.successors(*head).to_vec();
        while let Some(block) = work.pop() {
            if Some(block) != join && seen.insert(block) {
                found.insert(block);
                work.extend(graph.successors(block));
            }
        }
    }
    found
}

/// Who computes which register.
struct Definitions<'f> {
    function: &'f Function,
    makers: SecondaryMap<Reg, Option<Inst>>,
    /// What is passed for a parameter of a block.
    passed: HashMap<Reg, Vec<Reg>>,
}

impl<'f> Definitions<'f> {
    fn new(function: &'f Function, cfg: &Cfg) -> Self {
        let mut makers = SecondaryMap::new();
        let mut passed: HashMap<Reg, Vec<Reg>> = HashMap::new();
        for block in cfg.order() {
            let data = &function.blocks[*block];
            for inst in &data.insts {
                function.insts[*inst].writes().into_iter().for_each(|reg| makers[reg] = Some(*inst));
            }
            for edge in &data.edges {
                for (param, arg) in function.blocks[edge.target].params.iter().zip(&edge.args) {
                    passed.entry(*param).or_default().push(*arg);
                }
            }
        }
        Definitions { function, makers, passed }
    }

    /// Whether a register holds lanes that were found to be there, or some of them.
    fn were_found(&self, reg: Reg) -> bool {
        self.found(reg, &mut HashSet::new())
    }

    fn found(&self, reg: Reg, seen: &mut HashSet<Reg>) -> bool {
        // Round a loop nothing new is learnt.
        if !seen.insert(reg) {
            return true;
        }
        let Some(inst) = self.makers[reg] else {
            return self.passed.get(&reg).is_some_and(|args| args.iter().all(|arg| self.found(*arg, seen)));
        };
        let data = &self.function.insts[inst];
        let reads = || {
            data.operands.iter().skip(1).filter_map(|operand| match operand {
                Operand::Reg(reg) => Some(*reg),
                _ => None,
            })
        };
        match data.opcode() {
            Some(Opcode::Activemask | Opcode::MatchAnySync | Opcode::MatchAllSync) => true,
            Some(Opcode::VoteSync | Opcode::Vote) => data.has(Modifier::Ballot),
            // Fewer of them.
            Some(Opcode::And) => reads().any(|reg| self.found(reg, seen)),
            Some(Opcode::Mov | Opcode::Cvt) => reads().next().is_some_and(|reg| self.found(reg, seen)),
            Some(Opcode::Selp) => reads().take(2).all(|reg| self.found(reg, seen)) && reads().count() > 2,
            _ => false,
        }
    }
}
