//! Semantics of every pure instruction, for one lane: integers, floats, logic, conversions, video, carry
//! chains.
//!
//! The one definition follows the manual only. The interpreter runs it, a pass folds constants with it, and a
//! vector executor uses it for instructions too rare to have vector code.
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
//! **Inputs** are the operands that an instruction reads, in their order, with vectors expanded ([`inputs`]
//! lists them with their types). Each is the bits that a register of the operand holds, zero above its width.
//! An immediate is converted by [`immediate`], a predicate is 0 or 1, one after `!` is already inverted, and
//! an omitted operand is 0. A part of a register that a video instruction selects, and a minus before it,
//! belong to the [`Operation`]: the input is the whole register.
//!
//! **Results** may have any bits above the width of their register: the writer truncates them. A video
//! instruction that writes a part of a register returns the whole register.
//!
//! [`mbarrier`] defines the layout of mbarriers and the effects of instructions on them. It is the one memory
//! object whose contents the executor may choose.
//!
//! [`matrix`] defines the matrix fragments of a warp's lanes and their products, [`texture`] textures and
//! their sampling.
//!
//! `mov` and `cvta` are not such functions: the former concerns operands only, the latter the memory layout
//! of an executor.
//!
//! Hidden modules are public for the tests of this crate alone.

mod arith;
mod bits;
mod carry;
mod compare;
mod convert_float;
mod convert_int;
pub mod copy;
mod dot;
#[doc(hidden)]
pub mod float;
mod function;
pub mod matrix;
pub mod mbarrier;
mod narrow;
mod operation;
mod scope;
#[doc(hidden)]
pub mod soft;
mod table;
pub mod texture;
mod video;
mod video_simd;

pub use function::{Carry, Function, One, Outcome, Pair};
pub use operation::{Inputs, ModifierSet, Operation, immediate, inputs};
pub use scope::is_run;

/// Returns the low `bits` bits as a signed number.
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.min(64);
    ((value << shift) as i64) >> shift
}

/// Returns the low `bits` bits.
pub fn truncate(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// Returns the low `bits` bits as a signed or unsigned number.
fn number(signed: bool, bits: u32, value: u64) -> i128 {
    if signed { i128::from(sign_extend(value, bits)) } else { i128::from(truncate(value, bits)) }
}
