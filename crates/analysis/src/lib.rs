//! Facts about PTX functions, found without changing them and kept beside the code.
//!
//! Every analysis is a value made from a function; it is right for that function until the function is changed. Each is
//! tested against a naive definition on random graphs.

pub mod cfg;
pub mod dominators;
pub mod post_dominators;
#[cfg(test)]
mod testing;
mod tree;

pub use cfg::Cfg;
pub use dominators::Dominators;
pub use post_dominators::PostDominators;
