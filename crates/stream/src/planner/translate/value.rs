//! Values of a translated filter: the scalars of a value, each kind in its own storage.
//!
//! A value of any layout is divided into *leaves*: one for each scalar member inside structs and arrays, two
//! for a complex number. A leaf inside arrays is one local array over all of them. For example, `complex[8]`
//! is two arrays of eight floats. With known indices, all accesses become registers.

use super::reason::Reason;
use crate::language::core::{Layout, Type, Value};
use broadloom_scalar::{Array, Element, Literal, Memory, TableId, Value as ScalarValue, Variable};
use std::cell::Cell;
use std::rc::Rc;

/// A scalar: a constant of the program, or code that computes it.
#[derive(Clone, Debug)]
pub(super) enum Atom {
    /// A constant.
    Known(Value),
    /// A computed value.
    ScalarValue(ScalarValue),
}

/// The value of an expression.
#[derive(Clone, Debug)]
pub(super) enum Term {
    /// No value.
    Void,
    /// A scalar that is not complex.
    Atom(Atom),
    /// A complex number.
    Complex(Atom, Atom),
    /// An array or struct, by its storage.
    Ref(Ref),
}

/// A location in storage.
#[derive(Clone, Debug)]
pub(super) struct Ref {
    pub(super) layout: Layout,
    pub(super) store: Rc<Vec<Leaf>>,
    /// The first leaf.
    pub(super) first: usize,
    /// The index so far. The lengths of inner arrays multiply it.
    pub(super) at: Atom,
}

/// The storage of one leaf.
#[derive(Clone, Debug)]
pub(crate) enum Leaf {
    Variable(Variable),
    /// A local array.
    Array(Array, Element),
    /// Constants, which become a table if the index is not known.
    Constants(Rc<[Value]>, Cell<Option<TableId>>),
    /// Device memory from an index on. Truth values are stored as integers.
    Memory(Memory, i32, Element),
}

/// Returns the element type that a scalar is computed in.
pub(crate) fn element(ty: &Type) -> Result<Element, Reason> {
    Ok(match ty {
        Type::Boolean | Type::Bit => Element::Bool,
        Type::Int => Element::I32,
        Type::Float | Type::Complex => Element::F32,
        Type::Double => Element::F64,
        Type::Void | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => {
            return Err("it keeps a value that kernels do not have".into());
        }
    })
}

/// Calls a function with the element type and the number of scalars of each leaf.
pub(crate) fn leaves(layout: &Layout, times: u64, visit: &mut dyn FnMut(&Type, u64)) {
    match layout {
        Layout::Scalar(Type::Complex) => {
            visit(&Type::Float, times);
            visit(&Type::Float, times);
        }
        Layout::Scalar(ty) => visit(ty, times),
        Layout::Struct(_, members) => members.iter().for_each(|member| leaves(member, times, visit)),
        Layout::Array(element, length) => leaves(element, times.saturating_mul(u64::from(*length)), visit),
    }
}

/// Returns the number of leaves.
pub(super) fn leaf_count(layout: &Layout) -> usize {
    let mut count = 0;
    leaves(layout, 1, &mut |_, _| count += 1);
    count
}

/// Collects the scalars of a value, leaf by leaf.
pub(super) fn scatter(layout: &Layout, value: &Value, first: usize, into: &mut [Vec<Value>]) -> Option<()> {
    match (layout, value) {
        (Layout::Scalar(Type::Complex), Value::Complex(real, imaginary)) => {
            into[first].push(Value::Float(*real));
            into[first + 1].push(Value::Float(*imaginary));
        }
        (Layout::Scalar(_), value) => into[first].push(value.clone()),
        (Layout::Struct(_, members), Value::Struct(parts)) => {
            let mut first = first;
            for (member, part) in members.iter().zip(parts.iter()) {
                scatter(member, part, first, into)?;
                first += leaf_count(member);
            }
        }
        (Layout::Array(element, _), Value::Array(parts)) => {
            for part in parts {
                scatter(element, part, first, into)?;
            }
        }
        _ => return None,
    }
    Some(())
}

/// Returns the scalars of a value, leaf by leaf. Returns `None` if the value does not have the layout.
pub(crate) fn scalars(layout: &Layout, value: &Value) -> Option<Vec<Vec<Value>>> {
    let mut parts = vec![vec![]; leaf_count(layout)];
    scatter(layout, value, 0, &mut parts)?;
    Some(parts)
}

/// Returns a scalar of the program as a literal.
pub(super) fn literal(value: &Value) -> Option<Literal> {
    Some(match value {
        Value::Boolean(value) | Value::Bit(value) => Literal::from(*value),
        Value::Int(value) => Literal::from(*value),
        Value::Float(value) => Literal::from(*value),
        Value::Double(value) => Literal::from(*value),
        Value::Unset | Value::Complex(..) | Value::Array(_) | Value::Struct(_) | Value::Portal(_) | Value::Text(_) => {
            return None;
        }
    })
}
