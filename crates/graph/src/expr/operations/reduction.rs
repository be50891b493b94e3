//! Reductions: the ways to reduce several elements to one value.

use crate::expr::arithmetic::{combined, compare};
use crate::expr::error::Result;
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::op::Extreme;
use crate::expr::parsed_call::ParsedCall;
use crate::expr::spelling::Spelling;
use broadloom_scalar::{CompareOp, Lanes, Literal, Type};
use broadloom_skeleton::{Combine, Operator};
use smallvec::{SmallVec, smallvec};

/// Reduction of elements to one value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reduction {
    /// Combines the elements of one input.
    Combine(Combine),
    /// Finds the extreme of the first input. The result is the integer of the second input there, the least
    /// for equal elements.
    Extreme(Extreme),
}

impl Reduction {
    pub(super) fn name(&self) -> &str {
        match self {
            Reduction::Combine(combine) => combine.name(),
            Reduction::Extreme(which) => which.name(),
        }
    }

    /// Returns the number of inputs with elements. The result is a value of the last of them.
    pub(super) fn inputs(&self) -> usize {
        match self {
            Reduction::Combine(_) => 1,
            Reduction::Extreme(_) => 2,
        }
    }

    /// Returns the operator for inputs of these types. `in_order` promises that labels increase in the order
    /// of the values.
    pub(super) fn operator(&self, types: &[Type], in_order: bool) -> Result<Operator> {
        let label = || types[1].element();
        Ok(match (self, in_order) {
            (Reduction::Combine(combine), _) => combine.operator(types[0])?,
            (Reduction::Extreme(Extreme::Least), true) => Operator::arg_min_in_order(types[0], label())?,
            (Reduction::Extreme(Extreme::Least), false) => Operator::arg_min(types[0], label())?,
            (Reduction::Extreme(Extreme::Greatest), true) => Operator::arg_max_in_order(types[0], label())?,
            (Reduction::Extreme(Extreme::Greatest), false) => Operator::arg_max(types[0], label())?,
        })
    }

    /// Returns a neutral value for each input.
    pub(super) fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        if let Reduction::Combine(combine) = self {
            return smallvec![Some(combine.identity(types[0]))];
        }
        let Ok(operator) = self.operator(types, false) else { return SmallVec::new() };
        operator.identity().iter().map(|one| Some(smallvec![*one])).collect()
    }

    /// Computes the result of the elements at some indices, by the definition.
    pub(super) fn naive(&self, inputs: &[&HostArray], mut places: impl Iterator<Item = usize>, ty: Type) -> Result<Lanes> {
        match self {
            Reduction::Combine(combine) => {
                places.try_fold(combine.identity(ty), |sum, place| combined(combine, &sum, inputs[0].at(place)))
            }
            Reduction::Extreme(which) => {
                let elements = places.map(|place| (inputs[0].at(place)[0], inputs[1].at(place)[0]));
                let best = elements.reduce(|best, other| if precedes(*which, other, best) { other } else { best });
                let none = ty.element().range().map_or(0, |(_, high)| high);
                Ok(smallvec![best.map_or(Literal::from_i128(ty.element(), none), |(_, label)| label)])
            }
        }
    }

    /// Returns the operation in its textual form, after a prefix.
    pub(super) fn spelling(&self, prefix: &str) -> Spelling {
        match self {
            Reduction::Combine(combine) => Spelling::new(format!("{prefix}reduce")).combine(combine),
            Reduction::Extreme(which) => Spelling::new(format!("{prefix}{}", which.name())),
        }
    }

    /// Reads an extreme with labels, by the name of the operation.
    pub(super) fn read_extreme(call: &ParsedCall<'_>, values: &Node, labels: &Node) -> Result<Reduction> {
        values.check_numbers(call.name())?;
        labels.check_integers(call.name())?;
        if values.bound().is_empty() {
            return Err(values.mismatch(call.name(), labels));
        }
        values.check_shape_of(call.name(), labels)?;
        Ok(Reduction::Extreme(extreme_named(call)))
    }
}

/// Returns the extreme that an operation is named after.
pub(super) fn extreme_named(call: &ParsedCall<'_>) -> Extreme {
    if call.name().ends_with(Extreme::Least.name()) { Extreme::Least } else { Extreme::Greatest }
}

/// Returns whether a value with its label is preferred to another. Numbers come before NaN.
fn precedes(which: Extreme, one: (Literal, Literal), another: (Literal, Literal)) -> bool {
    let ((value, label), (other, its)) = (one, another);
    let order = match which {
        Extreme::Least => CompareOp::Lt,
        Extreme::Greatest => CompareOp::Gt,
    };
    match (value.is_nan(), other.is_nan()) {
        (false, false) if !compare(CompareOp::Eq, value, other) => compare(order, value, other),
        (a, b) if a != b => b,
        _ => label.as_i128() < its.as_i128(),
    }
}
