//! The effects by name: their parameters, inputs and boundary rules, and how they are run.
//!
//! [`EFFECTS`] is the only list of effects: each row has the name, the parameters, the formula, the functor and the
//! reference. The command's help, the parser of `--set name=value` and the engines follow it. [`Settings`] are the
//! values of an effect's parameters, and a [`Step`] is an effect with its settings. An [`Engine`] runs chains of
//! steps.
//!
//! Invariant: every default in the table is a value that its parameter accepts, and every name in the table
//! is unique.

mod chain;
mod table;

pub use crate::declaration::{
    Chain, DeviceCall, Effect, EffectError, Engine, Inputs, Kind, Parameter, PlaneChoice, PlaneSource, ReferenceCall, Settings,
    Step, Value, nearest,
};
pub use crate::reference::Reference;
pub use chain::chain;
pub use table::EFFECTS;

/// Words that other programs use, and the names of the effects.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("bw", "grayscale"),
    ("blur", "gaussian"),
    ("contrast", "levels"),
    ("corners", "harris"),
    ("denoise", "degrain"),
    ("edges", "canny"),
    ("exposure", "tone_map"),
    ("gray", "grayscale"),
    ("grey", "grayscale"),
    ("merge", "composite"),
    ("mirror", "flip"),
    ("over", "composite"),
    ("scale", "resize"),
    ("sharpen", "unsharp"),
    ("thumbnail", "resize"),
    ("turn", "rotate"),
];

impl Effect {
    /// Returns the effect with the given name.
    pub fn find(name: &str) -> Result<&'static Effect, EffectError> {
        let other = |name: &str| OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, name)| *name);
        let unknown = || EffectError::UnknownEffect {
            name: name.to_owned(),
            nearest: other(name).or_else(|| nearest(name, EFFECTS.iter().map(|effect| effect.name))).map(str::to_owned),
        };
        EFFECTS.iter().find(|effect| effect.name == name).ok_or_else(unknown)
    }
}
