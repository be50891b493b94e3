//! The repository as text, for the laws in `tests/laws`.
//!
//! A law reads files, never runs code, and fails with the place and with what to do. What would be said twice in a review
//! is a law.
//!
//! - [`Repository`]: the files that git knows, and the manifests of the crates;
//! - [`rust`]: Rust text with comments and literals blanked, and just enough structure to judge it.

mod manifest;
mod repository;
pub mod rust;

pub use manifest::{Crate, DependencyKind, workspace_dependencies};
pub use repository::{File, Repository};

/// Fails with one line per violation, under a sentence that says what the law is and what to do.
///
/// # Panics
/// When there is a violation: that is what a test wants.
#[track_caller]
pub fn hold(law: &str, violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{law}\n  {}\n", violations.join("\n  "));
}
