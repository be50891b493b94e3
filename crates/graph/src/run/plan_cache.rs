//! Cache of plans, keyed by the structure of expressions.

use crate::hash::QuickMap;
use crate::limits::MAX_PLANS;
use crate::run::fit::CachedPlan;
use crate::tape::entries::Tape;
use crate::tape::record::Recorder;
use smallvec::SmallVec;
use std::sync::Arc;

/// Recorder of expressions and table of their plans, used by one thread at a time.
#[derive(Debug)]
pub(crate) struct PlanCache {
    pub(crate) recorder: Recorder,
    pub(crate) plans: Plans,
}

/// Plan with the time of its last use.
type UsedPlan = (u64, Arc<CachedPlan>);

/// Plans, keyed by the hash of their tape.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    known: QuickMap<u64, SmallVec<[UsedPlan; 1]>>,
    count: usize,
    clock: u64,
}

impl Plans {
    pub(crate) fn get(&mut self, tape: &Tape, hash: u64) -> Option<Arc<CachedPlan>> {
        self.clock += 1;
        let found = self.known.get_mut(&hash)?.iter_mut().find(|(_, plan)| plan.key() == tape);
        found.map(|(used, plan)| {
            *used = self.clock;
            plan.clone()
        })
    }

    /// Adds a plan. If another thread has added an equal plan meanwhile, that plan stays.
    pub(crate) fn add(&mut self, hash: u64, plan: Arc<CachedPlan>) -> Arc<CachedPlan> {
        if let Some(known) = self.get(plan.key(), hash) {
            return known;
        }
        if self.count >= MAX_PLANS {
            // The least recently used half is removed.
            let mut times: Vec<u64> = self.known.values().flatten().map(|(used, _)| *used).collect();
            times.sort_unstable();
            let limit = times[times.len() / 2];
            self.known.retain(|_, plans| {
                plans.retain(|(used, _)| *used > limit);
                !plans.is_empty()
            });
            self.count = self.known.values().map(|plans| plans.len()).sum();
        }
        self.known.entry(hash).or_default().push((self.clock, plan.clone()));
        self.count += 1;
        plan
    }
}
