//! Patches of the interior, and the frame around them.
//!
//! The code of a whole patch with boundary rules is several times as long as that of the interior. It does
//! not fit into the instruction cache, and a warp at the end of a row would execute it for a few of its
//! lanes. Patches therefore cover rows and columns of the interior only. All other positions are the *frame*.
//! The first blocks of the grid compute the frame, while others begin with patches.
//!
//! Patches start with the first row of the interior. If the number of rows is no multiple, the last patches
//! start further up and store only rows that no other patch has. The covered columns of a row follow from the
//! address of its first element. The frame visits a few more columns at both sides and omits the positions of
//! patches. If an address of an input is no multiple of 16, all positions belong to the frame.
//!
//! A position that is computed alone shares nothing with its neighbours. With a [`Border`](super::Border),
//! most of the frame is computed in strips:
//!
//! | part of the frame | unit | boundary rules |
//! | --- | --- | --- |
//! | rows above and below the covered ones | strip along the row | of rows |
//! | columns left and right of the covered ones, in covered rows | strip along the column | of columns |
//! | corners | position | of both |

use super::{LANES, StencilEmitter, Strip};
use crate::cost::{self, Costs};
use crate::kit::{Draft, Inlet, Writer, unravel};
use crate::{Count, Result};
use broadloom_scalar::{Axis, Type, Unroll, Value};

/// The part of an image that patches cover. Numbers have the type of the domain's indices.
struct CoveredPart {
    /// The first row, and the end of the rows.
    rows: [Value; 2],
    /// The first row that the last patches of a column store, and the first row that they compute, minus the
    /// number of the patch within its step.
    last: [Value; 2],
    /// The range of columns that are covered in all covered rows.
    columns: [Value; 2],
    /// The columns of strips along rows, above and below the covered rows.
    along: [Value; 2],
}

/// The positions that patches do not cover.
struct Frame<'c> {
    covered: &'c CoveredPart,
    /// The covered rows, between those above and those below. There are none if some images are outside of
    /// the interior.
    rows: [Value; 2],
    /// The columns of strips along rows.
    along: [Value; 2],
}

/// A unit of the frame's work.
#[derive(Clone, Copy)]
struct FrameUnit {
    image: Value,
    /// Its number in the image.
    number: Value,
}

impl StencilEmitter<'_> {
    /// Returns whether all positions of the axes before rows and columns are in the interior.
    fn images_inside(&self, k: &Writer) -> Value {
        let ty = self.stencil.inner.index();
        let inside = (0..self.axes() - 2).map(|axis| {
            let last = k.sub(k.convert(self.length(k, axis), ty), 1);
            k.and(self.inside(k, axis, k.constant(ty, 0)), self.inside(k, axis, last))
        });
        inside.fold(k.literal(true), |all, one| k.and(all, one))
    }

    /// Returns whether a patch whose first row begins with a column reads and stores covered columns only.
    fn columns_inside(&self, k: &Writer, column: Value) -> Value {
        let axis = self.axes() - 1;
        let (around, width) = (self.stencil.columns - 1, self.length(k, axis));
        if self.stencil.skew == 0 {
            // The interior of functions that look at rows only has no end along these.
            return k.and(self.inside(k, axis, column), k.lt(column, width));
        }
        // All columns of the patch are there, and so is each of the last 16 bytes that are read of a row.
        let ends = [k.sub(column, around), k.add(column, around)].map(|end| self.inside(k, axis, end));
        k.and(k.and(ends[0], ends[1]), k.lt(k.add(column, 2 * around), width))
    }

    /// Returns the columns before and behind a patch whose values come from other lanes.
    fn exchanged(&self) -> [u32; 2] {
        let (before, behind) = self.stencil.reach;
        [before, behind].map(|lanes| lanes * self.stencil.columns)
    }

    /// Returns whether a patch whose first row begins with a column stores results: its own columns and those
    /// of all lanes that it reads are in the interior.
    fn columns_stored(&self, k: &Writer, column: Value) -> Value {
        let [before, behind] = self.exchanged();
        let mut inside = self.columns_inside(k, column);
        if before > 0 {
            inside = k.and(inside, self.columns_inside(k, k.sub(column, before)));
        }
        if behind > 0 {
            inside = k.and(inside, self.columns_inside(k, k.add(column, behind)));
        }
        inside
    }

    /// Returns the first column from which a lane can load a patch whose first row begins `shift` columns
    /// before an aligned one.
    fn first_column(&self, k: &Writer, shift: Value) -> Value {
        let (axis, around) = (self.axes() - 1, self.stencil.columns - 1);
        let first = k.convert(k.scalar(self.bounds[2 * axis], self.stencil.inner.index()), self.index);
        let least = if self.stencil.skew == 0 { first } else { k.add(first, around) };
        let behind = k.add(k.add(least, shift), around);
        k.sub(k.sub(behind, k.and(behind, around)), shift)
    }

    /// Returns the number of consecutive positions of a step of strips of the frame.
    fn group(&self) -> u32 {
        self.stencil.border.as_ref().map_or(1, |border| border.positions) * self.stencil.step
    }

    fn covered(&self, k: &Writer) -> CoveredPart {
        let (axes, stencil) = (self.axes(), self.stencil);
        let ty = stencil.inner.index();
        let bounds = |axis: usize| {
            let length = k.convert(self.length(k, axis), ty);
            let [first, end] = [0, 1].map(|end| k.min(k.scalar(self.bounds[2 * axis + end], ty), length));
            (first, end, length)
        };
        let (first, end, height) = bounds(axes - 2);
        let (behind, group) = ((stencil.rows - 1) * stencil.step, stencil.rows * stencil.step);
        let tall = k.sub(k.min(k.add(end, behind), height), first);
        let tall = k.select(k.ge(tall, group), tall, k.constant(ty, 0));
        let tall = if stencil.columns == 1 {
            tall
        } else {
            let addresses = [self.inner.wide_addresses(k), self.outlet.row_addresses(k)].concat();
            k.select(k.aligned(addresses), tall, k.constant(ty, 0))
        };
        let rows = [first, k.add(first, tall)];
        let groups = k.div(k.add(tall, group - 1), group);
        let last = [k.add(first, k.mul(k.sub(groups, 1), group)), k.sub(rows[1], group)];
        let (first, end, width) = bounds(axes - 1);
        let around = stencil.columns - 1;
        let [before, behind] = self.exchanged();
        let (first, end) = match stencil.skew {
            // Columns of patches whose first one lies in the interior.
            0 => {
                let next = |column: Value| {
                    let behind = k.add(column, around);
                    k.sub(behind, k.and(behind, around))
                };
                (k.add(next(first), before), k.sub(next(end), behind))
            }
            _ => {
                let end = k.sub(k.min(k.sub(end, around), k.sub(width, 2 * around)), around);
                (k.add(first, 2 * around + before), k.sub(end, behind))
            }
        };
        let first = k.min(first, width);
        let columns = [first, k.max(end, first)];
        let along = match self.border {
            None => [k.constant(ty, 0); 2],
            Some(_) => {
                let [first, end] = [0, 1].map(|end| k.min(k.scalar(self.bounds[2 * axes + end], ty), width));
                let wide = k.sub(k.min(k.add(end, self.group() - stencil.step), width), first);
                [first, k.add(first, k.select(k.ge(wide, self.group()), wide, k.constant(ty, 0)))]
            }
        };
        let own = |bounds: [Value; 2]| bounds.map(|bound| k.convert(bound, self.index));
        CoveredPart { rows: own(rows), last: own(last), columns: own(columns), along: own(along) }
    }

    /// Makes the kernel of patches of the interior, with a function of one position for the frame.
    pub(super) fn framed(&self, edge: &Inlet, draft: &mut Draft, costs: &Costs<'_>) -> Result<()> {
        let (axes, stencil) = (self.axes(), self.stencil);
        // The lanes of a warp have neighbouring patches of a row where they exchange values.
        let block = if stencil.columns == 1 { [2 * LANES, 4, 1] } else { [LANES, 8, 1] };
        let own = if stencil.columns == 1 { block[0] } else { self.own() };
        let threads = block[0] * block[1];
        // Loads that are under way need registers, and an assembler that is let takes all of them: then too
        // few warps are there.
        let k = Writer::with_blocks("stencil", block, costs.register_blocks(threads, stencil.live));
        let shifted = if stencil.skew == 0 { 0 } else { 2 * (stencil.columns - 1) };
        let across = (Count::size(axes - 1) + shifted).div_ceil(own * stencil.columns);
        let each = if self.border.is_some() { cost::BORDER_THREADS } else { cost::FRAME_THREADS };
        let around = Count::product(0..axes - 2) * ((Count::size(axes - 2) + Count::size(axes - 1)) * each);
        let frames = around.div_ceil(across.clone() * threads);
        let down = frames.clone() + self.strips().div_ceil(block[1]);
        let number = self.row_of_blocks(&k);
        let covered = self.covered(&k);
        let first = k.count(frames, self.index);
        k.if_else(
            k.lt(number, first),
            || {
                let blocks = k.count(across.clone(), self.index);
                let lane = k.add(k.mul(k.thread(Axis::Y), block[0]), k.thread(Axis::X));
                let own = k.add(k.mul(number, blocks), self.wide(&k, k.block(Axis::X)));
                let own = k.add(k.mul(own, threads), self.wide(&k, lane));
                self.frame(&k, edge, &covered, own, k.mul(k.mul(first, blocks), threads));
            },
            || {
                let row = k.mul(k.sub(number, first), block[1]);
                let strip = k.add(row, self.wide(&k, k.thread(Axis::Y)));
                let patches = k.mul(self.wide(&k, k.block(Axis::X)), own);
                let column = k.mul(k.add(patches, self.wide(&k, k.thread(Axis::X))), stencil.columns);
                let column = if stencil.reach.0 > 0 { k.sub(column, self.exchanged()[0]) } else { column };
                self.patch(&k, &covered, strip, column);
            },
        );
        self.launch(draft, k, [across, down], block)
    }

    /// Computes a patch by the number of its strip and its column. The column is that of the first row if the
    /// row starts at a multiple of 16 bytes.
    fn patch(&self, k: &Writer, covered: &CoveredPart, number: Value, column: Value) {
        let (axes, stencil) = (self.axes(), self.stencil);
        let (rows, step) = (stencil.rows, stencil.step);
        let each = k.count(self.strips_of_image(), self.index);
        let image = k.div(number, each);
        let strip = k.sub(number, k.mul(image, each));
        let (group, ahead) = (k.div(strip, step), k.rem(strip, step));
        let own = k.add(covered.rows[0], k.mul(group, rows * step));
        let is_there = k.and(k.lt(number, k.count(self.strips(), self.index)), k.lt(own, covered.rows[1]));
        let lengths: Vec<Value> = (0..axes - 2).map(|axis| self.length(k, axis)).collect();
        let mut position = unravel(k, image, &lengths);
        let above = position.iter().enumerate().map(|(axis, index)| self.inside(k, axis, *index));
        let is_there = above.fold(is_there, |all, one| k.and(all, one));
        let held = k.min(own, covered.last[1]);
        let first = k.add(held, ahead);
        position.push(first);
        let row = k.add(k.mul(image, self.length(k, axes - 2)), first);
        let start = k.mul(k.convert(row, self.place()), k.convert(self.length(k, axes - 1), self.place()));
        let shift = match stencil.skew {
            0 => None,
            _ => Some(k.convert(k.and(start, stencil.columns - 1), self.index)),
        };
        let column = shift.map_or(column, |shift| k.sub(column, shift));
        let left_out = k.sub(own, held);
        let left_out = k.sub(k.max(left_out, ahead), ahead);
        let strip = Strip { position, left_out, start };
        let own_row = |row: u32| k.ge(row * stencil.step, left_out);
        if stencil.reach == (0, 0) {
            let inside = k.and(is_there, self.columns_inside(k, column));
            return k.if_then(inside, || self.inner_column(k, &strip, column, |row| Some(own_row(row))));
        }
        // All lanes of a warp have the same row and exchange values, so they enter together. Lanes outside
        // load from a column that is inside.
        let first = self.first_column(k, shift.unwrap_or_else(|| k.constant(self.index, 0)));
        k.if_then(k.and(is_there, self.columns_inside(k, first)), || {
            let lane = k.convert(k.thread(Axis::X), Type::U32);
            let has_results = k.and(k.ge(lane, stencil.reach.0), k.lt(lane, LANES - stencil.reach.1));
            let stored = k.and(has_results, self.columns_stored(k, column));
            let loaded = k.select(self.columns_inside(k, column), column, first);
            self.inner_column(k, &strip, loaded, |row| Some(k.and(stored, own_row(row))));
        });
    }

    /// Computes the units of the frame from one on, at a distance. Single positions come first, then strips
    /// along rows, then strips along columns.
    fn frame(&self, k: &Writer, edge: &Inlet, covered: &CoveredPart, own: Value, apart: Value) {
        let axes = self.axes();
        let (height, width) = (self.length(k, axes - 2), self.length(k, axes - 1));
        // Where some images are not in the interior, all positions are looked at.
        let all_inside = self.images_inside(k);
        let [rows, along] =
            [covered.rows, covered.along].map(|ends| ends.map(|end| k.select(all_inside, end, k.constant(self.index, 0))));
        let frame = Frame { covered, rows, along };
        let tall = k.add(rows[0], k.sub(height, rows[1]));
        let side = k.add(covered.columns[0], k.sub(width, covered.columns[1]));
        let inner = k.sub(rows[1], rows[0]);
        let corners = k.mul(tall, k.sub(width, k.sub(along[1], along[0])));
        let alone = if self.border.is_some() { corners } else { k.add(corners, k.mul(inner, side)) };
        let images = k.count(Count::product(0..axes - 2), self.index);
        let unit = |number: Value, each: Value| {
            let image = k.div(number, each);
            FrameUnit { image, number: k.sub(number, k.mul(image, each)) }
        };
        let all_alone = k.mul(images, alone);
        let Some([along_rows, along_columns]) = &self.border else {
            return k.for_step(own, all_alone, apart, Unroll::Never, |number| self.alone(k, edge, &frame, unit(number, alone)));
        };
        let each_row = k.mul(tall, self.strips_in(k, along));
        let each_column = k.mul(side, self.strips_in(k, rows));
        let [all_rows, all_columns] = [each_row, each_column].map(|each| k.mul(images, each));
        let of_rows = k.add(all_alone, all_rows);
        k.for_step(own, k.add(of_rows, all_columns), apart, Unroll::Never, |number| {
            k.if_else(
                k.lt(number, all_alone),
                || self.alone(k, edge, &frame, unit(number, alone)),
                || {
                    k.if_else(
                        k.lt(number, of_rows),
                        || self.along_row(k, along_rows, &frame, unit(k.sub(number, all_alone), each_row)),
                        || self.along_column(k, along_columns, covered, unit(k.sub(number, of_rows), each_column)),
                    );
                },
            );
        });
    }

    /// Returns the index with a number among those outside of a range.
    fn outside(&self, k: &Writer, number: Value, [first, end]: [Value; 2]) -> Value {
        k.select(k.lt(number, first), number, k.add(k.sub(number, first), end))
    }

    /// Returns the number of strips that cover a range.
    fn strips_in(&self, k: &Writer, [first, end]: [Value; 2]) -> Value {
        let groups = k.div(k.add(k.sub(end, first), self.group() - 1), self.group());
        k.mul(groups, self.stencil.step)
    }

    /// Returns the first position that a strip stores and the first that it computes, in a range of groups of
    /// which only the last may be incomplete.
    fn strip_in(&self, k: &Writer, strip: Value, [first, end]: [Value; 2]) -> [Value; 2] {
        let (group, ahead) = (k.div(strip, self.stencil.step), k.rem(strip, self.stencil.step));
        let own = k.add(first, k.mul(group, self.group()));
        [own, k.add(k.min(own, k.sub(end, self.group())), ahead)]
    }

    /// Stores the values of a position of an image.
    fn put_alone(
        &self,
        k: &Writer,
        stored: Option<Value>,
        image: Value,
        above: &[Value],
        [row, column]: [Value; 2],
        values: &[Value],
    ) {
        let (height, width) = (self.length(k, self.axes() - 2), self.length(k, self.axes() - 1));
        let wide = |value: Value| k.convert(value, self.place());
        let line = k.add(k.mul(image, height), row);
        let position: Vec<Value> = above.iter().copied().chain([row, column]).collect();
        self.outlet.put_where(k, stored, &position, k.add(k.mul(wide(line), wide(width)), wide(column)), values);
    }

    /// Returns the position of an image.
    fn above(&self, k: &Writer, image: Value) -> Vec<Value> {
        let lengths: Vec<Value> = (0..self.axes() - 2).map(|axis| self.length(k, axis)).collect();
        unravel(k, image, &lengths)
    }

    /// Computes a position near the edges of several axes, or any position of a frame without strips.
    fn alone(&self, k: &Writer, edge: &Inlet, frame: &Frame<'_>, FrameUnit { image, number }: FrameUnit) {
        let axes = self.axes();
        let (height, width) = (self.length(k, axes - 2), self.length(k, axes - 1));
        let (covered, [top, bottom]) = (frame.covered, frame.rows);
        let place = if self.border.is_some() {
            let [left, right] = frame.along;
            let along = k.sub(width, k.sub(right, left));
            let row = k.div(number, along);
            let column = k.sub(number, k.mul(row, along));
            [self.outside(k, row, frame.rows), self.outside(k, column, frame.along)]
        } else {
            let [left, right] = covered.columns;
            let bands = k.mul(k.add(top, k.sub(height, bottom)), width);
            let is_band = k.lt(number, bands);
            let along = k.select(is_band, width, k.add(left, k.sub(width, right)));
            let from = k.select(is_band, number, k.sub(number, bands));
            let row = k.div(from, along);
            let column = k.sub(from, k.mul(row, along));
            let column = k.select(is_band, column, self.outside(k, column, covered.columns));
            [k.select(is_band, self.outside(k, row, frame.rows), k.add(row, top)), column]
        };
        let above = self.above(k, image);
        k.if_then(k.not(self.is_taken(k, covered, image, &above, place)), || {
            let position: Vec<Value> = above.iter().copied().chain(place).collect();
            let results = edge.at_unwritten(k, &position);
            self.put_alone(k, None, image, &above, place, &results);
        });
    }

    /// Computes a strip along a row above or below the covered rows.
    fn along_row(&self, k: &Writer, inlet: &Inlet, frame: &Frame<'_>, FrameUnit { image, number }: FrameUnit) {
        let strips = self.strips_in(k, frame.along);
        let row = k.div(number, strips);
        let [own, first] = self.strip_in(k, k.sub(number, k.mul(row, strips)), frame.along);
        let (row, above) = (self.outside(k, row, frame.rows), self.above(k, image));
        let position: Vec<Value> = above.iter().copied().chain([row, first]).collect();
        let results = inlet.at_unwritten(k, &position);
        for (index, values) in (0..).zip(results.chunks(self.values)) {
            let column = k.add(first, index * self.stencil.step);
            self.put_alone(k, Some(k.ge(column, own)), image, &above, [row, column], values);
        }
    }

    /// Computes a strip along a column left or right of the covered columns.
    fn along_column(&self, k: &Writer, inlet: &Inlet, covered: &CoveredPart, FrameUnit { image, number }: FrameUnit) {
        let [left, right] = covered.columns;
        let side = k.add(left, k.sub(self.length(k, self.axes() - 1), right));
        let strip = k.div(number, side);
        let column = self.outside(k, k.sub(number, k.mul(strip, side)), covered.columns);
        let [own, first] = self.strip_in(k, strip, covered.rows);
        let above = self.above(k, image);
        let position: Vec<Value> = above.iter().copied().chain([first, column]).collect();
        let results = inlet.at_unwritten(k, &position);
        for (index, values) in (0..).zip(results.chunks(self.values)) {
            let row = k.add(first, index * self.stencil.step);
            let is_taken = self.is_taken(k, covered, image, &above, [row, column]);
            self.put_alone(k, Some(k.and(k.ge(row, own), k.not(is_taken))), image, &above, [row, column], values);
        }
    }

    /// Returns whether a patch has a position.
    fn is_taken(&self, k: &Writer, covered: &CoveredPart, image: Value, above: &[Value], [row, column]: [Value; 2]) -> Value {
        let (axes, stencil) = (self.axes(), self.stencil);
        let (rows, step, around) = (stencil.rows, stencil.step, stencil.columns - 1);
        let [top, bottom] = covered.rows;
        let of_rows = k.and(k.ge(row, top), k.lt(row, bottom));
        let below = k.rem(k.sub(row, top), rows * step);
        let below = k.select(k.ge(row, covered.last[0]), k.sub(row, covered.last[1]), below);
        let ahead = k.rem(below, step);
        // From the first row of the patch on.
        let distance = k.sub(below, ahead);
        let first = match stencil.skew {
            0 => k.sub(column, k.and(column, around)),
            skew => {
                let line = k.add(k.mul(image, self.length(k, axes - 2)), k.sub(row, distance));
                let start = k.and(k.mul(line, self.length(k, axes - 1)), around);
                let shift = k.and(k.mul(distance, skew), around);
                let shifted = k.add(column, k.add(start, shift));
                k.sub(k.sub(shifted, k.and(shifted, around)), start)
            }
        };
        let of_image = above.iter().enumerate().map(|(axis, index)| self.inside(k, axis, *index));
        let of_image = of_image.fold(of_rows, |all, one| k.and(all, one));
        k.and(of_image, self.columns_stored(k, first))
    }
}
