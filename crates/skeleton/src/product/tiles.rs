//! A square tile of the result per block of a GPU.
//!
//! Strips of both factors go through shared memory in two alternating buffers. The next strip is prefetched
//! into registers while the current one is used. Each thread has a smaller square in registers. It reads
//! shared memory four adjacent elements at a time.

use super::ProductEmitter;
use crate::kit::{Draft, Writer};
use crate::{Count, Result};
use broadloom_scalar::{Axis, Element, Literal, Memory, Type, Unroll, Value, Variable};

impl ProductEmitter {
    pub(super) fn tiles(&self, draft: &mut Draft) -> Result<()> {
        let shape = ProductTile::of(self.ty);
        let block = [256, 1, 1];
        let k = Writer::with_blocks("product", block, 2);
        let (m, n, common) = (self.size(&k, 0), self.size(&k, 1), self.size(&k, 2));
        let tiles = [Count::size(0).div_ceil(shape.side), Count::size(1).div_ceil(shape.side)];
        let thread = k.thread(Axis::X);
        let across = k.count(tiles[1].clone(), self.index);
        let number = self.wide(&k, k.block(Axis::X));
        let down = k.div(number, across);
        let (top, side) = (k.mul(down, shape.side), k.mul(k.sub(number, k.mul(down, across)), shape.side));
        let strips = [shape.strip(&k, self.ty.element()), shape.strip(&k, self.ty.element())];

        // A thread loads the left factor along the common axis, and the right one along its rows.
        let each = shape.side * shape.depth / 256;
        let left_place = |item: u32| {
            let (depth, row) = (k.and(thread, shape.depth - 1), k.div(thread, shape.depth));
            (k.add(row, item * (256 / shape.depth)), depth)
        };
        let right_place = |item: u32| {
            let (column, depth) = (k.and(thread, shape.side - 1), k.div(thread, shape.side));
            (column, k.add(depth, item * (256 / shape.side)))
        };
        let zero = || k.spread(Literal::zero(self.ty.element()), self.ty);
        let carried: Vec<[Variable; 2]> = (0..each).map(|_| [k.variable(self.ty), k.variable(self.ty)]).collect();
        let bring_checked = |from: Value, checked: bool| {
            let either = |there: &dyn Fn() -> Value, value: &dyn Fn() -> Value| {
                if checked { k.choose(there(), value, zero) } else { value() }
            };
            for (item, [left, right]) in (0..each).zip(&carried) {
                let (row, depth) = left_place(item);
                let (i, step) = (k.add(top, self.wide(&k, row)), k.add(from, self.wide(&k, depth)));
                let there = || k.and(k.lt(i, m), k.lt(step, common));
                k.set(*left, either(&there, &|| self.left.at(&k, &[i, step])[0]));
                let (column, depth) = right_place(item);
                let (j, step) = (k.add(side, self.wide(&k, column)), k.add(from, self.wide(&k, depth)));
                let there = || k.and(k.lt(j, n), k.lt(step, common));
                k.set(*right, either(&there, &|| self.right.at(&k, &[step, j])[0]));
            }
        };
        // Most strips are inside of both factors and need no bounds checks.
        let inside = k.and(k.ge(k.sub(m, top), shape.side), k.ge(k.sub(n, side), shape.side));
        let bring = |from: Value| {
            let left = k.sub(common, k.min(from, common));
            let inside = k.and(inside, k.ge(left, shape.depth));
            k.if_else(inside, || bring_checked(from, false), || bring_checked(from, true));
        };
        let put_down = |buffer: Value| {
            for (item, [left, right]) in (0..each).zip(&carried) {
                let (row, depth) = left_place(item);
                k.store(strips[0], shape.place(&k, buffer, depth, row), k.get(*left));
                let (column, depth) = right_place(item);
                k.store(strips[1], shape.place(&k, buffer, depth, column), k.get(*right));
            }
        };
        let sums: Vec<Variable> =
            (0..shape.own * shape.own).map(|_| k.variable_with(k.spread(Literal::zero(self.sum.element()), self.sum))).collect();
        // A warp has eight columns and four rows of threads, the shape that reads the fewest different
        // numbers.
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let x = k.add(k.mul(k.and(warp, 1), 8), k.and(lane, 7));
        let y = k.add(k.mul(k.shr(warp, 1), 4), k.shr(lane, 3));
        let rounds = k.count(Count::size(2).div_ceil(shape.depth), self.index);
        let first = self.wide(&k, k.literal(0u32));
        bring(first);
        put_down(k.literal(0u32));
        k.barrier();
        k.for_step(first, rounds, 1, Unroll::Never, |round| {
            let next = k.add(round, 1);
            // After the last strip zeros are loaded, which are not used.
            bring(k.mul(next, shape.depth));
            let odd = k.convert(k.and(round, 1), Type::U32);
            let mut values: Vec<Value> = sums.iter().map(|sum| k.get(*sum)).collect();
            for depth in 0..shape.depth {
                let read = |strip: Memory, place: Value| -> Vec<Value> {
                    let groups = (0..shape.own / 4).flat_map(|group| {
                        let start = k.add(k.mul(place, 4), group * shape.side / 2);
                        k.lanes(k.load_vector(strip, shape.place(&k, odd, k.literal(depth), start), 4))
                    });
                    groups.map(|value| k.convert(value, self.sum)).collect()
                };
                let (a, b) = (read(strips[0], y), read(strips[1], x));
                for (row, a) in a.iter().enumerate() {
                    for (column, b) in b.iter().enumerate() {
                        let sum = &mut values[row * shape.own as usize + column];
                        *sum = self.multiply_add(&k, *a, *b, *sum);
                    }
                }
            }
            sums.iter().zip(&values).for_each(|(sum, value)| k.set(*sum, *value));
            put_down(k.xor(odd, 1));
            k.barrier();
        });
        let own = |place: Value, item: u32| self.wide(&k, k.add(k.mul(place, 4), item / 4 * shape.side / 2 + item % 4));
        for row in 0..shape.own {
            let i = k.add(top, own(y, row));
            for column in 0..shape.own {
                let j = k.add(side, own(x, column));
                let sum = sums[(row * shape.own + column) as usize];
                k.if_then(k.and(k.lt(i, m), k.lt(j, n)), || self.put(&k, i, j, k.get(sum)));
            }
        }
        draft.launch(k, [tiles[0].clone() * tiles[1].clone(), 1u32.into(), 1u32.into()], block)?;
        Ok(())
    }
}

/// The tile of a block.
struct ProductTile {
    /// Number of rows and of columns.
    side: u32,
    /// Number of elements along the common axis per strip.
    depth: u32,
    /// Number of rows and of columns of a thread: one group of four neighbours, or two groups half a side
    /// apart.
    own: u32,
}

impl ProductTile {
    fn of(ty: Type) -> ProductTile {
        match ty.bytes() {
            8 => ProductTile { side: 64, depth: 16, own: 4 },
            _ => ProductTile { side: 128, depth: 8, own: 8 },
        }
    }

    /// Returns the length of a row. Four elements of padding spread column writes over different banks.
    fn row(&self) -> u32 {
        self.side + 4
    }

    /// Allocates two buffers for a strip.
    fn strip(&self, k: &Writer, element: Element) -> Memory {
        k.shared(element, 2 * self.depth * self.row())
    }

    fn place(&self, k: &Writer, buffer: Value, depth: Value, place: Value) -> Value {
        let row = k.add(k.mul(buffer, self.depth), depth);
        k.add(k.mul(row, self.row()), place)
    }
}
