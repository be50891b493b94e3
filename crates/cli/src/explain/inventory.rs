//! Inventory of a function: registers, instructions, symbols.

use broadloom::ptx::{Callee, Class, Func, Function, InstData, Mention, Symbol, Type};
use std::collections::{BTreeMap, BTreeSet};

/// Inventory of one function, without its callees.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Number of registers by type.
    pub registers: BTreeMap<Type, usize>,
    /// Number of instructions by class and full mnemonic.
    pub classes: BTreeMap<Class, BTreeMap<String, usize>>,
    /// Number of instructions that the table does not have, by name.
    pub opaque: BTreeMap<String, usize>,
    /// Functions that it names, whether called or not.
    pub functions: BTreeSet<Func>,
    /// True if it calls through a register.
    pub calls_indirectly: bool,
}

impl Inventory {
    /// Counts the contents of a function.
    pub fn of(function: &Function) -> Self {
        let mut inventory = Inventory::default();
        for register in function.regs.values() {
            *inventory.registers.entry(register.ty).or_default() += 1;
        }
        for (_, inst) in function.instructions() {
            inventory.count(inst);
        }
        inventory
    }

    /// Returns the number of instructions.
    pub fn instructions(&self) -> usize {
        self.classes.values().flat_map(BTreeMap::values).sum::<usize>() + self.opaque.values().sum::<usize>()
    }

    fn count(&mut self, inst: &InstData) {
        let names = match inst.class() {
            Some(class) => self.classes.entry(class).or_default(),
            None => &mut self.opaque,
        };
        *names.entry(inst.mnemonic_text()).or_default() += 1;
        inst.each_mention(|mention| match mention {
            Mention::Callee(Callee::Indirect { .. }) => self.calls_indirectly = true,
            Mention::Callee(Callee::Direct(func)) => drop(self.functions.insert(*func)),
            mention => {
                if let Some(Symbol::Func(func)) = mention.symbol() {
                    self.functions.insert(*func);
                }
            }
        });
    }
}
