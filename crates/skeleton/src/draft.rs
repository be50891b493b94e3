//! How programs are written: one place that numbers inputs, outputs and scalars, and kernels whose parameters say what they are given.

use crate::program::{Argument, Output, Program, Step, Temporary};
use crate::source::Written;
use crate::{Count, PlainProduct, Result, Sink, Source};
use broadloom_scalar::{
    AccessorKind, Binding, Builder, Cache, Element, Id, LaunchBounds, Level, Literal, Memory, Op, Order, Type, Value, reading,
    writing,
};
use std::cell::RefCell;
use std::ops::Deref;

/// A program that is being written.
pub(crate) struct Draft {
    program: Program,
}

/// What a program is given that becomes a part of another one.
pub(crate) struct Given<'a> {
    pub(crate) inputs: &'a [Argument],
    pub(crate) outputs: &'a [Argument],
    pub(crate) scalars: &'a [Argument],
    pub(crate) sizes: &'a [Count],
}

/// A source within a program.
pub(crate) struct Inlet {
    source: Source,
    first_input: usize,
    first_scalar: usize,
}

/// A sink within a program.
pub(crate) struct Outlet {
    written: Option<Written>,
    /// The types of what is stored at the position.
    pub(crate) stored: Vec<Type>,
    first_output: usize,
    first_input: usize,
    first_scalar: usize,
}

impl Draft {
    pub(crate) fn new(name: &str, sizes: usize) -> Draft {
        Draft {
            program: Program {
                name: name.to_owned(),
                kernels: vec![],
                inputs: vec![],
                outputs: vec![],
                scalars: vec![],
                sizes,
                limits: vec![],
                least: vec![],
                temporaries: vec![],
                steps: vec![],
                product: None,
            },
        }
    }

    /// The next inputs and scalars are those of a source.
    pub(crate) fn source(&mut self, source: &Source) -> Inlet {
        let inlet =
            Inlet { source: source.clone(), first_input: self.program.inputs.len(), first_scalar: self.program.scalars.len() };
        self.program.inputs.extend(source.inputs());
        self.program.scalars.extend(source.scalars());
        inlet
    }

    /// The next inputs, outputs and scalars are those of a sink for values of these types, `count` of each.
    pub(crate) fn sink(&mut self, sink: &Sink, values: &[Type], count: &Count) -> Outlet {
        let written = sink.written().cloned();
        let stored = written.as_ref().map_or_else(|| values.to_vec(), |written| written.function.result_types());
        let outlet = Outlet {
            first_output: self.program.outputs.len(),
            first_input: self.program.inputs.len(),
            first_scalar: self.program.scalars.len(),
            stored: stored.clone(),
            written,
        };
        self.program.outputs.extend(stored.into_iter().map(|ty| Output { ty, count: count.clone() }));
        if let Some(written) = &outlet.written {
            for accessor in written.function.accessors() {
                if accessor.kind == AccessorKind::Output {
                    self.program.outputs.push(Output { ty: accessor.ty, count: Count::Constant(0) });
                } else {
                    self.program.inputs.push(accessor.ty);
                }
            }
            let scalars = &written.function.parameters()[written.axes + written.values..];
            self.program.scalars.extend(scalars.iter().map(|parameter| parameter.ty));
        }
        outlet
    }

    /// The next output, by its number.
    pub(crate) fn output(&mut self, output: Output) -> usize {
        self.program.outputs.push(output);
        self.program.outputs.len() - 1
    }

    /// Indices have 32 bits, so this number must be less than 2³¹.
    pub(crate) fn limit(&mut self, count: Count) {
        self.program.limits.push(count);
    }

    /// This number must be at least so large.
    pub(crate) fn least(&mut self, count: Count, least: u64) {
        self.program.least.push((count, least));
    }

    /// The next scalar, by its number.
    pub(crate) fn scalar(&mut self, ty: Type) -> usize {
        self.program.scalars.push(ty);
        self.program.scalars.len() - 1
    }

    /// The program is the product of two sources, stored as it is.
    pub(crate) fn plain_product(&mut self, left: &Inlet, right: &Inlet) {
        let side = |inlet: &Inlet| (inlet.source.clone(), inlet.first_input, inlet.first_scalar);
        let (left, right) = (side(left), side(right));
        self.program.product = PlainProduct::of((&left.0, left.1, left.2), (&right.0, right.1, right.2));
    }

    /// Memory that lives as long as a run, by its number.
    pub(crate) fn temporary(&mut self, bytes: Count, zeroed: bool) -> usize {
        self.program.temporaries.push(Temporary { bytes, zeroed });
        self.program.temporaries.len() - 1
    }

    /// Adds a step that is there once more, with other arguments.
    pub(crate) fn repeat(&mut self, step: usize, change: impl Fn(&Argument) -> Argument) {
        let mut step = self.program.steps[step].clone();
        step.arguments.iter_mut().for_each(|argument| *argument = change(argument));
        self.program.steps.push(step);
    }

    /// Adds all steps of another program. Its inputs, outputs, scalars and sizes are what is said here; its temporaries are some more of this one.
    pub(crate) fn include(&mut self, other: Program, given: &Given<'_>) {
        let (kernels, temporaries) = (self.program.kernels.len(), self.program.temporaries.len());
        let sized = |count: &Count| count.with(given.sizes);
        self.program.limits.extend(other.limits.iter().map(sized));
        self.program.least.extend(other.least.iter().map(|(count, least)| (sized(count), *least)));
        let own = other.temporaries.iter().map(|own| Temporary { bytes: sized(&own.bytes), zeroed: own.zeroed });
        self.program.temporaries.extend(own);
        for step in &other.steps {
            let argument = |argument: &Argument| match argument {
                Argument::Input(index) => given.inputs[*index].clone(),
                Argument::Output(index) => given.outputs[*index].clone(),
                Argument::Scalar(index) => given.scalars[*index].clone(),
                Argument::Temporary(index) => Argument::Temporary(temporaries + index),
                Argument::Count(count, ty) => Argument::Count(sized(count), *ty),
            };
            self.program.steps.push(Step {
                kernel: kernels + step.kernel,
                grid: [0, 1, 2].map(|axis: usize| sized(&step.grid[axis])),
                block: step.block,
                shared_bytes: sized(&step.shared_bytes),
                arguments: step.arguments.iter().map(argument).collect(),
            });
        }
        self.program.kernels.extend(other.kernels);
    }

    /// Adds a kernel and a launch of it; gives the number of the step.
    pub(crate) fn launch(&mut self, kernel: Writer, grid: [Count; 3], block: [u32; 3]) -> Result<usize> {
        let arguments = kernel.given.borrow().iter().map(|(argument, _)| argument.clone()).collect();
        let shared_bytes = kernel.shared_bytes.replace(Count::Constant(0));
        self.program.kernels.push(kernel.builder.finish_kernel()?);
        self.program.steps.push(Step { kernel: self.program.kernels.len() - 1, grid, block, shared_bytes, arguments });
        Ok(self.program.steps.len() - 1)
    }

    pub(crate) fn finish(self) -> Program {
        self.program
    }
}

#[derive(Clone, Copy)]
enum Handle {
    Memory(Memory),
    Value(Value),
}

/// A kernel that is being written: a builder whose parameters are declared when they are first asked for.
pub(crate) struct Writer {
    builder: Builder,
    given: RefCell<Vec<(Argument, Handle)>>,
    /// Bytes of dynamic shared memory.
    shared_bytes: RefCell<Count>,
}

impl Deref for Writer {
    type Target = Builder;
    fn deref(&self) -> &Builder {
        &self.builder
    }
}

impl Writer {
    pub(crate) fn new(name: &str, block: [u32; 3]) -> Writer {
        let builder = Builder::kernel(name);
        builder.launch_bounds(LaunchBounds { block: Some(block), ..LaunchBounds::default() });
        Writer { builder, given: RefCell::new(vec![]), shared_bytes: RefCell::new(Count::Constant(0)) }
    }

    /// The array in dynamic shared memory, which may have more than static ones, and as much as a call needs.
    pub(crate) fn large_shared(&self, element: Element, length: impl Into<Count>) -> Memory {
        self.shared_bytes.replace(length.into() * element.bytes());
        self.builder.dynamic_shared(element)
    }

    /// A kernel of which a multiprocessor holds so many blocks at least: the compiler keeps to as many registers as that leaves.
    pub(crate) fn with_blocks(name: &str, block: [u32; 3], blocks: u32) -> Writer {
        let writer = Writer::new(name, block);
        let bounds = LaunchBounds { block: Some(block), min_blocks: Some(blocks), ..LaunchBounds::default() };
        writer.builder.launch_bounds(bounds);
        writer
    }

    fn known(&self, argument: &Argument) -> Option<Handle> {
        self.given.borrow().iter().find(|(known, _)| known == argument).map(|(_, handle)| *handle)
    }

    /// A buffer.
    pub(crate) fn memory(&self, argument: Argument, element: Element) -> Memory {
        if let Some(Handle::Memory(memory)) = self.known(&argument) {
            return memory;
        }
        let name = match &argument {
            Argument::Input(index) => format!("in{index}"),
            Argument::Output(index) => format!("out{index}"),
            Argument::Temporary(index) => format!("temp{index}"),
            Argument::Scalar(index) => format!("scalar{index}"),
            Argument::Count(..) => "count".to_owned(),
        };
        let memory = self.builder.pointer(&name, element);
        self.given.borrow_mut().push((argument, Handle::Memory(memory)));
        memory
    }

    /// A number that follows from the sizes.
    pub(crate) fn count(&self, count: impl Into<Count>, ty: Type) -> Value {
        self.value(Argument::Count(count.into(), ty), ty, "count")
    }

    /// A scalar, by its number.
    pub(crate) fn scalar(&self, number: usize, ty: Type) -> Value {
        self.value(Argument::Scalar(number), ty, "scalar")
    }

    fn value(&self, argument: Argument, ty: Type, name: &str) -> Value {
        if let Some(Handle::Value(value)) = self.known(&argument) {
            return value;
        }
        let value = self.builder.parameter(name, ty);
        self.given.borrow_mut().push((argument, Handle::Value(value)));
        value
    }

    /// The element of a buffer at an index that counts elements.
    pub(crate) fn load_element(&self, memory: Memory, ty: Type, index: Value) -> Value {
        match ty.lanes() {
            1 => self.load(memory, index),
            lanes => self.load_vector(memory, self.first_lane(index, lanes), lanes),
        }
    }

    /// Where the lanes of an element start. There can be 2³¹ of them and more where elements are counted in 32 bits.
    fn first_lane(&self, index: Value, lanes: usize) -> Value {
        let wide = if self.type_of(index).element().is_signed() { Type::I64 } else { Type::U64 };
        self.mul(self.convert(index, wide), lanes)
    }

    /// Gives the element of a buffer at an index that counts elements a value.
    pub(crate) fn store_element(&self, memory: Memory, index: Value, value: Value, cache: Cache) {
        let index = match self.type_of(value).lanes() {
            1 => index,
            lanes => self.first_lane(index, lanes),
        };
        self.store_as(memory, index, value, Order::Weak, cache);
    }

    /// One of two values that are there, lane by lane alike.
    pub(crate) fn select_value(&self, condition: Value, then: Value, otherwise: Value) -> Value {
        let lanes = self.type_of(then).lanes();
        let condition = if lanes == 1 { condition } else { self.vector(&vec![condition; lanes]) };
        self.select(condition, then, otherwise)
    }

    /// One of two lists of values of the same types; only one is computed.
    pub(crate) fn choose_list(
        &self,
        condition: Value,
        then: impl FnOnce() -> Vec<Value>,
        otherwise: impl FnOnce() -> Vec<Value>,
    ) -> Vec<Value> {
        self.begin_if(condition);
        let values = then();
        let variables: Vec<_> = values.iter().map(|value| self.variable(self.type_of(*value))).collect();
        variables.iter().zip(values).for_each(|(variable, value)| self.set(*variable, value));
        self.begin_else();
        variables.iter().zip(otherwise()).for_each(|(variable, value)| self.set(*variable, value));
        self.end_if();
        variables.into_iter().map(|variable| self.get(variable)).collect()
    }

    /// Whether all these addresses are multiples of 16.
    pub(crate) fn aligned(&self, addresses: Vec<Value>) -> Value {
        let bits = addresses.into_iter().reduce(|a, b| self.or(a, b));
        bits.map_or(self.literal(true), |bits| self.eq(self.and(bits, 15), 0))
    }

    /// A position as another function wants it.
    fn positions(&self, position: &[Value], ty: Type) -> Vec<Value> {
        position.iter().map(|index| self.convert(*index, ty)).collect()
    }
}

impl Inlet {
    /// The arguments of its inputs.
    pub(crate) fn inputs(&self) -> Vec<Argument> {
        (0..self.source.inputs().len()).map(|index| Argument::Input(self.first_input + index)).collect()
    }

    /// The arguments of its scalars.
    pub(crate) fn scalars(&self) -> Vec<Argument> {
        (0..self.source.scalars().len()).map(|index| Argument::Scalar(self.first_scalar + index)).collect()
    }

    /// Whether an input is read at the position itself, and can be read for several neighbours at once.
    fn side_by_side(&self) -> Vec<bool> {
        self.source.contiguous().iter().zip(self.source.inputs()).map(|(found, ty)| *found && ty.is_scalar()).collect()
    }

    /// Whether all inputs can be.
    pub(crate) fn reads_rows(&self) -> bool {
        self.side_by_side().into_iter().all(|read| read)
    }

    /// The addresses of inputs that [`Inlet::row`] reads; all must be multiples of 16.
    pub(crate) fn row_addresses(&self, k: &Writer) -> Vec<Value> {
        let read = self.side_by_side().into_iter().enumerate().filter(|(_, read)| *read);
        read.map(|(index, _)| k.address(self.input(k, index))).collect()
    }

    /// What inputs hold for neighbours on a line, as far as they are read at the position itself.
    pub(crate) fn row(&self, k: &Writer, start: Value, width: usize) -> Vec<Option<Value>> {
        let load = |(index, read): (usize, bool)| read.then(|| k.load_vector(self.input(k, index), start, width));
        self.side_by_side().into_iter().enumerate().map(load).collect()
    }

    /// The memory of an input.
    pub(crate) fn input(&self, k: &Writer, index: usize) -> Memory {
        k.memory(Argument::Input(self.first_input + index), self.source.inputs()[index].element())
    }

    /// The values at a position.
    pub(crate) fn at(&self, k: &Writer, position: &[Value]) -> Vec<Value> {
        self.at_with(k, position, &|_| None)
    }

    /// The values at a position, where what some inputs hold at the position itself has been read already.
    pub(crate) fn at_with(&self, k: &Writer, position: &[Value], read: &dyn Fn(usize) -> Option<Value>) -> Vec<Value> {
        let own = k.positions(position, self.source.index()).last().copied();
        self.reading(k, position, &|index, ty, at| match read(index) {
            Some(value) if Some(at) == own => value,
            _ => k.load_element(self.input(k, index), ty, at),
        })
    }

    /// Says that the values at a position will be wanted soon: what would be read for them is asked for.
    pub(crate) fn prefetch(&self, k: &Writer, position: &[Value], level: Level) {
        self.reading(k, position, &|index, ty, at| {
            k.prefetch(self.input(k, index), k.first_lane(at, ty.lanes()), level);
            k.spread(Literal::zero(ty.element()), ty)
        });
    }

    /// The values at a position, with some way to read an input, of a type, at an index.
    fn reading(&self, k: &Writer, position: &[Value], read: &dyn Fn(usize, Type, Value) -> Value) -> Vec<Value> {
        let function = self.source.function();
        let mut arguments = k.positions(position, self.source.index());
        for (index, ty) in self.source.scalars().into_iter().enumerate() {
            arguments.push(k.scalar(self.first_scalar + index, ty));
        }
        let accessors = function.accessors().iter().enumerate();
        let mut bindings: Vec<_> = accessors
            .map(|(index, accessor)| reading(move |_, position: &[Value]| read(index, accessor.ty, position[0])))
            .collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        k.inline(function, &arguments, &mut bindings)
    }
}

impl Outlet {
    /// The arguments of its outputs.
    pub(crate) fn outputs(&self) -> Vec<Argument> {
        let elsewhere = self.written.iter().flat_map(|written| written.function.accessors());
        let elsewhere = elsewhere.filter(|accessor| accessor.kind == AccessorKind::Output).count();
        (0..self.stored.len() + elsewhere).map(|index| Argument::Output(self.first_output + index)).collect()
    }

    /// The arguments of its inputs.
    pub(crate) fn inputs(&self) -> Vec<Argument> {
        let accessors = self.written.iter().flat_map(|written| written.function.accessors());
        let count = accessors.filter(|accessor| accessor.kind != AccessorKind::Output).count();
        (0..count).map(|index| Argument::Input(self.first_input + index)).collect()
    }

    /// The arguments of its scalars.
    pub(crate) fn scalars(&self) -> Vec<Argument> {
        let count = |written: &Written| written.function.parameters().len() - written.axes - written.values;
        (0..self.written.as_ref().map_or(0, count)).map(|index| Argument::Scalar(self.first_scalar + index)).collect()
    }

    /// Whether values are stored as they come, each in an output of its own.
    pub(crate) fn stores_values(&self) -> bool {
        let Some(written) = &self.written else { return true };
        let (function, results) = (&written.function, written.function.results());
        let is_value = |(number, result): (usize, &Id)| {
            let op = &function.body().node(*result).op;
            matches!(op, Op::Parameter(parameter) if *parameter as usize == written.axes + number)
        };
        function.accessors().is_empty() && results.len() == written.values && results.iter().enumerate().all(is_value)
    }

    /// Whether results of neighbours can be stored at once.
    pub(crate) fn stores_rows(&self) -> bool {
        !self.writes_elsewhere() && self.stored.iter().all(|ty| ty.is_scalar())
    }

    /// The addresses of outputs that [`Outlet::put_row`] writes; all must be multiples of 16.
    pub(crate) fn row_addresses(&self, k: &Writer) -> Vec<Value> {
        (0..self.stored.len()).map(|index| k.address(self.output(k, index))).collect()
    }

    /// Takes the values of neighbours on a line.
    pub(crate) fn put_row(&self, k: &Writer, start: Value, values: &[Vec<Value>]) {
        let each = values.iter().enumerate();
        let results: Vec<Vec<Value>> = each.map(|(item, values)| self.results(k, &[k.add(start, item)], values)).collect();
        for index in 0..self.stored.len() {
            let row: Vec<Value> = results.iter().map(|results| results[index]).collect();
            k.store_as(self.output(k, index), start, k.vector(&row), Order::Weak, Cache::Normal);
        }
    }

    /// Whether all it does is to store values at the position.
    pub(crate) fn writes_elsewhere(&self) -> bool {
        self.written.as_ref().is_some_and(|written| written.function.accessors().iter().any(|a| a.kind == AccessorKind::Output))
    }

    /// The memory of an output for what is stored at the position.
    pub(crate) fn output(&self, k: &Writer, index: usize) -> Memory {
        k.memory(Argument::Output(self.first_output + index), self.stored[index].element())
    }

    /// What is to be stored for values at a position. Whatever goes elsewhere is written.
    pub(crate) fn results(&self, k: &Writer, position: &[Value], values: &[Value]) -> Vec<Value> {
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

    /// Takes the values at a position, which is the element `linear` of outputs.
    pub(crate) fn put(&self, k: &Writer, position: &[Value], linear: Value, values: &[Value]) {
        for (index, result) in self.results(k, position, values).into_iter().enumerate() {
            k.store_element(self.output(k, index), linear, result, Cache::Normal);
        }
    }
}
