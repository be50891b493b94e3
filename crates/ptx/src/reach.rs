//! Reachability: the functions and variables that a function names, and the shared memory that it needs.
//!
//! All names in reachable code and in the initialisers of reachable variables count. A function that is only
//! called through a pointer is therefore found where its address is taken.

use crate::ids::{Func, Var};
use crate::inst::{Callee, Symbol};
use crate::module::{Function, Module, Variable};
use crate::types::Space;
use std::collections::BTreeSet;

/// Functions and variables of the module that a function can reach by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Functions, including the start.
    pub functions: BTreeSet<Func>,
    /// Variables of the module.
    pub variables: BTreeSet<Var>,
}

impl Reach {
    /// Follows all names from a function.
    pub fn of(module: &Module, start: Func) -> Reach {
        let mut reach = Reach::default();
        let mut open = vec![Symbol::Func(start)];
        while let Some(symbol) = open.pop() {
            match symbol {
                Symbol::Func(func) if reach.functions.insert(func) => named(&module.functions[func], &mut open),
                Symbol::Var(var) if reach.variables.insert(var) => {
                    module.variables[var].init.iter().for_each(|init| init.each_symbol(&mut |symbol| open.push(symbol)));
                }
                Symbol::Func(_) | Symbol::Var(_) | Symbol::Local(_) => {}
            }
        }
        reach
    }
}

impl Module {
    /// Returns the bytes of static shared memory of a kernel's block: its own variables, those of reachable
    /// functions, and those of the module that any of them names.
    pub fn static_shared_bytes(&self, kernel: Func) -> u64 {
        let reach = Reach::of(self, kernel);
        let own = reach.functions.iter().flat_map(|func| self.functions[*func].variables.values());
        let shared = own.chain(reach.variables.iter().map(|var| &self.variables[*var]));
        let shared = shared.filter(|variable| variable.space == Space::Shared);
        shared.fold(0, |end: u64, variable: &Variable| {
            let start = end.checked_next_multiple_of(variable.alignment().max(1)).unwrap_or(u64::MAX);
            start.saturating_add(variable.bytes().unwrap_or(0))
        })
    }
}

/// Collects the names in a function's code.
fn named(function: &Function, found: &mut Vec<Symbol>) {
    for (_, inst) in function.instructions() {
        inst.each_symbol(|symbol| found.push(symbol));
        if let Some(Callee::Direct(func)) = inst.callee() {
            found.push(Symbol::Func(func));
        }
    }
}
