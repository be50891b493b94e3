//! Scan: elements along an axis combined with all before them.

use crate::error::{Error, Result};
use crate::naive::{HostArray, combined};
use crate::node::Node;
use crate::op::Combine;
use crate::operation::{Extent, Feed, Form, Joining, Operation, Parts, Site, Variants};
use crate::shape::Shape;
use crate::text::{Call, Setting, Spelling};
use broadloom_device::Machine;
use broadloom_scalar::{Lanes, Type};
use broadloom_skeleton::{Operator, Pattern, Scan as Kernel, ScanSpread};
use smallvec::{SmallVec, smallvec};

/// Elements along an axis combined with all before them; with themselves too where it is inclusive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scan {
    combine: Combine,
    axis: u8,
    inclusive: bool,
}

impl Node {
    /// Elements along an axis combined with all before them, and with themselves where it is inclusive; the first of an exclusive scan is the
    /// combination's identity.
    pub fn scan(&self, combine: Combine, axis: usize, inclusive: bool) -> Result<Node> {
        let operation = || format!("{} scan", combine.name());
        let axes = self.checked_axes(&operation(), &[axis])?;
        if !combine.takes(self.ty()) {
            return Err(Error::Type { operation: operation(), ty: self.ty() });
        }
        Node::apply_one(Scan { combine, axis: axes[0], inclusive }, &[self])
    }
}

/// `scan(x, combine: sum, axis: 0)`, which is inclusive, or `exclusive: true`.
pub(super) fn read(call: &Call<'_>) -> Result<Vec<Node>> {
    let [input] = call.exactly()?;
    Ok(vec![input.scan(call.combine(input.ty())?, call.number("axis")?, !call.flag("exclusive")?)?])
}

impl Operation for Scan {
    fn name(&self) -> String {
        format!("{} scan along {}", self.combine.name(), self.axis)
    }

    fn spelling(&self) -> Option<Spelling> {
        let spelling = Spelling::new("scan").combine(&self.combine).number("axis", self.axis.into());
        Some(if self.inclusive { spelling } else { spelling.with("exclusive", Setting::Word("true".into())) })
    }

    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[0].ty(), inputs[0].bound().clone())])
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(0, rank)
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(self.combine.identity(types[0]))]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let identity = self.combine.identity(ty);
        let mut result = HostArray::filled(ty, shape.clone(), &identity);
        let stride = shape.strides()[usize::from(self.axis)];
        let extent = shape.extents()[usize::from(self.axis)];
        for here in 0..shape.count() {
            let (mut sum, index) = (identity.clone(), here / stride % extent);
            if index > 0 {
                // The prefix of the element before, combined with that element where it is not part of it.
                let before = here - stride;
                sum = result.at(before).into();
                if !self.inclusive {
                    sum = combined(&self.combine, &sum, inputs[0].at(before))?;
                }
            }
            if self.inclusive {
                sum = combined(&self.combine, &sum, inputs[0].at(here))?;
            }
            result.set(here, &sum);
        }
        Ok(result)
    }

    fn feeds(&self, site: &Site) -> Vec<Feed> {
        feeds(site)
    }

    fn pattern(&self, parts: Parts) -> Result<Form> {
        pattern(parts, self.axis, self.inclusive)
    }

    fn joining(&self) -> Joining {
        Joining::Pass("scan", smallvec![self.axis, self.inclusive.into()])
    }

    fn operator(&self, site: &Site, _: bool) -> Result<Option<Operator>> {
        Ok(Some(self.combine.operator(site.types[0])?))
    }
}

/// One function gives all inputs.
pub(super) fn feeds(site: &Site) -> Vec<Feed> {
    vec![Feed::new(0..site.types.len(), site.ranks[0] == 1)]
}

/// The pattern of a scan along an axis.
pub(super) fn pattern(mut parts: Parts, axis: u8, inclusive: bool) -> Result<Form> {
    let (source, operator) = (parts.source()?, parts.operator()?);
    let spread = ScanSpread { along_axis: false, split: false };
    let (axis, sink) = (usize::from(axis), parts.sink);
    Ok(Form::Several(Box::new(Kernel { domain: parts.domain, axis, source, operator, inclusive, sink, spread })))
}

impl Variants for Kernel {
    fn best(&self, machine: &Machine, sizes: &[u64], _: bool) -> u64 {
        let spread = ScanSpread::of(machine, sizes, self.axis);
        u64::from(spread.along_axis) | u64::from(spread.split) << 1
    }

    fn pattern(&self, variant: u64) -> Pattern {
        let spread = ScanSpread { along_axis: variant & 1 != 0, split: variant & 2 != 0 };
        Kernel { spread, ..self.clone() }.into()
    }
}
