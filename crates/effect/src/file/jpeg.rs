//! JPEG. Files of one sequential scan are read and all are written row by row; others are read by the `zune-jpeg` crate.

use super::interleave::{ByteOrder, Interleaved, Rows};
use super::jpeg_rows::{self, SequentialRows};
use super::limits::check_size;
use super::options::WriteOptions;
use super::planes::simple_planes;
use super::png::Planes;
use super::rows::{Opened, ReadRows};
use super::source::Source;
use super::target::Out;
use super::{Format, Limits, Problem, chunks, jpeg_write, segments};
use crate::image::{ColorSpace, Image, Metadata, Plane, Rect, SampleType};
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

/// Writes an image of 8 bits with its profile, its segments and its resolution.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>, options: &WriteOptions) -> Result<(), Problem> {
    let planes = simple_planes(Format::Jpeg, from.image(), false)?;
    let pixels = Interleaved { planes, wanted: SampleType::U8, order: ByteOrder::Little, from };
    jpeg_write::write(out, &pixels, options)
}
