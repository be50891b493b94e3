//! All tests of the crate in one program, which is linked once and keeps all cores busy.

mod errors;
mod extremes;
mod functions;
mod loops;
mod memory;
mod operators;
mod programs;
mod segments;
mod structure;
