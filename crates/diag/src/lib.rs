//! Sources, spans and diagnostics.
//!
//! Every user error becomes a [`Diagnostic`]: a stable code, a message, the location in the user's file, and
//! advice. Parsers collect several of them; only the command prints them.
//!
//! Invariants:
//! - A [`Span`] is meaningful only together with the [`Sources`] that created its [`SourceId`].
//! - Rendering never fails and never panics, whatever the span: it is clipped to the text.
//! - This crate knows no language.
//!
//! ```
//! use broadloom_diag::{Code, Diagnostic, Sources};
//!
//! let mut sources = Sources::new();
//! let file = sources.add("k.ptx", "add.f33 %f1, %f2, %f3;\n");
//! let error = Diagnostic::error(Code("P0021"), "`add` has no form with the modifier `.f33`")
//!     .at(sources.span(file, 3, 7), "not a type that `add` takes")
//!     .help("did you mean `.f32`?");
//! let text = sources.render(&error);
//! assert!(text.contains("k.ptx:1:4"));
//! assert!(text.contains("did you mean `.f32`?"));
//! ```

mod diagnostic;
mod printable;
mod render;
mod source;

pub use diagnostic::{Code, Diagnostic, Diagnostics, Label, Severity};
pub use printable::printable;
pub use source::{Position, Source, SourceId, Sources, Span};
