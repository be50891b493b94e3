//! The choice of cuts: which actors of a section become one kernel, and where its buffers are stored.
//!
//! A kernel has one of four shapes:
//!
//! - *By thread*: a thread runs all firings of a unit. Items between actors stay in registers and local
//!   arrays.
//! - *By block*: the threads of a block share the firings of several units, actor by actor. Items between
//!   actors stay in shared memory. Items that several units need because a filter peeks are computed once for
//!   each block.
//! - *By firing*: a filter that adds up many items has a block for each firing. The kernel may also contain
//!   the filter behind it if that one adds up its firings.
//! - *By spectrum*: a long convolution has a block for every two windows.
//!
//! On machines whose threads run side by side, neighbouring threads should access neighbouring words. A tape
//! where they would be apart, or where windows overlap, is copied through shared memory by all threads of the
//! block.

use super::cut::{BufferPlace, Cut, Shape, cost, padded, padding};
use super::grouping::components;
use super::registers::Registers;
use super::section::{Needs, Port, Role, Section, Users};
use super::wiring::{Range, Step, image};
use broadloom_device::Machine;
use broadloom_skeleton::cost::{Costs, Execution, dataflow};

/// Returns whether the tapes between the actors of a unit are too large for one kernel.
pub(crate) fn is_large(section: &Section) -> bool {
    let bytes = |port: &Option<Port>| {
        let buffer = port.as_ref().map(|port| &section.buffers[port.buffer]).filter(|buffer| buffer.role == Role::Inner);
        buffer.map_or(0, |buffer| buffer.items as u64 * buffer.words.bytes())
    };
    section.actors.iter().any(|actor| bytes(&actor.input) + bytes(&actor.output) > dataflow::SHARED_BYTES)
}

struct Cutter<'a> {
    section: &'a Section,
    costs: Costs<'a>,
    /// Firings and items that one unit of the whole section needs.
    whole: Needs,
    users: Users,
}

/// Cuts a section into kernels for a machine. The `refused` actors, by number, do not share loops.
pub(crate) fn cut(section: &Section, machine: &Machine, refused: &[usize]) -> Vec<Cut> {
    let all = section.actors.len();
    let whole = section.needs(0..all, section.outputs(1));
    let cutter = Cutter { section, costs: Costs::of(machine), whole, users: Users::of(section) };
    let mut cuts = vec![];
    let mut start = 0;
    let adds_up = |index: usize| section.actors[index].code.adds_up && !refused.contains(&index);
    let points = |index: usize| {
        let taps = section.actors[index].taps.as_ref().filter(|_| !refused.contains(&index));
        taps.and_then(|taps| Costs::of(machine).transform(taps.coefficients.len() as u64))
    };
    while start < all {
        let alone = match points(start) {
            Some(points) => cutter.by_spectrum(start, points),
            None if adds_up(start) => {
                let total = (start + 1 < all && !refused.contains(&(start + 1))).then(|| cutter.by_total(start));
                total.flatten().or_else(|| cutter.by_firing(start))
            }
            None => None,
        };
        if let Some(alone) = alone {
            start += alone.actors.len();
            cuts.push(alone);
            continue;
        }
        let all = all.min(start + dataflow::KERNEL_ACTORS);
        let all = (start + 1..all).find(|index| adds_up(*index) || points(*index).is_some()).unwrap_or(all);
        // The largest group of actors that fits, found by halving. One actor always fits, because it needs no
        // memory of its own.
        let mut end = all;
        let found = loop {
            let actors: Vec<usize> = (start..end).collect();
            if let Some(found) = cutter.cut(&actors, end - start == 1) {
                break found;
            }
            end = start + ((end - start) / 2).max(1);
        };
        let mut best = (end, found);
        // The number of actors of a large kernel is searched, that of others is counted up.
        let mut refused = (start + 2 * (end - start)).min(all) + 1;
        while best.0 - start > dataflow::COUNTED_ACTORS && refused - best.0 > 1 {
            let middle = best.0 + (refused - best.0) / 2;
            let actors: Vec<usize> = (start..middle).collect();
            match cutter.cut(&actors, false) {
                Some(more) => best = (middle, more),
                None => refused = middle,
            }
        }
        // More actors are then added one by one.
        while best.0 < all {
            let actors: Vec<usize> = (start..best.0 + 1).collect();
            match cutter.cut(&actors, false) {
                Some(more) => best = (best.0 + 1, more),
                None => break,
            }
        }
        cutter.group(&mut best.1);
        cuts.push(best.1);
        start = best.0;
    }
    cuts
}

/// Makes the straight translation: a kernel for each actor, a thread for each firing, all buffers in global
/// memory.
pub fn straight(section: &Section, machine: &Machine) -> Vec<Cut> {
    let whole = section.needs(0..section.actors.len(), section.outputs(1));
    let cutter = Cutter { section, costs: Costs::of(machine), whole, users: Users::of(section) };
    let one = |index: usize| cutter.cut(&[index], true).map(|cut| cutter.plain(cut, index));
    (0..section.actors.len()).filter_map(one).collect()
}

impl Cutter<'_> {
    /// Returns the cut of an actor with a block for each firing, if nothing is computed twice.
    fn by_firing(&self, index: usize) -> Option<Cut> {
        let mut cut = self.cut(&[index], true)?;
        let actor = &self.section.actors[index];
        // Strided items are better read by neighbouring threads of many firings.
        let runs = actor.input.as_ref().is_some_and(|port| port.steps.is_empty());
        let few = self.costs.execution() == Execution::Threads && actor.firings <= dataflow::BLOCK_FIRINGS;
        if !(runs || few) || cut.extra > 0 || cut.unit.firings[index].is_none_or(|range| range.len() != actor.firings) {
            return None;
        }
        cut.places.iter_mut().for_each(|place| *place = place.direct());
        let threads = self.costs.pick(dataflow::FIRING_THREADS);
        Some(Cut { shape: Shape::Firing, threads, shared_bytes: 0, per_thread: 1, ..cut })
    }

    /// Returns the cut of an actor and of the one behind it, which adds up the items pushed by all its
    /// firings in a unit.
    ///
    /// Firing *j* of the second actor takes item *j* of every firing of the first.
    fn by_total(&self, index: usize) -> Option<Cut> {
        let (first, last) = (&self.section.actors[index], &self.section.actors[index + 1]);
        let (from, to) = (first.output.as_ref()?, last.input.as_ref()?);
        let dealt = Step::Shuffle { branches: from.rate, split: Some(1), join: to.rate, inner: vec![] };
        let dealt = match from.rate {
            1 => to.steps.is_empty(),
            _ => to.steps == [dealt],
        };
        let whole = |port: &Port| port.start == 0 && port.seen == port.rate && !port.absolute;
        let fits = first.code.pushes_sums
            && last.code.adds_items
            && !last.code.fails
            && !first.has_prework
            && !last.has_prework
            && from.buffer == to.buffer
            && from.steps.is_empty()
            && dealt
            && whole(from)
            && whole(to)
            && first.firings == to.rate
            && last.firings == from.rate
            && first.firings > 1;
        if !fits || self.by_firing(index).is_none() {
            return None;
        }
        let mut cut = self.base(&[index, index + 1])?;
        let exact = |index: usize, firings: i64| cut.unit.firings[index] == Some(Range::new(0, firings));
        let shared = matches!(cut.places[from.buffer], BufferPlace::Shared(_));
        if !shared || cut.extra > 0 || !exact(index, first.firings) || !exact(index + 1, last.firings) {
            return None;
        }
        cut.places.iter_mut().for_each(|place| *place = place.direct());
        let threads = self.costs.pick(dataflow::TOTAL_THREADS);
        Some(Cut { shape: Shape::Firing, threads, shared_bytes: 0, per_thread: 1, ..cut })
    }

    /// Returns the cut of a convolution by Fourier transforms.
    fn by_spectrum(&self, index: usize, points: u32) -> Option<Cut> {
        let mut cut = self.cut(&[index], true)?;
        cut.places.iter_mut().for_each(|place| *place = place.direct());
        Some(Cut { shape: Shape::Spectrum(points), threads: points / 4, shared_bytes: 0, per_thread: 1, ..cut })
    }

    /// Returns the cut of one actor with a thread for each firing and without copies in shared memory.
    fn plain(&self, cut: Cut, index: usize) -> Cut {
        let mut cut = Cut { shared_bytes: 0, per_thread: 1, ..cut };
        cut.places.iter_mut().for_each(|place| *place = place.direct());
        let firings = self.section.actors[index].firings;
        if firings > 1 {
            let units = (i64::from(cut.threads) / firings).clamp(1, dataflow::BLOCK_UNITS);
            let each = cut.places.iter().zip(&self.section.buffers).zip(&self.whole.items);
            let wanted = each.map(|((place, buffer), items)| match (place, items) {
                (BufferPlace::Written, Some(items)) => Some(Range::new(items.start, items.start + units * buffer.items)),
                _ => None,
            });
            cut.block = self.section.needs([index].into_iter(), wanted.collect());
            cut.shape = Shape::Block(units);
            cut.extents = self.extents(&cut, &cut.block);
        }
        cut
    }

    /// Returns the output items of a kernel that `units` units need. Crossing buffers begin with the first
    /// item that any actor needs.
    fn wanted(&self, places: &[BufferPlace], units: i64) -> Vec<Option<Range>> {
        let each = places.iter().zip(&self.section.buffers).zip(&self.whole.items);
        each.map(|((place, buffer), items)| match (place, items) {
            (BufferPlace::Written, Some(items)) => Some(Range::new(items.start, items.start + units * buffer.items)),
            _ => None,
        })
        .collect()
    }

    /// Returns a cut of the given actors with a unit for each thread. Items between them are in shared memory
    /// that is not laid out yet.
    fn base(&self, actors: &[usize]) -> Option<Cut> {
        let section = self.section;
        let mut inside = vec![false; section.actors.len()];
        actors.iter().for_each(|index| inside[*index] = true);
        let mut places = vec![BufferPlace::Elsewhere; section.buffers.len()];
        for (buffer, place) in places.iter_mut().enumerate() {
            let (readers, writers) = (&self.users.readers[buffer], &self.users.writers[buffer]);
            let is_read = readers.iter().any(|index| inside[*index]);
            let is_written = writers.iter().any(|index| inside[*index]);
            let from_outside = section.buffers[buffer].role == Role::Input || writers.iter().any(|index| !inside[*index]);
            let to_outside = section.buffers[buffer].role == Role::Output || readers.iter().any(|index| !inside[*index]);
            *place = match (is_read, is_written) {
                (false, false) => BufferPlace::Elsewhere,
                // A buffer that several kernels write in parts may only be read by later kernels.
                (true, true) if from_outside || to_outside => return None,
                (true, true) => BufferPlace::Shared(0),
                (true, false) => BufferPlace::Read,
                (false, true) => BufferPlace::Written,
            };
        }
        let unit = section.needs(actors.iter().copied(), self.wanted(&places, 1));
        let extra =
            places.iter().zip(&section.buffers).zip(&self.whole.items).map(|((place, buffer), items)| match (place, items) {
                (BufferPlace::Written, Some(items)) if buffer.items > 0 => (items.len() + buffer.items - 1) / buffer.items - 1,
                _ => 0,
            });
        let extra = extra.max().unwrap_or(0).max(0);
        let mut cut = Cut {
            actors: actors.to_vec(),
            shape: Shape::Thread,
            threads: self.costs.pick(dataflow::THREADS),
            per_thread: 1,
            padded: self.costs.execution() == Execution::Threads,
            places,
            block: unit.clone(),
            unit,
            extents: vec![],
            shared_bytes: 0,
            components: vec![],
            last: self.whole.firings.iter().map(|range| range.map(|range| range.end)).collect(),
            extra,
        };
        cut.extents = self.extents(&cut, &cut.unit);
        Some(cut)
    }

    /// Returns a cut of the given actors if they fit into one kernel.
    fn cut(&self, actors: &[usize], must: bool) -> Option<Cut> {
        let section = self.section;
        let mut cut = self.base(actors)?;
        if self.fits_thread(&cut) {
            for place in &mut cut.places {
                if matches!(place, BufferPlace::Shared(_)) {
                    *place = BufferPlace::Local;
                }
            }
            self.keep_in_registers(&mut cut);
            self.stage_by_thread(&mut cut);
            return Some(cut);
        }
        // By block: units are added until every thread has enough to do and recomputed firings are few.
        let mut best = None;
        let staged = self.staged_by_block(&cut);
        for places in [staged, cut.places.clone()] {
            let mut units = 1;
            loop {
                let block = section.needs(actors.iter().copied(), self.wanted(&cut.places, units));
                let mut next = Cut { shape: Shape::Block(units), block, places: places.clone(), ..cut.clone() };
                next.extents = self.extents(&next, &next.block);
                self.lay_out(&mut next);
                if next.shared_bytes > dataflow::SHARED_BYTES {
                    break;
                }
                let enough = self.is_enough(&next, units);
                best = Some(next);
                if enough || units >= dataflow::BLOCK_UNITS {
                    break;
                }
                units *= 2;
            }
            if best.is_some() {
                break;
            }
        }
        if best.is_none() && must {
            // One actor with its tapes in global memory: a unit for each thread, or a firing for each thread
            // if there are many.
            let index = actors[0];
            return Some(if section.actors[index].firings >= dataflow::MANY_FIRINGS { self.plain(cut, index) } else { cut });
        }
        best
    }

    /// Returns the items of buffers that a block reads or writes.
    fn extents(&self, cut: &Cut, needs: &Needs) -> Vec<Option<Range>> {
        let mut extents = needs.items.clone();
        for index in &cut.actors {
            let actor = &self.section.actors[*index];
            if let (Some(firings), Some(output)) = (needs.firings[*index], &actor.output) {
                let made = image(&output.steps, output.items(firings));
                let slot = &mut extents[output.buffer];
                *slot = Some(slot.map_or(made, |known| known.hull(made)));
            }
        }
        extents
    }

    /// Returns whether a thread can run a unit by itself: it computes nothing twice and keeps few words.
    fn fits_thread(&self, cut: &Cut) -> bool {
        let words = |buffer: usize| match (cut.places[buffer], cut.extents[buffer]) {
            (BufferPlace::Shared(_), Some(extent)) => extent.len() as u64 * u64::from(self.section.buffers[buffer].words.count),
            _ => 0,
        };
        let all: u64 = (0..cut.places.len()).map(words).sum();
        // If all firings are unrolled, a buffer takes registers from its first use to its last.
        let mut begins = vec![(0, 0); cut.actors.len()];
        for (buffer, words) in (0..cut.places.len()).map(|buffer| (buffer, words(buffer))).filter(|(_, words)| *words > 0) {
            let (first, last) = self.used(cut, buffer);
            begins[first].0 += words;
            begins[last].1 += words;
        }
        let (mut live, mut most) = (0, 0);
        for (begun, ended) in begins {
            live += begun;
            most = most.max(live);
            live -= ended;
        }
        let is_written_out = cut.is_written_out(self.section);
        let kept = if is_written_out { most } else { all };
        let shares = cut.actors.iter().any(|index| self.section.actors[*index].firings >= dataflow::MANY_FIRINGS);
        if shares && !is_written_out {
            return false;
        }
        let exact =
            |index: &usize| cut.unit.firings[*index].is_none_or(|range| range.len() <= self.section.actors[*index].firings);
        kept <= self.costs.pick(dataflow::THREAD_WORDS) && cut.actors.iter().all(exact)
    }

    /// Returns whether this kernel is the only writer of a buffer.
    fn is_alone(&self, cut: &Cut, buffer: usize) -> bool {
        self.users.writers[buffer].iter().all(|index| cut.actors.binary_search(index).is_ok())
    }

    /// Returns the positions of the first and the last actor of a kernel that use a buffer.
    fn used(&self, cut: &Cut, buffer: usize) -> (usize, usize) {
        let positions = || self.users.all(buffer).filter_map(|index| cut.actors.binary_search(&index).ok());
        (positions().min().unwrap_or(0), positions().max().unwrap_or(0))
    }

    /// Keeps the tapes of a unit in registers if its firings are unrolled. Contiguous words use vector loads
    /// and stores. On threads, each thread runs several small units, so that it has several accesses in
    /// flight. Lanes of vectors load and store quads, which are transposed in registers.
    fn keep_in_registers(&self, cut: &mut Cut) {
        if cut.extra > 0 || !cut.is_written_out(self.section) {
            return;
        }
        let threads = self.costs.execution() == Execution::Threads;
        let is_used = |buffer: usize| matches!(cut.places[buffer], BufferPlace::Read | BufferPlace::Written);
        let of = |buffer: usize| is_used(buffer).then(|| Registers::of(self.section, cut, buffer)).flatten();
        let found: Vec<Option<Registers>> = (0..cut.places.len()).map(of).collect();
        let words = |buffer: usize| self.section.buffers[buffer].items * i64::from(self.section.buffers[buffer].words.count);
        let mut kept = 0;
        for (buffer, registers) in found.iter().enumerate().filter(|(_, registers)| registers.is_some()) {
            if !threads && words(buffer) % dataflow::QUAD != 0 {
                continue;
            }
            match cut.places[buffer] {
                BufferPlace::Read => cut.places[buffer] = BufferPlace::Loaded,
                BufferPlace::Written if self.is_alone(cut, buffer) => cut.places[buffer] = BufferPlace::Kept,
                _ => continue,
            }
            kept += if registers.as_ref().is_some_and(|own| own.post.is_none()) { words(buffer) } else { i64::from(u16::MAX) };
        }
        let all = cut.actors.iter().map(|index| &self.section.actors[*index]);
        let operations: u64 = all.map(|actor| cost(actor).saturating_mul(actor.firings as u64)).fold(0, u64::saturating_add);
        let direct = cut.places.iter().any(|place| matches!(place, BufferPlace::Read | BufferPlace::Written));
        if threads && !direct && kept > 0 && operations <= dataflow::SHORT_UNIT {
            // If each thread has one access, neighbouring threads store whole sectors together.
            let stored = |units: i64| {
                let outputs = cut.places.iter().zip(&self.section.buffers).filter(|(place, _)| **place == BufferPlace::Kept);
                outputs.map(|(_, own)| units * own.items * own.words.bytes() as i64).max().unwrap_or(0)
            };
            let narrow = stored(1) > i64::from(dataflow::ACCESS_BYTES);
            let fits = |units: &i64| {
                kept * units <= dataflow::THREAD_UNIT_WORDS && (narrow || stored(*units) <= i64::from(dataflow::ACCESS_BYTES))
            };
            cut.per_thread = dataflow::THREAD_UNITS.into_iter().find(fits).unwrap_or(1);
        }
    }

    /// Returns whether the items of a unit are scattered over a buffer.
    fn is_scattered(&self, buffer: usize) -> bool {
        let actors = self.users.all(buffer).map(|index| &self.section.actors[index]);
        let mut ports = actors.flat_map(|actor| [&actor.input, &actor.output]).flatten();
        ports.any(|port| port.buffer == buffer && port.absolute)
    }

    /// Copies tapes of a kernel by thread through shared memory if neighbouring threads would access words
    /// with a stride.
    fn stage_by_thread(&self, cut: &mut Cut) {
        if cut.extra > 0 || self.costs.execution() != Execution::Threads {
            return;
        }
        let (mut at, mut places) = (0, cut.places.clone());
        for (buffer, place) in places.iter_mut().enumerate() {
            let (BufferPlace::Read | BufferPlace::Written, Some(extent)) = (*place, cut.extents[buffer]) else { continue };
            let own = &self.section.buffers[buffer];
            let apart = own.items * i64::from(own.words.count);
            // A thread must write its part as a whole, and no other kernel may write the tape.
            let alone = self.is_alone(cut, buffer);
            let whole = extent.len() == own.items && cut.unit.items[buffer] == Some(extent);
            if apart < 2 || self.is_scattered(buffer) || (*place == BufferPlace::Written && !(alone && whole)) {
                continue;
            }
            let items = (i64::from(cut.threads) - 1) * own.items + extent.len();
            let bytes =
                padded(items as u64 * u64::from(own.words.count), padding(own.words)) * u64::from(own.words.element.bytes());
            *place = if *place == BufferPlace::Read { BufferPlace::Staged(at) } else { BufferPlace::Collected(at) };
            at += bytes.next_multiple_of(16);
        }
        if at > 0 && at <= dataflow::SHARED_BYTES {
            cut.places = places;
            cut.shared_bytes = at;
        }
    }

    /// Returns the places of a kernel by block that stages inputs in shared memory if windows overlap or
    /// threads would access words with a stride.
    fn staged_by_block(&self, cut: &Cut) -> Vec<BufferPlace> {
        let mut places = cut.places.clone();
        if cut.extra > 0 || self.costs.execution() != Execution::Threads {
            return places;
        }
        for (buffer, place) in places.iter_mut().enumerate() {
            let words = i64::from(self.section.buffers[buffer].words.count);
            let apart = |index: &usize| {
                let port = self.section.actors[*index].input.as_ref().filter(|port| port.buffer == buffer);
                port.is_some_and(|port| port.seen * words > 1)
            };
            if *place == BufferPlace::Read && !self.is_scattered(buffer) && cut.actors.iter().any(apart) {
                *place = BufferPlace::Staged(0);
            }
        }
        places
    }

    fn is_enough(&self, cut: &Cut, units: i64) -> bool {
        let firings = |needs: &Needs| cut.actors.iter().filter_map(|index| needs.firings[*index]).map(Range::len).sum::<i64>();
        let own: i64 = cut.actors.iter().map(|index| self.section.actors[*index].firings * units).sum();
        let rounds = |index: &usize| cut.rounds(self.section, *index).map_or(1, |rounds| i64::from(rounds.count));
        let shared: i64 = cut.actors.iter().map(|index| self.section.actors[*index].firings * units * rounds(index)).sum();
        // Every actor must have work for all threads, and all actors together must have more.
        let each = |index: &usize| self.section.actors[*index].firings * units * rounds(index) >= i64::from(cut.threads);
        let enough = shared >= cut.actors.len() as i64 * i64::from(cut.threads) * dataflow::THREAD_FIRINGS;
        let busy = enough && cut.actors.iter().all(each);
        busy && dataflow::repeats_few(firings(&cut.block) - own, own)
    }

    /// Finds firings of several actors of a kernel by block that a thread runs in registers. Items between
    /// them take no memory. Their inputs are not staged, because a thread loads the words of a component at
    /// once.
    fn group(&self, cut: &mut Cut) {
        if !matches!(cut.shape, Shape::Block(_)) {
            return;
        }
        let by_place = self.costs.execution() == Execution::Vectors;
        let found = components(self.section, cut, dataflow::COMPONENT_WORDS, by_place);
        let mut next = cut.clone();
        for group in &found {
            group.inner.iter().for_each(|buffer| next.places[*buffer] = BufferPlace::Local);
        }
        for buffer in 0..next.places.len() {
            let reads = |index: &usize| {
                self.section.actors[*index].input.as_ref().is_some_and(|port| port.buffer == buffer)
                    && !found.iter().any(|group| group.actors.len() > 1 && group.actors.contains(index))
            };
            if matches!(next.places[buffer], BufferPlace::Staged(_)) && !cut.actors.iter().any(reads) {
                next.places[buffer] = BufferPlace::Read;
            }
        }
        next.components = found;
        self.lay_out(&mut next);
        if !next.components.is_empty() && next.shared_bytes <= dataflow::SHARED_BYTES {
            *cut = next;
        }
    }

    /// Assigns offsets in shared memory to buffers. Buffers that are not live at the same time share memory.
    fn lay_out(&self, cut: &mut Cut) {
        let mut taken: Vec<(u64, u64, usize, usize)> = vec![];
        let mut placed: Vec<Option<usize>> = vec![None; cut.places.len()];
        cut.shared_bytes = 0;
        for buffer in 0..cut.places.len() {
            let (BufferPlace::Shared(_) | BufferPlace::Staged(_), Some(extent)) = (cut.places[buffer], cut.extents[buffer])
            else {
                continue;
            };
            let own = self.section.buffers[buffer].words;
            let words = extent.len() as u64 * u64::from(own.count);
            let is_staged = matches!(cut.places[buffer], BufferPlace::Staged(_));
            let words = padded(words, cut.padding_among(self.section, buffer, self.users.all(buffer)));
            let bytes = (words * u64::from(own.element.bytes())).next_multiple_of(16);
            let used = self.used(cut, buffer);
            // Actors whose firings form components read and write at the same time.
            let span = |position: usize| {
                let group = cut.components.iter().find(|group| group.actors.contains(&cut.actors[position]));
                let at = |index: Option<&usize>| cut.actors.iter().position(|own| Some(own) == index).unwrap_or(position);
                group.map_or((position, position), |group| (at(group.actors.first()), at(group.actors.last())))
            };
            // Staged items are live from the start.
            let first = if is_staged { 0 } else { span(used.0).0 };
            let last = span(used.1).1;
            // Components that work in place use the same memory for both tapes.
            let group = cut.components.iter().find(|group| group.in_place && group.outputs == [buffer]);
            let before = group.and_then(|group| placed[group.inputs[0]]).filter(|at: &usize| taken[*at].3 <= span(first).1);
            if let Some(at) = before {
                taken[at].3 = last;
                placed[buffer] = Some(at);
                cut.places[buffer] = BufferPlace::Shared(taken[at].0);
                continue;
            }
            let mut at = 0;
            let mut conflicts: Vec<(u64, u64)> =
                taken.iter().filter(|other| other.2 <= last && first <= other.3).map(|other| (other.0, other.1)).collect();
            conflicts.sort_unstable();
            for (start, end) in conflicts {
                if at + bytes <= start {
                    break;
                }
                at = at.max(end);
            }
            placed[buffer] = Some(taken.len()).filter(|_| !is_staged);
            taken.push((at, at + bytes, first, last));
            cut.shared_bytes = cut.shared_bytes.max(at + bytes);
            cut.places[buffer] = match cut.places[buffer] {
                BufferPlace::Staged(_) => BufferPlace::Staged(at),
                _ => BufferPlace::Shared(at),
            };
        }
    }
}
