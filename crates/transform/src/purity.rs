//! Permitted treatment of an instruction, beyond its row in the table.
//!
//! The table calls an instruction pure if it only computes its results. Three cases need more care: the carry
//! flag, which is not an operand; special registers that change; and loads, whose result may be unused.
//! `mapa` faults if the cluster has no block of the rank, so it runs only in the lanes that need it.

use broadloom_ptx::{InstData, Opcode, Operand};

/// Returns whether an instruction can run where its results are not needed: it only computes them, for any
/// operand values.
pub fn is_speculable(data: &InstData) -> bool {
    data.effects().is_pure() && !data.uses_carry() && data.opcode() != Some(Opcode::Mapa)
}

/// Returns whether equal operands always give equal results, so that the instruction may be moved, repeated
/// or shared.
pub fn is_pure(data: &InstData) -> bool {
    is_speculable(data) && !data.any_operand(varies)
}

/// Returns whether an instruction can be removed if its results are not read.
pub fn is_removable(data: &InstData) -> bool {
    is_speculable(data) || is_plain_load(data)
}

/// Returns whether an instruction is a load without memory ordering, which is not used to wait for other
/// threads.
pub fn is_plain_load(data: &InstData) -> bool {
    data.is_load() && !data.is_ordered()
}

/// Returns whether an instruction is a store without memory ordering, which other threads do not wait for.
pub fn is_plain_store(data: &InstData) -> bool {
    data.is_store() && !data.is_ordered()
}

/// Returns whether an operand is a special register that may change.
fn varies(operand: &Operand) -> bool {
    matches!(operand, Operand::Special(special) if special.row().varies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use broadloom_ptx::{Reg, Special};

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
}
