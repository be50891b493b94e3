//! Logic, shifts and bit fields, tested against loops over single bits.

use crate::testing::{op, pairs, run, run_pair, values};
use broadloom_eval::{Operation, truncate};
use broadloom_ptx::{InstData, Operand, Reg};

/// Positions, lengths and shift amounts around every edge.
const AMOUNTS: [u64; 18] = [0, 1, 4, 5, 8, 31, 32, 33, 40, 63, 64, 65, 127, 128, 255, 256, 0x1_0000, 0xffff_ffff];

fn bit(value: u64, index: u32) -> u64 {
    value >> index & 1
}

fn from_bits(count: u32, bit: impl Fn(u32) -> u64) -> u64 {
    (0..count).map(|index| bit(index) << index).sum()
}

#[test]
fn logic_agrees_bit_by_bit() {
    for (a, b) in pairs() {
        let c = a.rotate_left(17) ^ b;
        for table in 0..256 {
            let expected = from_bits(32, |i| bit(table, (bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)) as u32));
            let inputs = [a, b, c, table, 1, 0];
            assert_eq!(run(&op("lop3.b32"), &inputs), expected);
            assert_eq!(run_pair(&op_lop3("lop3.and.b32"), &inputs), [expected, u64::from(expected != 0)]);
        }
        let inputs = [a, b, c, 0x80, 0, 0];
        assert_eq!(run_pair(&op_lop3("lop3.and.b32"), &inputs)[1], 0);
        assert_eq!(run_pair(&op_lop3("lop3.or.b32"), &inputs)[1], u64::from(a & b & c & 0xffff_ffff != 0));
    }
    assert_eq!(truncate(run(&op("not.b16"), &[0x00ff, 0, 0, 0, 0, 0]), 16), 0xff00);
    assert_eq!(run(&op("cnot.b32"), &[0, 0, 0, 0, 0, 0]), 1);
    assert_eq!(run(&op("cnot.b32"), &[0x8000_0000, 0, 0, 0, 0, 0]), 0);
}

/// Returns a `lop3` that writes a predicate too.
fn op_lop3(text: &str) -> Operation {
    let reg = |number: u32| Operand::Reg(Reg::from_u32(number));
    let operands = [reg(0), reg(1), reg(2), reg(3), reg(4), Operand::from(0x80), reg(5)];
    Operation::of(&InstData::of(text, operands).unwrap_or_else(|| panic!("{text}"))).unwrap()
}

#[test]
fn shifts_clamp_their_amount() {
    for (value, amount) in values().into_iter().flat_map(|value| AMOUNTS.map(|amount| (value, amount))) {
        let inputs = [value, amount, 0, 0, 0, 0];
        for bits in [16, 32, 64] {
            let at = |index: u64| if index < u64::from(bits) { bit(value, index as u32) } else { 0 };
            let left = from_bits(bits, |i| u64::from(i).checked_sub(amount).map_or(0, at));
            assert_eq!(truncate(run(&op(&format!("shl.b{bits}")), &inputs), bits), left);
            let right = from_bits(bits, |i| at(u64::from(i) + amount));
            assert_eq!(truncate(run(&op(&format!("shr.u{bits}")), &inputs), bits), right);
            assert_eq!(truncate(run(&op(&format!("shr.b{bits}")), &inputs), bits), right);
            let right = from_bits(bits, |i| at((u64::from(i) + amount).min(u64::from(bits) - 1)));
            assert_eq!(truncate(run(&op(&format!("shr.s{bits}")), &inputs), bits), right);
        }
        let (a, b) = (truncate(value, 32), truncate(value.rotate_left(23), 32));
        let pair = |index: u64| if index < 32 { bit(a, index as u32) } else { bit(b, index as u32 - 32) };
        let inputs = [a, b, amount, 0, 0, 0];
        for (mode, n) in [("clamp", amount.min(32)), ("wrap", amount % 32)] {
            let left = from_bits(32, |i| pair(u64::from(i) + 32 - n));
            assert_eq!(truncate(run(&op(&format!("shf.l.{mode}.b32")), &inputs), 32), left, "{a:#x} {b:#x} {amount}");
            let right = from_bits(32, |i| pair(u64::from(i) + n));
            assert_eq!(truncate(run(&op(&format!("shf.r.{mode}.b32")), &inputs), 32), right, "{a:#x} {b:#x} {amount}");
        }
    }
}

#[test]
fn counts_and_searches() {
    for value in values() {
        let inputs = [value, 0, 0, 0, 0, 0];
        for bits in [32, 64] {
            let set: Vec<u32> = (0..bits).filter(|&i| bit(value, i) == 1).collect();
            assert_eq!(run(&op(&format!("popc.b{bits}")), &inputs), set.len() as u64);
            let zeros = set.last().map_or(bits, |top| bits - 1 - top);
            assert_eq!(run(&op(&format!("clz.b{bits}")), &inputs), u64::from(zeros));
            assert_eq!(run(&op(&format!("brev.b{bits}")), &inputs), from_bits(bits, |i| bit(value, bits - 1 - i)));
            for kind in ["u", "s"] {
                let sign = if kind == "s" { bit(value, bits - 1) } else { 0 };
                let top = (0..bits).rev().find(|&i| bit(value, i) != sign);
                let expected = top.map_or(0xffff_ffff, u64::from);
                assert_eq!(run(&op(&format!("bfind.{kind}{bits}")), &inputs), expected, "{value:#x}");
                let expected = top.map_or(0xffff_ffff, |top| u64::from(bits - 1 - top));
                assert_eq!(run(&op(&format!("bfind.shiftamt.{kind}{bits}")), &inputs), expected, "{value:#x}");
            }
        }
        for (base, offset) in (0..32_i64).flat_map(|base| (-34..35_i64).map(move |offset| (base, offset))) {
            let found = run(&op("fns.b32"), &[value, base as u64, offset as u32 as u64, 0, 0, 0]);
            let (mut position, mut left, step) = (base, offset.abs() - 1, if offset > 0 { 1 } else { -1 });
            let mut expected = 0xffff_ffff;
            while offset != 0 && (0..32).contains(&position) {
                if bit(value, position as u32) == 1 {
                    if left == 0 {
                        expected = position as u64;
                        break;
                    }
                    left -= 1;
                }
                position += step;
            }
            if offset == 0 && bit(value, base as u32) == 1 {
                expected = base as u64;
            }
            assert_eq!(found, expected, "{value:#x} {base} {offset}");
        }
    }
}

#[test]
fn fields_are_extracted_and_inserted() {
    let amounts = || AMOUNTS.into_iter().flat_map(|position| AMOUNTS.map(|length| (position, length)));
    for (value, (position, length)) in values().into_iter().flat_map(|value| amounts().map(move |pair| (value, pair))) {
        let (start, count) = ((position & 0xff) as u32, (length & 0xff) as u32);
        for bits in [32, 64] {
            let msb = bits - 1;
            for kind in ["u", "s"] {
                let sign = if kind == "u" || count == 0 { 0 } else { bit(value, (start + count - 1).min(msb)) };
                let expected = from_bits(bits, |i| if i < count && start + i <= msb { bit(value, start + i) } else { sign });
                let found = run(&op(&format!("bfe.{kind}{bits}")), &[value, position, length, 0, 0, 0]);
                assert_eq!(truncate(found, bits), expected, "bfe.{kind}{bits} {value:#x} {position} {length}");
            }
            let into = value.rotate_left(29) ^ 0x5555;
            let inside = |i: u32| i >= start && i < start + count;
            let expected = from_bits(bits, |i| if inside(i) { bit(value, i - start) } else { bit(into, i) });
            let found = run(&op(&format!("bfi.b{bits}")), &[value, into, position, length, 0, 0]);
            assert_eq!(truncate(found, bits), expected, "bfi.b{bits} {value:#x} {position} {length}");
        }
        for (mode, clamp) in [("clamp", true), ("wrap", false)] {
            let n = if clamp { position.min(32) } else { position % 32 } as u32;
            for kind in ["u", "s"] {
                let sign = if kind == "s" && n > 0 { bit(value, n - 1) } else { 0 };
                let expected = from_bits(32, |i| if i < n { bit(value, i) } else { sign });
                let found = run(&op(&format!("szext.{mode}.{kind}32")), &[value, position, 0, 0, 0, 0]);
                assert_eq!(truncate(found, 32), expected, "szext.{mode}.{kind}32 {value:#x} {position}");
            }
            let first = if clamp { position.min(32) } else { position % 32 };
            let count = if clamp { length.min(32) } else { length % 32 };
            let expected = from_bits(32, |i| u64::from((first..first + count).contains(&u64::from(i))));
            let found = run(&op(&format!("bmsk.{mode}.b32")), &[position, length, 0, 0, 0, 0]);
            assert_eq!(truncate(found, 32), expected, "bmsk.{mode}.b32 {position} {length}");
        }
    }
}

#[test]
fn bytes_are_permuted_as_the_manual_tabulates() {
    // Rows of the table in the manual: for each selector the sources of bytes 3, 2, 1, 0.
    let modes: [(&str, [u64; 4]); 6] = [
        ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
        ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
        ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
        ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
        ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
        ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
    ];
    let (a, b) = (0x8372_6150, 0xc7f6_15e4);
    for (mode, rows) in modes {
        for (selector, row) in rows.into_iter().enumerate() {
            let found = run(&op(&format!("prmt.b32.{mode}")), &[a, b, 0xfff4 + selector as u64, 0, 0, 0]);
            assert_eq!(found, run(&op("prmt.b32"), &[a, b, row, 0, 0, 0]), "{mode} {selector}");
        }
    }
    assert_eq!(run(&op("prmt.b32"), &[a, b, 0x7654, 0, 0, 0]), b);
    assert_eq!(run(&op("prmt.b32"), &[a, b, 0xffff_3b70, 0, 0, 0]), 0x83ff_c750);
    assert_eq!(run(&op("prmt.b32"), &[a, b, 0xfedc, 0, 0, 0]), 0xffff_00ff);
}
