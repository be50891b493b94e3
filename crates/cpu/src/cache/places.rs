//! Spans of the instructions of a kernel, which entries name by number.

use broadloom_diag::Span;
use broadloom_ptx::{Func, Module};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Spans of the instructions that a kernel reaches, by number.
#[derive(Debug, Default)]
pub struct Places(pub Vec<Span>);

impl Places {
    pub(super) fn of(module: &Module, reachable: &[Func]) -> Places {
        let instructions = reachable.iter().flat_map(|func| module.functions[*func].instructions());
        Places(instructions.map(|(_, inst)| inst.span).collect())
    }

    /// Returns the number of the first instruction at each span.
    pub(super) fn numbers(&self) -> HashMap<Span, u64> {
        self.0.iter().enumerate().rev().map(|(number, span)| (*span, number as u64)).collect()
    }

    /// Returns a hash of the spans.
    pub(super) fn variant(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }
}
