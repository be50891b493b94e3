//! Languages of file tests: one line each.
//!
//! A language is identified by the extension of its files. Adding one takes a file with a [`Language`] and a
//! line in [`LANGUAGES`].

use crate::language::Language;
use crate::{graph, nesl, ptx, stream};
use std::path::Path;

/// All languages.
pub const LANGUAGES: &[&Language] = &[&ptx::LANGUAGE, &graph::LANGUAGE, &nesl::LANGUAGE, &stream::LANGUAGE];

/// Returns the language of a file, by its extension.
pub fn language_of(path: &Path) -> Option<&'static Language> {
    let extension = path.extension().and_then(|extension| extension.to_str())?;
    LANGUAGES.iter().copied().find(|language| language.extension == extension)
}
