//! Words of items as the bytes of a file.

use super::sample::{Conversion, Item, Sample};
use super::{Container, Format, npy, wav};
use std::io::{self, Write};

/// The rate of a WAV file of which nothing else is known.
const RATE: u32 = 48_000;

/// The header of a file.
#[derive(Clone, Copy)]
enum Header {
    Wav(wav::Header),
    Npy(npy::Header),
}

/// A file that is written as words of items.
pub struct Encoder {
    file: Box<dyn Write + Send>,
    /// The conversion, if the file does not hold the words themselves.
    conversion: Option<Conversion>,
    header: Option<Header>,
    /// The bytes of numbers that were written.
    written: u64,
    buffer: Vec<u8>,
}

impl Encoder {
    /// Returns an encoder of a file that holds the words of its items.
    pub fn plain(file: Box<dyn Write + Send>) -> Encoder {
        Encoder { file, conversion: None, header: None, written: 0, buffer: vec![] }
    }

    /// Writes the header of a file, if its format has one, with sizes that are not known yet.
    pub fn new(file: Box<dyn Write + Send>, name: &str, format: &Format, item: Item) -> io::Result<Encoder> {
        let container = format.container_of(name);
        if item == Item::Bit {
            return Ok(Encoder::plain(file));
        }
        let sample = format.sample.unwrap_or(Sample::words_of(item));
        let paired = item == Item::Complex || sample.paired && container == Container::Raw;
        let sample = Sample { paired, ..sample };
        let conversion = Conversion { sample, item, scaled: container != Container::Npy };
        let header = match container {
            Container::Raw => None,
            Container::Wav => {
                let channels = if item == Item::Complex { 2 } else { format.channels.unwrap_or(1) };
                Some(Header::Wav(wav::Header { sample, channels, rate: format.rate.unwrap_or(RATE), size: None }))
            }
            Container::Npy => Some(Header::Npy(npy::Header { sample, elements: 0 })),
        };
        let conversion = (!conversion.is_identity()).then_some(conversion);
        let mut encoder = Encoder { file, conversion, header, written: 0, buffer: vec![] };
        if let Some(header) = encoder.header(None)? {
            encoder.file.write_all(&header)?;
            encoder.file.flush()?;
        }
        Ok(encoder)
    }

    /// Returns the header for a number of bytes, which is absent if it is not known.
    fn header(&self, size: Option<u64>) -> io::Result<Option<Vec<u8>>> {
        Ok(match self.header {
            None => None,
            Some(Header::Wav(header)) => Some(wav::Header { size, ..header }.bytes()),
            Some(Header::Npy(header)) => {
                let element = header.sample.bytes as u64 * if header.sample.paired { 2 } else { 1 };
                Some(npy::Header { elements: size.unwrap_or(0) / element, ..header }.bytes()?)
            }
        })
    }

    /// Returns the header for the numbers that were written so far, which belongs to the start of the file.
    pub fn final_header(&self) -> io::Result<Option<Vec<u8>>> {
        self.header(Some(self.written))
    }

    /// Tests if the file is of no use before its header has the final sizes.
    pub fn needs_its_size(&self) -> bool {
        matches!(self.header, Some(Header::Npy(_)))
    }

    /// Writes words of whole items.
    pub fn write_all(&mut self, words: &[u8]) -> io::Result<()> {
        let Some(conversion) = self.conversion else {
            self.written += words.len() as u64;
            return self.file.write_all(words);
        };
        self.buffer.clear();
        conversion.encode(words, &mut self.buffer);
        self.written += self.buffer.len() as u64;
        self.file.write_all(&self.buffer)
    }

    /// Ends the file. A chunk of a WAV file has an even number of bytes.
    pub fn close(&mut self) -> io::Result<()> {
        if matches!(self.header, Some(Header::Wav(_))) && self.written % 2 == 1 {
            self.file.write_all(&[0])?;
        }
        self.file.flush()
    }
}
