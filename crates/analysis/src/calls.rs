//! Calls among the functions of a module.
//!
//! A [`CallGraph`] holds the direct calls of functions with a body, with aliases resolved. Construction takes
//! linear time in the size of the code and does not recurse, for any length of call chains. Calls through
//! pointers are not included.

use crate::bit_set::BitSet;
use broadloom_ptx::{Callee, Func, Function, Item, Module};
use std::collections::HashMap;

/// Calls among functions.
#[derive(Clone, Debug, Default)]
pub struct CallGraph {
    aliases: HashMap<Func, Func>,
    calls: HashMap<Func, Calls>,
    /// Functions, callees before callers, except for recursive ones.
    order: Vec<Func>,
    recursive: BitSet<Func>,
}

/// Calls of one function.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Number of instructions.
    pub instructions: usize,
    /// Called functions with a body, each with the number of calls.
    pub callees: Vec<(Func, usize)>,
}

impl Calls {
    /// Collects the calls of a function, which need not be part of the module.
    pub fn of(function: &Function, module: &Module, graph: &CallGraph) -> Calls {
        let mut calls = Calls::default();
        let mut places: HashMap<Func, usize> = HashMap::new();
        for (_, data) in function.instructions() {
            calls.instructions += 1;
            let Some(Callee::Direct(callee)) = data.callee() else { continue };
            let callee = graph.resolve(callee);
            if module.functions[callee].has_body {
                let place = *places.entry(callee).or_insert_with(|| {
                    calls.callees.push((callee, 0));
                    calls.callees.len() - 1
                });
                calls.callees[place].1 += 1;
            }
        }
        calls
    }
}

impl CallGraph {
    /// Builds the graph of some functions of a module, and of all functions reachable by direct calls.
    pub fn new(module: &Module, roots: impl IntoIterator<Item = Func>) -> CallGraph {
        let mut graph = CallGraph { aliases: aliases(module), ..CallGraph::default() };
        let roots: Vec<Func> = roots.into_iter().map(|root| graph.resolve(root)).collect();
        let mut work = roots.clone();
        while let Some(func) = work.pop() {
            if graph.calls.contains_key(&func) {
                continue;
            }
            let calls = Calls::of(&module.functions[func], module, &graph);
            work.extend(calls.callees.iter().map(|(callee, _)| *callee));
            graph.calls.insert(func, calls);
        }
        let components = components(&roots, |func| graph.of(func).callees.iter().map(|(callee, _)| *callee).collect());
        for component in components {
            let calls_itself = |func: &Func| graph.of(*func).callees.iter().any(|(callee, _)| callee == func);
            if component.len() > 1 || component.iter().any(calls_itself) {
                for func in &component {
                    graph.recursive.insert(*func);
                }
            }
            graph.order.extend(component);
        }
        graph
    }

    /// Returns the calls of a function; none for a function outside the graph.
    pub fn of(&self, func: Func) -> &Calls {
        static NONE: Calls = Calls { instructions: 0, callees: vec![] };
        self.calls.get(&func).unwrap_or(&NONE)
    }

    /// Resolves a name to its function, following aliases.
    pub fn resolve(&self, func: Func) -> Func {
        self.aliases.get(&func).copied().unwrap_or(func)
    }

    /// Returns whether a function may call itself, directly or indirectly.
    pub fn is_recursive(&self, func: Func) -> bool {
        self.recursive.contains(func)
    }

    /// Returns all functions of the graph. A function stands after its callees, unless they call each other.
    pub fn callees_first(&self) -> &[Func] {
        &self.order
    }
}

/// Returns the aliases of a module.
fn aliases(module: &Module) -> HashMap<Func, Func> {
    let alias = |item: &Item| match item {
        Item::Alias(alias) => Some((alias.alias, alias.aliasee)),
        Item::Variable(_) | Item::Declaration(_) | Item::Definition(_) | Item::Section(_) | Item::Pragma(_) | Item::File(_) => {
            None
        }
    };
    module.items.iter().filter_map(alias).collect()
}

/// Returns the strongly connected components that are reachable from some nodes, each after those it leads
/// to. Uses Tarjan's algorithm with an explicit stack.
pub fn components(roots: &[Func], successors: impl Fn(Func) -> Vec<Func>) -> Vec<Vec<Func>> {
    struct Visit {
        func: Func,
        successors: std::vec::IntoIter<Func>,
    }
    /// Number of a node, the lowest number it leads back to, and whether its component is open.
    #[derive(Clone, Copy)]
    struct State {
        number: usize,
        low: usize,
        is_open: bool,
    }
    let mut states: HashMap<Func, State> = HashMap::new();
    let (mut open, mut found) = (vec![], vec![]);
    let mut path: Vec<Visit> = vec![];
    for root in roots {
        let mut next = (!states.contains_key(root)).then_some(*root);
        loop {
            if let Some(func) = next.take() {
                let number = states.len();
                states.insert(func, State { number, low: number, is_open: true });
                open.push(func);
                path.push(Visit { func, successors: successors(func).into_iter() });
            }
            let Some(visit) = path.last_mut() else { break };
            let func = visit.func;
            if let Some(successor) = visit.successors.next() {
                match states.get(&successor).copied() {
                    None => next = Some(successor),
                    Some(state) if state.is_open => lower(&mut states, func, state.number),
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            let state = states[&func];
            if let Some(before) = path.last() {
                lower(&mut states, before.func, state.low);
            }
            if state.low == state.number {
                let start = open.iter().rposition(|member| *member == func).unwrap_or(0);
                let component = open.split_off(start);
                component.iter().for_each(|member| {
                    states.entry(*member).and_modify(|state| state.is_open = false);
                });
                found.push(component);
            }
        }
    }
    fn lower(states: &mut HashMap<Func, State>, func: Func, number: usize) {
        states.entry(func).and_modify(|state| state.low = state.low.min(number));
    }
    found
}
