//! Conversion of items to the words that kernels see, and back.
//!
//! Words of an item are stored leaf by leaf: all scalars of the first member, then those of the next.

use crate::language::core::{Layout, Type, Value};
use crate::language::eval::decode_scalars;
use crate::planner::translate::Words;
use broadloom_scalar::Element;
use std::collections::VecDeque;

/// Appends the words of an item.
pub fn encode(layout: &Layout, words: Words, value: &Value, into: &mut Vec<u8>) {
    encode_all(layout, words, std::iter::once(value.clone()), into);
}

/// Appends the words of items.
pub(crate) fn encode_all(layout: &Layout, words: Words, items: impl Iterator<Item = Value>, into: &mut Vec<u8>) {
    if let Layout::Scalar(_) = layout {
        return items.for_each(|item| scalar(&item, words.element, into));
    }
    let mut leaves: Vec<Vec<u8>> = vec![];
    for item in items {
        leaves.iter_mut().for_each(Vec::clear);
        collect(layout, words.element, &item, 0, &mut leaves);
        leaves.iter().for_each(|leaf| into.extend_from_slice(leaf));
    }
}

fn scalar(value: &Value, element: Element, into: &mut Vec<u8>) {
    match value {
        Value::Boolean(value) | Value::Bit(value) => into.extend_from_slice(&i32::from(*value).to_le_bytes()),
        Value::Int(value) => into.extend_from_slice(&value.to_le_bytes()),
        Value::Float(value) => into.extend_from_slice(&value.to_le_bytes()),
        Value::Double(value) => into.extend_from_slice(&value.to_le_bytes()),
        Value::Complex(real, imaginary) => {
            into.extend_from_slice(&real.to_le_bytes());
            into.extend_from_slice(&imaginary.to_le_bytes());
        }
        Value::Unset | Value::Array(_) | Value::Struct(_) | Value::Portal(_) | Value::Text(_) => {
            into.extend_from_slice(&[0; 8][..element.bytes() as usize]);
        }
    }
}

/// Returns a scalar as a word of state memory.
pub(crate) fn state_word(value: &Value, element: Element) -> Vec<u8> {
    let mut bytes = vec![];
    scalar(value, element, &mut bytes);
    bytes
}

/// Collects the words of each leaf. Returns the number of the next leaf.
fn collect(layout: &Layout, element: Element, value: &Value, first: usize, leaves: &mut Vec<Vec<u8>>) -> usize {
    let mut slot = |index: usize| {
        if leaves.len() <= index {
            leaves.resize(index + 1, vec![]);
        }
    };
    match (layout, value) {
        (Layout::Scalar(Type::Complex), Value::Complex(real, imaginary)) => {
            slot(first + 1);
            leaves[first].extend_from_slice(&real.to_le_bytes());
            leaves[first + 1].extend_from_slice(&imaginary.to_le_bytes());
            first + 2
        }
        (Layout::Struct(_, members), Value::Struct(parts)) => {
            members.iter().zip(parts.iter()).fold(first, |first, (member, part)| collect(member, element, part, first, leaves))
        }
        (Layout::Array(inner, _), Value::Array(parts)) => {
            parts.iter().fold(first, |_, part| collect(inner, element, part, first, leaves))
        }
        (_, value) => {
            slot(first);
            scalar(value, element, &mut leaves[first]);
            first + 1
        }
    }
}

/// Returns the item that the words represent.
pub fn decode(layout: &Layout, words: Words, bytes: &[u8]) -> Value {
    let mut items = VecDeque::new();
    decode_all(layout, words, bytes, &mut items);
    items.pop_front().unwrap_or_else(|| layout.zero())
}

/// Appends the items that the words represent.
pub(crate) fn decode_all(layout: &Layout, words: Words, bytes: &[u8], into: &mut VecDeque<Value>) {
    if let Layout::Scalar(ty) = layout {
        return decode_scalars(ty, bytes, into);
    }
    let (size, starts) = (words.element.bytes() as usize, leaf_starts(layout));
    into.extend(bytes.chunks_exact(words.bytes() as usize).map(|item| {
        let word = |index: usize| item.get(index * size..(index + 1) * size).unwrap_or(&[0; 8][..size]);
        build(layout, &word, &starts, 0, 0)
    }));
}

/// Returns the value whose leaves have the given words, one after the other.
pub(crate) fn compose(layout: &Layout, words: &[&[u8]]) -> Value {
    let word = |index: usize| words.get(index).copied().unwrap_or(&[0; 8]);
    build(layout, &word, &leaf_starts(layout), 0, 0)
}

/// Returns the number of the first word of each leaf.
fn leaf_starts(layout: &Layout) -> Vec<usize> {
    let (mut starts, mut start) = (vec![], 0);
    crate::planner::translate::leaves(layout, 1, &mut |_, count| {
        starts.push(start);
        start += count as usize;
    });
    starts
}

fn build<'b>(layout: &Layout, word: &dyn Fn(usize) -> &'b [u8], starts: &[usize], leaf: usize, at: usize) -> Value {
    let four = |index: usize| <[u8; 4]>::try_from(word(index)).unwrap_or([0; 4]);
    match layout {
        Layout::Scalar(Type::Complex) => {
            Value::Complex(f32::from_le_bytes(four(starts[leaf] + at)), f32::from_le_bytes(four(starts[leaf + 1] + at)))
        }
        Layout::Scalar(ty) => {
            let index = starts[leaf] + at;
            match ty {
                Type::Boolean => Value::Boolean(i32::from_le_bytes(four(index)) != 0),
                Type::Bit => Value::Bit(i32::from_le_bytes(four(index)) != 0),
                Type::Float => Value::Float(f32::from_le_bytes(four(index))),
                Type::Double => Value::Double(f64::from_le_bytes(<[u8; 8]>::try_from(word(index)).unwrap_or([0; 8]))),
                _ => Value::Int(i32::from_le_bytes(four(index))),
            }
        }
        Layout::Struct(_, members) => {
            let mut leaf = leaf;
            let mut parts = vec![];
            for member in members.iter() {
                parts.push(build(member, word, starts, leaf, at));
                crate::planner::translate::leaves(member, 1, &mut |_, _| leaf += 1);
            }
            Value::Struct(parts.into())
        }
        Layout::Array(inner, length) => {
            let length = *length as usize;
            Value::Array((0..length).map(|index| build(inner, word, starts, leaf, at * length + index)).collect())
        }
    }
}
