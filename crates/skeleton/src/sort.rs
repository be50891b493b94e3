//! Sort: stable, by one or several keys, some bits of a key at a time from the least significant on.
//!
//! On a GPU a round is one pass over eight bits ([`sweep`]). On a CPU a round has eleven, and the line is cut into parts, one for each block of one thread, whose code is
//! scalar:
//!
//! 1. each part counts its digits;
//! 2. a warp adds up over the digits, and over the parts of each;
//! 3. each part goes through its elements again and moves them to where they belong; shared memory has the next place of each digit.
//!
//! Rejected for a CPU: a warp that takes 32 elements at a time and finds those with the same digit by a match among lanes. Finding them, and the gathers and
//! scatters, take twice the time.
//!
//! The first round reads the source, the last one writes to the sink, and temporaries stand between. Keys are compared by unsigned numbers in the same order, which
//! are made when a digit is wanted; what is moved are the keys themselves, so all bits come out as they went in.

mod sweep;

use crate::cooperate::{broadcast, scan_warp, shift_warp};
use crate::draft::{Draft, Inlet, Outlet, Writer};
use crate::operator::{Accumulator, Operator};
use crate::order::ordered;
use crate::program::{Argument, Program};
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{Axis, Cache, Element, Memory, Type, Unroll, Value};

/// Gives a [`Sink`] the values of a [`Source`] on a line, sorted by the first of them; positions with equal keys keep their order.
///
/// The first results of the source are the keys, the one that counts most first; the others move with them. Sorting within segments is sorting by
/// the number of the segment, then by the key. Floats are ordered as numbers, -0 before +0, and NaN behind all numbers, in descending order too. The
/// size of a call is the length of the line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// Keys and values.
    pub source: Source,
    /// How the first values are compared.
    pub keys: Vec<SortKey>,
    /// What becomes of keys and values; its position is the place in the order.
    pub sink: Sink,
}

/// How a key is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// Whether the greatest comes first.
    pub descending: bool,
    /// How many of the lowest bits of an unsigned key may be other than zero; all of them if not said. Fewer bits are fewer rounds.
    pub bits: Option<u32>,
}

/// Where a round reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The source, or the sink.
    Outside,
    /// The first or the second set of temporaries.
    Set(usize),
}

struct Parts<'a> {
    sort: &'a Sort,
    inlet: Inlet,
    outlet: Outlet,
    index: Type,
    types: Vec<Type>,
    sum: Operator,
    /// How many parts there are, and how long they are.
    parts: Count,
    run: Count,
    /// Temporaries: for each set, one for each value.
    sets: Vec<Vec<usize>>,
    /// How many elements of a digit a part has; then, where the first of them goes.
    counts: usize,
}

/// A round: a key, and the first of its bits.
#[derive(Clone, Copy)]
struct Round {
    key: usize,
    shift: u32,
}

/// Bits of a digit, on a GPU and on a CPU.
const GPU_BITS: u32 = 8;
const CPU_BITS: u32 = 11;
/// Values of a digit.
const RADIX: u32 = 1 << GPU_BITS;
const CPU_RADIX: u32 = 1 << CPU_BITS;

/// The digit of a key from a bit on, a `u32`, of so many values.
fn digit(k: &Writer, sort: &Sort, round: Round, key: Value, shift: Value, radix: u32) -> Value {
    let how = sort.keys[round.key];
    if how.bits == Some(0) {
        return k.literal(0u32);
    }
    k.convert(k.and(k.shr(ordered(k, key, how.descending), shift), radix - 1), Type::U32)
}

/// A warp replaces numbers in a row of memory by the sum of those before them, and gives the sum of all.
fn add_up(k: &Writer, sum: &Operator, index: Type, memory: Memory, first: Value, length: Value) -> Value {
    let lane = k.thread(Axis::X);
    let carry = Accumulator::new(k, sum);
    k.for_step(0, length, 32, Unroll::Never, |row| {
        let part = k.add(row, k.convert(lane, index));
        let (there, place) = (k.lt(part, length), k.add(first, part));
        let own = k.choose_list(there, || vec![k.load(memory, place)], || sum.nothing(k));
        let up_to = scan_warp(k, sum, &own, lane);
        let before = sum.combine(k, &carry.get(k), &shift_warp(k, sum, &up_to, lane));
        k.if_then(there, || k.store(memory, place, before[0]));
        carry.add(k, &broadcast(k, &up_to, 31));
    });
    carry.get(k)[0]
}

impl Sort {
    fn rounds(&self, types: &[Type], digit_bits: u32) -> Result<Vec<Round>> {
        let mut rounds = vec![];
        for (key, how) in self.keys.iter().enumerate().rev() {
            let element = types[key].element();
            let all = element.bits();
            let bits = match how.bits {
                Some(bits) if element.is_signed() || element.is_float() || how.descending => {
                    let reason = format!("a key of type `{element}` with {bits} bits; only unsigned, ascending keys have fewer");
                    return Err(Error::Pattern { pattern: "sort", reason });
                }
                bits => bits.unwrap_or(all).min(all),
            };
            rounds.extend((0..bits).step_by(digit_bits as usize).map(|shift| Round { key, shift }));
        }
        Ok(rounds)
    }

    /// The program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let types = self.source.results();
        let bad = |reason: String| Err(Error::Pattern { pattern: "sort", reason });
        if self.keys.is_empty() || self.keys.len() > types.len() {
            return bad(format!(
                "{} keys, and `{}` gives {} values",
                self.keys.len(),
                self.source.function().name(),
                types.len()
            ));
        }
        if let Some(ty) = types[..self.keys.len()].iter().find(|ty| !ty.is_scalar()) {
            return bad(format!("a key of type `{ty}`"));
        }
        self.sink.check("sort", 1, &types)?;
        let index = Domain::LINE.check("sort", &[&self.source], &self.sink)?;
        // Where no bits count, one round that finds all alike moves everything.
        let is_cpu = machine.kind == MachineKind::Cpu;
        let mut rounds = self.rounds(&types, if is_cpu { CPU_BITS } else { GPU_BITS })?;
        if rounds.is_empty() {
            rounds.push(Round { key: 0, shift: 0 });
        }
        let n = Count::size(0);
        let mut draft = Draft::new("sort", 1);
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, &types, &n);
        if index == Type::U32 {
            draft.limit(n.clone());
        }
        if !is_cpu {
            let sweep = sweep::Sweep::new(&mut draft, self, (inlet, outlet), index, &rounds, machine)?;
            sweep.all(&mut draft, &rounds)?;
            return Ok(draft.finish());
        }
        let unit = 2048u32;
        let units = n.clone().div_ceil(unit);
        let parts = units.clone().min(u64::from(machine.multiprocessors) * 8);
        let run = units.div_ceil(parts.clone()) * unit;
        let sets =
            (1..rounds.len().min(3)).map(|_| types.iter().map(|ty| draft.temporary(n.clone() * ty.bytes(), false)).collect());
        let sets = sets.collect();
        let counts = draft.temporary(parts.clone() * CPU_RADIX * index.bytes(), false);
        let sum = Operator::sum(index)?;
        let sort = Parts { sort: self, inlet, outlet, index, types, sum, parts, run, sets, counts };
        sort.all(&mut draft, &rounds)?;
        Ok(draft.finish())
    }
}

impl Parts<'_> {
    /// All rounds. Those that differ in the bits or in the temporaries only have the same kernels.
    fn all(&self, draft: &mut Draft, rounds: &[Round]) -> Result<()> {
        let block = [1, 1, 1];
        let one = || Count::Constant(1);
        let grid = [self.parts.clone(), one(), one()];
        let last = rounds.len() - 1;
        let place = |round: usize| Place::Set(round % 2);
        let mut known: Vec<(usize, Place, Place, u32, [usize; 3])> = vec![];
        for (number, round) in rounds.iter().enumerate() {
            let from = if number == 0 { Place::Outside } else { place(number - 1) };
            let to = if number == last { Place::Outside } else { place(number) };
            let alike = |a: Place, b: Place| (a == Place::Outside) == (b == Place::Outside);
            let same = known.iter().find(|(key, f, t, ..)| *key == round.key && alike(*f, from) && alike(*t, to));
            if let Some((_, old_from, old_to, old_shift, kernels)) = same {
                let change = |argument: &Argument| match argument {
                    Argument::Temporary(index) => Argument::Temporary(self.moved(*index, [(*old_from, from), (*old_to, to)])),
                    Argument::Count(Count::Constant(shift), Type::U8) if *shift == u64::from(*old_shift) => {
                        Argument::Count(Count::Constant(round.shift.into()), Type::U8)
                    }
                    Argument::Count(..) | Argument::Input(_) | Argument::Output(_) | Argument::Scalar(_) => argument.clone(),
                };
                kernels.iter().for_each(|step| draft.repeat(*step, change));
                continue;
            }
            let name = |what: &str| if number == 0 { what.to_owned() } else { format!("{what}_{number}") };
            let mut steps = [0; 3];
            let k = Writer::new(&name("sort_count"), block);
            self.count(&k, *round, from);
            steps[0] = draft.launch(k, grid.clone(), block)?;
            let k = Writer::new(&name("sort_places"), [32, 1, 1]);
            self.add_up(&k);
            steps[1] = draft.launch(k, [one(), one(), one()], [32, 1, 1])?;
            let k = Writer::new(&name("sort_move"), block);
            self.move_elements(&k, *round, from, to);
            steps[2] = draft.launch(k, grid.clone(), block)?;
            known.push((round.key, from, to, round.shift, steps));
        }
        Ok(())
    }

    /// The temporary that stands for another one where sets are exchanged.
    fn moved(&self, index: usize, exchanged: [(Place, Place); 2]) -> usize {
        for (old, new) in exchanged {
            if let (Place::Set(old), Place::Set(new)) = (old, new)
                && let Some(value) = self.sets[old].iter().position(|own| *own == index)
            {
                return self.sets[new][value];
            }
        }
        index
    }

    fn range(&self, k: &Writer) -> (Value, Value) {
        let run = k.count(self.run.clone(), self.index);
        let from = k.mul(k.convert(k.block(Axis::X), self.index), run);
        (from, k.min(k.add(from, run), k.count(Count::size(0), self.index)))
    }

    fn counts(&self, k: &Writer) -> Memory {
        k.memory(Argument::Temporary(self.counts), self.index.element())
    }

    fn at(&self, k: &Writer, from: Place, i: Value) -> Vec<Value> {
        match from {
            Place::Outside => self.inlet.at(k, &[i]),
            Place::Set(set) => {
                let memory =
                    |(value, ty): (&usize, &Type)| k.load_element(k.memory(Argument::Temporary(*value), ty.element()), *ty, i);
                self.sets[set].iter().zip(&self.types).map(memory).collect()
            }
        }
    }

    fn put(&self, k: &Writer, to: Place, i: Value, values: &[Value]) {
        match to {
            Place::Outside => self.outlet.put(k, &[i], i, values),
            Place::Set(set) => {
                for ((temporary, ty), value) in self.sets[set].iter().zip(&self.types).zip(values) {
                    k.store_element(k.memory(Argument::Temporary(*temporary), ty.element()), i, *value, Cache::Normal);
                }
            }
        }
    }

    /// The digit of a key, a `u32`. The shift is an argument, so that rounds have the same code.
    fn digit(&self, k: &Writer, round: Round, key: Value) -> Value {
        let shift = k.convert(k.count(Count::Constant(round.shift.into()), Type::U8), Type::U32);
        digit(k, self.sort, round, key, shift, CPU_RADIX)
    }

    /// Where the count of a digit is for the part of this block.
    fn count_at(&self, k: &Writer, digit: Value) -> Value {
        let parts = k.count(self.parts.clone(), self.index);
        k.add(k.mul(k.convert(digit, self.index), parts), k.convert(k.block(Axis::X), self.index))
    }

    fn count(&self, k: &Writer, round: Round, from: Place) {
        let (first, end) = self.range(k);
        // Neighbours are counted in tables of their own, so that equal ones do not wait for each other.
        let tables: Vec<Memory> = (0..2).map(|_| k.shared(Element::U32, CPU_RADIX)).collect();
        k.for_step(0, k.literal(CPU_RADIX), 1, Unroll::Never, |digit| tables.iter().for_each(|table| k.store(*table, digit, 0)));
        let one = |table: Memory, i: Value| {
            let digit = self.digit(k, round, self.at(k, from, i)[round.key]);
            k.store(table, digit, k.add(k.load(table, digit), 1));
        };
        k.for_step(first, end, 2, Unroll::Never, |i| {
            one(tables[0], i);
            let next = k.add(i, 1);
            k.if_then(k.lt(next, end), || one(tables[1], next));
        });
        k.for_step(0, k.literal(CPU_RADIX), 1, Unroll::Never, |digit| {
            let sum = tables.iter().map(|table| k.load(*table, digit)).reduce(|a, b| k.add(a, b));
            if let Some(sum) = sum {
                k.store(self.counts(k), self.count_at(k, digit), k.convert(sum, self.index));
            }
        });
    }

    /// A warp replaces all counts by the sum of those before them: of lesser digits, and of the same digit in earlier parts.
    fn add_up(&self, k: &Writer) {
        let length = k.count(self.parts.clone() * CPU_RADIX, self.index);
        add_up(k, &self.sum, self.index, self.counts(k), k.constant(self.index, 0), length);
    }

    fn move_elements(&self, k: &Writer, round: Round, from: Place, to: Place) {
        let (first, end) = self.range(k);
        // Where the next element of each digit goes.
        let next = k.shared(self.index.element(), CPU_RADIX);
        k.for_step(0, k.literal(CPU_RADIX), 1, Unroll::Never, |digit| {
            k.store(next, digit, k.load(self.counts(k), self.count_at(k, digit)));
        });
        k.for_step(first, end, 1, Unroll::Never, |i| {
            let values = self.at(k, from, i);
            let digit = self.digit(k, round, values[round.key]);
            let place = k.load(next, digit);
            k.store(next, digit, k.add(place, 1));
            self.put(k, to, place, &values);
        });
    }
}
