//! The forms of a descriptor. Each is made when it is first asked for.

use super::{Segments, binary, convert};
use crate::error::Result;
use crate::node::Node;
use crate::op::{Combine, Elementwise};
use crate::shape::Shape;
use crate::view::{AxisMap, Boundary};
use broadloom_scalar::{BinaryOp, Builder, Element, Literal, Type};
use std::sync::{Arc, OnceLock};

/// Nodes that were made.
#[derive(Debug, Default)]
pub(super) struct Forms {
    lengths: OnceLock<Node>,
    offsets: OnceLock<Node>,
    starts: OnceLock<Node>,
    ends: OnceLock<Node>,
    heads: OnceLock<Node>,
    ids: OnceLock<Node>,
    places: OnceLock<Node>,
    /// As long as this is alive, forms that a plan computes are kept in memory.
    alive: Arc<()>,
}

impl Forms {
    /// A new node that is kept in memory when a plan computes it, as long as the descriptor is alive.
    pub(super) fn keep(&self, node: Node) -> Node {
        node.remembered_by(Arc::downgrade(&self.alive))
    }

    /// Returns whether a node is the ids.
    pub(super) fn has_ids(&self, node: &Node) -> bool {
        self.ids.get().is_some_and(|ids| ids.is_same(node))
    }

    /// Gives the head flags.
    pub(super) fn set_heads(&self, heads: &Node) {
        self.heads.get_or_init(|| heads.clone());
    }

    /// Gives the lengths, an `i64` for each segment.
    pub(super) fn set_lengths(&self, lengths: &Node) {
        self.lengths.get_or_init(|| lengths.clone());
    }
}

/// The node of a form; made if it is not there.
fn once(form: &OnceLock<Node>, make: impl FnOnce() -> Result<Node>) -> Result<Node> {
    if let Some(node) = form.get() {
        return Ok(node.clone());
    }
    let node = make()?;
    Ok(form.get_or_init(|| node).clone())
}

impl Segments {
    /// Part of the offsets, one for each segment and with room for the bound.
    fn offsets_from(&self, first: i64) -> Result<Node> {
        let axis = AxisMap { offset: first, ..AxisMap::same(0) };
        self.data.bounds.affine("segments", &[axis], self.data.count.shape(), None)
    }

    /// Where each segment begins, with room for the bound on the number of segments. Those behind the last begin behind all elements.
    pub(super) fn padded_starts(&self) -> Result<Node> {
        once(&self.data.forms.starts, || self.offsets_from(0))
    }

    /// Where each segment ends, with room for the bound on the number of segments.
    pub(super) fn padded_ends(&self) -> Result<Node> {
        once(&self.data.forms.ends, || self.offsets_from(1))
    }

    /// The number of elements of each segment, an `i64`.
    pub fn lengths(&self) -> Result<Node> {
        once(&self.data.forms.lengths, || {
            self.data.count.cut(binary(BinaryOp::Sub, &self.padded_ends()?, &self.padded_starts()?)?)
        })
    }

    /// Where each segment begins, an `i64`, and last where all end: one more than there are segments.
    pub fn offsets(&self) -> Result<Node> {
        once(&self.data.forms.offsets, || match &self.data.count.length {
            None => Ok(self.data.bounds.clone()),
            Some(_) => {
                let one = super::Measure::host(self.context(), 1)?;
                self.data.count.plus(&one)?.cut(self.data.bounds.clone())
            }
        })
    }

    /// Where each segment begins, an `i64`.
    pub fn starts(&self) -> Result<Node> {
        self.data.count.cut(self.padded_starts()?)
    }

    /// Where each segment ends, an `i64`.
    pub fn ends(&self) -> Result<Node> {
        self.data.count.cut(self.padded_ends()?)
    }

    /// Where each segment that has elements begins; -1 for others. So no two are the same place.
    fn own_starts(&self) -> Result<Node> {
        let f = Builder::function("start");
        let (start, end) = (f.parameter("start", Type::I64), f.parameter("end", Type::I64));
        let function = f.finish_function(&[f.select(f.lt(start, end), start, -1i64)])?;
        Node::elementwise(Elementwise::Call(function, 0), &[&self.padded_starts()?, &self.padded_ends()?])
    }

    /// Whether a segment begins at each element.
    pub fn heads(&self) -> Result<Node> {
        once(&self.data.forms.heads, || {
            let total = &self.data.total;
            let none = Node::fill(self.context(), total.shape(), &[Literal::from(false)])?;
            if total.bound == 0 || self.data.count.bound == 0 {
                return total.cut(none);
            }
            let one = Node::fill(self.context(), Shape::from([]), &[Literal::from(true)])?;
            let heads = none.scatter(&[&self.own_starts()?], &one, Some(Combine::Any))?;
            total.cut(self.data.forms.keep(heads))
        })
    }

    /// The number of the segment of each element, an `i32`.
    pub fn ids(&self) -> Result<Node> {
        once(&self.data.forms.ids, || {
            let (total, count) = (&self.data.total, &self.data.count);
            if total.bound == 0 || count.bound == 0 {
                return total.filled(&[Literal::from(0i32)]);
            }
            // Each segment leaves its number, counted from 1, at its first element; the greatest so far is that of an element.
            let none = Node::fill(self.context(), total.shape(), &[Literal::from(0u32)])?;
            let numbers = Node::position(self.context(), count.shape(), 0, Element::U32)?;
            let numbers = binary(BinaryOp::Add, &numbers, &super::scalar(self.context(), 1u32)?)?;
            let marks = none.scatter(&[&self.own_starts()?], &numbers, Some(Combine::Sum))?;
            let numbers = self.data.forms.keep(total.cut(marks)?.scan(Combine::Max, 0, true)?);
            binary(BinaryOp::Sub, &convert(&numbers, Element::I32)?, &super::scalar(self.context(), 1i32)?)
        })
    }

    /// The place of each element within its segment, an `i64` from 0 on.
    pub fn places(&self) -> Result<Node> {
        once(&self.data.forms.places, || {
            let starts = self.spread(&self.padded_starts()?)?;
            binary(BinaryOp::Sub, &self.data.total.places(Element::I64)?, &starts)
        })
    }

    /// The value of each element's segment. The values have room for the bound on the number of segments.
    pub(super) fn spread(&self, values: &Node) -> Result<Node> {
        values.gather(&[&self.ids()?], &Boundary::Clamp)
    }

    /// Computes the forms that were asked for so far, without waiting. Needed only where nothing that uses them is evaluated first.
    pub fn evaluate(&self) -> Result<()> {
        let forms = &self.data.forms;
        let made = [&forms.lengths, &forms.offsets, &forms.heads, &forms.ids];
        let nodes: Vec<Node> = made.into_iter().filter_map(|form| form.get().cloned()).collect();
        self.context().evaluate(&nodes)
    }
}
