//! Transpose: values computed along one axis and stored along another.
//!
//! Tiles of 32 by 32 positions go through shared memory, so that both sides access memory row by row. Rows of
//! a tile are padded by one element, which puts the elements of a column into different banks.

use crate::kit::{Draft, Shared, Writer, ravel, unravel};
use crate::program::Program;
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Type, Value};

/// Exchanges an axis of a domain with its last one. A [`Sink`] gets the values of a [`Source`] at positions
/// with the two axes exchanged.
///
/// The sizes of a call are the lengths of the source's axes. An exchange of two axes that does not involve
/// the last is a [`Map`](crate::Map).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// Number of axes.
    pub axes: usize,
    /// Axis that is exchanged with the last.
    pub axis: usize,
    /// The values.
    pub source: Source,
    /// Use of the values.
    pub sink: Sink,
}

/// Number of threads of a block in the second direction.
const ROWS: u32 = crate::cost::TILE_ROWS;

impl Transpose {
    /// Returns the program for a machine.
    pub fn program(&self, _machine: &Machine) -> Result<Program> {
        let (axes, axis) = (self.axes, self.axis);
        if axis + 1 >= axes {
            let reason = format!("axis {axis} of {axes} is exchanged with the last");
            return Err(Error::Pattern { pattern: "transpose", reason });
        }
        let types = self.source.results();
        self.sink.check("transpose", axes, &types)?;
        let index = Domain::with_axes(axes).check("transpose", &[&self.source], &self.sink)?;
        let count = Count::product(0..axes);
        let mut draft = Draft::new("transpose", axes);
        let inlet = draft.source(&self.source);
        let outlet = draft.sink(&self.sink, &types, &count);
        if index == Type::U32 {
            draft.limit(count);
        }
        let last = axes - 1;
        let block = [32, ROWS, 1];
        let k = Writer::new("transpose", block);
        let lengths: Vec<Value> = (0..axes).map(|axis| k.count(Count::size(axis), index)).collect();
        let tiles = |axis: usize| Count::size(axis).div_ceil(32u32);
        let others: Vec<usize> = (0..axes).filter(|other| *other != axis && *other != last).collect();
        let rest = others.iter().map(|axis| Count::size(*axis)).reduce(|a, b| a * b).unwrap_or(Count::Constant(1));
        // The place of the block: the position along the other axes, then the tiles of the two axes.
        let in_tiles = [k.count(rest.clone(), index), k.count(tiles(axis), index), k.count(tiles(last), index)];
        let place = unravel(&k, k.convert(k.block(Axis::X), index), &in_tiles);
        let other_lengths: Vec<Value> = others.iter().map(|axis| lengths[*axis]).collect();
        let above = unravel(&k, place[0], &other_lengths);
        let position = |first: Value, second: Value| -> Vec<Value> {
            let mut position = vec![first; axes];
            others.iter().zip(&above).for_each(|(axis, index)| position[*axis] = *index);
            position[axis] = first;
            position[last] = second;
            position
        };
        let (row, column) = (k.mul(place[1], 32), k.mul(place[2], 32));
        let (x, y) = (k.thread(Axis::X), k.thread(Axis::Y));
        let whole = k.and(k.ge(k.sub(lengths[axis], row), 32), k.ge(k.sub(lengths[last], column), 32));
        let tile = Shared::new(&k, &types, 32 * 33);
        let wide = |value: Value| k.convert(value, index);
        let fill = |checked: bool| {
            for step in (0..32).step_by(ROWS as usize) {
                let y = k.add(y, step);
                let (i, j) = (k.add(row, wide(y)), k.add(column, wide(x)));
                let body = || tile.set(&k, k.add(k.mul(y, 33), x), &inlet.at(&k, &position(i, j)));
                if checked {
                    k.if_then(k.and(k.lt(i, lengths[axis]), k.lt(j, lengths[last])), body);
                } else {
                    body();
                }
            }
        };
        let drain = |checked: bool| {
            let mut exchanged = lengths.clone();
            exchanged.swap(axis, last);
            for step in (0..32).step_by(ROWS as usize) {
                let y = k.add(y, step);
                let (i, j) = (k.add(row, wide(x)), k.add(column, wide(y)));
                let body = || {
                    let position = position(j, i);
                    let linear = ravel(&k, &position, &exchanged);
                    outlet.put(&k, &position, linear, &tile.get(&k, k.add(k.mul(x, 33), y)));
                };
                if checked {
                    k.if_then(k.and(k.lt(i, lengths[axis]), k.lt(j, lengths[last])), body);
                } else {
                    body();
                }
            }
        };
        k.if_else(whole, || fill(false), || fill(true));
        k.barrier();
        k.if_else(whole, || drain(false), || drain(true));
        draft.launch(k, [rest * tiles(axis) * tiles(last), 1u32.into(), 1u32.into()], block)?;
        Ok(draft.finish())
    }
}
