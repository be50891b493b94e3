//! Programs that call a replacement library through shims.

use broadloom_shim::{Shim, functions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SHIMS: [(&str, Option<&str>); 3] =
    [("libcudart.so.12", Some("libcudart.so.12")), ("libcuda.so.1", None), ("libbroadloom_shim.so", None)];

fn cc(folder: &Path, arguments: &[&str]) {
    let options = ["-std=gnu11", "-Wall", "-O1", "-I"];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let output =
        Command::new("cc").current_dir(folder).args(options).arg(&sources).args(arguments).output().expect("`cc` is needed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn source(name: &str) -> String {
    format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"))
}

/// Returns a new folder with the shims for a replacement library.
fn shims(test: &str, replacement: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, version) in SHIMS {
        std::fs::write(folder.join(name), Shim { name, version, replacement }.bytes()).unwrap();
    }
    folder
}

/// Builds the replacement library, its shims, and a program that is linked with them. Returns their folder.
fn build(test: &str, program: &str) -> PathBuf {
    let replacement = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{test}/libreplacement.so"));
    let folder = shims(test, &replacement);
    cc(&folder, &["-shared", "-fPIC", &source("replacement"), "-o", "libreplacement.so"]);
    cc(&folder, &["-rdynamic", &source(program), "-o", program, "libcudart.so.12", "libcuda.so.1", "-pthread", "-ldl"]);
    folder
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    Command::new(folder.join(program)).args(arguments).env("LD_LIBRARY_PATH", folder).output().unwrap()
}

#[track_caller]
fn prints(folder: &Path, program: &str, arguments: &[&str], expected: &str) {
    let output = run(folder, program, arguments);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((&*out, &*err, output.status.code()), (expected, "", Some(0)), "{:?}", output.status);
}

#[test]
fn arguments_and_results_of_any_type_pass() {
    let folder = build("kinds", "calls");
    // 285 + 1/2 + 3/4 + 5/8 + 7/16 + 9/32 + 11/64 + 13/128 + 15/256 + 17/512 + 19/1024
    let expected = |more: u32| format!("287.9775390625\n102\n{} {}\n", 10 + more, 50 + more);
    prints(&folder, "calls", &["kinds"], &format!("loaded\n{}{}the thread ends\n", expected(1), expected(2)));
}

/// Both shims and the preloaded one lead to one replacement library, whoever calls first.
#[test]
fn the_library_is_loaded_once_and_only_when_it_is_called() {
    let folder = build("once", "calls");
    prints(&folder, "calls", &["none"], "");
    prints(&folder, "calls", &["threads"], "loaded\n16 right\nthe thread ends\n");
    prints(&folder, "calls", &["early"], "loaded\nearly 7\nthe thread ends\n");
    prints(&folder, "calls", &["fork"], "loaded\nchild 7\nloaded\nchild 8\nloaded\nparent 9\nthe thread ends\n");
    prints(&folder, "calls", &["closed"], "loaded\n7\n8\nthe thread ends\n");
    prints(&folder, "calls", &["end"], "loaded\nthe thread ends\natexit\n");
    prints(&folder, "calls", &["one"], "loaded\n7 no error\nthe thread ends\n");
    let preload = folder.join("libbroadloom_shim.so");
    let mut command = Command::new(folder.join("calls"));
    let output = command.arg("threads").env("LD_LIBRARY_PATH", &folder).env("LD_PRELOAD", preload).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "loaded\n16 right\nthe thread ends\n");
}

/// A program that exports LLVM's names keeps its own, and the replacement library calls its own.
#[test]
fn neither_side_gets_the_names_of_the_other() {
    for program in ["foreign", "foreign_class"] {
        let folder = build(program, program);
        prints(&folder, program, &[], "loaded\nown 100, replacement 7\nthe thread ends\n");
    }
}

/// A replacement library that is missing, is none, or lacks a function ends the process with a message.
#[test]
fn a_library_that_cannot_be_used_is_told() {
    let folder = build("told", "calls");
    let replacement = folder.join("libreplacement.so");
    let cases: [(&str, &dyn Fn()); 3] = [
        ("undefined symbol: cuInit", &|| {
            std::fs::write(folder.join("empty.c"), "int nothing;").unwrap();
            cc(&folder, &["-shared", "-fPIC", "empty.c", "-o", "libreplacement.so"]);
        }),
        ("file too short", &|| std::fs::write(&replacement, "no library").unwrap()),
        ("No such file or directory", &|| std::fs::remove_file(&replacement).unwrap()),
    ];
    for (reason, break_it) in cases {
        break_it();
        let output = run(&folder, "calls", &["one"]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{err}");
        assert!(err.starts_with(&format!("broadloom: the CUDA library `{}` cannot be used: ", replacement.display())), "{err}");
        assert!(err.contains(reason) && err.ends_with("; `make build` makes it, BROADLOOM_CUDART names another one\n"), "{err}");
    }
}

/// A shim exports NVIDIA's names alone and needs no library: nothing else comes before a program's own
/// symbols.
#[test]
fn shims_export_names_of_cuda_alone() {
    let folder = shims("names", Path::new("/no/library.so"));
    for (name, _) in SHIMS {
        let symbols = Command::new("nm").args(["-D", "--without-symbol-versions"]).arg(folder.join(name)).output().unwrap();
        let symbols = String::from_utf8(symbols.stdout).unwrap();
        let (mut defined, mut needed) = (vec![], vec![]);
        for line in symbols.lines() {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [_, "T", symbol] => defined.push(symbol.to_owned()),
                ["w", symbol] => needed.push(symbol),
                _ => panic!("{name}: {line}"),
            }
        }
        let mut expected = functions(name);
        expected.sort();
        defined.sort();
        assert_eq!(defined, expected, "{name}");
        needed.sort();
        assert_eq!(needed, ["__cxa_thread_atexit_impl", "_exit", "dlerror", "dlopen", "dlsym", "writev"]);
        let dynamic = Command::new("readelf").arg("-d").arg(folder.join(name)).output().unwrap();
        let dynamic = String::from_utf8(dynamic.stdout).unwrap();
        assert!(dynamic.contains("SONAME") && !dynamic.contains("NEEDED") && !dynamic.contains("FILTER"), "{dynamic}");
    }
}
