//! Names of the elementary functions, and the precision of their results.

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

            /// Returns the name in texts, as in C: `exp`, `log2`, `tgamma`.
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
