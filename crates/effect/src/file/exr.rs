//! EXR, by the `exr` crate. Files are written with lossless ZIP compression of 16 rows.

use super::source::Source;
use super::target::Out;
use super::{Limits, Problem, check_size};
use crate::image::{ColorSpace, Image, Plane, Rect, SampleType, reserved};
use exr::image::read::read as reading;
use exr::image::{AnyChannel, AnyChannels, Encoding, FlatSamples, Layer};
use exr::meta::MetaData;
use exr::meta::attribute::{LineOrder, Text};
use exr::meta::header::LayerAttributes;
use exr::prelude::{Blocks, Compression, IntegerBounds, ReadChannels, ReadLayers, SmallVec, Vec2, WritableImage};
use std::io::{Seek, SeekFrom};

/// Maximum number of parts of a file.
const MAX_PARTS: usize = 256;

fn broken(error: exr::error::Error) -> Problem {
    match error {
        exr::error::Error::Io(error) => Problem::of_read(error),
        exr::error::Error::NotSupported(what) => Problem::Unsupported(format!("an EXR of a kind that is not read: {what}")),
        error => Problem::Decode(error.to_string()),
    }
}

/// Checks sizes before the library allocates memory.
fn check(meta: &MetaData, len: u64, limits: Limits) -> Result<(), Problem> {
    if meta.headers.is_empty() || meta.headers.len() > MAX_PARTS {
        return Err(Problem::Decode(format!("it has {} parts, of which there are 1 to {MAX_PARTS}", meta.headers.len())));
    }
    let (mut total, mut channels) = (0u64, 0);
    for header in &meta.headers {
        if header.deep {
            return Err(Problem::Unsupported("an EXR with deep pixels, which are not read".to_owned()));
        }
        let list = &header.channels.list;
        if list.iter().any(|channel| channel.sampling != Vec2(1, 1)) {
            return Err(Problem::Unsupported("an EXR with subsampled channels, which are not read".to_owned()));
        }
        channels += list.len();
        let pixel: usize = list.iter().map(|channel| channel.sample_type.bytes_per_sample()).sum();
        let (width, height) = (header.layer_size.0 as u64, header.layer_size.1 as u64);
        check_size(width, height, pixel.max(1) as u64, limits)?;
        total = total.saturating_add(width * height * pixel as u64);
        // The table of offsets alone has 8 bytes per chunk.
        if (header.chunk_count as u64).saturating_mul(8) > len {
            return Err(Problem::Decode(format!("{} chunks cannot be in a file of {len} bytes", header.chunk_count)));
        }
        if total > limits.bytes {
            return Err(Problem::TooLarge { width, height, bytes: total, limit: limits.bytes });
        }
    }
    match channels {
        1..=Image::MAX_PLANES => Ok(()),
        _ => Err(Problem::Decode(format!("it has {channels} channels, of which there are 1 to {}", Image::MAX_PLANES))),
    }
}

/// Returns the sort key of a channel in its layer: colours first, then the others by name.
fn order(name: &str) -> (&str, usize, &str) {
    let (layer, channel) = name.rsplit_once('.').unwrap_or(("", name));
    let known = ["R", "G", "B", "A"].iter().position(|known| *known == channel);
    (layer, known.unwrap_or(usize::MAX), channel)
}

/// Reads all parts of a file. Planes of parts with different rectangles are 0 where they have no pixels.
pub(super) fn read(mut source: Source, limits: Limits) -> Result<Image, Problem> {
    let len = source.len();
    let meta = MetaData::read_from_buffered(&mut source, false).map_err(broken)?;
    check(&meta, len, limits)?;
    source.seek(SeekFrom::Start(0)).map_err(Problem::Read)?;
    let read = reading().no_deep_data().largest_resolution_level().all_channels().all_layers().all_attributes();
    let file = read.non_parallel().from_buffered(source).map_err(broken)?;
    let several = file.layer_data.len() > 1;
    let IntegerBounds { position: Vec2(x, y), size: Vec2(width, height) } = file.attributes.display_window;
    let side = |extent: usize| u32::try_from(extent).ok();
    let display = side(width).zip(side(height)).and_then(|(width, height)| Rect::new(x, y, width, height).checked().ok());
    let mut parts = vec![];
    for (index, layer) in file.layer_data.into_iter().enumerate() {
        let Vec2(x, y) = layer.attributes.layer_position;
        let (width, height) = check_size(layer.size.0 as u64, layer.size.1 as u64, 1, limits)?;
        let bounds = Rect::new(x, y, width, height).checked()?;
        let part = layer.attributes.layer_name.map_or_else(|| format!("part{index}"), |name| name.to_string());
        for channel in layer.channel_data.list {
            let own = channel.name.to_string();
            let is_prefixed = own.strip_prefix(part.as_str()).is_some_and(|rest| rest.starts_with('.'));
            let name = if several && !is_prefixed { format!("{part}.{own}") } else { own };
            let plane = match channel.sample_data {
                FlatSamples::F16(samples) => Plane::new(&name, width, height, samples),
                FlatSamples::F32(samples) => Plane::new(&name, width, height, samples),
                FlatSamples::U32(samples) => {
                    Plane::new(&name, width, height, samples.into_iter().map(|sample| sample as f32).collect())
                }
            };
            parts.push((bounds, plane?));
        }
    }
    let whole = parts.iter().try_fold(parts[0].0, |whole, (bounds, _)| whole.union(*bounds))?;
    let pixel: usize = parts.iter().map(|(_, plane)| plane.sample_type().bytes()).sum();
    check_size(u64::from(whole.width), u64::from(whole.height), pixel as u64, limits)?;
    let planes = parts.into_iter().map(|(bounds, plane)| match bounds == whole {
        true => Ok(plane),
        false => placed(&plane, bounds, whole),
    });
    let mut planes = planes.collect::<Result<Vec<Plane>, Problem>>()?;
    planes.sort_by(|a, b| order(a.name()).cmp(&order(b.name())));
    let image = Image::new(whole, planes)?.with_color(ColorSpace::Linear);
    // The whole image is displayed if the display window is empty.
    Ok(image.with_display(display.unwrap_or(whole))?)
}

/// Returns a plane in a larger rectangle, padded with 0.
fn placed(plane: &Plane, bounds: Rect, whole: Rect) -> Result<Plane, Problem> {
    let mut samples = reserved::<f32>(whole.area())?;
    samples.resize(whole.area() as usize, 0.0);
    let values = plane.to_f32();
    let (left, top) = ((i64::from(bounds.x) - i64::from(whole.x)) as usize, (i64::from(bounds.y) - i64::from(whole.y)) as usize);
    for (row, values) in values.chunks_exact(bounds.width as usize).enumerate() {
        samples[(top + row) * whole.width as usize + left..][..values.len()].copy_from_slice(values);
    }
    Ok(Plane::new(plane.name(), whole.width, whole.height, samples)?.converted(plane.sample_type()))
}

/// Writes an image. Names of planes, including layers, are names of channels.
pub(super) fn write(out: &mut dyn Out, image: &Image, samples: Option<SampleType>) -> Result<(), Problem> {
    let bounds = image.bounds();
    let mut list: SmallVec<[AnyChannel<FlatSamples>; 4]> = SmallVec::new();
    for plane in image.planes() {
        let wanted = samples.unwrap_or(match plane.sample_type() {
            SampleType::F16 => SampleType::F16,
            SampleType::U8 | SampleType::U16 | SampleType::F32 => SampleType::F32,
        });
        let Some(name) = Text::new_or_none(plane.name()).filter(|name| !name.as_slice().is_empty()) else {
            return Err(Problem::Unsupported(format!("the name of the plane `{}` cannot be in an EXR", plane.name())));
        };
        let plane = plane.converted(wanted);
        let rows = 0..bounds.height;
        let samples = match wanted {
            SampleType::F16 => FlatSamples::F16(rows.filter_map(|y| plane.row(y)).flatten().copied().collect()),
            _ => FlatSamples::F32(rows.filter_map(|y| plane.row(y)).flatten().copied().collect()),
        };
        list.push(AnyChannel::new(name, samples));
    }
    let size = Vec2(bounds.width as usize, bounds.height as usize);
    let position = Vec2(bounds.x, bounds.y);
    let encoding = Encoding { compression: Compression::ZIP16, blocks: Blocks::ScanLines, line_order: LineOrder::Increasing };
    let layer = Layer::new(size, LayerAttributes::default().with_position(position), encoding, AnyChannels::sort(list));
    let mut file = exr::image::Image::from_layer(layer);
    let display = image.display();
    file.attributes.display_window =
        IntegerBounds::new(Vec2(display.x, display.y), Vec2(display.width as usize, display.height as usize));
    file.write().non_parallel().to_buffered(out).map_err(|error| match error {
        exr::error::Error::Io(error) => Problem::Write(error),
        error => Problem::Write(std::io::Error::other(error)),
    })
}
