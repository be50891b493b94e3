//! Addresses from indices.
//!
//! An index is split into a part that a loop changes, a part that it does not change, and a constant. The
//! address is the start of the memory, plus the unchanged part (which the schedule moves out of the loop),
//! plus the rest. The constant becomes the immediate offset of an instruction, which is free. A 32-bit index
//! is split only if ranges show that the sum of its parts does not wrap. There is one exception: a
//! non-negative constant is always split off a signed index. The sum is not negative inside of the memory, so
//! the rest has not wrapped.

use crate::builder::{Builder, Value};
use crate::id::Id;
use crate::memory::{Access, Base};
use crate::op::{BinaryOp, Op};
use crate::types::{Element, Literal, Type};

/// Limit that keeps offsets of instructions well within 24 bits.
const FAR: i128 = 1 << 23;

/// Returns the two operands of a sum that does not wrap when it is extended to an address.
fn parts(b: &Builder, value: Value) -> Option<(Value, Value)> {
    let Some(Op::Binary(BinaryOp::Add, x, y)) = b.op(value) else { return None };
    let (x, y) = (b.wrap(x), b.wrap(y));
    let element = b.type_of(value).element();
    let (xr, yr) = (b.range(x), b.range(y));
    let sum = (xr.0 + yr.0, xr.1 + yr.1);
    let exact = element.range().is_some_and(|(low, high)| low <= sum.0 && sum.1 <= high);
    (exact || element.bits() == 64).then_some((x, y))
}

/// Splits a constant off an index. It looks through an extension to 64 bits and through a 64-bit
/// multiplication, such as that of the number of a vector by its lanes.
fn constant(b: &Builder, index: Value) -> (Value, i128) {
    if let Some(literal) = b.as_literal(index).and_then(Literal::as_i128)
        && literal.abs() < FAR
    {
        return (b.literal(Literal::zero(b.type_of(index).element())), literal);
    }
    if let Some((rest, offset)) = signed(b, index) {
        return (rest, offset);
    }
    match b.op(index) {
        Some(Op::Convert(inner)) if b.type_of(index).element().bits() == 64 => {
            let inner = b.wrap(inner);
            match constant(b, inner) {
                (rest, offset) if offset != 0 && b.type_of(inner).element().is_integer() => {
                    (b.convert(rest, b.type_of(index)), offset)
                }
                _ => (index, 0),
            }
        }
        Some(Op::Binary(BinaryOp::Mul, x, factor)) if b.type_of(index).element().bits() == 64 => {
            let factor = b.wrap(factor);
            let (rest, offset) = constant(b, b.wrap(x));
            match b.as_literal(factor).and_then(Literal::as_i128).map(|times| (times, times.saturating_mul(offset))) {
                Some((1.., scaled)) if offset != 0 && scaled.abs() < FAR => (b.mul(rest, factor), scaled),
                _ => (index, 0),
            }
        }
        Some(Op::Binary(BinaryOp::Add, ..)) => match parts(b, index) {
            Some((rest, literal)) => match b.as_literal(literal).and_then(Literal::as_i128) {
                Some(offset) if offset.abs() < FAR => (rest, offset),
                _ => (index, 0),
            },
            None => (index, 0),
        },
        _ => (index, 0),
    }
}

/// Splits a constant off a signed 32-bit index. The sum may be unsigned.
fn signed(b: &Builder, index: Value) -> Option<(Value, i128)> {
    if b.type_of(index) != Type::I32 {
        return None;
    }
    match b.op(index)? {
        Op::Convert(inner) if b.type_of(b.wrap(inner)) == Type::U32 => {
            let (rest, offset) = last(b, b.wrap(inner))?;
            Some((b.convert(rest, Type::I32), offset))
        }
        _ => last(b, index),
    }
}

/// Splits off a non-negative constant that is added last.
fn last(b: &Builder, sum: Value) -> Option<(Value, i128)> {
    let Some(Op::Binary(BinaryOp::Add, rest, literal)) = b.op(sum) else { return None };
    let offset = b.as_literal(b.wrap(literal)).and_then(Literal::as_i128)?;
    (0..FAR).contains(&offset).then(|| (b.wrap(rest), offset))
}

/// Maximum number of parts that are split off a sum.
const PARTS: usize = 8;

/// Computes `address + index * bytes` in 64 bits. Parts that change in fewer loops are added first.
fn advance(b: &Builder, address: Value, index: Value, bytes: u32) -> Value {
    let mut rest = index;
    let mut outer = vec![];
    while outer.len() < PARTS {
        let inner = match b.op(rest) {
            Some(Op::Convert(inner)) if b.type_of(b.wrap(inner)).element().is_integer() => b.wrap(inner),
            _ => rest,
        };
        match parts(b, inner) {
            Some((x, y)) if b.loops_around(x) < b.loops_around(y) => {
                outer.push(x);
                rest = y;
            }
            Some((x, y)) if b.loops_around(x) > b.loops_around(y) => {
                outer.push(y);
                rest = x;
            }
            _ => break,
        }
    }
    outer.sort_by_key(|part| b.loops_around(*part));
    outer.push(rest);
    outer.into_iter().fold(address, |address, part| step(b, address, part, bytes))
}

fn step(b: &Builder, address: Value, index: Value, bytes: u32) -> Value {
    if b.as_literal(index).is_some_and(|literal| literal.bits() == 0) {
        return address;
    }
    let wide = b.convert(index, Type::U64);
    // Not simplified: the extension followed by the multiplication is one instruction.
    let scaled = match bytes {
        1 => wide,
        _ => b.intern(Op::Binary(BinaryOp::Mul, wide.id, b.literal(u64::from(bytes)).id), Type::U64),
    };
    b.intern(Op::Binary(BinaryOp::Add, address.id, scaled.id), Type::U64)
}

/// Adds a constant that could not be split off a sum to the part of the sum that changes in more loops. Reads
/// around a position share this part with its constant, and each adds its distance in one instruction.
fn grouped(b: &Builder, sum: Value) -> Value {
    let operands = |sum: Value| match b.op(sum) {
        Some(Op::Binary(BinaryOp::Add, x, y)) => Some((b.wrap(x), b.wrap(y))),
        _ => None,
    };
    let Some((inner, literal)) = operands(sum).filter(|(_, literal)| b.as_literal(*literal).is_some()) else { return sum };
    let Some((x, y)) = operands(inner).filter(|(x, y)| b.loops_around(*x) != b.loops_around(*y)) else { return sum };
    let (fixed, varying) = if b.loops_around(x) < b.loops_around(y) { (x, y) } else { (y, x) };
    // Not simplified, because that would move the constant outside again.
    let add = |x: Value, y: Value| b.intern(Op::Binary(BinaryOp::Add, x.id, y.id), b.type_of(sum));
    add(fixed, add(varying, literal))
}

/// Moves all of the index except a constant into the address of a place.
pub(crate) fn place(b: &Builder, base: Base, index: Value, access: Access) -> (Base, Id, Access) {
    let bytes = access.element.bytes();
    if b.is_poison(index) {
        return (base, index.id, access);
    }
    let (rest, offset) = constant(b, index);
    let (rest, offset) = match i32::try_from(i128::from(access.offset) + offset) {
        Ok(offset) => (rest, offset),
        Err(_) => (index, access.offset),
    };
    let zero = b.literal(0u32).id;
    let access = Access { offset, ..access };
    match base {
        Base::Global(address) => (Base::Global(advance(b, b.wrap(address), grouped(b, rest), bytes).id), zero, access),
        Base::Shared(..) | Base::SharedAt(_) => {
            let start = match base {
                Base::Shared(shared, None) => b.pure(Op::SharedAddress(shared), Element::U32),
                Base::Shared(shared, Some(bytes)) => b.add(b.pure(Op::SharedAddress(shared), Element::U32), b.wrap(bytes)),
                Base::SharedAt(address) | Base::Global(address) => b.wrap(address),
            };
            // Shared addresses have 32 bits, so intermediate sums may wrap.
            let address = b.add(start, b.mul(b.convert(rest, Type::U32), bytes));
            (Base::SharedAt(address.id), zero, access)
        }
    }
}
