//! The surroundings of the jobs: folders, the device, calls of the command.

use crate::Result;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A run of the demonstration.
pub(crate) struct Session {
    /// Root of the repository.
    root: PathBuf,
    /// Folder for what the jobs write, emptied at the start.
    folder: PathBuf,
    /// The command `broadloom`, beside this program.
    command: PathBuf,
    device: &'static str,
    is_quick: bool,
    is_terminal: bool,
}

/// Output of a call, and the time from its start to its end.
pub(crate) struct Call {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) time: Duration,
}

impl Session {
    /// Finds the command and empties the folder of results.
    pub(crate) fn new(is_quick: bool) -> Result<Session> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        // This program is `PROFILE/examples/demo`; the command is `PROFILE/broadloom`.
        let own = std::env::current_exe()?;
        let built = own.parent().and_then(Path::parent).ok_or("this program has no folder")?;
        let command = built.join("broadloom");
        if !command.is_file() {
            return Err(format!("no command {}: `make build` builds it", command.display()).into());
        }
        let folder = built.join(if is_quick { "demo-quick" } else { "demo" });
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        std::fs::create_dir_all(&folder)?;
        let device = if broadloom::gpus().is_ok_and(|gpus| !gpus.is_empty()) { "cuda" } else { "cpu" };
        Ok(Session { root, folder, command, device, is_quick, is_terminal: std::io::stdout().is_terminal() })
    }

    /// Returns the device of the jobs: a GPU if there is one.
    pub(crate) fn device(&self) -> &'static str {
        self.device
    }

    /// Returns the folder of results.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the size of a job.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        if self.is_quick { quick } else { full }
    }

    /// Returns a path as it is shown: relative to the root of the repository.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Prints the heading of a job.
    pub(crate) fn chapter(&self, title: &str, about: &str) {
        let (bold, off) = if self.is_terminal { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        println!("\n{bold}── {title}{off}\n{about}\n");
    }

    /// Writes a file into the folder of results, and returns its path.
    pub(crate) fn written(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    /// Calls the command twice, the first time with an empty cache of compiled code; prints the call.
    pub(crate) fn call(&self, arguments: &[&str]) -> Result<(Call, Call)> {
        let (green, off) = if self.is_terminal { ("\x1b[1;32m", "\x1b[0m") } else { ("", "") };
        println!("{green}$ broadloom {}{off}", arguments.join(" "));
        let cache = self.folder.join("cache");
        std::fs::create_dir(&cache)?;
        let first = self.run(arguments, &cache)?;
        let again = self.run(arguments, &cache)?;
        std::fs::remove_dir_all(&cache)?;
        Ok((first, again))
    }

    /// Calls the command in the root of the repository.
    fn run(&self, arguments: &[&str], cache: &Path) -> Result<Call> {
        let start = Instant::now();
        let output =
            Command::new(&self.command).args(arguments).current_dir(&self.root).env("BROADLOOM_CACHE", cache).output()?;
        let time = start.elapsed();
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.code() != Some(0) {
            text += &String::from_utf8_lossy(&output.stderr);
        }
        Ok(Call { code: output.status.code(), output: text, time })
    }
}

impl Call {
    /// Returns the output of a call that succeeded, or an error with what it printed.
    pub(crate) fn succeeded(&self) -> Result<&str> {
        match self.code {
            Some(0) => Ok(&self.output),
            _ => Err(format!("the call failed:\n{}", self.output).into()),
        }
    }
}
