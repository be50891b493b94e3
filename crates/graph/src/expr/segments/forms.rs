//! The forms of a descriptor. Each is made on first use.

use super::descriptor::Segments;
use super::elements::{binary, convert};
use super::form_cache::{StoredForms, once};
use super::measure::SegmentCount;
use crate::expr::amount::Amount;
use crate::expr::error::Result;
use crate::expr::node::Node;
use crate::expr::op::zeros;
use crate::expr::view::AxisMap;
use broadloom_scalar::{BinaryOp, Element, Literal};
use std::sync::OnceLock;

impl Segments {
    /// Returns a slice of the offsets, one for each segment, with room for the bound.
    fn offsets_from(&self, first: i64) -> Result<Node> {
        let axis = AxisMap { offset: first, ..AxisMap::same(0) };
        self.data.bounds.affine("segments", &[axis], self.data.count.shape(), None)
    }

    /// Returns the start of each segment, an `i32` or `i64`, with room for the bound on the number of
    /// segments. Unused entries hold the number of elements.
    pub(super) fn padded_starts(&self) -> Result<Node> {
        once(&self.data.forms.starts, || self.offsets_from(0))
    }

    /// Returns the end of each segment, an `i32` or `i64`, with room for the bound on the number of segments.
    pub(super) fn padded_ends(&self) -> Result<Node> {
        once(&self.data.forms.ends, || self.offsets_from(1))
    }

    /// Returns the number of elements of each segment, an `i64`.
    pub fn lengths(&self) -> Result<Node> {
        once(&self.data.forms.lengths, || {
            let lengths = binary(BinaryOp::Sub, &self.padded_ends()?, &self.padded_starts()?)?;
            self.data.count.cut(convert(&lengths, Element::I64)?)
        })
    }

    /// Returns the start of each segment, an `i64`, and finally the end of the line: one more than there are
    /// segments.
    pub fn offsets(&self) -> Result<Node> {
        once(&self.data.forms.offsets, || match &self.data.count.length {
            None => convert(&self.data.bounds, Element::I64),
            Some(_) => {
                let one = SegmentCount::host(self.context(), 1)?;
                self.data.count.plus(&one)?.cut(convert(&self.data.bounds, Element::I64)?)
            }
        })
    }

    /// Returns the forms that are in memory, for [`Segments::from_stored_forms`]. Returns `None` if the
    /// offsets are not, or if only the device knows the number of segments or elements.
    pub fn stored_forms(&self) -> Option<StoredForms> {
        let (count, total) = (&self.data.count, &self.data.total);
        let is_known = count.length.is_none() && total.length.is_none();
        let is_line = |node: &Node, size: &Amount| node.length().is_none() && node.bound().size().equals(size);
        let offsets = Some(&self.data.bounds).filter(|bounds| is_known && bounds.buffer().is_some())?;
        let form =
            |form: &OnceLock<Node>| form.get().filter(|form| form.buffer().is_some() && is_line(form, &total.bound)).cloned();
        let (ids, heads) = (form(&self.data.forms.ids), form(&self.data.forms.heads));
        is_line(offsets, &count.bound.plus(&1.into())).then(|| StoredForms { offsets: offsets.clone(), ids, heads })
    }

    /// Returns the forms that are computed already, or that a plan of these nodes computes, inside a traced
    /// function. They have room for the bounds on the numbers of segments and elements. The function may
    /// return them, for [`Segments::from_stored_forms`]. Returns `None` if the offsets are not among them.
    pub fn kept_forms(&self, nodes: &[Node]) -> Option<StoredForms> {
        let is_kept = |node: &&Node| !node.is_pending() || node.is_remembered() && node.is_below(nodes);
        let offsets = Some(&self.data.bounds).filter(is_kept)?.clone();
        let numbers = self.data.forms.numbers.get().filter(|numbers| numbers.iter().all(|node| is_kept(&node)));
        let [ids, heads] = match numbers {
            Some([ids, heads]) => [Some(ids.clone()), Some(heads.clone())],
            None => [None, None],
        };
        Some(StoredForms { offsets, ids, heads })
    }

    /// Returns the start of each segment, an `i64`.
    pub fn starts(&self) -> Result<Node> {
        self.data.count.cut(convert(&self.padded_starts()?, Element::I64)?)
    }

    /// Returns the end of each segment, an `i64`.
    pub fn ends(&self) -> Result<Node> {
        self.data.count.cut(convert(&self.padded_ends()?, Element::I64)?)
    }

    /// Returns the segment number and the head flag of each element, with room for the bounds.
    fn numbers(&self) -> Result<[Node; 2]> {
        let numbers = &self.data.forms.numbers;
        if let Some(numbers) = numbers.get() {
            return Ok(numbers.clone());
        }
        let found = self.data.total.places(Element::I64)?.numbers_of_segments(&self.data.bounds)?;
        let found = found.map(|node| self.data.forms.keep(node));
        Ok(numbers.get_or_init(|| found).clone())
    }

    /// Returns whether a segment begins at each element.
    pub fn heads(&self) -> Result<Node> {
        once(&self.data.forms.heads, || {
            if self.data.total.is_none() || self.data.count.is_none() {
                return self.data.total.filled(&[Literal::from(false)]);
            }
            let [_, heads] = self.numbers()?;
            Ok(heads)
        })
    }

    /// Returns the segment number of each element, an `i32`.
    pub fn ids(&self) -> Result<Node> {
        once(&self.data.forms.ids, || {
            if self.data.total.is_none() || self.data.count.is_none() {
                return self.data.total.filled(&[Literal::from(0i32)]);
            }
            let [ids, _] = self.numbers()?;
            Ok(ids)
        })
    }

    /// Returns the index of each element within its segment, an `i64` from 0 on.
    pub fn places(&self) -> Result<Node> {
        once(&self.data.forms.places, || {
            let starts = self.spread_offsets(&self.padded_starts()?)?;
            binary(BinaryOp::Sub, &self.data.total.places(Element::I64)?, &starts)
        })
    }

    /// Broadcasts the value of each segment to its elements. The values have room for the bound on the number
    /// of segments.
    pub(super) fn spread(&self, values: &Node) -> Result<Node> {
        if values.bound().is_empty() {
            // There are no segments. A total that only the device knows is then 0, whatever its bound.
            return self.data.total.filled(&zeros(values.ty()));
        }
        values.gather_inside(&self.ids()?)
    }

    /// Broadcasts the offset of each segment to its elements, as an `i64`.
    pub(super) fn spread_offsets(&self, offsets: &Node) -> Result<Node> {
        convert(&self.spread(offsets)?, Element::I64)
    }

    /// Computes the forms made so far, without waiting. Only needed if nothing that uses them is evaluated
    /// first.
    pub fn evaluate(&self) -> Result<()> {
        let forms = &self.data.forms;
        let made = [&forms.lengths, &forms.offsets, &forms.heads, &forms.ids];
        let nodes: Vec<Node> = made.into_iter().filter_map(|form| form.get().cloned()).collect();
        self.context().evaluate(&nodes)
    }
}
