//! The laws of the house, one test each.
//!
//! - [`arrows`]: which crate may use which, and which library from elsewhere;
//! - [`source`]: what may stand in Rust files;
//! - [`docs`]: what documents may say.

mod arrows;
mod docs;
mod source;
