//! Complex numbers: vectors of two lanes, the real and the imaginary part.
//!
//! Sums, differences, negation and rounding work lane by lane, as the engine does. The other operations are
//! functions on single elements, one for each of the two types. Their products are rounded on their own, so
//! that the imaginary part of `z * conj(z)` is 0.

use broadloom::graph::{Combine, Elementwise, Error, Result};
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, Function, Literal, MathFunction, Precision, Type, UnaryOp, Value};
use broadloom_skeleton::Operator;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

const fn complex(element: Element) -> Type {
    match Type::vector(element, 2) {
        Some(ty) => ty,
        None => Type::of(element),
    }
}

/// Complex numbers of 8 bytes.
pub(crate) const COMPLEX64: Type = complex(Element::F32);
/// Complex numbers of 16 bytes.
pub(crate) const COMPLEX128: Type = complex(Element::F64);

/// Function of complex numbers that the engine does not apply lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ComplexFunction {
    Multiply,
    Divide,
    Equal,
    NotEqual,
    Absolute,
    /// Converts real numbers of this type.
    FromReal(Element),
    Select,
}

impl ComplexFunction {
    const fn name(self) -> &'static str {
        match self {
            ComplexFunction::Multiply => "multiply",
            ComplexFunction::Divide => "divide",
            ComplexFunction::Equal => "equal",
            ComplexFunction::NotEqual => "not_equal",
            ComplexFunction::Absolute => "abs",
            ComplexFunction::FromReal(_) => "complex",
            ComplexFunction::Select => "select",
        }
    }
}

/// Returns the operation for operands of a complex type.
pub(crate) fn operation(operation: Elementwise, ty: Type) -> Result<Elementwise> {
    let function = match operation {
        Elementwise::Binary(BinaryOp::Mul) => ComplexFunction::Multiply,
        Elementwise::Binary(BinaryOp::Div) => ComplexFunction::Divide,
        Elementwise::Compare(CompareOp::Eq) => ComplexFunction::Equal,
        Elementwise::Compare(CompareOp::Ne) => ComplexFunction::NotEqual,
        Elementwise::Unary(UnaryOp::Abs) => ComplexFunction::Absolute,
        Elementwise::Select => ComplexFunction::Select,
        other => return Ok(other),
    };
    Ok(Elementwise::Call(function_of(function, ty)?, 0))
}

/// Returns the conversion to a complex type, or `None` if lanes are converted one by one.
pub(crate) fn conversion(from: Type, to: Type) -> Option<Result<Elementwise>> {
    let needed = from.is_scalar() && !to.is_scalar();
    needed.then(|| Ok(Elementwise::Call(function_of(ComplexFunction::FromReal(from.element()), to)?, 0)))
}

/// Returns the way to combine elements of a type: the product of complex numbers is not that of the lanes.
pub(crate) fn combine(combine: Combine, ty: Type) -> Result<Combine> {
    if combine != Combine::Product || ty.is_scalar() {
        return Ok(combine);
    }
    let one = |value: f64| Literal::from_f64(ty.element(), value).unwrap_or(Literal::zero(ty.element()));
    let operator = Operator::new(function_of(ComplexFunction::Multiply, ty)?, &[one(1.0), one(0.0)], true)?;
    Ok(Combine::By(operator.into()))
}

/// Returns a function for a type. Each is built once.
fn function_of(function: ComplexFunction, ty: Type) -> Result<Function> {
    static KNOWN: OnceLock<Mutex<HashMap<(ComplexFunction, Type), Function>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Default::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(&(function, ty)) {
        return Ok(found.clone());
    }
    let built = build(function, ty)?;
    known.insert((function, ty), built.clone());
    Ok(built)
}

fn build(function: ComplexFunction, ty: Type) -> Result<Function> {
    let f = Builder::function(function.name());
    f.keep_products();
    let result = match function {
        ComplexFunction::Multiply => {
            let [(a, b), (c, d)] = ["x", "y"].map(|name| parameter(&f, name, ty));
            f.vector(&[f.sub(f.mul(a, c), f.mul(b, d)), f.add(f.mul(a, d), f.mul(b, c))])
        }
        ComplexFunction::Divide => {
            let [x, y] = ["x", "y"].map(|name| parameter(&f, name, ty));
            quotient(&f, x, y)
        }
        ComplexFunction::Equal | ComplexFunction::NotEqual => {
            let [(a, b), (c, d)] = ["x", "y"].map(|name| parameter(&f, name, ty));
            let equal = f.and(f.eq(a, c), f.eq(b, d));
            if function == ComplexFunction::Equal { equal } else { f.not(equal) }
        }
        ComplexFunction::Absolute => {
            let (a, b) = parameter(&f, "x", ty);
            f.math(MathFunction::Hypot, Precision::Accurate, &[a, b])
        }
        ComplexFunction::FromReal(element) => {
            let real = f.convert(f.parameter("x", element), ty.element());
            f.vector(&[real, f.constant(ty.element(), 0.0)])
        }
        ComplexFunction::Select => {
            let condition = f.parameter("condition", Type::BOOL);
            let [(a, b), (c, d)] = ["x", "y"].map(|name| parameter(&f, name, ty));
            f.vector(&[f.select(condition, a, c), f.select(condition, b, d)])
        }
    };
    f.finish_function(&[result]).map_err(Error::from)
}

/// Declares a complex parameter and returns its parts.
fn parameter(f: &Builder, name: &str, ty: Type) -> (Value, Value) {
    let value = f.parameter(name, ty);
    (f.lane(value, 0), f.lane(value, 1))
}

/// Divides by Smith's method: the larger part of the divisor is divided by first, so that squares do not overflow.
fn quotient(f: &Builder, dividend: (Value, Value), divisor: (Value, Value)) -> Value {
    let ((a, b), (c, d)) = (dividend, divisor);
    let swap = f.lt(f.abs(c), f.abs(d));
    let (large, small) = (f.select(swap, d, c), f.select(swap, c, d));
    let (first, second) = (f.select(swap, b, a), f.select(swap, a, b));
    let zero = f.constant(f.type_of(c), 0.0);
    let ratio = f.select(f.eq(large, zero), zero, f.div(small, large));
    let scale = f.add(large, f.mul(small, ratio));
    let real = f.div(f.add(first, f.mul(second, ratio)), scale);
    let difference = f.sub(second, f.mul(first, ratio));
    let imaginary = f.div(f.select(swap, f.neg(difference), difference), scale);
    // (a + bi) / (c + di) for |c| >= |d|: the real part is (a + b r) / s, the imaginary part (b - a r) / s.
    f.vector(&[real, imaginary])
}
