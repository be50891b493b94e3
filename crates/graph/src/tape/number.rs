//! Integers that the host knows when a plan runs: extents, offsets, and values derived from them.

use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Int, ShapeId, Tape};
use std::fmt;
use std::sync::Arc;

/// Integer that depends on the bindings of a run. Generated code receives it as a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Number {
    /// Constant of all runs.
    Known(i64),
    /// Slot of the integers.
    Given(u32),
    /// Extent of a shape.
    Extent(ShapeId, u8),
    /// Number that a node holds and only the device knows.
    Length(Id),
    /// Sum of two numbers.
    Sum(Arc<(Number, Number)>),
    /// Product of two numbers.
    Product(Arc<(Number, Number)>),
}

impl From<Int> for Number {
    fn from(int: Int) -> Number {
        match int {
            Int::Known(value) => Number::Known(value),
            Int::Given(slot) => Number::Given(slot),
        }
    }
}

impl Number {
    /// Returns the sum, simplified if both are known.
    pub(crate) fn sum(a: &Number, b: &Number) -> Number {
        match (a, b) {
            (Number::Known(a), Number::Known(b)) => Number::Known(a.wrapping_add(*b)),
            (Number::Known(0), other) | (other, Number::Known(0)) => other.clone(),
            (a, b) => Number::Sum(Arc::new((a.clone(), b.clone()))),
        }
    }

    /// Returns the product, simplified if both are known.
    pub(crate) fn product(a: &Number, b: &Number) -> Number {
        match (a, b) {
            (Number::Known(a), Number::Known(b)) => Number::Known(a.wrapping_mul(*b)),
            (Number::Known(0), _) | (_, Number::Known(0)) => Number::Known(0),
            (Number::Known(1), other) | (other, Number::Known(1)) => other.clone(),
            (a, b) => Number::Product(Arc::new((a.clone(), b.clone()))),
        }
    }

    /// Returns the stride of an axis: the product of the extents of the later axes.
    pub(crate) fn stride(shape: ShapeId, axis: usize, rank: usize) -> Number {
        (axis + 1..rank).fold(Number::Known(1), |product, axis| Number::product(&product, &Number::Extent(shape, axis as u8)))
    }

    /// Returns the number with the extents that are part of the code.
    pub(crate) fn within(&self, tape: &Tape) -> Number {
        match self {
            Number::Extent(shape, axis) => {
                let known = tape.shapes.get(*shape as usize).and_then(|class| class.known(usize::from(*axis)));
                known.map_or_else(|| self.clone(), |extent| Number::Known(extent as i64))
            }
            Number::Sum(pair) => Number::sum(&pair.0.within(tape), &pair.1.within(tape)),
            Number::Product(pair) => Number::product(&pair.0.within(tape), &pair.1.within(tape)),
            Number::Known(_) | Number::Given(_) | Number::Length(_) => self.clone(),
        }
    }

    /// Returns whether only the device knows it.
    pub(crate) fn is_on_device(&self) -> bool {
        match self {
            Number::Known(_) | Number::Given(_) | Number::Extent(..) => false,
            Number::Length(_) => true,
            Number::Sum(pair) | Number::Product(pair) => pair.0.is_on_device() || pair.1.is_on_device(),
        }
    }

    /// Returns its value in a run, modulo 2^64, which suffices for index arithmetic.
    pub(crate) fn of(&self, bindings: &Bindings) -> i64 {
        match self {
            Number::Known(value) => *value,
            Number::Given(slot) => bindings.integers[*slot as usize],
            Number::Extent(shape, axis) => bindings.shapes[*shape as usize].extents()[usize::from(*axis)] as i64,
            // Kernels read it on the device; the host never reads it.
            Number::Length(_) => 0,
            Number::Sum(pair) => pair.0.of(bindings).wrapping_add(pair.1.of(bindings)),
            Number::Product(pair) => pair.0.of(bindings).wrapping_mul(pair.1.of(bindings)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Known(value) => write!(f, "{value}"),
            Number::Given(slot) => write!(f, "n{slot}"),
            Number::Extent(shape, axis) => write!(f, "s{shape}.{axis}"),
            Number::Length(id) => write!(f, "length {id}"),
            Number::Sum(pair) => write!(f, "({} + {})", pair.0, pair.1),
            Number::Product(pair) => write!(f, "{} * {}", pair.0, pair.1),
        }
    }
}
