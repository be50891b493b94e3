//! Scatter: values are written to computed places, and values for one place are combined.
//!
//! Values are combined by atomic operations on integers. The order of these does not matter, so results are
//! deterministic. Narrow integers are combined in words; minima and maxima of floats are combined as integers
//! in the same order. If the last value counts, each place first finds the last position that is sent to it,
//! and then reads the value there. Sums of floats depend on the order: they are a [`Sort`](crate::Sort) by
//! place and a [`SegmentedReduce`](crate::SegmentedReduce) in one program.

mod sums;

use crate::cost::{self, Costs};
use crate::kit::{Draft, Inlet, Writer, unravel};
use crate::order::{from_ordered, ordered};
use crate::program::{Argument, Program};
use crate::{Combine, Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{AtomicOp, Axis, Literal, Memory, Order, Scope, Type, Value};

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
}

/// Returns true if the pattern can combine values of a type in this way. Operators and products are not
/// supported: sort by place and scan segments instead.
fn takes(combine: Option<&Combine>, ty: Type) -> bool {
    match combine {
        None => true,
        Some(Combine::Product | Combine::By(_)) => false,
        Some(combine) => ty.is_scalar() && combine.takes(ty),
    }
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

impl Scatter {
    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let bad = |reason: String| Err(Error::Pattern { pattern: "scatter", reason });
        let axes = self.domain.axes();
        let ty = match self.source.results()[..] {
            [place, ty] if place.is_scalar() && place.element().is_integer() && self.base.results() == [ty] => ty,
            _ => return bad("a source gives a place and a value, and the base a value of the same type".to_owned()),
        };
        if self.base.axes() != 1 {
            return bad(format!("positions of the base have {} indices, and places have one", self.base.axes()));
        }
        if !takes(self.combine.as_ref(), ty) {
            let name = self.combine.as_ref().map_or("last", Combine::name);
            return bad(format!("values of type `{ty}` are not combined by `{name}`"));
        }
        self.sink.check("scatter", 1, &[ty])?;
        let index = match (self.domain.check("scatter", &[&self.source], &self.sink)?, self.base.index().element().bits()) {
            (Type::U32, 32) => Type::U32,
            _ => Type::U64,
        };
        let (count, places) = (self.domain.count(), Count::size(axes));
        let mut draft = Draft::new("scatter", axes + 1);
        let (inlet, base) = (draft.source(&self.source), draft.source(&self.base));
        let outlet = draft.sink(&self.sink, &[ty], &places);
        if index == Type::U32 {
            draft.limit(count.clone());
            draft.limit(places.clone());
        }
        if self.combine == Some(Combine::Sum) && ty.element().is_float() {
            sums::Sums { scatter: self, inlet, base, outlet, index, ty }.include(&mut draft, machine)?;
            return Ok(draft.finish());
        }
        let (wide, signed) = (ty.element().bits() == 64, ty.element().is_signed());
        let held = match (&self.combine, wide, signed) {
            (None, ..) => index,
            (Some(Combine::Min | Combine::Max), true, true) => Type::I64,
            (Some(Combine::Min | Combine::Max), false, true) => Type::I32,
            (_, true, _) => Type::U64,
            (_, false, _) => Type::U32,
        };
        let nothing = self.nothing(ty, held);
        let memory = draft.temporary(places.clone() * held.bytes(), nothing.bits() == 0);
        let parts = ScatterEmitter { scatter: self, inlet, index, ty, held, memory };
        let threads = Costs::of(machine).pick(cost::SCATTER_THREADS);
        let block = [threads, 1, 1];
        let grid = |count: &Count| [count.clone().div_ceil(threads), 1u32.into(), 1u32.into()];
        let each = |name: &str, count: &Count, body: &dyn Fn(&Writer, Value)| {
            let k = Writer::new(name, block);
            let block_start = k.mul(k.convert(k.block(Axis::X), index), threads);
            let i = k.add(block_start, k.convert(k.thread(Axis::X), index));
            k.if_then(k.lt(i, k.count(count.clone(), index)), || body(&k, i));
            k
        };
        if nothing.bits() != 0 {
            let k = each("scatter_start", &places, &|k, place| k.store(parts.held(k), place, k.literal(nothing)));
            draft.launch(k, grid(&places), block)?;
        }
        let k = each("scatter", &count, &|k, i| parts.send(k, i));
        draft.launch(k, grid(&count), block)?;
        let k = each("scatter_result", &places, &|k, place| {
            let first = base.at(k, &[place])[0];
            let result = parts.result(k, place, first);
            outlet.put(k, &[place], place, &[result]);
        });
        draft.launch(k, grid(&places), block)?;
        Ok(draft.finish())
    }

    /// Returns the initial combined value of a place.
    fn nothing(&self, ty: Type, held: Type) -> Literal {
        let element = held.element();
        let bound = |greatest: bool| match ty.element().range() {
            Some((low, high)) => Literal::from_i128(element, if greatest { high } else { low }),
            None => Literal::from_bits(element, u64::MAX),
        };
        match &self.combine {
            Some(Combine::Min) => bound(true),
            Some(Combine::Max) => bound(false),
            Some(Combine::All) => Literal::from_bits(element, u64::MAX),
            None | Some(Combine::Sum | Combine::Any | Combine::Odd | Combine::Product | Combine::By(_)) => Literal::zero(element),
        }
    }
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

    fn send(&self, k: &Writer, number: Value) {
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
            k.atomic(self.operation(), self.held(k), place, sent, Order::Relaxed(Scope::Device));
        });
    }

    fn result(&self, k: &Writer, place: Value, first: Value) -> Value {
        let held = k.load(self.held(k), place);
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
        combine.binary().map_or(first, |op| k.binary(op, first, value))
    }
}
