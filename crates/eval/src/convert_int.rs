//! Conversions between integers (manual: "Data Movement and Conversion Instructions: cvt", "cvt.pack").
//!
//! A source register wider than its type is truncated first. A result narrower than its register is extended
//! by the sign of its type (manual: "Operand Size Exceeding Instruction-Type Size").

use super::arith::saturate;
use super::{number, sign_extend, truncate};
use crate::{Inputs, Operation};
use broadloom_ptx::Modifier;

pub(crate) fn cvt(op: &Operation, inputs: &Inputs) -> u64 {
    let (signed, bits) = (op.ty.is_signed(), op.ty.bits());
    let value = number(op.source_ty.is_signed(), op.source_ty.bits(), inputs[0]);
    if op.has(Modifier::Sat) {
        return saturate(signed, bits, value) as u64;
    }
    number(signed, bits, value as u64) as u64
}

/// Types that `cvt.pack` converts to, with their sign and width.
const PACKED: [(Modifier, bool, u32); 8] = [
    (Modifier::U16, false, 16),
    (Modifier::S16, true, 16),
    (Modifier::U8, false, 8),
    (Modifier::S8, true, 8),
    (Modifier::U4, false, 4),
    (Modifier::S4, true, 4),
    (Modifier::U2, false, 2),
    (Modifier::S2, true, 2),
];

/// Computes `cvt.pack`: `a` above `b`, and above both the low bits of `c`, which fit only if the type is
/// narrower than 16 bits.
pub(crate) fn cvt_pack(op: &Operation, inputs: &Inputs) -> u64 {
    let found = PACKED.iter().find(|(modifier, _, _)| op.has(*modifier));
    let (signed, bits) = found.map_or((true, 16), |(_, signed, bits)| (*signed, *bits));
    let narrow = |value: u64| truncate(saturate(signed, bits, i128::from(sign_extend(value, 32))) as u64, bits);
    let packed = narrow(inputs[0]) << bits | narrow(inputs[1]);
    if bits == 16 { packed } else { packed | inputs[2] << (2 * bits) }
}
