//! Instructions that are functions of their inputs: integers, floats, logic, conversions.
//!
//! Inputs are the bits of the operands as registers hold them, zero above their width. A result may have any bits above the
//! width of its register: the engine cuts them off.

pub(crate) mod arith;
pub(crate) mod bits;
pub(crate) mod carry;
pub(crate) mod compare;
pub(crate) mod convert_float;
pub(crate) mod convert_int;
pub(crate) mod dot;
pub(crate) mod float;
mod narrow;
mod soft;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod video;
pub(crate) mod video_simd;

/// The low `bits` bits as a signed number.
pub(crate) fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.min(64);
    ((value << shift) as i64) >> shift
}

/// The low `bits` bits.
pub(crate) fn truncate(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// The low `bits` bits as a number with or without a sign.
pub(crate) fn number(signed: bool, bits: u32, value: u64) -> i128 {
    if signed { i128::from(sign_extend(value, bits)) } else { i128::from(truncate(value, bits)) }
}
