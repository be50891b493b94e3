//! All tests of the crate in one program, which is linked once and keeps all cores busy.

mod clock;
mod defined;
mod handlers;
mod history;
mod memory;
mod order;
mod shadow;
mod slice;
mod value;
