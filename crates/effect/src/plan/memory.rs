//! Memory of a run, and cuts that reduce it.
//!
//! The planner of the graph fuses functors for speed. Images that a late kernel reads stay in memory until it
//! runs: ten of them in a wavelet transform of six levels. A plan that would need more than [`Plan::enough`]
//! is cut into stages where few images are alive. The images at a cut are computed, and everything before the
//! cut is released.
//!
//! Invariant: the number of bytes is computed from the plan alone, so a plan does not depend on other uses of
//! the device.

use super::items::{Item, Items};
use super::{ExplainedStages, Mode, Plan, Switch};
use crate::Result;
use std::collections::BTreeSet;

/// Plans that need at most this many bytes are never cut.
const LITTLE: u64 = 8 << 20;

impl Items {
    /// Returns the bytes of images that are alive after each item.
    fn alive(&self) -> Vec<u64> {
        let mut uses = self.uses();
        let mut alive = 0u64;
        let behind = |(number, item): (usize, &Item)| {
            alive = alive.saturating_add(self.images(number));
            for port in &item.inputs {
                uses[port.item] -= 1;
                if uses[port.item] == 0 {
                    alive -= self.images(port.item).min(alive);
                }
            }
            alive
        };
        self.items.iter().enumerate().map(behind).collect()
    }

    /// Returns the bytes of all items together.
    fn total(&self) -> u64 {
        (0..self.items.len()).map(|number| self.bytes(number)).fold(0, u64::saturating_add)
    }

    /// Returns `count` items after which few images are alive, one in each part of the list.
    fn cuts(&self, count: usize) -> BTreeSet<usize> {
        let alive = self.alive();
        let last = alive.len().saturating_sub(1);
        let part = |number: usize| number * last / count;
        let best = |number: usize| (part(number)..part(number + 1)).min_by_key(|item| (alive[*item], usize::MAX - *item));
        (0..count).filter_map(best).collect()
    }
}

impl Plan {
    /// Returns the memory, in bytes, that a plan may use without a cut: the minimum of the graph, and the
    /// result images.
    fn enough(&self) -> u64 {
        let image = self.items.results.iter().map(|port| {
            let item = &self.items.items[port.item];
            4 * item.outputs[port.output] as u64 * item.needed.unwrap_or(item.bounds).area()
        });
        (self.least_bytes + image.sum::<u64>()).max(LITTLE).min(self.memory())
    }

    /// Returns the items after which a stage ends.
    pub(super) fn cuts(&self) -> Result<&BTreeSet<usize>> {
        if let Some(cuts) = self.cuts.get() {
            return Ok(cuts);
        }
        let found = self.found_cuts()?;
        Ok(self.cuts.get_or_init(|| found))
    }

    fn found_cuts(&self) -> Result<BTreeSet<usize>> {
        let (enough, none) = (self.enough(), BTreeSet::new());
        let is_fused = self.options.fuse != Switch::Off && self.options.contract != Switch::Off;
        if self.items.total() <= enough || !is_fused || !self.options.order.decides(|| true) {
            return Ok(none);
        }
        let mut told = ExplainedStages::default();
        self.lower_with(&none, &mut Mode::Explain(&mut told), &mut vec![], &[])?;
        let (mut best, mut least) = (none, told.peak_bytes);
        let mut count = 1;
        while least > enough && count < self.items.items.len() {
            let cuts = self.items.cuts(count);
            let mut told = ExplainedStages::default();
            self.lower_with(&cuts, &mut Mode::Explain(&mut told), &mut vec![], &[])?;
            if told.peak_bytes < least {
                (best, least) = (cuts, told.peak_bytes);
            }
            count *= 2;
        }
        Ok(best)
    }
}
