//! Hoists variables that a function declares in global, constant or shared memory to the module.
//!
//! There is one instance of each, for all calls of the function; after inlining that could not be told any
//! more. The pass works on a whole module in register form and leaves it in that form. Names stay unique: the
//! name of the function is added to that of the variable.

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

#[cfg(test)]
mod tests {
    use broadloom_diag::Sources;
    use broadloom_ptx::{parse, print, verify};

    #[test]
    fn variables_of_functions_become_those_of_the_module() {
        let mut sources = Sources::new();
        let id = sources.add(
            "k.ptx",
            ".version 8.0 .target sm_80 .address_size 64
             .func f() { .shared .u32 x; .reg .u32 a; ld.shared.u32 a, [x]; ret; }
             .entry k() { .shared .u32 x[4]; .local .u32 y; .reg .u32 a; mov.u32 a, x; st.shared.u32 [x+4], a; st.local.u32 [y], a; ret; }",
        );
        let mut module = parse(&sources, id).unwrap();
        super::run(&mut module);
        let module = verify(module).unwrap();
        let text = print(&module);
        assert!(text.contains(".shared .u32 f$x;"), "{text}");
        assert!(text.contains("st.shared.u32 [k$x+4], a;"), "{text}");
        assert!(text.contains("st.local.u32 [y], a;"), "{text}");
        assert_eq!(module.functions.values().map(|function| function.variables.len()).collect::<Vec<_>>(), [1, 2]);
    }
}
