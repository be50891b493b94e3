//! Comparison of the results of a device with the reference.
//!
//! Integers and correctly rounded floats must agree exactly (NaN agrees with NaN, zeros keep their sign);
//! approximate results agree within a stated relative and absolute error.

use std::fmt::Debug;

use crate::trial::{Failure, Outcome};

/// Number of differences that a failure shows.
const SHOWN: usize = 4;

/// Value that may be compared exactly.
pub(crate) trait ComparedValue: Copy + Debug {
    /// Returns whether `self` is the same value as `other`, bit for bit except for the payload of a NaN.
    fn same(self, other: Self) -> bool;
}

macro_rules! exact_by_equality {
    ($($t:ty),*) => {
        $(impl ComparedValue for $t {
            fn same(self, other: Self) -> bool {
                self == other
            }
        })*
    };
}

exact_by_equality!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, bool, usize);

macro_rules! exact_by_bits {
    ($($t:ty),*) => {
        $(impl ComparedValue for $t {
            fn same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
            }
        })*
    };
}

exact_by_bits!(f32, f64, half::f16, half::bf16);

impl<T: ComparedValue, const N: usize> ComparedValue for [T; N] {
    fn same(self, other: Self) -> bool {
        self.into_iter().zip(other).all(|(a, b)| a.same(b))
    }
}

/// Checks that every element of `got` equals the one of `want`.
pub(crate) fn same<T: ComparedValue>(what: &str, got: &[T], want: &[T]) -> Outcome {
    report(what, got, want, |a, b| a.same(b))
}

/// Checks that every element of `got` lies within `relative * |want| + absolute` of the one of `want`.
pub(crate) fn close<T>(what: &str, got: &[T], want: &[T], relative: f64, absolute: f64) -> Outcome
where
    T: Copy + Debug + Into<f64>,
{
    report(what, got, want, |a, b| {
        let (a, b): (f64, f64) = (a.into(), b.into());
        // Equal infinities have no difference to measure.
        a == b || (a - b).abs() <= relative * b.abs() + absolute || (a.is_nan() && b.is_nan())
    })
}

/// Checks that `got` and `want` hold the same elements, in any order.
pub(crate) fn same_set<T: ComparedValue + Ord>(what: &str, got: &[T], want: &[T]) -> Outcome {
    let (mut got, mut want) = (got.to_vec(), want.to_vec());
    got.sort_unstable();
    want.sort_unstable();
    same(what, &got, &want)
}

/// Checks a condition.
pub(crate) fn holds(what: &str, condition: bool) -> Outcome {
    if condition { Ok(()) } else { Err(Failure::Wrong(format!("{what} does not hold"))) }
}

fn report<T: Copy + Debug>(what: &str, got: &[T], want: &[T], agree: impl Fn(T, T) -> bool) -> Outcome {
    if got.len() != want.len() {
        return Err(Failure::Wrong(format!("{what}: {} elements, expected {}", got.len(), want.len())));
    }
    let wrong: Vec<usize> = (0..got.len()).filter(|&i| !agree(got[i], want[i])).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let mut text = format!("{what}: {} of {} elements are wrong", wrong.len(), got.len());
    for &i in wrong.iter().take(SHOWN) {
        text.push_str(&format!("\n  [{i}] is {:?}, expected {:?}", got[i], want[i]));
    }
    Err(Failure::Wrong(text))
}
