//! Code of components: each thread runs whole components in registers.

use super::emitter::Emitter;
use super::memory::{BufferMemory, KernelBuffer};
use crate::planner::restructure::components::{Class, Components, Word, code};
use broadloom_scalar::{Binding, Builder, Unroll, Value, reading, writing};
use broadloom_skeleton::cost::dataflow;
use std::cell::{Cell, RefCell};

/// Contiguous words of one access.
struct ContiguousWords<'w> {
    words: Vec<&'w Word>,
}

impl Emitter<'_> {
    /// Writes the code by which the threads of a block share the components of its units.
    pub(super) fn by_component(&self, own: &Components, thread: Value, units: Value) {
        let (k, threads) = (self.k, i64::from(self.cut.threads));
        for class in &own.classes {
            let count = class.count;
            if count % threads == 0 {
                // Each thread runs some components of every unit.
                k.for_step(k.literal(0i32), units, 1, Unroll::Never, |unit| {
                    k.for_step(thread, k.literal(count as i32), threads as u32, Unroll::Never, |component| {
                        self.component(class, unit, component);
                    });
                });
            } else if threads % count == 0 {
                // Each thread runs one component of some units.
                let (first, component) = (k.div(thread, count as i32), k.rem(thread, count as i32));
                k.for_step(first, units, (threads / count) as u32, Unroll::Never, |unit| self.component(class, unit, component));
            } else {
                k.for_step(thread, k.mul(units, count), threads as u32, Unroll::Never, |place| {
                    self.component(class, k.div(place, count as i32), k.rem(place, count as i32));
                });
            }
        }
    }

    /// Writes the code of one component of a unit.
    fn component(&self, class: &Class, unit: Value, component: Value) {
        let k = self.k;
        let values: RefCell<Vec<Option<Value>>> = RefCell::new(vec![None; class.registers]);
        let loads = self.runs(&class.loads);
        let load = |run: &ContiguousWords<'_>| {
            let Some((held, at)) = self.place(run, class, unit, component) else { return };
            let BufferMemory::Memory(memory) = held.store else { return };
            let lanes = run.words.len();
            let value = if lanes == 1 { k.load(memory, at) } else { k.load_vector(memory, at, lanes) };
            for (lane, word) in run.words.iter().enumerate() {
                values.borrow_mut()[word.register] = Some(k.lane(value, lane));
            }
        };
        // Several operations find their words in registers. A single operation loads them at its reads.
        if class.operations.len() > 1 {
            loads.iter().for_each(load);
        }
        for operation in &class.operations {
            let (function, rounds) = code(&self.section.actors[operation.actor]);
            let round = (rounds > 1).then(|| {
                let sum = k.add(operation.round.sum(k, component, class.count), operation.round.start as i32);
                k.assume(sum, 0, i128::from(rounds) - 1)
            });
            let (reads, writes) = (Cell::new(0), Cell::new(0));
            let mut read = reading(|k: &Builder, _: &[Value]| {
                let register = operation.reads.get(reads.replace(reads.get() + 1)).copied();
                let is_there = register.is_none_or(|register| values.borrow()[register].is_some());
                if let (false, Some(register)) = (is_there, register) {
                    let has = |run: &&ContiguousWords<'_>| run.words.iter().any(|word| word.register == register);
                    loads.iter().filter(has).for_each(load);
                }
                let value = register.and_then(|register| values.borrow()[register]);
                value.unwrap_or_else(|| k.fail("a component reads a word that it does not have"))
            });
            let mut write =
                writing(|k: &Builder, _: &[Value], value: Value| match operation.writes.get(writes.replace(writes.get() + 1)) {
                    Some(register) => values.borrow_mut()[*register] = Some(value),
                    None => drop(k.fail("a component writes a word that it does not have")),
                });
            let mut bindings: Vec<&mut dyn Binding> = vec![&mut read, &mut write];
            let arguments: Vec<Value> = [k.literal(0i32)].into_iter().chain(round).collect();
            k.inline(function, &arguments, &mut bindings);
        }
        for run in self.runs(&class.stores) {
            let Some((held, at)) = self.place(&run, class, unit, component) else { continue };
            let BufferMemory::Memory(memory) = held.store else { continue };
            let all: Option<Vec<Value>> = run.words.iter().map(|word| values.borrow()[word.register]).collect();
            match all.as_deref() {
                Some([one]) => k.store(memory, at, *one),
                Some(several) => k.store(memory, at, k.vector(several)),
                None => drop(k.fail("a component stores a word that it does not have")),
            }
        }
    }

    /// Divides words into accesses, in the order of their places.
    fn runs<'w>(&self, words: &'w [Word]) -> Vec<ContiguousWords<'w>> {
        let mut sorted: Vec<&Word> = words.iter().collect();
        sorted.sort_by(|a, b| (a.buffer, &a.place.terms, a.place.start).cmp(&(b.buffer, &b.place.terms, b.place.start)));
        let (mut found, mut at) = (vec![], 0);
        while at < sorted.len() {
            let first = sorted[at];
            let follows = |lane: usize| {
                sorted.get(at + lane).is_some_and(|word| {
                    word.buffer == first.buffer
                        && word.place.terms == first.place.terms
                        && word.place.start == first.place.start + lane as i64
                })
            };
            let fits = |lanes: &usize| self.is_aligned(first, *lanes as i64) && (1..*lanes).all(follows);
            let lanes = [4, 2].into_iter().find(fits).unwrap_or(1);
            found.push(ContiguousWords { words: sorted[at..at + lanes].to_vec() });
            at += lanes;
        }
        found
    }

    /// Returns whether an access to `lanes` words from `first` on is aligned in all components and units.
    fn is_aligned(&self, first: &Word, lanes: i64) -> bool {
        let Some(held) = self.held[first.buffer] else { return false };
        let (count, items) = (i64::from(held.words.count), self.section.buffers[first.buffer].items);
        let most = match (held.base.is_some(), held.padding) {
            (true, _) if !self.wide => 1,
            (true, _) | (false, 0) => i64::from(dataflow::ACCESS_BYTES / held.words.element.bytes()),
            (false, padding) => i64::from(padding),
        };
        let even = |number: i64| number % lanes == 0;
        lanes <= most && even(items * count) && even(first.place.start - held.start * count) && first.place.is_multiple_of(lanes)
    }

    /// Returns the memory of an access and its index there.
    fn place(&self, run: &ContiguousWords<'_>, class: &Class, unit: Value, component: Value) -> Option<(KernelBuffer, Value)> {
        let (k, word) = (self.k, run.words.first()?);
        let held = self.held[word.buffer]?;
        let (count, items) = (i64::from(held.words.count), self.section.buffers[word.buffer].items);
        let own = k.add(k.mul(unit, (items * count) as i32), word.place.sum(k, component, class.count));
        let constant = word.place.start - held.start * count;
        let Some(base) = held.base else {
            if held.padding == 0 {
                return Some((held, k.add(own, constant as i32)));
            }
            // The padding of a multiple of 32 words is constant, and so is that of the words after it.
            let aligned = word.place.is_multiple_of(32) && items * count % 32 == 0;
            let rest = if aligned || constant < 0 { constant.min(0) } else { constant % 32 };
            let known = constant - rest;
            let padded = held.pad(k, k.add(own, rest as i32));
            return Some((held, k.add(padded, (known + known / 32 * i64::from(held.padding)) as i32)));
        };
        Some((held, k.add(k.add(k.mul(base, count as i32), own), constant as i32)))
    }
}
