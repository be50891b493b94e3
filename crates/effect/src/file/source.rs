//! Files that are being read.

use super::{FileError, Problem};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are read: a file, or memory.
trait Content: BufRead + Seek + Send + fmt::Debug {}

impl<T: BufRead + Seek + Send + fmt::Debug> Content for T {}

/// Counter of the bytes read, which stays when the source is given away.
#[derive(Clone, Debug, Default)]
pub(super) struct Place(Arc<AtomicU64>);

impl Place {
    /// Returns the number of bytes.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, place: u64) {
        self.0.store(place, Ordering::Relaxed);
    }
}

/// A file that is read, with the number of bytes read so far.
#[derive(Debug)]
pub(super) struct Source {
    reader: Box<dyn Content>,
    place: Place,
    len: u64,
}

impl Source {
    /// Opens a file. A pipe or a device is read to its end.
    pub(super) fn open(path: &Path) -> Result<Source, FileError> {
        let open = || {
            let mut file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
            }
            if metadata.is_file() {
                let reader = Box::new(BufReader::with_capacity(1 << 16, file));
                return Ok(Source { reader, place: Place::default(), len: metadata.len() });
            }
            let mut bytes = vec![];
            file.read_to_end(&mut bytes)?;
            Ok(Source::of_bytes(bytes))
        };
        open().map_err(|error| FileError::new(path, Problem::Read(error)))
    }

    /// Returns bytes as a file.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Source {
        let len = bytes.len() as u64;
        Source { reader: Box::new(Cursor::new(bytes)), place: Place::default(), len }
    }

    /// Returns the first bytes without consuming them. Returns fewer bytes if the file is short.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    /// Returns a shared counter of the bytes read.
    pub(super) fn place(&self) -> Place {
        self.place.clone()
    }

    /// Returns the size of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.place.set(self.place.get() + count as u64);
        Ok(count)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.reader.consume(count);
        self.place.set(self.place.get() + count as u64);
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // Short steps stay inside the buffer.
        let at = self.place.get();
        let step = match to {
            SeekFrom::Start(to) => to.checked_signed_diff(at),
            SeekFrom::Current(step) => Some(step),
            SeekFrom::End(_) => None,
        };
        let is_sound = |step: &i64| at.checked_add_signed(*step).is_some_and(|to| i64::try_from(to).is_ok());
        if !matches!(to, SeekFrom::End(_)) && !step.as_ref().is_some_and(is_sound) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it refers to a place that no file has"));
        }
        let place = match step.filter(is_sound) {
            Some(step) => {
                self.reader.seek_relative(step)?;
                at.saturating_add_signed(step)
            }
            None => self.reader.seek(to)?,
        };
        self.place.set(place);
        Ok(place)
    }
}
