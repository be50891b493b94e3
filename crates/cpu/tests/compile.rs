//! Kernels of the corpus compile, for every machine. The corpus as a suite compiles and runs all of them for this one.

use broadloom_cpu::compile::{Machine, Options, compile};
use broadloom_diag::Sources;
use broadloom_transform::hoist_statics;
use std::path::{Path, PathBuf};

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx");
    let mut found = vec![];
    let mut work = vec![folder];
    while let Some(folder) = work.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                work.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn compile_all(options: &Options, every: usize) {
    let mut failures = vec![];
    let mut count = 0;
    for path in corpus().into_iter().step_by(every) {
        let mut sources = Sources::new();
        let id = sources.add(path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        let mut module = broadloom_ptx::parse(&sources, id).unwrap();
        hoist_statics::run(&mut module);
        for (kernel, function) in module.kernels() {
            let refused = function.instructions().any(|(_, inst)| !broadloom_eval::is_run(inst));
            if refused {
                continue;
            }
            let block = match function.directive("reqntid") {
                Some(numbers) => [0, 1, 2].map(|axis| numbers.get(axis).copied().unwrap_or(1)),
                None => [128, 1, 1],
            };
            count += 1;
            if let Err(error) = compile(&module, kernel, block, options) {
                failures.push(format!("{}: {error}", path.display()));
            }
        }
    }
    assert!(count > 0, "the corpus is there");
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn as_vectors_for_this_machine() {
    compile_all(&Options::default(), 60);
}

#[test]
fn one_thread_at_a_time() {
    compile_all(&Options { vectorise: false, ..Options::default() }, 90);
}

#[test]
fn for_other_machines() {
    for machine in [Machine::avx2(), Machine::sse(), Machine::aarch64()] {
        compile_all(&Options { machine, ..Options::default() }, 180);
    }
}
