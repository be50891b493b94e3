//! Scatter: values are written to computed places, and values for one place are combined.
//!
//! Values are combined by atomic operations on integers. The order of these does not matter, so results are
//! deterministic. Narrow integers are combined in words; minima and maxima of floats are combined as integers
//! in the same order. If the last value counts, each place first finds the last position that is sent to it,
//! and then reads the value there. Sums of floats depend on the order: they are a [`Sort`](crate::Sort) by
//! place and a [`SegmentedReduce`](crate::SegmentedReduce) in one program.
//!
//! On a CPU, each block combines the values of its positions in a table of its own (`private`).

mod private;
mod program;
mod sums;

use crate::cost::ScatterTables;
use crate::kit::{Inlet, Writer, unravel};
use crate::order::{from_ordered, ordered};
use crate::program::Argument;
use crate::{Combine, Count, Domain, Sink, Source};
use broadloom_scalar::{AtomicOp, BinaryOp, Memory, Order, Scope, Type, Value};

/// Combines the initial value of each place with the values that a [`Source`] sends there from the positions
/// of a domain. The results go to a [`Sink`].
///
/// The source returns an integer, the place, and a value. A value for a place outside is dropped. The base
/// has one axis, the places, and returns a value of the same type. The sink has the same axis and type. The
/// sizes of a call are the lengths of the axes, then the number of places. Inputs and scalars are those of
/// the source, the base and the sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scatter {
    /// The positions.
    pub domain: Domain,
    /// Places and values.
    pub source: Source,
    /// Initial value of each place.
    pub base: Source,
    /// The way in which values for one place are combined with each other and with the base: sums, minima,
    /// maxima, and truth values. With `None` the value from the last position is stored. Floats are added to
    /// each other in an order that is the same for the same sizes, then to the base. Sums of `f16` are kept
    /// as `f32`.
    pub combine: Option<Combine>,
    /// Use of the results.
    pub sink: Sink,
    /// The memory in which blocks combine values. See [`Scatter::tables`].
    pub tables: ScatterTables,
}

/// Emitter of the kernels of a scatter.
struct ScatterEmitter<'a> {
    scatter: &'a Scatter,
    inlet: Inlet,
    index: Type,
    ty: Type,
    /// Type in which values are combined at each place.
    held: Type,
    memory: usize,
}

impl ScatterEmitter<'_> {
    fn held(&self, k: &Writer) -> Memory {
        k.memory(Argument::Temporary(self.memory), self.held.element())
    }

    fn position(&self, k: &Writer, number: Value) -> Vec<Value> {
        let axes = self.scatter.domain.axes();
        let lengths: Vec<Value> = (0..axes).map(|axis| k.count(Count::size(axis), self.index)).collect();
        unravel(k, number, &lengths)
    }

    /// Returns the atomic operation on combined values. The maximum of floats is the minimum in the reverse
    /// order.
    fn operation(&self) -> AtomicOp {
        match &self.scatter.combine {
            None => AtomicOp::Max,
            Some(Combine::Sum | Combine::Product | Combine::By(_)) => AtomicOp::Add,
            Some(Combine::Min) => AtomicOp::Min,
            Some(Combine::Max) if self.ty.element().is_float() => AtomicOp::Min,
            Some(Combine::Max) => AtomicOp::Max,
            Some(Combine::All) => AtomicOp::And,
            Some(Combine::Any) => AtomicOp::Or,
            Some(Combine::Odd) => AtomicOp::Xor,
        }
    }

    /// Returns the operation that combines two combined values.
    fn joining(&self) -> BinaryOp {
        match self.operation() {
            AtomicOp::Min => BinaryOp::Min,
            AtomicOp::Max => BinaryOp::Max,
            AtomicOp::And => BinaryOp::And,
            AtomicOp::Or => BinaryOp::Or,
            AtomicOp::Xor => BinaryOp::Xor,
            _ => BinaryOp::Add,
        }
    }

    fn send(&self, k: &Writer, number: Value) {
        self.send_to(k, number, &|place, sent| {
            k.atomic(self.operation(), self.held(k), place, sent, Order::Relaxed(Scope::Device));
        });
    }

    /// Passes on the place of a position, if there is such a place, and the value that is sent there.
    fn send_to(&self, k: &Writer, number: Value, combine: &dyn Fn(Value, Value)) {
        let values = self.inlet.at(k, &self.position(k, number));
        let places = k.count(Count::size(self.scatter.domain.axes()), self.index);
        // A negative place becomes a very large one.
        let place = if k.type_of(values[0]).element().is_signed() { k.convert(values[0], Type::I64) } else { values[0] };
        let place = k.convert(place, Type::U64);
        k.if_then(k.lt(place, k.convert(places, Type::U64)), || {
            let sent = match &self.scatter.combine {
                None => k.add(number, 1),
                Some(combine @ (Combine::Min | Combine::Max)) if self.ty.element().is_float() => {
                    ordered(k, values[1], *combine == Combine::Max)
                }
                _ => k.convert(values[1], self.held),
            };
            combine(place, sent);
        });
    }

    /// Returns the result of a place, from its combined and its initial value.
    fn result(&self, k: &Writer, held: Value, first: Value) -> Value {
        let Some(combine) = &self.scatter.combine else {
            let sent = || self.inlet.at(k, &self.position(k, k.sub(held, 1)))[1];
            return k.choose(k.ne(held, 0), sent, || first);
        };
        let value = match combine {
            Combine::Min | Combine::Max if self.ty.element().is_float() => {
                from_ordered(k, held, self.ty.element(), *combine == Combine::Max)
            }
            _ => k.convert(held, self.ty),
        };
        if self.held.element().is_float() {
            return k.convert(k.add(k.convert(first, self.held), held), self.ty);
        }
        combine.binary().map_or(first, |op| k.binary(op, first, value))
    }
}
