//! Round trip: every module of the corpus survives parse, print and parse, and verifies.
//!
//! `BROADLOOM_PTX_DIR=folder` adds a folder of PTX files. With `BROADLOOM_PRINT_DIR=folder` the printed texts
//! are written there, under `corpus` and `given`, as input for NVIDIA's assembler.

use broadloom_diag::Sources;
use broadloom_ptx::{Module, parse, print, verify};
use std::fs;
use std::path::{Path, PathBuf};

fn ptx_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            ptx_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
}

/// Parses and verifies a text. Returns the module without locations.
fn read(name: &str, text: &str) -> Result<Module, String> {
    let mut sources = Sources::new();
    let id = sources.add(name, text);
    let module = parse(&sources, id).map_err(|diagnostics| sources.render_all(&diagnostics))?;
    let mut module = verify(module).map_err(|diagnostics| sources.render_all(&diagnostics))?.into_module();
    module.strip_spans();
    Ok(module)
}

fn round_trip(name: &str, text: &str) -> Result<String, String> {
    let module = read(name, text)?;
    let printed = print(&module);
    let again = read(&format!("{name} (printed)"), &printed)?;
    if print(&again) != printed {
        return Err(format!("{name}: the print is not a fixed point"));
    }
    if again != module {
        return Err(format!("{name}: the printed module is not the same"));
    }
    Ok(printed)
}

#[test]
fn corpus_survives() {
    let mut folders = vec![("corpus", PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/ptx")))];
    folders.extend(std::env::var_os("BROADLOOM_PTX_DIR").map(|folder| ("given", PathBuf::from(folder))));
    let prints = std::env::var_os("BROADLOOM_PRINT_DIR").map(PathBuf::from);
    let mut files = vec![];
    for (name, folder) in &folders {
        let mut found = vec![];
        ptx_files(folder, &mut found);
        found.sort();
        files.extend(found.into_iter().map(|path| (name, folder, path)));
    }
    let mut failures = vec![];
    for (name, root, path) in &files {
        let text = fs::read_to_string(path).unwrap();
        match round_trip(&path.display().to_string(), &text) {
            Ok(printed) => {
                if let Some(folder) = &prints {
                    // The folders of the originals are kept, so that equal file names do not collide.
                    let print = folder.join(name).join(path.strip_prefix(root).unwrap());
                    fs::create_dir_all(print.parent().unwrap()).unwrap();
                    fs::write(print, printed).unwrap();
                }
            }
            Err(error) => failures.push(error.lines().take(20).collect::<Vec<_>>().join("\n")),
        }
    }
    assert!(!files.is_empty(), "no PTX files found");
    assert!(failures.is_empty(), "{} of {} files failed:\n{}", failures.len(), files.len(), failures.join("\n\n"));
}
