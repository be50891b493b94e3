//! Copies of vectors between the host and a device, and changes of their extents.

use super::entry::{DeviceCopy, Entry};
use super::extent::{Extent, line};
use super::segdes::DeviceSegdes;
use super::vector::{BeforePack, Facts, Vector};
use super::{Accelerator, device_error, on_device};
use crate::eval::{Fault, Run};
use crate::vcode::Type;
use broadloom_graph::{Amount, Boundary, Elementwise, Node, Segments, Shape, StoredForms};
use broadloom_scalar::{Element, Literal};
use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Instant;

/// Maximum number of elements of a host vector whose sum is computed when it is copied.
const MAX_SUMMED: usize = 1 << 16;

impl Accelerator {
    pub(crate) fn literal(&self, ty: Type, entry: &Entry) -> Option<Literal> {
        let element = self.element_of(ty);
        match entry {
            Entry::Int(values) if values.len() == 1 => Some(Literal::from_i128(element, values[0].into())),
            Entry::Float(values) if values.len() == 1 => Literal::from_f64(element, values[0]),
            Entry::Bool(values) if values.len() == 1 => Some(Literal::from(values[0])),
            _ => None,
        }
    }

    /// Returns a vector on the device like [`Accelerator::stored_vector`], with ints for bytes.
    pub(crate) fn vector(&mut self, entry: &Entry) -> Run<Vector> {
        let vector = self.stored_vector(entry)?;
        if vector.node.ty().element() != Element::U8 {
            return Ok(vector);
        }
        let Entry::Device(own) = entry else { return self.widened(&vector) };
        if let Some((bytes, wide)) = &*own.wide.borrow()
            && bytes.is_same(&vector.node)
        {
            return Ok(wide.clone());
        }
        let wide = self.widened(&vector)?;
        *own.wide.borrow_mut() = Some((vector.node, wide.clone()));
        Ok(wide)
    }

    /// Converts bytes to ints. They are converted where they are read: ints are not stored.
    pub(super) fn widened(&mut self, vector: &Vector) -> Run<Vector> {
        let int = self.int();
        if vector.node.ty().element() == int {
            return Ok(vector.clone());
        }
        let node = self.convert(&vector.node, int)?;
        let padded = vector.padded.as_ref().map(|padded| self.convert(padded, int)).transpose()?;
        let generated = vector.generated || vector.stored().buffer().is_some();
        let packed = match &vector.packed {
            Some(BeforePack { flags, before }) if !generated => {
                Some(BeforePack { flags: flags.clone(), before: self.convert(before, int)? })
            }
            _ => None,
        };
        Ok(Vector { node, padded, generated, packed, ..vector.clone() })
    }

    /// Returns vectors with elements of one type: bytes if all are bytes, or equal ints that are bytes.
    pub(super) fn of_one_type<const N: usize>(&mut self, vectors: [Vector; N]) -> Run<[Vector; N]> {
        let is_bytes = |vector: &Vector| vector.node.ty().element() == Element::U8;
        if !vectors.iter().any(is_bytes) {
            return Ok(vectors);
        }
        let is_byte = |vector: &Vector| vector.facts.constant().is_some_and(|value| (0..256).contains(&value));
        let keeps = vectors.iter().all(|vector| is_bytes(vector) || vector.is_uniform() && is_byte(vector));
        let mut made = vectors;
        for vector in &mut made {
            if !keeps {
                *vector = self.widened(vector)?;
            } else if !is_bytes(vector) {
                *vector = Vector { node: self.convert(&vector.node, Element::U8)?, packed: None, ..vector.clone() };
            }
        }
        Ok(made)
    }

    /// Returns a vector on the device as it is stored: characters are bytes. A vector of the host is copied; a
    /// scalar becomes an argument of kernels.
    pub(crate) fn stored_vector(&mut self, entry: &Entry) -> Run<Vector> {
        let ty = match (entry, entry.ty()) {
            (Entry::Device(vector), _) => {
                let mut current = vector.current()?;
                if let (Type::Int, Some(value)) = (vector.ty, vector.value.get()) {
                    (current.facts.value, current.facts.nonzero) = (Some(Amount::from(*value)), *value != 0);
                }
                return Ok(current);
            }
            (_, Some(ty)) => ty,
            (_, None) => return Fault::at_run_time("internal error: a pair on a device; please report it"),
        };
        if let Some(amount) = entry.amount() {
            let (int, facts) = (self.int(), Facts::of_value(amount.clone()));
            let count = self.count_of(&Extent::Host(amount), int)?;
            return Ok(Vector::of(self.as_vector(&count)?).generated(true).with_facts(facts));
        }
        if let Some(literal) = self.literal(ty, entry) {
            let facts = match (ty, literal.as_i128(), literal.as_f64()) {
                (Type::Int, Some(value), _) => Facts::of_value(Amount::from(value as i64)),
                (Type::Float, _, Some(value)) => Facts { nonzero: value != 0.0, ..Facts::default() },
                _ => Facts::default(),
            };
            return Ok(Vector::of(self.one(literal)?).generated(true).with_facts(facts));
        }
        let element = if let Entry::Bytes(_) = entry { Element::U8 } else { self.element_of(ty) };
        let context = self.context()?;
        let copies = &mut self.copies;
        let upload = |count: usize, bytes: &[u8]| on_device(Node::upload(&context, element.into(), Shape::from(count), bytes));
        let mut copied = |cell: &OnceCell<DeviceCopy>, count: usize, bytes: &dyn Fn() -> Vec<u8>| match cell.get() {
            Some(DeviceCopy::Vector(node)) if node.ty().element() == element => Run::Ok(node.clone()),
            _ => {
                let node = upload(count, &bytes())?;
                *copies += 1;
                let _ = cell.set(DeviceCopy::Vector(node.clone()));
                Ok(node)
            }
        };
        let node = match entry {
            Entry::Int(values) => copied(&values.copy, values.len(), &|| ints(values, element))?,
            Entry::Bytes(values) => copied(&values.copy, values.len(), &|| values.to_vec())?,
            Entry::Float(values) => copied(&values.copy, values.len(), &|| match element {
                Element::F32 => values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect(),
                _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            })?,
            Entry::Bool(values) => copied(&values.copy, values.len(), &|| values.iter().map(|value| u8::from(*value)).collect())?,
            Entry::Segdes(_) | Entry::Pair(_) | Entry::Device(_) | Entry::DeviceSegdes(_) => {
                return Fault::at_run_time("internal error: a segment descriptor as a vector; please report it");
            }
        };
        self.note_largest(&Amount::from(entry.len()));
        // The host computes the sum of its lengths, which needs no wait.
        let facts = match entry {
            Entry::Int(values) if values.len() <= MAX_SUMMED && values.iter().all(|value| *value >= 0) => {
                let sum = values.iter().try_fold(0i64, |sum, value| sum.checked_add(*value));
                sum.and_then(|sum| usize::try_from(sum).ok()).map_or_else(Facts::default, |sum| Facts::of_sum(Extent::host(sum)))
            }
            _ => Facts::default(),
        };
        Ok(Vector::of(node).with_facts(facts))
    }

    /// Returns a segment descriptor on the device.
    pub(crate) fn segdes(&mut self, entry: &Entry) -> Run<Rc<DeviceSegdes>> {
        match entry {
            Entry::DeviceSegdes(segdes) => self.current_segdes(segdes),
            Entry::Segdes(segments) => {
                if let Some(DeviceCopy::Segdes(segdes)) = segments.copy.get()
                    && segdes.lengths.node.ty().element() == self.int()
                {
                    return Ok(segdes.clone());
                }
                let int = self.int();
                let segdes = if let Some(length) = segments.single() {
                    let total = Extent::Host(length.clone());
                    let one = match length.is_known() {
                        true => self.one(Literal::from_i128(int, length.value().into()))?,
                        false => {
                            let count = self.count_of(&total, int)?;
                            self.as_vector(&count)?
                        }
                    };
                    let lengths = Vector::of(one).generated(true).with_facts(Facts::of_value(length));
                    DeviceSegdes::with_total(lengths, total)
                } else {
                    let offsets = self.upload_offsets(&segments.lengths)?;
                    let forms = StoredForms { offsets, ids: None, heads: None };
                    let forms = on_device(Segments::from_stored_forms(&forms, segments.total))?;
                    DeviceSegdes::of_segments(self, forms, segments.total.into())?
                };
                let segdes = Rc::new(segdes);
                let _ = segments.copy.set(DeviceCopy::Segdes(segdes.clone()));
                self.register_segdes(&segdes);
                Ok(segdes)
            }
            _ => Fault::at_run_time("internal error: a vector as a segment descriptor; please report it"),
        }
    }

    /// Returns a vector with an extent equal to its own. In parsed programs the equality is a condition that
    /// was added.
    pub(crate) fn with_extent(&mut self, vector: &Vector, extent: &Extent) -> Run<Vector> {
        if vector.is_uniform() {
            return Ok(Vector { extent: extent.clone(), ..vector.clone() });
        }
        let from = vector.stored();
        let node = match (&vector.extent, extent) {
            (Extent::Host(own), Extent::Host(count)) if own.equals(count) => return Ok(vector.clone()),
            (own, Extent::Host(count)) => {
                if let (Extent::Device(length), true) = (own, self.trusted) {
                    length.learn(count.clone());
                }
                match !from.bound().size().is_less(count) {
                    true => on_device(from.first_elements(None, count.clone()))?,
                    false => self.taken_at_positions(from, extent)?,
                }
            }
            (own, Extent::Device(length)) => {
                match own {
                    Extent::Device(own) => own.unite(length),
                    Extent::Host(count) if self.trusted => length.learn(count.clone()),
                    Extent::Host(_) => {}
                }
                if vector.node.length().is_some_and(|own| own.is_same(length)) && own.bound().equals(length.amount()) {
                    return Ok(Vector { extent: extent.clone(), ..vector.clone() });
                }
                match !from.bound().size().is_less(length.amount()) {
                    true => on_device(from.first_elements(Some(length), length.amount().clone()))?,
                    false => self.taken_at_positions(from, extent)?,
                }
            }
        };
        Ok(Vector { node, extent: extent.clone(), padded: None, packed: None, ..vector.clone() })
    }

    /// Returns the elements at positions 0, 1, … of a node that may have fewer elements.
    fn taken_at_positions(&mut self, from: &Node, extent: &Extent) -> Run<Node> {
        let places = self.positions(extent, Element::I64)?;
        let zero = [Literal::zero(from.ty().element())];
        on_device(from.gather(&[&places], &Boundary::Constant(zero.as_slice().into())))
    }

    /// Uploads the offsets of segments.
    pub(crate) fn upload_offsets(&mut self, lengths: &[usize]) -> Run<Node> {
        let mut end = 0i64;
        let mut bytes = end.to_le_bytes().to_vec();
        for length in lengths {
            end += *length as i64;
            bytes.extend(end.to_le_bytes());
        }
        let context = self.context()?;
        on_device(Node::upload(&context, Element::I64.into(), Shape::from(lengths.len() + 1), &bytes))
    }

    /// Returns a node with all elements of a vector.
    pub(crate) fn whole(&mut self, vector: &Vector) -> Run<Node> {
        if !vector.is_uniform() || vector.extent.is_host(1) {
            return Ok(vector.node.clone());
        }
        match &vector.extent {
            Extent::Host(count) => on_device(vector.node.broadcast_to(&line(count))),
            Extent::Device(length) => {
                let context = self.context()?;
                let zero = Literal::zero(vector.node.ty().element());
                let zeros = on_device(Node::fill(&context, line(length.amount()), &[zero]))?;
                let zeros = on_device(zeros.shortened(length))?;
                self.call("repeat", &[&vector.node, &zeros], |_, x| x[0])
            }
        }
    }

    /// Returns a node that begins with the elements of a vector and has no length of the device.
    pub(crate) fn padded(&mut self, vector: &Vector) -> Run<Node> {
        if vector.is_uniform() {
            return on_device(vector.node.broadcast_to(&line(vector.extent.bound())));
        }
        match &vector.padded {
            Some(padded) => Ok(padded.clone()),
            None if vector.node.length().is_none() => Ok(vector.node.clone()),
            None => {
                let places = self.positions(&Extent::Host(vector.extent.bound().clone()), Element::I64)?;
                let zero = [Literal::zero(vector.node.ty().element())];
                on_device(vector.node.gather(&[&places], &Boundary::Constant(zero.as_slice().into())))
            }
        }
    }

    /// Returns the number of elements of a vector as an int without axes.
    pub(crate) fn count_of(&mut self, extent: &Extent, element: Element) -> Run<Node> {
        match extent {
            Extent::Host(count) => {
                let context = self.context()?;
                match count.is_known() {
                    true => {
                        let literal = Literal::from_i128(element, count.value().into());
                        on_device(Node::fill(&context, Shape::from([]), &[literal]))
                    }
                    false => self.convert(&Node::counting(&context, count), element),
                }
            }
            Extent::Device(length) => self.elementwise(Elementwise::Convert(element), &[length.count()]),
        }
    }

    /// Returns positions 0, 1, … as ints.
    pub(crate) fn positions(&mut self, extent: &Extent, element: Element) -> Run<Node> {
        let context = self.context()?;
        let positions = on_device(Node::position(&context, line(extent.bound()), 0, element))?;
        match extent {
            Extent::Host(_) => Ok(positions),
            Extent::Device(length) => on_device(positions.shortened(length)),
        }
    }

    /// Makes the number of elements known to the host; waits if only the device knows it.
    pub(crate) fn known(&mut self, extent: &Extent) -> Run<usize> {
        match extent {
            Extent::Host(count) => Ok(count.get() as usize),
            Extent::Device(length) => {
                if length.known().is_none() {
                    self.wait_with(None, &[], Some(length))?;
                }
                on_device(length.read())
            }
        }
    }

    /// Reads vectors whose numbers of elements the host knows, in one transfer for each type.
    pub(crate) fn fetch(&mut self, vectors: &[Vector]) -> Run<Vec<Elements>> {
        self.untraced()?;
        let start = Instant::now();
        let mut elements: Vec<Elements> = vec![];
        let mut groups: Vec<(Element, Vec<usize>)> = vec![];
        for (number, vector) in vectors.iter().enumerate() {
            let element = vector.node.ty().element();
            let times = if vector.is_uniform() { self.known(&vector.extent)? } else { 1 };
            elements.push(Elements { bytes: vec![], element, times });
            match groups.iter_mut().find(|(own, _)| *own == element) {
                Some((_, members)) => members.push(number),
                None => groups.push((element, vec![number])),
            }
        }
        let joined = |(_, members): &(Element, Vec<usize>)| {
            let nodes: Vec<&Node> = members.iter().map(|member| &vectors[*member].node).collect();
            on_device(Node::concatenate(0, &nodes))
        };
        let joined = groups.iter().map(joined).collect::<Run<Vec<Node>>>()?;
        self.evaluate(&joined)?;
        for ((_, members), node) in groups.iter().zip(&joined) {
            let bytes = on_device(node.evaluate())?.read().map_err(|error| device_error(error.into()))?;
            let mut rest = &bytes[..];
            for member in members {
                let size = vectors[*member].node.bound().count() * vectors[*member].node.ty().bytes() as usize;
                let Some((own, others)) = rest.split_at_checked(size) else {
                    return Fault::at_run_time("internal error: a transfer is too short; please report it");
                };
                (elements[*member].bytes, rest) = (own.to_vec(), others);
            }
        }
        self.waits += 1;
        self.waited += start.elapsed();
        Ok(elements)
    }

    /// Reads a vector. The result is not charged to the run.
    pub(crate) fn elements(&mut self, vector: &Vector) -> Run<Elements> {
        let count = if vector.is_uniform() { self.known(&vector.extent)? } else { 1 };
        let element = vector.node.ty().element();
        let bytes = self.read(&vector.node)?;
        Ok(Elements { bytes, element, times: count })
    }
}

/// Elements that were read.
pub(crate) struct Elements {
    bytes: Vec<u8>,
    element: Element,
    /// Number of repetitions of the elements.
    times: usize,
}

impl Elements {
    fn repeated<T: Copy>(&self, values: Vec<T>) -> Vec<T> {
        if self.times == 1 { values } else { values.repeat(self.times) }
    }

    /// Returns elements that are bytes, and others unchanged.
    pub(crate) fn into_bytes(self) -> Result<Vec<u8>, Elements> {
        match self.element {
            Element::U8 if self.times == 1 => Ok(self.bytes),
            Element::U8 => Ok(self.repeated(self.bytes.clone())),
            _ => Err(self),
        }
    }

    pub(crate) fn ints(&self) -> Vec<i64> {
        self.repeated(match self.element {
            Element::U8 => self.bytes.iter().map(|value| i64::from(*value)).collect(),
            Element::I64 => self.bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect(),
            _ => self.bytes.as_chunks::<4>().0.iter().map(|bytes| i64::from(i32::from_le_bytes(*bytes))).collect(),
        })
    }

    pub(crate) fn floats(&self) -> Vec<f64> {
        self.repeated(match self.element {
            Element::F32 => self.bytes.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect(),
            _ => self.bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
        })
    }

    pub(crate) fn bools(&self) -> Vec<bool> {
        self.repeated(self.bytes.iter().map(|byte| *byte != 0).collect())
    }
}

fn ints(values: &[i64], element: Element) -> Vec<u8> {
    match element {
        Element::I64 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        _ => values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect(),
    }
}
