//! Bits of results that unknown operands leave undecided.

use broadloom_eval::Operation;
use broadloom_interp::check::value::{OperandBits, undecided};

fn op(text: &str) -> Operation {
    Operation::from_text(text).unwrap()
}

fn sure(value: u64) -> OperandBits {
    OperandBits { value, unknown: 0 }
}

fn unsure(unknown: u64) -> OperandBits {
    OperandBits { value: 0, unknown }
}

#[test]
fn masks_decide_the_bits_that_they_clear_or_set() {
    assert_eq!(undecided(&op("and.b32"), &[unsure(0xff), sure(0xf0)]), 0xf0);
    assert_eq!(undecided(&op("or.b32"), &[unsure(0xff), sure(0xf0)]), 0x0f);
    assert_eq!(undecided(&op("xor.b32"), &[unsure(0xff), sure(0xf0)]), 0xff);
    // The majority of two equal bits and anything.
    let majority = [sure(0b1100), sure(0b1010), unsure(0b1111), sure(0xe8)];
    assert_eq!(undecided(&op("lop3.b32"), &majority), 0b0110);
}

#[test]
fn selections_take_what_they_select() {
    assert_eq!(undecided(&op("selp.b32"), &[unsure(7), sure(1), sure(0)]), 0);
    assert_eq!(undecided(&op("selp.b32"), &[unsure(7), sure(1), sure(1)]), 7);
    assert_eq!(undecided(&op("selp.b32"), &[sure(1), sure(1), unsure(1)]), u64::MAX);
    assert_eq!(undecided(&op("setp.lt.and.s32"), &[unsure(7), sure(1), sure(0)]), 0);
    assert_eq!(undecided(&op("setp.lt.and.s32"), &[unsure(7), sure(1), sure(1)]), u64::MAX);
}

#[test]
fn shifts_and_fields_move_doubt_along() {
    assert_eq!(undecided(&op("shl.b32"), &[unsure(0xff), sure(4)]), 0xff0);
    assert_eq!(undecided(&op("shr.u32"), &[unsure(0xff00_0000), sure(4)]), 0x0ff0_0000);
    assert_eq!(undecided(&op("shr.s32"), &[unsure(0x8000_0000), sure(4)]) & 0xffff_ffff, 0xf800_0000);
    assert_eq!(undecided(&op("bfi.b32"), &[sure(5), unsure(0xffff_ffff), sure(8), sure(8)]) & 0xffff_ffff, 0xffff_00ff);
    assert_eq!(undecided(&op("bfe.u32"), &[unsure(0xff00), sure(4), sure(8)]), 0xf0);
    assert_eq!(undecided(&op("bfe.s32"), &[unsure(0x0800), sure(4), sure(8)]) & 0xffff_ffff, 0xffff_ff80);
    assert_eq!(undecided(&op("bfe.s32"), &[unsure(0x8000_0000), sure(28), sure(8)]) & 0xffff_ffff, 0xffff_fff8);
    assert_eq!(undecided(&op("prmt.b32"), &[unsure(0xff00), sure(0), sure(0x4910)]), 0x00ff_ff00);
    assert_eq!(undecided(&op("cvt.u32.u64"), &[unsure(0xffff_ffff_0000_0000)]), 0);
    assert_eq!(undecided(&op("cvt.s64.s8"), &[unsure(0x80)]), 0xffff_ffff_ffff_ff80);
}

#[test]
fn arithmetic_needs_every_bit() {
    assert_eq!(undecided(&op("add.s32"), &[unsure(1), sure(0)]), u64::MAX);
    assert_eq!(undecided(&op("mul.f32"), &[unsure(1), sure(0)]), u64::MAX);
}
