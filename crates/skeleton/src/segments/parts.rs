//! Segments in a few parts for each core of a CPU.

use super::Parts;
use crate::cost::{self, Costs};
use crate::kit::{Accumulator, Draft, Writer, broadcast, reduce_warp};
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Cache, Unroll, Value};

/// The least that is worth a part.
const LEAST: u32 = cost::SEGMENT_PART;

/// What parts leave to be put together: temporaries, one for each value.
struct Left {
    /// What was found up to a part's first end, and behind its last one.
    head: Vec<usize>,
    tail: Vec<usize>,
    /// How many ends come before a part.
    starts: usize,
}

impl Parts {
    pub(super) fn parts(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let sequence = Count::size(0) + Count::size(1);
        let units = sequence.div_ceil(LEAST);
        let parts = units.clone().min(Costs::of(machine).busy(cost::SEGMENT_PARTS));
        let run = units.div_ceil(parts.clone()) * LEAST;
        let mut lists = || -> Vec<usize> {
            let types = self.operator.types().into_iter();
            types.map(|ty| draft.temporary(parts.clone() * ty.bytes(), false)).collect()
        };
        let (head, tail) = (lists(), lists());
        let left = Left { head, tail, starts: draft.temporary((parts.clone() + 1u32) * self.index.bytes(), false) };
        let block = [32, 1, 1];
        let k = Writer::new("segments", block);
        self.part(&k, &left, &run);
        draft.launch(k, [parts.clone(), 1u32.into(), 1u32.into()], block)?;
        let k = Writer::new("segments_between", block);
        self.between(&k, &left, &parts);
        draft.launch(k, [parts.min(1u32), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    fn keep(&self, k: &Writer, list: &[usize], part: Value, values: &[Value]) {
        for ((temporary, ty), value) in list.iter().zip(self.operator.types()).zip(values) {
            k.store_element(k.memory(Argument::Temporary(*temporary), ty.element()), part, *value, Cache::Normal);
        }
    }

    fn kept(&self, k: &Writer, list: &[usize], part: Value) -> Vec<Value> {
        let each = list.iter().zip(self.operator.types());
        each.map(|(temporary, ty)| k.load_element(k.memory(Argument::Temporary(*temporary), ty.element()), ty, part)).collect()
    }

    /// A warp goes through a part.
    fn part(&self, k: &Writer, left: &Left, run: &Count) {
        let lane = k.thread(Axis::X);
        let part = self.wide(k, k.block(Axis::X));
        let [_, _, all] = self.sizes(k);
        let run = k.count(run.clone(), self.index);
        let from = k.min(k.mul(part, run), all);
        let to = k.min(k.add(from, run), all);
        let (first, last) = (self.ends_before(k, from, lane), self.ends_before(k, to, lane));
        let base = self.base(k);
        let (first_element, end_element) = (k.add(base, k.sub(from, first)), k.add(base, k.sub(to, last)));
        let is_first_lane = k.eq(lane, 0);
        // What ends first may have begun in another part.
        let [_, segments, _] = self.sizes(k);
        let end = self.offset(k, k.min(k.add(first, 1), segments));
        let end = k.select_value(k.lt(first, last), end, first_element);
        let found = self.stretch(k, lane, first_element, end);
        k.if_then(is_first_lane, || {
            let starts = k.memory(Argument::Temporary(left.starts), self.index.element());
            k.store(starts, part, first);
            k.store(starts, k.add(part, 1), last);
            self.keep(k, &left.head, part, &found);
        });
        let next = k.variable_with(end);
        k.for_step(k.add(first, 1), last, 1, Unroll::Never, |segment| {
            let end = self.offset(k, k.add(segment, 1));
            let found = self.stretch(k, lane, k.get(next), end);
            k.set(next, end);
            k.if_then(is_first_lane, || self.outlet.put(k, &[segment], segment, &found));
        });
        let found = self.stretch(k, lane, k.get(next), end_element);
        k.if_then(is_first_lane, || self.keep(k, &left.tail, part, &found));
    }

    /// Elements from one place to another combined, for all lanes.
    fn stretch(&self, k: &Writer, lane: Value, from: Value, to: Value) -> Vec<Value> {
        let operator = &self.operator;
        let sum = Accumulator::new(k, operator);
        sum.set(k, &operator.nothing(k));
        let lane = self.wide(k, lane);
        k.for_step(from, to, 32, Unroll::Never, |first| {
            let place = k.add(first, lane);
            let at = || self.inlet.at(k, &[place]);
            let own = k.choose_list(k.lt(place, to), at, || operator.nothing(k));
            if operator.is_commutative() {
                sum.add(k, &own);
            } else {
                sum.add(k, &broadcast(k, &reduce_warp(k, operator, &own, 32), 0));
            }
        });
        if operator.is_commutative() { broadcast(k, &reduce_warp(k, operator, &sum.get(k), 32), 0) } else { sum.get(k) }
    }

    /// The segments at which parts have their first ends, with what the parts before found of them.
    fn between(&self, k: &Writer, left: &Left, parts: &Count) {
        let starts = k.memory(Argument::Temporary(left.starts), self.index.element());
        k.if_then(k.eq(k.thread(Axis::X), 0), || {
            let sum = Accumulator::new(k, &self.operator);
            k.for_step(k.convert(k.literal(0u32), self.index), k.count(parts.clone(), self.index), 1, Unroll::Never, |part| {
                let (first, last) = (k.load(starts, part), k.load(starts, k.add(part, 1)));
                k.if_then(k.lt(first, last), || {
                    sum.add(k, &self.kept(k, &left.head, part));
                    self.outlet.put(k, &[first], first, &sum.get(k));
                    sum.set(k, &self.operator.nothing(k));
                });
                sum.add(k, &self.kept(k, &left.tail, part));
            });
        });
    }
}
