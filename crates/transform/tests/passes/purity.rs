//! Instructions that may be removed or moved.

use broadloom_ptx::{InstData, Operand};
use broadloom_ptx::{Reg, Special};
use broadloom_transform::purity::{is_pure, is_removable};

fn inst(mnemonic: &str, operands: Vec<Operand>) -> InstData {
    InstData::of(mnemonic, operands).unwrap()
}

#[test]
fn clocks_differ_and_chains_hold_together() {
    let [a, b, c] = [0, 1, 2].map(|index| Operand::Reg(Reg::from_u32(index)));
    let special = |name: &str| Operand::Special(Special::ALL.iter().copied().find(|s| s.text() == name).unwrap());
    assert!(is_pure(&inst("mov.u32", vec![a.clone(), special("%tid.x")])));
    let clock = inst("mov.u64", vec![a.clone(), special("%clock64")]);
    assert!(!is_pure(&clock) && is_removable(&clock));
    assert!(!is_removable(&inst("add.cc.u32", vec![a.clone(), b.clone(), c.clone()])));
    assert!(!is_removable(&inst("mad.lo.cc.u32", vec![a.clone(), b.clone(), c.clone(), c])));
    let address = Operand::Memory(broadloom_ptx::Address { base: broadloom_ptx::Base::Reg(Reg::from_u32(1)), offset: 0 });
    assert!(is_removable(&inst("ld.global.u32", vec![a.clone(), address.clone()])));
    assert!(!is_pure(&inst("ld.global.u32", vec![a.clone(), address.clone()])));
    assert!(!is_removable(&inst("ld.volatile.global.u32", vec![a, address])));
}
