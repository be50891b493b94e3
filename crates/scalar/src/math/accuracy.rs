//! Maximum errors of results: one table for the documentation, for users, and for the tests that check it.
//!
//! An error in *ulp* is the distance from the exact result in units in the last place of a number of its
//! size. Correct rounding has at most 0.5. `f16` is `f32` rounded once more: at most 0.51 ulp.

use super::MathFunction;
use std::fmt::Write;

/// The stated accuracy of one function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// The function that the row is about.
    pub function: MathFunction,
    /// Maximum error of `f32`, in ulp.
    pub single: f64,
    /// Maximum error of `f64`, in ulp.
    pub double: f64,
    /// Error of `f32` in the fast mode. `None` if the fast mode is the accurate one.
    pub fast: Option<FastAccuracy>,
}

/// The stated accuracy of the fast mode. Within `range`, the error is at most
/// `relative |f(x)| + growth |x f(x)| + absolute`. Subnormal results may be 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastAccuracy {
    /// Part relative to the result.
    pub relative: f64,
    /// Part relative to the product of argument and result. For `pow` it is relative to the product of the
    /// result and its logarithm.
    pub growth: f64,
    /// Absolute part.
    pub absolute: f64,
    /// Maximum magnitude of an argument for which this holds.
    pub range: f64,
}

/// Scale of the error of `lgamma` in `f64` below 0. The error is relative to this or to the magnitude of the
/// result, whichever is greater: large terms cancel near the zeros there.
pub const LGAMMA_SCALE: f64 = 4.0;

/// Returns `2^n`.
const fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

const fn row(function: MathFunction, single: f64, double: f64) -> Accuracy {
    Accuracy { function, single, double, fast: None }
}

const fn fast(row: Accuracy, relative: f64, growth: f64, absolute: f64, range: f64) -> Accuracy {
    Accuracy { fast: Some(FastAccuracy { relative, growth, absolute, range }), ..row }
}

/// The table, in the order of [`MathFunction::ALL`].
pub const TABLE: &[Accuracy] = &[
    fast(row(MathFunction::Exp, 1.02, 1.1), power_of_two(-22), power_of_two(-23), 0.0, f64::INFINITY),
    fast(row(MathFunction::Exp2, 1.02, 1.1), power_of_two(-22), 0.0, 0.0, f64::INFINITY),
    fast(row(MathFunction::Exp10, 1.09, 1.3), power_of_two(-22), power_of_two(-22), 0.0, f64::INFINITY),
    row(MathFunction::Expm1, 1.45, 2.0),
    fast(row(MathFunction::Log, 0.95, 0.9), power_of_two(-22), 0.0, power_of_two(-22), f64::INFINITY),
    fast(row(MathFunction::Log2, 1.1, 1.0), power_of_two(-22), 0.0, power_of_two(-22), f64::INFINITY),
    fast(row(MathFunction::Log10, 1.0, 1.0), power_of_two(-22), 0.0, power_of_two(-22), f64::INFINITY),
    row(MathFunction::Log1p, 1.54, 1.3),
    fast(row(MathFunction::Sin, 1.6, 1.5), 0.0, 0.0, power_of_two(-20), 65_536.0),
    fast(row(MathFunction::Cos, 1.6, 1.5), 0.0, 0.0, power_of_two(-20), 65_536.0),
    fast(row(MathFunction::Tan, 1.4, 1.2), power_of_two(-21), 0.0, 0.0, 65_536.0),
    row(MathFunction::Sinpi, 1.2, 1.1),
    row(MathFunction::Cospi, 1.2, 1.1),
    row(MathFunction::Asin, 1.8, 1.5),
    row(MathFunction::Acos, 1.3, 1.2),
    row(MathFunction::Atan, 1.96, 1.7),
    row(MathFunction::Atan2, 2.0, 1.9),
    row(MathFunction::Sinh, 1.6, 1.8),
    row(MathFunction::Cosh, 1.4, 1.2),
    fast(row(MathFunction::Tanh, 1.5, 1.5), power_of_two(-10), 0.0, 0.0, f64::INFINITY),
    row(MathFunction::Asinh, 1.8, 1.5),
    row(MathFunction::Acosh, 1.95, 1.6),
    row(MathFunction::Atanh, 1.7, 1.3),
    fast(row(MathFunction::Rsqrt, 1.5, 1.5), power_of_two(-22), 0.0, 0.0, f64::INFINITY),
    row(MathFunction::Cbrt, 0.8, 0.8),
    row(MathFunction::Hypot, 1.0, 1.0),
    fast(row(MathFunction::Pow, 1.3, 1.3), power_of_two(-21), power_of_two(-22), 0.0, f64::INFINITY),
    row(MathFunction::Erf, 1.3, 1.2),
    row(MathFunction::Erfc, 1.7, 1.9),
    row(MathFunction::Lgamma, 0.51, 2.3),
    row(MathFunction::Tgamma, 0.51, 3.0),
    row(MathFunction::Fmod, 0.0, 0.0),
    row(MathFunction::Remainder, 0.0, 0.0),
    fast(row(MathFunction::Sigmoid, 1.1, 1.1), power_of_two(-21), power_of_two(-23), 0.0, f64::INFINITY),
    row(MathFunction::NormCdf, 1.9, 2.0),
];

impl MathFunction {
    /// Returns its stated accuracy.
    pub fn accuracy(self) -> &'static Accuracy {
        // A test checks that the table is complete and in order.
        &TABLE[self as usize]
    }
}

/// Formats a power of two as `2^n`, or else as the number.
fn shown(value: f64) -> String {
    let exponent = value.log2();
    if exponent.fract() == 0.0 { format!("2^{exponent}") } else { value.to_string() }
}

fn fast_text(fast: Option<FastAccuracy>) -> String {
    let Some(fast) = fast else { return "as accurate".to_owned() };
    let mut parts = vec![];
    if fast.relative > 0.0 {
        parts.push(format!("{} relative", shown(fast.relative)));
    }
    if fast.growth > 0.0 {
        parts.push(format!("{} growing", shown(fast.growth)));
    }
    if fast.absolute > 0.0 {
        parts.push(format!("{} absolute", shown(fast.absolute)));
    }
    let mut text = parts.join(" + ");
    if fast.range.is_finite() {
        let _ = write!(text, ", up to {}", fast.range);
    }
    text
}

/// Returns the table in the form of the page `docs/MATH.md`.
pub fn page() -> String {
    let mut page = String::from(PREFACE);
    for Accuracy { function, single, double, fast } in TABLE {
        let ulp = |value: f64| if value == 0.0 { "exact".to_owned() } else { format!("{value}") };
        let _ = writeln!(page, "| `{function}` | {} | {} | {} |", ulp(*single), ulp(*double), fast_text(*fast));
    }
    page
}

const PREFACE: &str = "\
# Elementary functions

This page is generated from the table in `crates/scalar/src/math/accuracy.rs`. One test compares
both, and others measure the error bounds.

Elementary functions of `f32` and `f64` are composed of additions, products, fused products,
quotients, square roots and bitwise operations. All of these are exactly defined, so a result has
the same bits in the evaluator, in the interpreter, on the CPU and on a GPU. Special values (NaN,
infinities, signed zeros, the many cases of `pow`) follow annex F of the C standard. Subnormal
arguments and results are computed like all others. Angles may have any size.

Errors are in ulp: units in the last place of the exact result. For functions of one argument in
`f32`, `make soak` tests all 4,294,967,296 arguments. The other maximum errors were measured over
samples of all exponents and around hard cases. `f16` is computed in `f32` and rounded once more.
Below 0, the error of `lgamma` in `f64` is relative to the result's magnitude or 4, whichever is
greater.

The fast mode uses hardware instructions for `f32`. Results may differ between devices, subnormal
numbers may count as 0, and divisors above 2¹²⁶ as infinite. Its error is the sum of the stated
terms, for arguments up to the stated magnitude:

- *relative*: relative to the result;
- *growing*: relative to the product of result and argument (for `pow`: of result and its
  logarithm);
- *absolute*.

In `f64` the fast mode is the accurate one.

| function | `f32`, ulp | `f64`, ulp | `f32`, fast |
| --- | --- | --- | --- |
";
