//! Start and end of a program that runs with the shim libraries.

use super::shims::{NAMES, prepare, prepend};
use super::{clients, program};
use crate::failure::{Exit, Failure, codes};
use crate::options::Exec;
use crate::terminal::Terminal;
use crate::watch;
use broadloom::cpu::supervise::ProgramEnd;
use broadloom::device::StopReason;
use broadloom::diag::Diagnostic;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time between a termination request and killing the program.
pub const GRACE: Duration = Duration::from_secs(5);

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

/// Passes the time limit of a launch to the program.
pub fn limit_time(command: &mut Command, limit: Option<Duration>) {
    if let Some(limit) = limit {
        command.env("BROADLOOM_TIME_LIMIT", limit.as_secs_f64().to_string());
    }
}

/// Builds the failure for a program that could not be started.
pub fn not_started(path: &OsStr, error: &io::Error) -> Failure {
    let program = path.to_string_lossy();
    let mut diagnostic = Diagnostic::error(codes::CANNOT_READ, format!("`{program}` cannot be run: {error}"));
    if error.kind() == io::ErrorKind::NotFound && !program.contains('/') && Path::new(path).exists() {
        diagnostic = diagnostic.help(format!("a program of this folder is called `./{program}`"));
    }
    Failure::usage(diagnostic)
}

/// Ends this process as a supervised program has ended. The exit code is the program's; a signal is reported
/// as shells do.
pub fn finish(options: &Exec, ProgramEnd { status, stopped }: ProgramEnd, terminal: &mut Terminal) -> Result<Exit, Failure> {
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
