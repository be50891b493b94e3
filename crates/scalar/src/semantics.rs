//! The result of every basic operation on literals: the definition that folding and the evaluator share.
//!
//! It is the Rust form of the table in [`op`](crate::op). The executors are the second implementation, and
//! tests compare them.

use crate::op::{BinaryOp, CompareOp, UnaryOp};
use crate::types::{Element, Literal};
use half::f16;

/// Reduces an integer modulo the width of its type.
fn wrap(element: Element, value: i128) -> Literal {
    Literal::from_bits(element, value as u64)
}

/// Clamps an integer to the range of its type.
fn hold(element: Element, value: i128) -> Literal {
    let (low, high) = element.range().unwrap_or((0, 0));
    wrap(element, value.clamp(low, high))
}

/// Applies a float operation in the type itself. `f16` goes through `f32`, whose rounding does not change the
/// result of one operation.
fn float1(x: Literal, op32: impl Fn(f32) -> f32, op64: impl Fn(f64) -> f64) -> Literal {
    match x.element() {
        Element::F16 => f16::from_f32(op32(f16::from_bits(x.bits() as u16).to_f32())).into(),
        Element::F32 => op32(f32::from_bits(x.bits() as u32)).into(),
        _ => op64(f64::from_bits(x.bits())).into(),
    }
}

fn float2(x: Literal, y: Literal, op32: impl Fn(f32, f32) -> f32, op64: impl Fn(f64, f64) -> f64) -> Literal {
    match x.element() {
        Element::F16 => {
            let [x, y] = [x, y].map(|value| f16::from_bits(value.bits() as u16).to_f32());
            f16::from_f32(op32(x, y)).into()
        }
        Element::F32 => op32(f32::from_bits(x.bits() as u32), f32::from_bits(y.bits() as u32)).into(),
        _ => op64(f64::from_bits(x.bits()), f64::from_bits(y.bits())).into(),
    }
}

/// Applies an operation to one value.
pub(crate) fn unary(op: UnaryOp, x: Literal) -> Literal {
    let element = x.element();
    let bits = element.bits();
    let sign = 1u64 << (bits - 1);
    let count = |count: u32| wrap(element, i128::from(count));
    let integer = x.as_i128().unwrap_or(0);
    // Operations on the sign bit of floats apply to all values, including NaN.
    match op {
        UnaryOp::Neg if element.is_float() => Literal::from_bits(element, x.bits() ^ sign),
        UnaryOp::Neg => wrap(element, -integer),
        UnaryOp::Not => Literal::from_bits(element, !x.bits()),
        UnaryOp::Abs if element.is_float() => Literal::from_bits(element, x.bits() & !sign),
        UnaryOp::Abs => wrap(element, integer.abs()),
        UnaryOp::Popcount => count(x.bits().count_ones()),
        UnaryOp::LeadingZeros => count(x.bits().leading_zeros() - (64 - bits)),
        UnaryOp::TrailingZeros => count(x.bits().trailing_zeros().min(bits)),
        UnaryOp::ReverseBits => Literal::from_bits(element, x.bits().reverse_bits() >> (64 - bits)),
        UnaryOp::Floor => float1(x, f32::floor, f64::floor),
        UnaryOp::Ceil => float1(x, f32::ceil, f64::ceil),
        UnaryOp::Trunc => float1(x, f32::trunc, f64::trunc),
        UnaryOp::RoundEven => float1(x, f32::round_ties_even, f64::round_ties_even),
        UnaryOp::Sqrt => float1(x, f32::sqrt, f64::sqrt),
        // The approximations are as accurate as `f32` allows. Executors may differ within the bounds of the
        // manual.
        UnaryOp::RcpApprox => float1(x, |x| 1.0 / x, |x| 1.0 / x),
        UnaryOp::SqrtApprox => float1(x, f32::sqrt, f64::sqrt),
        UnaryOp::RsqrtApprox => float1(x, |x| (1.0 / f64::from(x).sqrt()) as f32, |x| 1.0 / x.sqrt()),
        UnaryOp::Exp2Approx => float1(x, |x| libm::exp2(f64::from(x)) as f32, libm::exp2),
        UnaryOp::Log2Approx => float1(x, |x| libm::log2(f64::from(x)) as f32, libm::log2),
        UnaryOp::SinApprox => float1(x, |x| libm::sin(f64::from(x)) as f32, libm::sin),
        UnaryOp::CosApprox => float1(x, |x| libm::cos(f64::from(x)) as f32, libm::cos),
        UnaryOp::TanhApprox => float1(x, |x| libm::tanh(f64::from(x)) as f32, libm::tanh),
    }
}

/// Returns the minimum or maximum. A number is preferred to NaN, and -0 is less than +0.
fn choose_float(x: Literal, y: Literal, want_less: bool) -> Literal {
    let (Some(a), Some(b)) = (x.as_f64(), y.as_f64()) else { return x };
    if a.is_nan() {
        return y;
    }
    if b.is_nan() {
        return x;
    }
    let x_is_less = a < b || (a == b && a.is_sign_negative());
    if x_is_less == want_less { x } else { y }
}

/// Applies an operation to two values of one type. The amount of a shift is `u32`.
pub(crate) fn binary(op: BinaryOp, x: Literal, y: Literal) -> Literal {
    let element = x.element();
    let bits = element.bits();
    if element.is_float() {
        return match op {
            BinaryOp::Add => float2(x, y, |a, b| a + b, |a, b| a + b),
            BinaryOp::Sub => float2(x, y, |a, b| a - b, |a, b| a - b),
            BinaryOp::Mul => float2(x, y, |a, b| a * b, |a, b| a * b),
            BinaryOp::Div | BinaryOp::DivApprox => float2(x, y, |a, b| a / b, |a, b| a / b),
            BinaryOp::Min => choose_float(x, y, true),
            BinaryOp::Max => choose_float(x, y, false),
            BinaryOp::CopySign => {
                let sign = 1u64 << (bits - 1);
                Literal::from_bits(element, (x.bits() & !sign) | (y.bits() & sign))
            }
            BinaryOp::MulHigh
            | BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::AddSaturating
            | BinaryOp::SubSaturating => x,
        };
    }
    let (a, b) = (x.as_i128().unwrap_or(0), y.as_i128().unwrap_or(0));
    match op {
        BinaryOp::Add => wrap(element, a + b),
        BinaryOp::Sub => wrap(element, a - b),
        BinaryOp::Mul => wrap(element, a.wrapping_mul(b)),
        BinaryOp::MulHigh => wrap(element, a.wrapping_mul(b) >> bits),
        BinaryOp::Div | BinaryOp::DivApprox => wrap(element, a.checked_div(b).unwrap_or(0)),
        BinaryOp::Rem => wrap(element, a.checked_rem(b).unwrap_or(a)),
        BinaryOp::Min => wrap(element, a.min(b)),
        BinaryOp::Max => wrap(element, a.max(b)),
        BinaryOp::And => Literal::from_bits(element, x.bits() & y.bits()),
        BinaryOp::Or => Literal::from_bits(element, x.bits() | y.bits()),
        BinaryOp::Xor => Literal::from_bits(element, x.bits() ^ y.bits()),
        BinaryOp::Shl if y.bits() >= u64::from(bits) => Literal::zero(element),
        BinaryOp::Shl => Literal::from_bits(element, x.bits() << y.bits()),
        BinaryOp::Shr => wrap(element, a >> y.bits().min(127)),
        BinaryOp::AddSaturating => hold(element, a + b),
        BinaryOp::SubSaturating => hold(element, a - b),
        BinaryOp::CopySign => x,
    }
}

/// Applies a comparison.
pub(crate) fn compare(op: CompareOp, x: Literal, y: Literal) -> bool {
    let order = match (x.as_f64(), y.as_f64()) {
        (Some(a), Some(b)) => a.partial_cmp(&b),
        _ => Some(x.as_i128().cmp(&y.as_i128())),
    };
    match op {
        CompareOp::Eq => order.is_some_and(|order| order.is_eq()),
        CompareOp::Ne => order.is_none_or(|order| order.is_ne()),
        CompareOp::Lt => order.is_some_and(|order| order.is_lt()),
        CompareOp::Le => order.is_some_and(|order| order.is_le()),
        CompareOp::Gt => order.is_some_and(|order| order.is_gt()),
        CompareOp::Ge => order.is_some_and(|order| order.is_ge()),
    }
}

/// Computes `x * y + z`, rounded once.
pub(crate) fn fma(x: Literal, y: Literal, z: Literal) -> Literal {
    match x.element() {
        Element::F16 => {
            let [a, b, c] = [x, y, z].map(|value| f16::from_bits(value.bits() as u16).to_f64());
            // The product is exact in `f64`. The rounding error of the sum decides the direction if the last
            // bit is even.
            let (product, rough) = (a * b, a * b + c);
            let back = rough - product;
            let lost = (product - (rough - back)) + (c - back);
            let exact = if lost == 0.0 || !rough.is_finite() || rough.to_bits() & 1 == 1 {
                rough
            } else {
                let away = (lost > 0.0) == (rough > 0.0);
                f64::from_bits(if away { rough.to_bits() | 1 } else { rough.to_bits() - 1 })
            };
            crate::types::half_from(exact).into()
        }
        Element::F32 => {
            let [a, b, c] = [x, y, z].map(|value| f32::from_bits(value.bits() as u32));
            a.mul_add(b, c).into()
        }
        _ => {
            let [a, b, c] = [x, y, z].map(|value| f64::from_bits(value.bits()));
            a.mul_add(b, c).into()
        }
    }
}

/// Converts a value to another type, like Rust's `as`.
pub(crate) fn convert(x: Literal, to: Element) -> Literal {
    match (x.as_f64(), to) {
        (Some(value), Element::Bool) => (value != 0.0).into(),
        (Some(value), Element::F16 | Element::F32 | Element::F64) => Literal::from_f64(to, value).unwrap_or(x),
        (Some(value), _) if value.is_nan() => Literal::zero(to),
        // Beyond 128 bits `as` saturates. Clamping to a narrower range afterwards gives the same result.
        (Some(value), _) => hold(to, value as i128),
        (None, Element::Bool) => (x.bits() != 0).into(),
        (None, _) => Literal::from_i128(to, x.as_i128().unwrap_or(0)),
    }
}

/// Reinterprets the bits as another type of the same width.
pub(crate) fn bitcast(x: Literal, to: Element) -> Literal {
    Literal::from_bits(to, x.bits())
}
