//! Primitives on scalars, and the dispatch of all primitives.

use super::fault::{Fault, Run};
use super::{Machine, Value};
use crate::core::Primitive;
use crate::types::TypeId;
use broadloom_random::Random;
use std::cmp::Ordering;

impl Machine<'_> {
    /// Computes a primitive. `ty` and `result` are the types of the argument and the result.
    pub(crate) fn primitive(&mut self, primitive: Primitive, argument: Value, ty: TypeId, result: TypeId) -> Run<Value> {
        use Primitive as P;
        match primitive {
            P::Add | P::Subtract | P::Multiply | P::Divide => self.arithmetic(primitive, argument.parts()),
            P::Negate => {
                let zero = if let Value::Int(_) = argument { Value::Int(0) } else { Value::Float(0.0) };
                self.arithmetic(P::Subtract, (&zero, &argument))
            }
            P::Rem | P::LeftShift | P::RightShift => self.integer(primitive, argument.parts()),
            P::Equal | P::NotEqual | P::Less | P::Greater | P::LessEqual | P::GreaterEqual => {
                let (a, b) = argument.parts();
                Ok(Value::Bool(compare(primitive, a, b)))
            }
            P::And | P::Or | P::Xor => Ok(logic(primitive, argument.parts())),
            P::Not => Ok(match argument {
                Value::Bool(value) => Value::Bool(!value),
                other => Value::Int(!other.int()),
            }),
            P::Float => Ok(Value::Float(self.round(argument.int() as f64))),
            P::Ceil => Ok(Value::Int(self.to_int(argument.float().ceil()))),
            P::Floor => Ok(Value::Int(self.to_int(argument.float().floor()))),
            P::Trunc => Ok(Value::Int(self.to_int(argument.float()))),
            P::Btoi => Ok(Value::Int(i64::from(argument.bool()))),
            P::CharCode => Ok(Value::Int(i64::from(argument.char()))),
            P::CodeChar => match u8::try_from(argument.int()) {
                Ok(code) => Ok(Value::Char(code)),
                Err(_) => Fault::at_run_time(format!("{} is not the code of a character: codes are 0 to 255", argument.int())),
            },
            P::Sqrt | P::Ln | P::Exp | P::Sin | P::Cos | P::Tan | P::Asin | P::Acos | P::Atan | P::Sinh | P::Cosh | P::Tanh => {
                self.elementary(primitive, argument.float())
            }
            P::IntToAny => {
                let (value, like) = argument.parts();
                Ok(if let Value::Float(_) = like { Value::Float(self.round(value.int() as f64)) } else { value.clone() })
            }
            P::FloatToAny => {
                let (value, like) = argument.parts();
                let nearest = self.to_int(value.float() + 0.5);
                Ok(if let Value::Int(_) = like { Value::Int(nearest) } else { value.clone() })
            }
            P::AsFloat => match argument {
                Value::Int(value) => Ok(Value::Float(self.round(value as f64))),
                other => Ok(other),
            },
            P::Rand => self.random(argument),
            P::RandSeed => {
                self.seed(argument.int());
                Ok(Value::Bool(true))
            }
            P::Eql | P::Identity | P::HashCode | P::Show | P::Digits | P::Decimal | P::Require | P::Fail => {
                self.generic(primitive, argument)
            }
            P::Length
            | P::Dist
            | P::Elt
            | P::Rep
            | P::Iseq
            | P::Permute
            | P::Get
            | P::Put
            | P::Rank
            | P::RankDown
            | P::Pack
            | P::Append
            | P::Flatten
            | P::Partition
            | P::Subseq
            | P::Unpack => self.sequence(primitive, argument, ty),
            P::PlusScan | P::MultScan | P::MaxScan | P::MinScan | P::OrScan | P::AndScan | P::XorScan => {
                self.scan(primitive, argument, ty)
            }
            P::Sum | P::Product | P::MaxVal | P::MinVal | P::Any | P::All | P::Parity => self.reduce(primitive, argument, ty),
            P::PrintString
            | P::Open
            | P::Close
            | P::Write
            | P::Read
            | P::Spawn
            | P::EnvironmentVariable
            | P::StartTimer
            | P::StopTimer => self.outside(primitive, argument),
            P::WriteObject | P::ReadObject | P::ReadNumbers => self.object(primitive, argument, result),
            P::ReadTable | P::ReadArray | P::DataText => self.data(primitive, &argument, ty, result),
        }
    }

    pub(super) fn arithmetic(&mut self, primitive: Primitive, operands: (&Value, &Value)) -> Run<Value> {
        if let (Value::Int(a), Value::Int(b)) = operands {
            let value = match primitive {
                Primitive::Add => a.wrapping_add(*b),
                Primitive::Subtract => a.wrapping_sub(*b),
                Primitive::Multiply => a.wrapping_mul(*b),
                _ if *b == 0 => return Fault::at_run_time("division by zero"),
                _ => a.wrapping_div(*b),
            };
            return Ok(Value::Int(self.wrap(value)));
        }
        let (a, b) = (operands.0.float(), operands.1.float());
        let value = match primitive {
            Primitive::Add => a + b,
            Primitive::Subtract => a - b,
            Primitive::Multiply => a * b,
            _ if b == 0.0 => return Fault::at_run_time("division by zero"),
            _ => a / b,
        };
        Ok(Value::Float(self.round(value)))
    }

    fn integer(&mut self, primitive: Primitive, operands: (&Value, &Value)) -> Run<Value> {
        let (a, b) = (operands.0.int(), operands.1.int());
        let wide = self.state.options.widths.wide_int;
        Ok(Value::Int(match primitive {
            Primitive::Rem if b == 0 => return Fault::at_run_time("division by zero"),
            Primitive::Rem => a.wrapping_rem(b),
            // A shift takes the low bits of its count, as the machine does.
            Primitive::LeftShift if wide => a.wrapping_shl(b as u32),
            Primitive::LeftShift => i64::from((a as i32).wrapping_shl(b as u32)),
            _ if wide => a.wrapping_shr(b as u32),
            _ => i64::from((a as i32).wrapping_shr(b as u32)),
        }))
    }

    fn elementary(&mut self, primitive: Primitive, x: f64) -> Run<Value> {
        let value = match primitive {
            Primitive::Sqrt if x < 0.0 => return Fault::at_run_time("square root of a negative number"),
            Primitive::Ln if x < 0.0 => return Fault::at_run_time("logarithm of a negative number"),
            Primitive::Sqrt => x.sqrt(),
            Primitive::Ln => x.ln(),
            Primitive::Exp => x.exp(),
            Primitive::Sin => x.sin(),
            Primitive::Cos => x.cos(),
            Primitive::Tan => x.tan(),
            Primitive::Asin => x.asin(),
            Primitive::Acos => x.acos(),
            Primitive::Atan => x.atan(),
            Primitive::Sinh => x.sinh(),
            Primitive::Cosh => x.cosh(),
            _ => x.tanh(),
        };
        Ok(Value::Float(self.round(value)))
    }

    /// Sets the seed of random numbers.
    pub(crate) fn seed(&mut self, seed: i64) {
        self.state.random = Random::new(seed as u64);
    }

    /// Returns a random int in [0, bound).
    pub(crate) fn random_int(&mut self, bound: i64) -> Run<i64> {
        self.random(Value::Int(bound)).map(|value| value.int())
    }

    /// Returns a number in [0, bound). Numbers depend only on the seed.
    fn random(&mut self, bound: Value) -> Run<Value> {
        let bits = self.state.random.bits();
        match bound {
            Value::Int(bound) if bound > 0 => Ok(Value::Int((bits % bound as u64) as i64)),
            Value::Float(bound) if bound > 0.0 => {
                let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
                let value = self.round(unit * bound);
                Ok(Value::Float(if value < bound { value } else { 0.0 }))
            }
            _ => Fault::at_run_time("`rand` needs a positive number"),
        }
    }
}

/// Compares two scalars; a NaN is unequal to everything and neither less nor greater.
pub(super) fn compare(primitive: Primitive, a: &Value, b: &Value) -> bool {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Char(a), Value::Char(b)) => Some(a.cmp(b)),
        _ => None,
    };
    match primitive {
        Primitive::Equal => order == Some(Ordering::Equal),
        Primitive::NotEqual => order != Some(Ordering::Equal),
        Primitive::Less => order == Some(Ordering::Less),
        Primitive::Greater => order == Some(Ordering::Greater),
        Primitive::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

pub(super) fn logic(primitive: Primitive, operands: (&Value, &Value)) -> Value {
    match operands {
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(match primitive {
            Primitive::And => a & b,
            Primitive::Or => a | b,
            _ => a ^ b,
        }),
        (a, b) => Value::Int(match primitive {
            Primitive::And => a.int() & b.int(),
            Primitive::Or => a.int() | b.int(),
            _ => a.int() ^ b.int(),
        }),
    }
}
