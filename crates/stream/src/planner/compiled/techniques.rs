//! Techniques: for each filter, which optimisations were applied on this machine, and why.

use super::program::{Compiled, CompiledSection};
use crate::language::text::plural;
use crate::planner::restructure::Actor;
use crate::planner::restructure::cut::{BufferPlace, Cut, Shape, cost};
use broadloom_device::Machine;
use broadloom_scalar::Precision;
use broadloom_skeleton::cost::{Costs, Execution};

/// A technique: its name, whether it was applied, and why.
pub(super) struct Technique {
    pub(super) name: &'static str,
    pub(super) applied: bool,
    pub(super) reason: String,
}

/// Returns the bytes of global memory that a firing moves in the given cut. Only the actor's own tapes count.
pub(super) fn traffic(ready: &CompiledSection, cut: &Cut, actor: &Actor) -> u64 {
    let ports = [&actor.input, &actor.output].into_iter().flatten();
    let global = ports.filter(|port| cut.places[port.buffer].is_global());
    global.map(|port| port.rate as u64 * ready.fine.buffers[port.buffer].words.bytes()).sum()
}

/// Returns whether a filter is memory bound: with its tapes in global memory, moving its bytes takes longer
/// than its operations.
pub(super) fn is_high_traffic(ready: &CompiledSection, actor: &Actor, machine: &Machine) -> bool {
    let ports = [&actor.input, &actor.output].into_iter().flatten();
    let bytes: u64 = ports.map(|port| port.rate as u64 * ready.fine.buffers[port.buffer].words.bytes()).sum();
    bytes.saturating_mul(Costs::of(machine).balance()) > cost(actor)
}

impl Compiled<'_> {
    /// Returns the techniques of an actor, those of the paper's table first.
    pub(super) fn techniques(&self, ready: &CompiledSection, cut: &Cut, index: usize) -> Vec<Technique> {
        let machine = self.device.machine();
        let execution = Costs::of(machine).execution();
        let actor = &ready.fine.actors[index];
        let mut found = vec![];
        let mut add = |name: &'static str, applied: bool, reason: String| found.push(Technique { name, applied, reason });
        let places = |port: &Option<crate::planner::restructure::Port>| port.as_ref().map(|port| cut.places[port.buffer]);
        let (from, to) = (places(&actor.input), places(&actor.output));
        let is_staged = |place: Option<BufferPlace>| matches!(place, Some(BufferPlace::Staged(_) | BufferPlace::Collected(_)));
        let is_shared = |place: Option<BufferPlace>| matches!(place, Some(BufferPlace::Shared(_)));

        let component = cut.components.iter().find(|group| group.actors.contains(&index));
        let collapsed = if actor.combined { 1 } else { actor.nodes.len() };
        add(
            "collapse of branches",
            collapsed > 1,
            match collapsed {
                0 | 1 => "it stands in no splitjoin of equal branches".into(),
                more => format!("{more} equal branches are one filter"),
            },
        );
        let neighbours = cut.actors.len() - 1;
        let inside = [from, to].into_iter().flatten().filter(|place| !place.is_global()).count();
        let siblings = cut.actors.iter().filter(|other| {
            let own = actor.input.as_ref().map(|port| port.buffer);
            **other != index && own.is_some() && ready.fine.actors[**other].input.as_ref().map(|port| port.buffer) == own
        });
        let siblings = siblings.count();
        add(
            "vertical fusion",
            inside > 0,
            match (inside, neighbours) {
                (0, 0) => "no other filter stands beside it on the device, or their buffers do not fit together".into(),
                (0, _) => "its tapes cross to other kernels or to the host".into(),
                (_, others) if let Some(group) = component.filter(|group| group.actors.len() > 1) => format!(
                    "{} in the kernel; a thread runs groups of firings of {} in registers, {} of them in a unit",
                    plural(others as u64, "other filter"),
                    plural(group.actors.len() as u64, "filter"),
                    group.count()
                ),
                (_, others) => format!("{} in the kernel, no global memory between them", plural(others as u64, "other filter")),
            },
        );
        add(
            "horizontal fusion",
            siblings > 0,
            match siblings {
                0 => "no other filter of the kernel reads its tape".into(),
                some => format!("{} of the kernel read the same tape", plural(some as u64, "other filter")),
            },
        );
        let staged = is_staged(from) || is_staged(to);
        add(
            "staging in shared memory",
            staged || is_shared(from) || is_shared(to),
            match (execution, staged) {
                (_, true) => "neighbouring threads would be words apart, or their windows overlap".into(),
                _ if is_shared(from) || is_shared(to) => "the firings of a unit are shared by threads of the block".into(),
                (Execution::Vectors, false) => {
                    "shared memory is memory in the cache of a core, which holds the tapes anyway".into()
                }
                (Execution::Threads, false) => {
                    "neighbouring threads access neighbouring words, or items stay in registers".into()
                }
            },
        );
        let in_shared = |port: &&crate::planner::restructure::Port| {
            let place = Some(cut.places[port.buffer]);
            is_staged(place) || is_shared(place)
        };
        let mut ports = [&actor.input, &actor.output].into_iter().flatten().filter(in_shared);
        let is_padded = ports.clone().any(|port| cut.padding(&ready.fine, port.buffer) > 0);
        let number = ready.cuts.iter().position(|own| std::ptr::eq(own, cut));
        let loops = number.and_then(|number| ready.loops[number]).filter(|_| cut.actors.first() == Some(&index));
        let is_ahead = is_staged(from) && number.is_some_and(|number| ready.ahead[number].is_some());
        let copies = loops.map_or(1, |loops| loops.copies);
        let is_padded = if cut.shape == Shape::Firing { copies > 1 } else { is_padded };
        add(
            "padding against bank conflicts",
            is_padded,
            match (is_padded, ports.next()) {
                (true, _) if copies > 1 => format!("lanes add to {copies} copies of its arrays, in a bank each"),
                (true, _) => "words are left out behind every 32".into(),
                (false, None) => "no tape is in shared memory".into(),
                (false, Some(_)) if execution == Execution::Vectors => "shared memory is in the cache, which has no banks".into(),
                (false, Some(_)) => "few accesses would use one bank together".into(),
            },
        );
        let helpers = matches!(cut.shape, Shape::Block(_) | Shape::Firing | Shape::Spectrum(_)) || staged;
        add(
            "helper threads",
            helpers,
            match (cut.shape, staged) {
                (Shape::Block(_), _) if cut.rounds(&ready.fine, index).is_some() => {
                    format!("{} share the rounds of its firings, which are few", plural(cut.threads, "thread"))
                }
                (Shape::Block(units), _) => {
                    format!("{} share the firings and loads of {}", plural(cut.threads, "thread"), plural(units as u64, "unit"))
                }
                (Shape::Spectrum(_), _) => format!("{} share the points of two windows", plural(cut.threads, "thread")),
                (Shape::Firing, _) => format!("{} share the rounds of its loops", plural(cut.threads, "thread")),
                (Shape::Thread, true) => "all threads of the block load and store together".into(),
                (Shape::Thread, false) if cut.per_thread > 1 => {
                    format!("each thread has {} and moves several words at a time", plural(cut.per_thread as u64, "unit"))
                }
                (Shape::Thread, false) => "each thread moves its own items side by side with its neighbours".into(),
            },
        );
        add(
            "prefetch",
            loops.is_some_and(|loops| loops.prefetched) || is_ahead,
            match (execution, loops) {
                (_, Some(loops)) if loops.prefetched => "words of the next rounds are loaded before the current ones run".into(),
                _ if is_ahead => "a block loads staged items of its next units while it computes the current ones".into(),
                (Execution::Vectors, _) => "tapes are read in order, which the core prefetches by itself".into(),
                (Execution::Threads, Some(loops)) if loops.by_rows => {
                    "the operations of the other warps take longer than a load".into()
                }
                (Execution::Threads, _) if is_staged(from) => "other blocks compute while one loads what it stages".into(),
                (Execution::Threads, _) => "other warps run while one waits".into(),
            },
        );
        let loops = actor.code.function.body().blocks().filter(|(_, block)| block.loops > 0).count();
        let registers = machine.registers.map_or(String::new(), |registers| {
            format!("; {} registers for each of {} threads", registers / 4 / cut.threads.max(1), cut.threads)
        });
        add(
            "unrolling",
            loops == 0,
            match loops {
                0 => format!("no loop is left in its code{registers}"),
                _ => "its loops have too many rounds, or their number is not known".into(),
            },
        );
        let is_accurate = ready.precision == Precision::Accurate;
        add(
            "combination of linear filters",
            actor.combined,
            match actor.combined {
                true => format!("{} filters are one matrix, with no more products", actor.nodes.len()),
                false if is_accurate => "only with fast floats: one matrix adds in another order".into(),
                false => "it is not linear, has no linear neighbour, or one matrix would have more products".into(),
            },
        );
        let by_transform = matches!(cut.shape, Shape::Spectrum(_));
        add(
            "convolution by FFT",
            by_transform,
            match (&actor.taps, by_transform) {
                (Some(taps), true) => {
                    format!("{} are more than transforms take", plural(taps.coefficients.len() as u64, "product"))
                }
                (Some(taps), false) => {
                    format!("{} take less time than transforms", plural(taps.coefficients.len() as u64, "product"))
                }
                (None, _) if is_accurate => "only with fast floats: transforms round in another order".into(),
                (None, _) => "it is no convolution, has few coefficients, or its items are printed".into(),
            },
        );
        add(
            "reduction",
            cut.shape == Shape::Firing,
            match (cut.shape, actor.code.adds_up) {
                (Shape::Firing, _) if cut.actors[0] != index => {
                    "it adds up the firings of the filter before it, in its kernel".into()
                }
                (Shape::Firing, _) => "its loops add up many items".into(),
                (_, true) => "firings overlap, or its loops cannot be shared".into(),
                _ => "it adds up few items".into(),
            },
        );
        found
    }
}
