//! Instructions and features that the file tests must cover, and the parts of the format.

mod device_differences;
mod expand;
mod file;
mod tolerance;
mod trials;

use broadloom_diag::Sources;
use broadloom_filetest::{Case, PTX, TestFile, find_files, root};
use broadloom_ptx::{Opcode, Row, parse};
use std::collections::BTreeSet;
use std::fs;

/// Returns the cases of all files below a folder of `tests/filetests`, each with the name of its file.
fn cases(folder: &str) -> Vec<(String, Case)> {
    let mut found = vec![];
    for (name, path) in find_files(&root().join(folder)).unwrap() {
        if !name.ends_with(".ptx") {
            continue;
        }
        let file = TestFile::parse(&fs::read_to_string(&path).unwrap(), &PTX).unwrap_or_else(|error| panic!("{name}: {error}"));
        found.extend(file.cases.into_iter().map(|case| (name.clone(), case)));
    }
    found
}

#[test]
fn every_bad_input_is_refused() {
    let cases = cases("bad");
    assert!(cases.len() >= 320, "only {} bad inputs", cases.len());
    for (name, case) in &cases {
        let what = format!("bad/{name}, case {}", case.name.as_deref().unwrap_or("-"));
        let expected = case.expectations.get("verify").unwrap_or_else(|| panic!("{what}: nothing is expected of `verify`"));
        assert!(expected.starts_with("error["), "{what}: expected to be refused, not\n{expected}");
    }
    let texts: BTreeSet<&str> = cases.iter().map(|(_, case)| case.text.as_str()).collect();
    assert!(texts.len() + 8 >= cases.len(), "{} bad inputs are the same as others", cases.len() - texts.len());
}

#[test]
fn every_instruction_is_run() {
    let mut used: BTreeSet<Opcode> = BTreeSet::new();
    for (_, case) in cases("run").iter().filter(|(_, case)| case.settings.commands.iter().any(|command| command.name == "run")) {
        let mut sources = Sources::new();
        let id = sources.add("run.ptx", case.text.as_str());
        let Ok(module) = parse(&sources, id) else { continue };
        used.extend(module.functions.values().flat_map(|function| function.insts.values().filter_map(|inst| inst.opcode())));
    }
    let missing: Vec<&str> =
        Row::all().iter().filter(|row| row.is_general() && !used.contains(&row.opcode)).map(|row| row.name).collect();
    assert!(missing.is_empty(), "no file below tests/filetests/run runs {}", missing.join(", "));
}
