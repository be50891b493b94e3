//! Engines that run effects.

use super::{EffectError, Step};
use crate::image::{Image, Rect};

/// Engine that runs effects: the references on the host, or effects on a device.
pub trait Engine {
    /// Runs one effect. Images are those that `Inputs` lists. The current frame is the middle one.
    fn run(&mut self, step: &Step, inputs: &[Image]) -> Result<Image, EffectError>;

    /// Runs a chain. After each tile, calls `progress` with the number of finished tiles and the total.
    fn run_chain(&mut self, chain: &Chain<'_>, progress: &mut dyn FnMut(usize, usize)) -> Result<Image, EffectError>;

    /// Returns the decisions of the optimiser and the kernels as text; empty if there are none.
    fn explain(&mut self, _chain: &Chain<'_>) -> Result<String, EffectError> {
        Ok(String::new())
    }

    /// Returns the PTX of the kernels; empty if there are none.
    fn ptx(&mut self, _chain: &Chain<'_>) -> Result<String, EffectError> {
        Ok(String::new())
    }

    /// Measures a chain. Returns lines with the time of each kernel; empty if nothing is measured.
    fn statistics(&mut self, _chain: &Chain<'_>) -> Result<Vec<String>, EffectError> {
        Ok(vec![])
    }

    /// Measures a chain without each optimisation. Returns lines with the gains; empty if nothing is measured.
    fn comparison(&mut self, _chain: &Chain<'_>) -> Result<Vec<String>, EffectError> {
        Ok(vec![])
    }
}

/// A chain of effects with its images. The first effect takes `inputs`. Every other effect takes the previous
/// result as its first image, and its other images from `further`, in order.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    /// Effects of the chain.
    pub steps: &'a [Step],
    /// Images of the first effect.
    pub inputs: &'a [Image],
    /// Further images of the other effects.
    pub further: &'a [Image],
    /// Planes that effects take and change; empty for all planes but those of 32-bit integers.
    pub planes: &'a [String],
    /// Requested part of the result; `None` for the whole result.
    pub region: Option<Rect>,
}

/// Fails if an effect on the named planes of an image would overwrite one of the other planes.
pub(crate) fn only_named<'a>(
    step: &Step,
    there: &[&str],
    named: &[&str],
    mut made: impl Iterator<Item = &'a str>,
) -> Result<(), EffectError> {
    match made.find(|name| there.contains(name) && !named.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let reason = format!("it makes the plane `{name}`, which the image has and --planes does not name: name it as well");
            Err(EffectError::Inputs { effect: step.effect().name, reason })
        }
    }
}

/// Returns the planes that an effect takes: those that are named, or those that are no integers of 32 bits; `None` for
/// all planes.
pub(crate) fn chosen_planes(
    step: &Step,
    named: &[String],
    there: Vec<&str>,
    numeric: Vec<String>,
) -> Result<Option<Vec<String>>, EffectError> {
    if !named.is_empty() {
        return Ok(Some(named.to_vec()));
    }
    if numeric.is_empty() {
        let reason =
            format!("all planes hold 32-bit integers, which effects keep: name planes as numbers, --planes {}", there[0]);
        return Err(EffectError::Inputs { effect: step.effect().name, reason });
    }
    Ok(Some(numeric).filter(|numeric| numeric.len() < there.len()))
}

/// Error of an effect that changes the size of an image with planes that it does not take.
pub(crate) fn other_size(step: &Step, there: &[&str], taken: &[String]) -> EffectError {
    let kept: Vec<&str> = there.iter().copied().filter(|name| !taken.iter().any(|taken| taken == name)).collect();
    let reason = format!(
        "it changes the size of an image, so it cannot keep the planes that it does not take ({}); --planes names those that it takes",
        kept.join(", ")
    );
    EffectError::Inputs { effect: step.effect().name, reason }
}
