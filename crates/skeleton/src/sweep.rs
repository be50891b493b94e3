//! Sweep: a state that is carried along one axis, many lines in parallel.
//!
//! At each position of a line a *step* takes the state and the values around the position. It returns the
//! next state and the outputs of the position. Lines are swept forwards or backwards.
//!
//! | | shape |
//! | --- | --- |
//! | axis is not the last one | neighbouring threads have neighbouring lines, so all accesses are coalesced |
//! | axis is the last one | a warp has 32 lines: it loads tiles of them into shared memory row by row, each lane sweeps its line there, and outputs return in the same way |
//! | few long lines, with a [`Split`] | lines are split into parts: the elements of each part are combined, then the elements before each part, then parts are swept from the state that these yield |
//!
//! Tiles in shared memory serve CPUs too: lines whose distance is a power of two map to the same sets of the
//! first-level cache, and 32 of them do not fit there.

use crate::cost::Costs;
use crate::kit::{Accumulator, Draft, Inlet, Outlet, Shared, Temporaries, Writer, ravel, unravel};
use crate::layout::constant;
use crate::program::Program;
use crate::{Boundary, Count, Domain, Error, Operator, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{AccessorKind, Axis, Binding, Function, Lanes, Type, Unroll, Value, Variable, windowing};

/// Carries a state along an axis, and passes outputs at every position to a [`Sink`].
///
/// The sizes of a call are the lengths of all axes. A sweep that restarts has one more size, the number of
/// parts of each line. Inputs and scalars are those of the source, the start and the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// The positions.
    pub domain: Domain,
    /// Axis along which the state is carried.
    pub axis: usize,
    /// True if lines are swept from their ends to their starts.
    pub backwards: bool,
    /// Values at a position that steps read.
    pub source: Source,
    /// State before the first step of a line, followed by constants of the line. Its positions are those of
    /// the other axes, or the numbers of lines. If the sweep restarts, they have the number of a part in
    /// place of the axis.
    pub start: Source,
    /// True if lines are split into parts of the same length, each with a start of its own. Parts are
    /// numbered in the order of the sweep.
    pub restarts: bool,
    /// Number of values of the state.
    pub states: usize,
    /// Step function. Its parameters are the state and the constants of the line. It has an accessor for each
    /// value of the source: a window with one index. Offsets count along the axis, independent of the
    /// direction. Its results are the next state, then the outputs.
    pub step: Function,
    /// Declared window: the number of positions before and after its own that a step reads. Larger offsets
    /// are clamped to these.
    pub reach: (u32, u32),
    /// Values before the first and after the last position of a line. As a constant, one for each value.
    pub boundary: Boundary<Vec<Lanes>>,
    /// Sink of the outputs.
    pub sink: Sink,
    /// Combination of steps, if states are associative.
    pub split: Option<Split>,
    /// Distribution of threads.
    pub spread: SweepSpread,
}

/// A way to combine the steps of a part of a line into one *element*. With it, the last state is computed
/// from the first without a sweep. For `state · a + b`, an element is the pair *(a, b)*.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// Function that returns the element of one step. Its parameters are the constants of the line, its
    /// accessors those of the step.
    pub lift: Function,
    /// Operator that combines the element of a part with that of the next one, in the order of the sweep.
    pub operator: Operator,
    /// Function that returns the state after a part from the state before it and its element.
    pub apply: Function,
}

/// The distribution of the threads of a sweep. Every spread gives correct results for all sizes.
/// [`Sweep::best`] chooses a fast one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SweepSpread {
    /// True if lines go through shared memory in tiles. Ignored if the window is too wide.
    pub staged: bool,
    /// True if lines are split into parts. Ignored without a [`Split`].
    pub split: bool,
}

/// Number of lines of a warp, and of columns of a tile.
const LANES: u32 = crate::cost::LANES;
/// Maximum number of staged positions before and after a tile.
const MOST_HALO: u32 = 64;
/// Maximum offset of a window.
const MOST_REACH: u32 = 1 << 20;
/// Maximum number of bytes of shared memory of a block.
const MOST_SHARED: u32 = crate::cost::SWEEP_SHARED;
/// Minimum number of positions of a part.
const LEAST_PART: u32 = crate::cost::SWEEP_PART;
/// Maximum number of blocks in the second direction of a grid.
const MOST_PARTS: u32 = crate::cost::GRID_ROWS;

fn bad<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Pattern { pattern: "sweep", reason: reason.into() })
}

/// Returns the types of the parameters of a function.
fn parameters(function: &Function) -> Vec<Type> {
    function.parameters().iter().map(|parameter| parameter.ty).collect()
}

impl Sweep {
    /// Returns a fast spread for these sizes.
    pub fn best(&self, machine: &Machine, sizes: &[u64]) -> SweepSpread {
        let length = sizes.get(self.axis).copied().unwrap_or(1);
        let axes = self.domain.axes();
        let others = sizes.iter().take(axes).enumerate().filter(|(axis, _)| *axis != self.axis);
        let lines = others.fold(1u64, |product, (_, length)| product.saturating_mul(*length));
        let costs = Costs::of(machine);
        let staged = self.axis + 1 == axes && costs.stages_sweeps(lines, length);
        let split = self.split.is_some() && costs.splits_sweeps(lines, length);
        SweepSpread { staged, split }
    }

    /// Returns the types of the outputs.
    fn outputs(&self) -> Vec<Type> {
        self.step.result_types().split_off(self.states.min(self.step.results().len()))
    }

    fn check_windows(&self, function: &Function) -> Result<()> {
        let values = self.source.results();
        let fits = function.accessors().len() == values.len()
            && function
                .accessors()
                .iter()
                .zip(&values)
                .all(|(accessor, ty)| accessor.kind == AccessorKind::Window && accessor.rank == 1 && accessor.ty == *ty);
        if fits {
            return Ok(());
        }
        bad(format!("`{}` does not have a window of one index for each value of the source", function.name()))
    }

    fn check(&self) -> Result<Type> {
        let axes = self.domain.axes();
        if self.axis >= axes {
            return bad(format!("there is no axis {} among {axes}", self.axis));
        }
        let (given, results) = (self.start.results(), self.step.result_types());
        let wanted = if self.restarts { axes } else { axes - 1 };
        if self.start.axes() != wanted && self.start.axes() != 1 {
            return bad(format!("positions of the start have {} indices, and lines have {wanted}", self.start.axes()));
        }
        if self.restarts && self.split.is_some() {
            return bad("a sweep that restarts is split already");
        }
        if given.len() < self.states || results.len() < self.states || given[..self.states] != results[..self.states] {
            return bad(format!("start and step do not give the same {} values of a state", self.states));
        }
        if parameters(&self.step) != given {
            return bad(format!("`{}` does not take what the start gives", self.step.name()));
        }
        self.check_windows(&self.step)?;
        if self.reach.0.max(self.reach.1) > MOST_REACH {
            return bad(format!(
                "a window of {} positions; at most {MOST_REACH} on each side are possible",
                self.reach.0.max(self.reach.1)
            ));
        }
        if let Boundary::Constant(outside) = &self.boundary {
            let types = outside.iter().map(|lanes| lanes.first().and_then(|lane| Type::vector(lane.element(), lanes.len())));
            let uniform = outside.iter().flatten().zip(outside.iter().flat_map(|lanes| vec![lanes.first(); lanes.len()]));
            let mut uniform = uniform.map(|(lane, first)| Some(lane.element()) == first.map(|first| first.element()));
            if types.collect::<Vec<_>>() != self.source.results().into_iter().map(Some).collect::<Vec<_>>()
                || !uniform.all(|same| same)
            {
                return bad("the constants outside of a line do not have the types of the source's values");
            }
        }
        if let Some(split) = &self.split {
            self.check_windows(&split.lift)?;
            let (states, constants) = given.split_at(self.states);
            let elements = split.operator.types();
            if parameters(&split.lift) != constants || split.lift.result_types() != elements {
                return bad(format!(
                    "`{}` does not give elements of the operator from the constants of a line",
                    split.lift.name()
                ));
            }
            let takes = [states, &elements[..]].concat();
            if parameters(&split.apply) != takes || split.apply.result_types() != states || !split.apply.accessors().is_empty() {
                return bad(format!("`{}` does not give a state from a state and an element", split.apply.name()));
            }
        }
        self.sink.check("sweep", axes, &self.outputs())?;
        let index = self.domain.check("sweep", &[&self.source], &self.sink)?;
        Ok(if self.start.axes() > 0 && self.start.index().element().bits() == 64 { Type::U64 } else { index })
    }

    /// Writes the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let index = self.check()?;
        let axes = self.domain.axes();
        let mut draft = Draft::new("sweep", axes + usize::from(self.restarts));
        let (inlet, start) = (draft.source(&self.source), draft.source(&self.start));
        let outlet = draft.sink(&self.sink, &self.outputs(), &self.domain.count());
        if index == Type::U32 {
            draft.limit(self.domain.count());
        }
        let other_axes: Vec<usize> = (0..axes).filter(|axis| *axis != self.axis).collect();
        let lines = other_axes.iter().map(|axis| Count::size(*axis)).reduce(|a, b| a * b).unwrap_or(Count::Constant(1));
        let halo = self.reach.0.saturating_add(self.reach.1);
        let columns = (LANES + halo.min(MOST_HALO)) | 1;
        let bytes = |types: &[Type]| types.iter().map(|ty| ty.bytes()).sum::<u32>();
        let shared = LANES * (columns * bytes(&self.source.results()) + (LANES + 1) * bytes(&self.outputs()));
        let fits = halo <= MOST_HALO && shared <= MOST_SHARED.min(Costs::of(machine).shared_bytes());
        let parts =
            SweepEmitter { sweep: self, inlet, start, outlet, index, other_axes, lines, staged: self.spread.staged && fits };
        parts.write(&mut draft, machine)?;
        Ok(draft.finish())
    }
}

/// Emitter of the kernels of a sweep.
struct SweepEmitter<'a> {
    sweep: &'a Sweep,
    inlet: Inlet,
    start: Inlet,
    outlet: Outlet,
    index: Type,
    other_axes: Vec<usize>,
    lines: Count,
    staged: bool,
}

/// The part of a line that belongs to a thread.
struct ThreadPart {
    /// First line of the block.
    first: Value,
    /// Line of the thread, and a flag that is true if it exists.
    line: Value,
    exists: Value,
    /// Range of steps, counted in the order of the sweep.
    from: Value,
    to: Value,
}

/// Reads a value of the source at an offset from the position of a step.
type Window<'w> = dyn Fn(usize, Value) -> Value + 'w;

impl SweepEmitter<'_> {
    fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    fn length(&self, k: &Writer) -> Value {
        k.count(Count::size(self.sweep.axis), self.index)
    }

    /// Returns the indices of a line on the other axes.
    fn line(&self, k: &Writer, line: Value) -> Vec<Value> {
        let lengths: Vec<Value> = self.other_axes.iter().map(|axis| k.count(Count::size(*axis), self.index)).collect();
        unravel(k, line, &lengths)
    }

    /// Returns a position of a line.
    fn position(&self, line: &[Value], i: Value) -> Vec<Value> {
        let mut position = line.to_vec();
        position.insert(self.sweep.axis, i);
        position
    }

    /// Clamps an offset to the declared window, in 64 bits.
    fn held(&self, k: &Writer, offset: Value) -> Value {
        let (before, behind) = self.sweep.reach;
        let offset = k.convert(offset, Type::I64);
        k.max(k.min(offset, i64::from(behind)), -i64::from(before))
    }

    /// Returns the values at a place of a line that may be outside.
    fn at(&self, k: &Writer, line: &[Value], place: Value) -> Vec<Value> {
        let length = k.convert(self.length(k), Type::I64);
        let (place, inside) = self.sweep.boundary.rule().place(k, place, length);
        let read = || self.inlet.at(k, &self.position(line, self.wide(k, place)));
        match (inside, &self.sweep.boundary) {
            (Some(inside), Boundary::Constant(outside)) => {
                let types = self.sweep.source.results();
                let outside = || outside.iter().zip(types).map(|(lanes, ty)| constant(k, lanes, ty)).collect();
                k.choose_list(inside, read, outside)
            }
            _ => read(),
        }
    }

    /// Calls a function of windows at a position.
    fn call(&self, k: &Writer, function: &Function, arguments: &[Value], window: &Window<'_>) -> Vec<Value> {
        let mut bindings: Vec<_> = (0..function.accessors().len())
            .map(|value| windowing(move |_, offsets: &[Value]| window(value, self.held(k, offsets[0]))))
            .collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        k.inline(function, arguments, &mut bindings)
    }

    /// Returns the index of a step along the axis.
    fn index_of(&self, k: &Writer, step: Value) -> Value {
        if self.sweep.backwards { k.sub(k.sub(self.length(k), 1), step) } else { step }
    }

    /// Takes the steps of a thread. `step` gets windows and returns outputs, which go to the sink if `puts`
    /// is true.
    fn travel(&self, k: &Writer, place: &ThreadPart, puts: bool, step: &dyn Fn(&Window<'_>) -> Vec<Value>) {
        if self.staged {
            return self.travel_staged(k, place, puts, step);
        }
        k.if_then(place.exists, || {
            let line = self.line(k, place.line);
            k.for_step(place.from, place.to, 1, Unroll::Never, |number| {
                let i = self.index_of(k, number);
                let (before, behind) = self.sweep.reach;
                let take = |checked: bool| {
                    let outputs = step(&|value, offset| {
                        let place = k.add(k.convert(i, Type::I64), offset);
                        match checked {
                            true => self.at(k, &line, place)[value],
                            false => self.inlet.at(k, &self.position(&line, self.wide(k, place)))[value],
                        }
                    });
                    if puts {
                        self.put(k, &line, i, &outputs);
                    }
                };
                if self.sweep.reach == (0, 0) {
                    return take(false);
                }
                let inside =
                    k.and(k.ge(i, before), k.lt(k.add(k.convert(i, Type::U64), behind), k.convert(self.length(k), Type::U64)));
                k.if_else(inside, || take(false), || take(true));
            });
        });
    }

    fn put(&self, k: &Writer, line: &[Value], i: Value, outputs: &[Value]) {
        let position = self.position(line, i);
        let lengths: Vec<Value> = (0..self.sweep.domain.axes()).map(|axis| k.count(Count::size(axis), self.index)).collect();
        self.outlet.put(k, &position, ravel(k, &position, &lengths), outputs);
    }

    /// Sweeps the 32 lines of a warp, tile by tile in shared memory.
    fn travel_staged(&self, k: &Writer, place: &ThreadPart, puts: bool, step: &dyn Fn(&Window<'_>) -> Vec<Value>) {
        let (before, behind) = self.sweep.reach;
        let columns = (LANES + before + behind) | 1;
        let tile = Shared::new(k, &self.sweep.source.results(), LANES * columns);
        let results = puts.then(|| Shared::new(k, &self.sweep.outputs(), LANES * (LANES + 1)));
        let lane = k.thread(Axis::X);
        let lines = k.count(self.lines.clone(), self.index);
        // The rows of the tile in turn, with the lanes along them.
        let rows = |width: Value, body: &dyn Fn(&[Value], Value, Value)| {
            k.for_step(0, k.literal(LANES), 1, Unroll::Never, |row| {
                let number = k.add(place.first, self.wide(k, row));
                k.if_then(k.lt(number, lines), || {
                    let line = self.line(k, number);
                    k.for_step(lane, width, LANES, Unroll::Never, |column| body(&line, row, column));
                });
            });
        };
        k.for_step(place.from, place.to, LANES, Unroll::Never, |first| {
            let count = k.convert(k.min(k.sub(place.to, first), LANES), Type::U32);
            // The least index of the tile.
            let last = k.sub(k.add(first, self.wide(k, count)), 1);
            let low = k.convert(if self.sweep.backwards { self.index_of(k, last) } else { first }, Type::I64);
            rows(k.add(count, before + behind), &|line, row, column| {
                let values = self.at(k, line, k.sub(k.add(low, k.convert(column, Type::I64)), i64::from(before)));
                tile.set(k, k.add(k.mul(row, columns), column), &values);
            });
            k.barrier();
            k.if_then(place.exists, || {
                k.for_step(0, count, 1, Unroll::Never, |number| {
                    let column = if self.sweep.backwards { k.sub(k.sub(count, 1), number) } else { number };
                    let own = k.add(k.add(k.mul(lane, columns), column), before);
                    let outputs = step(&|value, offset| tile.get(k, k.add(own, k.convert(offset, Type::U32)))[value]);
                    if let Some(results) = &results {
                        results.set(k, k.add(k.mul(lane, LANES + 1), column), &outputs);
                    }
                });
            });
            k.barrier();
            if let Some(results) = &results {
                rows(count, &|line, row, column| {
                    let i = self.wide(k, k.add(low, k.convert(column, Type::I64)));
                    self.put(k, line, i, &results.get(k, k.add(k.mul(row, LANES + 1), column)));
                });
                k.barrier();
            }
        });
    }

    fn write(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let sweep = self.sweep;
        let block = [LANES, 1, 1];
        let blocks = self.lines.clone().div_ceil(LANES);
        let length = Count::size(sweep.axis);
        let split = sweep.split.as_ref().filter(|_| sweep.spread.split);
        let busy = Costs::of(machine).sweep_blocks();
        let parts = match split {
            _ if sweep.restarts => Count::size(sweep.domain.axes()),
            Some(_) => {
                let wanted = Count::Constant(busy).div_ceil(blocks.clone());
                length.clone().div_ceil(LEAST_PART).min(wanted).max(1u32).min(MOST_PARTS)
            }
            None => Count::Constant(1),
        };
        let run = length.div_ceil(parts.clone());
        let place = |k: &Writer| {
            let first = k.mul(self.wide(k, k.block(Axis::X)), LANES);
            let line = k.add(first, self.wide(k, k.thread(Axis::X)));
            let exists = k.lt(line, k.count(self.lines.clone(), self.index));
            let (from, to) = match split.is_some() || sweep.restarts {
                true => {
                    let run = k.count(run.clone(), self.index);
                    let from = k.min(k.mul(self.wide(k, k.block(Axis::Y)), run), self.length(k));
                    (from, k.min(k.add(from, run), self.length(k)))
                }
                false => (k.constant(self.index, 0), self.length(k)),
            };
            ThreadPart { first, line, exists, from, to }
        };
        // The number of a part among all parts of all lines. Parts of neighbouring lines are adjacent.
        let number = |k: &Writer, part: Value, line: Value| k.add(k.mul(part, k.count(self.lines.clone(), self.index)), line);
        // State and constants of a line, in variables that lanes without a line also have.
        let begin = |k: &Writer, place: &ThreadPart| -> Vec<Variable> {
            let variables: Vec<Variable> = sweep.start.results().into_iter().map(|ty| k.variable(ty)).collect();
            k.if_then(place.exists, || {
                let line = match (sweep.start.axes(), sweep.restarts) {
                    (1, false) => vec![place.line],
                    (_, false) => self.line(k, place.line),
                    (axes, true) => {
                        let position = self.position(&self.line(k, place.line), self.wide(k, k.block(Axis::Y)));
                        let mut lengths: Vec<Value> =
                            (0..position.len()).map(|axis| k.count(Count::size(axis), self.index)).collect();
                        lengths[sweep.axis] = k.count(parts.clone(), self.index);
                        if axes == 1 { vec![ravel(k, &position, &lengths)] } else { position }
                    }
                };
                let values = self.start.at(k, &line);
                variables.iter().zip(values).for_each(|(variable, value)| k.set(*variable, value));
            });
            variables
        };
        let get = |k: &Writer, variables: &[Variable]| variables.iter().map(|variable| k.get(*variable)).collect::<Vec<Value>>();
        let count = self.lines.clone() * parts.clone();
        let split = split.map(|split| (split, Temporaries::new(draft, &split.operator.types(), &count)));
        if let Some((split, pieces)) = &split {
            let k = Writer::new("sweep_lift", block);
            let own = place(&k);
            let given = begin(&k, &own);
            let sum = Accumulator::new(&k, &split.operator);
            self.travel(&k, &own, false, &|window| {
                let constants = get(&k, &given[sweep.states..]);
                sum.add(&k, &self.call(&k, &split.lift, &constants, window));
                vec![]
            });
            k.if_then(own.exists, || {
                let place = number(&k, self.wide(&k, k.block(Axis::Y)), own.line);
                pieces.store(&k, place, &sum.get(&k));
            });
            draft.launch(k, [blocks.clone(), parts.clone(), 1u32.into()], block)?;

            let k = Writer::new("sweep_parts", block);
            let line = self.wide(&k, k.global_thread(Axis::X));
            k.if_then(k.lt(line, k.count(self.lines.clone(), self.index)), || {
                let sum = Accumulator::new(&k, &split.operator);
                k.for_step(0, k.count(parts.clone(), self.index), 1, Unroll::Never, |part| {
                    let place = number(&k, part, line);
                    let own = pieces.load(&k, place);
                    pieces.store(&k, place, &sum.get(&k));
                    sum.add(&k, &own);
                });
            });
            draft.launch(k, [blocks.clone(), 1u32.into(), 1u32.into()], block)?;
        }
        let k = Writer::new("sweep", block);
        let own = place(&k);
        let given = begin(&k, &own);
        let (state, constants) = given.split_at(sweep.states);
        let next = |values: &[Value]| state.iter().zip(values).for_each(|(variable, value)| k.set(*variable, *value));
        if let Some((split, pieces)) = &split {
            let part = self.wide(&k, k.block(Axis::Y));
            k.if_then(k.and(own.exists, k.ne(part, 0)), || {
                let element = pieces.load(&k, number(&k, part, own.line));
                next(&k.inline(&split.apply, &[get(&k, state), element].concat(), &mut []));
            });
        }
        self.travel(&k, &own, true, &|window| {
            let results = self.call(&k, &sweep.step, &[get(&k, state), get(&k, constants)].concat(), window);
            let (values, outputs) = results.split_at(sweep.states);
            next(values);
            outputs.to_vec()
        });
        draft.launch(k, [blocks, parts, 1u32.into()], block)?;
        Ok(())
    }
}
