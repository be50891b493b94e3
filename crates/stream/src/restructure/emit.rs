//! Kernels of cuts.

use super::ahead::{Ahead, units_of_tile};
use super::cut::{Cut, Place, Shape, padded};
use super::section::{Actor, Port, Section};
use super::wiring::{Range, anchors, apply, keeps_runs};
use crate::translate::Words;
use broadloom_scalar::{
    Array, Axis, Binding, Builder, Element, Function, Literal, Memory, Precision, Type, Unroll, Value, reading, writing,
};
use broadloom_skeleton::kit::{Draft, Writer};
use broadloom_skeleton::{Argument, Count, Output, Program, Result};

/// The buffer alignment that wide programs need, in bytes.
pub(crate) const ALIGNMENT: u64 = 16;

/// The memory of a buffer within a kernel.
#[derive(Clone, Copy)]
pub(super) enum Store {
    Memory(Memory),
    Local(Array),
}

/// A buffer within a kernel.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) store: Store,
    /// The number of the first item in the memory.
    pub(super) start: i64,
    /// Items before the block's own items, in global memory.
    pub(super) base: Option<Value>,
    pub(super) words: Words,
    /// Words left out after every 32 words.
    pub(super) padding: u32,
}

impl Held {
    /// Returns the index of a word, from the number of an item and of a word after its first.
    fn index(&self, k: &Builder, item: Value, word: Option<Value>) -> Value {
        let item = match self.base {
            Some(base) => k.add(base, item),
            None => item,
        };
        let item = if self.start == 0 { item } else { k.sub(item, self.start) };
        let first = if self.words.count == 1 { item } else { k.mul(item, self.words.count) };
        self.pad(k, word.map_or(first, |word| k.add(first, word)))
    }

    /// Returns the index including the padding before it.
    pub(super) fn pad(&self, k: &Builder, index: Value) -> Value {
        match self.padding {
            0 => index,
            words => k.add(index, k.mul(k.shr(index, 5), words as i32)),
        }
    }

    pub(super) fn load(&self, k: &Builder, index: Value) -> Value {
        match self.store {
            Store::Memory(memory) => k.load(memory, index),
            Store::Local(array) => k.element(array, index),
        }
    }

    pub(super) fn store(&self, k: &Builder, index: Value, value: Value) {
        match self.store {
            Store::Memory(memory) => k.store(memory, index, value),
            Store::Local(array) => k.set_element(array, index, value),
        }
    }
}

/// The place of a firing's words. Words are counted from the first word of the firing.
pub(super) struct Window<'w> {
    pub(super) port: &'w Port,
    pub(super) held: Held,
    /// The first item of the firing, on the tape of the actor.
    pub(super) first: Value,
    /// The smallest possible number of an item.
    pub(super) least: i64,
    /// The table of [`anchors`], if there is one.
    pub(super) anchors: &'w [(i64, i64)],
}

impl Window<'_> {
    /// Returns whether the items of a firing are contiguous.
    fn is_run(&self) -> bool {
        let port = self.port;
        port.steps.is_empty() || (port.seen == port.rate && port.start % port.rate == 0 && keeps_runs(&port.steps, port.rate))
    }

    /// Returns the index of a word.
    pub(super) fn index(&self, k: &Builder, position: Value) -> Value {
        if self.is_run() {
            let item = apply(k, &self.port.steps, self.first, self.least);
            return self.held.index(k, item, Some(position));
        }
        let words = self.held.words.count;
        let word = (words > 1).then(|| k.rem(position, words));
        self.held.index(k, self.item(k, position), word)
    }

    /// Returns the number of the item to which a word belongs.
    fn item(&self, k: &Builder, position: Value) -> Value {
        let known = k.as_literal(position).and_then(Literal::as_i128);
        let item = known.and_then(|known| usize::try_from(known / i128::from(self.held.words.count)).ok());
        if let Some((anchor, distance)) = item.and_then(|item| self.anchors.get(item)) {
            let anchor = apply(k, &self.port.steps, k.add(self.first, *anchor), self.least);
            return k.add(anchor, *distance);
        }
        let position = if self.held.words.count == 1 { position } else { k.div(position, self.held.words.count) };
        apply(k, &self.port.steps, k.add(self.first, position), self.least)
    }
}

pub(super) struct Emitter<'e> {
    pub(super) section: &'e Section,
    pub(super) cut: &'e Cut,
    pub(super) k: &'e Writer,
    pub(super) held: Vec<Option<Held>>,
    /// Buffers in global memory, even if a copy in shared memory is used.
    pub(super) global: Vec<Option<Held>>,
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
    pub(super) ahead: Option<&'e Ahead>,
    /// For each actor, the tables of its windows: input, output.
    pub(super) anchors: &'e [[Vec<(i64, i64)>; 2]],
}

/// Writes the program of a cut.
///
/// Its inputs and outputs are the global buffers in the order of the section, then the flag of failed
/// firings. `starts` are the numbers of their first items. Its size is the number of units. Its scalar is the
/// number of the first unit. A `wide` program needs buffers that are aligned to [`ALIGNMENT`]. A program that
/// prefetches launches at most `blocks` blocks.
pub(crate) fn program(
    section: &Section,
    cut: &Cut,
    name: &str,
    starts: &[i64],
    (wide, precision, blocks): (bool, Precision, Option<u64>),
) -> Result<Program> {
    let mut draft = drafted(name, precision);
    let number = draft.scalar(Type::I32);
    let mut arguments = vec![None; section.buffers.len()];
    for (index, (place, buffer)) in cut.places.iter().zip(&section.buffers).enumerate() {
        let ty = Type::of(buffer.words.element);
        match place {
            Place::Read | Place::Staged(_) | Place::Loaded => arguments[index] = Some(Argument::Input(draft.input(ty))),
            Place::Written | Place::Collected(_) | Place::Kept => {
                arguments[index] = Some(Argument::Output(draft.output(Output { ty, count: Count::Constant(0) })));
            }
            Place::Local | Place::Shared(_) | Place::Elsewhere => {}
        }
    }
    let flag = draft.output(Output { ty: Type::U32, count: Count::Constant(1) });
    let block = [cut.threads, 1, 1];
    let k = Writer::new(name, block);
    k.prefer(precision);
    let all = k.convert(k.count(Count::size(0), Type::U32), Type::I32);
    let all = k.assume(all, 0, 1 << 30);
    let whole = if cut.extra == 0 { all } else { k.add(all, cut.extra) };
    let per_block = units_of_tile(cut);
    let block_number = k.convert(k.block(Axis::X), Type::I32);
    let thread = k.convert(k.thread(Axis::X), Type::I32);
    let bad = k.variable_with(k.literal(false));
    let arena = (cut.shared_bytes > 0).then(|| k.shared(Element::U8, cut.shared_bytes as u32));
    let tables: Vec<[Vec<(i64, i64)>; 2]> = (0..section.actors.len()).map(|index| tables(section, cut, index)).collect();
    let first = k.scalar(number, Type::I32);
    let maker = Tiles { section, cut, k: &k, starts, arguments: &arguments, arena, tables: &tables, bad, wide };
    let ends = (thread, all, whole);
    match blocks {
        None => maker.tile(block_number, first, ends, None),
        Some(_) => {
            let global = maker.global(k.literal(0i32));
            let ahead = Ahead::new(&k, section, cut, starts, &global, (thread, whole, block_number));
            let tiles = k.div(k.add(whole, per_block - 1), per_block);
            let blocks = k.convert(k.grid_size(Axis::X), Type::I32);
            k.for_step(block_number, tiles, blocks, Unroll::Never, |tile| {
                maker.tile(tile, first, ends, Some((&ahead, k.add(tile, blocks))));
                // The next tile overwrites this one.
                k.barrier();
            });
        }
    }
    if cut.actors.iter().any(|index| section.actors[*index].code.fails) {
        let flag = k.memory(Argument::Output(flag), Element::U32);
        k.if_then(k.get(bad), || k.store(flag, k.literal(0u32), k.literal(1u32)));
    }
    let tiles = (Count::size(0) + Count::Constant(cut.extra as u64)).div_ceil(Count::Constant(per_block as u64));
    let grid = blocks.map_or(tiles.clone(), |most| tiles.min(Count::Constant(most)));
    draft.launch(k, [grid, 1u32.into(), 1u32.into()], block)?;
    Ok(draft.finish())
}

/// A writer of tiles: the units that a block runs together.
struct Tiles<'t> {
    section: &'t Section,
    cut: &'t Cut,
    k: &'t Writer,
    starts: &'t [i64],
    arguments: &'t [Option<Argument>],
    arena: Option<Memory>,
    tables: &'t [[Vec<(i64, i64)>; 2]],
    bad: broadloom_scalar::Variable,
    wide: bool,
}

impl Tiles<'_> {
    /// Returns the buffers in global memory for the units from `unit` on.
    fn global(&self, unit: Value) -> Vec<Option<Held>> {
        let k = self.k;
        let held = |(index, buffer): (usize, &super::section::Buffer)| {
            self.cut.extents[index]?;
            let words = buffer.words;
            let argument = self.arguments[index].clone()?;
            let store = Store::Memory(k.memory(argument, words.element));
            Some(Held { store, start: self.starts[index], base: Some(k.mul(unit, buffer.items)), words, padding: 0 })
        };
        self.section.buffers.iter().enumerate().map(held).collect()
    }

    /// Writes a tile. If registers hold its words, those of another tile are loaded before it is computed.
    fn tile(&self, tile: Value, first: Value, (thread, all, whole): (Value, Value, Value), ahead: Option<(&Ahead, Value)>) {
        let Tiles { section, cut, k, arena, bad, wide, .. } = *self;
        let (unit, units) = match cut.shape {
            Shape::Thread | Shape::Firing | Shape::Spectrum(_) => {
                (k.mul(k.add(k.mul(tile, cut.threads), thread), cut.per_thread), None)
            }
            Shape::Block(units) => {
                let unit = k.mul(tile, units);
                (unit, Some(k.min(k.sub(whole, unit), units)))
            }
        };
        let mut held = vec![None; section.buffers.len()];
        let global = self.global(unit);
        for (index, (place, buffer)) in cut.places.iter().zip(&section.buffers).enumerate() {
            let (words, element) = (buffer.words, buffer.words.element);
            let Some(extent) = cut.extents[index] else { continue };
            let length = extent.len() * i64::from(words.count);
            let shared = |at: u64| arena.map(|arena| Store::Memory(k.shared_view(arena, element, at as u32)));
            let block = |store: Store| Held { store, start: extent.start, base: None, words, padding: 0 };
            let padding = cut.padding(section, index) as u32;
            held[index] = match (place, cut.shape) {
                (Place::Read | Place::Written | Place::Loaded | Place::Kept, _) => global[index],
                (Place::Local, _) => Some(block(Store::Local(k.array(element, length as u32)))),
                (Place::Shared(at), _) | (Place::Staged(at) | Place::Collected(at), Shape::Block(_)) => {
                    shared(*at).map(|store| Held { padding, ..block(store) })
                }
                (Place::Staged(at) | Place::Collected(at), Shape::Thread | Shape::Firing | Shape::Spectrum(_)) => {
                    let base = Some(k.mul(thread, buffer.items));
                    shared(*at).map(|store| Held { padding, base, ..block(store) })
                }
                (Place::Elsewhere, _) => None,
            };
        }
        let (ahead, next) = ahead.unzip();
        let emitter = Emitter { section, cut, k, held, global, unit, units, all, bad, wide, ahead, anchors: self.tables };
        let load_next = || {
            if let Some((ahead, next)) = ahead.zip(next) {
                ahead.load(k, next);
            }
        };
        match cut.shape {
            Shape::Thread | Shape::Firing | Shape::Spectrum(_) => {
                let of_block = k.mul(tile, cut.threads);
                let units = k.min(k.sub(whole, of_block), cut.threads);
                let full = i64::from(cut.threads);
                if emitter.copy(true, of_block, (units, full), thread) {
                    load_next();
                    k.barrier();
                }
                match cut.places.iter().any(|place| matches!(place, Place::Loaded | Place::Kept)) {
                    true => emitter.by_registers(first, whole),
                    false => k.if_then(k.lt(unit, whole), || emitter.by_thread(first)),
                }
                if cut.places.iter().any(|place| matches!(place, Place::Collected(_))) {
                    k.barrier();
                    emitter.copy(false, of_block, (units, full), thread);
                }
            }
            Shape::Block(_) => emitter.by_block(first, thread, &load_next),
        }
    }
}

/// Returns an empty draft. In accurate programs, products are rounded before they are added.
pub(super) fn drafted(name: &str, precision: Precision) -> Draft {
    let mut draft = Draft::new(name, 1);
    if precision == Precision::Accurate {
        draft.keep_products();
    }
    draft
}

/// Returns the tables of an actor's windows.
fn tables(section: &Section, cut: &Cut, index: usize) -> [Vec<(i64, i64)>; 2] {
    let actor = &section.actors[index];
    [&actor.input, &actor.output].map(|port| match port {
        Some(port) if cut.actors.contains(&index) && !port.steps.is_empty() && port.rate > 0 => {
            anchors(&port.steps, (port.start, port.rate, port.seen), actor.firings)
        }
        _ => vec![],
    })
}

impl Emitter<'_> {
    /// Writes the code of a thread that runs all firings of its unit.
    pub(super) fn by_thread(&self, number: Value) {
        let k = self.k;
        let keeps = self.cut.places.contains(&Place::Local);
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
    fn by_block(&self, number: Value, thread: Value, staged: &dyn Fn()) {
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
                Place::Shared(at) | Place::Staged(at) | Place::Collected(at) => {
                    Some((at, at + padded(words, self.cut.padding(self.section, buffer)) * size))
                }
                Place::Read | Place::Written | Place::Local | Place::Loaded | Place::Kept | Place::Elsewhere => None,
            }
        };
        let full = match self.cut.shape {
            Shape::Block(units) => units,
            Shape::Thread | Shape::Firing | Shape::Spectrum(_) => 1,
        };
        self.copy(true, self.unit, (units, full), thread);
        staged();
        let is_staged = |buffer: &usize| matches!(self.cut.places[*buffer], Place::Staged(_));
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
                    self.fire_code(*index, actor, (&rounds.function, Some(round)), firing, number, range);
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
        self.fire_code(index, actor, (&actor.code.function, None), firing, number, range);
    }

    /// Writes one firing, or a round of one.
    fn fire_code(
        &self,
        index: usize,
        actor: &Actor,
        (code, round): (&Function, Option<Value>),
        firing: Value,
        number: Value,
        range: Range,
    ) {
        let k = self.k;
        // The number that the code sees: finished firings of `work`.
        let unit = k.add(number, self.unit);
        let seen = k.add(k.add(k.mul(unit, actor.firings), firing), actor.first);
        let window = |port: &'_ Port| -> Option<(Held, Value, i64)> {
            let held = self.held[port.buffer]?;
            if port.absolute {
                let number = k.add(k.mul(self.unit, actor.firings), firing);
                let first = k.add(k.mul(number, port.rate), port.start);
                return Some((Held { base: None, ..held }, first, port.start));
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
        if self.cut.places[port.buffer] != Place::Written || port.absolute {
            return None;
        }
        let (firings, wanted) = (self.cut.unit.firings[index]?, self.cut.unit.items[port.buffer]?);
        let made = super::wiring::preimage(&port.steps, wanted);
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
