//! The order of a buffer's items in registers.

use super::cut::Cut;
use super::section::{Port, Section};
use super::wiring::{Range, Step, keeps_runs, shift, target};
use broadloom_skeleton::cost::dataflow;

/// The order of a buffer's items in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registers {
    /// The steps from the register order to the buffer, if the items of a unit are scattered over it.
    pub(super) post: Option<Vec<Step>>,
    /// The number of the first item.
    pub(super) first: i64,
}

impl Registers {
    /// Returns the order of a buffer if the firings of a unit read or write it once.
    pub(super) fn of(section: &Section, cut: &Cut, buffer: usize) -> Option<Registers> {
        let own = &section.buffers[buffer];
        if own.items * i64::from(own.words.count) > dataflow::REGISTER_WORDS {
            return None;
        }
        let ports: Vec<(&Port, i64)> = ports(section, cut, buffer).collect();
        let exact = |index: &usize| cut.unit.firings[*index].is_none_or(|range| range.len() == section.actors[*index].firings);
        if !cut.actors.iter().all(exact) || ports.iter().any(|(port, _)| port.seen != port.rate) {
            return None;
        }
        if ports.iter().all(|(port, _)| !port.absolute) {
            let extent = cut.extents[buffer].filter(|extent| extent.len() == own.items)?;
            return (cut.unit.items[buffer] == Some(extent)).then_some(Registers { post: None, first: extent.start });
        }
        if !ports.iter().all(|(port, _)| port.absolute) {
            return None;
        }
        // The last steps, from where the longest runs are kept, lead from registers to memory.
        let (first, _) = ports.first()?;
        let cuts = [4, 2, 1].into_iter().flat_map(|run| (0..=first.steps.len()).map(move |at| (run, at)));
        cuts.filter(|(run, at)| keeps_runs(&first.steps[*at..], *run)).find_map(|(_, at)| {
            let post = &first.steps[at..];
            let mut range: Option<Range> = None;
            for (port, firings) in &ports {
                let pre = port.steps.strip_suffix(post)?;
                shift(pre, firings * port.rate).filter(|moved| *moved == own.items)?;
                for item in port.start..port.start + firings * port.rate {
                    let item = target(pre, item);
                    let one = Range::new(item, item + 1);
                    range = Some(range.map_or(one, |range| range.hull(one)));
                }
            }
            let range = range.filter(|range| range.len() == own.items)?;
            Some(Registers { post: Some(post.to_vec()), first: range.start })
        })
    }
}

/// Returns the ports of a kernel at a buffer, with the firings of a unit.
fn ports<'s>(section: &'s Section, cut: &'s Cut, buffer: usize) -> impl Iterator<Item = (&'s Port, i64)> {
    let actors = cut.actors.iter().map(|index| &section.actors[*index]);
    let ports =
        actors.flat_map(|actor| [&actor.input, &actor.output].map(|port| port.as_ref().map(|port| (port, actor.firings))));
    ports.flatten().filter(move |(port, _)| port.buffer == buffer)
}
