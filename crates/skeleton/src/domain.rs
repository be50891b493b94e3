//! Index spaces, and how threads are spread over them.

use crate::draft::Writer;
use crate::{Count, Error, Result, Sink, Source};
use broadloom_scalar::{Type, Value};

/// The shape of an index space as far as code depends on it: how many axes, and whether the last one is long. Sizes are no part of it.
///
/// The sizes of a call are the lengths of the axes, the last one varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Domain {
    axes: usize,
    rows: bool,
}

/// From which length on a last axis has its own threads.
const LONG: u64 = 32;

impl Domain {
    /// One axis.
    pub const LINE: Domain = Domain { axes: 1, rows: true };

    /// What suits these sizes.
    ///
    /// ```
    /// use broadloom_skeleton::Domain;
    /// assert_eq!(Domain::of(&[480, 640]), Domain::of(&[1080, 1920]));
    /// assert_ne!(Domain::of(&[480, 640]), Domain::of(&[480 * 640, 3]));
    /// ```
    pub fn of(sizes: &[u64]) -> Domain {
        match sizes {
            [] | [_] => Domain { axes: sizes.len(), rows: true },
            [.., last] => Domain { axes: sizes.len(), rows: *last >= LONG },
        }
    }

    pub(crate) const fn with_axes(axes: usize) -> Domain {
        Domain { axes, rows: true }
    }

    /// How many axes there are.
    pub const fn axes(self) -> usize {
        self.axes
    }

    /// Whether the last axis is long, so that neighbouring threads can work along it.
    pub const fn has_rows(self) -> bool {
        self.rows
    }

    /// How many positions there are.
    pub fn count(self) -> Count {
        Count::product(0..self.axes)
    }

    /// Whether sources and a sink have its positions, and the type of indices that they need.
    pub(crate) fn check(self, pattern: &'static str, sources: &[&Source], sink: &Sink) -> Result<Type> {
        let mut wide = sink.written().is_some_and(|written| written.index().element().bits() == 64);
        for source in sources {
            if source.axes() != self.axes {
                let name = source.function().name();
                let reason = format!("positions of `{name}` have {} indices, and the domain has {}", source.axes(), self.axes);
                return Err(Error::Pattern { pattern, reason });
            }
            wide |= source.index().element().bits() == 64;
        }
        Ok(if wide { Type::U64 } else { Type::U32 })
    }
}

/// The position of a number that counts positions of axes with these lengths. The first index is not held to its length.
pub(crate) fn unravel(k: &Writer, linear: Value, lengths: &[Value]) -> Vec<Value> {
    let mut position = vec![linear; lengths.len()];
    let mut rest = linear;
    for axis in (1..lengths.len()).rev() {
        let above = k.div(rest, lengths[axis]);
        position[axis] = k.sub(rest, k.mul(above, lengths[axis]));
        rest = above;
    }
    if let Some(first) = position.first_mut() {
        *first = rest;
    }
    position
}

/// The number of a position, counted over axes with these lengths. It has 64 bits where there are several axes: with 32, an executor that runs warps as
/// vectors would have to prove that no lane wraps around before it can see that neighbours lie side by side.
pub(crate) fn ravel(k: &Writer, position: &[Value], lengths: &[Value]) -> Value {
    match position {
        [] => k.literal(0u32),
        [only] => *only,
        _ => {
            let wide = |value: &Value| k.convert(*value, Type::U64);
            let mut pairs = position.iter().zip(lengths);
            let first = pairs.next().map_or(k.literal(0u64), |(first, _)| wide(first));
            pairs.fold(first, |number, (index, length)| k.add(k.mul(number, wide(length)), wide(index)))
        }
    }
}
