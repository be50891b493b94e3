//! Conversions, with the semantics of Rust's `as`.

use super::{Emitter, bits_type, compute_type};
use crate::id::Id;
use crate::types::Element;
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier, Operand, Reg, Type};

impl Emitter<'_> {
    pub(super) fn convert(&mut self, x: Id, to: Element) -> Operand {
        let from = self.element(x);
        let x = self.operand(x);
        if from == to {
            return x;
        }
        let x = self.in_register(x, from);
        if to == Element::Bool {
            return self.is_not_zero(x, from).into();
        }
        if from == Element::Bool {
            return self.truth(x, to);
        }
        match (from.is_float(), to.is_float()) {
            (false, false) => self.integer_to_integer(x, from, to),
            (false, true) => {
                let reg = self.register(to);
                self.f.to(reg).cvt((Modifier::Rn, compute_type(to), compute_type(from)), x).into()
            }
            (true, true) => {
                let reg = self.register(to);
                let rounding = (to.bits() < from.bits()).then_some(Modifier::Rn);
                self.f.to(reg).cvt((rounding, compute_type(to), compute_type(from)), x).into()
            }
            (true, false) => self.float_to_integer(x, from, to).into(),
        }
    }

    fn is_not_zero(&mut self, x: Reg, from: Element) -> Reg {
        let zero = match from {
            Element::F16 => self.f.mov(Type::B16, 0).into(),
            Element::F32 => Operand::from(0.0f32),
            Element::F64 => Operand::from(0.0f64),
            _ => Operand::from(0),
        };
        let word = if from.is_float() { Modifier::Neu } else { Modifier::Ne };
        self.f.setp((word, compute_type(from)), x, zero)
    }

    fn truth(&mut self, x: Reg, to: Element) -> Operand {
        let reg = self.register(to);
        match to {
            Element::F32 => self.f.to(reg).selp(Type::F32, 1.0f32, 0.0f32, x),
            Element::F64 => self.f.to(reg).selp(Type::F64, 1.0f64, 0.0f64, x),
            Element::F16 => self.f.to(reg).selp(Type::B16, 0x3c00, 0, x),
            _ => self.f.to(reg).selp(bits_type(to), 1, 0, x),
        }
        .into()
    }

    fn integer_to_integer(&mut self, x: Reg, from: Element, to: Element) -> Operand {
        if from.bits() == to.bits() && to.bits() >= 32 {
            return x.into();
        }
        let reg = self.register(to);
        if to.bits() == 64 {
            let from = if from.is_signed() { Type::S32 } else { Type::U32 };
            let to = if from.is_signed() { Type::S64 } else { Type::U64 };
            return self.f.to(reg).cvt((to, from), x).into();
        }
        // To 32 bits or fewer: the low bits, extended for the type. Extending a narrower value twice changes
        // nothing.
        let widens = to.bits() >= 32 || (from.bits() < to.bits() && (to.is_signed() || !from.is_signed()));
        match (from.bits(), widens) {
            (64, true) => self.f.to(reg).cvt((Type::U32, Type::U64), x).into(),
            (64, false) => {
                self.f.to(reg).cvt((Type::U32, Type::U64), x);
                self.normalise(to, reg);
                reg.into()
            }
            (_, true) => x.into(),
            (_, false) => {
                self.f.to(reg).mov(Type::B32, x);
                self.normalise(to, reg);
                reg.into()
            }
        }
    }

    /// Rounds towards zero, clamps to the range, and converts NaN to 0. The instruction does so for 32 bits.
    /// With a 64-bit source or target it gives another result for NaN. Narrower ranges are clamped
    /// afterwards.
    fn float_to_integer(&mut self, x: Reg, from: Element, to: Element) -> Reg {
        let (x, from) = match from {
            Element::F16 => (self.f.cvt((Type::F32, Type::F16), x), Element::F32),
            _ => (x, from),
        };
        let source = compute_type(from);
        let reg = self.register(to);
        let target = compute_type(to);
        self.f.to(reg).cvt((Modifier::Rzi, target, source), x);
        if to.bits() == 64 || from == Element::F64 {
            let number = self.f.setp((Modifier::Num, source), x, x);
            self.f.to(reg).selp(bits_type(to), reg, 0, number);
        }
        if to.bits() < 32 {
            let (low, high) = to.range().unwrap_or((0, 0));
            self.f.to(reg).min(target, reg, high as i32);
            if to.is_signed() {
                self.f.to(reg).max(target, reg, low as i32);
            }
        }
        reg
    }

    pub(super) fn bitcast(&mut self, x: Id, to: Element) -> Operand {
        let from = self.element(x);
        let x = self.operand(x);
        if from == to {
            return x;
        }
        match (from, to) {
            // Between 16-bit and 32-bit registers.
            (Element::F16, _) => {
                let reg = self.register(to);
                let ty = if to.is_signed() { Type::S16 } else { Type::U16 };
                self.f.to(reg).cvt((compute_type(to), ty), x).into()
            }
            (_, Element::F16) => {
                let reg = self.register(to);
                let x = self.in_register(x, from);
                self.f.to(reg).cvt((Type::U16, Type::U32), x).into()
            }
            _ if from.is_float() || to.is_float() => {
                let reg = self.register(to);
                let x = self.in_register(x, from);
                self.f.to(reg).mov(bits_type(to), x).into()
            }
            _ if to.bits() >= 32 => x,
            _ => {
                let reg = self.register(to);
                self.f.to(reg).mov(Type::B32, x);
                self.normalise(to, reg);
                reg.into()
            }
        }
    }
}
