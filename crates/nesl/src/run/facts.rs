//! Facts about the elements of int vectors that the host knows without asking the device.
//!
//! Lengths of segments are computed by the device, and memory for elements is taken by the host. Facts about sums of
//! lengths save it the wait: the sum of the `LENGTHS` of a descriptor is the number of its elements; packing lengths or
//! moving them to distinct places does not make their sum larger.

use super::vector::{Extent, Vector};
use crate::vcode::Op;
use broadloom_graph::Node;

/// Facts about a vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The value of all elements.
    pub(crate) value: Option<i64>,
    /// No element is 0.
    pub(crate) nonzero: bool,
    /// The sum of the elements, none of which is negative.
    pub(crate) sum: Option<Extent>,
    /// An upper bound of the sum of the elements, none of which is negative.
    pub(crate) bound: Option<usize>,
    /// No two elements are equal.
    pub(crate) distinct: bool,
}

/// The vector that another one was packed from.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// The flags.
    pub(crate) flags: Node,
    /// The elements before, one alone for equal ones.
    pub(crate) before: Node,
}

impl Facts {
    pub(crate) fn of_value(value: i64) -> Facts {
        Facts { value: Some(value), nonzero: value != 0, ..Facts::default() }
    }

    /// Returns facts that hold for a part of equal elements, and for any number of them.
    pub(crate) fn of_equal(&self) -> Facts {
        Facts { value: self.value, nonzero: self.nonzero, ..Facts::default() }
    }

    pub(crate) fn of_bound(bound: Option<usize>) -> Facts {
        Facts { bound, ..Facts::default() }
    }

    /// Returns facts about the result of an element-wise instruction.
    pub(crate) fn of_element(op: Op, inputs: &[Vector]) -> Facts {
        let (Op::Add | Op::Subtract, [a, b]) = (op, inputs) else { return Facts::default() };
        let by_equal = |a: &Vector, b: &Vector| a.facts.distinct && b.is_uniform();
        let distinct = by_equal(a, b) || by_equal(b, a);
        if op == Op::Subtract {
            return Facts { distinct, ..Facts::default() };
        }
        let value = match (a.facts.value, b.facts.value) {
            (Some(a), Some(b)) => a.checked_add(b).filter(|sum| i32::try_from(*sum).is_ok()),
            _ => None,
        };
        let bound = a.sum_bound().zip(b.sum_bound()).and_then(|(a, b)| a.checked_add(b));
        Facts { value, bound, distinct, ..Facts::default() }
    }
}

impl Vector {
    #[must_use]
    pub(crate) fn with_facts(self, facts: Facts) -> Vector {
        Vector { facts, ..self }
    }

    /// Returns the sum of the elements, where it is known and none of them is negative.
    pub(crate) fn sum(&self) -> Option<Extent> {
        match (&self.facts.sum, self.facts.value, &self.extent) {
            (Some(sum), ..) => Some(sum.clone()),
            (None, Some(value), Extent::Host(count)) => Some(Extent::Host(usize::try_from(value).ok()?.checked_mul(*count)?)),
            _ => None,
        }
    }

    /// Returns an upper bound of the sum of the elements, where one is known and none of them is negative.
    pub(crate) fn sum_bound(&self) -> Option<usize> {
        let by_value = || usize::try_from(self.facts.value?).ok()?.checked_mul(self.extent.bound());
        self.sum().map(|sum| sum.bound()).or(self.facts.bound).or_else(by_value)
    }
}
