//! Files that cannot be read or written.

use super::Format;
use crate::image::{ImageError, SampleType};
use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct FileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Reason of the failure.
    #[source]
    pub problem: Problem,
}

impl FileError {
    /// Creates an error.
    pub(crate) fn new(path: &Path, problem: Problem) -> FileError {
        FileError { path: path.to_owned(), problem }
    }

    /// Returns whether the machine is at fault, such as a full disk, too little memory or a missing
    /// permission.
    pub fn is_of_machine(&self) -> bool {
        match &self.problem {
            Problem::Write(_) | Problem::Image(ImageError::Memory(_)) => true,
            Problem::Read(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory),
            _ => false,
        }
    }
}

/// Reason why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// The file cannot be written.
    #[error("cannot be written: {0}")]
    Write(io::Error),
    /// The first bytes match no format.
    #[error("is no image: it begins as neither PNG, JPEG, TIFF, EXR, WebP, HDR, DPX nor PFM")]
    NoImage,
    /// The name has no extension of a known format.
    #[error("the format is not known by the name: use .png, .jpg, .tif, .exr, .webp, .hdr, .dpx or .pfm")]
    NoFormat,
    /// The content is broken. `at` is the position after the last byte read.
    #[error("broken {} at byte {at}: {reason}", .format.name())]
    Broken {
        /// Format of the file.
        format: Format,
        /// Number of bytes read.
        at: u64,
        /// Reason of the failure.
        reason: String,
    },
    /// The content is broken, at a position that is not yet known.
    #[error("broken: {0}")]
    Decode(String),
    /// The file uses an unsupported feature of its format.
    #[error("{0}")]
    Unsupported(String),
    /// The file declares no pixels, or too many.
    #[error("says that it has {width}×{height} pixels; both sides must be from 1 to 2³¹ − 1")]
    Size {
        /// Width in the file.
        width: u64,
        /// Height in the file.
        height: u64,
    },
    /// The image needs more memory than allowed.
    #[error("says that it has {width}×{height} pixels, {bytes} bytes; the limit is {limit} bytes")]
    TooLarge {
        /// Width in the file.
        width: u64,
        /// Height in the file.
        height: u64,
        /// Bytes of all samples.
        bytes: u64,
        /// Maximum number of bytes.
        limit: u64,
    },
    /// The format does not support the sample type.
    #[error("{} has no samples of {wanted}: it has {}", .format.name(), types(.format))]
    SampleType {
        /// Format of the file.
        format: Format,
        /// Requested sample type.
        wanted: SampleType,
    },
    /// The format does not support the planes of the image.
    #[error("{} holds grey or RGB{}; the image has {}: write .tif or .exr", .format.name(), alpha(.format), .names.join(", "))]
    Planes {
        /// Format of the file.
        format: Format,
        /// Names of the planes of the image.
        names: Vec<String>,
    },
    /// A line of a text file is invalid.
    #[error("line {line}: {reason}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Reason of the failure.
        reason: String,
    },
    /// The image cannot be created.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl Problem {
    /// Converts a failed read, as a decoder reports it. Errors that the system did not report are about the
    /// content.
    pub(super) fn of_read(error: io::Error) -> Problem {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Problem::Decode("the file ends before the image".to_owned()),
            io::ErrorKind::InvalidInput => Problem::Decode("it names a place that no file has".to_owned()),
            _ if error.raw_os_error().is_none() => Problem::Decode(error.to_string()),
            _ => Problem::Read(error),
        }
    }

    /// Adds the format and the position to an error of broken content.
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
    if matches!(format, Format::Png | Format::WebP | Format::Dpx) { ", with or without alpha" } else { "" }
}
