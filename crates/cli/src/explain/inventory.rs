//! What a function uses: registers, instructions, symbols.

use broadloom::ptx::{Address, Base, Call, Callee, Class, Func, Function, InstData, Operand, Symbol, Type};
use std::collections::{BTreeMap, BTreeSet};

/// What one function uses, without what it calls.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Registers by type.
    pub registers: BTreeMap<Type, usize>,
    /// Instructions by class and name, the name with all its modifiers.
    pub classes: BTreeMap<Class, BTreeMap<String, usize>>,
    /// Instructions that the table does not have, by name.
    pub opaque: BTreeMap<String, usize>,
    /// Functions that it names, called or not.
    pub functions: BTreeSet<Func>,
    /// Whether it calls through a register.
    pub calls_indirectly: bool,
}

impl Inventory {
    /// Counts.
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

    /// How many instructions there are.
    pub fn instructions(&self) -> usize {
        self.classes.values().flat_map(BTreeMap::values).sum::<usize>() + self.opaque.values().sum::<usize>()
    }

    fn count(&mut self, inst: &InstData) {
        let names = match inst.class() {
            Some(class) => self.classes.entry(class).or_default(),
            None => &mut self.opaque,
        };
        *names.entry(inst.mnemonic_text()).or_default() += 1;
        inst.operands.iter().for_each(|operand| self.operand(operand));
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Symbol(symbol, _) => self.symbol(*symbol),
            Operand::Memory(address) => self.address(address),
            Operand::Texture(texture) => {
                self.address(&texture.base);
                texture.rest.iter().for_each(|operand| self.operand(operand));
            }
            Operand::Vector(list) => list.iter().for_each(|operand| self.operand(operand)),
            Operand::Pair(pair) => pair.iter().for_each(|operand| self.operand(operand)),
            Operand::Call(call) => self.call(call),
            Operand::Reg(_) | Operand::Not(_) | Operand::Part { .. } | Operand::Imm(_) | Operand::Special(_) => {}
            Operand::Label(_) | Operand::Targets(_) | Operand::Sink | Operand::Absent => {}
        }
    }

    fn call(&mut self, call: &Call) {
        match call.callee {
            Callee::Direct(func) => drop(self.functions.insert(func)),
            Callee::Indirect { .. } => self.calls_indirectly = true,
        }
        call.results.iter().chain(&call.arguments).for_each(|operand| self.operand(operand));
    }

    fn address(&mut self, address: &Address) {
        if let Base::Symbol(symbol) = address.base {
            self.symbol(symbol);
        }
    }

    fn symbol(&mut self, symbol: Symbol) {
        match symbol {
            Symbol::Func(func) => drop(self.functions.insert(func)),
            Symbol::Var(_) | Symbol::Local(_) => {}
        }
    }
}
