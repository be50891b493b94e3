//! Values of programs, and types with all lengths known.

use super::{Struct, StructId, Type};
use cranelift_entity::PrimaryMap;
use std::sync::Arc;

/// The value of an expression while a program runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A local that was declared and not yet set.
    Unset,
    /// A truth value.
    Boolean(bool),
    /// 0 or 1.
    Bit(bool),
    /// An integer.
    Int(i32),
    /// A number of 32 bits with a fraction.
    Float(f32),
    /// A number of 64 bits with a fraction.
    Double(f64),
    /// A complex number: real and imaginary part.
    Complex(f32, f32),
    /// Elements in order.
    Array(Box<[Value]>),
    /// Members in the declared order.
    Struct(Box<[Value]>),
    /// A portal, by its number.
    Portal(u32),
    /// A string.
    Text(Arc<str>),
}

impl Value {
    /// Returns the number of scalars in the value, plus one for each array and struct.
    pub fn cells(&self) -> u64 {
        match self {
            Value::Array(parts) | Value::Struct(parts) => 1 + parts.iter().map(Value::cells).sum::<u64>(),
            Value::Unset
            | Value::Boolean(_)
            | Value::Bit(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Double(_)
            | Value::Complex(..)
            | Value::Portal(_)
            | Value::Text(_) => 1,
        }
    }
}

/// Appends words that identify a value. They are equal for values that are bitwise equal.
pub(crate) fn identify(value: &Value, words: &mut Vec<u32>) {
    match value {
        Value::Unset => words.push(0),
        Value::Boolean(value) => words.extend([1, u32::from(*value)]),
        Value::Bit(value) => words.extend([2, u32::from(*value)]),
        Value::Int(value) => words.extend([3, *value as u32]),
        Value::Float(value) => words.extend([4, value.to_bits()]),
        Value::Double(value) => words.extend([5, value.to_bits() as u32, (value.to_bits() >> 32) as u32]),
        Value::Complex(real, imaginary) => words.extend([6, real.to_bits(), imaginary.to_bits()]),
        Value::Array(parts) => {
            words.extend([7, parts.len() as u32]);
            parts.iter().for_each(|part| identify(part, words));
        }
        Value::Struct(parts) => {
            words.extend([8, parts.len() as u32]);
            parts.iter().for_each(|part| identify(part, words));
        }
        Value::Portal(portal) => words.extend([9, *portal]),
        Value::Text(text) => {
            words.extend([10, text.len() as u32]);
            words.extend(text.bytes().map(u32::from));
        }
    }
}

/// A type with all lengths known: the layout of a tape's items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One number or truth value.
    Scalar(Type),
    /// A struct and the layouts of its members.
    Struct(StructId, Arc<[Layout]>),
    /// Elements of one layout.
    Array(Arc<Layout>, u32),
}

impl Layout {
    /// Returns the value that consists of zeros.
    pub fn zero(&self) -> Value {
        match self {
            Layout::Scalar(Type::Boolean) => Value::Boolean(false),
            Layout::Scalar(Type::Bit) => Value::Bit(false),
            Layout::Scalar(Type::Float) => Value::Float(0.0),
            Layout::Scalar(Type::Double) => Value::Double(0.0),
            Layout::Scalar(Type::Complex) => Value::Complex(0.0, 0.0),
            Layout::Scalar(Type::Int) => Value::Int(0),
            Layout::Scalar(_) => Value::Unset,
            Layout::Struct(_, members) => Value::Struct(members.iter().map(Layout::zero).collect()),
            Layout::Array(element, length) => {
                let zero = element.zero();
                Value::Array(vec![zero; *length as usize].into())
            }
        }
    }

    /// Returns the layout of a value. Returns `None` if the value is ragged or not of the type.
    pub fn of(value: &Value, ty: &Type, structs: &PrimaryMap<StructId, Struct>) -> Option<Layout> {
        Some(match (value, ty) {
            (Value::Array(parts), Type::Array(element)) => {
                let element = Layout::of(parts.first()?, element, structs)?;
                let uniform = parts.iter().all(|part| element.holds(part));
                uniform.then(|| Layout::Array(element.into(), parts.len() as u32))?
            }
            (Value::Struct(parts), Type::Struct(id)) => {
                let members = structs.get(*id)?.members.iter().zip(parts.iter());
                let members = members.map(|((_, declared), part)| Layout::of(part, &declared.ty, structs));
                Layout::Struct(*id, members.collect::<Option<Vec<_>>>()?.into())
            }
            (Value::Struct(_) | Value::Array(_), _) => return None,
            (_, ty) => Layout::Scalar(ty.clone()),
        })
    }

    /// Returns whether a value has this layout.
    pub fn holds(&self, value: &Value) -> bool {
        match (value, self) {
            (Value::Array(parts), Layout::Array(element, length)) => {
                parts.len() == *length as usize && parts.iter().all(|part| element.holds(part))
            }
            (Value::Struct(parts), Layout::Struct(_, members)) => {
                parts.len() == members.len() && parts.iter().zip(members.iter()).all(|(part, member)| member.holds(part))
            }
            (Value::Boolean(_), Layout::Scalar(Type::Boolean))
            | (Value::Bit(_), Layout::Scalar(Type::Bit))
            | (Value::Int(_), Layout::Scalar(Type::Int))
            | (Value::Float(_), Layout::Scalar(Type::Float))
            | (Value::Double(_), Layout::Scalar(Type::Double))
            | (Value::Complex(..), Layout::Scalar(Type::Complex)) => true,
            _ => false,
        }
    }

    /// Returns the number of scalars, saturating.
    pub fn cells(&self) -> u64 {
        match self {
            Layout::Scalar(_) => 1,
            Layout::Struct(_, members) => members.iter().fold(1, |sum: u64, member| sum.saturating_add(member.cells())),
            Layout::Array(element, length) => element.cells().saturating_mul(u64::from(*length)).saturating_add(1),
        }
    }

    /// Returns the type without lengths.
    pub fn ty(&self) -> Type {
        match self {
            Layout::Scalar(ty) => ty.clone(),
            Layout::Struct(id, _) => Type::Struct(*id),
            Layout::Array(element, _) => Type::Array(Arc::new(element.ty())),
        }
    }

    /// Returns the layout in source syntax.
    pub fn show(&self, structs: &PrimaryMap<StructId, Struct>) -> String {
        let mut lengths = String::new();
        let mut inner = self;
        while let Layout::Array(element, length) = inner {
            lengths += &format!("[{length}]");
            inner = element;
        }
        inner.ty().show(structs) + &lengths
    }
}
