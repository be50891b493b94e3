//! Images in files: PNG, JPEG, TIFF, EXR, WebP, HDR, DPX and PFM; and tables of colours in `.cube` files.
//!
//! | format | read | written | planes |
//! | --- | --- | --- | --- |
//! | PNG | 1 to 16 bits, palettes, interlaced | 8 and 16 bits | grey or RGB, with or without alpha |
//! | JPEG | baseline and progressive | 8 bits | grey or RGB |
//! | TIFF | 1 to 32 bits, palettes, CMYK, half, float and double | 8 and 16 bits, half, float | any number |
//! | EXR | half, float and 32-bit integers; tiles and several parts | half and float | any number, with layers |
//! | WebP | 8 bits, lossy and lossless | 8 bits, lossless | RGB, with or without alpha |
//! | HDR | bytes with a common exponent | the same | RGB |
//! | DPX | 8, 10, 12 and 16 bits | the same | grey or RGB, RGB with alpha |
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
//! - Rows that are read and written band by band are those of the whole image.
//! - No file says something false about its pixels: metadata is kept, or [`losses`] names it.

mod chunks;
mod cube;
mod deflate;
mod directory;
mod dpx;
mod error;
mod exif;
mod exr;
mod exr_rows;
mod fields;
mod filter;
mod format;
mod hdr;
mod huffman;
mod interleave;
mod jpeg;
mod jpeg_blocks;
mod jpeg_encode;
mod jpeg_entropy;
mod jpeg_rows;
mod jpeg_write;
mod limits;
mod loss;
mod options;
mod pfm;
mod planes;
mod png;
mod queue;
mod reader;
mod rows;
mod segments;
mod source;
mod strips;
#[doc(hidden)]
pub mod target;
mod tiff;
mod webp;

pub use cube::Cube;
pub use error::{FileError, Problem};
pub use format::Format;
pub use limits::Limits;
pub use options::{Compression, WriteOptions};
pub use queue::RowQueue;
pub use reader::RowReader;
pub use target::{Discarded, discard_unfinished};

use crate::image::{Alpha, Image, Orientation, SampleType};
use interleave::Rows;
use rows::Opened;
use source::Source;
use std::path::Path;

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

fn decoded(path: &Path, source: Source, limits: Limits) -> Result<Image, FileError> {
    let (place, len) = (source.place(), source.len());
    let (format, opened) = opened(path, source, limits)?;
    let image = opened.and_then(Opened::whole);
    let image = image.map_err(|problem| FileError::new(path, problem.at(format, place.get().min(len))))?;
    Ok(with_read_bounds(image))
}

/// Opens an image that is read band by band.
pub fn open_rows(path: impl AsRef<Path>, limits: Limits) -> Result<RowReader, FileError> {
    let path = path.as_ref();
    rows_of(path, Source::open(path)?, limits)
}

/// Opens an image that is read band by band from the bytes of a file. Errors name the file as `name`.
pub fn decode_rows(name: impl AsRef<Path>, bytes: Vec<u8>, limits: Limits) -> Result<RowReader, FileError> {
    rows_of(name.as_ref(), Source::of_bytes(bytes), limits)
}

fn rows_of(path: &Path, source: Source, limits: Limits) -> Result<RowReader, FileError> {
    let (place, len) = (source.place(), source.len());
    let (format, opened) = opened(path, source, limits)?;
    let opened = opened.map_err(|problem| FileError::new(path, problem.at(format, place.get().min(len))))?;
    let opened = match opened {
        Opened::Whole(image) => Opened::Whole(with_read_bounds(image)),
        Opened::Rows(header, rows) => Opened::Rows(with_read_bounds(header), rows),
    };
    Ok(RowReader::new(path, format, opened, place, len))
}

fn with_read_bounds(mut image: Image) -> Image {
    let bounds = image.bounds();
    image.metadata_mut().read_bounds = Some(bounds);
    image
}

/// Opens a file of any format.
fn opened(path: &Path, mut source: Source, limits: Limits) -> Result<(Format, Result<Opened, Problem>), FileError> {
    let format = source.peek().map(Format::of_content).map_err(|error| FileError::new(path, Problem::Read(error)))?;
    let Some(format) = format else { return Err(FileError::new(path, Problem::NoImage)) };
    let opened = match format {
        Format::Png => png::open(source, limits),
        Format::Jpeg => jpeg::open(source, limits),
        Format::Tiff => tiff::open(source, limits),
        Format::Exr => exr::open(source, limits),
        Format::WebP => webp::read(source, limits).map(Opened::Whole),
        Format::Hdr => hdr::open(source, limits),
        Format::Dpx => dpx::open(source, limits),
        Format::Pfm => pfm::open(source, limits),
    };
    Ok((format, opened))
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

/// Returns the image as a format holds it: upright where the format has no orientation, with the alpha of the format.
/// Fails if the format cannot hold it.
fn fitted(format: Format, image: &Image, options: &WriteOptions) -> Result<Image, Problem> {
    check_fit(format, image, options)?;
    let image = if loss::holds_orientation(format) { image.clone() } else { image.upright()? };
    Ok(format.with_alpha(&image)?)
}

/// Fails if a format cannot hold an image.
fn check_fit(format: Format, image: &Image, options: &WriteOptions) -> Result<(), Problem> {
    let most = match format {
        Format::Jpeg => jpeg::MAX_SIDE,
        Format::WebP => webp::MAX_SIDE,
        Format::Png | Format::Tiff | Format::Exr | Format::Hdr | Format::Dpx | Format::Pfm => u32::MAX,
    };
    if image.width().max(image.height()) > most {
        return Err(Problem::Unsupported(format!("{} has at most {most} columns and rows: write .png or .tif", format.name())));
    }
    let samples = options.samples.or((format == Format::Png).then(|| png::sample_type(image)));
    loss::check(format, image, samples)
}

/// Returns whether an image can be written to a format band by band. Otherwise its pixels are turned or counted.
/// `image` may be a placeholder.
pub fn takes_bands(format: Format, image: &Image) -> bool {
    let is_turned = !loss::holds_orientation(format) && image.orientation() != Orientation::Upright;
    // A warning counts colours that disappear, and integers must be exact.
    let is_divided =
        matches!(format, Format::Png | Format::WebP | Format::Dpx) && image.alpha() == Alpha::Associated && image.has_alpha();
    let has_numbers = format != Format::Exr && image.planes().iter().any(|plane| plane.sample_type() == SampleType::U32);
    !is_turned && !is_divided && !has_numbers
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
    target::replace(path, |out| encode_to(out, format, Rows::Whole(image), options)).map_err(fail)
}

/// Writes an image whose rows come in bands, of which `header` is a placeholder. It must be one that
/// [`takes_bands`]. Stops the queue if it fails.
pub fn write_rows(path: impl AsRef<Path>, header: &Image, queue: &RowQueue, options: &WriteOptions) -> Result<(), FileError> {
    let path = path.as_ref();
    let write = || {
        let format = format_of_target(path, options)?;
        check_fit(format, header, options)?;
        let header = header.changed_placeholder(|row| format.with_alpha(&row))?;
        target::replace(path, |out| encode_to(out, format, Rows::Bands(&header, queue), options))
    };
    write().map_err(|problem| {
        queue.stop();
        FileError::new(path, problem)
    })
}

/// Returns the bytes of a file in a format.
pub fn encode(format: Format, image: &Image, options: &WriteOptions) -> Result<Vec<u8>, Problem> {
    let image = fitted(format, image, options)?;
    let mut bytes = std::io::Cursor::new(vec![]);
    encode_to(&mut bytes, format, Rows::Whole(&image), options)?;
    Ok(bytes.into_inner())
}

/// Writes an image that is fitted to its format.
fn encode_to(out: &mut dyn target::Out, format: Format, rows: Rows<'_>, options: &WriteOptions) -> Result<(), Problem> {
    match format {
        Format::Png => png::write(out, rows, options),
        Format::Jpeg => jpeg::write(out, rows, options),
        Format::Tiff => tiff::write(out, rows, options),
        Format::Exr => exr::write(out, rows, options),
        Format::WebP => webp::write(out, rows),
        Format::Hdr => hdr::write(out, rows),
        Format::Dpx => dpx::write(out, rows, options),
        Format::Pfm => pfm::write(out, rows),
    }
}
