//! Comparison of alternatives that differ in the size of their code.

/// The gain that pays for larger code: the cost of the alternative must be below this percentage of the other
/// cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gain(u64);

impl Gain {
    /// Makes a gain from hundredths.
    pub(super) const fn new(hundredths: u64) -> Gain {
        Gain(hundredths)
    }

    /// Returns whether an alternative of this cost pays, compared with the other cost.
    pub fn pays(self, cost: impl Into<u128>, other: impl Into<u128>) -> bool {
        cost.into() * 100 < other.into() * u128::from(self.0)
    }
}
