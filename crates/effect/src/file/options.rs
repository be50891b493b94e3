//! Choices of a file that is written.

use super::Format;
use crate::image::SampleType;

/// Effort of lossless compression. No choice changes a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Files are written quickly, and are somewhat larger.
    #[default]
    Fast,
    /// The usual effort of the format.
    Balanced,
    /// Files are as small as possible.
    Best,
}

/// Choices of a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Format; `None` for that of the name's extension.
    pub format: Option<Format>,
    /// Type of the samples; `None` for that of the image, or the nearest that the format holds.
    pub samples: Option<SampleType>,
    /// Number of bits of the samples of a DPX; `None` for those of the file that was read, or what suits the type.
    pub bits: Option<u8>,
    /// Effort of lossless compression.
    pub compression: Compression,
    /// Quality of lossy compression, from 1 to 100.
    pub quality: u8,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            format: None,
            samples: None,
            bits: None,
            compression: Compression::default(),
            quality: WriteOptions::QUALITY,
        }
    }
}

impl WriteOptions {
    /// Default of the quality.
    pub const QUALITY: u8 = 90;

    /// Returns the default choices with a type of samples.
    pub fn of_samples(samples: Option<SampleType>) -> WriteOptions {
        WriteOptions { samples, ..WriteOptions::default() }
    }
}
