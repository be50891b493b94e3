//! `broadloom exec`: a program that was linked with NVIDIA's names finds Broadloom's library.

use crate::harness::{broadloom, empty_folder, shell};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What stands for NVIDIA's runtime where a program is linked: names and a version.
const LINKED: &str = "
int cudaGetDeviceCount(int *count) { return 1; }
int cudaRuntimeGetVersion(int *version) { return 1; }
";

const PROGRAM: &str = "
#include <dlfcn.h>
#include <stdio.h>
int cudaGetDeviceCount(int *), cudaRuntimeGetVersion(int *);
int main(int count, char **arguments) {
    int devices = 0, version = 0;
    if (cudaGetDeviceCount(&devices) || cudaRuntimeGetVersion(&version)) return 1;
    void *driver = dlopen(\"libcuda.so.1\", RTLD_NOW);
    int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, \"cuInit\") : 0;
    printf(\"%d device, runtime %d, driver %d, argument %s\\n\", devices, version / 1000, init ? init(0) : -1, arguments[1]);
    return 7;
}
";

fn cc(folder: &Path, arguments: &[&str]) {
    let output = Command::new("cc").current_dir(folder).args(arguments).output().expect("`cc` is needed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The loader is content with names and versions, whatever release the program was linked with, and the exit code is the program's.
#[test]
fn programs_find_the_library_by_nvidias_names() {
    assert_eq!(broadloom_cudart::LIBRARY, "libbroadloom_cudart.so");
    let folder = empty_folder("exec");
    fs::write(folder.join("linked.c"), LINKED).unwrap();
    fs::write(folder.join("program.c"), PROGRAM).unwrap();
    for (name, release) in [("libcudart.so.11.0", 11), ("libcudart.so.12", 12), ("libcudart.so.13", 13)] {
        fs::write(folder.join("versions"), format!("{name} {{ global: *; }};")).unwrap();
        let soname = format!("-Wl,-soname,{name}");
        cc(&folder, &["-shared", "-fPIC", "-Wl,--version-script,versions", &soname, "linked.c", "-o", name]);
        let program = format!("program{release}");
        cc(&folder, &["program.c", "-o", &program, name, "-ldl"]);
        let path = folder.join(&program);
        let outcome = broadloom(&["exec", "--", path.to_str().unwrap(), "--device"]);
        assert_eq!(outcome.err, "", "{name}");
        outcome.exits(7).says(&[&format!("1 device, runtime {release}, driver 0, argument --device")]);
    }
}

/// A program with kernels that asks for no library of NVIDIA's would never find ours.
#[test]
fn the_static_runtime_is_told() {
    let folder = empty_folder("exec-static");
    let code = "__attribute__((section(\".nv_fatbin\"))) const char kernels[64] = {1}; int main(void) { return kernels[0]; }";
    fs::write(folder.join("static.c"), code).unwrap();
    cc(&folder, &["static.c", "-o", "static"]);
    let path = folder.join("static");
    let outcome = broadloom(&["exec", "--", path.to_str().unwrap()]).exits(2);
    outcome.complains(&["linked with the static CUDA runtime", "`nvcc -cudart shared`"]);
}

#[test]
fn what_cannot_be_run_is_told() {
    broadloom(&["exec", "--", "./no-such-program"]).exits(2).complains(&["`./no-such-program` cannot be run"]);
    broadloom(&["exec", "--device", "toaster", "--", "true"]).exits(2).complains(&["do not run on the device `toaster`"]);
    broadloom(&["exec"]).exits(2);
}

/// On a machine without a GPU, and with a driver that is none, one sentence says so.
#[test]
fn a_gpu_that_is_not_there_is_told() {
    let outcome = shell("BROADLOOM_CUDA_DRIVER=libno-such-driver.so broadloom exec --device cuda -- true; echo $?");
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert!(
        lines[0].contains("the device `cuda` is not here: the driver `libno-such-driver.so` could not be opened"),
        "{lines:?}"
    );
    assert!(outcome.out.contains("without `--device` the program runs on the CPU"), "{lines:?}");
    assert_eq!(lines.last(), Some(&"3"));
}
