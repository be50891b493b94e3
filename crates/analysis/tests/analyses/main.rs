//! All tests of the crate in one program, which is linked once and keeps all cores busy.

mod arithmetic;
mod bit_set;
mod calls;
mod divergence;
mod dominators;
mod facts;
mod liveness;
mod loops;
mod origins;
mod post_dominators;
mod proof_bytes;
mod ranges;
mod shapes;
mod ssa;
mod testing;
