//! Operations of nodes.

use crate::expr::amount::Amount;
use crate::expr::elementwise::Elementwise;
use crate::expr::operation::OperationResult;
use crate::expr::tracing::Symbol;
use crate::expr::view::View;
use broadloom_scalar::{Lanes, Literal, Type};
use broadloom_skeleton::Rule;
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::{AtomicU64, Ordering};

/// Element to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extreme {
    /// Minimum; NaN counts as greater than all numbers.
    Least,
    /// Maximum; NaN counts as less than all numbers.
    Greatest,
}

impl Extreme {
    /// Returns the word for it in the text of a graph.
    pub const fn name(self) -> &'static str {
        match self {
            Extreme::Least => "argmin",
            Extreme::Greatest => "argmax",
        }
    }
}

/// Value that is given when a plan runs. Two scalars are equal only if one is a clone of the other, whatever
/// their values. The structure of an expression therefore does not depend on the values of its scalars.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Unique number of the scalar and its clones.
    number: u64,
    lanes: Lanes,
    symbol: Option<Box<Symbol>>,
    /// The amount, if the value depends on the extents of a function's inputs.
    amount: Option<Box<Amount>>,
}

impl Scalar {
    /// Creates a scalar with this value.
    pub fn new(value: &[Literal]) -> Scalar {
        Scalar::of(Lanes::from_slice(value), None, None)
    }

    /// Creates an `i64` scalar from an amount, which may depend on the extents of a function's inputs.
    pub(crate) fn counting(amount: &Amount) -> Scalar {
        let traced = amount.is_traced().then(|| Box::new(amount.clone()));
        Scalar::of(smallvec![Literal::from(amount.value())], None, traced)
    }

    /// Creates a scalar whose value comes when a function is called.
    pub(crate) fn symbolic(ty: Type, symbol: Symbol) -> Scalar {
        Scalar::of(zeros(ty), Some(Box::new(symbol)), None)
    }

    fn of(lanes: Lanes, symbol: Option<Box<Symbol>>, amount: Option<Box<Amount>>) -> Scalar {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Scalar { number: NEXT.fetch_add(1, Ordering::Relaxed), lanes, symbol, amount }
    }

    /// Returns the value, or zero if it has none yet. During tracing, the trace becomes valid only for the
    /// value of an amount.
    pub fn lanes(&self) -> &Lanes {
        if let Some(amount) = &self.amount {
            amount.get();
        }
        &self.lanes
    }

    /// Returns the value in this trace.
    pub(crate) fn traced_lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Returns the amount, if the value depends on the extents of a function's inputs.
    pub(crate) fn amount(&self) -> Option<&Amount> {
        self.amount.as_deref()
    }

    /// Returns the argument of a function that it represents, if any.
    pub(crate) fn symbol(&self) -> Option<&Symbol> {
        self.symbol.as_deref()
    }

    /// Returns a number that no other scalar has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.number == other.number
    }
}

impl Eq for Scalar {}

/// The operation that computes a node from its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// One value at every position. It is a parameter of the compiled code, not a part of it.
    Fill(Scalar),
    /// Elementwise operation. All inputs have the shape of the result.
    Elementwise(Elementwise),
    /// View of the one input.
    View(Box<View>),
    /// The elements of the one input, in order, in another shape.
    Reshape,
    /// Position along an axis, as an integer.
    Position(u8),
    /// Gather from the first input at the indices of the others, one for each of its axes. The rule holds for
    /// all axes.
    Gather(Rule, Option<Lanes>),
    /// Concatenation of the inputs along an axis.
    Concatenate(u8),
    /// One result of an operation that combines elements of several positions.
    Pattern(OperationResult),
}

impl Op {
    /// Returns the name in plans and errors.
    pub fn name(&self) -> String {
        match self {
            Op::Fill(value) => format!("fill {}", shown(value.lanes())),
            Op::Elementwise(op) => op.to_string(),
            Op::View(_) => "view".into(),
            Op::Reshape => "reshape".into(),
            Op::Position(axis) => format!("position {axis}"),
            Op::Gather(..) => "gather".into(),
            Op::Concatenate(axis) => format!("concatenate {axis}"),
            Op::Pattern(applied) => applied.operation().name(),
        }
    }
}

/// Returns zero in all lanes of a type.
pub(crate) fn zeros(ty: Type) -> Lanes {
    SmallVec::from_elem(Literal::zero(ty.element()), ty.lanes())
}

/// Returns a value as text.
pub(crate) fn shown(lanes: &Lanes) -> String {
    match lanes.as_slice() {
        [one] => one.to_string(),
        several => format!("({})", several.iter().map(Literal::to_string).collect::<Vec<_>>().join(", ")),
    }
}
