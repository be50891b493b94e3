//! Buffers passed as textures or surfaces: `texture(linear, wrap, normalised) f32[4,8]:iota`.

use crate::{Element, LaunchError, MISFIT};
use broadloom_device::Device;
use broadloom_device::texture::{AddressMode, Channel, Filter, Image, Layers, Level, Sampler, Surface, TexelFormat, Texture};
use broadloom_diag::{Diagnostic, Span};
use broadloom_ptx::TypeKind;

/// Texture or surface form of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSpec {
    /// True for a surface, false for a texture.
    pub is_surface: bool,
    /// Channels of a texel. With several channels, the last dimension of the buffer counts them.
    pub channels: u8,
    /// Relation of its images.
    pub layers: Layers,
    /// True for a linear texture, read by texel index.
    pub is_buffer: bool,
    /// Sampling parameters.
    pub sampler: Sampler,
}

/// Words allowed in parentheses.
pub(crate) const WORDS: [&str; 15] = [
    "x2",
    "x4",
    "linear",
    "point",
    "wrap",
    "mirror",
    "clamp",
    "border",
    "normalised",
    "unit",
    "srgb",
    "layered",
    "cube",
    "cubes",
    "buffer",
];

impl ImageSpec {
    pub(crate) fn new(is_surface: bool) -> ImageSpec {
        ImageSpec { is_surface, channels: 1, layers: Layers::None, is_buffer: false, sampler: Sampler::default() }
    }

    /// Applies a word; `false` if it is unknown.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let sampler = &mut self.sampler;
        match word {
            "x2" => self.channels = 2,
            "x4" => self.channels = 4,
            "linear" => sampler.filter = Filter::Linear,
            "point" => sampler.filter = Filter::Point,
            "wrap" => sampler.address = [AddressMode::Wrap; 3],
            "mirror" => sampler.address = [AddressMode::Mirror; 3],
            "clamp" => sampler.address = [AddressMode::Clamp; 3],
            "border" => (sampler.address, sampler.border) = ([AddressMode::Border; 3], [-1.0, -2.0, -3.0, -4.0]),
            "normalised" => sampler.normalised_coordinates = true,
            "unit" => sampler.normalised_values = true,
            "srgb" => sampler.srgb = true,
            "layered" => self.layers = Layers::Array,
            "cube" => self.layers = Layers::Cube,
            "cubes" => self.layers = Layers::CubeArray,
            "buffer" => self.is_buffer = true,
            _ => return false,
        }
        true
    }

    /// Creates the handle for a buffer at an address.
    pub(crate) fn create(
        &self,
        device: &Device,
        address: u64,
        element: Element,
        shape: &[u64],
        place: Span,
    ) -> Result<u64, LaunchError> {
        let wrong =
            |message: &str| LaunchError::from(Diagnostic::error(MISFIT, message.to_owned()).at(place, "this texture or surface"));
        let axes = match (self.channels, shape) {
            (1, axes) => axes,
            (channels, [axes @ .., last]) if *last == u64::from(channels) => axes,
            _ => return Err(wrong("the last dimension is not the number of channels")),
        };
        let mut size = [1; 3];
        if axes.is_empty() || axes.len() > 3 {
            return Err(wrong("an image has one to three dimensions"));
        }
        for (place, count) in size.iter_mut().zip(axes.iter().rev()) {
            *place = u32::try_from(*count).map_err(|_| wrong("an image that is too large"))?;
        }
        // Layers with one axis have no rows.
        if self.layers == Layers::Array && axes.len() == 2 {
            size = [size[0], 1, size[1]];
        }
        let channel = match element.ty().kind() {
            TypeKind::Float => Channel::Float,
            TypeKind::Signed => Channel::Signed,
            _ => Channel::Unsigned,
        };
        let format = TexelFormat { channel, bits: 8 * element.bytes() as u8, channels: self.channels };
        let level = Level { address, image: Image::packed(format, size) };
        if self.is_surface {
            return Ok(device.create_surface(&Surface { level, layers: self.layers })?);
        }
        let sampler = self.sampler;
        Ok(device.create_texture(&Texture { levels: vec![level], layers: self.layers, is_buffer: self.is_buffer, sampler })?)
    }
}
