//! Graphs as text: printed, and read back.
//!
//! ```text
//! fn scale(x: f32, k: f32) -> (f32)
//!   return (x * k)
//!
//! image: f32[64, 64] = input iota
//! k: f32[] = fill(0.5)
//! scaled: f32[64, 64] = @scale(image, k)
//! left: f32[64, 64] = view(scaled, at: [i0, i1 - 1 clamp])
//! sum: f32[64, 64] = scaled + left
//! rows: f32[64] = reduce(sum, combine: sum, axes: [1])
//! output rows
//! ```
//!
//! A line is a node: its names, types and shapes, and the operation that gives it. Operations on elements
//! are written as in
//! [scalar code](broadloom_scalar::text), other operations with their name, inputs and settings. An
//! operation of another crate
//! has a textual form too: it says its [`Spelling`], and a [`Vocabulary`] reads it. `docs/ARRAYS.md` has the
//! whole language.
//!
//! Invariants:
//! - a graph that was printed and read prints as the same text and has the same plan;
//! - whatever a text holds, reading it ends in a graph or in diagnostics with their places. Reading computes
//!   nothing.

mod call;
mod contents;
mod elementwise;
mod parse;
mod print;
mod vocabulary;

pub use call::Call;
pub use parse::{Graph, parse};
pub use print::{print, print_with_elements};
pub use vocabulary::{Read, Setting, Spelling, Vocabulary};

use broadloom_diag::Code;

/// A name that stands for nothing, or for something else already.
pub const BAD_NAME: Code = Code("G0001");
/// An operation that does not take what it is given.
pub const REFUSED: Code = Code("G0002");
/// A setting that is missing, not known or of the wrong kind.
pub const BAD_SETTING: Code = Code("G0003");
/// A type or shape that is not the node's.
pub const MISFIT: Code = Code("G0004");
/// Elements of an input that its type cannot hold, or too many.
pub const BAD_ELEMENTS: Code = Code("G0005");
