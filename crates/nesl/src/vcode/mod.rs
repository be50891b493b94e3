//! VCODE: the instructions of a machine with a stack of vectors (Blelloch et al., CMU-CS-90-146).
//!
//! ```text
//! text ⇄ Program → verify → machine
//! ```
//!
//! A program is a list of functions. Instructions take operands from the stack and push results; an entry of
//! the stack is a vector of ints, floats or bools, a segment descriptor, or a pair of entries. A segment
//! descriptor cuts vectors into segments; an instruction with one works on each segment separately. A scalar
//! is a vector of one element.
//!
//! [`parse`] reads programs, also those of the original compiler. `Display` writes them. [`verify`] checks
//! that types on the stack agree. [`machine`](crate::machine) executes them. It checks every operand, also in
//! programs that were not verified.

pub(crate) mod elementwise;
mod extension;
mod fold;
mod op;
mod parse;
mod print;
mod program;
mod sequential;
mod tail_loop;
pub(crate) mod task;
pub(crate) mod team;
mod types;
mod verify;

pub use extension::{Check, Foreign, Layout};
pub(crate) use fold::Combination;
pub use op::{Choice, Op, Slot};
pub use parse::parse;
pub use program::{Constant, FuncId, Function, Inst, LoopCall, Program, SequentialCall};
pub use sequential::{PAUSE_FUEL, Sequential, Shape};
pub use tail_loop::{Carried, LoopBlock, LoopEnd, LoopFold, LoopOperand, Reg, Step, TailLoop};
pub use types::Type;
pub use verify::{Signature, verify};
