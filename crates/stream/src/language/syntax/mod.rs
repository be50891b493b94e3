//! The text of programs: tokens, the syntax tree, the parser.

pub mod ast;
mod lex;
mod parse;
mod token;

pub use parse::{parse, parse_setting};
