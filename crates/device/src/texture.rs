//! Textures and surfaces: descriptions of memory that kernels access through handles.
//!
//! A texture consists of device memory, owned by someone else, and sampling parameters. Its handle is a
//! number that kernels get as an argument (`cudaTextureObject_t`). A variable of a module (`.texref`,
//! `.surfref`) is a handle too, whose texture the host binds. Host executors keep both in [`Opaques`].
//!
//! Invariants: the memory of a texture lay inside one allocation when its handle was created. A live handle
//! is never reused.

use crate::{Device, Error, Result};
pub use broadloom_eval::texture::{AddressMode, Channel, Filter, Image, Layers, Sampler, TexelFormat};
use broadloom_ptx::{Space, Type, Variable};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Texels in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// Address of the first texel.
    pub address: u64,
    /// Layout of the texels.
    pub image: Image,
}

/// Description of a texture.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// Mipmap levels, largest first; one level without mipmaps.
    pub levels: Vec<Level>,
    /// Relation of its images.
    pub layers: Layers,
    /// True for a linear buffer of texels, read by index. Texels out of range are zero.
    pub is_buffer: bool,
    /// Sampling parameters.
    pub sampler: Sampler,
}

impl Texture {
    /// Creates a texture of one image with one to three axes.
    pub fn new(address: u64, image: Image, sampler: Sampler) -> Texture {
        Texture { levels: vec![Level { address, image }], layers: Layers::None, is_buffer: false, sampler }
    }

    fn check(&self) -> Result<()> {
        if self.levels.is_empty() {
            return Err(Error::BadTexture { reason: "it has no level".into() });
        }
        let format = self.levels[0].image.format;
        for level in &self.levels {
            level.image.check(self.layers).map_err(|error| Error::BadTexture { reason: error.to_string() })?;
            if level.image.format != format {
                return Err(Error::BadTexture { reason: "its levels have several formats".into() });
            }
        }
        Ok(())
    }
}

/// Description of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Texels.
    pub level: Level,
    /// Relation of its images.
    pub layers: Layers,
}

/// Object behind a handle.
#[derive(Clone, Debug)]
pub enum Opaque {
    /// A texture that kernels sample.
    Texture(Arc<Texture>),
    /// An array that kernels read and write by texel.
    Surface(Surface),
    /// Unbound variable of a module.
    Unbound,
    /// Object whose memory was freed.
    Freed,
}

/// First handle, and the distance of handles. They are never addresses of a device.
const FIRST: u64 = 0x4000_0000_0000_0000;
const STRIDE: u64 = 16;
/// Minimum number of handles before one is reused.
const FRESH: usize = 4096;

/// Snapshot of the objects behind all handles.
#[derive(Clone, Debug, Default)]
pub struct OpaqueTable(Arc<Vec<Option<Opaque>>>);

impl OpaqueTable {
    fn get(&self, handle: u64) -> Option<&Opaque> {
        let index = handle.checked_sub(FIRST).filter(|offset| offset.is_multiple_of(STRIDE))? / STRIDE;
        self.0.get(usize::try_from(index).ok()?)?.as_ref()
    }

    /// Returns the texture of a handle.
    pub fn texture(&self, handle: u64) -> std::result::Result<&Texture, InvalidHandle> {
        match self.get(handle) {
            Some(Opaque::Texture(texture)) => Ok(texture),
            other => Err(InvalidHandle::new(other, handle, "texture")),
        }
    }

    /// Returns the surface of a handle.
    pub fn surface(&self, handle: u64) -> std::result::Result<&Surface, InvalidHandle> {
        match self.get(handle) {
            Some(Opaque::Surface(surface)) => Ok(surface),
            other => Err(InvalidHandle::new(other, handle, "surface")),
        }
    }
}

/// Handle without a texture or surface. The texts name the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHandle {
    /// Handle of an object of the other kind.
    #[error("{0:#x} is a {1}, not a {2}")]
    OtherKind(u64, &'static str, &'static str),
    /// Reference to which nothing is bound.
    #[error("nothing is bound to the {0}")]
    Unbound(&'static str),
    /// Object whose memory was freed.
    #[error("the memory of the {0} was freed before")]
    Freed(&'static str),
    /// No handle.
    #[error("{0:#x} is not a {1}")]
    Unknown(u64, &'static str),
}

impl InvalidHandle {
    fn new(found: Option<&Opaque>, handle: u64, wanted: &'static str) -> InvalidHandle {
        match found {
            Some(Opaque::Texture(_)) => InvalidHandle::OtherKind(handle, "texture", wanted),
            Some(Opaque::Surface(_)) => InvalidHandle::OtherKind(handle, "surface", wanted),
            Some(Opaque::Unbound) => InvalidHandle::Unbound(wanted),
            Some(Opaque::Freed) => InvalidHandle::Freed(wanted),
            None => InvalidHandle::Unknown(handle, wanted),
        }
    }
}

/// Handles of a device and their objects.
#[derive(Debug, Default)]
pub struct Opaques(RwLock<OpaqueTable>);

impl Opaques {
    /// Returns a snapshot of all objects, for a launch.
    pub fn table(&self) -> OpaqueTable {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Option<Opaque>>) -> T) -> T {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut table.0))
    }

    /// Creates a handle for an object.
    pub fn add(&self, opaque: Opaque) -> u64 {
        self.change(|entries| {
            // Handles are reused only once there are many, so that stale handles are detected as long as
            // possible.
            let again = if entries.len() < FRESH { None } else { entries.iter().position(Option::is_none) };
            let index = again.unwrap_or(entries.len());
            match entries.get_mut(index) {
                Some(entry) => *entry = Some(opaque),
                None => entries.push(Some(opaque)),
            }
            FIRST + STRIDE * index as u64
        })
    }

    /// Replaces or removes the object of a handle; `false` if the handle does not exist.
    pub fn replace(&self, handle: u64, opaque: Option<Opaque>) -> bool {
        self.change(|entries| {
            let index = handle.wrapping_sub(FIRST) / STRIDE;
            match usize::try_from(index).ok().and_then(|index| entries.get_mut(index)) {
                Some(entry @ Some(_)) if handle.is_multiple_of(STRIDE) => {
                    *entry = opaque;
                    true
                }
                _ => false,
            }
        })
    }

    /// Marks the objects in freed memory as gone.
    pub fn freed(&self, address: u64, bytes: u64) {
        let leads_there = |opaque: &Option<Opaque>| {
            let within = |level: &Level| level.address >= address && level.address - address < bytes;
            match opaque {
                Some(Opaque::Texture(texture)) => texture.levels.iter().any(within),
                Some(Opaque::Surface(surface)) => within(&surface.level),
                Some(Opaque::Unbound | Opaque::Freed) | None => false,
            }
        };
        if self.table().0.iter().any(leads_there) {
            self.change(|entries| {
                entries.iter_mut().filter(|entry| leads_there(entry)).for_each(|entry| *entry = Some(Opaque::Freed));
            });
        }
    }

    /// Removes the handle of a texture or surface.
    pub fn remove(&self, handle: u64) -> Result<()> {
        if self.replace(handle, None) { Ok(()) } else { Err(Error::BadTexture { reason: format!("{handle:#x} is no handle") }) }
    }

    /// Creates a handle for a texture. `inside` checks that a range is inside one allocation.
    pub fn add_texture(&self, texture: &Texture, inside: impl Fn(u64, u64) -> Result<()>) -> Result<u64> {
        Ok(self.add(checked_texture(texture, inside)?))
    }

    /// Creates a handle for a surface. `inside` is as above.
    pub fn add_surface(&self, surface: &Surface, inside: impl Fn(u64, u64) -> Result<()>) -> Result<u64> {
        Ok(self.add(checked_surface(surface, inside)?))
    }
}

/// Handles of the texture and surface variables of a module.
#[derive(Debug, Default)]
pub struct References(HashMap<String, (u64, bool)>);

impl References {
    /// Creates a handle for a `.texref` or `.surfref` variable.
    pub fn add(&mut self, opaques: &Opaques, variable: &Variable) -> u64 {
        let handle = opaques.add(Opaque::Unbound);
        self.0.insert(variable.name.clone(), (handle, variable.ty == Type::Surfref));
        handle
    }

    /// Tests if a variable is a texture, surface or sampler reference, not memory.
    pub fn is_reference(variable: &Variable) -> bool {
        variable.space == Space::Tex || matches!(variable.ty, Type::Texref | Type::Surfref | Type::Samplerref)
    }

    /// Binds an object to a variable, or unbinds it.
    pub fn bind(&self, opaques: &Opaques, name: &str, opaque: Option<Opaque>) -> Result<()> {
        let wrong = |what: &str| Err(Error::BadTexture { reason: format!("`{name}` is {what}") });
        match (self.0.get(name), &opaque) {
            (None, _) => wrong("no variable for textures or surfaces of this module"),
            (Some((_, true)), Some(Opaque::Texture(_))) => wrong("a variable for surfaces"),
            (Some((_, false)), Some(Opaque::Surface(_))) => wrong("a variable for textures"),
            (Some((handle, _)), _) => {
                opaques.replace(*handle, Some(opaque.unwrap_or(Opaque::Unbound)));
                Ok(())
            }
        }
    }

    /// Removes all handles.
    pub fn remove(&self, opaques: &Opaques) {
        for (handle, _) in self.0.values() {
            opaques.replace(*handle, None);
        }
    }
}

/// Checks a texture and its memory.
pub fn checked_texture(texture: &Texture, inside: impl Fn(u64, u64) -> Result<()>) -> Result<Opaque> {
    texture.check()?;
    for level in &texture.levels {
        aligned(level)?;
        inside(level.address, size(&level.image)?)?;
    }
    Ok(Opaque::Texture(Arc::new(texture.clone())))
}

/// Checks a surface and its memory.
pub fn checked_surface(surface: &Surface, inside: impl Fn(u64, u64) -> Result<()>) -> Result<Opaque> {
    surface.level.image.check(surface.layers).map_err(|error| Error::BadTexture { reason: error.to_string() })?;
    aligned(&surface.level)?;
    inside(surface.level.address, size(&surface.level.image)?)?;
    Ok(Opaque::Surface(*surface))
}

/// Checks that texels are aligned to their size.
fn aligned(level: &Level) -> Result<()> {
    let texel = u64::from(level.image.format.texel_bytes());
    let Image { row_pitch, slice_pitch, height, depth, .. } = level.image;
    let rows = (height == 1 || row_pitch.is_multiple_of(texel)) && (depth == 1 || slice_pitch.is_multiple_of(texel));
    if level.address.is_multiple_of(texel) && rows {
        return Ok(());
    }
    Err(Error::BadTexture { reason: format!("texels of {texel} bytes do not lie at multiples of their size") })
}

fn size(image: &Image) -> Result<u64> {
    image.bytes().ok_or_else(|| Error::BadTexture { reason: "no memory is so large".into() })
}

impl Device {
    /// Creates a texture and returns its handle for kernels. Its memory must stay valid until the handle is
    /// destroyed.
    pub fn create_texture(&self, texture: &Texture) -> Result<u64> {
        self.backend().create_texture(texture)
    }

    /// Creates a surface and returns its handle for kernels. Its memory must stay valid until the handle is
    /// destroyed.
    pub fn create_surface(&self, surface: &Surface) -> Result<u64> {
        self.backend().create_surface(surface)
    }

    /// Destroys a texture or surface. Launches submitted before can still use it.
    pub fn destroy_opaque(&self, handle: u64) -> Result<()> {
        self.backend().destroy_opaque(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: TexelFormat = TexelFormat { channel: Channel::Unsigned, bits: 8, channels: 4 };

    fn anywhere(_: u64, _: u64) -> Result<()> {
        Ok(())
    }

    #[test]
    fn handles_that_come_and_go_do_not_pile_up() {
        let opaques = Opaques::default();
        let kept = opaques.add(Opaque::Unbound);
        let handles: Vec<u64> = (0..3 * FRESH)
            .map(|_| {
                let handle = opaques.add(Opaque::Unbound);
                opaques.remove(handle).unwrap();
                handle
            })
            .collect();
        // No handle is reused before there are many, and the table does not grow further.
        assert_eq!(handles[..FRESH - 1].iter().collect::<std::collections::BTreeSet<_>>().len(), FRESH - 1);
        assert_eq!(opaques.table().0.len(), FRESH);
        assert!(!handles.contains(&kept) && opaques.remove(kept).is_ok());
    }

    #[test]
    fn a_handle_is_what_it_was_made_for_until_it_is_given_back() {
        let opaques = Opaques::default();
        let image = Image::packed(BYTES, [5, 3, 1]);
        let texture = opaques.add_texture(&Texture::new(4096, image, Sampler::default()), anywhere).unwrap();
        let level = Level { address: 4096, image };
        let surface = opaques.add_surface(&Surface { level, layers: Layers::None }, anywhere).unwrap();
        let before = opaques.table();
        assert_eq!(before.texture(texture).unwrap().levels[0].image.row_pitch, 20);
        assert_eq!(before.surface(surface).unwrap().level, level);
        assert!(before.texture(surface).is_err() && before.surface(texture).is_err());
        assert!(before.texture(0).is_err() && before.texture(texture + 1).is_err() && before.texture(u64::MAX).is_err());
        assert!(opaques.replace(texture, None) && !opaques.replace(texture, None));
        assert!(opaques.table().texture(texture).is_err());
        assert!(before.texture(texture).is_ok(), "a launch keeps what it has taken along");
    }

    #[test]
    fn what_cannot_be_a_texture_is_refused() {
        let opaques = Opaques::default();
        let refused = |change: &dyn Fn(&mut Texture)| {
            let mut texture = Texture::new(0, Image::packed(BYTES, [4, 4, 6]), Sampler::default());
            change(&mut texture);
            opaques.add_texture(&texture, anywhere).is_err()
        };
        assert!(!refused(&|texture| texture.layers = Layers::Cube));
        assert!(refused(&|texture| texture.levels[0].image.width = 0));
        assert!(refused(&|texture| texture.levels[0].image.row_pitch = 15));
        assert!(refused(&|texture| texture.levels[0].image.slice_pitch = 63));
        assert!(refused(&|texture| texture.levels[0].image.format.channels = 3));
        assert!(refused(
            &|texture| texture.levels[0].image.format = TexelFormat { channel: Channel::Float, bits: 8, channels: 1 }
        ));
        assert!(refused(&|texture| texture.levels.clear()));
        assert!(refused(&|texture| {
            texture.layers = Layers::Cube;
            texture.levels[0].image.height = 3;
        }));
        let outside = |address: u64, bytes: u64| Err(Error::BadAddress { call: "texture", address, bytes });
        let texture = Texture::new(0, Image::packed(BYTES, [4, 4, 6]), Sampler::default());
        assert!(opaques.add_texture(&texture, outside).is_err());
    }
}
