//! Running effects.

use super::{EffectError, Inputs, Step};
use crate::image::Image;
use crate::reference;

/// Runs effects: the references on the host, or effects on a device.
pub trait Engine {
    /// Runs one effect. Images are those that [`Inputs`] lists; of frames, the current one is in the middle.
    fn run(&mut self, step: &Step, inputs: &[Image]) -> Result<Image, EffectError>;
}

/// The naive references, as an engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Engine for Reference {
    fn run(&mut self, step: &Step, inputs: &[Image]) -> Result<Image, EffectError> {
        reference::run(step, inputs)
    }
}

/// Runs a chain. The first effect takes `inputs`; every other takes the result before it as its first image, and its
/// further images from `further`, in order.
pub fn run_steps(engine: &mut dyn Engine, steps: &[Step], inputs: &[Image], further: &[Image]) -> Result<Image, EffectError> {
    let mut further = further.iter();
    let mut image: Option<Image> = None;
    for step in steps {
        let result = match image {
            None => engine.run(step, inputs)?,
            Some(image) => {
                let wanted = match step.effect().inputs {
                    Inputs::Images(roles) => roles.len(),
                    Inputs::Frames(_) => 1,
                };
                let inputs: Vec<Image> = std::iter::once(image).chain(further.by_ref().take(wanted - 1).cloned()).collect();
                engine.run(step, &inputs)?
            }
        };
        image = Some(result);
    }
    image.ok_or(EffectError::Inputs { effect: "effect", reason: "a chain needs at least one effect".to_owned() })
}
