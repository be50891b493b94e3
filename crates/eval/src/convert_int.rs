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

#[cfg(test)]
mod tests {
    use super::super::testing::{op, pairs, values};
    use super::*;

    const TYPES: [&str; 8] = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];

    fn int(ty: &str, value: u64) -> i128 {
        let bits: u32 = ty[1..].parse().unwrap();
        let low = i128::from(value) & ((1 << bits) - 1);
        if ty.starts_with('s') && low >> (bits - 1) == 1 { low - (1 << bits) } else { low }
    }

    fn range(ty: &str) -> (i128, i128) {
        let bits: u32 = ty[1..].parse().unwrap();
        if ty.starts_with('s') { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    #[test]
    fn every_pair_of_types() {
        for (to, from) in TYPES.into_iter().flat_map(|to| TYPES.map(|from| (to, from))) {
            for value in values() {
                let source = int(from, value);
                let chopped = int(to, source as u64) as u64;
                assert_eq!(cvt(&op(&format!("cvt.{to}.{from}")), &[value, 0, 0, 0, 0, 0]), chopped, "{to} {from} {value:#x}");
                let (low, high) = range(to);
                let clamped = source.clamp(low, high) as u64;
                assert_eq!(cvt(&op(&format!("cvt.sat.{to}.{from}")), &[value, 0, 0, 0, 0, 0]), clamped, "{to} {from} {value:#x}");
            }
        }
    }

    #[test]
    fn pairs_are_packed_with_saturation() {
        for (ty, bits) in [("u16", 16), ("s16", 16), ("u8", 8), ("s8", 8), ("u4", 4), ("s4", 4), ("u2", 2), ("s2", 2)] {
            let text = if bits == 16 { format!("cvt.pack.sat.{ty}.s32") } else { format!("cvt.pack.sat.{ty}.s32.b32") };
            let (low, high) = range(ty);
            let mask = (1_u64 << bits) - 1;
            for (a, b) in pairs() {
                let c = a.rotate_left(40) ^ b;
                let field = |value: u64| int("s32", value).clamp(low, high) as u64 & mask;
                let above = if bits == 16 { 0 } else { c << (2 * bits) };
                let expected = (field(b) | field(a) << bits | above) as u32;
                assert_eq!(cvt_pack(&op(&text), &[a, b, c, 0, 0, 0]) as u32, expected, "{text} {a:#x} {b:#x}");
            }
        }
    }
}
