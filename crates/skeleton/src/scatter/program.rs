//! Program of a scatter.

use super::{Scatter, ScatterEmitter, sums};
use crate::cost::{self, Costs, ScatterTables};
use crate::kit::{Draft, Writer};
use crate::program::Program;
use crate::{Combine, Count, Error, Result};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Literal, Type, Value};

/// Returns true if the pattern can combine values of a type in this way. Operators and products are not
/// supported: sort by place and scan segments instead.
fn takes(combine: Option<&Combine>, ty: Type) -> bool {
    match combine {
        None => true,
        Some(Combine::Product | Combine::By(_)) => false,
        Some(combine) => ty.is_scalar() && combine.takes(ty),
    }
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
        let is_kept = |tables: &ScatterTables| *tables != ScatterTables::Own || !self.flushes(ty);
        let tables = Some(self.tables).filter(|_| Costs::of(machine).in_vectors()).filter(is_kept).unwrap_or_default();
        if tables == ScatterTables::Common && self.combine == Some(Combine::Sum) && ty.element().is_float() {
            sums::SumsEmitter { scatter: self, inlet, base, outlet, index, ty }.include(&mut draft, machine)?;
            return Ok(draft.finish());
        }
        let (wide, signed) = (ty.element().bits() == 64, ty.element().is_signed());
        let held = match (&self.combine, wide, signed) {
            (None, ..) => index,
            (Some(Combine::Sum), ..) if ty == Type::F16 => Type::F32,
            (Some(Combine::Sum), ..) if ty.element().is_float() => ty,
            (Some(Combine::Min | Combine::Max), true, true) => Type::I64,
            (Some(Combine::Min | Combine::Max), false, true) => Type::I32,
            (_, true, _) => Type::U64,
            (_, false, _) => Type::U32,
        };
        let nothing = self.nothing(ty, held);
        if tables != ScatterTables::Common {
            let room = if let ScatterTables::Shared(room) = tables { Some(room) } else { None };
            let parts = ScatterEmitter { scatter: self, inlet, index, ty, held, memory: 0 };
            parts.privately(&mut draft, machine, room, nothing, &base, &outlet)?;
            return Ok(draft.finish());
        }
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
            let result = parts.result(k, k.load(parts.held(k), place), first);
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
