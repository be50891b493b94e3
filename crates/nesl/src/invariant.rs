//! Failed checks of the compiler's own data.

use std::fmt;

/// Description of a broken invariant: the function or expression, then the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenInvariant(String);

impl BrokenInvariant {
    /// Puts the place in front of the reason.
    pub(crate) fn at(self, place: impl fmt::Display) -> BrokenInvariant {
        BrokenInvariant(format!("{place}: {self}"))
    }
}

impl From<&str> for BrokenInvariant {
    fn from(reason: &str) -> BrokenInvariant {
        BrokenInvariant(reason.to_owned())
    }
}

impl From<String> for BrokenInvariant {
    fn from(reason: String) -> BrokenInvariant {
        BrokenInvariant(reason)
    }
}

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BrokenInvariant {}
