//! Conversions between integers.

use crate::testing::{op, pairs, run, values};

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
            assert_eq!(run(&op(&format!("cvt.{to}.{from}")), &[value, 0, 0, 0, 0, 0]), chopped, "{to} {from} {value:#x}");
            let (low, high) = range(to);
            let clamped = source.clamp(low, high) as u64;
            assert_eq!(run(&op(&format!("cvt.sat.{to}.{from}")), &[value, 0, 0, 0, 0, 0]), clamped, "{to} {from} {value:#x}");
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
            assert_eq!(run(&op(&text), &[a, b, c, 0, 0, 0]) as u32, expected, "{text} {a:#x} {b:#x}");
        }
    }
}
