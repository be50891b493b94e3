//! Known values, and evaluation of instructions on them.

use crate::facts::Facts;
use broadloom_eval::{Inputs, Operation, Outcome, immediate, inputs, truncate};
use broadloom_ptx::{Class, Function, InstData, Opcode, Operand, Reg, Type};
use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

/// Registers with a known value, as a register holds it: zero above its width.
#[derive(Default)]
pub(crate) struct KnownValues {
    values: SecondaryMap<Reg, Option<u64>>,
}

/// Values that an instruction writes, by register.
pub(crate) type WrittenValues = SmallVec<[(Reg, u64); 2]>;

impl KnownValues {
    pub(crate) fn get(&self, reg: Reg) -> Option<u64> {
        self.values[reg]
    }

    pub(crate) fn set(&mut self, reg: Reg, value: u64) {
        self.values[reg] = Some(value);
    }

    /// Returns the value of an operand of a type; `None` if it is unknown. An absent operand counts as zero.
    pub(crate) fn operand(&self, operand: &Operand, ty: Type) -> Option<u64> {
        match operand {
            Operand::Reg(reg) | Operand::Part { reg, .. } => self.get(*reg),
            Operand::Not(reg) => self.get(*reg).map(|value| value ^ 1),
            Operand::Imm(imm) => Some(immediate(*imm, ty)),
            Operand::Absent | Operand::Sink => Some(0),
            Operand::Special(_)
            | Operand::Symbol(..)
            | Operand::Memory(_)
            | Operand::Texture(_)
            | Operand::Vector(_)
            | Operand::Label(_)
            | Operand::Targets(_)
            | Operand::Pair(_)
            | Operand::Call(_) => None,
        }
    }

    /// Returns the results of an instruction without a guard. Returns `None` if they are unknown, or not a
    /// function of its inputs.
    pub(crate) fn evaluate(&self, function: &Function, facts: &Facts, data: &InstData) -> Option<WrittenValues> {
        if data.opcode() == Some(Opcode::Mov) {
            return self.moved(function, facts, data);
        }
        let mut values: Inputs = Inputs::default();
        for (index, (operand, ty)) in inputs(data).enumerate() {
            *values.get_mut(index)? = match operand {
                Operand::Special(special) => facts.special(*special)?,
                operand => self.operand(operand, ty)?,
            };
        }
        let class = data.class()?;
        if matches!(class, Class::Address | Class::Misc | Class::Cluster) {
            return None;
        }
        let outcome = Operation::of(data)?.evaluate(&values, false)?;
        let results = match outcome {
            Outcome::One(value) => [value, 0],
            Outcome::Pair(values) => values,
            Outcome::Carry(..) => return None,
        };
        let mut found = WrittenValues::new();
        for (operand, value) in data.written().zip(results) {
            if let Operand::Reg(reg) | Operand::Part { reg, .. } = operand {
                found.push((*reg, cut(function, *reg, value)?));
            }
        }
        Some(found)
    }

    /// Evaluates `mov` in all its forms: a whole register, packed, unpacked.
    fn moved(&self, function: &Function, facts: &Facts, data: &InstData) -> Option<WrittenValues> {
        let ty = data.types().next().unwrap_or(Type::Pred);
        let [to, from] = data.operands.as_slice() else { return None };
        match (to, from) {
            (Operand::Reg(to), Operand::Vector(parts)) => {
                let bits = ty.bits() / parts.len().max(1) as u32;
                let mut value = 0u64;
                for (index, part) in parts.iter().enumerate() {
                    let part = truncate(self.operand(part, Type::bits_of(bits)?)?, bits);
                    value |= part.checked_shl(bits * index as u32)?;
                }
                Some(smallvec![(*to, cut(function, *to, value)?)])
            }
            (Operand::Vector(parts), Operand::Vector(values)) => {
                let known = parts.iter().zip(values).filter_map(|(part, value)| match part {
                    Operand::Reg(reg) => Some((*reg, value)),
                    _ => None,
                });
                known.map(|(reg, value)| Some((reg, cut(function, reg, self.operand(value, ty)?)?))).collect()
            }
            (Operand::Vector(parts), from) => {
                let value = self.operand(from, ty)?;
                let bits = ty.bits() / parts.len().max(1) as u32;
                let mut found = WrittenValues::new();
                for (index, part) in parts.iter().enumerate() {
                    if let Operand::Reg(reg) = part {
                        let part = truncate(value.checked_shr(bits * index as u32)?, bits);
                        found.push((*reg, cut(function, *reg, part)?));
                    }
                }
                Some(found)
            }
            (Operand::Reg(to), from) => {
                let value = match from {
                    Operand::Special(special) => facts.special(*special)?,
                    from => self.operand(from, ty)?,
                };
                Some(smallvec![(*to, cut(function, *to, value)?)])
            }
            _ => None,
        }
    }
}

/// Truncates a value to the width of its register; `None` for registers of more than 64 bits.
fn cut(function: &Function, reg: Reg, value: u64) -> Option<u64> {
    let bits = function.regs[reg].ty.bits();
    (bits <= 64).then(|| truncate(value, bits))
}
