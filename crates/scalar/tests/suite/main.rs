//! The tests of the crate in one program, which is linked once and keeps all cores busy to its end.

mod code;
mod functions;
mod hostile;
mod kernels;
mod map;
mod operations;
mod random;
#[path = "../support/mod.rs"]
mod support;
mod text;
