//! Forms of a descriptor that are made already.

use super::measure::SegmentCount;
use crate::expr::error::Result;
use crate::expr::node::Node;
use std::sync::{Arc, OnceLock};

/// Forms of a descriptor that are in memory.
#[derive(Clone, Debug)]
pub struct StoredForms {
    /// The offsets, an `i32` or `i64`: one more than there are segments.
    pub offsets: Node,
    /// The segment number of each element, an `i32`.
    pub ids: Option<Node>,
    /// A flag for each element: true if a segment begins there.
    pub heads: Option<Node>,
}

/// Forms of a descriptor made so far.
#[derive(Debug, Default)]
pub(super) struct FormCache {
    pub(super) lengths: OnceLock<Node>,
    pub(super) offsets: OnceLock<Node>,
    pub(super) starts: OnceLock<Node>,
    pub(super) ends: OnceLock<Node>,
    pub(super) heads: OnceLock<Node>,
    pub(super) ids: OnceLock<Node>,
    /// The segment numbers and head flags, as one operation returns them.
    pub(super) numbers: OnceLock<[Node; 2]>,
    pub(super) places: OnceLock<Node>,
    /// While this is alive, forms that a plan computes are kept in memory.
    alive: Arc<()>,
}

impl FormCache {
    /// Marks a new node: while the descriptor is alive, a plan that computes it keeps it in memory.
    pub(super) fn keep(&self, node: Node) -> Node {
        node.remembered_by(Arc::downgrade(&self.alive))
    }

    /// Returns the forms made so far, with numbers of the host in place of lengths. Others are made from the
    /// offsets on first use.
    pub(super) fn learned(&self, count: &SegmentCount, total: &SegmentCount) -> Result<FormCache> {
        let forms = FormCache { alive: self.alive.clone(), ..FormCache::default() };
        let each = [
            (&self.lengths, &forms.lengths, count),
            (&self.heads, &forms.heads, total),
            (&self.ids, &forms.ids, total),
            (&self.places, &forms.places, total),
        ];
        for (own, learned, measure) in each {
            if let Some(form) = own.get().filter(|_| !measure.is_none()) {
                let form = measure.first_of(form)?;
                learned.get_or_init(|| form);
            }
        }
        Ok(forms)
    }

    /// Returns whether a node is the node of the ids.
    pub(super) fn has_ids(&self, node: &Node) -> bool {
        self.ids.get().is_some_and(|ids| ids.is_same(node))
    }

    /// Sets the segment numbers.
    pub(super) fn set_ids(&self, ids: &Node) {
        self.ids.get_or_init(|| ids.clone());
    }

    /// Sets the head flags.
    pub(super) fn set_heads(&self, heads: &Node) {
        self.heads.get_or_init(|| heads.clone());
    }

    /// Sets the lengths, an `i64` for each segment.
    pub(super) fn set_lengths(&self, lengths: &Node) {
        self.lengths.get_or_init(|| lengths.clone());
    }
}

/// Returns the node of a form; makes it on first use.
pub(super) fn once(form: &OnceLock<Node>, make: impl FnOnce() -> Result<Node>) -> Result<Node> {
    if let Some(node) = form.get() {
        return Ok(node.clone());
    }
    let node = make()?;
    Ok(form.get_or_init(|| node).clone())
}
