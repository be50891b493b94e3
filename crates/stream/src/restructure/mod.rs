//! Restructuring: from a graph to kernels.
//!
//! [`Section`]s are the connected parts of the graph that run on the device; equal branches of splitjoins collapse
//! to one actor; [`cut`](cut::cut) says which actors
//! of a section become one kernel, in which shape, and where their buffers lie; `emit` writes the kernels.

mod collapse;
pub mod cut;
pub(crate) mod emit;
mod section;
pub mod wiring;

pub(crate) use section::section;
pub use section::{Actor, Buffer, Needs, Port, Role, Section};
