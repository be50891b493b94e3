//! Small vectors: construction, lanes, and operations lane by lane.

use super::{Builder, Operand, Value};
use crate::op::Op;
use crate::types::{Element, Type};

impl Builder {
    /// Broadcasts a value to all lanes of a vector.
    pub(crate) fn splat(&self, value: Value, lanes: usize) -> Value {
        match Type::vector(self.type_of(value).element(), lanes) {
            Some(ty) if lanes > 1 => self.intern(Op::Vector(std::iter::repeat_n(value.id, lanes).collect()), ty),
            _ => value,
        }
    }

    /// Builds a vector from its lanes: 2, 3, 4, 8 or 16 plain values of one type. Returns a single value
    /// unchanged.
    #[track_caller]
    pub fn vector(&self, lanes: &[Value]) -> Value {
        let mut checked = vec![];
        for lane in lanes {
            match self.checked(*lane) {
                Some(lane) => checked.push(lane),
                None => return self.poison(),
            }
        }
        let Some(first) = checked.first() else { return self.fail("a vector has at least one lane") };
        let ty = self.type_of(*first);
        if let Some(other) = checked.iter().find(|lane| self.type_of(**lane) != ty) {
            return self.fail(format!("the lanes of a vector are `{ty}` and `{}`", self.type_of(*other)));
        }
        match Type::vector(ty.element(), checked.len()) {
            _ if !ty.is_scalar() => self.fail(format!("a lane cannot be `{ty}`")),
            Some(whole) if whole.lanes() > 1 => self.intern(Op::Vector(self.ids(&checked)), whole),
            Some(_) => *first,
            None => self.fail(format!("there are no vectors of {} lanes", checked.len())),
        }
    }

    /// Returns a lane of a vector. Returns a plain value unchanged.
    #[track_caller]
    pub fn lane(&self, vector: Value, lane: usize) -> Value {
        let Some(vector) = self.checked(vector) else { return self.poison() };
        let ty = self.type_of(vector);
        if lane >= ty.lanes() {
            return self.fail(format!("`{ty}` has no lane {lane}"));
        }
        if ty.is_scalar() {
            return vector;
        }
        match self.op(vector) {
            Some(Op::Vector(lanes)) => self.wrap(lanes[lane]),
            _ => self.pure(Op::Lane(vector.id, lane as u8), ty.element()),
        }
    }

    /// Returns all lanes of a vector. Returns a plain value unchanged.
    #[track_caller]
    pub fn lanes(&self, vector: Value) -> Vec<Value> {
        (0..self.type_of(vector).lanes()).map(|lane| self.lane(vector, lane)).collect()
    }

    /// Applies a function of plain values to each lane of values with the same number of lanes.
    #[track_caller]
    pub(crate) fn each_lane(&self, values: &[Value], mut apply: impl FnMut(&[Value]) -> Value) -> Value {
        let lanes = values.iter().map(|value| self.type_of(*value).lanes()).max().unwrap_or(1);
        if lanes == 1 {
            return apply(values);
        }
        let results: Vec<Value> = (0..lanes)
            .map(|lane| {
                let inputs: Vec<Value> = values.iter().map(|value| self.lane(*value, lane)).collect();
                apply(&inputs)
            })
            .collect();
        self.vector(&results)
    }

    /// Reinterprets the bits as a type of the same size, such as `u32` and `f32`, or `u64` and `u32x2`. The
    /// first lane has the lowest bits.
    #[track_caller]
    pub fn bitcast(&self, value: impl Into<Operand>, to: impl Into<Type>) -> Value {
        let (Operand::Value(value), to) = (value.into(), to.into()) else {
            return self.fail("the bits of a number without a type");
        };
        let Some(value) = self.checked(value) else { return self.poison() };
        let from = self.type_of(value);
        if from == to {
            return value;
        }
        let truth = |ty: Type| ty.element() == Element::Bool;
        if from.bytes() != to.bytes() || truth(from) || truth(to) {
            return self.fail(format!("the bits of `{from}` are not those of `{to}`"));
        }
        if from.lanes() == to.lanes() {
            return self.each_lane(&[value], |lane| self.bitcast_lane(lane[0], to.element()));
        }
        // The conversion uses unsigned integers: it splits into the narrower lanes, or joins into the wider
        // ones.
        let (Some(narrow), Some(wide)) =
            (from.element().unsigned().min(to.element().unsigned()), from.element().unsigned().max(to.element().unsigned()))
        else {
            return self.fail(format!("the bits of `{from}` are not those of `{to}`"));
        };
        let ratio = (wide.bits() / narrow.bits()) as usize;
        let sources: Vec<Value> = self.lanes(value);
        let mut results = vec![];
        if from.element().bits() > to.element().bits() {
            for source in sources {
                let bits = self.bitcast_lane(source, wide);
                for part in 0..ratio {
                    let part = self.convert(self.shr(bits, part as u32 * narrow.bits()), narrow);
                    results.push(self.bitcast_lane(part, to.element()));
                }
            }
        } else {
            for parts in sources.chunks(ratio) {
                let mut whole = self.convert(self.bitcast_lane(parts[0], narrow), wide);
                for (part, source) in parts.iter().enumerate().skip(1) {
                    let bits = self.convert(self.bitcast_lane(*source, narrow), wide);
                    whole = self.or(whole, self.shl(bits, part as u32 * narrow.bits()));
                }
                results.push(self.bitcast_lane(whole, to.element()));
            }
        }
        self.vector(&results)
    }

    fn bitcast_lane(&self, value: Value, to: Element) -> Value {
        if self.type_of(value).element() == to || self.is_poison(value) { value } else { self.pure(Op::Bitcast(value.id), to) }
    }
}
