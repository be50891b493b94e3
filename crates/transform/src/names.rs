//! Unique names for items that passes add to a function.
//!
//! A name of a function must differ from all others of the function and from those of the module, which it
//! would hide (manual: "Identifiers").

use broadloom_ptx::{Function, Module};
use std::collections::{HashMap, HashSet};

/// Set of taken names.
pub(crate) struct Names<'m> {
    module: &'m Module,
    /// Names of the function.
    taken: HashSet<String>,
    /// Names of the module, by the prefix they begin with. A module may have very many names, and passes use
    /// few prefixes.
    of_module: HashMap<String, HashSet<&'m str>>,
    /// Last number tried for each taken name.
    numbers: HashMap<String, u32>,
}

impl<'m> Names<'m> {
    /// Collects the names of the module, and of everything in the function except its registers.
    pub(crate) fn besides_registers(module: &'m Module, function: &Function) -> Names<'m> {
        let locals = function.variables.values().map(|variable| &variable.name);
        let labels = function.blocks.values().filter_map(|block| block.label.as_ref());
        let protos = function.protos.values().map(|proto| &proto.name);
        let lists = function.targets.values().map(|list| &list.name);
        let all = locals.chain(labels).chain(protos).chain(lists);
        Names { module, taken: all.cloned().collect(), of_module: HashMap::new(), numbers: HashMap::new() }
    }

    /// Collects all names.
    pub(crate) fn all(module: &'m Module, function: &Function) -> Names<'m> {
        let mut names = Names::besides_registers(module, function);
        names.taken.extend(function.regs.values().map(|reg| reg.name.clone()));
        names
    }

    /// Takes a name that begins with `base`, if it is free.
    fn take_free(&mut self, base: &str, name: &str) -> bool {
        !self.taken.contains(name) && !self.is_in_module(base, name) && self.taken.insert(name.to_owned())
    }

    fn is_in_module(&mut self, base: &str, name: &str) -> bool {
        if let Some(names) = self.of_module.get(base) {
            return names.contains(name);
        }
        let variables = self.module.variables.values().map(|variable| variable.name.as_str());
        let functions = self.module.functions.values().map(|function| function.name.as_str());
        let names: HashSet<&str> = variables.chain(functions).filter(|other| other.starts_with(base)).collect();
        let is_there = names.contains(name);
        self.of_module.insert(base.to_owned(), names);
        is_there
    }

    /// Takes this name, or a similar one that is free.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        if self.take_free(wanted, wanted) {
            return wanted.to_owned();
        }
        let mut number = self.numbers.get(wanted).copied().unwrap_or(0);
        let base = format!("{wanted}_");
        number += 1;
        let name = self.next(&base, &mut number);
        self.numbers.insert(wanted.to_owned(), number - 1);
        name
    }

    /// Returns the first free name of a series: `base0`, `base1`, … `next` holds the next number to try.
    pub(crate) fn next(&mut self, base: &str, next: &mut u32) -> String {
        loop {
            let name = format!("{base}{next}");
            *next += 1;
            if self.take_free(base, &name) {
                return name;
            }
        }
    }
}
