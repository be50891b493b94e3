//! Chain: several functions of neighbourhoods in one pass, with the intermediate rows in ring buffers.
//!
//! A block has some columns of the domain and walks down its rows. In each step every stage computes one row.
//! The first stage computes the newest row. A later stage lags behind by the number of rows that it looks
//! down. The rows that later stages still read are kept in a ring in shared memory. Values between stages
//! therefore never reach global memory, and a row is computed once. Only columns next to those of a block are
//! also computed by its neighbours.
//!
//! [`ChainLayout`] has the lags of the stages, the rows of the rings, and the columns of a block.
//!
//! A stage has two functions, like a [`Stencil`](crate::Stencil): one far from all edges, and one that
//! applies boundary rules. A rule maps a place to one between the position and that place, or to one at most
//! as far on the other side. The mapped place is therefore in the ring too.
//!
//! A block is one warp, which takes 32 columns at a time. On a machine that runs warps as vectors, shared
//! memory is in the cache of a core.

use crate::cost::{self, Costs, LANES};
use crate::kit::{Draft, Writer, unravel};
use crate::program::{Argument, Output};
use crate::{Count, Domain, Error, Program, Result};
use broadloom_device::Machine;
use broadloom_scalar::{
    AccessorDecl, AccessorKind, Axis, Binding, Cache, Element, Function, Memory, Shuffle, Type, Unroll, Value, reading,
};

/// Computes functions of neighbourhoods in sequence, row by row.
/// The sizes of a call are the lengths of the axes. The last one is at least 32. The scalars start with the
/// bounds of the interior: for each stage and axis, the first position for which `inner` may be called and
/// the end of these positions. For each stage the scalars of `inner` and of `edge` follow. Inputs are, for
/// each stage, those of `inner` and of `edge` that are not staged values. Outputs are the stored values of
/// all stages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// The positions: two axes or more.
    pub domain: Domain,
    /// The stages, in order.
    pub stages: Vec<Stage>,
}

/// A function of a [`Chain`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    /// Function far from all edges.
    pub inner: Tap,
    /// Function near edges, if it differs.
    pub edge: Option<Tap>,
    /// Windows in which the stage reads earlier stages.
    pub reaches: Vec<Reach>,
    /// For each value: true if later stages read it.
    pub staged: Vec<bool>,
    /// For each value: true if it is stored.
    pub stored: Vec<bool>,
    /// Cost of one position, in simple operations.
    pub cost: u64,
}

/// The window in which a stage reads the values of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reach {
    /// The number of the earlier stage.
    pub stage: usize,
    /// Number of rows above and below the position.
    pub rows: (u32, u32),
    /// Number of columns before and after the position.
    pub columns: (u32, u32),
}

/// A function of a position that reads inputs and the values of earlier stages.
///
/// Its parameters are the position, then scalars.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tap {
    /// The code of the stage: it reads its inputs through accessors.
    pub function: Function,
    /// For each accessor, the source that it reads.
    pub reads: Vec<TapRead>,
}

/// The source of an accessor of a [`Tap`].
///
/// All sources except [`TapRead::Number`] are read at three indices: a row, a column, and a distance. The
/// distance is the offset of the column from that of the position, before a boundary rule. If no rule was
/// applied, the third index is the column again. The distance is less than 32, and the rule leads back by at
/// most as much. Indices along other axes are those of the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TapRead {
    /// An input, read at an element index.
    Number,
    /// An input over the domain.
    Column,
    /// A value of an earlier stage: the stage, and the number of the value.
    Stage(usize, usize),
}

/// The row lags of the stages of a chain, and the rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLayout {
    /// For each stage, the number of rows that it lags behind the newest one.
    pub lags: Vec<u32>,
    /// For each stage, the number of rows above and below those of a block for which it is also computed.
    pub rows: Vec<(u32, u32)>,
    /// For each stage, the number of columns before and after those of a block for which it is also computed.
    pub columns: Vec<(u32, u32)>,
    /// For each stage, the number of rows of its ring.
    pub rings: Vec<u32>,
    /// For each stage and value, its first byte in shared memory.
    pub places: Vec<Vec<u64>>,
    /// Maximum number of columns of a block.
    pub width: u32,
    /// Bytes of shared memory.
    pub bytes: u64,
}

impl ChainLayout {
    /// Returns the layout for stages. Each stage has its windows, the bytes per element of each value (0 for
    /// a value that is not staged), and its cost. Returns `None` if no columns fit into the shared memory of
    /// the machine.
    pub fn new(stages: &[(&[Reach], Vec<u32>, u64)], machine: &Machine) -> Option<ChainLayout> {
        let count = stages.len();
        let (mut lags, mut rings) = (vec![0u32; count], vec![1u32; count]);
        let (mut rows, mut columns) = (vec![(0u32, 0u32); count], vec![(0u32, 0u32); count]);
        for (number, (reaches, ..)) in stages.iter().enumerate() {
            for reach in reaches.iter() {
                lags[number] = lags[number].max(lags[reach.stage].checked_add(reach.rows.1)?);
            }
        }
        let wider = |own: &mut (u32, u32), of: (u32, u32), by: (u32, u32)| {
            *own = (own.0.max(of.0.checked_add(by.0)?), own.1.max(of.1.checked_add(by.1)?));
            Some(())
        };
        for (number, (reaches, ..)) in stages.iter().enumerate().rev() {
            let (own_rows, own_columns) = (rows[number], columns[number]);
            for reach in reaches.iter() {
                wider(&mut rows[reach.stage], own_rows, reach.rows)?;
                wider(&mut columns[reach.stage], own_columns, reach.columns)?;
                // From the topmost row that the reader needs to the row that was computed last.
                let ring = (lags[number] - lags[reach.stage]).checked_add(reach.rows.0)?.checked_add(1)?;
                rings[reach.stage] = rings[reach.stage].max(ring);
            }
        }
        let mut layout = ChainLayout { lags, rows, columns, rings, places: vec![], width: 0, bytes: 0 };
        let most = u64::from(Costs::of(machine).shared_bytes().saturating_sub(1024)).min(cost::CHAIN_BYTES);
        let mut best: Option<u128> = None;
        for width in cost::CHAIN_COLUMNS {
            let (places, bytes) = layout.places(stages, width);
            // Each row has a fixed cost of about 32 columns.
            let groups = |stage: usize| u128::from(layout.pitch(stage, width).div_ceil(LANES) + 1);
            let work = stages.iter().enumerate().map(|(number, (.., cost))| u128::from(*cost + 1) * groups(number));
            let work = (work.sum::<u128>() << 10) / u128::from(width);
            if bytes <= most && best.is_none_or(|best| work < best) {
                best = Some(work);
                (layout.places, layout.bytes, layout.width) = (places, bytes, width);
            }
        }
        best.map(|_| layout)
    }

    /// Returns the number of columns of a row of a stage, for a block of `width` columns.
    fn pitch(&self, stage: usize, width: u32) -> u32 {
        let (before, behind) = self.columns[stage];
        width + before + behind
    }

    /// Returns the first byte of each staged value, and the total number of bytes.
    fn places(&self, stages: &[(&[Reach], Vec<u32>, u64)], width: u32) -> (Vec<Vec<u64>>, u64) {
        let mut all = 0u64;
        let mut places = vec![];
        for (number, (_, values, _)) in stages.iter().enumerate() {
            let elements = u64::from(self.rings[number]) * u64::from(self.pitch(number, width));
            let place = |bytes: &u32| {
                let place = all;
                all += (elements * u64::from(*bytes)).next_multiple_of(cost::CACHE_LINE.into());
                place
            };
            places.push(values.iter().map(place).collect());
        }
        (places, all)
    }

    /// Returns the number of columns that a stage computes per column of a block, in hundredths.
    pub fn growth(&self, stage: usize) -> u64 {
        u64::from(self.pitch(stage, self.width)) * 100 / u64::from(self.width.max(1))
    }

    /// Returns the maximum number of rows on one side of a block for which a stage is also computed.
    fn most_rows(&self) -> u32 {
        self.rows.iter().map(|(above, below)| *above.max(below)).max().unwrap_or(0)
    }

    /// Returns the maximum number of rows or columns on one side of a block for which a stage is also
    /// computed.
    pub fn most_around(&self) -> u32 {
        self.columns.iter().map(|(before, behind)| *before.max(behind)).fold(self.most_rows(), u32::max)
    }
}

impl Chain {
    /// Returns the types of the values of a stage.
    fn values(&self, stage: usize) -> Vec<Type> {
        self.stages[stage].inner.function.result_types()
    }

    /// Returns the row layout for a machine.
    fn layout(&self, machine: &Machine) -> Option<ChainLayout> {
        let bytes = |number: usize| {
            let staged = self.values(number).into_iter().zip(&self.stages[number].staged);
            staged.map(|(ty, staged)| if *staged { ty.bytes() } else { 0 }).collect()
        };
        let stages = self.stages.iter().enumerate().map(|(number, stage)| (&stage.reaches[..], bytes(number), stage.cost));
        ChainLayout::new(&stages.collect::<Vec<_>>(), machine)
    }

    fn check(&self) -> Result<()> {
        let bad = |reason: String| Err(Error::Pattern { pattern: "chain", reason });
        let axes = self.domain.axes();
        if axes < 2 || self.stages.is_empty() {
            return bad(format!("{} stages over {axes} axes", self.stages.len()));
        }
        for (number, stage) in self.stages.iter().enumerate() {
            let values = self.values(number);
            if values.is_empty() || stage.staged.len() != values.len() || stage.stored.len() != values.len() {
                return bad(format!("stage {number} has {} values", values.len()));
            }
            if stage.reaches.iter().any(|reach| reach.stage >= number) {
                return bad(format!("stage {number} reads a later one"));
            }
            for tap in std::iter::once(&stage.inner).chain(&stage.edge) {
                if crate::source::index_type(&tap.function, axes)? != Type::I32 || tap.function.result_types() != values {
                    return bad(format!("`{}` has other indices or results than its stage", tap.function.name()));
                }
                let fits = |(accessor, read): (&AccessorDecl, &TapRead)| {
                    let is_there = match *read {
                        TapRead::Number => accessor.rank == 1,
                        TapRead::Column => accessor.rank == 3,
                        TapRead::Stage(from, value) => {
                            accessor.rank == 3
                                && stage.reaches.iter().any(|reach| reach.stage == from)
                                && self.stages[from].staged.get(value) == Some(&true)
                                && self.values(from)[value] == accessor.ty
                        }
                    };
                    accessor.kind == AccessorKind::Input && is_there
                };
                let accessors = tap.function.accessors();
                if accessors.len() != tap.reads.len() || !accessors.iter().zip(&tap.reads).all(fits) {
                    return bad(format!("`{}` reads what no earlier stage has", tap.function.name()));
                }
                crate::source::check_scalars(&tap.function, axes)?;
            }
        }
        Ok(())
    }

    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        self.check()?;
        let axes = self.domain.axes();
        let Some(layout) = self.layout(machine) else {
            return Err(Error::Pattern { pattern: "chain", reason: "its rings do not fit into shared memory".into() });
        };
        let mut draft = Draft::new("chain", axes);
        let bounds = (0..self.stages.len()).map(|_| (0..2 * axes).map(|_| draft.scalar(Type::I32)).collect()).collect();
        let mut ports = vec![];
        for stage in &self.stages {
            let mut port = |tap: &Tap| Port {
                inputs: tap
                    .function
                    .accessors()
                    .iter()
                    .zip(&tap.reads)
                    .map(|(accessor, read)| match read {
                        TapRead::Stage(..) => None,
                        TapRead::Number | TapRead::Column => Some(draft.input(accessor.ty)),
                    })
                    .collect(),
                scalars: tap.function.parameters()[axes..].iter().map(|own| (draft.scalar(own.ty), own.ty)).collect(),
            };
            let inner = port(&stage.inner);
            ports.push((inner, stage.edge.as_ref().map(&mut port)));
        }
        let mut outputs = vec![];
        for (number, stage) in self.stages.iter().enumerate() {
            let mut own = vec![];
            for (ty, stored) in self.values(number).into_iter().zip(&stage.stored) {
                own.push(stored.then(|| draft.output(Output { ty, count: self.domain.count() })));
            }
            outputs.push(own);
        }
        draft.limit(self.domain.count());
        let parts = ChainEmitter { chain: self, layout, bounds, ports, outputs };
        draft.least(Count::size(axes - 1), LANES.into());
        parts.launch(&mut draft, machine)?;
        Ok(draft.finish())
    }
}

/// The inputs and scalars of a function within a program.
struct Port {
    inputs: Vec<Option<usize>>,
    scalars: Vec<(usize, Type)>,
}

/// Emitter of the kernels of a chain.
struct ChainEmitter<'a> {
    chain: &'a Chain,
    layout: ChainLayout,
    /// For each stage, the numbers of scalars: for each axis the start and the end of the interior.
    bounds: Vec<Vec<usize>>,
    ports: Vec<(Port, Option<Port>)>,
    /// For each stage and value, the number of its output, if it is stored.
    outputs: Vec<Vec<Option<usize>>>,
}

/// The part of the domain that belongs to a block. Numbers are `i32` unless stated otherwise.
struct BlockPart {
    /// Indices of the axes other than rows and columns.
    above: Vec<Value>,
    /// First row, and end of the rows.
    rows: [Value; 2],
    /// First column, and end of the columns.
    columns: [Value; 2],
    /// Number of the first element of the image, in 64 bits.
    start: Value,
    /// Memory of all rings.
    room: Memory,
}

impl ChainEmitter<'_> {
    fn axes(&self) -> usize {
        self.chain.domain.axes()
    }

    fn length(&self, k: &Writer, axis: usize) -> Value {
        k.count(Count::size(axis), Type::I32)
    }

    /// Returns the bounds of one part of a length that is divided evenly.
    fn part(&self, k: &Writer, length: Value, number: Value, parts: Value) -> [Value; 2] {
        let wide = |value: Value| k.convert(value, Type::I64);
        let bound = |number: Value| k.convert(k.div(k.mul(wide(number), wide(length)), wide(parts)), Type::I32);
        [bound(number), bound(k.add(number, 1))]
    }

    fn launch(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let axes = self.axes();
        let block = [LANES, 1, 1];
        let k = Writer::new("chain", block);
        let room = k.large_shared(Element::U8, Count::Constant(self.layout.bytes.max(16)));
        let images = Count::product(0..axes - 2);
        let across = Count::size(axes - 1).div_ceil(self.layout.width);
        // Rows are divided if columns and images are too few for all cores. The parts are large enough that
        // little is computed twice.
        let wanted = Count::Constant(Costs::of(machine).busy(cost::CHAIN_BLOCKS)).div_ceil(across.clone() * images.clone());
        let least = (cost::CHAIN_ROWS * self.layout.most_rows()).max(cost::CHAIN_LEAST_ROWS);
        let down = wanted.min(Count::size(axes - 2).div_ceil(least));
        let all = images * down.clone();
        let (number, step) = (k.convert(k.block(Axis::Y), Type::I32), k.convert(k.grid_size(Axis::Y), Type::I32));
        let lengths: Vec<Value> = (0..axes).map(|axis| self.length(&k, axis)).collect();
        let tiles = k.count(across.clone(), Type::I32);
        let columns = self.part(&k, lengths[axes - 1], k.convert(k.block(Axis::X), Type::I32), tiles);
        k.for_step(number, k.count(all.clone(), Type::I32), step, Unroll::Never, |number| {
            let each = k.count(down.clone(), Type::I32);
            let image = k.div(number, each);
            let above = unravel(&k, image, &lengths[..axes - 2]);
            let rows = self.part(&k, lengths[axes - 2], k.sub(number, k.mul(image, each)), each);
            let size = k.mul(k.convert(lengths[axes - 2], Type::I64), k.convert(lengths[axes - 1], Type::I64));
            let start = k.mul(k.convert(image, Type::I64), size);
            let place = BlockPart { above, rows, columns, start, room };
            let stages = 0..self.chain.stages.len();
            let highest = stages.clone().map(|stage| self.layout.rows[stage].0).max().unwrap_or(0);
            let latest = stages.clone().map(|stage| self.layout.lags[stage] + self.layout.rows[stage].1).max().unwrap_or(0);
            let first = k.max(k.sub(rows[0], highest), 0);
            k.for_step(first, k.add(rows[1], latest), 1, Unroll::Never, |newest| {
                for stage in stages.clone() {
                    self.stage(&k, stage, &place, newest);
                }
            });
        });
        draft.launch(k, [across, all.min(cost::GRID_ROWS), 1u32.into()], block)?;
        Ok(())
    }

    /// Computes a row of a stage.
    fn stage(&self, k: &Writer, number: usize, place: &BlockPart, newest: Value) {
        let axes = self.axes();
        let stage = &self.chain.stages[number];
        let [around_rows, around_columns] = [self.layout.rows[number], self.layout.columns[number]];
        let bounds = |own: [Value; 2], around: (u32, u32), axis: usize| {
            let end = k.min(k.add(own[1], around.1), self.length(k, axis));
            [k.max(k.sub(own[0], around.0), 0), end]
        };
        let row = k.sub(newest, self.layout.lags[number]);
        let [top, bottom] = bounds(place.rows, around_rows, axes - 2);
        k.if_then(k.and(k.ge(row, top), k.lt(row, bottom)), || {
            let [left, right] = bounds(place.columns, around_columns, axes - 1);
            let lane = k.convert(k.thread(Axis::X), Type::I32);
            let above = place.above.iter().enumerate();
            let above = above.fold(k.literal(true), |all, (axis, index)| k.and(all, self.inside(k, number, axis, *index)));
            let rows_inside = k.and(above, self.inside(k, number, axes - 2, row));
            let last = k.sub(right, LANES);
            k.for_step(left, right, LANES, Unroll::Never, |start| {
                // The last group of columns overlaps the one before, so that every lane has a column.
                let start = k.min(start, last);
                let column = k.add(start, lane);
                let end = k.add(start, LANES - 1);
                let columns_inside = k.and(self.inside(k, number, axes - 1, start), self.inside(k, number, axes - 1, end));
                let position: Vec<Value> = place.above.iter().copied().chain([row, column]).collect();
                let compute = |tap: &Tap, port: &Port| {
                    let results = self.results(k, tap, port, &position, place, start);
                    self.keep(k, number, &results, place, [row, column]);
                };
                let (inner, edge) = &self.ports[number];
                match stage.edge.as_ref().zip(edge.as_ref()) {
                    None => compute(&stage.inner, inner),
                    Some((tap, port)) => {
                        let inside = k.and(rows_inside, columns_inside);
                        k.if_else(inside, || compute(&stage.inner, inner), || compute(tap, port));
                    }
                }
            });
        });
        if stage.staged.contains(&true) {
            k.warp_barrier();
        }
    }

    /// Returns a condition: a position along an axis is in the interior of a stage.
    fn inside(&self, k: &Writer, stage: usize, axis: usize, position: Value) -> Value {
        let [first, end] = [0, 1].map(|end| k.scalar(self.bounds[stage][2 * axis + end], Type::I32));
        k.and(k.ge(position, first), k.lt(position, end))
    }

    /// Returns the memory of a staged value.
    fn memory(&self, k: &Writer, stage: usize, value: usize, room: Memory) -> Memory {
        let element = self.chain.values(stage)[value].element();
        k.shared_view(room, element, self.layout.places[stage][value] as u32)
    }

    /// Returns the place of a value in the ring of a stage. The column has 64 bits, so that a vector executor
    /// sees that neighbours are contiguous.
    fn index(&self, k: &Writer, stage: usize, place: &BlockPart, row: Value, column: Value) -> Value {
        let pitch = self.layout.pitch(stage, self.layout.width);
        let left = k.sub(place.columns[0], self.layout.columns[stage].0);
        let start = match self.layout.rings[stage] {
            1 => k.neg(left),
            ring => {
                let slot = k.convert(k.rem(k.convert(row, Type::U32), ring), Type::I32);
                k.sub(k.mul(slot, pitch), left)
            }
        };
        k.add(k.convert(start, Type::I64), column)
    }

    /// Returns the number of an element of the domain in memory. The column has 64 bits.
    fn linear(&self, k: &Writer, place: &BlockPart, row: Value, column: Value) -> Value {
        let width = k.convert(self.length(k, self.axes() - 1), Type::I64);
        k.add(k.add(place.start, k.mul(k.convert(row, Type::I64), width)), column)
    }

    /// Reads a value of a row. Under a boundary rule, 32 neighbours that contain the values of all lanes are
    /// loaded, and lanes exchange them.
    fn read(&self, k: &Writer, ty: Type, at: &[Value], start: Value, load: &dyn Fn(Value, Value) -> Value) -> Value {
        let [row, column, distance] = [at[0], at[1], at[2]];
        if column == distance || !ty.is_scalar() || ty.bytes() != 4 {
            return load(row, column);
        }
        let last = k.sub(self.length(k, self.axes() - 1), LANES);
        let first = k.add(start, k.convert(distance, Type::I32));
        let first = k.convert(k.max(k.min(first, last), 0), Type::I64);
        let lane = k.convert(k.thread(Axis::X), Type::I64);
        let loaded = load(row, k.add(first, lane));
        k.shuffle(Shuffle::Index, loaded, k.convert(k.sub(column, first), Type::U32))
    }

    /// Returns the results at a position within the 32 columns that begin at `start`.
    fn results(&self, k: &Writer, tap: &Tap, port: &Port, position: &[Value], place: &BlockPart, start: Value) -> Vec<Value> {
        let mut arguments = position.to_vec();
        arguments.extend(port.scalars.iter().map(|(number, ty)| k.scalar(*number, *ty)));
        let accessors = tap.function.accessors().iter().zip(&tap.reads).zip(&port.inputs);
        let mut bindings: Vec<_> = accessors
            .map(|((accessor, read), input)| {
                let ty = accessor.ty;
                let memory = move || k.memory(Argument::Input(input.unwrap_or_default()), ty.element());
                reading(move |_, at: &[Value]| match *read {
                    TapRead::Number => k.load_element(memory(), ty, at[0]),
                    TapRead::Column => self
                        .read(k, ty, at, start, &|row, column| k.load_element(memory(), ty, self.linear(k, place, row, column))),
                    TapRead::Stage(stage, value) => self.read(k, ty, at, start, &|row, column| {
                        let index = self.index(k, stage, place, row, column);
                        k.load_element(self.memory(k, stage, value, place.room), ty, index)
                    }),
                })
            })
            .collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        k.inline(&tap.function, &arguments, &mut bindings)
    }

    /// Stores the results of a position: in rings for later stages, and in the outputs of stored values.
    fn keep(&self, k: &Writer, number: usize, results: &[Value], place: &BlockPart, [row, column]: [Value; 2]) {
        let stage = &self.chain.stages[number];
        let wide = |value: Value| k.convert(value, Type::I64);
        for (value, result) in results.iter().enumerate().filter(|(value, _)| stage.staged[*value]) {
            let index = self.index(k, number, place, row, wide(column));
            k.store_element(self.memory(k, number, value, place.room), index, *result, Cache::Normal);
        }
        let store = || {
            for (result, output) in results.iter().zip(&self.outputs[number]) {
                let Some(output) = output else { continue };
                let memory = k.memory(Argument::Output(*output), k.type_of(*result).element());
                k.store_element(memory, self.linear(k, place, row, wide(column)), *result, Cache::Normal);
            }
        };
        if !stage.stored.contains(&true) {
            return;
        }
        // Rows and columns next to those of this block are stored by other blocks.
        let within = |at: Value, own: [Value; 2]| k.and(k.ge(at, own[0]), k.lt(at, own[1]));
        match (self.layout.rows[number], self.layout.columns[number]) {
            ((0, 0), (0, 0)) => store(),
            (_, (0, 0)) => k.if_then(within(row, place.rows), store),
            _ => k.if_then(k.and(within(row, place.rows), within(column, place.columns)), store),
        }
    }
}
