//! Laws of the repository, one test each.
//!
//! - [`arrows`]: dependencies between crates, and on external libraries;
//! - [`source`]: contents of Rust files;
//! - [`modules`]: references between the modules of a crate;
//! - [`docs`]: contents of documents.

mod arrows;
mod docs;
mod modules;
mod source;
