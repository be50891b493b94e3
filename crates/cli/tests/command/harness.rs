//! Calls of the command in the root of the repository.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Result of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Exit code; `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Outcome {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "\nstdout:\n{}\nstderr:\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "it panicked:\n{}", self.err);
        self
    }

    /// Asserts that standard output contains all of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.out.contains(part), "{part:?} is missing in\n{}\nstderr:\n{}", self.out, self.err);
        }
        self
    }

    /// Asserts that standard error contains all of these.
    #[track_caller]
    pub(crate) fn complains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is missing in\n{}\nstdout:\n{}", self.err, self.out);
        }
        self
    }
}

/// Returns the default folder of compiled kernels.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled")
}

/// Calls the command.
pub(crate) fn broadloom(arguments: &[&str]) -> Outcome {
    broadloom_with_input(arguments, b"")
}

/// Calls the command with standard input.
pub(crate) fn broadloom_with_input(arguments: &[&str], input: &[u8]) -> Outcome {
    let output = call(arguments, input);
    Outcome {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Calls the command with standard input, and returns the bytes of its standard output. The call succeeds.
#[track_caller]
pub(crate) fn output_of(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let output = call(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Starts the command with pipes.
pub(crate) fn piped(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_broadloom"))
        .args(arguments)
        .current_dir(root())
        .env_remove("NO_COLOR")
        .env("BROADLOOM_CACHE", cache())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn call(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = piped(arguments);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The command may end without reading; a closed pipe is not a failure of the test.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Runs a shell line in which `broadloom` is the command. Both outputs are merged, as on a terminal.
pub(crate) fn shell(line: &str) -> Outcome {
    let folder = Path::new(env!("CARGO_BIN_EXE_broadloom")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {line}")])
        .current_dir(root())
        .env("PATH", path)
        .env("BROADLOOM_CACHE", cache())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Outcome { code: output.status.code(), out: String::from_utf8_lossy(&output.stdout).into_owned(), err: String::new() }
}

/// Returns an empty folder for a test.
pub(crate) fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
