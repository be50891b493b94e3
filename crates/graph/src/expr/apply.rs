//! Application of operations: checks, lengths that only the device knows, and the nodes of the results.

use crate::expr::check::{possible, same_context};
use crate::expr::error::{Error, Result};
use crate::expr::length::common;
use crate::expr::node::{Inputs, Node};
use crate::expr::op::Op;
use crate::expr::operation::{Extent, Operation, OperationResult};
use crate::expr::shape::Shape;
use broadloom_scalar::Type;
use smallvec::SmallVec;
use std::sync::Arc;

/// Typing rule of an operation.
pub trait Typing: Operation {
    /// Checks the inputs and returns the types and shapes of the results.
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>>;
}

fn ranks(inputs: &[Node]) -> SmallVec<[usize; 4]> {
    inputs.iter().map(|input| input.bound().rank()).collect()
}

/// Returns inputs that an operation accepts. Lengths that only the device knows are kept if the operation
/// accepts them and they are known to be equal; otherwise the host waits for all of them.
pub(crate) fn with_lengths(operation: &impl Operation, inputs: &[&Node]) -> Result<Inputs> {
    let mut fitting: Inputs = inputs.iter().map(|input| (*input).clone()).collect();
    if inputs.iter().all(|input| input.length().is_none()) {
        return Ok(fitting);
    }
    let types: SmallVec<[Type; 4]> = inputs.iter().map(|input| input.ty()).collect();
    let absent = operation.absent(&types);
    for (number, input) in inputs.iter().enumerate() {
        if absent.get(number).is_none_or(Option::is_none) {
            fitting[number] = input.hosted()?;
        }
    }
    let alike = operation.alike(inputs.len());
    let agree = {
        let together: SmallVec<[&Node; 4]> = alike.iter().map(|input| &fitting[*input]).collect();
        common(&together).is_ok_and(|length| length.is_none() || together.iter().all(|node| node.length().is_some()))
    };
    if !agree {
        for input in &mut fitting {
            *input = input.hosted()?;
        }
    }
    Ok(fitting)
}

impl Node {
    /// Applies an operation. Returns a node for each of its results.
    pub fn apply(operation: impl Typing, inputs: &[&Node]) -> Result<Vec<Node>> {
        let context = same_context(&operation.name(), inputs)?;
        let inputs = with_lengths(&operation, inputs)?;
        let results = operation.results(&inputs.iter().collect::<SmallVec<[&Node; 4]>>())?;
        if results.len() > usize::from(u8::MAX) {
            return Err(Error::Plan { what: operation.name(), reason: "an operation with too many results".into() });
        }
        let operation: Arc<dyn Operation> = Arc::new(operation);
        let mut nodes = Vec::with_capacity(results.len());
        let has_lengths = inputs.iter().any(|input| input.length().is_some());
        for (result, (ty, shape)) in (0..).zip(results) {
            possible(&operation.name(), &shape)?;
            let length = match has_lengths {
                true => operation.extents(result, &ranks(&inputs), shape.rank()).first().and_then(|extent| match extent {
                    Extent::Of(input, 0) => inputs.get(*input).and_then(Node::length).cloned(),
                    Extent::Of(..) | Extent::New(_) => None,
                }),
                false => None,
            };
            let op = Op::Pattern(OperationResult::new(&operation, result));
            nodes.push(Node::pending(context, ty, shape, op, inputs.clone()).with_length(length));
        }
        Ok(nodes)
    }

    /// Applies an operation with one result.
    pub fn apply_one(operation: impl Typing, inputs: &[&Node]) -> Result<Node> {
        let name = operation.name();
        let none = || Error::Plan { what: name, reason: "an operation without results".into() };
        Node::apply(operation, inputs)?.pop().ok_or_else(none)
    }
}
