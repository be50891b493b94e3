//! Reasons why an effect does not run.

use crate::file::FileError;
use crate::image::ImageError;

/// An effect that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EffectError {
    /// An effect that is not in the catalogue.
    #[error("there is no effect `{name}`{}", meant(.nearest))]
    UnknownEffect {
        /// The name asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// A parameter that the effect does not have.
    #[error("`{effect}` has no parameter `{name}`: it has {}{}", list(.there), meant(.nearest))]
    UnknownParameter {
        /// The effect, or the chain of effects.
        effect: String,
        /// The name asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
        /// The names there are.
        there: Vec<String>,
    },
    /// A setting of an effect that is not in the chain.
    #[error("`{wanted}` is no effect of this chain: it has {}{}", list(.there), meant(.nearest))]
    NotInChain {
        /// The effect asked for, or its place.
        wanted: String,
        /// The nearest name there is.
        nearest: Option<String>,
        /// The effects of the chain with their places.
        there: Vec<String>,
    },
    /// A parameter that several effects of a chain have.
    #[error("{} have a parameter `{name}`: write `{}.{name}=…`", .effects.join(" and "), .effects[0])]
    Ambiguous {
        /// The name.
        name: String,
        /// The effects, with their places where two have the same name.
        effects: Vec<String>,
    },
    /// A setting without `=`.
    #[error("`{0}` is no setting: write name=value")]
    NoSetting(String),
    /// A value that the parameter does not take.
    #[error("`{effect}` cannot have {name}={value}: {reason}")]
    BadValue {
        /// The effect.
        effect: String,
        /// The parameter.
        name: String,
        /// The value asked for.
        value: String,
        /// The values that there are.
        reason: String,
    },
    /// A parameter without a default was not set.
    #[error("`{effect}` needs a value for `{name}`: {doc}")]
    Missing {
        /// The effect.
        effect: &'static str,
        /// The parameter.
        name: &'static str,
        /// Its documentation.
        doc: &'static str,
    },
    /// Images that do not fit the effect.
    #[error("`{effect}`: {reason}")]
    Inputs {
        /// The effect.
        effect: &'static str,
        /// The reason.
        reason: String,
    },
    /// An image that cannot be made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A device that failed.
    #[error("`{effect}`: {reason}")]
    Device {
        /// The effect.
        effect: String,
        /// The reason.
        reason: String,
    },
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
