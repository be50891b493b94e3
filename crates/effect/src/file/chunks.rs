//! Chunks of a PNG beside its pixels.
//!
//! A chunk is kept as it is if the format says that it does not depend on pixels, or if it describes colours. The others
//! would be false behind an effect, and are named.

use super::source::Source;
use crate::image::{Chunk, ColorDescription, Image, Length, Metadata, Orientation, Profile, Resolution};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// Maximum number of bytes of all kept chunks.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of kept chunks.
const MAX_CHUNKS: usize = 10_000;
/// Maximum size of a profile that is decompressed.
const MAX_PROFILE: usize = 16 << 20;

/// Keyword of the text that is an XMP packet.
const XMP: &[u8] = b"XML:com.adobe.xmp\0";

/// Computes the checksum of a chunk.
fn checksum(parts: [&[u8]; 2]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let (mut crc, mut bit) = (index as u32, 0);
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
                bit += 1;
            }
            table[index] = crc;
            index += 1;
        }
        table
    };
    !parts.iter().flat_map(|part| part.iter()).fold(!0, |crc, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

/// Reads the metadata of a file and returns to its start. Broken chunks are left out.
pub(super) fn read(source: &mut Source) -> std::io::Result<Metadata> {
    let mut metadata = Metadata::default();
    let (mut unkept, mut frames, mut left) = (vec![], 0, MAX_BYTES);
    let mut place = 8;
    loop {
        source.seek(SeekFrom::Start(place))?;
        let mut head = [0; 8];
        if source.read_exact(&mut head).is_err() {
            break;
        }
        let len = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let kind = [head[4], head[5], head[6], head[7]];
        place += 12 + len;
        if &kind == b"IEND" || place > source.len() {
            break;
        }
        let is_needed = kind[0] & 0x20 == 0 || &kind == b"tRNS";
        if is_needed || matches!(&kind, b"fcTL" | b"fdAT") {
            continue;
        }
        let name = || String::from_utf8_lossy(&kind).into_owned();
        if len > left || metadata.chunks.len() >= MAX_CHUNKS {
            unkept.push(name());
            continue;
        }
        left -= len;
        let mut bytes = vec![0; len as usize + 4];
        source.read_exact(&mut bytes)?;
        let crc = bytes.split_off(len as usize);
        if crc != checksum([&kind, &bytes]).to_be_bytes() {
            unkept.push(format!("{} (its checksum is wrong)", name()));
        } else if &kind == b"acTL" {
            frames = bytes.get(..4).map_or(0, |count| u32::from_be_bytes([count[0], count[1], count[2], count[3]]));
        } else if !keep(&mut metadata, kind, &bytes) {
            unkept.push(name());
        }
    }
    source.seek(SeekFrom::Start(0))?;
    if !unkept.is_empty() {
        unkept.sort();
        unkept.dedup();
        unkept.truncate(20);
        metadata.losses.push(format!("chunks that depend on the pixels or are broken are not kept: {}", unkept.join(", ")));
    }
    if frames > 1 {
        metadata.losses.push(format!("only the first of its {frames} frames is read"));
    }
    Ok(metadata)
}

/// Adds a chunk to the metadata. Returns whether it is kept.
fn keep(metadata: &mut Metadata, kind: [u8; 4], bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(at..at + 4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    let color = &mut metadata.color;
    match &kind {
        b"iCCP" => {
            if color.profile.is_none() {
                color.profile = decompressed(bytes).map(|profile| Profile { chunk: Some(bytes.into()), ..Profile::new(profile) });
            }
            color.profile.is_some()
        }
        b"sRGB" if bytes.len() == 1 => color.srgb.replace(bytes[0]).is_none(),
        b"gAMA" if bytes.len() == 4 => {
            color.gamma = word(0);
            true
        }
        b"cHRM" if bytes.len() == 32 => {
            let values: Vec<f64> = (0..8).filter_map(|index| Some(f64::from(word(index * 4)?) / 1e5)).collect();
            color.chromaticities = values.try_into().ok();
            true
        }
        b"cICP" if bytes.len() == 4 => {
            color.cicp = bytes.try_into().ok();
            true
        }
        b"eXIf" => {
            // Some programs write the prefix that JPEG files have.
            let block = bytes.strip_prefix(b"Exif\0\0").unwrap_or(bytes);
            metadata.orientation = super::exif::fields(block).and_then(|(fields, _)| super::exif::orientation(&fields));
            metadata.exif = Some(block.into());
            true
        }
        b"pHYs" if bytes.len() == 9 => {
            let unit = if bytes[8] == 1 { Length::Metre } else { Length::Unknown };
            metadata.resolution = word(0).zip(word(4)).map(|(x, y)| Resolution { x: (x, 1), y: (y, 1), unit });
            true
        }
        b"iTXt" if bytes.starts_with(XMP) && metadata.xmp.is_none() => {
            match bytes[XMP.len()..].strip_prefix(b"\0\0\0\0") {
                Some(packet) => metadata.xmp = Some(packet.into()),
                None => metadata.chunks.push(Chunk { kind, bytes: bytes.into() }),
            }
            true
        }
        b"sRGB" | b"gAMA" | b"cHRM" | b"cICP" | b"pHYs" => false,
        // The fourth letter says whether a chunk may be copied to an image of other pixels. The others are about colours.
        _ if kind[3] & 0x20 != 0 || matches!(&kind, b"mDCV" | b"cLLI") => {
            metadata.chunks.push(Chunk { kind, bytes: bytes.into() });
            true
        }
        _ => false,
    }
}

/// Returns the profile of the content of an iCCP chunk; `None` if it is broken or too large.
///
/// The chunk is decompressed as part of an image of one pixel, which bounds its memory.
fn decompressed(chunk: &[u8]) -> Option<Vec<u8>> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, bytes) in [(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0][..]), (b"iCCP", chunk), (b"IDAT", &[])] {
        file.extend((bytes.len() as u32).to_be_bytes());
        file.extend(kind);
        file.extend(bytes);
        file.extend(checksum([kind, bytes]).to_be_bytes());
    }
    let limits = png::Limits { bytes: MAX_PROFILE + chunk.len() };
    let reader = png::Decoder::new_with_limits(std::io::Cursor::new(file), limits).read_info().ok()?;
    reader.info().icc_profile.as_ref().map(|profile| profile.to_vec()).filter(|profile| !profile.is_empty())
}

/// Returns whether the profile of an image is for its colours, which are RGB or grey.
pub(super) fn fits(profile: &Profile, is_rgb: bool) -> bool {
    profile.components().is_none_or(|count| count == if is_rgb { 3 } else { 1 })
}

/// Returns the chunks of an image in the order in which they are written. A profile without a chunk is left out.
pub(super) fn of_image(image: &Image, is_rgb: bool, is_linear: bool) -> Vec<Chunk> {
    let metadata = image.metadata();
    let ColorDescription { profile, cicp, srgb, gamma, chromaticities, transfer: _ } = &metadata.color;
    let profile = profile.as_ref().filter(|profile| fits(profile, is_rgb));
    let mut chunks = vec![];
    let mut add = |kind: &[u8; 4], bytes: Vec<u8>| chunks.push(Chunk { kind: *kind, bytes: bytes.into() });
    if let Some(cicp) = cicp {
        add(b"cICP", cicp.to_vec());
    }
    if let Some(chunk) = profile.and_then(|profile| profile.chunk.as_ref()) {
        add(b"iCCP", chunk.to_vec());
    }
    if let Some(intent) = srgb {
        add(b"sRGB", vec![*intent]);
    }
    // A PNG that says nothing is taken for sRGB.
    let implied = (is_linear && profile.is_none() && cicp.is_none() && srgb.is_none()).then_some(100_000);
    if let Some(gamma) = gamma.or(implied) {
        add(b"gAMA", gamma.to_be_bytes().to_vec());
    }
    if let Some(values) = chromaticities {
        add(b"cHRM", values.iter().flat_map(|value| ((value * 1e5).round() as u32).to_be_bytes()).collect());
    }
    if let Some(resolution) = metadata.resolution {
        let (x, y, unit) = match (resolution.unit, resolution.per(Length::Metre)) {
            (Length::Metre, _) if resolution.x.1 == 1 && resolution.y.1 == 1 => (resolution.x.0, resolution.y.0, 1),
            (_, Some((x, y))) => (x.round() as u32, y.round() as u32, 1),
            // The ratio of both.
            _ => {
                let scale = |(count, _): (u32, u32), (_, of): (u32, u32)| count.saturating_mul(of);
                (scale(resolution.x, resolution.y), scale(resolution.y, resolution.x), 0)
            }
        };
        add(b"pHYs", [&x.to_be_bytes()[..], &y.to_be_bytes(), &[unit]].concat());
    }
    let pixels = super::exif::pixels(image);
    if let Some(block) = super::exif::of_image(image) {
        add(b"eXIf", block);
    }
    if let Some(packet) = &metadata.xmp {
        let packet = super::exif::updated_xmp(packet, pixels.orientation.unwrap_or(Orientation::Upright));
        add(b"iTXt", [XMP, b"\0\0\0\0", &packet].concat());
    }
    chunks.extend(metadata.chunks.iter().cloned());
    chunks
}

/// Returns the keywords of texts, and the names of other chunks.
pub(super) fn names(chunks: &[Chunk]) -> Vec<String> {
    let name = |chunk: &Chunk| {
        let kind = String::from_utf8_lossy(&chunk.kind).into_owned();
        if !matches!(&chunk.kind, b"tEXt" | b"zTXt" | b"iTXt") {
            return kind;
        }
        let keyword: Vec<u8> = chunk.bytes.iter().copied().take_while(|byte| *byte != 0).take(79).collect();
        let keyword: String = keyword.into_iter().map(char::from).filter(|letter| !letter.is_control()).collect();
        format!("{kind} {keyword}")
    };
    chunks.iter().map(name).collect()
}

/// Returns the profile that the encoder compresses: one that fits and has no chunk yet.
pub(super) fn new_profile(image: &Image, is_rgb: bool) -> Option<Arc<[u8]>> {
    let profile = image.metadata().color.profile.as_ref()?;
    (profile.chunk.is_none() && fits(profile, is_rgb)).then(|| profile.bytes.clone())
}
