//! Segments of a JPEG beside its pixels: JFIF, EXIF, XMP, ICC profile and others.

use super::jpeg_rows::next_marker;
use super::source::Source;
use crate::image::{Field, FieldValue, Image, Length, Metadata, Orientation, Profile, Resolution, Segment};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

/// Maximum number of bytes of all segments that are read.
const MAX_BYTES: usize = 64 << 20;

/// Field of a TIFF with the resources of Photoshop.
const PHOTOSHOP: u16 = 34377;

/// Beginnings of the segments of EXIF and XMP.
const EXIF: &[u8] = b"Exif\0\0";
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// Beginning of the segments of Photoshop's resources.
const RESOURCES: &[u8] = b"Photoshop 3.0\0";

/// Markers of the first segment of programs and of comments.
const APP: u8 = 0xe0;
const COMMENT: u8 = 0xfe;

/// Maximum number of bytes of a segment.
const MAX_SEGMENT: usize = 65533;

/// Returns the segments of an image with their markers. Blocks that are too long for a segment are left out.
pub(super) fn of_image(image: &Image) -> Vec<(u8, Vec<u8>)> {
    let metadata = image.metadata();
    let exif = super::exif::of_image(image).map(|block| (APP + 1, [EXIF, &block].concat()));
    let upright = metadata.orientation.unwrap_or(Orientation::Upright);
    let xmp = metadata.xmp.as_ref().map(|packet| (APP + 1, [XMP, &super::exif::updated_xmp(packet, upright)].concat()));
    let resources = metadata.fields.iter().find(|field| field.tag == PHOTOSHOP).and_then(|field| match &field.value {
        FieldValue::Bytes(bytes) => Some((APP + 13, [RESOURCES, bytes].concat())),
        FieldValue::Directory(_) => None,
    });
    let others = metadata.segments.iter().map(|segment| (segment.marker, segment.bytes.to_vec()));
    let all = exif.into_iter().chain(xmp).chain(resources).chain(others);
    all.filter(|(_, bytes)| bytes.len() <= MAX_SEGMENT).collect()
}

/// Returns whether a field of a TIFF is written as a segment: the resources of Photoshop, if they fit.
pub(super) fn holds(field: &Field) -> bool {
    let fits = |bytes: &[u8]| bytes.len() + RESOURCES.len() <= MAX_SEGMENT;
    field.tag == PHOTOSHOP && matches!(&field.value, FieldValue::Bytes(bytes) if fits(bytes))
}

/// Returns the names of segments that only a JPEG holds.
pub(super) fn names(image: &Image) -> Vec<String> {
    let name = |segment: &Segment| match segment.marker {
        COMMENT => "the comment of the JPEG".to_owned(),
        marker => format!("the segment APP{} of the JPEG", marker & 15),
    };
    let mut names: Vec<String> = image.metadata().segments.iter().map(name).collect();
    names.dedup();
    names
}

/// Returns the names of blocks that are too long for a segment.
pub(super) fn too_long(image: &Image) -> Vec<String> {
    let metadata = image.metadata();
    let is_long =
        |block: &Option<std::sync::Arc<[u8]>>| block.as_ref().is_some_and(|block| block.len() + XMP.len() > MAX_SEGMENT);
    let named = [(is_long(&metadata.exif), "EXIF"), (is_long(&metadata.xmp), "XMP")];
    named.iter().filter(|(is_long, _)| *is_long).map(|(_, name)| format!("{name} (it is too long)")).collect()
}

/// Reads the metadata of a file and returns to its start. Broken segments are left out.
pub(super) fn read(source: &mut Source) -> std::io::Result<Metadata> {
    let mut metadata = Metadata::default();
    let mut parts: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    let (mut unkept, mut left, mut count_of_parts) = (vec![], MAX_BYTES, 0);
    source.seek(SeekFrom::Start(2))?;
    while let Some((marker, bytes)) = segment(source) {
        left = left.saturating_sub(bytes.len());
        if left == 0 {
            unkept.push("further segments".to_owned());
            break;
        }
        match marker {
            0xe0 if bytes.starts_with(b"JFIF\0") => metadata.resolution = density(&bytes).or(metadata.resolution),
            0xe0 if bytes.starts_with(b"JFXX\0") => unkept.push("thumbnail".to_owned()),
            0xe1 if bytes.starts_with(EXIF) && metadata.exif.is_none() => metadata.exif = Some(bytes[EXIF.len()..].into()),
            0xe1 if bytes.starts_with(XMP) && metadata.xmp.is_none() => {
                metadata.xmp = Some(bytes[XMP.len()..].into());
            }
            0xe2 if bytes.starts_with(b"ICC_PROFILE\0") && bytes.len() > 14 => {
                count_of_parts = bytes[13];
                parts.insert(bytes[12], bytes[14..].to_vec());
            }
            0xed if bytes.starts_with(RESOURCES) && !metadata.fields.iter().any(|field| field.tag == PHOTOSHOP) => {
                metadata.fields.push(Field::bytes(PHOTOSHOP, 1, &bytes[14..]));
            }
            // The transform of Adobe belongs to the pixels.
            0xee if bytes.starts_with(b"Adobe") => {}
            // It has places of other images in the file.
            0xe2 if bytes.starts_with(b"MPF\0") => unkept.push("the list of further images (MPF)".to_owned()),
            COMMENT | APP..=0xef => metadata.segments.push(Segment { marker, bytes: bytes.into() }),
            _ => {}
        }
    }
    source.seek(SeekFrom::Start(0))?;
    if parts.keys().copied().eq(1..=count_of_parts) && !parts.is_empty() {
        metadata.color.profile = Some(Profile::new(parts.into_values().flatten().collect::<Vec<u8>>()));
    } else if !parts.is_empty() {
        metadata.losses.push("the ICC profile is not kept: parts of it are missing".to_owned());
    }
    if let Some((fields, _)) = metadata.exif.as_ref().and_then(|block| super::exif::fields(block)) {
        metadata.orientation = super::exif::orientation(&fields);
        metadata.resolution = metadata.resolution.or(super::exif::resolution(&fields));
    }
    if !unkept.is_empty() {
        unkept.sort();
        unkept.dedup();
        metadata.losses.push(format!(
            "segments that depend on other places of the file or are too long are not kept: {}",
            unkept.join(", ")
        ));
    }
    Ok(metadata)
}

/// Reads the next segment: its marker and its bytes. Returns `None` before the pixels, and where there is no segment.
fn segment(source: &mut Source) -> Option<(u8, Vec<u8>)> {
    let marker = next_marker(source)?;
    if matches!(marker, 0x01 | 0xd0..=0xda) {
        return None;
    }
    let mut len = [0; 2];
    source.read_exact(&mut len).ok()?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(len)).checked_sub(2)?];
    source.read_exact(&mut bytes).ok()?;
    Some((marker, bytes))
}

/// Returns the resolution of a JFIF segment. Units without a length with a ratio of 1 say nothing.
fn density(bytes: &[u8]) -> Option<Resolution> {
    let word = |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let unit = match bytes.get(7)? {
        1 => Length::Inch,
        2 => Length::Centimetre,
        _ => Length::Unknown,
    };
    let (x, y) = (word(8)?, word(10)?);
    let says = x > 0 && y > 0 && (unit != Length::Unknown || x != y);
    says.then_some(Resolution { x: (x, 1), y: (y, 1), unit })
}
