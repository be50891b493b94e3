//! Parts of values.

use super::stop::Stop;
use crate::language::codes;
use crate::language::core::{Access, Value};
use broadloom_diag::Span;

/// Returns an element of an array. As an unsigned number, a negative index is beyond the end of every array.
pub(super) fn element(parts: &[Value], index: i32, span: Span) -> Result<&Value, Stop> {
    parts.get(index as u32 as usize).ok_or_else(|| outside(index, parts.len(), span))
}

/// Returns a part of a value that is not a variable.
pub(super) fn part(value: &Value, access: &Access, index: i32, span: Span) -> Result<Value, Stop> {
    match (value, access) {
        (Value::Complex(real, _), Access::Real) => Ok(Value::Float(*real)),
        (Value::Complex(_, imaginary), Access::Imaginary) => Ok(Value::Float(*imaginary)),
        (Value::Struct(parts), Access::Member(member)) => Ok(parts[*member].clone()),
        (Value::Array(parts), Access::Index(_)) => element(parts, index, span).cloned(),
        _ => Err(Stop::error(codes::RUN_TIME, "the value has no such part", span)),
    }
}

#[cold]
pub(super) fn outside(index: i32, length: usize, span: Span) -> Stop {
    Stop::error(codes::RUN_TIME, format!("the index {index} is outside of the array of length {length}"), span)
        .help("indices run from 0 to the length less 1")
}
