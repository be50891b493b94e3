//! Choices of parameters: each word of a command line, defined together with its meaning.

use crate::image::Alpha;
use broadloom_skeleton::Rule;

/// Set of words, one of which is the value of a parameter.
pub(crate) trait Choice: Copy + 'static {
    /// The words, in the order of the help.
    const WORDS: &'static [&'static str];
    /// The meanings of the words, in the same order.
    const MEANINGS: &'static [Self];
}

macro_rules! choices {
    ($($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$about])* $variant,)* }

        impl Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
            const MEANINGS: &'static [Self] = &[$($name::$variant),*];
        }
    )* };
}

choices! {
    /// Resampling filter.
    pub enum Filter {
        /// Lanczos with three lobes.
        Lanczos = "lanczos",
        /// The cubic of Keys with a = −0.5.
        Bicubic = "bicubic",
        /// A triangle.
        Bilinear = "bilinear",
        /// The pixel at the centre, without a filter.
        Nearest = "nearest",
    }

    /// Threshold of `degrain`.
    pub enum Threshold {
        /// Non-negative garrote: x − threshold²/x, 0 below the threshold.
        Garrote = "garrote",
        /// Soft: x moved towards 0 by the threshold, 0 below it.
        Soft = "soft",
    }

    /// Colours of the first 2×2 pixels of a sensor, row by row.
    pub(crate) enum Pattern {
        Rggb = "rggb",
        Bggr = "bggr",
        Grbg = "grbg",
        Gbrg = "gbrg",
    }

    /// Shape of a curve between its points.
    pub(crate) enum CurveShape {
        Cubic = "cubic",
        Linear = "linear",
    }

    /// Interpolation between the entries of a table of colours.
    pub(crate) enum Interpolation {
        Trilinear = "trilinear",
        Tetrahedral = "tetrahedral",
    }

    /// Axis along which `flip` reverses an image.
    pub(crate) enum FlipAxis {
        Horizontal = "horizontal",
        Vertical = "vertical",
    }

    /// Angle of `rotate`, in degrees.
    pub(crate) enum Angle {
        Quarter = "90",
        Half = "180",
        ThreeQuarters = "270",
    }

    /// Alpha of the result of `key`: associated or not.
    pub(crate) enum Premultiply {
        Yes = "yes",
        No = "no",
    }
}

impl Choice for Alpha {
    const WORDS: &'static [&'static str] = &["associated", "straight"];
    const MEANINGS: &'static [Alpha] = &[Alpha::Associated, Alpha::Straight];
}

impl Choice for Rule {
    const WORDS: &'static [&'static str] = &["clamp", "mirror", "wrap", "constant"];
    const MEANINGS: &'static [Rule] = &[Rule::Clamp, Rule::Mirror, Rule::Wrap, Rule::Constant];
}

impl Pattern {
    /// Returns the position of red: its column and row, each 0 or 1.
    pub(crate) fn red(self) -> (u8, u8) {
        match self {
            Pattern::Rggb => (0, 0),
            Pattern::Bggr => (1, 1),
            Pattern::Grbg => (1, 0),
            Pattern::Gbrg => (0, 1),
        }
    }
}
