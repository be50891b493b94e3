//! Rows that stay: reductions along the last axis, and functions of every position that use their results, in
//! one kernel.
//!
//! A block has a row at a time, on a GPU a warp if rows are short. It takes the stages in their order, each
//! over the whole row. Results of reductions are in registers of all threads. Elements that several stages
//! use are *held*: the first stage that uses them computes them, and later ones read them from shared memory.
//! A thread has the same columns in all stages, so no barrier is needed between them. Where a row does not
//! fit into shared memory, elements are computed again.

use crate::cost::{self, Costs};
use crate::kit::{Accumulator, Draft, Inlet, Shared, Writer, broadcast, reduce_block, reduce_warp, unravel};
use crate::operator::Operator;
use crate::program::{Argument, Output, Program};
use crate::{Count, Error, Result, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Element, Memory, Type, Unroll, Value};
use std::cell::RefCell;

/// Stages over the rows of a domain. The sizes of a call are the lengths of its axes.
///
/// The inputs and scalars are those of the stages in their order, the tail of a reduction behind its source.
/// The outputs are the stored results in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Number of axes of the domain, at least two.
    pub axes: usize,
    /// Functions of a position, each with its reduction or its store, in the order of execution.
    pub stages: Vec<RowStage>,
    /// Spread of threads.
    pub form: RowForm,
}

/// A function of a position of a row, and the use of its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowStage {
    /// The function. It is given values of earlier stages.
    pub source: Source,
    /// The values that it is given, in order.
    pub given: Vec<RowValue>,
    /// The use of its values.
    pub action: RowAction,
    /// For each result of the stage: true if it is stored.
    pub stored: Vec<bool>,
}

/// A result of an earlier stage: the number of the stage, and of its result. It is a value of the row if the
/// stage is a reduction, and else one of the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowValue {
    /// Index into [`Rows::stages`].
    pub stage: usize,
    /// Index of the value among those of the stage.
    pub result: usize,
}

/// Use of the values of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowAction {
    /// The values are results at each position.
    Each,
    /// The function takes the position of the row, and zeros for further axes. Its values are results of the
    /// row.
    Row,
    /// The values are combined along the row by a commutative operator.
    Reduce {
        /// Operator that combines them.
        operator: Operator,
        /// Function of the position of the row and of the combined values. Its values are the results. The
        /// combined values are the results if there is none.
        tail: Option<RowTail>,
    },
}

/// Function of the combined values of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowTail {
    /// The function. It is given the combined values, then values of earlier reductions.
    pub source: Source,
    /// The values of earlier reductions.
    pub given: Vec<RowValue>,
}

/// The distribution of threads over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowForm {
    /// Number of threads that have a row.
    pub threads: u32,
    /// True if elements that several stages use are held in shared memory.
    pub holds: bool,
}

impl RowForm {
    /// Encodes the form as a number.
    pub fn number(self) -> u64 {
        u64::from(self.threads) << 1 | u64::from(self.holds)
    }

    /// Decodes a form from its [number](RowForm::number).
    pub fn from_number(number: u64) -> RowForm {
        RowForm { threads: (number >> 1) as u32, holds: number & 1 != 0 }
    }
}

/// Number of warps of a block in which each warp has a row.
const WARPS: u32 = cost::ROW_WARPS;
/// Number of lanes of a warp.
const LANES: u32 = cost::LANES;

/// A place in shared memory for the elements of a result of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    value: RowValue,
    number: u32,
}

impl Rows {
    /// Returns the best form for these sizes.
    pub fn best(&self, machine: &Machine, sizes: &[u64]) -> RowForm {
        let costs = Costs::of(machine);
        let length = sizes.last().copied().unwrap_or(1);
        let threads = costs.row_threads(length);
        let slots = self.slots(costs.in_vectors()).iter().map(|slot| u64::from(slot.number) + 1).max().unwrap_or(0);
        let rows = if threads == LANES && !costs.in_vectors() { u64::from(WARPS) } else { 1 };
        let bytes = length.saturating_mul(slots * rows * 4);
        RowForm { threads, holds: slots > 0 && bytes <= u64::from(costs.shared_bytes()) / cost::ROW_SHARE }
    }

    /// Returns whether a stage runs only where its results are used.
    fn is_lazy(&self, stage: usize) -> bool {
        let own = &self.stages[stage];
        own.action == RowAction::Each && !own.stored.contains(&true)
    }

    /// Returns the lazy stages that a stage uses, directly or through others.
    fn used(&self, stage: usize) -> Vec<usize> {
        let mut used = vec![];
        let mut left: Vec<usize> = vec![stage];
        while let Some(own) = left.pop() {
            for value in &self.stages[own].given {
                if self.is_lazy(value.stage) && !used.contains(&value.stage) {
                    used.push(value.stage);
                    left.push(value.stage);
                }
            }
        }
        used
    }

    /// Returns the places of held results. A place is used again behind the last stage that reads it. Vectors
    /// find what is only read again in a cache.
    fn slots(&self, in_vectors: bool) -> Vec<Slot> {
        let mut slots: Vec<(Slot, usize)> = vec![];
        for stage in (0..self.stages.len()).filter(|stage| self.is_lazy(*stage)) {
            // Behind its first use, a held stage needs nothing of the stages before it.
            let users: Vec<usize> =
                (0..self.stages.len()).filter(|user| !self.is_lazy(*user) && self.used(*user).contains(&stage)).collect();
            let direct = |user: &&usize| self.reads(**user, stage);
            let (Some(first), Some(last)) = (users.first(), users.iter().rfind(direct).or(users.first())) else { continue };
            let source = &self.stages[stage].source;
            let is_read = source.function().operations() <= cost::CHEAP;
            let is_word = source.results().iter().all(|ty| ty.is_scalar() && ty.bytes() == 4);
            if users.len() < 2 || !is_word || in_vectors && is_read {
                continue;
            }
            for result in 0..source.results().len() {
                let is_free = |number: u32| {
                    slots.iter().all(|(slot, last)| slot.number != number || *last <= *first && slot.value.stage != stage)
                };
                let number = (0..).find(|number| is_free(*number)).unwrap_or(0);
                slots.push((Slot { value: RowValue { stage, result }, number }, *last));
            }
        }
        slots.into_iter().map(|(slot, _)| slot).collect()
    }

    /// Returns whether a stage is given a lazy one itself, or one that it uses for the first time is.
    fn reads(&self, user: usize, stage: usize) -> bool {
        let is_new = |other: &usize| (0..user).all(|before| self.is_lazy(before) || !self.used(before).contains(other));
        let of = |own: usize| self.stages[own].given.iter().any(|value| value.stage == stage);
        of(user) || self.used(user).into_iter().filter(is_new).any(of)
    }

    fn check(&self) -> Result<()> {
        let bad = |reason: String| Err(Error::Pattern { pattern: "rows", reason });
        if self.axes < 2 {
            return bad(format!("a domain has {} axes", self.axes));
        }
        for (number, stage) in self.stages.iter().enumerate() {
            let tail = match &stage.action {
                RowAction::Reduce { operator, .. } if !operator.is_commutative() => {
                    return bad(format!("the operator of stage {number} is not commutative"));
                }
                RowAction::Reduce { tail, .. } => tail.as_ref(),
                RowAction::Each | RowAction::Row => None,
            };
            let given = stage.given.iter().chain(tail.iter().flat_map(|tail| &tail.given));
            let is_row = stage.action == RowAction::Row && stage.source.axes() + 1 == self.axes;
            if stage.source.axes() != self.axes && !is_row || given.clone().any(|value| value.stage >= number) {
                return bad(format!("stage {number} has other positions, or is given a later result"));
            }
            if stage.source.given().len() != stage.given.len() || stage.stored.len() != self.results(number).len() {
                return bad(format!("stage {number} is given {} values", stage.given.len()));
            }
        }
        Ok(())
    }

    /// Returns the types of the results of a stage.
    fn results(&self, stage: usize) -> Vec<Type> {
        match &self.stages[stage].action {
            RowAction::Each | RowAction::Row => self.stages[stage].source.results(),
            RowAction::Reduce { operator, tail: None } => operator.types(),
            RowAction::Reduce { tail: Some(tail), .. } => tail.source.results(),
        }
    }

    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        self.check()?;
        let costs = Costs::of(machine);
        let last = self.axes - 1;
        let mut draft = Draft::new("rows", self.axes);
        let rows = Count::product(0..last);
        draft.limit(Count::product(0..self.axes));
        let mut ports = vec![];
        for (number, stage) in self.stages.iter().enumerate() {
            let inlet = draft.source(&stage.source);
            let (tail, count) = match &stage.action {
                RowAction::Each => (None, Count::product(0..self.axes)),
                RowAction::Row => (None, rows.clone()),
                RowAction::Reduce { tail, .. } => (tail.as_ref().map(|tail| draft.source(&tail.source)), rows.clone()),
            };
            let output = |(ty, stored): (Type, &bool)| stored.then(|| draft.output(Output { ty, count: count.clone() }));
            let outputs = self.results(number).into_iter().zip(&stage.stored).map(output).collect();
            ports.push(StagePort { inlet, tail, outputs });
        }
        let RowForm { threads, holds } = self.form;
        let in_vectors = costs.in_vectors();
        let warps = if threads == LANES && !in_vectors { WARPS } else { 1 };
        let block = [threads, warps, 1];
        let k = Writer::new("rows", block);
        let slots = if holds { self.slots(in_vectors) } else { vec![] };
        let count = slots.iter().map(|slot| slot.number + 1).max().unwrap_or(0);
        let held = (count > 0).then(|| k.large_shared(Element::U32, Count::size(last) * (count * warps)));
        let length = k.count(Count::size(last), Type::U32);
        let parts = RowsEmitter { rows: self, ports, slots, held, in_vectors, length };
        let all = k.count(rows.clone(), Type::U32);
        if in_vectors {
            // Short rows share a block, whose start costs as much as many elements.
            let each = Count::Constant(cost::STRETCH.into()).div_ceil(Count::size(last));
            let first = k.mul(k.block(Axis::X), k.count(each.clone(), Type::U32));
            let end = k.min(k.add(first, k.count(each.clone(), Type::U32)), all);
            k.for_step(first, end, 1, Unroll::Never, |row| parts.row(&k, row));
            draft.launch(k, [rows.div_ceil(each), 1u32.into(), 1u32.into()], block)?;
            return Ok(draft.finish());
        }
        let row = k.add(k.mul(k.block(Axis::X), warps), k.thread(Axis::Y));
        match warps {
            1 => parts.row(&k, row),
            _ => k.if_then(k.lt(row, all), || parts.row(&k, row)),
        }
        draft.launch(k, [rows.div_ceil(warps), 1u32.into(), 1u32.into()], block)?;
        Ok(draft.finish())
    }
}

/// The functions and the outputs of a stage in a program.
struct StagePort {
    inlet: Inlet,
    tail: Option<Inlet>,
    /// For each result, the number of its output, if it is stored.
    outputs: Vec<Option<usize>>,
}

/// Emitter of the kernel.
struct RowsEmitter<'a> {
    rows: &'a Rows,
    ports: Vec<StagePort>,
    slots: Vec<Slot>,
    held: Option<Memory>,
    in_vectors: bool,
    length: Value,
}

/// The values of a row so far.
struct RowState {
    row: Value,
    /// Position of the row.
    above: Vec<Value>,
    /// For each stage, its results, if it is a reduction that is done.
    reduced: Vec<Vec<Value>>,
    /// For each stage: true if its held results are in shared memory.
    is_filled: Vec<bool>,
}

impl RowsEmitter<'_> {
    /// Emits all stages for a row.
    fn row(&self, k: &Writer, row: Value) {
        let last = self.rows.axes - 1;
        let lengths: Vec<Value> = (0..last).map(|axis| k.count(Count::size(axis), Type::U32)).collect();
        let count = self.rows.stages.len();
        let above = unravel(k, row, &lengths);
        let mut state = RowState { row, above, reduced: vec![vec![]; count], is_filled: vec![false; count] };
        for number in (0..count).filter(|number| !self.rows.is_lazy(*number)) {
            match &self.rows.stages[number].action {
                RowAction::Each => self.each(k, number, &state),
                RowAction::Row => {
                    let stage = &self.rows.stages[number];
                    let given: Vec<Value> = stage.given.iter().map(|value| state.reduced[value.stage][value.result]).collect();
                    let zero = k.constant(Type::U32, 0);
                    let position: Vec<Value> = state.above.iter().copied().chain([zero]).take(stage.source.axes()).collect();
                    let results = self.ports[number].inlet.at_given(k, &position, &given);
                    self.put_row(k, number, &results, &state);
                    state.reduced[number] = results;
                }
                RowAction::Reduce { operator, .. } => {
                    let values = self.reduce(k, number, operator, &state);
                    state.reduced[number] = self.finish(k, number, &values, &state);
                }
            }
            for used in self.rows.used(number) {
                state.is_filled[used] = self.slots.iter().any(|slot| slot.value.stage == used);
            }
        }
    }

    /// Emits a loop over the columns of a thread.
    fn columns(&self, k: &Writer, body: &dyn Fn(Value, usize), chains: usize) {
        let (threads, thread) = (self.rows.form.threads, k.thread(Axis::X));
        if !self.in_vectors {
            return k.for_step(thread, self.length, threads, Unroll::By(cost::COLUMN_ROUNDS), |column| body(column, 0));
        }
        let step = LANES * chains as u32;
        let whole = k.sub(self.length, k.rem(self.length, step));
        k.for_step(0, whole, step, Unroll::Never, |first| {
            (0..chains).for_each(|chain| body(k.add(k.add(first, chain as u32 * LANES), thread), chain));
        });
        k.for_step(whole, self.length, LANES, Unroll::Never, |first| {
            let column = k.add(first, thread);
            k.if_then(k.lt(column, self.length), || body(column, 0));
        });
    }

    /// Returns the values of the function of a stage at a column.
    fn at(&self, k: &Writer, stage: usize, column: Value, state: &RowState) -> Vec<Value> {
        self.at_once(k, stage, column, state, &RefCell::new(vec![None; self.rows.stages.len()]))
    }

    /// Returns the values of a stage at a column, where lazy stages that are known are not computed again.
    fn at_once(
        &self,
        k: &Writer,
        stage: usize,
        column: Value,
        state: &RowState,
        known: &RefCell<Vec<Option<Vec<Value>>>>,
    ) -> Vec<Value> {
        let given = |value: &RowValue| {
            if !self.rows.is_lazy(value.stage) {
                return state.reduced[value.stage][value.result];
            }
            if let Some(values) = &known.borrow()[value.stage] {
                return values[value.result];
            }
            let values = self.lazy(k, value.stage, column, state, known);
            known.borrow_mut()[value.stage] = Some(values.clone());
            values[value.result]
        };
        let given: Vec<Value> = self.rows.stages[stage].given.iter().map(given).collect();
        let position: Vec<Value> = state.above.iter().copied().chain([column]).collect();
        self.ports[stage].inlet.at_given(k, &position, &given)
    }

    /// Returns the values of a lazy stage at a column: held ones, or computed ones, which are held from now on.
    fn lazy(
        &self,
        k: &Writer,
        stage: usize,
        column: Value,
        state: &RowState,
        known: &RefCell<Vec<Option<Vec<Value>>>>,
    ) -> Vec<Value> {
        let places: Vec<Value> = (self.slots.iter().filter(|slot| slot.value.stage == stage))
            .map(|slot| {
                let warps = if self.rows.form.threads == LANES && !self.in_vectors { WARPS } else { 1 };
                let row = k.add(k.thread(Axis::Y), slot.number * warps);
                k.add(k.mul(row, self.length), column)
            })
            .collect();
        let types = self.rows.results(stage);
        match self.held {
            Some(memory) if state.is_filled[stage] => {
                let load = |(place, ty): (&Value, &Type)| k.load(k.shared_view(memory, ty.element(), 0), *place);
                places.iter().zip(&types).map(load).collect()
            }
            held => {
                let values = self.at_once(k, stage, column, state, known);
                if let Some(memory) = held {
                    for ((place, ty), value) in places.iter().zip(&types).zip(&values) {
                        k.store(k.shared_view(memory, ty.element(), 0), *place, *value);
                    }
                }
                values
            }
        }
    }

    /// Emits a stage that stores results at each position.
    fn each(&self, k: &Writer, stage: usize, state: &RowState) {
        let types = self.rows.results(stage);
        let long = |value: Value| k.convert(value, Type::U64);
        let start = k.mul(long(state.row), long(self.length));
        let body = |column: Value, _| {
            let values = self.at(k, stage, column, state);
            for ((value, ty), output) in values.iter().zip(&types).zip(&self.ports[stage].outputs) {
                let Some(output) = output else { continue };
                let memory = k.memory(Argument::Output(*output), ty.element());
                k.store_element(memory, k.add(start, long(column)), *value, broadloom_scalar::Cache::Normal);
            }
        };
        self.columns(k, &body, 1);
    }

    /// Emits a reduction. All threads have the combined values.
    fn reduce(&self, k: &Writer, stage: usize, operator: &Operator, state: &RowState) -> Vec<Value> {
        let chains = if self.in_vectors { 4 } else { 1 };
        let sums: Vec<Accumulator<'_>> = (0..chains).map(|_| Accumulator::new(k, operator)).collect();
        sums.iter().for_each(|sum| sum.set(k, &operator.nothing(k)));
        self.columns(k, &|column, chain| sums[chain].add(k, &self.at(k, stage, column, state)), chains);
        sums[1..].iter().for_each(|other| sums[0].add(k, &other.get(k)));
        let (own, threads) = (sums[0].get(k), self.rows.form.threads);
        if threads == LANES {
            return broadcast(k, &reduce_warp(k, operator, &own, LANES), 0);
        }
        let thread = k.thread(Axis::X);
        let all = reduce_block(k, operator, &own, thread, threads);
        let shared = Shared::new(k, &operator.types(), 1);
        k.if_then(k.eq(thread, 0), || shared.set(k, k.literal(0u32), &all));
        k.barrier();
        let all = shared.get(k, k.literal(0u32));
        k.barrier();
        all
    }

    /// Returns the results of a reduction, and stores those that are wanted.
    fn finish(&self, k: &Writer, stage: usize, values: &[Value], state: &RowState) -> Vec<Value> {
        let port = &self.ports[stage];
        let results = match (&self.rows.stages[stage].action, &port.tail) {
            (RowAction::Reduce { tail: Some(tail), .. }, Some(inlet)) => {
                let given = tail.given.iter().map(|value| state.reduced[value.stage][value.result]);
                let given: Vec<Value> = values.iter().copied().chain(given).collect();
                inlet.at_given(k, &state.above, &given)
            }
            _ => values.to_vec(),
        };
        self.put_row(k, stage, &results, state);
        results
    }

    /// Stores those results of a row that are wanted.
    fn put_row(&self, k: &Writer, stage: usize, results: &[Value], state: &RowState) {
        let port = &self.ports[stage];
        if port.outputs.iter().any(Option::is_some) {
            k.if_then(k.eq(k.thread(Axis::X), 0), || {
                for ((value, ty), output) in results.iter().zip(self.rows.results(stage)).zip(&port.outputs) {
                    let Some(output) = output else { continue };
                    let memory = k.memory(Argument::Output(*output), ty.element());
                    k.store_element(memory, state.row, *value, broadloom_scalar::Cache::Normal);
                }
            });
        }
    }
}
