//! Segmented reduce: the elements of each segment of a line combined.

use super::segment_numbers::{OFFSETS, is_segment_numbers};
use crate::build::same_context;
use crate::error::{Error, Result};
use crate::naive::{HostArray, combined};
use crate::node::Node;
use crate::op::{Axes, Combine};
use crate::operation::{Feed, Form, Joining, Operation, Parts, Site};
use crate::shape::Shape;
use crate::text::{Call, Spelling};
use broadloom_scalar::{Lanes, Type};
use broadloom_skeleton::{Operator, SegmentedReduce as Kernel};
use smallvec::{SmallVec, smallvec};

/// The elements of each segment of the first input, a line, combined. The second has the offsets, one more than there are segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SegmentedReduce {
    combine: Combine,
}

impl Node {
    /// The elements of each segment of a line combined, in their order; of none, the combination's identity.
    pub fn segmented_reduce(&self, offsets: &Node, combine: Combine) -> Result<Node> {
        let operation = || format!("segmented {}", combine.name());
        self.line(&operation())?;
        same_context(&operation(), &[self, offsets])?;
        self.reduce_segments(&offsets.segment_offsets(self.bound().size())?, combine)
    }

    /// Reduces segments whose offsets are held to the line.
    pub(crate) fn reduce_segments(&self, offsets: &Node, combine: Combine) -> Result<Node> {
        if !combine.takes(self.ty()) {
            return Err(Error::Type { operation: format!("segmented {}", combine.name()), ty: self.ty() });
        }
        let context = same_context("segments", &[self, offsets])?;
        // Beyond a length that only the device knows stand identities, which are part of the last segment.
        let segments = one_less(offsets);
        if self.bound().is_empty() || segments.is_empty() {
            return Node::fill(context, segments, &combine.identity(self.ty()));
        }
        Node::apply_one(SegmentedReduce { combine }, &[self, offsets])
    }
}

/// `segmented_reduce(x, offsets, combine: sum)`.
pub(super) fn read(call: &Call<'_>) -> Result<Vec<Node>> {
    let [input, offsets] = call.exactly()?;
    let combine = call.combine(input.ty())?;
    input.line(call.name())?;
    Ok(vec![input.reduce_segments(&offsets.held_to(&input.shape().size())?, combine)?])
}

impl Operation for SegmentedReduce {
    fn name(&self) -> String {
        format!("segmented {}", self.combine.name())
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("segmented_reduce").combine(&self.combine))
    }

    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[0].ty(), one_less(inputs[1]))])
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(self.combine.identity(types[0])), None]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let at = |offset: usize| (inputs[1].lanes[offset].as_i128().unwrap_or(0) as usize).min(inputs[0].shape.count());
        let mut lanes = vec![];
        for segment in 0..shape.count() {
            let mut sum = self.combine.identity(ty);
            for element in at(segment)..at(segment + 1) {
                sum = combined(&self.combine, &sum, inputs[0].at(element))?;
            }
            lanes.extend(sum);
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, _: &Site) -> Vec<Feed> {
        feeds([0])
    }

    fn knows(&self, other: &dyn Operation) -> Option<(usize, usize)> {
        is_segment_numbers(other).then_some((1, OFFSETS))
    }

    fn pattern(&self, parts: Parts) -> Result<Form> {
        pattern(parts)
    }

    fn joining(&self) -> Joining {
        Joining::Pass("segmented reduce", Axes::new())
    }

    fn operator(&self, site: &Site, _: bool) -> Result<Option<Operator>> {
        Ok(Some(self.combine.operator(site.types[0])?))
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

/// A line of one element less: there is one more offset than there are segments.
pub(super) fn one_less(offsets: &Node) -> Shape {
    Shape::from_amounts(&[offsets.bound().size().minus(&1.into())])
}

/// The values, then the offsets, which stand behind them and which all that share a pass have in common.
pub(super) fn feeds<const N: usize>(values: [usize; N]) -> Vec<Feed> {
    vec![Feed::new(values, true), Feed::new([N], true).in_common()]
}

/// The pattern of a reduction of segments.
pub(super) fn pattern(mut parts: Parts) -> Result<Form> {
    let (source, offsets, operator) = (parts.source()?, parts.source()?, parts.operator()?);
    Ok(Form::One(Kernel { source, offsets, operator, sink: parts.sink }.into()))
}
