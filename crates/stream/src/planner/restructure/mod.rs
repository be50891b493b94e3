//! Restructuring: from a graph to kernels.
//!
//! - [`Section`]s are the connected parts of the graph that run on the device. Equal branches of splitjoins
//!   collapse to one actor, and linear filters are combined.
//! - `cutter` decides which actors of a section become one kernel, in which shape, and where their
//!   buffers are stored.
//! - `components` finds firings of several filters that a thread runs in registers.
//! - `emit` writes the kernels, `firing` those of filters that add up many items, `spectrum` those of long
//!   convolutions.
//! - `ahead` prefetches the staged inputs of blocks.
//! - [`Island`]s are stateful filters and feedbackloops, whose firings run one after the other. `sequential`
//!   writes their kernels.
//! - A [`Recurrence`](crate::planner::recurrence::Recurrence) is a stateful filter whose firings `scan` combines in parallel.

mod build;
mod collapse;
mod components;
pub mod cut;
pub mod cutter;
#[doc(hidden)]
pub mod digits;
pub(crate) mod emit;
pub(crate) mod firing;
mod grouping;
pub mod island;
mod linear;
mod refine;
mod registers;
pub(crate) mod scan;
mod section;
pub(crate) mod sequential;
pub(crate) mod spectrum;
pub mod wiring;

pub(crate) use build::{Restructuring, in_order, section};
pub use island::Island;
pub(crate) use refine::refine;
pub use section::{Actor, Buffer, Needs, Port, Role, Section, Taps};
