//! Scattered sums of floats. Their order matters, so values are sorted by place first.
//!
//! The sort keeps the order of positions for values of one place. A search finds the start of each place,
//! then segments are reduced. The result depends only on the values and the sizes.
//!
//! Rejected: atomic additions, whose order differs from run to run.

use super::Scatter;
use crate::kit::{Draft, IncludedArguments, Inlet, Outlet};
use crate::operator::Operator;
use crate::program::{Argument, Program};
use crate::{Count, Domain, Map, Result, SegmentedReduce, Sink, Sort, SortKey, Source};
use broadloom_device::Machine;
use broadloom_scalar::{AccessorKind, Binding, Builder, Function, Type, Value, reading, writing};

/// The parts of a scatter.
pub(super) struct SumsEmitter<'a> {
    pub(super) scatter: &'a Scatter,
    pub(super) inlet: Inlet,
    pub(super) base: Inlet,
    pub(super) outlet: Outlet,
    pub(super) index: Type,
    pub(super) ty: Type,
}

/// Inlines a function into another one. Its scalars and accessors are declared there, after the existing
/// ones.
fn inline(f: &Builder, function: &Function, arguments: &[Value]) -> Vec<Value> {
    let scalars = &function.parameters()[arguments.len()..];
    let scalars: Vec<Value> = scalars.iter().map(|scalar| f.parameter(&scalar.name, scalar.ty)).collect();
    let accessors = function.accessors().iter();
    let mut bindings: Vec<Box<dyn Binding>> = accessors
        .map(|accessor| -> Box<dyn Binding> {
            let own = f.accessor(&accessor.name, accessor.kind, accessor.ty, 1);
            if accessor.kind == AccessorKind::Output {
                Box::new(writing(move |f: &Builder, position: &[Value], value: Value| f.write(own, &[position[0].into()], value)))
            } else {
                Box::new(reading(move |f: &Builder, position: &[Value]| f.read(own, &[position[0].into()])))
            }
        })
        .collect();
    let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| &mut **binding as &mut dyn Binding).collect();
    f.inline(function, &[arguments, &scalars].concat(), &mut bindings)
}

/// Returns a source that reads an element at the position.
fn read(index: Type, ty: Type, wanted: Type) -> Result<Source> {
    let f = Builder::function("read");
    let i = f.parameter("i", index);
    let x = f.accessor("x", AccessorKind::Input, ty, 1);
    Source::new(f.finish_function(&[f.convert(f.read(x, &[i.into()]), wanted)])?, 1)
}

impl SumsEmitter<'_> {
    pub(super) fn include(&self, draft: &mut Draft, machine: &Machine) -> Result<()> {
        let axes = self.scatter.domain.axes();
        let (count, places) = (self.scatter.domain.count(), Count::size(axes));
        let bytes = |count: Count, ty: Type| count * ty.bytes();
        let sorted = draft.temporary(bytes(count.clone(), self.index), false);
        let values = draft.temporary(bytes(count.clone(), self.ty), false);
        let starts = draft.temporary(bytes(places.clone() + 1u32, self.index), false);
        let [sorted, values, starts] = [sorted, values, starts].map(Argument::Temporary);

        let lengths = (0..axes).map(|axis| Argument::Count(Count::size(axis), self.index));
        let mut scalars: Vec<Argument> = lengths.collect();
        scalars.push(Argument::Count(places.clone(), self.index));
        scalars.extend(self.inlet.scalars());
        draft.include(
            Sort { source: self.keyed()?, keys: vec![SortKey::default()], sink: Sink::STORE }.program(machine)?,
            &IncludedArguments {
                inputs: &self.inlet.inputs(),
                outputs: &[sorted.clone(), values.clone()],
                scalars: &scalars,
                sizes: std::slice::from_ref(&count),
            },
        )?;
        draft.include(
            self.find_starts(machine)?,
            &IncludedArguments {
                inputs: &[sorted],
                outputs: std::slice::from_ref(&starts),
                scalars: &[Argument::Count(count.clone(), self.index)],
                sizes: &[places.clone() + 1u32],
            },
        )?;
        let wide = if self.ty == Type::F16 { Type::F32 } else { self.ty };
        let reduce = SegmentedReduce {
            source: read(self.index, self.ty, wide)?,
            offsets: read(self.index, self.index, self.index)?,
            operator: Operator::sum(wide)?,
            sink: self.added(wide)?,
        };
        let inputs = [vec![values, starts], self.base.inputs(), self.outlet.inputs()].concat();
        let scalars = [self.base.scalars(), self.outlet.scalars()].concat();
        draft.include(
            reduce.program(machine)?,
            &IncludedArguments { inputs: &inputs, outputs: &self.outlet.outputs(), scalars: &scalars, sizes: &[count, places] },
        )
    }

    /// Returns the source of the place of a position and of its value. A value for a place outside is sorted
    /// after all places.
    fn keyed(&self) -> Result<Source> {
        let source = &self.scatter.source;
        let f = Builder::function("keyed");
        let i = f.parameter("i", self.index);
        let lengths: Vec<Value> = (0..source.axes()).map(|_| f.parameter("length", self.index)).collect();
        let places = f.parameter("places", self.index);
        let mut position = vec![i; source.axes()];
        let mut rest = i;
        for axis in (1..source.axes()).rev() {
            let above = f.div(rest, lengths[axis]);
            position[axis] = f.sub(rest, f.mul(above, lengths[axis]));
            rest = above;
        }
        if let Some(first) = position.first_mut() {
            *first = rest;
        }
        let position: Vec<Value> = position.into_iter().map(|index| f.convert(index, source.index())).collect();
        let values = inline(&f, source.function(), &position);
        // A negative place becomes a very large one.
        let signed = f.type_of(values[0]).element().is_signed();
        let place = f.convert(if signed { f.convert(values[0], Type::I64) } else { values[0] }, Type::U64);
        let place = f.convert(f.min(place, f.convert(places, Type::U64)), self.index);
        Source::new(f.finish_function(&[place, values[1]])?, 1)
    }

    /// Returns the program that finds, for each place and for one more, the number of sorted places that are
    /// less.
    fn find_starts(&self, machine: &Machine) -> Result<Program> {
        let f = Builder::function("start");
        let (place, count) = (f.parameter("place", self.index), f.parameter("count", self.index));
        let sorted = f.accessor("sorted", AccessorKind::Input, self.index, 1);
        let (low, high) = (f.variable_with(f.constant(self.index, 0)), f.variable_with(count));
        f.while_loop(
            || f.lt(f.get(low), f.get(high)),
            || {
                let (first, last) = (f.get(low), f.get(high));
                let middle = f.add(first, f.shr(f.sub(last, first), 1));
                let less = f.lt(f.read(sorted, &[middle.into()]), place);
                f.set(low, f.select(less, f.add(middle, 1), first));
                f.set(high, f.select(less, last, middle));
            },
        );
        let source = Source::new(f.finish_function(&[f.get(low)])?, 1)?;
        Map { domain: Domain::LINE, source, sink: Sink::STORE }.program(machine)
    }

    /// Returns the sink that adds the base to the sum of a place and passes the result on.
    fn added(&self, wide: Type) -> Result<Sink> {
        let f = Builder::function("added");
        let (place, sum) = (f.parameter("place", self.index), f.parameter("sum", wide));
        let base = &self.scatter.base;
        let first = inline(&f, base.function(), &[f.convert(place, base.index())])[0];
        let value = f.convert(f.add(f.convert(first, wide), sum), self.ty);
        let results = match self.scatter.sink.written() {
            None => vec![value],
            Some(written) => inline(&f, &written.function, &[f.convert(place, written.index()), value]),
        };
        Sink::new(f.finish_function(&results)?, 1, 1)
    }
}
