//! PNG, by the `png` crate.

use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem, check_size, chunks, simple_planes};
use crate::image::{Alpha, ColorDescription, ColorSpace, Image, Plane, Rect, Sample, SampleType, reserved};
use png::chunk::ChunkType;
use png::{BitDepth, ColorType, Decoder, Encoder, Info, Transformations};
use std::io::Write;

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

/// Reads an image. Palettes and depths below 8 bits become 8 bits. A transparent colour becomes alpha.
pub(super) fn read(mut source: Source, limits: Limits) -> Result<Image, Problem> {
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
    let mut planes = Planes::new(names, bounds, depth == BitDepth::Sixteen)?;
    if is_interlaced {
        let size = reader.output_buffer_size().ok_or(Problem::Size { width: sides.0, height: sides.1 })?;
        reserved::<u8>(size as u64)?;
        let mut pixels = vec![0; size];
        reader.next_frame(&mut pixels).map_err(broken)?;
        pixels.chunks_exact(line).take(height as usize).for_each(|row| planes.push(row));
    } else {
        let mut row = vec![0; line];
        for _ in 0..height {
            if reader.read_row(&mut row).map_err(broken)?.is_none() {
                return Err(Problem::Decode("rows are missing".to_owned()));
            }
            planes.push(&row);
        }
    }
    reader.finish().map_err(broken)?;
    let color = if is_linear(&metadata.color) { ColorSpace::Linear } else { ColorSpace::Srgb };
    let image = planes.image(names, bounds)?.with_implied_color(color).with_metadata(metadata);
    Ok(image.with_alpha(Alpha::Straight))
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
            Planes::U8(planes) => {
                let count = planes.len();
                for (index, plane) in planes.iter_mut().enumerate() {
                    plane.extend(row.iter().skip(index).step_by(count));
                }
            }
            Planes::U16(planes) => {
                let count = planes.len();
                let (words, _) = row.as_chunks::<2>();
                for (index, plane) in planes.iter_mut().enumerate() {
                    plane.extend(words.iter().skip(index).step_by(count).map(|bytes| u16::from_be_bytes(*bytes)));
                }
            }
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

/// Writes an image with its chunks. Linear light that nothing else describes is marked by a gamma of 1.
pub(super) fn write(out: &mut dyn Out, image: &Image, samples: Option<SampleType>) -> Result<(), Problem> {
    let planes = simple_planes(Format::Png, image, true)?;
    let wanted = samples.unwrap_or_else(|| sample_type(image));
    let planes: Vec<Plane> = planes.into_iter().map(|plane| plane.converted(wanted)).collect();
    let mut info = Info::with_size(image.width(), image.height());
    info.color_type = match planes.len() {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    };
    info.bit_depth = if wanted == SampleType::U8 { BitDepth::Eight } else { BitDepth::Sixteen };
    info.icc_profile = chunks::new_profile(image, is_rgb(image)).map(|profile| profile.to_vec().into());
    let mut writer = Encoder::with_info(out, info).and_then(Encoder::write_header).map_err(unwritten)?;
    for chunk in chunks::of_image(image, is_rgb(image), image.color() == ColorSpace::Linear) {
        writer.write_chunk(ChunkType(chunk.kind), &chunk.bytes).map_err(unwritten)?;
    }
    let mut stream = writer.stream_writer().map_err(unwritten)?;
    let mut line = vec![];
    for y in 0..image.height() {
        line.clear();
        if wanted == SampleType::U8 {
            let rows: Vec<&[u8]> = planes.iter().filter_map(|plane| plane.row(y)).collect();
            for x in 0..image.width() as usize {
                line.extend(rows.iter().map(|row| row[x]));
            }
        } else {
            let rows: Vec<&[u16]> = planes.iter().filter_map(|plane| plane.row(y)).collect();
            for x in 0..image.width() as usize {
                line.extend(rows.iter().flat_map(|row| row[x].to_be_bytes()));
            }
        }
        stream.write_all(&line).map_err(Problem::Write)?;
    }
    stream.finish().map_err(unwritten)?;
    writer.finish().map_err(unwritten)
}
