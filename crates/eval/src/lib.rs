//! What every pure instruction computes, for one lane: integers, floats, logic, conversions, video, carry chains.
//!
//! One definition, written after the manual and nothing else, for whoever needs a value: the interpreter runs it, a pass folds
//! constants with it, an executor of vectors takes it for instructions too rare to have vector code.
//!
//! ```
//! use broadloom_eval::{Operation, Outcome};
//!
//! let min = Operation::from_text("min.s32").unwrap();
//! let minus_one = 0xffff_ffff;
//! assert_eq!(min.evaluate(&[minus_one, 1, 0, 0, 0, 0], false), Some(Outcome::One(minus_one)));
//! let barrier = Operation::from_text("bar.sync").unwrap();
//! assert!(barrier.function().is_none(), "not a function of its inputs");
//! ```
//!
//! **Inputs** are the operands that an instruction reads, in their order, those of a vector one by one ([`inputs`] lists them with
//! their types): the bits as a register of the operand holds them, zero above its width. An immediate is given as [`immediate`]
//! makes it, a predicate as 0 or 1, one behind `!` already inverted, an operand that was left out as 0. A part of a register that a
//! video instruction selects, and a minus before it, belong to the [`Operation`]: the input is the whole register.
//!
//! **Results** may have any bits above the width of their register: whoever writes them cuts them off. A video instruction that
//! writes a part of a register gives the whole register.
//!
//! [`mbarrier`] is the one object of memory whose contents are the executor's to choose: its layout and what instructions make of it.
//!
//! [`matrix`] says what the lanes of a warp hold of matrices and what products of them are, [`texture`] what textures are and how they are sampled.
//!
//! `mov` and `cvta` are no such functions: the one is about operands only, the other about where an executor keeps its memory.

mod arith;
mod bits;
mod carry;
mod compare;
mod convert_float;
mod convert_int;
pub mod copy;
mod dot;
mod float;
mod function;
pub mod matrix;
pub mod mbarrier;
mod narrow;
mod operation;
mod scope;
mod soft;
#[cfg(test)]
mod testing;
pub mod texture;
mod video;
mod video_simd;

pub use function::{Carry, Function, One, Outcome, Pair};
pub use operation::{Inputs, ModifierSet, Operation, immediate, inputs};
pub use scope::is_run;

/// The low `bits` bits as a signed number.
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.min(64);
    ((value << shift) as i64) >> shift
}

/// The low `bits` bits.
pub fn truncate(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// The low `bits` bits as a number with or without a sign.
fn number(signed: bool, bits: u32, value: u64) -> i128 {
    if signed { i128::from(sign_extend(value, bits)) } else { i128::from(truncate(value, bits)) }
}
