//! Copies between global and shared memory, by all threads of a block.

use super::emitter::Emitter;
use super::memory::{BufferMemory, KernelBuffer};
use super::span::{Span, span};
use crate::planner::restructure::cut::BufferPlace;
use broadloom_scalar::{Unroll, Value};
use broadloom_skeleton::cost::dataflow;

impl Emitter<'_> {
    /// Copies staged inputs in, or collected outputs out, for the units from `first` on. A full block has
    /// `full` units. Returns whether there are any.
    pub(super) fn copy(&self, inward: bool, first: Value, units: Value, full: i64, thread: Value) -> bool {
        let k = self.k;
        let mut any = false;
        for (index, place) in self.cut.places.iter().enumerate() {
            let chosen = match place {
                BufferPlace::Staged(_) => inward,
                BufferPlace::Collected(_) => !inward,
                BufferPlace::Read
                | BufferPlace::Written
                | BufferPlace::Local
                | BufferPlace::Shared(_)
                | BufferPlace::Elsewhere => false,
                BufferPlace::Loaded | BufferPlace::Kept => false,
            };
            let (Some(global), Some(shared)) = (self.global[index], self.held[index]) else { continue };
            let Some(span) = span(self.section, self.cut, index, global.start, full, self.wide).filter(|_| chosen) else {
                continue;
            };
            any = true;
            let Span { per_unit, offset, all, lanes, rounds } = span;
            let count = k.sub(k.mul(units, per_unit), full * per_unit - all);
            let start = k.add(k.mul(first, per_unit), offset);
            let threads = i64::from(self.cut.threads);
            let mut from = k.literal(0i32);
            if rounds > 0 {
                let is_full = k.ge(units, full);
                k.if_then(is_full, || {
                    let done = self.ahead.filter(|_| inward).map_or(0, |ahead| ahead.unload(k, index, &shared));
                    let (thread, left) = (k.add(thread, done * threads), rounds - done);
                    let many = |first: Value, rounds: i64| {
                        let place = |round: i64| k.mul(k.add(first, round * threads), lanes);
                        let places: Vec<Value> = (0..rounds).map(place).collect();
                        self.move_words(inward, global, shared, start, &places, lanes as usize);
                    };
                    let whole = left / dataflow::COPIES_IN_FLIGHT;
                    if left <= dataflow::UNROLLED_COPIES {
                        for batch in 0..whole {
                            many(k.add(thread, batch * dataflow::COPIES_IN_FLIGHT * threads), dataflow::COPIES_IN_FLIGHT);
                        }
                    } else {
                        let end = k.literal(((done + whole * dataflow::COPIES_IN_FLIGHT) * threads) as i32);
                        k.for_step(thread, end, (dataflow::COPIES_IN_FLIGHT * threads) as u32, Unroll::Never, |first| {
                            many(first, dataflow::COPIES_IN_FLIGHT)
                        });
                    }
                    if left % dataflow::COPIES_IN_FLIGHT > 0 {
                        many(k.add(thread, whole * dataflow::COPIES_IN_FLIGHT * threads), left % dataflow::COPIES_IN_FLIGHT);
                    }
                });
                from = k.select(is_full, k.literal((rounds * threads * lanes) as i32), from);
                if rounds * threads * lanes == all {
                    // A full block is already done.
                    k.if_then(k.not(is_full), || self.move_each(inward, global, shared, start, thread, count));
                    continue;
                }
            }
            self.move_each(inward, global, shared, start, k.add(from, thread), count);
        }
        any
    }

    /// Copies words one by one.
    fn move_each(&self, inward: bool, global: KernelBuffer, shared: KernelBuffer, start: Value, first: Value, count: Value) {
        self.k.for_step(first, count, self.cut.threads, Unroll::Never, |word| {
            self.move_words(inward, global, shared, start, &[word], 1);
        });
    }

    /// Copies words from several places, `lanes` contiguous words from each.
    fn move_words(&self, inward: bool, global: KernelBuffer, shared: KernelBuffer, start: Value, places: &[Value], lanes: usize) {
        let k = self.k;
        let BufferMemory::Memory(memory) = global.store else { return };
        // Words that are accessed together are not separated by padding.
        let near: Vec<Value> = places.iter().map(|place| shared.pad(k, *place)).collect();
        let load = |place: &Value| {
            let at = k.add(start, *place);
            if lanes == 1 { k.load(memory, at) } else { k.load_vector(memory, at, lanes) }
        };
        if inward {
            let values: Vec<Value> = places.iter().map(load).collect();
            for (near, value) in near.iter().zip(values) {
                (0..lanes).for_each(|lane| shared.store(k, k.add(*near, lane), k.lane(value, lane)));
            }
        } else {
            for (near, place) in near.iter().zip(places) {
                let values: Vec<Value> = (0..lanes).map(|lane| shared.load(k, k.add(*near, lane))).collect();
                let value = if lanes == 1 { values[0] } else { k.vector(&values) };
                k.store(memory, k.add(start, *place), value);
            }
        }
    }
}
