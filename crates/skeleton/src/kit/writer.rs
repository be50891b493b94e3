//! Kernels while they are written: a builder whose parameters are declared when they are first asked for.

use crate::program::Argument;
use crate::{Count, Result};
use broadloom_scalar::{Builder, Cache, Element, Kernel, LaunchBounds, Literal, Memory, Order, Type, Value, Variable};
use std::cell::RefCell;
use std::ops::Deref;

#[derive(Clone, Copy)]
enum Handle {
    Memory(Memory),
    Value(Value),
}

/// A kernel while it is written: a [`Builder`] whose parameters are declared when they are first asked for.
pub struct Writer {
    builder: Builder,
    given: RefCell<Vec<(Argument, Handle)>>,
    /// Bytes of dynamic shared memory.
    shared_bytes: RefCell<Count>,
    /// Traps that are written later.
    pub(super) delayed: RefCell<Vec<DelayedTrap>>,
}

/// A trap that is written later: the input that it is, whether it is to be written, and the index and value
/// of the write, once there is one.
#[derive(Clone, Copy)]
pub(super) struct DelayedTrap {
    pub(super) input: usize,
    pub(super) is_set: Variable,
    pub(super) written: Option<(Literal, Literal)>,
}

impl Deref for Writer {
    type Target = Builder;
    fn deref(&self) -> &Builder {
        &self.builder
    }
}

impl Writer {
    /// Starts a kernel for blocks of this shape.
    pub fn new(name: &str, block: [u32; 3]) -> Writer {
        let builder = Builder::kernel(name);
        builder.launch_bounds(LaunchBounds { block: Some(block), ..LaunchBounds::default() });
        let shared_bytes = RefCell::new(Count::Constant(0));
        Writer { builder, given: RefCell::new(vec![]), shared_bytes, delayed: RefCell::new(vec![]) }
    }

    /// Declares the array in dynamic shared memory, whose length may follow from the sizes and exceed that of
    /// static arrays.
    pub fn large_shared(&self, element: Element, length: impl Into<Count>) -> Memory {
        self.shared_bytes.replace(length.into() * element.bytes());
        self.builder.dynamic_shared(element)
    }

    /// Starts a kernel of which a multiprocessor holds at least `blocks` blocks, which limits its registers.
    pub fn with_blocks(name: &str, block: [u32; 3], blocks: u32) -> Writer {
        let writer = Writer::new(name, block);
        let bounds = LaunchBounds { block: Some(block), min_blocks: Some(blocks), ..LaunchBounds::default() };
        writer.builder.launch_bounds(bounds);
        writer
    }

    fn known(&self, argument: &Argument) -> Option<Handle> {
        self.given.borrow().iter().find(|(known, _)| known == argument).map(|(_, handle)| *handle)
    }

    /// Returns the memory of a buffer that the kernel is given.
    pub fn memory(&self, argument: Argument, element: Element) -> Memory {
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

    /// Returns a number that follows from the sizes.
    pub fn count(&self, count: impl Into<Count>, ty: Type) -> Value {
        self.value(Argument::Count(count.into(), ty), ty, "count")
    }

    /// Returns a count. A constant is part of the code, so no step can have another one in its place.
    pub fn count_in_code(&self, count: impl Into<Count>, ty: Type) -> Value {
        match count.into() {
            Count::Constant(value) if value <= u32::MAX.into() => self.constant(ty, value as u32),
            count => self.count(count, ty),
        }
    }

    /// Returns the scalar with a number.
    pub fn scalar(&self, number: usize, ty: Type) -> Value {
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

    /// Loads the element, of one or several lanes, at an index that counts elements.
    pub fn load_element(&self, memory: Memory, ty: Type, index: Value) -> Value {
        match ty.lanes() {
            1 => self.load(memory, index),
            lanes => self.load_vector(memory, self.first_lane(index, lanes), lanes),
        }
    }

    /// Returns the index of the first lane of an element, in 64 bits: there can be 2³¹ lanes where elements
    /// are counted in 32.
    pub(crate) fn first_lane(&self, index: Value, lanes: usize) -> Value {
        let wide = if self.type_of(index).element().is_signed() { Type::I64 } else { Type::U64 };
        self.mul(self.convert(index, wide), lanes)
    }

    /// Stores the element, of one or several lanes, at an index that counts elements.
    pub fn store_element(&self, memory: Memory, index: Value, value: Value, cache: Cache) {
        let index = match self.type_of(value).lanes() {
            1 => index,
            lanes => self.first_lane(index, lanes),
        };
        self.store_as(memory, index, value, Order::Weak, cache);
    }

    /// Stores the element, of one or several lanes, at an index that counts elements, where a condition
    /// holds.
    pub fn store_element_if(&self, condition: Value, memory: Memory, index: Value, value: Value) {
        let index = match self.type_of(value).lanes() {
            1 => index,
            lanes => self.first_lane(index, lanes),
        };
        self.store_if(condition, memory, index, value);
    }

    /// Selects one of two values, all lanes alike.
    pub fn select_value(&self, condition: Value, then: Value, otherwise: Value) -> Value {
        let lanes = self.type_of(then).lanes();
        let condition = if lanes == 1 { condition } else { self.vector(&vec![condition; lanes]) };
        self.select(condition, then, otherwise)
    }

    /// Computes one of two lists of values of the same types.
    pub fn choose_list(
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

    /// Returns whether all addresses are multiples of 16.
    pub fn aligned(&self, addresses: Vec<Value>) -> Value {
        let bits = addresses.into_iter().reduce(|a, b| self.or(a, b));
        bits.map_or(self.literal(true), |bits| self.eq(self.and(bits, 15), 0))
    }

    /// Converts the indices of a position.
    pub(crate) fn positions(&self, position: &[Value], ty: Type) -> Vec<Value> {
        position.iter().map(|index| self.convert(*index, ty)).collect()
    }

    /// Returns a literal in all lanes of a type.
    pub fn spread(&self, literal: Literal, ty: Type) -> Value {
        let value = self.literal(literal);
        if ty.is_scalar() { value } else { self.vector(&vec![value; ty.lanes()]) }
    }

    /// Ends the kernel. Returns it with its arguments and bytes of dynamic shared memory.
    pub(crate) fn finish(self) -> Result<(Kernel, Vec<Argument>, Count)> {
        let arguments = self.given.into_inner().into_iter().map(|(argument, _)| argument).collect();
        Ok((self.builder.finish_kernel()?, arguments, self.shared_bytes.into_inner()))
    }
}
