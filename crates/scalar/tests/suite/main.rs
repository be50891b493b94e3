//! All tests of the crate in one program, which is linked once and keeps all cores busy until the end.

mod code;
mod divide;
mod functions;
mod hostile;
mod kernels;
mod literals;
mod map;
mod operations;
mod random;
mod semantics;
#[path = "../support/mod.rs"]
mod support;
mod text;
mod types;
