//! Segmented extreme: where the least or the greatest element of each segment of a line is.

use super::extreme::operator;
use super::segment_numbers::{OFFSETS, is_segment_numbers};
use super::segmented_reduce::{feeds, one_less, pattern};
use crate::error::{Error, Result};
use crate::naive::{HostArray, compare};
use crate::node::Node;
use crate::op::{Axes, Extreme as Which};
use crate::operation::{Feed, Form, Joining, Operation, Parts, Site};
use crate::shape::Shape;
use crate::text::{Call, Spelling};
use broadloom_scalar::{CompareOp, Element, Lanes, Literal, Type};
use broadloom_skeleton::Operator;
use smallvec::{SmallVec, smallvec};

/// The integer of the second input at the first place of each segment where the first input is extreme; the greatest integer for a segment without elements. The third input
/// has the offsets, one more than there are segments. Integers grow along the line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SegmentedExtreme {
    which: Which,
}

impl Node {
    /// The place on the line, an integer, of the extreme element of each segment whose offsets are held to the line; the first of equal ones. The greatest integer for
    /// a segment without elements.
    pub(crate) fn extreme_in_segments(&self, which: Which, element: Element, offsets: &Node) -> Result<Node> {
        let labels = self.position_like(0, element)?;
        Node::apply_one(SegmentedExtreme { which }, &[self, &labels, offsets])
    }
}

/// `segmented_argmin(x, labels, offsets)`.
pub(super) fn read(call: &Call<'_>) -> Result<Vec<Node>> {
    let [values, labels, offsets] = call.exactly()?;
    let which = if call.name() == "segmented_argmin" { Which::Least } else { Which::Greatest };
    let is_number = values.ty().is_scalar() && values.ty() != Type::BOOL;
    for (node, is_right) in [(values, is_number), (labels, [Type::I32, Type::I64].contains(&labels.ty()))] {
        if !is_right {
            return Err(Error::Type { operation: call.name().to_owned(), ty: node.ty() });
        }
    }
    values.line(call.name())?;
    if values.shape() != labels.shape() || values.shape().is_empty() {
        let (left, right) = (values.shape().clone(), labels.shape().clone());
        return Err(Error::Shapes { operation: call.name().to_owned(), left, right });
    }
    let offsets = offsets.held_to(&values.shape().size())?;
    if offsets.bound().count() < 2 {
        return Ok(vec![Node::fill(values.context(), Shape::from(0), &[Literal::zero(labels.ty().element())])?]);
    }
    Ok(vec![Node::apply_one(SegmentedExtreme { which }, &[values, labels, &offsets])?])
}

impl Operation for SegmentedExtreme {
    fn name(&self) -> String {
        format!("segmented {}", self.which.name())
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new(format!("segmented_{}", self.which.name())))
    }

    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[1].ty(), one_less(inputs[2]))])
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        smallvec![0, 1]
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        let Ok(operator) = operator(self.which, types, false) else { return SmallVec::new() };
        let (value, label) = operator.identity().split_at(1);
        smallvec![Some(value.into()), Some(label.into()), None]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (values, labels) = (inputs[0], inputs[1]);
        let at = |offset: usize| (inputs[2].lanes[offset].as_i128().unwrap_or(0) as usize).min(values.shape.count());
        let mut lanes = vec![];
        for segment in 0..shape.count() {
            let mut best: Option<usize> = None;
            for here in at(segment)..at(segment + 1) {
                let value = values.at(here)[0];
                let is_better = best.is_none_or(|best| match (values.at(best)[0], self.which) {
                    (known, _) if known.is_nan() || value.is_nan() => known.is_nan() && !value.is_nan(),
                    (known, Which::Least) => compare(CompareOp::Lt, value, known),
                    (known, Which::Greatest) => compare(CompareOp::Gt, value, known),
                });
                if is_better {
                    best = Some(here);
                }
            }
            let none = ty.element().range().map_or(0, |(_, high)| high);
            lanes.push(best.map_or(Literal::from_i128(ty.element(), none), |best| labels.at(best)[0]));
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, _: &Site) -> Vec<Feed> {
        feeds([0, 1])
    }

    fn knows(&self, other: &dyn Operation) -> Option<(usize, usize)> {
        is_segment_numbers(other).then_some((2, OFFSETS))
    }

    fn pattern(&self, parts: Parts) -> Result<Form> {
        pattern(parts)
    }

    /// The extreme value and its label.
    fn values(&self, site: &Site) -> Vec<Type> {
        site.types[..2].to_vec()
    }

    fn value(&self, _: &Site, _: u8) -> usize {
        1
    }

    fn joining(&self) -> Joining {
        Joining::Pass("segmented reduce", Axes::new())
    }

    fn operator(&self, site: &Site, _: bool) -> Result<Option<Operator>> {
        Ok(Some(operator(self.which, &site.types, false)?))
    }

    /// Elements and segments are counted together.
    fn counted(&self, inputs: &[&Shape]) -> usize {
        inputs.iter().map(|input| input.count()).sum()
    }

    /// The number of elements, and of segments.
    fn sizes(&self, domain: &[u64], _: &[&Shape], result: &Shape) -> Vec<u64> {
        domain.iter().copied().chain([result.count() as u64]).collect()
    }
}
