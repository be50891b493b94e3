//! Embeds the test files and the corpus in the program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let mut text = String::new();
    table(&mut text, "FILE_TESTS", &root.join("tests/filetests/run"));
    table(&mut text, "CORPUS", &root.join("corpus/ptx"));
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default()).join("files.rs");
    if let Err(error) = fs::write(&out, text) {
        println!("cargo::error={} cannot be written: {error}", out.display());
    }
}

/// Generates a constant with the names and contents of all files of a folder.
fn table(text: &mut String, name: &str, folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = vec![];
    walk(folder, "", &mut files);
    files.sort();
    let _ = writeln!(text, "/// Names and contents.\npub(crate) const {name}: &[(&str, &str)] = &[");
    for (name, path) in files {
        let _ = writeln!(text, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    text.push_str("];\n");
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            walk(&path, &format!("{prefix}{name}/"), files);
        } else if name.ends_with(".ptx") {
            files.push((format!("{prefix}{name}"), path));
        }
    }
}
