//! Search for test files.

use crate::languages::language_of;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns `tests/filetests` at the root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests")
}

/// Returns all files below a folder whose language is known, with their paths relative to it, `/` between the
/// parts, sorted.
pub fn find_files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = vec![];
    walk(folder, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.is_dir() {
            walk(&path, &format!("{prefix}{name}/"), found)?;
        } else if language_of(&path).is_some() {
            found.push((format!("{prefix}{name}"), path));
        }
    }
    Ok(())
}
