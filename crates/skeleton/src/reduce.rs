//! Reduce: an associative operator over some axes of a domain.
//!
//! Reduced and kept axes may be in any order. Adjacent threads work along the last axis if it is long:
//!
//! - along *kept* positions: each thread loops over all positions that are reduced into its result;
//! - along *reduced* positions: a warp or a block computes one result. Its threads take adjacent positions
//!   and combine their values in the order of threads. On a CPU a warp computes four results at a time if
//!   there are many. Inputs that all four read, such as the vector of a matrix-vector product, are then read
//!   once.
//!
//! If there are too few results to keep the machine busy, the reduced positions are *split*. Parts are
//! combined first, and a second kernel combines the parts in their order. The number of parts is computed
//! from sizes and machine, so results are deterministic.
//!
//! Rejected: a counter by which the last block to finish combines the parts. It saves a launch, but every
//! block pays for a fence.

mod columns;
mod short_rows;

use crate::cost::{self, Costs};
use crate::kit::{Accumulator, Draft, Inlet, Outlet, Shared, Temporaries, Writer, reduce_block, reduce_warp, unravel};
use crate::operator::Operator;
use crate::program::Program;
use crate::read_steps::{ReadStep, ReadSteps};
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Type, Unroll, Value};
use std::ops::Range;

/// Combines the values of a [`Source`] along some axes of a domain by an [`Operator`]. The results go to a
/// [`Sink`] whose positions are those of the kept axes.
///
/// The sizes of a call are the lengths of all axes. A result over no elements is the operator's identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// The positions.
    pub domain: Domain,
    /// For each axis: true if it is reduced.
    pub reduced: Vec<bool>,
    /// The values.
    pub source: Source,
    /// Operator that combines them.
    pub operator: Operator,
    /// Use of the results.
    pub sink: Sink,
    /// Spread of threads.
    pub spread: Spread,
}

/// The distribution of threads over a reduction. Every spread gives correct results for all sizes.
/// [`Spread::of`] chooses a fast one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spread {
    /// True if neighbouring threads compute neighbouring results. Otherwise they work on one result together.
    pub along_kept: bool,
    /// True if a block computes a result, false if a warp does. On a CPU a block is a warp; if false, it
    /// computes several results at a time.
    pub blocks: bool,
    /// True if the positions of one result are split among several blocks.
    pub split: bool,
    /// Number of rows of results per lane of a CPU if `columns` is not 0, along the two kept axes before the
    /// last. Values that the rows share are read once.
    pub rows: [u32; 2],
    /// Number of results per lane of a CPU along the last kept axis, a warp apart, if the lanes of a warp have
    /// results of one row. 0 if they have results in the order of their numbers.
    pub columns: u32,
    /// Number of groups of threads of a GPU that share the reduced positions of the same results, if
    /// `along_kept` is true.
    pub groups: u32,
    /// Number of elements of a thread of a GPU at a time, if a warp computes a result. 0 for the usual number.
    pub items: u32,
    /// Number of lanes of a warp of a GPU that compute one of several short results, if the operator is
    /// commutative. 0 for a whole warp.
    pub lanes: u32,
}

impl Default for Spread {
    /// Returns the spread that serves all sizes: a warp computes a result.
    fn default() -> Spread {
        Spread { along_kept: false, blocks: false, split: false, rows: [1, 1], columns: 0, groups: 1, items: 0, lanes: 0 }
    }
}

/// Maximum number of elements of a result that shares a warp.
const MOST_SHORT: u64 = LANES / 2 * cost::SHORT_ITEMS as u64;
/// Maximum number of rows of results per lane along one axis.
const MAX_ROWS: u64 = 4;

impl Spread {
    /// Maximum number of rows of results per lane.
    pub const MOST_ROWS: usize = 9;

    /// Encodes the spread as a number.
    pub fn number(self) -> u64 {
        let flags = [self.along_kept, self.blocks, self.split].map(u64::from);
        let numbers = [self.rows[0], self.rows[1], self.columns, self.groups, self.items, self.lanes];
        let coded = numbers.iter().rev().fold(0, |coded, number| coded << 8 | u64::from(*number));
        flags[0] | flags[1] << 1 | flags[2] << 2 | coded << 8
    }

    /// Decodes a spread from its [number](Spread::number).
    pub fn from_number(number: u64) -> Spread {
        let coded = |place: u32| (number >> (8 + 8 * place) & 0xff) as u32;
        Spread {
            along_kept: number & 1 != 0,
            blocks: number & 2 != 0,
            split: number & 4 != 0,
            rows: [coded(0), coded(1)],
            columns: coded(2),
            groups: coded(3),
            items: coded(4),
            lanes: coded(5),
        }
    }

    /// Returns a fast spread for these sizes, for a source that reads neighbours along the last axis.
    pub fn of(machine: &Machine, sizes: &[u64], reduced: &[bool]) -> Spread {
        Spread::for_reads(machine, sizes, reduced, None)
    }

    /// Returns a fast spread for these sizes and the steps of the reads. Lanes work along the axis along which
    /// fewer reads are far apart.
    pub fn for_reads(machine: &Machine, sizes: &[u64], reduced: &[bool], reads: Option<&ReadSteps>) -> Spread {
        let product = |which: bool| {
            let lengths = sizes.iter().zip(reduced).filter(|(_, reduced)| **reduced == which);
            lengths.fold(1u64, |product, (length, _)| product.saturating_mul(*length))
        };
        let (kept, folded) = (product(false), product(true));
        let costs = Costs::of(machine);
        let last_kept = reduced.last() == Some(&false);
        let last = sizes.last().copied().unwrap_or(1);
        let is_row = last_kept && last >= LANES;
        let usual = is_row || folded < costs.pick(cost::SHORT_FOLD);
        // The last axes along which lanes can work, with the numbers of reads that are far apart along them.
        let lanes = |which: bool| (0..sizes.len()).rev().find(|axis| reduced[*axis] == which && sizes[*axis] > 1);
        let far = |axis: usize, reads: &ReadSteps| reads.along(axis).filter(|step| *step == ReadStep::Far).count();
        let along = |axis: usize| reads.map(|reads| far(axis, reads));
        let (across, within) = (lanes(false), lanes(true));
        let apart = [across.and_then(along), within.and_then(along)];
        let length = across.map_or(1, |axis| sizes[axis]);
        let along_kept = match apart {
            [Some(across), Some(within)] if across < within && length >= cost::NARROW_ROW => true,
            [Some(across), Some(within)] if across > within && folded >= costs.pick(cost::SHORT_FOLD) => false,
            _ => usual,
        };
        let enough = if along_kept { costs.enough_columns() } else { costs.enough_rows() };
        let split = kept < enough && folded >= if along_kept { cost::SPLIT_COLUMNS } else { cost::SPLIT_ROWS };
        let few = costs.in_vectors() && (split || kept < costs.busy(cost::FEW_ROWS));
        let blocks = few || folded > costs.pick(cost::LONG_FOLD);
        let spread = Spread { along_kept, blocks: !along_kept && blocks, split, ..Spread::default() };
        if costs.in_vectors() {
            let is_last = across == reduced.iter().rposition(|reduced| !*reduced);
            let is_narrow = apart[0] == Some(0) && is_last && length >= cost::NARROW_ROW;
            let columns = length.div_ceil(LANES).min(u64::from(cost::REDUCE_COLUMNS)) as u32;
            return Spread { columns: if along_kept && (is_row || is_narrow) { columns } else { 0 }, ..spread };
        }
        let few_results = along_kept && split && kept <= u64::from(cost::COLUMN_THREADS.threads);
        let across = kept.next_power_of_two().max(cost::NARROW_ROW) as u32;
        let groups = if few_results { cost::BLOCK_THREADS / across } else { 1 };
        // Several short results share a warp, whose start costs as much as some of them.
        let is_short = (cost::SHORT_ITEMS.into()..=MOST_SHORT).contains(&folded);
        if is_short && !along_kept && !split {
            let lanes = folded.next_power_of_two() as u32 / cost::SHORT_ITEMS;
            return Spread { items: cost::SHORT_ITEMS, lanes, ..spread };
        }
        // Fewer elements than a warp has lanes are read at once.
        let items = folded.div_ceil(LANES).next_power_of_two().min(8) as u32;
        Spread { groups, items: if items < 8 { items } else { 0 }, ..spread }
    }

    /// Returns the spread for a source whose neighbouring rows read mostly the same values. The number of
    /// rows per lane divides the lengths about evenly.
    pub fn sharing(self, sizes: &[u64], reduced: &[bool]) -> Spread {
        let mut lengths = sizes.iter().zip(reduced).filter(|(_, reduced)| !**reduced).map(|(length, _)| *length).rev();
        // Rows that share values are read by lanes of one row each, even if that row is short.
        let is_row = self.along_kept && lengths.next().is_some_and(|length| length >= cost::NARROW_ROW);
        let columns = if is_row { self.columns.max(1) } else { self.columns };
        // A lane does some of its work once for all rows.
        let best = |length: u64, most: u64| {
            let effort = |rows: &u64| length.div_ceil(*rows).saturating_mul(rows + 2);
            (1..=most.min(length).max(1)).min_by_key(effort).unwrap_or(1)
        };
        let below = best(lengths.next().unwrap_or(1), MAX_ROWS);
        let above = best(lengths.next().unwrap_or(1), MAX_ROWS.min(Self::MOST_ROWS as u64 / below));
        Spread { rows: [above as u32, below as u32], columns, ..self }
    }
}

/// Maximum number of tiles per block if several blocks have one result.
const MOST_TILES: u32 = cost::REDUCE_TILES;
/// Number of threads of a block on a GPU.
const THREADS: u32 = cost::BLOCK_THREADS;
/// Number of lanes of a warp.
const LANES: u64 = cost::LANES as u64;
/// Rounds of a loop whose loads a thread has in flight together.
const ROUNDS: u8 = cost::COLUMN_ROUNDS;

impl Reduce {
    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let axes = self.domain.axes();
        if self.reduced.len() != axes {
            let reason = format!("{axes} axes, and {} are said to be reduced or kept", self.reduced.len());
            return Err(Error::Pattern { pattern: "reduce", reason });
        }
        let types = self.operator.types();
        if self.source.results() != types {
            let reason = format!("`{}` does not give what the operator takes", self.source.function().name());
            return Err(Error::Pattern { pattern: "reduce", reason });
        }
        let kept_axes: Vec<usize> = (0..axes).filter(|axis| !self.reduced[*axis]).collect();
        self.sink.check("reduce", kept_axes.len(), &types)?;
        let index = self.domain.check("reduce", &[&self.source], &self.sink)?;
        let kept = kept_axes.iter().map(|axis| self.domain.size(*axis)).reduce(|a, b| a * b).unwrap_or(Count::Constant(1));
        let mut draft = Draft::new("reduce", axes);
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, &types, &kept);
        if index == Type::U32 {
            draft.limit(self.domain.count());
            draft.limit(kept.clone());
        }
        let is_cpu = Costs::of(machine).in_vectors();
        let folded_axes: Vec<usize> = (0..axes).filter(|axis| self.reduced[*axis]).collect();
        let parts = ReduceEmitter { reduce: self, inlet, outlet, index, is_cpu, kept_axes, folded_axes, kept };
        if self.spread.along_kept && parts.has_columns() {
            parts.along_columns(&mut draft, machine)?;
        } else if self.spread.along_kept && self.spread.groups > 1 && self.operator.is_commutative() {
            parts.in_groups(&mut draft, machine)?;
        } else if self.spread.along_kept {
            parts.along_kept(&mut draft, machine)?;
        } else {
            parts.along_folded(&mut draft, machine)?;
        }
        Ok(draft.finish())
    }
}

/// Emitter of the kernels of a reduction.
struct ReduceEmitter<'a> {
    reduce: &'a Reduce,
    inlet: Inlet,
    outlet: Outlet,
    index: Type,
    is_cpu: bool,
    kept_axes: Vec<usize>,
    folded_axes: Vec<usize>,
    /// Number of results.
    kept: Count,
}

/// Partial results that the first kernel passes to the second.
struct PartialResults {
    values: Temporaries,
    /// Number of parts of a result.
    count: Count,
}

impl ReduceEmitter<'_> {
    fn operator(&self) -> &Operator {
        &self.reduce.operator
    }

    fn product(&self, axes: &[usize]) -> Count {
        axes.iter().map(|axis| self.reduce.domain.size(*axis)).reduce(|a, b| a * b).unwrap_or(Count::Constant(1))
    }

    fn lengths(&self, k: &Writer, axes: &[usize]) -> Vec<Value> {
        axes.iter().map(|axis| k.count_in_code(self.reduce.domain.size(*axis), self.index)).collect()
    }

    /// Returns the values at a kept and a reduced position.
    fn at(&self, k: &Writer, kept: &[Value], folded: &[Value]) -> Vec<Value> {
        self.inlet.at(k, &self.position(kept, folded))
    }

    fn position(&self, kept: &[Value], folded: &[Value]) -> Vec<Value> {
        let (mut kept, mut folded) = (kept.iter(), folded.iter());
        let next = |reduced: &bool| if *reduced { folded.next() } else { kept.next() };
        self.reduce.reduced.iter().filter_map(next).copied().collect()
    }

    fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    /// Allocates memory for the parts of all results, `count` per result, if the reduced positions are split.
    fn pieces(&self, draft: &mut Draft, count: Count) -> Option<PartialResults> {
        self.reduce.spread.split.then(|| {
            let values = Temporaries::new(draft, &self.operator().types(), &(self.kept.clone() * count.clone()));
            PartialResults { values, count }
        })
    }

    // Spread along kept positions: neighbouring threads compute neighbouring results.

    /// Returns the number of parts of the reduced positions for this number of blocks, and memory for the
    /// parts. The parts fill the machine, and have at least 16 elements each.
    fn split(&self, draft: &mut Draft, machine: &Machine, folded: &Count, blocks: &Count) -> (Count, Option<PartialResults>) {
        let costs = Costs::of(machine);
        let busy = costs.blocks(cost::REDUCE_COLUMN_BLOCKS, costs.pick(cost::COLUMN_THREADS));
        let split = folded.clone().div_ceil(16u32).min(Count::Constant(busy).div_ceil(blocks.clone())).max(1u32);
        let pieces = self.pieces(draft, split.clone());
        (if pieces.is_some() { split } else { Count::Constant(1) }, pieces)
    }

    fn along_kept(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let folded = self.product(&self.folded_axes);
        // Many short results share a block, whose start costs as much as some of them.
        let threads = match self.reduce.spread.split {
            false if self.is_cpu => cost::LONG_BLOCK,
            false => THREADS,
            true => Costs::of(machine).pick(cost::COLUMN_THREADS),
        };
        let blocks = self.kept.clone().div_ceil(threads);
        let (split, pieces) = self.split(draft, machine, &folded, &blocks);
        let block = [threads, 1, 1];
        let k = Writer::new("reduce", block);
        let (n, all) = (k.count_in_code(self.kept.clone(), self.index), k.count_in_code(folded.clone(), self.index));
        let part_length = k.count_in_code(folded.div_ceil(split.clone()), self.index);
        let part = self.wide(&k, k.block(Axis::Y));
        let (from, to) = self.range(&k, &pieces, part, part_length, all);
        let first = k.mul(self.wide(&k, k.block(Axis::X)), threads);
        let result = k.add(first, self.wide(&k, k.thread(Axis::X)));
        let run = |checked: bool| {
            let sum = Accumulator::new(&k, self.operator());
            let kept = unravel(&k, result, &self.lengths(&k, &self.kept_axes));
            let guarded = |body: &dyn Fn()| if checked { k.if_then(k.lt(result, n), body) } else { body() };
            let is_short = pieces.is_none() && !self.is_cpu && self.reduce.has_short_rows();
            if is_short {
                guarded(&|| self.add_short_row(&k, &kept, &sum));
            } else {
                k.for_step(from, to, 1, self.rounds(), |folded| {
                    let folded = self.folded_at(&k, folded);
                    guarded(&|| sum.add(&k, &self.at(&k, &kept, &folded)));
                });
            }
            guarded(&|| match &pieces {
                Some(pieces) => pieces.values.store(&k, k.add(k.mul(part, n), result), &sum.get(&k)),
                None => self.outlet.put(&k, &kept, result, &sum.get(&k)),
            });
        };
        k.if_else(k.ge(k.sub(n, first), threads), || run(false), || run(true));
        draft.launch(k, [blocks, split, 1u32.into()], block)?;
        match pieces {
            Some(pieces) => self.combine_columns(draft, &pieces, threads),
            None => Ok(()),
        }
    }

    /// Returns the reduced positions of a part: all of them on a CPU if they are not split.
    fn range(&self, k: &Writer, pieces: &Option<PartialResults>, part: Value, length: Value, all: Value) -> (Value, Value) {
        if self.is_cpu && pieces.is_none() {
            return (k.constant(self.index, 0), all);
        }
        let from = k.mul(part, length);
        (from, k.min(k.add(from, length), all))
    }

    /// Returns the reduced position with a number.
    fn folded_at(&self, k: &Writer, number: Value) -> Vec<Value> {
        unravel(k, number, &self.lengths(k, &self.folded_axes))
    }

    /// Returns the unrolling of a loop over reduced positions. A thread of a GPU has several loads in flight. A CPU
    /// loads neighbours of a short row of known length together.
    fn rounds(&self) -> Unroll {
        let operations = self.reduce.source.function().operations();
        match self.product(&self.folded_axes) {
            Count::Constant(rounds) if self.is_cpu && rounds * operations.max(1) <= cost::UNROLLED_FOLD => Unroll::Full,
            _ if self.is_cpu || operations > cost::PREFETCHED => Unroll::Never,
            _ => Unroll::By(ROUNDS),
        }
    }

    /// Emits the kernels of a GPU for few results. The threads of a block have the results several times, and
    /// each group of them has a part of the reduced positions. The groups are combined in their order.
    fn in_groups(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let folded = self.product(&self.folded_axes);
        let groups = self.reduce.spread.groups;
        let across = THREADS / groups;
        let blocks = self.kept.clone().div_ceil(across);
        let busy = Costs::of(machine).blocks(cost::REDUCE_COLUMN_BLOCKS, THREADS);
        let rounds = groups * u32::from(ROUNDS);
        let split = folded.clone().div_ceil(rounds).min(Count::Constant(busy).div_ceil(blocks.clone())).max(1u32);
        let pieces = self.pieces(draft, split.clone());
        let split = if pieces.is_some() { split } else { Count::Constant(1) };
        let block = [across, groups, 1];
        let k = Writer::new("reduce", block);
        let (n, all) = (k.count_in_code(self.kept.clone(), self.index), k.count_in_code(folded.clone(), self.index));
        let part_length = k.count_in_code(folded.div_ceil(split.clone()), self.index);
        let part = self.wide(&k, k.block(Axis::Y));
        let from = k.mul(part, part_length);
        let to = k.min(k.add(from, part_length), all);
        let (lane, group) = (k.thread(Axis::X), k.thread(Axis::Y));
        let result = k.add(k.mul(self.wide(&k, k.block(Axis::X)), across), self.wide(&k, lane));
        let is_result = k.lt(result, n);
        let kept = unravel(&k, result, &self.lengths(&k, &self.kept_axes));
        let sum = Accumulator::new(&k, self.operator());
        k.if_then(is_result, || {
            k.for_step(k.add(from, self.wide(&k, group)), to, groups, self.rounds(), |folded| {
                let folded = unravel(&k, folded, &self.lengths(&k, &self.folded_axes));
                sum.add(&k, &self.at(&k, &kept, &folded));
            });
        });
        let shared = Shared::new(&k, &self.operator().types(), THREADS);
        shared.set(&k, k.add(k.mul(group, across), lane), &sum.get(&k));
        k.barrier();
        k.if_then(k.and(is_result, k.eq(group, 0)), || {
            k.for_step(1, k.literal(groups), 1, Unroll::By(4), |other| {
                sum.add(&k, &shared.get(&k, k.add(k.mul(other, across), lane)));
            });
            match &pieces {
                // The parts of a result follow each other.
                Some(pieces) => {
                    let parts = k.count_in_code(pieces.count.clone(), self.index);
                    pieces.values.store(&k, k.add(k.mul(result, parts), part), &sum.get(&k));
                }
                None => self.outlet.put(&k, &kept, result, &sum.get(&k)),
            }
        });
        draft.launch(k, [blocks, split, 1u32.into()], block)?;
        match pieces {
            Some(pieces) => self.combine_pieces(draft, &pieces),
            None => Ok(()),
        }
    }

    /// Emits the second kernel: each thread combines the parts of one result.
    fn combine_columns(&self, draft: &mut Draft, pieces: &PartialResults, threads: u32) -> Result<()> {
        let block = [threads, 1, 1];
        let k = Writer::new("reduce_parts", block);
        let n = k.count_in_code(self.kept.clone(), self.index);
        let result = self.wide(&k, k.global_thread(Axis::X));
        k.if_then(k.lt(result, n), || {
            let sum = Accumulator::new(&k, self.operator());
            let parts = k.count_in_code(pieces.count.clone(), self.index);
            let unroll = if self.is_cpu { Unroll::Auto } else { Unroll::By(2 * ROUNDS) };
            k.for_step(k.constant(self.index, 0), parts, 1, unroll, |part| {
                sum.add(&k, &pieces.values.load(&k, k.add(k.mul(part, n), result)));
            });
            let kept = unravel(&k, result, &self.lengths(&k, &self.kept_axes));
            self.outlet.put(&k, &kept, result, &sum.get(&k));
        });
        draft.launch(k, [self.kept.clone().div_ceil(threads), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    // Spread along reduced positions: neighbouring threads work on one result.

    /// Returns the reduced axes that form rows, which a block visits one by one, and the axes within a row.
    fn rows(&self) -> (&[usize], &[usize]) {
        let last_is_folded = self.reduce.reduced.last() == Some(&true);
        match self.folded_axes.split_last() {
            Some((_, above)) if self.reduce.domain.has_rows() && last_is_folded => self.folded_axes.split_at(above.len()),
            _ => (&[], &self.folded_axes),
        }
    }

    fn along_folded(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let Spread { blocks, split, .. } = self.reduce.spread;
        if self.is_cpu && !blocks && !split && self.operator().is_commutative() {
            return self.several(draft);
        }
        let shape = self.shape();
        let (above, within) = self.rows();
        // A unit is a tile of a row. A block has a run of units.
        let tiles = self.product(within).div_ceil(shape.tile);
        let units = self.product(above) * tiles.clone();
        let busy = Costs::of(machine).blocks(cost::REDUCE_ROW_BLOCKS, THREADS);
        let split = units
            .clone()
            .min(Count::Constant(busy).div_ceil(self.kept.clone()))
            .max(units.clone().div_ceil(MOST_TILES))
            .max(1u32);
        let pieces = self.pieces(draft, split.clone());
        let split = if pieces.is_some() { split } else { Count::Constant(1) };
        let k = Writer::new("reduce", shape.block);
        let group = self.wide(&k, k.block(Axis::X));
        let group = match shape.groups {
            1 => group,
            groups => k.add(k.mul(group, groups), self.wide(&k, k.thread(Axis::Y))),
        };
        let parts = k.count_in_code(split.clone(), self.index);
        let all_groups = self.kept.clone() * split.clone();
        let is_group = (shape.groups > 1).then(|| k.lt(group, k.count_in_code(all_groups.clone(), self.index)));
        let (group, is_group) = match is_group {
            // Lanes beyond the last result compute it again, for those of their warp that have one.
            Some(is_group) if shape.shares_warps() => {
                (k.min(group, k.sub(k.count_in_code(all_groups.clone(), self.index), 1)), Some(is_group))
            }
            // Warps beyond the last result do nothing.
            Some(is_group) => {
                k.begin_if(is_group);
                (group, None)
            }
            None => (group, None),
        };
        let (result, part) = if pieces.is_some() {
            let result = k.div(group, parts);
            (result, k.sub(group, k.mul(result, parts)))
        } else {
            (group, self.wide(&k, k.literal(0u32)))
        };
        let kept = unravel(&k, result, &self.lengths(&k, &self.kept_axes));
        let run = k.count_in_code(units.clone().div_ceil(split), self.index);
        let units = k.count_in_code(units, self.index);
        let (from, to, step) = if self.is_cpu || !self.operator().is_commutative() {
            let from = k.mul(part, run);
            (from, k.min(k.add(from, run), units), k.constant(self.index, 1))
        } else {
            // The units of a part have a stride of the number of parts, so unit counts of parts differ by at
            // most one.
            (part, units, parts)
        };
        let accumulators = || -> Vec<_> { (0..shape.chains).map(|_| Accumulator::new(&k, self.operator())).collect() };
        let sums = accumulators();
        k.for_step(from, to, step, Unroll::Never, |unit| {
            let (row, tile) = if above.is_empty() {
                (unit, unit)
            } else {
                let tiles = k.count_in_code(tiles.clone(), self.index);
                let row = k.div(unit, tiles);
                (row, k.sub(unit, k.mul(row, tiles)))
            };
            let row = unravel(&k, row, &self.lengths(&k, above));
            if !self.operator().is_commutative() {
                self.tile_in_order(&k, &shape, &kept, &row, tile, &sums[0]);
                return;
            }
            // Each tile has its own sums. Few small numbers are added to a large one, so little precision is
            // lost.
            let own = accumulators();
            own.iter().for_each(|own| own.set(&k, &self.operator().nothing(&k)));
            self.tile(&k, &shape, &kept, &row, tile, &own);
            sums.iter().zip(&own).for_each(|(sum, own)| sum.add(&k, &own.get(&k)));
        });
        let (sum, others) = (&sums[0], &sums[1..]);
        others.iter().for_each(|other| sum.add(&k, &other.get(&k)));
        let thread = k.thread(Axis::X);
        let values = if shape.operates_by_tile(self.operator()) {
            sum.get(&k)
        } else if shape.shares_warps() {
            reduce_warp(&k, self.operator(), &sum.get(&k), shape.threads)
        } else {
            reduce_block(&k, self.operator(), &sum.get(&k), thread, shape.threads)
        };
        let is_first = k.eq(thread, 0);
        k.if_then(is_group.map_or(is_first, |is_group| k.and(is_group, is_first)), || match &pieces {
            Some(pieces) => pieces.values.store(&k, group, &values),
            None => self.outlet.put(&k, &kept, result, &values),
        });
        if shape.groups > 1 && !shape.shares_warps() {
            k.end_if();
        }
        draft.launch(k, [all_groups.div_ceil(shape.groups), 1u32.into(), 1u32.into()], shape.block)?;
        match pieces {
            Some(pieces) => self.combine_pieces(draft, &pieces),
            None => Ok(()),
        }
    }

    /// Emits the kernel of a CPU in which a warp computes several neighbouring results.
    fn several(&self, draft: &mut Draft) -> Result<()> {
        let block = [32, 1, 1];
        let k = Writer::new("reduce", block);
        let all = k.count_in_code(self.kept.clone(), self.index);
        let first = k.mul(self.wide(&k, k.block(Axis::X)), cost::REDUCE_RESULTS);
        k.if_else(
            k.ge(k.sub(all, first), cost::REDUCE_RESULTS),
            || self.rows_of(&k, &(0..cost::REDUCE_RESULTS).map(|number| k.add(first, number)).collect::<Vec<Value>>()),
            || k.for_step(first, all, 1, Unroll::Never, |result| self.rows_of(&k, &[result])),
        );
        draft.launch(k, [self.kept.clone().div_ceil(cost::REDUCE_RESULTS), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }

    /// Emits the loop of a warp over the rows of several results at once.
    fn rows_of(&self, k: &Writer, results: &[Value]) {
        let (above, within) = self.rows();
        let kept = results.iter().map(|result| unravel(k, *result, &self.lengths(k, &self.kept_axes)));
        let kept: Vec<Vec<Value>> = kept.collect();
        let sums: Vec<Accumulator<'_>> = results.iter().map(|_| Accumulator::new(k, self.operator())).collect();
        sums.iter().for_each(|sum| sum.set(k, &self.operator().nothing(k)));
        let (lengths, thread) = (self.lengths(k, within), k.thread(Axis::X));
        let lane = self.wide(k, thread);
        let length = k.count_in_code(self.product(within), self.index);
        k.for_step(k.constant(self.index, 0), k.count_in_code(self.product(above), self.index), 1, Unroll::Never, |row| {
            let row = unravel(k, row, &self.lengths(k, above));
            let add = |column: Value| {
                let folded = [&row[..], &unravel(k, column, &lengths)].concat();
                let values: Vec<Vec<Value>> = kept.iter().map(|kept| self.at(k, kept, &folded)).collect();
                sums.iter().zip(&values).for_each(|(sum, values)| sum.add(k, values));
            };
            k.for_step(0, length, 32, Unroll::Never, |offset| {
                let column = k.add(offset, lane);
                let is_whole = k.ge(k.sub(length, offset), 32);
                k.if_else(is_whole, || add(column), || k.if_then(k.lt(column, length), || add(column)));
            });
        });
        let values: Vec<Vec<Value>> = sums.iter().map(|sum| reduce_warp(k, self.operator(), &sum.get(k), 32)).collect();
        k.if_then(k.eq(thread, 0), || {
            for ((result, kept), values) in results.iter().zip(&kept).zip(&values) {
                self.outlet.put(k, kept, *result, values);
            }
        });
    }

    fn shape(&self) -> ResultThreads {
        let commutative = self.operator().is_commutative();
        if self.is_cpu {
            // Four independent chains of sums hide the latency of additions.
            let (items, chains) = if commutative { (cost::REDUCE_TILE / 32, 4) } else { (8, 1) };
            return ResultThreads { threads: 32, groups: 1, block: [32, 1, 1], tile: 32 * items, items, chains };
        }
        let vector = self.width().unwrap_or(4) as u32;
        if self.reduce.spread.blocks {
            // If all blocks work on one result, each thread has four accesses in flight.
            let accesses = if self.reduce.spread.split { 4 } else { 1 };
            let items = if commutative { (accesses * vector).clamp(8, 32) } else { 8 };
            ResultThreads { threads: THREADS, groups: 1, block: [THREADS, 1, 1], tile: THREADS * items, items, chains: 1 }
        } else {
            let few = self.reduce.spread.items;
            let items = if !commutative {
                8
            } else if few > 0 {
                few.max(self.width().unwrap_or(1) as u32)
            } else {
                vector.max(8)
            };
            let lanes = self.reduce.spread.lanes;
            let threads = if commutative && lanes > 0 { lanes } else { cost::LANES };
            let groups = THREADS / threads;
            ResultThreads { threads, groups, block: [threads, groups, 1], tile: threads * items, items, chains: 1 }
        }
    }

    /// Returns the number of neighbours that a thread of a GPU loads at once.
    fn width(&self) -> Option<usize> {
        self.reduce.source.row_width()
    }

    /// Returns the values of a column of a row.
    fn column(&self, k: &Writer, kept: &[Value], row: &[Value], column: Value) -> Vec<Value> {
        let (_, within) = self.rows();
        let folded = [row, &unravel(k, column, &self.lengths(k, within))].concat();
        self.at(k, kept, &folded)
    }

    /// Adds a tile of a row to a sum of thread 0, in order. Each thread has adjacent elements, and threads
    /// are in the order of elements.
    fn tile_in_order(
        &self,
        k: &Writer,
        shape: &ResultThreads,
        kept: &[Value],
        row: &[Value],
        tile: Value,
        sum: &Accumulator<'_>,
    ) {
        let (_, within) = self.rows();
        let length = k.count_in_code(self.product(within), self.index);
        let thread = self.wide(k, k.thread(Axis::X));
        let start = k.add(k.mul(tile, shape.tile), k.mul(thread, shape.items));
        let own = Accumulator::new(k, self.operator());
        own.set(k, &self.operator().nothing(k));
        k.for_range(0, k.constant(self.index, shape.items), |item| {
            let column = k.add(start, item);
            let nothing = || self.operator().nothing(k);
            own.add(k, &k.choose_list(k.lt(column, length), || self.column(k, kept, row, column), nothing));
        });
        sum.add(k, &reduce_block(k, self.operator(), &own.get(k), k.thread(Axis::X), shape.threads));
    }

    /// Adds a tile of a row to sums.
    fn tile(&self, k: &Writer, shape: &ResultThreads, kept: &[Value], row: &[Value], tile: Value, sums: &[Accumulator<'_>]) {
        let (_, within) = self.rows();
        let length = k.count_in_code(self.product(within), self.index);
        let first = k.mul(tile, shape.tile);
        let thread = self.wide(k, k.thread(Axis::X));
        let at = |column: Value| self.column(k, kept, row, column);
        let guarded = |column: Value| k.choose_list(k.lt(column, length), || at(column), || self.operator().nothing(k));
        let whole = k.ge(k.sub(length, first), shape.tile);
        if self.is_cpu {
            let step = 32 * shape.chains;
            // Each chain has a part of the tile. Memory is faster with several streams.
            let part = shape.tile / shape.chains;
            k.if_else(
                whole,
                || {
                    k.for_step(0, k.constant(self.index, part), 32, Unroll::Never, |offset| {
                        let start = k.add(k.add(first, offset), thread);
                        for (chain, sum) in sums.iter().enumerate() {
                            sum.add(k, &at(k.add(start, chain as u32 * part)));
                        }
                    });
                },
                || {
                    k.for_step(0, k.sub(length, first), step, Unroll::Never, |offset| {
                        let start = k.add(k.add(first, offset), thread);
                        for (chain, sum) in sums.iter().enumerate() {
                            let column = k.add(start, chain as u32 * 32);
                            k.if_then(k.lt(column, length), || sum.add(k, &at(column)));
                        }
                    });
                },
            );
            return;
        }
        let sum = &sums[0];
        let width = self.width();
        let group = width.unwrap_or(1) as u32;
        // Each thread has `group` neighbours per piece. The next thread follows.
        let start = |piece: u32| k.add(k.add(first, piece * group * shape.threads), k.mul(thread, group));
        let pieces = shape.items / group;
        let one_by_one = |pieces: Range<u32>, checked: bool| {
            let values: Vec<Vec<Value>> = pieces
                .flat_map(|piece| (0..group).map(move |item| (piece, item)))
                .map(|(piece, item)| k.add(start(piece), item))
                .map(|column| if checked { guarded(column) } else { at(column) })
                .collect();
            values.iter().for_each(|values| sum.add(k, values));
        };
        let rows = |pieces: Range<u32>| {
            let loaded: Vec<_> = pieces.clone().map(|piece| self.inlet.row(k, start(piece), group as usize)).collect();
            for (piece, rows) in pieces.zip(&loaded) {
                for item in 0..group {
                    let i = k.add(start(piece), item);
                    let lane = |index: usize| rows[index].map(|row| k.lane(row, item as usize));
                    sum.add(k, &self.inlet.at_with(k, &[i], &lane));
                }
            }
        };
        let Some(_) = width else {
            let all = || k.if_else(whole, || one_by_one(0..pieces, false), || one_by_one(0..pieces, true));
            return self.inlet.together(k, all);
        };
        let aligned = k.aligned(self.inlet.row_addresses(k));
        // The last tile of a large one: complete pieces are loaded as rows, the rest one by one.
        let piece_by_piece = || {
            for piece in 0..pieces {
                let end = (piece + 1) * group * shape.threads;
                let is_whole = k.and(k.ge(k.sub(length, first), end), aligned);
                k.if_else(is_whole, || rows(piece..piece + 1), || one_by_one(piece..piece + 1, true));
            }
        };
        self.inlet.together(k, || match self.reduce.spread.split {
            true => k.if_else(k.and(whole, aligned), || rows(0..pieces), piece_by_piece),
            false => k.if_else(k.and(whole, aligned), || rows(0..pieces), || one_by_one(0..pieces, true)),
        });
    }

    /// Emits the second kernel: a block combines the parts of one result. Each thread has consecutive parts.
    fn combine_pieces(&self, draft: &mut Draft, pieces: &PartialResults) -> Result<()> {
        let threads = if self.is_cpu { cost::COMBINE_THREADS.vectors } else { cost::COMBINE_THREADS.threads };
        let block = [threads, 1, 1];
        let k = Writer::new("reduce_parts", block);
        let result = self.wide(&k, k.block(Axis::X));
        let parts = k.count_in_code(pieces.count.clone(), self.index);
        let each = k.count_in_code(pieces.count.clone().div_ceil(threads), self.index);
        let thread = k.thread(Axis::X);
        let from = k.mul(self.wide(&k, thread), each);
        let sum = Accumulator::new(&k, self.operator());
        k.for_range(from, k.min(k.add(from, each), parts), |part| {
            sum.add(&k, &pieces.values.load(&k, k.add(k.mul(result, parts), part)));
        });
        let values = reduce_block(&k, self.operator(), &sum.get(&k), thread, threads);
        k.if_then(k.eq(thread, 0), || {
            let kept = unravel(&k, result, &self.lengths(&k, &self.kept_axes));
            self.outlet.put(&k, &kept, result, &values);
        });
        draft.launch(k, [self.kept.clone(), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}

/// The thread layout for one result.
struct ResultThreads {
    /// Number of threads that compute one result.
    threads: u32,
    /// Number of results per block.
    groups: u32,
    block: [u32; 3],
    /// Number of elements per step of all threads, and of one thread.
    tile: u32,
    items: u32,
    /// Number of independent sums of a thread.
    chains: u32,
}

impl ResultThreads {
    /// Returns true if the lanes of a warp have several results.
    fn shares_warps(&self) -> bool {
        self.threads < cost::LANES
    }

    /// Returns true if threads combine their values after each tile, so that only thread 0 has a sum.
    fn operates_by_tile(&self, operator: &Operator) -> bool {
        !operator.is_commutative()
    }
}
