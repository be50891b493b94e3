//! Fields of a TIFF beside its pixels.
//!
//! A field is kept as it is unless it describes the layout of the pixels. Directories of EXIF are kept with their
//! fields. Fields that refer to other images of the file are named.

use super::directory::{Bytes, EXIF, Entry, GPS, Reader, UNDEFINED};
use super::source::Source;
use super::{chunks, exif};
use crate::image::{ColorDescription, Field, FieldValue, Image, Metadata, Orientation, Page, Profile};
use std::collections::HashSet;
use std::io::{Read, Seek, SeekFrom};

const XMP: u16 = 700;
const PROFILE: u16 = 34675;
const WHITE: u16 = 318;
const PRIMARIES: u16 = 319;
/// Maximum number of bytes of the blocks of all pages behind the first.
const MAX_OF_PAGES: u64 = 1 << 28;
const BITS: u16 = 258;
const SUB_DIRECTORIES: u16 = 330;
/// Fields of the places and the sizes of strips and of tiles.
const BLOCKS: [(u16, u16); 2] = [(273, 279), (324, 325)];
/// Fields of places in the file, of an old kind of compression.
const OLD_JPEG: [u16; 5] = [513, 514, 519, 520, 521];
/// Fields that place pixels on a map. They are false where pixels are elsewhere.
const MAP: [u16; 3] = [33550, 33922, 34264];
/// Fields of values or images that depend on the pixels.
const STALE: [u16; 8] = [280, 281, 301, 330, 340, 341, 342, 512];

impl Bytes for &mut Source {
    fn len(&self) -> u64 {
        Source::len(self)
    }

    fn get(&mut self, at: u64, len: usize) -> Option<Vec<u8>> {
        if at.checked_add(len as u64)? > Source::len(self) {
            return None;
        }
        self.seek(SeekFrom::Start(at)).ok()?;
        let mut bytes = vec![0; len];
        self.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Returns whether a field describes the layout of the pixels, or has a place of its own in the metadata.
fn is_layout(tag: u16) -> bool {
    matches!(tag, 254..=259 | 262..=266 | 273 | 277..=279 | 284 | 288..=293 | 317 | 320..=328 | 332..=336 | 338 | 339)
        || matches!(tag, 343..=351 | 400..=405 | 433..=435 | 513..=521 | 529..=532 | 559)
        || matches!(tag, exif::ORIENTATION | PROFILE | XMP)
        || exif::RESOLUTION.contains(&tag)
}

/// Reads the metadata of a file and returns to its start. Broken fields are left out.
pub(super) fn read(source: &mut Source) -> std::io::Result<Metadata> {
    let mut metadata = Metadata::default();
    if let Some(reader) = Reader::new(&mut *source) {
        read_fields(&mut metadata, reader);
    }
    source.seek(SeekFrom::Start(0))?;
    Ok(metadata)
}

fn read_fields(metadata: &mut Metadata, mut reader: Reader<&mut Source>) {
    let Some((entries, next)) = reader.entries(reader.first) else { return };
    let own = [exif::ORIENTATION, PROFILE, XMP, exif::RESOLUTION[0], exif::RESOLUTION[1], exif::RESOLUTION[2]];
    let fields = reader.fields(&entries, &|tag| own.contains(&tag) || !is_layout(tag) && !STALE.contains(&tag));
    let bytes = |tag: u16| {
        fields.iter().find(|field| field.tag == tag).and_then(|field| match &field.value {
            FieldValue::Bytes(bytes) => Some(bytes.clone()).filter(|bytes| !bytes.is_empty()),
            FieldValue::Directory(_) => None,
        })
    };
    metadata.orientation = exif::orientation(&fields);
    metadata.resolution = exif::resolution(&fields);
    metadata.xmp = bytes(XMP);
    metadata.color = ColorDescription {
        profile: bytes(PROFILE).map(Profile::new),
        chromaticities: chromaticities(&fields),
        ..ColorDescription::default()
    };
    metadata.fields = fields.into_iter().filter(|field| !own.contains(&field.tag)).collect();
    let mut unkept: Vec<String> =
        entries.iter().filter(|entry| STALE.contains(&entry.tag)).map(|entry| name(entry.tag)).collect();
    unkept.extend(reader.broken.iter().take(20).map(|tag| format!("{} (broken)", name(*tag))));
    if !unkept.is_empty() {
        metadata.losses.push(format!("fields that depend on the pixels or are broken are not kept: {}", unkept.join(", ")));
    }
    let count = reader.count(next);
    metadata.pages = pages(&mut reader, next);
    let kept = metadata.pages.len();
    match count - kept.min(count) {
        0 => {}
        1 => metadata.losses.push(format!("its page {} is not kept: it is too large or of a kind that is not copied", kept + 2)),
        _ => metadata.losses.push(format!(
            "its pages {} to {} are not kept: they are too large or of a kind that is not copied",
            kept + 2,
            count + 1
        )),
    }
}

/// Returns the pages of the chain of directories that begins at a place, up to one that cannot be copied.
fn pages(reader: &mut Reader<&mut Source>, mut next: u64) -> Vec<Page> {
    let (mut pages, mut seen, mut left) = (vec![], HashSet::new(), MAX_OF_PAGES);
    while next != 0 && seen.insert(next) {
        let Some((entries, behind)) = reader.entries(next) else { break };
        let Some(page) = page(reader, &entries, &mut left) else { break };
        pages.push(page);
        next = behind;
    }
    pages
}

/// Returns a page; `None` if it cannot be copied.
fn page(reader: &mut Reader<&mut Source>, entries: &[Entry], left: &mut u64) -> Option<Page> {
    let broken = reader.broken.len();
    let mut fields = reader.fields(entries, &|tag| tag != SUB_DIRECTORIES);
    if reader.broken.len() > broken || fields.iter().any(|field| OLD_JPEG.contains(&field.tag)) {
        return None;
    }
    let integers = |tag: u16| fields.iter().find(|field| field.tag == tag)?.integers();
    // Samples of more than a byte have the byte order of the file.
    let is_narrow = integers(BITS).is_none_or(|bits| bits.iter().all(|bits| *bits <= 8));
    if reader.is_big_endian() && !is_narrow {
        return None;
    }
    let (places, (starts, sizes)) = BLOCKS.iter().find_map(|(places, sizes)| {
        let both = integers(*places).zip(integers(*sizes))?;
        Some((*places, both))
    })?;
    if starts.len() != sizes.len() {
        return None;
    }
    let mut blocks = vec![];
    for (start, size) in starts.into_iter().zip(sizes) {
        *left = left.checked_sub(size)?;
        blocks.push(reader.block(start, usize::try_from(size).ok()?)?.into());
    }
    fields.retain(|field| field.tag != places);
    Some(Page { fields, blocks, places })
}

fn chromaticities(fields: &[Field]) -> Option<[f64; 8]> {
    let of = |tag: u16| fields.iter().find(|field| field.tag == tag)?.to_fractions();
    let fractions = [of(WHITE)?, of(PRIMARIES)?].concat();
    let values: Vec<f64> = fractions.iter().map(|(count, of)| f64::from(*count) / f64::from(*of)).collect();
    values.try_into().ok().filter(|values: &[f64; 8]| values.iter().all(|value| value.is_finite()))
}

/// Returns the fields of an image that a TIFF holds beside those of the layout.
pub(super) fn of_image(image: &Image, is_rgb: bool) -> Vec<Field> {
    let metadata = image.metadata();
    let mut fields: Vec<Field> = vec![];
    let mut add = |field: Field| {
        if !fields.iter().any(|own| own.tag == field.tag) {
            fields.push(field);
        }
    };
    metadata.fields.iter().filter(|field| is_true(field.tag, image)).cloned().for_each(&mut add);
    if let Some((block, _)) = metadata.exif.as_ref().and_then(|block| exif::fields(block)) {
        block.into_iter().filter(|field| exif::is_common(field.tag)).for_each(&mut add);
    }
    if let Some(orientation) = metadata.orientation {
        add(Field::shorts(exif::ORIENTATION, &[orientation.number()]));
    }
    if let Some(resolution) = metadata.resolution {
        exif::resolution_fields(resolution).into_iter().for_each(&mut add);
    }
    if let Some(profile) = metadata.color.profile.as_ref().filter(|profile| chunks::fits(profile, is_rgb)) {
        add(Field::bytes(PROFILE, UNDEFINED, &profile.bytes));
    }
    if let Some(packet) = &metadata.xmp {
        add(Field::bytes(XMP, 1, &exif::updated_xmp(packet, metadata.orientation.unwrap_or(Orientation::Upright))));
    }
    if let Some(values) = metadata.color.chromaticities {
        let fractions = values.map(|value| ((value * 1e6).round() as u32, 1_000_000));
        add(Field::fractions(WHITE, &fractions[..2]));
        add(Field::fractions(PRIMARIES, &fractions[2..]));
    }
    exif::update_fields(&mut fields, exif::pixels(image));
    fields
}

/// Returns whether a field is true for an image: places on a map are false where pixels have moved.
fn is_true(tag: u16, image: &Image) -> bool {
    !MAP.contains(&tag) || image.metadata().read_bounds == Some(image.bounds())
}

/// Returns the names of fields that are not written: all but those of an EXIF block and chromaticities if `has_exif` is
/// set, and those that the format holds elsewhere.
pub(super) fn unwritten(image: &Image, has_exif: bool, is_held: impl Fn(&Field) -> bool) -> Vec<String> {
    let is_left = |field: &&Field| match has_exif {
        true => !exif::is_common(field.tag) && !matches!(field.tag, WHITE | PRIMARIES) || field.is_big(),
        false => !matches!(field.tag, WHITE | PRIMARIES),
    };
    image
        .metadata()
        .fields
        .iter()
        .filter(|field| !is_held(field) && is_left(field))
        .map(|field| format!("TIFF {}", name(field.tag)))
        .collect()
}

/// Returns the names of fields that a TIFF could hold and that are false for the pixels.
pub(super) fn untrue(image: &Image) -> Vec<String> {
    image.metadata().fields.iter().filter(|field| !is_true(field.tag, image)).map(|field| name(field.tag)).collect()
}

/// Returns the name of a field.
fn name(tag: u16) -> String {
    let name = match tag {
        270 => "ImageDescription",
        271 => "Make",
        272 => "Model",
        280 => "MinSampleValue",
        281 => "MaxSampleValue",
        285 => "PageName",
        297 => "PageNumber",
        301 => "TransferFunction",
        305 => "Software",
        306 => "DateTime",
        315 => "Artist",
        330 => "SubIFDs",
        33432 => "Copyright",
        33550 => "ModelPixelScale",
        33723 => "IPTC",
        33922 => "ModelTiepoint",
        34264 => "ModelTransformation",
        34377 => "Photoshop resources",
        EXIF => "EXIF",
        GPS => "GPS",
        _ => return format!("tag {tag}"),
    };
    name.to_owned()
}
