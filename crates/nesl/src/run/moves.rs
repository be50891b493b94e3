//! Instructions that move elements: distribution, indices, packs, permutations.

use super::Entry;
use super::bound::plus;
use super::entry::KeptElements;
use super::extent::{Extent, line};
use super::vector::{Affine, BeforePack, ChosenFlags, Facts, Vector};
use super::{Accelerator, DeviceSegdes, OpResult, on_device};
use crate::eval::{Fault, Run};
use crate::vcode::{Inst, Op, Type};
use broadloom_graph::{Boundary, Combine, Elementwise, Node, Shape};
use broadloom_scalar::{self as scalar, BinaryOp, Element, Literal};
use std::cell::OnceCell;
use std::rc::Rc;

impl Accelerator {
    pub(super) fn segmented(&mut self, op: Op, ty: Type, operands: &[Entry]) -> Run<Vec<OpResult>> {
        let internal = || Fault::at_run_time(format!("internal error: {} on a device; please report it", op.name()));
        let result = |acc_ty: Type, vector: Vector| Ok(vec![OpResult::Vector(acc_ty.stacked(), vector)]);
        let inst = Inst::Op(op, ty);
        match (op, operands) {
            (Op::Length, [values]) => {
                let values = self.stored_vector(values)?;
                let int = self.int();
                let count = self.count_of(&values.extent, int)?;
                result(Type::Int, Vector::of(self.as_vector(&count)?).generated(true))
            }
            (Op::MakeSegdes, [lengths]) => {
                let vector = self.vector(lengths)?;
                if !self.trusted {
                    let wrong = self.call("below", &[&vector.node], |f, x| f.lt(x[0], 0))?;
                    self.require_none(Inst::Op(op, ty), operands, &wrong, &vector.extent)?;
                }
                Ok(vec![OpResult::Segdes(DeviceSegdes::of_lengths(vector))])
            }
            (Op::Lengths, [segdes]) => {
                let segdes = self.segdes(segdes)?;
                result(Type::Int, segdes.lengths())
            }
            (Op::Distribute, [values, segdes]) => {
                let (values, segdes) = (self.stored_vector(values)?, self.segdes(segdes)?);
                let (values, segdes) = self.each(&inst, operands, &values, &segdes)?;
                let spread = self.spread(&values, &segdes)?;
                result(ty, spread)
            }
            (Op::Index, [starts, steps, segdes]) => {
                let (starts, steps) = (self.vector(starts)?, self.vector(steps)?);
                let segdes = self.segdes(segdes)?;
                let (starts, segdes) = self.each(&inst, operands, &starts, &segdes)?;
                let (steps, segdes) = self.each(&inst, operands, &steps, &segdes)?;
                let indices = self.index(&starts, &steps, &segdes)?;
                result(Type::Int, indices)
            }
            (Op::Pack, [values, flags, segdes]) => self.pack(ty, [values, flags, segdes], operands),
            (Op::RankUp | Op::RankDown, [values, segdes]) => {
                let (values, segdes) = (self.stored_vector(values)?, self.segdes(segdes)?);
                let (values, segdes) = self.cut(&inst, operands, &values, &segdes)?;
                let longest = self.longest(&segdes)?;
                // The host may have learned the number of elements.
                let (values, segdes) = self.cut(&inst, operands, &values, &segdes)?;
                let ranks = self.rank(&values, &segdes, longest, op == Op::RankDown)?;
                result(Type::Int, ranks)
            }
            (_, [values, segdes]) => {
                let (values, segdes) = (self.vector(values)?, self.segdes(segdes)?);
                let (values, segdes) = self.cut(&inst, operands, &values, &segdes)?;
                match self.fold(op, &values, &segdes)? {
                    Some(folded) => result(ty, folded),
                    None => internal(),
                }
            }
            (_, [values, indices, ..]) => {
                let (values, indices) = (self.stored_vector(values)?, self.vector(indices)?);
                let moved = self.moved(op, ty, &values, &indices, operands)?;
                result(ty, moved)
            }
            _ => internal(),
        }
    }

    /// Returns values, one for each segment, with the number of segments as their extent. In parsed programs
    /// their number becomes a condition. Also returns the descriptor, with facts that the host may have
    /// learned.
    pub(super) fn each(
        &mut self,
        inst: &Inst,
        operands: &[Entry],
        vector: &Vector,
        segdes: &Rc<DeviceSegdes>,
    ) -> Run<(Vector, Rc<DeviceSegdes>)> {
        if !self.trusted {
            self.require_equal(inst, operands, &vector.extent, segdes.count())?;
        } else if let (Extent::Host(count), Extent::Device(length)) = (&vector.extent, segdes.count()) {
            length.learn(count.clone());
        }
        let segdes = self.current_segdes(segdes)?;
        Ok((self.with_extent(vector, segdes.count())?, segdes))
    }

    /// Returns elements that a descriptor cuts, with the number of its elements as their extent. In parsed
    /// programs their number becomes a condition. Also returns the descriptor, with facts that the host may
    /// have learned.
    pub(super) fn cut(
        &mut self,
        inst: &Inst,
        operands: &[Entry],
        vector: &Vector,
        segdes: &Rc<DeviceSegdes>,
    ) -> Run<(Vector, Rc<DeviceSegdes>)> {
        if self.trusted {
            segdes.note(vector);
        } else {
            let total = self.total(segdes)?;
            self.require_equal(inst, operands, &vector.extent, &total)?;
        }
        let total = self.total(segdes)?;
        if let (true, Extent::Host(count), Extent::Device(length)) = (self.trusted, &vector.extent, &total) {
            length.learn(count.clone());
        }
        let segdes = self.current_segdes(segdes)?;
        let total = self.total(&segdes)?;
        Ok((self.with_extent(vector, &total)?, segdes))
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
        let node = match steps.facts.constant() {
            // With a step of 1, neighbouring elements stay neighbours.
            Some(1) => self.elementwise(Elementwise::Binary(BinaryOp::Add), &[&starts.node, &positions])?,
            _ => {
                let inputs = [&positions, &starts.node, &steps.node];
                self.call("index", &inputs, |f, x| f.add(x[1], f.mul(x[0], x[2])))?
            }
        };
        let step = steps.facts.constant().filter(|step| segdes.is_single() && *step != 0);
        let start = starts.node.clone();
        let affine = step.filter(|step| *step > 0).map(|step| Affine { start, known: starts.facts.constant(), step });
        let facts = Facts { distinct: step.is_some(), affine, ..Facts::default() };
        Ok(Vector { generated, facts, ..Vector::new(node, total) })
    }

    /// Returns an arithmetic progression of ints. It is not stored.
    pub(crate) fn progression(&mut self, start: i64, step: i64, extent: Extent) -> Run<Vector> {
        let mut number = |value: i64| -> Run<Vector> {
            let one = self.one(Literal::from_i128(self.int(), value.into()))?;
            Ok(Vector::of(one).generated(true).with_facts(Facts::of_value(value)))
        };
        let (starts, steps, lengths) = (number(start)?, number(step)?, number(0)?);
        let lengths = lengths.with_facts(Facts::default());
        self.index(&starts, &steps, &DeviceSegdes::with_total(lengths, extent))
    }

    fn pack(&mut self, ty: Type, [values, flags, segdes]: [&Entry; 3], operands: &[Entry]) -> Run<Vec<OpResult>> {
        let (inst, segdes) = (Inst::Op(Op::Pack, ty), self.segdes(segdes)?);
        let (vector, chosen) = (self.stored_vector(values)?, self.vector(flags)?);
        let (_, segdes) = self.cut(&inst, operands, &vector, &segdes)?;
        let (chosen, segdes) = self.cut(&inst, operands, &chosen, &segdes)?;
        let (vector, segdes) = self.cut(&inst, operands, &vector, &segdes)?;
        let (extent, int) = (self.total(&segdes)?, self.int());
        let (nodes, flagged) = (self.whole(&vector)?, self.whole(&chosen)?);
        // Lengths of the parts that are kept. The length of a single part is the number that the pack counts.
        let (none, single) = (extent.bound().equals(&0.into()), extent.bound().equals(&1.into()));
        if none {
            let zero = self.one(Literal::zero(int))?;
            let lengths = Vector::new(zero, segdes.count().clone()).with_facts(Facts::of_value(0));
            let packed = Vector::new(nodes, Extent::host(0));
            return Ok(vec![OpResult::Vector(ty, packed), OpResult::Segdes(DeviceSegdes::with_total(lengths, Extent::host(0)))]);
        }
        let flags = if let Entry::Device(flags) = flags { Some(flags) } else { None };
        let known = flags.and_then(|flags| flags.kept.get()).cloned();
        let is_places = matches!(&vector.facts.affine, Some(Affine { known: Some(0), step: 1, .. })) && !single;
        let bound = vector.terms();
        let facts = Facts {
            value: vector.facts.value.clone(),
            nonzero: vector.facts.nonzero,
            bound,
            distinct: vector.facts.distinct,
            ..Facts::default()
        };
        let packed = match known {
            // Packs by equal flags keep the elements at the same indices.
            Some(KeptElements { length, places: Some(places) }) => {
                let kept = Extent::Device(length).learned();
                if vector.is_uniform() {
                    Vector::new(vector.node.clone(), kept).generated(vector.generated)
                } else {
                    let places = Vector::shortened(places, &kept)?;
                    let zero = [Literal::zero(nodes.ty().element())];
                    let node = match kept.is_host(0) {
                        true => on_device(nodes.gather(&[&places.node], &Boundary::Constant(zero.as_slice().into())))?,
                        false => on_device(nodes.gather(&[&places.node], &Boundary::Clamp))?,
                    };
                    Vector::new(node, kept)
                }
            }
            known => {
                self.made += 2;
                let (padded, length) = if single {
                    // The second element is never selected: see [`Extent`].
                    let positions = self.positions(&Extent::host(2), int)?;
                    let first = self.call("first", &[&positions, &flagged], |f, x| f.and(f.eq(x[0], 0), x[1]))?;
                    on_device(on_device(nodes.broadcast_to(&Shape::from(2)))?.pack_measured(&first))?
                } else {
                    on_device(nodes.pack_measured(&flagged))?
                };
                if let Some(known) = known {
                    length.unite(&known.length);
                }
                let kept = Extent::Device(length.clone()).learned();
                if let Some(flags) = flags {
                    let _ = flags.kept.set(KeptElements { length, places: is_places.then(|| padded.clone()) });
                }
                if vector.is_uniform() && !single {
                    Vector::new(vector.node.clone(), kept).generated(vector.generated)
                } else {
                    Vector::shortened(padded, &kept)?
                }
            }
        };
        let kept = packed.extent.clone();
        let chosen_places = is_places.then(|| Rc::new(ChosenFlags { flags: chosen, ranks: OnceCell::new() }));
        let before = BeforePack { flags: flagged.clone(), before: nodes };
        let packed = Vector { packed: (!single).then_some(before), ..packed.with_facts(facts) };
        let packed = Vector { facts: Facts { chosen: chosen_places, ..packed.facts.clone() }, ..packed };
        let lengths = if segdes.is_single() {
            let count = self.count_of(&kept, int)?;
            self.as_vector(&count)?
        } else {
            let ones = self.elementwise(Elementwise::Convert(int), &[&flagged])?;
            let segments = self.segments(&segdes)?;
            on_device(segments.reduce(&[(&ones, Combine::Sum)]))?.swap_remove(0)
        };
        let lengths = Vector { extent: segdes.count().clone(), ..Vector::of(lengths).generated(segdes.is_single()) };
        let mut parts = DeviceSegdes::with_total(lengths, kept);
        parts.packed = Some((flagged, segdes));
        Ok(vec![OpResult::Vector(ty, packed), OpResult::Segdes(parts)])
    }

    /// Returns indices in a whole vector. `indices` are within the segments of `to` and belong to elements
    /// that `by` cuts into segments.
    fn places(&mut self, indices: &Node, by: &DeviceSegdes, to: &DeviceSegdes) -> Run<Node> {
        if to.is_single() {
            return Ok(indices.clone());
        }
        let starts = self.spread_starts(to, by)?;
        self.call("place", &[indices, &starts], |f, x| f.add(f.convert(x[0], scalar::Type::I64), x[1]))
    }

    /// Adds the condition that indices are within segments, in parsed programs only.
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
        // The elements that are replaced, if there are any.
        let others = match (op, &operands[2..]) {
            (Op::DefaultPermute | Op::Replace, [others, ..]) | (Op::DefaultFlagPermute, [_, others, ..]) => others,
            _ => &operands[0],
        };
        let others = self.stored_vector(others)?;
        let [values, others] = &self.of_one_type([values.clone(), others])?;
        let element = values.node.ty().element();
        let inst = Inst::Op(op, ty);
        match (op, &operands[2..]) {
            (Op::Permute, [segdes]) => {
                let segdes = self.segdes(segdes)?;
                let (indices, segdes) = self.cut(&inst, operands, indices, &segdes)?;
                let (values, segdes) = self.cut(&inst, operands, values, &segdes)?;
                if let Some(ordered) = self.ordered(&values, &indices, &segdes)? {
                    return Ok(ordered.with_facts(Facts::of_bound(values.terms())));
                }
                let moves = Moves { indices: &indices, flags: None, by: &segdes, to: &segdes };
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(&values, &moves, None, element)
            }
            (Op::DefaultPermute, [_, from, to]) => {
                let (from, to) = (self.segdes(from)?, self.segdes(to)?);
                let (indices, from) = self.cut(&inst, operands, indices, &from)?;
                let (values, from) = self.cut(&inst, operands, values, &from)?;
                let (default, to) = self.cut(&inst, operands, others, &to)?;
                let moves = Moves { indices: &indices, flags: None, by: &from, to: &to };
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(&values, &moves, Some(&default), element)
            }
            (Op::FlagPermute, [flags, from, to]) => {
                let (flags, from, to) = (self.vector(flags)?, self.segdes(from)?, self.segdes(to)?);
                let (indices, from) = self.cut(&inst, operands, indices, &from)?;
                let (values, from) = self.cut(&inst, operands, values, &from)?;
                let (flags, from) = self.cut(&inst, operands, &flags, &from)?;
                let moves = Moves { indices: &indices, flags: Some(&flags), by: &from, to: &to };
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(&values, &moves, None, element)
            }
            (Op::DefaultFlagPermute, [flags, _, from, to]) => {
                let flags = self.vector(flags)?;
                let (from, to) = (self.segdes(from)?, self.segdes(to)?);
                let (indices, from) = self.cut(&inst, operands, indices, &from)?;
                let (values, from) = self.cut(&inst, operands, values, &from)?;
                let (flags, from) = self.cut(&inst, operands, &flags, &from)?;
                let (default, to) = self.cut(&inst, operands, others, &to)?;
                let moves = Moves { indices: &indices, flags: Some(&flags), by: &from, to: &to };
                self.require_inside(op, ty, operands, &moves)?;
                self.scatter(&values, &moves, Some(&default), element)
            }
            (Op::BackPermute, [from, to]) => {
                let (from, to) = (self.segdes(from)?, self.segdes(to)?);
                let (values, from) = self.cut(&inst, operands, values, &from)?;
                let (indices, to) = self.cut(&inst, operands, indices, &to)?;
                let moves = Moves { indices: &indices, flags: None, by: &to, to: &from };
                self.require_inside(op, ty, operands, &moves)?;
                self.gather(&values, &moves, element)
            }
            (Op::BackFlagPermute, [flags, from, to]) => {
                let (flags, from, to) = (self.vector(flags)?, self.segdes(from)?, self.segdes(to)?);
                let (values, from) = self.cut(&inst, operands, values, &from)?;
                let (indices, to) = self.cut(&inst, operands, indices, &to)?;
                let (flags, to) = self.cut(&inst, operands, &flags, &to)?;
                let moves = Moves { indices: &indices, flags: Some(&flags), by: &to, to: &from };
                self.require_inside(op, ty, operands, &moves)?;
                self.gather(&values, &moves, element)
            }
            (Op::Extract, [segdes]) => {
                let segdes = self.segdes(segdes)?;
                let (values, segdes) = self.cut(&inst, operands, values, &segdes)?;
                let (indices, segdes) = self.each(&inst, operands, indices, &segdes)?;
                self.require_each(op, ty, operands, &indices, &segdes)?;
                let places = self.first_places(&indices, &segdes)?;
                self.taken(&values, &places, element, segdes.count(), false)
            }
            (Op::Replace, [_, segdes]) => {
                let segdes = self.segdes(segdes)?;
                let (values, segdes) = self.cut(&inst, operands, values, &segdes)?;
                let (indices, segdes) = self.each(&inst, operands, indices, &segdes)?;
                let (new, segdes) = self.each(&inst, operands, others, &segdes)?;
                self.require_each(op, ty, operands, &indices, &segdes)?;
                let places = self.first_places(&indices, &segdes)?;
                self.made += 1;
                let base = self.base(&values)?;
                let new = self.whole(&new)?;
                as_long(on_device(base.scatter(&[&places], &new, None))?, &values.extent)
            }
            _ => Fault::at_run_time(format!("internal error: {} on a device; please report it", op.name())),
        }
    }

    /// Adds the condition that each segment has an element at its index, in parsed programs only.
    fn require_each(&mut self, op: Op, ty: Type, operands: &[Entry], indices: &Vector, segdes: &DeviceSegdes) -> Run<()> {
        if self.trusted {
            return Ok(());
        }
        let lengths = &segdes.lengths.node;
        let wrong = self.call("outside", &[&indices.node, lengths], |f, x| f.or(f.lt(x[0], 0), f.ge(x[0], x[1])))?;
        self.require_none(Inst::Op(op, ty), operands, &wrong, &indices.extent)
    }

    /// Returns the index in the whole vector for an index within each segment.
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
        // Each index of the result receives one of the scattered elements.
        let terms = match default {
            Some(default) => plus(values.terms(), default.terms()),
            None => values.terms(),
        };
        let loose = values.facts.loose || default.is_some_and(|default| default.facts.loose);
        let facts = Facts { loose, ..Facts::of_bound(terms) };
        if let (Some(default), None, true) = (default, moves.flags, moves.to.is_single() && self.trusted)
            && !moves.indices.extent.is_host(0)
            && !extent.is_host(0)
            && let Some(merged) = self.merged(values, moves.indices, default, &extent)?
        {
            return Ok(merged.with_facts(facts));
        }
        let base = match default {
            Some(default) => self.base(&Vector { extent: extent.clone(), ..default.clone() })?,
            None => {
                let context = self.context()?;
                on_device(Node::fill(&context, line(extent.bound()), &[Literal::zero(element)]))?
            }
        };
        let mut places = self.places(&moves.indices.node, moves.by, moves.to)?;
        if let Some(flags) = moves.flags {
            places = self.call("chosen", &[&flags.node, &places], |f, x| f.select(x[0], x[1], -1))?;
        }
        let sent = [values, moves.indices].into_iter().find(|vector| !vector.is_uniform());
        let sent = sent.map_or_else(|| moves.indices.extent.clone(), |vector| vector.extent.clone());
        if sent.is_host(0) || extent.is_host(0) {
            return Ok(as_long(base, &extent)?.with_facts(facts));
        }
        let places = self.whole(&Vector { extent: sent.clone(), ..Vector::of(places) })?;
        let values = self.whole(&Vector { extent: sent, ..values.clone() })?;
        self.made += 1;
        let moved = on_device(base.scatter(&[&places], &values, None))?;
        Ok(as_long(moved, &extent)?.with_facts(facts))
    }

    /// Returns the node that elements are scattered into. Memory behind a length of the device is not copied:
    /// a pack leaves it unwritten.
    fn base(&mut self, vector: &Vector) -> Run<Node> {
        if vector.is_uniform() { self.padded(vector) } else { Ok(vector.node.clone()) }
    }

    /// Scatters elements to indices whose order is known. Each index of the result finds its element, so
    /// nothing is written to computed indices and the work is elementwise. `None` if the order is not known.
    fn merged(&mut self, values: &Vector, indices: &Vector, default: &Vector, extent: &Extent) -> Run<Option<Vector>> {
        let int = self.int();
        let element = values.node.ty().element();
        let taken = |node: &Node, places: &Node| {
            let zero = [Literal::zero(element)];
            on_device(node.gather(&[places], &Boundary::Constant(zero.as_slice().into())))
        };
        self.made += 1;
        let node = if let Some(affine) = &indices.facts.affine {
            let positions = self.positions(extent, int)?;
            let (count, step) = (self.count_of(&indices.extent, int)?, self.one(Literal::from_i128(int, affine.step.into()))?);
            let inputs = [&positions, &affine.start, &count, &step];
            let places = self.call("sent", &inputs, |f, x| {
                let distance = f.sub(x[0], x[1]);
                let number = f.div(distance, x[3]);
                let is_here = f.and(f.ge(distance, 0), f.and(f.lt(number, x[2]), f.eq(f.mul(number, x[3]), distance)));
                f.select(is_here, number, -1)
            })?;
            let value = if values.is_uniform() { values.node.clone() } else { taken(&values.node, &places)? };
            self.call("merge", &[&places, &value, &default.node], |f, x| f.select(f.ge(x[0], 0), x[1], x[2]))?
        } else if let Some(chosen) = &indices.facts.chosen {
            let flags = self.with_extent(&chosen.flags, extent)?;
            let flags = self.whole(&flags)?;
            if values.is_uniform() {
                self.elementwise(Elementwise::Select, &[&flags, &values.node, &default.node])?
            } else {
                let ranks = match chosen.ranks.get() {
                    Some(ranks) => ranks.clone(),
                    None => {
                        let ones = self.elementwise(Elementwise::Convert(int), &[&flags])?;
                        let ranks = on_device(ones.scan(Combine::Sum, 0, false))?;
                        let _ = chosen.ranks.set(ranks.clone());
                        ranks
                    }
                };
                let places = self.call("chosen", &[&flags, &ranks], |f, x| f.select(x[0], x[1], -1))?;
                let value = taken(&values.node, &places)?;
                self.elementwise(Elementwise::Select, &[&flags, &value, &default.node])?
            }
        } else {
            return Ok(None);
        };
        Ok(Some(Vector::new(node, extent.clone())))
    }

    fn gather(&mut self, values: &Vector, moves: &Moves<'_>, element: Element) -> Run<Vector> {
        if values.is_uniform() && moves.flags.is_none() {
            let facts = values.facts.of_equal();
            return Ok(Vector::new(values.node.clone(), moves.indices.extent.clone())
                .generated(values.generated)
                .with_facts(facts));
        }
        let mut places = self.places(&moves.indices.node, moves.by, moves.to)?;
        if let Some(flags) = moves.flags {
            places = self.call("chosen", &[&flags.node, &places], |f, x| f.select(x[0], x[1], -1))?;
        }
        let taken = self.taken(values, &places, element, &moves.indices.extent, moves.flags.is_some())?;
        // Elements at distinct indices are some of the elements, each once.
        let is_part = moves.indices.facts.distinct && moves.to.is_single();
        let bound = if is_part { values.terms_at(&moves.indices.facts) } else { None };
        Ok(taken.with_facts(Facts::of_bound(bound)))
    }

    /// Gathers elements at indices. With `flagged`, indices outside give 0.
    fn taken(&mut self, values: &Vector, places: &Node, element: Element, extent: &Extent, flagged: bool) -> Run<Vector> {
        let extent = if places.length().is_none() && places.bound().size().equals(&1.into()) {
            extent.clone()
        } else {
            Vector::of(places.clone()).extent
        };
        self.made += 1;
        let from = self.whole(values)?;
        let zero = [Literal::zero(element)];
        // An empty vector has no elements to gather. If a condition fails for that reason, the elements do
        // not matter.
        let outside =
            if flagged || from.bound().is_empty() { Boundary::Constant(zero.as_slice().into()) } else { Boundary::Clamp };
        let node = on_device(from.gather(&[places], &outside))?;
        Ok(Vector::new(node, extent))
    }
}

/// Makes a vector of an extent from a node that has this length already, or none.
fn as_long(node: Node, extent: &Extent) -> Run<Vector> {
    match node.length() {
        Some(_) => Ok(Vector::new(node, extent.clone())),
        None => Vector::shortened(node, extent),
    }
}

/// Sources or destinations of moved elements.
struct Moves<'a> {
    indices: &'a Vector,
    flags: Option<&'a Vector>,
    /// Descriptor that cuts the indices into segments.
    by: &'a DeviceSegdes,
    /// Descriptor that cuts the indexed vector.
    to: &'a DeviceSegdes,
}
