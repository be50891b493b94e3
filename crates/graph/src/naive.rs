//! The naive evaluator: one loop over all elements for each node, on the host.
//!
//! It is the oracle of tests. It knows no plan, no kernel and no lowering. Sums of floats agree with those of
//! a device only within their error, since their order differs.

use crate::expr::arithmetic::element;
use crate::expr::error::{Error, Result};
pub use crate::expr::host_array::HostArray;
use crate::expr::node::{Node, State};
use crate::expr::op::{Op, zeros};
use crate::expr::shape::Shape;
use broadloom_scalar::{Literal, Type};
use broadloom_skeleton::Rule;
use std::collections::HashMap;
use std::sync::Arc;

/// Evaluates a node on the host, by the definitions of its operations.
pub fn evaluate(node: &Node) -> Result<HostArray> {
    let mut done: HashMap<usize, Arc<HostArray>> = HashMap::new();
    let mut stack = vec![node.clone()];
    while let Some(top) = stack.last().cloned() {
        if done.contains_key(&top.identity()) {
            stack.pop();
            continue;
        }
        if let Some(length) = top.length()
            && !done.contains_key(&length.count().identity())
        {
            stack.push(length.count().clone());
            continue;
        }
        let shape = match top.length() {
            None => top.bound().clone(),
            Some(length) => {
                let count = done[&length.count().identity()].lanes.first().and_then(|count| count.as_i128()).unwrap_or(0);
                let mut extents = top.bound().extents().to_vec();
                extents[0] = usize::try_from(count).unwrap_or(0);
                Shape::from(extents)
            }
        };
        let array = match top.state() {
            State::Ready(buffer) => {
                let bytes = shape.count() * top.ty().bytes() as usize;
                HostArray::from_bytes(top.ty(), shape, &buffer.read()?[..bytes])
            }
            State::Symbolic(_) => return Err(Error::symbolic("naive")),
            State::Pending(expression) => {
                let missing: Vec<Node> =
                    expression.inputs.iter().filter(|input| !done.contains_key(&input.identity())).cloned().collect();
                if !missing.is_empty() {
                    stack.extend(missing);
                    continue;
                }
                let inputs: Vec<Arc<HostArray>> = expression.inputs.iter().map(|input| done[&input.identity()].clone()).collect();
                let mut array = apply(&expression.op, top.ty(), shape.clone(), &inputs)?;
                if top.length().is_some() {
                    // A pattern may return an array with room for the bound.
                    array.lanes.truncate(shape.count() * top.ty().lanes());
                    array.shape = shape;
                }
                array
            }
        };
        done.insert(top.identity(), Arc::new(array));
        stack.pop();
    }
    Ok(done.remove(&node.identity()).map(Arc::unwrap_or_clone).unwrap_or(HostArray {
        ty: node.ty(),
        shape: node.bound().clone(),
        lanes: vec![],
    }))
}

/// Returns the positions of a shape, in order.
fn positions(shape: &Shape) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..shape.count()).map(|number| unravel(number, shape))
}

fn unravel(mut number: usize, shape: &Shape) -> Vec<usize> {
    let mut position = vec![0; shape.rank()];
    for axis in (0..shape.rank()).rev() {
        position[axis] = number % shape.extents()[axis];
        number /= shape.extents()[axis];
    }
    position
}

fn ravel(position: &[usize], shape: &Shape) -> usize {
    position.iter().zip(shape.extents()).fold(0, |number, (index, extent)| number * extent + index)
}

fn apply(op: &Op, ty: Type, shape: Shape, inputs: &[Arc<HostArray>]) -> Result<HostArray> {
    let mut lanes = Vec::with_capacity(shape.count() * ty.lanes());
    match op {
        Op::Fill(value) => (0..shape.count()).for_each(|_| lanes.extend(value.lanes().iter().copied())),
        Op::Elementwise(op) => {
            for number in 0..shape.count() {
                let values: Vec<&[Literal]> = inputs.iter().map(|input| input.at(number)).collect();
                lanes.extend(element(op, &values)?);
            }
        }
        Op::View(view) => {
            for position in positions(&shape) {
                match view.locate(&position, &inputs[0].shape) {
                    Some(place) => lanes.extend(inputs[0].at(ravel(&place, &inputs[0].shape))),
                    None => lanes.extend(view.fill.iter().flatten()),
                }
            }
        }
        Op::Reshape => lanes.clone_from(&inputs[0].lanes),
        Op::Position(axis) => {
            lanes.extend(positions(&shape).map(|position| Literal::from_i128(ty.element(), position[usize::from(*axis)] as i128)))
        }
        Op::Gather(rule, fill) => {
            let data = &inputs[0];
            for number in 0..shape.count() {
                if data.shape.is_empty() {
                    // If only the device knows the length, the array may be empty; the element is then
                    // arbitrary.
                    lanes.extend(fill.clone().unwrap_or_else(|| zeros(ty)));
                    continue;
                }
                let mut place = vec![];
                let mut outside = false;
                for (index, extent) in inputs[1..].iter().zip(data.shape.extents()) {
                    let (at, extent) = (index.at(number)[0].as_i128().unwrap_or(0), *extent as i128);
                    outside |= at < 0 || at >= extent;
                    place.push(match rule {
                        Rule::Wrap => at.rem_euclid(extent),
                        Rule::Mirror => {
                            let period = (2 * (extent - 1)).max(1);
                            let rest = at.rem_euclid(period);
                            rest.min(period - rest)
                        }
                        Rule::Clamp | Rule::Constant | Rule::Inside => at.clamp(0, extent - 1),
                    } as usize);
                }
                match fill {
                    Some(fill) if outside => lanes.extend(fill.iter().copied()),
                    _ => lanes.extend(data.at(ravel(&place, &data.shape))),
                }
            }
        }
        Op::Concatenate(axis) => {
            let axis = usize::from(*axis);
            for mut position in positions(&shape) {
                for part in inputs {
                    let extent = part.shape.extents()[axis];
                    if position[axis] < extent {
                        lanes.extend(part.at(ravel(&position, &part.shape)));
                        break;
                    }
                    position[axis] -= extent;
                }
            }
        }
        Op::Pattern(applied) => {
            let inputs: Vec<&HostArray> = inputs.iter().map(|input| &**input).collect();
            return applied.operation().naive(applied.result(), &inputs, ty, &shape);
        }
    }
    Ok(HostArray { ty, shape, lanes })
}
