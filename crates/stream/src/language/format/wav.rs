//! Headers of WAV files.
//!
//! A header is a chain of chunks, each with its name and its size; `fmt ` describes the samples and `data` holds them. A
//! program that writes to a pipe cannot know the size: it writes the largest one, and readers read to the end.

use super::invalid;
use super::sample::{Number, Sample};
use std::io::{self, Read};

/// The description of the samples, and their bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) sample: Sample,
    pub(super) channels: u16,
    pub(super) rate: u32,
    /// The bytes of all samples; absent if only the end of the file tells.
    pub(super) size: Option<u64>,
}

/// The size that stands for an unknown one.
const UNKNOWN: u32 = u32::MAX;

/// Reads a header up to the first sample.
pub(super) fn read(file: &mut dyn Read) -> io::Result<Header> {
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid("it ends within its WAV header"),
        _ => error,
    };
    let mut start = [0; 12];
    file.read_exact(&mut start).map_err(missing)?;
    if !matches!(&start[..4], b"RIFF" | b"RF64") || &start[8..] != b"WAVE" {
        return Err(invalid("it is no WAV file; `raw` in the format reads its bytes as they are"));
    }
    let (mut described, mut large) = (None, None);
    loop {
        let mut chunk = [0; 8];
        file.read_exact(&mut chunk).map_err(missing)?;
        let size = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
        if &chunk[..4] == b"data" {
            let (sample, channels, rate) = described.ok_or_else(|| invalid("its WAV header does not describe the samples"))?;
            let size = match (size, large) {
                (UNKNOWN, Some(large)) => Some(large),
                (UNKNOWN, None) => None,
                (size, _) => Some(u64::from(size)),
            };
            return Ok(Header { sample, channels, rate, size });
        }
        let padded = u64::from(size) + u64::from(size & 1);
        let mut start = vec![];
        file.take(padded.min(64)).read_to_end(&mut start)?;
        let rest = padded - start.len() as u64;
        if io::copy(&mut file.take(rest), &mut io::sink())? < rest {
            return Err(invalid("it ends within its WAV header"));
        }
        match &chunk[..4] {
            b"fmt " => described = Some(describe(&start)?),
            b"ds64" => large = start.get(8..).and_then(|rest| rest.first_chunk()).map(|size| u64::from_le_bytes(*size)),
            _ => {}
        }
    }
}

/// Reads the chunk that describes the samples.
fn describe(chunk: &[u8]) -> io::Result<(Sample, u16, u32)> {
    let short = |at: usize| chunk.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let (Some(tag), Some(channels), Some(bits)) = (short(0), short(2), short(14)) else {
        return Err(invalid("its WAV header is too short"));
    };
    let rate = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
    // The extended form has the tag at the start of an identifier.
    let tag = if tag == 0xfffe { short(24).unwrap_or(tag) } else { tag };
    let sample = match (tag, bits) {
        (1, 8) => Sample::new(Number::Unsigned, 1),
        (1, 16 | 24 | 32) => Sample::new(Number::Signed, usize::from(bits) / 8),
        (3, 32 | 64) => Sample::new(Number::Float, usize::from(bits) / 8),
        _ => {
            let message = format!("its samples have {bits} bits in the WAV format {tag}; only PCM and floats are read");
            return Err(invalid(message));
        }
    };
    if channels == 0 {
        return Err(invalid("its WAV header has no channels"));
    }
    Ok((sample, channels, rate))
}

impl Header {
    /// Returns the bytes of the header.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let Header { sample, channels, rate, size } = *self;
        let size = size.and_then(|size| u32::try_from(size).ok()).unwrap_or(UNKNOWN);
        let tag: u16 = if sample.number == Number::Float { 3 } else { 1 };
        let frame = u32::from(channels) * sample.bytes as u32;
        let mut header = b"RIFF".to_vec();
        header.extend(size.saturating_add(36).to_le_bytes());
        header.extend(b"WAVEfmt ");
        header.extend(16u32.to_le_bytes());
        header.extend(tag.to_le_bytes());
        header.extend(channels.to_le_bytes());
        header.extend(rate.to_le_bytes());
        header.extend(rate.saturating_mul(frame).to_le_bytes());
        header.extend((frame as u16).to_le_bytes());
        header.extend((sample.bytes as u16 * 8).to_le_bytes());
        header.extend(b"data");
        header.extend(size.to_le_bytes());
        header
    }
}
