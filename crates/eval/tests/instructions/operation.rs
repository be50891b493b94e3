//! Operations of instructions: inputs, parts, immediates.

use broadloom_eval::Outcome;
use broadloom_eval::{Operation, immediate, inputs};
use broadloom_ptx::Reg;
use broadloom_ptx::{Imm, InstData, Operand, Selector, Type};

fn reg(number: u32) -> Operand {
    Operand::Reg(Reg::from_u32(number))
}

fn part(number: u32, negated: bool, selector: Option<Selector>) -> Operand {
    Operand::Part { reg: Reg::from_u32(number), negated, selector }
}

fn operation(mnemonic: &str, operands: impl IntoIterator<Item = Operand>) -> (InstData, Operation) {
    let inst = InstData::of(mnemonic, operands).unwrap_or_else(|| panic!("{mnemonic}"));
    let operation = Operation::of(&inst).unwrap();
    (inst, operation)
}

#[test]
fn inputs_are_what_is_read() {
    let (inst, _) = operation("mad.wide.s32", [reg(0), reg(1), Operand::from(7), reg(2)]);
    let found: Vec<(Operand, Type)> = inputs(&inst).map(|(operand, ty)| (operand.clone(), ty)).collect();
    assert_eq!(found, [(reg(1), Type::S32), (Operand::from(7), Type::S32), (reg(2), Type::S64)]);
}

#[test]
fn operands_left_out_count_as_none() {
    let minimum = |operands: &[Operand]| {
        let operation = operation("min.f32", operands.iter().cloned()).1;
        let inputs = [2.0, 3.0, 1.0].map(|value: f32| u64::from(value.to_bits()));
        operation.evaluate(&[inputs[0], inputs[1], inputs[2], 0, 0, 0], false).unwrap().low(32)
    };
    assert_eq!(minimum(&[reg(0), reg(1), reg(2)]), u64::from(2f32.to_bits()));
    assert_eq!(minimum(&[reg(0), reg(1), reg(2), reg(3)]), u64::from(1f32.to_bits()));
}

#[test]
fn parts_of_registers_belong_to_the_operation() {
    let operands =
        [part(0, false, Some(Selector::B3)), part(1, false, Some(Selector::B1)), part(2, false, Some(Selector::H1)), reg(3)];
    let (_, vadd) = operation("vadd.u32.u32.u32", operands);
    let outcome = vadd.evaluate(&[0x0000_1200, 0x0034_0000, 0xaabb_ccdd, 0, 0, 0], false);
    assert_eq!(outcome.unwrap().low(32), 0x46bb_ccdd);
}

#[test]
fn the_flag_is_kept_where_nothing_writes_it() {
    let sum = |name: &str, carry| operation(name, [reg(0), reg(1), reg(2)]).1.evaluate(&[5, 6, 0, 0, 0, 0], carry);
    assert_eq!(sum("addc.u32", true), Some(Outcome::Carry(12, true)));
    assert_eq!(sum("addc.cc.u32", true), Some(Outcome::Carry(12, false)));
}

#[test]
fn immediates_have_the_bits_of_registers() {
    assert_eq!(immediate(Imm::Int(-1), Type::U16), 0xffff);
    assert_eq!(immediate(Imm::Int(-2), Type::S32), 0xffff_fffe);
    assert_eq!(immediate(Imm::Int(3), Type::F32), u64::from(3f32.to_bits()));
    assert_eq!(immediate(Imm::F64(0.1f64.to_bits()), Type::F32), u64::from(0.1f32.to_bits()));
    assert_eq!(immediate(Imm::F32(1.5f32.to_bits()), Type::F64), 1.5f64.to_bits());
    assert_eq!(immediate(Imm::F32(1.5f32.to_bits()), Type::F16), 0x3e00);
    assert_eq!(immediate(Imm::Int(1), Type::Pred), 1);
    assert_eq!(immediate(Imm::Uint(u64::MAX), Type::B64), u64::MAX);
}
