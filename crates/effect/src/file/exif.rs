//! EXIF blocks: directories in the structure of a TIFF, as PNG and JPEG files hold them.
//!
//! A block is copied as it is. Fields that describe the pixels are changed where they would be false: orientation,
//! size, colour space. A block whose pixels have another size or orientation loses its thumbnail.

use super::directory::{self, EXIF, GPS, Reader};
use crate::image::{ColorSpace, Field, FieldValue, Image, Length, Orientation, Resolution};

/// Field of the orientation.
pub(super) const ORIENTATION: u16 = 274;
/// Fields of the resolution along x and y, and of its unit.
pub(super) const RESOLUTION: [u16; 3] = [282, 283, 296];
/// Fields of the EXIF directory with the colour space, the width and the height.
const PIXELS: [u16; 3] = [0xa001, 0xa002, 0xa003];

/// Returns whether the field of a TIFF is one that an EXIF block has too: texts about the picture, and directories.
pub(super) fn is_common(tag: u16) -> bool {
    matches!(tag, 270 | 271 | 272 | 305 | 306 | 315 | 33432 | EXIF | GPS)
}

/// Facts about the pixels that a block describes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels {
    pub(super) orientation: Option<Orientation>,
    pub(super) width: u32,
    pub(super) height: u32,
    /// True if the samples are linear light.
    pub(super) is_linear: bool,
}

/// Returns the fields of a block, and whether it has a thumbnail; `None` if it is broken.
pub(super) fn fields(block: &[u8]) -> Option<(Vec<Field>, bool)> {
    let mut reader = Reader::new(block)?;
    let (entries, next) = reader.entries(reader.first)?;
    Some((reader.fields(&entries, &|_| true), next != 0))
}

/// Returns the orientation of fields.
pub(super) fn orientation(fields: &[Field]) -> Option<Orientation> {
    let number = fields.iter().find(|field| field.tag == ORIENTATION)?.integer()?;
    Orientation::of_number(u16::try_from(number).ok()?)
}

/// Returns the resolution of fields.
pub(super) fn resolution(fields: &[Field]) -> Option<Resolution> {
    let of = |tag: u16| fields.iter().find(|field| field.tag == tag);
    let fraction = |tag: u16| of(tag)?.to_fractions()?.first().copied();
    let unit = match of(RESOLUTION[2]).and_then(Field::integer).unwrap_or(2) {
        1 => Length::Unknown,
        3 => Length::Centimetre,
        _ => Length::Inch,
    };
    Some(Resolution { x: fraction(RESOLUTION[0])?, y: fraction(RESOLUTION[1])?, unit })
}

pub(super) fn resolution_fields(resolution: Resolution) -> Vec<Field> {
    let (scale, unit) = match resolution.unit {
        Length::Unknown => (1, 1),
        Length::Inch => (1, 2),
        Length::Centimetre => (1, 3),
        Length::Metre => (100, 3),
    };
    // A metre has 100 cm. A denominator that becomes too large is rounded.
    let fraction = |(count, of): (u32, u32)| match of.checked_mul(scale) {
        Some(of) => (count, of),
        None => (count / scale, of),
    };
    vec![
        Field::fractions(RESOLUTION[0], &[fraction(resolution.x)]),
        Field::fractions(RESOLUTION[1], &[fraction(resolution.y)]),
        Field::shorts(RESOLUTION[2], &[unit]),
    ]
}

/// Returns a block of fields.
fn block(fields: &[Field]) -> Vec<u8> {
    let mut bytes = b"II*\0\0\0\0\0".to_vec();
    let at = directory::write(&mut bytes, 0, fields, false);
    bytes[4..8].copy_from_slice(&(at as u32).to_le_bytes());
    bytes
}

/// Returns the EXIF block of an image, which agrees with its pixels.
pub(super) fn of_image(image: &Image) -> Option<Vec<u8>> {
    let metadata = image.metadata();
    let pixels = pixels(image);
    if let Some(block) = &metadata.exif {
        return Some(updated(block, pixels));
    }
    let mut fields = common(&metadata.fields);
    update_fields(&mut fields, pixels);
    let turned = metadata.orientation.filter(|orientation| *orientation != Orientation::Upright);
    (!fields.is_empty() || turned.is_some()).then(|| updated(&block(&fields), pixels))
}

/// Returns the facts about the pixels of an image that EXIF describes.
pub(super) fn pixels(image: &Image) -> Pixels {
    let is_linear = image.color() == ColorSpace::Linear;
    Pixels { orientation: image.metadata().orientation, width: image.width(), height: image.height(), is_linear }
}

/// Returns the fields that an EXIF block has too.
fn common(fields: &[Field]) -> Vec<Field> {
    fields.iter().filter(|field| is_common(field.tag) && !field.is_big()).cloned().collect()
}

/// Returns a block that agrees with the pixels: the block itself if nothing in it is false. A broken block is returned as
/// it is.
pub(super) fn updated(block: &[u8], pixels: Pixels) -> Vec<u8> {
    let mut bytes = block.to_vec();
    let Some(mut editor) = Editor::new(&mut bytes) else { return bytes };
    let mut is_changed = false;
    match (editor.short(editor.first, ORIENTATION), pixels.orientation) {
        (Some(old), Some(new)) if old != u32::from(new.number()) => {
            is_changed = true;
            editor.set(editor.first, ORIENTATION, u32::from(new.number()));
        }
        (None, Some(new)) if new != Orientation::Upright => editor.add_short(ORIENTATION, new.number()),
        _ => {}
    }
    if let Some(exif) = editor.long(editor.first, EXIF) {
        for (tag, side) in [(PIXELS[1], pixels.width), (PIXELS[2], pixels.height)] {
            if editor.short(exif, tag).is_some_and(|old| old != side) {
                is_changed = true;
                editor.set(exif, tag, side);
            }
        }
        if pixels.is_linear && editor.short(exif, PIXELS[0]) == Some(1) {
            editor.set(exif, PIXELS[0], 0xffff);
        }
    }
    if is_changed {
        editor.unlink_thumbnail();
    }
    bytes
}

/// Changes of a block in place.
struct Editor<'a> {
    bytes: &'a mut Vec<u8>,
    is_big_endian: bool,
    /// Place of the first directory.
    first: usize,
}

impl Editor<'_> {
    fn new(bytes: &mut Vec<u8>) -> Option<Editor<'_>> {
        let is_big_endian = match bytes.get(..4)? {
            b"II*\0" => false,
            b"MM\0*" => true,
            _ => return None,
        };
        let mut editor = Editor { bytes, is_big_endian, first: 0 };
        editor.first = editor.number(4, 4)? as usize;
        editor.number(editor.first, 2)?;
        Some(editor)
    }

    fn number(&self, at: usize, len: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(len)?)?;
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        Some(if self.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    fn put(&mut self, at: usize, len: usize, value: u32) {
        let mut bytes = value.to_be_bytes()[4 - len..].to_vec();
        if !self.is_big_endian {
            bytes.reverse();
        }
        if let Some(place) = self.bytes.get_mut(at..at + len) {
            place.copy_from_slice(&bytes);
        }
    }

    /// Returns the place of a field in a directory.
    fn entry(&self, directory: usize, tag: u16) -> Option<usize> {
        let count = self.number(directory, 2)? as usize;
        let places = (0..count).map(|index| directory + 2 + index * 12);
        places.take_while(|at| *at < self.bytes.len()).find(|at| self.number(*at, 2) == Some(u32::from(tag)))
    }

    /// Returns the value of a field with one integer of 16 or 32 bits.
    fn short(&self, directory: usize, tag: u16) -> Option<u32> {
        let at = self.entry(directory, tag)?;
        match (self.number(at + 2, 2)?, self.number(at + 4, 4)?) {
            (3, 1) => self.number(at + 8, 2),
            (4, 1) => self.number(at + 8, 4),
            _ => None,
        }
    }

    /// Returns the place that a field refers to.
    fn long(&self, directory: usize, tag: u16) -> Option<usize> {
        self.short(directory, tag).and_then(|at| usize::try_from(at).ok())
    }

    /// Changes the value of a field with one integer. It gets 32 bits if it needs them.
    fn set(&mut self, directory: usize, tag: u16, value: u32) {
        let Some(at) = self.entry(directory, tag) else { return };
        let is_short = self.number(at + 2, 2) == Some(3) && value <= 0xffff;
        self.put(at + 2, 2, if is_short { 3 } else { 4 });
        self.put(at + 8, 4, 0);
        self.put(at + 8, if is_short { 2 } else { 4 }, value);
    }

    /// Adds a field to the first directory, which is copied to the end of the block.
    fn add_short(&mut self, tag: u16, value: u16) {
        let Some(count) = self.number(self.first, 2) else { return };
        let end = self.first + 2 + count as usize * 12;
        let Some(entries) = self.bytes.get(self.first + 2..end).map(<[u8]>::to_vec) else { return };
        let next = self.number(end, 4).unwrap_or(0);
        let is_before = |entry: &&[u8; 12]| {
            let own = if self.is_big_endian {
                u16::from_be_bytes([entry[0], entry[1]])
            } else {
                u16::from_le_bytes([entry[0], entry[1]])
            };
            own < tag
        };
        let before = entries.as_chunks::<12>().0.iter().take_while(is_before).count();
        self.bytes.resize(self.bytes.len().next_multiple_of(2), 0);
        let start = self.bytes.len();
        let Ok(place) = u32::try_from(start) else { return };
        self.bytes.resize(start + 2 + (count as usize + 1) * 12 + 4, 0);
        let added = start + 2 + before * 12;
        self.bytes[start + 2..added].copy_from_slice(&entries[..before * 12]);
        self.bytes[added + 12..added + 12 + entries.len() - before * 12].copy_from_slice(&entries[before * 12..]);
        self.put(start, 2, count + 1);
        self.put(added, 2, u32::from(tag));
        self.put(added + 2, 2, 3);
        self.put(added + 4, 4, 1);
        self.put(added + 8, 2, u32::from(value));
        self.put(start + 2 + (count as usize + 1) * 12, 4, next);
        self.put(4, 4, place);
        self.first = start;
    }

    /// Ends the chain of directories behind the first one. The second one is the thumbnail.
    fn unlink_thumbnail(&mut self) {
        if let Some(count) = self.number(self.first, 2) {
            self.put(self.first + 2 + count as usize * 12, 4, 0);
        }
    }
}

/// Changes the size and the colour space in the fields of a TIFF where they are false.
pub(super) fn update_fields(fields: &mut [Field], pixels: Pixels) {
    for field in fields {
        let FieldValue::Directory(inner) = &mut field.value else { continue };
        for field in inner {
            let value = match field.tag {
                tag if tag == PIXELS[0] && pixels.is_linear && field.integer() == Some(1) => 0xffff,
                tag if tag == PIXELS[1] => pixels.width,
                tag if tag == PIXELS[2] => pixels.height,
                _ => continue,
            };
            if field.integer().is_some_and(|old| old != value) {
                *field = match u16::try_from(value) {
                    Ok(value) if field.kind == directory::SHORT => Field::shorts(field.tag, &[value]),
                    _ => Field::longs(field.tag, &[value]),
                };
            }
        }
    }
}

/// Returns an XMP packet whose orientation is that of the pixels.
pub(super) fn updated_xmp(packet: &[u8], orientation: Orientation) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    let name = b"tiff:Orientation";
    let places: Vec<usize> = packet.windows(name.len()).enumerate().filter(|(_, own)| own == name).map(|(at, _)| at).collect();
    for at in places {
        // `tiff:Orientation="6"` or `<tiff:Orientation>6</tiff:Orientation>`.
        let behind = at + name.len();
        let skipped = packet[behind..].iter().take_while(|byte| matches!(byte, b' ' | b'=' | b'"' | b'\'' | b'>')).count();
        if let Some(digit) = bytes.get_mut(behind + skipped).filter(|digit| skipped > 0 && (b'1'..=b'8').contains(digit)) {
            *digit = b'0' + orientation.number() as u8;
        }
    }
    bytes
}
