//! Conditions on operands, with the messages of their errors. Evaluated and flattened code share them.

use super::fault::{Fault, Run};
use std::fmt::Display;

/// Checks an index of a sequence.
pub(crate) fn index(index: i64, length: usize) -> Run<usize> {
    match usize::try_from(index) {
        Ok(place) if place < length => Ok(place),
        _ if length == 0 => Fault::at_run_time(format!("the index {index} is outside of an empty sequence")),
        _ => Fault::at_run_time(format!("the index {index} is outside of a sequence of {length} (0 to {})", length - 1)),
    }
}

/// Checks the start and the end of a part of a sequence.
pub(crate) fn part(start: i64, end: i64, length: i64) -> Run<()> {
    if start < 0 || start > end || end > length {
        return Fault::at_run_time(format!("elements {start} to {end} are outside of a sequence of {length}"));
    }
    Ok(())
}

/// Returns the number of elements of a range.
pub(crate) fn range(start: i64, step: i64, end: i64) -> Run<u64> {
    if step < 1 {
        return Fault::at_run_time(format!("the step of a range must be positive, it is {step}"));
    }
    if start > end {
        return Fault::at_run_time(format!("a range cannot go from {start} down to {end}"));
    }
    Ok(end.abs_diff(start).div_ceil(step as u64))
}

/// Returns the character with a code.
pub(crate) fn character(code: i64) -> Run<u8> {
    let Ok(character) = u8::try_from(code) else {
        return Fault::at_run_time(format!("{code} is not the code of a character: codes are 0 to 255"));
    };
    Ok(character)
}

/// Checks a number of elements.
pub(crate) fn count(who: &str, count: i64) -> Run<usize> {
    let Ok(count) = usize::try_from(count) else {
        return Fault::at_run_time(format!("{who}: a sequence cannot have {count} elements"));
    };
    Ok(count)
}

pub(crate) fn same_length<T: PartialEq + Display>(what: &str, a: T, b: T) -> Run<()> {
    if a == b { Ok(()) } else { Fault::at_run_time(format!("{what} have different lengths: {a} and {b}")) }
}

/// Checks the lengths of the parts of a sequence.
pub(crate) fn partition(mut lengths: impl Iterator<Item = i64>, length: i64) -> Run<()> {
    let sum = lengths.try_fold(0i64, |sum, part| (part >= 0).then(|| sum.saturating_add(part)));
    if sum == Some(length) {
        return Ok(());
    }
    Fault::at_run_time(format!("`partition`: the lengths do not add up to the {length} elements of the sequence"))
}

/// Returns the distinct indices of a permutation.
pub(crate) fn permutation(indices: impl ExactSizeIterator<Item = i64>, length: usize) -> Run<Vec<usize>> {
    same_length("`permute`: values and indices", length, indices.len())?;
    let mut seen = vec![false; length];
    let mut distinct = |at: i64| {
        let place = index(at, length)?;
        match std::mem::replace(&mut seen[place], true) {
            true => Fault::at_run_time(format!("`permute`: the index {at} occurs twice")),
            false => Ok(place),
        }
    };
    indices.map(&mut distinct).collect()
}
