//! Tables that the threads of a warp read at different places.
//!
//! Constant memory gives all threads of a warp one word at a time: it suits tables whose index is equal in all of them.
//! Tables with another index lie in global memory, where neighbouring threads read neighbouring words together.

use crate::body::{Body, Statement};
use crate::op::{Op, Special};

/// Returns for each table whether an index may differ between the threads of a warp.
pub(super) fn varying_tables(body: &Body) -> Vec<bool> {
    // Counters, with the first value and the step; bounds that vary only end the loop.
    let mut counters = vec![None; body.nodes.len()];
    for statement in body.blocks().flat_map(|(_, block)| &block.statements) {
        if let Statement::For { counter, start, step, .. } = statement {
            counters[counter.index()] = Some((*start, *step));
        }
    }
    let mut varies = vec![false; body.nodes.len()];
    let mut found = vec![false; body.tables.len()];
    for (id, node) in body.nodes() {
        let own = match &node.op {
            Op::Special(Special::BlockSize(_) | Special::Block(_) | Special::GridSize(_) | Special::DynamicSharedBytes) => false,
            Op::Special(_) => true,
            Op::Counter(_) => counters[id.index()].is_none_or(|(start, step)| varies[start.index()] || varies[step.index()]),
            op if op.is_pure() => {
                let mut any = false;
                op.each_operand(|operand| any |= varies[operand.index()]);
                any
            }
            _ => true,
        };
        varies[id.index()] = own;
        if let Op::Table(table, index) = &node.op {
            found[table.index()] |= varies[index.index()];
        }
    }
    found
}
