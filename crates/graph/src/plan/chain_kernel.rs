//! Kernels of chains: several functions that read each other's rows in ring buffers.

use crate::emit::code::{Code, KernelScalar};
use crate::emit::fused::FusedTraces;
use crate::expr::error::Result;
use crate::plan::group::{Group, Link};
use crate::plan::kernel::{Kernel, Planner, too_large};
use crate::plan::pattern::KernelProgram;
use crate::tape::entries::{Id, Tape};
use broadloom_skeleton::cost::Costs;
use broadloom_skeleton::{Chain, Domain, Stage, Tap, TapRead};
use std::collections::HashMap;

/// Returns the kernel of a chain.
pub(crate) fn kernel(planner: &Planner<'_>, group: &Group) -> Result<Kernel> {
    let (chain, codes, bounds) = group.chain_codes(planner.tape, &planner.cut.kept, &planner.costs)?;
    let ready = KernelProgram::one(chain.into(), planner.library);
    Ok(Kernel::new(group.clone(), codes, bounds, group.chain_cost(), ready))
}

impl Group {
    /// Returns the pattern of a chain, the functions of its links, and the bounds of their interiors.
    fn chain_codes(&self, tape: &Tape, kept: &[bool], costs: &Costs<'_>) -> Result<(Chain, Vec<Code>, Vec<KernelScalar>)> {
        let mut staged = vec![false; tape.entries.len()];
        let mut values: HashMap<Id, (usize, usize)> = HashMap::new();
        for (place, link) in self.links.iter().enumerate() {
            for (number, root) in link.group.roots.iter().enumerate().filter(|(number, _)| link.staged[*number]) {
                staged[*root as usize] = true;
                values.insert(*root, (place, number));
            }
        }
        let rank = usize::from(tape.shapes[self.domain as usize].rank);
        let (mut stages, mut all, mut bounds) = (vec![], vec![], vec![]);
        for (place, link) in self.links.iter().enumerate() {
            let roots = link.group.roots_of(&link.group.feeds[0]);
            let mut fused = FusedTraces::strip(tape, kept, &[], roots, rank, 1).ok_or_else(too_large)?;
            // A ring is read only after the link that fills it.
            let is_read = |from: usize| from < place && link.reaches.iter().any(|reach| reach.stage == from);
            let is_filled = |id: usize| values.get(&(id as Id)).is_some_and(|(from, _)| is_read(*from));
            let mut by_column: Vec<bool> = (0..tape.entries.len()).map(|id| staged[id] && is_filled(id)).collect();
            link.near.iter().for_each(|near| by_column[*near as usize] = true);
            fused.staged = &by_column;
            let (codes, own) = fused.strip_codes(tape, costs.side_by_side())?;
            bounds.extend(own);
            let tap = |code: &Code| Tap {
                function: code.function.clone(),
                reads: code
                    .inputs
                    .iter()
                    .map(|input| match values.get(input).filter(|(from, _)| is_read(*from)) {
                        Some((stage, value)) => TapRead::Stage(*stage, *value),
                        None if link.near.contains(input) => TapRead::Column,
                        None => TapRead::Number,
                    })
                    .collect(),
            };
            stages.push(Stage {
                inner: tap(codes.first().ok_or_else(too_large)?),
                edge: codes.get(1).map(tap),
                reaches: link.reaches.clone(),
                staged: link.staged.clone(),
                stored: link.stored.clone(),
                cost: link.cost,
            });
            all.extend(codes.into_iter().map(|mut code| {
                let in_memory: Vec<bool> = code.inputs.iter().map(|input| !is_filled(*input as usize)).collect();
                let mut own = in_memory.iter();
                code.inputs.retain(|_| own.next().copied().unwrap_or(false));
                let mut own = in_memory.iter();
                code.aligned.retain(|_| own.next().copied().unwrap_or(false));
                code
            }));
        }
        let mut sizes = vec![1u64; rank];
        sizes.iter_mut().rev().take(1).for_each(|last| *last = 1 << 20);
        Ok((Chain { domain: Domain::of(&sizes), stages }, all, bounds))
    }

    /// Returns the cost of one position of a chain, in simple operations.
    fn chain_cost(&self) -> u64 {
        self.links.iter().map(Link::work).sum()
    }
}
