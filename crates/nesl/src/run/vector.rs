//! Vectors of a device, and copies between the host and a device.

use super::facts::{Facts, Packed};
use super::{Accelerator, on_device};
use crate::eval::{Charge, Fault, Run};
use crate::vcode::Type;
use crate::vcode::machine::Entry;
use broadloom_graph::{Boundary, Elementwise, Length, Node, Shape};
use broadloom_scalar::{Element, Literal};
use std::cell::OnceCell;
use std::rc::Rc;

/// The number of elements of a vector.
///
/// The bound of a number that only the device knows is 2 at least: a node of one element stands for equal elements.
#[derive(Clone, Debug)]
pub(crate) enum Extent {
    Host(usize),
    /// Only the device knows it.
    Device(Length),
}

impl Extent {
    /// Returns the number of elements, or an upper bound.
    pub(crate) fn bound(&self) -> usize {
        match self {
            Extent::Host(count) => *count,
            Extent::Device(length) => length.bound(),
        }
    }

    pub(crate) fn is_host(&self, count: usize) -> bool {
        matches!(self, Extent::Host(known) if *known == count)
    }
}

/// A vector as a node.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    /// The elements, in one axis. A node of one element stands for equal elements, whatever the extent is.
    pub(crate) node: Node,
    pub(crate) extent: Extent,
    /// Elements and anything behind them, up to the bound of the extent.
    pub(crate) padded: Option<Node>,
    /// The elements follow from their index and from scalars of the host, so they are never stored.
    pub(crate) generated: bool,
    pub(crate) facts: Facts,
    /// The vector that it was packed from, and the flags.
    pub(crate) packed: Option<Packed>,
}

impl Vector {
    /// Makes a vector of the elements of a node.
    pub(crate) fn of(node: Node) -> Vector {
        let extent = match node.length() {
            Some(length) => Extent::Device(length.clone()),
            None => Extent::Host(node.bound().count()),
        };
        Vector::new(node, extent)
    }

    /// Makes a vector of elements, or of one that stands for equal ones.
    pub(crate) fn new(node: Node, extent: Extent) -> Vector {
        Vector { node, extent, padded: None, generated: false, facts: Facts::default(), packed: None }
    }

    /// Makes a vector of the first elements of a node that has as many as the extent is at most.
    pub(crate) fn shortened(node: Node, extent: &Extent) -> Run<Vector> {
        match extent {
            Extent::Host(_) => Ok(Vector::of(node)),
            Extent::Device(length) => {
                let short = on_device(node.shortened(length))?;
                Ok(Vector { padded: Some(node), ..Vector::new(short, extent.clone()) })
            }
        }
    }

    #[must_use]
    pub(crate) fn generated(self, generated: bool) -> Vector {
        Vector { generated, ..self }
    }

    /// Tells whether one element stands for all.
    pub(crate) fn is_uniform(&self) -> bool {
        self.node.length().is_none() && self.node.bound().count() == 1
    }
}

/// A vector of a device on the stack of the machine.
pub(crate) struct DeviceVector {
    pub(crate) ty: Type,
    pub(crate) vector: Vector,
    /// The number of true elements, once something was packed by them.
    pub(crate) kept: OnceCell<Length>,
    /// The elements on the host, once they were read.
    pub(crate) host: OnceCell<Entry>,
    pub(crate) _charge: Option<Charge>,
}

impl std::fmt::Debug for DeviceVector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.ty.name(), self.vector.node)
    }
}

/// A copy of a vector of the host on a device.
#[derive(Debug)]
pub(crate) enum Copied {
    Vector(Node),
    Segdes(Rc<super::DeviceSegdes>),
}

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

    /// Returns a vector on the device; one of the host is copied, a scalar becomes an argument of kernels.
    pub(crate) fn vector(&mut self, entry: &Entry) -> Run<Vector> {
        let ty = match (entry, entry.ty()) {
            (Entry::Device(vector), _) => return Ok(vector.vector.clone()),
            (_, Some(ty)) => ty,
            (_, None) => return Fault::at_run_time("internal error: a pair on a device; please report it"),
        };
        if let Some(literal) = self.literal(ty, entry) {
            let facts = match (ty, literal.as_i128(), literal.as_f64()) {
                (Type::Int, Some(value), _) => Facts::of_value(value as i64),
                (Type::Float, _, Some(value)) => Facts { nonzero: value != 0.0, ..Facts::default() },
                _ => Facts::default(),
            };
            return Ok(Vector::of(self.one(literal)?).generated(true).with_facts(facts));
        }
        let element = self.element_of(ty);
        let context = self.context()?;
        let upload = |count: usize, bytes: &[u8]| on_device(Node::upload(&context, element.into(), Shape::from(count), bytes));
        let copied = |cell: &OnceCell<Copied>, count: usize, bytes: &dyn Fn() -> Vec<u8>| match cell.get() {
            Some(Copied::Vector(node)) if node.ty().element() == element => Run::Ok(node.clone()),
            _ => {
                let node = upload(count, &bytes())?;
                let _ = cell.set(Copied::Vector(node.clone()));
                Ok(node)
            }
        };
        let node = match entry {
            Entry::Int(values) => copied(&values.copy, values.len(), &|| ints(values, element))?,
            Entry::Float(values) => copied(&values.copy, values.len(), &|| match element {
                Element::F32 => values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect(),
                _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            })?,
            Entry::Bool(values) => copied(&values.copy, values.len(), &|| values.iter().map(|value| u8::from(*value)).collect())?,
            Entry::Segdes(_) | Entry::Pair(_) | Entry::Device(_) | Entry::DeviceSegdes(_) => {
                return Fault::at_run_time("internal error: a segment descriptor as a vector; please report it");
            }
        };
        self.largest = self.largest.max(entry.len());
        Ok(Vector::of(node))
    }

    /// Uploads the places where segments begin and end.
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
            Extent::Host(count) => on_device(vector.node.broadcast_to(&Shape::from(*count))),
            Extent::Device(length) => {
                let context = self.context()?;
                let zero = Literal::zero(vector.node.ty().element());
                let zeros = on_device(Node::fill(&context, Shape::from(length.bound()), &[zero]))?;
                let zeros = on_device(zeros.shortened(length))?;
                self.call("repeat", &[&vector.node, &zeros], |_, x| x[0])
            }
        }
    }

    /// Returns a node without a length of the device that begins with the elements of a vector.
    pub(crate) fn padded(&mut self, vector: &Vector) -> Run<Node> {
        if vector.is_uniform() {
            return on_device(vector.node.broadcast_to(&Shape::from(vector.extent.bound())));
        }
        match &vector.padded {
            Some(padded) => Ok(padded.clone()),
            None if vector.node.length().is_none() => Ok(vector.node.clone()),
            None => {
                let places = self.positions(&Extent::Host(vector.extent.bound()), Element::I64)?;
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
                on_device(Node::fill(&context, Shape::from([]), &[Literal::from_i128(element, *count as i128)]))
            }
            Extent::Device(length) => self.elementwise(Elementwise::Convert(element), &[length.count()]),
        }
    }

    /// Returns positions 0, 1, … as ints.
    pub(crate) fn positions(&mut self, extent: &Extent, element: Element) -> Run<Node> {
        let context = self.context()?;
        let positions = on_device(Node::position(&context, Shape::from(extent.bound()), 0, element))?;
        match extent {
            Extent::Host(_) => Ok(positions),
            Extent::Device(length) => on_device(positions.shortened(length)),
        }
    }

    /// Makes the number of elements known to the host; waits where only the device knows it.
    pub(crate) fn known(&mut self, extent: &Extent) -> Run<usize> {
        match extent {
            Extent::Host(count) => Ok(*count),
            Extent::Device(length) => {
                if length.count().buffer().is_none() {
                    let count = length.count().clone();
                    self.evaluate(&[count])?;
                }
                on_device(length.read())
            }
        }
    }

    /// Reads a vector. The entry holds the elements and is not charged to the run.
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
    /// How often the elements are repeated.
    times: usize,
}

impl Elements {
    fn repeated<T: Copy>(&self, values: Vec<T>) -> Vec<T> {
        if self.times == 1 { values } else { values.repeat(self.times) }
    }

    pub(crate) fn ints(&self) -> Vec<i64> {
        self.repeated(match self.element {
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
