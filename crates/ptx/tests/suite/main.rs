//! All tests of the crate in one program, which is linked once and keeps all cores busy.

mod agree;
mod builder;
mod header;
mod literal;
mod operands;
mod reference;
mod roundtrip;
mod select;
mod ssa;
mod verify;
mod verify_structure;
