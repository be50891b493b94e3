//! Segment numbers: the segment number and the head flag of each element of a line.

use crate::expr::amount::Amount;
use crate::expr::apply::Typing;
use crate::expr::check::same_context;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::op::zeros;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::Spelling;
use broadloom_scalar::{Lanes, Literal, Type};
use broadloom_skeleton::SegmentNumbers as Kernel;
use smallvec::{SmallVec, smallvec};

/// Segment numbers of the first input, a line whose values are not used, and head flags. The second input has
/// the offsets, one more than there are segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SegmentNumbers;

/// Input number of the offsets.
pub(super) const OFFSETS: usize = 1;

/// Returns whether an operation is that of segment numbers.
pub(super) fn is_segment_numbers(operation: &dyn Operation) -> bool {
    operation.as_any().is::<SegmentNumbers>()
}

impl Node {
    /// Returns for each element of a line its segment number, an `i32`, and a `bool` that is true if the
    /// segment begins there. The offsets must be [clamped](Node::segment_offsets) to the line.
    pub(crate) fn numbers_of_segments(&self, offsets: &Node) -> Result<[Node; 2]> {
        same_context("segment numbers", &[self, offsets])?;
        let wrong = |_| Error::Plan { what: "segment numbers".into(), reason: "an operation with other results".into() };
        <[Node; 2]>::try_from(Node::apply(SegmentNumbers, &[self, offsets])?).map_err(wrong)
    }
}

/// Reads `segment_numbers(x, offsets)`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [line, offsets] = call.exactly()?;
    line.check_line("segment numbers")?;
    Ok(line.numbers_of_segments(&offsets.held_to(&line.shape().size())?)?.into())
}

impl Typing for SegmentNumbers {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let (line, offsets) = (inputs[0].bound(), inputs[1].bound());
        let (one, most) = (Amount::from(1), Amount::from(i64::from(i32::MAX)));
        let has_segments = || one.is_less(&offsets.size()) && !most.is_less(&offsets.size());
        if line.rank() != 1 || offsets.rank() != 1 || !has_segments() {
            return Err(Error::Shapes { operation: self.name(), left: line.clone(), right: offsets.clone() });
        }
        Ok(vec![(Type::I32, line.clone()), (Type::BOOL, line.clone())])
    }
}

impl Operation for SegmentNumbers {
    fn name(&self) -> String {
        "segment numbers".into()
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("segment_numbers"))
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(0, rank)
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(zeros(types[0])), None]
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let offsets: Vec<i128> = inputs[1].lanes.iter().map(|offset| offset.as_i128().unwrap_or(0)).collect();
        let lanes = (0..shape.count() as i128).map(|place| {
            let ends = &offsets[1..offsets.len() - 1];
            let number = ends.iter().take_while(|end| **end <= place).count();
            if result == 0 { Literal::from(number as i32) } else { Literal::from(offsets[number] == place) }
        });
        Ok(HostArray { ty, shape: shape.clone(), lanes: lanes.collect() })
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([0], true), Feed::new([1], true)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (line, offsets) = (parts.source()?, parts.source()?);
        Ok(OperationPattern::One(Kernel { line, offsets, sink: parts.sink }.into()))
    }

    fn values(&self, _: &Application) -> Vec<Type> {
        vec![Type::I32, Type::BOOL]
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    /// Returns the number of elements and segments together.
    fn counted(&self, inputs: &[&Shape]) -> usize {
        inputs.iter().map(|input| input.count()).sum()
    }

    /// Returns the number of elements, and of segments.
    fn sizes(&self, domain: &[u64], inputs: &[&Shape], _: &Shape) -> Vec<u64> {
        domain.iter().copied().chain([inputs[1].count() as u64 - 1]).collect()
    }
}
