//! C programs that register their kernels like compiled CUDA programs, linked with the library and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the library's folder: cargo puts it beside the tests or one folder up.
fn folder() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let mut folders = exe.ancestors().skip(1).take(2);
    folders.find(|folder| folder.join(broadloom_cudart::LIBRARY).exists()).expect("the library was not built").to_owned()
}

/// Compiles a program for one test, because several tests run at the same time.
fn build(name: &str, test: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cudart-{test}"));
    let folder = folder();
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wno-unused-function", "-Wno-unused-variable", "-o"])
        .arg(&program)
        .arg(source)
        .arg(folder.join(broadloom_cudart::LIBRARY))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-pthread")
        .output()
        .expect("`cc` is needed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, device: &str) -> Output {
    let mut command = Command::new(program);
    command.env("BROADLOOM_DEVICE", device).env("BROADLOOM_CACHE", "off").env("BROADLOOM_THREADS", "2").output().unwrap()
}

/// Runs a self-checking program. Returns its standard error.
fn passes(name: &str) -> String {
    let output = run(&build(name, name), "cpu");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n", "{name}: {}\n{out}{err}", output.status);
    err.into_owned()
}

fn passes_on_interp(name: &str) {
    let output = run(&build(name, &format!("{name}-interp")), "interp");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n", "{name}: {}\n{out}{err}", output.status);
}

#[test]
fn launches_copies_symbols_and_errors() {
    let told = passes("launch");
    assert!(
        told.contains("broadloom: cudaGraphicsMapResources returns cudaErrorInvalidResourceHandle: there is no graphics API"),
        "{told}"
    );
    assert!(told.contains("broadloom: kernel `wild`: "), "{told}");
}

#[test]
fn streams_events_and_host_memory() {
    assert_eq!(passes("streams"), "");
}

#[test]
fn graphs() {
    assert_eq!(passes("graphs"), "");
}

#[test]
fn nodes_of_graphs_user_objects_and_words_of_memory() {
    assert_eq!(passes("nodes"), "");
    passes_on_interp("nodes");
}

#[test]
fn kernels_reach_memory_that_is_allocated_or_registered() {
    let told = passes("reach");
    // Any block may be the first to fail.
    let (start, end) = ("broadloom: kernel `each`: 0x7ffffffff", " is in no memory that was allocated for kernels or registered");
    assert!(told.lines().any(|line| line.starts_with(start) && line.ends_with(end)), "{told}");
    passes_on_interp("reach");
}

#[test]
fn batches_advice_and_pools() {
    assert_eq!(passes("batches"), "");
    passes_on_interp("batches");
}

#[test]
fn contexts_clusters_old_launches_and_the_log() {
    let told = passes("contexts");
    assert!(told.contains("broadloom: cuGLInit returns CUDA_ERROR_INVALID_CONTEXT: there is no graphics API"), "{told}");
    passes_on_interp("contexts");
}

#[test]
fn memory_and_events_of_another_process() {
    assert_eq!(passes("sharing"), "");
}

#[test]
fn linked_pieces_contexts_of_threads_and_waiting() {
    assert_eq!(passes("clients"), "");
}

#[test]
fn arrays_and_references_of_the_driver() {
    assert_eq!(passes("references"), "");
    passes_on_interp("references");
}

#[test]
fn textures_and_surfaces() {
    assert_eq!(passes("textures"), "");
}

#[test]
fn the_driver() {
    let told = passes("driver");
    let interp = run(&build("driver", "driver-interp"), "interp");
    assert_eq!(String::from_utf8_lossy(&interp.stdout), "ok\n");
    assert!(told.contains("no PTX; compile the program with `-gencode arch=compute_75,code=compute_75`"), "{told}");
}

#[test]
fn modules_that_do_not_assemble() {
    let told = passes("modules");
    assert!(told.contains("`nonsense` is not an instruction of PTX") && told.contains("cudart-modules.ptx:13:1"), "{told}");
    passes_on_interp("modules");
}

#[test]
fn a_device_that_is_not_there_is_no_device() {
    let output = run(&build("driver", "nonsense"), "nonsense");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("cudaErrorNoDevice"), "{out}");
    assert!(
        err.contains(
            "broadloom: BROADLOOM_DEVICE is `nonsense`; CUDA programs run on `cpu`, `cpu:strict` or `interp`, or on a GPU with `cuda`"
        ),
        "{err}"
    );
}
