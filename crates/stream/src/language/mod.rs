//! The language: from the text of a program to its graph, its schedule and its evaluator.

pub mod blocks;
pub mod codes;
pub mod core;
pub mod elaborate;
pub mod eval;
pub mod format;
pub mod graph;
pub(crate) mod include;
pub(crate) mod limits;
pub mod lower;
pub mod picture;
pub(crate) mod program;
pub mod schedule;
pub mod syntax;
pub(crate) mod text;
