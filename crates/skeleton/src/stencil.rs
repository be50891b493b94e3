//! Stencil: a function of neighbourhoods, several rows of results at a time.
//!
//! The results of one column in a *strip* of rows share most of their reads, and often operations. The
//! function therefore returns all results of a strip at once, and values that one row reads stay in registers
//! for the next. There are two functions: one for strips whose neighbourhoods are inside of the inputs, and
//! one for strips near the edges, which applies boundary rules.
//!
//! | | on a GPU | on a CPU |
//! | --- | --- | --- |
//! | threads | neighbouring columns of a strip | a warp runs along a strip, 32 columns at a time, then along the next one |
//! | at the edges | each thread chooses its function | a warp does, so that no lane of the interior is masked |
//!
//! On a GPU a thread may have several neighbouring columns of a strip, which it reads and writes together.
//! The rows of a strip may have a distance, the step, if neighbourhoods read rows at that distance: rows that
//! share nothing would only occupy registers. Inputs are loaded in the order of their use, and each result is
//! stored as soon as it is computed.
//!
//! If the length of rows is no multiple of the columns, rows start at different remainders of 16 bytes. Their
//! patches are *skewed*: each row of a patch starts at a column whose address is a multiple of 16. The shift
//! between rows follows from the remainder of the length, so all accesses of the interior are aligned.
//! Positions outside of the patches of the interior are computed one by one ([`frame`]).
//!
//! Results can be reduced along the first axis of a domain before they are stored: a thread then has the sums
//! of a strip, and loops over that axis.
//!
//! The functions may read values of neighbouring lanes of a warp by shuffles, instead of computing them again
//! for every column. Some lanes at both ends of a warp then store no results: they compute values for the
//! other lanes. Strips clamp the columns of these lanes to the image. Patches of the interior load from
//! columns of the interior only.
//!
//! If the number of rows is no multiple of a strip, the last strip of an image starts further up, so that it
//! is complete. It stores only the rows that no other strip has.
//!
//! [`TiledStencil`](crate::TiledStencil) stages tiles with their halo in shared memory instead.

mod frame;

use crate::cost::{self, Costs, Execution};
use crate::kit::{Accumulator, Draft, Inlet, Outlet, Writer, unravel};
use crate::{Count, Domain, Error, Operator, Program, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Type, Unroll, Value};

/// Computes results for strips of rows at every column of a domain.
///
/// The sizes of a call are the lengths of the axes. The last but one is at least the product of rows and
/// step, and the last has the remainder `skew` modulo the columns. The functions return the results of the
/// first row, column by column, then those of the second, and so on. Their position is that of the first row
/// and column. The scalars of a call start with the range of positions for which [`Stencil::inner`] may be
/// called: for each axis the first and the end, of the functions' index type. With a border, the range of
/// columns for [`Border::along_rows`] follows. Then come the scalars of `inner`, `edge`, the border and a
/// sink. Inputs are in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stencil {
    /// The positions: two axes or more.
    pub domain: Domain,
    /// Number of rows of a strip.
    pub rows: u32,
    /// Distance of the rows of a strip; 1 on vectors.
    pub step: u32,
    /// Neighbouring columns of a thread; 1 on vectors. With more, `inner` reads vectors of that many
    /// elements, at indices that count vectors. It is called where all of their addresses are multiples of
    /// 16, and `edge` elsewhere.
    pub columns: u32,
    /// The remainder of the length of a row divided by the columns. Row *n* of a patch starts *n* · `skew`
    /// modulo the columns before the first row.
    pub skew: u32,
    /// Estimated number of values that a thread keeps at the same time.
    pub live: u32,
    /// Function far from all edges.
    pub inner: Source,
    /// Function near edges, if it differs. It returns the results of a strip or of one position. Threads with
    /// several columns, or rows at a distance, need a function of one position. On vectors, such a function
    /// computes a strip row by row, which keeps the code of large functions with boundary rules short.
    pub edge: Option<Source>,
    /// Functions of strips near the edges of one axis, if there are any. Then `edge` is called near the
    /// corners only.
    pub border: Option<Border>,
    /// Lanes before and behind its own that the functions read. Lanes of patches have several columns each.
    pub reach: (u32, u32),
    /// Reduction of results along the first axis, if there is one.
    pub fold: Option<Fold>,
}

/// Functions of strips near the edges of one of the last two axes, in the interior of all others. Each
/// returns the results of several positions at distances of [`Stencil::step`], from the given one on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Border {
    /// Number of positions of a strip; at most the rows of a patch.
    pub positions: u32,
    /// Function of positions of a row that is near the upper or the lower edge.
    pub along_rows: Source,
    /// Function of positions of a column that is near the left or the right edge, in rows that patches cover.
    pub along_columns: Source,
}

impl Border {
    fn sources(&self) -> [&Source; 2] {
        [&self.along_rows, &self.along_columns]
    }
}

/// A reduction of results along the first axis, and the use of its results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fold {
    /// The operator; results are taken in order.
    pub operator: Operator,
    /// Positions are those of the other axes.
    pub sink: Sink,
}

/// Maximum number of blocks in the second direction of a grid.
const MAX_BLOCKS: u32 = crate::cost::GRID_ROWS;
/// Lanes of a warp.
const LANES: u32 = crate::cost::LANES;

impl Stencil {
    /// Heights of strips, the best first.
    pub const HEIGHTS: [u32; 3] = [8, 4, 2];

    fn check(&self, in_vectors: bool) -> Result<Type> {
        let bad = |reason: String| Error::Pattern { pattern: "stencil", reason };
        let results = self.inner.results();
        let axes = self.domain.axes();
        let places = self.rows as usize * self.columns as usize;
        if axes < 2 + usize::from(self.fold.is_some()) || places == 0 || !results.len().is_multiple_of(places) {
            return Err(bad(format!("{} results for strips of {} rows and {} columns", results.len(), self.rows, self.columns)));
        }
        let is_apart = self.step != 1 || self.columns != 1;
        let is_exchanged = self.reach != (0, 0);
        if self.step == 0 || is_apart && (in_vectors || self.fold.is_some() || is_exchanged && self.columns == 1) {
            return Err(bad(format!("rows {} apart and {} columns of a thread", self.step, self.columns)));
        }
        if self.skew >= self.columns.max(1) {
            return Err(bad(format!("{} columns that remain of patches of {}", self.skew, self.columns)));
        }
        if self.columns > 1 && (self.edge.is_none() || !self.columns.is_power_of_two()) {
            return Err(bad(format!("{} columns of a thread without a function for unaligned ones", self.columns)));
        }
        let values = results.len() / places;
        if results.chunks(values).any(|row| row != &results[..values]) {
            return Err(bad("the rows of a strip have results of different types".to_owned()));
        }
        let fits = |edge: &Source| {
            let is_row = edge.results() == results[..values] && (!in_vectors || self.fold.is_none() && self.reach == (0, 0));
            (edge.results() == results && !is_apart || is_row) && edge.index() == self.inner.index()
        };
        if self.edge.as_ref().is_some_and(|edge| !fits(edge)) {
            return Err(bad("edges have other results or indices than the interior".to_owned()));
        }
        if self.reach.0.saturating_add(self.reach.1) > cost::SUMMED_REACH {
            return Err(bad(format!("lanes that look at {} others", self.reach.0 + self.reach.1)));
        }
        let border = || self.border.iter().flat_map(Border::sources);
        let strip = values * self.border.as_ref().map_or(0, |border| border.positions as usize);
        if border().any(|source| source.index() != self.inner.index() || source.results() != results[..strip])
            || self
                .border
                .as_ref()
                .is_some_and(|border| in_vectors || !self.frames() || !(1..=self.rows).contains(&border.positions))
        {
            return Err(bad("a border of other strips than those of patches".to_owned()));
        }
        let sources: Vec<&Source> = std::iter::once(&self.inner).chain(&self.edge).chain(border()).collect();
        let Some(fold) = &self.fold else { return self.domain.check("stencil", &sources, &Sink::STORE) };
        if fold.operator.types() != results[..values] {
            return Err(bad(format!("`{}` does not give what the operator takes", self.inner.function().name())));
        }
        fold.sink.check("stencil", axes - 1, &results[..values])?;
        self.domain.check("stencil", &sources, &fold.sink)
    }

    /// Returns whether the function near the edges is one of a position, and that of the interior is not.
    fn frames(&self) -> bool {
        self.edge.as_ref().is_some_and(|edge| edge.results().len() < self.inner.results().len())
    }

    /// Makes the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let costs = Costs::of(machine);
        let index = self.check(costs.in_vectors())?;
        let axes = self.domain.axes();
        let mut draft = Draft::new("stencil", axes);
        let of_border = if self.border.is_some() { 2 } else { 0 };
        let bounds = (0..2 * axes + of_border).map(|_| draft.scalar(self.inner.index())).collect();
        let inner = draft.source(&self.inner);
        let edge = self.edge.as_ref().map(|edge| draft.source(edge));
        let border = self.border.as_ref().map(|border| border.sources().map(|source| draft.source(source)));
        let results = self.inner.results();
        let values = &results[..results.len() / (self.rows * self.columns) as usize];
        let outlet = match &self.fold {
            None => draft.sink(&Sink::STORE, values, &self.domain.count()),
            Some(fold) => draft.sink(&fold.sink, values, &Count::product(1..axes)),
        };
        draft.least(Count::size(axes - 2), u64::from(self.rows) * u64::from(self.step));
        draft.least(Count::size(axes - 1), self.columns.into());
        if index == Type::U32 {
            draft.limit(self.domain.count());
        }
        let branches = !costs.in_vectors();
        let parts = StencilEmitter { stencil: self, bounds, inner, edge, border, outlet, index, values: values.len(), branches };
        match costs.execution() {
            Execution::Vectors => {
                let blocks = Count::Constant(costs.busy(cost::STENCIL_BLOCKS));
                parts.runs(&mut draft, parts.strips().div_ceil(blocks))?;
            }
            Execution::Threads if self.reach != (0, 0) && self.columns == 1 => parts.warps(&mut draft)?,
            Execution::Threads => match parts.edge.as_ref().filter(|_| self.frames()) {
                Some(edge) => parts.framed(edge, &mut draft, &costs)?,
                None => parts.threads(&mut draft, &costs)?,
            },
        }
        Ok(draft.finish())
    }
}

/// Emitter of the kernels of a stencil.
struct StencilEmitter<'a> {
    stencil: &'a Stencil,
    /// Numbers of scalars: for each axis the start and the end of the interior, then those of strips along
    /// rows.
    bounds: Vec<usize>,
    inner: Inlet,
    edge: Option<Inlet>,
    /// Strips along rows, and strips along columns.
    border: Option<[Inlet; 2]>,
    outlet: Outlet,
    index: Type,
    /// Values of a row.
    values: usize,
    /// True if branches cost less than what is looked at without them.
    branches: bool,
}

/// A column of a strip whose results are stored.
struct StoredColumn {
    column: Value,
    /// The condition for storing; `None` stores always.
    stored: Option<Value>,
    /// True in the interior.
    inside: bool,
}

/// A strip within a kernel.
struct Strip {
    /// The position of its first row, without a column and without the axis that is combined.
    position: Vec<Value>,
    /// Number of rows from its first on that are another's, whatever their distance.
    left_out: Value,
    /// The number of the first element of its first row.
    start: Value,
}

impl StencilEmitter<'_> {
    fn axes(&self) -> usize {
        self.stencil.domain.axes()
    }

    /// Axes that are combined.
    fn folded(&self) -> usize {
        usize::from(self.stencil.fold.is_some())
    }

    /// Returns the type of the index of an element. With 64 bits, a CPU sees that the lanes of a warp access
    /// neighbouring elements.
    fn place(&self) -> Type {
        if self.branches { self.index } else { Type::U64 }
    }

    fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    fn length(&self, k: &Writer, axis: usize) -> Value {
        k.count(Count::size(axis), self.index)
    }

    /// Returns the number of strips of all images.
    fn strips(&self) -> Count {
        let axes = self.axes();
        Count::product(self.folded()..axes - 2) * self.strips_of_image()
    }

    /// Returns the number of strips of an image. A step of strips starts at neighbouring rows.
    fn strips_of_image(&self) -> Count {
        let (rows, step) = (self.stencil.rows, self.stencil.step);
        let groups = Count::size(self.axes() - 2).div_ceil(rows * step);
        if step == 1 { groups } else { groups * step }
    }

    /// Returns a strip by its number.
    fn strip(&self, k: &Writer, number: Value) -> Strip {
        let (axes, folded) = (self.axes(), self.folded());
        let (rows, height) = (self.stencil.rows, self.length(k, axes - 2));
        let each = k.count(self.strips_of_image(), self.index);
        let (mut position, strip, image) = if axes == 2 + folded {
            (vec![], number, k.constant(self.index, 0))
        } else {
            let image = k.div(number, each);
            let lengths: Vec<Value> = (folded..axes - 2).map(|axis| self.length(k, axis)).collect();
            (unravel(k, image, &lengths), k.sub(number, k.mul(image, each)), image)
        };
        let step = self.stencil.step;
        let (group, ahead) = match step {
            1 => (strip, None),
            _ => (k.div(strip, step), Some(k.rem(strip, step))),
        };
        let own = k.mul(group, rows * step);
        let held = k.min(own, k.sub(height, rows * step));
        let first = ahead.map_or(held, |ahead| k.add(held, ahead));
        position.push(first);
        let row = k.add(k.mul(image, height), first);
        let start = k.mul(k.convert(row, self.place()), k.convert(self.length(k, axes - 1), self.place()));
        let left_out = k.sub(own, held);
        // Rows ahead of those of the group itself belong to it.
        let left_out = ahead.map_or(left_out, |ahead| k.sub(k.max(left_out, ahead), ahead));
        Strip { position, left_out, start }
    }

    /// Returns whether a position along an axis is in the interior.
    fn inside(&self, k: &Writer, axis: usize, position: Value) -> Value {
        let ty = self.stencil.inner.index();
        let [first, end] = [0, 1].map(|end| k.scalar(self.bounds[2 * axis + end], ty));
        let position = k.convert(position, ty);
        k.and(k.ge(position, first), k.lt(position, end))
    }

    /// Returns whether all but the columns of a strip are in the interior.
    fn rows_inside(&self, k: &Writer, strip: &Strip) -> Value {
        let folded = self.folded();
        let mut all = k.literal(true);
        if folded > 0 {
            let last = k.sub(self.length(k, 0), 1);
            all = k.and(self.inside(k, 0, k.constant(self.index, 0)), self.inside(k, 0, last));
        }
        let inside = strip.position.iter().enumerate().map(|(axis, position)| self.inside(k, folded + axis, *position));
        inside.fold(all, |all, one| k.and(all, one))
    }

    /// Computes the results of a column, in the interior or near the edges, and stores them if `stored`
    /// holds.
    fn column(&self, k: &Writer, inside: bool, strip: &Strip, column: Value, stored: Option<(Value, Value)>) {
        let rows = self.stencil.rows;
        let inlet = self.edge.as_ref().filter(|_| !inside).unwrap_or(&self.inner);
        // Threads read inputs only, which no thread writes.
        let at = |position: Vec<Value>| if self.branches { inlet.at_unwritten(k, &position) } else { inlet.at(k, &position) };
        let place = |front: Option<Value>| front.into_iter().chain(strip.position.iter().copied()).chain([column]).collect();
        let results: Vec<Vec<Value>> = match &self.stencil.fold {
            None => at(place(None)).chunks(self.values).map(<[Value]>::to_vec).collect(),
            Some(fold) => {
                let sums: Vec<Accumulator<'_>> = (0..rows).map(|_| Accumulator::new(k, &fold.operator)).collect();
                k.for_step(0, self.length(k, 0), 1, Unroll::Never, |folded| {
                    let results = at(place(Some(folded)));
                    sums.iter().zip(results.chunks(self.values)).for_each(|(sum, values)| sum.add(k, values));
                });
                sums.iter().map(|sum| sum.get(k)).collect()
            }
        };
        let column = stored.map_or(column, |(_, column)| column);
        let store = |row: u32, checked: bool| {
            let put = || self.put(k, strip, &StoredColumn { column, stored: None, inside }, row, &results);
            if checked { k.if_then(k.ge(row * self.stencil.step, strip.left_out), put) } else { put() }
        };
        // The last strip of an image stores only some rows. Both branches need all results, so results are
        // computed before the branch, and stores do not wait for each other. Otherwise shared values would
        // stay in registers until each row is stored.
        let put = || {
            k.if_else(
                k.eq(strip.left_out, 0),
                || (0..rows).for_each(|row| store(row, false)),
                || (0..rows).for_each(|row| store(row, true)),
            )
        };
        match stored {
            None => put(),
            Some((stored, _)) => k.if_then(stored, put),
        }
    }

    /// Computes the results of a column of a strip far from the edges. `stored` returns the condition of
    /// storing a row, if there is one.
    fn inner_column(&self, k: &Writer, strip: &Strip, column: Value, stored: impl Fn(u32) -> Option<Value>) {
        let place: Vec<Value> = strip.position.iter().copied().chain([column]).collect();
        let results = self.inner.at_unwritten(k, &place);
        let results: Vec<Vec<Value>> = results.chunks(self.values).map(<[Value]>::to_vec).collect();
        (0..self.stencil.rows)
            .for_each(|row| self.put(k, strip, &StoredColumn { column, stored: stored(row), inside: true }, row, &results));
    }

    /// Stores a row. Addresses in the interior are computed again, in fewer bits: shared addresses of all
    /// rows would occupy registers while results are computed.
    fn put(&self, k: &Writer, strip: &Strip, place: &StoredColumn, row: u32, results: &[Vec<Value>]) {
        let StoredColumn { column, stored, inside } = *place;
        let ty = if inside || self.edge.is_none() { self.place() } else { Type::U64 };
        let (row, columns, skew) = (row * self.stencil.step, self.stencil.columns, self.stencil.skew);
        let results = &results[(row / self.stencil.step * columns) as usize..][..columns as usize];
        let width = k.convert(self.length(k, self.axes() - 1), ty);
        let Some((first, above)) = strip.position.split_last() else { return };
        let shift = row * skew % columns;
        let column = if shift == 0 { column } else { k.sub(column, shift) };
        let start = k.add(k.convert(strip.start, ty), k.convert(column, ty));
        let linear = k.add(start, k.mul(width, row));
        if columns > 1 {
            return self.outlet.put_row_where(k, stored, linear, results);
        }
        let position: Vec<Value> = above.iter().copied().chain([k.add(*first, row), column]).collect();
        self.outlet.put_where(k, stored, &position, linear, &results[0]);
    }

    /// Computes the results of a column near the edges with the function of one row.
    fn row_by_row(&self, k: &Writer, edge: &Inlet, strip: &Strip, column: Value) {
        let Some((first, above)) = strip.position.split_last() else { return };
        let wide = |value: Value| k.convert(value, Type::U64);
        let width = wide(self.length(k, self.axes() - 1));
        let start = k.add(wide(strip.start), wide(column));
        let rows = k.constant(self.index, self.stencil.rows);
        k.for_step(strip.left_out, rows, 1, Unroll::Never, |row| {
            let position: Vec<Value> = above.iter().copied().chain([k.add(*first, row), column]).collect();
            let results = edge.at(k, &position);
            self.outlet.put(k, &position, k.add(start, k.mul(width, wide(row))), &results);
        });
    }

    /// Makes the kernel for vectors: each warp computes stretches of columns of consecutive strips, 32
    /// columns at a time.
    fn runs(&self, draft: &mut Draft, run: Count) -> Result<()> {
        let k = Writer::new("stencil", [LANES, 1, 1]);
        let own = self.own();
        let stretch = cost::STRETCH / LANES * own;
        let first = k.mul(self.wide(&k, k.block(Axis::X)), stretch);
        let end = k.min(k.add(first, stretch), self.length(&k, self.axes() - 1));
        let length = k.count(run.clone(), self.index);
        let start = k.mul(self.wide(&k, k.block(Axis::Y)), length);
        let strips = k.count(self.strips(), self.index);
        k.for_step(start, k.min(k.add(start, length), strips), 1, Unroll::Never, |number| {
            let strip = self.strip(&k, number);
            let rows_inside = self.rows_inside(&k, &strip);
            k.for_step(first, end, own, Unroll::Never, |start| self.warp(&k, &strip, rows_inside, start));
        });
        let across = Count::size(self.axes() - 1).div_ceil(stretch);
        draft.launch(k, [across, self.strips().div_ceil(run), 1u32.into()], [LANES, 1, 1])?;
        Ok(())
    }

    /// Makes the kernel in which lanes exchange values: each warp has columns of one strip. With a loop over
    /// strips, values that only edges need would be computed before it and kept in registers.
    fn warps(&self, draft: &mut Draft) -> Result<()> {
        let block = [LANES, 4, 1];
        let k = Writer::new("stencil", block);
        let start = k.mul(self.wide(&k, k.block(Axis::X)), self.own());
        let number = self.number(&k, block[1]);
        k.if_then(k.lt(number, k.count(self.strips(), self.index)), || {
            let strip = self.strip(&k, number);
            self.warp(&k, &strip, self.rows_inside(&k, &strip), start);
        });
        self.launch(draft, k, [Count::size(self.axes() - 1).div_ceil(self.own()), self.strips().div_ceil(block[1])], block)
    }

    /// Returns the number of columns of a strip that a warp has results of.
    fn own(&self) -> u32 {
        LANES - self.stencil.reach.0 - self.stencil.reach.1
    }

    /// Computes the results of a warp for columns of a strip from `start` on.
    fn warp(&self, k: &Writer, strip: &Strip, rows_inside: Value, start: Value) {
        let axes = self.axes();
        let (before, behind) = self.stencil.reach;
        // Lanes in front of the first column have negative ones.
        let signed = self.stencil.inner.index();
        let (lane, columns) = (k.convert(k.thread(Axis::X), signed), k.convert(self.length(k, axes - 1), signed));
        let least = k.sub(k.convert(start, signed), before);
        let most = k.add(least, LANES - 1);
        let column = k.add(least, lane);
        let there = k.and(k.ge(least, 0), k.lt(most, columns));
        let inside = k.and(self.inside(k, axes - 1, least), self.inside(k, axes - 1, most));
        let inside = k.and(k.and(rows_inside, inside), there);
        if self.stencil.reach == (0, 0) {
            let inner = || self.column(k, true, strip, column, None);
            let edges = || match self.edge.as_ref().filter(|_| self.stencil.frames()) {
                Some(edge) => self.row_by_row(k, edge, strip, column),
                None => self.column(k, false, strip, column, None),
            };
            let masked = || k.if_then(k.lt(column, columns), edges);
            return k.if_else(inside, inner, masked);
        }
        let has_results = k.and(k.ge(lane, before), k.lt(lane, LANES - behind));
        let held = k.max(k.min(column, k.sub(columns, 1)), 0);
        let near = k.and(has_results, k.eq(column, held));
        k.if_else(
            inside,
            || self.column(k, true, strip, column, Some((has_results, column))),
            // Lanes that store are where they should be: side by side.
            || self.column(k, false, strip, held, Some((near, column))),
        );
    }

    /// The number of a row of blocks. There is a third direction where the second is not enough.
    fn row_of_blocks(&self, k: &Writer) -> Value {
        k.add(k.mul(self.wide(k, k.block(Axis::Z)), MAX_BLOCKS), self.wide(k, k.block(Axis::Y)))
    }

    /// The number of a thread's strip, where a block has strips one below the other.
    fn number(&self, k: &Writer, strips: u32) -> Value {
        k.add(k.mul(self.row_of_blocks(k), strips), self.wide(k, k.thread(Axis::Y)))
    }

    /// Launches rows of blocks, numbered by [`StencilEmitter::row_of_blocks`].
    fn launch(&self, draft: &mut Draft, k: Writer, [across, down]: [Count; 2], block: [u32; 3]) -> Result<()> {
        draft.launch(k, [across, down.clone().min(MAX_BLOCKS), down.div_ceil(MAX_BLOCKS)], block)?;
        Ok(())
    }

    /// Makes the kernel for threads: neighbouring threads have neighbouring columns.
    fn threads(&self, draft: &mut Draft, costs: &Costs<'_>) -> Result<()> {
        let axes = self.axes();
        let block = [2 * LANES, 4, 1];
        // Loads that are under way need registers, and an assembler that is let takes all of them: then too
        // few warps are there.
        let k = Writer::with_blocks("stencil", block, costs.register_blocks(block[0] * block[1], self.stencil.live));
        let column = k.convert(k.global_thread(Axis::X), self.index);
        let strips = k.count(self.strips(), self.index);
        let number = self.number(&k, block[1]);
        k.if_then(k.and(k.lt(column, self.length(&k, axes - 1)), k.lt(number, strips)), || {
            let strip = self.strip(&k, number);
            let inner = || self.column(&k, true, &strip, column, None);
            if self.edge.is_none() {
                return inner();
            }
            let edges = || self.column(&k, false, &strip, column, None);
            let inside = k.and(self.rows_inside(&k, &strip), self.inside(&k, axes - 1, column));
            if self.stencil.fold.is_some() {
                return k.if_else(inside, inner, edges);
            }
            k.if_else(k.and(inside, k.eq(strip.left_out, 0)), || self.inner_column(&k, &strip, column, |_| None), edges);
        });
        self.launch(draft, k, [Count::size(axes - 1).div_ceil(block[0]), self.strips().div_ceil(block[1])], block)
    }
}
