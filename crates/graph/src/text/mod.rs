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
//! A line is a node: its names, types and shapes, and its operation. Elementwise operations are written as in
//! [scalar code](broadloom_scalar::text), other operations with their name, inputs and settings. An operation
//! of another crate has a textual form too: it returns its [`Spelling`], and a [`Vocabulary`] reads it.
//! `docs/ARRAYS.md` has the whole language.
//!
//! Invariants:
//! - a graph that was printed and read prints as the same text and has the same plan;
//! - reading any text returns a graph or diagnostics with their places. Reading computes nothing.

mod contents;
mod elementwise;
mod parse;
mod print;
mod results;
mod vocabulary;

pub use crate::expr::parsed_call::{NodeMaker, ParsedCall};
pub use crate::expr::spelling::{Setting, Spelling};
pub use parse::{Graph, parse};
pub use print::{print, print_with_elements};
pub use results::{ComputedResult, Results};
pub use vocabulary::Vocabulary;

use broadloom_diag::Code;

/// Name that is undefined, or defined already.
pub const BAD_NAME: Code = Code("G0001");
/// Operation that does not accept its inputs.
pub const REFUSED: Code = Code("G0002");
/// Setting that is missing, unknown or of the wrong kind.
pub const BAD_SETTING: Code = Code("G0003");
/// Stated type or shape that differs from the node's.
pub const MISFIT: Code = Code("G0004");
/// Elements of an input that its type cannot hold, or too many.
pub const BAD_ELEMENTS: Code = Code("G0005");
