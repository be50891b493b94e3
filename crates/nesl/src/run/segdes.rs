//! Segment descriptors of a device. Each form (offsets, numbers of segments) is made once, when it is needed.

use super::vector::{Copied, Extent, Vector};
use super::{Accelerator, on_device};
use crate::eval::{Charge, Fault, Run};
use crate::vcode::machine::Entry;
use broadloom_graph::{Boundary, Combine, Length, Node, Shape};
use broadloom_scalar::{Element, Literal};
use std::cell::OnceCell;
use std::rc::Rc;

/// A segment descriptor.
pub(crate) struct DeviceSegdes {
    /// The lengths of the segments, ints.
    pub(crate) lengths: Vector,
    /// The number of elements of all segments.
    total: OnceCell<Extent>,
    /// An upper bound of that number.
    bound: Option<usize>,
    /// Where segments begin, and behind the last one where it ends.
    offsets: OnceCell<Node>,
    /// The number of the segment of each element.
    numbers: OnceCell<Node>,
    pub(crate) charge: OnceCell<Charge>,
}

impl std::fmt::Debug for DeviceSegdes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SEGDES {:?}", self.lengths.node)
    }
}

impl DeviceSegdes {
    /// Makes a descriptor of lengths whose sum is not known to the host, but for a bound.
    pub(crate) fn of_lengths(lengths: Vector, bound: Option<usize>) -> DeviceSegdes {
        let (total, offsets, numbers, charge) = Default::default();
        DeviceSegdes { lengths, total, bound, offsets, numbers, charge }
    }

    /// Makes a descriptor of lengths with their sum.
    pub(crate) fn with_total(lengths: Vector, total: Extent) -> DeviceSegdes {
        let segdes = DeviceSegdes::of_lengths(lengths, Some(total.bound()));
        let _ = segdes.total.set(total);
        segdes
    }

    /// Returns the number of segments.
    pub(crate) fn count(&self) -> &Extent {
        &self.lengths.extent
    }

    /// Tells whether there is one segment.
    pub(crate) fn is_single(&self) -> bool {
        self.count().is_host(1)
    }

    /// Notes the number of elements of a vector that the descriptor cuts.
    pub(crate) fn note(&self, vector: &Vector) {
        let _ = self.total.set(vector.extent.clone());
    }

    /// Returns an upper bound of the number of elements, where one is known.
    pub(crate) fn bound(&self) -> Option<usize> {
        self.total.get().map(Extent::bound).or(self.bound)
    }

    /// Returns the number of elements, if it was asked for.
    pub(crate) fn known_total(&self) -> Option<&Extent> {
        self.total.get()
    }

    /// Adds the forms that were made.
    pub(crate) fn forms(&self, nodes: &mut Vec<Node>) {
        nodes.extend(self.offsets.get().cloned());
        nodes.extend(self.numbers.get().cloned());
        if !self.lengths.generated {
            nodes.push(self.lengths.padded.as_ref().unwrap_or(&self.lengths.node).clone());
        }
    }
}

/// Elements of a vector whose number only the device knows, at most as many times as there may be: with more the host
/// asks for the number.
const WASTE: usize = 4;

impl Accelerator {
    /// Returns a segment descriptor on the device.
    pub(crate) fn segdes(&mut self, entry: &Entry) -> Run<Rc<DeviceSegdes>> {
        match entry {
            Entry::DeviceSegdes(segdes) => Ok(segdes.clone()),
            Entry::Segdes(segments) => {
                if let Some(Copied::Segdes(segdes)) = segments.copy.get()
                    && segdes.lengths.node.ty().element() == self.int()
                {
                    return Ok(segdes.clone());
                }
                let lengths = match segments.lengths[..] {
                    [length] => {
                        let one = self.one(Literal::from_i128(self.int(), length as i128))?;
                        Vector::of(one).generated(true)
                    }
                    _ => Vector::of(self.upload_lengths(&segments.lengths)?),
                };
                let segdes = Rc::new(DeviceSegdes::with_total(lengths, Extent::Host(segments.total)));
                let _ = segments.copy.set(Copied::Segdes(segdes.clone()));
                self.register_segdes(&segdes);
                Ok(segdes)
            }
            _ => Fault::at_run_time("internal error: a vector as a segment descriptor; please report it"),
        }
    }

    /// Returns the number of elements of all segments. Without a bound that is worth its memory the host waits for it.
    pub(crate) fn total(&mut self, segdes: &DeviceSegdes) -> Run<Extent> {
        if let Some(total) = segdes.total.get() {
            return Ok(total.clone());
        }
        let sum = self.sum_of_lengths(segdes)?;
        let total = match segdes.bound {
            Some(bound) if bound <= u32::MAX as usize && bound <= WASTE.saturating_mul(self.largest) => {
                Extent::Device(on_device(Length::new(&sum, bound))?)
            }
            _ => {
                let total = self.wait_for(Some(&sum))?;
                let Ok(total) = usize::try_from(total) else {
                    return Fault::at_run_time("a segment cannot have a negative number of elements");
                };
                Extent::Host(total)
            }
        };
        Ok(segdes.total.get_or_init(|| total).clone())
    }

    fn sum_of_lengths(&mut self, segdes: &DeviceSegdes) -> Run<Node> {
        let lengths = self.whole(&segdes.lengths)?;
        let wide = self.convert(&lengths, Element::I64)?;
        if segdes.is_single() {
            return on_device(wide.reshape(Shape::from([])));
        }
        on_device(wide.reduce(Combine::Sum, &[0]))
    }

    /// Returns where segments begin, one more than there are segments; the last says where the last one ends. `i64`.
    pub(crate) fn offsets(&mut self, segdes: &DeviceSegdes) -> Run<Node> {
        if let Some(offsets) = segdes.offsets.get() {
            return Ok(offsets.clone());
        }
        let lengths = self.whole(&segdes.lengths)?;
        let wide = self.convert(&lengths, Element::I64)?;
        let zero = self.one(Literal::from(0i64))?;
        let offsets = if segdes.count().is_host(0) {
            zero
        } else {
            let ends = on_device(wide.scan(Combine::Sum, 0, true))?;
            on_device(Node::concatenate(0, &[&zero, &ends]))?
        };
        Ok(segdes.offsets.get_or_init(|| offsets).clone())
    }

    /// Returns the number of the segment of each element, counted from 0. `u32`.
    pub(crate) fn numbers(&mut self, segdes: &DeviceSegdes) -> Run<Node> {
        if let Some(numbers) = segdes.numbers.get() {
            return Ok(numbers.clone());
        }
        let total = self.total(segdes)?;
        let context = self.context()?;
        let numbers = if total.bound() == 0 {
            on_device(Node::fill(&context, Shape::from(0), &[Literal::from(0u32)]))?
        } else {
            let offsets = self.offsets(segdes)?;
            let numbers = on_device(offsets.segment_numbers(total.bound()))?;
            let numbers = self.call("number", &[&numbers], |f, x| f.sub(x[0], 1))?;
            match &total {
                Extent::Host(_) => numbers,
                Extent::Device(length) => on_device(numbers.shortened(length))?,
            }
        };
        Ok(segdes.numbers.get_or_init(|| numbers).clone())
    }

    /// Returns whether a segment begins at each element.
    pub(crate) fn heads(&mut self, segdes: &DeviceSegdes) -> Run<Node> {
        let numbers = self.numbers(segdes)?;
        let before = [Literal::from(u32::MAX)];
        let before = on_device(numbers.moved("heads", &[1], &Boundary::Constant(before.as_slice().into())))?;
        self.call("head", &[&numbers, &before], |f, x| f.ne(x[0], x[1]))
    }

    /// Brings a value of each segment to each of its elements.
    pub(crate) fn spread(&mut self, values: &Vector, segdes: &DeviceSegdes) -> Run<Vector> {
        if values.is_uniform() {
            let extent = self.total(segdes)?;
            return Ok(Vector::uniform(values.node.clone(), extent).generated(values.generated));
        }
        let numbers = self.numbers(segdes)?;
        Ok(Vector::of(on_device(values.node.gather(&[&numbers], &Boundary::Clamp))?))
    }

    /// Brings the place where each segment begins to each element of the segments of another descriptor. `i64`.
    pub(crate) fn spread_starts(&mut self, starts: &DeviceSegdes, segdes: &DeviceSegdes) -> Run<Node> {
        let (offsets, numbers) = (self.offsets(starts)?, self.numbers(segdes)?);
        on_device(offsets.gather(&[&numbers], &Boundary::Clamp))
    }
}
