//! Selection of the calls to inline.
//!
//! A function that stays small gets everything inlined, at any depth. This could exceed
//! [`MOST_INSTRUCTIONS`], as in a tree of calls that doubles at each level. Calls are then selected from the
//! leaves up: calls of functions that are [`SMALL`] after their own inlining, and calls of functions that are
//! called in one place only. The copied code of one kernel is at most [`MOST_COPIED`] instructions, so code
//! grows by at most that amount over its source.

use broadloom_analysis::calls::{CallGraph, Calls};
use broadloom_ptx::{Address, Base, Callee, Func, Function, InstData, Mnemonic, Module, Operand, Space, Variable};
use std::collections::{HashMap, HashSet};

/// Maximum instructions of a function after inlining, if it had fewer before.
pub const MOST_INSTRUCTIONS: usize = 20_000;

/// Maximum instructions of a function that is inlined in several places, if not everything can be inlined.
pub const SMALL: usize = 200;

/// Maximum instructions of a function that is inlined even if no more code may be copied: about as many as a
/// call of it.
const TINY: usize = 8;

/// Maximum total instructions that are copied for a kernel and the functions that it calls.
pub const MOST_COPIED: usize = 100_000;

/// Maximum depth of calls that are inlined into each other.
pub const DEEPEST: u32 = 64;

/// Selection of calls to inline, for a kernel and the functions that it calls.
#[derive(Debug)]
pub struct Choice {
    graph: CallGraph,
    /// Functions that can be inlined.
    fit: HashSet<Func>,
    /// Sizes of functions with everything inlined.
    whole: HashMap<Func, Extent>,
    /// Number of calls of each function.
    calls: HashMap<Func, usize>,
    /// Selected calls if not all can be inlined; computed when needed.
    some: Option<SelectedCalls>,
    /// Number of instructions that may still be copied.
    left: usize,
}

/// Selected calls if not all can be inlined.
#[derive(Debug, Default)]
struct SelectedCalls {
    /// Pairs of caller and callee.
    calls: HashSet<(Func, Func)>,
    /// Sizes of functions with the selected calls inlined.
    extents: HashMap<Func, Extent>,
}

/// Calls that are inlined into one function.
#[derive(Debug)]
pub(super) enum InlinedCalls {
    /// All of them.
    All,
    /// Calls of the function itself to these functions, and of calls that come with them those that the
    /// leaves-up selection contains.
    Some(HashSet<Func>),
}

/// Size of a function after inlining.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    instructions: usize,
    depth: u32,
}

impl Choice {
    /// Creates a selection for functions of a module and all that they call.
    pub fn new(module: &Module, roots: impl IntoIterator<Item = Func>) -> Choice {
        let graph = CallGraph::new(module, roots);
        let can_move = |func: &Func| {
            let function = &module.functions[*func];
            function.has_body && !graph.is_recursive(*func) && is_movable(function)
        };
        let fit: HashSet<Func> = graph.callees_first().iter().copied().filter(can_move).collect();
        let mut calls: HashMap<Func, usize> = HashMap::new();
        for func in graph.callees_first() {
            graph.of(*func).callees.iter().for_each(|(callee, count)| *calls.entry(*callee).or_default() += count);
        }
        let mut choice = Choice { graph, fit, whole: HashMap::new(), calls, some: None, left: MOST_COPIED };
        for func in choice.graph.callees_first() {
            let extent = choice.whole(choice.graph.of(*func));
            choice.whole.insert(*func, extent);
        }
        choice
    }

    /// Creates a selection for a function that need not be part of the module, and all that it calls.
    pub fn alone(module: &Module, function: &Function) -> Choice {
        let callee = |data: &InstData| match data.callee()? {
            Callee::Direct(func) => Some(func),
            Callee::Indirect { .. } => None,
        };
        let callees = function.instructions().filter_map(|(_, data)| callee(data));
        let mut choice = Choice::new(module, callees);
        for (callee, count) in Calls::of(function, module, &choice.graph).callees {
            *choice.calls.entry(callee).or_default() += count;
        }
        choice
    }

    pub(super) fn graph(&self) -> &CallGraph {
        &self.graph
    }

    pub(super) fn is_fit(&self, func: Func) -> bool {
        self.fit.contains(&func)
    }

    /// Returns the size of a function with everything inlined that can be.
    fn whole(&self, calls: &Calls) -> Extent {
        let mut extent = Extent { instructions: calls.instructions, depth: 0 };
        for (callee, count) in calls.callees.iter().filter(|(callee, _)| self.fit.contains(callee)) {
            let Extent { instructions, depth } = self.whole.get(callee).copied().unwrap_or_default();
            extent.instructions = extent.instructions.saturating_add(instructions.saturating_mul(*count));
            extent.depth = extent.depth.max(depth.saturating_add(1));
        }
        extent
    }

    /// Selects calls of a function after this was done for its callees.
    fn choose(&self, some: &SelectedCalls, calls: &Calls, left: &mut usize) -> (HashSet<Func>, Extent) {
        let mut extent = Extent { instructions: calls.instructions, depth: 0 };
        let mut chosen = HashSet::new();
        for (callee, count) in calls.callees.iter().filter(|(callee, _)| self.fit.contains(callee)) {
            let Extent { instructions, depth } = some.extents.get(callee).copied().unwrap_or_default();
            let copied = instructions.saturating_mul(*count);
            let is_only_call = self.calls.get(callee) == Some(&1);
            let is_small = instructions <= TINY || (instructions <= SMALL && copied <= *left);
            let fits = extent.instructions.saturating_add(copied) <= MOST_INSTRUCTIONS && depth < DEEPEST;
            if fits && (is_only_call || is_small) {
                if !is_only_call {
                    *left = left.saturating_sub(copied);
                }
                extent = Extent { instructions: extent.instructions + copied, depth: extent.depth.max(depth + 1) };
                chosen.insert(*callee);
            }
        }
        (chosen, extent)
    }

    /// Selects calls of all functions, from the leaves up.
    fn choose_some(&self, left: &mut usize) -> SelectedCalls {
        let mut some = SelectedCalls::default();
        for func in self.graph.callees_first() {
            let (chosen, extent) = self.choose(&some, self.graph.of(*func), left);
            some.calls.extend(chosen.into_iter().map(|callee| (*func, callee)));
            some.extents.insert(*func, extent);
        }
        some
    }

    /// Selects calls of the function that is processed next.
    pub(super) fn begin(&mut self, module: &Module, function: &Function) -> InlinedCalls {
        let calls = Calls::of(function, module, &self.graph);
        let Extent { instructions, depth } = self.whole(&calls);
        let copied = instructions - calls.instructions;
        if instructions <= MOST_INSTRUCTIONS && depth <= DEEPEST && copied <= self.left {
            self.left -= copied;
            return InlinedCalls::All;
        }
        let mut left = self.left;
        let some = self.some.take().unwrap_or_else(|| self.choose_some(&mut left));
        let (chosen, _) = self.choose(&some, &calls, &mut left);
        (self.some, self.left) = (Some(some), left);
        InlinedCalls::Some(chosen)
    }

    /// Returns whether a call is inlined. `owner` is the function it comes from, or `None` for the one being
    /// processed.
    pub(super) fn is_chosen(&self, chosen: &InlinedCalls, owner: Option<Func>, callee: Func) -> bool {
        match (chosen, owner) {
            (InlinedCalls::All, _) => true,
            (InlinedCalls::Some(own), None) => own.contains(&callee),
            (InlinedCalls::Some(_), Some(owner)) => self.some.as_ref().is_some_and(|some| some.calls.contains(&(owner, callee))),
        }
    }
}

/// Returns whether a function can be inlined.
fn is_movable(function: &Function) -> bool {
    let private = |variable: &Variable| match variable.space {
        Space::Local | Space::Param | Space::Reg => true,
        Space::Global | Space::Const | Space::Shared | Space::Tex | Space::Generic => false,
    };
    let plain = |data: &InstData| {
        let through_register = data.space() == Space::Param
            && data.operands.iter().any(|operand| matches!(operand, Operand::Memory(Address { base: Base::Reg(_), .. })));
        matches!(data.mnemonic, Mnemonic::Known { .. }) && !through_register
    };
    function.variables.values().all(private) && function.instructions().all(|(_, data)| plain(data))
}
