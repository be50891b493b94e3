//! Names of comparisons and elementary functions, as methods for all types of values that have them.

/// Calls a macro with all comparisons: the name of the method, the [`CompareOp`](crate::CompareOp), and a
/// text for documentation.
#[macro_export]
macro_rules! for_comparisons {
    ($call:ident) => {
        $call! {
            lt Lt "less";
            le Le "less or equal";
            gt Gt "greater";
            ge Ge "greater or equal";
            eq Eq "equal";
            ne Ne "not equal";
        }
    };
}

/// Calls a macro with all elementary functions of one and of two arguments: the name of the method, and the
/// [`MathFunction`](crate::MathFunction).
#[macro_export]
macro_rules! for_functions {
    ($call:ident) => {
        $call! {
            one {
                exp Exp; exp2 Exp2; exp10 Exp10; expm1 Expm1; log Log; log2 Log2; log10 Log10; log1p Log1p;
                sin Sin; cos Cos; tan Tan; asin Asin; acos Acos; atan Atan; sinh Sinh; cosh Cosh; tanh Tanh;
                asinh Asinh; acosh Acosh; atanh Atanh; rsqrt Rsqrt; cbrt Cbrt; erf Erf; erfc Erfc;
                lgamma Lgamma; tgamma Tgamma; sigmoid Sigmoid; normcdf NormCdf;
            }
            two { atan2 Atan2; hypot Hypot; pow Pow; fmod Fmod; }
        }
    };
}
