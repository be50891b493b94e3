//! Numbers computed from the sizes of a call.

use std::ops::{Add, Mul};
use std::sync::Arc;

/// A number computed from the sizes of a call, such as the blocks of a grid or the elements of a temporary.
/// It is data: a program with counts can be compared, printed and kept, and serves all sizes.
///
/// ```
/// use broadloom_skeleton::Count;
/// // As many blocks of 256 as hold rows times columns.
/// let blocks = (Count::size(0) * Count::size(1)).div_ceil(256u32);
/// assert_eq!(blocks.of(&[100, 30]), Some(12));
/// assert_eq!(blocks.of(&[u64::MAX, 2]), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// A number that is independent of sizes.
    Constant(u64),
    /// A size of the call, by its number.
    Size(usize),
    /// Two counts added.
    Sum(Arc<(Count, Count)>),
    /// Two counts multiplied.
    Product(Arc<(Count, Count)>),
    /// A quotient, rounded up. 0 if the divisor is 0.
    DivCeil(Arc<(Count, Count)>),
    /// A quotient, rounded down. 0 if the divisor is 0.
    DivFloor(Arc<(Count, Count)>),
    /// The minimum.
    Min(Arc<(Count, Count)>),
    /// The maximum.
    Max(Arc<(Count, Count)>),
}

impl Count {
    /// Returns a size of the call.
    pub const fn size(index: usize) -> Count {
        Count::Size(index)
    }

    /// Returns the product of the sizes in a range.
    pub fn product(sizes: std::ops::Range<usize>) -> Count {
        sizes.map(Count::Size).reduce(|a, b| a * b).unwrap_or(Count::Constant(1))
    }

    /// Divides and rounds up.
    #[must_use]
    pub fn div_ceil(self, by: impl Into<Count>) -> Count {
        match (self, by.into()) {
            (count, Count::Constant(1)) => count,
            (Count::Constant(a), Count::Constant(b)) => Count::Constant(if b == 0 { 0 } else { a.div_ceil(b) }),
            (a, b) => Count::DivCeil(Arc::new((a, b))),
        }
    }

    /// Divides and rounds down.
    #[must_use]
    pub fn div_floor(self, by: impl Into<Count>) -> Count {
        Count::DivFloor(Arc::new((self, by.into())))
    }

    /// Returns the minimum of two counts.
    #[must_use]
    pub fn min(self, other: impl Into<Count>) -> Count {
        Count::Min(Arc::new((self, other.into())))
    }

    /// Returns the maximum of two counts.
    #[must_use]
    pub fn max(self, other: impl Into<Count>) -> Count {
        Count::Max(Arc::new((self, other.into())))
    }

    /// Returns the count with other counts substituted for the sizes.
    pub fn with(&self, sizes: &[Count]) -> Count {
        let both = |pair: &Arc<(Count, Count)>| (pair.0.with(sizes), pair.1.with(sizes));
        match self {
            Count::Constant(value) => Count::Constant(*value),
            Count::Size(index) => sizes.get(*index).cloned().unwrap_or(Count::Size(*index)),
            Count::Sum(pair) => Count::Sum(Arc::new(both(pair))),
            Count::Product(pair) => Count::Product(Arc::new(both(pair))),
            Count::DivCeil(pair) => Count::DivCeil(Arc::new(both(pair))),
            Count::DivFloor(pair) => Count::DivFloor(Arc::new(both(pair))),
            Count::Min(pair) => Count::Min(Arc::new(both(pair))),
            Count::Max(pair) => Count::Max(Arc::new(both(pair))),
        }
    }

    /// Returns the number for these sizes. Returns `None` if it exceeds 64 bits or a size is missing.
    pub fn of(&self, sizes: &[u64]) -> Option<u64> {
        match self {
            Count::Constant(value) => Some(*value),
            Count::Size(index) => sizes.get(*index).copied(),
            Count::Sum(pair) => pair.0.of(sizes)?.checked_add(pair.1.of(sizes)?),
            Count::Product(pair) => pair.0.of(sizes)?.checked_mul(pair.1.of(sizes)?),
            Count::DivCeil(pair) => match (pair.0.of(sizes)?, pair.1.of(sizes)?) {
                (_, 0) => Some(0),
                (a, b) => Some(a.div_ceil(b)),
            },
            Count::DivFloor(pair) => Some(pair.0.of(sizes)?.checked_div(pair.1.of(sizes)?).unwrap_or(0)),
            Count::Min(pair) => Some(pair.0.of(sizes)?.min(pair.1.of(sizes)?)),
            Count::Max(pair) => Some(pair.0.of(sizes)?.max(pair.1.of(sizes)?)),
        }
    }
}

impl From<u64> for Count {
    fn from(value: u64) -> Count {
        Count::Constant(value)
    }
}

impl From<u32> for Count {
    fn from(value: u32) -> Count {
        Count::Constant(value.into())
    }
}

impl<T: Into<Count>> Add<T> for Count {
    type Output = Count;
    fn add(self, other: T) -> Count {
        match (self, other.into()) {
            (count, Count::Constant(0)) | (Count::Constant(0), count) => count,
            (a, b) => Count::Sum(Arc::new((a, b))),
        }
    }
}

impl<T: Into<Count>> Mul<T> for Count {
    type Output = Count;
    fn mul(self, other: T) -> Count {
        match (self, other.into()) {
            (count, Count::Constant(1)) | (Count::Constant(1), count) => count,
            (Count::Constant(a), Count::Constant(b)) if a.checked_mul(b).is_some() => Count::Constant(a * b),
            (a, b) => Count::Product(Arc::new((a, b))),
        }
    }
}
