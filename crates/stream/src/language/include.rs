//! Texts of a program: those that are given, and those that they include.
//!
//! `include "parts/filter.str";` names a file, relative to the folder of the text. `include <fir.str>;` names a file of
//! the library of blocks, which is a part of this crate. A text is included once, however often it is named.

use crate::language::blocks::{self, BLOCKS};
use crate::language::codes;
use crate::language::eval::Host;
use crate::language::syntax::{ast, parse};
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Sources};
use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Maximum size of the texts of a program, in bytes.
const MAX_TEXT: usize = 64 << 20;

/// Parses the given texts, and the texts that they include.
pub(super) fn load(
    files: &[(&str, &str)],
    ids: &[SourceId],
    sources: &mut Sources,
    host: &mut dyn Host,
) -> Result<ast::Program, Diagnostics> {
    let mut loader = Loader { host, sources, size: 0, seen: HashSet::new(), program: ast::Program::default() };
    loader.seen = files.iter().map(|(name, _)| plain(Path::new(name))).collect();
    let mut errors = Diagnostics::new();
    for (id, (name, text)) in ids.iter().zip(files) {
        if let Err(found) = loader.text(*id, name, text) {
            errors.extend(found);
        }
    }
    if errors.has_errors() { Err(errors) } else { Ok(loader.program) }
}

struct Loader<'l> {
    host: &'l mut dyn Host,
    sources: &'l mut Sources,
    /// The bytes of all texts.
    size: usize,
    seen: HashSet<PathBuf>,
    program: ast::Program,
}

/// Removes `.` and `..` from a path where that is possible without links.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

impl Loader<'_> {
    /// Parses a text and what it includes. The stack of texts is a list, so that their number needs no stack.
    fn text(&mut self, id: SourceId, name: &str, text: &str) -> Result<(), Diagnostics> {
        let mut waiting = vec![(id, name.to_owned(), text.to_owned())];
        while let Some((id, name, text)) = waiting.pop() {
            self.size = self.size.saturating_add(text.len());
            if self.size > MAX_TEXT {
                let message = format!("the program is larger than {} MiB", MAX_TEXT >> 20);
                return Err(Diagnostic::error(codes::TOO_LARGE, message).help("move tables into files").into());
            }
            let mut parsed = parse(id, &text)?;
            for include in std::mem::take(&mut parsed.includes) {
                waiting.extend(self.include(&name, &include)?);
            }
            self.program.append(parsed);
        }
        Ok(())
    }

    /// Reads an included text, unless it was read before.
    fn include(&mut self, from: &str, include: &ast::Include) -> Result<Option<(SourceId, String, String)>, Diagnostics> {
        let missing = |message: String| Diagnostic::error(codes::FILE, message).at(include.span, "");
        let (name, text) = if include.is_block {
            let name = format!("<{}>", include.name);
            let Some(text) = blocks::find(&include.name) else {
                let names: Vec<String> = BLOCKS.iter().map(|(name, _)| format!("<{name}>")).collect();
                let error = missing(format!("the library has no blocks `{name}`"));
                return Err(error.help(format!("there are {}", names.join(", "))).into());
            };
            if !self.seen.insert(PathBuf::from(&name)) {
                return Ok(None);
            }
            (name, text.to_owned())
        } else {
            let path = plain(&Path::new(from).parent().unwrap_or(Path::new("")).join(&*include.name));
            let name = path.display().to_string();
            if !self.seen.insert(path) {
                return Ok(None);
            }
            let mut text = String::new();
            let read = self.host.open(&name).and_then(|file| file.take(MAX_TEXT as u64 + 1).read_to_string(&mut text));
            if let Err(error) = read {
                let error = missing(format!("`{name}` cannot be included: {error}"));
                let is_block = blocks::find(&include.name).is_some();
                let help = match is_block {
                    true => format!("the library has it: write `include <{}>;`", include.name),
                    false => "the path is relative to the folder of the file that includes it".to_owned(),
                };
                return Err(error.help(help).into());
            }
            (name, text)
        };
        let id = self.sources.add(name.clone(), text.clone());
        Ok(Some((id, name, text)))
    }
}
