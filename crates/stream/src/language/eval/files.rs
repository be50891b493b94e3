//! Items of files as words: `int` and `float` as 4 bytes, `double` as 8, `complex` as two floats, all little-endian.
//! `bit` items are packed, the most significant bit of a byte first. Files of other [formats](crate::language::format)
//! are converted to words where they are opened.
//!
//! Items between a file and a kernel pass in blocks, as the words that kernels see. Only bits are converted here.
//!
//! Files take part in the checkpoints of a run. A reader keeps the bytes since the last checkpoint and can go back
//! to it. A writer holds its bytes back until they are committed.

use super::prefetch::Prefetch;
use super::write_behind::WriteBehind;
use crate::language::core::{Type, Value};
use crate::language::format::{Decoder, Encoder, Item};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;

/// Bytes that are read or written at once, item by item.
const PORTION: usize = 1 << 13;
/// Bytes of one read ahead. It is more than a pipe holds, so that a pipe gives less when it has no more.
const READ_AHEAD: usize = 1 << 17;

/// The bits of a byte that are read or written one by one.
#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    byte: u8,
    count: u32,
}

/// The file of a reader.
enum Source {
    /// It is read when its items are wanted.
    Direct(Decoder),
    /// A thread reads it.
    Prefetched(Prefetch),
}

/// A reader of items.
pub(super) struct Reader {
    file: Source,
    /// The bytes since the last checkpoint, and those that are read ahead.
    bytes: Vec<u8>,
    /// Number of bytes that items have taken.
    taken: usize,
    /// The unread bits of a byte, now and at the last checkpoint.
    bits: (Bits, Bits),
    /// The end of the file: an error if the file cannot be read further.
    end: Option<Option<io::Error>>,
}

impl Reader {
    /// Makes a reader of a file. `prefetches` says that a thread may read it.
    pub(super) fn new(file: Decoder, prefetches: bool) -> io::Result<Self> {
        let file = if prefetches { Source::Prefetched(Prefetch::begin(file)?) } else { Source::Direct(file) };
        Ok(Reader { file, bytes: vec![], taken: 0, bits: Default::default(), end: None })
    }

    /// Reads ahead: at least `least` items unless the file ends, and at most `most`. Between them, no more than
    /// the file has ready. Returns the number of items.
    pub(super) fn read_ahead(&mut self, ty: &Type, least: u64, most: u64) -> u64 {
        let bytes = |items: u64| match item_bytes(ty) {
            Some(size) => items.saturating_mul(size as u64),
            None => items.saturating_sub(u64::from(self.bits.0.count)).div_ceil(8),
        };
        let number = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        self.fill(number(bytes(least)), number(bytes(most)));
        let ahead = (self.bytes.len() - self.taken) as u64;
        match item_bytes(ty) {
            Some(size) => ahead / size as u64,
            None => ahead.saturating_mul(8).saturating_add(u64::from(self.bits.0.count)),
        }
    }

    /// Reads until there are `least` bytes ahead or the file ends, and further up to `most` as long as reads are
    /// complete.
    fn fill(&mut self, least: usize, most: usize) {
        // With enough bytes ahead a read might wait for no need.
        let mut is_ready = self.bytes.len() - self.taken < least;
        while self.end.is_none() {
            let (there, ahead) = (self.bytes.len(), self.bytes.len() - self.taken);
            let missing = if is_ready { most.max(least) } else { least }.saturating_sub(ahead);
            if missing == 0 {
                break;
            }
            let read = match &mut self.file {
                Source::Direct(file) => {
                    let wanted = missing.min(READ_AHEAD);
                    self.bytes.resize(there + wanted, 0);
                    let read = file.read(&mut self.bytes[there..]).map(|count| count.min(wanted));
                    let count = read.as_ref().map_or(0, |count| *count);
                    self.bytes.truncate(there + count);
                    is_ready = count == wanted;
                    read
                }
                Source::Prefetched(file) => match file.append(&mut self.bytes, ahead < least) {
                    Ok(None) => break,
                    Ok(Some(count)) => {
                        is_ready = true;
                        Ok(count)
                    }
                    Err(error) => Err(error),
                },
            };
            match read {
                Ok(0) => self.end = Some(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.end = Some(Some(error)),
            }
        }
    }

    /// Tests if an item can be read without a read of the file.
    pub(super) fn has_item(&self, ty: &Type) -> bool {
        let ahead = self.bytes.len() - self.taken;
        item_bytes(ty).map_or(self.bits.0.count > 0 || ahead > 0, |size| ahead >= size)
    }

    /// Tests if the file has ended and no item is left.
    pub(super) fn has_ended(&self, ty: &Type) -> bool {
        self.end.is_some() && !self.has_item(ty)
    }

    /// Returns the bytes behind the last item, and the bytes of an item, if the file ends within an item.
    pub(super) fn partial_item(&self, ty: &Type) -> Option<(u32, usize)> {
        let words = (self.bytes.len() - self.taken, item_bytes(ty)?);
        let (bytes, size) = match &self.file {
            Source::Direct(file) => file.partial_item(words),
            Source::Prefetched(file) => file.partial_item(words),
        };
        (self.end.is_some() && (1..size).contains(&bytes)).then_some((bytes as u32, size))
    }

    /// Drops bytes that were taken, if there are many.
    fn drop_taken(&mut self) {
        if self.taken >= PORTION && self.taken >= self.bytes.len() / 2 {
            self.mark();
        }
    }

    /// Takes bytes. Returns `None` at the end of the file. A partial item at the end is dropped.
    fn take<const N: usize>(&mut self, keeps: bool) -> io::Result<Option<[u8; N]>> {
        if !keeps {
            self.drop_taken();
        }
        if self.bytes.len() - self.taken < N {
            self.fill(N, PORTION);
        }
        match self.bytes[self.taken..].first_chunk::<N>() {
            Some(bytes) => {
                self.taken += N;
                Ok(Some(*bytes))
            }
            None => match &mut self.end {
                Some(error) => error.take().map_or(Ok(None), Err),
                None => Ok(None),
            },
        }
    }

    /// Makes the present position the one to go back to.
    pub(super) fn mark(&mut self) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bits.1 = self.bits.0;
    }

    /// Returns to the position of the last mark.
    pub(super) fn go_back(&mut self) {
        self.taken = 0;
        self.bits.0 = self.bits.1;
    }

    /// Reads an item. `keeps` says that the reader may have to go back to its mark.
    pub(super) fn read(&mut self, ty: &Type, keeps: bool) -> io::Result<Option<Value>> {
        Ok(match ty {
            Type::Bit => {
                if self.bits.0.count == 0 {
                    let Some([byte]) = self.take(keeps)? else { return Ok(None) };
                    self.bits.0 = Bits { byte, count: 8 };
                }
                let bits = &mut self.bits.0;
                bits.count -= 1;
                Some(Value::Bit(bits.byte >> bits.count & 1 != 0))
            }
            Type::Int => self.take(keeps)?.map(|bytes| Value::Int(i32::from_le_bytes(bytes))),
            Type::Float => self.take(keeps)?.map(|bytes| Value::Float(f32::from_le_bytes(bytes))),
            Type::Double => self.take(keeps)?.map(|bytes| Value::Double(f64::from_le_bytes(bytes))),
            Type::Complex => self.take(keeps)?.map(|[a, b, c, d, e, f, g, h]| {
                Value::Complex(f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]))
            }),
            Type::Void | Type::Boolean | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        })
    }
}

impl Reader {
    /// Takes a block of items that were read ahead, as words of kernels. Returns `None` if there are fewer items.
    /// `keeps` says that the reader may have to go back to its mark.
    pub(super) fn take_words(&mut self, ty: &Type, items: usize, keeps: bool) -> Option<Cow<'_, [u8]>> {
        if !keeps {
            self.drop_taken();
        }
        let Some(size) = item_bytes(ty) else { return self.take_bits(items).map(Cow::from) };
        let block = self.bytes[self.taken..].get(..items.checked_mul(size)?)?;
        self.taken += block.len();
        Some(block.into())
    }

    /// Takes a block of items that were read ahead. Returns `None` if there are fewer items.
    pub(super) fn take_values(&mut self, ty: &Type, items: usize, into: &mut VecDeque<Value>, keeps: bool) -> Option<()> {
        let words = self.take_words(ty, items, keeps)?;
        decode_scalars(ty, &words, into);
        Some(())
    }

    /// Takes bits as integers.
    fn take_bits(&mut self, items: usize) -> Option<Vec<u8>> {
        let bits = &mut self.bits.0;
        let mut words = Vec::with_capacity(items.checked_mul(4)?);
        while words.len() < items * 4 {
            if bits.count == 0 {
                *bits = Bits { byte: *self.bytes.get(self.taken)?, count: 8 };
                self.taken += 1;
            }
            for _ in 0..bits.count.min((items - words.len() / 4) as u32) {
                bits.count -= 1;
                words.extend_from_slice(&u32::from(bits.byte >> bits.count & 1).to_le_bytes());
            }
        }
        Some(words)
    }
}

/// Appends the scalars that words of kernels represent.
pub(crate) fn decode_scalars(ty: &Type, words: &[u8], into: &mut VecDeque<Value>) {
    let (fours, eights) = (words.as_chunks::<4>().0.iter(), words.as_chunks::<8>().0.iter());
    match ty {
        Type::Boolean => into.extend(fours.map(|word| Value::Boolean(*word != [0; 4]))),
        Type::Bit => into.extend(fours.map(|word| Value::Bit(*word != [0; 4]))),
        Type::Float => into.extend(fours.map(|word| Value::Float(f32::from_le_bytes(*word)))),
        Type::Double => into.extend(eights.map(|word| Value::Double(f64::from_le_bytes(*word)))),
        Type::Complex => into.extend(eights.map(|[a, b, c, d, e, f, g, h]| {
            Value::Complex(f32::from_le_bytes([*a, *b, *c, *d]), f32::from_le_bytes([*e, *f, *g, *h]))
        })),
        _ => into.extend(fours.map(|word| Value::Int(i32::from_le_bytes(*word)))),
    }
}

/// Returns the items of a type in files. Returns `None` if a file cannot hold them.
pub fn file_item(ty: &Type) -> Option<Item> {
    match ty {
        Type::Bit => Some(Item::Bit),
        Type::Int => Some(Item::Int),
        Type::Float => Some(Item::Float),
        Type::Double => Some(Item::Double),
        Type::Complex => Some(Item::Complex),
        Type::Void | Type::Boolean | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => None,
    }
}

/// Returns the bytes of the words of an item. Returns `None` if items are bits.
fn item_bytes(ty: &Type) -> Option<usize> {
    match ty {
        Type::Bit => None,
        Type::Int | Type::Float => Some(4),
        Type::Double | Type::Complex => Some(8),
        // Such items are refused when they are read.
        Type::Void | Type::Boolean | Type::Struct(_) | Type::Array(_) | Type::Portal(_) | Type::Text | Type::Unknown => Some(1),
    }
}

/// The file of a writer.
enum Target {
    /// It is written when items are committed.
    Direct(Encoder),
    /// A thread writes it. Absent while it is closed.
    Behind(Option<WriteBehind>),
}

/// A writer of items.
pub(super) struct Writer {
    file: Target,
    /// Bytes that are not written yet.
    bytes: Vec<u8>,
    /// Bits that wait for a full byte, now and at the last commit.
    bits: (Bits, Bits),
}

impl Writer {
    /// Makes a writer of a file. `behind` says that a thread may write it.
    pub(super) fn new(file: Encoder, behind: bool) -> io::Result<Self> {
        let file = if behind { Target::Behind(Some(WriteBehind::begin(file)?)) } else { Target::Direct(file) };
        Ok(Writer { file, bytes: vec![], bits: Default::default() })
    }

    /// Writes an item. `holds` says that the item may have to be dropped.
    pub(super) fn write(&mut self, value: &Value, holds: bool) -> io::Result<()> {
        match value {
            Value::Bit(bit) => self.write_bit(*bit),
            Value::Int(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Float(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Double(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Complex(real, imaginary) => {
                self.bytes.extend_from_slice(&real.to_le_bytes());
                self.bytes.extend_from_slice(&imaginary.to_le_bytes());
            }
            Value::Unset | Value::Boolean(_) | Value::Array(_) | Value::Struct(_) | Value::Portal(_) | Value::Text(_) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        }
        if holds || self.bytes.len() < PORTION { Ok(()) } else { self.commit() }
    }

    fn write_bit(&mut self, bit: bool) {
        let bits = &mut self.bits.0;
        *bits = Bits { byte: bits.byte << 1 | u8::from(bit), count: bits.count + 1 };
        if bits.count == 8 {
            self.bytes.push(std::mem::take(bits).byte);
        }
    }

    /// Adds a block of items, of which `read` stores the words of kernels. They are written by the next commit.
    pub(super) fn write_words<E>(
        &mut self,
        ty: &Type,
        bytes: usize,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if *ty == Type::Bit {
            let mut words = vec![0; bytes];
            read(&mut words)?;
            words.as_chunks::<4>().0.iter().for_each(|word| self.write_bit(*word != [0; 4]));
            return Ok(());
        }
        let start = self.bytes.len();
        self.bytes.resize(start + bytes, 0);
        read(&mut self.bytes[start..])
    }

    /// Writes all items so far. They cannot be dropped any more.
    pub(super) fn commit(&mut self) -> io::Result<()> {
        self.bits.1 = self.bits.0;
        if self.bytes.is_empty() {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        match &mut self.file {
            Target::Direct(file) => {
                file.write_all(&bytes)?;
                bytes.clear();
                self.bytes = bytes;
                Ok(())
            }
            Target::Behind(Some(file)) => file.write(bytes),
            Target::Behind(None) => Err(io::Error::other("it is closed")),
        }
    }

    /// Drops the items since the last commit.
    pub(super) fn drop_items(&mut self) {
        self.bytes.clear();
        self.bits.0 = self.bits.1;
    }

    /// Writes the last bits, padded with zeros.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let bits = std::mem::take(&mut self.bits.0);
        if bits.count > 0 {
            self.bytes.push(bits.byte << (8 - bits.count));
        }
        self.commit()?;
        if let Target::Behind(file) = &mut self.file
            && let Some(file) = file.take()
        {
            self.file = Target::Direct(file.finish()?);
        }
        match &mut self.file {
            Target::Direct(file) => file.close(),
            Target::Behind(_) => Ok(()),
        }
    }

    /// Returns the header of a closed file with its final sizes, if it has one.
    pub(super) fn final_header(&self) -> io::Result<Option<Vec<u8>>> {
        match &self.file {
            Target::Direct(file) => file.final_header(),
            Target::Behind(_) => Ok(None),
        }
    }
}
