//! Primitives on scalars, and the dispatch of all primitives.

use super::fault::{Fault, Run};
use super::{Evaluation, Value, conditions};
use crate::core::Primitive;
use crate::primitives::Elementwise;
use crate::types::TypeId;
use crate::vcode::Type;
use crate::vcode::elementwise::ScalarResult;
use broadloom_random::Random;

impl Evaluation<'_> {
    /// Computes a primitive. `ty` and `result` are the types of the argument and the result.
    pub(crate) fn primitive(&mut self, primitive: Primitive, argument: Value, ty: TypeId, result: TypeId) -> Run<Value> {
        use Primitive as P;
        match primitive {
            P::Elementwise(operation) => {
                let (a, b) = argument.parts();
                self.elementwise(operation, a, b)
            }
            P::Negate => {
                let zero = if let Value::Int(_) = argument { Value::Int(0) } else { Value::Float(0.0) };
                self.elementwise(Elementwise::Subtract, &zero, &argument)
            }
            P::CharCode => Ok(Value::Int(i64::from(argument.char()))),
            P::CodeChar => conditions::character(argument.int()).map(Value::Char),
            P::IntToAny => {
                let (value, like) = argument.parts();
                Ok(if let Value::Float(_) = like { Value::Float(self.round(value.int() as f64)) } else { value.clone() })
            }
            P::FloatToAny => {
                let (value, like) = argument.parts();
                let nearest = self.widths().to_int(value.float() + 0.5);
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
            P::Scan(fold) => self.scan(fold, &argument, ty),
            P::Reduce(fold) => self.reduce(fold, &argument, ty),
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

    /// Computes an operation on scalars.
    #[inline]
    pub(super) fn elementwise(&self, operation: Elementwise, a: &Value, b: &Value) -> Run<Value> {
        let ((ty, a), (_, b)) = (bits(a), bits(b));
        match operation.of_scalars(ty, self.widths(), [a, b]) {
            Some(Ok(ScalarResult::Int(value))) => Ok(Value::Int(value)),
            Some(Ok(ScalarResult::Float(value))) => Ok(Value::Float(value)),
            Some(Ok(ScalarResult::Bool(value))) => Ok(Value::Bool(value)),
            Some(Err(message)) => Fault::at_run_time(message),
            None => Fault::at_run_time(format!("internal error: {operation:?} of other types; please report it")),
        }
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

/// Returns the type of a scalar, and its value as an int, the bits of a float, or 0 or 1.
#[inline]
fn bits(value: &Value) -> (Type, i64) {
    match value {
        Value::Float(value) => (Type::Float, value.to_bits() as i64),
        Value::Bool(value) => (Type::Bool, i64::from(*value)),
        Value::Char(value) => (Type::Int, i64::from(*value)),
        other => (Type::Int, other.int()),
    }
}
