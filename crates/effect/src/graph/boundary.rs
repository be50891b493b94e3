//! Boundary rules: the pixels outside of an image.

use broadloom_graph::Boundary as Rule;
use broadloom_scalar::{Lanes, Literal};

/// The pixels outside of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Boundary {
    /// The nearest pixel.
    Clamp,
    /// The image goes back and forth; the pixels of the edge are not repeated.
    #[default]
    Mirror,
    /// The image starts again.
    Wrap,
    /// This value.
    Constant(f32),
    /// There are none: the result is smaller by the window.
    Shrink,
}

impl Boundary {
    /// Returns the rule of the graph. Where the result shrinks nothing outside is read.
    pub(crate) fn rule(self) -> Rule {
        match self {
            Boundary::Clamp | Boundary::Shrink => Rule::Clamp,
            Boundary::Mirror => Rule::Mirror,
            Boundary::Wrap => Rule::Wrap,
            Boundary::Constant(value) => Rule::Constant(Lanes::from_slice(&[Literal::from(value)])),
        }
    }

    /// Returns the rule for so many arrays.
    pub(crate) fn rules(self, arrays: usize) -> Rule<Vec<Lanes>> {
        self.rule().map(|value| vec![value; arrays])
    }
}
