//! Algebraic identities that hold bit for bit for all unknown inputs.
//!
//! Integers wrap around, so sums may be reassociated. There are no floating-point identities: adding zero
//! loses the sign of a zero, multiplying by one loses the payload of a NaN, and `.ftz` flushes small numbers.

use super::immediate::immediate;
use super::known::KnownValues;
use crate::write::made;
use broadloom_eval::{Operation, Outcome, truncate};
use broadloom_ptx::{Function, Inst, InstData, Modifier, Opcode, Operand, Reg, Type, TypeKind};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// Simpler equivalent of an instruction.
pub(super) enum Simplification {
    /// Known value, for an instruction that writes one register.
    Value(u64),
    /// Another instruction.
    Instruction(InstData),
}

type DefiningInsts = SecondaryMap<Reg, PackedOption<Inst>>;

struct View<'a> {
    function: &'a Function,
    known: &'a KnownValues,
    definition: &'a DefiningInsts,
    data: &'a InstData,
    ty: Type,
}

/// Returns a simpler equivalent of an instruction without a guard.
pub(super) fn simplify(
    function: &Function,
    known: &KnownValues,
    definition: &DefiningInsts,
    data: &InstData,
) -> Option<Simplification> {
    let ty = data.types().next()?;
    let whole = match ty.kind() {
        TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed => ty.bits() <= 64,
        TypeKind::Predicate => true,
        // Selection moves bits of any type.
        TypeKind::Float => data.opcode() == Some(Opcode::Selp),
        TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque => false,
    };
    let saturates = [Modifier::Sat, Modifier::Relu].into_iter().any(|modifier| data.has(modifier));
    if !whole || saturates {
        return None;
    }
    View { function, known, definition, data, ty }.simplify()
}

/// Splits a register's value into another register of the same width and a constant addend.
pub(super) fn sum(function: &Function, definition: &DefiningInsts, reg: Reg, bits: u32) -> Option<(Reg, u64)> {
    let data = &function.insts[definition[reg].expand()?];
    let ty = data.types().next()?;
    let plain = data.opcode() == Some(Opcode::Add) && data.guard.is_none() && ty.is_integer() && ty.bits() == bits;
    if !plain || data.has(Modifier::Sat) {
        return None;
    }
    match data.operands.as_slice() {
        [_, Operand::Reg(inner), Operand::Imm(imm)] | [_, Operand::Imm(imm), Operand::Reg(inner)] => {
            Some((*inner, broadloom_eval::sign_extend(imm.integer_bits()?, bits) as u64))
        }
        _ => None,
    }
}

impl View<'_> {
    fn value(&self, index: usize) -> Option<u64> {
        self.known.operand(self.data.operands.get(index)?, self.ty).map(|value| truncate(value, self.ty.bits()))
    }

    fn is(&self, index: usize, value: u64) -> bool {
        self.value(index) == Some(truncate(value, self.ty.bits()))
    }

    /// Returns whether two operands are the same register.
    fn same(&self, a: usize, b: usize) -> bool {
        matches!((self.data.operands.get(a), self.data.operands.get(b)), (Some(Operand::Reg(a)), Some(Operand::Reg(b))) if a == b)
    }

    /// Returns a copy of one of the operands.
    fn copy(&self, index: usize) -> Option<Simplification> {
        self.copy_of(self.data.operands.get(index)?.clone())
    }

    fn copy_of(&self, operand: Operand) -> Option<Simplification> {
        let to = self.data.operands.first()?.clone();
        let Operand::Reg(reg) = to else { return None };
        let mov = match self.function.regs[reg].ty {
            Type::Pred => "mov.pred",
            ty => match ty.bits() {
                16 => "mov.b16",
                32 => "mov.b32",
                64 => "mov.b64",
                _ => return None,
            },
        };
        // An immediate of a float stands for its bits.
        let operand = match operand {
            Operand::Imm(imm) => {
                Operand::Imm(immediate(broadloom_eval::immediate(imm, self.ty), Type::bits_of(self.ty.bits())?)?)
            }
            operand => operand,
        };
        Some(Simplification::Instruction(made(mov, [to, operand])))
    }

    /// Returns another instruction with the same result and some of the operands.
    fn other<const N: usize>(&self, name: &str, operands: [usize; N]) -> Option<Simplification> {
        let mnemonic = format!("{name}.{}", self.ty.name());
        let all = std::iter::once(0).chain(operands).map(|index| self.data.operands[index].clone());
        InstData::of(&mnemonic, all).map(Simplification::Instruction)
    }

    fn simplify(&self) -> Option<Simplification> {
        let ones = u64::MAX;
        match self.data.opcode()? {
            Opcode::Add if self.is(2, 0) => self.copy(1),
            Opcode::Add if self.is(1, 0) => self.copy(2),
            Opcode::Add => self.add_to_sum(),
            Opcode::Sub if self.is(2, 0) => self.copy(1),
            Opcode::Sub | Opcode::Xor if self.same(1, 2) => Some(Simplification::Value(0)),
            Opcode::Mul if self.is(1, 0) || self.is(2, 0) => Some(Simplification::Value(0)),
            Opcode::Mul if self.data.has(Modifier::Lo) && self.is(2, 1) => self.copy(1),
            Opcode::Mul if self.data.has(Modifier::Lo) && self.is(1, 1) => self.copy(2),
            Opcode::Mad if !self.data.has(Modifier::Cc) => self.product_and_sum(),
            Opcode::Div if self.is(2, 1) => self.copy(1),
            Opcode::Rem if self.is(2, 1) => Some(Simplification::Value(0)),
            Opcode::Min | Opcode::Max if self.same(1, 2) && self.data.operands.len() == 3 => self.copy(1),
            Opcode::And if self.is(1, 0) || self.is(2, 0) => Some(Simplification::Value(0)),
            Opcode::And if self.is(2, ones) || self.same(1, 2) => self.copy(1),
            Opcode::And if self.is(1, ones) => self.copy(2),
            Opcode::Or if self.is(1, ones) || self.is(2, ones) => Some(Simplification::Value(truncate(ones, self.ty.bits()))),
            Opcode::Or | Opcode::Xor if self.is(2, 0) => self.copy(1),
            Opcode::Or if self.same(1, 2) => self.copy(1),
            Opcode::Or | Opcode::Xor if self.is(1, 0) => self.copy(2),
            Opcode::Not => self.not(),
            Opcode::Shl | Opcode::Shr => self.shift(),
            Opcode::Selp => self.choice(),
            Opcode::Setp => self.comparison(),
            Opcode::Cvt => self.conversion(),
            _ => None,
        }
    }

    /// Merges two additions of constants into one.
    fn add_to_sum(&self) -> Option<Simplification> {
        let (reg, number) = match (self.value(1), self.value(2), &self.data.operands[1], &self.data.operands[2]) {
            (None, Some(number), Operand::Reg(reg), _) | (Some(number), None, _, Operand::Reg(reg)) => (*reg, number),
            _ => return None,
        };
        let bits = self.ty.bits();
        let (inner, more) = sum(self.function, self.definition, reg, bits)?;
        let total = immediate(truncate(number.wrapping_add(more), bits), self.ty)?;
        let operands = [self.data.operands[0].clone(), Operand::Reg(inner), Operand::Imm(total)];
        InstData::of(&format!("add.{}", self.ty.name()), operands).map(Simplification::Instruction)
    }

    fn product_and_sum(&self) -> Option<Simplification> {
        let wide = self.data.has(Modifier::Wide);
        let third = self.ty.widened().filter(|_| wide).unwrap_or(self.ty);
        let sum_is_zero = self.known.operand(self.data.operands.get(3)?, third) == Some(0);
        if self.is(1, 0) || self.is(2, 0) {
            return self.copy(3).filter(|_| !matches!(self.data.operands[3], Operand::Imm(_)));
        }
        if sum_is_zero {
            let half = if wide {
                "wide"
            } else if self.data.has(Modifier::Hi) {
                "hi"
            } else {
                "lo"
            };
            return self.other(&format!("mul.{half}"), [1, 2]);
        }
        let low = self.data.has(Modifier::Lo);
        match (low && self.is(1, 1), low && self.is(2, 1)) {
            (true, _) => self.other("add", [2, 3]),
            (_, true) => self.other("add", [1, 3]),
            (false, false) => None,
        }
    }

    fn not(&self) -> Option<Simplification> {
        let inner = match self.data.operands.get(1)? {
            Operand::Not(reg) => return self.copy_of(Operand::Reg(*reg)),
            Operand::Reg(reg) => *reg,
            _ => return None,
        };
        let other = &self.function.insts[self.definition[inner].expand()?];
        let undoes = other.opcode() == Some(Opcode::Not) && other.guard.is_none();
        match other.operands.get(1) {
            Some(Operand::Reg(reg)) if undoes => self.copy_of(Operand::Reg(*reg)),
            _ => None,
        }
    }

    /// Simplifies a shift. The amount is a 32-bit number for every type.
    fn shift(&self) -> Option<Simplification> {
        let amount = self.known.operand(self.data.operands.get(2)?, Type::U32)?;
        let signed = self.ty.is_signed() && self.data.opcode() == Some(Opcode::Shr);
        if amount == 0 {
            self.copy(1)
        } else if amount >= u64::from(self.ty.bits()) && !signed {
            Some(Simplification::Value(0))
        } else {
            None
        }
    }

    fn choice(&self) -> Option<Simplification> {
        let predicate = self.known.operand(self.data.operands.get(3)?, Type::Pred);
        match predicate {
            Some(1) => self.copy(1),
            Some(_) => self.copy(2),
            None if self.same(1, 2) => self.copy(1),
            None => match (self.value(1), self.value(2)) {
                (Some(a), Some(b)) if a == b => Some(Simplification::Value(a)),
                _ => None,
            },
        }
    }

    /// Simplifies comparisons of a register with itself, and of a selection between two constants with a
    /// constant.
    fn comparison(&self) -> Option<Simplification> {
        let [Operand::Reg(_), Operand::Absent, a, b] = self.data.operands.as_slice() else { return None };
        if self.same(2, 3) {
            let holds = [Modifier::Eq, Modifier::Le, Modifier::Ge, Modifier::Ls, Modifier::Hs];
            return Some(Simplification::Value(u64::from(holds.into_iter().any(|compare| self.data.has(compare)))));
        }
        let (Operand::Reg(chosen), Some(number)) = (a, self.known.operand(b, self.ty)) else { return None };
        let choice = &self.function.insts[self.definition[*chosen].expand()?];
        if choice.opcode() != Some(Opcode::Selp) || choice.guard.is_some() {
            return None;
        }
        let operation = Operation::of(self.data)?;
        let ty = choice.types().next()?;
        let [held, other] = [1, 2].map(|index| {
            let arm = self.known.operand(choice.operands.get(index)?, ty)?;
            match operation.evaluate(&[arm, number, 0, 0, 0, 0], false)? {
                Outcome::Pair([value, _]) | Outcome::One(value) => Some(value & 1 == 1),
                Outcome::Carry(..) => None,
            }
        });
        match (held?, other?, choice.operands.get(3)?) {
            (true, true, _) => Some(Simplification::Value(1)),
            (false, false, _) => Some(Simplification::Value(0)),
            (true, false, Operand::Reg(p)) | (false, true, Operand::Not(p)) => self.copy_of(Operand::Reg(*p)),
            (true, false, Operand::Not(p)) | (false, true, Operand::Reg(p)) => {
                Some(Simplification::Instruction(made("not.pred", [self.data.operands[0].clone(), Operand::Reg(*p)])))
            }
            _ => None,
        }
    }

    /// Replaces a conversion between integers of the width of their registers by a copy.
    fn conversion(&self) -> Option<Simplification> {
        let mut types = self.data.types();
        let (to, from) = (types.next()?, types.next()?);
        let [Operand::Reg(result), Operand::Reg(source)] = self.data.operands.as_slice() else { return None };
        let bits = |reg: Reg| self.function.regs[reg].ty.bits();
        let whole = to.bits() == from.bits() && to.is_integer() && from.is_integer();
        if whole && bits(*result) == to.bits() && bits(*source) == to.bits() { self.copy(1) } else { None }
    }
}
