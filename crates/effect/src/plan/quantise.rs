//! Results as integers, converted by the device: fewer bytes come back to the host.

use crate::Result;
use crate::image::SampleType;
use broadloom_graph::{Elementwise, Node, Shape};
use broadloom_scalar::{BinaryOp, CompareOp, Element, Literal, UnaryOp};

/// Returns an array of `f32` as integers of 8 or 16 bits, as `Sample::from_f32` converts them. Other types stay `f32`.
pub(super) fn quantised(node: &Node, samples: Option<SampleType>) -> Result<Node> {
    // The product of 65535 and an `f32` is not exact in `f32`.
    let (most, computed, element) = match samples {
        Some(SampleType::U8) => (255.0, Element::F32, Element::U8),
        Some(SampleType::U16) => (65535.0, Element::F64, Element::U16),
        Some(SampleType::F16 | SampleType::F32 | SampleType::U32) | None => return Ok(node.clone()),
    };
    let number = |value: f64| {
        let literal = if computed == Element::F32 { Literal::from(value as f32) } else { Literal::from(value) };
        Node::fill(node.context(), Shape::from([]), &[literal])
    };
    let binary = |op: BinaryOp, a: &Node, b: &Node| Node::elementwise(Elementwise::Binary(op), &[a, b]);
    let wide = match computed {
        Element::F32 => node.clone(),
        _ => Node::elementwise(Elementwise::Convert(computed), &[node])?,
    };
    let scaled = binary(BinaryOp::Mul, &wide, &number(most)?)?;
    let value = binary(BinaryOp::Min, &binary(BinaryOp::Max, &scaled, &number(0.0)?)?, &number(most)?)?;
    let below = Node::elementwise(Elementwise::Unary(UnaryOp::Trunc), &[&value])?;
    let rest = binary(BinaryOp::Sub, &value, &below)?;
    let is_up = Node::elementwise(Elementwise::Compare(CompareOp::Ge), &[&rest, &number(0.5)?])?;
    let above = binary(BinaryOp::Add, &below, &number(1.0)?)?;
    let nearest = Node::elementwise(Elementwise::Select, &[&is_up, &above, &below])?;
    Ok(Node::elementwise(Elementwise::Convert(element), &[&nearest])?)
}
