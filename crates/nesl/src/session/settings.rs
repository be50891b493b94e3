//! Settings of a session.

use crate::eval::Options;

/// Options for running programs and printing values.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Limits and widths of numbers.
    pub options: Options,
    /// Number of elements of a sequence that are printed.
    pub print_length: usize,
    /// The engine that executes expressions.
    pub engine: Engine,
}

/// The engine that executes expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The evaluator of nested values.
    Evaluator,
    /// Flattened code on the VCODE machine, with the accelerator of the session if it has one. The evaluator
    /// computes values that contain a function.
    Vcode,
    /// The evaluator, without output; the answer to a text is the VCODE of its expressions, as one program.
    EmitVcode,
    /// The evaluator, without output; the answer to an expression is its flattened code.
    EmitFlat,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { options: Options::default(), print_length: 100, engine: Engine::Evaluator }
    }
}
