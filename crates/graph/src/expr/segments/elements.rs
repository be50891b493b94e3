//! Constants and elementwise work on lines.

use crate::expr::amount::Amount;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Node};
use crate::expr::shape::Shape;
use broadloom_scalar::{BinaryOp, Element, Function, Literal};

/// Returns an amount as an `i64` without axes.
pub(super) fn number(context: &Context, amount: &Amount) -> Result<Node> {
    match amount.is_known() {
        true => scalar(context, amount.get()),
        false => Ok(Node::counting(context, amount)),
    }
}

/// Returns a value without axes.
pub(super) fn scalar(context: &Context, value: impl Into<Literal>) -> Result<Node> {
    Node::fill(context, Shape::from([]), &[value.into()])
}

pub(super) fn binary(op: BinaryOp, a: &Node, b: &Node) -> Result<Node> {
    Node::elementwise(Elementwise::Binary(op), &[a, b])
}

pub(super) fn convert(node: &Node, element: Element) -> Result<Node> {
    if node.ty().element() == element {
        return Ok(node.clone());
    }
    Node::elementwise(Elementwise::Convert(element), &[node])
}

/// Returns the results of a function of elements.
pub(super) fn call<const N: usize>(function: &Function, inputs: &[&Node]) -> Result<[Node; N]> {
    let results = Node::call(function, inputs)?;
    let wrong = |_| Error::Plan { what: function.name().to_owned(), reason: "a function with other results".into() };
    <[Node; N]>::try_from(results).map_err(wrong)
}

/// Returns the second operand if the first is true, else the third; for vectors, all lanes.
pub(super) fn choose(condition: &Node, yes: &Node, no: &Node) -> Result<Node> {
    let lanes = yes.ty().lanes();
    if lanes == 1 {
        return Node::elementwise(Elementwise::Select, &[condition, yes, no]);
    }
    let all = Node::elementwise(Elementwise::Vector, &vec![condition; lanes])?;
    Node::elementwise(Elementwise::Select, &[&all, yes, no])
}

/// Refuses an array that is not a line of integers.
pub(super) fn integers(operation: &str, line: &Node) -> Result<()> {
    line.check_line(operation)?;
    line.check_integers(operation)
}
