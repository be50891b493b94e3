//! Segment descriptors of a device. Each form (offsets, segment numbers) is made once, on first use.

use super::extent::Extent;
use super::fault::on_device;
use super::ledger::VectorCharge;
use super::vector::{RankedElements, Vector};
use crate::eval::Run;
use broadloom_graph::{Amount, Node, Segments, StoredForms};
use std::cell::OnceCell;
use std::rc::Rc;

/// A segment descriptor.
pub(crate) struct DeviceSegdes {
    /// The lengths of the segments, ints.
    pub(crate) lengths: Vector,
    /// The number of elements of all segments.
    pub(super) total: OnceCell<Extent>,
    /// The forms, each made once.
    pub(super) segments: OnceCell<Segments>,
    /// The length of the longest segment, if it was needed.
    pub(super) longest: OnceCell<Amount>,
    /// The flags and the descriptor before the pack, if a pack made it.
    pub(crate) packed: Option<(Node, Rc<DeviceSegdes>)>,
    /// The descriptor with numbers that the host has learned.
    pub(super) learned: OnceCell<Rc<DeviceSegdes>>,
    pub(crate) charge: OnceCell<VectorCharge>,
}

impl std::fmt::Debug for DeviceSegdes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SEGDES {:?}", self.lengths.node)
    }
}

impl DeviceSegdes {
    /// Makes a descriptor from lengths.
    pub(crate) fn of_lengths(lengths: Vector) -> DeviceSegdes {
        let (total, segments, longest, learned, charge) = Default::default();
        let sum = lengths.sum();
        let segdes = DeviceSegdes { lengths, total, segments, longest, packed: None, learned, charge };
        if let Some(sum) = sum {
            let _ = segdes.total.set(sum);
        }
        segdes
    }

    /// Makes a descriptor from lengths with their sum.
    pub(crate) fn with_total(lengths: Vector, total: Extent) -> DeviceSegdes {
        let _ = lengths.facts.sum.set(total);
        DeviceSegdes::of_lengths(lengths)
    }

    /// Returns a copy of the descriptor that is not in the list of live ones.
    pub(crate) fn detached(&self) -> DeviceSegdes {
        DeviceSegdes {
            lengths: self.lengths.clone(),
            total: self.total.clone(),
            segments: self.segments.clone(),
            longest: self.longest.clone(),
            packed: self.packed.clone(),
            learned: self.learned.clone(),
            charge: OnceCell::new(),
        }
    }

    /// Returns the lengths, with facts about their sum.
    pub(crate) fn lengths(&self) -> Vector {
        if let Some(total) = self.total.get() {
            let _ = self.lengths.facts.sum.set(total.clone());
        }
        self.lengths.clone()
    }

    /// Returns the number of elements of all segments, if it was needed.
    pub(crate) fn known_total(&self) -> Option<&Extent> {
        self.total.get()
    }

    /// Returns the number of segments.
    pub(crate) fn count(&self) -> &Extent {
        &self.lengths.extent
    }

    /// Tells whether there is exactly one segment.
    pub(crate) fn is_single(&self) -> bool {
        self.count().is_host(1)
    }

    /// Tells whether ranks refer to the segments of the descriptor.
    pub(crate) fn has_ranks(&self, ranked: &RankedElements) -> bool {
        match &ranked.lengths {
            Some(lengths) => self.lengths.node.is_same(lengths),
            None => self.is_single(),
        }
    }

    /// Returns the forms of segments, with the number of elements, if the host knows the numbers. The forms
    /// must be in memory, or the lengths must be derived from the offsets.
    pub(crate) fn known_forms(&self) -> Run<Option<(StoredForms, Amount)>> {
        let total = self.known_total().and_then(Extent::number);
        let (Some(segments), Some(total), Extent::Host(_)) = (self.segments.get(), total, &self.lengths.extent) else {
            return Ok(None);
        };
        let forms = match segments.stored_forms() {
            Some(forms) => forms,
            None if self.lengths.generated => StoredForms { offsets: on_device(segments.offsets())?, ids: None, heads: None },
            None => return Ok(None),
        };
        Ok(Some((forms, total)).filter(|_| !self.lengths.is_uniform()))
    }

    /// Returns the forms that are computed for nodes of a trace.
    pub(crate) fn kept_forms(&self, nodes: &[Node]) -> Option<StoredForms> {
        self.segments.get()?.kept_forms(nodes)
    }

    /// Sets the segments of the descriptor.
    pub(crate) fn set_segments(&self, segments: Segments) {
        let _ = self.segments.set(segments);
    }

    /// Records the number of elements of a vector that the descriptor cuts.
    pub(crate) fn note(&self, vector: &Vector) {
        let extent = self.lengths.facts.sum.get().unwrap_or(&vector.extent);
        let _ = self.total.set(extent.clone());
        let _ = self.lengths.facts.sum.set(extent.clone());
    }

    /// Adds the lengths to nodes to be computed. Other forms are computed and remembered with the nodes that
    /// use them.
    pub(crate) fn forms(&self, nodes: &mut Vec<Node>) {
        if !self.lengths.generated {
            nodes.push(self.lengths.stored().clone());
        }
    }
}
