//! Assumptions that lanes do not wrap, to be proved for each launch.

use crate::range::limits;
use crate::ranges::Ranges;
use broadloom_ptx::{Block, Inst, Reg};

/// Assumption that the lanes of a register, which differ by known amounts, keep their distances when it is
/// read as a wider integer: none of them wraps around while another does not.
///
/// Lanes hold `first + offset`, with offsets between [`least`](Self::least) and [`most`](Self::most). The
/// first value of a group must be unchanged too, even if its lane is not active: code that computes with
/// first values and offsets reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obligation {
    /// Instruction that reads the register as a wider integer.
    pub inst: Inst,
    /// Block of the instruction.
    pub block: Block,
    /// The register.
    pub reg: Reg,
    /// True if it is read as signed.
    pub signed: bool,
    /// Smallest difference between a lane and the first of its group, at most 0.
    pub least: i64,
    /// Largest difference, at least 0.
    pub most: i64,
    /// True if all lanes of the block run the instruction that defines the register.
    pub whole_at_definition: bool,
    /// True if all lanes run the instruction that reads it.
    pub whole_here: bool,
}

impl Obligation {
    /// Returns whether it holds in some launches.
    pub fn holds(&self, ranges: &Ranges<'_>) -> bool {
        let anywhere = ranges.range(self.reg);
        let here = ranges.range_in(self.reg, self.block);
        let (least, most) = (i128::from(self.least), i128::from(self.most));
        let bits = anywhere.bits();
        // Two lanes that wrap differently would be further apart than the range is wide; the first lane is
        // one of them.
        let narrow = |bounds: (i128, i128)| bounds.1 - bounds.0 < (1i128 << bits) - (most - least);
        if self.whole_at_definition && narrow(anywhere.bounds(self.signed)) {
            return true;
        }
        let bounds = here.bounds(self.signed);
        if self.whole_here && narrow(bounds) {
            return true;
        }
        // The first lane need not be active: for every active lane, the first must fit the width.
        let (smallest, largest) = limits(bits, self.signed);
        bounds.0 - most >= smallest && bounds.1 - least <= largest
    }
}

impl Ranges<'_> {
    /// Returns whether the assumptions hold in these launches.
    pub fn proves(&self, obligations: &[Obligation]) -> bool {
        obligations.iter().all(|obligation| obligation.holds(self))
    }
}
