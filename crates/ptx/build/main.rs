//! Generator of Rust code from the instruction table (`instructions/*.inst`).
//!
//! The notation is described in `instructions/README.md`. A mistake in the table stops the build with file
//! and line.

#![allow(clippy::print_stdout, reason = "how a build script talks to Cargo")]

mod emit;
mod methods;
mod notation;
mod table;

use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), String> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(|e| e.to_string())?);
    let folder = root.join("instructions");
    println!("cargo::rerun-if-changed=instructions");
    println!("cargo::rerun-if-changed=build");
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "inst"))
        .collect();
    paths.sort();
    let mut files = vec![];
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
        files.push((name, text));
    }
    let table = table::read(&files)?;
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| e.to_string())?);
    let write = |name: &str, text: String| fs::write(out.join(name), text).map_err(|e| format!("{name}: {e}"));
    write("table.rs", emit::emit(&table))?;
    write("methods.rs", methods::emit(&table))
}
