//! Compacting stores: `out[n + __popc(mask & lanemask_lt)] = x` in the lanes of the mask, as programs write
//! them to keep some elements of a row.
//!
//! The address is traced back to the number of the mask's lanes below each lane. Two conditions are checked
//! at run time: the storing lanes are the lanes of the mask, and the address grows with the count without
//! wrapping around. If both hold, the values are compressed in registers and stored as a row. Otherwise each
//! value is stored on its own.

use super::address::LaneAccess;
use super::emitter::{Emitter, TranslationResult};
use super::llvm::{IntPred, Val};
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Reg, Space, Type};

/// Maximum number of instructions traced back from an address.
const STEPS: u32 = 8;

/// Number that differs between lanes only by the count of a mask's lanes below each lane.
pub(super) struct RankedNumber {
    /// Mask of the counted lanes.
    mask: Val,
    /// Condition that the lanes below are counted.
    below: Val,
    /// The number with no lane below, and with all lanes but one below.
    first: Val,
    last: Val,
}

impl Emitter<'_> {
    /// Returns the form of an address that grows with the number of lanes below, if it can be derived.
    pub(super) fn ranked(&self, reg: Reg) -> TranslationResult<Option<RankedNumber>> {
        if self.lanes != Some(32) || !self.host.avx512 { Ok(None) } else { self.ranked_in(reg, STEPS) }
    }

    fn ranked_in(&self, reg: Reg, steps: u32) -> TranslationResult<Option<RankedNumber>> {
        let ir = self.ir;
        let shown = |inst: &&InstData| steps > 0 && inst.guard.is_none() && self.shows(reg);
        let Some(inst) = self.definition(reg).filter(shown) else { return Ok(None) };
        let types: Vec<Type> = inst.types().collect();
        let (Some(to), Some(from)) = (types.first(), types.last()) else { return Ok(None) };
        let wide = |value: Val| ir.resize(value, ir.int(64), from.is_signed());
        let ranked = |index: usize| match inst.operands.get(index) {
            Some(Operand::Reg(reg)) if !self.shapes.shape(*reg).is_uniform() => self.ranked_in(*reg, steps - 1),
            _ => Ok(None),
        };
        let number = |index: usize| match inst.operands.get(index) {
            Some(Operand::Imm(imm)) => imm.integer_bits().map(|bits| ir.constant(ir.int(64), bits)),
            _ => None,
        };
        let factor = || {
            number(2).filter(|_| {
                if from.bits() == 64 { inst.has(Modifier::Lo) } else { inst.has(Modifier::Wide) && from.bits() == 32 }
            })
        };
        let added = |index: usize, ty: Type| match inst.operands.get(index) {
            Some(Operand::Reg(reg)) if !self.shapes.shape(*reg).is_uniform() => Ok(None),
            Some(operand @ (Operand::Reg(_) | Operand::Imm(_))) => Ok(Some(self.fetch(operand, ty, true)?)),
            _ => Ok(None),
        };
        let changed = |ranked: Option<RankedNumber>, change: &dyn Fn(Val) -> Val| {
            ranked.map(|ranked| RankedNumber { first: change(ranked.first), last: change(ranked.last), ..ranked })
        };
        let is = |opcode: Opcode| inst.opcode() == Some(opcode);
        let is_wider = types.iter().map(|ty| ty.bits()).eq([64, 32]) && types.iter().all(|ty| ty.is_integer());
        Ok(if is(Opcode::Popc) && from.bits() == 32 {
            match inst.operands.get(1) {
                Some(Operand::Reg(reg)) => self.rank(*reg)?,
                _ => None,
            }
        } else if is(Opcode::Add) && to.is_integer() && matches!(to.bits(), 32 | 64) && !inst.has(Modifier::Sat) {
            let (own, more) = match ranked(1)? {
                Some(own) => (Some(own), added(2, *to)?),
                None => (ranked(2)?, added(1, *to)?),
            };
            more.and_then(|more| changed(own, &|value| ir.add(value, more)))
        } else if is(Opcode::Cvt) && is_wider && !inst.has(Modifier::Sat) {
            changed(ranked(1)?, &wide)
        } else if (is(Opcode::Cvta) || is(Opcode::CvtaTo)) && inst.space() == Space::Global {
            ranked(1)?
        } else if is(Opcode::Shl) && to.bits() == 64 {
            let by = number(2).filter(|by| ir.as_constant(*by).is_some_and(|by| by < 32));
            by.map(|by| Ok(changed(ranked(1)?, &|value| ir.shl(value, by)))).transpose()?.flatten()
        } else if is(Opcode::Mul) {
            factor().map(|by| Ok(changed(ranked(1)?, &|value| ir.mul(wide(value), by)))).transpose()?.flatten()
        } else if is(Opcode::Mad) {
            match (factor(), added(3, Type::B64)?) {
                (Some(by), Some(more)) => changed(ranked(1)?, &|value| ir.add(ir.mul(wide(value), by), more)),
                _ => None,
            }
        } else {
            None
        })
    }

    /// Matches the population count of a register that is a uniform mask, restricted in each lane to the
    /// lanes below it.
    fn rank(&self, reg: Reg) -> TranslationResult<Option<RankedNumber>> {
        let ir = self.ir;
        let i32 = ir.int(32);
        let shown = |inst: &&InstData| inst.opcode() == Some(Opcode::And) && inst.guard.is_none() && self.shows(reg);
        let Some(inst) = self.definition(reg).filter(shown) else { return Ok(None) };
        let [_, Operand::Reg(a), Operand::Reg(b)] = inst.operands.as_slice() else { return Ok(None) };
        let (mask, lanes) = match [a, b].map(|reg| self.shapes.shape(*reg).is_uniform()) {
            [true, false] => (*a, *b),
            [false, true] => (*b, *a),
            _ => return Ok(None),
        };
        let mask = self.lane0(mask)?;
        let expected: Vec<i64> = (0..32).map(|lane| (1 << lane) - 1).collect();
        let equal = ir.icmp(IntPred::LLVMIntEQ, self.all_lanes(lanes)?, self.numbers(i32, &expected));
        let below = ir.icmp(IntPred::LLVMIntEQ, self.as_mask(equal), ir.constant(i32, u64::from(u32::MAX)));
        let count = ir.intrinsic("llvm.ctpop", &[i32], &[mask]);
        Ok(Some(RankedNumber { mask, below, first: ir.constant(i32, 0), last: ir.sub(count, ir.constant(i32, 1)) }))
    }

    /// Stores the values of the lanes as a row if their addresses are consecutive.
    pub(super) fn store_compact(
        &self,
        access: &LaneAccess,
        ranked: &RankedNumber,
        offset: i64,
        pointers: Val,
        guard: Val,
    ) -> TranslationResult<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let lanes = self.broadcast(guard, 32);
        let mask = self.as_mask(lanes);
        let behind = ir.sub(ir.zext(ir.intrinsic("llvm.ctpop", &[ir.int(32)], &[mask]), i64), ir.constant(i64, 1));
        let far = ir.mul(behind, ir.constant(i64, access.total()));
        let fits = ir.icmp(IntPred::LLVMIntEQ, ir.sub(ranked.last, ranked.first), far);
        let same = ir.icmp(IntPred::LLVMIntEQ, mask, ranked.mask);
        let (in_row, apart, after) = (ir.block("row"), ir.block("apart"), ir.block("stored"));
        ir.branch_if(ir.and(ir.and(same, ranked.below), fits), in_row, apart);
        ir.go_on_in(in_row);
        let start = ir.as_pointer(ir.add(ranked.first, ir.constant(i64, offset as u64)));
        self.store_together(access, start, lanes)?;
        ir.branch(after);
        ir.go_on_in(apart);
        self.scatter(access, pointers, Some(guard))?;
        ir.branch(after);
        ir.go_on_in(after);
        Ok(())
    }

    /// Stores the values of a mask's lanes contiguously. Hosts that can compress words may lack it for
    /// smaller elements, and on some hosts a compressing store to memory is very slow.
    fn store_together(&self, access: &LaneAccess, start: Val, lanes: Val) -> TranslationResult<()> {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let all = self.together(&self.stored(access)?, 32);
        let mask = self.widened_mask(lanes, access.operands.len());
        let element = ir.element(ir.type_of(all));
        let (word, piece) = if access.bytes == 8 { (i64, 8) } else { (i32, 16) };
        let mut place = start;
        for from in (0..ir.lanes(all).unwrap_or(0)).step_by(piece as usize) {
            let picks: Vec<u32> = (from..from + piece).collect();
            let (words, chosen) = (ir.resize(ir.pick(all, &picks), word, false), ir.pick(mask, &picks));
            let ty = ir.type_of(words);
            let words = ir.intrinsic("llvm.x86.avx512.mask.compress", &[ty], &[words, ir.zero(ty), chosen]);
            let bits = ir.int(piece);
            let count = ir.zext(ir.intrinsic("llvm.ctpop", &[bits], &[ir.bitcast_whole(chosen, bits)]), i32);
            let taken = ir.sub(ir.shl(ir.constant(i32, 1), count), ir.constant(i32, 1));
            let taken = ir.bitcast_whole(ir.trunc(taken, bits), ir.vector(ir.int(1), piece));
            let values = ir.resize(words, element, false);
            let align = ir.constant(i32, access.bytes);
            ir.intrinsic("llvm.masked.store", &[ir.type_of(values), ir.pointer()], &[values, place, align, taken]);
            place = ir.offset(place, ir.mul(ir.zext(count, i64), ir.constant(i64, access.bytes)));
        }
        Ok(())
    }
}
