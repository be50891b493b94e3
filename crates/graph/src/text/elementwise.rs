//! Elementwise operations in text: their spelling, and the operation for a name.

use crate::expr::elementwise::Elementwise;
use crate::expr::spelling::{Setting, Spelling};
use broadloom_scalar::{BinaryOp, CompareOp, Element, MathFunction, Precision, UnaryOp};

/// Elementwise operation in its textual form.
pub(super) enum ElementwiseForm {
    /// Infix operator between its two inputs.
    Between(&'static str),
    /// Name before its inputs.
    Before(Spelling),
}

/// Returns the infix operators, longer ones first.
pub(super) fn operators() -> Vec<&'static str> {
    let names = BinaryOp::ALL.iter().map(|op| op.name()).chain(CompareOp::ALL.iter().map(|op| op.name()));
    let mut operators: Vec<&str> = names.filter(|name| !name.starts_with(|c: char| c.is_ascii_alphabetic())).collect();
    operators.sort_by_key(|name| std::cmp::Reverse(name.len()));
    operators
}

/// Returns the operation of an infix operator.
pub(super) fn between(operator: &str) -> Option<Elementwise> {
    let binary = BinaryOp::ALL.iter().find(|op| op.name() == operator).map(|op| Elementwise::Binary(*op));
    binary.or_else(|| CompareOp::ALL.iter().find(|op| op.name() == operator).map(|op| Elementwise::Compare(*op)))
}

/// Returns the operation with a name. A lane of a vector and a call of a function need more than a name.
pub(super) fn named(name: &str) -> Option<Elementwise> {
    let precision = if name.ends_with("_fast") { Precision::Fast } else { Precision::Accurate };
    let plain = name.strip_suffix("_fast").unwrap_or(name);
    let unary = UnaryOp::ALL.iter().find(|op| op.name() == name).map(|op| Elementwise::Unary(*op));
    let math = || MathFunction::ALL.iter().find(|f| f.name() == plain).map(|f| Elementwise::Math(*f, precision));
    let convert = || Element::ALL.into_iter().find(|element| element.name() == name).map(Elementwise::Convert);
    let other = || match name {
        "select" => Some(Elementwise::Select),
        "fma" => Some(Elementwise::Fma),
        "vector" => Some(Elementwise::Vector),
        _ => None,
    };
    unary.or_else(|| between(name)).or_else(math).or_else(convert).or_else(other)
}

/// Returns the number of inputs of an operation, if it is fixed.
pub(super) fn inputs(op: &Elementwise) -> Option<usize> {
    match op {
        Elementwise::Unary(_) | Elementwise::Convert(_) | Elementwise::Lane(_) => Some(1),
        Elementwise::Binary(_) | Elementwise::Compare(_) => Some(2),
        Elementwise::Select | Elementwise::Fma => Some(3),
        Elementwise::Math(function, _) => Some(function.arguments()),
        Elementwise::Call(function, _) => Some(function.parameters().len()),
        Elementwise::Vector => None,
    }
}

/// Returns the text of an operation; the caller writes the call of a function.
pub(super) fn written(op: &Elementwise) -> Option<ElementwiseForm> {
    let before = |name: &str| Some(ElementwiseForm::Before(Spelling::new(name)));
    let either = |name: &'static str| match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => before(name),
        false => Some(ElementwiseForm::Between(name)),
    };
    match op {
        Elementwise::Unary(op) => before(op.name()),
        Elementwise::Binary(op) => either(op.name()),
        Elementwise::Compare(op) => either(op.name()),
        Elementwise::Select => before("select"),
        Elementwise::Fma => before("fma"),
        Elementwise::Convert(element) => before(element.name()),
        Elementwise::Math(function, Precision::Accurate) => before(function.name()),
        Elementwise::Math(function, Precision::Fast) => before(&format!("{function}_fast")),
        Elementwise::Vector => before("vector"),
        Elementwise::Lane(lane) => {
            Some(ElementwiseForm::Before(Spelling::new("lane").with("lane", Setting::Number(i64::from(*lane)))))
        }
        Elementwise::Call(..) => None,
    }
}
