//! Open nodes: nodes that become entries at their first use, because their sizes depend on the use.

use super::{OPEN, OpenNode, Recorder, is_reversal, splits};
use crate::expr::error::Result;
use crate::expr::node::{Expression, Node, State};
use crate::expr::op::Op;
use crate::expr::shape::Shape;
use crate::tape::entries::{Id, ShapeId};
use crate::tape::sizes::{ONE, Size, SizeList};
use broadloom_skeleton::Rule;
use smallvec::SmallVec;

impl Recorder {
    /// Opens a node: its sizes do not all depend on its input.
    pub(super) fn open(&mut self, node: &Node, expression: &Expression, numbers: &[Id]) -> Result<Id> {
        let input = numbers.first().map(|number| self.closed(*number, None)).transpose()?;
        let extents = node.bound().numbers();
        let mut sizes: SmallVec<[Option<Size>; 4]> = SmallVec::from_elem(None, extents.len());
        let length = self.length(node)?;
        if let (Some(first), Some(length)) = (sizes.first_mut(), length) {
            *first = Some(length);
        }
        let mut is_whole = false;
        // All added axes of extent 1 share one size.
        let add = |sizes: &mut [Option<Size>], axis: usize| {
            if extents[axis] == 1 && sizes[axis].is_none() {
                node.bound().fix_axis(axis);
                sizes[axis] = Some(ONE);
            }
        };
        if let (Some(input), Some(from)) = (input, expression.inputs.first().map(Node::bound)) {
            let list = self.sizes.list(self.tape.entry(input).shape).clone();
            match &expression.op {
                Op::View(view) => {
                    let sources = view.axes.iter().filter_map(|map| map.source).fold(0u32, |all, axis| all | 1 << axis);
                    is_whole = length.is_none() && (0..extents.len()).all(|axis| sources & 1 << axis != 0 || extents[axis] == 1);
                    for (axis, map) in view.axes.iter().enumerate() {
                        let (Some(source), extent) = (map.source, from.numbers()[axis]) else { continue };
                        let is_same = map.stride == 1 && (map.offset == 0 || map.rule != Rule::Inside);
                        let is_kept = is_same || is_reversal(map, extent, &view.shape);
                        if is_kept && is_one_size(node.bound(), usize::from(source), from, axis) {
                            sizes[usize::from(source)].get_or_insert(list[axis]);
                        } else if is_same
                            && list.len() == 1
                            && extents.len() == 1
                            && node.bound().amount(0).is_identical(&from.amount(0).plus(&1.into()))
                        {
                            let more = self.sizes.one_more(list[0]);
                            sizes[0].get_or_insert(more);
                        }
                    }
                    (0..extents.len()).filter(|axis| sources & 1 << axis == 0).for_each(|axis| add(&mut sizes, axis));
                }
                Op::Reshape => {
                    is_whole = true;
                    let mut axis = 0;
                    for (own, (count, size)) in splits(from.numbers(), extents).iter().zip(&list).enumerate() {
                        if *count == 1 && is_one_size(node.bound(), axis, from, own) {
                            sizes[axis].get_or_insert(*size);
                        }
                        axis += usize::from(*count);
                    }
                    let mut rest = from.numbers().iter().peekable();
                    for (axis, extent) in extents.iter().enumerate() {
                        if rest.next_if_eq(&extent).is_none() {
                            add(&mut sizes, axis);
                        }
                    }
                }
                Op::Fill(_) | Op::Position(_) | Op::Elementwise(_) | Op::Gather(..) | Op::Concatenate(_) | Op::Pattern(_) => {}
            }
        }
        if let Some(all) = sizes.iter().copied().collect::<Option<SizeList>>().filter(|all| !all.is_empty()) {
            let shape = self.sizes.push(all, node.bound());
            return self.entry_in(node, expression, input.into_iter().collect(), shape, is_whole);
        }
        self.open.push(OpenNode { node: node.clone(), input, sizes, is_whole, entry: None });
        Ok(OPEN | (self.open.len() - 1) as Id)
    }

    /// Returns the entry of a number. An open node becomes an entry; `shape` is that of the arrays beside
    /// which it is used.
    pub(super) fn closed(&mut self, number: Id, shape: Option<ShapeId>) -> Result<Id> {
        let Some(own) = number.checked_sub(OPEN).and_then(|own| self.open.get(own as usize)) else { return Ok(number) };
        if let Some(entry) = own.entry {
            if let Some(shape) = shape {
                self.sizes.unite_shapes(self.tape.entry(entry).shape, shape);
            }
            return Ok(entry);
        }
        let (node, input, known, is_whole) = (own.node.clone(), own.input, own.sizes.clone(), own.is_whole);
        let sizes = &mut self.sizes;
        let shape = match shape {
            Some(shape) => {
                for (axis, size) in known.iter().enumerate() {
                    if let Some(size) = size {
                        sizes.unite(*size, sizes.list(shape)[axis]);
                    }
                }
                shape
            }
            None => {
                let list = known.iter().map(|size| size.unwrap_or_else(|| sizes.fresh())).collect();
                sizes.push(list, node.bound())
            }
        };
        let state = node.lock();
        let entry = match &*state {
            State::Pending(expression) => self.entry_in(&node, expression, input.into_iter().collect(), shape, is_whole)?,
            // Another thread has evaluated it since the visit.
            State::Ready(buffer) => self.memory(&node, buffer)?,
            State::Symbolic(symbol) => self.symbol(&node, symbol)?,
        };
        self.sizes.unite_shapes(self.tape.entry(entry).shape, shape);
        drop(state);
        if let Some((known, _)) = self.nodes.get_mut(entry as usize)
            && known.is_none()
        {
            *known = Some(node);
        }
        self.open[(number - OPEN) as usize].entry = Some(entry);
        Ok(entry)
    }

    /// Returns the entries of arrays that are used position by position, and their common shape.
    pub(super) fn aligned(&mut self, numbers: &[Id], shape: &Shape) -> Result<(SmallVec<[Id; 3]>, ShapeId)> {
        let mut common: Option<ShapeId> = None;
        for number in numbers {
            let entry = match number.checked_sub(OPEN) {
                None => Some(*number),
                Some(own) => self.open.get(own as usize).and_then(|own| own.entry),
            };
            let Some(shape) = entry.map(|entry| self.tape.entry(entry).shape) else { continue };
            match common {
                None => common = Some(shape),
                Some(common) => self.sizes.unite_shapes(common, shape),
            }
        }
        let common = common.unwrap_or_else(|| {
            let known = |axis: usize| {
                let open = numbers.iter().filter_map(|number| self.open.get(number.checked_sub(OPEN)? as usize));
                open.filter_map(|open| open.sizes.get(axis).copied().flatten()).next()
            };
            let list: SmallVec<[Option<Size>; 4]> = (0..shape.rank()).map(known).collect();
            let list = list.into_iter().map(|size| size.unwrap_or_else(|| self.sizes.fresh())).collect();
            self.sizes.push(list, shape)
        });
        let entries = numbers.iter().map(|number| self.closed(*number, Some(common))).collect::<Result<_>>()?;
        Ok((entries, common))
    }
}

/// Returns whether an extent of a result is an extent of its input. In a traced function, this must hold for
/// all extents of the inputs.
fn is_one_size(shape: &Shape, axis: usize, input: &Shape, other: usize) -> bool {
    shape.numbers()[axis] == input.numbers()[other] && shape.amount(axis).is_identical(&input.amount(other))
}
