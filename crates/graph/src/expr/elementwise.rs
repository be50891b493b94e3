//! Operations on single elements.

use crate::expr::error::Result;
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, Function, MathFunction, Precision, UnaryOp, Value};
use broadloom_skeleton::Combine;
use std::fmt;

/// Operation on single elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// Operation on one value.
    Unary(UnaryOp),
    /// Operation on two values of one type.
    Binary(BinaryOp),
    /// Comparison; vectors compare lane by lane.
    Compare(CompareOp),
    /// The second operand if the first is true, else the third.
    Select,
    /// Fused multiply-add: the product of the first two plus the third, rounded once.
    Fma,
    /// Conversion to another element type.
    Convert(Element),
    /// An elementary function.
    Math(MathFunction, Precision),
    /// Vector with one lane for each input.
    Vector,
    /// One lane of a vector.
    Lane(u8),
    /// One result, by its number, of a function of the inputs. The function has no accessors.
    Call(Function, u8),
}

impl fmt::Display for Elementwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elementwise::Unary(op) => f.write_str(op.name()),
            Elementwise::Binary(op) => f.write_str(op.name()),
            Elementwise::Compare(op) => f.write_str(op.name()),
            Elementwise::Select => f.write_str("select"),
            Elementwise::Fma => f.write_str("fma"),
            Elementwise::Convert(element) => write!(f, "as {element}"),
            Elementwise::Math(function, Precision::Accurate) => write!(f, "{function}"),
            Elementwise::Math(function, Precision::Fast) => write!(f, "fast {function}"),
            Elementwise::Vector => f.write_str("vector"),
            Elementwise::Lane(lane) => write!(f, "lane {lane}"),
            Elementwise::Call(function, 0) => f.write_str(function.name()),
            Elementwise::Call(function, result) => write!(f, "{} ({result})", function.name()),
        }
    }
}

/// Refuses a function with more operations than a maximum.
pub(crate) fn check_size(function: &Function, most: u64) -> Result<()> {
    match function.operations() {
        count if count <= most => Ok(()),
        count => Err(broadloom_skeleton::Error::Operations { operation: function.name().to_owned(), count, most }.into()),
    }
}

/// Returns the operation that combines two elements.
pub(crate) fn combining(combine: &Combine) -> Elementwise {
    match (combine, combine.binary()) {
        (Combine::By(operator), _) => Elementwise::Call(operator.function().clone(), 0),
        (_, op) => Elementwise::Binary(op.unwrap_or(BinaryOp::Add)),
    }
}

/// Emits an operation on elements as scalar code.
pub(crate) fn emit(b: &Builder, op: &Elementwise, values: &[Value]) -> Value {
    match (op, values) {
        (Elementwise::Unary(op), [x]) => b.unary(*op, *x),
        (Elementwise::Binary(op), [x, y]) => b.binary(*op, x, y),
        (Elementwise::Compare(op), [x, y]) => b.compare(*op, x, y),
        (Elementwise::Select, [c, x, y]) => b.select(c, x, y),
        (Elementwise::Fma, [x, y, z]) => b.fma(x, y, z),
        (Elementwise::Convert(element), [x]) => b.convert(*x, *element),
        (Elementwise::Math(function, precision), values) => b.math(*function, *precision, values),
        (Elementwise::Vector, lanes) => b.vector(lanes),
        (Elementwise::Lane(lane), [x]) => b.lane(*x, usize::from(*lane)),
        (Elementwise::Call(function, result), values) => {
            let results = b.inline(function, values, &mut []);
            results.get(usize::from(*result)).copied().unwrap_or_else(|| b.fail("a function without that result"))
        }
        (op, values) => b.fail(format!("`{op}` of {} values", values.len())),
    }
}
