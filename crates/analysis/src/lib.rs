//! Facts about PTX functions, found without changing them and kept beside the code.
//!
//! Every analysis is a value made from a function; it is right for that function until the function is changed. Each is
//! tested against a naive definition on random graphs.

pub mod bit_set;
pub mod cfg;
pub mod dominators;
pub mod liveness;
pub mod loops;
pub mod post_dominators;
pub mod ssa;
#[cfg(test)]
mod testing;
mod tree;

pub use bit_set::BitSet;
pub use cfg::Cfg;
pub use dominators::Dominators;
pub use liveness::Liveness;
pub use loops::{Loop, LoopData, Loops};
pub use post_dominators::PostDominators;
pub use ssa::BlockParameters;
