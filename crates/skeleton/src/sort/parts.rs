//! Sorting on a CPU: parts of the line, one for each block of one thread, whose code is scalar.
//!
//! A round has three kernels:
//!
//! 1. each part counts its digits;
//! 2. a warp computes prefix sums over the digits, and over the parts of each;
//! 3. each part walks through its elements again and moves them to their places.
//!
//! Elements move to as many places as a digit has values, each in a different page. Elements are therefore
//! collected first, in one cache line for each value of the digit. A full line is moved at once, with
//! non-temporal stores if more is sorted than the caches near a core hold. A part whose elements all have one
//! digit is moved unchanged: a round over equal upper bits costs little more than reading the keys.
//!
//! Rejected: a warp that takes 32 elements at a time and finds equal digits by a match among lanes. The
//! match, the gathers and the scatters take twice the time.
//!
//! Rejected: digits of eleven bits for 32-bit keys. There are three rounds instead of four, but the lines for
//! 2,048 values do not fit into a core's first-level cache, and four rounds are faster.
//!
//! Rejected: counting for all rounds at once. The count of a digit in a part depends on the places to which
//! earlier rounds moved the elements.

use super::{Round, RoundMemory, Sort, add_up, digit};
use crate::cost::{self, Costs};
use crate::kit::{Draft, Inlet, Outlet, Writer};
use crate::operator::Operator;
use crate::program::Argument;
use crate::{Count, Result};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Cache, Element, Memory, Order, Type, Unroll, Value};

/// Emitter of the kernels of a sort whose parts belong to warps of vectors.
pub(super) struct PartsEmitter<'a> {
    sort: &'a Sort,
    inlet: Inlet,
    outlet: Outlet,
    index: Type,
    types: Vec<Type>,
    sum: Operator,
    /// Number of parts, and their length.
    parts: Count,
    run: Count,
    /// Temporaries: for each set, one for each value.
    sets: Vec<Vec<usize>>,
    /// Number of elements of a digit in a part, later the place of the first of them.
    counts: usize,
    costs: Costs<'a>,
}

/// Cost of a round by the bits of its digit.
const COSTS: [(u32, u32); 4] = cost::SORT_ROUNDS;
/// The number of elements of a part is a multiple of this.
const UNIT: u32 = cost::PART;
/// Number of bytes of a cache line.
const LINE: u32 = cost::CACHE_LINE;
/// Maximum number of bytes of lines in static shared memory.
const STATIC: u32 = cost::SORT_STATIC;
/// Number of counter tables per block, so that equal neighbours do not wait for each other.
const TABLES: u32 = cost::SORT_TABLES;
/// Number of elements that are moved together if a part is moved unchanged.
const TOGETHER: u32 = cost::SORT_TOGETHER;

/// Returns the number of bits of a digit for a key with `bits` bits.
pub(super) fn digit_bits(bits: u32) -> u32 {
    let rounds = |width: u32| bits.div_ceil(width).max(1);
    let best = COSTS.iter().min_by_key(|(width, cost)| rounds(*width) * cost);
    best.map_or(1, |(width, _)| bits.div_ceil(rounds(*width)).max(1))
}

/// The lines that are collected, one for each value of the digit.
struct CollectedLines {
    /// For each value that moves, the elements of all lines.
    memories: Vec<Memory>,
    /// Number of elements of a line.
    items: u32,
    /// Places of the next element and of the first element of each digit.
    next: Memory,
    starts: Memory,
    /// Flags: whole lines can be moved by wide accesses, and stores are non-temporal.
    wide: Value,
    around: Value,
}

impl<'a> PartsEmitter<'a> {
    pub(super) fn new(
        draft: &mut Draft,
        sort: &'a Sort,
        inlet: Inlet,
        outlet: Outlet,
        index: Type,
        rounds: &[Round],
        machine: &'a Machine,
    ) -> Result<PartsEmitter<'a>> {
        let types = sort.source.results();
        let n = Count::size(0);
        let units = n.clone().div_ceil(UNIT);
        let parts = units.clone().min(Costs::of(machine).busy(cost::SORT_BLOCKS));
        let run = units.div_ceil(parts.clone()) * UNIT;
        let sets =
            (1..rounds.len().min(3)).map(|_| types.iter().map(|ty| draft.temporary(n.clone() * ty.bytes(), false)).collect());
        let sets = sets.collect();
        let radix = rounds.iter().map(|round| 1 << round.bits).max().unwrap_or(1u32);
        let counts = draft.temporary(parts.clone() * radix * index.bytes(), false);
        let sum = Operator::sum(index)?;
        Ok(PartsEmitter { sort, inlet, outlet, index, types, sum, parts, run, sets, counts, costs: Costs::of(machine) })
    }

    /// Emits all rounds. Rounds that differ only in the bits or in the temporaries share kernels.
    pub(super) fn all(&self, draft: &mut Draft, rounds: &[Round]) -> Result<()> {
        let block = [1, 1, 1];
        let one = || Count::Constant(1);
        let grid = [self.parts.clone(), one(), one()];
        let last = rounds.len() - 1;
        let place = |round: usize| RoundMemory::Set(round % 2);
        let mut known: Vec<(usize, RoundMemory, RoundMemory, u32, [usize; 3])> = vec![];
        for (number, round) in rounds.iter().enumerate() {
            let from = if number == 0 { RoundMemory::Outside } else { place(number - 1) };
            let to = if number == last { RoundMemory::Outside } else { place(number) };
            let alike = |a: RoundMemory, b: RoundMemory| (a == RoundMemory::Outside) == (b == RoundMemory::Outside);
            let same = known.iter().find(|(key, f, t, ..)| *key == round.key && alike(*f, from) && alike(*t, to));
            if let Some((_, old_from, old_to, old_shift, kernels)) = same {
                let change = |argument: &Argument| match argument {
                    Argument::Temporary(index) => Argument::Temporary(self.moved(*index, [(*old_from, from), (*old_to, to)])),
                    Argument::Count(Count::Constant(shift), Type::U8) if *shift == u64::from(*old_shift) => {
                        Argument::Count(Count::Constant(round.shift.into()), Type::U8)
                    }
                    Argument::Count(..) | Argument::Input(_) | Argument::Output(_) | Argument::Scalar(_) => argument.clone(),
                };
                kernels.iter().try_for_each(|step| draft.repeat(*step, change))?;
                continue;
            }
            let name = |what: &str| if number == 0 { what.to_owned() } else { format!("{what}_{number}") };
            let mut steps = [0; 3];
            let k = Writer::new(&name("sort_count"), block);
            self.count(&k, *round, from);
            steps[0] = draft.launch(k, grid.clone(), block)?;
            let k = Writer::new(&name("sort_places"), [32, 1, 1]);
            self.add_up(&k, *round);
            steps[1] = draft.launch(k, [one(), one(), one()], [32, 1, 1])?;
            let k = Writer::new(&name("sort_move"), block);
            self.move_elements(&k, *round, from, to);
            steps[2] = draft.launch(k, grid.clone(), block)?;
            known.push((round.key, from, to, round.shift, steps));
        }
        Ok(())
    }

    /// Returns the temporary that replaces another one after an exchange of sets.
    fn moved(&self, index: usize, exchanged: [(RoundMemory, RoundMemory); 2]) -> usize {
        for (old, new) in exchanged {
            if let (RoundMemory::Set(old), RoundMemory::Set(new)) = (old, new)
                && let Some(value) = self.sets[old].iter().position(|own| *own == index)
            {
                return self.sets[new][value];
            }
        }
        index
    }

    fn range(&self, k: &Writer) -> (Value, Value) {
        let (run, n) = (k.count(self.run.clone(), self.index), k.count(Count::size(0), self.index));
        let from = k.min(k.mul(k.convert(k.block(Axis::X), self.index), run), n);
        (from, k.min(k.add(from, run), n))
    }

    fn counts(&self, k: &Writer) -> Memory {
        k.memory(Argument::Temporary(self.counts), self.index.element())
    }

    fn at(&self, k: &Writer, from: RoundMemory, i: Value) -> Vec<Value> {
        match from {
            RoundMemory::Outside => self.inlet.at(k, &[i]),
            RoundMemory::Set(set) => {
                let memory =
                    |(value, ty): (&usize, &Type)| k.load_element(k.memory(Argument::Temporary(*value), ty.element()), *ty, i);
                self.sets[set].iter().zip(&self.types).map(memory).collect()
            }
        }
    }

    fn put(&self, k: &Writer, to: RoundMemory, i: Value, values: &[Value]) {
        match to {
            RoundMemory::Outside => self.outlet.put(k, &[i], i, values),
            RoundMemory::Set(set) => {
                for ((temporary, ty), value) in self.sets[set].iter().zip(&self.types).zip(values) {
                    k.store_element(k.memory(Argument::Temporary(*temporary), ty.element()), i, *value, Cache::Normal);
                }
            }
        }
    }

    /// Returns the outputs of values that are stored unchanged. Returns `None` if a function takes them.
    fn targets(&self, k: &Writer, to: RoundMemory) -> Option<Vec<Memory>> {
        let memory = |(value, ty): (usize, &Type)| match to {
            RoundMemory::Outside => self.outlet.output(k, value),
            RoundMemory::Set(set) => k.memory(Argument::Temporary(self.sets[set][value]), ty.element()),
        };
        let plain = to != RoundMemory::Outside || self.outlet.stores_values();
        plain.then(|| self.types.iter().enumerate().map(memory).collect())
    }

    /// Returns the digit of a key, a `u32`. The shift is an argument, so that rounds share code.
    fn digit(&self, k: &Writer, round: Round, key: Value) -> Value {
        let shift = k.convert(k.count(Count::Constant(round.shift.into()), Type::U8), Type::U32);
        // The mask shows the compiler that the shift is less than the width.
        let shift = k.and(shift, self.types[round.key].element().bits().max(32) - 1);
        digit(k, self.sort, round, key, shift, 1 << round.bits)
    }

    /// Returns the place of the count of a digit for the part of this block.
    fn count_at(&self, k: &Writer, digit: Value) -> Value {
        let parts = k.count(self.parts.clone(), self.index);
        k.add(k.mul(k.convert(digit, self.index), parts), k.convert(k.block(Axis::X), self.index))
    }

    fn count(&self, k: &Writer, round: Round, from: RoundMemory) {
        let (first, end) = self.range(k);
        let radix = 1u32 << round.bits;
        let tables: Vec<Memory> = (0..TABLES).map(|_| k.shared(Element::U32, radix)).collect();
        let all = k.literal(radix);
        k.for_step(0, all, 1, Unroll::Never, |digit| tables.iter().for_each(|table| k.store(*table, digit, 0)));
        let digit = |i: Value| self.digit(k, round, self.at(k, from, i)[round.key]);
        let add = |table: Memory, digit: Value| k.store(table, digit, k.add(k.load(table, digit), 1));
        let whole = k.sub(end, k.rem(k.sub(end, first), TABLES));
        k.for_step(first, whole, TABLES, Unroll::Never, |i| {
            let digits: Vec<Value> = (0..TABLES).map(|item| digit(k.add(i, item))).collect();
            tables.iter().zip(digits).for_each(|(table, digit)| add(*table, digit));
        });
        k.for_step(whole, end, 1, Unroll::Never, |i| add(tables[0], digit(i)));
        k.for_step(0, all, 1, Unroll::Never, |digit| {
            let sum = tables.iter().map(|table| k.load(*table, digit)).reduce(|a, b| k.add(a, b));
            if let Some(sum) = sum {
                k.store(self.counts(k), self.count_at(k, digit), k.convert(sum, self.index));
            }
        });
    }

    /// Replaces all counts by their exclusive prefix sums, over lesser digits and over the same digit in
    /// earlier parts, in one warp.
    fn add_up(&self, k: &Writer, round: Round) {
        let length = k.count(self.parts.clone() * (1u32 << round.bits), self.index);
        add_up(k, &self.sum, self.index, self.counts(k), k.constant(self.index, 0), length);
    }

    fn move_elements(&self, k: &Writer, round: Round, from: RoundMemory, to: RoundMemory) {
        let (first, end) = self.range(k);
        k.if_then(k.lt(first, end), || self.move_part(k, first, end, round, from, to));
    }

    /// Moves the elements of a part that is not empty.
    fn move_part(&self, k: &Writer, first: Value, end: Value, round: Round, from: RoundMemory, to: RoundMemory) {
        // Place of the elements if all have the digit of the first.
        let n = k.count(Count::size(0), self.index);
        let own = self.count_at(k, self.digit(k, round, self.at(k, from, first)[round.key]));
        let place = k.load(self.counts(k), own);
        let length = k.count(self.parts.clone() * (1u32 << round.bits), self.index);
        let next = k.add(own, 1);
        let behind = k.choose_list(k.lt(next, length), || vec![k.load(self.counts(k), next)], || vec![n])[0];
        let is_alike = k.eq(k.sub(behind, place), k.sub(end, first));
        k.if_else(
            is_alike,
            || self.move_all(k, first, end, place, from, to),
            || {
                let lines = self.lines(k, round, to);
                k.for_step(first, end, 1, Unroll::Never, |i| {
                    let values = self.at(k, from, i);
                    self.collect(k, &lines, self.digit(k, round, values[round.key]), &values, to);
                });
                self.move_rest(k, &lines, 1 << round.bits, to);
            },
        );
    }

    /// Moves a part unchanged.
    fn move_all(&self, k: &Writer, first: Value, end: Value, place: Value, from: RoundMemory, to: RoundMemory) {
        let goal = |i: Value| k.add(place, k.sub(i, first));
        let whole = k.sub(end, k.rem(k.sub(end, first), TOGETHER));
        k.for_step(first, whole, TOGETHER, Unroll::Never, |i| {
            let all: Vec<Vec<Value>> = (0..TOGETHER).map(|item| self.at(k, from, k.add(i, item))).collect();
            (0..TOGETHER).zip(&all).for_each(|(item, values)| self.put(k, to, goal(k.add(i, item)), values));
        });
        k.for_step(whole, end, 1, Unroll::Never, |i| self.put(k, to, goal(i), &self.at(k, from, i)));
    }

    fn lines(&self, k: &Writer, round: Round, to: RoundMemory) -> CollectedLines {
        let radix = 1u32 << round.bits;
        let bytes = |types: &[Type]| types.iter().map(|ty| ty.bytes()).sum::<u32>();
        let least = self.types.iter().map(|ty| ty.bytes()).min().unwrap_or(1);
        let mut items = 1 << (LINE / least).max(1).ilog2();
        while items > 1 && radix * items * bytes(&self.types) > self.costs.collected_lines() {
            items /= 2;
        }
        let room = radix * items * bytes(&self.types);
        let room = if room <= STATIC { k.shared(Element::U8, room) } else { k.large_shared(Element::U8, room) };
        // The widest values come first, so that all are aligned.
        let mut order: Vec<usize> = (0..self.types.len()).collect();
        order.sort_by_key(|value| std::cmp::Reverse(self.types[*value].element().bytes()));
        let mut memories = vec![room; order.len()];
        let mut offset = 0;
        for value in order {
            memories[value] = k.shared_view(room, self.types[value].element(), offset);
            offset += radix * items * self.types[value].bytes();
        }
        let [next, starts] = [0; 2].map(|_| k.shared(self.index.element(), radix));
        k.for_step(0, k.literal(radix), 1, Unroll::Never, |digit| {
            let place = k.load(self.counts(k), self.count_at(k, digit));
            k.store(next, digit, place);
            k.store(starts, digit, place);
        });
        let addresses = self.targets(k, to).unwrap_or_default().into_iter().map(|memory| k.address(memory));
        let bits = addresses.reduce(|a, b| k.or(a, b));
        let fits = self.types.iter().all(|ty| (items * ty.bytes()).is_multiple_of(16));
        let wide = bits.filter(|_| fits).map_or(k.literal(false), |bits| k.eq(k.and(bits, LINE - 1), 0));
        let least = self.costs.non_temporal().div_ceil(bytes(&self.types));
        let around = k.ge(k.count(Count::size(0), self.index), least);
        CollectedLines { memories, items, next, starts, wide, around }
    }

    /// Adds an element to the line of its digit. Moves the line when it is full.
    fn collect(&self, k: &Writer, lines: &CollectedLines, digit: Value, values: &[Value], to: RoundMemory) {
        let place = k.load(lines.next, digit);
        k.store(lines.next, digit, k.add(place, 1));
        let within = k.convert(k.and(place, lines.items - 1), Type::U32);
        let line = k.mul(digit, lines.items);
        for (memory, value) in lines.memories.iter().zip(values) {
            k.store_element(*memory, k.add(line, within), *value, Cache::Normal);
        }
        k.if_then(k.eq(within, lines.items - 1), || {
            let first = k.sub(place, lines.items - 1);
            let start = k.load(lines.starts, digit);
            k.if_else(
                k.ge(first, start),
                || self.move_line(k, lines, line, first, to),
                || self.move_some(k, lines, line, start, k.add(place, 1), to),
            );
        });
    }

    /// Moves a whole line.
    fn move_line(&self, k: &Writer, lines: &CollectedLines, line: Value, first: Value, to: RoundMemory) {
        let slowly = || self.move_some(k, lines, line, first, k.add(first, lines.items), to);
        let Some(targets) = self.targets(k, to) else { return slowly() };
        let wide = |around: bool| {
            for ((memory, ty), target) in lines.memories.iter().zip(&self.types).zip(&targets) {
                let lanes = ty.lanes() as u32;
                let all = lines.items * lanes;
                let cache =
                    if around && (lines.items * ty.bytes()).is_multiple_of(LINE) { Cache::Streaming } else { Cache::Normal };
                let wide = if lanes == 1 { first } else { k.mul(k.convert(first, Type::U64), lanes) };
                let width = (1 << all.ilog2()).min(16);
                for start in (0..all).step_by(width as usize) {
                    let width = width.min(all - start);
                    let from = k.add(k.mul(line, lanes), start);
                    k.store_as(*target, k.add(wide, start), k.load_vector(*memory, from, width as usize), Order::Weak, cache);
                }
            }
        };
        k.if_else(lines.wide, || k.if_else(lines.around, || wide(true), || wide(false)), slowly);
    }

    /// Moves the elements of a line whose places are in a range.
    fn move_some(&self, k: &Writer, lines: &CollectedLines, line: Value, first: Value, end: Value, to: RoundMemory) {
        k.for_step(first, end, 1, Unroll::Never, |place| {
            let from = k.add(line, k.convert(k.and(place, lines.items - 1), Type::U32));
            let load = |(memory, ty): (&Memory, &Type)| k.load_element(*memory, *ty, from);
            let values: Vec<Value> = lines.memories.iter().zip(&self.types).map(load).collect();
            self.put(k, to, place, &values);
        });
    }

    /// Moves the remaining elements of lines that are not full.
    fn move_rest(&self, k: &Writer, lines: &CollectedLines, radix: u32, to: RoundMemory) {
        k.for_step(0, k.literal(radix), 1, Unroll::Never, |digit| {
            let end = k.load(lines.next, digit);
            let first = k.sub(end, k.and(end, lines.items - 1));
            let first = k.max(first, k.load(lines.starts, digit));
            self.move_some(k, lines, k.mul(digit, lines.items), first, end, to);
        });
    }
}
