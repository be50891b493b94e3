//! Operations on single elements, on the host.
//!
//! This is a second definition of the results of elementwise operations, after the table in
//! [`broadloom_scalar::op`]. Elementary functions come from the `libm` crate, so their results agree only
//! within their stated error.

use crate::expr::elementwise::{Elementwise, combining};
use crate::expr::error::{Error, Result};
use broadloom_scalar::{BinaryOp, CompareOp, Element, Lanes, Literal, MathFunction, UnaryOp};
use broadloom_skeleton::Combine;
use half::f16;

/// Combines two elements.
pub(crate) fn combined(combine: &Combine, x: &[Literal], y: &[Literal]) -> Result<Lanes> {
    element(&combining(combine), &[x, y])
}

/// Applies an operation to single elements, lane by lane. A scalar beside a vector is broadcast to all lanes.
pub(crate) fn element(op: &Elementwise, values: &[&[Literal]]) -> Result<Lanes> {
    let lanes = values.iter().map(|value| value.len()).max().unwrap_or(1);
    let lane = |value: &[Literal], lane: usize| value[lane.min(value.len() - 1)];
    let each = |apply: &dyn Fn(&[Literal]) -> Literal| -> Lanes {
        (0..lanes).map(|l| apply(&values.iter().map(|value| lane(value, l)).collect::<Vec<_>>())).collect()
    };
    Ok(match op {
        Elementwise::Unary(op) => each(&|v| unary(*op, v[0])),
        Elementwise::Binary(op) => each(&|v| binary(*op, v[0], v[1])),
        Elementwise::Compare(op) => each(&|v| compare(*op, v[0], v[1]).into()),
        Elementwise::Select => each(&|v| if v[0].bits() != 0 { v[1] } else { v[2] }),
        Elementwise::Fma => each(&|v| match v[0].element() {
            Element::F64 => {
                let [a, b, c] = [0, 1, 2].map(|i| v[i].as_f64().unwrap_or(0.0));
                a.mul_add(b, c).into()
            }
            Element::F32 => {
                let [a, b, c] = [0, 1, 2].map(|i| v[i].as_f64().unwrap_or(0.0) as f32);
                a.mul_add(b, c).into()
            }
            element => float(element, v[0].as_f64().unwrap_or(0.0) * v[1].as_f64().unwrap_or(0.0) + v[2].as_f64().unwrap_or(0.0)),
        }),
        Elementwise::Convert(to) => each(&|v| convert(v[0], *to)),
        Elementwise::Math(function, _) => each(&|v| {
            let arguments: Vec<f64> = v.iter().map(|value| value.as_f64().unwrap_or(0.0)).collect();
            float(v[0].element(), math(*function, &arguments))
        }),
        Elementwise::Vector => values.iter().map(|value| value[0]).collect(),
        Elementwise::Lane(lane) => std::iter::once(values[0][usize::from(*lane)]).collect(),
        Elementwise::Call(function, result) => {
            let arguments: Vec<Literal> = values.iter().flat_map(|value| value.iter().copied()).collect();
            let results = function.evaluate(&arguments).map_err(Error::from)?;
            let types = function.result_types();
            let start: usize = types[..usize::from(*result)].iter().map(|ty| ty.lanes()).sum();
            Lanes::from_slice(&results[start..start + types[usize::from(*result)].lanes()])
        }
    })
}

/// Returns a value as a float of a type. Values of higher precision are rounded to the nearest.
fn float(element: Element, value: f64) -> Literal {
    Literal::from_f64(element, value).unwrap_or(Literal::zero(element))
}

fn integer(element: Element, value: i128) -> Literal {
    Literal::from_i128(element, value)
}

/// Computes in `f32` for `f32` and `f16`, and rounds the result for `f16` to `f16`. Other types are computed
/// in `f64`.
fn float1(x: Literal, in_single: fn(f32) -> f32, in_double: fn(f64) -> f64) -> Literal {
    match x.element() {
        Element::F32 => in_single(f32::from_bits(x.bits() as u32)).into(),
        Element::F16 => f16::from_f32(in_single(f16::from_bits(x.bits() as u16).to_f32())).into(),
        element => float(element, in_double(x.as_f64().unwrap_or(0.0))),
    }
}

fn unary(op: UnaryOp, x: Literal) -> Literal {
    let element = x.element();
    let (bits, value) = (element.bits(), x.as_i128().unwrap_or(0));
    let unsigned = x.bits();
    match op {
        UnaryOp::Neg if element.is_float() => Literal::from_bits(element, x.bits() ^ (1 << (bits - 1))),
        UnaryOp::Neg => integer(element, -value),
        UnaryOp::Not if element == Element::Bool => (x.bits() == 0).into(),
        UnaryOp::Not => Literal::from_bits(element, !x.bits()),
        UnaryOp::Abs if element.is_float() => Literal::from_bits(element, x.bits() & !(1 << (bits - 1))),
        UnaryOp::Abs => integer(element, value.abs()),
        UnaryOp::Popcount => integer(element, unsigned.count_ones().into()),
        UnaryOp::LeadingZeros => integer(element, i128::from(unsigned.leading_zeros()) - i128::from(64 - bits)),
        UnaryOp::TrailingZeros => integer(element, unsigned.trailing_zeros().min(bits).into()),
        UnaryOp::ReverseBits => Literal::from_bits(element, unsigned.reverse_bits() >> (64 - bits)),
        UnaryOp::Floor => float1(x, f32::floor, f64::floor),
        UnaryOp::Ceil => float1(x, f32::ceil, f64::ceil),
        UnaryOp::Trunc => float1(x, f32::trunc, f64::trunc),
        UnaryOp::RoundEven => float1(x, f32::round_ties_even, f64::round_ties_even),
        UnaryOp::Sqrt | UnaryOp::SqrtApprox => float1(x, f32::sqrt, f64::sqrt),
        UnaryOp::RcpApprox => float1(x, |x| 1.0 / x, |x| 1.0 / x),
        UnaryOp::RsqrtApprox => float1(x, |x| (1.0 / f64::from(x).sqrt()) as f32, |x| 1.0 / x.sqrt()),
        UnaryOp::Exp2Approx => float1(x, f32::exp2, f64::exp2),
        UnaryOp::Log2Approx => float1(x, f32::log2, f64::log2),
        UnaryOp::SinApprox => float1(x, f32::sin, f64::sin),
        UnaryOp::CosApprox => float1(x, f32::cos, f64::cos),
        UnaryOp::TanhApprox => float1(x, f32::tanh, f64::tanh),
    }
}

pub(crate) fn binary(op: BinaryOp, x: Literal, y: Literal) -> Literal {
    let element = x.element();
    if let (Some(a), Some(b)) = (x.as_f64(), y.as_f64()) {
        // Sums, products and quotients of two `f32` or `f16` are rounded to `f64` first. In effect they are
        // rounded once.
        return match op {
            BinaryOp::Add => float(element, a + b),
            BinaryOp::Sub => float(element, a - b),
            BinaryOp::Mul => float(element, a * b),
            BinaryOp::Div | BinaryOp::DivApprox => float(element, a / b),
            BinaryOp::Rem => float(element, a % b),
            BinaryOp::Min if a.is_nan() || b < a || (a == b && b.is_sign_negative()) => y,
            BinaryOp::Max if a.is_nan() || b > a || (a == b && b.is_sign_positive()) => y,
            BinaryOp::CopySign => {
                let sign = 1u64 << (element.bits() - 1);
                Literal::from_bits(element, (x.bits() & !sign) | (y.bits() & sign))
            }
            BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::MulHigh
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
    let bits = element.bits();
    // The shift amount as an unsigned number.
    let amount = y.bits();
    let held = |value: i128| match element.range() {
        Some((low, high)) => integer(element, value.clamp(low, high)),
        None => x,
    };
    match op {
        BinaryOp::Add => integer(element, a + b),
        BinaryOp::Sub => integer(element, a - b),
        BinaryOp::Mul => integer(element, a.wrapping_mul(b)),
        BinaryOp::MulHigh => integer(element, a.wrapping_mul(b) >> bits),
        BinaryOp::Div | BinaryOp::DivApprox => integer(element, if b == 0 { 0 } else { a / b }),
        BinaryOp::Rem => integer(element, if b == 0 { a } else { a % b }),
        BinaryOp::Min => integer(element, a.min(b)),
        BinaryOp::Max => integer(element, a.max(b)),
        BinaryOp::And => Literal::from_bits(element, x.bits() & y.bits()),
        BinaryOp::Or => Literal::from_bits(element, x.bits() | y.bits()),
        BinaryOp::Xor => Literal::from_bits(element, x.bits() ^ y.bits()),
        BinaryOp::Shl => Literal::from_bits(element, if amount >= u64::from(bits) { 0 } else { x.bits() << amount }),
        BinaryOp::Shr => integer(element, a >> amount.min(100)),
        BinaryOp::AddSaturating => held(a + b),
        BinaryOp::SubSaturating => held(a - b),
        BinaryOp::CopySign => x,
    }
}

pub(crate) fn compare(op: CompareOp, x: Literal, y: Literal) -> bool {
    let (less, equal, greater) = match (x.as_f64(), y.as_f64()) {
        (Some(a), Some(b)) => (a < b, a == b, a > b),
        _ => {
            let (a, b) = (x.as_i128(), y.as_i128());
            (a < b, a == b, a > b)
        }
    };
    match op {
        CompareOp::Eq => equal,
        CompareOp::Ne => !equal,
        CompareOp::Lt => less,
        CompareOp::Le => less || equal,
        CompareOp::Gt => greater,
        CompareOp::Ge => greater || equal,
    }
}

fn convert(x: Literal, to: Element) -> Literal {
    match x.as_f64() {
        Some(value) if to == Element::Bool => (value != 0.0).into(),
        Some(value) if to.is_float() => float(to, value),
        Some(value) => match to.range() {
            // `as` saturates to the range of `i128`, converts NaN to 0, and rounds towards zero.
            Some((low, high)) => integer(to, (value as i128).clamp(low, high)),
            None => x,
        },
        None if to == Element::Bool => (x.bits() != 0).into(),
        None => integer(to, x.as_i128().unwrap_or(0)),
    }
}

fn math(function: MathFunction, x: &[f64]) -> f64 {
    let (x, y) = (x[0], x.get(1).copied().unwrap_or(0.0));
    match function {
        MathFunction::Exp => libm::exp(x),
        MathFunction::Exp2 => libm::exp2(x),
        MathFunction::Exp10 => libm::exp10(x),
        MathFunction::Expm1 => libm::expm1(x),
        MathFunction::Log => libm::log(x),
        MathFunction::Log2 => libm::log2(x),
        MathFunction::Log10 => libm::log10(x),
        MathFunction::Log1p => libm::log1p(x),
        MathFunction::Sin => libm::sin(x),
        MathFunction::Cos => libm::cos(x),
        MathFunction::Tan => libm::tan(x),
        // Exact if the argument is a multiple of one half.
        MathFunction::Sinpi => libm::sin(libm::fmod(x, 2.0) * std::f64::consts::PI),
        MathFunction::Cospi => libm::cos(libm::fmod(x, 2.0) * std::f64::consts::PI),
        MathFunction::Asin => libm::asin(x),
        MathFunction::Acos => libm::acos(x),
        MathFunction::Atan => libm::atan(x),
        MathFunction::Atan2 => libm::atan2(x, y),
        MathFunction::Sinh => libm::sinh(x),
        MathFunction::Cosh => libm::cosh(x),
        MathFunction::Tanh => libm::tanh(x),
        MathFunction::Asinh => libm::asinh(x),
        MathFunction::Acosh => libm::acosh(x),
        MathFunction::Atanh => libm::atanh(x),
        MathFunction::Rsqrt => 1.0 / x.sqrt(),
        MathFunction::Cbrt => libm::cbrt(x),
        MathFunction::Hypot => libm::hypot(x, y),
        MathFunction::Pow => libm::pow(x, y),
        MathFunction::Erf => libm::erf(x),
        MathFunction::Erfc => libm::erfc(x),
        MathFunction::Lgamma => libm::lgamma(x),
        MathFunction::Tgamma => libm::tgamma(x),
        MathFunction::Fmod => x % y,
        MathFunction::Remainder => libm::remainder(x, y),
        MathFunction::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
        MathFunction::NormCdf => 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2),
    }
}
