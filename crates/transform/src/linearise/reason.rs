//! Reason why a function cannot run in lockstep.

use broadloom_ptx::Inst;

/// Reason why a function cannot run in lockstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Obstacle.
    pub text: String,
    /// Instruction, if it is at one place.
    pub inst: Option<Inst>,
}

impl Reason {
    pub(super) fn new(text: impl Into<String>, inst: Option<Inst>) -> Reason {
        Reason { text: text.into(), inst }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
