//! Instruction without its operands: name, types, modifiers, and selectors and signs of operands.

use crate::truncate;
use broadloom_ptx::{Imm, InstData, Mnemonic, Modifier, Opcode, Operand, Row, Selector, Type};

/// Values that an instruction reads, in the order of its operands. No pure instruction reads more than six.
pub type Inputs = [u64; 6];

/// Modifiers of an instruction as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ModifierSet([u64; 12]);

impl ModifierSet {
    /// Adds a modifier.
    pub fn insert(&mut self, modifier: Modifier) {
        let index = modifier as usize;
        self.0[index / 64] |= 1 << (index % 64);
    }

    /// Returns whether the set contains a modifier.
    #[inline(always)]
    pub fn has(&self, modifier: Modifier) -> bool {
        let index = modifier as usize;
        self.0[index / 64] >> (index % 64) & 1 == 1
    }
}

// Every modifier must have a bit.
const _: () = assert!(Modifier::ALL.len() <= 12 * 64);

/// Selector and sign of a register operand of a video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct OperandPart {
    /// Selected part of the register; `None` for all of it.
    pub(crate) selector: Option<Selector>,
    /// True if a minus precedes it.
    pub(crate) negated: bool,
}

/// Instruction without its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Opcode of the instruction.
    pub opcode: Opcode,
    /// First type among the modifiers: for most the type of the instruction, for `cvt` and `set` that of the
    /// result.
    pub ty: Type,
    /// Second type among the modifiers, or the first.
    pub source_ty: Type,
    /// Third type among the modifiers, or the first.
    pub third_ty: Type,
    /// All modifiers.
    pub modifiers: ModifierSet,
    /// Number of inputs, including omitted ones in between.
    pub(crate) inputs: u8,
    /// Number of results.
    pub(crate) results: u8,
    /// Part of a register that is written.
    pub(crate) into: OperandPart,
    /// Parts of registers that are read.
    pub(crate) from: [OperandPart; 3],
}

impl Operation {
    /// Returns the operation of an instruction of the table, pure or not (see [`Operation::function`]);
    /// `None` for an opaque one.
    pub fn of(inst: &InstData) -> Option<Operation> {
        let form = inst.form()?;
        let mut operation = Operation::from_words(form.opcode, inst.modifiers());
        let (mut results, mut into) = (0, OperandPart::default());
        for operand in inst.written() {
            if results == 0 {
                into = part(operand);
            }
            results += 1;
        }
        operation.results = results;
        operation.into = into;
        for (index, (operand, _)) in inputs(inst).enumerate() {
            if let Some(place) = operation.from.get_mut(index) {
                *place = part(operand);
            }
            if !matches!(operand, Operand::Absent | Operand::Sink) {
                operation.inputs = u8::try_from(index + 1).unwrap_or(u8::MAX);
            }
        }
        Some(operation)
    }

    /// Returns the operation that a text such as `add.sat.s32` names, with one result and the minimum number
    /// of inputs. Returns `None` if the table has no such name or modifier. For comparisons and tests that
    /// need no module.
    pub fn from_text(text: &str) -> Option<Operation> {
        let row = Row::all()
            .iter()
            .filter(|row| text.strip_prefix(row.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
            .max_by_key(|row| row.name.len())?;
        let words = text[row.name.len()..].split('.').filter(|word| !word.is_empty());
        let modifiers: Vec<Modifier> = words.map(Modifier::from_text).collect::<Option<_>>()?;
        Some(Operation::from_words(row.opcode, modifiers))
    }

    /// Returns the operation of a name without modifiers.
    pub fn from_opcode(opcode: Opcode) -> Operation {
        Operation::from_words(opcode, [])
    }

    fn from_words(opcode: Opcode, words: impl IntoIterator<Item = Modifier>) -> Operation {
        let mut modifiers = ModifierSet::default();
        let mut types = vec![];
        for modifier in words {
            modifiers.insert(modifier);
            types.extend(modifier.ty());
        }
        let ty = types.first().copied().unwrap_or(Type::B32);
        let other = |index: usize| types.get(index).copied().unwrap_or(ty);
        Operation {
            opcode,
            ty,
            source_ty: other(1),
            third_ty: other(2),
            modifiers,
            inputs: 0,
            results: 1,
            into: OperandPart::default(),
            from: [OperandPart::default(); 3],
        }
    }

    /// Returns whether a modifier is present.
    #[inline(always)]
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers.has(modifier)
    }

    /// Returns whether subnormal `f32` operands and results are flushed to zero. That is so with `.ftz`, and
    /// for `mad.f32` without a rounding, which targets before sm_20 have and newer GPUs run as
    /// `fma.rn.ftz.f32` (manual: "mad", floating point).
    #[inline(always)]
    pub fn flushes(&self) -> bool {
        let rounds = || [Modifier::Rn, Modifier::Rz, Modifier::Rm, Modifier::Rp].iter().any(|mode| self.has(*mode));
        self.has(Modifier::Ftz) || self.opcode == Opcode::Mad && self.ty == Type::F32 && !rounds()
    }

    /// Returns whether the carry flag is an input.
    pub fn reads_carry(&self) -> bool {
        matches!(self.opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc)
    }

    /// Returns whether the carry flag is a result; else the flag is unchanged.
    #[inline(always)]
    pub fn writes_carry(&self) -> bool {
        self.has(Modifier::Cc) || matches!(self.opcode, Opcode::AddCc | Opcode::SubCc)
    }
}

fn part(operand: &Operand) -> OperandPart {
    match operand {
        Operand::Part { negated, selector, .. } => OperandPart { selector: *selector, negated: *negated },
        _ => OperandPart::default(),
    }
}

/// Returns the operands that an instruction reads, in order, with vectors expanded, each with the type of an
/// immediate in its place. Omitted operands in between are [`Operand::Absent`]. An opaque instruction has
/// none.
pub fn inputs(inst: &InstData) -> impl Iterator<Item = (&Operand, Type)> {
    let (specs, modifiers) = match &inst.mnemonic {
        Mnemonic::Known { form, modifiers } => (form.get().operands, modifiers.as_slice()),
        Mnemonic::Opaque(_) => (&[] as &[_], &[] as &[_]),
    };
    specs.iter().zip(&inst.operands).filter(|(spec, _)| !spec.written).flat_map(move |(spec, operand)| {
        let ty = spec.type_in(modifiers).unwrap_or(Type::B32);
        let elements = operand.elements();
        elements.iter().map(move |element| (element, ty))
    })
}

/// Returns the bits that a register of the type holds for an immediate: a number in the format of a
/// floating-point type, the low bits of an integer, zero above the width.
pub fn immediate(imm: Imm, ty: Type) -> u64 {
    let double = match imm {
        Imm::F64(bits) => Some(f64::from_bits(bits)),
        Imm::F32(bits) => Some(f64::from(f32::from_bits(bits))),
        Imm::Int(_) | Imm::Uint(_) => None,
    };
    let bits = match (imm, double, ty) {
        (Imm::F32(bits), _, Type::F32 | Type::B32) => u64::from(bits),
        (Imm::F64(bits), _, Type::F64 | Type::B64) => bits,
        (_, Some(value), Type::F32) => u64::from((value as f32).to_bits()),
        (_, Some(value), Type::F64) => value.to_bits(),
        (_, Some(value), Type::F16) => u64::from(half::f16::from_f64(value).to_bits()),
        (_, Some(value), Type::Bf16) => u64::from(half::bf16::from_f64(value).to_bits()),
        (Imm::F32(bits), _, _) => u64::from(bits),
        (Imm::F64(bits), _, _) => bits,
        (Imm::Int(value), None, Type::F64) => (value as f64).to_bits(),
        (Imm::Int(value), None, Type::F32) => u64::from((value as f32).to_bits()),
        (Imm::Int(value), ..) => value as u64,
        (Imm::Uint(value), ..) => value,
    };
    truncate(bits, if ty == Type::Pred { 1 } else { ty.bits() })
}
