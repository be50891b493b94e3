//! Checks of SSA form: edges agree with the code, each register has one definition, and each use is dominated
//! by it.
//!
//! Dominance is computed with sets of blocks, following the definition: a block is dominated by itself and by
//! the common dominators of its predecessors. Passes use a different algorithm, so this check is independent.

use super::{BodyChecker, codes};
use crate::ids::{Block, Inst, Reg};
use crate::module::{BodyForm, Param};
use crate::types::Type;
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::{HashSet, VecDeque};

/// Definition of a register.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Definition {
    /// At the head of a block.
    Head(Block),
    /// By the instruction at this position of a block.
    At(Block, usize),
}

impl BodyChecker<'_, '_> {
    /// Checks the form that the function claims.
    pub(super) fn body_form(&mut self) {
        match self.function.form {
            BodyForm::Registers => {
                let mut blocks = self.function.blocks.values();
                if blocks.any(|block| !block.params.is_empty() || !block.edges.is_empty()) {
                    self.wrong_form("has parameters or edges of blocks, which only SSA form has".to_owned());
                }
            }
            BodyForm::Ssa => {
                if self.edges() {
                    self.definitions();
                }
            }
        }
    }

    fn wrong_form(&mut self, what: String) {
        let message = format!("`{}` {what}", self.function.name);
        self.checker.report(codes::BAD_SSA, message, self.function.span, "");
    }

    /// Checks that edges agree with the last instruction of their block, and arguments with parameters.
    fn edges(&mut self) -> bool {
        let function = self.function;
        let placed: HashSet<Block> = function.layout.iter().copied().collect();
        let mut right = true;
        let mut wrong = |body: &mut Self, what: String| {
            body.wrong_form(what);
            right = false;
        };
        for block in &function.layout {
            let data = &function.blocks[*block];
            let mut targets = function.jump_targets(*block);
            let goes_on = data.insts.last().is_none_or(|last| !function.insts[*last].is_terminator());
            if data.edges.len() != targets.len() + usize::from(goes_on) {
                wrong(self, format!("has {} edges behind {block}, but its code says otherwise", data.edges.len()));
                continue;
            }
            targets.extend(data.edges.last().filter(|_| goes_on).map(|edge| edge.target));
            for (edge, target) in data.edges.iter().zip(targets) {
                let params = function.blocks.get(edge.target).map_or(&[][..], |target| &target.params);
                let types = |regs: &[Reg]| regs.iter().map(|reg| function.regs[*reg].ty).collect::<Vec<Type>>();
                if !placed.contains(&edge.target) || edge.target != target {
                    wrong(self, format!("has an edge from {block} to {}, where its code does not go", edge.target));
                } else if types(&edge.args) != types(params) {
                    wrong(self, format!("passes {block}'s values to {target}, whose parameters are others"));
                }
            }
        }
        if function.entry().is_some_and(|entry| !function.blocks[entry].params.is_empty()) {
            wrong(self, "has parameters of its first block".to_owned());
        }
        right
    }

    fn definitions(&mut self) {
        let function = self.function;
        let Some(entry) = function.entry() else { return };
        let results: HashSet<Reg> = register_params(&function.results).collect();
        let mut definition: SecondaryMap<Reg, Option<Definition>> = SecondaryMap::new();
        let mut twice = vec![];
        let mut define = |reg: Reg, place: Definition| {
            if !results.contains(&reg) && definition[reg].replace(place).is_some() {
                twice.push(reg);
            }
        };
        register_params(&function.params).for_each(|reg| define(reg, Definition::Head(entry)));
        for block in &function.layout {
            let data = &function.blocks[*block];
            data.params.iter().for_each(|reg| define(*reg, Definition::Head(*block)));
            for (index, inst) in data.insts.iter().enumerate() {
                function.insts[*inst].writes().into_iter().for_each(|reg| define(reg, Definition::At(*block, index)));
            }
        }
        for reg in twice {
            self.wrong_form(format!("writes `{}` twice", function.regs[reg].name));
        }
        let dominators = self.dominators(entry);
        for block in function.layout.iter().filter(|block| dominators[**block].is_some()) {
            let reaches = |reg: Reg, index: usize| match definition[reg] {
                None => false,
                Some(Definition::Head(place)) => dominators[*block].as_ref().is_some_and(|set| set.contains(&place)),
                Some(Definition::At(place, at)) if place == *block => at < index,
                Some(Definition::At(place, _)) => dominators[*block].as_ref().is_some_and(|set| set.contains(&place)),
            };
            let data = &function.blocks[*block];
            for (index, inst) in data.insts.iter().enumerate() {
                if let Some(reg) = function.insts[*inst].reads().into_iter().find(|reg| !reaches(*reg, index)) {
                    self.unreached(*inst, reg);
                }
            }
            let args = data.edges.iter().flat_map(|edge| &edge.args);
            if let Some(reg) = args.into_iter().find(|reg| !reaches(**reg, data.insts.len())) {
                self.wrong_form(format!("passes `{}` on from {block}, where it has no value", function.regs[*reg].name));
            }
        }
    }

    fn unreached(&mut self, inst: Inst, reg: Reg) {
        let message = format!("`{}` is read where it has no value", self.function.regs[reg].name);
        self.report(inst, codes::BAD_SSA, message, "its definition does not dominate this");
    }

    /// Returns the dominators of each block; `None` for unreachable blocks.
    fn dominators(&self, entry: Block) -> SecondaryMap<Block, Option<BlockSet>> {
        let mut dominators: SecondaryMap<Block, Option<BlockSet>> = SecondaryMap::new();
        let words = self.function.blocks.len().div_ceil(64);
        let mut first = BlockSet(vec![0; words]);
        first.insert(entry);
        dominators[entry] = Some(first);
        let mut work = VecDeque::from([entry]);
        while let Some(block) = work.pop_front() {
            let Some(mine) = dominators[block].clone() else { continue };
            for edge in &self.function.blocks[block].edges {
                let target = edge.target;
                let changed = match &mut dominators[target] {
                    Some(old) => old.keep(&mine, target),
                    none => {
                        let mut set = mine.clone();
                        set.insert(target);
                        *none = Some(set);
                        true
                    }
                };
                if changed {
                    work.push_back(target);
                }
            }
        }
        dominators
    }
}

/// Set of blocks, one bit each.
#[derive(Clone, Debug)]
struct BlockSet(Vec<u64>);

impl BlockSet {
    fn contains(&self, block: &Block) -> bool {
        self.0[block.index() / 64] >> (block.index() % 64) & 1 == 1
    }

    fn insert(&mut self, block: Block) {
        self.0[block.index() / 64] |= 1 << (block.index() % 64);
    }

    /// Intersects with another set, but keeps one block. Returns true if a block was removed.
    fn keep(&mut self, other: &BlockSet, block: Block) -> bool {
        let mut lost = false;
        for (index, (word, kept)) in self.0.iter_mut().zip(&other.0).enumerate() {
            let own = if index == block.index() / 64 { 1 << (block.index() % 64) } else { 0 };
            let next = *word & (kept | own);
            lost |= next != *word;
            *word = next;
        }
        lost
    }
}

fn register_params(params: &[Param]) -> impl Iterator<Item = Reg> {
    params.iter().filter_map(|param| match param {
        Param::Reg(reg) => Some(*reg),
        Param::Memory(_) => None,
    })
}
