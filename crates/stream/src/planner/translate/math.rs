//! Mathematical functions.
//!
//! Elementary functions are computed in double precision and rounded once. Functions that are exact for
//! floats are computed in single precision if their arguments come from floats; the result is equal. `exp`,
//! `log` and `sqrt` are also computed in single precision, because their results keep their relative error.
//! `sqrt` is exact, and the others are off by about one unit in the last place. Rejected: `sin` and `cos` in
//! single precision. Sums of waves that cancel out then lose all their digits.

use super::reason::Reason;
use super::translator::Translator;
use super::value::{Atom, Term};
use crate::language::core::{Expr, ExprKind, Math, Type, Value};
use crate::language::eval::{complex_math, math as compute};
use broadloom_scalar::{Type as ScalarType, Value as ScalarValue};

/// Returns the floats from which the arguments of a function are converted, if it is computed in single
/// precision.
pub(super) fn narrow(function: Math, args: &[Expr]) -> Option<Vec<&Expr>> {
    let is_exact =
        matches!(function, Math::Min | Math::Max | Math::Abs | Math::Floor | Math::Ceil | Math::Rint | Math::Signum | Math::Sqrt);
    let fits = is_exact || matches!(function, Math::Exp | Math::Log);
    fn float(arg: &Expr) -> Option<&Expr> {
        match &arg.kind {
            ExprKind::Convert(inner) if arg.ty == Type::Double && inner.ty == Type::Float => Some(inner),
            _ => None,
        }
    }
    if fits { args.iter().map(float).collect() } else { None }
}

impl Translator<'_> {
    pub(super) fn math(&mut self, function: Math, values: &[Term]) -> Result<Term, Reason> {
        match values {
            [Term::Complex(Atom::Known(Value::Float(real)), Atom::Known(Value::Float(imaginary)))] => {
                Ok(match complex_math(function, f64::from(*real), f64::from(*imaginary)) {
                    Value::Complex(real, imaginary) => {
                        Term::Complex(Atom::Known(Value::Float(real)), Atom::Known(Value::Float(imaginary)))
                    }
                    other => Term::Atom(Atom::Known(other)),
                })
            }
            [Term::Complex(real, imaginary)] => Ok(self.complex_function(function, real, imaginary)),
            [Term::Atom(Atom::Known(Value::Float(a)))] => Ok(known(compute(function, f64::from(*a), 0.0))),
            [Term::Atom(Atom::Known(Value::Float(a))), Term::Atom(Atom::Known(Value::Float(b)))] => {
                Ok(known(compute(function, f64::from(*a), f64::from(*b))))
            }
            [Term::Atom(Atom::Known(Value::Double(a)))] => Ok(known(compute(function, *a, 0.0))),
            [Term::Atom(Atom::Known(Value::Double(a))), Term::Atom(Atom::Known(Value::Double(b)))] => {
                Ok(known(compute(function, *a, *b)))
            }
            [Term::Atom(a)] => Ok(self.rounded(self.function_of(function, self.made(a), None)?)),
            [Term::Atom(a), Term::Atom(b)] => Ok(self.rounded(self.function_of(function, self.made(a), Some(self.made(b)))?)),
            _ => Err("it gives a function values that are no numbers".into()),
        }
    }

    fn rounded(&self, value: ScalarValue) -> Term {
        Term::Atom(Atom::ScalarValue(self.b.convert(value, ScalarType::F32)))
    }

    /// Computes a function of doubles, or a function of floats in single precision.
    fn function_of(&self, function: Math, a: ScalarValue, second: Option<ScalarValue>) -> Result<ScalarValue, Reason> {
        let b = self.b;
        let number = |value: f64| b.constant(b.type_of(a), value);
        let y = second.unwrap_or(a);
        Ok(match function {
            Math::Sin => b.sin(a),
            Math::Cos => b.cos(a),
            Math::Tan => b.tan(a),
            Math::Asin => b.asin(a),
            Math::Acos => b.acos(a),
            Math::Atan => b.atan(a),
            Math::Atan2 => b.atan2(a, y),
            Math::Sinh => b.sinh(a),
            Math::Cosh => b.cosh(a),
            Math::Tanh => b.tanh(a),
            Math::Exp => b.exp(a),
            Math::Expm1 => b.expm1(a),
            Math::Log => b.log(a),
            Math::Log10 => b.log10(a),
            Math::Log1p => b.log1p(a),
            Math::Sqrt => b.sqrt(a),
            Math::Cbrt => b.cbrt(a),
            Math::Pow => b.pow(a, y),
            Math::Hypot => b.hypot(a, y),
            Math::Floor => b.floor(a),
            Math::Ceil => b.ceil(a),
            Math::Round => {
                let rounded = b.floor(b.add(a, 0.5));
                b.select(b.is_nan(a), number(0.0), rounded)
            }
            Math::Rint => b.round_even(a),
            Math::Abs => b.abs(a),
            Math::Arg => b.atan2(number(0.0), a),
            Math::Min | Math::Max => {
                let chosen = if function == Math::Min { b.min(a, y) } else { b.max(a, y) };
                b.select(b.or(b.is_nan(a), b.is_nan(y)), number(f64::NAN), chosen)
            }
            Math::Signum => {
                let sign = b.copysign(number(1.0), a);
                b.select(b.or(b.eq(a, 0.0), b.is_nan(a)), a, sign)
            }
            Math::ToRadians => b.mul(a, std::f64::consts::PI / 180.0),
            Math::ToDegrees => b.mul(a, 180.0 / std::f64::consts::PI),
        })
    }

    /// Computes the principal value of a function of a complex number.
    fn complex_function(&self, function: Math, real: &Atom, imaginary: &Atom) -> Term {
        let b = self.b;
        let wide = |atom: &Atom| b.convert(self.made(atom), ScalarType::F64);
        let (x, y) = (wide(real), wide(imaginary));
        let narrow = |value: ScalarValue| Atom::ScalarValue(b.convert(value, ScalarType::F32));
        let (real, imaginary) = match function {
            Math::Exp => (b.mul(b.exp(x), b.cos(y)), b.mul(b.exp(x), b.sin(y))),
            Math::Log => (b.log(b.hypot(x, y)), b.atan2(y, x)),
            Math::Sqrt => {
                let size = b.hypot(x, y);
                let half = |value: ScalarValue| b.sqrt(b.max(b.div(value, 2.0), 0.0));
                let imaginary = half(b.sub(size, x));
                (half(b.add(size, x)), b.select(b.lt(y, 0.0), b.neg(imaginary), imaginary))
            }
            Math::Sin => (b.mul(b.sin(x), b.cosh(y)), b.mul(b.cos(x), b.sinh(y))),
            Math::Cos => (b.mul(b.cos(x), b.cosh(y)), b.neg(b.mul(b.sin(x), b.sinh(y)))),
            Math::Arg => return Term::Atom(narrow(b.atan2(y, x))),
            _ => return Term::Atom(narrow(b.hypot(x, y))),
        };
        Term::Complex(narrow(real), narrow(imaginary))
    }
}

fn known(value: f64) -> Term {
    Term::Atom(Atom::Known(Value::Float(value as f32)))
}
