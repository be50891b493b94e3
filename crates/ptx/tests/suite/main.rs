//! All tests of the crate in one program, which is linked once and keeps all cores busy.

mod builder;
mod reference;
mod roundtrip;
mod ssa;
mod verify;
mod verify_structure;
