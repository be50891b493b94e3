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
mod launch;
mod program;
mod recorded;
mod shims;

pub use checked::check;
pub use shims::refusal;

use crate::failure::{Exit, Failure, codes};
use crate::options::Exec;
use crate::terminal::Terminal;
use crate::watch;
use broadloom::cpu::STRICT;
use broadloom::cpu::signals::restore_file_size;
use broadloom::cpu::supervise::supervise;
use broadloom::diag::Diagnostic;
use broadloom::{gpu_ordinal, gpus};
use launch::{GRACE, command, finish, limit_time, not_started};
use shims::{DRIVER, NAMES, SHIM, path_variable, prepare, prepend, unusable};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Environment variable with the path of a trace.
const TRACE: &str = "BROADLOOM_TRACE";

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
        command.env(TRACE, recorded::writable_path(path)?);
    }
    restore_file_size(&mut command);
    if let Some(limit) = options.time_limit {
        let ended = supervise(&mut command, GRACE, Some(limit + watch::GRACE));
        let ended = ended.map_err(|error| not_started(&options.program, &error))?;
        return finish(options, ended, terminal);
    }
    Err(not_started(&options.program, &command.exec()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_among_those_that_are_seen() {
        assert_eq!((visible(0, None), visible(2, None)), ("0".to_owned(), "2".to_owned()));
        assert_eq!((visible(0, Some("3,5")), visible(1, Some("3, 5"))), ("3".to_owned(), "5".to_owned()));
        assert_eq!((visible(0, Some("")), visible(0, Some("GPU-8932"))), ("0".to_owned(), "GPU-8932".to_owned()));
    }
}
