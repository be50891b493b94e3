//! Evaluation of scalars. Every expression has its type, so numbers and truth values are computed unwrapped.
//! [`Code::eval_any`] evaluates all other types.

use super::arithmetic;
use super::code::{Code, World, refused};
use super::stop::Stop;
use crate::language::codes;
use crate::language::core::{Access, Binary, Expr, ExprKind, Place, Type, Value};
use broadloom_diag::Span;

#[cold]
fn needed(what: &str, span: Span) -> Stop {
    Stop::error(codes::RUN_TIME, format!("{what} is needed here"), span)
}

/// Defines the function that evaluates expressions of one number type.
macro_rules! number {
    ($(#[$attribute:meta])* $name:ident, $variant:ident, $ty:ty, $what:literal, $negate:expr, $from:ident => $($convert:tt)+) => {
        $(#[$attribute])*
        pub(crate) fn $name(&mut self, expr: &'a Expr) -> Result<$ty, Stop> {
            let value = match &expr.kind {
                ExprKind::Const(Value::$variant(value)) => return Ok(*value),
                ExprKind::Read(place) if !is_part_of_complex(place) => match self.look(place)? {
                    Value::$variant(value) => return Ok(*value),
                    _ => return Err(needed($what, expr.span)),
                },
                ExprKind::Binary(operator, Type::$variant, left, right) => {
                    let left = self.$name(left)?;
                    let right = self.$name(right)?;
                    return arithmetic::$name(*operator, left, right).map_err(|message| refused(*operator, message, expr.span));
                }
                ExprKind::Negate(inner) => return Ok($negate(self.$name(inner)?)),
                ExprKind::Choose(condition, yes, no) => {
                    let chosen = if self.truth(condition)? { yes } else { no };
                    return self.$name(chosen);
                }
                ExprKind::Convert(inner) => match inner.ty {
                    Type::Int => {
                        let $from = self.int(inner)?;
                        return Ok($($convert)+);
                    }
                    Type::Float => {
                        let $from = self.float(inner)?;
                        return Ok($($convert)+);
                    }
                    Type::Double => {
                        let $from = self.double(inner)?;
                        return Ok($($convert)+);
                    }
                    _ => self.eval_any(expr)?,
                },
                ExprKind::Math(function, args) => match &args[..] {
                    [a] if a.ty == Type::Double => {
                        let a = self.double(a)?;
                        Value::Float(arithmetic::math(*function, a, 0.0) as f32)
                    }
                    [a, b] if a.ty == Type::Double && b.ty == Type::Double => {
                        let a = self.double(a)?;
                        let b = self.double(b)?;
                        Value::Float(arithmetic::math(*function, a, b) as f32)
                    }
                    _ => self.eval_any(expr)?,
                },
                _ => self.eval_any(expr)?,
            };
            match value {
                Value::$variant(value) => Ok(value),
                _ => Err(needed($what, expr.span)),
            }
        }
    };
}

impl<'a, W: World> Code<'a, W> {
    /// Evaluates an expression.
    pub(crate) fn eval(&mut self, expr: &'a Expr) -> Result<Value, Stop> {
        match expr.ty {
            Type::Int => self.int(expr).map(Value::Int),
            Type::Float => self.float(expr).map(Value::Float),
            Type::Double => self.double(expr).map(Value::Double),
            Type::Boolean => self.truth(expr).map(Value::Boolean),
            _ => self.eval_any(expr),
        }
    }

    number!(
        /// Evaluates an integer.
        int, Int, i32, "an integer", i32::wrapping_neg, from => from as i32
    );
    number!(
        /// Evaluates a float.
        float, Float, f32, "a float", |value: f32| -value, from => from as f32
    );
    number!(
        /// Evaluates a double.
        double, Double, f64, "a double", |value: f64| -value, from => from as f64
    );

    /// Evaluates a truth value.
    pub(super) fn truth(&mut self, expr: &'a Expr) -> Result<bool, Stop> {
        match &expr.kind {
            ExprKind::Binary(operator, Type::Int, left, right) => {
                let (left, right) = (self.int(left)?, self.int(right)?);
                arithmetic::compare(*operator, left, right)
            }
            ExprKind::Binary(operator, Type::Float, left, right) => {
                let (left, right) = (self.float(left)?, self.float(right)?);
                arithmetic::compare(*operator, left, right)
            }
            ExprKind::Binary(operator, Type::Double, left, right) => {
                let (left, right) = (self.double(left)?, self.double(right)?);
                arithmetic::compare(*operator, left, right)
            }
            ExprKind::Read(place) => match self.look(place)? {
                Value::Boolean(value) => Some(*value),
                _ => None,
            },
            ExprKind::And(left, right) => Some(self.truth(left)? && self.truth(right)?),
            ExprKind::Or(left, right) => Some(self.truth(left)? || self.truth(right)?),
            ExprKind::Not(inner) => Some(!self.truth(inner)?),
            _ => match self.eval_any(expr)? {
                Value::Boolean(value) => Some(value),
                _ => None,
            },
        }
        .ok_or_else(|| needed("a truth value", expr.span))
    }

    /// Stores into a place, through an operator if one is given.
    pub(super) fn assign(&mut self, place: &'a Place, operator: Option<Binary>, value: &'a Expr, span: Span) -> Result<(), Stop> {
        /// Stores a number of one type.
        macro_rules! store {
            ($name:ident, $variant:ident, $what:literal) => {{
                let path = self.resolve(place)?;
                let new = match operator {
                    None => self.$name(value)?,
                    Some(operator) => {
                        let Value::$variant(old) = *self.find(place, &place.path, &path)? else {
                            return Err(needed($what, span));
                        };
                        let value = self.$name(value)?;
                        arithmetic::$name(operator, old, value).map_err(|message| refused(operator, message, span))?
                    }
                };
                *self.slot(place, &place.path, &path)? = Value::$variant(new);
                Ok(())
            }};
        }
        match (&place.ty, &value.ty) {
            _ if is_part_of_complex(place) => self.assign_any(place, operator, value, span),
            (Type::Int, Type::Int) => store!(int, Int, "an integer"),
            (Type::Float, Type::Float) => store!(float, Float, "a float"),
            (Type::Double, Type::Double) => store!(double, Double, "a double"),
            _ => self.assign_any(place, operator, value, span),
        }
    }
}

fn is_part_of_complex(place: &Place) -> bool {
    matches!(place.path.last(), Some(Access::Real | Access::Imaginary))
}
