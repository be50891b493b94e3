//! Chains of effects, in the notation of the command.

use crate::declaration::{Effect, EffectError, Settings, Step, nearest};

/// Parses a chain: comma-separated names of effects, and settings `name=value`.
///
/// A setting applies to the only effect of the chain with such a parameter. `EFFECT.name=value` names the
/// effect, and `2.name=value` the second of the chain. `boundary` and `border` apply to all effects.
///
/// ```
/// use broadloom_effect::catalogue::chain;
///
/// let steps = chain("gaussian,unsharp", &["gaussian.sigma=4", "amount=2", "boundary=clamp"])?;
/// assert_eq!((steps[0].number("sigma"), steps[1].number("sigma")), (4.0, 2.0));
/// assert_eq!(steps[1].number("amount"), 2.0);
/// # Ok::<(), broadloom_effect::catalogue::EffectError>(())
/// ```
pub fn chain<S: AsRef<str>>(names: &str, settings: &[S]) -> Result<Vec<Step>, EffectError> {
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let mut steps = vec![];
    for name in &names {
        steps.push(Settings::new(Effect::find(name)?));
    }
    for setting in settings {
        let setting = setting.as_ref();
        let Some((place, value)) = setting.split_once('=') else {
            return Err(EffectError::NoSetting(setting.chars().take(80).collect()));
        };
        let place = place.trim();
        let (wanted, name) = place.rsplit_once('.').map_or((None, place), |(step, name)| (Some(step.trim()), name));
        for index in receivers(&steps, wanted, name)? {
            steps[index].set(name, value)?;
        }
    }
    for step in &steps {
        step.complete()?;
    }
    Ok(steps)
}

/// Returns the indices of the steps to which a setting applies.
fn receivers(steps: &[Step], wanted: Option<&str>, name: &str) -> Result<Vec<usize>, EffectError> {
    let all = 0..steps.len();
    if let Some(wanted) = wanted {
        let by_number = wanted.parse().ok().filter(|number| (1..=steps.len()).contains(number)).map(|number: usize| number - 1);
        let named: Vec<usize> = match by_number {
            Some(index) => vec![index],
            None => all.filter(|index| steps[*index].effect().name == wanted).collect(),
        };
        return match named[..] {
            [] => Err(EffectError::NotInChain {
                wanted: wanted.chars().take(80).collect(),
                nearest: nearest(wanted, steps.iter().map(|step| step.effect().name)).map(str::to_owned),
                there: steps.iter().enumerate().map(|(index, step)| format!("{} {}", index + 1, step.effect().name)).collect(),
            }),
            [_] => Ok(named),
            _ => Err(ambiguous(steps, &named, name)),
        };
    }
    if matches!(name, "boundary" | "border") {
        return Ok(all.collect());
    }
    let having: Vec<usize> = all.filter(|index| steps[*index].has(name)).collect();
    match having[..] {
        [] if steps.len() == 1 => Ok(vec![0]),
        [] => {
            let mut there: Vec<String> = vec![];
            for step in steps {
                there.extend(step.values().map(|(parameter, _)| format!("{}.{}", step.effect().name, parameter.name)));
            }
            let short = there.iter().map(|name| name.rsplit('.').next().unwrap_or(name));
            let effect = steps.iter().map(|step| step.effect().name).collect::<Vec<_>>().join(",");
            let nearest = nearest(name, short).map(str::to_owned);
            Err(EffectError::UnknownParameter { effect, name: name.chars().take(80).collect(), nearest, there })
        }
        [_] => Ok(having),
        _ => Err(ambiguous(steps, &having, name)),
    }
}

/// Names the possible steps: by their effects, or by number if two have the same name.
fn ambiguous(steps: &[Step], indices: &[usize], name: &str) -> EffectError {
    let named = |index: &usize| steps[*index].effect().name;
    let repeats = indices.iter().any(|a| indices.iter().any(|b| a != b && named(a) == named(b)));
    let shown = |index: &usize| if repeats { (index + 1).to_string() } else { named(index).to_owned() };
    EffectError::Ambiguous { name: name.to_owned(), effects: indices.iter().map(shown).collect() }
}
