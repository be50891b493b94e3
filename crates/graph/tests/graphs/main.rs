//! Tests of the crate in one program, which is linked once and uses all cores. The random graphs are another
//! program, with trials that may be ignored.

mod assemble;
mod functions;
mod lengths;
mod order;
mod own_kernel;
mod own_operation;
mod segments;
mod shape;
mod sizes;
#[allow(dead_code, reason = "shared with the random graphs")]
#[path = "../support/mod.rs"]
mod support;
mod traps;
mod view;
