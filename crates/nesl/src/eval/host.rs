//! The environment of a program: files, the console, processes.

use std::io;

/// Access of programs to their environment. The evaluator itself opens, reads and prints nothing.
pub trait Host: Send {
    /// Reads a whole file.
    fn read_file(&mut self, path: &str) -> io::Result<Vec<u8>>;

    /// Writes bytes to a file; appends them or replaces its contents.
    fn write_file(&mut self, path: &str, bytes: &[u8], append: bool) -> io::Result<()>;

    /// Reads a line from the console with its newline; an empty result at the end of the input.
    fn read_console(&mut self) -> io::Result<Vec<u8>>;

    /// Returns an environment variable, or an empty string.
    fn environment_variable(&mut self, name: &str) -> String;

    /// Runs a command with an input and returns its output.
    fn run_command(&mut self, command: &str, input: &[u8]) -> io::Result<Vec<u8>>;
}

/// A host without files, console, environment and processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SealedHost;

fn sealed<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "this session has no access to the world outside"))
}

impl Host for SealedHost {
    fn read_file(&mut self, _: &str) -> io::Result<Vec<u8>> {
        sealed()
    }

    fn write_file(&mut self, _: &str, _: &[u8], _: bool) -> io::Result<()> {
        sealed()
    }

    fn read_console(&mut self) -> io::Result<Vec<u8>> {
        Ok(vec![])
    }

    fn environment_variable(&mut self, _: &str) -> String {
        String::new()
    }

    fn run_command(&mut self, _: &str, _: &[u8]) -> io::Result<Vec<u8>> {
        sealed()
    }
}

/// The host of a command: the files, the console, the environment and the shell of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Host for System {
    fn read_file(&mut self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn write_file(&mut self, path: &str, bytes: &[u8], append: bool) -> io::Result<()> {
        use io::Write as _;
        let mut options = std::fs::OpenOptions::new();
        let options = options.create(true).write(true).append(append).truncate(!append);
        options.open(path)?.write_all(bytes)
    }

    fn read_console(&mut self) -> io::Result<Vec<u8>> {
        use io::BufRead as _;
        let mut line = vec![];
        io::stdin().lock().read_until(b'\n', &mut line)?;
        Ok(line)
    }

    fn environment_variable(&mut self, name: &str) -> String {
        std::env::var(name).unwrap_or_default()
    }

    fn run_command(&mut self, command: &str, input: &[u8]) -> io::Result<Vec<u8>> {
        use io::Write as _;
        use std::process::{Command, Stdio};
        let mut child = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        // A separate thread writes the input, so a command that answers at once does not block on its output.
        let input = input.to_vec();
        let stdin = child.stdin.take();
        let writer = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
        let output = child.wait_with_output()?;
        // A command may end without reading its input; that is not an error of the program.
        let _ = writer.join();
        Ok(output.stdout)
    }
}
