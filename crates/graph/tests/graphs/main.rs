//! Tests of the crate in one program, which is linked once and uses all cores. The random graphs are another
//! program, with trials that may be ignored.

mod assemble;
mod functions;
mod interior;
mod lengths;
mod order;
mod own_kernel;
mod own_operation;
mod record;
mod segments;
mod shape;
mod size_classes;
mod sizes;
#[allow(dead_code, reason = "shared with the random graphs")]
#[path = "../support/mod.rs"]
mod support;
mod trace;
mod traps;
mod view;
