//! Positions and their numbers.

use broadloom_scalar::{Builder, Type, Value};

/// Returns the position for a row-major number over axes of these lengths. The first index is not reduced
/// modulo its length.
pub fn unravel(k: &Builder, linear: Value, lengths: &[Value]) -> Vec<Value> {
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

/// Returns the position with a row-major number below 2³¹, as [`unravel`] does, for lengths that are equal in
/// all lanes. Each division by a length is a multiplication by a number that is computed once, and a shift
/// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994): vectors have no
/// division of integers.
pub fn unravel_in_vectors(k: &Builder, linear: Value, lengths: &[Value]) -> Vec<Value> {
    let long = |value: Value| k.convert(value, Type::U64);
    let mut position = vec![];
    let mut rest = linear;
    for length in lengths.iter().skip(1).rev() {
        let known = k.as_literal(*length).and_then(|length| u32::try_from(length.as_i128()?).ok());
        if let Some(length) = known.filter(|length| length.is_power_of_two()) {
            position.push(k.and(rest, length - 1));
            rest = k.shr(rest, length.ilog2());
            continue;
        }
        let bits = k.sub(32, k.leading_zeros(k.sub(*length, 1)));
        let shift = k.add(bits, 31);
        // The number has 32 bits: 2^shift over the length, rounded up.
        let above = k.add(k.shl(k.literal(1u64), shift), k.sub(long(*length), 1));
        let factor = long(k.convert(k.div(above, long(*length)), Type::U32));
        let quotient = k.convert(k.shr(k.mul(long(rest), factor), shift), Type::U32);
        position.push(k.sub(rest, k.mul(quotient, *length)));
        rest = quotient;
    }
    position.push(rest);
    position.reverse();
    position
}

/// Returns the row-major number of a position over axes of these lengths. The number has 64 bits if there is
/// more than one axis. With 32 bits, an executor that runs warps as vectors cannot see that neighbours are
/// contiguous.
pub fn ravel(k: &Builder, position: &[Value], lengths: &[Value]) -> Value {
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
