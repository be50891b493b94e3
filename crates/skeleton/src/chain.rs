//! Chain: several functions of neighbourhoods in one pass, with the values between them in shared memory.
//!
//! A block has a tile of the domain. It computes the first stage for the tile and its halo into shared memory, then the second from those values, and so
//! on; the values of the last stages are stored. So values between stages never reach memory, and each stage computes the halo that later ones read a
//! second time. [`Tile`] sizes follow from the costs of stages and from the shared memory of a machine.
//!
//! | | on a GPU | on a CPU |
//! | --- | --- | --- |
//! | shared memory | of a multiprocessor | memory in the second cache of a core |
//! | threads | warps take strips of 32 columns in turn | one warp has all strips |
//!
//! A stage has two functions, as a [`Stencil`](crate::Stencil) has: one far from all edges, one that applies boundary rules. A rule leads to places that lie
//! between a position and the place without the rule, or as far on its other side, so that they are in the halo, too.
//!
//! Strips and tiles that would end outside of the domain start further up or left instead; they store only what no other has.

use crate::cost::{self, Costs, LANES};
use crate::kit::{Draft, Writer, unravel};
use crate::program::{Argument, Output};
use crate::{Count, Domain, Error, Program, Result};
use broadloom_device::Machine;
use broadloom_scalar::{AccessorKind, Axis, Binding, Cache, Element, Function, Memory, Type, Unroll, Value, reading};

/// Computes functions of neighbourhoods one behind the other, tile by tile.
///
/// The sizes of a call are the lengths of the axes: the last is at least 32, the one before it at least as long as the strips of all stages. Scalars are,
/// for each stage and axis, the first position and the one behind the last that its `inner` function may be asked for; then for each stage the scalars
/// of `inner` and of `edge`. Inputs are for each stage those of `inner` and of `edge` that are no staged values. Outputs are the stored values of all
/// stages.
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
    /// Number of rows of a strip.
    pub rows: u32,
    /// Function far from all edges.
    pub inner: Tap,
    /// Function near them, if it is another.
    pub edge: Option<Tap>,
    /// Rows before and behind the tile for which it is computed.
    pub rows_around: (u32, u32),
    /// Columns before and behind the tile for which it is computed.
    pub columns_around: (u32, u32),
    /// For each value of a row, whether later stages read it.
    pub staged: Vec<bool>,
    /// For each value of a row, whether it is stored.
    pub stored: Vec<bool>,
    /// Cost of a position, in simple operations.
    pub cost: u64,
}

/// A function of a position that reads inputs and the values of earlier stages.
///
/// Its parameters are the position, then scalars. An accessor of an input has one index, which counts its elements; that of an earlier stage's value has an
/// index for each axis. The results are those of the first row of a strip, then those of the second, and so on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tap {
    /// The function.
    pub function: Function,
    /// For each accessor, the stage and the number of the value that it reads; `None` for inputs.
    pub reads: Vec<Option<(usize, usize)>>,
}

/// Rows and columns of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    rows: u32,
    columns: u32,
}

impl Chain {
    fn values(&self, stage: usize) -> Vec<Type> {
        let stage = &self.stages[stage];
        stage.inner.function.result_types()[..stage.staged.len()].to_vec()
    }

    /// Rows and columns of a stage's values in shared memory.
    fn region(&self, stage: usize, tile: Extent) -> Extent {
        let Stage { rows_around: rows, columns_around: columns, .. } = &self.stages[stage];
        Extent { rows: tile.rows + rows.0 + rows.1, columns: tile.columns + columns.0 + columns.1 }
    }

    /// The first byte of each staged value, and all bytes.
    fn places(&self, tile: Extent) -> (Vec<Vec<u64>>, u64) {
        let mut bytes = 0u64;
        let mut places = vec![];
        for (number, stage) in self.stages.iter().enumerate() {
            let region = self.region(number, tile);
            let mut own = vec![];
            for (ty, staged) in self.values(number).iter().zip(&stage.staged) {
                own.push(bytes);
                if *staged {
                    bytes += (u64::from(region.rows) * u64::from(region.columns) * u64::from(ty.bytes())).next_multiple_of(16);
                }
            }
            places.push(own);
        }
        (places, bytes)
    }

    /// The tile with the least work for each of its positions, of those that fit into the shared memory of a machine.
    fn tile(&self, machine: &Machine) -> Option<Extent> {
        let costs = Costs::of(machine);
        let most = Chain::most_bytes(machine);
        let work = |tile: &Extent| {
            let area = |extent: Extent| u128::from(extent.rows) * u128::from(extent.columns);
            let each = (0..self.stages.len()).map(|stage| u128::from(self.stages[stage].cost) * area(self.region(stage, *tile)));
            (each.sum::<u128>() << 10) / area(*tile)
        };
        let tiles = costs
            .pick(cost::CHAIN_COLUMNS)
            .iter()
            .flat_map(|columns| cost::CHAIN_ROWS.iter().map(move |rows| Extent { rows: *rows, columns: *columns }));
        tiles.filter(|tile| self.places(*tile).1 <= most).min_by_key(work)
    }

    /// Returns whether a tile of a chain fits into the shared memory of a machine, given for each staged value its bytes, and the rows and columns around
    /// a tile for which it is computed.
    pub fn fits(machine: &Machine, staged: impl Iterator<Item = (u32, [u32; 2])>) -> bool {
        let [least_rows, least_columns] = [cost::CHAIN_ROWS[0], Costs::of(machine).pick(cost::CHAIN_COLUMNS)[0]];
        let bytes = |(bytes, [rows, columns]): (u32, [u32; 2])| {
            (u64::from(least_rows + rows) * u64::from(least_columns + columns) * u64::from(bytes)).next_multiple_of(16)
        };
        staged.map(bytes).sum::<u64>() <= Chain::most_bytes(machine)
    }

    /// Returns how many bytes of shared memory a tile has, at most.
    fn most_bytes(machine: &Machine) -> u64 {
        u64::from(machine.max_shared_bytes.saturating_sub(1024)).min(Costs::of(machine).pick(cost::CHAIN_BYTES))
    }

    fn check(&self) -> Result<()> {
        let bad = |reason: String| Err(Error::Pattern { pattern: "chain", reason });
        let axes = self.domain.axes();
        if axes < 2 || self.stages.is_empty() {
            return bad(format!("{} stages over {axes} axes", self.stages.len()));
        }
        for (number, stage) in self.stages.iter().enumerate() {
            let values = stage.staged.len();
            let results = stage.inner.function.result_types();
            let is_whole = stage.rows > 0 && results.len() == values * stage.rows as usize && stage.stored.len() == values;
            if values == 0 || !is_whole || results.chunks(values).any(|row| row != &results[..values]) {
                return bad(format!("stage {number} has {} results for strips of {} rows", results.len(), stage.rows));
            }
            for tap in std::iter::once(&stage.inner).chain(&stage.edge) {
                if crate::source::index_type(&tap.function, axes)? != Type::I32 || tap.function.result_types() != results {
                    return bad(format!("`{}` has other indices or results than its stage", tap.function.name()));
                }
                let fits = |(accessor, read): (&broadloom_scalar::AccessorDecl, &Option<(usize, usize)>)| {
                    let ty = read.map(|(from, value)| {
                        let is_there = from < number && self.stages[from].staged.get(value) == Some(&true);
                        is_there.then(|| self.values(from)[value])
                    });
                    let rank = if read.is_some() { axes } else { 1 };
                    accessor.kind == AccessorKind::Input
                        && usize::from(accessor.rank) == rank
                        && ty.is_none_or(|ty| ty == Some(accessor.ty))
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

    /// The program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        self.check()?;
        let axes = self.domain.axes();
        let Some(tile) = self.tile(machine) else {
            return Err(Error::Pattern { pattern: "chain", reason: "no tile fits into shared memory".into() });
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
                    .map(|(accessor, read)| read.is_none().then(|| draft.input(accessor.ty)))
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
        let tallest = self.stages.iter().map(|stage| stage.rows).max().unwrap_or(1);
        draft.least(Count::size(axes - 2), tallest.into());
        draft.least(Count::size(axes - 1), LANES.into());
        draft.limit(self.domain.count());
        let (places, bytes) = self.places(tile);
        let parts = Parts { chain: self, tile, bounds, ports, outputs, places };
        parts.launch(&mut draft, machine, bytes)?;
        Ok(draft.finish())
    }
}

/// The inputs and scalars of a function within a program.
struct Port {
    inputs: Vec<Option<usize>>,
    scalars: Vec<(usize, Type)>,
}

struct Parts<'a> {
    chain: &'a Chain,
    tile: Extent,
    /// For each stage the numbers of scalars: for each axis where the interior starts and where it ends.
    bounds: Vec<Vec<usize>>,
    ports: Vec<(Port, Option<Port>)>,
    /// For each stage and value the number of its output, if it is stored.
    outputs: Vec<Vec<Option<usize>>>,
    /// For each stage and value its first byte in shared memory.
    places: Vec<Vec<u64>>,
}

/// A tile within a kernel. All numbers are `i32`.
struct Place {
    /// The indices of the axes above rows and columns.
    above: Vec<Value>,
    /// The first row and column that are stored.
    own: [Value; 2],
    /// The first row and column, and those behind the last.
    first: [Value; 2],
    end: [Value; 2],
    /// The number of the first element of the image.
    start: Value,
}

/// The rows and columns that a warp computes at a time.
struct Strip {
    /// The first row.
    row: Value,
    /// The column of the first lane.
    start: Value,
    /// The column of the thread.
    column: Value,
    /// The first row and column that no other strip has.
    own_row: Value,
    own_column: Value,
}

impl Parts<'_> {
    fn axes(&self) -> usize {
        self.chain.domain.axes()
    }

    fn length(&self, k: &Writer, axis: usize) -> Value {
        k.count(Count::size(axis), Type::I32)
    }

    fn launch(&self, draft: &mut Draft, machine: &Machine, bytes: u64) -> Result<()> {
        let axes = self.axes();
        let warps = Costs::of(machine).pick(cost::CHAIN_WARPS);
        let block = [LANES, warps, 1];
        let k = Writer::new("chain", block);
        let room = k.large_shared(Element::U8, Count::Constant(bytes.max(16)));
        let Extent { rows, columns } = self.tile;
        let images = Count::product(0..axes - 2);
        let down = Count::size(axes - 2).div_ceil(rows);
        let all = images * down.clone();
        let (number, step) = (k.convert(k.block(Axis::Y), Type::I32), k.convert(k.grid_size(Axis::Y), Type::I32));
        let last = k.count(all.clone(), Type::I32);
        let lengths: Vec<Value> = (0..axes).map(|axis| self.length(&k, axis)).collect();
        k.for_step(number, last, step, Unroll::Never, |number| {
            let each = k.count(down.clone(), Type::I32);
            let image = k.div(number, each);
            let above = unravel(&k, image, &lengths[..axes - 2]);
            let place = |own: Value, length: Value, size: u32| {
                // A tile at the end starts further up, where the domain is not smaller than a tile.
                let first = k.max(k.min(own, k.sub(length, size)), 0);
                (first, k.min(k.add(first, size), length))
            };
            let row = k.mul(k.sub(number, k.mul(image, each)), rows);
            let column = k.mul(k.convert(k.block(Axis::X), Type::I32), columns);
            let (top, bottom) = place(row, lengths[axes - 2], rows);
            let (left, right) = place(column, lengths[axes - 1], columns);
            let size = k.mul(k.convert(lengths[axes - 2], Type::I64), k.convert(lengths[axes - 1], Type::I64));
            let start = k.mul(k.convert(image, Type::I64), size);
            let place = Place { above, own: [row, column], first: [top, left], end: [bottom, right], start };
            for stage in 0..self.chain.stages.len() {
                self.stage(&k, stage, &place, room, warps);
                // Behind the last stage the next tile begins.
                k.barrier();
            }
        });
        let across = Count::size(axes - 1).div_ceil(columns);
        draft.launch(k, [across, all.min(cost::GRID_ROWS), 1u32.into()], block)?;
        Ok(())
    }

    /// Computes a stage for a tile and its halo.
    fn stage(&self, k: &Writer, number: usize, place: &Place, room: Memory, warps: u32) {
        let axes = self.axes();
        let stage = &self.chain.stages[number];
        let around = [stage.rows_around, stage.columns_around];
        let region = |side: usize| {
            let first = k.max(k.sub(place.first[side], around[side].0), 0);
            (first, k.min(k.add(place.end[side], around[side].1), self.length(k, axes - 2 + side)))
        };
        let ((top, bottom), (left, right)) = (region(0), region(1));
        let lane = k.convert(k.thread(Axis::X), Type::I32);
        let warp = k.convert(k.thread(Axis::Y), Type::I32);
        let strips = k.div(k.add(k.sub(bottom, top), stage.rows - 1), stage.rows);
        let inside_above = place
            .above
            .iter()
            .enumerate()
            .fold(k.literal(true), |all, (axis, index)| k.and(all, self.inside(k, number, axis, *index)));
        let along = |strip: Value, own_column: Value| {
            let own_row = k.add(top, k.mul(strip, stage.rows));
            let row = k.min(own_row, k.sub(bottom, stage.rows));
            let start = k.min(own_column, k.sub(right, LANES));
            let column = k.add(start, lane);
            let ends = k.and(self.inside(k, number, axes - 1, start), self.inside(k, number, axes - 1, k.add(start, LANES - 1)));
            let inside = k.and(k.and(inside_above, self.inside(k, number, axes - 2, row)), ends);
            let position: Vec<Value> = place.above.iter().copied().chain([row, column]).collect();
            let compute = |tap: &Tap, port: &Port| {
                let results = self.results(k, tap, port, &position, place, room);
                let strip = Strip { row, start, column, own_row, own_column };
                self.keep(k, number, &results, place, &strip, room);
            };
            let (inner, edge) = &self.ports[number];
            match stage.edge.as_ref().zip(edge.as_ref()) {
                None => compute(&stage.inner, inner),
                Some((tap, port)) => k.if_else(inside, || compute(&stage.inner, inner), || compute(tap, port)),
            }
        };
        if warps == 1 {
            k.for_step(0, strips, 1, Unroll::Never, |strip| {
                k.for_step(left, right, LANES, Unroll::Never, |column| along(strip, column));
            });
            return;
        }
        let across = k.div(k.add(k.sub(right, left), LANES - 1), LANES);
        k.for_step(warp, k.mul(strips, across), warps, Unroll::Never, |item| {
            let strip = k.div(item, across);
            let column = k.add(left, k.mul(k.sub(item, k.mul(strip, across)), LANES));
            along(strip, column);
        });
    }

    /// Returns whether a position along an axis is in the interior of a stage.
    fn inside(&self, k: &Writer, stage: usize, axis: usize, position: Value) -> Value {
        let [first, end] = [0, 1].map(|end| k.scalar(self.bounds[stage][2 * axis + end], Type::I32));
        k.and(k.ge(position, first), k.lt(position, end))
    }

    /// The memory of a staged value.
    fn memory(&self, k: &Writer, (stage, value): (usize, usize), room: Memory) -> Memory {
        let element = self.chain.values(stage)[value].element();
        k.shared_view(room, element, self.places[stage][value] as u32)
    }

    /// The place of a value in the memory of a stage, in 64 bits: so an executor of vectors sees that neighbours lie side by side.
    fn index(&self, k: &Writer, stage: usize, place: &Place, [row, column]: [Value; 2]) -> Value {
        let Stage { rows_around, columns_around, .. } = &self.chain.stages[stage];
        let pitch = self.chain.region(stage, self.tile).columns;
        let top = k.sub(place.first[0], rows_around.0);
        let left = k.sub(place.first[1], columns_around.0);
        let start = k.sub(k.mul(k.sub(row, top), pitch), left);
        k.add(k.convert(start, Type::I64), k.convert(column, Type::I64))
    }

    fn results(&self, k: &Writer, tap: &Tap, port: &Port, position: &[Value], place: &Place, room: Memory) -> Vec<Value> {
        let mut arguments = position.to_vec();
        arguments.extend(port.scalars.iter().map(|(number, ty)| k.scalar(*number, *ty)));
        let accessors = tap.function.accessors().iter().zip(&tap.reads).zip(&port.inputs);
        let mut bindings: Vec<_> = accessors
            .map(|((accessor, read), input)| {
                let ty = accessor.ty;
                reading(move |_, at: &[Value]| match (read, input) {
                    (Some(value), _) => {
                        let own = [at[at.len() - 2], at[at.len() - 1]];
                        k.load_element(self.memory(k, *value, room), ty, self.index(k, value.0, place, own))
                    }
                    (None, input) => {
                        let memory = k.memory(Argument::Input(input.unwrap_or_default()), ty.element());
                        k.load_element(memory, ty, at[0])
                    }
                })
            })
            .collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        k.inline(&tap.function, &arguments, &mut bindings)
    }

    /// Keeps the results of a strip: in shared memory for later stages, in memory where they are stored.
    fn keep(&self, k: &Writer, number: usize, results: &[Value], place: &Place, strip: &Strip, room: Memory) {
        let Strip { row, start, column, own_row, own_column } = *strip;
        let axes = self.axes();
        let stage = &self.chain.stages[number];
        let values = stage.staged.len();
        let width = k.convert(self.length(k, axes - 1), Type::I64);
        let store = |down: u32, first: Option<Value>| {
            let at = k.add(row, down);
            let own = &results[down as usize * values..][..values];
            for (value, result) in own.iter().enumerate() {
                if stage.staged[value] {
                    let index = self.index(k, number, place, [at, column]);
                    let put = || k.store_element(self.memory(k, (number, value), room), index, *result, Cache::Normal);
                    match first {
                        None => put(),
                        Some(first) => k.if_then(k.and(k.ge(at, first), k.ge(column, own_column)), put),
                    }
                }
                if let Some(output) = self.outputs[number][value] {
                    let memory = k.memory(Argument::Output(output), k.type_of(*result).element());
                    let line = k.add(place.start, k.mul(k.convert(at, Type::I64), width));
                    let put = || k.store_element(memory, k.add(line, k.convert(column, Type::I64)), *result, Cache::Normal);
                    let [above, before] = place.own;
                    let least = |own: Value, tile: Value| k.max(own, tile);
                    match first {
                        None => put(),
                        Some(first) => {
                            let [below, right] = place.end;
                            let rows = k.and(k.ge(at, least(first, above)), k.lt(at, below));
                            let columns = k.and(k.ge(column, least(own_column, before)), k.lt(column, right));
                            k.if_then(k.and(rows, columns), put);
                        }
                    }
                }
            }
        };
        // A strip of its own rows and columns stores all; others look at each.
        let stores = stage.stored.contains(&true);
        let mut whole = k.and(k.eq(row, own_row), k.eq(start, own_column));
        if stores {
            let [above, before] = place.own;
            let [below, right] = place.end;
            let rows = k.and(k.ge(row, above), k.le(k.add(row, stage.rows), below));
            let columns = k.and(k.ge(start, before), k.le(k.add(start, LANES), right));
            whole = k.and(whole, k.and(rows, columns));
        }
        k.if_else(
            whole,
            || (0..stage.rows).for_each(|down| store(down, None)),
            || (0..stage.rows).for_each(|down| store(down, Some(own_row))),
        );
    }
}
