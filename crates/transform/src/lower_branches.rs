//! `lower_branches`: turns every branch into a `bra` to one label.
//!
//! **In**: register form. **Out**: register form without `brx.idx`, and without `.uni` on branches that have
//! no guard, where it has no meaning. Keeps every path. A choice among many labels is split into several
//! branches. An index outside the list, which is undefined in PTX, ends in a `trap`.

use crate::names::Names;
use crate::write::{Writer, made};
use broadloom_ptx::{Block, BlockData, Function, Guard, Inst, InstData, Modifier, Module, Opcode, Operand, Reg, Type};

/// Name of the pass.
pub const NAME: &str = "lower_branches";

/// Lowers the branches of a function.
pub fn run(module: &Module, function: &mut Function) {
    let mut indexed = false;
    for block in &function.layout {
        let Some(last) = function.blocks[*block].insts.last() else { continue };
        let data = &mut function.insts[*last];
        indexed |= data.opcode() == Some(Opcode::BrxIdx);
        if data.opcode() == Some(Opcode::Bra) && data.guard.is_none() && data.has(Modifier::Uni) {
            data.mnemonic = made("bra", [Operand::Label(*block)]).mnemonic;
        }
    }
    if !indexed {
        return;
    }
    let names = Names::all(module, function);
    let mut lowering = BranchLowering { writer: Writer::new(function), names, labels: 0, placed: vec![], trap: None };
    let layout = std::mem::take(&mut lowering.writer.function.layout);
    for (index, block) in layout.iter().copied().enumerate() {
        lowering.placed.push(block);
        let function = &lowering.writer.function;
        let last = function.blocks[block].insts.last().copied();
        if let Some(last) = last.filter(|last| function.insts[*last].opcode() == Some(Opcode::BrxIdx)) {
            lowering.lower(block, last, layout.get(index + 1).copied());
        }
    }
    lowering.finish();
}

struct BranchLowering<'f, 'm> {
    writer: Writer<'f>,
    names: Names<'m>,
    labels: u32,
    placed: Vec<Block>,
    /// Target of an index outside its list.
    trap: Option<Block>,
}

impl BranchLowering<'_, '_> {
    fn block(&mut self) -> Block {
        let label = Some(self.names.next("$index_", &mut self.labels));
        self.writer.function.blocks.push(BlockData { label, ..BlockData::default() })
    }

    fn predicate(&mut self) -> Reg {
        let name = self.names.take("%index");
        self.writer.reg(name, Type::Pred)
    }

    fn jump(&mut self, guard: Option<Guard>, target: Block) {
        self.writer.emit_guarded(guard, "bra", [Operand::Label(target)]);
    }

    /// Appends the emitted instructions to a block.
    fn end(&mut self, block: Block) {
        let written = self.writer.take();
        self.writer.function.blocks[block].insts.extend(written);
    }

    fn lower(&mut self, block: Block, inst: Inst, next: Option<Block>) {
        let InstData { guard, operands, .. } = self.writer.function.insts[inst].clone();
        let (Some(index), Some(Operand::Targets(list))) = (operands.first().cloned(), operands.get(1)) else { return };
        let targets = self.writer.function.targets[*list].blocks.clone();
        self.writer.at(inst);
        self.writer.function.blocks[block].insts.pop();
        let mut head = block;
        let mut behind = None;
        if let Some(guard) = guard {
            // If the guard is false, control continues after the branch.
            let target = match next {
                Some(next) => self.labelled(next),
                None => *behind.insert(self.block()),
            };
            self.jump(Some(Guard { negated: !guard.negated, ..guard }), target);
            self.end(head);
            head = self.block();
            self.placed.push(head);
        }
        let trap = match self.trap {
            Some(trap) => trap,
            None => {
                let trap = self.block();
                self.writer.emit("trap", []);
                self.end(trap);
                *self.trap.insert(trap)
            }
        };
        let outside = self.predicate();
        let count = targets.len() as u64;
        self.writer.emit("setp.hs.u32", [outside.into(), index.clone(), count.into()]);
        self.jump(Some(Guard { reg: outside, negated: false }), trap);
        self.end(head);
        let inside = self.block();
        self.placed.push(inside);
        self.choose(inside, &index, &targets, 0);
        if let Some(behind) = behind {
            self.writer.emit("ret", []);
            self.end(behind);
            self.placed.push(behind);
        }
    }

    /// Emits a tree of comparisons. Each half of the list is a new block, so the depth is the logarithm of
    /// the list's length.
    fn choose(&mut self, block: Block, index: &Operand, targets: &[Block], first: u64) {
        if targets.iter().all(|target| *target == targets[0]) {
            self.jump(None, targets[0]);
            return self.end(block);
        }
        let middle = targets.len() / 2;
        let (low, high) = targets.split_at(middle);
        let below = self.predicate();
        let [below_block, above_block] = [self.block(), self.block()];
        self.writer.emit("setp.lo.u32", [below.into(), index.clone(), (first + middle as u64).into()]);
        self.jump(Some(Guard { reg: below, negated: false }), below_block);
        self.end(block);
        self.placed.push(above_block);
        self.choose(above_block, index, high, first + middle as u64);
        self.placed.push(below_block);
        self.choose(below_block, index, low, first);
    }

    /// Gives a block a label, so that it can be branched to.
    fn labelled(&mut self, block: Block) -> Block {
        if self.writer.function.blocks[block].label.is_none() {
            self.writer.function.blocks[block].label = Some(self.names.next("$index_", &mut self.labels));
        }
        block
    }

    fn finish(mut self) {
        if let Some(trap) = self.trap {
            let falls_off = self.placed.last().is_some_and(|last| {
                let function = &self.writer.function;
                function.blocks[*last].insts.last().is_none_or(|inst| !function.insts[*inst].is_terminator())
            });
            if falls_off {
                let block = self.block();
                self.writer.emit("ret", []);
                self.end(block);
                self.placed.push(block);
            }
            self.placed.push(trap);
        }
        self.writer.function.layout = self.placed;
    }
}
