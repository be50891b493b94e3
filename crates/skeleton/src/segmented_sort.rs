//! Sorting within short segments: each segment is sorted in place, on a GPU by one warp or one block, on a
//! CPU by one lane.
//!
//! The sorted items are keys as unsigned integers, followed by positions in the segment. No two items are
//! equal, so equal keys keep their order. A bitonic network exchanges them: in registers by shuffles if a
//! warp holds a segment, in shared memory if a block does. Values move once, at the end. If only one key is
//! moved, positions are not needed.
//!
//! Lanes of a CPU are elements of a vector, and all segments use one network. A step is the minimum and
//! maximum of two vectors, without shuffles or branches. Eight items at a time are held in registers, so
//! three steps cost one access. Lanes wait for the longest segment among them. A segment that is much longer
//! than most is therefore sorted later, by all lanes together.
//!
//! Longer segments are a [`Sort`](crate::Sort) by the segment number, then by the key.

use crate::cost::{self, Costs, Execution};
use crate::kit::{Draft, Inlet, Outlet, Writer, broadcast, each_lane, reduce_warp};
use crate::order::{distinct, from_distinct, ordered};
use crate::program::Program;
use crate::{Count, Domain, Error, Operator, Result, Sink, SortKey, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Element, Literal, Memory, Shuffle, Type, Unroll, Value, Variable, Vote};

/// Passes to a [`Sink`] the values of a [`Source`] on a line, sorted within segments by the first of them.
/// Equal keys keep their order.
///
/// Keys and values are as for [`Sort`](crate::Sort), offsets as for
/// [`SegmentedReduce`](crate::SegmentedReduce). Elements outside of all segments are not written. No segment
/// may be longer than `longest`. The sizes of a call are the length of the line and the number of segments.
/// Inputs and scalars are those of the source, the offsets and the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentedSort {
    /// Keys and values.
    pub source: Source,
    /// Offsets of segments.
    pub offsets: Source,
    /// Order of each key.
    pub keys: Vec<SortKey>,
    /// Use of keys and values. Its position is the place on the line.
    pub sink: Sink,
    /// Upper bound of the length of a segment, a power of two. See [`SegmentedSort::longest`].
    pub longest: u32,
}

/// Maximum length of a segment that a warp of a GPU sorts.
const IN_WARPS: u32 = cost::SORTED_IN_WARP;
/// Number of threads of a block that sorts a segment.
const THREADS: u32 = cost::SEGMENT_SORT_THREADS;
/// Number of lanes of a warp.
const LANES: u32 = cost::LANES;
/// Number of segments that a lane of a CPU sorts in turn.
const TURNS: u32 = cost::SEGMENT_SORT_TURNS;
/// Number of places that are held in registers.
const HELD: u32 = cost::SEGMENT_SORT_HELD;

/// Emitter of the kernels of a segmented sort.
struct SegmentedSortEmitter<'a> {
    sort: &'a SegmentedSort,
    inlet: Inlet,
    offsets: Inlet,
    outlet: Outlet,
    index: Type,
    types: Vec<Type>,
    /// Operator that adds lengths.
    sum: Operator,
}

impl SegmentedSort {
    /// Returns [`SegmentedSort::longest`] for segments of at most `length` elements with keys of these types.
    /// `values` is true if values move with the keys. Returns `None` if the segments are too long.
    pub fn longest(machine: &Machine, keys: &[Type], values: bool, length: u64) -> Option<u32> {
        // The limit is static shared memory. The lanes of a CPU share their memory.
        let (most, room) = match Costs::of(machine).execution() {
            Execution::Vectors => (cost::SORTED_BY_LANES, u64::from(Costs::of(machine).shared_bytes())),
            Execution::Threads => (cost::SORTED_SEGMENT, cost::STATIC_SHARED),
        };
        let longest = (length <= most).then(|| (length.max(LANES.into()) as u32).next_power_of_two())?;
        // One key without values needs no positions.
        let sorted = if keys.len() == 1 && !values { 1 } else { keys.len() + 1 };
        let bytes: u64 = numbers(keys).take(sorted).map(|element| u64::from(element.bits() / 8)).sum();
        (bytes * u64::from(longest) <= room).then_some(longest)
    }

    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let types = self.source.results();
        let bad = |reason: String| Err(Error::Pattern { pattern: "segmented sort", reason });
        if self.keys.is_empty() || self.keys.len() > types.len() {
            let name = self.source.function().name();
            return bad(format!("{} keys, and `{name}` gives {} values", self.keys.len(), types.len()));
        }
        if let Some(ty) = types[..self.keys.len()].iter().find(|ty| !ty.is_scalar()) {
            return bad(format!("a key of type `{ty}`"));
        }
        match self.offsets.results()[..] {
            [ty] if ty.is_scalar() && ty.element().is_integer() => {}
            _ => return bad(format!("`{}` does not give one integer", self.offsets.function().name())),
        }
        let (keys, values) = types.split_at(self.keys.len());
        if SegmentedSort::longest(machine, keys, !values.is_empty(), self.longest.into()) != Some(self.longest) {
            return bad(format!("segments of up to {} elements", self.longest));
        }
        self.sink.check("segmented sort", 1, &types)?;
        let index = Domain::LINE.check("segmented sort", &[&self.source, &self.offsets], &self.sink)?;
        let (n, segments) = (Count::size(0), Count::size(1));
        let mut draft = Draft::new("segmented sort", 2);
        let (inlet, offsets) = (draft.source(&self.source), draft.source(&self.offsets));
        let outlet = draft.sink(&self.sink, &types, &n);
        if index == Type::U32 {
            draft.limit(n);
            draft.limit(segments);
        }
        let sum = Operator::sum(Element::U32)?;
        let parts = SegmentedSortEmitter { sort: self, inlet, offsets, outlet, index, types, sum };
        match Costs::of(machine).execution() {
            Execution::Vectors => parts.in_lanes(&mut draft, machine)?,
            Execution::Threads if self.longest <= IN_WARPS => parts.in_warps(&mut draft)?,
            Execution::Threads => parts.in_blocks(&mut draft)?,
        }
        Ok(draft.finish())
    }
}

/// Returns the types of the sorted numbers: those of the keys, and that of positions.
fn numbers(keys: &[Type]) -> impl Iterator<Item = Element> {
    keys.iter().map(|ty| if ty.element().bits() == 64 { Element::U64 } else { Element::U32 }).chain([Element::U32])
}

impl SegmentedSortEmitter<'_> {
    /// Returns true if only one key moves, so that equal elements are interchangeable.
    fn is_plain(&self) -> bool {
        self.types.len() == 1
    }

    fn keys(&self) -> &[Type] {
        &self.types[..self.sort.keys.len()]
    }

    /// Returns the keys of an element as numbers. Returns the greatest numbers if the element does not exist.
    fn numbers(&self, k: &Writer, values: &[Value], there: Value) -> Vec<Value> {
        let number = |(value, how): (&Value, &SortKey)| {
            let number = if self.is_plain() { distinct(k, *value, how.descending) } else { ordered(k, *value, how.descending) };
            let last = k.literal(Literal::from_bits(k.type_of(number).element(), u64::MAX));
            k.select(there, number, last)
        };
        values.iter().zip(&self.sort.keys).map(number).collect()
    }

    /// Returns a condition: list `a` of numbers is less than list `b`.
    fn before(&self, k: &Writer, a: &[Value], b: &[Value]) -> Value {
        let mut pairs = a.iter().zip(b).rev();
        let last = pairs.next().map_or(k.literal(false), |(a, b)| k.lt(*a, *b));
        pairs.fold(last, |rest, (a, b)| k.or(k.lt(*a, *b), k.and(k.eq(*a, *b), rest)))
    }

    /// Returns the start of a segment, and its length as a `u32`.
    fn range(&self, k: &Writer, segment: Value) -> (Value, Value) {
        let n = k.count(Count::size(0), self.index);
        let offset = |place: Value| k.min(k.convert(self.offsets.at(k, &[place])[0], self.index), n);
        let from = offset(segment);
        let length = k.convert(k.sub(k.max(offset(k.add(segment, 1)), from), from), Type::U32);
        (from, k.min(length, self.sort.longest))
    }

    /// Emits the kernel with one segment per warp. The places of a lane have a stride of 32.
    fn in_warps(&self, draft: &mut Draft) -> Result<()> {
        let warps = 8;
        let block = [LANES, warps, 1];
        let k = Writer::new("segmented_sort", block);
        let segments = k.count(Count::size(1), self.index);
        let lane = k.thread(Axis::X);
        let segment = k.convert(k.add(k.mul(k.block(Axis::X), warps), k.thread(Axis::Y)), self.index);
        k.if_then(k.lt(segment, segments), || {
            let (from, length) = self.range(&k, segment);
            let slots: Vec<Value> = (0..self.sort.longest / LANES).map(|item| k.add(lane, item * LANES)).collect();
            let place = |slot: Value| k.add(from, k.convert(slot, self.index));
            let read = |slot: &Value| {
                let there = k.lt(*slot, length);
                let nothing = || self.types.iter().map(|ty| k.spread(Literal::zero(ty.element()), *ty)).collect();
                let values = k.choose_list(there, || self.inlet.at(&k, &[place(*slot)]), nothing);
                let mut numbers = self.numbers(&k, &values, there);
                if !self.is_plain() {
                    numbers.push(*slot);
                }
                numbers
            };
            let mut own: Vec<Vec<Value>> = slots.iter().map(read).collect();
            let mut size = 2;
            while size <= self.sort.longest {
                let sorted = || {
                    let mut own = own.clone();
                    self.step(&k, &mut own, lane, size - 1);
                    let mut apart = size / 4;
                    while apart > 0 {
                        self.step(&k, &mut own, lane, apart);
                        apart /= 2;
                    }
                    own
                };
                own = if size <= LANES {
                    sorted()
                } else {
                    // If the segment fits into the first half, the second half is padding and already in
                    // order.
                    let lists = k.choose_list(k.lt(size / 2, length), || sorted().concat(), || own.concat());
                    lists.chunks(own[0].len()).map(<[Value]>::to_vec).collect()
                };
                size *= 2;
            }
            for (slot, own) in slots.iter().zip(&own) {
                k.if_then(k.lt(*slot, length), || {
                    let moved = match (self.is_plain(), own.last()) {
                        (false, Some(position)) => self.inlet.at(&k, &[place(*position)]),
                        _ => vec![from_distinct(&k, own[0], self.types[0].element(), self.sort.keys[0].descending)],
                    };
                    self.outlet.put(&k, &[place(*slot)], place(*slot), &moved);
                });
            }
        });
        let blocks = Count::size(1).div_ceil(warps);
        draft.launch(k, [blocks, 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Emits a step between places that differ by these bits, in the registers of a warp: within a lane,
    /// between lanes, or both.
    fn step(&self, k: &Writer, own: &mut [Vec<Value>], lane: Value, bits: u32) {
        let (apart, far) = (bits / LANES, bits % LANES);
        let from = |numbers: &[Value]| match far {
            0 => numbers.to_vec(),
            far => numbers.iter().map(|number| k.shuffle(Shuffle::Xor, *number, far)).collect::<Vec<Value>>(),
        };
        if apart == 0 {
            let is_low = k.eq(k.and(lane, 1 << far.ilog2()), 0);
            own.iter_mut().for_each(|own| *own = self.exchanged(k, own, &from(own), is_low));
            return;
        }
        for low in (0..own.len()).filter(|item| item & (1 << apart.ilog2()) == 0) {
            let high = low ^ apart as usize;
            let [to_low, to_high] = [from(&own[high]), from(&own[low])];
            own[low] = self.both(k, &own[low], &to_low).0;
            own[high] = self.both(k, &own[high], &to_high).1;
        }
    }

    /// Returns the one of two lists that the lane keeps.
    fn exchanged(&self, k: &Writer, own: &[Value], other: &[Value], wants_least: Value) -> Vec<Value> {
        if let ([own], [other]) = (own, other) {
            return vec![k.select(wants_least, k.min(*own, *other), k.max(*own, *other))];
        }
        // No two lists are equal.
        let takes = k.eq(self.before(k, other, own), wants_least);
        own.iter().zip(other).map(|(own, other)| k.select(takes, *other, *own)).collect()
    }

    /// Returns the lists of numbers in shared memory, each with `places` places.
    fn lists(&self, k: &Writer, room: Memory, elements: &[Element], places: u32) -> Vec<Memory> {
        let mut start = 0;
        let view = |element: &Element| {
            let list = k.shared_view(room, *element, start);
            start += element.bytes() * places;
            list
        };
        elements.iter().map(view).collect()
    }

    /// Returns the numbers of the element in a slot of a segment.
    fn slot(&self, k: &Writer, from: Value, length: Value, slot: Value) -> Vec<Value> {
        let there = k.lt(slot, length);
        let place = k.add(from, k.convert(slot, self.index));
        let nothing = || self.types.iter().map(|ty| k.spread(Literal::zero(ty.element()), *ty)).collect();
        let values = k.choose_list(there, || self.inlet.at(k, &[place]), nothing);
        let mut numbers = self.numbers(k, &values, there);
        if self.is_packed() {
            numbers = vec![k.or(k.shl(k.convert(numbers[0], Type::U64), 32), k.convert(slot, Type::U64))];
        } else if !self.is_plain() {
            numbers.push(slot);
        }
        numbers
    }

    /// Passes the element whose numbers are in a slot to the sink.
    fn put(&self, k: &Writer, from: Value, slot: Value, numbers: &[Value]) {
        let place = k.add(from, k.convert(slot, self.index));
        let moved: Vec<Value> = if self.is_plain() {
            vec![from_distinct(k, numbers[0], self.types[0].element(), self.sort.keys[0].descending)]
        } else {
            // A packed number has the position in its lower half.
            let position = k.convert(numbers[numbers.len() - 1], Type::U32);
            self.inlet.at(k, &[k.add(from, k.convert(position, self.index))])
        };
        self.outlet.put(k, &[place], place, &moved);
    }

    /// Sorts a segment with all lanes together.
    fn together(&self, k: &Writer, lane: Value, lists: &[Memory], from: Value, length: Value) {
        let load = |slot: Value| lists.iter().map(|list| k.load(*list, slot)).collect::<Vec<Value>>();
        let store =
            |slot: Value, numbers: &[Value]| lists.iter().zip(numbers).for_each(|(list, number)| k.store(*list, slot, *number));
        // The number of elements, rounded up to a power of two.
        let size = k.variable_with(k.literal(LANES));
        k.while_loop(|| k.lt(k.get(size), length), || k.set(size, k.shl(k.get(size), 1)));
        let size = k.get(size);
        k.warp_barrier();
        k.for_step(lane, size, LANES, Unroll::Never, |slot| store(slot, &self.slot(k, from, length, slot)));
        k.warp_barrier();
        let apart = |apart: Value, bits: Value| {
            let below = k.sub(apart, 1);
            k.for_step(lane, k.shr(size, 1), LANES, Unroll::Never, |pair| {
                let low = k.add(pair, k.and(pair, k.not(below)));
                let high = k.xor(low, bits);
                let (least, greatest) = self.both(k, &load(low), &load(high));
                store(low, &least);
                store(high, &greatest);
            });
            k.warp_barrier();
        };
        let [sorted, distance]: [Variable; 2] = [k.variable_with(k.literal(2u32)), k.variable(Type::U32)];
        k.while_loop(
            || k.le(k.get(sorted), size),
            || {
                let group = k.get(sorted);
                apart(k.shr(group, 1), k.sub(group, 1));
                k.set(distance, k.shr(group, 2));
                k.while_loop(
                    || k.ne(k.get(distance), 0),
                    || {
                        apart(k.get(distance), k.get(distance));
                        k.set(distance, k.shr(k.get(distance), 1));
                    },
                );
                k.set(sorted, k.shl(group, 1));
            },
        );
        k.for_step(lane, length, LANES, Unroll::Never, |slot| self.put(k, from, slot, &load(slot)));
        k.warp_barrier();
    }

    /// Emits the kernel with one segment per lane.
    fn in_lanes(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let block = [LANES, 1, 1];
        let k = Writer::new("segmented_sort", block);
        let lane = k.thread(Axis::X);
        let elements: Vec<Element> = match (self.is_plain(), self.is_packed()) {
            (true, _) => numbers(self.keys()).take(1).collect(),
            (false, true) => vec![Element::U64],
            (false, false) => numbers(self.keys()).collect(),
        };
        let bytes = elements.iter().map(|element| element.bytes()).sum::<u32>();
        let mut most = self.sort.longest;
        while most > HELD && most * LANES * bytes > Costs::of(machine).shared_bytes() {
            most /= 2;
        }
        let room = k.large_shared(Element::U8, bytes * self.sort.longest.max(most * LANES));
        let lists = self.lists(&k, room, &elements, most * LANES);
        let common = self.lists(&k, room, &elements, self.sort.longest);
        let at = |slot: Value| k.add(k.mul(slot, LANES), lane);
        let load = |slot: Value| lists.iter().map(|list| k.load(*list, at(slot))).collect::<Vec<Value>>();
        let store = |slot: Value, numbers: &[Value]| {
            lists.iter().zip(numbers).for_each(|(list, number)| k.store(*list, at(slot), *number))
        };
        let segments = k.count(Count::size(1), self.index);
        let first = k.mul(k.convert(k.block(Axis::X), self.index), LANES * TURNS);
        k.for_step(first, k.min(k.add(first, LANES * TURNS), segments), LANES, Unroll::Never, |group| {
            let segment = k.add(group, k.convert(lane, self.index));
            let (from, whole) = self.range(&k, k.min(segment, k.sub(segments, 1)));
            let whole = k.select(k.lt(segment, segments), whole, 0);
            // Lanes wait for the longest segment, so the limit is near the mean length.
            let sum = broadcast(&k, &reduce_warp(&k, &self.sum, &[whole], LANES), 0)[0];
            let limit = k.min(k.add(k.div(k.mul(sum, 3), LANES), HELD), most);
            let is_short = k.le(whole, limit);
            let length = k.select(is_short, whole, 0);
            // The greatest length of a lane, rounded up to a power of two.
            let size = k.variable_with(k.literal(HELD));
            k.while_loop(|| k.vote(Vote::Any, k.lt(k.get(size), length), None), || k.set(size, k.shl(k.get(size), 1)));
            let size = k.get(size);
            k.for_step(k.literal(0u32), size, 1, Unroll::Never, |slot| store(slot, &self.slot(&k, from, length, slot)));
            // Steps between places that differ by these bits. The lower place has the highest of these bits
            // clear.
            let held = |steps: &[u32]| {
                k.for_step(k.literal(0u32), size, HELD, Unroll::Never, |base| {
                    let mut numbers: Vec<Vec<Value>> = (0..HELD).map(|slot| load(k.add(base, slot))).collect();
                    for bits in steps {
                        for slot in (0..HELD).filter(|slot| slot & (1 << bits.ilog2()) == 0) {
                            let other = slot ^ bits;
                            let (least, greatest) = self.both(&k, &numbers[slot as usize], &numbers[other as usize]);
                            (numbers[slot as usize], numbers[other as usize]) = (least, greatest);
                        }
                    }
                    numbers.iter().zip(0..).for_each(|(numbers, slot): (_, u32)| store(k.add(base, slot), numbers));
                });
            };
            let apart = |apart: Value, bits: Value| {
                let below = k.sub(apart, 1);
                k.for_step(k.literal(0u32), k.shr(size, 1), 1, Unroll::By(4), |pair| {
                    let low = k.add(pair, k.and(pair, k.not(below)));
                    let high = k.xor(low, bits);
                    let (least, greatest) = self.both(&k, &load(low), &load(high));
                    store(low, &least);
                    store(high, &greatest);
                });
            };
            held(&[1, 3, 1, 7, 2, 1]);
            let [sorted, distance]: [Variable; 2] = [k.variable_with(k.literal(2 * HELD)), k.variable(Type::U32)];
            k.while_loop(
                || k.le(k.get(sorted), size),
                || {
                    let group = k.get(sorted);
                    apart(k.shr(group, 1), k.sub(group, 1));
                    k.set(distance, k.shr(group, 2));
                    k.while_loop(
                        || k.ge(k.get(distance), HELD),
                        || {
                            apart(k.get(distance), k.get(distance));
                            k.set(distance, k.shr(k.get(distance), 1));
                        },
                    );
                    held(&[4, 2, 1]);
                    k.set(sorted, k.shl(group, 1));
                },
            );
            k.for_step(k.literal(0u32), size, 1, Unroll::Never, |slot| {
                k.if_then(k.lt(slot, length), || self.put(&k, from, slot, &load(slot)));
            });
            each_lane(&k, k.ballot(k.not(is_short), None), |owner| {
                let (from, length) = self.range(&k, k.add(group, k.convert(owner, self.index)));
                self.together(&k, lane, &common, from, length);
            });
        });
        draft.launch(k, [Count::size(1).div_ceil(LANES * TURNS), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Returns true if a key and a position fit into one number.
    fn is_packed(&self) -> bool {
        !self.is_plain() && matches!(self.keys(), [ty] if ty.element().bits() < 64)
    }

    /// Returns the lesser and the greater of two lists.
    fn both(&self, k: &Writer, a: &[Value], b: &[Value]) -> (Vec<Value>, Vec<Value>) {
        if let ([a], [b]) = (a, b) {
            return (vec![k.min(*a, *b)], vec![k.max(*a, *b)]);
        }
        let swaps = self.before(k, b, a);
        let chosen = |a: &[Value], b: &[Value]| a.iter().zip(b).map(|(a, b)| k.select(swaps, *b, *a)).collect();
        (chosen(a, b), chosen(b, a))
    }

    /// Emits the kernel with one segment per block.
    fn in_blocks(&self, draft: &mut Draft) -> Result<()> {
        let block = [THREADS, 1, 1];
        let k = Writer::new("segmented_sort", block);
        let thread = k.thread(Axis::X);
        let (from, length) = self.range(&k, k.convert(k.block(Axis::X), self.index));
        let lists: Vec<Memory> = numbers(self.keys()).map(|element| k.shared(element, self.sort.longest)).collect();
        // The number of elements, rounded up to a power of two.
        let size = k.variable_with(k.literal(1u32));
        k.while_loop(|| k.lt(k.get(size), length), || k.set(size, k.shl(k.get(size), 1)));
        let size: Value = k.get(size);
        k.for_step(thread, size, THREADS, Unroll::Never, |slot| {
            let place = k.add(from, k.convert(slot, self.index));
            let there = k.lt(slot, length);
            let nothing = || self.types.iter().map(|ty| k.spread(Literal::zero(ty.element()), *ty)).collect();
            let values = k.choose_list(there, || self.inlet.at(&k, &[place]), nothing);
            let numbers = self.numbers(&k, &values, there);
            lists.iter().zip(numbers.into_iter().chain([slot])).for_each(|(list, number)| k.store(*list, slot, number));
        });
        k.barrier();
        let [sorted, distance]: [Variable; 2] = [k.variable_with(k.literal(2u32)), k.variable(Type::U32)];
        k.while_loop(
            || k.le(k.get(sorted), size),
            || {
                let group = k.get(sorted);
                k.set(distance, k.shr(group, 1));
                k.while_loop(
                    || k.ne(k.get(distance), 0),
                    || {
                        let apart = k.get(distance);
                        k.for_step(thread, k.shr(size, 1), THREADS, Unroll::Never, |pair| {
                            let low = k.sub(k.mul(pair, 2), k.and(pair, k.sub(apart, 1)));
                            let high = k.add(low, apart);
                            let [a, b] =
                                [low, high].map(|place| lists.iter().map(|list| k.load(*list, place)).collect::<Vec<Value>>());
                            let is_up = k.eq(k.and(low, group), 0);
                            let is_wrong = k.eq(self.before(&k, &b, &a), is_up);
                            k.if_then(is_wrong, || {
                                for ((list, a), b) in lists.iter().zip(&a).zip(&b) {
                                    k.store(*list, low, *b);
                                    k.store(*list, high, *a);
                                }
                            });
                        });
                        k.barrier();
                        k.set(distance, k.shr(apart, 1));
                    },
                );
                k.set(sorted, k.shl(group, 1));
            },
        );
        let order = lists[self.sort.keys.len()];
        k.for_step(thread, length, THREADS, Unroll::Never, |slot| {
            let values = self.inlet.at(&k, &[k.add(from, k.convert(k.load(order, slot), self.index))]);
            let place = k.add(from, k.convert(slot, self.index));
            self.outlet.put(&k, &[place], place, &values);
        });
        draft.launch(k, [Count::size(1), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}
