//! Scatter on a CPU in tables of each block.
//!
//! A block has a part of the positions, in their order, and a range of places. It combines their values in
//! shared memory, which stays in the cache of its core. There, atomic operations are plain ones, lane by lane
//! in order, so that sums of floats have a fixed order too. A second kernel combines the parts in their order.
//!
//! A table of all places lies in memory instead if it is too large. Atomic operations of block scope are plain
//! ones there too. Sums of `f32` are not combined so: in memory they would flush subnormal numbers.

use super::ScatterEmitter;
use crate::cost::{self, Costs, ScatterTables};
use crate::kit::{Draft, Inlet, Outlet, Writer};
use crate::program::Argument;
use crate::{Combine, Count, Result, Scatter};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Literal, Order, Scope, Type, Unroll, Value};

const LANES: u32 = cost::LANES;

impl Scatter {
    /// Returns fast tables for these sizes.
    pub fn tables(&self, machine: &Machine, sizes: &[u64]) -> ScatterTables {
        let (Some((places, lengths)), Some(ty)) = (sizes.split_last(), self.source.results().get(1).copied()) else {
            return ScatterTables::Common;
        };
        let count = lengths.iter().fold(1u64, |count, length| count.saturating_mul(*length));
        Costs::of(machine).scatter_tables(*places, count, ty.bytes().max(4), self.flushes(ty))
    }

    /// Returns whether values are combined by an atomic operation that flushes subnormal numbers in memory.
    pub(super) fn flushes(&self, ty: Type) -> bool {
        self.combine == Some(Combine::Sum) && ty.element().is_float() && ty.bytes() <= 4
    }
}

impl ScatterEmitter<'_> {
    /// Emits the kernels. `room`: the places of a block in shared memory, or `None` if it has a table in memory;
    /// `nothing`: the combined value of no values.
    pub(super) fn privately(
        &self,
        draft: &mut Draft,
        machine: &Machine,
        room: Option<u32>,
        nothing: Literal,
        base: &Inlet,
        outlet: &Outlet,
    ) -> Result<()> {
        let axes = self.scatter.domain.axes();
        let (count, places) = (self.scatter.domain.count(), Count::size(axes));
        // Setting a part to nothing and combining it costs less than the positions that it has.
        let (least, most) = match room {
            Some(_) => (places.clone() + cost::STRETCH, Costs::of(machine).scatter_blocks()),
            None => (places.clone().div_ceil(cost::SCATTER_SPARSE) + cost::STRETCH, Costs::of(machine).busy(1)),
        };
        let parts = count.clone().div_ceil(least).min(Count::Constant(most)).max(1u32);
        let all_parts = draft.temporary(places.clone() * parts.clone() * self.held.bytes(), false);
        let block = [LANES, 1, 1];
        let k = Writer::new("scatter", block);
        let lane = k.thread(Axis::X);
        let long = |value: Value| k.convert(value, Type::U64);
        let (n, part) = (k.count(count.clone(), self.index), k.convert(k.block(Axis::X), self.index));
        let run = k.count(count.div_ceil(parts.clone()), self.index);
        let from = k.min(k.mul(part, run), n);
        let to = k.min(k.add(from, run), n);
        let table = k.memory(Argument::Temporary(all_parts), self.held.element());
        let start = k.mul(long(part), k.count(places.clone(), Type::U64));
        let all = k.count(places.clone(), Type::U64);
        let (own, first) = match room {
            Some(room) => {
                let own = k.large_shared(self.held.element(), Count::Constant(room.into()));
                k.for_step(lane, k.literal(room), LANES, Unroll::Never, |place| k.store(own, place, k.literal(nothing)));
                (own, k.mul(long(k.block(Axis::Y)), u64::from(room)))
            }
            None => {
                k.for_step(long(lane), all, LANES, Unroll::Never, |place| {
                    k.store(table, k.add(start, place), k.literal(nothing));
                });
                (table, k.literal(0u64))
            }
        };
        k.barrier();
        let one = |number: Value| {
            self.send_to(&k, number, &|place, sent| {
                let combine = |place: Value| {
                    k.atomic(self.operation(), own, place, sent, Order::Relaxed(Scope::Block));
                };
                match room {
                    None => combine(k.add(start, place)),
                    Some(room) => {
                        let place = k.sub(place, first);
                        k.if_then(k.lt(place, u64::from(room)), || combine(k.convert(place, Type::U32)));
                    }
                }
            });
        };
        k.for_step(from, to, LANES, Unroll::Never, |start| {
            let number = k.add(start, k.convert(lane, self.index));
            let is_whole = k.ge(k.sub(to, start), LANES);
            k.if_else(is_whole, || one(number), || k.if_then(k.lt(number, to), || one(number)));
        });
        if let Some(room) = room {
            k.barrier();
            let end = k.min(k.sub(all, first), u64::from(room));
            let start = k.add(start, first);
            k.for_step(lane, k.convert(end, Type::U32), LANES, Unroll::Never, |place| {
                k.store(table, k.add(start, long(place)), k.load(own, place));
            });
        }
        let ranges = room.map_or(Count::Constant(1), |room| places.clone().div_ceil(room));
        draft.launch(k, [parts.clone(), ranges, 1u32.into()], block)?;
        let threads = cost::SCATTER_THREADS.vectors;
        let block = [threads, 1, 1];
        let k = Writer::new("scatter_result", block);
        let place = k.convert(k.global_thread(Axis::X), self.index);
        let all = k.count(places.clone(), self.index);
        k.if_then(k.lt(place, all), || {
            let from = k.memory(Argument::Temporary(all_parts), self.held.element());
            let at =
                |part: Value| k.add(k.mul(k.convert(part, Type::U64), k.convert(all, Type::U64)), k.convert(place, Type::U64));
            let sum = k.variable_with(k.load(from, at(k.constant(self.index, 0))));
            k.for_step(k.constant(self.index, 1), k.count(parts, self.index), 1, Unroll::Never, |part| {
                k.set(sum, k.binary(self.joining(), k.get(sum), k.load(from, at(part))));
            });
            let first = base.at(&k, &[place])[0];
            outlet.put(&k, &[place], place, &[self.result(&k, k.get(sum), first)]);
        });
        draft.launch(k, [places.div_ceil(threads), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
