//! Code of the firings of a thread or of a block.

use super::ahead::PrefetchedTile;
use super::memory::{KernelBuffer, Window};
use crate::planner::restructure::cut::{BufferPlace, Cut, Shape, padded};
use crate::planner::restructure::section::{Actor, Port, Section};
use crate::planner::restructure::wiring::{Range, preimage};
use broadloom_scalar::{Binding, Builder, Function, Unroll, Value, reading, writing};
use broadloom_skeleton::kit::Writer;

/// A writer of the code of a thread or of a block.
pub(super) struct Emitter<'e> {
    pub(super) section: &'e Section,
    pub(super) cut: &'e Cut,
    pub(super) k: &'e Writer,
    pub(super) held: Vec<Option<KernelBuffer>>,
    /// Buffers in global memory, even if a copy in shared memory is used.
    pub(super) global: Vec<Option<KernelBuffer>>,
    /// The number of the first unit of the block or thread.
    pub(super) unit: Value,
    /// Units of the block, if they may be fewer than those of a full block.
    pub(super) units: Option<Value>,
    /// All units of the batch.
    pub(super) all: Value,
    pub(super) bad: broadloom_scalar::Variable,
    /// True if accesses to global memory use vector loads and stores.
    pub(super) wide: bool,
    /// Registers with prefetched words of the tile.
    pub(super) ahead: Option<&'e PrefetchedTile>,
    /// For each actor, the tables of its windows: input, output.
    pub(super) anchors: &'e [[Vec<(i64, i64)>; 2]],
}

impl Emitter<'_> {
    /// Writes the code of a thread that runs all firings of its unit.
    pub(super) fn by_thread(&self, number: Value) {
        let k = self.k;
        let keeps = self.cut.places.contains(&BufferPlace::Local);
        let unroll = if keeps && self.cut.is_written_out(self.section) { Unroll::Full } else { Unroll::Auto };
        for index in &self.cut.actors {
            let Some(firings) = self.cut.unit.firings[*index] else { continue };
            let actor = &self.section.actors[*index];
            let (start, end) = (k.literal(firings.start as i32), k.literal(firings.end as i32));
            match self.last(*index) {
                None if firings.len() == 1 => self.fire(*index, actor, start, number, firings),
                None => {
                    k.for_step(start, end, 1, unroll, |firing| self.fire(*index, actor, firing, number, firings));
                }
                Some(last) => {
                    let end = k.min(last, firings.end);
                    k.for_step(start, end, 1, Unroll::Never, |firing| self.fire(*index, actor, firing, number, firings));
                }
            }
        }
    }

    /// Writes the code of a block whose threads share the firings of its units, actor by actor. `staged` is
    /// called after the copies of inputs.
    pub(super) fn by_block(&self, number: Value, thread: Value, staged: &dyn Fn()) {
        let k = self.k;
        let Some(units) = self.units else { return };
        // Byte ranges of shared memory that were read and written since the last barrier.
        let (mut read, mut written) = (Vec::<(u64, u64)>::new(), Vec::<(u64, u64)>::new());
        let bytes_of = |buffer: usize| {
            let extent = self.cut.extents[buffer]?;
            let own = self.section.buffers[buffer].words;
            let words = extent.len() as u64 * u64::from(own.count);
            let size = u64::from(own.element.bytes());
            match self.cut.places[buffer] {
                BufferPlace::Shared(at) | BufferPlace::Staged(at) | BufferPlace::Collected(at) => {
                    Some((at, at + padded(words, self.cut.padding(self.section, buffer)) * size))
                }
                BufferPlace::Read
                | BufferPlace::Written
                | BufferPlace::Local
                | BufferPlace::Loaded
                | BufferPlace::Kept
                | BufferPlace::Elsewhere => None,
            }
        };
        let full = match self.cut.shape {
            Shape::Block(units) => units,
            Shape::Thread | Shape::Firing | Shape::Spectrum(_) => 1,
        };
        self.copy(true, self.unit, units, full, thread);
        staged();
        let is_staged = |buffer: &usize| matches!(self.cut.places[*buffer], BufferPlace::Staged(_));
        written.extend((0..self.cut.places.len()).filter(is_staged).filter_map(bytes_of));
        let overlaps = |list: &[(u64, u64)], own: Option<(u64, u64)>| {
            own.is_some_and(|own| list.iter().any(|other| own.0 < other.1 && other.0 < own.1))
        };
        // Writers of one buffer write disjoint parts of it.
        let mut writing: Vec<usize> = vec![];
        for index in &self.cut.actors {
            let Some(firings) = self.cut.unit.firings[*index] else { continue };
            let actor = &self.section.actors[*index];
            let group = self.cut.components.iter().find(|group| group.actors.contains(index));
            if group.is_some_and(|group| group.actors[0] != *index) {
                continue;
            }
            let buffer = |port: &Option<Port>| port.iter().map(|port| port.buffer).collect::<Vec<usize>>();
            let (sources, sinks) = match group {
                Some(group) => (group.inputs.clone(), group.outputs.clone()),
                None => (buffer(&actor.input), buffer(&actor.output)),
            };
            let waits = sources.iter().any(|source| overlaps(&written, bytes_of(*source)))
                || sinks.iter().any(|sink| {
                    let own = bytes_of(*sink);
                    overlaps(&read, own) || (!writing.contains(sink) && overlaps(&written, own))
                });
            if waits {
                k.barrier();
                read.clear();
                written.clear();
                writing.clear();
            }
            read.extend(sources.into_iter().filter_map(bytes_of));
            written.extend(sinks.iter().copied().filter_map(bytes_of));
            writing.extend(sinks);
            if let Some(group) = group {
                self.by_component(group, thread, units);
                continue;
            }
            // Firings of the block: those of a unit, and a unit's firings more for each further unit.
            let more = k.mul(k.sub(units, 1), actor.firings);
            let mut end = k.add(more, firings.end);
            if let Some(last) = self.last(*index) {
                end = k.min(end, last);
            }
            let range = self.cut.block.firings[*index].unwrap_or(firings);
            if let Some(rounds) = self.cut.rounds(self.section, *index) {
                let (count, first) = (rounds.count as i32, firings.start as i32);
                let all = k.mul(k.sub(end, first), count);
                k.for_step(thread, all, self.cut.threads, Unroll::Never, |place| {
                    let (firing, round) = (k.add(k.div(place, count), first), k.rem(place, count));
                    self.fire_code(*index, &rounds.function, Some(round), firing, number, range);
                });
                continue;
            }
            let start = k.add(thread, firings.start);
            k.for_step(start, end, self.cut.threads, Unroll::Never, |firing| {
                self.fire(*index, actor, firing, number, range);
            });
        }
    }

    /// Returns the end of the firings of an actor for which the batch has items, counted from the first unit
    /// here.
    fn last(&self, index: usize) -> Option<Value> {
        let (k, last) = (self.k, self.cut.last[index].filter(|_| self.cut.extra > 0)?);
        let left = k.sub(self.all, k.add(self.unit, 1));
        Some(k.add(k.mul(left, self.section.actors[index].firings), last))
    }

    /// Writes one firing.
    pub(super) fn fire(&self, index: usize, actor: &Actor, firing: Value, number: Value, range: Range) {
        self.fire_code(index, &actor.code.function, None, firing, number, range);
    }

    /// Writes one firing, or a round of one.
    fn fire_code(&self, index: usize, code: &Function, round: Option<Value>, firing: Value, number: Value, range: Range) {
        let (k, actor) = (self.k, &self.section.actors[index]);
        // The number that the code sees: finished firings of `work`.
        let unit = k.add(number, self.unit);
        let seen = k.add(k.add(k.mul(unit, actor.firings), firing), actor.first);
        let window = |port: &'_ Port| -> Option<(KernelBuffer, Value, i64)> {
            let held = self.held[port.buffer]?;
            if port.absolute {
                let number = k.add(k.mul(self.unit, actor.firings), firing);
                let first = k.add(k.mul(number, port.rate), port.start);
                return Some((KernelBuffer { base: None, ..held }, first, port.start));
            }
            let first = k.add(k.mul(firing, port.rate), port.start);
            Some((held, first, port.items(range).start))
        };
        let input = actor.input.as_ref().and_then(|port| {
            let (held, first, least) = window(port)?;
            Some(Window { port, held, first, least, anchors: self.anchors.get(index).map_or(&[], |both| &both[0]) })
        });
        let output = actor.output.as_ref().and_then(|port| {
            let (held, first, least) = window(port)?;
            Some(Window { port, held, first, least, anchors: self.anchors.get(index).map_or(&[], |both| &both[1]) })
        });
        let guard = output.as_ref().and_then(|window| self.guard(index, window.port));
        let mut read = input
            .as_ref()
            .map(|window| reading(move |k: &Builder, position: &[Value]| window.held.load(k, window.index(k, position[0]))));
        let mut write = output.as_ref().map(|window| {
            writing(move |k: &Builder, position: &[Value], value: Value| {
                let at = window.index(k, position[0]);
                match guard {
                    None => window.held.store(k, at, value),
                    Some((low, high)) => {
                        let item = window.item(k, position[0]);
                        let inside = k.and(k.ge(item, low), k.lt(item, high));
                        k.if_then(inside, || window.held.store(k, at, value));
                    }
                }
            })
        });
        let mut bindings: Vec<&mut dyn Binding> = vec![];
        if let Some(read) = &mut read {
            bindings.push(read);
        }
        if let Some(write) = &mut write {
            bindings.push(write);
        }
        let arguments: Vec<Value> = [seen].into_iter().chain(round).collect();
        let results = k.inline(code, &arguments, &mut bindings);
        if actor.code.fails {
            k.set(self.bad, k.or(k.get(self.bad), results[0]));
        }
    }

    /// Returns the range of output items that the block may store, if its firings compute other items too.
    fn guard(&self, index: usize, port: &Port) -> Option<(Value, Value)> {
        let k = self.k;
        if self.cut.places[port.buffer] != BufferPlace::Written || port.absolute {
            return None;
        }
        let (firings, wanted) = (self.cut.unit.firings[index]?, self.cut.unit.items[port.buffer]?);
        let made = preimage(&port.steps, wanted);
        if port.items(firings) == made {
            return None;
        }
        let low = k.literal(wanted.start as i32);
        let items = self.section.buffers[port.buffer].items;
        let high = match self.units {
            Some(units) => k.add(k.mul(units, items), wanted.start),
            None => k.literal((wanted.start + items) as i32),
        };
        Some((low, high))
    }
}
