//! Number of elements of a line that are defined.
//!
//! A pack without a length ([`Node::pack_counted`]) leaves the memory behind its count as it is. An operation
//! on such elements gives elements that are arbitrary too, so the count holds for its result as well. That
//! ends at operations that may give every element a value: a choice, a minimum, a traced function, and all
//! that reads other positions.

use crate::expr::elementwise::Elementwise;
use crate::expr::error::Result;
use crate::expr::node::{Expression, Node, State};
use crate::expr::op::Op;
use crate::expr::operation::OperationResult;
use crate::expr::shape::Shape;
use broadloom_scalar::{BinaryOp, Type};
use std::collections::HashSet;

impl Node {
    /// Returns the number of leading elements that are defined, a `u32`, if the elements behind them are
    /// arbitrary. Returns `None` for other arrays, and for one that is computed already.
    pub fn defined_count(&self) -> Result<Option<Node>> {
        let (mut open, mut seen) = (vec![self.clone()], HashSet::new());
        let mut counts: Vec<Node> = vec![];
        while let Some(node) = open.pop() {
            if node.length().is_some() || !seen.insert(node.identity()) {
                continue;
            }
            let State::Pending(Expression { op, inputs }) = &*node.lock() else { continue };
            match op {
                Op::Pattern(applied) => {
                    let Some(count) = applied.operation().counted_by(applied.result()) else { continue };
                    let count = applied.with_result(count);
                    if !counts.iter().any(|known| known.is_result(&count, inputs)) {
                        let (op, inputs) = (Op::Pattern(count), inputs.clone());
                        counts.push(Node::pending(node.context(), Type::U32, Shape::from([]), op, inputs));
                    }
                }
                Op::Elementwise(op) if needs_all(op) => open.extend(inputs.iter().cloned()),
                Op::Elementwise(_)
                | Op::Fill(_)
                | Op::View(_)
                | Op::Reshape
                | Op::Position(_)
                | Op::Gather(..)
                | Op::Concatenate(_) => {}
            }
        }
        let mut counts = counts.into_iter();
        let Some(first) = counts.next() else { return Ok(None) };
        let least = |a: Node, b: Node| Node::elementwise(Elementwise::Binary(BinaryOp::Min), &[&a, &b]);
        counts.try_fold(first, least).map(Some)
    }

    fn is_result(&self, of: &OperationResult, inputs: &[Node]) -> bool {
        match &*self.lock() {
            State::Pending(Expression { op: Op::Pattern(own), inputs: own_inputs }) => {
                own == of && own_inputs.len() == inputs.len() && own_inputs.iter().zip(inputs).all(|(a, b)| a.is_same(b))
            }
            State::Pending(_) | State::Ready(_) | State::Symbolic(_) => false,
        }
    }
}

/// Returns whether a result is arbitrary if one of the operands is.
fn needs_all(op: &Elementwise) -> bool {
    match op {
        Elementwise::Unary(_)
        | Elementwise::Compare(_)
        | Elementwise::Fma
        | Elementwise::Convert(_)
        | Elementwise::Math(..)
        | Elementwise::Vector
        | Elementwise::Lane(_) => true,
        Elementwise::Binary(op) => !matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Min | BinaryOp::Max),
        Elementwise::Select | Elementwise::Call(..) => false,
    }
}
