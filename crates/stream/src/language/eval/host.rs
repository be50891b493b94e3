//! The environment of a program: standard output and files.

use broadloom_diag::Diagnostic;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

/// The access of programs to standard output and to files.
pub trait Host: Send {
    /// Prints a text. An error ends the program.
    fn print(&mut self, text: &str) -> io::Result<()>;

    /// Opens a file for reading. It is read in large blocks.
    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>>;

    /// Takes a warning about a run. It is dropped if the host does not keep it.
    fn warn(&mut self, _: Diagnostic) {}

    /// Creates a file for writing. It is written in large blocks, except while the input is waited for.
    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>>;

    /// Replaces the first bytes of a created file: the sizes in a header are known at the end. Returns false if the
    /// file is a pipe, or another one that cannot go back.
    fn amend(&mut self, _path: &str, _start: &[u8]) -> io::Result<bool> {
        Ok(false)
    }

    /// Tests if each file may have a thread of its own, which reads or writes it while items are computed.
    fn has_file_threads(&self) -> bool {
        false
    }

    /// Tests if files give and take the words of items, whatever format the program names.
    fn passes_words(&self) -> bool {
        false
    }
}

/// A host in memory, for tests and for callers that keep the output.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The printed text.
    pub output: String,
    /// Files by name, shared with open writers.
    pub files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// Warnings about the run.
    pub warnings: Vec<Diagnostic>,
}

struct Writer {
    name: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.files.lock().map_err(|_| io::Error::other("the files are locked"))?;
        files.entry(self.name.clone()).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Host for Memory {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.output.push_str(text);
        Ok(())
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        let files = self.files.lock().map_err(|_| io::Error::other("the files are locked"))?;
        let bytes = files.get(path).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such file"))?;
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        let mut files = self.files.lock().map_err(|_| io::Error::other("the files are locked"))?;
        files.insert(path.to_owned(), vec![]);
        Ok(Box::new(Writer { name: path.to_owned(), files: self.files.clone() }))
    }

    fn amend(&mut self, path: &str, start: &[u8]) -> io::Result<bool> {
        let mut files = self.files.lock().map_err(|_| io::Error::other("the files are locked"))?;
        let there = files.get_mut(path).and_then(|bytes| bytes.get_mut(..start.len()));
        Ok(there.map(|there| there.copy_from_slice(start)).is_some())
    }
}

/// Opens a file of this machine for reading. `-` and `/dev/stdin` are standard input, sockets included.
pub fn open_file(path: &str) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(match path {
        "-" | "/dev/stdin" => File::from(io::stdin().as_fd().try_clone_to_owned()?),
        _ => File::open(path)?,
    }))
}

/// Creates a file of this machine. `-` and `/dev/stdout` are standard output.
pub fn create_file(path: &str) -> io::Result<Box<dyn Write + Send>> {
    Ok(Box::new(match path {
        "-" | "/dev/stdout" => File::from(io::stdout().as_fd().try_clone_to_owned()?),
        _ => File::create(path)?,
    }))
}

/// Replaces the first bytes of a file of this machine. Returns false if it is no plain file.
pub fn amend_file(path: &str, start: &[u8]) -> io::Result<bool> {
    if matches!(path, "-" | "/dev/stdout") || !std::fs::metadata(path)?.is_file() {
        return Ok(false);
    }
    File::options().write(true).open(path)?.write_all(start)?;
    Ok(true)
}

/// The host of a command-line tool: files of this machine, and a function that prints.
pub struct System<F>(pub F);

impl<F: FnMut(&str) -> io::Result<()> + Send> Host for System<F> {
    fn print(&mut self, text: &str) -> io::Result<()> {
        (self.0)(text)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        open_file(path)
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        create_file(path)
    }

    fn amend(&mut self, path: &str, start: &[u8]) -> io::Result<bool> {
        amend_file(path, start)
    }

    fn has_file_threads(&self) -> bool {
        true
    }
}
