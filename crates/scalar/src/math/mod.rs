//! The elementary functions.
//!
//! A call stays symbolic ([`Op::Math`](crate::Op::Math)) while code is simplified, so that equal calls are
//! shared and constants are hoisted. Before code is lowered or evaluated, [`expand`] replaces it by basic
//! operations, one family of functions per file.
//!
//! The result of a function has the same bits on every device, because the basic operations have.
//! [`accuracy`] states its distance from the exact result, and a test measures it. Special values follow
//! annex F of the C standard. The fast mode uses hardware instructions instead.

pub mod accuracy;
mod error;
mod exp;
mod fast;
mod float;
mod gamma;
mod hyperbolic;
mod inverse_trig;
mod log;
mod power;
mod remainder;
mod trig;

use crate::builder::{Builder, Value};
use crate::math_function::{MathFunction, Precision};
use crate::types::{Element, Type};
use float::Float;

/// Expands a call into basic operations. The arguments are plain values of one float type, and so is the
/// result. Returns `None` if the function does not exist for this type and precision.
///
/// `f16` is computed in `f32` and rounded once.
pub fn expand(builder: &Builder, function: MathFunction, precision: Precision, arguments: &[Value]) -> Option<Value> {
    let element = builder.type_of(*arguments.first()?).element();
    if element == Element::F16 {
        let wide: Vec<Value> = arguments.iter().map(|argument| builder.convert(*argument, Type::F32)).collect();
        return Some(builder.convert(expand(builder, function, precision, &wide)?, Type::F16));
    }
    let x = Float::new(builder, *arguments.first()?)?;
    let y = arguments.get(1).and_then(|argument| Float::new(builder, *argument));
    let hardware = match precision {
        Precision::Fast if element == Element::F32 => fast::expand(function, x, y),
        Precision::Fast | Precision::Accurate => None,
    };
    Some(hardware.or_else(|| accurate(function, x, y))?.value())
}

fn accurate<'b>(function: MathFunction, x: Float<'b>, y: Option<Float<'b>>) -> Option<Float<'b>> {
    Some(match function {
        MathFunction::Exp => exp::exp(x),
        MathFunction::Exp2 => exp::exp2(x),
        MathFunction::Exp10 => exp::exp10(x),
        MathFunction::Expm1 => exp::expm1(x),
        MathFunction::Log => log::log(x),
        MathFunction::Log2 => log::log2(x),
        MathFunction::Log10 => log::log10(x),
        MathFunction::Log1p => log::log1p(x),
        MathFunction::Sin => trig::sin(x),
        MathFunction::Cos => trig::cos(x),
        MathFunction::Tan => trig::tan(x),
        MathFunction::Sinpi => trig::sinpi(x),
        MathFunction::Cospi => trig::cospi(x),
        MathFunction::Asin => inverse_trig::asin(x),
        MathFunction::Acos => inverse_trig::acos(x),
        MathFunction::Atan => inverse_trig::atan(x),
        MathFunction::Atan2 => inverse_trig::atan2(x, y?),
        MathFunction::Sinh => hyperbolic::sinh(x),
        MathFunction::Cosh => hyperbolic::cosh(x),
        MathFunction::Tanh => hyperbolic::tanh(x),
        MathFunction::Asinh => log::asinh(x),
        MathFunction::Acosh => log::acosh(x),
        MathFunction::Atanh => log::atanh(x),
        MathFunction::Rsqrt => power::rsqrt(x),
        MathFunction::Cbrt => power::cbrt(x),
        MathFunction::Hypot => power::hypot(x, y?),
        MathFunction::Pow => power::pow(x, y?),
        MathFunction::Erf => error::erf(x),
        MathFunction::Erfc => error::erfc(x),
        MathFunction::Lgamma => gamma::lgamma(x),
        MathFunction::Tgamma => gamma::tgamma(x),
        MathFunction::Fmod => remainder::fmod(x, y?),
        MathFunction::Remainder => remainder::remainder(x, y?),
        MathFunction::Sigmoid => error::sigmoid(x),
        MathFunction::NormCdf => error::normcdf(x),
    })
}
