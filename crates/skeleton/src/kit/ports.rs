//! Sources and sinks within a program: code that reads inputs and writes outputs at a position.

use super::Writer;
use super::writer::DelayedTrap;
use crate::Source;
use crate::program::Argument;
use crate::source::SinkFunction;
use broadloom_scalar::{
    AccessorDecl, AccessorKind, Binding, Cache, Id, Level, Literal, Memory, Op, Order, Scope, Type, Value, reading, writing,
};
use std::cell::RefCell;

/// A [`Source`] within a program: writes the code that computes its values at a position.
#[derive(Clone, Debug)]
pub struct Inlet {
    pub(super) source: Source,
    pub(super) first_input: usize,
    pub(super) first_scalar: usize,
}

/// A [`Sink`](crate::Sink) within a program: writes the code that stores values at a position.
#[derive(Clone, Debug)]
pub struct Outlet {
    pub(super) written: Option<SinkFunction>,
    /// The types of the values that are stored at the position.
    pub(crate) stored: Vec<Type>,
    pub(super) first_output: usize,
    pub(super) first_input: usize,
    pub(super) first_scalar: usize,
}

/// Bytes of a line of a cache.
const LINE: u32 = 64;

/// Returns whether an accessor of a source is a trap.
fn is_trap(accessor: &AccessorDecl) -> bool {
    accessor.kind == AccessorKind::Output
}

impl Inlet {
    /// Returns the arguments of its inputs, traps among them.
    pub fn inputs(&self) -> Vec<Argument> {
        (0..self.source.inputs().len()).map(|index| Argument::Input(self.first_input + index)).collect()
    }

    /// Returns the arguments of its scalars.
    pub fn scalars(&self) -> Vec<Argument> {
        (0..self.source.scalars().len()).map(|index| Argument::Scalar(self.first_scalar + index)).collect()
    }

    /// Returns for each input whether it is read at the position itself and can be loaded for several
    /// neighbours at once.
    fn side_by_side(&self) -> Vec<bool> {
        self.source.contiguous().iter().zip(self.source.inputs()).map(|(found, ty)| *found && ty.is_scalar()).collect()
    }

    /// Returns whether all inputs are read at the position itself, so that [`Inlet::row`] loads everything.
    pub fn reads_rows(&self) -> bool {
        self.side_by_side().into_iter().zip(self.source.function().accessors()).all(|(read, own)| read || is_trap(own))
    }

    /// Returns the addresses of inputs that [`Inlet::row`] reads; all must be multiples of 16.
    pub fn row_addresses(&self, k: &Writer) -> Vec<Value> {
        let read = self.side_by_side().into_iter().enumerate().filter(|(_, read)| *read);
        read.map(|(index, _)| k.address(self.input(k, index))).collect()
    }

    /// Loads `width` neighbours on a line of each input that is read at the position itself.
    pub fn row(&self, k: &Writer, start: Value, width: usize) -> Vec<Option<Value>> {
        let load = |(index, read): (usize, bool)| read.then(|| k.load_vector(self.input(k, index), start, width));
        self.side_by_side().into_iter().enumerate().map(load).collect()
    }

    /// Returns the memory of an input.
    pub fn input(&self, k: &Writer, index: usize) -> Memory {
        k.memory(Argument::Input(self.first_input + index), self.source.inputs()[index].element())
    }

    /// Computes the values at a position.
    pub fn at(&self, k: &Writer, position: &[Value]) -> Vec<Value> {
        self.at_with(k, position, &|_| None)
    }

    /// Computes the values at a position from inputs that no thread writes while the kernel runs.
    pub fn at_unwritten(&self, k: &Writer, position: &[Value]) -> Vec<Value> {
        let read = |index: usize, ty: Type, at: Value| {
            let at = if ty.is_scalar() { at } else { k.first_lane(at, ty.lanes()) };
            k.load_as(self.input(k, index), at, ty.lanes(), Order::Weak, Cache::ReadOnly)
        };
        self.reading(k, position, &[], &read, true)
    }

    /// Returns the addresses of inputs whose elements have several lanes.
    pub fn wide_addresses(&self, k: &Writer) -> Vec<Value> {
        let types = self.source.inputs();
        (0..types.len()).filter(|index| !types[*index].is_scalar()).map(|index| k.address(self.input(k, index))).collect()
    }

    /// Computes the values at a position with values that come with it.
    pub fn at_given(&self, k: &Writer, position: &[Value], given: &[Value]) -> Vec<Value> {
        let read = |index: usize, ty: Type, at: Value| k.load_element(self.input(k, index), ty, at);
        self.reading(k, position, given, &read, true)
    }

    /// Computes the values at a position where the elements of some inputs at the position itself are loaded
    /// already.
    pub fn at_with(&self, k: &Writer, position: &[Value], read: &dyn Fn(usize) -> Option<Value>) -> Vec<Value> {
        let own = k.positions(position, self.source.index()).last().copied();
        let read = |index: usize, ty: Type, at: Value| match read(index) {
            Some(value) if Some(at) == own => value,
            _ => k.load_element(self.input(k, index), ty, at),
        };
        self.reading(k, position, &[], &read, true)
    }

    /// Runs code that computes the values at several positions. Traps are written once, behind all of it:
    /// loads of later positions need not wait for stores of earlier ones.
    pub fn together<R>(&self, k: &Writer, positions: impl FnOnce() -> R) -> R {
        let traps = self.source.function().accessors().iter().enumerate().filter(|(_, accessor)| is_trap(accessor));
        let traps: Vec<DelayedTrap> = traps
            .map(|(index, _)| DelayedTrap {
                input: self.first_input + index,
                is_set: k.variable_with(k.literal(false)),
                written: None,
            })
            .collect();
        let others = k.delayed.replace(traps);
        let result = positions();
        for DelayedTrap { input, is_set, written } in k.delayed.replace(others) {
            if let Some((place, value)) = written {
                k.if_then(k.get(is_set), || self.write_trap(k, input - self.first_input, k.literal(place), k.literal(value)));
            }
        }
        result
    }

    fn write_trap(&self, k: &Writer, index: usize, place: Value, value: Value) {
        k.store_as(self.input(k, index), place, value, Order::Relaxed(Scope::Device), Cache::Normal);
    }

    /// Writes a trap, or notes that it is written later. Writes of other values, or to other places, than the
    /// first are not delayed.
    fn trap(&self, k: &Writer, index: usize, place: Value, value: Value) {
        let write = k.as_literal(place).zip(k.as_literal(value));
        let mut delayed = k.delayed.borrow_mut();
        let own = delayed.iter_mut().find(|delayed| delayed.input == self.first_input + index);
        match own.filter(|own| write.is_some() && (own.written.is_none() || own.written == write)) {
            Some(own) => {
                own.written = write;
                k.set(own.is_set, k.literal(true));
            }
            None => self.write_trap(k, index, place, value),
        }
    }

    /// Computes the values at neighbouring positions along the last axis. Each of some inputs is read once at a
    /// position, at neighbouring elements, which are loaded together.
    pub fn at_neighbours(&self, k: &Writer, positions: &[Vec<Value>], together: &[bool]) -> Vec<Vec<Value>> {
        let rows: RefCell<Vec<Option<Value>>> = RefCell::new(vec![None; together.len()]);
        let at = |(number, position): (usize, &Vec<Value>)| {
            let read = |index: usize, ty: Type, at: Value| {
                if !together[index] {
                    return k.load_element(self.input(k, index), ty, at);
                }
                let known = rows.borrow()[index];
                let row = known.unwrap_or_else(|| k.load_vector(self.input(k, index), at, positions.len()));
                rows.borrow_mut()[index] = Some(row);
                k.lane(row, number)
            };
            self.reading(k, position, &[], &read, true)
        };
        positions.iter().enumerate().map(at).collect()
    }

    /// Prefetches what the values at a position are computed from.
    pub fn prefetch(&self, k: &Writer, position: &[Value], level: Level) {
        let read = |index: usize, ty: Type, at: Value| {
            k.prefetch(self.input(k, index), k.first_lane(at, ty.lanes()), level);
            k.spread(Literal::zero(ty.element()), ty)
        };
        self.reading(k, position, &[], &read, false);
    }

    /// Prefetches the inputs that are read at the position itself, for neighbouring positions from one that
    /// is equal in all lanes.
    pub fn prefetch_row(&self, k: &Writer, first: Value, count: u32, level: Level) {
        // In 64 bits, so that lines are at known distances.
        let first = k.convert(first, Type::U64);
        for (index, (read, ty)) in self.side_by_side().into_iter().zip(self.source.inputs()).enumerate() {
            let lines = if read { (count * ty.bytes()).div_ceil(LINE) } else { 0 };
            for line in 0..lines {
                k.prefetch(self.input(k, index), k.add(first, line * LINE / ty.bytes()), level);
            }
        }
    }

    /// Computes the values at a position with a given way to read an input, of a type, at an index. `traps`
    /// says whether traps are written.
    fn reading(
        &self,
        k: &Writer,
        position: &[Value],
        given: &[Value],
        read: &dyn Fn(usize, Type, Value) -> Value,
        traps: bool,
    ) -> Vec<Value> {
        let function = self.source.function();
        let mut arguments = k.positions(position, self.source.index());
        arguments.extend(given);
        for (index, ty) in self.source.scalars().into_iter().enumerate() {
            arguments.push(k.scalar(self.first_scalar + index, ty));
        }
        let bind = |(index, accessor): (usize, &AccessorDecl)| -> Box<dyn Binding> {
            let ty = accessor.ty;
            match is_trap(accessor) {
                false => Box::new(reading(move |_, position: &[Value]| read(index, ty, position[0]))),
                true => Box::new(writing(move |_, position: &[Value], value: Value| {
                    if traps {
                        self.trap(k, index, position[0], value);
                    }
                })),
            }
        };
        let mut bindings: Vec<Box<dyn Binding + '_>> = function.accessors().iter().enumerate().map(bind).collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| &mut **binding as &mut dyn Binding).collect();
        k.inline(function, &arguments, &mut bindings)
    }
}

impl Outlet {
    /// Returns the arguments of its outputs.
    pub fn outputs(&self) -> Vec<Argument> {
        let elsewhere = self.written.iter().flat_map(|written| written.function.accessors());
        let elsewhere = elsewhere.filter(|accessor| accessor.kind == AccessorKind::Output).count();
        (0..self.stored.len() + elsewhere).map(|index| Argument::Output(self.first_output + index)).collect()
    }

    /// Returns the arguments of its inputs.
    pub fn inputs(&self) -> Vec<Argument> {
        let accessors = self.written.iter().flat_map(|written| written.function.accessors());
        let count = accessors.filter(|accessor| accessor.kind != AccessorKind::Output).count();
        (0..count).map(|index| Argument::Input(self.first_input + index)).collect()
    }

    /// Returns the arguments of its scalars.
    pub fn scalars(&self) -> Vec<Argument> {
        let count = |written: &SinkFunction| written.function.parameters().len() - written.axes - written.values;
        (0..self.written.as_ref().map_or(0, count)).map(|index| Argument::Scalar(self.first_scalar + index)).collect()
    }

    /// Returns whether values are stored unchanged, each in an output of its own.
    pub fn stores_values(&self) -> bool {
        let Some(written) = &self.written else { return true };
        let (function, results) = (&written.function, written.function.results());
        let is_value = |(number, result): (usize, &Id)| {
            let op = &function.body().node(*result).op;
            matches!(op, Op::Parameter(parameter) if *parameter as usize == written.axes + number)
        };
        function.accessors().is_empty() && results.len() == written.values && results.iter().enumerate().all(is_value)
    }

    /// Returns whether results of neighbours can be stored at once by [`Outlet::put_row`].
    pub fn stores_rows(&self) -> bool {
        !self.writes_elsewhere() && self.stored.iter().all(|ty| ty.is_scalar())
    }

    /// Returns the addresses of outputs that [`Outlet::put_row`] writes; all must be multiples of 16.
    pub fn row_addresses(&self, k: &Writer) -> Vec<Value> {
        (0..self.stored.len()).map(|index| k.address(self.output(k, index))).collect()
    }

    /// Stores the values of neighbours on a line.
    pub fn put_row(&self, k: &Writer, start: Value, values: &[Vec<Value>]) {
        self.put_row_where(k, None, start, values);
    }

    /// Stores the values of neighbours on a line where a condition holds, or always.
    pub fn put_row_where(&self, k: &Writer, condition: Option<Value>, start: Value, values: &[Vec<Value>]) {
        let each = values.iter().enumerate();
        let results: Vec<Vec<Value>> = each.map(|(item, values)| self.results(k, &[k.add(start, item)], values)).collect();
        for index in 0..self.stored.len() {
            let row: Vec<Value> = results.iter().map(|results| results[index]).collect();
            match condition {
                Some(condition) => k.store_if(condition, self.output(k, index), start, k.vector(&row)),
                None => k.store(self.output(k, index), start, k.vector(&row)),
            }
        }
    }

    /// Returns whether it writes at places that its function computes.
    pub fn writes_elsewhere(&self) -> bool {
        self.written.as_ref().is_some_and(|written| written.function.accessors().iter().any(|a| a.kind == AccessorKind::Output))
    }

    /// Returns the memory of an output for values that are stored at the position.
    pub fn output(&self, k: &Writer, index: usize) -> Memory {
        k.memory(Argument::Output(self.first_output + index), self.stored[index].element())
    }

    /// Computes the results that are stored at a position, and writes what goes elsewhere.
    pub fn results(&self, k: &Writer, position: &[Value], values: &[Value]) -> Vec<Value> {
        let Some(written) = &self.written else { return values.to_vec() };
        let function = &written.function;
        let mut arguments = k.positions(position, written.index());
        arguments.extend(values);
        let scalars = &function.parameters()[written.axes + written.values..];
        for (index, parameter) in scalars.iter().enumerate() {
            arguments.push(k.scalar(self.first_scalar + index, parameter.ty));
        }
        let (mut inputs, mut outputs) = (self.first_input, self.first_output + self.stored.len());
        let mut bindings: Vec<Box<dyn Binding>> = vec![];
        for accessor in function.accessors() {
            let next = if accessor.kind == AccessorKind::Output { &mut outputs } else { &mut inputs };
            let argument = if accessor.kind == AccessorKind::Output { Argument::Output(*next) } else { Argument::Input(*next) };
            *next += 1;
            let memory = k.memory(argument, accessor.ty.element());
            bindings.push(if accessor.kind == AccessorKind::Output {
                Box::new(writing(move |_, position: &[Value], value: Value| {
                    k.store_element(memory, position[0], value, Cache::Normal);
                }))
            } else {
                Box::new(reading(move |_, position: &[Value]| k.load_element(memory, accessor.ty, position[0])))
            });
        }
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| &mut **binding as &mut dyn Binding).collect();
        k.inline(function, &arguments, &mut bindings)
    }

    /// Stores the values of a position, which is the element `linear` of outputs.
    pub fn put(&self, k: &Writer, position: &[Value], linear: Value, values: &[Value]) {
        self.put_where(k, None, position, linear, values);
    }

    /// Stores the values of a position where a condition holds, or always.
    pub fn put_where(&self, k: &Writer, condition: Option<Value>, position: &[Value], linear: Value, values: &[Value]) {
        for (index, result) in self.results(k, position, values).into_iter().enumerate() {
            match condition {
                Some(condition) => k.store_element_if(condition, self.output(k, index), linear, result),
                None => k.store_element(self.output(k, index), linear, result, Cache::Normal),
            }
        }
    }
}
