//! PFM: a text header, then rows of floats from bottom to top.

use super::interleave::{ByteOrder, Interleaved, Rows};
use super::limits::check_size;
use super::planes::simple_planes;
use super::rows::{Opened, ReadRows};
use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem};
use crate::image::{Image, Plane, Rect, SampleType, reserved};
use std::io::{BufRead, Read, Seek, SeekFrom};

/// Approximate number of bytes that are written at a time.
const BAND: usize = 1 << 20;

/// Maximum length of a header.
const MAX_HEADER: usize = 4096;

/// Reads a word of the header and the blank after it. Returns both. A comment reaches from `#` to the end of its line.
fn word_and_blank(source: &mut Source, budget: &mut usize) -> Result<(String, u8), Problem> {
    let (mut word, mut is_comment) = (String::new(), false);
    loop {
        let byte = match source.fill_buf().map_err(Problem::Read)?.first() {
            Some(byte) => *byte,
            None => return Err(Problem::Decode("the file ends in its header".to_owned())),
        };
        source.consume(1);
        *budget = budget.checked_sub(1).ok_or_else(|| Problem::Decode("the header has no end".to_owned()))?;
        match byte {
            byte if is_comment => is_comment = !matches!(byte, b'\n' | b'\r'),
            b'#' if word.is_empty() => is_comment = true,
            byte if byte.is_ascii_whitespace() && word.is_empty() => {}
            byte if byte.is_ascii_whitespace() => return Ok((word, byte)),
            byte if byte.is_ascii_graphic() => word.push(char::from(byte)),
            byte => return Err(Problem::Decode(format!("the header has the byte {byte:#04x}"))),
        }
    }
}

/// Reads a word of the header and the blank after it.
fn word(source: &mut Source, budget: &mut usize) -> Result<String, Problem> {
    word_and_blank(source, budget).map(|(word, _)| word)
}

/// Rows of a file, whose last row comes first.
struct PfmRows {
    source: Source,
    header: Image,
    /// Place of the last row.
    start: u64,
    is_little: bool,
    /// Number of rows that were read.
    read: u32,
}

impl ReadRows for PfmRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let (width, count) = (self.header.width(), self.header.planes().len());
        let mut planes = vec![];
        for _ in 0..count {
            let mut samples = reserved::<f32>(u64::from(width) * u64::from(rows))?;
            samples.resize(width as usize * rows as usize, 0.0);
            planes.push(samples);
        }
        self.read += rows;
        let columns = width as usize;
        let mut line = vec![0; columns * 4 * count];
        let place = self.start + u64::from(self.header.height() - self.read) * line.len() as u64;
        self.source.seek(SeekFrom::Start(place)).map_err(Problem::of_read)?;
        for row in (0..rows as usize).rev() {
            self.source.read_exact(&mut line).map_err(Problem::of_read)?;
            for (index, bytes) in line.as_chunks::<4>().0.iter().enumerate() {
                let value = if self.is_little { f32::from_le_bytes(*bytes) } else { f32::from_be_bytes(*bytes) };
                planes[index % count][row * columns + index / count] = value;
            }
        }
        let named = self.header.names().zip(planes);
        named.map(|(name, samples)| Ok(Plane::new(name, width, rows, samples)?)).collect()
    }
}

/// Opens an image. The magnitude of the scale is not applied: values are those in the file.
pub(super) fn open(mut source: Source, limits: Limits) -> Result<Opened, Problem> {
    let mut budget = MAX_HEADER;
    let names: &[&str] = match word(&mut source, &mut budget)?.as_str() {
        "PF" => &["R", "G", "B"],
        "Pf" => &["Y"],
        other => return Err(Problem::Decode(format!("it begins with {other}, not with PF or Pf"))),
    };
    let number = |what: &str, text: String| {
        text.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(|| Problem::Decode(format!("the {what} is {text}")))
    };
    let width = number("width", word(&mut source, &mut budget)?)?;
    let height = number("height", word(&mut source, &mut budget)?)?;
    let (text, blank) = word_and_blank(&mut source, &mut budget)?;
    let scale = number("scale", text)?;
    if [width, height].iter().any(|side| side.fract() != 0.0 || *side < 0.0 || *side > 1e18) {
        return Err(Problem::Decode(format!("the size is {width}×{height}")));
    }
    let pixel = 4 * names.len() as u64;
    let (width, height) = check_size(width as u64, height as u64, pixel, limits)?;
    let bounds = Rect::sized(width, height);
    let mut left = source.len().saturating_sub(source.place().get());
    // The lines of some headers end in \r\n.
    if blank == b'\r' && left == bounds.area() * pixel + 1 && source.peek().map_err(Problem::Read)?.first() == Some(&b'\n') {
        source.consume(1);
        left -= 1;
    }
    if left < bounds.area() * pixel {
        return Err(Problem::Decode(format!("{width}×{height} pixels need {} bytes, and {left} follow", bounds.area() * pixel)));
    }
    let planes: Vec<(String, SampleType)> = names.iter().map(|name| ((*name).to_owned(), SampleType::F32)).collect();
    let header = Image::placeholder(bounds, &planes)?;
    let start = source.place().get();
    Ok(Opened::Rows(header.clone(), Box::new(PfmRows { source, header, start, is_little: scale < 0.0, read: 0 })))
}

/// Writes an image in little-endian order.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>) -> Result<(), Problem> {
    let image = from.image();
    let planes = simple_planes(Format::Pfm, image, false)?;
    let kind = if planes.len() == 3 { "PF" } else { "Pf" };
    write!(out, "{kind}\n{} {}\n-1.0\n", image.width(), image.height()).map_err(Problem::Write)?;
    let start = out.stream_position().map_err(Problem::Write)?;
    let pixels = Interleaved { planes, wanted: SampleType::F32, order: ByteOrder::Little, from };
    let (line, height) = (pixels.line(), image.height());
    let rows = (BAND / line).clamp(1, height as usize) as u32;
    for first in (0..height).step_by(rows as usize) {
        let end = height.min(first + rows);
        let bytes = pixels.rows(first..end)?;
        out.seek(SeekFrom::Start(start + u64::from(height - end) * line as u64)).map_err(Problem::Write)?;
        bytes.chunks_exact(line).rev().try_for_each(|row| out.write_all(row)).map_err(Problem::Write)?;
    }
    Ok(())
}
