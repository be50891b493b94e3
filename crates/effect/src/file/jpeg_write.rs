//! JPEG files that are written: segments, and rows of units that are encoded on all cores.

use super::interleave::Interleaved;
use super::jpeg_encode::{ABREAST, Block, Table, Token, TokenEncoder, coefficients, each_token, encoded, factors, quantization};
use super::jpeg_entropy::ZIGZAG;
use super::options::{Compression, WriteOptions};
use super::target::Out;
use super::{Problem, chunks, segments, strips};
use crate::image::{Image, Length};

/// Quality from which colours have the resolution of brightness.
const FULL_COLOR: u8 = 90;
/// Maximum number of bytes of a profile in a segment.
const PART_OF_PROFILE: usize = 65519;

/// Samples of a component, whose rows have whole blocks.
struct Samples {
    values: Vec<u8>,
    pitch: usize,
}

/// An image that is encoded.
struct Encoding<'a> {
    pixels: &'a Interleaved<'a>,
    /// Blocks of brightness in a unit along each axis.
    blocks: usize,
    quantization: [[u8; 64]; 2],
    factors: [[f32; 64]; 2],
}

impl Encoding<'_> {
    fn height(&self) -> u32 {
        self.pixels.planes[0].height()
    }

    /// Returns the number of rows of a row of units.
    fn unit(&self) -> u32 {
        8 * self.blocks as u32
    }

    /// Returns the tokens of a row of units.
    fn tokens(&self, index: usize) -> Result<Vec<Token>, Problem> {
        let mut tokens = Vec::with_capacity(64 * self.units());
        self.each_token(index, |token| tokens.push(token))?;
        Ok(tokens)
    }

    /// Returns the number of units of a row.
    fn units(&self) -> usize {
        (self.pixels.planes[0].width() as usize).div_ceil(self.unit() as usize)
    }

    /// Passes on the tokens of a row of units.
    fn each_token(&self, index: usize, mut out: impl FnMut(Token)) -> Result<(), Problem> {
        let first = index as u32 * self.unit();
        let rows = first..self.height().min(first + self.unit());
        let width = self.pixels.planes[0].width() as usize;
        let mut planes = self.pixels.planar(rows)?;
        if let [r, g, b] = &mut planes[..] {
            to_differences(r, g, b);
        }
        // Blocks of each component, row by row.
        let components: Vec<Vec<Block>> = planes
            .into_iter()
            .enumerate()
            .map(|(component, plane)| {
                let full = padded(&plane, width, self.unit() as usize);
                let samples = if component > 0 && self.blocks == 2 { halved(&full) } else { full };
                let factors = &self.factors[usize::from(component > 0)];
                let mut blocks = Vec::with_capacity(samples.values.len() / 64);
                for row in samples.values.chunks_exact(8 * samples.pitch) {
                    for first in (0..samples.pitch).step_by(8 * ABREAST) {
                        blocks.extend(coefficients(&row[first..], samples.pitch, factors));
                    }
                }
                blocks
            })
            .collect();
        let mut before = [0; 3];
        for unit in 0..self.units() {
            for (component, all) in components.iter().enumerate() {
                let (blocks, kind) = (if component == 0 { self.blocks } else { 1 }, usize::from(component > 0));
                let line = all.len() / blocks;
                for block in 0..blocks * blocks {
                    let place = block / blocks * line + unit * blocks + block % blocks;
                    each_token(&all[place], &mut before[component], [kind, 2 + kind], &mut out);
                }
            }
        }
        Ok(())
    }
}

/// Converts red, green and blue to brightness and the differences of blue and red (T.871).
fn to_differences(r: &mut [u8], g: &mut [u8], b: &mut [u8]) {
    // Factors with 14 bits behind the point. Sums have no more than 24 bits.
    let factor = |value: f32| (value * 16384.0).round() as i32;
    let luma = [factor(0.299), 16384 - factor(0.299) - factor(0.114), factor(0.114)];
    let blue = [-factor(0.168_735_89), factor(0.168_735_89) - 8192, 8192];
    let red = [8192, factor(0.081_312_41) - 8192, -factor(0.081_312_41)];
    for ((r, g), b) in r.iter_mut().zip(g).zip(b) {
        let rgb = [i32::from(*r), i32::from(*g), i32::from(*b)];
        let sum = |by: [i32; 3], offset: i32| ((by[0] * rgb[0] + by[1] * rgb[1] + by[2] * rgb[2] + 8191 + offset) >> 14) as u8;
        (*r, *g, *b) = (sum(luma, 1), sum(blue, 128 << 14), sum(red, 128 << 14));
    }
}

/// Returns rows with whole units, as many as are transformed at once: the last sample of a row and the last row are
/// repeated.
fn padded(plane: &[u8], width: usize, unit: usize) -> Samples {
    let pitch = width.next_multiple_of(unit * ABREAST);
    let mut values = Vec::with_capacity(pitch * unit);
    for row in plane.chunks_exact(width) {
        values.extend_from_slice(row);
        values.resize(values.len() + pitch - width, row[width - 1]);
    }
    while values.len() < pitch * unit {
        values.extend_from_within(values.len() - pitch..);
    }
    Samples { values, pitch }
}

/// Returns the means of squares of four samples.
fn halved(full: &Samples) -> Samples {
    let pitch = full.pitch / 2;
    let mut values = Vec::with_capacity(full.values.len() / 4);
    for rows in full.values.chunks_exact(2 * full.pitch) {
        let (upper, lower) = rows.split_at(full.pitch);
        let pairs = upper.as_chunks::<2>().0.iter().zip(lower.as_chunks::<2>().0);
        values
            .extend(pairs.map(|(a, b)| ((u16::from(a[0]) + u16::from(a[1]) + u16::from(b[0]) + u16::from(b[1]) + 2) >> 2) as u8));
    }
    Samples { values, pitch }
}

/// Appends a segment.
fn append(file: &mut Vec<u8>, marker: u8, content: &[u8]) {
    file.extend([0xff, marker]);
    file.extend((content.len() as u16 + 2).to_be_bytes());
    file.extend_from_slice(content);
}

/// Returns the segments up to the pixels.
fn head(image: &Image, encoding: &Encoding<'_>, tables: &[Table; 4]) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    let inch = image.metadata().resolution.and_then(|resolution| resolution.per(Length::Inch));
    let (unit, density) = match inch {
        Some((x, y)) => (1, [x, y].map(|value| value.round().clamp(1.0, 65535.0) as u16)),
        None => (0, [1, 1]),
    };
    append(
        &mut file,
        0xe0,
        &[b"JFIF\0\x01\x02", &[unit][..], &density[0].to_be_bytes(), &density[1].to_be_bytes(), &[0, 0]].concat(),
    );
    segments::of_image(image).iter().for_each(|(marker, bytes)| append(&mut file, *marker, bytes));
    let count = encoding.pixels.planes.len();
    let profile = image.metadata().color.profile.as_ref().filter(|profile| chunks::fits(profile, count == 3));
    if let Some(profile) = profile {
        let parts = profile.bytes.chunks(PART_OF_PROFILE);
        let all = parts.len() as u8;
        for (number, part) in (1..=all).zip(parts) {
            append(&mut file, 0xe2, &[b"ICC_PROFILE\0", &[number, all][..], part].concat());
        }
    }
    for (number, table) in (0..).zip(&encoding.quantization).take(count.min(2)) {
        let values: Vec<u8> = ZIGZAG.iter().map(|place| table[usize::from(*place)]).collect();
        append(&mut file, 0xdb, &[&[number], &values[..]].concat());
    }
    let [width, height] = [image.width(), image.height()].map(|side| (side as u16).to_be_bytes());
    let mut frame = [&[8], &height[..], &width, &[count as u8]].concat();
    let mut scan = vec![count as u8];
    for component in 0..count as u8 {
        let (sampling, table) = if component == 0 { (encoding.blocks as u8 * 0x11, 0) } else { (0x11, 1) };
        frame.extend([component + 1, sampling, table]);
        scan.extend([component + 1, table * 0x11]);
    }
    append(&mut file, 0xc0, &frame);
    for (number, table) in (0..).zip(tables).filter(|(number, _)| count == 3 || number % 2 == 0) {
        // The class of the table, and its number in the class.
        let kind = ((number / 2) << 4) | (number % 2);
        append(&mut file, 0xc4, &[&[kind], &table.counts[..], &table.symbols].concat());
    }
    let units = (image.width() as usize).div_ceil(encoding.unit() as usize);
    append(&mut file, 0xdd, &(units as u16).to_be_bytes());
    scan.extend([0, 63, 0]);
    append(&mut file, 0xda, &scan);
    file
}

/// Writes an image of 8 bits with its profile, its segments and its resolution.
pub(super) fn write(out: &mut dyn Out, pixels: &Interleaved<'_>, options: &WriteOptions) -> Result<(), Problem> {
    let image = pixels.from.image();
    let quantization = [false, true].map(|of_color| quantization(of_color, options.quality));
    let is_halved = pixels.planes.len() == 3 && options.quality < FULL_COLOR;
    let blocks = if is_halved { 2 } else { 1 };
    let encoding = Encoding { pixels, blocks, quantization, factors: quantization.each_ref().map(factors) };
    let count = image.height().div_ceil(encoding.unit()) as usize;
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(Problem::Write);
    let ended = |mut bytes: Vec<u8>, index: usize| {
        let marker = if index + 1 == count { 0xd9 } else { 0xd0 + (index & 7) as u8 };
        bytes.extend([0xff, marker]);
        bytes
    };
    if options.compression == Compression::Fast {
        let tables = Table::usual();
        put(&head(image, &encoding, &tables))?;
        let encode = |index: usize| {
            let mut encoder = TokenEncoder::new(&tables, 16 * encoding.units());
            encoding.each_token(index, |token| encoder.put(token))?;
            Ok(ended(encoder.end(), index))
        };
        return pixels.in_order(count, encode, |bytes| put(&bytes));
    }
    // The shortest codes are known when all tokens are.
    let mut all = vec![];
    pixels.in_order(
        count,
        |index| encoding.tokens(index),
        |tokens| {
            all.push(tokens);
            Ok(())
        },
    )?;
    let tables = Table::best(all.iter().flatten());
    put(&head(image, &encoding, &tables))?;
    strips::in_order(count, |index| ended(encoded(&all[index], &tables), index), |bytes| put(&bytes))
}
