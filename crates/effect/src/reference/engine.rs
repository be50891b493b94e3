//! Engine of the references.

use super::run;
use crate::declaration::{Chain, EffectError, Engine, Inputs, Step, chosen_planes, only_named, other_size};
use crate::image::{Image, SampleType};

/// Engine of the naive references. A chain runs effect by effect.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Engine for Reference {
    fn run(&mut self, step: &Step, inputs: &[Image]) -> Result<Image, EffectError> {
        run(step, inputs)
    }

    fn run_chain(&mut self, chain: &Chain<'_>, _progress: &mut dyn FnMut(usize, usize)) -> Result<Image, EffectError> {
        let Chain { steps, inputs, further, planes, region } = *chain;
        let mut further = further.iter();
        let mut image: Option<Image> = None;
        for step in steps {
            let inputs: Vec<Image> = match image {
                None => inputs.to_vec(),
                Some(image) => {
                    let more = match step.effect().inputs {
                        Inputs::Images(roles) => roles.len() - 1,
                        Inputs::Frames(_) => 0,
                    };
                    std::iter::once(image).chain(further.by_ref().take(more).cloned()).collect()
                }
            };
            image = Some(on_planes(step, inputs, planes)?);
        }
        let image =
            image.ok_or(EffectError::Inputs { effect: "effect", reason: "a chain needs at least one effect".to_owned() })?;
        match region {
            Some(region) => Ok(image.view(region)?.with_display(region)?),
            None => Ok(image),
        }
    }
}

/// Runs an effect by reference on some planes, or on all planes but integers of 32 bits if none are named.
fn on_planes(step: &Step, mut inputs: Vec<Image>, planes: &[String]) -> Result<Image, EffectError> {
    let is_of_frames = matches!(step.effect().inputs, Inputs::Frames(_));
    let Some(whole) = inputs.get(inputs.len() / 2 * usize::from(is_of_frames)).cloned() else {
        return Err(EffectError::Inputs { effect: step.effect().name, reason: "there is no image".to_owned() });
    };
    let numeric = whole.planes().iter().filter(|plane| plane.sample_type() != SampleType::U32);
    let numeric = numeric.map(|plane| plane.name().to_owned()).collect();
    let Some(planes) = chosen_planes(step, planes, whole.names().collect(), numeric)? else {
        return run(step, &inputs);
    };
    let names: Vec<&str> = planes.iter().map(String::as_str).collect();
    let changed = if is_of_frames { inputs.len() } else { 1 };
    for image in &mut inputs[..changed] {
        *image = image.select(&names)?;
    }
    let result = run(step, &inputs)?;
    if result.bounds() != whole.bounds() {
        return Err(other_size(step, &whole.names().collect::<Vec<&str>>(), &planes));
    }
    let there: Vec<&str> = whole.names().collect();
    only_named(step, &there, &names, result.names())?;
    let mut kept = vec![];
    for plane in whole.planes() {
        match (result.plane(plane.name()), names.contains(&plane.name())) {
            (Some(changed), _) => kept.push(changed.clone()),
            (None, false) => kept.push(plane.clone()),
            (None, true) => {}
        }
    }
    kept.extend(result.planes().iter().filter(|plane| whole.plane(plane.name()).is_none()).cloned());
    Ok(result.with_planes(kept)?)
}
