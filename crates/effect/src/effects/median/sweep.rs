//! Medians of large squares: a window moves along a row and exchanges one column of its samples for each
//! result.
//!
//! The image is cut into tiles, each with the margin that its windows read. The samples of a tile are sorted
//! once, and each is replaced by its rank. A set of samples is then a bit for each rank.
//!
//! Each thread computes one row of a tile. It holds the window as such a set, with the number of samples in
//! each block of 32 words. It remembers the block of the last median and the number of samples before that
//! block. For the next result it removes a column of 2r+1 samples and adds another. It walks to the block
//! that has the middle sample, then to its word and its bit.
//!
//! The work of a result is linear in the radius, for all samples. All arithmetic is on integers, so all
//! devices agree.
//!
//! Rejected alternatives:
//!
//! - Histograms of some bits of the samples: they are counted again when neighbouring medians differ in a
//!   high bit.
//! - A wavelet matrix: its work does not depend on the radius, but is larger up to radii of hundreds of
//!   pixels.

use crate::Result;
use crate::graph::Frame;
use broadloom_device::Machine;
use broadloom_graph::{
    Application, AxisMap, Boundary, Feed, HostArray, Node, Operation, OperationPattern, PatternParts, Reads,
    Result as GraphResult, Shape, SharedKernel, Typing,
};
use broadloom_scalar::{AccessorKind, Array, Axis, Builder, Cache, Element, Literal, Type, Unroll, Value, Variable};
use broadloom_skeleton::cost::{Costs, Each, LANES};
use broadloom_skeleton::kit::{Draft, Inlet, Writer};
use broadloom_skeleton::{Argument, Count, Generator, Output, Program, SortKey, Source};

/// Number of words of a block.
const BLOCK: u32 = 32;
/// Maximum number of words of a set: a local array has no more elements.
const MOST_WORDS: u32 = 1 << 16;
/// Maximum number of bytes of a set. Each resident thread of a GPU has one.
const MOST_BYTES: Each<u64> = Each { vectors: 8 * MOST_WORDS as u64, threads: 32 << 10 };
/// Minimum number of columns of a tile.
const LEAST_COLUMNS: u32 = 64;
/// Maximum number of samples that are sorted at once, of all tiles. Bands of the image are computed one after
/// the other.
const BAND: Each<u64> = Each { vectors: 1 << 22, threads: 1 << 25 };
/// Minimum number of tiles of a band for each core. A GPU has thousands of warps to fill, so its bands are as
/// large as possible.
const LEAST_TILES: Each<u64> = Each { vectors: 4, threads: 1 << 25 };
/// Maximum number of bands of a component. Each band has its own kernels.
const MOST_BANDS: usize = 64;
/// Bytes of temporary arrays for each sample of a tile during sorting: keys, places and ranks.
const BYTES: u64 = 36;

/// Returns the columns and rows of the largest tile for a radius; `None` if no tile fits. The tile is about
/// as large as the window, so margins are a small part of the work. The ranks of its samples must fit into a
/// set. The rows of a tile are lanes of warps.
pub(super) fn largest_tile(machine: &Machine, radius: u32) -> Option<[u32; 2]> {
    let most = 8 * Costs::of(machine).pick(MOST_BYTES);
    let mut tile = [(4 * radius).clamp(128, 256), radius.next_multiple_of(LANES).clamp(LANES, 4 * LANES)];
    while samples_of(tile, radius) > most {
        match tile {
            [_, rows] if rows > LANES => tile[1] -= LANES,
            [columns, _] if columns > LEAST_COLUMNS => tile[0] /= 2,
            _ => return None,
        }
    }
    Some(tile)
}

/// Returns the number of samples of a tile with its margin.
fn samples_of(tile: [u32; 2], radius: u32) -> u64 {
    tile.iter().map(|side| u64::from(*side) + 2 * u64::from(radius)).product()
}

/// Tiles of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    /// Columns and rows of a tile, without its margin.
    tile: [usize; 2],
    /// Number of tiles along a row and along a column.
    count: [usize; 2],
    /// Width of the margin.
    radius: usize,
}

impl Tiles {
    /// Cuts a region into tiles of at most the given size.
    pub(super) fn new([rows, columns]: [usize; 2], radius: u32, largest: [u32; 2]) -> Tiles {
        let largest = largest.map(|side| side as usize);
        let count = [columns.div_ceil(largest[0]), rows.div_ceil(largest[1])];
        let tile = [columns.div_ceil(count[0].max(1)), rows.div_ceil(count[1].max(1))];
        Tiles { tile, count, radius: radius as usize }
    }

    /// Returns the number of samples of a tile with its margin.
    fn seen(&self) -> usize {
        self.tile.iter().map(|side| side + 2 * self.radius).product()
    }

    /// Returns the number of columns of a tile, without its margin.
    pub(super) fn columns(&self) -> usize {
        self.tile[0].max(1)
    }

    /// Returns the number of samples of all tiles of one component.
    pub(super) fn samples(&self) -> u64 {
        (self.count[0] as u64 * self.count[1] as u64).saturating_mul(self.seen() as u64)
    }
}

/// Parts of a region that are computed one after the other. Temporary arrays then take no more memory than
/// the image, provided that all cores have tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bands {
    /// Number of components that are computed together.
    components: usize,
    /// Number of rows that are computed together.
    rows: usize,
    sweep: Sweep,
}

impl Bands {
    /// Cuts a region of `components` components, with the given rows and columns, into bands.
    pub(super) fn new(machine: &Machine, components: usize, size: [usize; 2], sweep: Sweep) -> Bands {
        let costs = Costs::of(machine);
        let tiles = Tiles::new(size, sweep.radius, sweep.tile);
        let image = 4 * (components as u64).saturating_mul(size[0] as u64 * size[1] as u64);
        let least = costs.busy(costs.pick(LEAST_TILES)).saturating_mul(tiles.seen() as u64);
        let most = (image / BYTES).max(least).min(costs.pick(BAND)).max(1);
        // Computing components one by one keeps more rows together, which share their margins.
        let is_split = (components as u64).saturating_mul(tiles.samples()) > most && tiles.samples() >= least;
        let components = if is_split { 1 } else { components };
        // A band consists of whole tiles.
        let row = (components as u64 * tiles.count[0] as u64).saturating_mul(tiles.seen() as u64);
        let least_rows = tiles.count[1].div_ceil(MOST_BANDS).max(1);
        let rows = ((most / row.max(1)) as usize).clamp(least_rows, tiles.count[1].max(1)) * tiles.tile[1].max(1);
        Bands { components, rows, sweep }
    }

    /// Returns the bytes of temporary arrays: the arrays of a band, plus all results before they are
    /// concatenated if there are several bands.
    pub(super) fn bytes(&self, components: usize, size: [usize; 2]) -> u64 {
        let own = Tiles::new([self.rows.min(size[0]), size[1]], self.sweep.radius, self.sweep.tile);
        let band = (BYTES * self.components as u64).saturating_mul(own.samples());
        let is_one = self.components == components && self.rows >= size[0];
        band.saturating_add(if is_one { 0 } else { 4 * components as u64 * (size[0] as u64 * size[1] as u64) })
    }
}

/// Returns an integer with the order of the samples: the bits of the sample. All bits of a negative sample
/// except the sign are inverted.
fn key(f: &Builder, sample: Value) -> Value {
    let bits = f.bitcast(sample, Type::I32);
    f.select(f.lt(bits, 0), f.sub(f.literal(i32::MAX), bits), bits)
}

/// Returns the sample of a key.
fn unkey(f: &Builder, key: Value) -> Value {
    f.bitcast(f.select(f.lt(key, 0), f.sub(f.literal(i32::MAX), key), key), Type::F32)
}

/// Computes the medians of a region of an array with the axes component, row, column.
pub(super) fn medians(array: &Node, frame: &Frame, sweep: Sweep, boundary: &Boundary) -> Result<Node> {
    let [height, width] = frame.size;
    let [all, inner, across] = [0, 1, 2].map(|axis| array.shape().extents()[axis]);
    let bands = Bands::new(array.context().device().machine(), all, frame.size, sweep);
    let mut components = vec![];
    for first in (0..all).step_by(bands.components) {
        let maps = [AxisMap { offset: first as i64, ..AxisMap::same(0) }, AxisMap::same(1), AxisMap::same(2)];
        let own = match bands.components == all {
            true => array.clone(),
            false => array.affine("component", &maps, Shape::from([bands.components, inner, across]), None)?,
        };
        let mut made = vec![];
        for top in (0..height).step_by(bands.rows) {
            let origin = [frame.origin[0] + top as i64, frame.origin[1]];
            made.push(band(&own, &Frame { origin, size: [bands.rows.min(height - top), width] }, sweep, boundary)?);
        }
        components.push(joined(1, made)?);
    }
    joined(0, components)
}

/// Concatenates arrays along an axis.
fn joined(axis: usize, mut parts: Vec<Node>) -> Result<Node> {
    match parts.len() {
        1 => Ok(parts.swap_remove(0)),
        _ => Ok(Node::concatenate(axis, &parts.iter().collect::<Vec<&Node>>())?),
    }
}

/// Computes the medians of some rows of an array.
fn band(array: &Node, frame: &Frame, sweep: Sweep, boundary: &Boundary) -> Result<Node> {
    let context = array.context();
    let tiles = Tiles::new(frame.size, sweep.radius, sweep.tile);
    let components = array.shape().extents()[0];
    let number = components * tiles.count[0] * tiles.count[1];
    let seen = tiles.tile.map(|side| side + 2 * tiles.radius);
    let scalar = |value: i64| Node::fill(context, Shape::from([]), &[Literal::from(value as i32)]);
    let [across, down] = tiles.count.map(|count| count as i64);
    let [columns, rows] = tiles.tile.map(|side| side as i64);

    // Keys of all tiles. Columns are lines, so the lanes of a warp, which are rows, read adjacent samples.
    let f = Builder::function("tile");
    let [tile, column, row] = ["tile", "column", "row"].map(|name| f.parameter(name, Type::I32));
    let [across_of, down_of, columns_of, rows_of, left, top] =
        ["across", "down", "columns", "rows", "left", "top"].map(|name| f.parameter(name, Type::I32));
    let samples = f.accessor("samples", AccessorKind::Input, Type::F32, 3);
    let band = f.div(tile, across_of);
    let (component, tile_x) = (f.div(band, down_of), f.sub(tile, f.mul(band, across_of)));
    let tile_y = f.sub(band, f.mul(component, down_of));
    let x = f.add(f.add(f.mul(tile_x, columns_of), column), left);
    let y = f.add(f.add(f.mul(tile_y, rows_of), row), top);
    let sample = f.read(samples, &[component.into(), y.into(), x.into()]);
    let function = f.finish_function(&[key(&f, sample)])?;
    let shape = Shape::from([number, seen[0], seen[1]]);
    let margin = i64::from(sweep.radius);
    let beside = [across, down, columns, rows, frame.origin[1] - margin, frame.origin[0] - margin];
    let beside = beside.into_iter().map(scalar).collect::<GraphResult<Vec<Node>>>()?;
    let beside: Vec<&Node> = beside.iter().collect();
    let keys = Node::compute(&function, &shape, &beside, &[(array, Reads::At(boundary.clone()))], &[])?.swap_remove(0);

    // Order of the samples of each tile.
    let line = Shape::from([number * tiles.seen()]);
    let keys = keys.reshape(line.clone())?;
    let places = Node::position(context, line.clone(), 0, Element::U32)?;
    let f = Builder::function("within");
    let (place, size) = (f.parameter("place", Type::U32), f.parameter("size", Type::U32));
    let tile_of = f.div(place, size);
    let parts = f.finish_function(&[tile_of, f.sub(place, f.mul(tile_of, size))])?;
    let size = Node::fill(context, Shape::from([]), &[Literal::from(tiles.seen() as u32)])?;
    let parts = Node::call(&parts, &[&places, &size])?;
    let bits = (usize::BITS - (number - 1).leading_zeros()).next_multiple_of(8).min(32);
    let mut by = vec![(&keys, SortKey { descending: false, bits: None })];
    if number > 1 {
        by.insert(0, (&parts[0], SortKey { descending: false, bits: Some(bits) }));
    }
    let mut sorted = Node::sort(&by, &[&places])?.split_off(by.len() - 1);
    let (keys, origins) = (sorted.swap_remove(0), sorted.swap_remove(0));
    let nothing = Node::fill(context, line, &[Literal::from(0u32)])?;
    let ranks = nothing.scatter(&[&origins], &parts[1], None)?;

    let found = Node::apply_one(sweep, &[&ranks.reshape(shape)?, &keys])?;

    // Results of tiles, arranged as rows of the image.
    let f = Builder::function("image");
    let [component, row, column] = ["c", "y", "x"].map(|name| f.parameter(name, Type::I32));
    let [across_of, down_of, columns_of, rows_of] =
        ["across", "down", "columns", "rows"].map(|name| f.parameter(name, Type::I32));
    let found_of = f.accessor("medians", AccessorKind::Input, Type::F32, 3);
    let (tile_x, tile_y) = (f.div(column, columns_of), f.div(row, rows_of));
    let tile = f.add(f.mul(f.add(f.mul(component, down_of), tile_y), across_of), tile_x);
    let (x, y) = (f.sub(column, f.mul(tile_x, columns_of)), f.sub(row, f.mul(tile_y, rows_of)));
    let function = f.finish_function(&[f.read(found_of, &[tile.into(), x.into(), y.into()])])?;
    let shape = Shape::from([components, frame.size[0], frame.size[1]]);
    let inputs = [(&found, Reads::At(Boundary::Clamp))];
    Ok(Node::compute(&function, &shape, &beside[..4], &inputs, &[])?.swap_remove(0))
}

/// Medians of tiles. The first input is the ranks of the samples, with the axes tile, column, row. The second
/// is the sorted keys, in one dimension. The result has the axes of the first input without the margins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sweep {
    pub(super) radius: u32,
    /// Maximum columns and rows of a tile.
    pub(super) tile: [u32; 2],
}

impl Typing for Sweep {
    fn results(&self, inputs: &[&Node]) -> GraphResult<Vec<(Type, Shape)>> {
        let margin = 2 * self.radius as usize;
        let extents = inputs[0].shape().extents();
        Ok(vec![(Type::F32, Shape::from([extents[0], extents[1] - margin, extents[2] - margin]))])
    }
}

impl Operation for Sweep {
    fn name(&self) -> String {
        "median".into()
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> GraphResult<HostArray> {
        let number = |array: &HostArray, place: usize| array.lanes[place].as_i128().unwrap_or(0);
        let side = 2 * self.radius as usize + 1;
        let &[tiles, columns, rows] = &shape.extents().to_vec()[..] else { return Ok(HostArray::filled(ty, shape.clone(), &[])) };
        let (pitch, seen) = (rows + side - 1, (rows + side - 1) * (columns + side - 1));
        let mut lanes = vec![];
        for place in 0..tiles * columns * rows {
            let (tile, x, y) = (place / (columns * rows), place / rows % columns, place % rows);
            let window = (0..side * side).map(|at| tile * seen + (x + at / side) * pitch + y + at % side);
            let mut ranks: Vec<i128> = window.map(|at| number(inputs[0], at)).collect();
            ranks.sort_unstable();
            let key = number(inputs[1], tile * seen + ranks[ranks.len() / 2] as usize) as i32;
            let bits = if key < 0 { i32::MAX.wrapping_sub(key) } else { key };
            lanes.push(Literal::from(f32::from_bits(bits as u32)));
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([0], true), Feed::new([1], true)]
    }

    fn pattern(&self, mut parts: PatternParts) -> GraphResult<OperationPattern> {
        let (ranks, keys) = (parts.source()?, parts.source()?);
        Ok(OperationPattern::One(Windows { radius: self.radius, tile: self.tile, ranks, keys }.into()))
    }

    /// The kernel stores the results itself.
    fn values(&self, _: &Application) -> Vec<Type> {
        vec![]
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    fn rereads(&self) -> bool {
        true
    }

    fn sizes(&self, _: &[u64], _: &[&Shape], result: &Shape) -> Vec<u64> {
        result.extents().iter().map(|extent| *extent as u64).collect()
    }
}

/// The kernel: a block for each tile, a thread for each of its rows. The sizes of a call are the tiles, and
/// the columns and rows of a tile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Windows {
    radius: u32,
    tile: [u32; 2],
    ranks: Source,
    keys: Source,
}

/// Window of a thread while the kernel is emitted.
struct SweepWindow<'k> {
    k: &'k Writer,
    ranks: &'k Inlet,
    /// One bit for each rank.
    set: Array,
    /// Number of samples in each block of ranks.
    counts: Array,
    /// Block of the last median.
    block: Variable,
    /// Number of samples before that block.
    before: Variable,
    /// Type of a word of the set.
    word: Type,
}

impl SweepWindow<'_> {
    /// Returns the binary logarithm of the bits of a word.
    fn power(&self) -> u32 {
        (8 * self.word.bytes()).trailing_zeros()
    }

    /// Counts the samples of a word.
    fn count(&self, word: Value) -> Value {
        self.k.convert(self.k.popcount(word), Type::U32)
    }

    /// Adds or removes a sample.
    fn exchange(&self, place: Value, adds: bool) {
        let (k, power) = (self.k, self.power());
        let rank = self.ranks.at(k, &[place])[0];
        let one = k.constant(self.word, 1);
        let (word, bit) = (k.shr(rank, power), k.shl(one, k.and(rank, (1u32 << power) - 1)));
        k.set_element(self.set, word, k.xor(k.element(self.set, word), bit));
        let step = |x: Value, by: Value| if adds { k.add(x, by) } else { k.sub(x, by) };
        let block = k.shr(rank, power + BLOCK.ilog2());
        k.set_element(self.counts, block, step(k.element(self.counts, block), k.literal(1u32)));
        let is_before = k.select(k.lt(block, k.get(self.block)), k.literal(1u32), k.literal(0u32));
        k.set(self.before, step(k.get(self.before), is_before));
    }

    /// Returns the rank of the sample with `middle` samples of the window before it.
    fn select(&self, middle: u32) -> Value {
        let (k, middle) = (self.k, self.k.literal(middle));
        let (block, before) = (self.block, self.before);
        k.while_loop(
            || k.gt(k.get(before), middle),
            || {
                k.set(block, k.sub(k.get(block), 1u32));
                k.set(before, k.sub(k.get(before), k.element(self.counts, k.get(block))));
            },
        );
        k.while_loop(
            || k.le(k.add(k.get(before), k.element(self.counts, k.get(block))), middle),
            || {
                k.set(before, k.add(k.get(before), k.element(self.counts, k.get(block))));
                k.set(block, k.add(k.get(block), 1u32));
            },
        );
        let word = k.variable_with(k.mul(k.get(block), BLOCK));
        let left = k.variable_with(k.sub(middle, k.get(before)));
        let samples = || self.count(k.element(self.set, k.get(word)));
        k.while_loop(
            || k.le(samples(), k.get(left)),
            || {
                k.set(left, k.sub(k.get(left), samples()));
                k.set(word, k.add(k.get(word), 1u32));
            },
        );
        let (mut bits, mut left, mut bit) = (k.element(self.set, k.get(word)), k.get(left), k.literal(0u32));
        for half in (0..self.power()).rev().map(|power| 1u32 << power) {
            let mask = k.constant(self.word, (1i64 << half) - 1);
            let low = self.count(k.and(bits, mask));
            let is_high = k.le(low, left);
            bits = k.select(is_high, k.shr(bits, half), bits);
            left = k.select(is_high, k.sub(left, low), left);
            bit = k.select(is_high, k.add(bit, half), bit);
        }
        k.add(k.shl(k.get(word), self.power()), bit)
    }
}

impl Generator for Windows {
    fn program(&self, _: &Machine) -> broadloom_skeleton::Result<Program> {
        let (margin, side, index) = (2 * self.radius, 2 * self.radius + 1, Type::U32);
        let [tiles, columns, rows] = [0, 1, 2].map(Count::size);
        let capacity = samples_of(self.tile, self.radius);
        let word = if capacity <= u64::from(MOST_WORDS) * u64::from(u32::BITS) { Type::U32 } else { Type::U64 };
        let blocks = capacity.div_ceil(u64::from(8 * BLOCK * word.bytes())) as u32;
        let mut draft = Draft::new("median", 3);
        draft.limit(tiles.clone() * (columns.clone() + margin) * (rows.clone() + margin));
        let (ranks, keys) = (draft.source(&self.ranks), draft.source(&self.keys));
        let count = tiles.clone() * columns.clone() * rows.clone();
        let medians = Argument::Output(draft.output(Output { ty: Type::F32, count }));
        let threads = [self.tile[1], 1, 1];
        let k = Writer::new("median", threads);
        let (tile, row) = (k.block(Axis::X), k.thread(Axis::X));
        let (columns, rows) = (k.count(columns, index), k.count(rows, index));
        k.if_then(k.lt(row, rows), || {
            let (set, counts) = (k.array(word, blocks * BLOCK), k.array(Type::U32, blocks));
            for (array, ty, length) in [(set, word, blocks * BLOCK), (counts, Type::U32, blocks)] {
                let zero = k.constant(ty, 0);
                k.for_step(k.literal(0u32), k.literal(length), 1, Unroll::Never, |place| k.set_element(array, place, zero));
            }
            let zero = || k.variable_with(k.literal(0u32));
            let window = SweepWindow { k: &k, ranks: &ranks, set, counts, block: zero(), before: zero(), word };
            let pitch = k.add(rows, margin);
            let first = k.mul(k.mul(tile, k.add(columns, margin)), pitch);
            let own = k.add(first, row);
            let lines = |from: Value, body: &dyn Fn(Value)| {
                k.for_step(k.literal(0u32), k.literal(side), 1, Unroll::Never, |line| body(k.add(from, line)));
            };
            k.for_step(k.literal(0u32), k.literal(side), 1, Unroll::Never, |column| {
                lines(k.add(own, k.mul(column, pitch)), &|place| window.exchange(place, true));
            });
            k.for_step(k.literal(0u32), columns, 1, Unroll::Never, |column| {
                let rank = window.select(side * side / 2);
                let median = unkey(&k, keys.at(&k, &[k.add(first, rank)])[0]);
                let place = k.add(k.mul(k.add(k.mul(tile, columns), column), rows), row);
                k.store_element(k.memory(medians.clone(), Element::F32), place, median, Cache::Normal);
                k.if_then(k.lt(k.add(column, 1u32), columns), || {
                    let leaving = k.add(own, k.mul(column, pitch));
                    lines(leaving, &|place| {
                        window.exchange(place, false);
                        window.exchange(k.add(place, k.mul(pitch, side)), true);
                    });
                });
            });
        });
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], threads)?;
        Ok(draft.finish())
    }
}
