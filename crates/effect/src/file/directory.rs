//! Directories of fields: the structure that TIFF files and EXIF blocks share.
//!
//! A directory is read with its values and its subdirectories, within bounds: broken fields are left out and named.
//! It is written in little-endian order.

use crate::image::{Field, FieldValue};
use std::collections::HashSet;

/// Maximum number of fields of a file.
const MAX_FIELDS: usize = 1 << 16;
/// Maximum number of bytes of all values of a file.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of directories that are counted.
const MAX_DIRECTORIES: usize = 1 << 16;

/// Type of unsigned integers of 16 bits.
pub(super) const SHORT: u16 = 3;
/// Type of unsigned integers of 32 bits.
pub(super) const LONG: u16 = 4;
/// Type of fractions of unsigned integers of 32 bits.
pub(super) const RATIONAL: u16 = 5;
/// Type of bytes without a meaning of their own.
pub(super) const UNDEFINED: u16 = 7;
/// Type of places of directories.
const IFD: u16 = 13;

/// Field that refers to the directory of EXIF.
pub(super) const EXIF: u16 = 34665;
/// Field that refers to the directory of places on the Earth.
pub(super) const GPS: u16 = 34853;
/// Field of the EXIF directory that refers to another one.
pub(super) const INTEROPERABILITY: u16 = 40965;

/// Returns the size of a value of a type.
fn size_of_kind(kind: u16) -> Option<u64> {
    match kind {
        1 | 2 | 6 | UNDEFINED => Some(1),
        SHORT | 8 => Some(2),
        LONG | 9 | 11 | IFD => Some(4),
        RATIONAL | 10 | 12 | 16..=18 => Some(8),
        _ => None,
    }
}

/// Returns the size of the parts of a value that have a byte order.
fn size_of_word(kind: u16) -> usize {
    match kind {
        RATIONAL | 10 => 4,
        _ => size_of_kind(kind).unwrap_or(1) as usize,
    }
}

/// Access to the bytes of a file or a block.
pub(super) trait Bytes {
    /// Returns the number of bytes.
    fn len(&self) -> u64;

    /// Returns `len` bytes from `at` on; `None` if there are fewer.
    fn get(&mut self, at: u64, len: usize) -> Option<Vec<u8>>;
}

impl Bytes for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn get(&mut self, at: u64, len: usize) -> Option<Vec<u8>> {
        let at = usize::try_from(at).ok()?;
        Some(<[u8]>::get(self, at..at.checked_add(len)?)?.to_vec())
    }
}

/// Reader of directories.
pub(super) struct Reader<B> {
    bytes: B,
    is_big_endian: bool,
    /// True if places have 64 bits.
    is_big: bool,
    /// Place of the first directory.
    pub(super) first: u64,
    fields_left: usize,
    bytes_left: u64,
    /// Numbers of fields that are left out because they are broken.
    pub(super) broken: Vec<u16>,
}

/// Field of a directory before its values are read.
pub(super) struct Entry {
    pub(super) tag: u16,
    kind: u16,
    count: u64,
    /// Place of the value, or of the place of the value.
    place: u64,
}

impl<B: Bytes> Reader<B> {
    /// Reads the header. Returns `None` if there is none.
    pub(super) fn new(mut bytes: B) -> Option<Reader<B>> {
        let head = bytes.get(0, 8)?;
        let is_big_endian = match &head[..2] {
            b"II" => false,
            b"MM" => true,
            _ => return None,
        };
        let mut reader = Reader {
            bytes,
            is_big_endian,
            is_big: false,
            first: 0,
            fields_left: MAX_FIELDS,
            bytes_left: MAX_BYTES,
            broken: vec![],
        };
        match reader.number(&head[2..4]) {
            42 => reader.first = reader.number(&head[4..8]),
            43 => {
                reader.is_big = true;
                reader.first = reader.number_at(8, 8)?;
            }
            _ => return None,
        }
        Some(reader)
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        if self.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    }

    fn number_at(&mut self, at: u64, len: usize) -> Option<u64> {
        let bytes = self.bytes.get(at, len)?;
        Some(self.number(&bytes))
    }

    /// Reads the fields of a directory without their values. Returns the place of the next directory too; 0 if there is
    /// none.
    pub(super) fn entries(&mut self, at: u64) -> Option<(Vec<Entry>, u64)> {
        let (count_bytes, entry_bytes, word) = if self.is_big { (8, 20, 8) } else { (2, 12, 4) };
        let count = self.number_at(at, count_bytes)?;
        let start = at.checked_add(count_bytes as u64)?;
        let count = usize::try_from(count).ok().filter(|count| *count <= self.fields_left)?;
        self.fields_left -= count;
        let table = self.bytes.get(start, count * entry_bytes)?;
        let mut entries = vec![];
        for (index, entry) in table.chunks_exact(entry_bytes).enumerate() {
            let (tag, kind) = (self.number(&entry[..2]) as u16, self.number(&entry[2..4]) as u16);
            let place = start + (index * entry_bytes + 4 + word) as u64;
            entries.push(Entry { tag, kind, count: self.number(&entry[4..4 + word]), place });
        }
        let next = self.number_at(start + (count * entry_bytes) as u64, word).unwrap_or(0);
        Some((entries, next))
    }

    /// Returns the bytes of the values of a field, in little-endian order.
    fn value(&mut self, entry: &Entry) -> Option<Vec<u8>> {
        let word = if self.is_big { 8 } else { 4 };
        let len = size_of_kind(entry.kind)?.checked_mul(entry.count)?;
        if len > self.bytes_left || len > self.bytes.len() {
            return None;
        }
        let place = if len <= word { entry.place } else { self.number_at(entry.place, word as usize)? };
        let mut bytes = self.bytes.get(place, len as usize)?;
        self.bytes_left -= len;
        if self.is_big_endian {
            bytes.chunks_exact_mut(size_of_word(entry.kind)).for_each(<[u8]>::reverse);
        }
        Some(bytes)
    }

    /// Reads the values of the fields that `is_wanted` names, and the directories of EXIF.
    pub(super) fn fields(&mut self, entries: &[Entry], is_wanted: &dyn Fn(u16) -> bool) -> Vec<Field> {
        let mut fields: Vec<Field> = vec![];
        for entry in entries.iter().filter(|entry| is_wanted(entry.tag)) {
            let value = match entry.tag {
                EXIF | GPS | INTEROPERABILITY => self.subdirectory(entry),
                _ => self.value(entry).map(|bytes| FieldValue::Bytes(bytes.into())),
            };
            match value.filter(|_| !fields.iter().any(|field| field.tag == entry.tag)) {
                Some(value) => fields.push(Field { tag: entry.tag, kind: entry.kind, value }),
                None => self.broken.push(entry.tag),
            }
        }
        fields.sort_by_key(|field| field.tag);
        fields
    }

    /// Reads a directory that a field refers to. Only that of EXIF has directories of its own.
    fn subdirectory(&mut self, entry: &Entry) -> Option<FieldValue> {
        let bytes = self.value(entry).filter(|_| entry.count == 1)?;
        let at = bytes.iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        let (entries, _) = self.entries(at)?;
        let is_exif = entry.tag == EXIF;
        let fields =
            self.fields(&entries, &|tag| is_exif && tag == INTEROPERABILITY || !matches!(tag, EXIF | GPS | INTEROPERABILITY));
        Some(FieldValue::Directory(fields))
    }

    /// Returns whether the values of the file have the most significant byte first.
    pub(super) fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// Returns bytes of the file.
    pub(super) fn block(&mut self, at: u64, len: usize) -> Option<Vec<u8>> {
        self.bytes.get(at, len)
    }

    /// Returns the number of directories in the chain that begins at a place.
    pub(super) fn count(&mut self, first: u64) -> usize {
        let (count_bytes, entry_bytes, word) = if self.is_big { (8, 20, 8) } else { (2, 12, 4) };
        let mut seen = HashSet::new();
        let mut at = first;
        while at != 0 && seen.len() < MAX_DIRECTORIES && seen.insert(at) {
            let next = self.number_at(at, count_bytes).and_then(|count| {
                let place = at.checked_add(count_bytes as u64)?.checked_add(count.checked_mul(entry_bytes)?)?;
                self.number_at(place, word)
            });
            match next {
                Some(next) => at = next,
                None => {
                    seen.remove(&at);
                    break;
                }
            }
        }
        seen.len()
    }
}

impl Field {
    /// Creates a field of integers of 16 bits.
    pub(super) fn shorts(tag: u16, values: &[u16]) -> Field {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Field { tag, kind: SHORT, value: FieldValue::Bytes(bytes) }
    }

    /// Creates a field of integers of 32 bits.
    pub(super) fn longs(tag: u16, values: &[u32]) -> Field {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Field { tag, kind: LONG, value: FieldValue::Bytes(bytes) }
    }

    /// Creates a field of integers of 64 bits, which only a BigTIFF has.
    pub(super) fn long8s(tag: u16, values: &[u64]) -> Field {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Field { tag, kind: 16, value: FieldValue::Bytes(bytes) }
    }

    /// Creates a field of fractions.
    pub(super) fn fractions(tag: u16, values: &[(u32, u32)]) -> Field {
        let bytes = values.iter().flat_map(|(count, of)| [count.to_le_bytes(), of.to_le_bytes()].concat()).collect();
        Field { tag, kind: RATIONAL, value: FieldValue::Bytes(bytes) }
    }

    /// Creates a field of bytes.
    pub(super) fn bytes(tag: u16, kind: u16, bytes: &[u8]) -> Field {
        Field { tag, kind, value: FieldValue::Bytes(bytes.into()) }
    }

    /// Returns the first integer.
    pub(super) fn integer(&self) -> Option<u32> {
        let FieldValue::Bytes(bytes) = &self.value else { return None };
        match self.kind {
            SHORT => Some(u32::from(u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?))),
            LONG => Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?)),
            _ => None,
        }
    }

    /// Returns unsigned integers of any size.
    pub(super) fn integers(&self) -> Option<Vec<u64>> {
        let FieldValue::Bytes(bytes) = &self.value else { return None };
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        match self.kind {
            SHORT | LONG | IFD | 16 | 18 => Some(bytes.chunks_exact(size_of_word(self.kind)).map(number).collect()),
            _ => None,
        }
    }

    pub(super) fn to_fractions(&self) -> Option<Vec<(u32, u32)>> {
        let FieldValue::Bytes(bytes) = &self.value else { return None };
        let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        let (words, _) = bytes.as_chunks::<4>();
        (self.kind == RATIONAL).then(|| words.as_chunks::<2>().0.iter().map(|[a, b]| (word(a), word(b))).collect())
    }

    /// Returns whether only a BigTIFF can hold the field.
    pub(super) fn is_big(&self) -> bool {
        match &self.value {
            FieldValue::Bytes(_) => (16..=18).contains(&self.kind),
            FieldValue::Directory(fields) => fields.iter().any(Field::is_big),
        }
    }
}

/// Appends a directory with its values to `out`, whose first byte is at `base` of the file. Returns the place of the
/// directory. Fields are sorted by their numbers. The last bytes are the place of the next directory, which is 0.
pub(super) fn write(out: &mut Vec<u8>, base: u64, fields: &[Field], is_big: bool) -> u64 {
    let word = if is_big { 8 } else { 4 };
    let placed = |at: u64| if is_big { at.to_le_bytes().to_vec() } else { (at as u32).to_le_bytes().to_vec() };
    let mut entries: Vec<(u16, u16, u64, Vec<u8>)> = vec![];
    for field in fields {
        match &field.value {
            FieldValue::Directory(inner) => {
                let at = write(out, base, inner, is_big);
                entries.push((field.tag, if is_big { 18 } else { LONG }, 1, placed(at)));
            }
            FieldValue::Bytes(bytes) => {
                let count = bytes.len() as u64 / size_of_kind(field.kind).unwrap_or(1);
                let value = match bytes.len() <= word {
                    true => bytes.to_vec(),
                    false => {
                        out.resize(out.len().next_multiple_of(2), 0);
                        let at = base + out.len() as u64;
                        out.extend(bytes.iter());
                        placed(at)
                    }
                };
                entries.push((field.tag, field.kind, count, value));
            }
        }
    }
    entries.sort_by_key(|entry| entry.0);
    out.resize(out.len().next_multiple_of(2), 0);
    let start = base + out.len() as u64;
    match is_big {
        true => out.extend((entries.len() as u64).to_le_bytes()),
        false => out.extend((entries.len() as u16).to_le_bytes()),
    }
    for (tag, kind, count, mut value) in entries {
        out.extend(tag.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(placed(count));
        value.resize(word, 0);
        out.extend(value);
    }
    out.extend(placed(0));
    start
}
