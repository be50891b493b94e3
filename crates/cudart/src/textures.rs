//! Texture and surface objects: conversion from CUDA's descriptions to the device's.

use crate::handles::Handle;
use crate::memory::Array;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use broadloom_device::texture::{AddressMode, Channel, Filter, Format, Image, Layers, Level, Sampler, Surface, Texture};
use std::sync::Arc;

const LAYERED: u32 = 1;
const CUBE: u32 = 4;

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
fn format(channels: [i32; 5]) -> Outcome<(Format, bool)> {
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
    let format = Format { channel, bits: bits as u8, channels: used.len() as u8 };
    if format.is_valid() { Ok((format, normalised)) } else { Err(Status::INVALID_CHANNEL_DESCRIPTOR) }
}

fn count(number: usize) -> Outcome<u32> {
    u32::try_from(number).map_err(|_| Status::INVALID_VALUE)
}

impl Array {
    /// Returns the device's description of the texels.
    fn level(&self) -> Outcome<Level> {
        let (format, _) = format(self.channels)?;
        let (width, height, depth) = (count(self.extent[0])?, count(self.extent[1].max(1))?, count(self.extent[2].max(1))?);
        let row_pitch = self.pitch as u64;
        let image = Image { format, width, height, depth, row_pitch, slice_pitch: row_pitch * u64::from(height) };
        Ok(Level { address: self.address, image })
    }

    fn layers(&self) -> Layers {
        match (self.flags & CUBE != 0, self.flags & LAYERED != 0) {
            (false, false) => Layers::None,
            (false, true) => Layers::Array,
            (true, false) => Layers::Cube,
            (true, true) => Layers::CubeArray,
        }
    }
}

fn address_mode(mode: u32) -> Outcome<AddressMode> {
    Ok(match mode {
        0 => AddressMode::Wrap,
        1 => AddressMode::Clamp,
        2 => AddressMode::Mirror,
        3 => AddressMode::Border,
        _ => return Err(Status::INVALID_VALUE),
    })
}

fn filter(mode: u32) -> Outcome<Filter> {
    Ok(match mode {
        0 => Filter::Point,
        1 => Filter::Linear,
        _ => return Err(Status::INVALID_FILTER_SETTING),
    })
}

fn sampler(desc: &TextureDesc, format_normalised: bool, mipmap: bool) -> Outcome<Sampler> {
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
fn channels_of(words: &ResourceWords) -> [i32; 5] {
    [words[2] as i32, (words[2] >> 32) as i32, words[3] as i32, (words[3] >> 32) as i32, words[4] as i32]
}

impl Runtime {
    /// Builds the device's texture from a resource description and a texture description.
    pub(crate) fn texture(&self, words: &ResourceWords, desc: &TextureDesc) -> Outcome<Texture> {
        Ok(match words[0] as u32 {
            0 => {
                let array = self.arrays.get(words[1] as usize).map_err(|_| Status::INVALID_VALUE)?;
                let (_, normalised) = format(array.channels)?;
                let sampler = sampler(desc, normalised, false)?;
                Texture { levels: vec![array.level()?], layers: array.layers(), is_buffer: false, sampler }
            }
            1 => {
                let mipmap = self.mipmaps.get(words[1] as usize).map_err(|_| Status::INVALID_VALUE)?;
                let arrays: Vec<Arc<Array>> =
                    mipmap.levels.iter().map(|level| self.arrays.get(*level)).collect::<Outcome<_>>()?;
                let first = arrays.first().ok_or(Status::INVALID_VALUE)?;
                let (_, normalised) = format(first.channels)?;
                let levels = arrays.iter().map(|array| array.level()).collect::<Outcome<_>>()?;
                Texture { levels, layers: first.layers(), is_buffer: false, sampler: sampler(desc, normalised, true)? }
            }
            2 => {
                let (format, normalised) = format(channels_of(words))?;
                let width = count(words[5] as usize / format.texel_bytes() as usize)?;
                let level = Level { address: words[1], image: Image::packed(format, [width, 1, 1]) };
                Texture { levels: vec![level], layers: Layers::None, is_buffer: true, sampler: sampler(desc, normalised, false)? }
            }
            3 => {
                let (format, normalised) = format(channels_of(words))?;
                let (width, height) = (count(words[5] as usize)?, count(words[6] as usize)?);
                let image = Image { row_pitch: words[7], ..Image::packed(format, [width, height, 1]) };
                let image = Image { slice_pitch: image.row_pitch.saturating_mul(u64::from(height)), ..image };
                let level = Level { address: words[1], image };
                Texture {
                    levels: vec![level],
                    layers: Layers::None,
                    is_buffer: false,
                    sampler: sampler(desc, normalised, false)?,
                }
            }
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    /// Creates a texture object.
    pub(crate) fn create_texture(&self, words: ResourceWords, desc: TextureDesc) -> Outcome<u64> {
        let opened = self.device()?;
        let texture = self.texture(&words, &desc)?;
        let handle = self.judge(opened.backend().create_texture(&texture))?;
        self.objects.put(handle as usize, Arc::new(TextureObject { resource: words, texture: Some(desc) }));
        Ok(handle)
    }

    /// Returns the device's surface for an array.
    pub(crate) fn surface(&self, array: Handle) -> Outcome<Surface> {
        let array = self.arrays.get(array).map_err(|_| Status::INVALID_VALUE)?;
        Ok(Surface { level: array.level()?, layers: array.layers() })
    }

    /// Creates a surface object.
    pub(crate) fn create_surface(&self, words: ResourceWords) -> Outcome<u64> {
        let opened = self.device()?;
        if words[0] as u32 != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let surface = self.surface(words[1] as usize)?;
        let handle = self.judge(opened.backend().create_surface(&surface))?;
        self.objects.put(handle as usize, Arc::new(TextureObject { resource: words, texture: None }));
        Ok(handle)
    }

    /// Destroys a texture or surface object. Handle 0 is ignored.
    pub(crate) fn destroy_object(&self, handle: u64) -> Outcome {
        let opened = self.device()?;
        if handle == 0 {
            return Ok(());
        }
        self.objects.remove(handle as usize).map_err(|_| Status::INVALID_VALUE)?;
        self.judge(opened.backend().destroy_opaque(handle))
    }

    /// Creates a mipmapped array. Each level has half the size of the previous one.
    pub(crate) fn create_mipmap(&self, channels: [i32; 5], extent: [usize; 3], levels: u32, flags: u32) -> Outcome<Handle> {
        let longest = extent.iter().copied().max().unwrap_or(0);
        let most = usize::BITS - longest.leading_zeros();
        if levels == 0 || longest == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let mut made = vec![];
        for level in 0..levels.min(most) {
            let halved = |size: usize| if size == 0 { 0 } else { (size >> level).max(1) };
            // The number of layers is the same in every level.
            let depth = if flags & (LAYERED | CUBE) != 0 { extent[2] } else { halved(extent[2]) };
            match self.create_array(channels, [halved(extent[0]), halved(extent[1]), depth], flags) {
                Ok(array) => made.push(array),
                Err(status) => {
                    for array in made {
                        self.destroy_array(array)?;
                    }
                    return Err(status);
                }
            }
        }
        Ok(self.mipmaps.insert(Mipmap { levels: made }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_channels_of_one_width() {
        let float4 = format([32, 32, 32, 32, 2]).unwrap().0;
        assert_eq!((float4.channel, float4.bits, float4.channels), (Channel::Float, 32, 4));
        assert!(format([8, 8, 0, 0, 5]).unwrap().1);
        for bad in [[8, 16, 0, 0, 1], [0, 0, 0, 0, 1], [8, 8, 8, 0, 1], [64, 0, 0, 0, 2], [8, 0, 0, 0, 99]] {
            assert_eq!(format(bad).unwrap_err(), Status::INVALID_CHANNEL_DESCRIPTOR, "{bad:?}");
        }
        assert_eq!(size_of::<TextureDesc>(), 72);
    }
}
