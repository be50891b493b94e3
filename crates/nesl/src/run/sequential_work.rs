//! State of sequential calls of an accelerator: loaded kernels, forms that failed, and requests for small
//! calls.

use crate::vcode::FuncId;
use broadloom_device::Kernel;
use broadloom_graph::Teams;
use std::collections::{HashMap, HashSet};

/// Maximum number of levels without a request for small calls.
const MAX_LEVELS: u32 = 4;

/// Work done sequentially.
#[derive(Default)]
pub(super) struct SequentialWork {
    /// Loaded kernels by their text, each with the number of the last launch that used it.
    pub(super) kernels: HashMap<String, (Kernel, u64)>,
    /// Forms with a call that failed in this run.
    pub(super) failed: HashSet<String>,
    /// The last request for small calls of each requesting instruction.
    pub(super) asked: HashMap<(FuncId, usize), SizeRequest>,
    /// True if the last call was a loop that paused.
    pub(super) has_paused: bool,
    /// Elements of the largest call that `small` has found last, and of all.
    pub(super) largest: usize,
    pub(super) total: usize,
    /// The largest small size at that time.
    pub(super) limit: usize,
    /// The configuration of teams for these calls, if teams run them.
    pub(super) teams: Option<Teams>,
    pub(super) launches: u64,
    pub(super) calls: u64,
    pub(super) team_calls: u64,
}

/// Request for small calls, each of which takes a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SizeRequest {
    /// Elements of the largest call at that time.
    most: usize,
    /// Levels until the next request, and the number of them that are left.
    levels: u32,
    pub(super) left: u32,
}

impl SizeRequest {
    /// Records the largest call, and estimates the number of levels until it can be small. The estimate
    /// assumes that its size continues to fall as since the last request. Half of the resulting levels are
    /// skipped, since the size may fall faster.
    pub(super) fn note(&mut self, most: usize, limit: usize) {
        let halvings = |from: usize, to: usize| (from.max(1) as f64 / to.max(1) as f64).log2();
        let needed = halvings(most, limit);
        let each = match self.most {
            before if before > most => halvings(before, most) / f64::from(self.levels + 1),
            _ => needed,
        };
        let levels = (needed / each.max(f64::MIN_POSITIVE) / 2.0).min(MAX_LEVELS.into()) as u32;
        *self = SizeRequest { most, levels, left: levels };
    }
}

impl SequentialWork {
    pub(super) fn begin(&mut self) {
        self.failed.clear();
        self.asked.clear();
    }
}
