//! The bytes of a file as words of items.

use super::sample::{Conversion, Item, Sample};
use super::{Container, Format, invalid, npy, wav};
use std::io::{self, Read};

/// A file that is read as words of items.
pub struct Decoder {
    file: Box<dyn Read + Send>,
    /// The conversion, if the file does not hold the words themselves.
    conversion: Option<Conversion>,
    /// Bytes that were read and not converted: less than one number, or less than one item at the end.
    bytes: Vec<u8>,
    /// Bytes before the end of the data. Other things may follow.
    left: u64,
    /// Items in a second, if the file says so.
    rate: Option<f64>,
}

impl Decoder {
    /// Returns a decoder of a file that holds the words of its items.
    pub fn plain(file: Box<dyn Read + Send>) -> Decoder {
        Decoder { file, conversion: None, bytes: vec![], left: u64::MAX, rate: None }
    }

    /// Reads the header of a file, if it has one. The items are those of the tape.
    pub fn new(mut file: Box<dyn Read + Send>, name: &str, format: &Format, item: Item) -> io::Result<Decoder> {
        let container = format.container_of(name);
        let (sample, channels, left, rate) = match container {
            Container::Raw => {
                let paired = |sample: Sample| Sample { paired: sample.paired || item == Item::Complex, ..sample };
                (format.sample.map(paired), None, None, None)
            }
            Container::Wav => {
                let header = wav::read(&mut *file)?;
                (Some(header.sample), Some(header.channels), header.size, Some(header.rate))
            }
            Container::Npy => {
                let npy::Header { sample, elements } = npy::read(&mut *file)?;
                let size = sample.bytes as u64 * if sample.paired { 2 } else { 1 };
                (Some(sample), None, Some(elements.saturating_mul(size)), None)
            }
        };
        let Some(sample) = sample else { return Ok(Decoder { rate: format.rate.map(f64::from), ..Decoder::plain(file) }) };
        if let (Some(found), Some(wanted)) = (channels, format.channels)
            && found != wanted
        {
            return Err(invalid(format!("it has {found} channels, and not {wanted}")));
        }
        if let (Container::Wav | Container::Npy, Some(wanted)) = (container, format.sample)
            && (wanted.number, wanted.bytes) != (sample.number, sample.bytes)
        {
            return Err(invalid(format!("its numbers are {sample}, and not {wanted}")));
        }
        if item == Item::Complex && channels.is_some_and(|channels| channels != 2) {
            let channels = channels.unwrap_or(0);
            return Err(invalid(format!("it has {channels} channels; complex items take two, the real and the imaginary part")));
        }
        sample.check(item, true).map_err(|error| invalid(error.to_string()))?;
        if item == Item::Bit {
            return Err(invalid("bits are read from raw files only"));
        }
        let scaled = container != Container::Npy;
        // The numbers of pairs on a tape of single items are items, one by one.
        let conversion = Conversion { sample, item, scaled };
        let conversion = (!conversion.is_identity()).then_some(conversion);
        // Channels are items one after the other, or the parts of a complex one.
        let numbers = if item == Item::Complex { 2 } else { 1 };
        let of_header = rate.map(|rate| f64::from(rate) * f64::from(channels.unwrap_or(1)) / f64::from(numbers));
        let rate = of_header.or(format.rate.map(f64::from));
        Ok(Decoder { file, conversion, bytes: vec![], left: left.unwrap_or(u64::MAX), rate })
    }

    /// Returns the items in a second, if they are known.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Returns the bytes in the file of the part of an item that the end of the file left over, and those of an item.
    /// `words` says the same of the words that were returned.
    pub fn partial_item(&self, words: (usize, usize)) -> (usize, usize) {
        let Some(Conversion { sample, item, .. }) = self.conversion else { return words };
        let numbers = if item == Item::Complex { 2 } else { 1 };
        (words.0 / item.word() * sample.bytes + self.bytes.len(), numbers * sample.bytes)
    }

    /// Reads words into a buffer, which has room for one at least. It reads the file once, unless that gives less than
    /// a number. Returns 0 at the end.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(conversion) = self.conversion else {
            let most = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let count = self.file.read(&mut into[..most])?.min(most);
            self.left -= count as u64;
            return Ok(count);
        };
        let (number, word) = (conversion.sample.bytes, conversion.item.word());
        let wanted = into.len() / word * number;
        if wanted == 0 && !into.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the buffer has no room for a word"));
        }
        loop {
            let there = self.bytes.len();
            let most = (wanted - there.min(wanted)).min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.bytes.resize(there + most, 0);
            let read = self.file.read(&mut self.bytes[there..]);
            let count = read.as_ref().map_or(0, |count| (*count).min(most));
            self.bytes.truncate(there + count);
            self.left -= count as u64;
            if read? == 0 {
                return Ok(0);
            }
            let numbers = self.bytes.len() / number;
            if numbers > 0 {
                conversion.decode(&self.bytes[..numbers * number], &mut into[..numbers * word]);
                self.bytes.drain(..numbers * number);
                return Ok(numbers * word);
            }
        }
    }
}
