//! Instructions of whole warps and of blocks (manual: `shfl`, `vote`, `match`, `redux`, `elect`,
//! `activemask`, `bar`).
//!
//! On vectors they are permutations and arithmetic on masks. The active lanes are those whose guard holds. On
//! the slow path, where a warp is one thread, the runtime brings the lanes together.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{IntPred, RealPred, Val};
use super::runtime::Service;
use crate::abi::{BarrierKind, Exchange, ExchangeOperands, offset};
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Type};
use std::mem::offset_of;

impl Emitter<'_> {
    fn operand<'i>(&self, inst: &'i InstData, index: usize) -> TranslationResult<&'i Operand> {
        inst.operands.get(index).ok_or_else(|| TranslationError(format!("`{}` without operand {index}", inst.mnemonic_text())))
    }

    /// Returns an input of an instruction by index, in all lanes. Returns all ones if there is no such input.
    fn input(&self, inst: &InstData, index: usize) -> TranslationResult<Val> {
        match broadloom_eval::inputs(inst).nth(index) {
            Some((operand, ty)) => self.fetch(operand, ty, self.lanes.is_none()),
            None => Ok(self.constant(u64::MAX, Type::U32, self.lanes.is_none())),
        }
    }

    /// Emits an instruction of a warp: on vectors, or on the slow path as an exchange between threads.
    pub(crate) fn warp_operation(
        &mut self,
        inst: &InstData,
        in_step: fn(&mut Self, &InstData) -> TranslationResult<()>,
    ) -> TranslationResult<()> {
        if self.lanes.is_none() { self.exchange(inst) } else { in_step(self, inst) }
    }

    pub(crate) fn active_mask(&mut self, inst: &InstData) -> TranslationResult<()> {
        let mask = self.as_mask(self.active(inst)?);
        let result = self.operand(inst, 0)?.clone();
        self.assign(&result, Type::B32, mask)
    }

    /// Emits `bar.warp.sync`. Lanes in lockstep are together already.
    pub(crate) fn warp_barrier(&mut self, _inst: &InstData) -> TranslationResult<()> {
        self.ir.compiler_fence();
        Ok(())
    }

    /// Emits a shuffle. The source lane follows the manual's pseudocode.
    pub(crate) fn shuffle(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let value = match broadloom_eval::inputs(inst).next() {
            Some((operand, ty)) if inst.writes().iter().any(|reg| self.is_noisy(*reg)) => self.fetch_as_is(operand, ty, false)?,
            _ => self.input(inst, 0)?,
        };
        let (b, c) = (self.input(inst, 1)?, self.input(inst, 2)?);
        let ty = ir.type_of(b);
        let low = |value: Val| ir.and(value, ir.constant(ty, 0x1f));
        let lane = ir.steps(ir.int(32), lanes, 1);
        let segments = low(ir.lshr(c, ir.constant(ty, 8)));
        let outside = low(ir.not(segments));
        let least = ir.and(lane, segments);
        let most = ir.or(least, ir.and(low(c), outside));
        let by = low(b);
        let (source, in_range) = if inst.has(Modifier::Up) {
            let source = ir.sub(lane, by);
            (source, ir.icmp(IntPred::LLVMIntSGE, source, most))
        } else {
            let source = if inst.has(Modifier::Down) {
                ir.add(lane, by)
            } else if inst.has(Modifier::Bfly) {
                ir.xor(lane, by)
            } else {
                ir.or(least, ir.and(by, outside))
            };
            (source, ir.icmp(IntPred::LLVMIntSLE, source, most))
        };
        let source = ir.select(in_range, source, lane);
        let moved = self.permute(value, source);
        // The value from an inactive lane is 0, as on machines. If the guard and the member mask are uniform,
        // either all lanes are active or none.
        let guard = self.guard(inst)?.filter(|guard| ir.lanes(*guard).is_some());
        let named = self.members(inst)?.filter(|members| ir.lanes(*members).is_some());
        let mut there = guard.map(|guard| self.permute_mask(guard, source));
        if let Some(named) = named {
            let bit = ir.and(ir.lshr(named, source), ir.constant(ir.type_of(named), 1));
            let is_named = ir.icmp(IntPred::LLVMIntNE, bit, ir.zero(ir.type_of(named)));
            there = Some(there.map_or(is_named, |there| ir.and(there, is_named)));
        }
        let moved = there.map_or(moved, |there| ir.select(there, moved, ir.zero(ir.type_of(moved))));
        let written = self.written(inst);
        if let Some((operand, ty)) = written.first() {
            self.assign(operand, *ty, moved)?;
        }
        if let Some((operand, ty)) = written.get(1) {
            self.assign(operand, *ty, in_range)?;
        }
        Ok(())
    }

    /// Returns the member mask of an instruction, as a scalar if it is uniform; `None` if there is none.
    fn members(&self, inst: &InstData) -> TranslationResult<Option<Val>> {
        let unmasked = inst.opcode().is_some_and(Opcode::takes_active_lanes);
        match broadloom_eval::inputs(inst).last() {
            Some((operand, ty)) if !unmasked => {
                let uniform = match operand {
                    Operand::Reg(reg) => self.shapes.shape(*reg).is_uniform(),
                    _ => true,
                };
                Ok(Some(self.fetch(operand, ty, uniform)?))
            }
            _ => Ok(None),
        }
    }

    /// Restricts a mask to the members, per lane if the member masks differ.
    fn among(&self, members: Option<Val>, mask: Val) -> Val {
        match members {
            None => mask,
            Some(members) => match self.ir.lanes(members) {
                Some(lanes) => self.ir.and(self.ir.splat(mask, lanes), members),
                None => self.ir.and(mask, members),
            },
        }
    }

    pub(crate) fn vote(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let predicate = self.input(inst, 0)?;
        let active = self.active(inst)?;
        let named = self.members(inst)?;
        let members = self.among(named, self.as_mask(active));
        let trues = self.among(named, self.as_mask(ir.and(predicate, active)));
        let zero = ir.constant(ir.type_of(trues), 0);
        let equal = |a: Val, b: Val| ir.icmp(IntPred::LLVMIntEQ, a, b);
        let value = if inst.has(Modifier::Ballot) {
            trues
        } else if inst.has(Modifier::All) {
            equal(trues, members)
        } else if inst.has(Modifier::Any) {
            ir.icmp(IntPred::LLVMIntNE, trues, zero)
        } else {
            ir.or(equal(trues, members), equal(trues, zero))
        };
        let written = self.written(inst);
        match written.first() {
            Some((operand, ty)) => self.assign(operand, *ty, value),
            None => Ok(()),
        }
    }

    pub(crate) fn match_any(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let value = self.input(inst, 0)?;
        let active = self.active(inst)?;
        let single = self.spill(value);
        let masks = self.each_lane(active, Type::B32, true, |emitter, lane| {
            let mine = ir.splat(emitter.lane_of(single, lane), lanes);
            let same = ir.icmp(IntPred::LLVMIntEQ, value, mine);
            emitter.as_mask(ir.and(same, active))
        });
        let named = self.members(inst)?;
        let masks = masks.map(|masks| match named {
            Some(members) => ir.and(masks, self.broadcast(members, lanes)),
            None => masks,
        });
        let result = self.operand(inst, 0)?.clone();
        match masks {
            Some(masks) => self.assign(&result, Type::B32, masks),
            None => Ok(()),
        }
    }

    pub(crate) fn match_all(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let i32 = ir.int(32);
        let value = self.input(inst, 0)?;
        let active = self.active(inst)?;
        let members = self.as_mask(active);
        let leader = ir.intrinsic("llvm.cttz", &[i32], &[members, ir.constant(ir.int(1), 0)]);
        let leader = ir.and(leader, ir.constant(i32, 31));
        let first = ir.splat(ir.extract(value, leader), lanes);
        let same = self.as_mask(ir.and(ir.icmp(IntPred::LLVMIntEQ, value, first), active));
        let all = ir.icmp(IntPred::LLVMIntEQ, same, members);
        let mask = ir.select(all, members, ir.constant(i32, 0));
        for ((operand, ty), value) in self.written(inst).iter().zip([mask, all]) {
            self.assign(operand, *ty, value)?;
        }
        Ok(())
    }

    pub(crate) fn redux(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let ty = inst.types().next().unwrap_or(Type::B32);
        let value = self.input(inst, 0)?;
        let active = self.active(inst)?;
        let lanes = self.lanes.unwrap_or(1);
        let total = match self.members(inst)? {
            Some(members) if ir.lanes(members).is_some() => {
                let members = self.spill(members);
                let totals = self.each_lane(active, Type::B32, true, |emitter, lane| {
                    let group = ir.and(active, emitter.as_predicates(emitter.lane_of(members, lane)));
                    let total = emitter.reduced(inst, ty, value, group);
                    ir.bitcast(total, ir.int(32))
                });
                let totals = totals.unwrap_or(ir.constant(ir.vector(ir.int(32), lanes), 0));
                ir.bitcast(totals, self.value_type(ty))
            }
            _ => self.reduced(inst, ty, value, active),
        };
        let result = self.operand(inst, 0)?.clone();
        self.assign(&result, ty, total)
    }

    /// Reduces the values of some lanes to one.
    fn reduced(&self, inst: &InstData, ty: Type, value: Val, active: Val) -> Val {
        let ir = self.ir;
        let vector = ir.type_of(value);
        if ty == Type::F32 {
            self.redux_float(inst, value, active)
        } else {
            let signed = ty.is_signed();
            let (name, neutral) = if inst.has(Modifier::Add) {
                ("llvm.vector.reduce.add", 0)
            } else if inst.has(Modifier::And) {
                ("llvm.vector.reduce.and", 0xffff_ffff)
            } else if inst.has(Modifier::Or) {
                ("llvm.vector.reduce.or", 0)
            } else if inst.has(Modifier::Xor) {
                ("llvm.vector.reduce.xor", 0)
            } else {
                match (inst.has(Modifier::Min), signed) {
                    (true, true) => ("llvm.vector.reduce.smin", 0x7fff_ffff),
                    (true, false) => ("llvm.vector.reduce.umin", 0xffff_ffff),
                    (false, true) => ("llvm.vector.reduce.smax", 0x8000_0000),
                    (false, false) => ("llvm.vector.reduce.umax", 0),
                }
            };
            let value = ir.select(active, value, ir.constant(vector, neutral));
            ir.intrinsic(name, &[vector], &[value])
        }
    }

    /// Reduces floats to their minimum or maximum by their order as integers: -0 below +0, NaN apart.
    fn redux_float(&self, inst: &InstData, value: Val, active: Val) -> Val {
        let ir = self.ir;
        let min = inst.has(Modifier::Min);
        let value = if inst.has(Modifier::Abs) { ir.intrinsic("llvm.fabs", &[ir.type_of(value)], &[value]) } else { value };
        let unordered = ir.and(ir.fcmp(RealPred::LLVMRealUNO, value, value), active);
        let bits = ir.bitcast(value, ir.int(32));
        let ty = ir.type_of(bits);
        // Negative numbers are ordered backwards: all bits except the sign are inverted.
        let key = |bits: Val| {
            let ty = ir.type_of(bits);
            let sign = ir.ashr(bits, ir.constant(ty, 31));
            ir.xor(bits, ir.lshr(sign, ir.constant(ty, 1)))
        };
        let counts = ir.and(active, ir.not(unordered));
        let neutral = ir.constant(ty, if min { 0x7fff_ffff } else { 0x8000_0000 });
        let keys = ir.select(counts, key(bits), neutral);
        let name = if min { "llvm.vector.reduce.smin" } else { "llvm.vector.reduce.smax" };
        let best = ir.bitcast(key(ir.intrinsic(name, &[ty], &[keys])), ir.float());
        let nan = ir.bitcast(ir.constant(ir.int(32), 0x7fff_ffff), ir.float());
        let zero = ir.constant(ir.int(32), 0);
        let gives_nan = if inst.has(Modifier::NaN) {
            ir.icmp(IntPred::LLVMIntNE, self.as_mask(unordered), zero)
        } else {
            ir.icmp(IntPred::LLVMIntEQ, self.as_mask(counts), zero)
        };
        ir.select(gives_nan, nan, best)
    }

    pub(crate) fn elect(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let i32 = ir.int(32);
        let lanes = self.lanes.unwrap_or(1);
        let active = self.as_mask(self.active(inst)?);
        let members = self.broadcast(self.among(self.members(inst)?, active), lanes);
        let leader = ir.intrinsic("llvm.cttz", &[ir.type_of(members)], &[members, ir.constant(ir.int(1), 0)]);
        let is_leader = ir.icmp(IntPred::LLVMIntEQ, ir.steps(i32, lanes, 1), leader);
        for ((operand, ty), value) in self.written(inst).iter().zip([leader, is_leader]) {
            self.assign(operand, *ty, value)?;
        }
        Ok(())
    }

    /// Emits `bar` and `barrier`: the runtime brings the warps of a block together.
    pub(crate) fn barrier(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let i32 = ir.int(32);
        let inputs: Vec<(Operand, Type)> = broadloom_eval::inputs(inst).map(|(operand, ty)| (operand.clone(), ty)).collect();
        let numbers: Vec<&(Operand, Type)> = inputs.iter().filter(|(_, ty)| *ty != Type::Pred).collect();
        let number = |index: usize| -> TranslationResult<Val> {
            match numbers.get(index) {
                Some((operand, ty)) => self.fetch(operand, *ty, true),
                None => Ok(ir.constant(i32, 0)),
            }
        };
        let (id, threads) = (number(0)?, number(1)?);
        let active = self.arriving_lanes(inst)?;
        let mask = self.as_mask(active);
        let predicates = match inputs.iter().find(|(_, ty)| *ty == Type::Pred) {
            Some((operand, ty)) => {
                let brought = self.fetch(operand, *ty, self.lanes.is_none())?;
                self.as_mask(ir.and(self.brought_by_callers(inst, brought), active))
            }
            None => ir.constant(i32, 0),
        };
        let kind = if inst.has(Modifier::Arrive) {
            BarrierKind::Arrive
        } else if inst.has(Modifier::Popc) {
            BarrierKind::Count
        } else if inst.has(Modifier::And) {
            BarrierKind::All
        } else if inst.has(Modifier::Or) {
            BarrierKind::Any
        } else {
            BarrierKind::Sync
        };
        if self.lanes.is_some() {
            // Lanes that are not here have exited: see `linearise`.
            ir.store(ir.not(mask), ir.offset_by(self.warp, offset::EXITED), 4);
        }
        let arguments = [self.warp, id, threads, ir.constant(i32, kind as u64), mask, predicates];
        let arrive = |emitter: &Self| emitter.serve(Service::Barrier, i32, &arguments);
        let value = match (self.own_guard(inst)?, self.lanes) {
            (Some(_), None) => {
                let value = self.each_lane(active, Type::B32, true, |emitter, _| arrive(emitter));
                value.unwrap_or(ir.constant(i32, 0))
            }
            (Some(_), Some(_)) => self.if_any(active, i32, arrive),
            (None, _) => arrive(self),
        };
        for (operand, ty) in self.written(inst) {
            let value = match ty {
                Type::Pred => ir.icmp(IntPred::LLVMIntNE, value, ir.constant(i32, 0)),
                _ => value,
            };
            self.assign(&operand, ty, value)?;
        }
        Ok(())
    }

    /// Emits an instruction of a warp on the slow path.
    fn exchange(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let opcode = inst.opcode().ok_or_else(|| TranslationError("an opaque instruction".into()))?;
        let ty = inst.types().next().unwrap_or(Type::B32);
        let kind = exchange_kind(opcode, inst, ty);
        let convergent = opcode.takes_active_lanes();
        let count = broadloom_eval::inputs(inst).count();
        let members = if convergent || count == 0 { ir.constant(i32, 0xffff_ffff) } else { self.input(inst, count - 1)? };
        let value =
            if count > usize::from(!convergent) || opcode == Opcode::Vote { self.input(inst, 0)? } else { ir.constant(i32, 0) };
        let value = ir.bitcast(value, ir.int(ir.bits(ir.type_of(value))));
        let shuffles = matches!(opcode, Opcode::Shfl | Opcode::ShflSync);
        let (select, control) = match shuffles {
            true => (self.input(inst, 1)?, self.input(inst, 2)?),
            false => {
                let flags = u64::from(inst.has(Modifier::Abs)) | u64::from(inst.has(Modifier::NaN)) << 1;
                (ir.constant(i32, 0), ir.constant(i32, flags))
            }
        };
        let site = self.next_site();
        let bytes = ir.vector(ir.int(8), size_of::<ExchangeOperands>() as u32);
        let place = ir.stack(bytes, 8);
        let put = |value: Val, at: usize, align: u32| ir.store(value, ir.offset_by(place, at as u64), align);
        let active = self.active(inst)?;
        let result = self.each_lane(active, Type::B64, true, |emitter, _| {
            put(members, offset_of!(ExchangeOperands, members), 4);
            put(select, offset_of!(ExchangeOperands, select), 4);
            put(control, offset_of!(ExchangeOperands, control), 4);
            put(ir.constant(i32, 0), offset_of!(ExchangeOperands, flag), 4);
            put(ir.constant(i32, site), offset_of!(ExchangeOperands, site), 4);
            put(ir.constant(i32, u64::from(convergent)), offset_of!(ExchangeOperands, convergent), 4);
            put(ir.resize(value, i64, false), offset_of!(ExchangeOperands, value), 8);
            emitter.serve(Service::Exchange, ir.void(), &[emitter.warp, ir.constant(i32, kind as u64), place]);
            ir.load(i64, ir.offset_by(place, offset_of!(ExchangeOperands, value) as u64), 8)
        });
        let flag = ir.load(i32, ir.offset_by(place, offset_of!(ExchangeOperands, flag) as u64), 4);
        let result = result.unwrap_or(ir.constant(i64, 0));
        for (index, (operand, ty)) in self.written(inst).iter().enumerate() {
            let value = match (index, *ty) {
                (0, Type::Pred) => ir.icmp(IntPred::LLVMIntNE, result, ir.constant(i64, 0)),
                (0, ty) => ir.bitcast(ir.resize(result, ir.int(ty.bits()), false), self.value_type(ty)),
                (_, _) => ir.icmp(IntPred::LLVMIntNE, flag, ir.constant(i32, 0)),
            };
            self.assign(operand, *ty, value)?;
        }
        Ok(())
    }
}

fn exchange_kind(opcode: Opcode, inst: &InstData, ty: Type) -> Exchange {
    let has = |modifier: Modifier| inst.has(modifier);
    if matches!(opcode, Opcode::Shfl | Opcode::ShflSync) {
        return match (has(Modifier::Up), has(Modifier::Down), has(Modifier::Bfly)) {
            (true, _, _) => Exchange::ShuffleUp,
            (_, true, _) => Exchange::ShuffleDown,
            (_, _, true) => Exchange::ShuffleXor,
            (false, false, false) => Exchange::ShuffleIndex,
        };
    }
    if matches!(opcode, Opcode::Vote | Opcode::VoteSync) {
        return match (has(Modifier::Ballot), has(Modifier::All), has(Modifier::Any)) {
            (true, _, _) => Exchange::Ballot,
            (_, true, _) => Exchange::VoteAll,
            (_, _, true) => Exchange::VoteAny,
            (false, false, false) => Exchange::VoteUniform,
        };
    }
    if opcode == Opcode::ReduxSync {
        return reduction(inst, ty);
    }
    let others = [
        (Opcode::MatchAnySync, Exchange::MatchAny),
        (Opcode::MatchAllSync, Exchange::MatchAll),
        (Opcode::ElectSync, Exchange::Elect),
        (Opcode::Activemask, Exchange::Members),
    ];
    others.iter().find(|(other, _)| *other == opcode).map_or(Exchange::Wait, |(_, kind)| *kind)
}

/// Returns the reduction of `redux`.
fn reduction(inst: &InstData, ty: Type) -> Exchange {
    let plain = [
        (Modifier::Add, Exchange::Add),
        (Modifier::And, Exchange::And),
        (Modifier::Or, Exchange::Or),
        (Modifier::Xor, Exchange::Xor),
    ];
    match (inst.has(Modifier::Min), ty) {
        (true, Type::F32) => Exchange::MinFloat,
        (false, Type::F32) => Exchange::MaxFloat,
        (is_min, _) => match plain.iter().find(|(modifier, _)| inst.has(*modifier)) {
            Some((_, kind)) => *kind,
            None if is_min && ty.is_signed() => Exchange::MinSigned,
            None if is_min => Exchange::MinUnsigned,
            None if ty.is_signed() => Exchange::MaxSigned,
            None => Exchange::MaxUnsigned,
        },
    }
}
