//! `broadloom exec`: a compiled CUDA program, unchanged, on a machine without a GPU.
//!
//! The program asks the system's loader for NVIDIA's libraries. A folder is prepared in which libraries of those names lead to Broadloom's
//! stand-in, and put before all others; then the program takes the place of this process. On a GPU it is simply started: everything it needs
//! is there.

mod checked;
mod program;
mod recorded;
mod stub;

pub use checked::check;

use crate::failure::{Exit, Failure, codes};
use crate::options::Exec;
use crate::terminal::Terminal;
use broadloom::device::CacheFolder;
use broadloom::diag::Diagnostic;
use broadloom::gpu_ordinal;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
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
pub fn run(options: &Exec, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let device = options.device.clone().or_else(|| std::env::var("BROADLOOM_DEVICE").ok()).unwrap_or_else(|| "cpu".into());
    let mut command = match device.as_str() {
        "cpu" | "interp" => command(&options.program, &options.arguments, &device)?,
        name if gpu_ordinal(name).is_some() && (options.trace.is_some() || options.stats) => {
            let message = format!("what a program does on the device `{name}` is not recorded");
            return Err(Failure::usage(Diagnostic::error(codes::NO_DEVICE, message).help("`cpu` and `interp` are")));
        }
        name if gpu_ordinal(name).is_some() => {
            let mut command = Command::new(&options.program);
            command.args(&options.arguments).env("CUDA_VISIBLE_DEVICES", gpu_ordinal(name).unwrap_or_default().to_string());
            command
        }
        name => {
            let message = format!("CUDA programs do not run on the device `{name}`");
            return Err(Failure::usage(
                Diagnostic::error(codes::NO_DEVICE, message).help("there is `cpu`, `interp` and, on a GPU, `cuda`"),
            ));
        }
    };
    if options.stats {
        return recorded::run(command, options, terminal);
    }
    if let Some(path) = &options.trace {
        command.env("BROADLOOM_TRACE", recorded::place(path)?);
    }
    Err(not_started(&options.program, &command.exec()))
}

/// A program with the stand-in before NVIDIA's libraries.
pub fn command(program: &OsStr, arguments: &[OsString], device: &str) -> Result<Command, Failure> {
    if let Some(reason) = program::objection(Path::new(program)) {
        let message = format!("`{}` cannot be run on the device `{device}`: {reason}", program.to_string_lossy());
        let help = "link it with `nvcc -cudart shared`";
        return Err(Failure::usage(Diagnostic::error(codes::STAND_IN, message).help(help)));
    }
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", before(&prepare()?, std::env::var_os("LD_LIBRARY_PATH")));
    command.env("BROADLOOM_DEVICE", device);
    Ok(command)
}

/// Why a program was not started.
fn not_started(path: &OsStr, error: &io::Error) -> Failure {
    let program = path.to_string_lossy();
    let mut diagnostic = Diagnostic::error(codes::CANNOT_READ, format!("`{program}` cannot be run: {error}"));
    if error.kind() == io::ErrorKind::NotFound && !program.contains('/') && Path::new(path).exists() {
        diagnostic = diagnostic.help(format!("a program of this folder is called `./{program}`"));
    }
    Failure::usage(diagnostic)
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
    // Several versions may stand beside each other, each with its own library.
    let mut hasher = DefaultHasher::new();
    library.hash(&mut hasher);
    let kept = CacheFolder::Default.path().map(|folder| folder.join("exec").join(format!("{:016x}", hasher.finish())));
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
