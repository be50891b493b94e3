//! Floating-point arithmetic (manual: "Floating-Point Instructions", "Half Precision Floating-Point
//! Instructions").
//!
//! Hosts round to nearest; all other roundings are evaluated lane by lane. Nothing is reassociated or
//! contracted. Halves are computed in `f32`, or for `fma` in `f64`. These formats are wide enough that double
//! rounding equals single rounding.

use super::emitter::{Emitter, TranslationResult};
use super::evaluate::LoweringResult;
use super::llvm::{IntPred, RealPred, Val};
use broadloom_eval::Operation;
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Type};

/// Returns whether an instruction flushes results that the host may first round up to the smallest normal
/// number.
pub(crate) fn may_flush_late(inst: &InstData) -> bool {
    let rounds = matches!(inst.opcode(), Some(Opcode::Mul | Opcode::Fma | Opcode::Mad | Opcode::Div | Opcode::Rcp));
    rounds && Operation::of(inst).is_some_and(|op| op.flushes() && op.ty == Type::F32)
}

/// Returns whether an instruction has a rounding mode other than to nearest.
pub(crate) fn rounds_specially(op: &Operation) -> bool {
    [Modifier::Rz, Modifier::Rm, Modifier::Rp, Modifier::Rna, Modifier::Rs].iter().any(|mode| op.has(*mode))
}

/// Returns the AVX-512 intrinsic with an explicit rounding mode, and its number of lanes.
fn directed_intrinsic(opcode: Opcode, ty: Type) -> Option<(&'static str, u32)> {
    if !matches!(ty, Type::F32 | Type::F64) {
        return None;
    }
    let (single, double) = if opcode == Opcode::Add {
        ("llvm.x86.avx512.add.ps.512", "llvm.x86.avx512.add.pd.512")
    } else if opcode == Opcode::Sub {
        ("llvm.x86.avx512.sub.ps.512", "llvm.x86.avx512.sub.pd.512")
    } else if opcode == Opcode::Mul {
        ("llvm.x86.avx512.mul.ps.512", "llvm.x86.avx512.mul.pd.512")
    } else if opcode == Opcode::Div {
        ("llvm.x86.avx512.div.ps.512", "llvm.x86.avx512.div.pd.512")
    } else {
        ("llvm.x86.avx512.vfmadd.ps.512", "llvm.x86.avx512.vfmadd.pd.512")
    };
    Some(if ty == Type::F64 { (double, 8) } else { (single, 16) })
}

impl Emitter<'_> {
    /// Flushes subnormal numbers to zero, keeping the sign.
    pub(crate) fn flushed(&self, value: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(value);
        let least = ir.real(ty, f64::from(f32::MIN_POSITIVE));
        let magnitude = ir.intrinsic("llvm.fabs", &[ty], &[value]);
        let small = ir.fcmp(RealPred::LLVMRealOLT, magnitude, least);
        let zero = ir.intrinsic("llvm.copysign", &[ty], &[ir.real(ty, 0.0), value]);
        ir.select(small, zero, value)
    }

    /// Clamps to [0, 1]; NaN becomes 0.
    pub(crate) fn saturated(&self, value: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(value);
        let (zero, one) = (ir.real(ty, 0.0), ir.real(ty, 1.0));
        let above = ir.fcmp(RealPred::LLVMRealOGT, value, zero);
        let low = ir.select(above, value, zero);
        let below = ir.fcmp(RealPred::LLVMRealOLT, low, one);
        ir.select(below, low, one)
    }

    /// Returns the operands, flushed if the instruction has `.ftz`.
    fn operands(&self, op: &Operation, inputs: &[Val]) -> Vec<Val> {
        let flush = op.flushes() && op.ty == Type::F32;
        inputs.iter().map(|value| if flush { self.flushed(*value) } else { *value }).collect()
    }

    /// Applies `.ftz` and `.sat` to a result.
    pub(crate) fn finish(&self, op: &Operation, value: Val) -> Val {
        let value = if op.flushes() && op.ty == Type::F32 { self.flushed(value) } else { value };
        if op.has(Modifier::Sat) { self.saturated(value) } else { value }
    }

    pub(crate) fn float_arith(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let plain = op.source_ty == op.ty && op.third_ty == op.ty && !op.has(Modifier::Relu) && !op.has(Modifier::Oob);
        if !plain {
            return None;
        }
        if rounds_specially(op) {
            let value = self.directed(op, &self.operands(op, inputs))?;
            return Some(self.finish(op, value));
        }
        match op.ty {
            Type::F32 | Type::F64 => {
                let inputs = self.operands(op, inputs);
                let value = self.arith(op.opcode, &inputs);
                let approximate = op.opcode == Opcode::Div && op.has(Modifier::Approx);
                Some(self.finish(op, if approximate { self.divided_by_little(&inputs, value) } else { value }))
            }
            Type::F16 if !op.has(Modifier::Ftz) && !op.has(Modifier::Sat) => Some(self.half_arith(op.opcode, inputs)),
            _ => None,
        }
    }

    /// Emits arithmetic with directed rounding, on hosts whose instructions have a rounding mode.
    fn directed(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        // `_MM_FROUND_NO_EXC` with the direction.
        let directions = [(Modifier::Rm, 9), (Modifier::Rp, 10), (Modifier::Rz, 11)];
        let direction = directions.iter().find(|(mode, _)| op.has(*mode))?.1;
        let (name, lanes) = directed_intrinsic(op.opcode, op.ty).filter(|_| self.host.avx512)?;
        let direction = ir.constant(ir.int(32), direction);
        let of = |inputs: Vec<Val>| ir.intrinsic(name, &[], &[inputs, vec![direction]].concat());
        let Some(whole) = ir.lanes(inputs[0]) else {
            let wide = inputs.iter().map(|input| ir.splat(*input, lanes)).collect();
            return Some(ir.extract_at(of(wide), 0));
        };
        let part = |first: u32| {
            let picks: Vec<u32> = (first..first + lanes).collect();
            of(inputs.iter().map(|input| ir.pick(*input, &picks)).collect())
        };
        let mut parts: Vec<Val> = (0..whole / lanes).map(|index| part(index * lanes)).collect();
        let mut lanes = lanes;
        while parts.len() > 1 {
            lanes *= 2;
            let all: Vec<u32> = (0..lanes).collect();
            parts = parts.chunks(2).map(|pair| ir.shuffle(pair[0], pair[1], &all)).collect();
        }
        parts.pop()
    }

    /// Flushes results that are below the smallest normal number before rounding, even if rounding would
    /// reach it. The host cannot distinguish the two cases, so if the result is the smallest normal number,
    /// the instruction is evaluated once more, exactly.
    pub(crate) fn flush_before_rounding(
        &mut self,
        inst: &InstData,
        written: &[(Operand, Type)],
        values: Vec<Val>,
        scalar: bool,
    ) -> TranslationResult<Vec<Val>> {
        let ir = self.ir;
        let value = values[0];
        let ty = ir.type_of(value);
        let magnitude = ir.intrinsic("llvm.fabs", &[ty], &[value]);
        let least = ir.fcmp(RealPred::LLVMRealOEQ, magnitude, ir.real(ty, f64::from(f32::MIN_POSITIVE)));
        let (start, exactly, after) = (ir.here(), ir.block("exactly"), ir.block("on"));
        ir.branch_if(self.any(least), exactly, after);
        ir.go_on_in(exactly);
        let again = self.evaluated(inst, written, scalar)?;
        let end = ir.here();
        ir.branch(after);
        ir.go_on_in(after);
        let phi = ir.phi(ty);
        ir.incoming(phi, value, start);
        ir.incoming(phi, again[0], end);
        Ok(vec![phi])
    }

    /// Returns zero for `div.approx` by divisors above 2^126, whose reciprocals are subnormal.
    fn divided_by_little(&self, inputs: &[Val], value: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(inputs[1]);
        let magnitude = ir.intrinsic("llvm.fabs", &[ty], &[inputs[1]]);
        let above = ir.fcmp(RealPred::LLVMRealOGT, magnitude, ir.real(ty, f64::from(1u32 << 31).powi(4) * 4.0));
        let finite = ir.fcmp(RealPred::LLVMRealOLT, magnitude, ir.real(ty, f64::INFINITY));
        let zero = ir.intrinsic("llvm.copysign", &[ty], &[ir.real(ty, 0.0), inputs[1]]);
        ir.select(ir.and(above, finite), ir.fmul(inputs[0], zero), value)
    }

    fn arith(&self, opcode: Opcode, inputs: &[Val]) -> Val {
        let ir = self.ir;
        if opcode == Opcode::Add {
            ir.fadd(inputs[0], inputs[1])
        } else if opcode == Opcode::Sub {
            ir.fsub(inputs[0], inputs[1])
        } else if opcode == Opcode::Mul {
            ir.fmul(inputs[0], inputs[1])
        } else if opcode == Opcode::Div {
            ir.fdiv(inputs[0], inputs[1])
        } else {
            self.fma(inputs[0], inputs[1], inputs[2])
        }
    }

    pub(crate) fn fma(&self, a: Val, b: Val, c: Val) -> Val {
        self.ir.intrinsic("llvm.fma", &[self.ir.type_of(a)], &[a, b, c])
    }

    /// Emits half arithmetic in a wider format, with canonical NaN.
    fn half_arith(&self, opcode: Opcode, inputs: &[Val]) -> Val {
        let ir = self.ir;
        let fused = matches!(opcode, Opcode::Fma | Opcode::Mad);
        let wide = if fused { ir.double() } else { ir.float() };
        let inputs: Vec<Val> = inputs.iter().map(|value| ir.fpext(*value, wide)).collect();
        // The product of two halves is exact in `f64`. So is its sum with a third half in all cases where
        // that decides the rounding.
        let value = match fused {
            true => ir.fadd(ir.fmul(inputs[0], inputs[1]), inputs[2]),
            false => self.arith(opcode, &inputs),
        };
        self.half_from(value)
    }

    /// Converts from a wider format to half, with canonical NaN.
    pub(crate) fn half_from(&self, value: Val) -> Val {
        let ir = self.ir;
        let half = ir.fptrunc(value, ir.half());
        let unordered = ir.fcmp(RealPred::LLVMRealUNO, value, value);
        let nan = ir.bitcast(ir.constant(ir.like(ir.type_of(half), ir.int(16)), 0x7fff), ir.half());
        ir.select(unordered, nan, half)
    }

    pub(crate) fn root(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        if rounds_specially(op) || !matches!(op.ty, Type::F32 | Type::F64) {
            return None;
        }
        if op.ty == Type::F64 && op.has(Modifier::Ftz) {
            return None;
        }
        let inputs = self.operands(op, inputs);
        let ty = ir.type_of(inputs[0]);
        let one = ir.real(ty, 1.0);
        let sqrt = |value: Val| ir.intrinsic("llvm.sqrt", &[ty], &[value]);
        let value = if op.opcode == Opcode::Rcp {
            ir.fdiv(one, inputs[0])
        } else if op.opcode == Opcode::Sqrt {
            sqrt(inputs[0])
        } else {
            self.fast_rsqrt(inputs[0]).unwrap_or_else(|| ir.fdiv(one, sqrt(inputs[0])))
        };
        Some(self.finish(op, value))
    }

    /// Emits the host's estimate and one Newton step, within two units in the last place.
    fn fast_rsqrt(&self, value: Val) -> Option<Val> {
        let ir = self.ir;
        let ty = ir.type_of(value);
        let lanes = ir.lanes(value)?;
        if !self.host.avx512 || ir.element(ty) != ir.float() || lanes != 32 {
            return None;
        }
        let part = ir.vector(ir.float(), 16);
        let estimate_of = |half: Val| {
            let all = ir.constant(ir.int(16), 0xffff);
            ir.intrinsic("llvm.x86.avx512.rsqrt14.ps.512", &[], &[half, ir.zero(part), all])
        };
        let low: Vec<u32> = (0..16).collect();
        let high: Vec<u32> = (16..32).collect();
        let (a, b) = (estimate_of(ir.pick(value, &low)), estimate_of(ir.pick(value, &high)));
        let all: Vec<u32> = (0..32).collect();
        let y = ir.shuffle(a, b, &all);
        let one = ir.real(ty, 1.0);
        let error = self.fma(ir.fneg(ir.fmul(value, y)), y, one);
        let better = self.fma(ir.fmul(y, ir.real(ty, 0.5)), error, y);
        // 0, infinity and negative numbers are exact already, and the step turns them into NaN.
        let unordered = ir.fcmp(RealPred::LLVMRealUNO, error, error);
        Some(ir.select(unordered, y, better))
    }

    pub(crate) fn float_sign(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        match op.ty {
            Type::F32 | Type::F64 => {
                let value = self.operands(op, inputs)[0];
                let negates = op.opcode == Opcode::Neg;
                Some(if negates { ir.fneg(value) } else { ir.intrinsic("llvm.fabs", &[ir.type_of(value)], &[value]) })
            }
            _ => None,
        }
    }

    pub(crate) fn copysign(&self, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        Some(ir.intrinsic("llvm.copysign", &[ir.type_of(inputs[0])], &[inputs[1], inputs[0]]))
    }

    /// Emits minimum and maximum. A number beats NaN, or the other way round with `.NaN`; -0 is less than +0.
    pub(crate) fn float_min_max(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        if !matches!(op.ty, Type::F32 | Type::F64) || op.has(Modifier::Abs) || inputs.len() != 2 {
            return None;
        }
        let inputs = self.operands(op, inputs);
        let (a, b) = (inputs[0], inputs[1]);
        let min = op.opcode == Opcode::Min;
        if op.has(Modifier::NaN) {
            if op.ty != Type::F32 {
                return None;
            }
            let either = ir.fcmp(RealPred::LLVMRealUNO, a, b);
            let chosen = self.ranged(a, b, min).unwrap_or_else(|| self.less_or_more(op.ty, a, b, min));
            return Some(ir.select(either, ir.real(ir.type_of(a), f64::NAN), chosen));
        }
        let b_is_nan = ir.fcmp(RealPred::LLVMRealUNO, b, b);
        Some(ir.select(b_is_nan, a, self.less_or_more(op.ty, a, b, min)))
    }

    /// Returns the lesser or greater of two rows of `f32` without NaNs, by the instruction that orders zeros too.
    fn ranged(&self, a: Val, b: Val, min: bool) -> Option<Val> {
        let ir = self.ir;
        let lanes = ir.lanes(a).filter(|lanes| self.host.avx512 && lanes % 16 == 0)?;
        // The sign is that of the chosen operand.
        let choice = ir.constant(ir.int(32), if min { 4 } else { 5 });
        let current_rounding = ir.constant(ir.int(32), 4);
        let of = |a: Val, b: Val| {
            let ty = ir.type_of(a);
            let all = ir.constant(ir.int(16), 0xffff);
            ir.intrinsic("llvm.x86.avx512.mask.range.ps.512", &[], &[a, b, choice, ir.zero(ty), all, current_rounding])
        };
        if lanes == 16 {
            return Some(of(a, b));
        }
        let pieces = (0..lanes).step_by(16).map(|start| of(self.slice(a, start, 16), self.slice(b, start, 16)));
        Some(self.joined(pieces.collect()))
    }

    /// Returns the lesser or greater of two values; the second where one is NaN.
    fn less_or_more(&self, ty: Type, a: Val, b: Val, min: bool) -> Val {
        let ir = self.ir;
        let first = ir.fcmp(if min { RealPred::LLVMRealOLT } else { RealPred::LLVMRealOGT }, a, b);
        let chosen = ir.select(first, a, b);
        // Zeros of both signs compare equal. The sign of the minimum is set if either has it, that of the
        // maximum if both have it.
        let int = ir.int(ty.bits());
        let (bits_a, bits_b) = (ir.bitcast(a, int), ir.bitcast(b, int));
        let merged = if min { ir.or(bits_a, bits_b) } else { ir.and(bits_a, bits_b) };
        let equal = ir.fcmp(RealPred::LLVMRealOEQ, a, b);
        ir.select(equal, ir.bitcast(merged, self.value_type(ty)), chosen)
    }

    pub(crate) fn testp(&self, op: &Operation, inputs: &[Val]) -> LoweringResult {
        let ir = self.ir;
        if !matches!(op.ty, Type::F32 | Type::F64) {
            return None;
        }
        let int = ir.int(op.ty.bits());
        let bits = ir.bitcast(inputs[0], int);
        let ty = ir.type_of(bits);
        let (exponent, fraction) = if op.ty == Type::F32 { (0x7f80_0000, 0x007f_ffff) } else { (0x7ff0 << 48, (1 << 52) - 1) };
        let magnitude = ir.and(bits, ir.constant(ty, exponent | fraction));
        let top = ir.constant(ty, exponent);
        let compare = |predicate: IntPred| ir.icmp(predicate, magnitude, top);
        let subnormal = || {
            let low = ir.icmp(IntPred::LLVMIntULE, magnitude, ir.constant(ty, fraction));
            ir.and(low, ir.icmp(IntPred::LLVMIntNE, magnitude, ir.constant(ty, 0)))
        };
        Some(if op.has(Modifier::Finite) {
            compare(IntPred::LLVMIntULT)
        } else if op.has(Modifier::Infinite) {
            compare(IntPred::LLVMIntEQ)
        } else if op.has(Modifier::Number) {
            compare(IntPred::LLVMIntULE)
        } else if op.has(Modifier::Notanumber) {
            compare(IntPred::LLVMIntUGT)
        } else if op.has(Modifier::Subnormal) {
            subnormal()
        } else {
            ir.and(compare(IntPred::LLVMIntULT), ir.not(subnormal()))
        })
    }
}
