//! Rows of sequential JPEG files with Huffman codes and one scan: those that cameras and most programs write.
//!
//! Rows are decoded as they are asked for, so that neither the samples nor the coefficients of a whole image are in
//! memory. Other files are left to a library. Samples of lower resolution are interpolated as the library of the
//! Independent JPEG Group does, so results differ from its own by at most 1 in most samples.

use super::jpeg_blocks::{append_colors, double_row, double_rows, factors, mix_rows, write_block};
use super::jpeg_entropy::{Bits, Codes, ZIGZAG};
use super::rows::ReadRows;
use super::source::Source;
use super::{Limits, Problem, limits::check_size};
use crate::image::{Image, Plane, reserved};
use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};

/// Component of an image.
#[derive(Clone, Debug)]
struct Component {
    id: u8,
    /// Blocks of a unit along x and y.
    blocks: (usize, usize),
    quantization: usize,
    dc: usize,
    ac: usize,
    /// Width and height in samples.
    size: (usize, usize),
}

/// What the segments before the pixels say.
#[derive(Debug)]
pub(super) struct Scan {
    components: Vec<Component>,
    width: u32,
    height: u32,
    tables: [[u16; 64]; 4],
    codes: [[Option<Codes>; 4]; 2],
    /// Number of units between restart markers; 0 is none.
    interval: usize,
    /// True if the samples are brightness and two differences of colours.
    is_ycc: bool,
}

/// Reader of the segments.
struct Segments {
    source: Source,
    tables: [[u16; 64]; 4],
    codes: [[Option<Codes>; 4]; 2],
    interval: usize,
    components: Vec<Component>,
    size: (u32, u32),
    has_jfif: bool,
    transform: Option<u8>,
}

impl Segments {
    /// Reads segments up to the pixels; `None` if the file is of another kind or broken.
    fn scan(&mut self) -> Option<Scan> {
        self.source.seek(SeekFrom::Start(2)).ok()?;
        loop {
            let marker = next_marker(&mut self.source)?;
            if matches!(marker, 0x01 | 0xd0..=0xd9) {
                return None;
            }
            let mut len = [0; 2];
            self.source.read_exact(&mut len).ok()?;
            let mut bytes = vec![0; usize::from(u16::from_be_bytes(len)).checked_sub(2)?];
            self.source.read_exact(&mut bytes).ok()?;
            match marker {
                0xc0 | 0xc1 => self.frame(&bytes)?,
                // Progressive, lossless, hierarchical, and arithmetic codes.
                0xc2 | 0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf | 0xdc => return None,
                0xc4 => self.codes(&bytes)?,
                0xdb => self.tables(&bytes)?,
                0xdd => self.interval = usize::from(u16::from_be_bytes(*bytes.first_chunk()?)),
                0xe0 => self.has_jfif |= bytes.starts_with(b"JFIF\0"),
                0xee if bytes.starts_with(b"Adobe") => self.transform = bytes.get(11).copied(),
                0xda => return self.begun(&bytes),
                _ => {}
            }
        }
    }

    /// Reads a frame header.
    fn frame(&mut self, bytes: &[u8]) -> Option<()> {
        let &[8, h1, h0, w1, w0, count, ref rest @ ..] = bytes else { return None };
        self.size = (u32::from(u16::from_be_bytes([w1, w0])), u32::from(u16::from_be_bytes([h1, h0])));
        let (triples, _) = rest.as_chunks::<3>();
        if !self.components.is_empty() || self.size.1 == 0 || triples.len() != usize::from(count) || !matches!(count, 1 | 3) {
            return None;
        }
        for [id, sampling, table] in triples {
            let blocks = (usize::from(sampling >> 4), usize::from(sampling & 15));
            let (quantization, size) = (usize::from(*table), (0, 0));
            self.components.push(Component { id: *id, blocks, quantization, dc: 0, ac: 0, size });
        }
        if count == 1 {
            self.components[0].blocks = (1, 1);
        }
        let is_known = |(index, of): (usize, &Component)| {
            let sound = if index == 0 { 1..=2 } else { 1..=1 };
            sound.contains(&of.blocks.0) && sound.contains(&of.blocks.1) && of.quantization < 4
        };
        if !self.components.iter().enumerate().all(is_known) {
            return None;
        }
        let most = self.components[0].blocks;
        for component in &mut self.components {
            let side = |side: u32, own: usize, most: usize| (side as usize * own).div_ceil(most);
            component.size = (side(self.size.0, component.blocks.0, most.0), side(self.size.1, component.blocks.1, most.1));
        }
        Some(())
    }

    /// Reads quantisation tables.
    fn tables(&mut self, mut bytes: &[u8]) -> Option<()> {
        while let Some((head, rest)) = bytes.split_first() {
            let (is_wide, table) = (head >> 4 == 1, self.tables.get_mut(usize::from(head & 15))?);
            let len = if is_wide { 128 } else { 64 };
            let values = rest.get(..len)?;
            for (at, place) in ZIGZAG.iter().enumerate() {
                table[usize::from(*place)] =
                    if is_wide { u16::from_be_bytes([values[2 * at], values[2 * at + 1]]) } else { u16::from(values[at]) };
            }
            bytes = &rest[len..];
        }
        Some(())
    }

    /// Reads tables of codes.
    fn codes(&mut self, mut bytes: &[u8]) -> Option<()> {
        while let Some((head, rest)) = bytes.split_first() {
            let (counts, rest) = rest.split_at_checked(16)?;
            let count: usize = counts.iter().map(|count| usize::from(*count)).sum();
            let symbols = rest.get(..count)?;
            *self.codes.get_mut(usize::from(head >> 4))?.get_mut(usize::from(head & 15))? = Some(Codes::new(counts, symbols)?);
            bytes = &rest[count..];
        }
        Some(())
    }

    /// Reads the header of the scan.
    fn begun(&mut self, bytes: &[u8]) -> Option<Scan> {
        let (count, rest) = bytes.split_first()?;
        let (pairs, end) = rest.split_at_checked(2 * usize::from(*count))?;
        let is_whole = usize::from(*count) == self.components.len() && matches!(end, [0, 63, 0]);
        if !is_whole || self.components.is_empty() {
            return None;
        }
        for (component, [id, tables]) in self.components.iter_mut().zip(pairs.as_chunks::<2>().0) {
            (component.dc, component.ac) = (usize::from(tables >> 4), usize::from(tables & 15));
            let has = |class: usize, table: usize| self.codes[class].get(table).is_some_and(Option::is_some);
            if *id != component.id || !has(0, component.dc) || !has(1, component.ac) {
                return None;
            }
        }
        let ids: Vec<u8> = self.components.iter().map(|component| component.id).collect();
        let is_ycc = match (self.has_jfif, self.transform) {
            (true, _) => true,
            (false, Some(transform)) => transform != 0,
            (false, None) => ids != *b"RGB",
        };
        let (components, codes) = (std::mem::take(&mut self.components), std::mem::take(&mut self.codes));
        let ((width, height), tables, interval) = (self.size, self.tables, self.interval);
        Some(Scan { components, width, height, tables, codes, interval, is_ycc })
    }
}

/// Returns the next marker. Bytes between segments are skipped, as viewers do.
pub(super) fn next_marker(source: &mut Source) -> Option<u8> {
    let mut byte = [0];
    loop {
        while byte[0] != 0xff {
            source.read_exact(&mut byte).ok()?;
        }
        while byte[0] == 0xff {
            source.read_exact(&mut byte).ok()?;
        }
        if byte[0] != 0 {
            return Some(byte[0]);
        }
    }
}

/// Returns the scan of a file whose rows can be decoded as they come, at whose begin the source is then. Otherwise
/// returns the source at its start.
pub(super) fn scan(source: Source) -> Result<(Scan, Source), Source> {
    let codes = [(); 2].map(|()| [const { None }; 4]);
    let mut segments = Segments {
        source,
        tables: [[1; 64]; 4],
        codes,
        interval: 0,
        components: vec![],
        size: (0, 0),
        has_jfif: false,
        transform: None,
    };
    match segments.scan() {
        Some(scan) => Ok((scan, segments.source)),
        None => {
            let mut source = segments.source;
            // A file that cannot be read again fails in the library.
            let _ = source.seek(SeekFrom::Start(0));
            Err(source)
        }
    }
}

impl Scan {
    /// Returns the names of the planes.
    pub(super) fn names(&self) -> &'static [&'static str] {
        if self.components.len() == 1 { &["Y"] } else { &["R", "G", "B"] }
    }

    /// Returns the checked size.
    pub(super) fn size(&self, limits: Limits) -> Result<(u32, u32), Problem> {
        check_size(u64::from(self.width), u64::from(self.height), self.components.len() as u64, limits)
    }
}

/// Samples of a component in a row of units.
#[derive(Debug)]
struct Strip {
    samples: Vec<u8>,
    pitch: usize,
}

/// Rows of a file.
#[derive(Debug)]
pub(super) struct SequentialRows {
    scan: Scan,
    bits: Bits,
    factors: Vec<[f32; 64]>,
    header: Image,
    /// Rows of units that are needed, component by component, and the number of the first.
    strips: VecDeque<Vec<Strip>>,
    first: usize,
    /// Number of rows of units that were decoded.
    decoded: usize,
    /// Number of rows that were returned.
    returned: usize,
    /// Number of units that were decoded.
    units: usize,
    /// First coefficients of the blocks before.
    before: Vec<i32>,
    coefficients: [i16; 64],
}

impl SequentialRows {
    /// Begins to read the rows of a scan. `header` is the placeholder.
    pub(super) fn new(scan: Scan, source: Source, header: Image) -> SequentialRows {
        let factors = scan.components.iter().map(|component| factors(&scan.tables[component.quantization])).collect();
        let before = vec![0; scan.components.len()];
        let (bits, strips) = (Bits::new(source), VecDeque::new());
        let (first, decoded, returned, units) = (0, 0, 0, 0);
        SequentialRows { scan, bits, factors, header, strips, first, decoded, returned, units, before, coefficients: [0; 64] }
    }

    /// Returns the number of rows of a row of units.
    fn unit_height(&self) -> usize {
        8 * self.scan.components[0].blocks.1
    }

    /// Decodes the next row of units.
    fn decode(&mut self) -> Result<(), Problem> {
        let columns = (self.scan.width as usize).div_ceil(8 * self.scan.components[0].blocks.0);
        let strip = |component: &Component| {
            let pitch = columns * 8 * component.blocks.0;
            Strip { samples: vec![0; pitch * 8 * component.blocks.1], pitch }
        };
        let mut strips: Vec<Strip> = self.scan.components.iter().map(strip).collect();
        for column in 0..columns {
            if self.scan.interval > 0 && self.units > 0 && self.units.is_multiple_of(self.scan.interval) {
                self.bits.restart((self.units / self.scan.interval - 1) as u8 & 7)?;
                self.before.fill(0);
            }
            for (index, component) in self.scan.components.iter().enumerate() {
                let (Some(dc), Some(ac)) = (&self.scan.codes[0][component.dc], &self.scan.codes[1][component.ac]) else {
                    return Err(Problem::Decode("a table of codes is missing".to_owned()));
                };
                let strip = &mut strips[index];
                for block in 0..component.blocks.0 * component.blocks.1 {
                    let (x, y) = (block % component.blocks.0, block / component.blocks.0);
                    self.coefficients.fill(0);
                    let end = self.bits.block(dc, ac, &mut self.before[index], &mut self.coefficients)?;
                    let place = y * 8 * strip.pitch + (column * component.blocks.0 + x) * 8;
                    write_block(&self.coefficients, end, &self.factors[index], &mut strip.samples[place..], strip.pitch);
                }
            }
            self.units += 1;
        }
        self.strips.push_back(strips);
        self.decoded += 1;
        Ok(())
    }

    /// Returns a row of the samples of a component. Rows outside of the image are the first and the last one.
    fn row(&self, component: usize, row: isize) -> &[u8] {
        let of = &self.scan.components[component];
        let row = row.clamp(0, of.size.1 as isize - 1) as usize;
        let height = 8 * of.blocks.1;
        let strip = &self.strips[row / height - self.first][component];
        &strip.samples[row % height * strip.pitch..][..of.size.0]
    }

    /// Writes a row of a component in full resolution.
    fn full_row(&self, component: usize, y: usize, mixed: &mut [u16], out: &mut [u8]) {
        let most = self.scan.components[0].blocks;
        let middle = (y / 2) as isize;
        let far = if y.is_multiple_of(2) { middle - 1 } else { middle + 1 };
        match most {
            (1, 1) => out[..self.row(component, y as isize).len()].copy_from_slice(self.row(component, y as isize)),
            (_, 1) => double_row(self.row(component, y as isize), out),
            (1, _) => {
                let bias = if y.is_multiple_of(2) { 1 } else { 2 };
                mix_rows(self.row(component, middle), self.row(component, far), bias, out);
            }
            _ => double_rows(self.row(component, middle), self.row(component, far), mixed, out),
        }
    }
}

impl ReadRows for SequentialRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let (width, height) = (self.scan.width as usize, self.scan.height as usize);
        let (unit, last) = (self.unit_height(), height.div_ceil(self.unit_height()));
        let is_grey = self.scan.components.len() == 1;
        let area = width * rows as usize;
        let reserve = |_| reserved::<u8>(area as u64);
        let mut planes = self.header.planes().iter().map(reserve).collect::<Result<Vec<Vec<u8>>, _>>()?;
        let (mut blue, mut red) = (vec![0; 2 * width + 16], vec![0; 2 * width + 16]);
        let mut mixed = vec![0; width + 16];
        for y in self.returned..self.returned + rows as usize {
            // The differences of colours are interpolated with the next row of units.
            while self.decoded < (y / unit + 2).min(last) {
                self.decode()?;
            }
            while self.first + 1 < y / unit {
                self.strips.pop_front();
                self.first += 1;
            }
            let luma = self.row(0, y as isize);
            if is_grey {
                planes[0].extend_from_slice(luma);
                continue;
            }
            self.full_row(1, y, &mut mixed, &mut blue);
            self.full_row(2, y, &mut mixed, &mut red);
            if let [r, g, b] = &mut planes[..] {
                if self.scan.is_ycc {
                    append_colors(luma, &blue[..width], &red[..width], [r, g, b]);
                } else {
                    r.extend_from_slice(luma);
                    g.extend_from_slice(&blue[..width]);
                    b.extend_from_slice(&red[..width]);
                }
            }
        }
        self.returned += rows as usize;
        let named = self.header.names().zip(planes);
        named.map(|(name, samples)| Ok(Plane::new(name, width as u32, rows, samples)?)).collect()
    }
}
