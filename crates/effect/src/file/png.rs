//! PNG, by the `png` crate.

use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem, check_size, simple_planes};
use crate::image::{ColorSpace, Image, Plane, Rect, Sample, SampleType, reserved};
use png::{BitDepth, ColorType, Decoder, Encoder, ScaledFloat, SrgbRenderingIntent, Transformations};
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
pub(super) fn read(source: Source, limits: Limits) -> Result<Image, Problem> {
    let len = source.len();
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
    let is_linear = info.srgb.is_none() && info.gama_chunk.is_some_and(|gamma| gamma.into_scaled() == 100_000);
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
    let color = if is_linear { ColorSpace::Linear } else { ColorSpace::Srgb };
    Ok(planes.image(names, bounds)?.with_color(color))
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

/// Writes an image. Linear light is marked by a gamma of 1.
pub(super) fn write(out: &mut dyn Out, image: &Image, samples: Option<SampleType>) -> Result<(), Problem> {
    let planes = simple_planes(Format::Png, image, true)?;
    let wanted = samples.unwrap_or(match image.sample_type() {
        SampleType::U8 => SampleType::U8,
        SampleType::U16 | SampleType::F16 | SampleType::F32 => SampleType::U16,
    });
    let planes: Vec<Plane> = planes.into_iter().map(|plane| plane.converted(wanted)).collect();
    let mut encoder = Encoder::new(out, image.width(), image.height());
    encoder.set_color(match planes.len() {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_depth(if wanted == SampleType::U8 { BitDepth::Eight } else { BitDepth::Sixteen });
    match image.color() {
        ColorSpace::Srgb => encoder.set_source_srgb(SrgbRenderingIntent::Perceptual),
        ColorSpace::Linear => encoder.set_source_gamma(ScaledFloat::new(1.0)),
    }
    let mut writer = encoder.write_header().map_err(unwritten)?;
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
