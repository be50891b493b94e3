//! TIFF, by the `tiff` crate. Files are written without compression, in strips, with interleaved samples.

use super::source::Source;
use super::target::Out;
use super::{Limits, Problem, check_size};
use crate::image::{ColorSpace, Image, Plane, Rect, Sample, SampleType, reserved};
use half::f16;
use tiff::decoder::{ChunkType, Decoder, DecodingResult};
use tiff::encoder::{DirectoryEncoder, TiffEncoder, TiffKind};
use tiff::tags::Tag;
use tiff::{ColorType, TiffError, TiffResult};

/// Approximate size of a strip, in bytes.
const STRIP: usize = 1 << 18;

/// Files of at least this size are BigTIFF.
const BIG: u64 = 4_000_000_000;

fn broken(error: TiffError) -> Problem {
    match error {
        TiffError::IoError(error) => Problem::of_read(error),
        TiffError::LimitsExceeded => Problem::Decode("a part of it has more bytes than the image or the file".to_owned()),
        TiffError::UnsupportedError(error) => Problem::Unsupported(format!("a TIFF of a kind that is not read: {error}")),
        error => Problem::Decode(error.to_string()),
    }
}

/// Returns the names of the planes.
fn names(color: ColorType, has_alpha: bool) -> Result<Vec<String>, Problem> {
    let fixed: &[&str] = match color {
        ColorType::Gray(_) => &["Y"],
        ColorType::GrayA(_) => &["Y", "A"],
        ColorType::RGB(_) => &["R", "G", "B"],
        ColorType::RGBA(_) => &["R", "G", "B", "A"],
        ColorType::Multiband { num_samples: 2, .. } if has_alpha => &["Y", "A"],
        ColorType::Multiband { num_samples: count, .. } => {
            let name = |index| if has_alpha && index == count { "A".to_owned() } else { format!("C{index}") };
            return Ok((1..=count).map(name).collect());
        }
        other => return Err(Problem::Unsupported(format!("a TIFF of colours that are not read: {other:?}"))),
    };
    Ok(fixed.iter().map(|name| (*name).to_owned()).collect())
}

/// Reads the first image of a file.
pub(super) fn read(source: Source, limits: Limits) -> Result<Image, Problem> {
    let len = usize::try_from(source.len()).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new(source).map_err(broken)?;
    let mut bounded = tiff::decoder::Limits::default();
    bounded.decoding_buffer_size = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
    bounded.intermediate_buffer_size = bounded.decoding_buffer_size;
    bounded.ifd_value_size = len.max(1 << 16);
    decoder = decoder.with_limits(bounded);
    let color = decoder.colortype().map_err(broken)?;
    let (width, height) = decoder.dimensions().map_err(broken)?;
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).map_err(broken)?.unwrap_or_default();
    // 1 is premultiplied alpha, and 2 is alpha that is not premultiplied.
    let names = names(color, matches!(extra.last(), Some(1 | 2)))?;
    let depth = u64::from(color.bit_depth());
    if !matches!(depth, 8 | 16 | 32 | 64) {
        return Err(Problem::Unsupported(format!("a TIFF of {depth} bits, of which 8, 16, 32 and 64 are read")));
    }
    if names.is_empty() || names.len() > Image::MAX_PLANES {
        return Err(Problem::Decode(format!("it has {} components", names.len())));
    }
    let is_separate = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration).map_err(broken)? == Some(2);
    // The library cannot locate tiles of the planes after the first.
    if is_separate && names.len() > 1 && decoder.get_chunk_type() == ChunkType::Tile {
        let reason = "a TIFF with a tile for each component, of which strips or tiles of whole pixels are read";
        return Err(Problem::Unsupported(reason.to_owned()));
    }
    check_size(u64::from(width), u64::from(height), depth / 8 * names.len() as u64, limits)?;
    let bounds = Rect::sized(width, height);
    let mut result = DecodingResult::U8(vec![]);
    let layout = decoder.read_image_to_buffer(&mut result).map_err(broken)?;
    let is_planar = layout.planes > 1;
    let image = match result {
        DecodingResult::U8(samples) => planes(&names, bounds, &samples, is_planar, |x| x)?,
        DecodingResult::U16(samples) => planes(&names, bounds, &samples, is_planar, |x| x)?,
        DecodingResult::F16(samples) => planes(&names, bounds, &samples, is_planar, |x| f16::from_bits(x.to_bits()))?,
        DecodingResult::F32(samples) => planes(&names, bounds, &samples, is_planar, |x| x)?,
        DecodingResult::F64(samples) => planes(&names, bounds, &samples, is_planar, |x| x as f32)?,
        _ => return Err(Problem::Unsupported("a TIFF of integers that are signed or longer than 16 bits".to_owned())),
    };
    let is_integer = matches!(image.sample_type(), SampleType::U8 | SampleType::U16);
    Ok(image.with_color(if is_integer { ColorSpace::Srgb } else { ColorSpace::Linear }))
}

/// Splits interleaved or planar samples into planes.
fn planes<F: Copy, T: Sample>(
    names: &[String],
    bounds: Rect,
    samples: &[F],
    is_planar: bool,
    convert: impl Fn(F) -> T,
) -> Result<Image, Problem> {
    let (area, count) = (bounds.area() as usize, names.len());
    if samples.len() < area * count {
        return Err(Problem::Decode(format!("{bounds} pixels of {count} samples need more than {} samples", samples.len())));
    }
    let mut planes = vec![];
    for (index, name) in names.iter().enumerate() {
        let mut own = reserved(bounds.area())?;
        match is_planar {
            true => own.extend(samples[index * area..][..area].iter().map(|sample| convert(*sample))),
            false => own.extend(samples[index..].iter().step_by(count).take(area).map(|sample| convert(*sample))),
        }
        planes.push(Plane::new(name, bounds.width, bounds.height, own)?);
    }
    Ok(Image::new(bounds, planes)?)
}

fn unwritten(error: TiffError) -> Problem {
    match error {
        TiffError::IoError(error) => Problem::Write(error),
        error => Problem::Write(std::io::Error::other(error)),
    }
}

/// Writes an image. Red, green, blue and alpha come first.
pub(super) fn write(mut out: &mut dyn Out, image: &Image, samples: Option<SampleType>) -> Result<(), Problem> {
    let wanted = samples.unwrap_or(image.sample_type());
    let mut planes: Vec<Plane> = image.planes().iter().map(|plane| plane.converted(wanted)).collect();
    let of = |channel: &str| image.planes().iter().any(|plane| plane.name() == channel);
    let is_rgb = of("R") && of("G") && of("B") && (planes.len() == 3 || planes.len() == 4 && of("A"));
    if is_rgb {
        planes.sort_by_key(|plane| "RGBA".find(plane.name()));
    } else {
        planes.sort_by_key(|plane| plane.name() == "A");
    }
    let image = Written { planes, is_rgb, wanted };
    let mut write = || match image.bytes() < BIG {
        true => {
            let mut encoder = TiffEncoder::new(&mut out)?;
            image.write(encoder.image_directory()?, |offset| offset as u32)
        }
        false => {
            let mut encoder = TiffEncoder::new_big(&mut out)?;
            image.write(encoder.image_directory()?, |offset| offset)
        }
    };
    write().map_err(unwritten)
}

/// An image that is being written.
struct Written {
    planes: Vec<Plane>,
    is_rgb: bool,
    wanted: SampleType,
}

impl Written {
    fn pixel(&self) -> usize {
        self.planes.len() * self.wanted.bytes()
    }

    fn bytes(&self) -> u64 {
        u64::from(self.planes[0].width()) * u64::from(self.planes[0].height()) * self.pixel() as u64
    }

    /// Writes strips and tags.
    fn write<W: std::io::Write + std::io::Seek, K: TiffKind, O: Copy>(
        &self,
        mut directory: DirectoryEncoder<'_, W, K>,
        offset: impl Fn(u64) -> O,
    ) -> TiffResult<()>
    where
        [O]: tiff::encoder::TiffValue,
    {
        let (width, height) = (self.planes[0].width(), self.planes[0].height());
        let line = width as usize * self.pixel();
        let rows = (STRIP / line).clamp(1, height as usize);
        let (mut offsets, mut sizes) = (vec![], vec![]);
        let mut strip = vec![];
        for first in (0..height).step_by(rows) {
            strip.clear();
            for y in first..height.min(first + rows as u32) {
                match self.wanted {
                    SampleType::U8 => self.row(y, &mut strip, u8::to_ne_bytes),
                    SampleType::U16 => self.row(y, &mut strip, u16::to_ne_bytes),
                    SampleType::F16 => self.row(y, &mut strip, f16::to_ne_bytes),
                    SampleType::F32 => self.row(y, &mut strip, f32::to_ne_bytes),
                }
            }
            sizes.push(offset(strip.len() as u64));
            offsets.push(offset(directory.write_data(&strip[..])?));
        }
        let count = self.planes.len();
        let bits = vec![self.wanted.bytes() as u16 * 8; count];
        let is_float = matches!(self.wanted, SampleType::F16 | SampleType::F32);
        let colors = if self.is_rgb { 3 } else { 1 };
        // 2 is unassociated alpha, and 0 is any other plane.
        let extra: Vec<u16> = self.planes[colors..].iter().map(|plane| if plane.name() == "A" { 2 } else { 0 }).collect();
        directory.write_tag(Tag::ImageWidth, width)?;
        directory.write_tag(Tag::ImageLength, height)?;
        directory.write_tag(Tag::BitsPerSample, &bits[..])?;
        directory.write_tag(Tag::Compression, 1u16)?;
        directory.write_tag(Tag::PhotometricInterpretation, if self.is_rgb { 2u16 } else { 1u16 })?;
        directory.write_tag(Tag::StripOffsets, &offsets[..])?;
        directory.write_tag(Tag::SamplesPerPixel, count as u16)?;
        directory.write_tag(Tag::RowsPerStrip, rows as u32)?;
        directory.write_tag(Tag::StripByteCounts, &sizes[..])?;
        directory.write_tag(Tag::SampleFormat, &vec![if is_float { 3u16 } else { 1u16 }; count][..])?;
        if !extra.is_empty() {
            directory.write_tag(Tag::ExtraSamples, &extra[..])?;
        }
        directory.finish()
    }

    fn row<T: Sample, const N: usize>(&self, y: u32, strip: &mut Vec<u8>, bytes: impl Fn(T) -> [u8; N]) {
        let rows: Vec<&[T]> = self.planes.iter().filter_map(|plane| plane.row(y)).collect();
        for x in 0..self.planes[0].width() as usize {
            for row in &rows {
                strip.extend(bytes(row[x]));
            }
        }
    }
}
