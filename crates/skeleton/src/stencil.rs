//! Stencil: a function of neighbourhoods, several rows of results at a time.
//!
//! The results of one column in a *strip* of rows share most of what they read, and often what they compute of it. So the function gives all of a strip
//! at once: what one row read stays in registers for the next. There are two such functions, one for strips whose neighbourhoods lie inside of the
//! inputs, one for those near the edges, which looks at boundary rules.
//!
//! | | on a GPU | on a CPU |
//! | --- | --- | --- |
//! | threads | neighbouring columns of a strip | a warp runs along a strip, 32 columns at a time |
//! | at the edges | each thread chooses its function | a warp does, so that no lane of the interior is masked |
//!
//! The last strip of an image whose rows do not come out even starts further up, so that all its rows are there; it stores those only that
//! no other strip has.
//!
//! Rejected: a tile with its halo in shared memory. Reads of neighbouring columns hit the first cache on both kinds of machine, and the copy costs more than
//! they do as long as a strip shares its rows.

use crate::domain::unravel;
use crate::draft::{Draft, Inlet, Outlet, Writer};
use crate::{Count, Domain, Error, Program, Result, Sink, Source};
use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{Axis, Type, Unroll, Value};

/// Computes results for strips of rows at every column of a domain.
///
/// The sizes of a call are the lengths of the axes; the last but one is at least as long as a strip. The results of the functions are those of the
/// first row, then those of the second, and so on. The position that they are given is the first row's. The scalars of a call are, for each axis, the
/// first position and the one behind the last that [`Stencil::inner`] may be asked for, of the functions' index type; then those of `inner`, then those
/// of `edge`. Inputs are those of `inner`, then those of `edge`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stencil {
    /// The positions: two axes or more.
    pub domain: Domain,
    /// How many rows a strip has.
    pub rows: u32,
    /// What is computed far from all edges.
    pub inner: Source,
    /// What is computed near them, if that is something else.
    pub edge: Option<Source>,
}

/// Columns that a warp of a CPU runs through before its block ends.
const STRETCH: u32 = 4096;
/// Most blocks in the second direction of a grid.
const MAX_BLOCKS: u32 = 65535;

impl Stencil {
    /// How many rows strips may have on a machine, the best first.
    pub fn heights(machine: &Machine) -> &'static [u32] {
        match machine.kind {
            MachineKind::Cuda => &[8, 4, 2],
            MachineKind::Cpu | MachineKind::Interp => &[8, 4, 2],
        }
    }

    fn check(&self) -> Result<Type> {
        let bad = |reason: String| Error::Pattern { pattern: "stencil", reason };
        let results = self.inner.results();
        if self.domain.axes() < 2 || self.rows == 0 || !results.len().is_multiple_of(self.rows as usize) {
            return Err(bad(format!("{} results for strips of {} rows", results.len(), self.rows)));
        }
        let values = results.len() / self.rows as usize;
        if results.chunks(values).any(|row| row != &results[..values]) {
            return Err(bad("the rows of a strip have results of different types".to_owned()));
        }
        if self.edge.as_ref().is_some_and(|edge| edge.results() != results || edge.index() != self.inner.index()) {
            return Err(bad("edges have other results or indices than the interior".to_owned()));
        }
        let sources: Vec<&Source> = std::iter::once(&self.inner).chain(&self.edge).collect();
        self.domain.check("stencil", &sources, &Sink::STORE)
    }

    /// The program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let index = self.check()?;
        let axes = self.domain.axes();
        let mut draft = Draft::new("stencil", axes);
        let bounds = (0..2 * axes).map(|_| draft.scalar(self.inner.index())).collect();
        let inner = draft.source(&self.inner);
        let edge = self.edge.as_ref().map(|edge| draft.source(edge));
        let values = self.inner.results().len() / self.rows as usize;
        let outlet = draft.sink(&Sink::STORE, &self.inner.results()[..values], &self.domain.count());
        draft.least(Count::size(axes - 2), self.rows.into());
        if index == Type::U32 {
            draft.limit(self.domain.count());
        }
        let parts = Parts { stencil: self, bounds, inner, edge, outlet, index };
        match machine.kind {
            MachineKind::Cpu => parts.warps(&mut draft)?,
            MachineKind::Cuda | MachineKind::Interp => parts.threads(&mut draft)?,
        }
        Ok(draft.finish())
    }
}

struct Parts<'a> {
    stencil: &'a Stencil,
    /// Numbers of scalars: for each axis where the interior starts and where it ends.
    bounds: Vec<usize>,
    inner: Inlet,
    edge: Option<Inlet>,
    outlet: Outlet,
    index: Type,
}

/// A strip within a kernel.
struct Strip {
    /// The position of its first row, without a column.
    position: Vec<Value>,
    /// The first row that is its own.
    own: Value,
    /// The number of the first element of its first row.
    start: Value,
}

impl Parts<'_> {
    fn axes(&self) -> usize {
        self.stencil.domain.axes()
    }

    fn length(&self, k: &Writer, axis: usize) -> Value {
        k.count(Count::size(axis), self.index)
    }

    /// Strips of all images.
    fn strips(&self) -> Count {
        let axes = self.axes();
        Count::product(0..axes - 2) * Count::size(axes - 2).div_ceil(self.stencil.rows)
    }

    /// A strip by its number.
    fn strip(&self, k: &Writer, number: Value) -> Strip {
        let axes = self.axes();
        let (rows, height) = (self.stencil.rows, self.length(k, axes - 2));
        let each = k.count(Count::size(axes - 2).div_ceil(rows), self.index);
        let (mut position, strip, image) = if axes == 2 {
            (vec![], number, k.constant(self.index, 0))
        } else {
            let image = k.div(number, each);
            let lengths: Vec<Value> = (0..axes - 2).map(|axis| self.length(k, axis)).collect();
            (unravel(k, image, &lengths), k.sub(number, k.mul(image, each)), image)
        };
        let own = k.mul(strip, rows);
        let first = k.min(own, k.sub(height, rows));
        position.push(first);
        let row = k.add(k.mul(image, height), first);
        // In 64 bits a CPU sees that the lanes of a warp stay side by side.
        let start = k.mul(k.convert(row, Type::U64), k.convert(self.length(k, axes - 1), Type::U64));
        Strip { position, own, start }
    }

    /// Whether a position along an axis is in the interior.
    fn inside(&self, k: &Writer, axis: usize, position: Value) -> Value {
        let ty = self.stencil.inner.index();
        let [first, end] = [0, 1].map(|end| k.scalar(self.bounds[2 * axis + end], ty));
        let position = k.convert(position, ty);
        k.and(k.ge(position, first), k.lt(position, end))
    }

    fn rows_inside(&self, k: &Writer, strip: &Strip) -> Value {
        let all = strip.position.iter().enumerate().map(|(axis, position)| self.inside(k, axis, *position));
        all.reduce(|a, b| k.and(a, b)).unwrap_or_else(|| k.literal(true))
    }

    /// The results of a column.
    fn column(&self, k: &Writer, inlet: &Inlet, strip: &Strip, column: Value) {
        let mut position = strip.position.clone();
        position.push(column);
        let results = inlet.at(k, &position);
        let axes = self.axes();
        let width = k.convert(self.length(k, axes - 1), Type::U64);
        let first = strip.position[axes - 2];
        for (row, values) in results.chunks(self.outlet.stored.len()).enumerate() {
            let offset = k.mul(width, row as u64);
            let linear = k.add(k.add(strip.start, offset), k.convert(column, Type::U64));
            let put = || self.outlet.put(k, &position, linear, values);
            k.if_then(k.ge(k.add(first, row as u32), strip.own), put);
        }
    }

    /// A warp runs along a strip.
    fn warps(&self, draft: &mut Draft) -> Result<()> {
        let axes = self.axes();
        let block = [32, 1, 1];
        let k = Writer::new("stencil", block);
        let width = self.length(&k, axes - 1);
        let lane = k.convert(k.thread(Axis::X), self.index);
        let first = k.mul(k.convert(k.block(Axis::X), self.index), STRETCH);
        let end = k.min(k.add(first, STRETCH), width);
        let strips = k.count(self.strips(), self.index);
        let (number, step) = (k.convert(k.block(Axis::Y), self.index), k.convert(k.grid_size(Axis::Y), self.index));
        k.for_step(number, strips, step, Unroll::Never, |number| {
            let strip = self.strip(&k, number);
            let rows_inside = self.rows_inside(&k, &strip);
            k.for_step(first, end, 32, Unroll::Never, |start| {
                let column = k.add(start, lane);
                let whole = k.le(k.add(start, 32), width);
                let inside = k.and(self.inside(&k, axes - 1, start), self.inside(&k, axes - 1, k.add(start, 31)));
                let inside = k.and(k.and(rows_inside, inside), whole);
                k.if_else(
                    inside,
                    || self.column(&k, &self.inner, &strip, column),
                    || {
                        let inlet = self.edge.as_ref().unwrap_or(&self.inner);
                        k.if_then(k.lt(column, width), || self.column(&k, inlet, &strip, column));
                    },
                );
            });
        });
        let width = Count::size(axes - 1);
        draft.launch(k, [width.div_ceil(STRETCH), self.strips().min(MAX_BLOCKS), 1u32.into()], block)?;
        Ok(())
    }

    /// Neighbouring threads have neighbouring columns.
    fn threads(&self, draft: &mut Draft) -> Result<()> {
        let axes = self.axes();
        let block = [64, 4, 1];
        let k = Writer::new("stencil", block);
        let width = self.length(&k, axes - 1);
        let column = k.convert(k.global_thread(Axis::X), self.index);
        let strips = k.count(self.strips(), self.index);
        let number = k.convert(k.global_thread(Axis::Y), self.index);
        let step = k.mul(k.convert(k.grid_size(Axis::Y), self.index), block[1]);
        k.if_then(k.lt(column, width), || {
            k.for_step(number, strips, step, Unroll::Never, |number| {
                let strip = self.strip(&k, number);
                let Some(edge) = &self.edge else {
                    self.column(&k, &self.inner, &strip, column);
                    return;
                };
                let inside = k.and(self.rows_inside(&k, &strip), self.inside(&k, axes - 1, column));
                let inner = || self.column(&k, &self.inner, &strip, column);
                k.if_else(inside, inner, || self.column(&k, edge, &strip, column));
            });
        });
        let columns = Count::size(axes - 1).div_ceil(block[0]);
        draft.launch(k, [columns, self.strips().div_ceil(block[1]).min(MAX_BLOCKS), 1u32.into()], block)?;
        Ok(())
    }
}
