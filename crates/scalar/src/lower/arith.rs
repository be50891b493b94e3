//! Arithmetic, logic, comparison, selection.

use super::{Emitter, bits_type, compute_type};
use crate::id::Id;
use crate::op::{BinaryOp, CompareOp, UnaryOp};
use crate::types::Element;
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Imm, Modifier, Operand, Reg, Type};

/// Returns true if an operand is the number 1 of a float type.
fn is_one(operand: &Operand) -> bool {
    match operand {
        Operand::Imm(Imm::F32(bits)) => f32::from_bits(*bits) == 1.0,
        Operand::Imm(Imm::F64(bits)) => f64::from_bits(*bits) == 1.0,
        _ => false,
    }
}

impl Emitter<'_> {
    /// Extends an 8- or 16-bit integer in a 32-bit register again after an operation.
    pub(super) fn normalise(&mut self, element: Element, reg: Reg) {
        match element {
            Element::I8 => self.f.to(reg).cvt((Type::S32, Type::S8), reg),
            Element::I16 => self.f.to(reg).cvt((Type::S32, Type::S16), reg),
            Element::U8 => self.f.to(reg).and(Type::B32, reg, 0xff),
            Element::U16 => self.f.to(reg).and(Type::B32, reg, 0xffff),
            Element::Bool
            | Element::I32
            | Element::U32
            | Element::I64
            | Element::U64
            | Element::F16
            | Element::F32
            | Element::F64 => reg,
        };
    }

    /// Returns the bits of an integer of at most 32 bits, zero-extended.
    fn zero_extended(&mut self, element: Element, x: Operand) -> Operand {
        match element {
            Element::I8 => self.f.and(Type::B32, x, 0xff).into(),
            Element::I16 => self.f.and(Type::B32, x, 0xffff).into(),
            _ => x,
        }
    }

    /// Converts an `f16` to `f32`.
    fn widened(&mut self, x: Operand) -> Reg {
        self.f.cvt((Type::F32, Type::F16), x)
    }

    /// Rounds an `f32` to the nearest `f16`.
    fn halved(&mut self, x: Reg) -> Reg {
        let reg = self.register(Element::F16);
        self.f.to(reg).cvt((Modifier::Rn, Type::F16, Type::F32), x)
    }

    pub(super) fn unary(&mut self, op: UnaryOp, element: Element, x: Id) -> Operand {
        let x = self.operand(x);
        let ty = compute_type(element);
        let reg = self.register(element);
        let wide = element.bits() == 64;
        let approximate = (Modifier::Approx, self.flush.then_some(Modifier::Ftz), ty);
        match op {
            UnaryOp::Neg => {
                let ty = if element.is_integer() && !element.is_signed() { if wide { Type::S64 } else { Type::S32 } } else { ty };
                self.f.to(reg).neg(ty, x);
                self.normalise(element, reg);
            }
            UnaryOp::Not => {
                let ty = if element == Element::Bool { Type::Pred } else { bits_type(element) };
                self.f.to(reg).not(ty, x);
                self.normalise(element, reg);
            }
            UnaryOp::Abs => {
                if element.is_integer() && !element.is_signed() {
                    return x;
                }
                self.f.to(reg).abs(ty, x);
                self.normalise(element, reg);
            }
            UnaryOp::Popcount | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros => return self.count_bits(op, element, x),
            UnaryOp::ReverseBits => {
                self.f.to(reg).brev(bits_type(element), x);
                if element.bits() < 32 {
                    self.f.to(reg).shr(ty, reg, 32 - element.bits());
                }
            }
            UnaryOp::Floor => return self.round(Modifier::Rmi, element, x),
            UnaryOp::Ceil => return self.round(Modifier::Rpi, element, x),
            UnaryOp::Trunc => return self.round(Modifier::Rzi, element, x),
            UnaryOp::RoundEven => return self.round(Modifier::Rni, element, x),
            UnaryOp::Sqrt if element == Element::F16 => {
                let x = self.widened(x);
                let root = self.f.sqrt((Modifier::Rn, Type::F32), x);
                return self.halved(root).into();
            }
            UnaryOp::Sqrt => {
                self.f.to(reg).sqrt((Modifier::Rn, ty), x);
            }
            UnaryOp::RcpApprox => {
                self.f.to(reg).rcp(approximate, x);
            }
            UnaryOp::SqrtApprox => {
                self.f.to(reg).sqrt(approximate, x);
            }
            UnaryOp::RsqrtApprox => {
                self.f.to(reg).rsqrt(approximate, x);
            }
            UnaryOp::Exp2Approx => {
                self.f.to(reg).ex2(approximate, x);
            }
            UnaryOp::Log2Approx => {
                self.f.to(reg).lg2(approximate, x);
            }
            UnaryOp::SinApprox => {
                self.f.to(reg).sin(approximate, x);
            }
            UnaryOp::CosApprox => {
                self.f.to(reg).cos(approximate, x);
            }
            UnaryOp::TanhApprox => {
                self.f.to(reg).tanh((Modifier::Approx, ty), x);
            }
        }
        reg.into()
    }

    fn round(&mut self, mode: Modifier, element: Element, x: Operand) -> Operand {
        let ty = compute_type(element);
        let reg = self.register(element);
        let x = self.in_register(x, element);
        self.f.to(reg).cvt((mode, ty, ty), x).into()
    }

    fn count_bits(&mut self, op: UnaryOp, element: Element, x: Operand) -> Operand {
        let ty = bits_type(element);
        let x = self.zero_extended(element, x);
        let small = element.bits() < 32;
        let count = match op {
            UnaryOp::Popcount => self.f.popc(ty, x),
            UnaryOp::LeadingZeros => {
                let zeros = self.f.clz(ty, x);
                if small { self.f.sub(Type::U32, zeros, 32 - element.bits()) } else { zeros }
            }
            // A one after the last bit ends the count.
            _ => {
                let x = if small { self.f.or(ty, x, 1u32 << element.bits()).into() } else { x };
                let reversed = self.f.brev(ty, x);
                self.f.clz(ty, reversed)
            }
        };
        if element.bits() == 64 { self.f.cvt((Type::U64, Type::U32), count).into() } else { count.into() }
    }

    /// Returns true if an 8- or 16-bit operation stays in range without another extension.
    fn stays(&self, op: BinaryOp, element: Element, x: Id, y: Id) -> bool {
        let (Some((low, high)), a, b) = (element.range(), self.ranges.get(x), self.ranges.get(y)) else { return false };
        let exact = match op {
            BinaryOp::Add => (a.0 + b.0, a.1 + b.1),
            BinaryOp::Sub => (a.0 - b.1, a.1 - b.0),
            _ => return false,
        };
        low <= exact.0 && exact.1 <= high
    }

    pub(super) fn binary(&mut self, op: BinaryOp, element: Element, x: Id, y: Id) -> Operand {
        let may_be_zero = matches!(op, BinaryOp::Div | BinaryOp::Rem) && {
            let (low, high) = self.ranges.get(y);
            low <= 0 && high >= 0
        };
        let stays = element.bits() < 32 && !element.is_float() && self.stays(op, element, x, y);
        let (x, y) = (self.operand(x), self.operand(y));
        let ty = compute_type(element);
        let reg = self.register(element);
        if element.is_float() {
            return self.float(op, element, x, y);
        }
        let logic = if element == Element::Bool { Type::Pred } else { bits_type(element) };
        match op {
            BinaryOp::Add => self.f.to(reg).add(ty, x, y),
            BinaryOp::Sub => self.f.to(reg).sub(ty, x, y),
            BinaryOp::Mul => self.f.to(reg).mul((Modifier::Lo, ty), x, y),
            BinaryOp::MulHigh if element.bits() < 32 => {
                self.f.to(reg).mul((Modifier::Lo, ty), x, y);
                self.f.to(reg).shr(ty, reg, element.bits())
            }
            BinaryOp::MulHigh => self.f.to(reg).mul((Modifier::Hi, ty), x, y),
            BinaryOp::Div | BinaryOp::Rem => {
                if op == BinaryOp::Div {
                    self.f.to(reg).div(ty, x.clone(), y.clone());
                } else {
                    self.f.to(reg).rem(ty, x.clone(), y.clone());
                }
                if may_be_zero {
                    let sound = self.f.setp((Modifier::Ne, ty), y, 0);
                    let instead = if op == BinaryOp::Div { Operand::from(0) } else { x };
                    self.f.to(reg).selp(bits_type(element), reg, instead, sound);
                }
                reg
            }
            BinaryOp::Min => self.f.to(reg).min(ty, x, y),
            BinaryOp::Max => self.f.to(reg).max(ty, x, y),
            BinaryOp::And => self.f.to(reg).and(logic, x, y),
            BinaryOp::Or => self.f.to(reg).or(logic, x, y),
            BinaryOp::Xor => self.f.to(reg).xor(logic, x, y),
            BinaryOp::Shl => self.f.to(reg).shl(logic, x, y),
            BinaryOp::Shr => self.f.to(reg).shr(ty, x, y),
            BinaryOp::AddSaturating | BinaryOp::SubSaturating => return self.saturating(op, element, x, y),
            BinaryOp::CopySign | BinaryOp::DivApprox => reg,
        };
        match op {
            _ if stays => {}
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl | BinaryOp::Div => self.normalise(element, reg),
            BinaryOp::MulHigh
            | BinaryOp::Rem
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shr
            | BinaryOp::AddSaturating
            | BinaryOp::SubSaturating
            | BinaryOp::CopySign
            | BinaryOp::DivApprox => {}
        }
        reg.into()
    }

    fn float(&mut self, op: BinaryOp, element: Element, x: Operand, y: Operand) -> Operand {
        let ty = compute_type(element);
        let reg = self.register(element);
        match op {
            BinaryOp::Add => self.f.to(reg).add((Modifier::Rn, ty), x, y),
            BinaryOp::Sub => self.f.to(reg).sub((Modifier::Rn, ty), x, y),
            BinaryOp::Mul => self.f.to(reg).mul((Modifier::Rn, ty), x, y),
            BinaryOp::Div if element == Element::F16 => {
                let (x, y) = (self.widened(x), self.widened(y));
                let quotient = self.f.div((Modifier::Rn, Type::F32), x, y);
                self.halved(quotient)
            }
            // A reciprocal has the rounding of the division and is shorter.
            BinaryOp::Div if is_one(&x) => self.f.to(reg).rcp((Modifier::Rn, ty), y),
            BinaryOp::DivApprox if self.flush && is_one(&x) => self.f.to(reg).rcp((Modifier::Approx, Modifier::Ftz, ty), y),
            BinaryOp::Div => self.f.to(reg).div((Modifier::Rn, ty), x, y),
            BinaryOp::DivApprox if self.flush => self.f.to(reg).div((Modifier::Approx, Modifier::Ftz, ty), x, y),
            BinaryOp::DivApprox => self.f.to(reg).div((Modifier::Full, ty), x, y),
            BinaryOp::Min => self.f.to(reg).min(ty, x, y),
            BinaryOp::Max => self.f.to(reg).max(ty, x, y),
            BinaryOp::CopySign if element == Element::F16 => {
                let magnitude = self.f.and(Type::B16, x, 0x7fff);
                let sign = self.f.and(Type::B16, y, 0x8000);
                self.f.to(reg).or(Type::B16, magnitude, sign)
            }
            // PTX takes the sign first.
            BinaryOp::CopySign => self.f.to(reg).copysign(ty, y, x),
            BinaryOp::MulHigh
            | BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::AddSaturating
            | BinaryOp::SubSaturating => reg,
        }
        .into()
    }

    fn saturating(&mut self, op: BinaryOp, element: Element, x: Operand, y: Operand) -> Operand {
        let ty = compute_type(element);
        let bits = bits_type(element);
        let adds = op == BinaryOp::AddSaturating;
        let reg = self.register(element);
        match element {
            Element::I32 if adds => return self.f.to(reg).add((Modifier::Sat, ty), x, y).into(),
            Element::I32 => return self.f.to(reg).sub((Modifier::Sat, ty), x, y).into(),
            Element::I8 | Element::I16 | Element::U8 | Element::U16 => {
                // The exact result fits into 32 bits, as a signed number also for unsigned types.
                if adds {
                    self.f.to(reg).add(Type::S32, x, y);
                } else {
                    self.f.to(reg).sub(Type::S32, x, y);
                }
                let (low, high) = element.range().unwrap_or((0, 0));
                self.f.to(reg).max(Type::S32, reg, low as i32);
                return self.f.to(reg).min(Type::S32, reg, high as i32).into();
            }
            _ => {}
        }
        if element.is_signed() {
            // A sum overflows if its sign differs from that of both operands. A difference overflows if the
            // signs of the operands differ and its sign is not that of the first.
            let exact = if adds { self.f.add(ty, x.clone(), y.clone()) } else { self.f.sub(ty, x.clone(), y.clone()) };
            let first = self.f.xor(bits, x.clone(), exact);
            let second = if adds { self.f.xor(bits, y, exact) } else { self.f.xor(bits, x.clone(), y) };
            let both = self.f.and(bits, first, second);
            let outside = self.f.setp((Modifier::Lt, ty), both, 0);
            let sign = self.f.shr(ty, x, element.bits() - 1);
            let end = self.f.xor(bits, sign, i64::MAX);
            return self.f.to(reg).selp(bits, end, exact, outside).into();
        }
        if adds {
            let sum = self.f.add(ty, x.clone(), y);
            let outside = self.f.setp((Modifier::Lt, ty), sum, x);
            let most = if element == Element::U32 { Operand::from(u32::MAX) } else { Operand::from(u64::MAX) };
            self.f.to(reg).selp(bits, most, sum, outside).into()
        } else {
            let difference = self.f.sub(ty, x.clone(), y.clone());
            let outside = self.f.setp((Modifier::Lt, ty), x, y);
            self.f.to(reg).selp(bits, 0, difference, outside).into()
        }
    }

    pub(super) fn compare(&mut self, op: CompareOp, x: Id, y: Id) -> Operand {
        let element = self.element(x);
        let (x, y) = (self.operand(x), self.operand(y));
        if element == Element::Bool {
            let differs = self.f.xor(Type::Pred, x, y);
            return if op == CompareOp::Ne { differs.into() } else { self.f.not(Type::Pred, differs).into() };
        }
        let word = match op {
            CompareOp::Eq => Modifier::Eq,
            // NaN is unequal to everything.
            CompareOp::Ne if element.is_float() => Modifier::Neu,
            CompareOp::Ne => Modifier::Ne,
            CompareOp::Lt => Modifier::Lt,
            CompareOp::Le => Modifier::Le,
            CompareOp::Gt => Modifier::Gt,
            CompareOp::Ge => Modifier::Ge,
        };
        self.f.setp((word, compute_type(element)), x, y).into()
    }

    pub(super) fn select(&mut self, element: Element, condition: Id, x: Id, y: Id) -> Operand {
        let condition = self.reg(condition);
        let (x, y) = (self.operand(x), self.operand(y));
        match element {
            Element::Bool => {
                let yes = self.f.and(Type::Pred, x, condition);
                let other = self.f.not(Type::Pred, condition);
                let no = self.f.and(Type::Pred, y, other);
                self.f.or(Type::Pred, yes, no).into()
            }
            _ => {
                let reg = self.register(element);
                let ty = match element {
                    Element::F32 | Element::F64 => compute_type(element),
                    _ => bits_type(element),
                };
                self.f.to(reg).selp(ty, x, y, condition).into()
            }
        }
    }
}
