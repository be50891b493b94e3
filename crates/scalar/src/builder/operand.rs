//! Operands: the arguments of the builder's methods.

use super::{Builder, Value};
use crate::op::Op;
use crate::types::{Literal, Type};
use half::f16;

/// A value, or a number that takes the required type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A result of earlier code.
    Value(Value),
    /// An integer. It becomes any type that can represent it, including floats.
    Integer(i128),
    /// A number. It becomes any float type, or an integer type that can represent it.
    Float(f64),
    /// A truth value that is known now.
    Bool(bool),
}

macro_rules! operands {
    ($($rust:ty, $value:ident => $operand:expr;)*) => {
        $(impl From<$rust> for Operand {
            fn from($value: $rust) -> Operand {
                $operand
            }
        })*
    };
}

operands! {
    Value, value => Operand::Value(value);
    &Value, value => Operand::Value(*value);
    bool, value => Operand::Bool(value);
    i8, value => Operand::Integer(value.into());
    i16, value => Operand::Integer(value.into());
    i32, value => Operand::Integer(value.into());
    i64, value => Operand::Integer(value.into());
    u8, value => Operand::Integer(value.into());
    u16, value => Operand::Integer(value.into());
    u32, value => Operand::Integer(value.into());
    u64, value => Operand::Integer(value.into());
    usize, value => Operand::Integer(value as i128);
    f16, value => Operand::Float(value.to_f64());
    f32, value => Operand::Float(value.into());
    f64, value => Operand::Float(value);
}

impl Operand {
    /// Returns the number as a literal of a type, if the type can represent it.
    fn literal(self, ty: Type) -> Option<Literal> {
        let element = ty.element();
        let integer = |value: i128| match element.range() {
            Some((low, high)) => {
                (element.is_integer() && (low..=high).contains(&value)).then(|| Literal::from_i128(element, value))
            }
            None => Some(Literal::from_i128(element, value)),
        };
        match self {
            Operand::Value(_) => None,
            Operand::Integer(value) => integer(value),
            Operand::Float(value) => match Literal::from_f64(element, value) {
                Some(literal) => Some(literal),
                None if value.fract() == 0.0 && value.abs() < 2f64.powi(64) => integer(value as i128),
                None => None,
            },
            Operand::Bool(value) => (!element.is_float() && !element.is_integer()).then(|| value.into()),
        }
    }
}

impl Builder {
    /// Returns the operand as a value of this type. A plain value is broadcast to all lanes of a vector.
    /// Returns `None` after a mistake.
    #[track_caller]
    pub(crate) fn resolve(&self, operand: Operand, ty: Type) -> Option<Value> {
        match operand {
            Operand::Value(value) => {
                let value = self.checked(value)?;
                let own = self.type_of(value);
                if own == ty {
                    Some(value)
                } else if own.is_scalar() && own.element() == ty.element() {
                    Some(self.splat(value, ty.lanes()))
                } else {
                    self.fail(format!("expected `{ty}`, found `{own}`"));
                    None
                }
            }
            Operand::Integer(_) | Operand::Float(_) | Operand::Bool(_) => match operand.literal(ty) {
                Some(literal) => {
                    let value = self.intern(Op::Literal(literal), Type::of(ty.element()));
                    Some(self.splat(value, ty.lanes()))
                }
                None => {
                    let shown = match operand {
                        Operand::Integer(value) => value.to_string(),
                        Operand::Float(value) => format!("{value:?}"),
                        Operand::Bool(value) => value.to_string(),
                        Operand::Value(_) => String::new(),
                    };
                    self.fail(format!("`{shown}` is no `{ty}`"));
                    None
                }
            },
        }
    }

    /// Returns two operands of one type. At least one of them must have a type.
    #[track_caller]
    pub(crate) fn resolve_pair(&self, a: Operand, b: Operand) -> Option<(Value, Value, Type)> {
        let ty = match (a, b) {
            (Operand::Value(a), Operand::Value(b)) => {
                let (ta, tb) = (self.type_of(self.checked(a)?), self.type_of(self.checked(b)?));
                if tb.lanes() > ta.lanes() { tb } else { ta }
            }
            (Operand::Value(value), _) | (_, Operand::Value(value)) => self.type_of(self.checked(value)?),
            (_, _) => {
                self.fail("two numbers do not say of which type they are; use `literal` or `constant`");
                return None;
            }
        };
        Some((self.resolve(a, ty)?, self.resolve(b, ty)?, ty))
    }

    /// Returns an integer of one lane: a value of any integer type, or a number as the first of `u32`, `i32`
    /// and `i64` that can represent it.
    #[track_caller]
    pub(crate) fn resolve_index(&self, operand: Operand) -> Option<Value> {
        match operand {
            Operand::Value(value) => {
                let value = self.checked(value)?;
                let ty = self.type_of(value);
                if ty.is_scalar() && ty.element().is_integer() {
                    return Some(value);
                }
                self.fail(format!("an index is an integer, not `{ty}`"));
                None
            }
            Operand::Integer(value) => {
                let ty = match value {
                    0..=0xffff_ffff => Type::U32,
                    -0x8000_0000..0 => Type::I32,
                    _ => Type::I64,
                };
                self.resolve(operand, ty)
            }
            Operand::Float(_) | Operand::Bool(_) => {
                self.fail("an index is an integer");
                None
            }
        }
    }
}
