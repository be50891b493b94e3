//! What passes may do with an instruction, beyond what its row in the table says.
//!
//! The table calls an instruction pure when it does nothing but compute its results. Some things stand beside that: the carry
//! flag, which is no operand; special registers that give another value each time; and loads, whose result nobody may ask for.
//! `mapa` ends the kernel where a cluster has no block of the rank, so it runs for those who ask alone.

use broadloom_ptx::{InstData, Opcode, Operand};

/// Whether it can run where its results are not needed: it does nothing but compute them, whatever its operands hold.
pub fn is_speculable(data: &InstData) -> bool {
    data.effects().is_pure() && !data.uses_carry() && data.opcode() != Some(Opcode::Mapa)
}

/// Whether the same operands always give the same results, so that it may be moved, repeated, or done once for several.
pub fn is_pure(data: &InstData) -> bool {
    is_speculable(data) && !data.any_operand(varies)
}

/// Whether it can go when its results are not read.
pub fn is_removable(data: &InstData) -> bool {
    is_speculable(data) || is_plain_load(data)
}

/// Whether it is a load that other threads do not wait for.
pub fn is_plain_load(data: &InstData) -> bool {
    data.is_load() && !data.is_ordered()
}

/// Whether it is a store that other threads do not wait for.
pub fn is_plain_store(data: &InstData) -> bool {
    data.is_store() && !data.is_ordered()
}

/// Whether an operand is a special register that may hold another value the next time.
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
