//! Order-preserving keys: conversion of values of all types to unsigned integers in the same order, and back.

use broadloom_scalar::{Builder, Element, Literal, Type, Value};

/// Returns the type of order-preserving keys for an element type.
fn wide(element: Element) -> Type {
    if element.bits() == 64 { Type::U64 } else { Type::U32 }
}

/// Returns the key as an unsigned number of the same width, in key order: -0 before +0, NaN at both ends by
/// sign.
fn by_bits(k: &Builder, key: Value, unsigned: Element, descending: bool) -> Value {
    let element = k.type_of(key).element();
    let sign = k.literal(Literal::from_bits(unsigned, 1 << (element.bits() - 1)));
    let bits = k.bitcast(key, unsigned);
    let bits = if element.is_float() {
        // Negative numbers have all bits inverted, others only the sign.
        let signs = k.sub(k.shr(bits, element.bits() - 1), 1);
        k.xor(bits, k.or(k.not(signs), sign))
    } else if element.is_signed() {
        k.xor(bits, sign)
    } else {
        bits
    };
    if descending { k.xor(bits, k.literal(Literal::from_bits(unsigned, u64::MAX))) } else { bits }
}

/// Returns an order-preserving key as `u32` or `u64`: -0 before +0, NaN last, also in descending order.
pub fn ordered(k: &Builder, key: Value, descending: bool) -> Value {
    let element = k.type_of(key).element();
    let Some(unsigned) = element.unsigned() else {
        let number = k.convert(key, Type::U32);
        return if descending { k.xor(number, 1) } else { number };
    };
    let bits = by_bits(k, key, unsigned, descending);
    let ones = k.literal(Literal::from_bits(unsigned, u64::MAX));
    let bits = if element.is_float() { k.select(k.is_nan(key), ones, bits) } else { bits };
    k.convert(bits, wide(element))
}

/// Inverts [`ordered`]. Every NaN becomes one fixed NaN.
pub(crate) fn from_ordered(k: &Builder, number: Value, element: Element, descending: bool) -> Value {
    let Some(unsigned) = element.unsigned() else {
        return k.ne(if descending { k.xor(number, 1) } else { number }, 0);
    };
    let ones = k.literal(Literal::from_bits(unsigned, u64::MAX));
    let sign = k.literal(Literal::from_bits(unsigned, 1 << (element.bits() - 1)));
    let bits = k.convert(number, unsigned);
    let bits = if descending { k.xor(bits, ones) } else { bits };
    let bits = if element.is_float() {
        k.select(k.ne(k.and(bits, sign), 0), k.xor(bits, sign), k.xor(bits, ones))
    } else if element.is_signed() {
        k.xor(bits, sign)
    } else {
        bits
    };
    k.bitcast(bits, element)
}

/// Returns the number of NaN patterns of one sign. In the order of bits they come before all numbers; in
/// sorted order they come last.
fn nans(k: &Builder, element: Element, unsigned: Element) -> Value {
    let mantissa = match element {
        Element::F16 => 10,
        Element::F32 => 23,
        _ => 52,
    };
    k.literal(Literal::from_bits(unsigned, (1 << mantissa) - 1))
}

/// Returns an order-preserving key that differs for each bit pattern. NaNs come after all numbers, in the
/// order of their bits.
pub(crate) fn distinct(k: &Builder, key: Value, descending: bool) -> Value {
    let element = k.type_of(key).element();
    match element.unsigned().filter(|_| element.is_float()) {
        None => ordered(k, key, descending),
        // The subtraction wraps: the NaNs before all numbers move behind them.
        Some(unsigned) => k.convert(k.sub(by_bits(k, key, unsigned, descending), nans(k, element, unsigned)), wide(element)),
    }
}

/// Inverts [`distinct`].
pub(crate) fn from_distinct(k: &Builder, number: Value, element: Element, descending: bool) -> Value {
    match element.unsigned().filter(|_| element.is_float()) {
        None => from_ordered(k, number, element, descending),
        Some(unsigned) => {
            let bits = k.add(k.convert(number, unsigned), nans(k, element, unsigned));
            from_ordered(k, bits, element, descending)
        }
    }
}
