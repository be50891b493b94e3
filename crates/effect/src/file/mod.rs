//! Images in files: PNG, JPEG, TIFF, EXR, WebP, HDR and PFM; and tables of colours in `.cube` files.
//!
//! | format | read | written | planes |
//! | --- | --- | --- | --- |
//! | PNG | 1 to 16 bits, palettes, interlaced | 8 and 16 bits | grey or RGB, with or without alpha |
//! | JPEG | baseline and progressive | 8 bits | grey or RGB |
//! | TIFF | 1 to 32 bits, palettes, CMYK, half, float and double | 8 and 16 bits, half, float | any number |
//! | EXR | half, float and 32-bit integers; tiles and several parts | half and float | any number, with layers |
//! | WebP | 8 bits, lossy and lossless | 8 bits, lossless | RGB, with or without alpha |
//! | HDR | bytes with a common exponent | the same | RGB |
//! | PFM | float | float | grey or RGB |
//!
//! The first bytes of a file determine its format when it is read. The name of a file determines its format
//! when it is written. Values are not changed, except that integers saturate and round if a file of integers
//! is requested.
//!
//! Invariants:
//!
//! - A header alone never causes memory to be used for its pixels.
//! - The memory of an image is at most [`Limits::bytes`].
//! - No file makes the process panic.
//! - A file is written under another name in the folder of its target, and renamed to the target when it is
//!   complete.
//! - No file says something false about its pixels: metadata is kept, or [`losses`] names it.

mod chunks;
mod cube;
mod deflate;
mod directory;
mod error;
mod exif;
mod exr;
mod fields;
mod filter;
mod hdr;
mod interleave;
mod jpeg;
mod loss;
mod options;
mod pfm;
mod png;
mod segments;
mod source;
mod strips;
#[doc(hidden)]
pub mod target;
mod tiff;
mod webp;

pub use cube::Cube;
pub use error::{FileError, Problem};
pub use options::{Compression, WriteOptions};
pub use target::{Discarded, discard_unfinished};

use crate::image::{Image, Orientation, Plane, SampleType};
use source::Source;
use std::path::Path;

/// A format of image files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpeg,
    /// Tagged Image File Format.
    Tiff,
    /// OpenEXR.
    Exr,
    /// WebP.
    WebP,
    /// Radiance HDR.
    Hdr,
    /// Portable float map.
    Pfm,
}

impl Format {
    /// Returns the format for the extension of a name.
    pub fn of_name(path: &Path) -> Option<Format> {
        Format::of_extension(path.extension()?.to_str()?)
    }

    /// Returns the format for an extension.
    pub fn of_extension(extension: &str) -> Option<Format> {
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Format::Png),
            "jpg" | "jpeg" => Some(Format::Jpeg),
            "tif" | "tiff" => Some(Format::Tiff),
            "exr" => Some(Format::Exr),
            "pfm" => Some(Format::Pfm),
            "webp" => Some(Format::WebP),
            "hdr" | "pic" => Some(Format::Hdr),
            _ => None,
        }
    }

    /// Returns the format of a file with these first bytes.
    fn of_content(bytes: &[u8]) -> Option<Format> {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        if starts(b"\x89PNG\r\n\x1a\n") {
            Some(Format::Png)
        } else if starts(b"\xff\xd8\xff") {
            Some(Format::Jpeg)
        } else if [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"].iter().any(|magic| starts(*magic)) {
            Some(Format::Tiff)
        } else if starts(b"\x76\x2f\x31\x01") {
            Some(Format::Exr)
        } else if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Format::WebP)
        } else if starts(b"#?") {
            Some(Format::Hdr)
        } else if starts(b"PF") || starts(b"Pf") {
            Some(Format::Pfm)
        } else {
            None
        }
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "PNG",
            Format::Jpeg => "JPEG",
            Format::Tiff => "TIFF",
            Format::Exr => "EXR",
            Format::WebP => "WebP",
            Format::Hdr => "HDR",
            Format::Pfm => "PFM",
        }
    }

    /// Returns the sample types that can be written.
    pub fn sample_types(self) -> &'static [SampleType] {
        match self {
            Format::Png => &[SampleType::U8, SampleType::U16],
            Format::Jpeg | Format::WebP => &[SampleType::U8],
            Format::Tiff => &[SampleType::U8, SampleType::U16, SampleType::F16, SampleType::F32],
            Format::Exr => &[SampleType::F16, SampleType::F32],
            Format::Hdr | Format::Pfm => &[SampleType::F32],
        }
    }
}

/// Limits of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of all samples of an image, in bytes.
    pub bytes: u64,
}

impl Default for Limits {
    /// Returns a limit of 16 GiB.
    fn default() -> Limits {
        Limits { bytes: 16 << 30 }
    }
}

/// Reads an image.
pub fn read(path: impl AsRef<Path>) -> Result<Image, FileError> {
    read_with(path, Limits::default())
}

/// Reads an image within limits.
pub fn read_with(path: impl AsRef<Path>, limits: Limits) -> Result<Image, FileError> {
    let path = path.as_ref();
    decoded(path, Source::open(path)?, limits)
}

/// Reads an image from the bytes of a file. Errors name the file as `name`.
pub fn decode(name: impl AsRef<Path>, bytes: Vec<u8>, limits: Limits) -> Result<Image, FileError> {
    decoded(name.as_ref(), Source::of_bytes(bytes), limits)
}

fn decoded(path: &Path, mut source: Source, limits: Limits) -> Result<Image, FileError> {
    let format = source.peek().map(Format::of_content).map_err(|error| FileError::new(path, Problem::Read(error)))?;
    let Some(format) = format else { return Err(FileError::new(path, Problem::NoImage)) };
    let (place, len) = (source.place(), source.len());
    let decoded = match format {
        Format::Png => png::read(source, limits),
        Format::Jpeg => jpeg::read(source, limits),
        Format::Tiff => tiff::read(source, limits),
        Format::Exr => exr::read(source, limits),
        Format::WebP => webp::read(source, limits),
        Format::Hdr => hdr::read(source, limits),
        Format::Pfm => pfm::read(source, limits),
    };
    let mut image = decoded.map_err(|problem| FileError::new(path, problem.at(format, place.get().min(len))))?;
    let bounds = image.bounds();
    image.metadata_mut().read_bounds = Some(bounds);
    Ok(image)
}

/// Writes an image in the format of the name's extension. Samples keep the type of the image if the format
/// supports it. Otherwise PNG uses 16 bits, and the other formats use floats.
pub fn write(path: impl AsRef<Path>, image: &Image) -> Result<(), FileError> {
    write_as(path, image, None)
}

/// Checks, before there is an image, whether a file with this name can be written with these choices.
pub fn check_target(path: impl AsRef<Path>, options: &WriteOptions) -> Result<(), FileError> {
    let path = path.as_ref();
    format_of_target(path, options).and_then(|_| target::check(path)).map_err(|problem| FileError::new(path, problem))
}

/// Returns the format of a file to write.
pub fn format_of_target(path: &Path, options: &WriteOptions) -> Result<Format, Problem> {
    let format = options.format.or_else(|| Format::of_name(path)).ok_or(Problem::NoFormat)?;
    let samples = options.samples;
    match samples.filter(|wanted| !format.sample_types().contains(wanted)) {
        Some(wanted) => Err(Problem::SampleType { format, wanted }),
        None => Ok(format),
    }
}

/// Returns what is lost or converted when an image is written to a file of this name, each as a sentence without its
/// end. Content of the file that the image was read from, and that was not read, is in `Metadata::losses`.
pub fn losses(path: impl AsRef<Path>, image: &Image, samples: Option<SampleType>) -> Vec<String> {
    Format::of_name(path.as_ref()).map_or(vec![], |format| losses_in(format, image, samples))
}

/// Returns what is lost or converted when an image is written in a format, as [`losses`] does.
pub fn losses_in(format: Format, image: &Image, samples: Option<SampleType>) -> Vec<String> {
    loss::losses(format, image, samples)
}

/// Returns the EXIF block of an image, which agrees with its pixels.
fn exif_block(image: &Image) -> Option<Vec<u8>> {
    let metadata = image.metadata();
    let pixels = pixels(image);
    if let Some(block) = &metadata.exif {
        return Some(exif::updated(block, pixels));
    }
    let mut fields = fields::common(&metadata.fields);
    exif::update_fields(&mut fields, pixels);
    let turned = metadata.orientation.filter(|orientation| *orientation != Orientation::Upright);
    (!fields.is_empty() || turned.is_some()).then(|| exif::updated(&exif::block(&fields), pixels))
}

/// Returns the facts about the pixels of an image that EXIF describes.
fn pixels(image: &Image) -> exif::Pixels {
    let is_linear = image.color() == crate::image::ColorSpace::Linear;
    exif::Pixels { orientation: image.metadata().orientation, width: image.width(), height: image.height(), is_linear }
}

/// Returns the image as a format holds it: upright where the format has no orientation, with the alpha of the format.
/// Fails if the format cannot hold it.
fn fitted(format: Format, image: &Image, options: &WriteOptions) -> Result<Image, Problem> {
    let most = match format {
        Format::Jpeg => jpeg::MAX_SIDE,
        Format::WebP => webp::MAX_SIDE,
        Format::Png | Format::Tiff | Format::Exr | Format::Hdr | Format::Pfm => u32::MAX,
    };
    if image.width().max(image.height()) > most {
        return Err(Problem::Unsupported(format!("{} has at most {most} columns and rows: write .png or .tif", format.name())));
    }
    let samples = options.samples.or((format == Format::Png).then(|| png::sample_type(image)));
    loss::check(format, image, samples)?;
    let image = if loss::holds_orientation(format) { image.clone() } else { image.upright()? };
    Ok(match format {
        Format::Png | Format::WebP => image.straight()?,
        Format::Exr => image.associated()?,
        Format::Jpeg | Format::Tiff | Format::Hdr | Format::Pfm => image,
    })
}

/// Writes an image with a given sample type, as [`write_with`] does.
pub fn write_as(path: impl AsRef<Path>, image: &Image, samples: Option<SampleType>) -> Result<(), FileError> {
    write_with(path, image, &WriteOptions::of_samples(samples))
}

/// Writes an image. Pixels are turned upright for formats without an orientation. Colours are divided by associated
/// alpha for PNG, and multiplied by straight alpha for EXR. [`losses`] tells what happens.
pub fn write_with(path: impl AsRef<Path>, image: &Image, options: &WriteOptions) -> Result<(), FileError> {
    let path = path.as_ref();
    let fail = |problem| FileError::new(path, problem);
    let format = format_of_target(path, options).map_err(fail)?;
    let image = &fitted(format, image, options).map_err(fail)?;
    target::replace(path, |out| encode_to(out, format, image, options)).map_err(fail)
}

/// Returns the bytes of a file in a format.
pub fn encode(format: Format, image: &Image, options: &WriteOptions) -> Result<Vec<u8>, Problem> {
    let image = fitted(format, image, options)?;
    let mut bytes = std::io::Cursor::new(vec![]);
    encode_to(&mut bytes, format, &image, options)?;
    Ok(bytes.into_inner())
}

/// Writes an image that is fitted to its format.
fn encode_to(out: &mut dyn target::Out, format: Format, image: &Image, options: &WriteOptions) -> Result<(), Problem> {
    match format {
        Format::Png => png::write(out, image, options),
        Format::Jpeg => jpeg::write(out, image, options),
        Format::Tiff => tiff::write(out, image, options),
        Format::Exr => exr::write(out, image, options),
        Format::WebP => webp::write(out, image, options),
        Format::Hdr => hdr::write(out, image, options),
        Format::Pfm => pfm::write(out, image),
    }
}

/// Checks the size of an image before its memory is allocated.
fn check_size(width: u64, height: u64, bytes_per_pixel: u64, limits: Limits) -> Result<(u32, u32), Problem> {
    let area = width.checked_mul(height);
    let bytes = area.and_then(|area| area.checked_mul(bytes_per_pixel)).unwrap_or(u64::MAX);
    let sides = (u32::try_from(width), u32::try_from(height));
    let (Ok(columns), Ok(rows)) = sides else { return Err(Problem::Size { width, height }) };
    if crate::image::Rect::sized(columns, rows).checked().is_err() {
        return Err(Problem::Size { width, height });
    }
    if bytes > limits.bytes {
        return Err(Problem::TooLarge { width, height, bytes, limit: limits.bytes });
    }
    // Pages are not touched. This only tests whether the system would allocate the memory.
    crate::image::reserved::<u8>(bytes)?;
    Ok((columns, rows))
}

/// Returns the planes of grey or RGB, with or without alpha, in the order of the file.
fn simple_planes(format: Format, image: &Image, alpha: bool) -> Result<Vec<&Plane>, Problem> {
    let of = |channel: &str| image.planes().iter().find(|plane| plane.channel() == channel);
    let planes: Vec<&Plane> = image.planes().iter().collect();
    let opacity = of("A");
    let colors = match (of("R"), of("G"), of("B")) {
        (Some(red), Some(green), Some(blue)) => vec![red, green, blue],
        _ => planes.iter().copied().filter(|plane| opacity.is_none_or(|alpha| plane.name() != alpha.name())).collect(),
    };
    let mut chosen = if colors.is_empty() { planes.clone() } else { colors };
    if chosen.len() < planes.len() && alpha {
        chosen.extend(opacity);
    }
    let fits = matches!(chosen.len(), 1 | 3) || alpha && matches!(chosen.len(), 2 | 4) && opacity.is_some();
    match fits && chosen.len() == planes.len() {
        true => Ok(chosen),
        false => Err(Problem::Planes { format, names: image.names().map(str::to_owned).collect() }),
    }
}
