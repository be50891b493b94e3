//! Textures and surfaces: descriptions of memory that kernels read and write through handles.
//!
//! A texture is memory of the device, which somebody else allocates and frees, together with how it is read. Its handle is a number that kernels get as an
//! argument (`cudaTextureObject_t`); a variable of a module (`.texref`, `.surfref`) is a handle too, whose texture the host
//! binds. Executors on the host keep both in [`Opaques`].
//!
//! Invariants: the memory behind a handle that was given out lay inside of one allocation then. A handle is never used for
//! anything else later.

use crate::{Device, Error, Result};
pub use broadloom_eval::texture::{AddressMode, Channel, Filter, Format, Image, Layers, Sampler};
use broadloom_ptx::{Space, Type, Variable};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Texels in memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// Where the first texel is.
    pub address: u64,
    /// How the others lie from there.
    pub image: Image,
}

/// The description of a texture.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// Its levels, the largest first; one when it is no mipmap.
    pub levels: Vec<Level>,
    /// The relation of its images.
    pub layers: Layers,
    /// Whether it is a plain buffer of texels, read by their number: those that there are not read as zeros.
    pub is_buffer: bool,
    /// How it is read.
    pub sampler: Sampler,
}

impl Texture {
    /// One image, of one to three axes.
    pub fn new(address: u64, image: Image, sampler: Sampler) -> Texture {
        Texture { levels: vec![Level { address, image }], layers: Layers::None, is_buffer: false, sampler }
    }

    fn check(&self) -> Result<()> {
        if self.levels.is_empty() {
            return Err(Error::BadTexture { reason: "it has no level".into() });
        }
        let format = self.levels[0].image.format;
        for level in &self.levels {
            level.image.check(self.layers).map_err(|reason| Error::BadTexture { reason })?;
            if level.image.format != format {
                return Err(Error::BadTexture { reason: "its levels have several formats".into() });
            }
        }
        Ok(())
    }
}

/// The description of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Its texels.
    pub level: Level,
    /// The relation of its images.
    pub layers: Layers,
}

/// The object behind a handle.
#[derive(Clone, Debug)]
pub enum Opaque {
    /// A texture.
    Texture(Arc<Texture>),
    /// A surface.
    Surface(Surface),
    /// A variable of a module that nothing is bound to.
    Unbound,
    /// Something whose memory was freed.
    Freed,
}

/// The first handle; the others follow. No address of any device is one.
const FIRST: u64 = 0x4000_0000_0000_0000;
const STRIDE: u64 = 16;
/// Handles that are there before one is given again.
const FRESH: usize = 4096;

/// The objects behind all handles at some time.
#[derive(Clone, Debug, Default)]
pub struct OpaqueTable(Arc<Vec<Option<Opaque>>>);

impl OpaqueTable {
    fn get(&self, handle: u64) -> Option<&Opaque> {
        let index = handle.checked_sub(FIRST).filter(|offset| offset.is_multiple_of(STRIDE))? / STRIDE;
        self.0.get(usize::try_from(index).ok()?)?.as_ref()
    }

    /// The texture of a handle, or why there is none.
    pub fn texture(&self, handle: u64) -> std::result::Result<&Texture, String> {
        match self.get(handle) {
            Some(Opaque::Texture(texture)) => Ok(texture),
            Some(Opaque::Surface(_)) => Err(format!("{handle:#x} is a surface, not a texture")),
            Some(Opaque::Unbound) => Err("nothing is bound to the texture".to_owned()),
            Some(Opaque::Freed) => Err("the memory of the texture was freed before".to_owned()),
            None => Err(format!("{handle:#x} is not a texture")),
        }
    }

    /// The surface of a handle, or why there is none.
    pub fn surface(&self, handle: u64) -> std::result::Result<&Surface, String> {
        match self.get(handle) {
            Some(Opaque::Surface(surface)) => Ok(surface),
            Some(Opaque::Texture(_)) => Err(format!("{handle:#x} is a texture, not a surface")),
            Some(Opaque::Unbound) => Err("nothing is bound to the surface".to_owned()),
            Some(Opaque::Freed) => Err("the memory of the surface was freed before".to_owned()),
            None => Err(format!("{handle:#x} is not a surface")),
        }
    }
}

/// Handles of a device and what is behind them.
#[derive(Debug, Default)]
pub struct Opaques(RwLock<OpaqueTable>);

impl Opaques {
    /// Returns the objects behind all handles now. A launch takes them along.
    pub fn table(&self) -> OpaqueTable {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Option<Opaque>>) -> T) -> T {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut table.0))
    }

    /// A handle of its own for something.
    pub fn add(&self, opaque: Opaque) -> u64 {
        self.change(|entries| {
            // A handle is given again once there are many, so that one that is kept too long is found out as long as that can be.
            let again = if entries.len() < FRESH { None } else { entries.iter().position(Option::is_none) };
            let index = again.unwrap_or(entries.len());
            match entries.get_mut(index) {
                Some(entry) => *entry = Some(opaque),
                None => entries.push(Some(opaque)),
            }
            FIRST + STRIDE * index as u64
        })
    }

    /// Puts something else behind a handle, or nothing; `false` when there was no such handle.
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

    /// Memory was freed: what is behind handles that lead there is gone.
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

    /// Gives the handle of a texture or surface back.
    pub fn remove(&self, handle: u64) -> Result<()> {
        if self.replace(handle, None) { Ok(()) } else { Err(Error::BadTexture { reason: format!("{handle:#x} is no handle") }) }
    }

    /// A handle for a texture. `inside` says whether a range of memory is inside of one allocation.
    pub fn add_texture(&self, texture: &Texture, inside: impl Fn(u64, u64) -> Result<()>) -> Result<u64> {
        Ok(self.add(checked_texture(texture, inside)?))
    }

    /// A handle for a surface. `inside` is as above.
    pub fn add_surface(&self, surface: &Surface, inside: impl Fn(u64, u64) -> Result<()>) -> Result<u64> {
        Ok(self.add(checked_surface(surface, inside)?))
    }
}

/// Handles of the variables of a module that textures and surfaces are bound to.
#[derive(Debug, Default)]
pub struct References(HashMap<String, (u64, bool)>);

impl References {
    /// A handle for a variable, a `.texref` or `.surfref`.
    pub fn add(&mut self, opaques: &Opaques, variable: &Variable) -> u64 {
        let handle = opaques.add(Opaque::Unbound);
        self.0.insert(variable.name.clone(), (handle, variable.ty == Type::Surfref));
        handle
    }

    /// Whether a variable is one of these, not memory.
    pub fn is_reference(variable: &Variable) -> bool {
        variable.space == Space::Tex || matches!(variable.ty, Type::Texref | Type::Surfref | Type::Samplerref)
    }

    /// Binds something to a variable, or nothing any more.
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

    /// Gives all handles back.
    pub fn remove(&self, opaques: &Opaques) {
        for (handle, _) in self.0.values() {
            opaques.replace(*handle, None);
        }
    }
}

/// A texture whose memory is there.
pub fn checked_texture(texture: &Texture, inside: impl Fn(u64, u64) -> Result<()>) -> Result<Opaque> {
    texture.check()?;
    for level in &texture.levels {
        aligned(level)?;
        inside(level.address, size(&level.image)?)?;
    }
    Ok(Opaque::Texture(Arc::new(texture.clone())))
}

/// A surface whose memory is there.
pub fn checked_surface(surface: &Surface, inside: impl Fn(u64, u64) -> Result<()>) -> Result<Opaque> {
    surface.level.image.check(surface.layers).map_err(|reason| Error::BadTexture { reason })?;
    aligned(&surface.level)?;
    inside(surface.level.address, size(&surface.level.image)?)?;
    Ok(Opaque::Surface(*surface))
}

/// Texels lie at multiples of their size.
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
    /// A handle for a texture, as kernels take it. Its memory must stay until the handle is given back.
    pub fn create_texture(&self, texture: &Texture) -> Result<u64> {
        self.backend().create_texture(texture)
    }

    /// A handle for a surface, as kernels take it. Its memory must stay until the handle is given back.
    pub fn create_surface(&self, surface: &Surface) -> Result<u64> {
        self.backend().create_surface(surface)
    }

    /// Gives the handle of a texture or surface back. Launches given before go on with it.
    pub fn destroy_opaque(&self, handle: u64) -> Result<()> {
        self.backend().destroy_opaque(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Format = Format { channel: Channel::Unsigned, bits: 8, channels: 4 };

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
        // None comes again before there are many, and the table ends there.
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
        assert!(refused(&|texture| texture.levels[0].image.format = Format { channel: Channel::Float, bits: 8, channels: 1 }));
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
