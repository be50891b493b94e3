//! Analyses of PTX functions, computed without changing them and stored beside the code.
//!
//! Every analysis is a value made from a function. It is valid until the function is changed. Each is tested
//! against a naive definition on random graphs. Hidden modules are public for those tests alone.

#[doc(hidden)]
pub mod arithmetic;
pub mod bit_set;
pub mod calls;
pub mod cfg;
mod conditions;
#[doc(hidden)]
pub mod divergence;
pub mod dominators;
pub mod facts;
mod inductions;
#[doc(hidden)]
pub mod integer;
pub mod liveness;
pub mod loops;
pub mod obligations;
pub mod origins;
pub mod post_dominators;
pub mod proof;
pub mod range;
pub mod ranges;
mod rules;
pub mod shape;
pub mod shapes;
pub mod ssa;
mod tree;
pub mod waiting;

pub use arithmetic::Exact;
pub use bit_set::BitSet;
pub use calls::CallGraph;
pub use cfg::Cfg;
pub use dominators::Dominators;
pub use facts::{Facts, KnownParams, WARP, rounded_up};
pub use liveness::Liveness;
pub use loops::{Loop, LoopData, Loops};
pub use obligations::Obligation;
pub use origins::Origins;
pub use post_dominators::PostDominators;
pub use proof::Proof;
pub use range::Range;
pub use ranges::{RangePlan, Ranges};
pub use shape::{LANE_BITS, Shape};
pub use shapes::{Assume, Shapes};
pub use ssa::BlockParameters;
pub use waiting::Waiting;
