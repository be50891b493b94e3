//! Hoists variables that a function declares in global, constant or shared memory to the module.
//!
//! Such a variable has one instance for all calls of the function. Inlining would lose this property. The
//! pass works on a whole module in register form and leaves it in that form. Names stay unique: the name of
//! the function is added to that of the variable.

use broadloom_ptx::{Item, Module, Space, Symbol, Var};
use std::collections::HashMap;

/// Hoists the variables. They keep their order: first those of the module, then those of its functions.
pub fn run(module: &mut Module) {
    let mut moved = vec![];
    for function in module.functions.values_mut() {
        let statics: Vec<Var> =
            function.variables.iter().filter(|(_, variable)| is_static(variable.space)).map(|(var, _)| var).collect();
        if statics.is_empty() {
            continue;
        }
        let mut places: HashMap<Var, Var> = HashMap::new();
        for var in statics {
            let mut variable = function.variables[var].clone();
            variable.name = format!("{}${}", function.name, variable.name);
            let new = module.variables.push(variable);
            places.insert(var, new);
            moved.push(new);
        }
        for inst in function.insts.values_mut() {
            inst.change_symbols(|symbol| {
                if let Symbol::Local(var) = symbol
                    && let Some(new) = places.get(var)
                {
                    *symbol = Symbol::Var(*new);
                }
            });
        }
    }
    let items = moved.into_iter().map(Item::Variable);
    module.items.splice(0..0, items);
}

fn is_static(space: Space) -> bool {
    match space {
        Space::Global | Space::Const | Space::Shared | Space::Tex => true,
        Space::Local | Space::Param | Space::Reg | Space::Generic => false,
    }
}
