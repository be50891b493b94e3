//! DPX (SMPTE 268M): a header of 2048 bytes, then rows of integers of 8, 10, 12 or 16 bits.
//!
//! Integers of 10 and 12 bits are scaled to 16 bits, which keeps all of their values. The header of a file that is read
//! is written again, with the user data behind it; what describes the pixels is changed.

use super::interleave::{ByteOrder, Interleaved, Rows};
use super::limits::check_size;
use super::options::WriteOptions;
use super::planes::simple_planes;
use super::rows::{Opened, ReadRows};
use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem};
use crate::image::{Alpha, ColorSpace, Image, Metadata, Orientation, Plane, Rect, SampleType, reserved};
use std::io::{Read, Seek, SeekFrom};

/// Size of the header without user data.
const HEADER: usize = 2048;
/// Maximum size of the header with user data.
const MAX_HEADER: usize = 1 << 20;
/// Approximate number of bytes that are written at a time.
const BAND: usize = 1 << 20;
/// Number that stands for a field without a value.
const UNDEFINED: u32 = u32::MAX;

/// Places of the fields of a header.
mod place {
    pub(super) const DATA: usize = 4;
    pub(super) const VERSION: usize = 8;
    pub(super) const FILE_SIZE: usize = 16;
    pub(super) const GENERIC_SIZE: usize = 24;
    pub(super) const INDUSTRY_SIZE: usize = 28;
    pub(super) const USER_SIZE: usize = 32;
    pub(super) const KEY: usize = 660;
    pub(super) const ORIENTATION: usize = 768;
    pub(super) const ELEMENTS: usize = 770;
    pub(super) const WIDTH: usize = 772;
    pub(super) const HEIGHT: usize = 776;
    /// Fields of the first element.
    pub(super) const SIGN: usize = 780;
    pub(super) const RANGE: usize = 784;
    pub(super) const DESCRIPTOR: usize = 800;
    pub(super) const TRANSFER: usize = 801;
    pub(super) const COLORIMETRIC: usize = 802;
    pub(super) const BITS: usize = 803;
    pub(super) const PACKING: usize = 804;
    pub(super) const ENCODING: usize = 806;
    pub(super) const ELEMENT_DATA: usize = 808;
    pub(super) const LINE_PADDING: usize = 812;
    pub(super) const END_PADDING: usize = 816;
}

/// Value of the transfer characteristic for linear light.
pub(super) const LINEAR: u8 = 2;

/// Orientations by their numbers in a header.
const ORIENTATIONS: [Orientation; 8] = [
    Orientation::Upright,
    Orientation::Mirrored,
    Orientation::Flipped,
    Orientation::Turned,
    Orientation::Transposed,
    Orientation::Clockwise,
    Orientation::Anticlockwise,
    Orientation::Transverse,
];

/// A header, whose first four bytes tell the byte order.
struct Header {
    bytes: Vec<u8>,
    is_big: bool,
}

impl Header {
    fn word(&self, at: usize) -> u32 {
        let bytes = [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]];
        if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn half(&self, at: usize) -> u16 {
        let bytes = [self.bytes[at], self.bytes[at + 1]];
        if self.is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn set(&mut self, at: usize, value: u32) {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes[at..at + 4].copy_from_slice(&bytes);
    }

    fn set_half(&mut self, at: usize, value: u16) {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes[at..at + 2].copy_from_slice(&bytes);
    }

    /// Returns a header of bytes that begin with the magic number.
    fn of_bytes(bytes: &[u8]) -> Header {
        Header { bytes: bytes.to_vec(), is_big: bytes.starts_with(b"SDPX") }
    }

    /// Creates a header. Fields without a value have all bits set; texts are empty.
    fn new() -> Header {
        let mut header = Header { bytes: vec![0xff; HEADER], is_big: true };
        header.bytes[..4].copy_from_slice(b"SDPX");
        header.bytes[place::VERSION..place::VERSION + 8].copy_from_slice(b"V1.0\0\0\0\0");
        header.set(place::GENERIC_SIZE, 1664);
        header.set(place::INDUSTRY_SIZE, 384);
        header.set(place::USER_SIZE, 0);
        // Texts: names, times, creator, project and copyright, and those of the elements, the source and the film.
        for (first, last) in [(36, 660), (820, 852), (1432, 1620), (1664, 1712), (1732, 1864)] {
            header.bytes[first..last].fill(0);
        }
        header
    }
}

/// Arrangement of the bits of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    /// One behind the other from the lowest bit of words of 32 bits on.
    Packed,
    /// 10 bits: three in a word of 32 bits; 12 bits: one in a word of 16 bits. Lowest bits are padding.
    Left,
    /// As `Left`, but highest bits are padding.
    Right,
}

/// Layout of rows.
#[derive(Clone, Copy, Debug)]
struct Layout {
    bits: u32,
    packing: Packing,
    is_big: bool,
    /// Number of samples of a row.
    samples: usize,
    /// True if the first of three samples has the lowest bits of its word.
    is_reversed: bool,
}

impl Layout {
    /// Returns the number of bytes of a row without padding to words of 32 bits.
    fn line(self) -> usize {
        match (self.bits, self.packing) {
            (8, _) => self.samples,
            (16, _) | (12, Packing::Left | Packing::Right) => self.samples * 2,
            (10, Packing::Left | Packing::Right) => self.samples.div_ceil(3) * 4,
            (bits, _) => (self.samples * bits as usize).div_ceil(32) * 4,
        }
    }

    /// Returns the place of a sample in its word of filled 10 bits.
    fn shift(self, index: usize) -> u32 {
        let step = if self.is_reversed { index % 3 } else { 2 - index % 3 } as u32;
        step * 10 + if self.packing == Packing::Left { 2 } else { 0 }
    }

    fn word(self, bytes: [u8; 4]) -> u32 {
        if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Appends the samples of a row as integers.
    fn decode(self, line: &[u8], out: &mut Vec<u16>) {
        let halves = || {
            line.as_chunks::<2>()
                .0
                .iter()
                .map(|bytes| if self.is_big { u16::from_be_bytes(*bytes) } else { u16::from_le_bytes(*bytes) })
        };
        let words = line.as_chunks::<4>().0;
        match (self.bits, self.packing) {
            (8, _) => out.extend(line[..self.samples].iter().map(|byte| u16::from(*byte))),
            (16, _) => out.extend(halves().take(self.samples)),
            (12, Packing::Left) => out.extend(halves().take(self.samples).map(|half| half >> 4)),
            (12, Packing::Right) => out.extend(halves().take(self.samples).map(|half| half & 0xfff)),
            (10, Packing::Left | Packing::Right) => {
                out.extend((0..self.samples).map(|index| (self.word(words[index / 3]) >> self.shift(index) & 0x3ff) as u16));
            }
            (bits, _) => out.extend((0..self.samples).map(|index| {
                let first = index * bits as usize;
                let low = self.word(words[first / 32]) >> (first % 32);
                // A sample may lie in two words.
                let high = words.get(first / 32 + 1).map_or(0, |word| u64::from(self.word(*word)) << (32 - first % 32));
                ((u64::from(low) | high) & ((1 << bits) - 1)) as u16
            })),
        }
    }
}

/// Returns the names of the planes, in the order of the samples of a pixel.
fn names(descriptor: u8) -> Option<&'static [&'static str]> {
    Some(match descriptor {
        0 | 1 | 2 | 3 | 4 | 6 => &["Y"],
        50 => &["R", "G", "B"],
        51 => &["R", "G", "B", "A"],
        52 => &["A", "B", "G", "R"],
        _ => return None,
    })
}

/// Scales an integer of some bits to 16 bits.
fn widened(value: u16, bits: u32) -> u16 {
    let most = (1u32 << bits) - 1;
    ((u32::from(value) * 65535 + most / 2) / most) as u16
}

/// Scales an integer of 16 bits to some bits.
fn narrowed(value: u16, bits: u32) -> u32 {
    let most = (1u64 << bits) - 1;
    ((u64::from(value) * most + 32767) / 65535) as u32
}

/// Rows of a file.
struct DpxRows {
    source: Source,
    layout: Layout,
    /// Number of bytes from a row to the next.
    pitch: usize,
    /// Place of the next row.
    next: u64,
    /// Samples of a pixel in the order of the file, by the planes of the image.
    places: Vec<usize>,
    header: Image,
}

impl ReadRows for DpxRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let (width, count) = (self.header.width(), self.places.len());
        let mut line = vec![0; self.layout.line()];
        let mut samples = vec![];
        let mut planes =
            (0..count).map(|_| reserved::<u16>(u64::from(width) * u64::from(rows))).collect::<Result<Vec<_>, _>>()?;
        for _ in 0..rows {
            self.source.seek(SeekFrom::Start(self.next)).map_err(Problem::of_read)?;
            self.source.read_exact(&mut line).map_err(Problem::of_read)?;
            self.next += self.pitch as u64;
            samples.clear();
            self.layout.decode(&line, &mut samples);
            for (plane, place) in planes.iter_mut().zip(&self.places) {
                plane.extend(samples[*place..].iter().step_by(count));
            }
        }
        let bits = self.layout.bits;
        let named = self.header.names().zip(planes);
        let plane = |(name, mut samples): (&str, Vec<u16>)| {
            Ok(match bits {
                8 => Plane::new(name, width, rows, samples.into_iter().map(|sample| sample as u8).collect::<Vec<u8>>())?,
                16 => Plane::new(name, width, rows, samples)?,
                _ => {
                    samples.iter_mut().for_each(|sample| *sample = widened(*sample, bits));
                    Plane::new(name, width, rows, samples)?
                }
            })
        };
        named.map(plane).collect()
    }
}

/// Opens an image.
pub(super) fn open(mut source: Source, limits: Limits) -> Result<Opened, Problem> {
    let mut bytes = vec![0; HEADER];
    source.read_exact(&mut bytes).map_err(Problem::of_read)?;
    let mut header = Header::of_bytes(&bytes);
    let start = match header.word(place::ELEMENT_DATA) {
        0 | UNDEFINED => header.word(place::DATA),
        start => start,
    };
    let len = source.len();
    if u64::from(start) > len || (start as usize) < 1024 {
        return Err(Problem::Decode(format!("its pixels begin at byte {start} of {len}")));
    }
    let mut metadata = Metadata { alpha: Alpha::Straight, ..Metadata::default() };
    // User data lies between the header and the pixels.
    if (HEADER..=MAX_HEADER).contains(&(start as usize)) {
        header.bytes.resize(start as usize, 0);
        source.read_exact(&mut header.bytes[HEADER..]).map_err(Problem::of_read)?;
    } else if start as usize > MAX_HEADER {
        metadata.losses.push("the user data of the header is not kept: it is too long".to_owned());
    }
    let (descriptor, bits) = (header.bytes[place::DESCRIPTOR], u32::from(header.bytes[place::BITS]));
    let unsupported = |what: String| Err(Problem::Unsupported(format!("a DPX of a kind that is not read: {what}")));
    let Some(names) = names(descriptor) else { return unsupported(format!("its elements have the descriptor {descriptor}")) };
    if !matches!(bits, 8 | 10 | 12 | 16) {
        return unsupported(format!("its samples have {bits} bits"));
    }
    if header.half(place::ENCODING) == 1 {
        return unsupported("its rows are compressed by runs".to_owned());
    }
    if header.word(place::SIGN) == 1 {
        return unsupported("its samples are signed".to_owned());
    }
    let packing = match header.half(place::PACKING) {
        1 | 5 => Packing::Left,
        2 | 6 => Packing::Right,
        _ => Packing::Packed,
    };
    match header.half(place::ELEMENTS) {
        0 | 1 | u16::MAX => {}
        count => metadata.losses.push(format!("only the first of its {count} elements is read")),
    }
    let (width, height) = (u64::from(header.word(place::WIDTH)), u64::from(header.word(place::HEIGHT)));
    let ty = if bits == 8 { SampleType::U8 } else { SampleType::U16 };
    let (width, height) = check_size(width, height, (names.len() * ty.bytes()) as u64, limits)?;
    let samples = width as usize * names.len();
    let layout = Layout { bits, packing, is_big: header.is_big, samples, is_reversed: names.len() == 1 };
    // Some programs pad rows to words of 32 bits, others do not. The size of the file tells.
    let line = layout.line();
    let padding = Some(header.word(place::LINE_PADDING)).filter(|padding| *padding < 1 << 20).unwrap_or(0) as usize;
    let rest = len - u64::from(start);
    let pitches = [line.next_multiple_of(4) + padding, line + padding, line.next_multiple_of(4), line];
    let fits = |pitch: &usize| (*pitch as u64) * u64::from(height - 1) + line as u64 <= rest;
    let Some(pitch) = pitches.into_iter().filter(fits).max() else {
        return Err(Problem::Decode(format!("{height} rows of {line} bytes are not in the {rest} bytes of its pixels")));
    };
    metadata.orientation = ORIENTATIONS.get(usize::from(header.half(place::ORIENTATION))).copied();
    metadata.color.transfer = Some(header.bytes[place::TRANSFER]);
    let color = if header.bytes[place::TRANSFER] == LINEAR { ColorSpace::Linear } else { ColorSpace::Srgb };
    metadata.dpx = Some(header.bytes.into());
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|index| ["Y", "R", "G", "B", "A"].iter().position(|name| *name == names[*index]));
    let planes: Vec<(String, SampleType)> = order.iter().map(|index| (names[*index].to_owned(), ty)).collect();
    let image = Image::placeholder(Rect::sized(width, height), &planes)?.with_implied_color(color).with_metadata(metadata);
    let rows = DpxRows { source, layout, pitch, next: u64::from(start), places: order, header: image.clone() };
    Ok(Opened::Rows(image, Box::new(rows)))
}

/// Returns the number of bits of the samples of a written file: the wanted ones, those of the file that was read, or 10.
/// Grey has 16: programs read three samples in a word in different orders.
fn bits(image: &Image, options: &WriteOptions) -> u32 {
    let wanted = options.samples.unwrap_or_else(|| image.sample_type());
    let own = image.metadata().dpx.as_ref().map(|header| u32::from(header[place::BITS]));
    match (options.bits, own) {
        (Some(bits), _) => u32::from(bits),
        (None, _) if wanted == SampleType::U8 => 8,
        (None, Some(own)) if own != 8 => own,
        (None, _) if image.planes().len() == 1 => 16,
        (None, _) => 10,
    }
}

/// Returns the transfer characteristic of the colours of an image.
fn transfer(image: &Image) -> u8 {
    let color = &image.metadata().color;
    match (color.transfer, color.cicp) {
        (Some(transfer), _) => transfer,
        _ if image.color() == ColorSpace::Linear => LINEAR,
        // Rec. 709.
        (None, Some([_, 1, ..])) => 6,
        // Sample values that the user defines: sRGB has no number.
        _ => 0,
    }
}

/// Writes an image with the header of the file that it was read from.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>, options: &WriteOptions) -> Result<(), Problem> {
    let image = from.image();
    let planes = simple_planes(Format::Dpx, image, true)?;
    let bits = bits(image, options);
    let count = planes.len();
    let descriptor = match count {
        1 => 6,
        3 => 50,
        4 => 51,
        _ => return Err(Problem::Unsupported("a DPX holds no grey with alpha: write .png or .tif".to_owned())),
    };
    let wanted = if bits == 8 { SampleType::U8 } else { SampleType::U16 };
    let samples = image.width() as usize * count;
    let mut header = image.metadata().dpx.as_ref().map_or_else(Header::new, |bytes| Header::of_bytes(bytes));
    let order = if header.is_big { ByteOrder::Big } else { ByteOrder::Little };
    let layout = Layout { bits, packing: Packing::Left, is_big: header.is_big, samples, is_reversed: count == 1 };
    // Programs expect padding to words of 32 bits where samples are bytes, and none where they are words of 16 bits.
    let pitch = if bits == 8 { layout.line().next_multiple_of(4) } else { layout.line() };
    let data = header.bytes.len() as u32;
    let size = u64::from(data) + pitch as u64 * u64::from(image.height());
    let has_other_bits = header.bytes[place::BITS] != bits as u8;
    for (at, value) in [
        (place::DATA, data),
        (place::FILE_SIZE, u32::try_from(size).unwrap_or(UNDEFINED)),
        (place::KEY, UNDEFINED),
        (place::WIDTH, image.width()),
        (place::HEIGHT, image.height()),
        (place::SIGN, 0),
        (place::ELEMENT_DATA, data),
        (place::LINE_PADDING, (pitch - layout.line()) as u32),
        (place::END_PADDING, 0),
    ] {
        header.set(at, value);
    }
    if has_other_bits {
        // Codes of black and white, with their quantities.
        (0..4).for_each(|index| header.set(place::RANGE + index * 4, UNDEFINED));
    }
    let orientation = ORIENTATIONS.iter().position(|own| *own == image.orientation()).unwrap_or(0);
    header.set_half(place::ORIENTATION, orientation as u16);
    header.set_half(place::ELEMENTS, 1);
    header.set_half(place::PACKING, u16::from(matches!(bits, 10 | 12)));
    header.set_half(place::ENCODING, 0);
    header.bytes[place::DESCRIPTOR] = descriptor;
    header.bytes[place::BITS] = bits as u8;
    if header.bytes[place::TRANSFER] != transfer(image) {
        header.bytes[place::TRANSFER] = transfer(image);
        header.bytes[place::COLORIMETRIC] = transfer(image);
    }
    out.write_all(&header.bytes).map_err(Problem::Write)?;
    let pixels = Interleaved { planes, wanted, order, from };
    let rows = (BAND / pixels.line()).clamp(1, image.height() as usize) as u32;
    let first = |index: usize| index as u32 * rows;
    let strips = image.height().div_ceil(rows) as usize;
    let encode = |index: usize| {
        let bytes = pixels.rows(first(index)..image.height().min(first(index) + rows))?;
        let mut encoded = Vec::with_capacity(bytes.len() + 4 * rows as usize);
        for line in bytes.chunks_exact(pixels.line()) {
            append(layout, line, &mut encoded);
            encoded.resize(encoded.len() + pitch - layout.line(), 0);
        }
        Ok(encoded)
    };
    pixels.in_order(strips, encode, |bytes| out.write_all(&bytes).map_err(Problem::Write))
}

/// Appends a row of samples of 8 or 16 bits as a file has them.
fn append(layout: Layout, line: &[u8], out: &mut Vec<u8>) {
    let put = |word: u32, out: &mut Vec<u8>| out.extend(if layout.is_big { word.to_be_bytes() } else { word.to_le_bytes() });
    let halves = line.as_chunks::<2>().0;
    let half = |bytes: &[u8; 2]| if layout.is_big { u16::from_be_bytes(*bytes) } else { u16::from_le_bytes(*bytes) };
    match layout.bits {
        10 => {
            for three in halves.chunks(3) {
                let bits = |(index, bytes): (usize, &[u8; 2])| narrowed(half(bytes), 10) << layout.shift(index);
                put(three.iter().enumerate().map(bits).sum(), out);
            }
        }
        12 => {
            for bytes in halves {
                let value = (narrowed(half(bytes), 12) << 4) as u16;
                out.extend(if layout.is_big { value.to_be_bytes() } else { value.to_le_bytes() });
            }
        }
        _ => out.extend_from_slice(line),
    }
}
