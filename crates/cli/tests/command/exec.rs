//! Tests of `broadloom exec`: a program linked with NVIDIA's names finds Broadloom's library.

use crate::harness::{broadloom, empty_folder, shell};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Link-time substitute for NVIDIA's runtime: names and a version.
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

/// The loader accepts the names and versions for any release that the program was linked with. The exit code
/// is the program's.
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

/// A program linked with the replacement library by NVIDIA's names still requests NVIDIA's libraries.
#[test]
fn programs_are_linked_with_the_stand_in() {
    let folder = empty_folder("exec-linked");
    let code = "int cuInit(unsigned), cuDriverGetVersion(int *), cudaRuntimeGetVersion(int *);
                int main(void) { int driver = 0, runtime = 0;
                return cuInit(0) || cuDriverGetVersion(&driver) || cudaRuntimeGetVersion(&runtime) || driver < 12000 || runtime / 1000 != 12 ? 1 : 7; }";
    fs::write(folder.join("program.c"), code).unwrap();
    let path = folder.join("program");
    for driver in ["-lcuda", "-l:libcuda.so.1"] {
        let line = format!("cc program.c -o program -L$TRITON_LIBCUDA_PATH {driver} -l:libcudart.so.12 && echo linked");
        let line = format!("cd {} && broadloom exec -- sh -c '{line}'", folder.display());
        let linked = shell(&line);
        assert_eq!(linked.out, "linked\n");
        broadloom(&["exec", "--", path.to_str().unwrap()]).exits(7);
        let needed = shell(&format!("readelf -d {}", path.display())).out;
        assert!(needed.contains("[libcuda.so.1]") && needed.contains("[libcudart.so.12]"), "{needed}");
        assert!(!needed.contains("broadloom"), "{needed}");
    }
}

/// A library that finds NVIDIA's runtime in its own folder, like PyTorch's, still calls the replacement
/// library.
#[test]
fn libraries_with_an_rpath_are_reached() {
    let folder = empty_folder("exec-rpath");
    fs::create_dir(folder.join("nvidia")).unwrap();
    fs::write(folder.join("linked.c"), LINKED).unwrap();
    let plugin = "int cudaGetDeviceCount(int *), cudaRuntimeGetVersion(int *);
                  int plugin(void) { int devices = 0, version = 0; return cudaGetDeviceCount(&devices) || cudaRuntimeGetVersion(&version) ? 1 : version / 1000; }";
    fs::write(folder.join("plugin.c"), plugin).unwrap();
    let host = "#include <dlfcn.h>
                int main(int count, char **arguments) { void *library = dlopen(arguments[1], RTLD_NOW);
                int (*plugin)(void) = library ? (int (*)(void))dlsym(library, \"plugin\") : 0; return plugin ? plugin() : 99; }";
    fs::write(folder.join("host.c"), host).unwrap();
    let direct = "int plugin(void); int main(void) { return plugin(); }";
    fs::write(folder.join("direct.c"), direct).unwrap();
    fs::write(folder.join("versions"), "libcudart.so.12 { global: *; };").unwrap();
    let runtime = "nvidia/libcudart.so.12";
    let soname = "-Wl,-soname,libcudart.so.12";
    cc(&folder, &["-shared", "-fPIC", "-Wl,--version-script,versions", soname, "linked.c", "-o", runtime]);
    let rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/nvidia";
    cc(&folder, &["-shared", "-fPIC", "plugin.c", "-o", "libplugin.so", runtime, rpath]);
    cc(&folder, &["host.c", "-o", "host", "-ldl"]);
    cc(&folder, &["direct.c", "plugin.c", "-o", "direct", runtime, rpath]);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    broadloom(&["exec", "--", &path("host"), &path("libplugin.so")]).exits(12);
    broadloom(&["exec", "--", &path("direct")]).exits(12);
}

/// The replacement assembler prints its version and copies valid PTX with a terminating zero. It reports
/// errors in invalid PTX.
#[test]
fn the_assembler_checks_and_copies() {
    let folder = empty_folder("exec-ptxas");
    let output = folder.join("kernel.o");
    let version = shell("broadloom exec -- sh -c '$TRITON_PTXAS_PATH --version'").out;
    assert!(version.contains("Cuda compilation tools, release 13.0, V13.0.0\n"), "{version}");
    let options = "-lineinfo --fmad=false -v --opt-level 0 --regAllocOptLevel=2 --gpu-name=sm_80";
    let line = format!("broadloom exec -- sh -c '$TRITON_PTXAS_PATH {options} examples/saxpy.ptx -o {}'", output.display());
    assert_eq!(shell(&line).out, "");
    let text = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/saxpy.ptx")).unwrap();
    assert_eq!(fs::read(&output).unwrap(), [text.as_slice(), &[0]].concat());
    fs::write(folder.join("bad.ptx"), ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { nonsense; }\n").unwrap();
    let bad = folder.join("bad.ptx");
    broadloom(&["ptxas", bad.to_str().unwrap(), "-o", "/dev/null"]).exits(2).complains(&["bad.ptx:4"]);
    broadloom(&["ptxas", "-v"]).exits(2).complains(&["takes one file of PTX"]);
}

/// A program with kernels that requests no NVIDIA library would never find Broadloom's library.
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

/// A missing GPU or an invalid driver is reported in one sentence.
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
