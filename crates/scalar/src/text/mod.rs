//! Code as text, read back: the form in which functions print.
//!
//! [`Lines`] are the lines of a text with their indentation, [`Scanner`] takes one apart, [`function`] reads
//! a function.
//! A language that holds functions, such as the textual form of graphs, reads its own lines with the same
//! two.
//!
//! A function that was printed and read prints as the same text. It computes the same, but is no equal
//! value: nodes are
//! numbered as they are read.
//!
//! ```
//! use broadloom_diag::Sources;
//! use broadloom_scalar::text::{Lines, function};
//!
//! let mut sources = Sources::new();
//! let id = sources.add("scale.graph", "fn scale(x: f32, k: f32) -> (f32)\n  return ((x * k) + 1.0)\n");
//! let scale = function(&mut Lines::new(&sources, id)).unwrap();
//! assert_eq!(scale.to_string(), sources.get(id).unwrap().text());
//! ```

mod expression;
mod literal;
mod parse;
mod scan;

pub use literal::{literal, literal_text};
pub use parse::function;
pub use scan::{Line, Lines, Scanner};

use broadloom_diag::Code;

/// Text that is not what is wanted at its place.
pub const UNEXPECTED: Code = Code("S0001");
/// A name that stands for nothing, or for something else already.
pub const BAD_NAME: Code = Code("S0002");
/// A value that its type cannot hold, or without a type.
pub const BAD_VALUE: Code = Code("S0003");
/// Code that does not fit together: types, places, limits.
pub const BAD_CODE: Code = Code("S0004");
