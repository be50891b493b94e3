//! Logic, shifts and bit fields (manual: "Logic and Shift Instructions", "Integer Arithmetic Instructions").

use super::{number, sign_extend, truncate};
use crate::{Inputs, Operation};
use broadloom_ptx::Modifier;

pub(crate) fn and(_op: &Operation, inputs: &Inputs) -> u64 {
    inputs[0] & inputs[1]
}

pub(crate) fn or(_op: &Operation, inputs: &Inputs) -> u64 {
    inputs[0] | inputs[1]
}

pub(crate) fn xor(_op: &Operation, inputs: &Inputs) -> u64 {
    inputs[0] ^ inputs[1]
}

pub(crate) fn not(_op: &Operation, inputs: &Inputs) -> u64 {
    !inputs[0]
}

pub(crate) fn cnot(op: &Operation, inputs: &Inputs) -> u64 {
    u64::from(truncate(inputs[0], op.ty.bits()) == 0)
}

/// Evaluates a table with a bit for each of the eight values of three bits, `a` the highest.
fn look_up(inputs: &Inputs) -> u64 {
    let [a, b, c, table, _, _] = *inputs;
    let mut result = 0;
    for row in (0..8).filter(|row| table >> row & 1 == 1) {
        let side = |value: u64, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
        result |= side(a, 2) & side(b, 1) & side(c, 0);
    }
    truncate(result, 32)
}

pub(crate) fn lop3(_op: &Operation, inputs: &Inputs) -> u64 {
    look_up(inputs)
}

/// Computes `lop3` with a BoolOp: the result, and whether it is not zero, combined with a predicate.
pub(crate) fn lop3_bool(op: &Operation, inputs: &Inputs) -> [u64; 2] {
    let result = look_up(inputs);
    let some = u64::from(result != 0);
    [result, if op.has(Modifier::And) { some & inputs[4] } else { some | inputs[4] }]
}

/// Computes `shl`. Amounts of the width or more give zero: the amount is clamped, not wrapped.
pub(crate) fn shl(op: &Operation, inputs: &Inputs) -> u64 {
    let amount = inputs[1] & 0xffff_ffff;
    if amount >= u64::from(op.ty.bits()) { 0 } else { inputs[0] << amount }
}

/// Computes `shr`. Amounts of the width or more give zero, or the sign in all bits.
pub(crate) fn shr(op: &Operation, inputs: &Inputs) -> u64 {
    let bits = op.ty.bits();
    let amount = (inputs[1] & 0xffff_ffff).min(u64::from(bits));
    if op.ty.is_signed() {
        return (sign_extend(inputs[0], bits) >> amount.min(63)) as u64;
    }
    if amount >= u64::from(bits) { 0 } else { truncate(inputs[0], bits) >> amount }
}

/// Computes `shf`. The pair is `b` above `a`; a left shift returns its high word, a right shift its low word.
pub(crate) fn shf(op: &Operation, inputs: &Inputs) -> u64 {
    let pair = truncate(inputs[1], 32) << 32 | truncate(inputs[0], 32);
    let amount = truncate(inputs[2], 32);
    let amount = if op.has(Modifier::Clamp) { amount.min(32) } else { amount & 31 };
    if op.has(Modifier::L) { (pair << amount) >> 32 } else { pair >> amount }
}

pub(crate) fn popc(op: &Operation, inputs: &Inputs) -> u64 {
    u64::from(truncate(inputs[0], op.ty.bits()).count_ones())
}

pub(crate) fn clz(op: &Operation, inputs: &Inputs) -> u64 {
    let bits = op.ty.bits();
    u64::from(truncate(inputs[0], bits).leading_zeros() - (64 - bits))
}

/// Computes `bfind`: all ones if every bit equals the sign.
pub(crate) fn bfind(op: &Operation, inputs: &Inputs) -> u64 {
    let bits = op.ty.bits();
    let extended = sign_extend(inputs[0], bits);
    let value = if op.ty.is_signed() && extended < 0 { !extended as u64 } else { truncate(inputs[0], bits) };
    match value.checked_ilog2() {
        None => 0xffff_ffff,
        Some(position) if op.has(Modifier::Shiftamt) => u64::from(bits - 1 - position),
        Some(position) => u64::from(position),
    }
}

/// Computes `fns`. The manual leaves a base beyond 31 undefined: no bit is found there.
pub(crate) fn fns(_op: &Operation, inputs: &Inputs) -> u64 {
    let (mask, base) = (truncate(inputs[0], 32), truncate(inputs[1], 32) as i64);
    let offset = sign_extend(inputs[2], 32);
    let is_set = |position: &i64| mask >> position & 1 == 1;
    let found = match offset {
        _ if base > 31 => None,
        0 => Some(base).filter(is_set),
        1.. => (base..32).filter(is_set).nth(offset as usize - 1),
        ..0 => (0..=base).rev().filter(is_set).nth(offset.unsigned_abs() as usize - 1),
    };
    found.map_or(0xffff_ffff, |position| position as u64)
}

pub(crate) fn brev(op: &Operation, inputs: &Inputs) -> u64 {
    inputs[0].reverse_bits() >> (64 - op.ty.bits())
}

/// Computes `bfe`. Position and length are taken modulo 256. The field is extended by its sign: its top bit,
/// or that of the operand if the field extends beyond it.
pub(crate) fn bfe(op: &Operation, inputs: &Inputs) -> u64 {
    let (signed, position, length) = (op.ty.is_signed(), inputs[1] as u8, inputs[2] as u8);
    if length == 0 {
        return 0;
    }
    let field = number(signed, op.ty.bits(), inputs[0]) >> position.min(127);
    number(signed, u32::from(length).min(64), field as u64) as u64
}

/// Computes `bfi`. Position and length are taken modulo 256; bits beyond the width are dropped.
pub(crate) fn bfi(op: &Operation, inputs: &Inputs) -> u64 {
    let [a, b, position, length, _, _] = *inputs;
    let (position, length) = (u32::from(position as u8), u32::from(length as u8));
    if position >= op.ty.bits() {
        return b;
    }
    let field = truncate(u64::MAX, length) << position;
    (a << position & field) | (b & !field)
}

pub(crate) fn szext(op: &Operation, inputs: &Inputs) -> u64 {
    let amount = truncate(inputs[1], 32);
    if amount >= 32 && op.has(Modifier::Clamp) {
        return inputs[0];
    }
    match amount as u32 & 31 {
        0 => 0,
        bits if op.ty.is_signed() => sign_extend(inputs[0], bits) as u64,
        bits => truncate(inputs[0], bits),
    }
}

/// Computes `bmsk`. Ones beyond bit 31 are dropped. With `.clamp`, a position beyond 31 gives no ones and a
/// length beyond 31 all ones above the position.
pub(crate) fn bmsk(op: &Operation, inputs: &Inputs) -> u64 {
    let (position, length) = (truncate(inputs[0], 32), truncate(inputs[1], 32));
    let clamp = op.has(Modifier::Clamp);
    if clamp && position >= 32 {
        return 0;
    }
    let length = if clamp { length.min(32) } else { length & 31 };
    truncate(u64::MAX, length as u32) << (position & 31)
}

/// Returns byte `index` of the pair, `b` above `a`.
fn byte(inputs: &Inputs, index: u32) -> u64 {
    let pair = truncate(inputs[1], 32) << 32 | truncate(inputs[0], 32);
    pair >> (index * 8) & 0xff
}

pub(crate) fn prmt(op: &Operation, inputs: &Inputs) -> u64 {
    let control = inputs[2] as u32 & 3;
    let source: &dyn Fn(u32) -> u32 = if op.has(Modifier::F4e) {
        &|lane| control + lane
    } else if op.has(Modifier::B4e) {
        &|lane| control.wrapping_sub(lane) & 7
    } else if op.has(Modifier::Rc8) {
        &|_| control
    } else if op.has(Modifier::Ecl) {
        &|lane| lane.max(control)
    } else if op.has(Modifier::Ecr) {
        &|lane| lane.min(control)
    } else if op.has(Modifier::Rc16) {
        &|lane| (control & 1) * 2 + (lane & 1)
    } else {
        return permute(inputs);
    };
    (0..4).fold(0, |word, lane| word | byte(inputs, source(lane)) << (lane * 8))
}

/// Permutes bytes without a mode: each nibble selects a byte. Its top bit replicates the sign of that byte to
/// all eight bits.
fn permute(inputs: &Inputs) -> u64 {
    let mut word = 0;
    for lane in 0..4 {
        let selector = inputs[2] as u32 >> (lane * 4) & 0xf;
        let byte = byte(inputs, selector & 7);
        let byte = if selector & 8 == 0 { byte } else { truncate((sign_extend(byte, 8) >> 7) as u64, 8) };
        word |= byte << (lane * 8);
    }
    word
}
