//! Names that nothing else has, for what passes add to a function.
//!
//! A name of a function must differ from all others of the function and from those of the module, which it would hide
//! (manual: "Identifiers").

use broadloom_ptx::{Function, Module};
use std::collections::HashSet;

/// The names that are taken.
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Those of the module, and of everything in the function but its registers.
    pub(crate) fn besides_registers(module: &Module, function: &Function) -> Names {
        let variables = module.variables.values().map(|variable| &variable.name);
        let functions = module.functions.values().map(|function| &function.name);
        let locals = function.variables.values().map(|variable| &variable.name);
        let labels = function.blocks.values().filter_map(|block| block.label.as_ref());
        let protos = function.protos.values().map(|proto| &proto.name);
        let lists = function.targets.values().map(|list| &list.name);
        let all = variables.chain(functions).chain(locals).chain(labels).chain(protos).chain(lists);
        Names { taken: all.cloned().collect() }
    }

    /// All of them.
    pub(crate) fn all(module: &Module, function: &Function) -> Names {
        let mut names = Names::besides_registers(module, function);
        names.taken.extend(function.regs.values().map(|reg| reg.name.clone()));
        names
    }

    /// Takes this name, or one like it that is free.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 0;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }

    /// The first free name of a row: `base0`, `base1`, … `next` remembers how far the row was tried.
    pub(crate) fn next(&mut self, base: &str, next: &mut u32) -> String {
        loop {
            let name = format!("{base}{next}");
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}
