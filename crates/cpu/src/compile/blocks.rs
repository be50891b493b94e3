//! Blocks of a function: their instructions, and the edges between them.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{Label, Val};
use super::state::Specials;
use crate::abi::Reason;
use broadloom_analysis::Cfg;
use broadloom_ptx::{Block, InstData, Opcode, Reg};
use broadloom_transform::split_at_barriers::plain_barrier;
use cranelift_entity::SecondaryMap;
use std::collections::HashSet;

impl Emitter<'_> {
    /// Prepares for a warp, given the number of its first thread.
    pub(crate) fn begin_warp(&mut self, first: Val) {
        let ir = self.ir;
        self.first = first;
        self.specials = Specials::default();
        let threads: u32 = self.block.iter().product();
        if let Some(lanes) = self.lanes.filter(|lanes| !threads.is_multiple_of(*lanes)) {
            let count = ir.constant(ir.vector(ir.int(32), lanes), u64::from(threads));
            let numbers = self.spread(first, 1, lanes);
            self.threads = Some(ir.icmp(super::llvm::IntPred::LLVMIntULT, numbers, count));
        }
        self.exists = self.threads;
        self.prepare_specials();
    }

    /// Emits some blocks of the function, starting at one of them. Blocks that were emitted before are not
    /// counted again.
    pub(crate) fn blocks(
        &mut self,
        cfg: &Cfg,
        order: &[Block],
        entry: Block,
        emitted: &mut SecondaryMap<Block, bool>,
    ) -> TranslationResult<()> {
        let function = self.function;
        for block in order {
            self.labels[*block] = Some(self.ir.block(&block.to_string()));
        }
        // A loop that waits for other threads must yield to them.
        let pauses = |block: &Block| !self.in_block && function.blocks[*block].insts.iter().any(|inst| self.polls.contains(inst));
        let pausing: HashSet<Block> = order.iter().copied().filter(pauses).collect();
        let abreast = if self.in_block || self.lanes.is_none() { vec![] } else { self.abreast(cfg) };
        self.ir.branch(self.label(entry)?);
        for block in order {
            // The predecessor of the start of a piece has stored the values in their places.
            if self.plan.is_some() && *block == entry {
                continue;
            }
            self.ir.go_on_in(self.label(*block)?);
            for param in &function.blocks[*block].params {
                let phi = self.ir.phi(self.kept_type(*param));
                self.values[*param] = Some(phi);
            }
        }
        for block in order {
            self.ir.go_on_in(self.label(*block)?);
            for param in &function.blocks[*block].params {
                if let (Some(variable), Some(value)) = (self.current.variables[*param], self.values[*param]) {
                    self.ir.store(value, variable, 64);
                }
            }
            if pausing.contains(block) {
                self.pause_sometimes();
            }
            if abreast.contains(block) {
                self.pause();
            }
            let counted = (self.loads, self.stores);
            let mut ended = false;
            let insts = self.in_pairs(*block);
            self.checked.begin(&insts);
            let mut next = 0;
            while let Some(id) = insts.get(next) {
                self.at = Some(*id);
                let inst = &function.insts[*id];
                let together = self.load_group(&insts[next..])?;
                next += together.max(1);
                if together > 0 {
                    continue;
                }
                if inst.is_control() {
                    self.leave(*block, inst)?;
                    ended = true;
                } else if let Some(second) = insts.get(next)
                    && self.load_pair([*id, *second])?
                {
                    next += 1;
                } else if !(self.is_there(inst) || self.in_block && plain_barrier(inst).is_some()) {
                    self.instruction(inst)?;
                }
            }
            if !ended {
                self.go_on(*block, 0)?;
            }
            if std::mem::replace(&mut emitted[*block], true) {
                (self.loads, self.stores) = counted;
            }
        }
        Ok(())
    }

    fn label(&self, block: Block) -> TranslationResult<Label> {
        self.labels[block].ok_or_else(|| TranslationError(format!("{block} has no label")))
    }

    /// Follows an edge of a block from the builder's position.
    fn go_on(&mut self, block: Block, edge: usize) -> TranslationResult<()> {
        match self.function.blocks[block].edges.get(edge) {
            None => self.finish_thread(Opcode::Ret)?,
            Some(edge) => {
                if let Some((plan, piece)) = self.crosses(edge.target) {
                    return self.cross(&plan, piece, &edge.args, block);
                }
                self.pass(&edge.args, edge.target)?;
                self.ir.branch(self.label(edge.target)?);
            }
        }
        Ok(())
    }

    /// Passes the arguments of an edge from here to the parameters of a block.
    fn pass(&mut self, args: &[Reg], target: Block) -> TranslationResult<()> {
        let function = self.function;
        for (arg, param) in args.iter().zip(&function.blocks[target].params) {
            let value = self.handed_on(*arg, *param)?;
            let phi = self.values[*param].ok_or_else(|| TranslationError("a parameter without a place".into()))?;
            self.ir.incoming(phi, value, self.ir.here());
        }
        Ok(())
    }

    /// Emits the last instruction of a block.
    fn leave(&mut self, block: Block, inst: &InstData) -> TranslationResult<()> {
        let opcode = inst.opcode().ok_or_else(|| TranslationError("an opaque instruction".into()))?;
        let condition = match inst.guard {
            None => None,
            Some(guard) => {
                let value = self.lane0(guard.reg)?;
                Some(if guard.negated { self.ir.not(value) } else { value })
            }
        };
        let ends = matches!(opcode, Opcode::Ret | Opcode::Exit);
        match condition {
            _ if opcode == Opcode::Trap => {
                self.trap(inst)?;
                if inst.guard.is_some() { self.go_on(block, 0) } else { self.end_here() }
            }
            None if opcode == Opcode::Bra => self.go_on(block, 0),
            Some(condition) if opcode == Opcode::Bra => self.two_ways(block, condition),
            None if ends => self.finish_thread(opcode),
            Some(condition) if ends => {
                let (end, on) = (self.ir.block("end"), self.ir.block("on"));
                self.ir.branch_if(condition, end, on);
                self.ir.go_on_in(end);
                self.finish_thread(opcode)?;
                self.ir.go_on_in(on);
                self.go_on(block, 0)
            }
            None | Some(_) => Err(TranslationError(format!("`{}` ends a block", inst.mnemonic_text()))),
        }
    }

    /// Emits `ret` and `exit`. In a called function `exit` ends the thread; in vector code it occurs only in
    /// kernels.
    fn finish_thread(&mut self, opcode: Opcode) -> TranslationResult<()> {
        if opcode == Opcode::Exit && self.passed.is_some() {
            if self.lanes.is_some() {
                return Err(TranslationError("an `exit` of a function in vector code".into()));
            }
            self.serve(super::runtime::Service::Exit, self.ir.void(), &[self.warp]);
            return self.end_here();
        }
        self.give_results()?;
        self.ir.branch(self.done);
        Ok(())
    }

    /// Marks this point as unreachable.
    fn end_here(&mut self) -> TranslationResult<()> {
        self.ir.unreachable();
        Ok(())
    }

    fn two_ways(&mut self, block: Block, condition: Val) -> TranslationResult<()> {
        let function = self.function;
        let [taken, other] = function.blocks[block].edges.as_slice() else {
            return Err(TranslationError(format!("{block} does not have two edges")));
        };
        let crosses = self.crosses(taken.target).is_some() || self.crosses(other.target).is_some();
        if crosses || taken.target == other.target && !taken.args.is_empty() {
            // Two edges to one block, or an edge with code of its own: each gets its own block.
            let (yes, no) = (self.ir.block("taken"), self.ir.block("other"));
            self.ir.branch_if(condition, yes, no);
            self.ir.go_on_in(yes);
            self.go_on(block, 0)?;
            self.ir.go_on_in(no);
            return self.go_on(block, 1);
        }
        self.pass(&taken.args, taken.target)?;
        if taken.target != other.target {
            self.pass(&other.args, other.target)?;
        }
        self.ir.branch_if(condition, self.label(taken.target)?, self.label(other.target)?);
        Ok(())
    }

    /// Emits `trap` for the lanes whose guard holds; the others continue.
    pub(crate) fn trap(&mut self, inst: &InstData) -> TranslationResult<()> {
        let active = self.active(inst)?;
        let nowhere = self.ir.constant(self.ir.int(64), 0);
        self.fault(inst, Reason::Trap, active, nowhere);
        Ok(())
    }
}
