//! Stores between loads: a thread that streams memory which it only reads stores each result as soon as its last operand is there.
//!
//! A load from memory that nobody writes while the kernel runs may change places with a store, and so may an exchange of registers between lanes. Results
//! are stored one by one then, and do not occupy registers until all of them are computed.

use crate::body::{Body, Statement};
use crate::id::BlockId;
use crate::memory::{Access, Base};
use crate::op::Op;
use crate::schedule::is_streamed;

/// The body with stores moved up between such loads; `None` where it has no such load.
pub(super) fn streamed(body: &Body) -> Option<Body> {
    if !body.nodes().any(|(_, node)| is_streamed(&node.op)) {
        return None;
    }
    let mut changed = body.clone();
    for (block, own) in body.blocks() {
        let moves = |statement: &Statement| is_load(body, statement) || is_store(statement);
        let mut start = 0;
        while start < own.statements.len() {
            let length = own.statements[start..].iter().take_while(|statement| moves(statement)).count();
            if length > 1 {
                let order = order(body, &own.statements[start..start + length]);
                let statements = &mut changed.blocks[BlockId::index(block)].statements;
                for (place, from) in order.into_iter().enumerate() {
                    statements[start + place] = own.statements[start + from].clone();
                }
            }
            start += length.max(1);
        }
    }
    Some(changed)
}

/// Returns whether a statement loads from read-only memory, or takes a value from another lane.
fn is_load(body: &Body, statement: &Statement) -> bool {
    matches!(statement, Statement::Define(id) if is_streamed(&body.node(*id).op) || matches!(body.node(*id).op, Op::Shuffle(..)))
}

fn is_store(statement: &Statement) -> bool {
    let is_plain = |access: &Access| access.is_plain();
    matches!(statement, Statement::Store { base: Base::Global(_), access, .. } if is_plain(access))
}

/// The order of loads and stores: each store behind the last load that it needs and behind the stores before it.
fn order(body: &Body, statements: &[Statement]) -> Vec<usize> {
    // For each node, the number of the statement that loads the last of its operands, and one.
    let mut loaded = vec![0usize; body.nodes.len()];
    for (number, statement) in statements.iter().enumerate() {
        if let Statement::Define(id) = statement {
            loaded[id.index()] = number + 1;
        }
    }
    for (id, node) in body.nodes() {
        if node.op.is_pure() {
            let mut last = 0;
            node.op.each_operand(|operand| last = last.max(loaded[operand.index()]));
            loaded[id.index()] = last;
        }
    }
    let mut after: Vec<Vec<usize>> = vec![vec![]; statements.len() + 1];
    let mut latest = 0;
    for (number, statement) in statements.iter().enumerate() {
        if let Statement::Store { .. } = statement {
            statement.each_operand(|id| latest = latest.max(loaded[id.index()]));
            after[latest].push(number);
        }
    }
    let mut order = std::mem::take(&mut after[0]);
    for (number, statement) in statements.iter().enumerate() {
        if let Statement::Define(_) = statement {
            order.push(number);
        }
        order.append(&mut after[number + 1]);
    }
    order
}
