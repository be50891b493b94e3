//! Textures and surfaces: memory layout of texels, and sampling (manual: "Texture Instructions", "Texture,
//! Sampler and Surface Types").
//!
//! An [`Image`] describes texels, not their address, which the executor knows. Rows of texels are
//! [`Image::row_pitch`] bytes apart; slices of a volume, layers and faces are [`Image::slice_pitch`] bytes
//! apart.

mod fetch;
mod sample;
mod surface;

pub use fetch::{Fetch, FetchInputs, Geometry, LevelBy, MOST_WORDS, Result4};
pub use sample::{SampledTexture, Texels};
pub use surface::{Beyond, OutsideSurface, Query, SurfaceAccess, SurfaceOperation, element_type};

/// Contents of a channel of a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Signed integer.
    Signed,
    /// Unsigned integer.
    Unsigned,
    /// Float of 16 or 32 bits.
    Float,
}

/// Channels and bits of a texel in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TexelFormat {
    /// Contents of each channel.
    pub channel: Channel,
    /// Bits of a channel: 8, 16 or 32, for floats 16 or 32.
    pub bits: u8,
    /// Number of channels: 1, 2 or 4.
    pub channels: u8,
}

impl TexelFormat {
    /// Returns the size of one texel in memory.
    pub fn texel_bytes(self) -> u32 {
        u32::from(self.bits / 8) * u32::from(self.channels)
    }

    /// Returns whether the format exists.
    pub fn is_valid(self) -> bool {
        let bits = match self.channel {
            Channel::Signed | Channel::Unsigned => matches!(self.bits, 8 | 16 | 32),
            Channel::Float => matches!(self.bits, 16 | 32),
        };
        bits && matches!(self.channels, 1 | 2 | 4)
    }
}

/// Relation of the images of a texture or surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layers {
    /// One image of one, two or three axes.
    None,
    /// Layers, one for each unit of depth, of one or two axes each.
    Array,
    /// Six faces of a cube.
    Cube,
    /// Six faces for each of several cubes.
    CubeArray,
}

/// Texels of one level of a texture, or of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    /// Format of a texel.
    pub format: TexelFormat,
    /// Texels of a row.
    pub width: u32,
    /// Rows; 1 if there is one axis.
    pub height: u32,
    /// Slices, layers, or faces of all cubes together; 1 if there is one.
    pub depth: u32,
    /// Bytes between two rows.
    pub row_pitch: u64,
    /// Bytes between two slices, layers or faces.
    pub slice_pitch: u64,
}

impl Image {
    /// Returns an image whose rows follow each other without a gap.
    pub fn packed(format: TexelFormat, [width, height, depth]: [u32; 3]) -> Image {
        let row_pitch = u64::from(width) * u64::from(format.texel_bytes());
        Image { format, width, height, depth, row_pitch, slice_pitch: row_pitch.saturating_mul(u64::from(height)) }
    }

    /// Returns the bytes from the first texel to the end of the last one; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        let row = u64::from(self.width).checked_mul(u64::from(self.format.texel_bytes()))?;
        let rows = u64::from(self.height.checked_sub(1)?).checked_mul(self.row_pitch)?;
        let slices = u64::from(self.depth.checked_sub(1)?).checked_mul(self.slice_pitch)?;
        slices.checked_add(rows)?.checked_add(row)
    }

    /// Returns the offset of a texel in bytes from the first.
    #[inline(always)]
    pub fn offset(&self, x: u32, y: u32, z: u32) -> u64 {
        u64::from(z) * self.slice_pitch + u64::from(y) * self.row_pitch + u64::from(x) * u64::from(self.format.texel_bytes())
    }

    /// Checks the size, the format and the pitches.
    pub fn check(&self, layers: Layers) -> Result<(), InvalidImage> {
        if !self.format.is_valid() {
            return Err(InvalidImage::Format(self.format));
        }
        if self.width == 0 || self.height == 0 || self.depth == 0 {
            return Err(InvalidImage::Empty(*self));
        }
        let row = u64::from(self.width) * u64::from(self.format.texel_bytes());
        if self.height > 1 && self.row_pitch < row {
            return Err(InvalidImage::Rows { bytes: row, pitch: self.row_pitch });
        }
        let slice = u64::from(self.height - 1).saturating_mul(self.row_pitch).saturating_add(row);
        if self.depth > 1 && self.slice_pitch < slice {
            return Err(InvalidImage::Slices { bytes: slice, pitch: self.slice_pitch });
        }
        let (square, faces) = (self.width == self.height, self.depth.is_multiple_of(6));
        match layers {
            Layers::None | Layers::Array => Ok(()),
            Layers::Cube if square && self.depth == 6 => Ok(()),
            Layers::CubeArray if square && faces => Ok(()),
            Layers::Cube | Layers::CubeArray => Err(InvalidImage::Faces(*self)),
        }
    }
}

/// Image that no texture or surface can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidImage {
    /// Unknown format.
    #[error("there is no format of {} channels of {} bits", .0.channels, .0.bits)]
    Format(TexelFormat),
    /// Size of zero.
    #[error("{} x {} x {} texels are none", .0.width, .0.height, .0.depth)]
    Empty(Image),
    /// Overlapping rows.
    #[error("rows of {bytes} bytes do not fit into a pitch of {pitch}")]
    Rows {
        /// Length of a row.
        bytes: u64,
        /// Distance of two rows.
        pitch: u64,
    },
    /// Overlapping slices.
    #[error("slices of {bytes} bytes do not fit into a pitch of {pitch}")]
    Slices {
        /// Length of a slice.
        bytes: u64,
        /// Distance of two slices.
        pitch: u64,
    },
    /// Images that are not the faces of cubes.
    #[error("{} images of {} x {} texels are no faces of cubes", .0.depth, .0.width, .0.height)]
    Faces(Image),
}

/// Addressing beyond the edge of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// Repeats the image; like [`AddressMode::Clamp`] if coordinates are not normalised.
    Wrap,
    /// Repeats the image, mirrored every other time; like [`AddressMode::Clamp`] if coordinates are not
    /// normalised.
    Mirror,
    /// The texel at the edge.
    #[default]
    Clamp,
    /// The colour of the border.
    Border,
}

/// Interpolation between texels, or between levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Nearest.
    #[default]
    Point,
    /// Mean of the neighbours, weighted by distance, in steps of 1/256.
    Linear,
}

/// Sampling parameters of a texture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Addressing beyond the edges, by axis.
    pub address: [AddressMode; 3],
    /// Interpolation between texels.
    pub filter: Filter,
    /// True if coordinates go from 0 to 1 over the image; otherwise they count texels.
    pub normalised_coordinates: bool,
    /// True if integers of 8 and 16 bits are read as floats from 0 or -1 to 1.
    pub normalised_values: bool,
    /// True if 8-bit colours are sRGB and are made linear when they are read as floats.
    pub srgb: bool,
    /// Border colour.
    pub border: [f32; 4],
    /// Interpolation between levels.
    pub level_filter: Filter,
    /// Bias added to the requested level.
    pub level_bias: f32,
    /// Minimum level.
    pub least_level: f32,
    /// Maximum level.
    pub most_level: f32,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler {
            address: [AddressMode::Clamp; 3],
            filter: Filter::Point,
            normalised_coordinates: false,
            normalised_values: false,
            srgb: false,
            border: [0.0; 4],
            level_filter: Filter::Point,
            level_bias: 0.0,
            least_level: 0.0,
            most_level: f32::INFINITY,
        }
    }
}

/// Returns the numbers by which `txq` and `suq` name the type and the order of channels (manual: "Channel
/// Data Type and Channel Order Fields").
pub fn channel_codes(format: TexelFormat, normalised: bool) -> (u32, u32) {
    let kind = match (format.channel, format.bits, normalised) {
        (Channel::Signed, 8, true) => 0x10d0,
        (Channel::Signed, 16, true) => 0x10d1,
        (Channel::Unsigned, 8, true) => 0x10d2,
        (Channel::Unsigned, 16, true) => 0x10d3,
        (Channel::Signed, 8, false) => 0x10d7,
        (Channel::Signed, 16, false) => 0x10d8,
        (Channel::Signed, _, _) => 0x10d9,
        (Channel::Unsigned, 8, false) => 0x10da,
        (Channel::Unsigned, 16, false) => 0x10db,
        (Channel::Unsigned, _, _) => 0x10dc,
        (Channel::Float, 16, _) => 0x10dd,
        (Channel::Float, _, _) => 0x10de,
    };
    let order = match format.channels {
        1 => 0x10b0,
        2 => 0x10b2,
        _ => 0x10b5,
    };
    (kind, order)
}
