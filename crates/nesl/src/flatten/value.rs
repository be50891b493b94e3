//! Values as vectors.
//!
//! A value of a context of `n` elements represents `n` values of its type. A dense sequence is a segment
//! descriptor with `n` lengths, and its elements as a value of another context, the pool. A virtual sequence
//! has `n` starts and `n` lengths of parts of a pool, which may overlap. A free variable enters an
//! apply-to-each as a virtual sequence, so its elements are shared and not replicated. They are copied only
//! if an operation needs them to be contiguous.

use crate::flat::{SpaceId, VarId};
use crate::vcode::{Constant, Type};
use std::rc::Rc;

/// Context of code, the elements it is executed for: a segment descriptor with one segment, and their index
/// space.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) segment: VarId,
    pub(super) space: SpaceId,
    /// True if there is exactly one element.
    pub(super) single: bool,
}

/// A value for every element of a context. Values of datatypes are their contents.
#[derive(Clone)]
pub(super) enum Val {
    Base(VarId),
    Pair(Rc<(Val, Val)>),
    Seq(Rc<Sequence>),
    /// The captured variables of a function; the type identifies the function.
    Function(Rc<Vec<Val>>),
}

#[derive(Clone)]
pub(super) struct Sequence {
    pub(super) form: Form,
    pub(super) elements: Val,
    pub(super) pool: Context,
}

#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Contiguous elements: a segment descriptor.
    Dense(VarId),
    /// Parts of the pool: starts and lengths.
    Virtual(VarId, VarId),
}

/// Part of a new context: a value, its context, and the index of each of its elements in the new one.
pub(super) type Part = (Val, Context, VarId);

impl Val {
    pub(super) fn pair(first: Val, rest: Val) -> Val {
        Val::Pair(Rc::new((first, rest)))
    }

    pub(super) fn seq(form: Form, elements: Val, pool: Context) -> Val {
        Val::Seq(Rc::new(Sequence { form, elements, pool }))
    }

    /// Lists the vectors. Virtual sequences have starts, lengths and the segment of the pool.
    pub(super) fn vectors(&self, out: &mut Vec<VarId>) {
        match self {
            Val::Base(var) => out.push(*var),
            Val::Pair(parts) => {
                parts.0.vectors(out);
                parts.1.vectors(out);
            }
            Val::Seq(seq) => {
                match seq.form {
                    Form::Dense(segments) => out.push(segments),
                    Form::Virtual(starts, lengths) => out.extend([starts, lengths, seq.pool.segment]),
                }
                seq.elements.vectors(out);
            }
            Val::Function(captured) => captured.iter().for_each(|value| value.vectors(out)),
        }
    }

    /// Lists for each outermost sequence whether it is virtual.
    pub(super) fn forms(&self, out: &mut Vec<bool>) {
        match self {
            Val::Base(_) => {}
            Val::Pair(parts) => {
                parts.0.forms(out);
                parts.1.forms(out);
            }
            Val::Seq(seq) => out.push(matches!(seq.form, Form::Virtual(..))),
            Val::Function(captured) => captured.iter().for_each(|value| value.forms(out)),
        }
    }

    /// Tells whether it consists of scalars.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Val::Base(_) => true,
            Val::Pair(parts) => parts.0.is_scalar() && parts.1.is_scalar(),
            Val::Seq(_) | Val::Function(_) => false,
        }
    }

    pub(super) fn same_vectors(&self, other: &Val) -> bool {
        let (mut a, mut b) = (vec![], vec![]);
        self.vectors(&mut a);
        other.vectors(&mut b);
        a == b
    }
}

/// Returns the neutral scalar of a type of vectors.
pub(super) fn zero(ty: Type) -> Constant {
    match ty {
        Type::Int | Type::Char => Constant::Int([0].into()),
        Type::Float => Constant::Float([0.0].into()),
        Type::Bool => Constant::Bool([false].into()),
        Type::Segdes => Constant::Segdes([0].into()),
    }
}
