//! Tests of passes in one program, which is linked once and keeps all cores busy.

mod corpus;
mod facts;
mod hoist_statics;
mod inlining;
#[path = "../interpreted/mod.rs"]
mod interpreted;
mod linearised;
mod nest_loops;
mod purity;
mod random_flow;
mod return_exits;
mod split_at_barriers;
mod waiting;
mod write;
