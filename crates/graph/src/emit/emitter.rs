//! Emission of scalar code for traces.
//!
//! A fused kernel is a function from the position of a thread to its results. Where boundary rules can be
//! omitted in the interior, the function has two parts: one for positions whose indices all lie inside, and
//! one for the rest. The bounds of the interior are scalars that the host computes.

use super::code::{Code, KernelScalar};
use super::fused::FusedTraces;
use crate::emit::trace::{ElementIndex, Index, IndexId, Item, SelectionBranch, Trace};
use crate::expr::elementwise::{Elementwise, emit};
use crate::expr::error::{Error, Result};
use crate::hash::QuickMap;
use crate::tape::entries::{Id, Kind, Tape};
use crate::tape::number::Number;
use broadloom_scalar::{Accessor, AccessorKind, Builder, Function, Lanes, Literal, Shuffle, Type, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Emitter of the function of a kernel.
pub(super) struct Emitter<'t> {
    pub(super) tape: &'t Tape,
    pub(super) builder: Builder,
    pub(super) index: Type,
    /// The type in which the parts of a place in memory are added.
    pub(super) sum: Type,
    /// True if the executor runs threads side by side in vectors.
    pub(super) vectors: bool,
    /// The axis along which threads side by side have positions, if it is known.
    pub(super) along: Option<u8>,
    pub(super) position: Vec<Value>,
    /// The values that the preceding pattern passes.
    pub(super) given: Vec<Value>,
    /// Items of a trace that are these values, by number.
    pub(super) replaced: Vec<u32>,
    pub(super) scalars: Vec<(KernelScalar, Value)>,
    pub(super) inputs: Vec<(Id, Accessor)>,
    pub(super) aligned: Vec<bool>,
    /// Lengths that were read, by the nodes that hold them.
    pub(super) lengths: Vec<(Id, Value)>,
    /// Words that are written, among the inputs.
    pub(super) traps: Vec<(Id, Accessor)>,
    /// Nodes that a chain reads at a row and a column.
    pub(super) staged: &'t [bool],
    /// Columns that are read together.
    pub(super) columns: u32,
    /// Inputs of which several columns are read together.
    pub(super) wide: Vec<(Id, Accessor)>,
}

/// Offsets below this one are added to an address last: addresses stay further from the ends of 32 bits than
/// that.
pub(super) const NEAR: i64 = 1 << 23;

/// The values of one trace.
pub(super) struct TraceEmitter<'e, 't, 'k> {
    pub(super) emitter: &'e mut Emitter<'t>,
    pub(super) trace: &'k Trace<'k>,
    pub(super) values: Vec<Value>,
    pub(super) indices: QuickMap<IndexId, Value>,
    pub(super) calls: QuickMap<(Function, SmallVec<[u32; 3]>), Vec<Value>>,
    /// Groups of columns that were read together, by node, other indices and number.
    pub(super) groups: QuickMap<(Id, SmallVec<[IndexId; 4]>, i64), Value>,
    pub(super) line: bool,
}

impl Emitter<'_> {
    pub(super) fn code(self, results: &[Value], axes: usize, cost: u64, interior: bool) -> Result<Code> {
        Ok(Code {
            function: self.builder.finish_function(results)?,
            inputs: self.inputs.iter().map(|(id, _)| *id).collect(),
            scalars: self.scalars.into_iter().map(|(given, _)| given).collect(),
            axes,
            cost,
            aligned: self.aligned,
            interior,
        })
    }

    /// Reads a length, before any branch.
    pub(super) fn read_length(&mut self, length: Id) {
        if self.lengths.iter().any(|(known, _)| *known == length) {
            return;
        }
        let (input, accessor) = self.input(length);
        self.aligned[input] = false;
        let zero = self.builder.literal(Literal::zero(self.index.element()));
        let value = self.builder.read(accessor, &[zero.into()]);
        let value = self.builder.convert(value, self.index);
        self.lengths.push((length, value));
    }

    pub(super) fn results(&mut self, fused: &FusedTraces<'_>) -> Result<Vec<Value>> {
        match &fused.everywhere {
            None => self.half(&fused.interior, &fused.roots, &fused.traps, fused.line),
            Some(everywhere) => self.halves(fused, everywhere),
        }
    }

    /// Emits the results at positions within the length, and the given values at other positions, where
    /// nothing is computed.
    pub(super) fn present(&mut self, fused: &FusedTraces<'_>, absent: &[Lanes]) -> Result<Vec<Value>> {
        let Some((length, each)) = &fused.length else { return self.results(fused) };
        let limit = self.number(&Number::product(&Number::Length(*length), each));
        let position = self.position[0];
        self.builder.begin_if(self.builder.lt(position, limit));
        let results = self.results(fused)?;
        let variables: Vec<_> = results.iter().map(|value| self.builder.variable(self.builder.type_of(*value))).collect();
        variables.iter().zip(&results).for_each(|(variable, value)| self.builder.set(*variable, *value));
        self.builder.begin_else();
        for (variable, lanes) in variables.iter().zip(absent) {
            let lanes: Vec<Value> = lanes.iter().map(|lane| self.builder.literal(*lane)).collect();
            self.builder.set(*variable, self.builder.vector(&lanes));
        }
        self.builder.end_if();
        Ok(variables.iter().map(|variable| self.builder.get(*variable)).collect())
    }

    /// Emits the values of roots. The last of them are the conditions of traps.
    pub(super) fn half(&mut self, trace: &Trace<'_>, roots: &[u32], traps: &[Id], line: bool) -> Result<Vec<Value>> {
        let mut half = TraceEmitter::new(self, trace, line);
        half.items(roots)?;
        let mut values: Vec<Value> = roots.iter().map(|root| half.values[*root as usize]).collect();
        let conditions = values.split_off(roots.len() - traps.len());
        traps.iter().zip(conditions).for_each(|(word, condition)| self.trap(*word, condition));
        Ok(values)
    }

    /// Emits the store of a word if a condition is true.
    pub(super) fn trap(&mut self, word: Id, condition: Value) {
        let accessor = match self.traps.iter().find(|(known, _)| *known == word) {
            Some((_, accessor)) => *accessor,
            None => {
                let accessor = self.builder.accessor("trap", AccessorKind::Output, self.tape.entry(word).ty, 1);
                self.traps.push((word, accessor));
                self.inputs.push((word, accessor));
                self.aligned.push(false);
                accessor
            }
        };
        let b = &self.builder;
        b.begin_if(condition);
        let first = b.literal(Literal::zero(self.index.element()));
        b.write(accessor, &[first.into()], b.literal(1u32));
        b.end_if();
    }

    pub(super) fn halves(&mut self, fused: &FusedTraces<'_>, everywhere: &Trace<'_>) -> Result<Vec<Value>> {
        let conditions = Arc::new(fused.interior.conditions.clone());
        let mut inside: Option<Value> = None;
        for axis in 0..self.position.len() {
            if !conditions.iter().any(|condition| usize::from(condition.axis) == axis) {
                continue;
            }
            let first = self.scalar(KernelScalar::First(axis as u8, conditions.clone()), self.index);
            let end = self.scalar(KernelScalar::End(axis as u8, conditions.clone()), self.index);
            let b = &self.builder;
            let both = b.and(b.ge(self.position[axis], first), b.lt(self.position[axis], end));
            inside = Some(inside.map_or(both, |inside| b.and(inside, both)));
        }
        let inside = inside.unwrap_or_else(|| self.builder.literal(true));
        self.builder.begin_if(inside);
        let results = self.half(&fused.interior, &fused.roots, &fused.traps, fused.line)?;
        let variables: Vec<_> = results.iter().map(|value| self.builder.variable(self.builder.type_of(*value))).collect();
        variables.iter().zip(&results).for_each(|(variable, value)| self.builder.set(*variable, *value));
        self.builder.begin_else();
        let results = self.half(everywhere, &fused.roots_everywhere, &fused.traps, fused.line)?;
        variables.iter().zip(&results).for_each(|(variable, value)| self.builder.set(*variable, *value));
        self.builder.end_if();
        Ok(variables.iter().map(|variable| self.builder.get(*variable)).collect())
    }

    pub(super) fn scalar(&mut self, given: KernelScalar, ty: Type) -> Value {
        if let Some((_, value)) = self.scalars.iter().find(|(known, _)| *known == given) {
            return *value;
        }
        let value = self.builder.parameter("s", ty);
        self.scalars.push((given, value));
        value
    }

    pub(super) fn number(&mut self, number: &Number) -> Value {
        match &number.within(self.tape) {
            Number::Known(value) => self.builder.literal(Literal::from_i128(self.index.element(), (*value).into())),
            Number::Length(length) => match self.lengths.iter().find(|(known, _)| known == length) {
                Some((_, value)) => *value,
                None => self.builder.fail("a length that was not read"),
            },
            Number::Sum(pair) if pair.0.is_on_device() || pair.1.is_on_device() => {
                let (a, b) = (self.number(&pair.0), self.number(&pair.1));
                self.builder.add(a, b)
            }
            Number::Product(pair) if pair.0.is_on_device() || pair.1.is_on_device() => {
                let (a, b) = (self.number(&pair.0), self.number(&pair.1));
                self.builder.mul(a, b)
            }
            other => self.scalar(KernelScalar::Number(other.clone()), self.index),
        }
    }

    pub(super) fn is_staged(&self, node: Id) -> bool {
        self.staged.get(node as usize).copied().unwrap_or(false)
    }

    pub(super) fn input(&mut self, node: Id) -> (usize, Accessor) {
        let is_read = |id: Id, accessor: Accessor| {
            id == node && !self.traps.contains(&(id, accessor)) && !self.wide.contains(&(id, accessor))
        };
        if let Some(known) = self.inputs.iter().position(|(id, accessor)| is_read(*id, *accessor)) {
            return (known, self.inputs[known].1);
        }
        let rank = if self.is_staged(node) { 3 } else { 1 };
        let accessor = self.builder.accessor("x", AccessorKind::Input, self.tape.entry(node).ty, rank);
        self.inputs.push((node, accessor));
        self.aligned.push(true);
        (self.inputs.len() - 1, accessor)
    }

    /// Returns an input that is read in groups of columns.
    pub(super) fn wide_input(&mut self, node: Id) -> Accessor {
        if let Some((_, known)) = self.wide.iter().find(|(id, _)| *id == node) {
            return *known;
        }
        let ty = self.tape.entry(node).ty;
        let ty = Type::vector(ty.element(), self.columns as usize).unwrap_or(ty);
        let accessor = self.builder.accessor("x", AccessorKind::Input, ty, 1);
        self.inputs.push((node, accessor));
        self.aligned.push(false);
        self.wide.push((node, accessor));
        accessor
    }

    /// Emits `base * stride + offset`, without operations that change nothing.
    pub(super) fn affine(&mut self, base: Value, stride: &Number, offset: &Number) -> Value {
        let scaled = match &stride.within(self.tape) {
            Number::Known(0) => return self.number(offset),
            Number::Known(1) => base,
            Number::Known(-1) => {
                let offset = self.number(offset);
                return self.builder.sub(offset, base);
            }
            stride => {
                let stride = self.number(stride);
                self.builder.mul(base, stride)
            }
        };
        match offset {
            Number::Known(0) => scaled,
            offset => {
                let offset = self.number(offset);
                self.builder.add(scaled, offset)
            }
        }
    }

    /// Returns a type for numbers that may need more than 32 bits.
    pub(super) fn wide(&self) -> Type {
        if self.vectors { Type::F64 } else { Type::I64 }
    }

    /// Emits a number modulo a positive one. Vector units do not divide integers, so numbers of 32 bits are
    /// divided as floats there, which hold them exactly.
    pub(super) fn modulo(&self, value: Value, by: Value) -> Value {
        let b = &self.builder;
        let ty = b.type_of(value);
        match ty {
            Type::I32 if self.vectors => b.convert(self.modulo(b.convert(value, Type::F64), b.convert(by, Type::F64)), ty),
            Type::F64 => b.sub(value, b.mul(b.floor(b.div(value, by)), by)),
            _ => {
                let rest = b.rem(value, by);
                if ty.element().is_signed() { b.select(b.lt(rest, 0), b.add(rest, by), rest) } else { rest }
            }
        }
    }

    pub(super) fn fill(&mut self, slot: u32, ty: Type) -> Value {
        if let Some((_, literal)) = self.tape.literals.iter().find(|(own, _)| *own == slot) {
            return self.builder.literal(*literal);
        }
        let lanes: Vec<Value> =
            (0..ty.lanes()).map(|lane| self.scalar(KernelScalar::Lane(slot, lane as u8), Type::of(ty.element()))).collect();
        self.builder.vector(&lanes)
    }
}

impl<'e, 't, 'k> TraceEmitter<'e, 't, 'k> {
    pub(super) fn new(emitter: &'e mut Emitter<'t>, trace: &'k Trace<'k>, line: bool) -> TraceEmitter<'e, 't, 'k> {
        // A placeholder: items are read only after they are computed.
        let nothing = emitter.builder.literal(false);
        let values = vec![nothing; trace.items.len()];
        TraceEmitter {
            emitter,
            trace,
            values,
            indices: QuickMap::default(),
            calls: QuickMap::default(),
            groups: QuickMap::default(),
            line,
        }
    }
}

impl TraceEmitter<'_, '_, '_> {
    /// Emits all items that are needed, each in the outermost branch that needs it.
    pub(super) fn items(&mut self, roots: &[u32]) -> Result<()> {
        // A fill or a position has the type of its node.
        let types = self.trace.types();
        let mut scopes: HashMap<Vec<SelectionBranch>, Vec<usize>> = HashMap::new();
        for (number, side) in self.trace.sides(roots).into_iter().enumerate() {
            if let Some(side) = side {
                scopes.entry(side).or_default().push(number);
            }
        }
        self.scope(&[], &scopes, &types)
    }

    /// Emits the items of one branch of a selection, or those outside of all branches.
    pub(super) fn scope(
        &mut self,
        side: &[SelectionBranch],
        scopes: &HashMap<Vec<SelectionBranch>, Vec<usize>>,
        types: &[Type],
    ) -> Result<()> {
        let Some(own) = scopes.get(side) else { return Ok(()) };
        for number in own {
            let value = match &self.trace.items[*number] {
                Item::Before { index, limit, first, second } => {
                    let (index, limit) = (self.index(*index), self.emitter.number(limit));
                    let b = &self.emitter.builder;
                    let result = b.variable(types[*number]);
                    b.begin_if(b.lt(index, limit));
                    self.branch(side, (*number as u32, true), scopes, types)?;
                    self.emitter.builder.set(result, self.values[*first as usize]);
                    self.emitter.builder.begin_else();
                    self.branch(side, (*number as u32, false), scopes, types)?;
                    self.emitter.builder.set(result, self.values[*second as usize]);
                    self.emitter.builder.end_if();
                    self.emitter.builder.get(result)
                }
                item => self.item(*number, item, types)?,
            };
            self.values[*number] = value;
        }
        Ok(())
    }

    /// Emits a branch of a selection. Values that are computed in it are not available outside.
    pub(super) fn branch(
        &mut self,
        outside: &[SelectionBranch],
        side: SelectionBranch,
        scopes: &HashMap<Vec<SelectionBranch>, Vec<usize>>,
        types: &[Type],
    ) -> Result<()> {
        let (indices, calls) = (self.indices.clone(), self.calls.clone());
        let side: Vec<SelectionBranch> = outside.iter().copied().chain([side]).collect();
        self.scope(&side, scopes, types)?;
        (self.indices, self.calls) = (indices, calls);
        Ok(())
    }

    pub(super) fn item(&mut self, number: usize, item: &Item, types: &[Type]) -> Result<Value> {
        if let Some(given) = self.emitter.replaced.iter().position(|replaced| *replaced as usize == number) {
            return Ok(self.emitter.given[given]);
        }
        let trace = self.trace;
        Ok(match item {
            Item::Fill(slot) => self.emitter.fill(*slot, types[number]),
            Item::Position(index) => {
                let value = self.index(*index);
                self.emitter.builder.convert(value, types[number].element())
            }
            Item::Read { node, place } => {
                if let Some((group, lane)) = trace.column_group(*node, place, self.emitter.columns)
                    && let ElementIndex::Axes(indices) = place
                {
                    return Ok(self.wide(*node, indices, group, lane));
                }
                let (input, accessor) = self.emitter.input(*node);
                if let ElementIndex::Axes(indices) = place
                    && self.emitter.is_staged(*node)
                {
                    return Ok(self.staged(accessor, indices));
                }
                let aligned = match place {
                    ElementIndex::Linear(index) => self.line && trace.indices[*index as usize] == Index::of_axis(0),
                    ElementIndex::Axes(indices) => {
                        indices.len() == self.emitter.position.len()
                            && indices.iter().enumerate().all(|(a, index)| trace.indices[*index as usize] == Index::of_axis(a))
                    }
                };
                self.emitter.aligned[input] &= aligned;
                let index = self.linear(*node, place);
                let extents = trace.device_extents(place);
                self.read_of_some(&extents, types[number], |b| b.read(accessor, &[index.into()]))
            }
            Item::Apply(node, inputs) => self.apply(*node, inputs)?,
            Item::Guard { inside, item, fill } => {
                let mut all: Option<Value> = None;
                for (index, extent) in inside {
                    let one = self.inside(*index, extent);
                    all = Some(all.map_or(one, |all| self.emitter.builder.and(all, one)));
                }
                let fill = self.emitter.fill(*fill, types[number]);
                let value = self.values[*item as usize];
                match all {
                    Some(all) => self.emitter.builder.select(all, value, fill),
                    None => value,
                }
            }
            Item::Given(value, _) => match self.emitter.given.get(usize::from(*value)) {
                Some(value) => self.emitter.builder.convert(*value, types[number].element()),
                None => self.emitter.builder.fail("a value that nothing gives"),
            },
            Item::Shift { item, by } => {
                let (kind, lanes) = if *by < 0 { (Shuffle::Up, -by) } else { (Shuffle::Down, *by) };
                self.emitter.builder.shuffle(kind, self.values[*item as usize], lanes)
            }
            // Computed in its branch only, see `scope`.
            Item::Before { .. } => self.emitter.builder.fail("a choice"),
        })
    }

    /// Emits a value that is read if no extent is 0, else zero: an index that is clamped to an extent is 0 in
    /// an array without elements.
    pub(super) fn read_of_some(&mut self, extents: &[Number], ty: Type, read: impl FnOnce(&Builder) -> Value) -> Value {
        let mut has_any: Option<Value> = None;
        for extent in extents {
            let extent = self.emitter.number(extent);
            let one = self.emitter.builder.ne(extent, 0);
            has_any = Some(has_any.map_or(one, |all| self.emitter.builder.and(all, one)));
        }
        let b = &self.emitter.builder;
        let Some(has_any) = has_any else { return read(b) };
        let result = b.variable(ty);
        b.begin_if(has_any);
        b.set(result, read(b));
        b.end_if();
        b.get(result)
    }

    pub(super) fn apply(&mut self, node: Id, inputs: &SmallVec<[u32; 3]>) -> Result<Value> {
        let Kind::Elementwise(op) = &self.emitter.tape.entry(node).kind else {
            return Err(Error::Plan { what: "a kernel".into(), reason: format!("node {node} is no operation on elements") });
        };
        let values: SmallVec<[Value; 4]> = inputs.iter().map(|input| self.values[*input as usize]).collect();
        let Elementwise::Call(function, result) = op else { return Ok(emit(&self.emitter.builder, op, &values)) };
        // One call gives all results.
        let builder = &self.emitter.builder;
        let results =
            self.calls.entry((function.clone(), inputs.clone())).or_insert_with(|| builder.inline(function, &values, &mut []));
        Ok(results.get(usize::from(*result)).copied().unwrap_or_else(|| builder.fail("a function without that result")))
    }
}
