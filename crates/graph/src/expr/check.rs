//! Checks of the inputs of operations: contexts, types, shapes and axes. Each error is created here and names
//! the operation.

use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Node};
use crate::expr::shape::{Axes, Shape};
use broadloom_scalar::{Literal, Type};
use broadloom_skeleton::Combine;

/// Returns the context of all inputs. No inputs, or inputs of two contexts, are an error.
pub(crate) fn same_context<'a>(operation: &str, inputs: &[&'a Node]) -> Result<&'a Context> {
    let Some((first, rest)) = inputs.split_first() else {
        return Err(Error::Plan { what: operation.to_owned(), reason: "an operation without inputs".into() });
    };
    for other in rest {
        if !other.context().is_same(first.context()) {
            return Err(Error::Devices {
                operation: operation.to_owned(),
                left: first.context().device().machine().id.clone(),
                right: other.context().device().machine().id.clone(),
            });
        }
    }
    Ok(first.context())
}

/// Refuses a result shape that has too many axes or elements.
pub(crate) fn possible(operation: &str, shape: &Shape) -> Result<()> {
    if shape.is_possible() {
        return Ok(());
    }
    let reason = format!("an array has at most {} axes and 2^40 elements", crate::expr::shape::MAX_RANK);
    Err(Error::Range { operation: operation.to_owned(), shape: shape.clone(), reason })
}

/// Refuses a value whose lanes do not match a type.
pub(crate) fn check_value(operation: &str, value: &[Literal], ty: Type) -> Result<()> {
    let given = value.first().and_then(|first| Type::vector(first.element(), value.len()));
    let is_uniform = value.iter().all(|lane| lane.element() == ty.element());
    if given == Some(ty) && is_uniform {
        return Ok(());
    }
    Err(Error::Types { operation: operation.to_owned(), left: ty, right: given.unwrap_or(Type::BOOL) })
}

/// Returns the common shape of index arrays after broadcasting.
pub(crate) fn index_shape(operation: &str, indices: &[&Node]) -> Result<Shape> {
    let mut shape = Shape::from([]);
    for index in indices {
        index.check_integers(operation)?;
        let refused = || Error::Shapes { operation: operation.to_owned(), left: shape.clone(), right: index.bound().clone() };
        shape = shape.broadcast(index.bound()).ok_or_else(refused)?;
    }
    Ok(shape)
}

impl Node {
    /// Returns the error of an operation that refuses this array, with a reason.
    pub(crate) fn refused(&self, operation: &str, reason: impl Into<String>) -> Error {
        Error::Range { operation: operation.to_owned(), shape: self.bound().clone(), reason: reason.into() }
    }

    /// Returns the error of an operation on this array and another whose shape does not fit.
    pub(crate) fn mismatch(&self, operation: &str, other: &Node) -> Error {
        Error::Shapes { operation: operation.to_owned(), left: self.bound().clone(), right: other.bound().clone() }
    }

    /// Refuses the element type unless the operation takes it.
    pub(crate) fn check_taken(&self, operation: &str, is_taken: bool) -> Result<()> {
        if is_taken {
            return Ok(());
        }
        Err(Error::Type { operation: operation.to_owned(), ty: self.ty() })
    }

    /// Refuses elements that are not single numbers.
    pub(crate) fn check_numbers(&self, operation: &str) -> Result<()> {
        self.check_taken(operation, self.ty().is_scalar() && self.ty() != Type::BOOL)
    }

    /// Refuses elements that are not single integers.
    pub(crate) fn check_integers(&self, operation: &str) -> Result<()> {
        self.check_taken(operation, self.ty().is_scalar() && self.ty().element().is_integer())
    }

    /// Refuses elements that this operator cannot combine.
    pub(crate) fn check_combined(&self, operation: &str, combine: &Combine) -> Result<()> {
        self.check_taken(operation, combine.takes(self.ty()))
    }

    /// Refuses elements of another type.
    pub(crate) fn check_type(&self, operation: &str, ty: Type) -> Result<()> {
        if self.ty() == ty {
            return Ok(());
        }
        Err(Error::Types { operation: operation.to_owned(), left: ty, right: self.ty() })
    }

    /// Refuses another array whose shape differs.
    pub(crate) fn check_shape_of(&self, operation: &str, other: &Node) -> Result<()> {
        if self.bound() == other.bound() { Ok(()) } else { Err(self.mismatch(operation, other)) }
    }

    /// Refuses an array that does not have exactly one axis.
    pub(crate) fn check_line(&self, operation: &str) -> Result<()> {
        if self.bound().rank() == 1 { Ok(()) } else { Err(self.refused(operation, "expected an array with one axis")) }
    }

    /// Returns the axes as a sorted list. An axis that does not exist or is named twice is an error.
    pub(crate) fn checked_axes(&self, operation: &str, axes: &[usize]) -> Result<Axes> {
        let mut sorted = Axes::new();
        for axis in axes {
            if *axis >= self.bound().rank() || sorted.contains(&(*axis as u8)) {
                return Err(Error::Axis { operation: operation.to_owned(), axis: *axis, shape: self.bound().clone() });
            }
            sorted.push(*axis as u8);
        }
        sorted.sort_unstable();
        Ok(sorted)
    }
}
