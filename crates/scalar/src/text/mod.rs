//! Reading of functions from text, in the form in which they print.
//!
//! [`Lines`] are the lines of a text with their indentation, [`Scanner`] splits one into parts, and
//! [`function`] reads a function. A language that contains functions, such as the textual form of graphs,
//! reads its own lines with [`Lines`] and [`Scanner`].
//!
//! A function that was printed and read prints as the same text. It computes the same results, but is not an
//! equal value: nodes are numbered in the order of reading.
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

/// Unexpected text.
pub const UNEXPECTED: Code = Code("S0001");
/// Unknown name, or a name that is already in use.
pub const BAD_NAME: Code = Code("S0002");
/// Value that its type cannot represent, or value without a type.
pub const BAD_VALUE: Code = Code("S0003");
/// Code that does not fit together: types, places, limits.
pub const BAD_CODE: Code = Code("S0004");
