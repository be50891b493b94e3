//! Columns of folds: how each execution combines the elements of segments.

use super::elementwise::{Elements, Execution, Scalar, Slice};
use super::{Op, Type};
use crate::infer::Widths;
use crate::primitives::{Elementwise, Fold, fold_rows};
use broadloom_graph::Combine;
use std::ops::Range;

/// Maximum of an empty set of floats; its negation is the minimum. It is finite, so it can be printed.
const LARGEST_FLOAT: f64 = 1.0e36_f32 as f64;

/// How two values are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combination {
    Operation(Elementwise),
    /// The second value if it compares so with the first, else the first. A reduction of some values is one of
    /// them, even if it is beyond the neutral value.
    Extremum(Elementwise),
}

/// Results for no elements.
#[derive(Clone, Copy)]
pub(crate) struct Neutral {
    pub(crate) int: i64,
    pub(crate) float: f64,
    pub(crate) bool: bool,
}

macro_rules! columns {
    (folds { $($fold:ident [$scan:literal, $reduce:literal] $scan_op:ident $scan_vcode:literal
        $reduce_op:ident $reduce_vcode:literal $choice:ident {
            combine: $combine:expr,
            neutral: ($int:expr, $float:expr, $bool:expr, $char:expr),
            device: $device:expr,
        })* }
    ) => {
        impl Fold {
            /// Returns how two values are combined.
            pub(crate) fn combination(self) -> Combination {
                use Combination::{Extremum, Operation};
                match self { $(Fold::$fold => $combine,)* }
            }

            /// Returns the results for no elements.
            pub(crate) fn neutral(self, widths: Widths) -> Neutral {
                let neutral = |int: fn(Widths) -> i64, float, bool| Neutral { int: int(widths), float, bool };
                match self { $(Fold::$fold => neutral($int, $float, $bool),)* }
            }

            /// Returns the character for no elements.
            pub(crate) fn char(self) -> u8 {
                match self { $(Fold::$fold => $char,)* }
            }

            /// Returns the reduction of graphs.
            pub(crate) fn device(self) -> Combine {
                match self { $(Fold::$fold => $device,)* }
            }

            /// Returns the instruction for its scan.
            pub fn scan(self) -> Op {
                match self { $(Fold::$fold => Op::$scan_op,)* }
            }

            /// Returns the instruction for its reduction.
            pub fn reduction(self) -> Op {
                match self { $(Fold::$fold => Op::$reduce_op,)* }
            }
        }
    };
}

fold_rows! { columns! }

impl Fold {
    /// Computes its scan or its reduction in ranges of elements. `None`: it does not take these elements.
    pub(crate) fn of_segments(
        self,
        widths: Widths,
        values: &Slice<'_>,
        ranges: impl Iterator<Item = Range<usize>>,
        is_scan: bool,
    ) -> Option<Elements> {
        let neutral = self.neutral(widths);
        let (ty, start) = match values {
            Slice::Int(_) => (Type::Int, neutral.int),
            Slice::Float(_) => (Type::Float, neutral.float.bits()),
            Slice::Bool(_) => (Type::Bool, neutral.bool.bits()),
        };
        let (selects, operation) = match self.combination() {
            Combination::Operation(operation) => (false, operation),
            Combination::Extremum(comparison) => (true, comparison),
        };
        operation.execute(ty, widths, OnSegments { values, ranges, start, selects, is_scan })
    }
}

/// Combines the elements of each range. A scan gives the combination of the elements before each one.
struct OnSegments<'a, I> {
    values: &'a Slice<'a>,
    ranges: I,
    start: i64,
    selects: bool,
    is_scan: bool,
}

impl<I: Iterator<Item = Range<usize>>> OnSegments<'_, I> {
    fn combine<T: Scalar>(self, combine: impl Fn(T, T) -> T) -> Option<Elements> {
        let (values, start) = (T::slice(self.values)?, T::of_bits(self.start));
        if self.is_scan {
            let mut out = Vec::with_capacity(values.len());
            for range in self.ranges {
                let mut sum = start;
                for &value in &values[range] {
                    out.push(sum);
                    sum = combine(sum, value);
                }
            }
            return Some(T::elements(out));
        }
        let reduced = self.ranges.map(|range| {
            let (start, rest) = match values[range.clone()].split_first() {
                Some((first, rest)) if self.selects => (*first, rest),
                _ => (start, &values[range]),
            };
            rest.iter().fold(start, |sum, value| combine(sum, *value))
        });
        Some(T::elements(reduced.collect()))
    }
}

impl<I: Iterator<Item = Range<usize>>> Execution for OnSegments<'_, I> {
    type Output = Elements;

    fn one<A: Scalar, R: Scalar>(self, _: impl Fn(A) -> R) -> Option<Elements> {
        None
    }

    fn two<A: Scalar, R: Scalar>(self, compute: impl Fn(A, A) -> R) -> Option<Elements> {
        match self.selects {
            true => self.combine(|a: A, b| if compute(b, a).bits() != 0 { b } else { a }),
            false => self.combine(|a: A, b| A::of_bits(compute(a, b).bits())),
        }
    }
}
