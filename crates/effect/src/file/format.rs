//! Formats of image files, by name and by content.

use crate::image::{Image, ImageError, SampleType};
use std::path::Path;

/// A format of image files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG, baseline or progressive.
    Jpeg,
    /// Tagged Image File Format.
    Tiff,
    /// OpenEXR.
    Exr,
    /// WebP, written without loss.
    WebP,
    /// Radiance HDR.
    Hdr,
    /// Digital Picture Exchange.
    Dpx,
    /// Portable float map.
    Pfm,
}

impl Format {
    /// Returns the format for the extension of a name.
    pub fn of_name(path: &Path) -> Option<Format> {
        Format::of_extension(path.extension()?.to_str()?)
    }

    /// Returns the format for an extension.
    pub fn of_extension(extension: &str) -> Option<Format> {
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Format::Png),
            "jpg" | "jpeg" => Some(Format::Jpeg),
            "tif" | "tiff" => Some(Format::Tiff),
            "exr" => Some(Format::Exr),
            "pfm" => Some(Format::Pfm),
            "webp" => Some(Format::WebP),
            "hdr" | "pic" => Some(Format::Hdr),
            "dpx" => Some(Format::Dpx),
            _ => None,
        }
    }

    /// Returns the image with the alpha of the format.
    pub(super) fn with_alpha(self, image: &Image) -> Result<Image, ImageError> {
        match self {
            Format::Png | Format::WebP | Format::Dpx => image.straight(),
            Format::Exr => image.associated(),
            Format::Jpeg | Format::Tiff | Format::Hdr | Format::Pfm => Ok(image.clone()),
        }
    }

    /// Returns the format of a file with these first bytes.
    pub(super) fn of_content(bytes: &[u8]) -> Option<Format> {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        if starts(b"\x89PNG\r\n\x1a\n") {
            Some(Format::Png)
        } else if starts(b"\xff\xd8\xff") {
            Some(Format::Jpeg)
        } else if [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"].iter().any(|magic| starts(*magic)) {
            Some(Format::Tiff)
        } else if starts(b"\x76\x2f\x31\x01") {
            Some(Format::Exr)
        } else if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Format::WebP)
        } else if starts(b"#?") {
            Some(Format::Hdr)
        } else if starts(b"SDPX") || starts(b"XPDS") {
            Some(Format::Dpx)
        } else if starts(b"PF") || starts(b"Pf") {
            Some(Format::Pfm)
        } else {
            None
        }
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "PNG",
            Format::Jpeg => "JPEG",
            Format::Tiff => "TIFF",
            Format::Exr => "EXR",
            Format::WebP => "WebP",
            Format::Hdr => "HDR",
            Format::Dpx => "DPX",
            Format::Pfm => "PFM",
        }
    }

    /// Returns the sample types that can be written.
    pub fn sample_types(self) -> &'static [SampleType] {
        match self {
            Format::Png | Format::Dpx => &[SampleType::U8, SampleType::U16],
            Format::Jpeg | Format::WebP => &[SampleType::U8],
            Format::Tiff => &[SampleType::U8, SampleType::U16, SampleType::F16, SampleType::F32],
            Format::Exr => &[SampleType::F16, SampleType::F32],
            Format::Hdr | Format::Pfm => &[SampleType::F32],
        }
    }
}
