//! Headers of `.npy` files: a Python dictionary with the type of the numbers, their order and the shape.

use super::invalid;
use super::sample::{Number, Sample};
use std::io::{self, Read};

/// Maximum length of a dictionary.
const MAX_HEADER: usize = 1 << 16;
/// Length of a written header: numbers begin at a multiple of 64 bytes.
const WRITTEN: usize = 128;

/// The numbers of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) sample: Sample,
    /// Number of elements: pairs, if numbers are paired.
    pub(super) elements: u64,
}

/// Reads a header up to the first number.
pub(super) fn read(file: &mut dyn Read) -> io::Result<Header> {
    let mut start = [0; 8];
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid("it ends within its header"),
        _ => error,
    };
    file.read_exact(&mut start).map_err(missing)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(invalid("it is no `.npy` file; `raw` in the format reads its bytes as they are"));
    }
    let mut length = [0; 4];
    let width = if start[6] == 1 { 2 } else { 4 };
    file.read_exact(&mut length[..width]).map_err(missing)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(invalid(format!("its header has {length} bytes, more than {MAX_HEADER}")));
    }
    let mut text = vec![0; length];
    file.read_exact(&mut text).map_err(missing)?;
    let text = String::from_utf8_lossy(&text);
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}'"))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let described = value("descr").and_then(|rest| rest.strip_prefix('\'')?.split_once('\''));
    let Some((described, _)) = described else { return Err(invalid("its elements are records; only plain numbers are read")) };
    let sample = sample_of(described).ok_or_else(|| invalid(format!("its elements are `{described}`, which are not read")))?;
    let shape = value("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let Some((shape, _)) = shape else { return Err(invalid("its header has no shape")) };
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let extents: Vec<u64> = extents
        .map(|extent| extent.parse().ok())
        .collect::<Option<_>>()
        .ok_or_else(|| invalid(format!("`({shape})` in its header is no shape")))?;
    if value("fortran_order").is_some_and(|rest| rest.starts_with("True")) && extents.len() > 1 {
        return Err(invalid("its order is Fortran's; save `numpy.ascontiguousarray(x)`"));
    }
    let elements = extents.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
    Ok(Header { sample, elements: elements.ok_or_else(|| invalid("its shape is too large"))? })
}

/// Returns the numbers that NumPy's name stands for: `<f4`, `|u1`.
fn sample_of(described: &str) -> Option<Sample> {
    let (order, kind) = described.split_at_checked(1)?;
    let (number, bytes, paired) = match kind {
        "i1" => (Number::Signed, 1, false),
        "i2" => (Number::Signed, 2, false),
        "i4" => (Number::Signed, 4, false),
        "u1" | "b1" => (Number::Unsigned, 1, false),
        "u2" => (Number::Unsigned, 2, false),
        "u4" => (Number::Unsigned, 4, false),
        "f4" => (Number::Float, 4, false),
        "f8" => (Number::Float, 8, false),
        "c8" => (Number::Float, 4, true),
        "c16" => (Number::Float, 8, true),
        _ => return None,
    };
    Some(Sample { number, bytes, big_endian: order == ">" && bytes > 1, paired })
}

impl Header {
    /// Returns the bytes of the header. Numbers of three bytes have no name.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let Sample { number, bytes, big_endian, paired } = self.sample;
        let kind = match (number, paired) {
            (_, true) if number != Number::Float => return Err(invalid("NumPy has no pairs of integers; write cf32")),
            (_, true) => 'c',
            (Number::Signed, _) => 'i',
            (Number::Unsigned, _) => 'u',
            (Number::Float, _) => 'f',
        };
        if bytes == 3 {
            return Err(invalid("NumPy has no integers of 24 bits; write s32"));
        }
        let order = if bytes == 1 {
            '|'
        } else if big_endian {
            '>'
        } else {
            '<'
        };
        let size = if paired { 2 * bytes } else { bytes };
        let text = format!("{{'descr': '{order}{kind}{size}', 'fortran_order': False, 'shape': ({},), }}", self.elements);
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend(((WRITTEN - 10) as u16).to_le_bytes());
        header.extend(text.bytes());
        header.resize(WRITTEN - 1, b' ');
        header.push(b'\n');
        Ok(header)
    }
}
