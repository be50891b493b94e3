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
use crate::types::{Element, Type};
use float::Float;
use std::fmt;

/// Precision of elementary functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Precision {
    /// The stated error holds over the whole range.
    #[default]
    Accurate,
    /// Faster, with hardware instructions. Errors are a few more units in the last place, and subnormal
    /// numbers may count as zero.
    Fast,
}

macro_rules! functions {
    ($($variant:ident $name:literal $arguments:literal $doc:literal,)*) => {
        /// An elementary function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum MathFunction {
            $(#[doc = $doc] $variant,)*
        }

        impl MathFunction {
            /// All functions.
            pub const ALL: &'static [MathFunction] = &[$(MathFunction::$variant,)*];

            /// Returns its name.
            pub const fn name(self) -> &'static str {
                match self { $(MathFunction::$variant => $name,)* }
            }

            /// Returns the number of arguments.
            pub const fn arguments(self) -> usize {
                match self { $(MathFunction::$variant => $arguments,)* }
            }
        }

    };
}

functions! {
    Exp "exp" 1 "e to the power of x.",
    Exp2 "exp2" 1 "2 to the power of x.",
    Exp10 "exp10" 1 "10 to the power of x.",
    Expm1 "expm1" 1 "e to the power of x, less 1, exact near 0.",
    Log "log" 1 "The natural logarithm.",
    Log2 "log2" 1 "The logarithm to base 2.",
    Log10 "log10" 1 "The logarithm to base 10.",
    Log1p "log1p" 1 "The natural logarithm of 1 + x, exact near 0.",
    Sin "sin" 1 "The sine of an angle in radians.",
    Cos "cos" 1 "The cosine of an angle in radians.",
    Tan "tan" 1 "The tangent of an angle in radians.",
    Sinpi "sinpi" 1 "The sine of an angle in half turns: sin(pi x).",
    Cospi "cospi" 1 "The cosine of an angle in half turns: cos(pi x).",
    Asin "asin" 1 "The arc sine.",
    Acos "acos" 1 "The arc cosine.",
    Atan "atan" 1 "The arc tangent.",
    Atan2 "atan2" 2 "The angle of the point with ordinate x and abscissa y: `atan2(y, x)`.",
    Sinh "sinh" 1 "The hyperbolic sine.",
    Cosh "cosh" 1 "The hyperbolic cosine.",
    Tanh "tanh" 1 "The hyperbolic tangent.",
    Asinh "asinh" 1 "The inverse hyperbolic sine.",
    Acosh "acosh" 1 "The inverse hyperbolic cosine.",
    Atanh "atanh" 1 "The inverse hyperbolic tangent.",
    Rsqrt "rsqrt" 1 "The reciprocal of the square root.",
    Cbrt "cbrt" 1 "The cube root.",
    Hypot "hypot" 2 "The length of the vector (x, y), without overflow on the way.",
    Pow "pow" 2 "x to the power of y.",
    Erf "erf" 1 "The error function.",
    Erfc "erfc" 1 "1 less the error function, exact for large x.",
    Lgamma "lgamma" 1 "The natural logarithm of the absolute value of the gamma function.",
    Tgamma "tgamma" 1 "The gamma function.",
    Fmod "fmod" 2 "The remainder of x / y with the quotient rounded towards zero; it has the sign of x. Exact.",
    Remainder "remainder" 2 "The remainder of x / y with the quotient rounded to nearest even. Exact.",
    Sigmoid "sigmoid" 1 "1 / (1 + exp(-x)).",
    NormCdf "normcdf" 1 "The distribution function of the standard normal distribution.",
}

impl MathFunction {
    /// Returns the estimated number of emitted operations.
    pub const fn operations(self, precision: Precision) -> u64 {
        match (self, precision) {
            (_, Precision::Fast) => 8,
            // Large angles, and numbers near the ends of their types, have separate code.
            (MathFunction::Sin | MathFunction::Cos | MathFunction::Tan, _) => 100,
            (MathFunction::Pow | MathFunction::Lgamma | MathFunction::Tgamma, _) => 120,
            _ => 40,
        }
    }
}

impl fmt::Display for MathFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
