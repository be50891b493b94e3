//! WebP, by the `image-webp` crate. Files are read with lossy or lossless compression, and written without loss.

use super::interleave::{ByteOrder, Interleaved, Rows};
use super::limits::check_size;
use super::planes::simple_planes;
use super::png::Planes;
use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem, chunks, exif};
use crate::image::{Alpha, ColorSpace, Image, Metadata, Orientation, Profile, Rect, SampleType, reserved};
use image_webp::{ColorType, DecodingError, EncodingError, WebPDecoder, WebPEncoder};

/// Maximum width and height.
pub(super) const MAX_SIDE: u32 = 16384;

/// Maximum number of pixels from one byte of a file.
const MOST_COMPRESSED: u64 = 1 << 16;

fn broken(error: DecodingError) -> Problem {
    match error {
        DecodingError::IoError(error) => Problem::of_read(error),
        error => Problem::Decode(error.to_string()),
    }
}

/// Reads an image, or the first frame of an animation.
pub(super) fn read(source: Source, limits: Limits) -> Result<Image, Problem> {
    let len = source.len();
    let mut decoder = WebPDecoder::new(source).map_err(broken)?;
    decoder.set_memory_limit(usize::try_from(limits.bytes).unwrap_or(usize::MAX));
    let names: &[&str] = if decoder.has_alpha() { &["R", "G", "B", "A"] } else { &["R", "G", "B"] };
    let (width, height) = decoder.dimensions();
    check_size(u64::from(width), u64::from(height), names.len() as u64, limits)?;
    let bounds = Rect::sized(width, height);
    if bounds.area() > len.saturating_mul(MOST_COMPRESSED) {
        return Err(Problem::Decode(format!("{width}×{height} pixels cannot be in a file of {len} bytes")));
    }
    let mut metadata = Metadata::default();
    metadata.color.profile = decoder.icc_profile().map_err(broken)?.map(Profile::new);
    if let Some(block) = decoder.exif_metadata().map_err(broken)? {
        let block = block.strip_prefix(b"Exif\0\0").unwrap_or(&block);
        if let Some((fields, _)) = exif::fields(block) {
            metadata.orientation = exif::orientation(&fields);
            metadata.resolution = exif::resolution(&fields);
        }
        metadata.exif = Some(block.into());
    }
    metadata.xmp = decoder.xmp_metadata().map_err(broken)?.map(Into::into);
    if decoder.is_animated() {
        metadata.losses.push(format!("only the first of its {} frames is read", decoder.num_frames()));
    }
    let size = bounds.area() * names.len() as u64;
    let mut pixels = reserved::<u8>(size)?;
    pixels.resize(size as usize, 0);
    decoder.read_image(&mut pixels).map_err(broken)?;
    let mut planes = Planes::new(names, bounds, false)?;
    pixels.chunks_exact(width as usize * names.len()).for_each(|row| planes.push(row));
    let image = planes.image(names, bounds)?.with_implied_color(ColorSpace::Srgb).with_metadata(metadata);
    Ok(image.with_alpha(Alpha::Straight))
}

/// Writes an image of 8 bits with its profile, EXIF and XMP.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>) -> Result<(), Problem> {
    let image = from.image();
    let planes = simple_planes(Format::WebP, image, true)?;
    let pixels = Interleaved { planes, wanted: SampleType::U8, order: ByteOrder::Little, from };
    let color = match pixels.planes.len() {
        1 => ColorType::L8,
        2 => ColorType::La8,
        3 => ColorType::Rgb8,
        _ => ColorType::Rgba8,
    };
    let metadata = image.metadata();
    let mut encoder = WebPEncoder::new(out);
    let profile = metadata.color.profile.as_ref().filter(|profile| chunks::fits(profile, pixels.planes.len() >= 3));
    if let Some(profile) = profile {
        encoder.set_icc_profile(profile.bytes.to_vec());
    }
    if let Some(block) = exif::of_image(image) {
        encoder.set_exif_metadata(block);
    }
    if let Some(packet) = &metadata.xmp {
        encoder.set_xmp_metadata(exif::updated_xmp(packet, metadata.orientation.unwrap_or(Orientation::Upright)));
    }
    let (width, height) = (image.width(), image.height());
    encoder.encode(&pixels.rows(0..height)?, width, height, color).map_err(|error| match error {
        EncodingError::IoError(error) => Problem::Write(error),
        error => Problem::Unsupported(format!("a WebP cannot hold the image: {error}")),
    })
}
