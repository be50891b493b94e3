//! Reasons why an effect does not run.

use crate::file::FileError;
use crate::image::ImageError;

/// An effect that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EffectError {
    /// An effect that is not in the catalogue.
    #[error("there is no effect `{name}`{}", meant(.nearest))]
    UnknownEffect {
        /// Requested name.
        name: String,
        /// Nearest existing name.
        nearest: Option<String>,
    },
    /// A parameter that the effect does not have.
    #[error("`{effect}` has no parameter `{name}`: it has {}{}", list(.there), meant(.nearest))]
    UnknownParameter {
        /// Name of the effect, or of the chain of effects.
        effect: String,
        /// Requested name.
        name: String,
        /// Nearest existing name.
        nearest: Option<String>,
        /// Existing names.
        there: Vec<String>,
    },
    /// A setting of an effect that is not in the chain.
    #[error("`{wanted}` is no effect of this chain: it has {}{}", list(.there), meant(.nearest))]
    NotInChain {
        /// Requested effect, or its position.
        wanted: String,
        /// Nearest existing name.
        nearest: Option<String>,
        /// Effects of the chain with their positions.
        there: Vec<String>,
    },
    /// A parameter that several effects of a chain have.
    #[error("{} have a parameter `{name}`: write `{}.{name}=…`", .effects.join(" and "), .effects[0])]
    Ambiguous {
        /// Name of the parameter.
        name: String,
        /// Names of the effects, with their positions if two have the same name.
        effects: Vec<String>,
    },
    /// A setting without `=`.
    #[error("`{0}` is no setting: write name=value")]
    NoSetting(String),
    /// A value that the parameter does not accept.
    #[error("`{effect}` cannot have {name}={value}: {reason}")]
    BadValue {
        /// Name of the effect.
        effect: String,
        /// Name of the parameter.
        name: String,
        /// Requested value.
        value: String,
        /// Reason of the refusal, with the possible values.
        reason: String,
    },
    /// A parameter without a default was not set.
    #[error("`{effect}` needs a value for `{name}`: {doc}")]
    Missing {
        /// Name of the effect.
        effect: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// Documentation of the parameter.
        doc: &'static str,
    },
    /// Images that do not fit the effect.
    #[error("`{effect}`: {reason}")]
    Inputs {
        /// Name of the effect.
        effect: &'static str,
        /// Reason of the refusal.
        reason: String,
    },
    /// An image that cannot be created.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A device that failed.
    #[error("`{effect}`: {reason}")]
    Device {
        /// Name of the effect.
        effect: String,
        /// Reason of the failure.
        reason: String,
    },
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
