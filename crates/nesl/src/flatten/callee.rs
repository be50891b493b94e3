//! Code that can be called.

use crate::core::{Body, DefId, ExprId, LambdaId, LocalId};
use crate::types::TypeId;
use std::rc::Rc;

/// Code that can be called, with the types that replace its type variables.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Callee {
    Definition(DefId, Vec<TypeId>),
    Lambda(LambdaId, Vec<TypeId>),
    /// The steps of an apply-to-each whose elements are computed one after the other.
    Serial(usize),
    /// An expression that has a loop form, flattened.
    Elements(usize),
}

/// Function, independent of its types.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Definition(DefId),
    Lambda(LambdaId),
}

/// An apply-to-each of a body.
#[derive(Clone)]
pub(super) struct Steps {
    pub(super) body: Rc<Body>,
    pub(super) instance: Vec<TypeId>,
    pub(super) each: ExprId,
    /// Variables of the body that are bound outside it.
    pub(super) free: Vec<LocalId>,
}

/// An expression that has a loop form.
#[derive(Clone)]
pub(super) struct Elements {
    pub(super) body: Rc<Body>,
    pub(super) instance: Vec<TypeId>,
    pub(super) expr: ExprId,
    /// Variables of the body that are bound outside it. They are the first operands.
    pub(super) free: Vec<LocalId>,
    /// Types of the operands.
    pub(super) types: Vec<TypeId>,
}
