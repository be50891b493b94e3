//! Texture and surface objects, and mipmapped arrays: creation and destruction.

use crate::handles::Handle;
use crate::objects::textures::{
    Array, CUBE, LAYERED, Mipmap, ResourceWords, TextureDesc, TextureObject, channels_of, extent, sampler, texel_format,
};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use broadloom_device::texture::{Image, Layers, Level, Surface, Texture};
use std::sync::Arc;

impl Runtime {
    /// Builds the device's texture from a resource description and a texture description.
    pub(crate) fn texture(&self, words: &ResourceWords, desc: &TextureDesc) -> Outcome<Texture> {
        Ok(match words[0] as u32 {
            0 => {
                let array = self.arrays.get(words[1] as usize).map_err(|_| Status::INVALID_VALUE)?;
                let (_, normalised) = texel_format(array.channels)?;
                let sampler = sampler(desc, normalised, false)?;
                Texture { levels: vec![array.level()?], layers: array.layers(), is_buffer: false, sampler }
            }
            1 => {
                let mipmap = self.mipmaps.get(words[1] as usize).map_err(|_| Status::INVALID_VALUE)?;
                let arrays: Vec<Arc<Array>> =
                    mipmap.levels.iter().map(|level| self.arrays.get(*level)).collect::<Outcome<_>>()?;
                let first = arrays.first().ok_or(Status::INVALID_VALUE)?;
                let (_, normalised) = texel_format(first.channels)?;
                let levels = arrays.iter().map(|array| array.level()).collect::<Outcome<_>>()?;
                Texture { levels, layers: first.layers(), is_buffer: false, sampler: sampler(desc, normalised, true)? }
            }
            2 => {
                let (format, normalised) = texel_format(channels_of(words))?;
                let width = extent(words[5] as usize / format.texel_bytes() as usize)?;
                let level = Level { address: words[1], image: Image::packed(format, [width, 1, 1]) };
                Texture { levels: vec![level], layers: Layers::None, is_buffer: true, sampler: sampler(desc, normalised, false)? }
            }
            3 => {
                let (format, normalised) = texel_format(channels_of(words))?;
                let (width, height) = (extent(words[5] as usize)?, extent(words[6] as usize)?);
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
