//! Calls passed through to NVIDIA's libraries. A fake library that prints its arguments takes their place.

use broadloom_device::trace::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the library's path: cargo puts it beside the tests or one folder up.
fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let mut files = exe.ancestors().skip(1).take(2).map(|folder| folder.join(broadloom_cudart::LIBRARY));
    files.find(|file| file.exists()).expect("the library was not built")
}

fn cc(arguments: &[&str]) {
    let output = Command::new("cc").args(["-std=gnu11", "-Wall"]).args(arguments).output().expect("`cc` is needed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Builds the fake NVIDIA libraries and a program linked with some of them. Returns the program and the
/// libraries' folder.
fn build(test: &str, program: &str, libraries: &[&str]) -> (PathBuf, PathBuf) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cudart-{test}"));
    std::fs::create_dir_all(&folder).unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let (source, at) = (text(sources.join("nvidia.c")), |name: &str| text(folder.join(name)));
    for (name, define) in [("libcudart.so.12", "-DRUNTIME"), ("libcuda.so.1", "-DDRIVER")] {
        cc(&["-shared", "-fPIC", define, &format!("-Wl,-soname,{name}"), &source, "-o", &at(name)]);
    }
    let path = at("program");
    let mut words = vec!["-o".to_owned(), path.clone(), text(sources.join(format!("{program}.c")))];
    words.extend(libraries.iter().map(|name| if name.contains('/') { (*name).to_owned() } else { at(name) }));
    words.push(format!("-Wl,-rpath,{}:{}", folder.display(), library().parent().unwrap().display()));
    cc(&words.iter().map(String::as_str).collect::<Vec<_>>());
    (PathBuf::from(path), folder)
}

fn run(program: &Path, variables: &[(&str, &str)]) -> Output {
    Command::new(program).envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the names of a trace's events on the lanes of a process, `host` or `cuda`.
fn spans(trace: &Value, process: &str) -> Vec<(String, f64)> {
    let events = trace["traceEvents"].as_array().unwrap();
    let named = events.iter().find(|event| event["name"] == "process_name" && event["args"]["name"] == process);
    let number = &named.unwrap_or_else(|| panic!("no {process}: {trace}"))["pid"];
    let own = events.iter().filter(|event| event["ph"] == "X" && event["pid"] == *number);
    own.map(|event| (event["name"].as_str().unwrap().to_owned(), event["dur"].as_f64().unwrap())).collect()
}

#[test]
fn what_passes_arrives_as_it_was_given() {
    let (program, folder) = build("passing", "passed", &["libcudart.so.12", "libcuda.so.1"]);
    let library = library();
    let preload = ("LD_PRELOAD", library.to_str().unwrap());
    let plain = run(&program, &[]);
    assert_eq!((plain.status.code(), text(&plain.stderr)), (Some(3), String::new()));
    let passed = run(&program, &[preload, ("BROADLOOM_DEVICE", "cuda")]);
    assert_eq!((passed.status.code(), text(&passed.stderr), text(&passed.stdout)), (Some(3), String::new(), text(&plain.stdout)));
    let file = folder.join("trace.json");
    let trace = ("BROADLOOM_TRACE", file.to_str().unwrap());
    let recorded = run(&program, &[preload, ("BROADLOOM_DEVICE", "cuda:0"), trace]);
    assert_eq!((recorded.status.code(), text(&recorded.stderr)), (Some(3), String::new()));
    assert_eq!(text(&recorded.stdout), text(&plain.stdout));
    let trace: Value = std::fs::read_to_string(file).unwrap().parse().unwrap();
    let calls: Vec<String> = spans(&trace, "host").into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        calls,
        [
            "__cudaRegisterFunction",
            "cudaMalloc",
            "cudaMemset3D",
            "cudaCreateChannelDesc",
            "cudaGetErrorString",
            "cudaLaunchKernel",
            "cudaLaunchKernel",
            "cudaLaunchKernel",
            "cudaLaunchKernel",
            "cudaLaunchKernel",
            "cudaDeviceSynchronize",
            "cuGetProcAddress_v2",
            "cuGetProcAddress_v2",
            "cuGetProcAddress_v2",
            "cuInit",
            "cuModuleGetFunction",
            "cuLaunchKernel",
            "cuTexRefSetMipmapLevelBias",
            "cuTensorMapEncodeIm2col",
            "cuCtxSynchronize",
        ]
    );
    // Refused and captured launches did not run. The fake event times are one microsecond apart.
    let mut kernels = spans(&trace, "cuda");
    kernels.sort_by(|(a, _), (b, _)| a.cmp(b));
    let names: Vec<&str> = kernels.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["saxpy", "saxpy", "saxpy", "scale"]);
    assert!(kernels.iter().all(|(_, length)| (length - 1.0).abs() < 0.01), "{kernels:?}");
}

/// Tests a program started with this library in place of NVIDIA's, which is in another folder.
#[test]
fn nvidias_library_is_found_behind_this_one() {
    let own = library();
    let (program, folder) = build("passing-found", "passed", &[own.to_str().unwrap()]);
    let (reference, _) = build("passing-reference", "passed", &["libcudart.so.12", "libcuda.so.1"]);
    let expected = text(&run(&reference, &[]).stdout);
    let folder = folder.to_str().unwrap();
    for variable in ["BROADLOOM_NVIDIA", "LD_LIBRARY_PATH"] {
        let output = run(&program, &[("BROADLOOM_DEVICE", "cuda"), (variable, folder)]);
        assert_eq!((text(&output.stdout), text(&output.stderr)), (expected.clone(), String::new()), "{variable}");
    }
}
