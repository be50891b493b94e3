//! Tiled stencil: a function of the values around every position, staged in shared memory.
//!
//! The threads of a block load a tile of positions with its halo together, each value once. They apply the
//! boundary rule while loading, and compute the results of the tile from shared memory. The function has no
//! code for edges.
//!
//! | | staged | not staged |
//! | --- | --- | --- |
//! | threads | 32 by 8, each with a column of the tile | neighbouring columns; on a CPU a warp runs along a row |
//! | values | once for each position of the tile and its halo | once for each read |
//! | boundary | while loading | near the edges only |
//!
//! [`Tile::of`] chooses the tile for a machine. [`Stencil`](crate::Stencil) keeps rows of a strip in
//! registers and needs neither barriers nor shared memory. It is the better pattern for windows whose offsets
//! are all known. This pattern takes computed offsets, such as a radius that is a scalar of the call.
//! `crates/cuda/examples/stencils.rs` compares both on a GPU.

use crate::cost::{self, Costs, Execution};
use crate::kit::{Draft, Inlet, Outlet, Shared, Writer, ravel, unravel};
use crate::layout::constant;
use crate::program::Program;
use crate::{Boundary, Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{AccessorKind, Axis, Binding, Function, Lanes, Type, Unroll, Value, windowing};

/// Computes a function of the values around every position of a domain, and passes the results to a [`Sink`].
///
/// The sizes of a call are the lengths of the axes. Inputs and scalars are those of the source, of `beside`,
/// of the function and of the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TiledStencil {
    /// The positions.
    pub domain: Domain,
    /// Values that the function reads around a position.
    pub source: Source,
    /// Additional values at the position itself, if any.
    pub beside: Option<Source>,
    /// Function. Its parameters are the position, like those of a [`Source`], the values of `beside`, then
    /// scalars. It has an accessor for each value of the source: a window with an index for each axis.
    pub function: Function,
    /// Declared window: for each axis the number of positions before and after its own that the function
    /// reads. Larger offsets are clamped to these.
    pub reach: Vec<(u32, u32)>,
    /// Values outside of the domain. As a constant, one for each value.
    pub boundary: Boundary<Vec<Lanes>>,
    /// Destination of the results.
    pub sink: Sink,
    /// Staging of a tile in shared memory.
    pub staging: Staging,
}

/// The staging of a tile of values in shared memory. Without staging, values are computed for each read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Staging {
    /// A tile if it is faster on the machine.
    Chosen,
    /// This tile, if it fits into shared memory.
    Tile(Tile),
    /// No tile.
    Never,
}

/// A tile of positions: 32 columns wide, along the last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Number of columns per thread.
    pub columns: u32,
    /// Number of rows per thread.
    pub rows: u32,
}

/// Number of threads of a block.
const BLOCK: [u32; 2] = [crate::cost::LANES, crate::cost::TILE_ROWS];
/// Maximum offset of a window.
const MOST_REACH: u32 = 1 << 20;
/// Number of columns that a warp of a CPU runs through before its block ends.
const STRETCH: u32 = crate::cost::STRETCH;
/// Maximum number of blocks in the second direction of a grid.
const MOST_BLOCKS: u32 = crate::cost::GRID_ROWS;

impl Tile {
    /// Returns the tile for values of these types on a machine. It is the largest of which two fit into
    /// shared memory, with at most 4 rows and 2 columns per thread. Returns `None` if not even the smallest
    /// fits, or if the window extends along an axis before the last two.
    pub fn of(machine: &Machine, values: &[Type], reach: &[(u32, u32)]) -> Option<Tile> {
        let most = (Costs::of(machine).shared_bytes() / 2).min(STATIC_SHARED);
        let tiles = [(2, 4), (1, 4), (1, 2), (1, 1)].map(|(columns, rows)| Tile { columns, rows });
        tiles.into_iter().find(|tile| tile.bytes(values, reach).is_some_and(|bytes| bytes <= most))
    }

    /// Returns true if loading the tile costs less than the reads that it saves. On a CPU the caches of a
    /// core are as fast as its shared memory.
    fn pays(self, machine: &Machine, function: &Function, reach: &[(u32, u32)]) -> bool {
        let wholes = self.extents(reach).zip(self.extents(&vec![(0, 0); reach.len()]));
        let area = |[height, width]: [u32; 2]| u64::from(height) * u64::from(width);
        let is_small = wholes.is_some_and(|((_, halo), (_, own))| area(halo) <= cost::STAGED_GROWTH * area(own));
        is_small && Costs::of(machine).execution() == Execution::Threads && cost::window_reads(function) >= cost::STAGED_READS
    }

    /// Returns the bytes of shared memory, or `None` if the tile cannot be staged.
    fn bytes(self, values: &[Type], reach: &[(u32, u32)]) -> Option<u32> {
        let (above, [height, width]) = self.extents(reach)?;
        let each: u32 = values.iter().map(|ty| ty.bytes()).sum();
        let staged = above.iter().all(|halo| *halo == 0);
        height.checked_mul(width)?.checked_mul(each).filter(|_| staged)
    }

    /// Returns the halo of the axes above, and the numbers of rows and columns with their halo.
    fn extents(self, reach: &[(u32, u32)]) -> Option<(Vec<u32>, [u32; 2])> {
        let halo: Vec<u32> = reach.iter().map(|(before, behind)| before.saturating_add(*behind)).collect();
        let (columns, above) = halo.split_last()?;
        let (rows, above) = above.split_last().map_or((0, &[][..]), |(rows, above)| (*rows, above));
        let has_rows = reach.len() > 1;
        let height = if has_rows { BLOCK[1].checked_mul(self.rows)?.checked_add(rows)? } else { 1 };
        let width = if has_rows { BLOCK[0].checked_mul(self.columns)? } else { BLOCK[0] * BLOCK[1] * self.columns * self.rows };
        // An odd width keeps columns in different banks.
        Some((above.to_vec(), [height, width.checked_add(*columns)? | 1]))
    }
}

/// Bytes of static shared memory that every machine has.
const STATIC_SHARED: u32 = crate::cost::STATIC_SHARED as u32;

fn bad<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Pattern { pattern: "tiled stencil", reason: reason.into() })
}

impl TiledStencil {
    fn check(&self) -> Result<Type> {
        let (axes, values) = (self.domain.axes(), self.source.results());
        if axes == 0 || self.reach.len() != axes {
            return bad(format!("a window along {} axes of {axes}", self.reach.len()));
        }
        let windows = self.function.accessors();
        let fits = windows.len() == values.len()
            && windows.iter().zip(&values).all(|(accessor, ty)| {
                accessor.kind == AccessorKind::Window && usize::from(accessor.rank) == axes && accessor.ty == *ty
            });
        if !fits {
            return bad(format!("`{}` does not have a window of {axes} indices for each value", self.function.name()));
        }
        let index = crate::source::index_type(&self.function, axes)?;
        let beside = self.beside.as_ref().map(Source::results).unwrap_or_default();
        let takes = self.function.parameters()[axes..].iter().map(|parameter| parameter.ty);
        if takes.take(beside.len()).collect::<Vec<Type>>() != beside {
            return bad(format!("`{}` does not take the values beside the position", self.function.name()));
        }
        crate::source::check_scalars(&self.function, axes + beside.len())?;
        if let Some((before, behind)) = self.reach.iter().find(|(before, behind)| *before.max(behind) > MOST_REACH) {
            return bad(format!("a window of {} positions; at most {MOST_REACH} on each side are possible", before.max(behind)));
        }
        if let Boundary::Constant(outside) = &self.boundary {
            let fits = |(lanes, ty): (&Lanes, &Type)| {
                lanes.len() == ty.lanes() && lanes.iter().all(|lane| lane.element() == ty.element())
            };
            if outside.len() != values.len() || !outside.iter().zip(&values).all(fits) {
                return bad("the constants outside do not have the types of the source's values");
            }
        }
        self.sink.check("tiled stencil", axes, &self.function.result_types())?;
        let sources: Vec<&Source> = std::iter::once(&self.source).chain(&self.beside).collect();
        let wide = self.domain.check("tiled stencil", &sources, &self.sink)?;
        Ok(if index.element().bits() == 64 { Type::U64 } else { wide })
    }

    /// Writes the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let index = self.check()?;
        let axes = self.domain.axes();
        let mut draft = Draft::new("tiled_stencil", axes);
        let inlet = draft.source(&self.source);
        let beside = self.beside.as_ref().map(|beside| draft.source(beside));
        let first = axes + self.beside.as_ref().map_or(0, |beside| beside.results().len());
        let scalars = self.function.parameters()[first..].iter().map(|own| (draft.scalar(own.ty), own.ty)).collect();
        let outlet = draft.sink(&self.sink, &self.function.result_types(), &self.domain.count());
        if index == Type::U32 {
            draft.limit(self.domain.count());
        }
        let parts = TiledStencilEmitter { stencil: self, inlet, beside, scalars, outlet, index };
        let tile = match self.staging {
            Staging::Tile(tile) => Some(tile),
            Staging::Never => None,
            Staging::Chosen => Tile::of(machine, &self.source.results(), &self.reach)
                .filter(|tile| tile.pays(machine, &self.function, &self.reach)),
        };
        let fitting = tile.filter(|tile| {
            let most = Costs::of(machine).shared_bytes().min(STATIC_SHARED);
            tile.columns > 0
                && tile.rows > 0
                && tile.bytes(&self.source.results(), &self.reach).is_some_and(|bytes| bytes <= most)
        });
        match (fitting, Costs::of(machine).execution()) {
            (Some(tile), _) => parts.staged(&mut draft, tile)?,
            (None, Execution::Vectors) => parts.stretches(&mut draft)?,
            (None, Execution::Threads) => parts.threads(&mut draft)?,
        }
        Ok(draft.finish())
    }
}

/// Emitter of the kernels of a tiled stencil.
struct TiledStencilEmitter<'a> {
    stencil: &'a TiledStencil,
    inlet: Inlet,
    beside: Option<Inlet>,
    /// Numbers of the function's scalars.
    scalars: Vec<(usize, Type)>,
    outlet: Outlet,
    index: Type,
}

impl TiledStencilEmitter<'_> {
    fn axes(&self) -> usize {
        self.stencil.domain.axes()
    }

    fn lengths(&self, k: &Writer) -> Vec<Value> {
        (0..self.axes()).map(|axis| k.count(Count::size(axis), self.index)).collect()
    }

    fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    /// Returns the values at a place that may be outside, given as signed 64-bit indices.
    fn at(&self, k: &Writer, place: &[Value]) -> Vec<Value> {
        let rule = self.stencil.boundary.rule();
        let (mut position, mut inside) = (vec![], None);
        for (index, length) in place.iter().zip(self.lengths(k)) {
            let (index, holds) = rule.place(k, *index, k.convert(length, Type::I64));
            position.push(self.wide(k, index));
            inside = match (inside, holds) {
                (Some(all), Some(one)) => Some(k.and(all, one)),
                (all, one) => all.or(one),
            };
        }
        match (inside, &self.stencil.boundary) {
            (Some(inside), Boundary::Constant(outside)) => {
                let types = self.stencil.source.results();
                let outside = || outside.iter().zip(types).map(|(lanes, ty)| constant(k, lanes, ty)).collect();
                k.choose_list(inside, || self.inlet.at(k, &position), outside)
            }
            _ => self.inlet.at(k, &position),
        }
    }

    /// Computes the results at a position and stores them.
    fn compute(&self, k: &Writer, position: &[Value], window: &dyn Fn(usize, &[Value]) -> Value) {
        let function = &self.stencil.function;
        let mut arguments: Vec<Value> =
            (0..).zip(position).map(|(axis, index): (usize, &Value)| k.convert(*index, function.parameters()[axis].ty)).collect();
        arguments.extend(self.beside.iter().flat_map(|beside| beside.at(k, position)));
        arguments.extend(self.scalars.iter().map(|(number, ty)| k.scalar(*number, *ty)));
        let held = |offsets: &[Value]| -> Vec<Value> {
            let each = offsets.iter().zip(&self.stencil.reach);
            let hold = |(offset, (before, behind)): (&Value, &(u32, u32))| {
                k.max(k.min(k.convert(*offset, Type::I64), i64::from(*behind)), -i64::from(*before))
            };
            each.map(hold).collect()
        };
        let mut bindings: Vec<_> = (0..function.accessors().len())
            .map(|value| windowing(move |_, offsets: &[Value]| window(value, &held(offsets))))
            .collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        let results = k.inline(function, &arguments, &mut bindings);
        self.outlet.put(k, position, ravel(k, position, &self.lengths(k)), &results);
    }

    /// Computes the results at a position from memory. `edge` is true if windows can leave the domain.
    fn read_memory(&self, k: &Writer, position: &[Value], edge: bool) {
        self.compute(k, position, &|value, offsets| {
            let place: Vec<Value> =
                position.iter().zip(offsets).map(|(index, offset)| k.add(k.convert(*index, Type::I64), *offset)).collect();
            if edge {
                return self.at(k, &place)[value];
            }
            let place: Vec<Value> = place.iter().map(|index| self.wide(k, *index)).collect();
            self.inlet.at(k, &place)[value]
        });
    }

    /// Returns a condition: windows around positions from `first` to `last` along an axis stay inside.
    fn inside(&self, k: &Writer, axis: usize, first: Value, last: Value) -> Value {
        let (before, behind) = self.stencil.reach[axis];
        let wide = |value: Value| k.convert(value, Type::U64);
        let end = k.lt(k.add(wide(last), behind), wide(k.count(Count::size(axis), self.index)));
        k.and(k.ge(wide(first), before), end)
    }

    /// Returns the position of a row, numbered over all axes but the last.
    fn row(&self, k: &Writer, row: Value) -> Vec<Value> {
        unravel(k, row, &self.lengths(k)[..self.axes() - 1])
    }

    fn rows_inside(&self, k: &Writer, row: &[Value]) -> Value {
        let each = row.iter().enumerate().map(|(axis, index)| self.inside(k, axis, *index, *index));
        each.fold(k.literal(true), |all, one| k.and(all, one))
    }

    /// Emits the kernel with one thread per position.
    fn threads(&self, draft: &mut Draft) -> Result<()> {
        let last = self.axes() - 1;
        let block = [BLOCK[0], BLOCK[1], 1];
        let k = Writer::new("tiled_stencil", block);
        let column = self.wide(&k, k.global_thread(Axis::X));
        let rows = Count::product(0..last);
        let first = self.wide(&k, k.global_thread(Axis::Y));
        let step = k.mul(self.wide(&k, k.grid_size(Axis::Y)), block[1]);
        k.if_then(k.lt(column, k.count(Count::size(last), self.index)), || {
            k.for_step(first, k.count(rows.clone(), self.index), step, Unroll::Never, |number| {
                let row = self.row(&k, number);
                let inside = k.and(self.rows_inside(&k, &row), self.inside(&k, last, column, column));
                let position = [row, vec![column]].concat();
                k.if_else(inside, || self.read_memory(&k, &position, false), || self.read_memory(&k, &position, true));
            });
        });
        let grid = [Count::size(last).div_ceil(block[0]), rows.div_ceil(block[1]).min(MOST_BLOCKS), 1u32.into()];
        draft.launch(k, grid, block)?;
        Ok(())
    }

    /// Emits the kernel in which warps run along rows, 32 columns at a time. All lanes decide together if
    /// their windows stay inside.
    fn stretches(&self, draft: &mut Draft) -> Result<()> {
        let last = self.axes() - 1;
        let block = [32, 1, 1];
        let k = Writer::new("tiled_stencil", block);
        let (rows, width) = (Count::product(0..last), k.count(Count::size(last), self.index));
        let lane = self.wide(&k, k.thread(Axis::X));
        let first = k.mul(self.wide(&k, k.block(Axis::X)), STRETCH);
        let end = k.min(k.add(first, STRETCH), width);
        let (number, step) = (self.wide(&k, k.block(Axis::Y)), self.wide(&k, k.grid_size(Axis::Y)));
        k.for_step(number, k.count(rows.clone(), self.index), step, Unroll::Never, |number| {
            let row = self.row(&k, number);
            let rows_inside = self.rows_inside(&k, &row);
            k.for_step(first, end, 32, Unroll::Never, |start| {
                let column = k.add(start, lane);
                let position = [row.clone(), vec![column]].concat();
                let inside = k.and(rows_inside, self.inside(&k, last, start, k.add(start, 31)));
                k.if_else(
                    inside,
                    || self.read_memory(&k, &position, false),
                    || k.if_then(k.lt(column, width), || self.read_memory(&k, &position, true)),
                );
            });
        });
        draft.launch(k, [Count::size(last).div_ceil(STRETCH), rows.min(MOST_BLOCKS), 1u32.into()], block)?;
        Ok(())
    }

    /// Emits the kernel in which blocks stage tiles with their halo in shared memory.
    fn staged(&self, draft: &mut Draft, tile: Tile) -> Result<()> {
        let axes = self.axes();
        let last = axes - 1;
        let has_rows = axes > 1;
        let block = if has_rows { [BLOCK[0], BLOCK[1], 1] } else { [BLOCK[0] * BLOCK[1], 1, 1] };
        let each = if has_rows { [tile.rows, tile.columns] } else { [1, tile.rows * tile.columns] };
        let Some((_, [height, pitch])) = tile.extents(&self.stencil.reach) else { return bad("a tile beyond all memory") };
        let (before_x, behind_x) = self.stencil.reach[last];
        let before_y = if has_rows { self.stencil.reach[last - 1].0 } else { 0 };
        let width = block[0] * each[1];
        let k = Writer::new("tiled_stencil", block);
        let shared = Shared::new(&k, &self.stencil.source.results(), height * pitch);
        let lengths = self.lengths(&k);
        // The tile: its number along the rows of tiles of all images, and along a row of tiles.
        let tall = block[1] * each[0];
        let tiles_down = if has_rows { Count::size(last - 1).div_ceil(tall) } else { Count::Constant(1) };
        let images = Count::product(0..last.saturating_sub(1));
        let all = images * tiles_down.clone();
        let first_x = k.mul(self.wide(&k, k.block(Axis::X)), width);
        let signed = |value: Value| k.convert(value, Type::I64);
        let (number, step) = (self.wide(&k, k.block(Axis::Y)), self.wide(&k, k.grid_size(Axis::Y)));
        let (x, y) = (k.thread(Axis::X), k.thread(Axis::Y));
        k.for_step(number, k.count(all.clone(), self.index), step, Unroll::Never, |number| {
            let down = k.count(tiles_down.clone(), self.index);
            let image = k.div(number, down);
            let above = unravel(&k, image, &lengths[..last.saturating_sub(1)]);
            let first_y = k.mul(k.sub(number, k.mul(image, down)), tall);
            // Rows of the tile and its halo, with adjacent threads along them. Every place is loaded through
            // the boundary rule, also beyond the domain.
            k.for_step(y, k.literal(height), block[1], Unroll::Never, |row| {
                k.for_step(x, k.literal(width + before_x + behind_x), block[0], Unroll::Never, |column| {
                    let mut place: Vec<Value> = above.iter().map(|index| signed(*index)).collect();
                    if has_rows {
                        place.push(k.sub(k.add(signed(first_y), signed(row)), i64::from(before_y)));
                    }
                    place.push(k.sub(k.add(signed(first_x), signed(column)), i64::from(before_x)));
                    shared.set(&k, k.add(k.mul(row, pitch), column), &self.at(&k, &place));
                });
            });
            k.barrier();
            for (down, along) in (0..each[0]).flat_map(|down| (0..each[1]).map(move |along| (down, along))) {
                let row = k.add(y, down * block[1]);
                let column = k.add(x, along * block[0]);
                let mut position = above.clone();
                let mut there = k.literal(true);
                if has_rows {
                    position.push(k.add(first_y, self.wide(&k, row)));
                    there = k.lt(position[last - 1], lengths[last - 1]);
                }
                position.push(k.add(first_x, self.wide(&k, column)));
                let there = k.and(there, k.lt(position[last], lengths[last]));
                let own = k.add(k.mul(k.add(row, before_y), pitch), k.add(column, before_x));
                k.if_then(there, || {
                    self.compute(&k, &position, &|value, offsets| {
                        let narrow = |offset: Value| k.convert(offset, Type::U32);
                        let along = k.add(own, narrow(offsets[last]));
                        let place = if has_rows { k.add(along, k.mul(narrow(offsets[last - 1]), pitch)) } else { along };
                        shared.get(&k, place)[value]
                    });
                });
            }
            k.barrier();
        });
        let grid = [Count::size(last).div_ceil(width), all.min(MOST_BLOCKS), 1u32.into()];
        draft.launch(k, grid, block)?;
        Ok(())
    }
}
