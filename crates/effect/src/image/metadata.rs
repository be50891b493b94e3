//! Metadata: what a file says about an image beside its pixels.
//!
//! Effects pass metadata on. A writer stores what its format can hold, and `file::losses` names the rest.

use super::{Alpha, Orientation, Rect};
use exr::image::Layer;
use exr::meta::header::{ImageAttributes, LayerAttributes};
use std::sync::Arc;

/// Description of an image in a file, without its pixels.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// Colours of the samples.
    pub color: ColorDescription,
    /// Relation of colours to alpha.
    pub alpha: Alpha,
    /// Orientation; `None` if the file has none, which means upright.
    pub orientation: Option<Orientation>,
    /// Pixels per unit of length.
    pub resolution: Option<Resolution>,
    /// EXIF block: directories in the structure of a TIFF, from its byte order on.
    pub exif: Option<Arc<[u8]>>,
    /// XMP packet.
    pub xmp: Option<Arc<[u8]>>,
    /// Content of the file that was not read, each item as a sentence without its end.
    pub losses: Vec<String>,
    /// Chunks of a PNG that are copied to a PNG: texts, and chunks that do not depend on pixels.
    pub(crate) chunks: Vec<Chunk>,
    /// Fields of a TIFF that do not describe the layout of its pixels.
    pub(crate) fields: Vec<Field>,
    /// Pages of a TIFF behind the first.
    pub(crate) pages: Vec<Page>,
    /// Segments of a JPEG that are copied to a JPEG: comments, and those of programs.
    pub(crate) segments: Vec<Segment>,
    /// Header of a DPX with the user data behind it.
    pub(crate) dpx: Option<Arc<[u8]>>,
    /// Attributes of an EXR.
    pub(crate) attributes: Option<Arc<Attributes>>,
    /// Rectangle of the image when it was read.
    pub(crate) read_bounds: Option<Rect>,
}

/// Description of the colours of an image's samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColorDescription {
    /// ICC profile.
    pub profile: Option<Profile>,
    /// Code points of ITU-T H.273: primaries, transfer function, matrix, range.
    pub cicp: Option<[u8; 4]>,
    /// Rendering intent of an image that says that it is sRGB.
    pub srgb: Option<u8>,
    /// Exponent that light was encoded with, times 100,000.
    pub gamma: Option<u32>,
    /// Chromaticities x, y of white, red, green and blue.
    pub chromaticities: Option<[f64; 8]>,
    /// Transfer characteristic of a DPX (SMPTE 268M).
    pub transfer: Option<u8>,
}

impl ColorDescription {
    /// Returns the description of samples that are light to the power of 1/`gamma`.
    pub(crate) fn of_gamma(gamma: f64) -> ColorDescription {
        ColorDescription { gamma: Some((1e5 / gamma).round() as u32), ..ColorDescription::default() }
    }
}

/// ICC profile.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The profile.
    pub bytes: Arc<[u8]>,
    /// Content of the chunk of a PNG: name of the profile and compressed bytes.
    pub(crate) chunk: Option<Arc<[u8]>>,
}

impl PartialEq for Profile {
    fn eq(&self, other: &Profile) -> bool {
        self.bytes == other.bytes
    }
}

impl Profile {
    /// Creates a profile from its bytes.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Profile {
        Profile { bytes: bytes.into(), chunk: None }
    }

    /// Returns the number of components of a colour, if the profile is for grey, RGB or CMYK.
    pub fn components(&self) -> Option<usize> {
        match self.bytes.get(16..20)? {
            b"GRAY" => Some(1),
            b"RGB " => Some(3),
            b"CMYK" => Some(4),
            _ => None,
        }
    }
}

/// Pixels per unit of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Pixels along x, as a fraction.
    pub x: (u32, u32),
    /// Pixels along y, as a fraction.
    pub y: (u32, u32),
    /// Unit of length.
    pub unit: Length,
}

impl Resolution {
    /// Returns the resolution along x and y in another unit; `None` if the unit is not known or a fraction has no value.
    pub fn per(self, unit: Length) -> Option<(f64, f64)> {
        let scale = unit.metres()? / self.unit.metres()?;
        let value = |(count, of): (u32, u32)| (of > 0).then(|| f64::from(count) * scale / f64::from(of));
        value(self.x).zip(value(self.y)).filter(|(x, y)| *x > 0.0 && *y > 0.0)
    }
}

/// Unit of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Only the ratio of both resolutions has a meaning.
    Unknown,
    /// 25.4 mm.
    Inch,
    /// 10 mm.
    Centimetre,
    /// 1000 mm.
    Metre,
}

impl Length {
    fn metres(self) -> Option<f64> {
        match self {
            Length::Unknown => None,
            Length::Inch => Some(0.0254),
            Length::Centimetre => Some(0.01),
            Length::Metre => Some(1.0),
        }
    }
}

/// Chunk of a PNG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) kind: [u8; 4],
    pub(crate) bytes: Arc<[u8]>,
}

/// Page of a TIFF, which is copied as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Fields without the places of its blocks.
    pub(crate) fields: Vec<Field>,
    /// Strips or tiles as they are in the file.
    pub(crate) blocks: Vec<Arc<[u8]>>,
    /// Field of the places of its blocks.
    pub(crate) places: u16,
}

/// Segment of a JPEG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) marker: u8,
    pub(crate) bytes: Arc<[u8]>,
}

/// Field of a directory of a TIFF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) tag: u16,
    pub(crate) kind: u16,
    pub(crate) value: FieldValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue {
    /// Values one behind the other, each in little-endian order.
    Bytes(Arc<[u8]>),
    /// Directory that the field refers to.
    Directory(Vec<Field>),
}

/// Attributes of an EXR and its parts.
#[derive(Clone, Debug)]
pub(crate) struct Attributes {
    /// Attributes that all parts share.
    pub(crate) shared: ImageAttributes,
    /// Parts in the order of the file.
    pub(crate) parts: Vec<Part>,
}

/// Part of an EXR.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) own: LayerAttributes,
    pub(crate) bounds: Rect,
    /// Names of the planes of the part, with their channels.
    pub(crate) channels: Vec<PartChannel>,
}

#[derive(Clone, Debug)]
pub(crate) struct PartChannel {
    pub(crate) plane: String,
    pub(crate) channel: String,
    /// Flag of the channel for lossy compression.
    pub(crate) is_linear: bool,
}

impl Part {
    /// Creates the description of a part without channels.
    pub(crate) fn of<C>(layer: &Layer<C>, bounds: Rect) -> Part {
        Part { own: layer.attributes.clone(), bounds, channels: vec![] }
    }
}
