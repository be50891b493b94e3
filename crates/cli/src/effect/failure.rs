//! Failures of effects.

use crate::failure::{Exit, Failure, codes};
use broadloom::diag::Diagnostic;
use broadloom::effect::EffectError;
use broadloom::effect::image::ImageError;

/// Returns a usage error.
pub(super) fn usage(message: String, help: &str) -> Failure {
    Failure::usage(Diagnostic::error(codes::EFFECT, message).help(help.to_owned()))
}

/// Converts an effect error.
pub(super) fn failure(error: EffectError) -> Failure {
    failure_with(error, None)
}

/// Converts an effect error, with a note. Distinguishes usage errors from machine errors.
pub(super) fn failure_with(error: EffectError, note: Option<String>) -> Failure {
    let exit = match &error {
        EffectError::Device { .. } | EffectError::Image(ImageError::Memory(_)) => Exit::Machine,
        EffectError::File(error) if error.is_of_machine() => Exit::Machine,
        _ => Exit::Usage,
    };
    let diagnostic = Diagnostic::error(codes::EFFECT, error.to_string());
    let diagnostic = match note {
        Some(note) => diagnostic.note(note),
        None => diagnostic,
    };
    Failure::new(
        exit,
        match error {
            EffectError::UnknownEffect { .. } => diagnostic.help("`broadloom effect list` lists the effects".to_owned()),
            _ => diagnostic,
        },
    )
}
