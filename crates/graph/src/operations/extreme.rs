//! Extreme: where the least or the greatest element along axes is.

use super::reduce::{feeds, pattern, place_without};
use crate::error::{Error, Result};
use crate::naive::{HostArray, compare};
use crate::node::Node;
use crate::op::{Axes, Extreme as Which};
use crate::operation::{Extent, Feed, Form, Joining, Operation, Parts, Site};
use crate::shape::Shape;
use crate::text::{Call, Spelling};
use broadloom_scalar::{CompareOp, Element, Lanes, Literal, Type};
use broadloom_skeleton::Operator;
use smallvec::{SmallVec, smallvec};

/// The least integer of the second input among the places along some axes where the first is extreme; the axes are gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Extreme {
    which: Which,
    axes: Axes,
}

impl Node {
    /// The index along an axis of the extreme elements, the first of equal ones; the axis is gone. An axis without elements has none.
    pub fn extreme(&self, which: Which, axis: usize, element: Element) -> Result<Node> {
        let axes = self.checked_axes(which.name(), &[axis])?;
        if !self.ty().is_scalar() || self.ty().element() == Element::Bool {
            return Err(Error::Type { operation: which.name().to_owned(), ty: self.ty() });
        }
        let shape = self.bound().without(&axes, false);
        if self.bound().amount(axis).equals(&0.into()) && !shape.is_empty() {
            let reason = format!("axis {axis} has no elements");
            return Err(Error::Range { operation: which.name().to_owned(), shape: self.bound().clone(), reason });
        }
        let labels = self.position_like(axis, element)?;
        if shape.is_empty() {
            let nothing = Node::fill(self.context(), shape, &[Literal::zero(element)])?;
            return Ok(if axis == 0 { nothing } else { nothing.with_length(self.length().cloned()) });
        }
        Node::apply_one(Extreme { which, axes }, &[self, &labels])
    }
}

/// `argmin(x, axes: [0])`, or `argmin(x, labels, axes: [0, 1])`.
pub(super) fn read(call: &Call<'_>) -> Result<Vec<Node>> {
    let (inputs, axes) = (call.inputs(), call.axes()?);
    let which = if call.name() == Which::Least.name() { Which::Least } else { Which::Greatest };
    let (values, labels) = match (&inputs[..], &axes[..]) {
        ([values], [axis]) => return Ok(vec![values.extreme(which, *axis, Element::I64)?]),
        ([values, labels], [_, ..]) => (*values, *labels),
        _ => return Err(call.error("an array and one axis are wanted, or an array, labels of the same shape and axes")),
    };
    let axes = values.checked_axes(which.name(), &axes)?;
    for (node, is_right) in [(values, values.ty() != Type::BOOL), (labels, labels.ty().element().is_integer())] {
        if !node.ty().is_scalar() || !is_right {
            return Err(Error::Type { operation: which.name().to_owned(), ty: node.ty() });
        }
    }
    if values.shape() != labels.shape() || values.shape().is_empty() {
        let (left, right) = (values.shape().clone(), labels.shape().clone());
        return Err(Error::Shapes { operation: which.name().to_owned(), left, right });
    }
    Ok(vec![Node::apply_one(Extreme { which, axes }, &[values, labels])?])
}

impl Operation for Extreme {
    fn name(&self) -> String {
        format!("{} over {:?}", self.which.name(), self.axes.as_slice())
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new(self.which.name()).axes(&self.axes))
    }

    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[1].ty(), inputs[0].bound().without(&self.axes, false))])
    }

    fn extents(&self, _: u8, ranks: &[usize], _: usize) -> SmallVec<[Extent; 4]> {
        Extent::without(0, ranks[0], &self.axes)
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        smallvec![0, 1]
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        let Ok(operator) = operator(self.which, types, false) else { return SmallVec::new() };
        let (value, label) = operator.identity().split_at(types[0].lanes());
        smallvec![Some(value.into()), Some(label.into())]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (values, labels) = (inputs[0], inputs[1]);
        let mut best: Vec<Option<(Literal, Literal)>> = vec![None; shape.count()];
        for from in 0..values.shape.count() {
            let (value, label) = (values.at(from)[0], labels.at(from)[0]);
            let best = &mut best[place_without(from, &values.shape, &self.axes, shape)];
            let is_better = best.is_none_or(|(known, its)| match self.which {
                _ if known.is_nan() && value.is_nan() => label.as_i128() < its.as_i128(),
                _ if known.is_nan() || value.is_nan() => known.is_nan(),
                Which::Least if compare(CompareOp::Lt, value, known) => true,
                Which::Greatest if compare(CompareOp::Gt, value, known) => true,
                Which::Least | Which::Greatest => compare(CompareOp::Eq, value, known) && label.as_i128() < its.as_i128(),
            });
            if is_better {
                *best = Some((value, label));
            }
        }
        let zero = Literal::zero(ty.element());
        let lanes = best.into_iter().map(|best| best.map_or(zero, |(_, label)| label)).collect();
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, site: &Site) -> Vec<Feed> {
        feeds(site, &self.axes)
    }

    fn pattern(&self, parts: Parts) -> Result<Form> {
        pattern(parts, &self.axes)
    }

    /// The extreme value and its label.
    fn values(&self, site: &Site) -> Vec<Type> {
        site.types.to_vec()
    }

    fn value(&self, _: &Site, _: u8) -> usize {
        1
    }

    fn joining(&self) -> Joining {
        Joining::Pass("reduce", self.axes.clone())
    }

    fn operator(&self, site: &Site, in_order: bool) -> Result<Option<Operator>> {
        // Labels that are positions grow with the order in which values come.
        Ok(Some(operator(self.which, &site.types, in_order && site.positions[1])?))
    }

    fn reduced(&self) -> Option<&[u8]> {
        Some(&self.axes)
    }
}

/// The operator of values and labels of these types. `in_order` promises that labels grow with the order in which values come.
pub(super) fn operator(which: Which, types: &[Type], in_order: bool) -> Result<Operator> {
    let (value, label) = (types[0], types[1].element());
    Ok(match (which, in_order) {
        (Which::Least, true) => Operator::arg_min_in_order(value, label)?,
        (Which::Least, false) => Operator::arg_min(value, label)?,
        (Which::Greatest, true) => Operator::arg_max_in_order(value, label)?,
        (Which::Greatest, false) => Operator::arg_max(value, label)?,
    })
}
