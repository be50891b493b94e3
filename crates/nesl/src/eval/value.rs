//! Values: nested, unflattened.
//!
//! Sequences share their elements, so the cost of copying a value does not depend on its size. Every sequence
//! is charged to the [`Meter`] of its run while it is alive.

use crate::core::LocalId;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

/// A value. The value of a datatype is its content.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer, within the width of integers.
    Int(i64),
    /// A float, rounded to 32 bits if floats have 32 bits.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(u8),
    /// Two values; a tuple of more is nested.
    Pair(Rc<(Value, Value)>),
    /// A sequence.
    Seq(Seq),
    /// A function with its captured variables.
    Function(Rc<Function>),
}

/// A function as a value.
#[derive(Debug)]
pub struct Function {
    /// The instance to call.
    pub(crate) code: super::CodeId,
    /// The captured variables.
    pub(crate) captured: Vec<(LocalId, Value)>,
}

/// A sequence.
#[derive(Clone, Debug)]
pub struct Seq(Rc<Buffer>);

#[derive(Debug)]
struct Buffer {
    /// The characters, if the sequence was made as a string: a byte each.
    text: Option<Arc<[u8]>>,
    /// The elements. Those of a string are made when one of them is wanted as a value.
    values: OnceCell<Vec<Value>>,
    bytes: Cell<usize>,
    meter: Rc<Meter>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.meter.live.set(self.meter.live.get() - self.bytes.get());
    }
}

/// Counts the bytes of live sequences.
#[derive(Debug, Default)]
pub struct Meter {
    live: Cell<usize>,
    limit: usize,
}

/// Bytes that are charged to a meter until the charge is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    bytes: usize,
    meter: Rc<Meter>,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.live.set(self.meter.live.get() - self.bytes);
    }
}

impl Meter {
    /// Returns the bytes that are charged.
    pub(crate) fn live(&self) -> usize {
        self.live.get()
    }

    /// Returns the bytes that may be charged.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Tells whether this many bytes more would be within the limit.
    pub(crate) fn room(&self, bytes: usize) -> bool {
        self.live.get().saturating_add(bytes) <= self.limit
    }

    /// Charges bytes; `None` if that exceeds the limit.
    pub(crate) fn charge(self: &Rc<Self>, bytes: usize) -> Option<Charge> {
        let bytes = bytes.saturating_add(64);
        if !self.room(bytes) {
            return None;
        }
        self.live.set(self.live.get() + bytes);
        Some(Charge { bytes, meter: self.clone() })
    }

    pub(crate) fn new(limit: usize) -> Rc<Self> {
        Rc::new(Meter { live: Cell::new(0), limit })
    }

    /// Tells whether this many elements like `sample` would be within the limit.
    pub(crate) fn allows(&self, count: usize, sample: Option<&Value>) -> bool {
        let bytes = count.saturating_mul(cost(sample));
        self.live.get().saturating_add(bytes) <= self.limit
    }

    /// Makes a sequence; `None` if that exceeds the limit.
    pub(crate) fn seq(self: &Rc<Self>, values: Vec<Value>) -> Option<Seq> {
        if let Some(Value::Char(_)) = values.first() {
            return self.text(values.iter().map(Value::char).collect());
        }
        if !self.allows(values.len(), values.first()) {
            return None;
        }
        let bytes = values.len() * cost(values.first()) + 64;
        self.live.set(self.live.get() + bytes);
        Some(Seq(Rc::new(Buffer { text: None, values: values.into(), bytes: bytes.into(), meter: self.clone() })))
    }

    /// Makes a string; `None` if that exceeds the limit.
    pub(crate) fn text(self: &Rc<Self>, text: Arc<[u8]>) -> Option<Seq> {
        let bytes = text.len() + 64;
        if !self.room(bytes) {
            return None;
        }
        self.live.set(self.live.get() + bytes);
        let (text, values, meter) = (Some(text), OnceCell::new(), self.clone());
        Some(Seq(Rc::new(Buffer { text, values, bytes: bytes.into(), meter })))
    }
}

/// Estimates the bytes of an element. Elements of one sequence have one type, so all pairs in them have the
/// same structure.
fn cost(sample: Option<&Value>) -> usize {
    fn pairs(value: &Value, depth: usize) -> usize {
        match value {
            Value::Pair(parts) if depth < 64 => 48 + pairs(&parts.0, depth + 1) + pairs(&parts.1, depth + 1),
            _ => 0,
        }
    }
    size_of::<Value>() + sample.map_or(0, |value| pairs(value, 0))
}

impl std::ops::Deref for Seq {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        self.0.values.get_or_init(|| {
            let text = self.0.text.as_deref().unwrap_or_default();
            let bytes = size_of_val(text) * size_of::<Value>();
            self.0.bytes.set(self.0.bytes.get() + bytes);
            self.0.meter.live.set(self.0.meter.live.get() + bytes);
            text.iter().map(|byte| Value::Char(*byte)).collect()
        })
    }
}

impl Seq {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.text.as_ref().map_or_else(|| self.0.values.get().map_or(0, Vec::len), |text| text.len())
    }

    /// Tells whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the characters, if the sequence was made as a string.
    pub(crate) fn text(&self) -> Option<&Arc<[u8]>> {
        self.0.text.as_ref()
    }
}

impl Value {
    /// Makes a function that is never called.
    pub(crate) fn nameless_function() -> Value {
        Value::Function(Rc::new(Function { code: super::code::nowhere(), captured: vec![] }))
    }

    /// Makes a pair.
    pub fn pair(first: Value, rest: Value) -> Value {
        Value::Pair(Rc::new((first, rest)))
    }

    pub(crate) fn int(&self) -> i64 {
        match self {
            Value::Int(value) => *value,
            _ => 0,
        }
    }

    pub(crate) fn float(&self) -> f64 {
        match self {
            Value::Float(value) => *value,
            _ => 0.0,
        }
    }

    pub(crate) fn bool(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    pub(crate) fn char(&self) -> u8 {
        match self {
            Value::Char(value) => *value,
            _ => b' ',
        }
    }

    /// Returns the elements of a sequence. The type checker ensures that the value is one.
    pub(crate) fn elements(&self) -> &[Value] {
        match self {
            Value::Seq(values) => values,
            _ => &[],
        }
    }

    pub(crate) fn parts(&self) -> (&Value, &Value) {
        match self {
            Value::Pair(parts) => (&parts.0, &parts.1),
            other => (other, other),
        }
    }

    /// Returns the parts of a triple.
    pub(crate) fn three(&self) -> (&Value, &Value, &Value) {
        let (first, rest) = self.parts();
        let (second, third) = rest.parts();
        (first, second, third)
    }

    /// Returns the number of elements of a sequence.
    pub(crate) fn length(&self) -> usize {
        match self {
            Value::Seq(values) => values.len(),
            _ => 0,
        }
    }

    /// Returns the characters of a sequence that was made as a string.
    pub(crate) fn characters(&self) -> Option<&Arc<[u8]>> {
        if let Value::Seq(values) = self { values.text() } else { None }
    }

    /// Returns the bytes of a string.
    pub(crate) fn bytes(&self) -> Arc<[u8]> {
        if let Some(text) = self.characters() {
            return text.clone();
        }
        self.elements().iter().map(Value::char).collect()
    }

    /// Returns a string as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}
