//! Instructions that move elements: distribution, indices, packs, permutations.

use super::facts::{Facts, Packed};
use super::vector::{Extent, Vector};
use super::{Accelerator, DeviceSegdes, Made, on_device};
use crate::eval::{Fault, Run};
use crate::vcode::machine::Entry;
use crate::vcode::{Inst, Op, Type};
use broadloom_graph::{Boundary, Combine, Elementwise, Length, Node, Shape};
use broadloom_scalar::{self as scalar, Element, Literal};

impl Accelerator {
    pub(super) fn segmented(&mut self, op: Op, ty: Type, operands: &[Entry]) -> Run<Vec<Made>> {
        let internal = || Fault::at_run_time(format!("internal error: {} on a device; please report it", op.name()));
        let result = |acc_ty: Type, vector: Vector| Ok(vec![Made::Vector(acc_ty.stacked(), vector)]);
        match (op, operands) {
            (Op::Length, [values]) => {
                let values = self.vector(values)?;
                let int = self.int();
                let count = self.count_of(&values.extent, int)?;
                let generated = matches!(values.extent, Extent::Host(_));
                result(Type::Int, Vector::of(self.as_vector(&count)?).generated(generated))
            }
            (Op::MakeSegdes, [lengths]) => {
                let vector = self.vector(lengths)?;
                if !self.trusted {
                    let wrong = self.call("below", &[&vector.node], |f, x| f.lt(x[0], 0))?;
                    self.require_none(Inst::Op(op, ty), operands, &wrong, &vector.extent)?;
                }
                Ok(vec![Made::Segdes(DeviceSegdes::of_lengths(vector))])
            }
            (Op::Lengths, [segdes]) => {
                let segdes = self.segdes(segdes)?;
                result(Type::Int, segdes.lengths())
            }
            (Op::Distribute, [values, segdes]) => {
                let (values, segdes) = (self.vector(values)?, self.segdes(segdes)?);
                self.same_count(op, &values, segdes.count())?;
                let spread = self.spread(&values, &segdes)?;
                result(ty, spread)
            }
            (Op::Index, [starts, steps, segdes]) => {
                let (starts, steps) = (self.vector(starts)?, self.vector(steps)?);
                let segdes = self.segdes(segdes)?;
                self.same_count(op, &starts, segdes.count())?;
                self.same_count(op, &steps, segdes.count())?;
                let indices = self.index(&starts, &steps, &segdes)?;
                result(Type::Int, indices)
            }
            (Op::Pack, [values, flags, segdes]) => self.pack(ty, values, flags, segdes),
            (Op::RankUp | Op::RankDown, [values, segdes]) => {
                let (values, segdes) = (self.vector(values)?, self.segdes(segdes)?);
                self.same_total(op, &values, &segdes)?;
                let ranks = self.rank(&values, &segdes, op == Op::RankDown)?;
                result(Type::Int, ranks)
            }
            (_, [values, segdes]) => {
                let (values, segdes) = (self.vector(values)?, self.segdes(segdes)?);
                self.same_total(op, &values, &segdes)?;
                match self.fold(op, &values, &segdes)? {
                    Some(folded) => result(ty, folded),
                    None => internal(),
                }
            }
            (_, [values, indices, ..]) => {
                let (values, indices) = (self.vector(values)?, self.vector(indices)?);
                let moved = self.moved(op, ty, &values, &indices, operands)?;
                result(ty, moved)
            }
            _ => internal(),
        }
    }

    /// Checks, in programs of texts, that a vector has an element for each segment.
    fn same_count(&mut self, op: Op, vector: &Vector, count: &Extent) -> Run<()> {
        if self.trusted {
            return Ok(());
        }
        let (own, wanted) = (self.known(&vector.extent)?, self.known(count)?);
        self.fits(op, own, wanted)
    }

    /// Checks, in programs of texts, that a descriptor cuts the elements of a vector.
    fn same_total(&mut self, op: Op, vector: &Vector, segdes: &DeviceSegdes) -> Run<()> {
        if self.trusted {
            segdes.note(vector);
            return Ok(());
        }
        let total = self.total(segdes)?;
        let (own, wanted) = (self.known(&vector.extent)?, self.known(&total)?);
        self.fits(op, own, wanted)
    }

    fn fits(&self, op: Op, a: usize, b: usize) -> Run<()> {
        if a == b {
            return Ok(());
        }
        Fault::at_run_time(format!("the operands of {} do not fit each other: {a} and {b} elements", op.name()))
    }

    fn index(&mut self, starts: &Vector, steps: &Vector, segdes: &DeviceSegdes) -> Run<Vector> {
        let (total, int) = (self.total(segdes)?, self.int());
        let positions = self.positions(&total, int)?;
        let mut generated = starts.generated && steps.generated;
        let positions = if segdes.is_single() {
            positions
        } else {
            generated = false;
            let places = on_device(self.segments(segdes)?.places())?;
            self.convert(&places, int)?
        };
        let (starts, steps) = (self.spread(starts, segdes)?, self.spread(steps, segdes)?);
        let inputs = [&positions, &starts.node, &steps.node];
        let node = self.call("index", &inputs, |f, x| f.add(x[1], f.mul(x[0], x[2])))?;
        let distinct = segdes.is_single() && steps.facts.value.is_some_and(|step| step != 0);
        let facts = Facts { distinct, ..Facts::default() };
        Ok(Vector { generated, facts, ..Vector::new(node, total) })
    }

    fn pack(&mut self, ty: Type, values: &Entry, flags: &Entry, segdes: &Entry) -> Run<Vec<Made>> {
        let (vector, chosen, segdes) = (self.vector(values)?, self.vector(flags)?, self.segdes(segdes)?);
        let extent = self.common_extent(Op::Pack, &[vector.clone(), chosen.clone()])?;
        self.same_total(Op::Pack, &vector, &segdes)?;
        let whole = |acc: &mut Self, vector: &Vector| {
            let stretched = Vector { extent: extent.clone(), ..vector.clone() };
            acc.whole(&stretched)
        };
        let (mut nodes, mut chosen) = (whole(self, &vector)?, whole(self, &chosen)?);
        let mut extent = extent.clone();
        if !nodes.length().zip(chosen.length()).is_some_and(|(a, b)| a.is_same(b)) && nodes.bound() != chosen.bound() {
            // Both are equally long, and the host knows that of one of them at most.
            (nodes, chosen) = (on_device(nodes.hosted())?, on_device(chosen.hosted())?);
            extent = Extent::Host(nodes.bound().count());
        }
        let int = self.int();
        // Lengths of the parts that are kept: one is the number that the pack counts.
        if extent.bound() == 0 {
            let context = self.context()?;
            let zero = on_device(Node::fill(&context, Shape::from(1), &[Literal::zero(int)]))?;
            let lengths = Vector::new(zero, segdes.count().clone()).with_facts(Facts::of_value(0));
            let packed = Vector::new(nodes, Extent::Host(0));
            return Ok(vec![Made::Vector(ty, packed), Made::Segdes(DeviceSegdes::with_total(lengths, Extent::Host(0)))]);
        }
        self.made += 2;
        let (padded, count) = if extent.bound() == 1 {
            // A second element that is not chosen: see [`Extent`].
            let positions = self.positions(&Extent::Host(2), int)?;
            let first = self.call("first", &[&positions, &chosen], |f, x| f.and(f.eq(x[0], 0), x[1]))?;
            on_device(on_device(nodes.broadcast_to(&Shape::from(2)))?.pack_counted(&first))?
        } else {
            on_device(nodes.pack_counted(&chosen))?
        };
        // Packs by the same flags keep equally many elements.
        let known = if let Entry::Device(flags) = flags { flags.kept.get().cloned() } else { None };
        let length = match known {
            Some(length) => length,
            None => {
                let length = on_device(Length::new(&count, extent.bound().max(2)))?;
                if let Entry::Device(flags) = flags {
                    let _ = flags.kept.set(length.clone());
                }
                length
            }
        };
        let kept = Extent::Device(length);
        let facts = Facts { sum: None, bound: vector.sum_bound(), ..vector.facts.clone() };
        let packed = if vector.is_uniform() && extent.bound() > 1 {
            Vector::new(vector.node.clone(), kept.clone()).generated(vector.generated)
        } else {
            Vector::shortened(padded, &kept)?
        };
        let before = Packed { flags: chosen.clone(), before: nodes };
        let packed = Vector { packed: (extent.bound() > 1).then_some(before), ..packed.with_facts(facts) };
        let lengths = if segdes.is_single() {
            let count = self.count_of(&kept, int)?;
            self.as_vector(&count)?
        } else {
            let ones = self.elementwise(Elementwise::Convert(int), &[&chosen])?;
            let segments = self.segments(&segdes)?;
            on_device(segments.reduce(&[(&ones, Combine::Sum)]))?.swap_remove(0)
        };
        let lengths = Vector { extent: segdes.count().clone(), ..Vector::of(lengths) };
        let mut parts = DeviceSegdes::with_total(lengths, kept);
        parts.packed = Some((chosen, segdes));
        Ok(vec![Made::Vector(ty, packed), Made::Segdes(parts)])
    }

    /// Returns places in a whole vector: indices within the segments of `to`, of elements that `by` cuts into segments.
    fn places(&mut self, indices: &Node, by: &DeviceSegdes, to: &DeviceSegdes) -> Run<Node> {
        if to.is_single() {
            return Ok(indices.clone());
        }
        let starts = self.spread_starts(to, by)?;
        self.call("place", &[indices, &starts], |f, x| f.add(f.convert(x[0], scalar::Type::I64), x[1]))
    }

    /// Adds, in programs of texts, the condition that indices are within segments.
    fn require_inside(&mut self, op: Op, ty: Type, operands: &[Entry], moves: &Moves<'_>) -> Run<()> {
        if self.trusted {
            return Ok(());
        }
        let lengths = self.spread(&moves.to.lengths, moves.by)?;
        let mut wrong =
            self.call("outside", &[&moves.indices.node, &lengths.node], |f, x| f.or(f.lt(x[0], 0), f.ge(x[0], x[1])))?;
        if let Some(flags) = moves.flags {
            wrong = self.call("both", &[&wrong, &flags.node], |f, x| f.and(x[0], x[1]))?;
        }
        self.require_none(Inst::Op(op, ty), operands, &wrong, &moves.indices.extent)
    }

    fn moved(&mut self, op: Op, ty: Type, values: &Vector, indices: &Vector, operands: &[Entry]) -> Run<Vector> {
        let element = values.node.ty().element();
        match (op, &operands[2..]) {
            (Op::Permute, [segdes]) => {
                let segdes = self.segdes(segdes)?;
                let moves = Moves { indices, flags: None, by: &segdes, to: &segdes };
                self.same_total(op, indices, &segdes)?;
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(values, &moves, None, element)
            }
            (Op::DefaultPermute, [default, from, to]) => {
                let (default, from, to) = (self.vector(default)?, self.segdes(from)?, self.segdes(to)?);
                self.same_total(op, indices, &from)?;
                self.same_total(op, &default, &to)?;
                let moves = Moves { indices, flags: None, by: &from, to: &to };
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(values, &moves, Some(&default), element)
            }
            (Op::FlagPermute, [flags, from, to]) => {
                let (flags, from, to) = (self.vector(flags)?, self.segdes(from)?, self.segdes(to)?);
                self.same_total(op, indices, &from)?;
                let moves = Moves { indices, flags: Some(&flags), by: &from, to: &to };
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(values, &moves, None, element)
            }
            (Op::DefaultFlagPermute, [flags, default, from, to]) => {
                let (flags, default) = (self.vector(flags)?, self.vector(default)?);
                let (from, to) = (self.segdes(from)?, self.segdes(to)?);
                self.same_total(op, indices, &from)?;
                self.same_total(op, &default, &to)?;
                let moves = Moves { indices, flags: Some(&flags), by: &from, to: &to };
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(values, &moves, Some(&default), element)
            }
            (Op::BackPermute, [from, to]) => {
                let (from, to) = (self.segdes(from)?, self.segdes(to)?);
                self.same_total(op, values, &from)?;
                self.same_total(op, indices, &to)?;
                let moves = Moves { indices, flags: None, by: &to, to: &from };
                self.require_inside(op, ty, operands, &moves)?;
                self.gather(values, &moves, element)
            }
            (Op::BackFlagPermute, [flags, from, to]) => {
                let (flags, from, to) = (self.vector(flags)?, self.segdes(from)?, self.segdes(to)?);
                self.same_total(op, values, &from)?;
                self.same_total(op, indices, &to)?;
                let moves = Moves { indices, flags: Some(&flags), by: &to, to: &from };
                self.require_inside(op, ty, operands, &moves)?;
                self.gather(values, &moves, element)
            }
            (Op::Extract, [segdes]) => {
                let segdes = self.segdes(segdes)?;
                self.same_total(op, values, &segdes)?;
                self.same_count(op, indices, segdes.count())?;
                self.require_each(op, ty, operands, indices, &segdes)?;
                let places = self.first_places(indices, &segdes)?;
                self.taken(values, &places, element, segdes.count(), false)
            }
            (Op::Replace, [new, segdes]) => {
                let (new, segdes) = (self.vector(new)?, self.segdes(segdes)?);
                self.same_total(op, values, &segdes)?;
                self.same_count(op, indices, segdes.count())?;
                self.same_count(op, &new, segdes.count())?;
                self.require_each(op, ty, operands, indices, &segdes)?;
                let places = self.first_places(indices, &segdes)?;
                self.made += 1;
                let base = self.padded(values)?;
                let new = self.whole(&new)?;
                Vector::shortened(on_device(base.scatter(&[&places], &new, None))?, &values.extent)
            }
            _ => Fault::at_run_time(format!("internal error: {} on a device; please report it", op.name())),
        }
    }

    /// Adds, in programs of texts, the condition that there is an element at the index of each segment.
    fn require_each(&mut self, op: Op, ty: Type, operands: &[Entry], indices: &Vector, segdes: &DeviceSegdes) -> Run<()> {
        if self.trusted {
            return Ok(());
        }
        let lengths = &segdes.lengths.node;
        let wrong = self.call("outside", &[&indices.node, lengths], |f, x| f.or(f.lt(x[0], 0), f.ge(x[0], x[1])))?;
        self.require_none(Inst::Op(op, ty), operands, &wrong, &indices.extent)
    }

    /// Returns the place of an index within each segment.
    fn first_places(&mut self, indices: &Vector, segdes: &DeviceSegdes) -> Run<Node> {
        let indices = self.whole(indices)?;
        if segdes.is_single() {
            return Ok(indices);
        }
        let starts = on_device(self.segments(segdes)?.starts())?;
        self.call("place", &[&indices, &starts], |f, x| f.add(f.convert(x[0], scalar::Type::I64), x[1]))
    }

    fn scatter(&mut self, values: &Vector, moves: &Moves<'_>, default: Option<&Vector>, element: Element) -> Run<Vector> {
        let extent = match default {
            Some(default) if !default.is_uniform() => default.extent.clone(),
            _ => self.total(moves.to)?,
        };
        let base = match default {
            Some(default) => self.padded(&Vector { extent: extent.clone(), ..default.clone() })?,
            None => {
                let context = self.context()?;
                on_device(Node::fill(&context, Shape::from(extent.bound()), &[Literal::zero(element)]))?
            }
        };
        let mut places = self.places(&moves.indices.node, moves.by, moves.to)?;
        if let Some(flags) = moves.flags {
            places = self.call("chosen", &[&flags.node, &places], |f, x| f.select(x[0], x[1], -1))?;
        }
        let sent = [values, moves.indices].into_iter().find(|vector| !vector.is_uniform());
        let sent = sent.map_or_else(|| moves.indices.extent.clone(), |vector| vector.extent.clone());
        if sent.is_host(0) || extent.is_host(0) {
            return Vector::shortened(base, &extent);
        }
        // Each place takes one of the elements that are sent to it.
        let bound = values.sum_bound().zip(default.map_or(Some(0), Vector::sum_bound)).and_then(|(a, b)| a.checked_add(b));
        let facts = Facts::of_bound(bound);
        let places = self.whole(&Vector { extent: sent.clone(), ..Vector::of(places) })?;
        let values = self.whole(&Vector { extent: sent, ..values.clone() })?;
        self.made += 1;
        let moved = on_device(base.scatter(&[&places], &values, None))?;
        Ok(Vector::shortened(moved, &extent)?.with_facts(facts))
    }

    fn gather(&mut self, values: &Vector, moves: &Moves<'_>, element: Element) -> Run<Vector> {
        let mut places = self.places(&moves.indices.node, moves.by, moves.to)?;
        if let Some(flags) = moves.flags {
            places = self.call("chosen", &[&flags.node, &places], |f, x| f.select(x[0], x[1], -1))?;
        }
        let taken = self.taken(values, &places, element, &moves.indices.extent, moves.flags.is_some())?;
        // Elements at distinct places are some of the elements, each once.
        let bound = values.sum_bound().filter(|_| moves.indices.facts.distinct && moves.to.is_single());
        Ok(taken.with_facts(Facts::of_bound(bound)))
    }

    /// Takes elements at places. Where `flagged`, places outside give 0.
    fn taken(&mut self, values: &Vector, places: &Node, element: Element, extent: &Extent, flagged: bool) -> Run<Vector> {
        let extent = if places.length().is_none() && places.bound().count() == 1 {
            extent.clone()
        } else {
            Vector::of(places.clone()).extent
        };
        self.made += 1;
        let from = self.whole(values)?;
        let zero = [Literal::zero(element)];
        // Nothing can be taken of an empty vector. Where a condition fails for that reason the elements do not matter.
        let outside =
            if flagged || from.bound().is_empty() { Boundary::Constant(zero.as_slice().into()) } else { Boundary::Clamp };
        let node = on_device(from.gather(&[places], &outside))?;
        Ok(Vector::new(node, extent))
    }
}

/// Where elements go, or come from.
struct Moves<'a> {
    indices: &'a Vector,
    flags: Option<&'a Vector>,
    /// Cuts the indices into segments.
    by: &'a DeviceSegdes,
    /// Cuts the vector that they point into.
    to: &'a DeviceSegdes,
}
