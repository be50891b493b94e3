//! The environment of a program: standard output and files.

use broadloom_diag::Diagnostic;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
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
}

/// The host of a command-line tool: files of this machine, and a function that prints.
pub struct System<F>(pub F);

impl<F: FnMut(&str) -> io::Result<()> + Send> Host for System<F> {
    fn print(&mut self, text: &str) -> io::Result<()> {
        (self.0)(text)
    }

    fn open(&mut self, path: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(std::fs::File::open(path)?))
    }

    fn create(&mut self, path: &str) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(std::fs::File::create(path)?))
    }
}
