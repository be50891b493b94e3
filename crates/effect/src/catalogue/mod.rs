//! The effects by name: their parameters, inputs and boundary rules, and how they are run.
//!
//! [`EFFECTS`] is the only list of effects. The command's help, the parser of `--set name=value`, the
//! references and the effects on devices all follow it. [`Settings`] are the values of an effect's
//! parameters, and a [`Step`] is an effect with its settings. An [`Engine`] runs chains of steps.
//!
//! Invariant: every default in the table is a value that its parameter accepts, and every name in the table
//! is unique.

mod chain;
mod engine;
mod error;
mod nearest;
mod parameter;
mod settings;
mod table;

pub use chain::{Step, chain};
pub use engine::{Chain, Engine, Reference};
pub(crate) use engine::{chosen_planes, only_named, other_size};
pub use error::EffectError;
pub use nearest::nearest;
pub use parameter::{Kind, Parameter, Value};
pub use settings::Settings;
pub use table::EFFECTS;

/// Images that an effect takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Images with these roles. All of them cover the same pixels.
    Images(&'static [&'static str]),
    /// Frames around the current one, with equal numbers before and after it. The named parameter is that
    /// number.
    Frames(&'static str),
}

/// Effect: a name with its parameters and their meaning.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// Name in the command.
    pub name: &'static str,
    /// One line of documentation.
    pub summary: &'static str,
    /// Definition of the result.
    pub formula: &'static str,
    /// Images that it takes.
    pub inputs: Inputs,
    /// Its own parameters, without those of the boundary rule.
    pub parameters: &'static [Parameter],
    /// Default boundary rule; `None` if only the pixel at the current position is read.
    pub boundary: Option<&'static str>,
}

impl Effect {
    /// Returns the effect with the given name.
    pub fn find(name: &str) -> Result<&'static Effect, EffectError> {
        let unknown = || EffectError::UnknownEffect {
            name: name.to_owned(),
            nearest: nearest(name, EFFECTS.iter().map(|effect| effect.name)).map(str::to_owned),
        };
        EFFECTS.iter().find(|effect| effect.name == name).ok_or_else(unknown)
    }

    /// Returns all parameters: its own, then those of the boundary rule.
    pub fn all_parameters(&self) -> impl Iterator<Item = Parameter> {
        let rule = self.boundary.map(|default| Parameter { default: Some(default), ..parameter::BOUNDARY });
        let border = self.boundary.map(|_| parameter::BORDER);
        self.parameters.iter().copied().chain(rule).chain(border)
    }
}
