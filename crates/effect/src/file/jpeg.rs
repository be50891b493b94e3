//! JPEG, read by the `zune-jpeg` crate and written by the `jpeg-encoder` crate.

use super::interleave::{ByteOrder, Interleaved, Rows};
use super::limits::check_size;
use super::options::{Compression, WriteOptions};
use super::planes::simple_planes;
use super::png::Planes;
use super::rows::{Opened, ReadRows};
use super::source::Source;
use super::target::Out;
use super::jpeg_rows::{self, SequentialRows};
use super::{Format, Limits, Problem, chunks, segments};
use crate::image::{ColorSpace, Image, Length, Metadata, Plane, Rect, SampleType};
use jpeg_encoder::{
    ColorType, Encoder, EncodingError, ImageBuffer, JpegColorType, PixelDensity, PixelDensityUnit, SamplingFactor, rgb_to_ycbcr,
};
use std::cell::{Cell, RefCell};
use std::io::{BufRead, Read, Seek, SeekFrom};
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::colorspace::ColorSpace as Coding;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Maximum number of scans of a progressive file. Each scan takes the time of a whole image.
const MAX_SCANS: usize = 256;

fn broken(error: DecodeErrors) -> Problem {
    Problem::Decode(error.to_string())
}

/// Returns a source with the end marker, without which the library takes a file for broken. Its loss is told, because
/// a part of the picture may be missing too.
fn with_end(mut source: Source, losses: &mut Vec<String>) -> Result<Source, Problem> {
    let mut before = 0;
    loop {
        let bytes = source.fill_buf().map_err(Problem::Read)?;
        let starts = (before, bytes.first()) == (0xff, Some(&0xd9));
        if starts || bytes.array_windows().any(|pair| *pair == [0xff, 0xd9]) {
            source.seek(SeekFrom::Start(0)).map_err(Problem::Read)?;
            return Ok(source);
        }
        let Some(last) = bytes.last() else { break };
        before = *last;
        let count = bytes.len();
        source.consume(count);
    }
    source.seek(SeekFrom::Start(0)).map_err(Problem::Read)?;
    let mut bytes = vec![];
    source.read_to_end(&mut bytes).map_err(Problem::Read)?;
    bytes.extend([0xff, 0xd9]);
    losses.push("it has no end marker: the end of the picture may be missing".to_owned());
    Ok(Source::of_bytes(bytes))
}

/// Rows of a file that is decoded.
struct JpegRows {
    pixels: Vec<u8>,
    header: Image,
    /// Number of bytes that were returned.
    at: usize,
}

impl ReadRows for JpegRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let names: Vec<&str> = self.header.names().collect();
        let bounds = Rect::sized(self.header.width(), rows);
        let line = bounds.width as usize * names.len();
        let mut planes = Planes::new(&names, bounds, false)?;
        self.pixels[self.at..].chunks_exact(line).take(rows as usize).for_each(|row| planes.push(row));
        self.at += line * rows as usize;
        Ok(planes.image(&names, bounds)?.planes().to_vec())
    }
}

/// Opens an image. A file that ends too early is an error.
pub(super) fn open(mut source: Source, limits: Limits) -> Result<Opened, Problem> {
    let metadata = segments::read(&mut source).map_err(Problem::of_read)?;
    match jpeg_rows::scan(source) {
        Ok((scan, source)) => {
            let (width, height) = scan.size(limits)?;
            let header = described(Rect::sized(width, height), scan.names(), metadata)?;
            Ok(Opened::Rows(header.clone(), Box::new(SequentialRows::new(scan, source, header))))
        }
        Err(source) => decoded(source, metadata, limits),
    }
}

/// Decodes all samples of an image of another kind, such as a progressive one.
fn decoded(source: Source, mut metadata: Metadata, limits: Limits) -> Result<Opened, Problem> {
    let source = with_end(source, &mut metadata.losses)?;
    let options = DecoderOptions::default().set_strict_mode(true).set_max_width(65535).set_max_height(65535);
    let mut decoder = JpegDecoder::new_with_options(source, options.jpeg_set_max_scans(MAX_SCANS));
    decoder.decode_headers().map_err(broken)?;
    let info = decoder.info().ok_or_else(|| Problem::Decode("it has no header".to_owned()))?;
    let (names, coding): (&[&str], Coding) = match info.components {
        1 => (&["Y"], Coding::Luma),
        _ => (&["R", "G", "B"], Coding::RGB),
    };
    let (width, height) = check_size(u64::from(info.width), u64::from(info.height), names.len() as u64, limits)?;
    decoder.set_options(options.jpeg_set_max_scans(MAX_SCANS).jpeg_set_out_colorspace(coding));
    let pixels = decoder.decode().map_err(broken)?;
    let bounds = Rect::sized(width, height);
    if pixels.len() as u64 != bounds.area() * names.len() as u64 {
        return Err(Problem::Decode(format!("its pixels are {} bytes", pixels.len())));
    }
    let header = described(bounds, names, metadata)?;
    Ok(Opened::Rows(header.clone(), Box::new(JpegRows { pixels, header, at: 0 })))
}

/// Returns the placeholder of an image.
fn described(bounds: Rect, names: &[&str], mut metadata: Metadata) -> Result<Image, Problem> {
    if metadata.color.profile.as_ref().is_some_and(|profile| !chunks::fits(profile, names.len() == 3)) {
        metadata.color.profile = None;
        metadata.losses.push("the ICC profile is not kept: it is for other colours than the samples that are read".to_owned());
    }
    let planes: Vec<(String, SampleType)> = names.iter().map(|name| ((*name).to_owned(), SampleType::U8)).collect();
    Ok(Image::placeholder(bounds, &planes)?.with_implied_color(ColorSpace::Srgb).with_metadata(metadata))
}

/// Maximum width and height.
pub(super) const MAX_SIDE: u32 = 65535;

/// Quality from which colours have the resolution of brightness.
const FULL_COLOR: u8 = 90;

fn unwritten(error: EncodingError) -> Problem {
    match error {
        EncodingError::IoError(error) => Problem::Write(error),
        error => Problem::Unsupported(format!("a JPEG cannot hold the image: {error}")),
    }
}

/// Rows that are encoded as they come.
struct Lines<'a> {
    pixels: &'a Interleaved<'a>,
    /// The last row that was asked for, and its bytes. The row at the lower edge is asked for several times.
    last: RefCell<(Option<u16>, Vec<u8>)>,
    failed: &'a Cell<Option<Problem>>,
}

impl ImageBuffer for Lines<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        if self.pixels.planes.len() == 3 { JpegColorType::Ycbcr } else { JpegColorType::Luma }
    }

    fn width(&self) -> u16 {
        side(self.pixels.planes[0].width())
    }

    fn height(&self) -> u16 {
        side(self.pixels.planes[0].height())
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let mut last = self.last.borrow_mut();
        if last.0 != Some(y) {
            let row = self.pixels.rows(u32::from(y)..u32::from(y) + 1).unwrap_or_else(|problem| {
                self.failed.set(Some(problem));
                vec![0; self.pixels.line()]
            });
            *last = (Some(y), row);
        }
        if self.pixels.planes.len() == 1 {
            return buffers[0].extend(&last.1);
        }
        let [luma, blue, red, _] = buffers;
        for [r, g, b] in last.1.as_chunks::<3>().0 {
            let (y, cb, cr) = rgb_to_ycbcr(*r, *g, *b);
            luma.push(y);
            blue.push(cb);
            red.push(cr);
        }
    }
}

/// Returns a side as the library takes it. It was checked before.
fn side(side: u32) -> u16 {
    u16::try_from(side).unwrap_or(u16::MAX)
}

/// Writes an image of 8 bits with its profile, EXIF, XMP and resolution.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>, options: &WriteOptions) -> Result<(), Problem> {
    let image = from.image();
    let planes = simple_planes(Format::Jpeg, image, false)?;
    let pixels = Interleaved { planes, wanted: SampleType::U8, order: ByteOrder::Little, from };
    let is_rgb = pixels.planes.len() == 3;
    let mut encoder = Encoder::new(out, options.quality.clamp(1, 100));
    encoder.set_sampling_factor(match options.quality >= FULL_COLOR {
        true => SamplingFactor::R_4_4_4,
        false => SamplingFactor::R_4_2_0,
    });
    encoder.set_optimized_huffman_tables(options.compression != Compression::Fast);
    if let Some((x, y)) = image.metadata().resolution.and_then(|resolution| resolution.per(Length::Inch)) {
        let density = (x.round().clamp(1.0, 65535.0) as u16, y.round().clamp(1.0, 65535.0) as u16);
        encoder.set_density(PixelDensity { density, unit: PixelDensityUnit::Inches });
    }
    for (marker, bytes) in segments::of_image(image) {
        encoder.add_app_segment(marker & 15, bytes).map_err(unwritten)?;
    }
    let profile = image.metadata().color.profile.as_ref().filter(|profile| chunks::fits(profile, is_rgb));
    if let Some(profile) = profile {
        encoder.add_icc_profile(&profile.bytes).map_err(unwritten)?;
    }
    if let (Rows::Bands(..), Compression::Fast) = (from, options.compression) {
        let failed = Cell::new(None);
        let lines = Lines { pixels: &pixels, last: RefCell::default(), failed: &failed };
        encoder.encode_image(lines).map_err(unwritten)?;
        return failed.take().map_or(Ok(()), Err);
    }
    // Optimised tables are made of all rows.
    let color = if is_rgb { ColorType::Rgb } else { ColorType::Luma };
    encoder.encode(&pixels.rows(0..image.height())?, side(image.width()), side(image.height()), color).map_err(unwritten)
}
