//! The repository as text, for the laws in `tests/laws`.
//!
//! A law reads files, never runs code, and fails with the location and the remedy. A remark that would be
//! repeated in reviews becomes a law.
//!
//! - [`Repository`]: the files that git knows, and the manifests of the crates;
//! - [`rust`]: Rust text with comments and literals blanked, and a minimum of structure;
//! - [`modules`]: modules of a crate and the references between them;
//! - [`document`]: fenced blocks of documents, and the outputs that they show.

pub mod document;
mod file;
#[cfg(feature = "manifests")]
mod manifest;
pub mod modules;
mod repository;
pub mod rust;

pub use file::File;
#[cfg(feature = "manifests")]
pub use manifest::{Crate, DependencyKind, workspace_dependencies};
pub use repository::Repository;

/// Fails with one line per violation, after a sentence that states the law and the remedy.
///
/// # Panics
/// If there is a violation.
#[track_caller]
pub fn hold(law: &str, violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{law}\n  {}\n", violations.join("\n  "));
}
