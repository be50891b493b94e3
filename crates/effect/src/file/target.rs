//! Files that are being written: under another name, until they are complete.
//!
//! A failure removes such a file. A program that is about to end by a signal calls [`discard_unfinished`], which removes
//! all of them.

use super::Problem;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Cursor, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Output of encoders.
pub trait Out: Write + Seek {}

impl<T: Write + Seek> Out for T {}

/// Paths of the files that are incomplete. Who creates or renames one holds the lock.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    // A panic elsewhere leaves the list intact.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Proof that no file is written any more. Threads that begin or finish one wait until it is dropped.
#[derive(Debug)]
pub struct Discarded {
    _paths: MutexGuard<'static, Vec<PathBuf>>,
}

/// Removes all files that are incomplete, for a program that ends before they are written. Files that are complete stay.
pub fn discard_unfinished() -> Discarded {
    let mut paths = unfinished();
    for path in paths.drain(..) {
        // This error cannot be reported: the program ends.
        let _ = fs::remove_file(path);
    }
    Discarded { _paths: paths }
}

/// A file that is removed when dropped, unless it is kept.
struct Temporary {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut paths = unfinished();
        paths.retain(|path| *path != self.path);
        if !self.is_kept {
            // This error cannot be reported. The failure that led here is reported.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_folder() -> Problem {
    Problem::Write(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"))
}

/// Checks that the path is not a folder, and that its parent is a folder.
pub(super) fn check(path: &Path) -> Result<(), Problem> {
    if path.is_dir() {
        return Err(is_folder());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let metadata = fs::metadata(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Problem::Write(io::Error::new(error.kind(), format!("there is no folder {}: create it before", folder.display())))
        }
        _ => Problem::Write(error),
    });
    match metadata?.is_dir() {
        true => Ok(()),
        false => Err(Problem::Write(io::Error::new(io::ErrorKind::NotADirectory, "its folder is a file"))),
    }
}

/// Writes a file and renames it to `path` when it is complete. A pipe or a device is written directly.
pub fn replace(path: &Path, encode: impl FnOnce(&mut dyn Out) -> Result<(), Problem>) -> Result<(), Problem> {
    // A symbolic link is kept, and the file it points to is replaced.
    let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&resolved) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(is_folder());
        }
        Ok(metadata) if !metadata.is_file() => {
            let mut bytes = Cursor::new(vec![]);
            encode(&mut bytes)?;
            let mut file = OpenOptions::new().write(true).open(&resolved).map_err(Problem::Write)?;
            return file.write_all(&bytes.into_inner()).map_err(Problem::Write);
        }
        _ => {}
    }
    let (file, mut temporary) = beside(&resolved).map_err(Problem::Write)?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    encode(&mut writer)?;
    let file = writer.into_inner().map_err(|error| Problem::Write(error.into_error()))?;
    if let Ok(metadata) = fs::metadata(&resolved) {
        file.set_permissions(metadata.permissions()).map_err(Problem::Write)?;
    }
    drop(file);
    let paths = unfinished();
    fs::rename(&temporary.path, &resolved).map_err(Problem::Write)?;
    temporary.is_kept = true;
    drop(paths);
    Ok(())
}

/// Creates a file in the folder of another, with an unused name.
fn beside(path: &Path) -> io::Result<(File, Temporary)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it has no name"))?;
    loop {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.{}.part", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let path = path.with_file_name(hidden);
        let mut paths = unfinished();
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                paths.push(path.clone());
                return Ok((file, Temporary { path, is_kept: false }));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
