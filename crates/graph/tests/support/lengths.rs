//! Arrays whose length only the device knows, and operations on them.

use super::functions::firing;
use super::{Generator, Known, ways_to_combine};
use broadloom_graph::{Boundary, Elementwise, Node, Reads, Result, Shape, SortKey};
use broadloom_scalar::{BinaryOp, Element, Literal, Type};

impl Generator<'_> {
    /// Packs an array, and applies operations to the result.
    pub(super) fn lengths(&mut self) -> Result<()> {
        let a = self.any();
        let count = a.node.shape().count();
        if count == 0 || count > 600 {
            return Ok(());
        }
        let line = a.node.reshape(Shape::from(count))?;
        let chosen = self.partner(Type::BOOL, &Shape::from(count))?;
        if chosen.node.shape() != line.shape() {
            return Ok(());
        }
        self.kind = "length";
        self.push(line.pack(&chosen.node)?, a.bound, a.exact);
        for _ in 0..self.random.below(6) {
            self.behind_length()?;
        }
        self.kind = "";
        Ok(())
    }

    /// Applies an operation to an array whose length only the device knows.
    fn behind_length(&mut self) -> Result<()> {
        let long: Vec<Known> = self.pool.iter().filter(|known| known.node.length().is_some()).cloned().collect();
        if long.is_empty() {
            return Ok(());
        }
        let a = self.random.pick(&long).clone();
        let (ty, element) = (a.ty(), a.ty().element());
        let rank = a.node.bound().rank();
        let ways = ways_to_combine(ty)?;
        let is_exact = a.exact && (!element.is_float() || a.bound <= 4.0);
        match self.random.below(21) {
            // Another array with the same length.
            0..=1 => {
                let equal = |known: &&Known| {
                    known.ty() == ty
                        && known.node.bound().rank() == rank
                        && known.node.bound().extents()[1..] == a.node.bound().extents()[1..]
                        && known.node.length().is_some_and(|own| a.node.length().is_some_and(|length| own.is_same(length)))
                };
                let others: Vec<Known> = long.iter().filter(equal).cloned().collect();
                let b = self.random.pick(&others).clone();
                let op = match element {
                    Element::Bool => BinaryOp::Xor,
                    _ => *self.random.pick(&[BinaryOp::Min, BinaryOp::Max]),
                };
                self.push(
                    Node::elementwise(Elementwise::Binary(op), &[&a.node, &b.node])?,
                    a.bound.max(b.bound),
                    a.exact && b.exact,
                );
            }
            2 => {
                let by = vec![self.random.between(-3, 3); rank];
                let boundary = self.boundary(ty);
                self.push(a.node.moved("random", &by, &boundary)?, a.bound.max(4.0), a.exact);
            }
            3 if !element.is_float() => {
                let (combine, axis) = (self.random.pick(&ways).clone(), self.random.below(rank));
                let inclusive = self.random.one_in(2);
                self.push(a.node.scan(combine, axis, inclusive)?, 1e30, true);
            }
            4 if !element.is_float() => {
                let (combine, axis) = (self.random.pick(&ways).clone(), self.random.below(rank));
                self.push(a.node.reduce(combine, &[axis])?, 1e30, true);
            }
            5 if rank == 1 && ty.is_scalar() && ty != Type::BOOL && is_exact => {
                let key = SortKey { descending: self.random.one_in(2), bits: None };
                let sorted = Node::sort(&[(&a.node, key)], &[&a.node.position_like(0, Element::I32)?])?;
                self.push(sorted[0].clone(), a.bound, true);
                self.push(sorted[1].clone(), 1e30, true);
            }
            6 if rank == 1 => {
                let places = a.node.position_like(0, Element::I32)?;
                let odd = Node::elementwise(
                    Elementwise::Convert(Element::Bool),
                    &[&Node::elementwise(
                        Elementwise::Binary(BinaryOp::And),
                        &[&places, &places.fill_like(&[Literal::from(1i32)])?],
                    )?],
                )?;
                self.push(a.node.pack(&odd)?, a.bound, a.exact);
            }
            7 => {
                let joined = Node::concatenate(0, &[&a.node, &a.node])?;
                if joined.bound().count() < 3000 {
                    self.push(joined, a.bound, a.exact);
                }
            }
            8 => {
                let (start, end) = (self.random.below(4), self.random.one_in(2).then(|| self.random.below(20)));
                self.push(a.node.first_part(start, end)?, a.bound, a.exact);
            }
            9 => {
                let axis = self.random.below(rank);
                self.push(a.node.reversed("random", &[axis])?, a.bound, a.exact);
            }
            10 if rank == 1 && a.node.bound().count() < 300 => {
                // A matrix with the same number of rows.
                let columns = 1 + self.random.below(5);
                self.leaf_of(ty, Shape::from(columns))?;
                let row = self.pool[self.pool.len() - 1].clone();
                let column = a.node.reshape_rows(&Shape::from(1))?;
                let op = if element == Element::Bool { BinaryOp::Xor } else { BinaryOp::Max };
                let node = Node::elementwise(Elementwise::Binary(op), &[&column, &row.node])?;
                self.push(node, a.bound.max(4.0), a.exact);
            }
            11 if rank > 1 => self.push(a.node.flattened()?, a.bound, a.exact),
            12 if rank == 1 => {
                let base = a.node.fill_like(&self.value(ty))?;
                let places = a.node.position_like(0, Element::I64)?;
                let node = base.scatter(&[&places], &a.node, None)?;
                self.push(node, a.bound.max(4.0), a.exact);
            }
            13 if rank == 1 => {
                let indices = a.node.position_like(0, Element::I32)?;
                let data = self.partner(ty, &Shape::from(7))?;
                if data.node.bound().rank() == 1 && !data.node.bound().is_empty() && data.node.length().is_none() {
                    let boundary = self.boundary(ty);
                    self.push(data.node.gather(&[&indices], &boundary)?, data.bound.max(4.0), data.exact);
                }
            }
            14 => {
                let width = 1 + self.random.below(4);
                self.push(a.node.rows_of(width)?, a.bound, a.exact);
            }
            15 => {
                let count = self.random.below(5);
                let node = if self.random.one_in(2) { a.node.last(count)? } else { a.node.without_last(count)? };
                self.push(node, a.bound, a.exact);
            }
            16 => {
                let step = 1 + self.random.below(3);
                self.push(a.node.every(step)?, a.bound, a.exact);
            }
            17 => {
                // Padding of an empty array is unspecified unless it is a constant.
                let sides: Vec<(usize, usize)> = (0..rank).map(|_| (self.random.below(3), self.random.below(3))).collect();
                let boundary = Boundary::Constant(self.value(ty));
                let node = a.node.enlarged("random", &sides, &boundary)?;
                if node.bound().count() < 3000 {
                    self.push(node, a.bound.max(4.0), a.exact);
                }
            }
            18 if rank == 2 && ty.is_scalar() && ty != Type::BOOL && !element.is_float() && a.node.bound().count() < 600 => {
                self.push(a.node.columns_product(&a.node)?, 1e30, true);
            }
            19..=20 if rank == 1 => {
                let rate = 1 + self.random.below(3);
                let (function, calls) = (firing(ty, rate)?, a.node.firings(rate)?);
                let results = Node::compute_like(&function, &calls, &[], &[(&a.node, Reads::Queue(rate))], &[2])?;
                self.push(results[0].clone(), 1e30, true);
                self.push(results[1].clone(), a.bound, a.exact);
            }
            _ => {
                let places = a.node.position_like(0, Element::I32)?;
                self.push(places, 1e30, true);
            }
        }
        Ok(())
    }
}
