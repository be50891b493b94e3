//! Indices, and the positions of elements in memory.

use super::emitter::{NEAR, TraceEmitter};
use crate::emit::trace::{ElementIndex, Index, IndexId};
use crate::tape::entries::Id;
use crate::tape::number::Number;
use broadloom_scalar::{Accessor, Element, Type, Value};
use broadloom_skeleton::cost;
use smallvec::SmallVec;

impl TraceEmitter<'_, '_, '_> {
    pub(super) fn index(&mut self, id: IndexId) -> Value {
        if let Some(known) = self.indices.get(&id) {
            return *known;
        }
        let value = match &self.trace.indices[id as usize] {
            Index::Affine { axis: None, offset, .. } => self.emitter.number(offset),
            Index::Affine { axis: Some(axis), stride, offset } => {
                let base = self.emitter.position[usize::from(*axis)];
                self.emitter.affine(base, stride, offset)
            }
            Index::Plus(a, b, times) => {
                let (a, b) = (self.index(*a), self.index(*b));
                let b = self.emitter.affine(b, &Number::Known(*times), &Number::Known(0));
                self.emitter.builder.add(a, b)
            }
            Index::Scaled { base, stride, offset } => {
                let base = self.index(*base);
                self.emitter.affine(base, stride, offset)
            }
            Index::Joined { high, low, extent } => {
                let (high, low) = (self.index(*high), self.index(*low));
                let high = self.emitter.affine(high, extent, &Number::Known(0));
                self.emitter.builder.add(high, low)
            }
            Index::Clamp(base, extent) => {
                let (value, ty) = self.unbounded(*base);
                let extent = self.extent(extent, ty);
                let b = &self.emitter.builder;
                b.convert(b.max(b.min(value, b.sub(extent, 1)), 0), self.emitter.index)
            }
            Index::Wrap(base, extent) if self.is_near(*base, extent) => {
                let value = self.index(*base);
                let extent = self.emitter.number(extent);
                let b = &self.emitter.builder;
                let below = b.select(b.lt(value, 0), b.add(value, extent), value);
                b.select(b.ge(value, extent), b.sub(value, extent), below)
            }
            Index::Mirror(base, extent) if self.is_near(*base, extent) => {
                let value = self.index(*base);
                let extent = self.emitter.number(extent);
                let b = &self.emitter.builder;
                let last = b.sub(extent, 1);
                b.sub(last, b.abs(b.sub(last, b.abs(value))))
            }
            Index::Wrap(base, extent) => {
                let (value, ty) = self.unsigned_data(*base).unwrap_or_else(|| self.unbounded(*base));
                let extent = self.least_extent(extent, ty);
                let rest = self.emitter.modulo(value, extent);
                self.emitter.builder.convert(rest, self.emitter.index)
            }
            Index::Mirror(base, extent) => {
                let (value, ty) = self.unsigned_data(*base).unwrap_or_else(|| self.unbounded(*base));
                let extent = self.least_extent(extent, ty);
                let b = &self.emitter.builder;
                // Twice an extent may need one bit more.
                let wide = if ty != Type::I32 { ty } else { self.emitter.wide() };
                let (value, extent) = (b.convert(value, wide), b.convert(extent, wide));
                let period = b.max(b.mul(b.sub(extent, 1), 2), 1);
                let rest = self.emitter.modulo(value, period);
                let b = &self.emitter.builder;
                b.convert(b.min(rest, b.sub(period, rest)), self.emitter.index)
            }
            Index::Ravel(indices, shape) => {
                let rank = indices.len();
                let mut sum: Option<Value> = None;
                for (axis, index) in indices.iter().enumerate() {
                    let value = self.index(*index);
                    let term = self.emitter.affine(value, &Number::stride(*shape, axis, rank), &Number::Known(0));
                    sum = Some(sum.map_or(term, |sum| self.emitter.builder.add(sum, term)));
                }
                sum.unwrap_or_else(|| self.emitter.number(&Number::Known(0)))
            }
            Index::Unravel(number, shape, axis) => {
                let rank = usize::from(self.emitter.tape.shapes[*shape as usize].rank);
                let value = self.index(*number);
                let mut value = self.emitter.builder.bitcast(value, self.unsigned());
                let stride = Number::stride(*shape, usize::from(*axis), rank).within(self.emitter.tape);
                if stride != Number::Known(1) {
                    let stride = self.emitter.number(&stride);
                    let b = &self.emitter.builder;
                    value = b.div(value, b.bitcast(stride, self.unsigned()));
                }
                if *axis > 0 {
                    let extent = self.emitter.number(&Number::Extent(*shape, *axis));
                    let b = &self.emitter.builder;
                    value = b.rem(value, b.bitcast(extent, self.unsigned()));
                }
                self.emitter.builder.bitcast(value, self.emitter.index)
            }
            Index::Data(item) => {
                let value = self.values[*item as usize];
                self.emitter.builder.convert(value, self.emitter.index)
            }
            Index::Part { base, offset, .. } => {
                let base = self.index(*base);
                self.emitter.affine(base, &Number::Known(1), offset)
            }
        };
        self.indices.insert(id, value);
        value
    }

    /// Returns whether an index is at most one extent before or behind a position along the axis of that
    /// extent.
    fn is_near(&self, base: IndexId, extent: &Number) -> bool {
        let (Some(domain), Index::Affine { axis: Some(axis), stride: Number::Known(1), offset: Number::Known(offset) }) =
            (self.trace.domain, &self.trace.indices[base as usize])
        else {
            return false;
        };
        let least = self.emitter.tape.shapes[domain as usize].least(usize::from(*axis));
        *extent == Number::Extent(domain, *axis) && offset.unsigned_abs() < least
    }

    fn unsigned(&self) -> Type {
        if self.emitter.index == Type::I64 { Type::U64 } else { Type::U32 }
    }

    /// Emits an index before its rule, in a type that holds all its values: elements of index arrays can be
    /// anything.
    pub(super) fn unbounded(&mut self, id: IndexId) -> (Value, Type) {
        let Index::Data(item) = self.trace.indices[id as usize] else { return (self.index(id), self.emitter.index) };
        let value = self.values[item as usize];
        let b = &self.emitter.builder;
        match b.type_of(value).element() {
            Element::I8 | Element::I16 | Element::U8 | Element::U16 | Element::I32 => {
                (b.convert(value, self.emitter.index), self.emitter.index)
            }
            // Outside of all extents, before or behind.
            Element::U64 => (b.convert(b.min(value, i64::MAX), Type::I64), Type::I64),
            _ => (b.convert(value, Type::I64), Type::I64),
        }
    }

    /// Emits an element of an index array of `u64`, which has values that no signed type holds.
    fn unsigned_data(&mut self, id: IndexId) -> Option<(Value, Type)> {
        let Index::Data(item) = self.trace.indices[id as usize] else { return None };
        let value = self.values[item as usize];
        (self.emitter.builder.type_of(value) == Type::U64).then_some((value, Type::U64))
    }

    pub(super) fn extent(&mut self, extent: &Number, ty: Type) -> Value {
        let value = self.emitter.number(extent);
        self.emitter.builder.convert(value, ty)
    }

    /// Emits an extent to divide by. An extent that only the device knows may be 0. Indices are within its
    /// memory even then.
    pub(super) fn least_extent(&mut self, extent: &Number, ty: Type) -> Value {
        let value = self.extent(extent, ty);
        if extent.is_on_device() { self.emitter.builder.max(value, 1) } else { value }
    }

    /// Returns whether an index lies within an extent.
    pub(super) fn inside(&mut self, id: IndexId, extent: &Number) -> Value {
        let (value, ty) = self.unbounded(id);
        let extent = self.extent(extent, ty);
        let b = &self.emitter.builder;
        let unsigned = if ty == Type::I64 { Type::U64 } else { Type::U32 };
        // A negative index is a very large unsigned number.
        b.lt(b.bitcast(value, unsigned), b.bitcast(extent, unsigned))
    }

    /// Returns an index. An index in a part of a concatenation is affine if possible.
    fn affine_index(&self, index: IndexId) -> Index {
        match &self.trace.indices[index as usize] {
            Index::Part { base, offset, .. } => match &self.trace.indices[*base as usize] {
                Index::Affine { axis, stride, offset: first } => {
                    Index::Affine { axis: *axis, stride: stride.clone(), offset: Number::sum(first, offset) }
                }
                other => other.clone(),
            },
            other => other.clone(),
        }
    }

    /// Returns whether an index is the thread's own plus a number other than 0.
    fn is_moved(&self, index: IndexId) -> bool {
        match self.affine_index(index) {
            Index::Affine { axis: Some(_), stride: Number::Known(1), offset } => offset != Number::Known(0),
            _ => false,
        }
    }

    /// Returns an index times a factor as a sum of terms, each with its factor, and the constant that is
    /// added.
    fn pieces(&self, index: IndexId, times: &Number, axis: usize, found: &mut Vec<(usize, IndexId, Number)>) -> Number {
        match &self.trace.indices[index as usize] {
            Index::Plus(a, b, factor) => {
                found.push((axis, *a, times.clone()));
                found.push((axis, *b, Number::product(times, &Number::Known(*factor))));
                Number::Known(0)
            }
            Index::Joined { high, low, extent } => {
                let high = self.pieces(*high, &Number::product(times, extent), axis, found);
                Number::sum(&high, &self.pieces(*low, times, axis, found))
            }
            Index::Scaled { base, stride, offset } if !matches!(self.trace.indices[*base as usize], Index::Data(_)) => {
                let constant = self.pieces(*base, &Number::product(times, stride), axis, found);
                Number::sum(&constant, &Number::product(times, offset))
            }
            _ => {
                found.push((axis, index, times.clone()));
                Number::Known(0)
            }
        }
    }

    /// Returns the distance of an index from the thread's own along the last axis, if it is known.
    fn own_offset(&self, index: IndexId) -> Option<i64> {
        match self.affine_index(index) {
            Index::Affine { axis: Some(axis), stride: Number::Known(1), offset: Number::Known(offset) }
                if usize::from(axis) + 1 == self.emitter.position.len() =>
            {
                Some(offset)
            }
            _ => None,
        }
    }

    /// Emits a read of a chain, at a row and a column. The offset of a column is added in 64 bits, where it
    /// is known not to wrap. The last index of a column under a boundary rule is its distance from the
    /// thread's own before the rule; else it is the column.
    pub(super) fn staged(&mut self, accessor: Accessor, indices: &[IndexId]) -> Value {
        let (Some(row), Some(last)) = (indices.len().checked_sub(2).map(|row| indices[row]), indices.last()) else {
            return self.emitter.builder.fail("a place without rows");
        };
        let row = self.index(row);
        if let Some(offset) = self.own_offset(*last) {
            let b = &self.emitter.builder;
            let base = b.convert(self.emitter.position[self.emitter.position.len() - 1], Type::I64);
            let column = if offset == 0 { base } else { b.add(base, offset) };
            return b.read(accessor, &[row.into(), column.into(), column.into()]);
        }
        let far = match &self.trace.indices[*last as usize] {
            Index::Clamp(base, extent) | Index::Mirror(base, extent) => {
                let domain = self.trace.domain.map(|domain| Number::Extent(domain, (self.emitter.position.len() - 1) as u8));
                self.own_offset(*base)
                    .filter(|offset| Some(extent) == domain.as_ref() && offset.unsigned_abs() < cost::LANES.into())
            }
            _ => None,
        };
        let column = self.index(*last);
        let b = &self.emitter.builder;
        let column = b.convert(column, Type::I64);
        let far = far.map_or(column, |offset| b.literal(offset));
        b.read(accessor, &[row.into(), column.into(), far.into()])
    }

    /// Emits the address of an element in memory. Terms that depend on the thread's position come first, so
    /// that neighbours share them. The offset along the last axis comes last, so that it can be part of the
    /// access.
    pub(super) fn linear(&mut self, node: Id, place: &ElementIndex) -> Value {
        let indices = match place {
            ElementIndex::Linear(index) => return self.index(*index),
            ElementIndex::Axes(indices) if indices.len() == 1 && !self.is_moved(indices[0]) => return self.index(indices[0]),
            ElementIndex::Axes(indices) => indices.clone(),
        };
        let (mut terms, rest, last) = self.terms(node, &indices);
        let is_near = matches!(last, Number::Known(offset) if offset != 0 && offset.abs() < NEAR);
        let (rest, last) = if is_near { (rest, Some(last)) } else { (Number::sum(&rest, &last), None) };
        if rest != Number::Known(0) {
            terms.push(self.emitter.number(&rest));
        }
        let last = last.map(|last| self.emitter.number(&last));
        // Vectors of gathers hold more indices of fewer bits.
        let is_apart = self.emitter.along.is_some_and(|axis| self.trace.is_apart(&indices, axis));
        let is_anywhere = is_apart || indices.iter().any(|index| self.trace.is_anywhere(*index));
        let ty = if is_anywhere { self.emitter.index } else { self.emitter.sum };
        let b = &self.emitter.builder;
        let sum = terms.into_iter().map(|term| b.convert(term, ty)).reduce(|sum, term| b.add(sum, term));
        match (sum, last) {
            // In 64 bits the sum is known not to wrap, so that the addition can be part of the access.
            (Some(sum), Some(last)) => b.add(b.convert(sum, Type::I64), b.convert(last, Type::I64)),
            (Some(number), None) | (None, Some(number)) => number,
            (None, None) => self.emitter.number(&Number::Known(0)),
        }
    }

    /// Emits the value of an element that is read together with its neighbours in a group of columns.
    pub(super) fn wide(&mut self, node: Id, indices: &[IndexId], group: i64, lane: usize) -> Value {
        let key = (node, SmallVec::from_slice(&indices[..indices.len() - 1]), group);
        let loaded = match self.groups.get(&key) {
            Some(known) => *known,
            None => {
                let accessor = self.emitter.wide_input(node);
                let (mut terms, rest, _) = self.terms(node, indices);
                if rest != Number::Known(0) {
                    terms.push(self.emitter.number(&rest));
                }
                let columns = self.emitter.columns;
                let b = &self.emitter.builder;
                // Rows, and the columns of a thread, start at multiples of the columns.
                let sum = terms.into_iter().reduce(|sum, term| b.add(sum, term)).unwrap_or_else(|| b.literal(0i32));
                let number = b.convert(b.shr(sum, columns.ilog2()), Type::I64);
                let number = if group == 0 { number } else { b.add(number, group) };
                let loaded = b.read(accessor, &[number.into()]);
                self.groups.insert(key, loaded);
                loaded
            }
        };
        self.emitter.builder.lane(loaded, lane)
    }

    /// Returns the terms of an address that depend on the position, the number that is added to them, and the
    /// offset along the last axis.
    fn terms(&mut self, node: Id, indices: &[IndexId]) -> (SmallVec<[Value; 4]>, Number, Number) {
        let (shape, rank) = (self.emitter.tape.entry(node).shape, indices.len());
        let mut terms: SmallVec<[Value; 4]> = SmallVec::new();
        let mut rest = Number::Known(0);
        let mut last = Number::Known(0);
        let mut pieces = vec![];
        for (axis, index) in indices.iter().enumerate() {
            let constant = self.pieces(*index, &Number::Known(1), axis, &mut pieces);
            rest = Number::sum(&rest, &Number::product(&constant, &Number::stride(shape, axis, rank)));
        }
        for (axis, index, times) in pieces {
            let stride = Number::product(&times, &Number::stride(shape, axis, rank));
            let term = match &self.affine_index(index) {
                Index::Affine { axis: from, stride: s, offset } => {
                    if axis + 1 == rank && matches!((&times, offset), (Number::Known(_), Number::Known(_))) {
                        last = Number::sum(&last, &Number::product(&times, offset));
                    } else {
                        rest = Number::sum(&rest, &Number::product(offset, &stride));
                    }
                    let Some(from) = from else { continue };
                    let base = self.emitter.position[usize::from(*from)];
                    match s {
                        Number::Known(-1) => {
                            let negative = self.emitter.builder.neg(base);
                            self.emitter.affine(negative, &stride, &Number::Known(0))
                        }
                        s => self.emitter.affine(base, &Number::product(s, &stride), &Number::Known(0)),
                    }
                }
                _ => {
                    let value = self.index(index);
                    self.emitter.affine(value, &stride, &Number::Known(0))
                }
            };
            terms.push(term);
        }
        (terms, rest, last)
    }
}
