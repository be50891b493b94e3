//! Segmented reduce: reduces each segment of a line to one value, combined or the index of the minimum or
//! maximum.

use super::reduction::Reduction;
use super::segment_numbers::{OFFSETS, is_segment_numbers};
use crate::expr::apply::Typing;
use crate::expr::check::same_context;
use crate::expr::error::Result;
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::op::{Extreme, zeros};
use crate::expr::operation::{Application, Feed, Operation, OperationPattern, PatternParts, SharedKernel};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::{Axes, Shape};
use crate::expr::spelling::Spelling;
use broadloom_scalar::{Element, Lanes, Type};
use broadloom_skeleton::{Combine, Operator, SegmentedReduce as Kernel};
use smallvec::SmallVec;

/// Reduction of each segment of the first inputs, lines. The last input has the offsets, one more than there
/// are segments. Labels of extremes increase along the line; an empty segment has the maximum integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SegmentedReduce {
    by: Reduction,
}

impl Node {
    /// Combines the elements of each segment of a line, in their order. An empty segment gives the operator's
    /// identity.
    pub fn segmented_reduce(&self, offsets: &Node, combine: Combine) -> Result<Node> {
        let operation = format!("segmented {}", combine.name());
        self.check_line(&operation)?;
        same_context(&operation, &[self, offsets])?;
        self.reduce_segments(&offsets.segment_offsets(self.bound().size())?, combine)
    }

    /// Reduces segments whose offsets are clamped to the line.
    pub(crate) fn reduce_segments(&self, offsets: &Node, combine: Combine) -> Result<Node> {
        self.check_combined(&format!("segmented {}", combine.name()), &combine)?;
        let context = same_context("segments", &[self, offsets])?;
        // Elements beyond a length that only the device knows are identities; they belong to the last
        // segment.
        let segments = one_less(offsets);
        if self.bound().is_empty() || segments.is_empty() {
            return Node::fill(context, segments, &combine.identity(self.ty()));
        }
        Node::apply_one(SegmentedReduce { by: Reduction::Combine(combine) }, &[self, offsets])
    }

    /// Returns the index on the line, an integer, of the extreme of each segment, the first of equal ones;
    /// the maximum integer for an empty segment. The offsets are clamped to the line.
    pub(crate) fn extreme_in_segments(&self, which: Extreme, element: Element, offsets: &Node) -> Result<Node> {
        let labels = self.position_like(0, element)?;
        Node::apply_one(SegmentedReduce { by: Reduction::Extreme(which) }, &[self, &labels, offsets])
    }
}

/// Reads `segmented_reduce(x, offsets, combine: sum)`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [input, offsets] = call.exactly()?;
    let combine = call.combine(input.ty())?;
    input.check_line(call.name())?;
    Ok(vec![input.reduce_segments(&offsets.held_to(&input.shape().size())?, combine)?])
}

/// Reads `segmented_argmin(x, labels, offsets)`.
pub(super) fn read_extreme(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [values, labels, offsets] = call.exactly()?;
    let by = Reduction::read_extreme(call, values, labels)?;
    values.check_line(call.name())?;
    let offsets = offsets.held_to(&values.shape().size())?;
    if offsets.bound().count() < 2 {
        return Ok(vec![Node::fill(values.context(), Shape::from(0), &zeros(labels.ty()))?]);
    }
    Ok(vec![Node::apply_one(SegmentedReduce { by }, &[values, labels, &offsets])?])
}

impl Typing for SegmentedReduce {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let lines = self.by.inputs();
        Ok(vec![(inputs[lines - 1].ty(), one_less(inputs[lines]))])
    }
}

impl Operation for SegmentedReduce {
    fn name(&self) -> String {
        format!("segmented {}", self.by.name())
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(self.by.spelling("segmented_"))
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        (0..self.by.inputs()).collect()
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        self.by.absent(types)
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (count, offsets) = (inputs[0].shape.count(), inputs[self.by.inputs()]);
        let at = |offset: usize| (offsets.lanes[offset].as_i128().unwrap_or(0) as usize).min(count);
        HostArray::of(ty, shape, (0..shape.count()).map(|segment| self.by.naive(inputs, at(segment)..at(segment + 1), ty)))
    }

    /// Returns two feeds: the lines, then the offsets, which all that share a pass have in common.
    fn feeds(&self, _: &Application) -> Vec<Feed> {
        let lines = self.by.inputs();
        vec![Feed::new(0..lines, true), Feed::new([lines], true).in_common()]
    }

    fn knows(&self, other: &dyn Operation) -> Option<(usize, usize)> {
        is_segment_numbers(other).then_some((self.by.inputs(), OFFSETS))
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (source, offsets, operator) = (parts.source()?, parts.source()?, parts.operator()?);
        Ok(OperationPattern::One(Kernel { source, offsets, operator, sink: parts.sink }.into()))
    }

    /// Returns the types of the values: one element of each line.
    fn values(&self, application: &Application) -> Vec<Type> {
        application.types[..self.by.inputs()].to_vec()
    }

    fn value(&self, _: &Application, _: u8) -> usize {
        self.by.inputs() - 1
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Pass("segmented reduce", Axes::new())
    }

    fn operator(&self, application: &Application, _: bool) -> Result<Option<Operator>> {
        Ok(Some(self.by.operator(&application.types, false)?))
    }

    /// Returns the number of elements and segments together.
    fn counted(&self, inputs: &[&Shape]) -> usize {
        inputs.iter().map(|input| input.count()).sum()
    }

    /// Returns the number of elements, and of segments.
    fn sizes(&self, domain: &[u64], _: &[&Shape], result: &Shape) -> Vec<u64> {
        domain.iter().copied().chain([result.count() as u64]).collect()
    }
}

/// Returns the shape of a line with one element less: there is one more offset than there are segments.
fn one_less(offsets: &Node) -> Shape {
    Shape::from_amounts(&[offsets.bound().size().minus(&1.into())])
}
