//! PNG, by the `png` crate.

use super::interleave::{ByteOrder, Interleaved, Rows, separate};
use super::limits::check_size;
use super::options::{Compression, WriteOptions};
use super::planes::simple_planes;
use super::rows::{Opened, ReadRows};
use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem, chunks, deflate, filter};
use crate::image::{Alpha, ColorDescription, ColorSpace, Image, Plane, Rect, Sample, SampleType, reserved};
use png::chunk::ChunkType;
use png::{BitDepth, ColorType, Decoder, Encoder, Info, Transformations, Writer};

/// Maximum number of bytes from one byte of compressed data.
const MOST_COMPRESSED: u64 = 1100;

/// Memory for everything except pixels: palettes, texts, buffers.
const OVERHEAD: u64 = 64 << 20;

fn broken(error: png::DecodingError) -> Problem {
    match error {
        png::DecodingError::IoError(error) => Problem::of_read(error),
        error => Problem::Decode(chunks_by_name(&error.to_string())),
    }
}

/// Replaces the library's descriptions of chunks by the names of the chunks.
fn chunks_by_name(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, description)) = rest.split_once("ChunkType { type: ") {
        let Some((properties, behind)) = description.split_once(" }") else { break };
        plain += before;
        plain += properties.split(',').next().unwrap_or_default();
        rest = behind;
    }
    plain + rest
}

/// Rows of a file that is not interlaced.
struct PngRows {
    reader: png::Reader<Source>,
    header: Image,
    line: Vec<u8>,
}

impl ReadRows for PngRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let names: Vec<&str> = self.header.names().collect();
        let bounds = Rect::sized(self.header.width(), rows);
        let mut planes = Planes::new(&names, bounds, self.header.sample_type() == SampleType::U16)?;
        for _ in 0..rows {
            if self.reader.read_row(&mut self.line).map_err(broken)?.is_none() {
                return Err(Problem::Decode("rows are missing".to_owned()));
            }
            planes.push(&self.line);
        }
        Ok(planes.image(&names, bounds)?.planes().to_vec())
    }

    fn finish(&mut self) -> Result<(), Problem> {
        self.reader.finish().map_err(broken)
    }
}

/// Opens an image. Palettes and depths below 8 bits become 8 bits. A transparent colour becomes alpha.
pub(super) fn open(mut source: Source, limits: Limits) -> Result<Opened, Problem> {
    let len = source.len();
    let metadata = chunks::read(&mut source).map_err(Problem::of_read)?;
    let bytes = usize::try_from(limits.bytes.saturating_add(OVERHEAD)).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new_with_limits(source, png::Limits { bytes });
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let header = decoder.read_header_info().map_err(broken)?;
    let sides = (u64::from(header.width), u64::from(header.height));
    let bits = (header.bits_per_pixel() as u64).max(1);
    check_size(sides.0, sides.1, bits.div_ceil(8), limits)?;
    // Each row has an additional byte for its filter.
    let raw = sides.1.saturating_mul((sides.0 * bits).div_ceil(8) + 1);
    if raw > len.saturating_mul(MOST_COMPRESSED) {
        let (width, height) = sides;
        return Err(Problem::Decode(format!("{width}×{height} pixels cannot be in a file of {len} bytes")));
    }
    let mut reader = decoder.read_info().map_err(broken)?;
    let (color, depth) = reader.output_color_type();
    let names: &[&str] = match color {
        ColorType::Grayscale => &["Y"],
        ColorType::GrayscaleAlpha => &["Y", "A"],
        ColorType::Rgb => &["R", "G", "B"],
        ColorType::Rgba => &["R", "G", "B", "A"],
        ColorType::Indexed => return Err(Problem::Decode("it has colours without a palette".to_owned())),
    };
    let sample = if depth == BitDepth::Sixteen { 2 } else { 1 };
    let (width, height) = check_size(sides.0, sides.1, sample * names.len() as u64, limits)?;
    let info = reader.info();
    let is_interlaced = info.interlaced;
    let bounds = Rect::sized(width, height);
    let line = reader.output_line_size(width).ok_or(Problem::Size { width: sides.0, height: sides.1 })?;
    let color = if is_linear(&metadata.color) { ColorSpace::Linear } else { ColorSpace::Srgb };
    let is_wide = depth == BitDepth::Sixteen;
    let ty = if is_wide { SampleType::U16 } else { SampleType::U8 };
    let planes: Vec<(String, SampleType)> = names.iter().map(|name| ((*name).to_owned(), ty)).collect();
    let header = Image::placeholder(bounds, &planes)?.with_implied_color(color).with_metadata(metadata);
    let header = header.with_alpha(Alpha::Straight);
    if !is_interlaced {
        return Ok(Opened::Rows(header.clone(), Box::new(PngRows { reader, header, line: vec![0; line] })));
    }
    let size = reader.output_buffer_size().ok_or(Problem::Size { width: sides.0, height: sides.1 })?;
    reserved::<u8>(size as u64)?;
    let mut pixels = vec![0; size];
    reader.next_frame(&mut pixels).map_err(broken)?;
    let mut planes = Planes::new(names, bounds, is_wide)?;
    pixels.chunks_exact(line).take(height as usize).for_each(|row| planes.push(row));
    reader.finish().map_err(broken)?;
    Ok(Opened::Whole(header.with_planes(planes.image(names, bounds)?.planes().to_vec())?))
}

/// Returns whether a file says that its samples are linear light. The code points come first, then the profile, sRGB and
/// the exponent.
fn is_linear(color: &ColorDescription) -> bool {
    match (color.cicp, &color.profile, color.srgb) {
        (Some(cicp), _, _) => cicp[1] == 8,
        (None, None, None) => color.gamma == Some(100_000),
        _ => false,
    }
}

/// Planes that grow row by row.
pub(super) enum Planes {
    /// Samples of 8 bits.
    U8(Vec<Vec<u8>>),
    /// Samples of 16 bits.
    U16(Vec<Vec<u16>>),
}

impl Planes {
    pub(super) fn new(names: &[&str], bounds: Rect, is_wide: bool) -> Result<Planes, Problem> {
        let area = bounds.area();
        Ok(match is_wide {
            true => Planes::U16(names.iter().map(|_| reserved(area)).collect::<Result<_, _>>()?),
            false => Planes::U8(names.iter().map(|_| reserved(area)).collect::<Result<_, _>>()?),
        })
    }

    /// Appends a row of pixels with interleaved samples.
    pub(super) fn push(&mut self, row: &[u8]) {
        match self {
            Planes::U8(planes) => separate(row, planes, |sample| sample),
            Planes::U16(planes) => separate(row.as_chunks::<2>().0, planes, u16::from_be_bytes),
        }
    }

    pub(super) fn image(self, names: &[&str], bounds: Rect) -> Result<Image, Problem> {
        fn planes<T: Sample>(names: &[&str], bounds: Rect, samples: Vec<Vec<T>>) -> Result<Image, Problem> {
            let named = names.iter().zip(samples);
            let planes = named.map(|(name, samples)| Plane::new(name, bounds.width, bounds.height, samples));
            Ok(Image::new(bounds, planes.collect::<Result<_, _>>()?)?)
        }
        match self {
            Planes::U8(samples) => planes(names, bounds, samples),
            Planes::U16(samples) => planes(names, bounds, samples),
        }
    }
}

fn unwritten(error: png::EncodingError) -> Problem {
    match error {
        png::EncodingError::IoError(error) => Problem::Write(error),
        error => Problem::Write(std::io::Error::other(error)),
    }
}

/// Returns the sample type of an image that is written without a wanted one.
pub(super) fn sample_type(image: &Image) -> SampleType {
    if image.sample_type() == SampleType::U8 { SampleType::U8 } else { SampleType::U16 }
}

/// Returns whether an image is written in colours.
pub(super) fn is_rgb(image: &Image) -> bool {
    image.planes().len() >= 3
}

/// Approximate number of bytes of a strip that is compressed by itself.
const STRIP: usize = 1 << 20;

/// Writes an image with its chunks. Linear light that nothing else describes is marked by a gamma of 1.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>, options: &WriteOptions) -> Result<(), Problem> {
    let image = from.image();
    let planes = simple_planes(Format::Png, image, true)?;
    let wanted = options.samples.unwrap_or_else(|| sample_type(image));
    let mut info = Info::with_size(image.width(), image.height());
    info.color_type = match planes.len() {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    };
    info.bit_depth = if wanted == SampleType::U8 { BitDepth::Eight } else { BitDepth::Sixteen };
    info.icc_profile = chunks::new_profile(image, is_rgb(image)).map(|profile| profile.to_vec().into());
    let pixels = Interleaved { planes, wanted, order: ByteOrder::Big, from };
    let encoder = Encoder::with_info(out, info).map_err(unwritten)?;
    let mut writer = encoder.write_header().map_err(unwritten)?;
    for chunk in chunks::of_image(image, is_rgb(image), image.color() == ColorSpace::Linear) {
        writer.write_chunk(ChunkType(chunk.kind), &chunk.bytes).map_err(unwritten)?;
    }
    let level = match options.compression {
        Compression::Fast => None,
        Compression::Balanced => Some(6),
        Compression::Best => Some(9),
    };
    write_strips(&mut writer, &pixels, level)?;
    writer.finish().map_err(unwritten)
}

/// Returns the number of rows of a strip, and the number of strips.
fn strips_of(pixels: &Interleaved<'_>) -> (u32, usize) {
    let height = pixels.planes[0].height();
    let rows = (STRIP / pixels.line()).clamp(1, height as usize) as u32;
    (rows, height.div_ceil(rows) as usize)
}

/// Rows whose filter the fast compression chooses together.
const GROUP: usize = 16;

/// Writes rows in strips that are filtered and compressed on all cores; quickly without a level.
fn write_strips(writer: &mut Writer<&mut dyn Out>, pixels: &Interleaved<'_>, level: Option<u32>) -> Result<(), Problem> {
    let (rows, count) = strips_of(pixels);
    let height = pixels.planes[0].height();
    let encode = |index: usize| {
        let first = index as u32 * rows;
        let above = pixels.above(first)?;
        let content = pixels.rows(first..height.min(first + rows))?;
        let is_last = index + 1 == count;
        let filtered = |group: usize| filter::filtered(&content, pixels.line(), pixels.pixel(), &above, group);
        Ok((
            index,
            match level {
                None => deflate::fast_strip(&filtered(GROUP), is_last),
                Some(level) => deflate::strip(&filtered(1), level, is_last)?,
            },
        ))
    };
    let mut stream = deflate::Stream::new();
    pixels.in_order(count, encode, |(index, strip)| {
        stream.add(&strip);
        let start: &[u8] = if index == 0 { &deflate::Stream::HEADER } else { &[] };
        let end = if index + 1 == count { stream.end().to_vec() } else { vec![] };
        writer.write_chunk(png::chunk::IDAT, &[start, &strip.bytes, &end].concat()).map_err(unwritten)
    })
}
