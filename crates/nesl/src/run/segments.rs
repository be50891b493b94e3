//! Segment descriptors of a device: numbers and forms that the accelerator computes.

use super::extent::Extent;
use super::segdes::DeviceSegdes;
use super::vector::Vector;
use super::{Accelerator, on_device};
use crate::eval::{Fault, Run};
use broadloom_graph::{Amount, Combine, Length, Node, Segments, Shape, Total};
use broadloom_scalar::Element;
use std::cell::OnceCell;
use std::rc::Rc;

/// Maximum ratio of the bound to the number of elements of the largest vectors. Beyond it, the host reads the
/// number.
const WASTE: usize = 4;

/// Number of elements for which memory is always allocated.
const SMALL: usize = 1 << 14;

impl DeviceSegdes {
    /// Makes a descriptor from segments of the graph.
    pub(crate) fn of_segments(accelerator: &mut Accelerator, segments: Segments, total: Amount) -> Run<DeviceSegdes> {
        let (lengths, int) = (on_device(segments.lengths())?, accelerator.int());
        let lengths = Vector::of(accelerator.convert(&lengths, int)?).generated(true);
        let segdes = DeviceSegdes::with_total(lengths, Extent::Host(total));
        let _ = segdes.segments.set(segments);
        Ok(segdes)
    }
}

impl Accelerator {
    /// Returns the descriptor with the current knowledge of the host.
    pub(crate) fn current_segdes(&mut self, segdes: &Rc<DeviceSegdes>) -> Run<Rc<DeviceSegdes>> {
        let mut segdes = segdes.clone();
        while let Some(learned) = segdes.learned.get() {
            segdes = learned.clone();
        }
        let is_learned = |extent: &Extent| matches!((extent, extent.learned()), (Extent::Device(_), Extent::Host(_)));
        if !is_learned(segdes.count()) && !segdes.total.get().is_some_and(is_learned) {
            return Ok(segdes);
        }
        let lengths = segdes.lengths.learned()?;
        let packed = segdes.packed.clone().filter(|_| lengths.node.buffer().is_none());
        let mut learned = DeviceSegdes::of_lengths(lengths);
        learned.packed = packed;
        learned.longest.clone_from(&segdes.longest);
        if let Some(total) = segdes.total.get() {
            learned.total = OnceCell::from(total.learned());
        }
        if let Some(segments) = segdes.segments.get() {
            let _ = learned.segments.set(on_device(segments.learned())?);
        }
        let learned = Rc::new(learned);
        self.register_segdes(&learned);
        let _ = segdes.learned.set(learned.clone());
        Ok(learned)
    }

    /// Returns the number of elements of all segments. Without a bound that justifies its memory, the host
    /// waits for the number.
    pub(crate) fn total(&mut self, segdes: &DeviceSegdes) -> Run<Extent> {
        if let Some(total) = segdes.total.get() {
            return Ok(total.clone());
        }
        if let Some(sum) = segdes.lengths.sum() {
            return Ok(segdes.total.get_or_init(|| sum).clone());
        }
        let total = self.sum_of(&segdes.lengths)?;
        Ok(segdes.total.get_or_init(|| total).clone())
    }

    /// Returns the sum of lengths and records it. Without a bound that justifies its memory, the host waits
    /// for the sum.
    pub(crate) fn sum_of(&mut self, lengths: &Vector) -> Run<Extent> {
        let sum = self.sum_node(lengths)?;
        let total = match lengths.sum_bound() {
            Some(bound) if bound.equals(&0.into()) => Extent::host(0),
            Some(bound) if self.affords(&bound) => Extent::Device(on_device(Length::new(&sum, bound.max(&2.into())))?),
            _ => {
                let total = self.wait_for(Some(&sum))?;
                let Ok(total) = usize::try_from(total) else {
                    return Fault::at_run_time("a segment cannot have a negative number of elements");
                };
                if total > self.largest_int() {
                    return Err(Fault::too_many(total));
                }
                Extent::host(total)
            }
        };
        Ok(lengths.facts.sum.get_or_init(|| total).clone())
    }

    /// Tells whether memory for this bound is allocated although there may be fewer elements.
    pub(crate) fn affords(&self, bound: &Amount) -> bool {
        let is_within = |most: &Amount| !most.is_less(bound);
        let of_largest = |largest: &Amount| is_within(&largest.times(&WASTE.into()));
        is_within(&i32::MAX.into()) && (is_within(&(WASTE * SMALL).into()) || self.largest.iter().any(of_largest))
    }

    /// Records the number of elements of a vector, if it is among the largest.
    pub(crate) fn note_largest(&mut self, count: &Amount) {
        // Numbers that depend on sizes of columns are compared only when one of them is needed, the largest
        // first.
        match self.largest.iter().position(|own| own.is_known() && count.is_known() || own.is_identical(count)) {
            Some(place) if self.largest[place].value() < count.value() => self.largest[place] = count.clone(),
            Some(_) => return,
            None => self.largest.push(count.clone()),
        }
        self.largest.sort_by_key(|own| std::cmp::Reverse(own.value()));
    }

    pub(crate) fn largest_int(&self) -> usize {
        if self.widths.wide_int { i64::MAX as usize } else { i32::MAX as usize }
    }

    /// Tells whether the sum of lengths is known to fit an int.
    pub(crate) fn is_counted(&self, lengths: &Vector) -> bool {
        lengths.sum_bound().is_some_and(|bound| !Amount::from(self.largest_int()).is_less(&bound))
    }

    /// Returns the sum of ints, an `i64` without axes.
    pub(crate) fn sum_node(&mut self, vector: &Vector) -> Run<Node> {
        let lengths = self.whole(vector)?;
        let wide = self.convert(&lengths, Element::I64)?;
        if vector.extent.is_host(1) {
            return on_device(wide.reshape(Shape::from([])));
        }
        on_device(wide.reduce(Combine::Sum, &[0]))
    }

    /// Returns the descriptor as segments of the graph.
    pub(crate) fn segments(&mut self, segdes: &DeviceSegdes) -> Run<Segments> {
        if let Some(segments) = segdes.segments.get() {
            return Ok(segments.clone());
        }
        let total = match self.total(segdes)? {
            Extent::Host(total) => Total::Amount(total),
            Extent::Device(length) => Total::Device(length),
        };
        let lengths = self.whole(&segdes.lengths)?;
        let segments = on_device(Segments::from_lengths(&lengths, total))?;
        Ok(segdes.segments.get_or_init(|| segments).clone())
    }

    /// Broadcasts a value of each segment to its elements.
    pub(crate) fn spread(&mut self, values: &Vector, segdes: &DeviceSegdes) -> Run<Vector> {
        if values.is_uniform() {
            let extent = self.total(segdes)?;
            let facts = values.facts.of_equal();
            return Ok(Vector::new(values.node.clone(), extent).generated(values.generated).with_facts(facts));
        }
        let segments = self.segments(segdes)?;
        let values = self.with_extent(values, segdes.count())?;
        let (total, whole) = (self.total(segdes)?, self.whole(&values)?);
        Ok(Vector::new(on_device(segments.distribute(&whole))?, total))
    }

    /// Broadcasts the start of each segment to the elements of the segments of another descriptor, as `i64`.
    pub(crate) fn spread_starts(&mut self, starts: &DeviceSegdes, segdes: &DeviceSegdes) -> Run<Node> {
        let starts = Vector::of(on_device(self.segments(starts)?.starts())?);
        Ok(self.spread(&starts, segdes)?.node)
    }
}
