//! Integer semantics of instructions in a compact form, from which ranges and shapes are computed.
//!
//! Every instruction becomes one [`Step`]. Those whose results have no specific rule are [`Op::Other`].

use crate::facts::param_offsets;
use broadloom_ptx::{
    Base, Function, Inst, InstData, Modifier, Opcode, Operand, Param, Reg, Space, Special, Symbol, Type, TypeKind, Var,
};
use std::collections::BTreeMap;

/// Operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    Reg(Reg),
    /// Bits, of the type's width.
    Const(u64),
    Special(Special),
    /// Address, or no integer.
    Other,
}

/// Comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Relation {
    /// Returns the relation that holds if this one does not.
    pub(crate) fn negated(self) -> Relation {
        match self {
            Relation::Eq => Relation::Ne,
            Relation::Ne => Relation::Eq,
            Relation::Lt => Relation::Ge,
            Relation::Le => Relation::Gt,
            Relation::Gt => Relation::Le,
            Relation::Ge => Relation::Lt,
        }
    }

    /// Returns the relation with the sides exchanged.
    pub(crate) fn swapped(self) -> Relation {
        match self {
            Relation::Eq => Relation::Eq,
            Relation::Ne => Relation::Ne,
            Relation::Lt => Relation::Gt,
            Relation::Le => Relation::Ge,
            Relation::Gt => Relation::Lt,
            Relation::Ge => Relation::Le,
        }
    }
}

/// Operation of an instruction; operands in the order of the manual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    Copy,
    Add,
    Sub,
    Mul,
    MulWide,
    Mad,
    MadWide,
    Neg,
    Not,
    Abs,
    Min,
    Max,
    Div,
    Rem,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    /// First operand if the predicate, which is third, holds, else the second.
    Select,
    /// Bit field of the first operand, at the position in the second, with the length in the third.
    BitField,
    /// Conversion from this type to the type of the step.
    Convert(Type),
    /// Comparison of the operands after the results.
    Compare(Relation),
    /// Number of set bits, or of leading zeros.
    Count,
    /// Value at this offset of the parameter block.
    Param(u64),
    /// Value of the step's type from memory.
    Load,
    Other,
}

/// Instruction with its first result and its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub op: Op,
    /// Type of the instruction.
    pub ty: Type,
    pub result: Option<Reg>,
    pub args: [Arg; 3],
}

/// Reader of a function's instructions.
pub(crate) struct InstructionReader<'a> {
    function: &'a Function,
    offsets: BTreeMap<Var, u64>,
}

impl<'a> InstructionReader<'a> {
    pub(crate) fn new(function: &'a Function) -> Self {
        InstructionReader { function, offsets: param_offsets(function) }
    }

    pub(crate) fn step(&self, inst: Inst) -> Step {
        let data = &self.function.insts[inst];
        let ty = data.types().next().unwrap_or(Type::B32);
        let mut step = Step { op: Op::Other, ty, result: None, args: [Arg::Other; 3] };
        let Some(opcode) = data.opcode() else { return step };
        step.result = match data.operands.first() {
            Some(Operand::Reg(reg)) => Some(*reg),
            _ => None,
        };
        step.op = self.op(opcode, data, ty);
        let first = match step.op {
            Op::Compare(_) => 2,
            _ => 1,
        };
        if matches!(step.op, Op::Other | Op::Param(_) | Op::Load) {
            return step;
        }
        for (index, arg) in step.args.iter_mut().enumerate() {
            // Shift amounts, and positions and lengths of fields, have 32 bits for every type.
            let bits = match step.op {
                Op::Shl | Op::Shr | Op::BitField if index > 0 => 32,
                Op::MadWide if index == 2 => 2 * ty.bits(),
                Op::Convert(from) => from.bits(),
                _ => ty.bits(),
            };
            *arg = argument(data.operands.get(index + first), bits);
        }
        step
    }

    fn op(&self, opcode: Opcode, data: &InstData, ty: Type) -> Op {
        let simple = is_integer(ty) && !data.has_word("sat") && data.operands.iter().all(|operand| !is_vector(operand));
        let alone = data.modifiers().count() == 1;
        if !simple {
            return Op::Other;
        }
        match opcode {
            Opcode::Mov | Opcode::Not | Opcode::And | Opcode::Or | Opcode::Xor if !alone => Op::Other,
            Opcode::Mov => Op::Copy,
            Opcode::Add | Opcode::AddCc => Op::Add,
            Opcode::Sub | Opcode::SubCc => Op::Sub,
            Opcode::Mul => match half(data) {
                Some("lo") => Op::Mul,
                Some("wide") => Op::MulWide,
                _ => Op::Other,
            },
            Opcode::Mad => match half(data) {
                Some("lo") => Op::Mad,
                Some("wide") => Op::MadWide,
                _ => Op::Other,
            },
            Opcode::Neg => Op::Neg,
            Opcode::Not => Op::Not,
            Opcode::Abs => Op::Abs,
            Opcode::Min if alone => Op::Min,
            Opcode::Max if alone => Op::Max,
            Opcode::Div => Op::Div,
            Opcode::Rem => Op::Rem,
            Opcode::Shl => Op::Shl,
            Opcode::Shr => Op::Shr,
            Opcode::And => Op::And,
            Opcode::Or => Op::Or,
            Opcode::Xor => Op::Xor,
            // A negated predicate is not an argument here.
            Opcode::Selp if matches!(data.operands.get(3), Some(Operand::Reg(_))) => Op::Select,
            Opcode::Selp => Op::Other,
            Opcode::Bfe => Op::BitField,
            Opcode::Popc | Opcode::Clz => Op::Count,
            Opcode::Setp => relation(data).map_or(Op::Other, Op::Compare),
            Opcode::Cvt => match data.types().nth(1) {
                Some(from) if is_integer(from) && data.modifiers().count() == 2 => Op::Convert(from),
                _ => Op::Other,
            },
            Opcode::Ld => self.load(data),
            _ => Op::Other,
        }
    }

    fn load(&self, data: &InstData) -> Op {
        match data.operands.get(1) {
            Some(Operand::Memory(address)) if data.space() == Space::Param => match address.base {
                Base::Symbol(Symbol::Local(var)) if self.is_kernel_param(var) => {
                    self.offsets[&var].checked_add_signed(address.offset).map_or(Op::Load, Op::Param)
                }
                Base::Symbol(_) | Base::Reg(_) | Base::Absolute => Op::Load,
            },
            _ => Op::Load,
        }
    }

    /// Returns whether a variable of the function is a parameter of the launch.
    pub(crate) fn is_kernel_param(&self, var: Var) -> bool {
        self.function.is_kernel && self.function.params.contains(&Param::Memory(var))
    }
}

/// Modifiers by name that have no separate constant here.
pub(crate) trait Words {
    fn has_word(&self, word: &str) -> bool;
}

impl Words for InstData {
    fn has_word(&self, word: &str) -> bool {
        self.modifiers().any(|modifier| modifier.text() == word)
    }
}

fn half(data: &InstData) -> Option<&'static str> {
    data.modifiers().map(Modifier::text).find(|word| ["lo", "hi", "wide"].contains(word))
}

fn relation(data: &InstData) -> Option<Relation> {
    data.modifiers().find_map(|modifier| {
        Some(match modifier.text() {
            "eq" => Relation::Eq,
            "ne" => Relation::Ne,
            "lt" | "lo" => Relation::Lt,
            "le" | "ls" => Relation::Le,
            "gt" | "hi" => Relation::Gt,
            "ge" | "hs" => Relation::Ge,
            _ => return None,
        })
    })
}

/// Returns whether values of a type are integers, or bits, of at most 64 bits.
pub(crate) fn is_integer(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed => ty.bits() <= 64,
        TypeKind::Float | TypeKind::Predicate | TypeKind::Packed | TypeKind::Alternate | TypeKind::Opaque => false,
    }
}

fn is_vector(operand: &Operand) -> bool {
    matches!(operand, Operand::Vector(_) | Operand::Pair(_) | Operand::Part { .. })
}

fn argument(operand: Option<&Operand>, bits: u32) -> Arg {
    match operand {
        Some(Operand::Reg(reg)) => Arg::Reg(*reg),
        Some(Operand::Imm(imm)) => imm.integer_bits().map_or(Arg::Other, |value| Arg::Const(value & mask(bits))),
        Some(Operand::Special(special)) => Arg::Special(*special),
        _ => Arg::Other,
    }
}

/// Returns a mask of `bits` ones.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
