//! `broadloom effect`: image effects on files.
//!
//! - [`list`]: the catalogue as text and as JSON;
//! - [`frames`]: file names with a frame number;
//! - [`noise`]: the noise of images;
//! - [`pipeline`]: concurrent reading, computing and writing;
//! - [`bands`]: the same for the bands of one large image;
//! - [`failure`](mod@failure): failures of effects.

mod bands;
mod failure;
mod frames;
mod list;
mod noise;
mod pipeline;

use crate::failure::{Exit, Failure};
use crate::options::Effect;
use crate::terminal::Terminal;
use broadloom::effect::catalogue::{self, Inputs, Step};
use failure::{failure, usage};

/// Lists effects, explains one, or runs a chain on files.
pub fn run(options: &Effect, terminal: &mut Terminal) -> Result<Exit, Failure> {
    match options.name.as_str() {
        "list" => {
            no_files(options)?;
            list::all(options.json, terminal);
            return Ok(Exit::Done);
        }
        "help" => {
            let [name] = &options.files[..] else {
                return Err(usage("`broadloom effect help` takes the name of one effect".to_owned(), "broadloom effect list"));
            };
            let effect = catalogue::Effect::find(&name.to_string_lossy()).map_err(failure)?;
            list::one(effect, options.json, terminal);
            return Ok(Exit::Done);
        }
        "noise" => {
            if options.files.is_empty() {
                return Err(usage("`broadloom effect noise` takes images".to_owned(), "broadloom effect noise in.png"));
            }
            noise::print(&options.files, terminal)?;
            return Ok(Exit::Done);
        }
        _ => {}
    }
    let steps = catalogue::chain(&options.name, &options.settings).map_err(failure)?;
    if let Some(setting) = options.files.iter().filter_map(|file| file.to_str()).find(|file| is_setting(&steps, file)) {
        let message = format!("`{setting}` is a setting, not a file");
        return Err(usage(message, &format!("write --set {setting}")));
    }
    if options.json {
        return Err(usage("--json is for `list` and `help`".to_owned(), "leave it out"));
    }
    let wanted = inputs(&steps)?;
    let Some((output, inputs)) = options.files.split_last().filter(|(_, inputs)| inputs.len() == wanted) else {
        let roles = roles(&steps).join(", ");
        let message =
            format!("`{}` takes {} files: {roles}, and the result; there are {}", options.name, wanted + 1, options.files.len());
        return Err(usage(message, &format!("broadloom effect help {}", steps[0].effect().name)));
    };
    pipeline::run(options, &steps, inputs, output, terminal)
}

/// Returns whether a word sets a parameter of the effects of a chain and is no file.
fn is_setting(steps: &[Step], word: &str) -> bool {
    let name = word.split_once('=').map(|(place, _)| place.rsplit('.').next().unwrap_or(place));
    name.is_some_and(|name| steps.iter().any(|step| step.has(name))) && !std::path::Path::new(word).exists()
}

/// Returns what to type instead of an option that has the name of a parameter, such as `--sigma 3`.
pub fn advice_on_option(option: &str, words: &[String]) -> Option<String> {
    let name = option.trim_start_matches('-').split('=').next()?;
    let effects =
        catalogue::EFFECTS.iter().filter(|effect| words.iter().any(|word| word.split(',').any(|word| word == effect.name)));
    let mut parameters = effects.flat_map(|effect| effect.all_parameters());
    let parameter = parameters.find(|parameter| parameter.name == name)?;
    let at = words.iter().position(|word| word.split('=').next() == Some(option))?;
    let value = words[at].split_once('=').map(|(_, value)| value).or_else(|| words.get(at + 1).map(String::as_str));
    Some(format!("write --set {}={}", parameter.name, value.unwrap_or("…")))
}

/// Fails if files are given with `list`.
fn no_files(options: &Effect) -> Result<(), Failure> {
    match options.files.is_empty() {
        true => Ok(()),
        false => Err(usage("`broadloom effect list` takes no files".to_owned(), "broadloom effect list")),
    }
}

/// Returns the roles of the input files of a chain.
fn roles(steps: &[Step]) -> Vec<&'static str> {
    let mut all = vec![];
    for (index, step) in steps.iter().enumerate() {
        let skipped = usize::from(index > 0);
        match step.effect().inputs {
            Inputs::Images(roles) => all.extend(&roles[skipped..]),
            Inputs::Frames(_) => all.extend(["frames"].iter().skip(skipped)),
        }
    }
    all
}

/// Returns the number of input files of a chain.
fn inputs(steps: &[Step]) -> Result<usize, Failure> {
    let is_late = |step: &&Step| matches!(step.effect().inputs, Inputs::Frames(_));
    match steps.iter().skip(1).find(is_late) {
        None => Ok(roles(steps).len()),
        Some(step) => {
            let message = format!("`{}` takes frames of a sequence and must be the first of a chain", step.effect().name);
            Err(usage(message, "write its result to files, and run the other effects on them"))
        }
    }
}
