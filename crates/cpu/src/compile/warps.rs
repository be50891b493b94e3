//! All warps of a block in one call: pieces of the kernel, and the values that each warp keeps between
//! pieces.
//!
//! A kernel without barriers is one piece: each warp runs it to the end, then the next warp. Barriers split a
//! kernel into pieces ([`FunctionPieces`]). Each piece is a loop over the warps, and code between the pieces selects
//! the one in which each warp continues. Warps that continue in an earlier piece go first. When all remaining
//! warps wait at the barrier, they continue.
//!
//! A warp keeps the values that are live into its next piece, in its own memory after local memory. Values
//! that are uniform in the block are computed once at the start. Values that are cheap to compute from the
//! thread index are recomputed.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{IntPred, Label, Val};
use super::plan::{CurrentPiece, ENDED, Exits, MOST_PIECES, Plan, WAITING, local_of_warp};
use crate::abi::offset;
use broadloom_analysis::{BitSet, Cfg, Liveness};
use broadloom_ptx::{Address, Base, Block, InstData, Opcode, Operand, Reg, Type};
use broadloom_transform::purity::is_pure;
use broadloom_transform::split_at_barriers::{FunctionPiece, FunctionPieces};
use cranelift_entity::SecondaryMap;
use std::rc::Rc;

/// Maximum warps of a block.
const WARPS: u32 = 32;

/// Maximum cost, in instructions, of a value that is recomputed instead of kept.
const CHEAP: u32 = 4;

struct PieceEnd {
    latch: Label,
    /// Minimum and maximum of the warps' states there.
    least: Val,
    most: Val,
}

impl Emitter<'_> {
    /// Emits all warps of a block.
    pub(crate) fn whole_block(&mut self, cfg: &Cfg) -> TranslationResult<()> {
        let ir = self.ir;
        let threads: u32 = self.block.iter().product();
        let warps = threads.div_ceil(32);
        // Frames of called functions are not kept.
        let mut starts = vec![];
        if warps > 1 && self.callees.is_empty() {
            starts = self.far_loops(cfg);
            starts.extend(self.abreast(cfg));
        }
        let mut pieces = FunctionPieces::new(self.function, cfg, &starts);
        if pieces.len() > MOST_PIECES {
            pieces = FunctionPieces::new(self.function, cfg, &[]);
        }
        let plan = Rc::new(self.planned(cfg, pieces));
        let end = ir.block("end");
        let starts: Vec<Label> = plan.pieces.iter().map(|_| ir.block("piece")).collect();
        let meets = |target: Option<usize>| target.is_none_or(|target| plan.together[target]);
        let direct = |piece: usize| plan.exits[piece].only().filter(|target| plan.together[piece] && meets(*target));
        let asks = (0..plan.pieces.len()).any(|piece| direct(piece).is_none());
        if !plan.is_whole() {
            self.plan = Some(plan.clone());
            self.kept_bytes = kept_bytes(warps, self.layout.local_bytes, plan.bytes);
            let all: Vec<&[Block]> = plan.pieces.iter().map(|piece| piece.blocks.as_slice()).collect();
            let behind = u64::from(warps) * (local_of_warp(self.layout.local_bytes) + plan.bytes);
            self.counters = self.find_counters(&all, behind);
            self.kept_bytes += self.counters.as_ref().map_or(0, |counters| counters.bytes);
            self.first = ir.constant(ir.int(32), 0);
            self.prepare_specials();
            let function = self.function;
            for inst in &plan.once {
                self.instruction(&function.insts[*inst])?;
            }
        }
        let states = asks.then(|| self.new_states(warps));
        ir.branch(starts[0]);
        let dispatch = asks.then(|| ir.block("dispatch"));
        let common = self.values.clone();
        let mut leaving = vec![];
        let mut emitted: SecondaryMap<Block, bool> = SecondaryMap::new();
        for piece in 0..plan.pieces.len() {
            self.values.clone_from(&common);
            let exit = match (direct(piece), dispatch) {
                (Some(Some(next)), _) => starts[next],
                (Some(None), _) | (None, None) => end,
                (None, Some(dispatch)) => dispatch,
            };
            let states = states.filter(|_| direct(piece).is_none());
            let left = self.piece(cfg, &plan, piece, starts[piece], exit, states, &mut emitted)?;
            if states.is_some() {
                leaving.push(left);
            }
        }
        if let (Some(states), Some(dispatch)) = (states, dispatch) {
            self.dispatch(states, warps, dispatch, &leaving, &starts, end);
        }
        ir.go_on_in(end);
        ir.ret();
        self.counted_all();
        Ok(())
    }

    /// Emits one piece for all warps that have reached it. Returns its end and the states of the warps there.
    #[allow(clippy::too_many_arguments, reason = "where it starts, where it ends, and what it is")]
    fn piece(
        &mut self,
        cfg: &Cfg,
        plan: &Plan,
        piece: usize,
        start: Label,
        exit: Label,
        states: Option<Val>,
        emitted: &mut SecondaryMap<Block, bool>,
    ) -> TranslationResult<PieceEnd> {
        let ir = self.ir;
        let (i8, i32) = (ir.int(8), ir.int(32));
        let threads: u32 = self.block.iter().product();
        let FunctionPiece { entry, blocks } = plan.pieces.get(piece);
        let (head, body, latch) = (ir.block("warp"), ir.block("body"), ir.block("next"));
        ir.go_on_in(start);
        self.add_up_copies(piece);
        let start = ir.here();
        ir.branch(head);
        ir.go_on_in(head);
        let first = ir.phi(i32);
        ir.incoming(first, ir.constant(i32, 0), start);
        let least = ir.phi(i8);
        ir.incoming(least, ir.constant(i8, ENDED), start);
        let most = ir.phi(i8);
        ir.incoming(most, ir.constant(i8, 0), start);
        self.current = CurrentPiece { piece: Some(piece), latch: Some(latch), ..CurrentPiece::default() };
        if let (Some(states), false) = (states, plan.together[piece]) {
            let state = ir.load(i8, self.state_of(states, first), 1);
            let here = ir.icmp(IntPred::LLVMIntEQ, state, ir.constant(i8, piece as u64));
            self.current.leaving.push((head, state));
            ir.branch_if(here, body, latch);
        } else {
            ir.branch(body);
        }
        ir.go_on_in(body);
        // The runtime reads the current warp there when an error occurs.
        ir.store(first, ir.offset_by(self.warp, offset::FIRST), 4);
        self.begin_warp(first);
        self.done = ir.block("done");
        self.states = states;
        self.note_definitions(plan, piece, blocks);
        self.fetch_live(plan, piece)?;
        self.blocks(cfg, blocks, *entry, emitted)?;
        ir.go_on_in(self.done);
        self.leave_piece(ir.constant(i8, ENDED))?;
        ir.go_on_in(latch);
        let state = ir.phi(i8);
        for (from, value) in &self.current.leaving {
            ir.incoming(state, *value, *from);
        }
        let next = ir.add(first, ir.constant(i32, 32));
        let least_now = ir.intrinsic("llvm.umin", &[i8], &[least, state]);
        let most_now = ir.intrinsic("llvm.umax", &[i8], &[most, state]);
        ir.incoming(first, next, latch);
        ir.incoming(least, least_now, latch);
        ir.incoming(most, most_now, latch);
        let more = ir.icmp(IntPred::LLVMIntULT, next, ir.constant(i32, u64::from(threads)));
        ir.branch_if(more, head, exit);
        Ok(PieceEnd { latch, least: least_now, most: most_now })
    }

    /// Initialises the states of all warps: those that exist are at the start.
    fn new_states(&self, warps: u32) -> Val {
        let ir = self.ir;
        let i8 = ir.int(8);
        let states = ir.stack(ir.vector(i8, WARPS), 32);
        let all: Vec<Val> = (0..WARPS).map(|warp| ir.constant(i8, if warp < warps { 0 } else { ENDED })).collect();
        ir.store(ir.constants(&all), states, 32);
        states
    }

    /// Emits the choice of the piece in which the first warps continue. If all warps wait, all continue.
    fn dispatch(&self, states: Val, warps: u32, dispatch: Label, leaving: &[PieceEnd], starts: &[Label], end: Label) {
        let ir = self.ir;
        let i8 = ir.int(8);
        let all = ir.vector(i8, WARPS);
        ir.go_on_in(dispatch);
        let (least, most) = (ir.phi(i8), ir.phi(i8));
        for left in leaving {
            ir.incoming(least, left.least, left.latch);
            ir.incoming(most, left.most, left.latch);
        }
        let (wait, choose) = (ir.block("released"), ir.block("choose"));
        let waiting = ir.icmp(IntPred::LLVMIntUGE, least, ir.constant(i8, WAITING));
        ir.branch_if(waiting, wait, choose);
        ir.go_on_in(wait);
        let (same, some) = (ir.block("same"), ir.block("some"));
        ir.branch_if(ir.icmp(IntPred::LLVMIntEQ, least, most), same, some);
        // Nearly always all warps wait at the same point. Then their states, which were stored one by one,
        // are not read as a vector. That read would stall until all earlier stores are in the cache.
        ir.go_on_in(same);
        let ended = ir.icmp(IntPred::LLVMIntEQ, least, ir.constant(i8, ENDED));
        let together = ir.select(ended, least, ir.and(least, ir.constant(i8, WAITING - 1)));
        let none: Vec<Val> = (0..WARPS).map(|warp| ir.constant(i8, if warp < warps { 0 } else { ENDED })).collect();
        ir.store(ir.or(ir.splat(together, WARPS), ir.constants(&none)), states, 32);
        ir.branch(choose);
        ir.go_on_in(some);
        let now = ir.load(all, states, 32);
        let ended = ir.icmp(IntPred::LLVMIntEQ, now, ir.constant(all, ENDED));
        let free = ir.select(ended, now, ir.and(now, ir.constant(all, WAITING - 1)));
        ir.store(free, states, 32);
        let released = ir.intrinsic("llvm.vector.reduce.umin", &[all], &[free]);
        ir.branch(choose);
        ir.go_on_in(choose);
        let piece = ir.phi(i8);
        ir.incoming(piece, least, dispatch);
        ir.incoming(piece, together, same);
        ir.incoming(piece, released, some);
        for (number, start) in starts.iter().enumerate() {
            let other = ir.block("other");
            ir.branch_if(ir.icmp(IntPred::LLVMIntEQ, piece, ir.constant(i8, number as u64)), *start, other);
            ir.go_on_in(other);
        }
        ir.branch(end);
    }

    fn note_definitions(&mut self, plan: &Plan, piece: usize, blocks: &[Block]) {
        let function = self.function;
        let mut defines = BitSet::with_capacity(function.regs.len());
        let first = plan.pieces.get(piece).entry;
        for block in blocks {
            let data = &function.blocks[*block];
            if piece == 0 || *block != first {
                defines.extend(data.params.iter().copied());
            }
            for inst in &data.insts {
                function.insts[*inst].each_written(|reg| _ = defines.insert(reg));
            }
        }
        self.current.defines = defines;
    }

    /// Loads the values that are live into a piece.
    fn fetch_live(&mut self, plan: &Plan, piece: usize) -> TranslationResult<()> {
        let ir = self.ir;
        if piece == 0 && plan.places.values().all(Option::is_none) {
            return Ok(());
        }
        // The function itself has no live values at its start.
        let live: &[Reg] = if piece == 0 { &[] } else { &plan.live[piece] };
        for reg in live {
            let ty = self.kept_type(*reg);
            let Some(place) = self.place_of(plan, *reg) else {
                self.compute_again(*reg)?;
                continue;
            };
            let mask = ir.lanes_in(ty).is_some() && ir.bits(ty) == 1;
            let value = if mask {
                self.as_predicates(ir.load(ir.int(32), place, 4))
            } else if ir.bits(ty) == 1 {
                ir.trunc(ir.load(ir.int(8), place, 1), ty)
            } else {
                ir.load(ty, place, if ir.lanes_in(ty).is_some() { 64 } else { 8.min(ir.bits(ty) / 8) })
            };
            if self.current.defines.contains(*reg) {
                let variable = ir.stack(ty, 64);
                ir.store(value, variable, 64);
                self.current.variables[*reg] = Some(variable);
            } else {
                self.values[*reg] = Some(value);
            }
        }
        Ok(())
    }

    /// Recomputes a register from values that are always known in a warp.
    fn compute_again(&mut self, reg: Reg) -> TranslationResult<()> {
        if self.has_value(reg) {
            return Ok(());
        }
        let function = self.function;
        let Some(inst) = self.definitions[reg] else {
            return Err(TranslationError(format!("`{}` is neither kept nor computed again", function.regs[reg].name)));
        };
        let data = &function.insts[inst];
        for read in data.reads() {
            self.compute_again(read)?;
        }
        self.instruction(data)
    }

    fn planned(&self, cfg: &Cfg, pieces: FunctionPieces) -> Plan {
        let function = self.function;
        let exits: Vec<Exits> = pieces.iter().map(|piece| Exits::of(function, cfg, &pieces, &piece.blocks)).collect();
        let mut together = vec![true; pieces.len()];
        loop {
            let before = together.clone();
            for (piece, exits) in exits.iter().enumerate() {
                if !together[piece] || exits.only().is_none() {
                    exits.targets.iter().flatten().for_each(|target| together[*target] = false);
                }
            }
            if before == together {
                break;
            }
        }
        let mut plan = Plan {
            live: vec![],
            once: vec![],
            not_kept: BitSet::with_capacity(function.regs.len()),
            places: SecondaryMap::new(),
            bytes: 0,
            pieces,
            exits,
            together,
        };
        if plan.is_whole() {
            plan.live.push(vec![]);
            return plan;
        }
        let mut cost: SecondaryMap<Reg, Option<u32>> = SecondaryMap::new();
        for inst in cfg.order().iter().flat_map(|block| &function.blocks[*block].insts) {
            let data = &function.insts[*inst];
            if let [result] = data.writes().as_slice() {
                if self.is_same_for_block(data, &cost) {
                    plan.once.push(*inst);
                    plan.not_kept.insert(*result);
                    cost[*result] = Some(0);
                } else if let Some(sum) = again(data, &cost) {
                    plan.not_kept.insert(*result);
                    cost[*result] = Some(sum);
                }
            }
        }
        let liveness = Liveness::new(function, cfg);
        for piece in plan.pieces.iter() {
            let live = liveness.live_in(piece.entry).iter().chain(function.blocks[piece.entry].params.iter().copied());
            plan.live.push(live.collect());
        }
        for reg in plan.live.iter().flatten() {
            if plan.places[*reg].is_none() && !plan.not_kept.contains(*reg) {
                let ty = self.kept_type(*reg);
                let (bits, wide) = (u64::from(self.ir.bits(ty)), self.ir.lanes_in(ty).is_some());
                let (bytes, align) = match (bits, wide) {
                    (1, _) => (8, 8),
                    (bits, true) => (4 * bits, 64),
                    (bits, false) => (bits / 8, 8),
                };
                let place = plan.bytes.next_multiple_of(align);
                plan.places[*reg] = Some(place);
                plan.bytes = place + bytes;
            }
        }
        plan.bytes = plan.bytes.next_multiple_of(64);
        plan
    }

    /// Returns whether an instruction gives the same result in all threads of a block, wherever it stands.
    fn is_same_for_block(&self, data: &InstData, cost: &SecondaryMap<Reg, Option<u32>>) -> bool {
        let once = |reg: &Reg| cost[*reg] == Some(0);
        if data.guard.is_some() || !data.writes().iter().all(|reg| self.is_kept_as_scalar(*reg)) {
            return false;
        }
        // Results of calls are in the parameter space too.
        let of_kernel = |at: Address| matches!(at.base, Base::Symbol(_)) && self.is_kernel_param(data.space(), &at);
        let param = data.opcode() == Some(Opcode::Ld) && data.addresses().any(of_kernel);
        if !param && !is_pure(data) {
            return false;
        }
        data.reads().iter().all(once) && !data.any_operand(is_of_thread)
    }
}

/// Returns the cost of recomputing the result of an instruction from values that a warp always knows. Returns
/// `None` if it is expensive.
fn again(data: &InstData, cost: &SecondaryMap<Reg, Option<u32>>) -> Option<u32> {
    let slow = matches!(data.opcode(), Some(Opcode::Div | Opcode::Rem | Opcode::Sqrt | Opcode::Sin | Opcode::Cos));
    if data.guard.is_some() || slow || !is_pure(data) || data.types().any(|ty| matches!(ty, Type::F64)) {
        return None;
    }
    let mut sum = 1u32;
    for read in data.reads() {
        sum += cost[read]?;
    }
    (sum <= CHEAP).then_some(sum)
}

/// Returns whether an operand differs between the threads of a block.
fn is_of_thread(operand: &Operand) -> bool {
    matches!(operand, Operand::Special(special) if !special.is_same_in_block())
}

/// Returns the bytes after the local memory of the first warp that a block of `warps` warps needs.
fn kept_bytes(warps: u32, local_bytes: u64, bytes: u64) -> u64 {
    u64::from(warps.saturating_sub(1)) * local_of_warp(local_bytes) + u64::from(warps) * bytes
}
