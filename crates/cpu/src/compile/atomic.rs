//! `atom` and `red` (manual: "Parallel Synchronization and Communication Instructions").
//!
//! Lanes run one after the other, lowest first. If all lanes do an integer sum, minimum or bit operation on
//! one address and the old value is unused, the values are reduced first and one operation is done. A block
//! runs on one core and its warps never interrupt each other in between, so atomics on shared memory, and
//! those of block scope, are plain reads and writes.

use super::address::Reach;
use super::counters::is_number;
use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::lane_loop::{LaneNumber, SpilledValue};
use super::llvm::{IntPred, Ordering, RealPred, Rmw, Ty, Val};
use super::operand::bits_type;
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Space, Type};

/// The threads that may do atomics on the same memory at the same time, and the kind of the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reachable {
    /// Shared memory of the block.
    Shared,
    /// Other memory, which only threads of the block update.
    Block,
    /// Memory that all threads update.
    Device,
}

impl Reachable {
    fn of(inst: &InstData, space: Space) -> Reachable {
        match space {
            Space::Shared => Reachable::Shared,
            _ if inst.has(Modifier::Cta) => Reachable::Block,
            _ => Reachable::Device,
        }
    }

    /// Returns whether no other thread can interrupt an update.
    fn is_plain(self) -> bool {
        self != Reachable::Device
    }
}

/// Operation of an atomic on the old value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Update {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exch,
    Cas,
}

impl Update {
    fn of(inst: &InstData) -> Option<Update> {
        let table = [
            (Modifier::Cas, Update::Cas),
            (Modifier::Exch, Update::Exch),
            (Modifier::Add, Update::Add),
            (Modifier::Min, Update::Min),
            (Modifier::Max, Update::Max),
            (Modifier::Inc, Update::Inc),
            (Modifier::Dec, Update::Dec),
            (Modifier::And, Update::And),
            (Modifier::Or, Update::Or),
            (Modifier::Xor, Update::Xor),
        ];
        table.iter().find(|(modifier, _)| inst.has(*modifier)).map(|(_, update)| *update)
    }
}

impl Emitter<'_> {
    pub(crate) fn atomic(&mut self, inst: &InstData) -> TranslationResult<()> {
        let update = Update::of(inst).ok_or_else(|| TranslationError("an atomic that does nothing".into()))?;
        let ty = inst.types().next().unwrap_or(Type::B32);
        let address = self.address_of(inst)?;
        let keeps = inst.opcode() == Some(Opcode::Atom);
        let reads = inst.operands.iter().skip(if keeps { 2 } else { 1 });
        let operands: Vec<&Operand> = reads.take(if update == Update::Cas { 2 } else { 1 }).collect();
        let count = operands.first().map_or(1, |operand| operand.elements().len() as u64);
        self.check_access(inst, &address, count * u64::from(ty.bytes()))?;
        let reach = self.reach(inst, &address)?;
        let reachable = Reachable::of(inst, self.space_of(inst, &address));
        let shared = reachable == Reachable::Shared;
        let result = if keeps { inst.operands.first().cloned() } else { None };
        let wanted = match &result {
            Some(Operand::Reg(reg)) => self.is_used(*reg),
            Some(Operand::Vector(_)) => true,
            _ => false,
        };
        self.ir.compiler_fence();
        if let Some(Operand::Vector(values)) = operands.first() {
            let values = values.to_vec();
            return self.atomic_vector(inst, update, ty, &reach, reachable, &values, result.as_ref());
        }
        if !wanted && self.combine(inst, update, ty, &reach, operands[0])? {
            self.ir.compiler_fence();
            if let Some(result) = result {
                let nothing = self.constant(0, bits_type(ty), true);
                self.assign(&result, bits_type(ty), nothing)?;
            }
            return Ok(());
        }
        let values: Vec<Val> = operands
            .iter()
            .map(|operand| self.fetch(operand, bits_type(ty), self.is_same_everywhere(operand)))
            .collect::<TranslationResult<_>>()?;
        let active = self.active(inst)?;
        let counts = shared && update == Update::Add && ty.bits() == 32 && is_number(ty);
        let counted = if counts && !wanted { self.count_apart(inst, &address, values[0], active)? } else { None };
        let same = if counts { self.add_same(&address, &reach, values[0], active)? } else { None };
        let old = match same {
            Some(old) => Some(old),
            None => {
                let values: Vec<SpilledValue> = values.into_iter().map(|value| self.spill(value)).collect();
                let pointers = self.spill(self.addresses(&reach));
                let act = |emitter: &Self, lane: LaneNumber| {
                    let pointer = emitter.ir.as_pointer(emitter.lane_of(pointers, lane));
                    let values: Vec<Val> = values.iter().map(|value| emitter.lane_of(*value, lane)).collect();
                    emitter.update(update, ty, pointer, &values, reachable)
                };
                if reachable.is_plain() && !wanted {
                    self.each_lane_in_a_row(active, ty, act);
                    None
                } else {
                    self.each_lane(active, ty, wanted, act)
                }
            }
        };
        if let Some(after) = counted {
            self.ir.branch(after);
            self.ir.go_on_in(after);
        }
        self.ir.compiler_fence();
        match (result, old.filter(|_| wanted)) {
            (Some(result), Some(old)) => self.assign(&result, bits_type(ty), old),
            (Some(result), None) => {
                let nothing = self.constant(0, bits_type(ty), true);
                self.assign(&result, bits_type(ty), nothing)
            }
            (None, _) => Ok(()),
        }
    }

    /// Returns whether an operand is equal in all lanes.
    fn is_same_everywhere(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Reg(reg) => self.lanes.is_none() || self.shapes.shape(*reg).is_uniform(),
            Operand::Imm(_) => true,
            _ => self.lanes.is_none(),
        }
    }

    /// Emits an atomic on a vector, whose elements are atomic one by one.
    #[allow(clippy::too_many_arguments, reason = "all of them are the instruction")]
    fn atomic_vector(
        &mut self,
        inst: &InstData,
        update: Update,
        ty: Type,
        reach: &Reach,
        reachable: Reachable,
        elements: &[Operand],
        result: Option<&Operand>,
    ) -> TranslationResult<()> {
        let places = match result {
            Some(Operand::Vector(places)) => places.to_vec(),
            _ => vec![],
        };
        let addresses = self.addresses(reach);
        for (index, element) in elements.iter().enumerate() {
            let offset = self.ir.constant(self.ir.type_of(addresses), index as u64 * u64::from(ty.bytes()));
            let pointers = self.spill(self.ir.add(addresses, offset));
            let value = self.spill(self.fetch(element, bits_type(ty), self.lanes.is_none())?);
            let active = self.active(inst)?;
            let old = self.each_lane(active, ty, !places.is_empty(), |emitter, lane| {
                let pointer = emitter.ir.as_pointer(emitter.lane_of(pointers, lane));
                let value = emitter.lane_of(value, lane);
                emitter.update(update, ty, pointer, &[value], reachable)
            });
            if let (Some(place), Some(old)) = (places.get(index), old) {
                self.assign(place, bits_type(ty), old)?;
            }
        }
        Ok(())
    }

    /// Emits one operation for all lanes, if order does not matter and all use one address. Returns whether
    /// it did.
    fn combine(
        &mut self,
        inst: &InstData,
        update: Update,
        ty: Type,
        reach: &Reach,
        operand: &Operand,
    ) -> TranslationResult<bool> {
        let ir = self.ir;
        let Reach::Uniform(pointer) = reach else { return Ok(false) };
        if self.lanes.is_none() || !is_number(ty) || !matches!(ty.bits(), 32 | 64) {
            return Ok(false);
        }
        let (name, neutral) = match (update, ty.is_signed()) {
            (Update::Add, _) => ("llvm.vector.reduce.add", 0),
            (Update::Or, _) => ("llvm.vector.reduce.or", 0),
            (Update::Xor, _) => ("llvm.vector.reduce.xor", 0),
            (Update::And, _) => ("llvm.vector.reduce.and", u64::MAX),
            (Update::Min, true) => ("llvm.vector.reduce.smin", (1 << (ty.bits() - 1)) - 1),
            (Update::Min, false) => ("llvm.vector.reduce.umin", u64::MAX),
            (Update::Max, true) => ("llvm.vector.reduce.smax", 1 << (ty.bits() - 1)),
            (Update::Max, false) => ("llvm.vector.reduce.umax", 0),
            (Update::Inc | Update::Dec | Update::Exch | Update::Cas, _) => return Ok(false),
        };
        let value = self.fetch(operand, bits_type(ty), false)?;
        let active = self.active(inst)?;
        let vector = ir.type_of(value);
        let value = ir.select(active, value, ir.constant(vector, neutral));
        let total = ir.intrinsic(name, &[vector], &[value]);
        let (go, after) = (ir.block("combined"), ir.block("after"));
        ir.branch_if(self.any(active), go, after);
        ir.go_on_in(go);
        let reachable = Reachable::of(inst, self.space_of(inst, &self.address_of(inst)?));
        self.update(update, ty, *pointer, &[total], reachable);
        ir.branch(after);
        ir.go_on_in(after);
        Ok(true)
    }

    /// Emits one atomic on values that are integers of the type's width. Returns the old value.
    fn update(&self, update: Update, ty: Type, pointer: Val, values: &[Val], reachable: Reachable) -> Val {
        let ir = self.ir;
        let int = ir.int(ty.bits());
        let shared = reachable == Reachable::Shared;
        if reachable.is_plain() || ty.bits() > 64 && !self.host_has_wide_atomics() {
            let old = ir.load(int, pointer, ty.bytes());
            let old = if shared { old } else { ir.freeze(old) };
            let new = self.changed(update, ty, old, values, !shared);
            ir.store(new, pointer, ty.bytes());
            return old;
        }
        let order = Ordering::LLVMAtomicOrderingSequentiallyConsistent;
        let integer = is_number(ty);
        let rmw = match (update, integer, ty.is_signed()) {
            (Update::Cas, ..) => return ir.compare_exchange(pointer, values[0], values[1]),
            (Update::Exch, ..) => Some(Rmw::LLVMAtomicRMWBinOpXchg),
            (Update::Add, true, _) => Some(Rmw::LLVMAtomicRMWBinOpAdd),
            (Update::And, true, _) => Some(Rmw::LLVMAtomicRMWBinOpAnd),
            (Update::Or, true, _) => Some(Rmw::LLVMAtomicRMWBinOpOr),
            (Update::Xor, true, _) => Some(Rmw::LLVMAtomicRMWBinOpXor),
            (Update::Min, true, true) => Some(Rmw::LLVMAtomicRMWBinOpMin),
            (Update::Min, true, false) => Some(Rmw::LLVMAtomicRMWBinOpUMin),
            (Update::Max, true, true) => Some(Rmw::LLVMAtomicRMWBinOpMax),
            (Update::Max, true, false) => Some(Rmw::LLVMAtomicRMWBinOpUMax),
            (Update::Inc | Update::Dec, ..) | (_, false, _) => None,
        };
        if let Some(rmw) = rmw {
            return ir.atomic(rmw, pointer, values[0], order);
        }
        // Retry until no other thread has changed the value in between.
        let (start, again, done) = (ir.here(), ir.block("again"), ir.block("changed"));
        let first = ir.freeze(ir.load(int, pointer, ty.bytes()));
        ir.branch(again);
        ir.go_on_in(again);
        let old = ir.phi(int);
        ir.incoming(old, first, start);
        let new = self.changed(update, ty, old, values, true);
        let seen = ir.compare_exchange(pointer, old, new);
        let same = ir.icmp(IntPred::LLVMIntEQ, seen, old);
        ir.incoming(old, seen, ir.here());
        ir.branch_if(same, done, again);
        ir.go_on_in(done);
        old
    }

    /// Returns the new contents of memory.
    fn changed(&self, update: Update, ty: Type, old: Val, values: &[Val], flush: bool) -> Val {
        let ir = self.ir;
        let int = ir.type_of(old);
        let value = values[0];
        match update {
            Update::Exch => return value,
            Update::Cas => {
                let same = ir.icmp(IntPred::LLVMIntEQ, old, value);
                return ir.select(same, values[1], old);
            }
            Update::Inc => {
                let over = ir.icmp(IntPred::LLVMIntUGE, old, value);
                return ir.select(over, ir.constant(int, 0), ir.add(old, ir.constant(int, 1)));
            }
            Update::Dec => {
                let under = ir.icmp(IntPred::LLVMIntEQ, old, ir.constant(int, 0));
                let over = ir.icmp(IntPred::LLVMIntUGT, old, value);
                return ir.select(ir.or(under, over), value, ir.sub(old, ir.constant(int, 1)));
            }
            Update::And => return ir.and(old, value),
            Update::Or => return ir.or(old, value),
            Update::Xor => return ir.xor(old, value),
            Update::Add | Update::Min | Update::Max => {}
        }
        match ty {
            Type::F32 => self.changed_float(update, old, value, ir.float(), flush),
            Type::F64 => self.changed_float(update, old, value, ir.double(), false),
            Type::F16 | Type::Bf16 => self.changed_half(update, ty, old, value),
            Type::F16x2 | Type::Bf16x2 => {
                let ty = if ty == Type::F16x2 { Type::F16 } else { Type::Bf16 };
                let (i16, sixteen) = (ir.int(16), ir.constant(int, 16));
                let high = |value: Val| ir.trunc(ir.lshr(value, sixteen), i16);
                let low = self.changed_half(update, ty, ir.trunc(old, i16), ir.trunc(value, i16));
                let top = self.changed_half(update, ty, high(old), high(value));
                ir.or(ir.zext(low, ir.int(32)), ir.shl(ir.zext(top, ir.int(32)), sixteen))
            }
            _ => {
                let less = match (update, ty.is_signed()) {
                    (Update::Add, _) => return ir.add(old, value),
                    (Update::Min, true) => IntPred::LLVMIntSLT,
                    (Update::Min, false) => IntPred::LLVMIntULT,
                    (_, true) => IntPred::LLVMIntSGT,
                    (_, false) => IntPred::LLVMIntUGT,
                };
                ir.select(ir.icmp(less, old, value), old, value)
            }
        }
    }

    /// Returns the new contents of memory for a float. Sums give the canonical NaN. A number beats NaN in the
    /// other operations, and -0 is less than +0.
    fn changed_float(&self, update: Update, old: Val, value: Val, float: Ty, flush: bool) -> Val {
        let ir = self.ir;
        let int = ir.type_of(old);
        let seen = |bits: Val| {
            let value = ir.bitcast(bits, float);
            if flush { self.flushed(value) } else { value }
        };
        let nan = ir.bitcast(ir.constant(int, if ir.bits(int) == 32 { 0x7fff_ffff } else { u64::MAX >> 1 }), float);
        let unordered = |value: Val| ir.fcmp(RealPred::LLVMRealUNO, value, value);
        let result = if update == Update::Add {
            let sum = ir.fadd(seen(old), seen(value));
            let sum = if flush { self.flushed(sum) } else { sum };
            ir.select(unordered(sum), nan, sum)
        } else {
            let (a, b) = (ir.bitcast(old, float), ir.bitcast(value, float));
            let min = update == Update::Min;
            let first = ir.fcmp(if min { RealPred::LLVMRealOLT } else { RealPred::LLVMRealOGT }, a, b);
            let merged = if min { ir.or(old, value) } else { ir.and(old, value) };
            let chosen = ir.select(ir.fcmp(RealPred::LLVMRealOEQ, a, b), ir.bitcast(merged, float), ir.select(first, a, b));
            let chosen = ir.select(unordered(b), a, chosen);
            let chosen = ir.select(unordered(a), b, chosen);
            ir.select(ir.and(unordered(a), unordered(b)), nan, chosen)
        };
        ir.bitcast(result, int)
    }

    /// Returns the new contents of memory for a half. Halves are added in `f32`, whose 24 bits suffice to
    /// make double rounding equal to single rounding.
    fn changed_half(&self, update: Update, ty: Type, old: Val, value: Val) -> Val {
        let ir = self.ir;
        let (i16, i32) = (ir.int(16), ir.int(32));
        let wide = |bits: Val| {
            if ty == Type::F16 {
                ir.fpext(ir.bitcast(bits, ir.half()), ir.float())
            } else {
                ir.bitcast(ir.shl(ir.zext(bits, i32), ir.constant(i32, 16)), ir.float())
            }
        };
        let (a, b) = (ir.bitcast(wide(old), i32), ir.bitcast(wide(value), i32));
        let result = ir.bitcast(self.changed_float(update, a, b, ir.float(), false), ir.float());
        let unordered = ir.fcmp(RealPred::LLVMRealUNO, result, result);
        let narrow = if ty == Type::F16 {
            ir.bitcast(ir.fptrunc(result, ir.half()), i16)
        } else {
            let bits = ir.bitcast(result, i32);
            let odd = ir.and(ir.lshr(bits, ir.constant(i32, 16)), ir.constant(i32, 1));
            let rounded = ir.add(bits, ir.add(odd, ir.constant(i32, 0x7fff)));
            ir.trunc(ir.lshr(rounded, ir.constant(i32, 16)), i16)
        };
        ir.select(unordered, ir.constant(i16, 0x7fff), narrow)
    }

    /// Returns whether the host has 128-bit atomics. Every host that this is compiled for has them.
    fn host_has_wide_atomics(&self) -> bool {
        self.host.wide_atomics
    }
}
