//! Logic, shifts and bit fields (manual: "Logic and Shift Instructions", "Integer Arithmetic Instructions").

use super::{sign_extend, truncate};
use crate::op::{Inputs, Op};

pub(crate) fn and(_op: &Op, inputs: &Inputs) -> u64 {
    inputs[0] & inputs[1]
}

pub(crate) fn or(_op: &Op, inputs: &Inputs) -> u64 {
    inputs[0] | inputs[1]
}

pub(crate) fn xor(_op: &Op, inputs: &Inputs) -> u64 {
    inputs[0] ^ inputs[1]
}

/// Shifts by the width or more give zero: the amount is clamped, not wrapped.
pub(crate) fn shl(op: &Op, inputs: &Inputs) -> u64 {
    let amount = inputs[1] & 0xffff_ffff;
    if amount >= u64::from(op.ty.bits()) { 0 } else { inputs[0] << amount }
}

/// Shifts by the width or more give zero, or the sign in all bits.
pub(crate) fn shr(op: &Op, inputs: &Inputs) -> u64 {
    let bits = op.ty.bits();
    let amount = (inputs[1] & 0xffff_ffff).min(u64::from(bits));
    if op.ty.is_signed() {
        return (sign_extend(inputs[0], bits) >> amount.min(63)) as u64;
    }
    if amount >= u64::from(bits) { 0 } else { truncate(inputs[0], bits) >> amount }
}
