//! `broadloom exec`: runs a compiled CUDA program unmodified on a machine without a GPU.
//!
//! The program requests NVIDIA's libraries from the system's loader. A folder with shim libraries of those
//! names is put first in the search path. Their functions open Broadloom's replacement library at the first
//! call (`broadloom-shim`). The program then replaces this process.
//!
//! A program that does not request these libraries itself, such as an interpreter, gets a shim preloaded.
//! Libraries that it opens later may search their own folders. **The replacement library itself is never
//! preloaded: its symbols, and those of LLVM, would take the place of the program's.**
//!
//! On a GPU the program is started directly. To record it there, a shim is loaded before NVIDIA's libraries,
//! and the replacement library forwards calls to them.

mod checked;
mod clients;
mod folder;
mod program;
mod recorded;

pub use checked::check;

use crate::failure::{Exit, Failure, codes};
use crate::options::{ASSEMBLER, Exec};
use crate::terminal::Terminal;
use crate::watch;
use broadloom::cpu::STRICT;
use broadloom::cpu::signals::restore_file_size;
use broadloom::cpu::supervise::{Ended, supervise};
use broadloom::device::StopReason;
use broadloom::device::private::{Reason, Refusal};
use broadloom::diag::Diagnostic;
use broadloom::{gpu_ordinal, gpus};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time between a termination request and killing the program.
const GRACE: Duration = Duration::from_secs(5);

/// File name of the replacement library.
const LIBRARY: &str = "libbroadloom_cudart.so";

/// Name of the shim that is preloaded. It has the functions of driver and runtime.
const SHIM: &str = "libbroadloom_shim.so";

/// Names of the shims with their symbol versions: those that programs request, and the one that is preloaded.
const NAMES: [(&str, Option<&str>); 9] = [
    ("libnvJitLink.so.12", Some("libnvJitLink.so.12")),
    ("libnvJitLink.so.13", Some("libnvJitLink.so.13")),
    ("libcudart.so.11.0", Some("libcudart.so.11.0")),
    ("libcudart.so.12", Some("libcudart.so.12")),
    ("libcudart.so.13", Some("libcudart.so.13")),
    ("libcudart.so", None),
    ("libcuda.so.1", None),
    ("libcuda.so", None),
    (SHIM, None),
];

/// Index of the first runtime name, and of the first driver name. The preloaded shim follows the driver.
const RUNTIME: usize = 2;
const DRIVER: usize = 6;

/// Replaces this process by a program. Returns only on failure.
pub fn run(options: &Exec, terminal: &mut Terminal) -> Result<Exit, Failure> {
    check_trace_folder()?;
    let named = || std::env::var("BROADLOOM_DEVICE").ok().filter(|name| !name.is_empty());
    let device = options.device.clone().or_else(named).unwrap_or_else(|| "cpu".into());
    let mut command = match device.as_str() {
        "cpu" | STRICT | "interp" => command(&options.program, &options.arguments, &device)?,
        name => match gpu_ordinal(name) {
            Some(ordinal) => on_gpu(options, name, ordinal)?,
            None => {
                let message = format!("CUDA programs do not run on the device `{name}`");
                return Err(Failure::usage(
                    Diagnostic::error(codes::NO_DEVICE, message)
                        .help("there is `cpu`, `cpu:strict`, `interp` and, on a GPU, `cuda`"),
                ));
            }
        },
    };
    limit_time(&mut command, options.time_limit);
    if options.stats {
        return recorded::run(command, options, terminal);
    }
    if let Some(path) = &options.trace {
        command.env("BROADLOOM_TRACE", recorded::writable_path(path)?);
    }
    restore_file_size(&mut command);
    if let Some(limit) = options.time_limit {
        let ended = supervise(&mut command, GRACE, Some(limit + watch::GRACE));
        let ended = ended.map_err(|error| not_started(&options.program, &error))?;
        return finish(options, ended, terminal);
    }
    Err(not_started(&options.program, &command.exec()))
}

/// Ends this process as a supervised program has ended. The exit code is the program's; a signal is reported
/// as shells do.
fn finish(options: &Exec, Ended { status, stopped }: Ended, terminal: &mut Terminal) -> Result<Exit, Failure> {
    terminal.flush();
    match (stopped, options.time_limit) {
        (Some(StopReason::Signal(signal)), _) => Ok(Exit::stopped(signal)),
        (Some(StopReason::TimeLimit), limit) => {
            let subject = format!("`{}`", options.program.to_string_lossy());
            Err(Failure::new(Exit::Failed, watch::late_message(&subject, limit.unwrap_or_default())))
        }
        (None, _) => std::process::exit(status.code().unwrap_or_else(|| {
            use std::os::unix::process::ExitStatusExt;
            128 + status.signal().unwrap_or_default()
        })),
    }
}

/// Passes the time limit of a launch to the program.
fn limit_time(command: &mut Command, limit: Option<Duration>) {
    if let Some(limit) = limit {
        command.env("BROADLOOM_TIME_LIMIT", limit.as_secs_f64().to_string());
    }
}

/// Builds the command for a program with the shims before NVIDIA's libraries.
pub fn command(program: &OsStr, arguments: &[OsString], device: &str) -> Result<Command, Failure> {
    if let Some(reason) = program::objection(Path::new(program)) {
        let message = format!("`{}` cannot be run on the device `{device}`: {reason}", program.to_string_lossy());
        let help = "link it with `nvcc -cudart shared`";
        return Err(Failure::usage(Diagnostic::error(codes::STAND_IN, message).help(help)));
    }
    let folder = prepare("cuda", &NAMES)?;
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", prepend(&folder, std::env::var_os("LD_LIBRARY_PATH")));
    command.env("BROADLOOM_DEVICE", device);
    // A program that finds the runtime by the search path needs nothing else. The programs that it starts are
    // not affected.
    if !program::finds_runtime(Path::new(program))
        && let Some(preloaded) = clients::preload_list(&folder, std::env::var_os("LD_PRELOAD"))
    {
        command.env("LD_PRELOAD", preloaded);
    }
    clients::set_variables(&mut command, &folder);
    Ok(command)
}

/// Builds the command for a program on a GPU. To record it, the replacement library forwards calls to
/// NVIDIA's libraries.
fn on_gpu(options: &Exec, name: &str, ordinal: u32) -> Result<Command, Failure> {
    let reason = match gpus() {
        Ok(gpus) if (ordinal as usize) < gpus.len() => None,
        Ok(gpus) => Some(format!("the device `{name}` is not here: there {} here", plural(gpus.len()))),
        Err(error) => Some(error.to_string()),
    };
    if let Some(reason) = reason {
        let help = "without `--device` the program runs on the CPU";
        return Err(Failure::new(Exit::Machine, Diagnostic::error(codes::NO_DEVICE, reason).help(help)));
    }
    let mut command = Command::new(&options.program);
    command.args(&options.arguments);
    command.env("CUDA_VISIBLE_DEVICES", visible(ordinal, std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref()));
    if options.trace.is_some() || options.stats {
        let folder = prepare("driver", &NAMES[DRIVER..])?;
        let preloaded = prepend(&folder.join(SHIM), std::env::var_os("LD_PRELOAD"));
        command.env("BROADLOOM_DEVICE", name).env("LD_PRELOAD", preloaded);
        // The static runtime in such a program opens the driver by name.
        if program::objection(Path::new(&options.program)).is_some() {
            command.env("LD_LIBRARY_PATH", prepend(&folder, std::env::var_os("LD_LIBRARY_PATH")));
        }
    }
    Ok(command)
}

fn plural(gpus: usize) -> String {
    if gpus == 1 { "is one GPU".to_owned() } else { format!("are {gpus} GPUs") }
}

/// Returns a GPU's number for NVIDIA's libraries: the GPU is counted among those that the user makes visible.
fn visible(ordinal: u32, seen: Option<&str>) -> String {
    let named = seen.and_then(|list| list.split(',').nth(ordinal as usize));
    named.map(str::trim).filter(|name| !name.is_empty()).map_or_else(|| ordinal.to_string(), str::to_owned)
}

/// Builds the failure for a program that could not be started.
fn not_started(path: &OsStr, error: &io::Error) -> Failure {
    let program = path.to_string_lossy();
    let mut diagnostic = Diagnostic::error(codes::CANNOT_READ, format!("`{program}` cannot be run: {error}"));
    if error.kind() == io::ErrorKind::NotFound && !program.contains('/') && Path::new(path).exists() {
        diagnostic = diagnostic.help(format!("a program of this folder is called `./{program}`"));
    }
    Failure::usage(diagnostic)
}

/// Prepends a folder or a file to a list for the loader.
fn prepend(folder: &Path, others: Option<OsString>) -> OsString {
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

/// Environment variables that hold paths.
const NAMED_LIBRARY: &str = "BROADLOOM_CUDART";
const TRACE: &str = "BROADLOOM_TRACE";

/// Returns the path in an environment variable, if it is set and not empty.
fn path_variable(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the usage error for an environment variable with an unusable path.
fn unusable(variable: &str, path: &Path, reason: &str, takes: &str) -> Failure {
    let message = format!("{variable} is `{}`, which cannot be used: {reason}; it takes {takes}", path.display());
    Failure::usage(Diagnostic::error(codes::SETTING, message).help(format!("correct {variable} or unset it")))
}

/// Fails if the folder of the trace does not exist.
fn check_trace_folder() -> Result<(), Failure> {
    let Some(path) = path_variable(TRACE) else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() && !path.is_dir() => Ok(()),
        Ok(_) => Err(unusable(TRACE, &path, "it is no file in a folder", "the path of a file")),
        Err(error) => Err(unusable(TRACE, &path, &error.to_string(), "the path of a file in an existing folder")),
    }
}

/// Returns the replacement library: beside this command, or in the build folder.
fn library() -> Result<PathBuf, Failure> {
    if let Some(named) = path_variable(NAMED_LIBRARY) {
        let refused = |reason: String| unusable(NAMED_LIBRARY, &named, &reason, &format!("the path of {LIBRARY}"));
        let mut magic = [0; 4];
        let read = std::fs::File::open(&named).and_then(|mut file| file.read_exact(&mut magic));
        return match read.and_then(|()| named.canonicalize()) {
            Ok(path) if magic == *b"\x7fELF" => Ok(path),
            Ok(_) => Err(refused("it is no library".into())),
            Err(error) => Err(refused(error.to_string())),
        };
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

/// Returns programs with NVIDIA's names beside the libraries, with their link targets.
fn programs() -> Result<[(&'static str, PathBuf); 1], Failure> {
    let command = std::env::current_exe().map_err(|error| failed(format!("the place of this command is not known: {error}")))?;
    Ok([(ASSEMBLER, command)])
}

/// Prepares a folder with some of NVIDIA's names.
fn prepare(kind: &str, names: &[(&str, Option<&str>)]) -> Result<PathBuf, Failure> {
    let (library, programs) = (library()?, programs()?);
    let (found, refused) = folder::ShimFolder { kind, names, library: &library, link: LIBRARY, programs: &programs }.prepare();
    let Some(found) = found else {
        let places: Vec<String> = refused.iter().map(|refusal| format!("{refusal}")).collect();
        return Err(failed(format!("there is no folder for the stand-in: {}", places.join("; "))));
    };
    // Foreign files are reported. Locations that cannot be written are not.
    for refusal in refused.iter().filter(|refusal| matches!(refusal.reason, Reason::Content(_))) {
        eprintln!("broadloom: not used: {refusal}; {}", refusal.help());
    }
    Ok(found)
}

/// Returns why the folder beside compiled code is not used. Nothing is created.
pub fn refusal() -> Option<Refusal> {
    let (library, programs) = (library().ok()?, programs().ok()?);
    folder::ShimFolder { kind: "cuda", names: &NAMES, library: &library, link: LIBRARY, programs: &programs }.refusal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_among_those_that_are_seen() {
        assert_eq!((visible(0, None), visible(2, None)), ("0".to_owned(), "2".to_owned()));
        assert_eq!((visible(0, Some("3,5")), visible(1, Some("3, 5"))), ("3".to_owned(), "5".to_owned()));
        assert_eq!((visible(0, Some("")), visible(0, Some("GPU-8932"))), ("0".to_owned(), "GPU-8932".to_owned()));
    }

    #[test]
    fn the_driver_and_the_shim_are_the_end_of_the_names() {
        assert!(NAMES[DRIVER..].iter().all(|(name, _)| name.starts_with("libcuda.so") || *name == SHIM));
        assert!(NAMES[RUNTIME..DRIVER].iter().all(|(name, _)| name.starts_with("libcudart.so")));
        assert!(NAMES[..RUNTIME].iter().all(|(name, _)| name.starts_with(broadloom_shim::LINKER_NAME)));
    }
}
