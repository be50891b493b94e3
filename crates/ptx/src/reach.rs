//! Reach: the functions and variables that a function names, and the shared memory that it needs.
//!
//! A name counts wherever it stands in code that is reached, and in the first contents of variables that are. So a function that is only called
//! through a pointer is found where its address was taken.

use crate::inst::{Callee, Symbol};
use crate::module::{Func, Function, Module, Var, Variable};
use crate::types::Space;
use std::collections::BTreeSet;

/// The functions and the variables of the module that a function can reach by names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Functions, with the one that it starts from.
    pub functions: BTreeSet<Func>,
    /// Variables of the module.
    pub variables: BTreeSet<Var>,
}

impl Reach {
    /// Follows all names from a function on.
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
    /// Bytes of static shared memory that a block of a kernel has: its own variables, those of functions that it reaches and those of the
    /// module that any of them names.
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

/// The names in a function's code.
fn named(function: &Function, found: &mut Vec<Symbol>) {
    for (_, inst) in function.instructions() {
        inst.each_symbol(|symbol| found.push(symbol));
        if let Some(Callee::Direct(func)) = inst.callee() {
            found.push(Symbol::Func(func));
        }
    }
}
