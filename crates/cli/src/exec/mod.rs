//! `broadloom exec`: a compiled CUDA program, unchanged, on a machine without a GPU.
//!
//! The program asks the system's loader for NVIDIA's libraries. A folder is prepared in which libraries of those names lead to Broadloom's
//! stand-in, and put before all others; then the program takes the place of this process. On a GPU it is simply started: everything it needs
//! is there.

mod program;
mod stub;

use crate::failure::{Exit, Failure, codes};
use crate::options::Exec;
use crate::terminal::Terminal;
use broadloom::device::CacheFolder;
use broadloom::diag::Diagnostic;
use broadloom::gpu_ordinal;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The stand-in, as it is built.
const LIBRARY: &str = "libbroadloom_cudart.so";

/// Names that programs ask for, with the version of symbols that each has.
const NAMES: [(&str, Option<&str>); 6] = [
    ("libcudart.so.11.0", Some("libcudart.so.11.0")),
    ("libcudart.so.12", Some("libcudart.so.12")),
    ("libcudart.so.13", Some("libcudart.so.13")),
    ("libcudart.so", None),
    ("libcuda.so.1", None),
    ("libcuda.so", None),
];

/// Runs a program in place of this one; comes back only when that cannot be done.
pub fn run(options: &Exec, _terminal: &mut Terminal) -> Result<Exit, Failure> {
    let mut command = Command::new(&options.program);
    command.args(&options.arguments);
    let device = options.device.clone().or_else(|| std::env::var("BROADLOOM_DEVICE").ok()).unwrap_or_else(|| "cpu".into());
    match device.as_str() {
        "cpu" | "interp" => {
            if let Some(reason) = program::objection(Path::new(&options.program)) {
                let message = format!("`{}` cannot be run on the device `{device}`: {reason}", options.program.to_string_lossy());
                let help = "link it with `nvcc -cudart shared`";
                return Err(Failure::usage(Diagnostic::error(codes::STAND_IN, message).help(help)));
            }
            let folder = prepare()?;
            command.env("LD_LIBRARY_PATH", before(&folder, std::env::var_os("LD_LIBRARY_PATH")));
            command.env("BROADLOOM_DEVICE", &device);
        }
        name if gpu_ordinal(name).is_some() => {
            let ordinal = gpu_ordinal(name).unwrap_or_default();
            command.env("CUDA_VISIBLE_DEVICES", ordinal.to_string());
        }
        name => {
            let message = format!("CUDA programs do not run on the device `{name}`");
            return Err(Failure::usage(
                Diagnostic::error(codes::NO_DEVICE, message).help("there is `cpu`, `interp` and, on a GPU, `cuda`"),
            ));
        }
    }
    let error = command.exec();
    let program = options.program.to_string_lossy();
    let mut diagnostic = Diagnostic::error(codes::CANNOT_READ, format!("`{program}` cannot be run: {error}"));
    if error.kind() == io::ErrorKind::NotFound && !program.contains('/') && Path::new(&options.program).exists() {
        diagnostic = diagnostic.help(format!("a program of this folder is called `./{program}`"));
    }
    Err(Failure::usage(diagnostic))
}

/// A folder before the others that the loader looks at.
fn before(folder: &Path, others: Option<OsString>) -> OsString {
    let mut all = folder.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

fn failed(message: String) -> Failure {
    Failure::new(Exit::Machine, Diagnostic::error(codes::STAND_IN, message))
}

/// The stand-in: beside this command, or where a build leaves it.
fn library() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os("BROADLOOM_CUDART") {
        return Ok(PathBuf::from(named));
    }
    let command = std::env::current_exe().map_err(|error| failed(format!("the place of this command is not known: {error}")))?;
    let folder = command.parent().unwrap_or(Path::new("."));
    let places = [folder.to_owned(), folder.join("deps"), folder.join("../lib")];
    let found = places.iter().map(|place| place.join(LIBRARY)).find(|path| path.exists());
    found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
        let message = format!("there is no {LIBRARY} beside {}", command.display());
        let diagnostic = Diagnostic::error(codes::STAND_IN, message).help("`make build` makes it");
        Failure::new(Exit::Machine, diagnostic)
    })
}

/// The folder with NVIDIA's names.
fn prepare() -> Result<PathBuf, Failure> {
    let library = library()?;
    let beside = library.parent().unwrap_or(Path::new(".")).join("cuda");
    let kept = CacheFolder::Default.path().map(|folder| folder.join("exec"));
    let mut problems = vec![];
    for folder in kept.into_iter().chain([beside]) {
        match fill(&folder, &library) {
            Ok(()) => return Ok(folder),
            Err(error) => problems.push(format!("{}: {error}", folder.display())),
        }
    }
    Err(failed(format!("no folder can be written for the stand-in: {}", problems.join("; "))))
}

/// Writes what is missing in a folder. Several may do so at once: a file takes its place whole.
fn fill(folder: &Path, library: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let link = folder.join(LIBRARY);
    if fs::read_link(&link).ok().as_deref() != Some(library) {
        let new = folder.join(format!("{LIBRARY}.{}", std::process::id()));
        std::os::unix::fs::symlink(library, &new)?;
        fs::rename(new, &link)?;
    }
    for (name, version) in NAMES {
        let (path, bytes) = (folder.join(name), stub::library(name, version, LIBRARY));
        if fs::read(&path).ok().as_ref() != Some(&bytes) {
            let new = folder.join(format!("{name}.{}", std::process::id()));
            fs::write(&new, bytes)?;
            fs::rename(new, path)?;
        }
    }
    Ok(())
}
