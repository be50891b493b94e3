//! Joins: stencils that become part of the stencils that read them.
//!
//! The cut assumes that a node with uses at several positions is computed for each of them. It keeps the node
//! if that costs more than memory. In a patch of rows and columns, neighbours share most of these positions,
//! but only if all parts of a kernel read equally far. If threads compute patches, a second cut therefore
//! keeps every node whose neighbours are read. Each of these nodes is tried as a part of the kernels that
//! read it. The patches of all kernels are priced with and without the node, together with the bytes that
//! they read and write, and the cheaper plan is used. A few rounds find a plan that no single node makes
//! cheaper. Results are bitwise the same.

use crate::limits::{JOIN_ROUNDS, MAX_TRIED};
use crate::plan::cut::{Cut, Reason, cut};
use crate::plan::group::Group;
use crate::plan::patches::Patches;
use crate::tape::bindings::Bindings;
use crate::tape::entries::{Id, Int, Kind, Tape};
use broadloom_device::Machine;
use broadloom_skeleton::cost::{self, Costs};
use std::collections::HashMap;

/// Returns the cheapest kernels of a tape, if nodes that its plain cut keeps may be computed in patches.
pub(crate) fn joined(tape: &Tape, plain: Cut, bindings: &Bindings, machine: &Machine) -> Cut {
    let costs = Costs::of(machine);
    if !costs.joins_stencils() || tape.kernels.single_positions || tape.wide {
        return plain;
    }
    let apart = |loose: &[Id]| cut(tape, costs.balance(), None, costs.knows_segments(), Some(loose));
    let mut best = apart(&[]);
    // Results of one call have equal inputs: one without the other would not save the call.
    let mut tried: Vec<Vec<Id>> = vec![];
    let mut kept: Vec<Id> = best.reasons.iter().filter(|(_, reason)| **reason == Reason::Apart).map(|(id, _)| *id).collect();
    // Nodes that are only combined later are tried last: whether they are stored depends on the kernels that
    // read neighbours.
    kept.sort_unstable_by_key(|id| (!is_read_nearby(tape, *id), *id));
    for id in kept {
        match tried.iter_mut().find(|ids| tape.entry(ids[0]).inputs == tape.entry(id).inputs) {
            Some(ids) => ids.push(id),
            None => tried.push(vec![id]),
        }
    }
    if tried.is_empty() || tried.len() > MAX_TRIED {
        return plain;
    }
    let mut prices = Prices { tape, bindings, machine, costs: &costs, known: HashMap::new() };
    let (Some(without), Some(mut least)) = (prices.of(&plain), prices.of(&best)) else { return plain };
    let mut loose: Vec<Id> = vec![];
    for _ in 0..JOIN_ROUNDS {
        let before = least;
        // Single nodes first. Then neighbours in the list, so that a kernel can end at one node instead of
        // the next.
        for toggled in tried.chunks(1).chain(tried.windows(2)) {
            let mut others = loose.clone();
            for ids in toggled {
                if others.contains(&ids[0]) {
                    others.retain(|id| !ids.contains(id));
                } else {
                    others.extend(ids);
                }
            }
            let cut = apart(&others);
            if let Some(price) = prices.of(&cut).filter(|price| *price < least) {
                (best, least, loose) = (cut, price, others);
            }
        }
        if least == before {
            break;
        }
    }
    let pays = cost::JOIN_GAIN.pays(least, without) && best.groups.len() <= plain.groups.len();
    if pays { best } else { plain }
}

/// Returns whether neighbours of the elements of a node are read.
fn is_read_nearby(tape: &Tape, id: Id) -> bool {
    tape.entries.iter().any(|entry| match &entry.kind {
        Kind::View(maps, ..) => entry.inputs[0] == id && maps.iter().any(|map| map.offset != Int::Known(0)),
        _ => false,
    })
}

/// Costs of kernels.
struct Prices<'p> {
    tape: &'p Tape,
    bindings: &'p Bindings,
    machine: &'p Machine,
    costs: &'p Costs<'p>,
    /// Costs of a position, by the nodes that a kernel writes and reads.
    known: HashMap<(Vec<Id>, Vec<Id>), Option<u64>>,
}

impl Prices<'_> {
    /// Returns the time of all kernels, in hundredths of simple operations; `None` if one is too large.
    fn of(&mut self, cut: &Cut) -> Option<u128> {
        cut.groups.iter().map(|group| self.of_kernel(cut, group)).sum()
    }

    /// Returns the time of a kernel. Memory traffic and operations overlap.
    fn of_kernel(&mut self, cut: &Cut, group: &Group) -> Option<u128> {
        let count = |shape: u32| self.bindings.shapes[shape as usize].count() as u128;
        let bytes = |id: &Id| count(self.tape.entry(*id).shape) * u128::from(self.tape.entry(*id).ty.bytes());
        let bytes: u128 = group.reads.iter().chain(&group.roots).map(bytes).sum();
        let memory = bytes * u128::from(self.costs.started(1) * cost::PATCH_MEMORY) / 100;
        let all = count(group.domain);
        let key = (group.made().collect(), group.reads.clone());
        let known = self.known.get(&key).copied();
        let position = known.unwrap_or_else(|| self.of_position(cut, group));
        self.known.insert(key, position);
        Some(memory.max(all * u128::from(position?)))
    }

    /// Returns the cost of a position of a kernel without memory: that of its best patch, if its sizes have
    /// room for one.
    fn of_position(&self, cut: &Cut, group: &Group) -> Option<u64> {
        let parts = group.traced(self.tape, &cut.kept)?;
        let sizes: Vec<u64> = self.bindings.shapes[group.domain as usize].extents().iter().map(|extent| *extent as u64).collect();
        Some(match &parts[..] {
            [part] => match Patches::of(self.tape, &cut.kept, group, part, self.machine) {
                Some(patches) => patches.least(&sizes),
                None => part.fused.single_cost(),
            },
            parts => parts.iter().map(|part| part.fused.single_cost()).sum(),
        })
    }
}
