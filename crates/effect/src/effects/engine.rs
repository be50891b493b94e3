//! Effects by name, on a device.

use super::calls::failed;
use crate::Picture;
use crate::declaration::{
    Chain, DeviceCall, EffectError, Engine, Inputs, Settings, Step, check, chosen_planes, only_named, other_size,
};
use crate::image::Image;
use crate::layers::Layers;
use crate::plan::{self, Explanation, Options, Plan};
use broadloom_graph::Context;

/// Engine that runs effects of the catalogue on a device.
#[derive(Clone, Debug)]
pub struct OnDevice {
    pub(super) context: Context,
    pub(super) options: Options,
}

impl OnDevice {
    /// Creates an engine for a device, with options of the optimiser.
    pub fn new(context: &Context, options: Options) -> OnDevice {
        OnDevice { context: context.clone(), options }
    }

    /// Explains the plan of a chain; `None` if it has no planes to compute.
    fn explanation(&self, chain: &Chain<'_>) -> Result<Option<Explanation>, EffectError> {
        let layers = chained(&self.context, chain)?;
        let wanted: Vec<(Picture, crate::Rect)> =
            layers.pictures().into_iter().map(|picture| (picture, layers.bounds())).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let told = Plan::new(&wanted, &self.options).and_then(|plan| plan.explain());
        told.map(Some).map_err(|error| failed(&names(chain), error))
    }
}

impl Engine for OnDevice {
    fn run(&mut self, step: &Step, inputs: &[Image]) -> Result<Image, EffectError> {
        run(&self.context, step, inputs, &self.options)
    }

    fn run_chain(&mut self, chain: &Chain<'_>, progress: &mut dyn FnMut(usize, usize)) -> Result<Image, EffectError> {
        let layers = chained(&self.context, chain)?;
        layers.image_with(&self.options, progress).map_err(|error| failed(&names(chain), error))
    }

    fn explain(&mut self, chain: &Chain<'_>) -> Result<String, EffectError> {
        Ok(self.explanation(chain)?.map_or(String::new(), |told| told.text_on(self.context.device())))
    }

    fn ptx(&mut self, chain: &Chain<'_>) -> Result<String, EffectError> {
        let texts = self.explanation(chain)?.map(|told| told.ptx()).transpose();
        Ok(texts.map_err(|error| failed(&names(chain), error))?.unwrap_or_default())
    }

    fn statistics(&mut self, chain: &Chain<'_>) -> Result<Vec<String>, EffectError> {
        let layers = chained(&self.context, chain)?;
        statistics(&layers, &self.options).map_err(|error| failed(&names(chain), error))
    }

    fn comparison(&mut self, chain: &Chain<'_>) -> Result<Vec<String>, EffectError> {
        let layers = chained(&self.context, chain)?;
        comparison(&layers, &self.options).map_err(|error| failed(&names(chain), error))
    }
}

/// Returns the names of a chain's effects.
pub(super) fn names(chain: &Chain<'_>) -> String {
    chain.steps.iter().map(|step| step.effect().name).collect::<Vec<&str>>().join(",")
}

/// Measures the kernels of an image.
fn statistics(layers: &Layers, options: &Options) -> crate::Result<Vec<String>> {
    let wanted: Vec<(Picture, crate::Rect)> = layers.pictures().into_iter().map(|picture| (picture, layers.bounds())).collect();
    if wanted.is_empty() {
        return Ok(vec![]);
    }
    let plan = Plan::new(&wanted, options)?;
    if !plan.fits() {
        return Ok(vec!["the image is computed in tiles, whose kernels are not measured".to_owned()]);
    }
    let (_, profiles) = plan.profile()?;
    let total: f64 = profiles.iter().map(|profile| profile.time.as_secs_f64()).sum();
    let mut lines = vec![];
    for profile in &profiles {
        let ms = profile.time.as_secs_f64() * 1e3;
        let share = 100.0 * profile.time.as_secs_f64() / total.max(1e-12);
        let bytes = (profile.kernel.bytes_read + profile.kernel.bytes_written) as f64 / 1e6;
        lines.push(format!("{:<28}{ms:>10.3} ms {share:>5.1} %  {bytes:>9.2} MB", profile.functors.join(", ")));
    }
    Ok(lines)
}

/// Measures the gain of each technique for an image.
fn comparison(layers: &Layers, options: &Options) -> crate::Result<Vec<String>> {
    let wanted: Vec<(Picture, crate::Rect)> = layers.pictures().into_iter().map(|picture| (picture, layers.bounds())).collect();
    if wanted.is_empty() {
        return Ok(vec![]);
    }
    if !Plan::new(&wanted, options)?.fits() {
        return Ok(vec!["the image is computed in tiles, without which techniques are not measured".to_owned()]);
    }
    let (gains, mut lines) = (plan::gains(&wanted, options)?, vec![]);
    for gain in gains.iter().filter(|gain| gain.changes) {
        lines.push(format!("without {:<20}{:>10.3} ms {:>6.2} ×", gain.name, gain.without.as_secs_f64() * 1e3, gain.factor()));
    }
    let unchanged: Vec<&str> = gains.iter().filter(|gain| !gain.changes).map(|gain| gain.name).collect();
    if !unchanged.is_empty() {
        lines.push(format!("the kernels are the same without {}", unchanged.join(", ")));
    }
    Ok(lines)
}

/// Computes an effect. Samples of changed planes are `f32`.
pub fn run(context: &Context, settings: &Settings, inputs: &[Image], options: &Options) -> Result<Image, EffectError> {
    let layers: Vec<Layers> = inputs.iter().map(Layers::from).collect();
    let result = apply(context, settings, &layers)?;
    result.image(options).map_err(|error| failed(settings.effect().name, error))
}

/// Builds the graph of a chain. Computes nothing.
pub fn chained(context: &Context, chain: &Chain<'_>) -> Result<Layers, EffectError> {
    let Chain { steps, inputs, further, planes, region } = *chain;
    let mut further = further.iter().map(Layers::from);
    let mut result: Option<Layers> = None;
    for step in steps {
        let is_of_frames = matches!(step.effect().inputs, Inputs::Frames(_));
        let mut inputs: Vec<Layers> = match result {
            None => inputs.iter().map(Layers::from).collect(),
            Some(image) => {
                let more = match step.effect().inputs {
                    Inputs::Images(roles) => roles.len() - 1,
                    Inputs::Frames(_) => 0,
                };
                std::iter::once(image).chain(further.by_ref().take(more)).collect()
            }
        };
        let Some(whole) = inputs.get(inputs.len() / 2 * usize::from(is_of_frames)).cloned() else {
            return Err(EffectError::Inputs { effect: step.effect().name, reason: "there is no image".to_owned() });
        };
        let chosen = chosen_planes(step, planes, whole.names(), whole.numeric())?;
        let Some(planes) = chosen else {
            result = Some(apply(context, step, &inputs)?);
            continue;
        };
        let changed = if is_of_frames { inputs.len() } else { 1 };
        for image in &mut inputs[..changed] {
            let there = image.names();
            let place = |name: &String| {
                let missing = || crate::ImageError::NoPlane {
                    name: name.clone(),
                    there: there.iter().map(|name| (*name).to_owned()).collect(),
                };
                there.iter().position(|own| own == name).ok_or_else(missing)
            };
            let indices = planes.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
            *image = image.select(&indices);
        }
        let part = apply(context, step, &inputs)?;
        if part.bounds() != whole.bounds() {
            return Err(other_size(step, &whole.names(), &planes));
        }
        let named: Vec<&str> = planes.iter().map(String::as_str).collect();
        only_named(step, &whole.names(), &named, part.names().into_iter())?;
        result = Some(whole.replaced(&named, part));
    }
    let result =
        result.ok_or(EffectError::Inputs { effect: "effect", reason: "a chain needs at least one effect".to_owned() })?;
    match region {
        Some(region) => Ok(result.within(region)?),
        None => Ok(result),
    }
}

/// Builds the graph of an effect. Computes nothing.
pub fn apply(context: &Context, settings: &Settings, inputs: &[Layers]) -> Result<Layers, EffectError> {
    let effect = settings.effect();
    settings.complete()?;
    let shapes: Vec<(crate::Rect, Vec<&str>)> = inputs.iter().map(|input| (input.bounds(), input.names())).collect();
    check(settings, &shapes)?;
    let image = &inputs[inputs.len() / 2 * usize::from(matches!(effect.inputs, Inputs::Frames(_)))];
    (effect.functor)(&DeviceCall { context, settings, inputs, image })
}
