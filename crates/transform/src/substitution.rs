//! Registers that equal another value.

use broadloom_ptx::{Function, Reg};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// Replacement register of each register that has one.
#[derive(Default)]
pub(crate) struct Substitution {
    instead: SecondaryMap<Reg, PackedOption<Reg>>,
    any: bool,
}

impl Substitution {
    /// Replaces reads of `reg` by `instead`, which must hold the same value wherever `reg` is read.
    pub(crate) fn replace(&mut self, reg: Reg, instead: Reg) {
        let instead = self.resolve(instead);
        if instead != reg {
            self.instead[reg] = instead.into();
            self.any = true;
        }
    }

    /// Returns whether nothing is replaced.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Returns whether a register is replaced.
    pub(crate) fn replaces(&self, reg: Reg) -> bool {
        self.instead[reg].is_some()
    }

    /// Returns the register to read. The chain of replacements is shortened for the next time.
    pub(crate) fn resolve(&mut self, reg: Reg) -> Reg {
        let mut end = reg;
        while let Some(next) = self.instead[end].expand() {
            end = next;
        }
        let mut at = reg;
        while at != end {
            let Some(next) = self.instead[at].expand() else { break };
            self.instead[at] = end.into();
            at = next;
        }
        end
    }

    /// Applies the replacements to all reads of a function in SSA form.
    pub(crate) fn apply(&mut self, function: &mut Function) {
        if self.is_empty() {
            return;
        }
        for block in function.layout.clone() {
            let Function { blocks, insts, .. } = function;
            for inst in &blocks[block].insts {
                insts[*inst].change_reads(|reg| *reg = self.resolve(*reg));
            }
            for edge in &mut blocks[block].edges {
                edge.args.iter_mut().for_each(|reg| *reg = self.resolve(*reg));
            }
        }
    }
}
