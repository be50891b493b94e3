//! Undefined bits of values, and their propagation through instructions.
//!
//! Compilers compute with undefined values and discard the result: a comparison whose outcome a second
//! predicate overrides, a bit field set in a word whose rest was never written, padding that is copied. A
//! value is therefore tracked bit by bit until it matters. Where bits are moved, masked, shifted or selected,
//! exactly those bits stay undefined that depend on undefined ones. Everywhere else one undefined bit makes
//! the whole result undefined.

use broadloom_eval::Operation;
use broadloom_ptx::{Modifier, Opcode};

/// Undefined part of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Undefined bits.
    pub(super) bits: u64,
    /// Origin of the undefined bits: one more than its index among the origins, or zero if the register was
    /// never written.
    pub(super) origin: u32,
    /// True if something has been computed from it, beyond copies.
    pub(super) computed: bool,
}

impl Doubt {
    /// Register that has not been written.
    pub(super) const UNWRITTEN: Doubt = Doubt { bits: u64::MAX, origin: 0, computed: false };

    pub(super) fn none(self) -> bool {
        self.bits == 0
    }

    /// Returns the undefined part within a mask.
    pub(super) fn masked(self, mask: u64) -> Doubt {
        Doubt { bits: self.bits & mask, ..self }
    }
}

/// Bits of an operand. Those of `value` count where `unknown` has no bit set.
#[derive(Clone, Copy, Debug)]
pub struct OperandBits {
    pub value: u64,
    pub unknown: u64,
}

impl OperandBits {
    fn sure(self) -> Option<u64> {
        (self.unknown == 0).then_some(self.value)
    }

    fn zeros(self) -> u64 {
        !self.value & !self.unknown
    }

    fn ones(self) -> u64 {
        self.value & !self.unknown
    }
}

type Rule = fn(&Operation, &[OperandBits]) -> Option<u64>;

/// Instructions that do not need every bit of their operands.
const RULES: &[(Opcode, Rule)] = &[
    (Opcode::And, and),
    (Opcode::Or, or),
    (Opcode::Xor, union),
    (Opcode::Not, union),
    (Opcode::Lop3, lop3),
    (Opcode::Selp, selp),
    (Opcode::Shl, shl),
    (Opcode::Shr, shr),
    (Opcode::Shf, shf),
    (Opcode::Bfe, bfe),
    (Opcode::Bfi, bfi),
    (Opcode::Prmt, prmt),
    (Opcode::Cvt, cvt),
    (Opcode::Setp, setp),
];

/// Returns the undefined bits of the result of an instruction with at least one undefined bit among its
/// operands.
pub fn undecided(op: &Operation, operands: &[OperandBits]) -> u64 {
    let rule = RULES.iter().find(|(opcode, _)| *opcode == op.opcode);
    rule.and_then(|(_, rule)| rule(op, operands)).unwrap_or(u64::MAX)
}

fn ones(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

fn and(_: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, b, ..] = operands else { return None };
    Some((a.unknown | b.unknown) & !a.zeros() & !b.zeros())
}

fn or(_: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, b, ..] = operands else { return None };
    Some((a.unknown | b.unknown) & !a.ones() & !b.ones())
}

fn union(_: &Operation, operands: &[OperandBits]) -> Option<u64> {
    Some(operands.iter().fold(0, |all, operand| all | operand.unknown))
}

/// Computes `lop3`. A bit is defined if the table gives the same for every value of the undefined operands.
fn lop3(_: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, b, c, table, ..] = operands else { return None };
    let table = table.sure()?;
    let look = |a: u64, b: u64, c: u64| {
        (0..8).filter(|row| table >> row & 1 == 1).fold(0, |all, row| {
            let pick = |value: u64, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
            all | pick(a, 2) & pick(b, 1) & pick(c, 0)
        })
    };
    let flipped = |mask: u32, bit: u32, operand: OperandBits| {
        if mask >> bit & 1 == 1 { operand.value ^ operand.unknown } else { operand.value }
    };
    let plain = look(a.value, b.value, c.value);
    Some((1..8).fold(0, |all, mask| all | plain ^ look(flipped(mask, 2, a), flipped(mask, 1, b), flipped(mask, 0, c))))
}

fn selp(_: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, b, p, ..] = operands else { return None };
    Some(if p.sure()? != 0 { a.unknown } else { b.unknown })
}

fn shl(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, by, ..] = operands else { return None };
    let by = by.sure()? & 0xffff_ffff;
    Some(if by >= u64::from(op.ty.bits()) { 0 } else { a.unknown << by })
}

fn shr(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, by, ..] = operands else { return None };
    let (by, bits) = (by.sure()? & 0xffff_ffff, op.ty.bits());
    let unknown = a.unknown & ones(bits);
    if op.ty.is_signed() {
        // An undefined sign fills the bits shifted in from above.
        let extended = ((unknown << (64 - bits)) as i64) >> (64 - bits);
        return Some((extended >> by.min(63)) as u64);
    }
    Some(if by >= u64::from(bits) { 0 } else { unknown >> by })
}

fn shf(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[low, high, by, ..] = operands else { return None };
    let by = by.sure()? as u32;
    let by = if op.has(Modifier::Wrap) { by & 31 } else { by.min(32) };
    let funnel = (high.unknown & ones(32)) << 32 | low.unknown & ones(32);
    Some(if op.has(Modifier::L) { ((u128::from(funnel) << by) >> 32) as u64 } else { funnel >> by })
}

fn bfe(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, start, length, ..] = operands else { return None };
    let (start, length, bits) = (start.sure()? as u32 & 0xff, length.sure()? as u32 & 0xff, op.ty.bits());
    let unknown = a.unknown & ones(bits);
    let field = if start >= bits { 0 } else { unknown >> start & ones(length) };
    let sign = (start + length).saturating_sub(1).min(bits - 1);
    // The bits above the field repeat its highest bit, or that of the word if the field extends beyond it.
    let filled = op.ty.is_signed() && length > 0 && unknown >> sign & 1 == 1;
    Some(if filled { field | !ones(length.min(bits.saturating_sub(start))) } else { field })
}

fn bfi(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, b, start, length, ..] = operands else { return None };
    let (start, length) = (start.sure()? as u32 & 0xff, length.sure()? as u32 & 0xff);
    if start >= op.ty.bits() {
        return Some(b.unknown);
    }
    let field = ones(length) << start;
    Some(b.unknown & !field | a.unknown << start & field)
}

/// Computes the plain form of `prmt`; the others are rare.
fn prmt(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let &[a, b, control, ..] = operands else { return None };
    let special = [Modifier::F4e, Modifier::B4e, Modifier::Rc8, Modifier::Ecl, Modifier::Ecr, Modifier::Rc16];
    if special.iter().any(|mode| op.has(*mode)) {
        return None;
    }
    let control = control.sure()?;
    let bytes = ((b.unknown & ones(32)) << 32 | a.unknown & ones(32)).to_le_bytes();
    let byte = |place: usize| {
        let selector = control >> (4 * place);
        let byte = bytes[(selector & 7) as usize];
        // If the highest bit of the selector is set, the sign of the byte is repeated.
        if selector & 8 != 0 { if byte & 0x80 != 0 { 0xff } else { 0 } } else { byte }
    };
    Some(u64::from(u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])))
}

/// Converts between integers, without saturation: truncated or extended.
fn cvt(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let a = operands.first()?;
    if op.ty.is_float() || op.source_ty.is_float() || op.has(Modifier::Sat) {
        return None;
    }
    let (to, from) = (op.ty.bits(), op.source_ty.bits());
    let unknown = a.unknown & ones(from);
    let extended = if op.source_ty.is_signed() { (((unknown << (64 - from)) as i64) >> (64 - from)) as u64 } else { unknown };
    Some(extended & ones(to))
}

/// Computes a comparison combined with a predicate that decides alone.
fn setp(op: &Operation, operands: &[OperandBits]) -> Option<u64> {
    let joined = operands.get(2)?.sure()? != 0;
    let decided = (op.has(Modifier::And) && !joined) || (op.has(Modifier::Or) && joined);
    decided.then_some(0)
}
