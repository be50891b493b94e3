//! TIFF, by the `tiff` crate. Files are written in strips, with interleaved samples, without compression unless a better
//! compression is asked for.

use super::interleave::{self, Interleaved, Rows};
use super::jpeg_blocks::append_colors;
use super::limits::check_size;
use super::options::{Compression, WriteOptions};
use super::rows::{Opened, ReadRows, gathered};
use super::source::Source;
use super::target::Out;
use super::{Limits, Problem, deflate, directory, fields};
use crate::image::{
    Alpha, ColorSpace, Field, Image, Metadata, Page, Plane, Profile, Rect, Sample, SampleType, Samples, reserved, srgb_of_inks,
};
use half::f16;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use tiff::decoder::{ChunkType, Decoder, DecodingResult};
use tiff::tags::{ByteOrder, Tag};
use tiff::{ColorType, TiffError, TiffResult};

/// Approximate size of a strip, in bytes.
const STRIP: usize = 1 << 18;

/// Value of the tag PhotometricInterpretation for RGB.
const RGB: u16 = 2;

/// Value of the tag PhotometricInterpretation for indices of a palette.
const PALETTE: u16 = 3;

/// Value of the tag Compression for zlib streams.
const DEFLATE: u16 = 8;

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

/// Returns the names of the planes. `extra` has the values of the tag ExtraSamples, which describe the last samples of a
/// pixel: 1 is alpha that colours are multiplied by, 2 is alpha that they are not, 0 is anything else.
fn names(is_rgb: bool, count: u16, extra: &[u16]) -> Vec<String> {
    let count = usize::from(count);
    let first = count.saturating_sub(extra.len());
    let mut alpha = extra.iter().position(|kind| matches!(kind, 1 | 2)).map(|index| first + index);
    if is_rgb && count == 4 && extra.is_empty() {
        alpha = Some(3);
    }
    let name = |index: usize| match index {
        _ if alpha == Some(index) => "A".to_owned(),
        0..3 if is_rgb => ["R", "G", "B"][index].to_owned(),
        _ if !is_rgb && count - usize::from(alpha.is_some()) == 1 => "Y".to_owned(),
        _ => format!("C{}", index + 1),
    };
    (0..count).map(name).collect()
}

/// A file whose directory has other values for some tags, so that the library reads more:
///
/// - RGB with more than three samples is read as grey. The library leaves out samples behind the third that are no
///   alpha, and undoes predictors of the others wrongly.
/// - Tiles are read as one column of tiles. The library fails at tiles of LZW whose rows it takes one by one, and does
///   not read tiles of separate planes.
struct Changed {
    source: Source,
    /// Places in the file and the bytes there.
    changes: Vec<(u64, Vec<u8>)>,
}

impl Read for Changed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = self.source.place().get();
        let count = self.source.read(buffer)?;
        let end = start + count as u64;
        for (from, bytes) in &self.changes {
            let (first, last) = (start.max(*from), end.min(from + bytes.len() as u64));
            if first < last {
                let changed = &bytes[(first - from) as usize..(last - from) as usize];
                buffer[(first - start) as usize..(last - start) as usize].copy_from_slice(changed);
            }
        }
        Ok(count)
    }
}

impl Seek for Changed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

/// Gives tags other values, and reads the directory again.
fn change(decoder: &mut Decoder<Changed>, tags: &[(Tag, u32)]) -> TiffResult<()> {
    let Some(directory) = decoder.ifd_pointer() else { return Ok(()) };
    let is_big_endian = decoder.byte_order() == ByteOrder::BigEndian;
    let inner = decoder.inner();
    let mut head = [0; 4];
    inner.seek(SeekFrom::Start(0))?;
    inner.read_exact(&mut head)?;
    // The number behind the byte order is 42, or 43 for a BigTIFF.
    let (count_bytes, entry_bytes) = if head.contains(&43) { (8, 20) } else { (2, 12) };
    let ordered = |mut bytes: Vec<u8>| {
        if !is_big_endian {
            bytes.reverse();
        }
        bytes
    };
    let number = |bytes: &[u8]| ordered(bytes.to_vec()).iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    let mut bytes = [0; 20];
    inner.seek(SeekFrom::Start(directory.0))?;
    inner.read_exact(&mut bytes[..count_bytes])?;
    let count = number(&bytes[..count_bytes]);
    let mut at = directory.0 + count_bytes as u64;
    let mut changes = vec![];
    for _ in 0..count {
        inner.read_exact(&mut bytes[..entry_bytes])?;
        let own = number(&bytes[..2]);
        if let Some((tag, value)) = tags.iter().find(|(tag, _)| u64::from(tag.to_u16()) == own) {
            // The tag, the type LONG, the number of values, the value.
            let count = if entry_bytes == 20 { 1u64.to_be_bytes().to_vec() } else { 1u32.to_be_bytes().to_vec() };
            let fields = [tag.to_u16().to_be_bytes().to_vec(), 4u16.to_be_bytes().to_vec(), count, value.to_be_bytes().to_vec()];
            changes.push((at, fields.map(ordered).concat()));
        }
        at += entry_bytes as u64;
    }
    inner.changes.extend(changes);
    decoder.seek_to_image(0)
}

/// Places of samples in what the library returns.
struct Layout {
    /// Columns and rows of a tile. Tiles stand below each other. An image in strips is one tile.
    tile: (usize, usize),
    /// Tiles along a row and along a column.
    tiles: (usize, usize),
    /// True if each plane is stored separately.
    is_planar: bool,
}

/// Rows of a file in strips.
struct TiffRows {
    decoder: Decoder<Changed>,
    names: Vec<String>,
    /// Number of the next strip.
    next: u32,
    strips: u32,
    /// Rows of a strip that are not returned yet.
    pending: Option<Image>,
    /// True if samples are brightness and two differences of colours.
    is_ycc: bool,
}

impl TiffRows {
    /// Reads the next strip. Also returns what its samples lose.
    fn strip(&mut self) -> Result<(Image, Option<&'static str>), Problem> {
        if self.next >= self.strips {
            return Err(Problem::Decode("rows are missing".to_owned()));
        }
        let (columns, rows) = self.decoder.chunk_data_dimensions(self.next);
        let result = self.decoder.read_chunk(self.next).map_err(broken)?;
        self.next += 1;
        let layout = Layout { tile: (columns as usize, rows as usize), tiles: (1, 1), is_planar: false };
        let (image, loss) = typed(&self.names, Rect::sized(columns, rows).checked()?, result, &layout)?;
        Ok((if self.is_ycc { of_differences(&image)? } else { image }, loss))
    }
}

impl ReadRows for TiffRows {
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem> {
        let mut pending = self.pending.take();
        let planes = gathered(&mut pending, rows, || Ok(self.strip()?.0));
        self.pending = pending;
        planes
    }
}

/// Returns samples as planes, and what they lose.
fn typed(
    names: &[String],
    bounds: Rect,
    result: DecodingResult,
    layout: &Layout,
) -> Result<(Image, Option<&'static str>), Problem> {
    let image = match result {
        DecodingResult::U8(samples) => planes(names, bounds, &samples, layout, |x| x)?,
        DecodingResult::U16(samples) => planes(names, bounds, &samples, layout, |x| x)?,
        DecodingResult::F16(samples) => planes(names, bounds, &samples, layout, |x| f16::from_bits(x.to_bits()))?,
        DecodingResult::F32(samples) => planes(names, bounds, &samples, layout, |x| x)?,
        DecodingResult::F64(samples) => {
            let image = planes(names, bounds, &samples, layout, |x| x as f32)?;
            return Ok((image, Some("its samples of 64 bits are read as 32 bits")));
        }
        DecodingResult::U32(samples) => planes(names, bounds, &samples, layout, |x| x)?,
        DecodingResult::I8(samples) => planes(names, bounds, &samples, layout, f32::from)?,
        DecodingResult::I16(samples) => planes(names, bounds, &samples, layout, f32::from)?,
        DecodingResult::I32(samples) => {
            let image = planes(names, bounds, &samples, layout, |x| x as f32)?;
            return Ok((image, Some("its signed integers of 32 bits are read as floats of 32 bits")));
        }
        _ => return Err(Problem::Unsupported("a TIFF of integers of 64 bits".to_owned())),
    };
    Ok((image, None))
}

/// Opens the first image of a file.
pub(super) fn open(mut source: Source, limits: Limits) -> Result<Opened, Problem> {
    let mut metadata = fields::read(&mut source).map_err(Problem::of_read)?;
    let len = usize::try_from(source.len()).unwrap_or(usize::MAX);
    let mut bounded = tiff::decoder::Limits::default();
    bounded.decoding_buffer_size = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
    bounded.intermediate_buffer_size = bounded.decoding_buffer_size;
    bounded.ifd_value_size = len.max(1 << 16);
    let mut decoder = Decoder::new(Changed { source, changes: vec![] }).map_err(broken)?.with_limits(bounded);
    let count = decoder.find_tag_unsigned::<u16>(Tag::SamplesPerPixel).map_err(broken)?.unwrap_or(1);
    let interpretation = decoder.find_tag_unsigned::<u16>(Tag::PhotometricInterpretation).map_err(broken)?;
    let is_rgb = interpretation == Some(RGB);
    let palette = match interpretation {
        Some(PALETTE) if count == 1 => decoder.find_tag_unsigned_vec::<u16>(Tag::ColorMap).map_err(broken)?,
        _ => None,
    };
    if is_rgb && count > 3 || palette.is_some() {
        change(&mut decoder, &[(Tag::PhotometricInterpretation, 1)]).map_err(broken)?;
    }
    let color = decoder.colortype().map_err(broken)?;
    let (width, height) = decoder.dimensions().map_err(broken)?;
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).map_err(broken)?.unwrap_or_default();
    let is_cmyk = matches!(color, ColorType::CMYK(_));
    let is_ycc = matches!(color, ColorType::YCbCr(8));
    if !is_cmyk && !is_ycc && !matches!(color, ColorType::Gray(_) | ColorType::RGB(_) | ColorType::Multiband { .. }) {
        return Err(Problem::Unsupported(format!("a TIFF of colours that are not read: {color:?}")));
    }
    let names = names(is_rgb || is_ycc, count, &extra);
    let depth = u64::from(color.bit_depth());
    let is_packed = matches!(depth, 1 | 2 | 4) && count == 1 && decoder.get_chunk_type() == ChunkType::Strip;
    if !is_packed && !matches!(depth, 8 | 16 | 32 | 64) || palette.is_some() && depth > 8 {
        return Err(Problem::Unsupported(format!(
            "a TIFF of {depth} bits, of which 8, 16, 32 and 64 are read, and 1, 2 and 4 of grey or a palette in strips"
        )));
    }
    if names.is_empty() || names.len() > Image::MAX_PLANES {
        return Err(Problem::Decode(format!("it has {} components", names.len())));
    }
    let pixel = depth.div_ceil(8) * names.len() as u64;
    check_size(u64::from(width), u64::from(height), pixel, limits)?;
    let tile = match decoder.get_chunk_type() {
        ChunkType::Strip => (width, height),
        ChunkType::Tile => decoder.chunk_dimensions(),
    };
    let tiles = (width.div_ceil(tile.0), height.div_ceil(tile.1));
    if decoder.get_chunk_type() == ChunkType::Tile {
        let rows = u64::from(tile.1) * u64::from(tiles.0) * u64::from(tiles.1);
        let (columns, rows) = check_size(u64::from(tile.0), rows, pixel, limits)?;
        change(&mut decoder, &[(Tag::ImageWidth, columns), (Tag::ImageLength, rows)]).map_err(broken)?;
        if decoder.dimensions().map_err(broken)? != (columns, rows) {
            return Err(Problem::Decode("its directory has a tag twice".to_owned()));
        }
    }
    let bounds = Rect::sized(width, height);
    let is_associated = extra.iter().find(|kind| matches!(kind, 1 | 2)) == Some(&1);
    let planar = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration).map_err(broken)?.unwrap_or(1);
    let is_in_strips = decoder.get_chunk_type() == ChunkType::Strip && (planar == 1 || count == 1);
    if is_in_strips && !is_packed && palette.is_none() && !is_cmyk {
        let strips = decoder.strip_count().map_err(broken)?;
        let mut rows = TiffRows { decoder, names, next: 0, strips, pending: None, is_ycc };
        let (first, loss) = rows.strip()?;
        if first.width() != width {
            return Err(Problem::Decode(format!("its strips have {} columns of {width}", first.width())));
        }
        metadata.losses.extend(loss.map(str::to_owned));
        let planes: Vec<(String, SampleType)> =
            first.planes().iter().map(|plane| (plane.name().to_owned(), plane.sample_type())).collect();
        rows.pending = Some(first);
        let header = described(Image::placeholder(bounds, &planes)?, metadata, is_associated);
        return Ok(Opened::Rows(header, Box::new(rows)));
    }
    let mut result = DecodingResult::U8(vec![]);
    let is_planar = decoder.read_image_to_buffer(&mut result).map_err(broken)?.planes > 1;
    let places = |(columns, rows): (u32, u32)| (columns as usize, rows as usize);
    let layout = Layout { tile: places(tile), tiles: places(tiles), is_planar };
    if is_packed && let DecodingResult::U8(bytes) = &mut result {
        *bytes = unpacked(bytes, bounds, depth as usize, palette.is_none())?;
    }
    let (mut image, loss) = typed(&names, bounds, result, &layout)?;
    metadata.losses.extend(loss.map(str::to_owned));
    if is_ycc {
        image = of_differences(&image)?;
    }
    if let Some(palette) = palette {
        image = colored(&image, &palette, depth as usize)?;
    }
    if is_cmyk {
        let profile = metadata.color.profile.take().filter(|profile| profile.components() == Some(4));
        let (rgb, is_converted) = without_ink(&image, profile.as_ref())?;
        image = rgb;
        metadata.losses.push(match is_converted {
            true => "its CMYK is converted to sRGB by its profile".to_owned(),
            false => "its CMYK is read as RGB, each colour times the missing black".to_owned(),
        });
    }
    Ok(Opened::Whole(described(image, metadata, is_associated)))
}

/// Returns an image with its colours, its alpha and its metadata.
fn described(image: Image, metadata: Metadata, is_associated: bool) -> Image {
    let is_integer = matches!(image.sample_type(), SampleType::U8 | SampleType::U16);
    let has_srgb_curve = metadata.color.profile.as_ref().is_some_and(Profile::has_srgb_curve);
    let color = if is_integer || has_srgb_curve { ColorSpace::Srgb } else { ColorSpace::Linear };
    // The first sample that is marked as alpha is the plane A.
    let alpha = if is_associated { Alpha::Associated } else { Alpha::Straight };
    image.with_implied_color(color).with_metadata(metadata).with_alpha(alpha)
}

/// Returns the samples of rows with several samples in a byte. Each row begins at a byte. `is_grey` scales them to 0 … 255.
fn unpacked(bytes: &[u8], bounds: Rect, bits: usize, is_grey: bool) -> Result<Vec<u8>, Problem> {
    let (width, most) = (bounds.width as usize, (1u8 << bits) - 1);
    let line = (width * bits).div_ceil(8);
    if bytes.len() < line * bounds.height as usize {
        return Err(Problem::Decode(format!("{bounds} pixels need more than {} bytes", bytes.len())));
    }
    let mut samples = reserved::<u8>(bounds.area())?;
    for row in bytes.chunks_exact(line).take(bounds.height as usize) {
        samples.extend((0..width).map(|x| {
            let sample = row[x * bits / 8] >> (8 - bits - x * bits % 8) & most;
            if is_grey { sample * (255 / most) } else { sample }
        }));
    }
    Ok(samples)
}

/// Returns the colours of an image of indices. A palette has all reds, then all greens, then all blues.
fn colored(image: &Image, palette: &[u16], bits: usize) -> Result<Image, Problem> {
    let count = 1usize << bits;
    let needed = 3 * count;
    let indices = Some(image.planes()[0].samples()).filter(|_| palette.len() >= needed);
    let Some(Samples::U8(indices)) = indices else {
        return Err(Problem::Decode(format!("its palette has {} numbers, of which {needed} are needed", palette.len())));
    };
    // Palettes of 8 bits have them twice, or with zeros behind.
    let is_narrow =
        [257, 256].into_iter().any(|factor| palette.iter().all(|value| value >> 8 == value / factor && value % factor == 0));
    let planes = ["R", "G", "B"].into_iter().enumerate().map(|(component, name)| {
        let of = |index: &u8| palette[component * count + usize::from(*index)];
        match is_narrow {
            true => Plane::new(
                name,
                image.width(),
                image.height(),
                indices.iter().map(|index| (of(index) >> 8) as u8).collect::<Vec<u8>>(),
            ),
            false => Plane::new(name, image.width(), image.height(), indices.iter().map(of).collect::<Vec<u16>>()),
        }
    });
    Ok(Image::new(image.bounds(), planes.collect::<Result<Vec<Plane>, _>>()?)?)
}

/// Returns RGB of brightness and the differences of blue and red, as JPEG strips have them.
fn of_differences(image: &Image) -> Result<Image, Problem> {
    let samples: Vec<&[u8]> = image
        .planes()
        .iter()
        .filter_map(|plane| match plane.samples() {
            Samples::U8(samples) => Some(&samples[..]),
            _ => None,
        })
        .collect();
    let [luma, blue, red] = samples[..] else { return Err(Problem::Decode("its colours have not three components".to_owned())) };
    let (mut r, mut g, mut b) = (vec![], vec![], vec![]);
    append_colors(luma, blue, red, [&mut r, &mut g, &mut b]);
    let planes = ["R", "G", "B"].into_iter().zip([r, g, b]);
    let planes = planes.map(|(name, samples)| Plane::new(name, image.width(), image.height(), samples));
    Ok(Image::new(image.bounds(), planes.collect::<Result<_, _>>()?)?)
}

/// Returns RGB of the four planes of CMYK: sRGB by their profile, or (1 − ink) · (1 − black) without one. Also returns
/// whether a profile was applied.
fn without_ink(image: &Image, profile: Option<&Profile>) -> Result<(Image, bool), Problem> {
    let [inks @ .., black] = image.planes() else { return Ok((image.clone(), false)) };
    let wanted = if image.sample_type() == SampleType::U8 { SampleType::U8 } else { SampleType::U16 };
    let values: Vec<Vec<f32>> = image.planes().iter().map(Plane::to_f32).collect();
    let by_profile = profile.and_then(|profile| srgb_of_inks(profile, &values));
    let is_converted = by_profile.is_some();
    let rgb: Vec<Vec<f32>> = match by_profile {
        Some(rgb) => rgb.into(),
        None => {
            let black = black.to_f32();
            let light = |(ink, black): (&f32, &f32)| (1.0 - ink) * (1.0 - black);
            inks.iter().map(|ink| ink.to_f32().iter().zip(&black).map(light).collect()).collect()
        }
    };
    let planes = ["R", "G", "B"].into_iter().zip(rgb);
    let planes = planes.map(|(name, values)| Ok(Plane::new(name, image.width(), image.height(), values)?.converted(wanted)));
    Ok((Image::new(image.bounds(), planes.collect::<Result<Vec<Plane>, Problem>>()?)?, is_converted))
}

/// Splits interleaved or planar samples into planes.
fn planes<F: Copy, T: Sample>(
    names: &[String],
    bounds: Rect,
    samples: &[F],
    layout: &Layout,
    convert: impl Fn(F) -> T,
) -> Result<Image, Problem> {
    let (count, (columns, rows)) = (names.len(), layout.tile);
    let area = columns * rows * layout.tiles.0 * layout.tiles.1;
    if samples.len() < area * count {
        return Err(Problem::Decode(format!("{bounds} pixels of {count} samples need more than {} samples", samples.len())));
    }
    let (width, height) = (bounds.width as usize, bounds.height as usize);
    if !layout.is_planar && layout.tiles == (1, 1) && columns == width {
        let mut own = names.iter().map(|_| reserved::<T>(bounds.area())).collect::<Result<Vec<Vec<T>>, _>>()?;
        interleave::separate(&samples[..width * height * count], &mut own, convert);
        let planes = names.iter().zip(own).map(|(name, own)| Plane::new(name, bounds.width, bounds.height, own));
        return Ok(Image::new(bounds, planes.collect::<Result<_, _>>()?)?);
    }
    let mut planes = vec![];
    for (index, name) in names.iter().enumerate() {
        let mut own = reserved(bounds.area())?;
        let (first, step) = if layout.is_planar { (index * area, 1) } else { (index, count) };
        for (y, tile) in (0..height).flat_map(|y| (0..layout.tiles.0).map(move |tile| (y, tile))) {
            let at = ((y / rows * layout.tiles.0 + tile) * rows + y % rows) * columns;
            let line = samples[first + at * step..].iter().step_by(step);
            own.extend(line.take(columns.min(width - tile * columns)).map(|sample| convert(*sample)));
        }
        planes.push(Plane::new(name, bounds.width, bounds.height, own)?);
    }
    Ok(Image::new(bounds, planes)?)
}

/// Returns the sample type of an image that is written without a wanted one.
pub(super) fn sample_type(image: &Image) -> SampleType {
    match image.sample_type() {
        SampleType::U32 => SampleType::F32,
        other => other,
    }
}

/// Returns the planes in the order of a file, and whether the first three are red, green and blue. Red, green, blue and
/// alpha come first, grey with alpha last.
fn ordered(image: &Image) -> (Vec<Plane>, bool) {
    let mut planes: Vec<Plane> = image.planes().to_vec();
    // The layer does not matter where there is one.
    if planes.iter().all(|plane| plane.layer() == planes[0].layer()) {
        planes = planes.iter().map(|plane| plane.clone().renamed(plane.channel())).collect();
    }
    let of = |name: &str| planes.iter().any(|plane| plane.name() == name);
    let is_rgb = of("R") && of("G") && of("B");
    if is_rgb {
        planes.sort_by_key(|plane| ["R", "G", "B", "A"].iter().position(|name| *name == plane.name()).unwrap_or(4));
    } else {
        planes.sort_by_key(|plane| plane.name() == "A");
    }
    (planes, is_rgb)
}

/// Returns whether an image is written in colours.
pub(super) fn is_rgb(image: &Image) -> bool {
    ordered(image).1
}

/// Values of the tag ExtraSamples: 1 is associated alpha, 2 is straight alpha, 0 is any other plane.
fn extra_samples(planes: &[Plane], is_rgb: bool, alpha: Alpha) -> Vec<u16> {
    let kind = match alpha {
        Alpha::Associated => 1,
        Alpha::Straight | Alpha::Unknown => 2,
    };
    planes[if is_rgb { 3 } else { 1 }..].iter().map(|plane| if plane.name() == "A" { kind } else { 0 }).collect()
}

/// Returns whether a reader gives the planes of an image the names that they have.
pub(super) fn has_known_names(image: &Image) -> bool {
    let (planes, is_rgb) = ordered(image);
    let extra = extra_samples(&planes, is_rgb, image.alpha());
    let read = names(is_rgb, planes.len() as u16, &extra);
    image.planes().iter().all(|plane| read.iter().any(|name| name == plane.name()))
}

/// Writes an image.
pub(super) fn write(mut out: &mut dyn Out, from: Rows<'_>, options: &WriteOptions) -> Result<(), Problem> {
    let image = from.image();
    let wanted = options.samples.unwrap_or(sample_type(image));
    let (planes, is_rgb) = ordered(image);
    let pixels = Interleaved { planes: planes.iter().collect(), wanted, order: interleave::ByteOrder::Little, from };
    let fields = fields::of_image(image, is_rgb);
    let level = match options.compression {
        Compression::Fast => None,
        Compression::Balanced => Some(6),
        Compression::Best => Some(9),
    };
    let pages = image.metadata().pages.clone();
    WrittenTiff { pixels, is_rgb, alpha: image.alpha(), fields, level, pages }.write(&mut out)
}

/// Appends a page behind the directory of the page before, which ends `behind`. The first byte of `behind` is at `base`.
fn append_page(page: &Page, base: u64, is_big: bool, behind: &mut Vec<u8>) {
    let word = if is_big { 8 } else { 4 };
    let next = behind.len() - word..behind.len();
    let mut places = vec![];
    for block in &page.blocks {
        behind.resize(behind.len().next_multiple_of(2), 0);
        places.push(base + behind.len() as u64);
        behind.extend_from_slice(block);
    }
    let places = match is_big {
        true => Field::long8s(page.places, &places),
        false => Field::longs(page.places, &places.iter().map(|place| *place as u32).collect::<Vec<u32>>()),
    };
    let fields: Vec<Field> = page.fields.iter().cloned().chain([places]).collect();
    let directory = directory::write(behind, base, &fields, is_big);
    behind[next].copy_from_slice(&directory.to_le_bytes()[..word]);
}

/// An image that is being written.
struct WrittenTiff<'a> {
    pixels: Interleaved<'a>,
    is_rgb: bool,
    alpha: Alpha,
    /// Fields beside those of the layout.
    fields: Vec<Field>,
    /// Level of compression; `None` for none.
    level: Option<u32>,
    /// Pages behind the first, which are copied.
    pages: Vec<Page>,
}

impl WrittenTiff<'_> {
    /// Returns whether integers are replaced by differences to the pixel at the left.
    fn has_predictor(&self) -> bool {
        self.level.is_some() && matches!(self.pixels.wanted, SampleType::U8 | SampleType::U16)
    }

    /// Returns a strip of rows as it is in the file.
    fn strip(&self, rows: Range<u32>) -> Result<Vec<u8>, Problem> {
        let mut content = self.pixels.rows(rows)?;
        let Some(level) = self.level else { return Ok(content) };
        let (line, count) = (self.pixels.line(), self.pixels.planes.len());
        for row in content.chunks_exact_mut(line).filter(|_| self.has_predictor()) {
            if self.pixels.wanted == SampleType::U8 {
                (count..line).rev().for_each(|at| row[at] = row[at].wrapping_sub(row[at - count]));
            } else {
                let (words, _) = row.as_chunks_mut::<2>();
                for at in (count..words.len()).rev() {
                    let [here, left] = [at, at - count].map(|at| u16::from_le_bytes(words[at]));
                    words[at] = here.wrapping_sub(left).to_le_bytes();
                }
            }
        }
        let strip = deflate::strip(&content, level, true)?;
        let mut stream = deflate::Stream::new();
        stream.add(&strip);
        Ok([&deflate::Stream::HEADER[..], &strip.bytes, &stream.end()].concat())
    }

    /// Writes a header, strips, and the directory behind them.
    fn write(&self, out: &mut dyn Out) -> Result<(), Problem> {
        let (width, height) = (self.pixels.planes[0].width(), self.pixels.planes[0].height());
        let line = self.pixels.line();
        let of_pages: usize = self.pages.iter().flat_map(|page| &page.blocks).map(|block| block.len()).sum();
        let mut fields = self.fields.iter().chain(self.pages.iter().flat_map(|page| &page.fields));
        let is_big = line as u64 * u64::from(height) + of_pages as u64 >= BIG || fields.any(Field::is_big);
        let header: &[u8] = if is_big { b"II+\0\x08\0\0\0\0\0\0\0\0\0\0\0" } else { b"II*\0\0\0\0\0" };
        out.write_all(header).map_err(Problem::Write)?;
        let mut place = header.len() as u64;
        let rows = (STRIP / line).clamp(1, height as usize) as u32;
        let (mut offsets, mut sizes) = (vec![], vec![]);
        let encode = |index: usize| self.strip(index as u32 * rows..height.min((index as u32 + 1).saturating_mul(rows)));
        self.pixels.in_order(height.div_ceil(rows) as usize, encode, |strip| {
            out.write_all(&strip).map_err(Problem::Write)?;
            sizes.push(strip.len() as u64);
            offsets.push(place);
            place += strip.len() as u64;
            Ok(())
        })?;
        let padding = place % 2;
        let mut behind = vec![0; padding as usize];
        let fields = self.directory(is_big, rows, [width, height], [&offsets, &sizes]);
        let directory = directory::write(&mut behind, place, &fields, is_big);
        for page in &self.pages {
            append_page(page, place, is_big, &mut behind);
        }
        out.write_all(&behind).map_err(Problem::Write)?;
        out.seek(SeekFrom::Start(if is_big { 8 } else { 4 })).map_err(Problem::Write)?;
        match is_big {
            true => out.write_all(&directory.to_le_bytes()),
            false => out.write_all(&(directory as u32).to_le_bytes()),
        }
        .map_err(Problem::Write)
    }

    /// Returns the fields of the directory. `strips` has the places and the sizes of the strips.
    fn directory(&self, is_big: bool, rows: u32, [width, height]: [u32; 2], strips: [&[u64]; 2]) -> Vec<Field> {
        let (count, wanted) = (self.pixels.planes.len(), self.pixels.wanted);
        let format = match wanted {
            SampleType::U8 | SampleType::U16 | SampleType::U32 => 1,
            SampleType::F16 | SampleType::F32 => 3,
        };
        let places = |tag: u16, values: &[u64]| match is_big {
            true => Field::long8s(tag, values),
            false => Field::longs(tag, &values.iter().map(|value| *value as u32).collect::<Vec<u32>>()),
        };
        let compression = if self.level.is_some() { DEFLATE } else { 1 };
        let mut fields = vec![
            Field::longs(Tag::ImageWidth.to_u16(), &[width]),
            Field::longs(Tag::ImageLength.to_u16(), &[height]),
            Field::shorts(Tag::BitsPerSample.to_u16(), &vec![wanted.bytes() as u16 * 8; count]),
            Field::shorts(Tag::Compression.to_u16(), &[compression]),
            Field::shorts(Tag::PhotometricInterpretation.to_u16(), &[if self.is_rgb { RGB } else { 1 }]),
            places(Tag::StripOffsets.to_u16(), strips[0]),
            Field::shorts(Tag::SamplesPerPixel.to_u16(), &[count as u16]),
            Field::longs(Tag::RowsPerStrip.to_u16(), &[rows]),
            places(Tag::StripByteCounts.to_u16(), strips[1]),
            Field::shorts(Tag::SampleFormat.to_u16(), &vec![format; count]),
        ];
        if self.has_predictor() {
            fields.push(Field::shorts(Tag::Predictor.to_u16(), &[2]));
        }
        let planes: Vec<Plane> = self.pixels.planes.iter().map(|plane| (*plane).clone()).collect();
        let extra = extra_samples(&planes, self.is_rgb, self.alpha);
        if !extra.is_empty() {
            fields.push(Field::shorts(Tag::ExtraSamples.to_u16(), &extra));
        }
        fields.extend(self.fields.iter().cloned());
        fields
    }
}
