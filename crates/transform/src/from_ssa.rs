//! `from_ssa`: SSA form to legal PTX.
//!
//! **In**: SSA form. **Out**: register form with unique names, labels on all targets, only reachable blocks
//! and only used registers. Keeps every value in its own register. Parameters and edges of blocks become
//! copies and branches.
//!
//! The arguments of an edge are copied in a place that only this edge executes. That is the end of a block
//! without another edge, the start of a block that no other edge leads to, or else a new block. All copies of
//! an edge are parallel, so they are ordered such that nothing is overwritten before it is read. A cycle is
//! broken by one more register. Parameters keep their values between two arrivals at their block, since each
//! is written only on the way to its block.

use crate::blocks::{arrivals, drop_unreachable, retarget};
use crate::compact::compact;
use crate::names::Names;
use crate::write::{Writer, copy};
use broadloom_ptx::{Block, BlockData, BodyForm, Edge, Function, Inst, Module, Operand, Reg, RegData};
use cranelift_entity::SecondaryMap;
use std::collections::HashMap;

/// Name of the pass.
pub const NAME: &str = "from_ssa";

/// Converts a function out of SSA form.
pub fn run(module: &Module, function: &mut Function) {
    if function.form == BodyForm::Registers || function.layout.is_empty() {
        function.form = BodyForm::Registers;
        return;
    }
    drop_unreachable(function);
    let mut leaving = FromSsa { arrivals: arrivals(function), placed: vec![], function };
    leaving.place_copies();
    leaving.jump();
    function.form = BodyForm::Registers;
    compact(function);
    rename(module, function);
}

/// A function on its way from SSA form to registers.
struct FromSsa<'f> {
    function: &'f mut Function,
    arrivals: SecondaryMap<Block, u32>,
    /// New layout.
    placed: Vec<Block>,
}

impl FromSsa<'_> {
    /// Replaces arguments of edges by copies. Afterwards no edge has arguments and no block has parameters.
    fn place_copies(&mut self) {
        // Copies at the start of a block with one incoming edge.
        let mut starts: Vec<(Block, Vec<Inst>)> = vec![];
        // Blocks on jump edges, which are placed at the end.
        let mut aside: Vec<Block> = vec![];
        for block in std::mem::take(&mut self.function.layout) {
            self.placed.push(block);
            for index in 0..self.function.blocks[block].edges.len() {
                let Edge { target, args } = self.function.blocks[block].edges[index].clone();
                let params = self.function.blocks[target].params.clone();
                let copies: Vec<(Reg, Reg)> = params.into_iter().zip(args).filter(|(to, from)| to != from).collect();
                self.function.blocks[block].edges[index].args.clear();
                if copies.is_empty() {
                    continue;
                }
                let insts = sequence(self.function, copies);
                let data = &self.function.blocks[block];
                let last = data.insts.last().copied();
                let guarded = last.is_some_and(|last| {
                    let last = &self.function.insts[last];
                    last.is_control() && last.guard.is_some()
                });
                if data.edges.len() == 1 && !guarded {
                    let jumps = last.is_some_and(|last| self.function.insts[last].is_terminator());
                    let end = data.insts.len() - usize::from(jumps);
                    self.function.blocks[block].insts.splice(end..end, insts);
                } else if self.arrivals[target] == 1 {
                    starts.push((target, insts));
                } else {
                    let between = BlockData { insts, edges: vec![Edge::to(target)], ..BlockData::default() };
                    let between = self.function.blocks.push(between);
                    let goes_on = index + 1 == self.function.blocks[block].edges.len();
                    if goes_on {
                        self.placed.push(between)
                    } else {
                        aside.push(between)
                    }
                    retarget(self.function, block, index, between);
                }
            }
        }
        self.placed.append(&mut aside);
        for (block, mut insts) in starts {
            insts.append(&mut self.function.blocks[block].insts);
            self.function.blocks[block].insts = insts;
        }
        for block in &self.placed {
            self.function.blocks[*block].params.clear();
        }
    }

    /// Makes the continuation of each block explicit: fall-through to the next block, or a branch.
    fn jump(&mut self) {
        let mut layout: Vec<Block> = vec![];
        for (index, block) in self.placed.iter().copied().enumerate() {
            layout.push(block);
            let last = self.function.blocks[block].insts.last().copied();
            let leaves = last.is_some_and(|last| self.function.insts[last].is_terminator());
            let on = self.function.blocks[block].edges.last().map(|edge| edge.target).filter(|_| !leaves);
            self.function.blocks[block].edges.clear();
            let Some(on) = on.filter(|on| self.placed.get(index + 1) != Some(on)) else { continue };
            let controls = last.is_some_and(|last| self.function.insts[last].is_control());
            let mut writer = Writer::new(self.function);
            last.into_iter().for_each(|last| writer.at(last));
            writer.emit("bra", [Operand::Label(on)]);
            let insts = writer.take();
            if controls {
                layout.push(self.function.blocks.push(BlockData { insts, ..BlockData::default() }));
            } else {
                self.function.blocks[block].insts.extend(insts);
            }
        }
        self.function.layout = layout;
    }
}

/// Orders parallel copies as a sequence.
fn sequence(function: &mut Function, mut copies: Vec<(Reg, Reg)>) -> Vec<Inst> {
    let mut insts = vec![];
    let mut write = |function: &mut Function, to: Reg, from: Reg| {
        let ty = function.regs[to].ty;
        insts.push(function.insts.push(copy(ty, to, from)));
    };
    // Number of pending reads of each register.
    let mut readers: HashMap<Reg, usize> = HashMap::new();
    for (_, from) in &copies {
        *readers.entry(*from).or_default() += 1;
    }
    let mut by_target: HashMap<Reg, usize> = copies.iter().enumerate().map(|(index, (to, _))| (*to, index)).collect();
    let mut free: Vec<usize> = (0..copies.len()).filter(|index| !readers.contains_key(&copies[*index].0)).collect();
    let mut rest: Vec<usize> = (0..copies.len()).rev().collect();
    loop {
        while let Some(index) = free.pop() {
            let (to, from) = copies[index];
            by_target.remove(&to);
            write(function, to, from);
            let left = readers.entry(from).or_default();
            *left -= 1;
            if *left == 0
                && let Some(now) = by_target.get(&from)
            {
                free.push(*now);
            }
        }
        // Only cycles are left, in which each register is read once.
        let Some(index) = rest.pop() else { break };
        let (to, _) = copies[index];
        if by_target.get(&to) != Some(&index) {
            continue;
        }
        let RegData { name, ty } = function.regs[to].clone();
        let saved = function.regs.push(RegData { name, ty });
        write(function, saved, to);
        for copy in copies.iter_mut().filter(|(_, from)| *from == to) {
            copy.1 = saved;
        }
        let count = readers.remove(&to).unwrap_or(0);
        readers.insert(saved, count);
        free.push(index);
    }
    insts
}

/// Gives labels to branch targets, and unique names to registers and lists.
fn rename(module: &Module, function: &mut Function) {
    let lists: Vec<String> = function.targets.values_mut().map(|list| std::mem::take(&mut list.name)).collect();
    let mut names = Names::besides_registers(module, function);
    for (list, name) in function.targets.values_mut().zip(lists) {
        list.name = names.take(&name);
    }
    let mut labels = 0;
    for target in function.layout.clone().into_iter().flat_map(|block| function.jump_targets(block)).collect::<Vec<Block>>() {
        if function.blocks[target].label.is_none() {
            function.blocks[target].label = Some(names.next("$L_", &mut labels));
        }
    }
    for reg in function.regs.values_mut() {
        reg.name = names.take(&reg.name);
    }
}
