//! Arrays, texture and surface objects, and the conversion of CUDA's descriptions to the device's.

use crate::handles::Handle;
use crate::status::{Outcome, Status};
use broadloom_device::texture::{AddressMode, Channel, Filter, Image, Layers, Level, Sampler, TexelFormat};

/// Array for textures and surfaces: pitched rows and slices in linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// Bits of each channel and the kind of the channels, as given by the program.
    pub(crate) channels: [i32; 5],
    /// Width, height and depth in elements; 0 for a missing axis.
    pub(crate) extent: [usize; 3],
    /// Flags given by the program.
    pub(crate) flags: u32,
    /// Start address.
    pub(crate) address: u64,
    /// Row pitch in bytes.
    pub(crate) pitch: usize,
}

impl Array {
    /// Returns the size of an element in bytes.
    pub(crate) fn element_bytes(&self) -> usize {
        self.channels[..4].iter().map(|bits| (*bits).max(0) as usize).sum::<usize>() / 8
    }
}

pub(crate) const LAYERED: u32 = 1;
pub(crate) const CUBE: u32 = 4;

/// `cudaResourceDesc`: a kind and its data.
pub(crate) type ResourceWords = [u64; 8];

/// `cudaTextureDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextureDesc {
    pub(crate) address: [u32; 3],
    pub(crate) filter: u32,
    pub(crate) read: u32,
    pub(crate) srgb: i32,
    pub(crate) border: [f32; 4],
    pub(crate) normalised: i32,
    pub(crate) anisotropy: u32,
    pub(crate) level_filter: u32,
    pub(crate) level_bias: f32,
    pub(crate) least_level: f32,
    pub(crate) most_level: f32,
    pub(crate) trilinear: i32,
    pub(crate) seamless: i32,
}

/// Texture or surface object with the descriptions that it was created from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextureObject {
    /// Resource description.
    pub(crate) resource: ResourceWords,
    /// Texture description; `None` for a surface.
    pub(crate) texture: Option<TextureDesc>,
}

/// Mipmapped array: one array per level, the largest first.
#[derive(Debug)]
pub(crate) struct Mipmap {
    /// Handles of the levels.
    pub(crate) levels: Vec<Handle>,
}

/// Returns the texel format for the bits and kind of the channels.
pub(crate) fn texel_format(channels: [i32; 5]) -> Outcome<(TexelFormat, bool)> {
    let used: Vec<i32> = channels[..4].iter().copied().take_while(|bits| *bits > 0).collect();
    let bits = *used.first().ok_or(Status::INVALID_CHANNEL_DESCRIPTOR)?;
    if used.iter().any(|other| *other != bits) {
        return Err(Status::INVALID_CHANNEL_DESCRIPTOR);
    }
    let (channel, normalised) = match channels[4] {
        0 => (Channel::Signed, false),
        1 => (Channel::Unsigned, false),
        2 => (Channel::Float, false),
        5..=10 => (Channel::Unsigned, true),
        11..=16 => (Channel::Signed, true),
        _ => return Err(Status::INVALID_CHANNEL_DESCRIPTOR),
    };
    let format = TexelFormat { channel, bits: bits as u8, channels: used.len() as u8 };
    if format.is_valid() { Ok((format, normalised)) } else { Err(Status::INVALID_CHANNEL_DESCRIPTOR) }
}

/// Converts a number of elements along an axis.
pub(crate) fn extent(number: usize) -> Outcome<u32> {
    u32::try_from(number).map_err(|_| Status::INVALID_VALUE)
}

impl Array {
    /// Returns the device's description of the texels.
    pub(crate) fn level(&self) -> Outcome<Level> {
        let (format, _) = texel_format(self.channels)?;
        let (width, height, depth) = (extent(self.extent[0])?, extent(self.extent[1].max(1))?, extent(self.extent[2].max(1))?);
        let row_pitch = self.pitch as u64;
        let image = Image { format, width, height, depth, row_pitch, slice_pitch: row_pitch * u64::from(height) };
        Ok(Level { address: self.address, image })
    }

    pub(crate) fn layers(&self) -> Layers {
        match (self.flags & CUBE != 0, self.flags & LAYERED != 0) {
            (false, false) => Layers::None,
            (false, true) => Layers::Array,
            (true, false) => Layers::Cube,
            (true, true) => Layers::CubeArray,
        }
    }
}

pub(crate) fn address_mode(mode: u32) -> Outcome<AddressMode> {
    Ok(match mode {
        0 => AddressMode::Wrap,
        1 => AddressMode::Clamp,
        2 => AddressMode::Mirror,
        3 => AddressMode::Border,
        _ => return Err(Status::INVALID_VALUE),
    })
}

pub(crate) fn filter(mode: u32) -> Outcome<Filter> {
    Ok(match mode {
        0 => Filter::Point,
        1 => Filter::Linear,
        _ => return Err(Status::INVALID_FILTER_SETTING),
    })
}

pub(crate) fn sampler(desc: &TextureDesc, format_normalised: bool, mipmap: bool) -> Outcome<Sampler> {
    let mut address = [AddressMode::Clamp; 3];
    for (mode, given) in address.iter_mut().zip(desc.address) {
        *mode = address_mode(given)?;
    }
    Ok(Sampler {
        address,
        filter: filter(desc.filter)?,
        normalised_coordinates: desc.normalised != 0,
        normalised_values: desc.read == 1 || format_normalised,
        srgb: desc.srgb != 0,
        border: desc.border,
        level_filter: filter(desc.level_filter)?,
        level_bias: desc.level_bias,
        least_level: desc.least_level,
        most_level: if mipmap { desc.most_level } else { 0.0 },
    })
}

/// Returns the channels of a resource description: bits of four channels and their kind, from the third word
/// on.
pub(crate) fn channels_of(words: &ResourceWords) -> [i32; 5] {
    [words[2] as i32, (words[2] >> 32) as i32, words[3] as i32, (words[3] >> 32) as i32, words[4] as i32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_channels_of_one_width() {
        let float4 = texel_format([32, 32, 32, 32, 2]).unwrap().0;
        assert_eq!((float4.channel, float4.bits, float4.channels), (Channel::Float, 32, 4));
        assert!(texel_format([8, 8, 0, 0, 5]).unwrap().1);
        for bad in [[8, 16, 0, 0, 1], [0, 0, 0, 0, 1], [8, 8, 8, 0, 1], [64, 0, 0, 0, 2], [8, 0, 0, 0, 99]] {
            assert_eq!(texel_format(bad).unwrap_err(), Status::INVALID_CHANNEL_DESCRIPTOR, "{bad:?}");
        }
        assert_eq!(size_of::<TextureDesc>(), 72);
    }
}
