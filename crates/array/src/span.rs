//! Ranges and indices along an axis, as in NumPy.

use broadloom_graph::Amount;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// Part of an axis. Negative numbers count from the end.
///
/// ```
/// # use broadloom_array::{span, Array, Span};
/// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
/// let a = Array::<i32>::iota(&context, 10)?;
/// assert_eq!(a.slice(&span![2..5])?.to_vec()?, [2, 3, 4]);
/// assert_eq!(a.slice(&span![-3..])?.to_vec()?, [7, 8, 9]);
/// assert_eq!(a.slice(&span![.. ; 4])?.to_vec()?, [0, 4, 8]);
/// assert_eq!(a.slice(&span![.. ; -4])?.to_vec()?, [9, 5, 1]);
/// assert_eq!(a.slice(&span![-1])?.item()?, 9);
/// let table = a.reshape([2, 5])?;
/// assert_eq!(table.slice(&span![.. ; -1, 1.. ; 2])?.to_vec()?, [6, 8, 1, 3]);
/// assert_eq!(table.slice(&span![.., Span::Added, 0])?.shape().extents(), [2, 1]);
/// # Ok::<(), broadloom_array::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// One index; the axis is removed.
    At(isize),
    /// Range from `start` up to but not including `end`, with a step. A range with a negative step starts at
    /// the end.
    Part {
        /// First index; by default the start of the axis.
        start: Option<isize>,
        /// End index, exclusive.
        end: Option<isize>,
        /// Step; not 0.
        step: isize,
    },
    /// New axis of extent 1.
    Added,
}

impl Span {
    /// Whole axis.
    pub const ALL: Span = Span::Part { start: None, end: None, step: 1 };

    /// Sets the step.
    #[must_use]
    pub const fn by(self, by: isize) -> Span {
        match self {
            Span::Part { start, end, step } => Span::Part { start, end, step: step.saturating_mul(by) },
            Span::At(_) | Span::Added => self,
        }
    }

    /// Resolves the span for an axis with the given extent: first index, count and step. Ranges are clipped
    /// to the axis. Returns `None` for an out-of-range index or a step of 0.
    pub(crate) fn resolve(self, extent: &Amount) -> Option<(Amount, Amount, i64)> {
        let (zero, one) = (Amount::from(0), Amount::from(1));
        let from_end = |index: isize| {
            let own = Amount::from(index as i64);
            if index < 0 { own.plus(extent) } else { own }
        };
        match self {
            Span::Added => Some((zero, one, 1)),
            Span::At(index) => {
                let index = from_end(index);
                (!index.is_less(&zero) && index.is_less(extent)).then_some((index, one, 1))
            }
            Span::Part { start, end, step } => {
                let low = start.map_or(zero.clone(), |start| from_end(start).max(&zero).min(extent));
                let high = end.map_or(extent.clone(), |end| from_end(end).min(extent).max(&low));
                let length = high.minus(&low);
                let (count, step) = match step {
                    0 => return None,
                    1 | -1 => (length, step as i64),
                    _ => {
                        let mut step = step as i64;
                        if extent.is_less(&Amount::from(step.saturating_abs())) {
                            // Only the first element remains with such a large step.
                            let most = extent.get().max(1);
                            step = step.clamp(-most, most);
                        }
                        (length.divided_up(step.unsigned_abs() as usize), step)
                    }
                };
                Some(if step > 0 { (low, count, step) } else { (high.minus(&one).max(&zero), count, step) })
            }
        }
    }
}

macro_rules! spans {
    ($($range:ty, $value:ident => $start:expr, $end:expr;)*) => {
        $(impl From<$range> for Span {
            fn from($value: $range) -> Span {
                Span::Part { start: $start, end: $end, step: 1 }
            }
        })*
    };
}

/// Returns the exclusive end for an inclusive index; `None` after the last element.
const fn end_after(index: isize) -> Option<isize> {
    if index == -1 { None } else { Some(index.saturating_add(1)) }
}

spans! {
    Range<isize>, range => Some(range.start), Some(range.end);
    RangeFrom<isize>, range => Some(range.start), None;
    RangeTo<isize>, range => None, Some(range.end);
    RangeInclusive<isize>, range => Some(*range.start()), end_after(*range.end());
    RangeToInclusive<isize>, range => None, end_after(range.end);
    RangeFull, _range => None, None;
}

impl From<isize> for Span {
    fn from(index: isize) -> Span {
        Span::At(index)
    }
}

/// Builds a list of [`Span`]s: `span![1..3, .., -1]`. A step follows a semicolon: `span![.. ; 2, 1.. ; -1]`.
/// Numbers are `isize`, because they may count from the end.
#[macro_export]
macro_rules! span {
    ($($span:expr $(; $step:expr)?),* $(,)?) => {
        {
            #[allow(clippy::reversed_empty_ranges, reason = "`1..-1` ends before the last index, it is not empty")]
            let spans = [$($crate::Span::from($span)$(.by($step))?),*];
            spans
        }
    };
}

impl From<&Span> for Span {
    fn from(span: &Span) -> Span {
        *span
    }
}
