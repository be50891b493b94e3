//! Sort rounds of one pass each, for GPUs (Adinets and Merrill's one-sweep).
//!
//! 1. The digits of all rounds are counted at once: elements have the same digits in every round, and only
//!    their order changes. Equal digits in a warp are not searched for. An atomic addition of one in shared
//!    memory without a result is one instruction, which handles lanes with the same address.
//! 2. One warp per round computes prefix sums over the digits.
//! 3. In each round a block has a tile. A warp finds the lanes with the same digit by one ballot per bit, and
//!    keeps places for each digit in shared memory. One thread per digit publishes the count of the tile. It
//!    then looks back over earlier tiles until it finds one that has published the count up to its end.
//!    Elements go through shared memory in the order of digits, so that neighbouring threads write to
//!    neighbouring places.
//!
//! Blocks wait only for blocks with smaller numbers, as in [`crate::kit::TileChain`]. A published word is 0
//! while it is missing. Then it is the tile's own count plus 1, and finally [`UP_TO`] plus the count up to
//! and including the tile. Counts are integers, so the order of additions does not matter.

use super::{RADIX, Round, RoundMemory, Sort, add_up, digit};
use crate::cost::{self, Costs};
use crate::kit::{Draft, Inlet, Outlet, Shared, Writer};
use crate::operator::Operator;
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_device::Machine;
use broadloom_scalar::{AtomicOp, Axis, Cache, Element, Literal, Memory, Order, Scope, Shuffle, Type, Unroll, Value};

/// Number of threads of a block, one for each digit.
const THREADS: u32 = RADIX;
const WARPS: u32 = THREADS / 32;
/// Greater than the number of elements of a tile plus one.
const UP_TO: u32 = 1 << 14;
/// Number of rounds whose digits are counted by one kernel.
const TOGETHER: usize = 8;
/// Number of tiles that a thread looks at in one step.
const LOOKS: u32 = cost::SORT_LOOKS;
/// Number of bytes of shared memory for the elements of a tile.
const ROOM: u32 = cost::SORT_TILE;

pub(super) struct SweepPass<'a> {
    pub(super) sort: &'a Sort,
    pub(super) inlet: Inlet,
    pub(super) outlet: Outlet,
    pub(super) index: Type,
    pub(super) types: Vec<Type>,
    pub(super) sum: Operator,
    /// Number of elements of a thread.
    items: u32,
    /// Number of blocks that count.
    blocks: u64,
    /// Temporaries: for each set, one for each value.
    sets: Vec<Vec<usize>>,
    /// For each round, the number of elements with a digit, later the number with a lesser one.
    control: usize,
    /// Published entries of even and of odd rounds.
    published: [usize; 2],
    rounds: u32,
}

impl<'a> SweepPass<'a> {
    pub(super) fn new(
        draft: &mut Draft,
        sort: &'a Sort,
        inlet: Inlet,
        outlet: Outlet,
        index: Type,
        rounds: &[Round],
        machine: &Machine,
    ) -> Result<SweepPass<'a>> {
        let types = sort.source.results();
        let widest = types.iter().map(|ty| ty.bytes()).max().unwrap_or(1);
        let most = Costs::of(machine).sorted_by_thread(types.len() > 1);
        let items = (ROOM / THREADS / widest).clamp(1, most);
        let n = Count::size(0);
        let sets =
            (1..rounds.len().min(3)).map(|_| types.iter().map(|ty| draft.temporary(n.clone() * ty.bytes(), false)).collect());
        let sets = sets.collect();
        let count = rounds.len() as u32;
        let control = draft.temporary(Count::from(count * RADIX * index.bytes()), true);
        let words = n.div_ceil(THREADS * items) * RADIX * index.bytes();
        let published = [draft.temporary(words.clone(), true), draft.temporary(words, false)];
        let blocks = Costs::of(machine).blocks(cost::SORT_BLOCKS, THREADS);
        let sum = Operator::sum(index)?;
        Ok(SweepPass { sort, inlet, outlet, index, types, sum, items, blocks, sets, control, published, rounds: count })
    }

    pub(super) fn all(&self, draft: &mut Draft, rounds: &[Round]) -> Result<()> {
        let block = [THREADS, 1, 1];
        let grid = |count: Count| [count, 1u32.into(), 1u32.into()];
        let n = Count::size(0);
        let units = n.clone().div_ceil(THREADS * 16);
        let parts = units.clone().min(self.blocks);
        let run = units.div_ceil(parts.clone()) * (THREADS * 16);
        for (group, own) in rounds.chunks(TOGETHER).enumerate() {
            let k = Writer::new(&format!("sort_count_{group}"), block);
            self.count(&k, own, group * TOGETHER, &run);
            draft.launch(k, grid(parts.clone()), block)?;
        }
        let k = Writer::new("sort_digits", [32, 1, 1]);
        let first = k.mul(self.wide(&k, k.block(Axis::X)), RADIX);
        add_up(&k, &self.sum, self.index, self.control(&k), first, k.constant(self.index, RADIX));
        draft.launch(k, grid(n.clone().min(1u32) * self.rounds), [32, 1, 1])?;

        let tiles = n.div_ceil(THREADS * self.items);
        let last = rounds.len() - 1;
        let place = |round: usize| RoundMemory::Set(round % 2);
        let mut known: Vec<(usize, RoundMemory, RoundMemory, usize)> = vec![];
        for (number, round) in rounds.iter().enumerate() {
            let from = if number == 0 { RoundMemory::Outside } else { place(number - 1) };
            let to = if number == last { RoundMemory::Outside } else { place(number) };
            let alike = |a: RoundMemory, b: RoundMemory| (a == RoundMemory::Outside) == (b == RoundMemory::Outside);
            let same = known.iter().find(|(old, f, t, _)| rounds[*old].key == round.key && alike(*f, from) && alike(*t, to));
            if let Some((old, old_from, old_to, step)) = same {
                let constant = |value: u64, ty: Type| Argument::Count(Count::Constant(value), ty);
                let change = |argument: &Argument| match argument {
                    Argument::Temporary(index) => {
                        Argument::Temporary(self.moved(*index, [(*old_from, from), (*old_to, to)], (number - old) % 2 == 1))
                    }
                    Argument::Count(Count::Constant(_), Type::U8) => constant(round.shift.into(), Type::U8),
                    Argument::Count(Count::Constant(_), Type::U16) => constant(number as u64, Type::U16),
                    Argument::Count(..) | Argument::Input(_) | Argument::Output(_) | Argument::Scalar(_) => argument.clone(),
                };
                draft.repeat(*step, change)?;
                continue;
            }
            let k = Writer::with_blocks(&format!("sort_{number}"), block, 3);
            self.round(&k, *round, number, from, to);
            known.push((number, from, to, draft.launch(k, grid(tiles.clone()), block)?));
        }
        Ok(())
    }

    /// Returns the temporary that replaces another one after an exchange of sets and of published entries.
    fn moved(&self, index: usize, exchanged: [(RoundMemory, RoundMemory); 2], odd: bool) -> usize {
        if let (true, Some(own)) = (odd, self.published.iter().position(|own| *own == index)) {
            return self.published[1 - own];
        }
        for (old, new) in exchanged {
            if let (RoundMemory::Set(old), RoundMemory::Set(new)) = (old, new)
                && let Some(value) = self.sets[old].iter().position(|own| *own == index)
            {
                return self.sets[new][value];
            }
        }
        index
    }

    fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    fn control(&self, k: &Writer) -> Memory {
        k.memory(Argument::Temporary(self.control), self.index.element())
    }

    /// Counts the digits of several rounds. `first_round` is the number of the first one.
    fn count(&self, k: &Writer, rounds: &[Round], first_round: usize, run: &Count) {
        let thread = k.thread(Axis::X);
        let run = k.count(run.clone(), self.index);
        let from = k.mul(self.wide(k, k.block(Axis::X)), run);
        let to = k.min(k.add(from, run), k.count(Count::size(0), self.index));
        let table = k.shared(Element::U32, RADIX * rounds.len() as u32);
        (0..rounds.len() as u32).for_each(|round| k.store(table, k.add(thread, round * RADIX), 0));
        k.barrier();
        let place = |number: usize, digit: Value| k.add(digit, number as u32 * RADIX);
        let digits = |i: Value| -> Vec<Value> {
            let values = self.inlet.at(k, &[i]);
            let each = rounds.iter().map(|round| digit(k, self.sort, *round, values[round.key], k.literal(round.shift), RADIX));
            each.collect()
        };
        let add = |place: Value, count: Value| {
            k.atomic(AtomicOp::Add, table, place, count, Order::Relaxed(Scope::Block));
        };
        const TAKEN: u32 = 4;
        k.for_step(from, to, TAKEN * THREADS, Unroll::Never, |row| {
            let start = k.add(row, self.wide(k, thread));
            k.if_else(
                k.ge(k.sub(to, row), TAKEN * THREADS),
                || {
                    let all: Vec<Vec<Value>> = (0..TAKEN).map(|item| digits(k.add(start, item * THREADS))).collect();
                    for digits in all {
                        for (number, digit) in digits.into_iter().enumerate() {
                            add(place(number, digit), k.literal(1u32));
                        }
                    }
                },
                || {
                    for item in 0..TAKEN {
                        let i = k.add(start, item * THREADS);
                        k.if_then(k.lt(i, to), || {
                            let digits = digits(i).into_iter().enumerate();
                            digits.for_each(|(number, digit)| add(place(number, digit), k.literal(1u32)));
                        });
                    }
                },
            );
        });
        k.barrier();
        for number in 0..rounds.len() {
            let counted = k.load(table, place(number, thread));
            let place = k.add(thread, (first_round + number) as u32 * RADIX);
            k.if_then(k.ne(counted, 0), || {
                k.atomic(AtomicOp::Add, self.control(k), place, self.wide(k, counted), Order::Relaxed(Scope::Device));
            });
        }
    }

    /// Returns a value of an element.
    fn at(&self, k: &Writer, from: RoundMemory, i: Value, value: usize) -> Value {
        match from {
            RoundMemory::Outside => self.inlet.at(k, &[i])[value],
            RoundMemory::Set(set) => {
                let memory = k.memory(Argument::Temporary(self.sets[set][value]), self.types[value].element());
                k.load_element(memory, self.types[value], i)
            }
        }
    }

    fn round(&self, k: &Writer, round: Round, number: usize, from: RoundMemory, to: RoundMemory) {
        let (items, tile) = (self.items, THREADS * self.items);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let [current, next] =
            [number % 2, (number + 1) % 2].map(|own| k.memory(Argument::Temporary(self.published[own]), self.index.element()));
        let round_number = k.convert(k.count(Count::Constant(number as u64), Type::U16), Type::U32);
        let shift = k.convert(k.count(Count::Constant(round.shift.into()), Type::U8), Type::U32);
        let relaxed = Order::Relaxed(Scope::Device);

        let own = self.wide(k, k.block(Axis::X));
        let table = k.shared(Element::U32, RADIX * WARPS);
        let own_table = k.mul(warp, RADIX);
        for row in 0..RADIX / 32 {
            k.store(table, k.add(k.add(own_table, lane), row * 32), 0);
        }
        k.barrier();
        let first = k.mul(own, tile);
        let left = k.sub(k.count(Count::size(0), self.index), first);
        let valid = k.convert(k.min(left, tile), Type::U32);
        let whole = k.ge(left, tile);
        let offset = k.add(k.mul(warp, 32 * items), lane);
        let load = |value: usize| -> Vec<Value> {
            let ty = self.types[value];
            let places: Vec<Value> = (0..items).map(|item| k.add(offset, item * 32)).collect();
            let at = |place: &Value| self.at(k, from, k.add(first, self.wide(k, *place)), value);
            let nothing = || vec![k.spread(Literal::zero(ty.element()), ty)];
            k.choose_list(
                whole,
                || places.iter().map(at).collect(),
                || places.iter().flat_map(|place| k.choose_list(k.lt(*place, valid), || vec![at(place)], nothing)).collect(),
            )
        };

        // Rank of each element among the elements of the warp with its digit, packed with the digit. Elements
        // beyond the end come after all others.
        let keys = load(round.key);
        let lower = k.sub(k.shl(k.literal(1u32), lane), 1);
        let ranked: Vec<Value> = (0..items)
            .zip(&keys)
            .map(|(item, key)| {
                let there = k.lt(k.add(offset, item * 32), valid);
                let digit = k.select(there, digit(k, self.sort, round, *key, shift, RADIX), RADIX - 1);
                let mut same = k.literal(u32::MAX);
                for bit in 0..RADIX.ilog2() {
                    let set = k.ne(k.and(digit, 1u32 << bit), 0);
                    let ballot = k.ballot(set, None);
                    same = k.and(same, k.select(set, ballot, k.not(ballot)));
                }
                let place = k.add(own_table, digit);
                let before = k.popcount(k.and(same, lower));
                let known = k.load(table, place);
                k.warp_barrier();
                k.if_then(k.eq(before, 0), || k.store(table, place, k.add(known, k.popcount(same))));
                k.warp_barrier();
                k.or(k.shl(k.add(known, before), RADIX.ilog2()), digit)
            })
            .collect();
        k.barrier();

        // From here on each thread also has a digit. It counts the elements with this digit in each warp and
        // in the tile.
        let of_warps: Vec<Value> = (0..WARPS).map(|other| k.load(table, k.add(thread, other * RADIX))).collect();
        let total = of_warps.iter().copied().reduce(|a, b| k.add(a, b)).unwrap_or(k.literal(0u32));
        let entry = |tile: Value| k.add(k.mul(k.convert(tile, Type::U64), RADIX), k.convert(thread, Type::U64));
        let publish = |word: Value| k.store_as(current, entry(own), word, relaxed, Cache::Normal);
        let is_first = k.eq(own, 0);
        publish(k.add(self.wide(k, total), k.select(is_first, k.constant(self.index, UP_TO), 1)));
        k.store(next, entry(own), 0);
        let narrow_sum = |own: Value| {
            let mut up_to = own;
            for distance in [1u32, 2, 4, 8, 16] {
                let before = k.shuffle(Shuffle::Up, up_to, distance);
                up_to = k.add(up_to, k.select(k.ge(lane, distance), before, 0));
            }
            up_to
        };
        let up_to = narrow_sum(total);
        let sums = k.shared(Element::U32, WARPS);
        k.if_then(k.eq(lane, 31), || k.store(sums, warp, up_to));
        k.barrier();
        let mut start = k.sub(up_to, total);
        for other in 0..WARPS {
            start = k.add(start, k.select(k.lt(k.literal(other), warp), k.load(sums, other), 0));
        }
        let mut before_warp = start;
        for (other, count) in (0..WARPS).zip(&of_warps) {
            k.store(table, k.add(thread, other * RADIX), before_warp);
            before_warp = k.add(before_warp, *count);
        }
        k.barrier();
        // Places in the tile, in the order of digits.
        let place = |ranked: &Value| {
            let before = k.load(table, k.add(own_table, k.and(*ranked, RADIX - 1)));
            k.add(k.shr(*ranked, RADIX.ilog2()), before)
        };
        let places: Vec<Value> = ranked.iter().map(place).collect();
        let widest = self.types.iter().map(|ty| ty.bytes()).max().unwrap_or(1);
        let room = k.shared(Element::U8, widest * tile);
        let staged = Shared::over(k, room, self.types[round.key]);
        places.iter().zip(&keys).for_each(|(place, key)| staged.set(k, *place, &[*key]));

        // Place of the first element with the digit in this tile.
        let before = self.look_back(k, current, own, thread);
        k.if_then(k.not(is_first), || publish(k.add(k.add(before, self.wide(k, total)), UP_TO)));
        let bases = k.shared(self.index.element(), RADIX);
        let lesser = k.load(self.control(k), k.add(k.mul(round_number, RADIX), thread));
        k.store(bases, thread, k.sub(k.add(lesser, before), self.wide(k, start)));
        k.barrier();

        let slots: Vec<Value> = (0..items).map(|item| k.add(thread, item * THREADS)).collect();
        let keys: Vec<Value> = slots.iter().map(|slot| staged.get(k, *slot)[0]).collect();
        let goals: Vec<Value> = slots
            .iter()
            .zip(&keys)
            .map(|(slot, key)| k.add(k.load(bases, digit(k, self.sort, round, *key, shift, RADIX)), self.wide(k, *slot)))
            .collect();
        let guarded = |slot: Value, body: &dyn Fn()| k.if_then(k.lt(slot, valid), body);
        let plain = matches!(to, RoundMemory::Set(_)) || self.outlet.stores_values();
        let store = |value: usize, values: &[Value]| {
            let memory = match to {
                RoundMemory::Set(set) => k.memory(Argument::Temporary(self.sets[set][value]), self.types[value].element()),
                RoundMemory::Outside => self.outlet.output(k, value),
            };
            for ((slot, goal), value) in slots.iter().zip(&goals).zip(values) {
                guarded(*slot, &|| k.store_element(memory, *goal, *value, Cache::Normal));
            }
        };
        let mut moved: Vec<Vec<Value>> = vec![];
        for value in 0..self.types.len() {
            let values = if value == round.key {
                keys.clone()
            } else {
                let values = load(value);
                k.barrier();
                let staged = Shared::over(k, room, self.types[value]);
                places.iter().zip(&values).for_each(|(place, value)| staged.set(k, *place, &[*value]));
                k.barrier();
                slots.iter().map(|slot| staged.get(k, *slot)[0]).collect()
            };
            if plain {
                store(value, &values);
            } else {
                moved.push(values);
            }
        }
        if !plain {
            for (item, (slot, goal)) in slots.iter().zip(&goals).enumerate() {
                let values: Vec<Value> = moved.iter().map(|values| values[item]).collect();
                guarded(*slot, &|| self.outlet.put(k, &[*goal], *goal, &values));
            }
        }
    }

    /// Counts the elements with the thread's digit in the tiles before a tile.
    fn look_back(&self, k: &Writer, current: Memory, tile: Value, thread: Value) -> Value {
        let before = k.variable_with(k.constant(self.index, 0));
        let left = k.variable_with(tile);
        k.while_loop(
            || k.ne(k.get(left), 0),
            || {
                let tiles = k.get(left);
                let words: Vec<Value> = (1..=LOOKS)
                    .map(|distance| {
                        // The first tile publishes the full count, so tiles before it are not needed.
                        let other = k.sub(k.max(tiles, distance), distance);
                        let place = k.add(k.mul(k.convert(other, Type::U64), RADIX), k.convert(thread, Type::U64));
                        k.load_as(current, place, 1, Order::Relaxed(Scope::Device), Cache::Normal)
                    })
                    .collect();
                let (mut sum, mut tiles) = (k.get(before), tiles);
                let mut goes_on = k.literal(true);
                for word in words {
                    let is_all = k.ge(word, UP_TO);
                    let used = k.and(goes_on, k.ne(word, 0));
                    let count = k.sub(word, k.select(is_all, k.constant(self.index, UP_TO), 1));
                    sum = k.select(used, k.add(sum, count), sum);
                    let rest = k.select(is_all, k.constant(self.index, 0), k.sub(tiles, 1));
                    tiles = k.select(used, rest, tiles);
                    goes_on = k.and(used, k.not(is_all));
                }
                k.set(before, sum);
                k.set(left, tiles);
            },
        );
        k.get(before)
    }
}
