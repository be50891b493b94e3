//! Texture and surface references of modules.
//!
//! All settings are passed to the module as soon as memory is bound, so that the next launch sees them.

use crate::objects::references::{NORMALISED, Reference, SRGB, Settings, UNBOUND, read_mode};
use crate::state::Runtime;
use crate::status::{Outcome, Status};

impl Runtime {
    /// Returns a texture or surface reference of a module.
    pub(crate) fn module_reference(&self, module: usize, name: &str, is_surface: bool) -> Outcome<usize> {
        let image = self.modules.get(module)?;
        let loaded = image.loaded(self)?;
        let there = if is_surface { loaded.module.bind_surface(name, None) } else { loaded.module.bind_texture(name, None) };
        there.map_err(|_| Status::NOT_FOUND)?;
        Ok(self.references.insert(Reference::new(Some((image, name.to_owned())), is_surface)))
    }

    /// Changes the settings of a reference.
    pub(crate) fn set_reference(&self, handle: usize, change: impl FnOnce(&mut Settings) -> Outcome) -> Outcome {
        self.device()?;
        let reference = self.references.get(handle)?;
        let mut changed = *reference.settings();
        change(&mut changed)?;
        let desc = &mut changed.desc;
        desc.read = read_mode(changed.flags, changed.format.0);
        desc.normalised = i32::from(changed.flags & NORMALISED != 0);
        desc.srgb = i32::from(changed.flags & SRGB != 0);
        if let Some((image, name)) = reference.variable.as_ref().filter(|_| changed.resource[0] != UNBOUND) {
            let module = &image.loaded(self)?.module;
            let bound = if reference.is_surface {
                module.bind_surface(name, Some(&self.surface(changed.resource[1] as usize)?))
            } else {
                module.bind_texture(name, Some(&self.texture(&changed.resource, &changed.desc)?))
            };
            self.judge(bound)?;
        }
        *reference.settings() = changed;
        Ok(())
    }
}
