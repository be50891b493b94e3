//! Boundary rules: the values of pixels outside an image.

use broadloom_graph::Boundary as Rule;
use broadloom_scalar::{Lanes, Literal};

/// Rule for the values of pixels outside an image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Boundary {
    /// The nearest pixel.
    Clamp,
    /// The image is reflected at its edges. The edge pixels are not repeated.
    #[default]
    Mirror,
    /// The image repeats periodically.
    Wrap,
    /// The given value.
    Constant(f32),
    /// There are none. The result is smaller than the image by the window.
    Shrink,
}

impl Boundary {
    /// Returns the rule of the graph. Nothing outside is read if the result shrinks.
    pub(crate) fn rule(self) -> Rule {
        match self {
            Boundary::Clamp | Boundary::Shrink => Rule::Clamp,
            Boundary::Mirror => Rule::Mirror,
            Boundary::Wrap => Rule::Wrap,
            Boundary::Constant(value) => Rule::Constant(Lanes::from_slice(&[Literal::from(value)])),
        }
    }

    /// Returns the rule for the given number of arrays.
    pub(crate) fn rules(self, arrays: usize) -> Rule<Vec<Lanes>> {
        self.rule().map(|value| vec![value; arrays])
    }
}
