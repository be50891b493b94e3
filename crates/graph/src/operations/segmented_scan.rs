//! Segmented scan: elements along an axis combined with those before them in their segment.

use super::scan::{feeds, pattern};
use crate::build::same_context;
use crate::error::{Error, Result};
use crate::naive::{HostArray, combined};
use crate::node::Node;
use crate::op::Combine;
use crate::operation::{Extent, Feed, Form, Joining, Operation, Parts, Site};
use crate::shape::Shape;
use crate::text::{Call, Spelling};
use broadloom_scalar::{Lanes, Literal, Type};
use broadloom_skeleton::Operator;
use smallvec::{SmallVec, smallvec};

/// Elements of the second input along an axis combined with themselves and all before them, from the last place on where the first is true.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SegmentedScan {
    combine: Combine,
    axis: u8,
}

impl Node {
    /// Elements along an axis combined with themselves and all before them, from the last place on at which another array of the same shape is true.
    pub fn segmented_scan(&self, starts: &Node, combine: Combine, axis: usize) -> Result<Node> {
        let operation = || format!("segmented {} scan", combine.name());
        same_context(&operation(), &[starts, self])?;
        let axes = self.checked_axes(&operation(), &[axis])?;
        if starts.ty() != Type::BOOL {
            return Err(Error::Types { operation: operation(), left: Type::BOOL, right: starts.ty() });
        }
        if !combine.takes(self.ty()) {
            return Err(Error::Type { operation: operation(), ty: self.ty() });
        }
        if starts.bound() != self.bound() {
            return Err(Error::Shapes { operation: operation(), left: starts.bound().clone(), right: self.bound().clone() });
        }
        Node::apply_one(SegmentedScan { combine, axis: axes[0] }, &[starts, self])
    }
}

/// `segmented_scan(starts, x, combine: sum, axis: 0)`.
pub(super) fn read(call: &Call<'_>) -> Result<Vec<Node>> {
    let [starts, input] = call.exactly()?;
    Ok(vec![input.segmented_scan(starts, call.combine(input.ty())?, call.number("axis")?)?])
}

impl Operation for SegmentedScan {
    fn name(&self) -> String {
        format!("segmented {} scan along {}", self.combine.name(), self.axis)
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("segmented_scan").combine(&self.combine).number("axis", self.axis.into()))
    }

    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[1].ty(), inputs[1].bound().clone())])
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(1, rank)
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        smallvec![0, 1]
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(smallvec![Literal::from(false)]), Some(self.combine.identity(types[1]))]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], _: Type, shape: &Shape) -> Result<HostArray> {
        let mut result = inputs[1].clone();
        let stride = shape.strides()[usize::from(self.axis)];
        let extent = shape.extents()[usize::from(self.axis)];
        for here in 0..shape.count() {
            let index = here / stride % extent;
            if index > 0 && inputs[0].at(here)[0].bits() == 0 {
                let sum = combined(&self.combine, result.at(here - stride), result.at(here))?;
                result.set(here, &sum);
            }
        }
        Ok(result)
    }

    fn feeds(&self, site: &Site) -> Vec<Feed> {
        feeds(site)
    }

    fn pattern(&self, parts: Parts) -> Result<Form> {
        pattern(parts, self.axis, true)
    }

    /// The start of a segment, and its prefix.
    fn values(&self, site: &Site) -> Vec<Type> {
        site.types.to_vec()
    }

    fn value(&self, _: &Site, _: u8) -> usize {
        1
    }

    fn joining(&self) -> Joining {
        Joining::Pass("scan", smallvec![self.axis, true.into()])
    }

    fn operator(&self, site: &Site, _: bool) -> Result<Option<Operator>> {
        Ok(Some(self.combine.operator(site.types[1])?.segmented()?))
    }
}
