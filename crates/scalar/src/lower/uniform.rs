//! Placement of tables in constant or global memory.
//!
//! Constant memory serves one word at a time to all threads of a warp. It suits tables whose index is uniform
//! in a warp. Tables with another index are in global memory, where reads of neighbouring words by
//! neighbouring threads are coalesced.

use crate::body::{Body, Statement};
use crate::op::{Op, Special};

/// Returns for each table: true if an index may differ between the threads of a warp.
pub(super) fn varying_tables(body: &Body) -> Vec<bool> {
    // Counters, with the first value and the step. Varying bounds only end the loop.
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
