//! Formats of files: raw numbers of several types, WAV and `.npy`.
//!
//! A tape carries items of one type, in memory as words of kernels: `int` and `float` as 4 bytes, `double` as 8,
//! `complex` as two floats, all little-endian. A [`Decoder`] turns the bytes of a file into such words while they are
//! read, an [`Encoder`] turns words into the bytes of a file. A file that holds the words of its items passes
//! unchanged.
//!
//! Invariants:
//! - a decoder never waits for more bytes of a file than the item needs that it returns next;
//! - no size in a header is trusted: memory grows with the bytes that were read.

mod decode;
mod encode;
mod npy;
mod sample;
mod wav;

pub use decode::Decoder;
pub use encode::Encoder;
pub use sample::{FormatError, Item, Sample};

use std::fmt;
use std::sync::Arc;

/// The structure of a file around its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Numbers, and nothing else.
    Raw,
    /// WAV: channels of samples, with a rate.
    Wav,
    /// The file format of NumPy.
    Npy,
}

/// A format as it is written: absent parts are found in the header of the file, or follow from the type of the tape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The container. If absent, the ending of the file's name decides.
    pub container: Option<Container>,
    /// The numbers.
    pub sample: Option<Sample>,
    /// Items in a second.
    pub rate: Option<u32>,
    /// Channels of a WAV file.
    pub channels: Option<u16>,
}

/// Help text that lists all formats.
pub const FORMATS: &str = "a format is `raw`, `wav` or `npy`, or numbers: s8, u8, s16, u16, s24, s32, u32, f32, f64, with `be` behind \
                           for the most significant byte first, with `c` before for pairs (cs16, cu8, cf32); `rate=48000` and \
                           `channels=2` may follow";

impl Format {
    /// Parses the words of a format: `s16`, `wav f32 rate=48000 channels=2`.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let mut format = Format::default();
        for word in text.split([' ', ',', ':']).filter(|word| !word.is_empty()) {
            let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
            match (word, word.split_once('=')) {
                ("raw", _) => format.container = Some(Container::Raw),
                ("wav", _) => format.container = Some(Container::Wav),
                ("npy", _) => format.container = Some(Container::Npy),
                (_, Some(("rate", rate))) => {
                    format.rate = Some(number(rate).ok_or_else(|| FormatError::Rate(rate.to_owned()))?);
                }
                (_, Some(("channels", channels))) => {
                    let count = number(channels).and_then(|count| u16::try_from(count).ok());
                    format.channels = Some(count.ok_or_else(|| FormatError::Channels(channels.to_owned()))?);
                }
                _ => format.sample = Some(Sample::parse(word).ok_or_else(|| FormatError::Unknown(word.to_owned()))?),
            }
        }
        Ok(format)
    }

    /// Returns the container of a file: the written one, or that of the ending of its name.
    pub fn container_of(&self, name: &str) -> Container {
        let ends = |ending: &str| name.len() > ending.len() && name.to_ascii_lowercase().ends_with(ending);
        match self.container {
            Some(container) => container,
            None if ends(".wav") => Container::Wav,
            None if ends(".npy") => Container::Npy,
            None => Container::Raw,
        }
    }

    /// Checks that a tape can carry the numbers of a file.
    pub fn check(&self, name: &str, item: Item, reads: bool) -> Result<(), FormatError> {
        let container = self.container_of(name);
        if item == Item::Bit && (container != Container::Raw || self.sample.is_some()) {
            return Err(FormatError::Bits);
        }
        let Some(sample) = self.sample else { return Ok(()) };
        sample.check(item, reads)?;
        if !reads && container == Container::Wav && !sample.fits_wav() {
            return Err(FormatError::Wav(sample));
        }
        Ok(())
    }
}

/// The file of a reader or a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFile {
    /// The path as the program or the command gives it.
    pub name: Arc<str>,
    /// The format as written; absent parts are found in the file.
    pub format: Format,
}

impl fmt::Display for StreamFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn invalid(message: impl Into<String>) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, message.into())
}
