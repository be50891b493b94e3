//! Laws of the repository, one test each.
//!
//! - [`arrows`]: dependencies between crates, and on external libraries;
//! - [`source`]: contents of Rust files;
//! - [`docs`]: contents of documents.

mod arrows;
mod docs;
mod source;
