//! Logic, shifts and bit fields (manual: "Logic and Shift Instructions", "Bit Field Extract", …).

use super::emitter::Emitter;
use super::evaluate::LoweringResult;
use super::llvm::{IntPred, Val};
use broadloom_eval::Operation;
use broadloom_ptx::{Modifier, Opcode};

impl Emitter<'_> {
    pub(crate) fn cnot(&self, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let ty = ir.type_of(inputs[0]);
        let is_zero = ir.icmp(IntPred::LLVMIntEQ, inputs[0], ir.constant(ty, 0));
        Some(ir.zext(is_zero, ty))
    }

    /// Emits any function of three bits, as the or of the rows of its table. LLVM selects the machine's
    /// instruction for it.
    pub(crate) fn lop3(&self, op: &Operation, inputs: &[Val]) -> Option<Vec<Val>> {
        let ir = self.ir;
        let with_predicate = inputs.len() > 4;
        let (lut, third) = (*inputs.get(3)?, inputs.get(4));
        let table = ir.as_constant(self.first_lane(lut))?;
        let ty = ir.type_of(inputs[0]);
        let mut value = ir.constant(ty, 0);
        // Rows with c clear and with c set, each a function of two bits.
        let two = |low: u64| -> Val {
            let (a, b) = (inputs[0], inputs[1]);
            let all = ir.constant(ty, u64::MAX);
            match low & 0xf {
                0b0000 => ir.constant(ty, 0),
                0b0001 => ir.not(ir.or(a, b)),
                0b0010 => ir.and(ir.not(a), b),
                0b0011 => ir.not(a),
                0b0100 => ir.and(a, ir.not(b)),
                0b0101 => ir.not(b),
                0b0110 => ir.xor(a, b),
                0b0111 => ir.not(ir.and(a, b)),
                0b1000 => ir.and(a, b),
                0b1001 => ir.not(ir.xor(a, b)),
                0b1010 => b,
                0b1011 => ir.or(ir.not(a), b),
                0b1100 => a,
                0b1101 => ir.or(a, ir.not(b)),
                0b1110 => ir.or(a, b),
                _ => all,
            }
        };
        // Bit 4a + 2b + c of the table is the result for a, b, c.
        let row = |c: u64| (0..4).fold(0, |bits, ab| bits | (table >> (2 * ab + c) & 1) << ab);
        let (clear, set) = (row(0), row(1));
        if clear == set {
            value = ir.or(value, two(clear));
        } else {
            let c = inputs[2];
            let (without, with) = (ir.and(two(clear), ir.not(c)), ir.and(two(set), c));
            value = ir.or(without, with);
        }
        if !with_predicate {
            return Some(vec![value]);
        }
        let nonzero = ir.icmp(IntPred::LLVMIntNE, value, ir.constant(ty, 0));
        let third = *third?;
        let flag = if op.has(Modifier::And) { ir.and(nonzero, third) } else { ir.or(nonzero, third) };
        Some(vec![value, flag])
    }

    /// Returns the scalar itself, or the first lane of a vector.
    pub(crate) fn first_lane(&self, value: Val) -> Val {
        if self.ir.lanes(value).is_some() { self.ir.extract_at(value, 0) } else { value }
    }

    /// Emits a shift. Amounts of the width or more give zero, or the sign in all bits.
    pub(crate) fn shift(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let ty = ir.type_of(inputs[0]);
        let bits = u64::from(op.ty.bits());
        // Amounts are 32 bits wide for every type.
        let amount_ty = ir.type_of(inputs[1]);
        let most = ir.constant(amount_ty, bits - 1);
        let over = ir.icmp(IntPred::LLVMIntUGT, inputs[1], most);
        if op.opcode != Opcode::Shl && op.ty.is_signed() {
            return Some(ir.ashr(inputs[0], ir.resize(ir.select(over, most, inputs[1]), ty, false)));
        }
        // LLVM's shift by too much is poison, which the selection drops. Shifts of vectors give zero then, and LLVM knows this form.
        let amount = ir.resize(inputs[1], ty, false);
        let shifted = if op.opcode == Opcode::Shl { ir.shl(inputs[0], amount) } else { ir.lshr(inputs[0], amount) };
        Some(ir.select(over, ir.constant(ty, 0), shifted))
    }

    /// Emits `shf`: 32 bits out of 64, shifted by at most 32.
    pub(crate) fn funnel(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let (low, high, amount) = (inputs[0], inputs[1], inputs[2]);
        let ty = ir.type_of(low);
        let left = op.has(Modifier::L);
        let name = if left { "llvm.fshl" } else { "llvm.fshr" };
        // The intrinsics take the amount modulo 32, as `.wrap` does.
        let value = ir.intrinsic(name, &[ty], &[high, low, amount]);
        if op.has(Modifier::Wrap) {
            return Some(value);
        }
        let over = ir.icmp(IntPred::LLVMIntUGE, amount, ir.constant(ty, 32));
        Some(ir.select(over, if left { low } else { high }, value))
    }

    pub(crate) fn popc(&self, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        Some(ir.resize(ir.intrinsic("llvm.ctpop", &[ir.type_of(inputs[0])], &[inputs[0]]), ir.int(32), false))
    }

    pub(crate) fn clz(&self, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let defined = ir.constant(ir.int(1), 0);
        Some(ir.resize(ir.intrinsic("llvm.ctlz", &[ir.type_of(inputs[0])], &[inputs[0], defined]), ir.int(32), false))
    }

    pub(crate) fn brev(&self, inputs: &[Val]) -> LoweringResult {
        Some(self.ir.intrinsic("llvm.bitreverse", &[self.ir.type_of(inputs[0])], &[inputs[0]]))
    }

    /// Emits `bfind`: the index of the highest bit that differs from the sign, or its distance from the top.
    pub(crate) fn bfind(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let ty = ir.type_of(inputs[0]);
        let bits = u64::from(op.ty.bits());
        let value = if op.ty.is_signed() { ir.xor(inputs[0], ir.ashr(inputs[0], ir.constant(ty, bits - 1))) } else { inputs[0] };
        let zeros = ir.intrinsic("llvm.ctlz", &[ty], &[value, ir.constant(ir.int(1), 0)]);
        let zeros = ir.resize(zeros, ir.int(32), false);
        let wide = ir.type_of(zeros);
        let none = ir.icmp(IntPred::LLVMIntEQ, value, ir.constant(ty, 0));
        let found = if op.has(Modifier::Shiftamt) { zeros } else { ir.sub(ir.constant(wide, bits - 1), zeros) };
        Some(ir.select(none, ir.constant(wide, u64::MAX), found))
    }

    /// Emits `bfe`. Position and length are taken modulo 256. Bits above the top are copies of the sign, or
    /// zero.
    pub(crate) fn bfe(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let (position, length) = (ir.as_constant(self.first_lane(inputs[1]))?, ir.as_constant(self.first_lane(inputs[2]))?);
        if !ir.is_constant(inputs[1]) || !ir.is_constant(inputs[2]) {
            return None;
        }
        let ty = ir.type_of(inputs[0]);
        let bits = u64::from(op.ty.bits());
        let (position, length) = (position & 0xff, length & 0xff);
        if length == 0 {
            return Some(ir.constant(ty, 0));
        }
        if position >= bits || position + length > bits {
            return None;
        }
        let up = ir.shl(inputs[0], ir.constant(ty, bits - position - length));
        let down = ir.constant(ty, bits - length);
        Some(if op.ty.is_signed() { ir.ashr(up, down) } else { ir.lshr(up, down) })
    }

    pub(crate) fn bfi(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        if !ir.is_constant(inputs[2]) || !ir.is_constant(inputs[3]) {
            return None;
        }
        let (position, length) = (ir.as_constant(self.first_lane(inputs[2]))?, ir.as_constant(self.first_lane(inputs[3]))?);
        let (position, length) = (position & 0xff, length & 0xff);
        let bits = u64::from(op.ty.bits());
        if length == 0 || position >= bits {
            return Some(inputs[1]);
        }
        let ty = ir.type_of(inputs[0]);
        let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
        let mask = ir.constant(ty, ones << position);
        let moved = ir.and(ir.shl(inputs[0], ir.constant(ty, position)), mask);
        Some(ir.or(moved, ir.and(inputs[1], ir.not(mask))))
    }

    /// Emits `prmt`: bytes of two words, selected by the nibbles of a constant.
    pub(crate) fn prmt(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        let named = [Modifier::F4e, Modifier::B4e, Modifier::Rc8, Modifier::Ecl, Modifier::Ecr, Modifier::Rc16];
        if named.iter().any(|mode| op.has(*mode)) || !ir.is_constant(inputs[2]) {
            return None;
        }
        let selector = ir.as_constant(self.first_lane(inputs[2]))?;
        let ty = ir.type_of(inputs[0]);
        let mut value = ir.constant(ty, 0);
        for place in 0..4u64 {
            let nibble = selector >> (4 * place) & 0xf;
            let source = inputs[usize::from(nibble & 4 != 0)];
            let up = ir.shl(source, ir.constant(ty, 24 - 8 * (nibble & 3)));
            // The top bit of a nibble selects copies of the byte's sign.
            let byte = if nibble & 8 != 0 {
                ir.lshr(ir.ashr(up, ir.constant(ty, 31)), ir.constant(ty, 24))
            } else {
                ir.lshr(up, ir.constant(ty, 24))
            };
            value = ir.or(value, ir.shl(byte, ir.constant(ty, 8 * place)));
        }
        Some(value)
    }
}
