//! EXR, by the `exr` crate, on all cores. Files are written with lossless compression.
//!
//! Attributes, parts and channels of integers are kept. All parts of a file are planes of one image, and its planes are
//! written to their parts.

use super::exr_rows::{self, ExrRows, unwritten};
use super::interleave::Rows;
use super::limits::check_size;
use super::options::{self, WriteOptions};
use super::rows::Opened;
use super::source::Source;
use super::target::Out;
use super::{Limits, Problem};
use crate::image::{
    Alpha, Attributes, ColorSpace, Image, Length, Metadata, Part, PartChannel, Plane, Rect, Resolution, Sample, SampleType,
    Samples, reserved, with_samples,
};
use exr::image::read::read as reading;
use exr::image::{AnyChannel, AnyChannels, Encoding, FlatSamples, Layer};
use exr::meta::attribute::{ChannelDescription, Chromaticities, LevelMode, LineOrder, Text};
use exr::meta::header::{Header, ImageAttributes, LayerAttributes};
use exr::meta::{BlockDescription, MetaData};
use exr::prelude::{Blocks, Compression, IntegerBounds, ReadChannels, ReadLayers, SmallVec, Vec2, WritableImage};
use std::collections::HashSet;
use std::io::{Seek, SeekFrom};
use std::sync::Arc;

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
            return Err(Problem::Unsupported("an EXR with deep pixels, which are not read: flatten it before".to_owned()));
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

/// What is known of a file before its pixels are read.
struct ExrFile {
    meta: MetaData,
    /// Displayed rectangle; `None` if it is empty.
    display: Option<Rect>,
    losses: Vec<String>,
}

/// Opens a file. All parts are planes of one image. Planes of parts with different rectangles are 0 where they have no
/// pixels.
pub(super) fn open(mut source: Source, limits: Limits) -> Result<Opened, Problem> {
    let len = source.len();
    let meta = MetaData::read_from_buffered(&mut source, false).map_err(broken)?;
    check(&meta, len, limits)?;
    let has_levels = |header: &Header| match header.blocks {
        BlockDescription::Tiles(tiles) => tiles.level_mode != LevelMode::Singular,
        BlockDescription::ScanLines => false,
    };
    let levels = meta.headers.iter().any(has_levels);
    let differ = meta.headers.iter().any(|header| header.shared_attributes != meta.headers[0].shared_attributes);
    source.seek(SeekFrom::Start(0)).map_err(Problem::Read)?;
    let IntegerBounds { position: Vec2(x, y), size: Vec2(width, height) } = meta.headers[0].shared_attributes.display_window;
    let side = |extent: usize| u32::try_from(extent).ok();
    let display = side(width).zip(side(height)).and_then(|(width, height)| Rect::new(x, y, width, height).checked().ok());
    let mut losses = vec![];
    if levels {
        losses.push("its smaller levels are not read: the image is written at its full size alone".to_owned());
    }
    if differ {
        losses.push("its parts differ in attributes that parts must share; those of the first are kept".to_owned());
    }
    let file = ExrFile { meta, display, losses };
    match &file.meta.headers[..] {
        [header] if header.blocks == BlockDescription::ScanLines && header.line_order != LineOrder::Decreasing => {
            file.rows(source, limits)
        }
        _ => Ok(Opened::Whole(file.read(source, limits)?)),
    }
}

impl ExrFile {
    /// Opens a file of one part in lines.
    fn rows(self, source: Source, limits: Limits) -> Result<Opened, Problem> {
        let header = &self.meta.headers[0];
        let Vec2(x, y) = header.own_attributes.layer_position;
        let (width, height) = check_size(header.layer_size.0 as u64, header.layer_size.1 as u64, 1, limits)?;
        let bounds = Rect::new(x, y, width, height).checked()?;
        let list = &header.channels.list;
        let types: Vec<SampleType> = list.iter().map(|channel| sample_type(channel.sample_type)).collect();
        let names: Vec<String> = list.iter().map(|channel| channel.name.to_string()).collect();
        let mut places: Vec<usize> = (0..names.len()).collect();
        places.sort_by(|a, b| order(&names[*a]).cmp(&order(&names[*b])));
        let planes: Vec<(String, SampleType)> = places.iter().map(|place| (names[*place].clone(), types[*place])).collect();
        let channel = |channel: &ChannelDescription| {
            let name = channel.name.to_string();
            PartChannel { plane: name.clone(), channel: name, is_linear: channel.quantize_linearly }
        };
        let part = Part { own: header.own_attributes.clone(), bounds, channels: list.iter().map(channel).collect() };
        let shared = header.shared_attributes.clone();
        let image = self.described(Image::placeholder(bounds, &planes)?, shared, vec![part])?;
        let rows = ExrRows::new(source, image.clone(), types, places, broken)?;
        Ok(Opened::Rows(image, Box::new(rows)))
    }

    /// Reads all parts.
    fn read(self, source: Source, limits: Limits) -> Result<Image, Problem> {
        let read = reading().no_deep_data().largest_resolution_level().all_channels().all_layers().all_attributes();
        let file = read.from_buffered(source).map_err(broken)?;
        let several = file.layer_data.len() > 1;
        let (mut planes, mut parts) = (vec![], vec![]);
        for (index, layer) in file.layer_data.into_iter().enumerate() {
            let Vec2(x, y) = layer.attributes.layer_position;
            let (width, height) = check_size(layer.size.0 as u64, layer.size.1 as u64, 1, limits)?;
            let bounds = Rect::new(x, y, width, height).checked()?;
            let mut part = Part::of(&layer, bounds);
            let prefix = layer.attributes.layer_name.map_or_else(|| format!("part{index}"), |name| name.to_string());
            for channel in layer.channel_data.list {
                let own = channel.name.to_string();
                let is_prefixed = own.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('.'));
                let name = if several && !is_prefixed { format!("{prefix}.{own}") } else { own.clone() };
                let plane = match channel.sample_data {
                    FlatSamples::F16(samples) => Plane::new(&name, width, height, samples),
                    FlatSamples::F32(samples) => Plane::new(&name, width, height, samples),
                    FlatSamples::U32(samples) => Plane::new(&name, width, height, samples),
                };
                planes.push((bounds, plane?));
                part.channels.push(PartChannel { plane: name, channel: own, is_linear: channel.quantize_linearly });
            }
            parts.push(part);
        }
        let whole = planes.iter().try_fold(planes[0].0, |whole, (bounds, _)| whole.union(*bounds))?;
        let pixel: usize = planes.iter().map(|(_, plane)| plane.sample_type().bytes()).sum();
        check_size(u64::from(whole.width), u64::from(whole.height), pixel as u64, limits)?;
        let planes = planes.into_iter().map(|(bounds, plane)| match bounds == whole {
            true => Ok(plane),
            false => placed(&plane, bounds, whole),
        });
        let mut planes = planes.collect::<Result<Vec<Plane>, Problem>>()?;
        planes.sort_by(|a, b| order(a.name()).cmp(&order(b.name())));
        self.described(Image::new(whole, planes)?, file.attributes, parts)
    }

    /// Returns an image with its attributes.
    fn described(&self, image: Image, mut shared: ImageAttributes, mut parts: Vec<Part>) -> Result<Image, Problem> {
        let mut metadata = Metadata { alpha: Alpha::Associated, losses: self.losses.clone(), ..Metadata::default() };
        if !are_sound(&mut shared, &mut parts, &self.meta) {
            metadata.losses.push("its attributes are not kept: some are broken".to_owned());
        }
        metadata.color.chromaticities = shared.chromaticities.map(|of| {
            let Chromaticities { white, red, green, blue } = of;
            [white.0, white.1, red.0, red.1, green.0, green.1, blue.0, blue.1].map(f64::from)
        });
        metadata.resolution = parts[0].own.horizontal_density.and_then(|x| density(x, shared.pixel_aspect));
        metadata.attributes = Some(Arc::new(Attributes { shared, parts }));
        // The whole image is displayed if the display window is empty.
        let display = self.display.unwrap_or(image.bounds());
        Ok(image.with_implied_color(ColorSpace::Linear).with_metadata(metadata).with_display(display)?)
    }
}

/// Gives parts names of their own, and returns whether a file may have the attributes. Removes them if not.
fn are_sound(shared: &mut ImageAttributes, parts: &mut [Part], meta: &MetaData) -> bool {
    let mut names = HashSet::new();
    let several = parts.len() > 1;
    for (index, part) in parts.iter_mut().enumerate().filter(|_| several) {
        if part.own.layer_name.as_ref().is_none_or(|name| !names.insert(name.to_string())) {
            let name = format!("part{index}");
            part.own.layer_name = Text::new_or_none(&name);
            names.insert(name);
        }
    }
    let window = IntegerBounds::new(Vec2(0, 0), Vec2(1, 1));
    let plain = |(header, part): (&Header, &Part)| {
        let name = part.own.layer_name.clone().unwrap_or_default();
        Header::new(name, header.layer_size, header.channels.list.clone())
            .with_attributes(part.own.clone())
            .with_shared_attributes(ImageAttributes { display_window: window, ..shared.clone() })
    };
    let headers: Vec<Header> = meta.headers.iter().zip(&*parts).map(plain).collect();
    if MetaData::validate(&headers, true).is_ok() {
        return true;
    }
    *shared = ImageAttributes::new(window);
    for part in parts {
        part.own = LayerAttributes { layer_name: part.own.layer_name.clone(), ..LayerAttributes::default() };
    }
    false
}

/// Returns the resolution of a number of pixels per inch along x.
fn density(x: f32, aspect: f32) -> Option<Resolution> {
    let fraction = |value: f32| {
        let thousandths = (f64::from(value) * 1000.0).round();
        (1.0..=4e9).contains(&thousandths).then_some((thousandths as u32, 1000))
    };
    Some(Resolution { x: fraction(x)?, y: fraction(x * aspect)?, unit: Length::Inch })
}

/// Returns a plane in a larger rectangle, padded with 0.
fn placed(plane: &Plane, bounds: Rect, whole: Rect) -> Result<Plane, Problem> {
    fn samples<T: Sample>(_: &[T], plane: &Plane, bounds: Rect, whole: Rect) -> Result<Samples, Problem> {
        let mut samples = reserved::<T>(whole.area())?;
        samples.resize(whole.area() as usize, T::default());
        let place = |own: i32, of: i32| (i64::from(own) - i64::from(of)) as usize;
        let (left, top) = (place(bounds.x, whole.x), place(bounds.y, whole.y));
        for (row, values) in (0..plane.height()).filter_map(|y| plane.row::<T>(y)).enumerate() {
            samples[(top + row) * whole.width as usize + left..][..values.len()].copy_from_slice(values);
        }
        Ok(Samples::new(samples))
    }
    let samples = with_samples!(plane.samples(), own => samples(own, plane, bounds, whole))?;
    Ok(Plane::from_samples(plane.name(), whole.width, whole.height, whole.width as usize, samples)?)
}

/// Returns the names of attributes that are more than the layout of the pixels.
pub(super) fn names(image: &Image) -> Vec<String> {
    let Some(attributes) = &image.metadata().attributes else { return vec![] };
    let mut names: Vec<String> = attributes.shared.other.keys().map(|name| format!("attribute {name}")).collect();
    names.extend(attributes.shared.time_code.map(|_| "attribute timeCode".to_owned()));
    if attributes.shared.pixel_aspect != 1.0 && image.metadata().resolution.is_none() {
        names.push("attribute pixelAspectRatio".to_owned());
    }
    for part in &attributes.parts {
        let own = &part.own;
        names.extend(own.other.keys().map(|name| format!("attribute {name}")));
        macro_rules! named {
            ($($field:ident $name:literal),*) => { $(names.extend(own.$field.is_some().then(|| concat!("attribute ", $name).to_owned()));)* };
        }
        named!(
            layer_name "name", white_luminance "whiteLuminance", adopted_neutral "adoptedNeutral",
            rendering_transform_name "renderingTransform", look_modification_transform_name "lookModTransform", owner "owner",
            comments "comments", capture_date "capDate", utc_offset "utcOffset", longitude "longitude", latitude "latitude",
            altitude "altitude", focus "focus", exposure "expTime", aperture "aperture", iso_speed "isoSpeed",
            environment_map "envmap", film_key_code "keyCode", wrap_mode_name "wrapmodes", frames_per_second "framesPerSecond",
            multi_view_names "multiView", world_to_camera "worldToCamera", world_to_normalized_device "worldToNDC",
            original_data_window "originalDataWindow", preview "preview", view_name "view", software_name "software",
            near_clip_plane "near", far_clip_plane "far", horizontal_field_of_view "fieldOfViewHorizontal",
            vertical_field_of_view "fieldOfViewVertical"
        );
    }
    names.sort();
    names.dedup();
    names
}

/// A part that is written: its description and its planes with the names and flags of their channels.
struct WrittenPart<'a> {
    part: Option<&'a Part>,
    planes: Vec<(&'a Plane, String, Option<bool>)>,
}

/// Distributes planes to parts: a plane that was read to its part, a new one to the part whose name begins its own, or
/// to the first part.
fn distributed(image: &Image) -> Vec<WrittenPart<'_>> {
    let parts = image.metadata().attributes.as_ref().map_or(&[][..], |attributes| &attributes.parts);
    let mut written: Vec<WrittenPart<'_>> = parts.iter().map(|part| WrittenPart { part: Some(part), planes: vec![] }).collect();
    if written.is_empty() {
        written.push(WrittenPart { part: None, planes: vec![] });
    }
    for plane in image.planes() {
        let known = parts.iter().enumerate().find_map(|(index, part)| {
            let channel = part.channels.iter().find(|channel| channel.plane == plane.name())?;
            Some((index, channel.channel.clone(), Some(channel.is_linear)))
        });
        let begun = || {
            parts.iter().enumerate().filter(|_| parts.len() > 1).find_map(|(index, part)| {
                let name = part.own.layer_name.as_ref()?.to_string();
                let channel = plane.name().strip_prefix(name.as_str())?.strip_prefix('.')?;
                Some((index, channel.to_owned(), None))
            })
        };
        let (index, channel, is_linear) = known.or_else(begun).unwrap_or((0, plane.name().to_owned(), None));
        written[index].planes.push((plane, channel, is_linear));
    }
    written.retain(|part| !part.planes.is_empty());
    written
}

/// Writes an image with its attributes, each plane to its part.
pub(super) fn write(out: &mut dyn Out, from: Rows<'_>, options: &WriteOptions) -> Result<(), Problem> {
    let whole;
    let is_single = distributed(from.image()).len() == 1;
    let image = match is_single {
        true => from.image(),
        false => {
            whole = from.whole(options)?;
            &whole
        }
    };
    let metadata = image.metadata();
    let is_moved = metadata.read_bounds != Some(image.bounds());
    let parts = distributed(image);
    let several = parts.len() > 1;
    let mut layers: Vec<Layer<AnyChannels<FlatSamples>>> = vec![];
    for WrittenPart { part, planes } in &parts {
        let bounds = part.filter(|_| several && !is_moved).map_or(image.bounds(), |part| part.bounds);
        let view = image.view(bounds)?;
        let mut list: SmallVec<[AnyChannel<FlatSamples>; 4]> = SmallVec::new();
        for (plane, name, is_linear) in planes {
            let text = Text::new_or_none(name).filter(|name| !name.as_slice().is_empty());
            let Some(text) = text.filter(|text| !list.iter().any(|other| other.name == *text)) else {
                return Err(Problem::Unsupported(format!("the name of the plane `{}` cannot be in an EXR", plane.name())));
            };
            let Some(plane) = view.plane(plane.name()) else { continue };
            // The rows of a single part follow later.
            let part = if is_single { view.rows(0..1) } else { view.clone() };
            let plane = part.plane(plane.name()).unwrap_or(plane);
            let mut channel = AnyChannel::new(text, flat(plane, options.samples));
            channel.quantize_linearly = is_linear.unwrap_or(channel.quantize_linearly);
            list.push(channel);
        }
        let mut attributes = part.map_or_else(LayerAttributes::default, |part| part.own.clone());
        attributes.layer_position = Vec2(bounds.x, bounds.y);
        if is_moved {
            // The preview shows other pixels.
            attributes.preview = None;
        }
        let inch = metadata.resolution.and_then(|resolution| resolution.per(Length::Inch));
        attributes.horizontal_density = attributes.horizontal_density.or(inch.map(|(x, _)| x as f32));
        let compression = compression(options.compression);
        let encoding = Encoding { compression, blocks: Blocks::ScanLines, line_order: LineOrder::Increasing };
        let size = Vec2(bounds.width as usize, bounds.height as usize);
        layers.push(Layer::new(size, attributes, encoding, AnyChannels::sort(list)));
    }
    let display = image.display();
    let window = IntegerBounds::new(Vec2(display.x, display.y), Vec2(display.width as usize, display.height as usize));
    let mut shared = match &metadata.attributes {
        Some(attributes) => attributes.shared.clone(),
        None => {
            let mut shared = ImageAttributes::new(window);
            let inch = metadata.resolution.and_then(|resolution| resolution.per(Length::Inch));
            shared.pixel_aspect = inch.map_or(1.0, |(x, y)| (y / x) as f32);
            shared
        }
    };
    shared.display_window = window;
    shared.chromaticities = metadata.color.chromaticities.map(|of| {
        let at = |index: usize| Vec2(of[index] as f32, of[index + 1] as f32);
        Chromaticities { white: at(0), red: at(2), green: at(4), blue: at(6) }
    });
    if let ([layer], [part]) = (&layers[..], &parts[..]) {
        let description = |channel: &AnyChannel<FlatSamples>| {
            let ty = match channel.sample_data {
                FlatSamples::F16(_) => exr::meta::attribute::SampleType::F16,
                FlatSamples::F32(_) => exr::meta::attribute::SampleType::F32,
                FlatSamples::U32(_) => exr::meta::attribute::SampleType::U32,
            };
            ChannelDescription::new(channel.name.clone(), ty, channel.quantize_linearly)
        };
        let list: SmallVec<[ChannelDescription; 5]> = layer.channel_data.list.iter().map(description).collect();
        let place = |channel: &ChannelDescription| {
            let of = |(_, name, _): &&(&Plane, String, Option<bool>)| *name == channel.name.to_string();
            let plane = part.planes.iter().find(of).map_or("", |(plane, ..)| plane.name());
            let index = image.planes().iter().position(|own| own.name() == plane).unwrap_or(0);
            (index, sample_type(channel.sample_type))
        };
        let channels: Vec<(usize, SampleType)> = list.iter().map(place).collect();
        let header = Header::new(layer.attributes.layer_name.clone().unwrap_or_default(), layer.size, list)
            .with_encoding(layer.encoding.compression, BlockDescription::ScanLines, layer.encoding.line_order)
            .with_attributes(layer.attributes.clone())
            .with_shared_attributes(shared);
        return exr_rows::write(out, header, &channels, from, options.compression);
    }
    exr::image::Image::from_layers(shared, layers).write().to_buffered(out).map_err(unwritten)
}

/// Returns the sample type of a channel.
fn sample_type(ty: exr::meta::attribute::SampleType) -> SampleType {
    match ty {
        exr::meta::attribute::SampleType::F16 => SampleType::F16,
        exr::meta::attribute::SampleType::F32 => SampleType::F32,
        exr::meta::attribute::SampleType::U32 => SampleType::U32,
    }
}

/// Returns the compression of a part. All of them are lossless.
fn compression(effort: options::Compression) -> Compression {
    match effort {
        options::Compression::Fast | options::Compression::Balanced => Compression::ZIP16,
        options::Compression::Best => Compression::PIZ,
    }
}

/// Returns the samples of a plane one behind the other. Integers of 32 bits stay; the others have the wanted type.
fn flat(plane: &Plane, samples: Option<SampleType>) -> FlatSamples {
    fn rows<T: Sample>(plane: &Plane) -> Vec<T> {
        (0..plane.height()).filter_map(|y| plane.row(y)).flatten().copied().collect()
    }
    match (plane.sample_type(), samples) {
        (SampleType::U32, _) => FlatSamples::U32(rows(plane)),
        (SampleType::F16, None) | (_, Some(SampleType::F16)) => FlatSamples::F16(rows(&plane.converted(SampleType::F16))),
        _ => FlatSamples::F32(rows(&plane.converted(SampleType::F32))),
    }
}
