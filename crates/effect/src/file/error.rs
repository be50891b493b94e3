//! Files that cannot be read or written.

use super::Format;
use crate::image::{ImageError, SampleType};
use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub problem: Problem,
}

impl FileError {
    /// Makes an error.
    pub(crate) fn new(path: &Path, problem: Problem) -> FileError {
        FileError { path: path.to_owned(), problem }
    }

    /// Returns whether the machine is at fault: no disk, no memory, no permission.
    pub fn is_of_machine(&self) -> bool {
        match &self.problem {
            Problem::Write(_) | Problem::Image(ImageError::Memory(_)) => true,
            Problem::Read(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory),
            _ => false,
        }
    }
}

/// The reason why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It cannot be opened or read.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// It cannot be written.
    #[error("cannot be written: {0}")]
    Write(io::Error),
    /// Its first bytes are those of no format.
    #[error("is no image: it begins as neither PNG, JPEG, TIFF, EXR nor PFM")]
    NoImage,
    /// Its name has no extension of a format.
    #[error("the format is not known by the name: use .png, .tif, .exr or .pfm")]
    NoFormat,
    /// The format is read only.
    #[error("{} is read, not written: use .png, .tif, .exr or .pfm", .0.name())]
    NotWritten(Format),
    /// Its content is broken. `at` is the byte behind the last one that was read.
    #[error("broken {} at byte {at}: {reason}", .format.name())]
    Broken {
        /// The format.
        format: Format,
        /// Bytes read.
        at: u64,
        /// The reason.
        reason: String,
    },
    /// Its content is broken, at a place that is not known yet.
    #[error("broken: {0}")]
    Decode(String),
    /// It uses a feature of the format that is not read.
    #[error("{0}")]
    Unsupported(String),
    /// No pixels, or too many.
    #[error("says that it has {width}×{height} pixels; both sides must be from 1 to 2³¹ − 1")]
    Size {
        /// The width in the file.
        width: u64,
        /// The height in the file.
        height: u64,
    },
    /// It needs more memory than allowed.
    #[error("says that it has {width}×{height} pixels, {bytes} bytes; the limit is {limit} bytes")]
    TooLarge {
        /// The width in the file.
        width: u64,
        /// The height in the file.
        height: u64,
        /// Bytes of all samples.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The format has no such samples.
    #[error("{} has no samples of {wanted}: it has {}", .format.name(), types(.format))]
    SampleType {
        /// The format.
        format: Format,
        /// The type asked for.
        wanted: SampleType,
    },
    /// The format has no such planes.
    #[error("{} holds grey or RGB{}; the image has {}: write .tif or .exr", .format.name(), alpha(.format), .names.join(", "))]
    Planes {
        /// The format.
        format: Format,
        /// The planes of the image.
        names: Vec<String>,
    },
    /// A line of a text is wrong.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
    /// The image cannot be made.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl Problem {
    /// A failed read, as a decoder reports it. What the system did not report is about the content.
    pub(super) fn of_read(error: io::Error) -> Problem {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Problem::Decode("the file ends before the image".to_owned()),
            io::ErrorKind::InvalidInput => Problem::Decode("it names a place that no file has".to_owned()),
            _ if error.raw_os_error().is_none() => Problem::Decode(error.to_string()),
            _ => Problem::Read(error),
        }
    }

    /// Adds the format and the place to broken content.
    pub(super) fn at(self, format: Format, at: u64) -> Problem {
        match self {
            Problem::Decode(reason) => Problem::Broken { format, at, reason },
            other => other,
        }
    }
}

fn types(format: &Format) -> String {
    let names: Vec<&str> = format.sample_types().iter().map(|sample| sample.name()).collect();
    names.join(", ")
}

fn alpha(format: &Format) -> &'static str {
    if *format == Format::Png { ", with or without alpha" } else { "" }
}
