//! Order-preserving keys: values of all types as unsigned integers in the same order, and back.

use crate::kit::Writer;
use broadloom_scalar::{Element, Literal, Type, Value};

/// The type that numbers in the order of keys have.
fn wide(element: Element) -> Type {
    if element.bits() == 64 { Type::U64 } else { Type::U32 }
}

/// A number without a sign, of as many bits, that is in the order of keys: -0 before +0, NaN at both ends by their signs.
fn by_bits(k: &Writer, key: Value, unsigned: Element, descending: bool) -> Value {
    let element = k.type_of(key).element();
    let sign = k.literal(Literal::from_bits(unsigned, 1 << (element.bits() - 1)));
    let bits = k.bitcast(key, unsigned);
    let bits = if element.is_float() {
        // All bits of negative ones change, of others the sign.
        let signs = k.sub(k.shr(bits, element.bits() - 1), 1);
        k.xor(bits, k.or(k.not(signs), sign))
    } else if element.is_signed() {
        k.xor(bits, sign)
    } else {
        bits
    };
    if descending { k.xor(bits, k.literal(Literal::from_bits(unsigned, u64::MAX))) } else { bits }
}

/// A number without a sign, `u32` or `u64`, that is in the order of keys: -0 before +0, NaN behind all, in descending order too.
pub(crate) fn ordered(k: &Writer, key: Value, descending: bool) -> Value {
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

/// Inverts [`ordered`]; any NaN becomes some NaN.
pub(crate) fn from_ordered(k: &Writer, number: Value, element: Element, descending: bool) -> Value {
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

/// Returns the number of NaN patterns of one sign. The order of bits has them before all numbers; sorted, they stand behind.
fn nans(k: &Writer, element: Element, unsigned: Element) -> Value {
    let mantissa = match element {
        Element::F16 => 10,
        Element::F32 => 23,
        _ => 52,
    };
    k.literal(Literal::from_bits(unsigned, (1 << mantissa) - 1))
}

/// Like [`ordered`], but each key has a number of its own: NaN are behind all others in the order of their bits.
pub(crate) fn distinct(k: &Writer, key: Value, descending: bool) -> Value {
    let element = k.type_of(key).element();
    match element.unsigned().filter(|_| element.is_float()) {
        None => ordered(k, key, descending),
        // Modulo the bits there are, what is before all numbers comes behind them.
        Some(unsigned) => k.convert(k.sub(by_bits(k, key, unsigned, descending), nans(k, element, unsigned)), wide(element)),
    }
}

/// Inverts [`distinct`].
pub(crate) fn from_distinct(k: &Writer, number: Value, element: Element, descending: bool) -> Value {
    match element.unsigned().filter(|_| element.is_float()) {
        None => from_ordered(k, number, element, descending),
        Some(unsigned) => {
            let bits = k.add(k.convert(number, unsigned), nans(k, element, unsigned));
            from_ordered(k, bits, element, descending)
        }
    }
}
