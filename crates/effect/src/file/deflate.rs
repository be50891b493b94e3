//! Strips of rows as one zlib stream (RFC 1950), each strip compressed by itself.
//!
//! A strip ends in an empty stored block at a byte boundary, so the strips of a stream are bytes one behind the other.
//! The checksum of the stream is combined from those of the strips. Rejected: a dictionary of the bytes before each
//! strip, which gains less than 1 % with strips of a megabyte.

use super::{Problem, huffman};
use flate2::{Compress, Compression, FlushCompress, Status};
use simd_adler32::Adler32;

/// Modulus of the checksum Adler-32.
const BASE: u64 = 65521;

/// A compressed strip of a stream.
pub(super) struct Strip {
    /// Blocks of the deflate format.
    pub(super) bytes: Vec<u8>,
    /// Checksum of the content.
    sum: u32,
    /// Length of the content.
    len: usize,
}

/// Computes Adler-32.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = Adler32::new();
    sum.write(bytes);
    sum.finish()
}

/// Returns the checksum of two contents, one behind the other. `len` is the length of the second.
fn combined(first: u32, second: u32, len: usize) -> u32 {
    let (a1, b1) = (u64::from(first & 0xffff), u64::from(first >> 16));
    let (a2, b2) = (u64::from(second & 0xffff), u64::from(second >> 16));
    let a = (a1 + a2 + BASE - 1) % BASE;
    let b = (b1 + b2 + (len as u64 % BASE) * (a1 + BASE - 1)) % BASE;
    (b << 16 | a) as u32
}

/// Compresses a strip quickly.
pub(super) fn fast_strip(content: &[u8], is_last: bool) -> Strip {
    Strip { bytes: huffman::compressed(content, is_last), sum: checksum(content), len: content.len() }
}

/// Compresses content quickly to a stream of its own.
pub(super) fn fast_zlib(content: &[u8]) -> Vec<u8> {
    let strip = fast_strip(content, true);
    [&Stream::HEADER[..], &strip.bytes, &strip.sum.to_be_bytes()].concat()
}

/// Compresses a strip. The level is from 1 to 9. Without the repetitions that a level finds, the strip may be smaller.
pub(super) fn strip(content: &[u8], level: u32, is_last: bool) -> Result<Strip, Problem> {
    let mut compress = Compress::new(Compression::new(level), false);
    let mut bytes = Vec::with_capacity(content.len() / 2 + 64);
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    loop {
        let at = compress.total_in() as usize;
        let status = compress.compress_vec(&content[at..], &mut bytes, flush);
        let status = status.map_err(|error| Problem::Write(std::io::Error::other(error)))?;
        let is_done = match status {
            Status::StreamEnd => true,
            Status::Ok | Status::BufError => {
                !is_last && compress.total_in() as usize == content.len() && bytes.len() < bytes.capacity()
            }
        };
        if is_done {
            let fast = fast_strip(content, is_last);
            return Ok(if fast.bytes.len() < bytes.len() { fast } else { Strip { bytes, ..fast } });
        }
        bytes.reserve(bytes.capacity().max(1 << 12));
    }
}

/// Checksum of the strips of a stream so far.
pub(super) struct Stream {
    sum: u32,
}

impl Stream {
    /// Bytes before the first strip.
    pub(super) const HEADER: [u8; 2] = [0x78, 0x01];

    /// Begins a stream.
    pub(super) fn new() -> Stream {
        Stream { sum: 1 }
    }

    /// Adds a strip to the checksum.
    pub(super) fn add(&mut self, strip: &Strip) {
        self.sum = combined(self.sum, strip.sum, strip.len);
    }

    /// Returns the bytes behind the last strip.
    pub(super) fn end(&self) -> [u8; 4] {
        self.sum.to_be_bytes()
    }
}
