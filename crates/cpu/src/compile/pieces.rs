//! Values that a warp keeps between the pieces of a kernel, and the edges that lead from piece to piece.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::Val;
use super::plan::{Plan, WAITING, local_of_warp};
use crate::abi::offset;
use broadloom_ptx::{Block, InstData, Reg};
use broadloom_transform::split_at_barriers::waits;
use std::rc::Rc;

impl Emitter<'_> {
    /// Leaves the piece in a state.
    pub(super) fn leave_piece(&mut self, state: Val) -> TranslationResult<()> {
        let ir = self.ir;
        if let Some(states) = self.states {
            ir.store(state, self.state_of(states, self.first), 1);
        }
        self.current.leaving.push((ir.here(), state));
        let latch = self.current.latch.ok_or_else(|| TranslationError("a piece without an end".into()))?;
        ir.branch(latch);
        Ok(())
    }

    /// Returns the address of a warp's state, by the number of its first thread.
    pub(super) fn state_of(&self, states: Val, first: Val) -> Val {
        let ir = self.ir;
        ir.offset(states, ir.zext(ir.lshr(first, ir.constant(ir.int(32), 5)), ir.int(64)))
    }

    /// Returns the start of the warp's local memory.
    pub(crate) fn local_memory(&self) -> Val {
        let start = self.pointer_field(offset::LOCAL);
        let start = match self.plan {
            Some(_) if self.layout.local_bytes > 0 => self.of_warp_at(start, local_of_warp(self.layout.local_bytes)),
            _ => start,
        };
        self.ir.ptrtoint(start, self.ir.int(64))
    }

    /// Returns the part of this warp in memory with `bytes` bytes for each warp.
    fn of_warp_at(&self, start: Val, bytes: u64) -> Val {
        let ir = self.ir;
        let i64 = ir.int(64);
        // The number of the first thread is a multiple of 32.
        ir.offset(start, ir.mul(ir.zext(self.first, i64), ir.constant(i64, bytes / 32)))
    }

    pub(super) fn place_of(&self, plan: &Plan, reg: Reg) -> Option<Val> {
        let place = plan.places[reg]?;
        let start = self.pointer_field(offset::LOCAL);
        let threads: u32 = self.block.iter().product();
        let local = u64::from(threads.div_ceil(32)) * local_of_warp(self.layout.local_bytes);
        let own = self.of_warp_at(self.ir.offset_by(start, local), plan.bytes);
        Some(self.ir.offset_by(own, place))
    }

    /// Returns whether the operands of a register's definition are available here with the values they had
    /// then. A piece may begin in the middle of a loop: its live values are then from an earlier iteration
    /// than the values it computes.
    pub(crate) fn shows(&self, reg: Reg) -> bool {
        let (Some(plan), Some(piece)) = (&self.plan, self.current.piece) else { return true };
        if self.current.variables[reg].is_some() {
            return false;
        }
        if self.current.defines.contains(reg) {
            return true;
        }
        let given = |read: &Reg| plan.live[piece].contains(read) && !self.current.defines.contains(*read);
        self.definition(reg).is_some_and(|inst| inst.reads().iter().all(given))
    }

    /// Returns the piece that an edge leads to, if it leaves the current one.
    pub(crate) fn crosses(&self, target: Block) -> Option<(Rc<Plan>, usize)> {
        let plan = self.plan.as_ref()?;
        plan.pieces.starting_at(target).map(|piece| (plan.clone(), piece))
    }

    /// Leaves for another piece along an edge of a block.
    pub(crate) fn cross(&mut self, plan: &Plan, target: usize, args: &[Reg], block: Block) -> TranslationResult<()> {
        let ir = self.ir;
        let function = self.function;
        let waits = waits(function, block);
        let entry = plan.pieces.get(target).entry;
        let mut kept = vec![];
        for (arg, param) in args.iter().zip(&function.blocks[entry].params) {
            kept.push((*param, self.handed_on(*arg, *param)?));
        }
        let params = &function.blocks[entry].params;
        for reg in plan.live[target].iter().filter(|reg| !params.contains(reg)) {
            if self.current.defines.contains(*reg) && plan.places[*reg].is_some() {
                kept.push((*reg, self.kept(*reg)?));
            }
        }
        for (reg, value) in kept {
            let Some(place) = self.place_of(plan, reg) else { continue };
            let ty = ir.type_of(value);
            match (ir.bits(ty), ir.lanes_in(ty)) {
                (1, Some(_)) => ir.store(self.as_mask(value), place, 4),
                (1, None) => ir.store(ir.zext(value, ir.int(8)), place, 1),
                (_, Some(_)) => ir.store(value, place, 64),
                (bits, None) => ir.store(value, place, 8.min(bits / 8)),
            }
        }
        let i8 = ir.int(8);
        let (on, waiting) = (ir.constant(i8, target as u64), ir.constant(i8, target as u64 | WAITING));
        let barrier = function.blocks[block].insts.last().map(|last| &function.insts[*last]).filter(|_| waits);
        let state = match barrier.map(|inst| self.own_guard(inst)).transpose()? {
            None => on,
            Some(None) => waiting,
            Some(Some(guard)) => ir.select(self.any(guard), waiting, on),
        };
        self.leave_piece(state)
    }

    /// Returns whether an instruction can be skipped, because its results are available from the start and
    /// equal.
    pub(crate) fn is_there(&self, inst: &InstData) -> bool {
        let Some(plan) = &self.plan else { return false };
        let results = inst.writes();
        !results.is_empty() && results.iter().all(|reg| plan.not_kept.contains(*reg) && self.has_value(*reg))
    }
}
