//! Reduce: elements along axes combined into one.

use crate::error::{Error, Result};
use crate::naive::{HostArray, combined};
use crate::node::Node;
use crate::op::{Axes, Combine};
use crate::operation::{Extent, Feed, Form, Joining, Operation, Parts, Site, Variants};
use crate::shape::Shape;
use crate::text::{Call, Spelling};
use broadloom_device::Machine;
use broadloom_scalar::{Lanes, Type};
use broadloom_skeleton::cost::Costs;
use broadloom_skeleton::{Operator, Pattern, Reduce as Kernel, Spread};
use smallvec::{SmallVec, smallvec};

/// Elements along some axes combined; the axes are gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reduce {
    combine: Combine,
    axes: Axes,
}

impl Node {
    /// Elements along axes combined; the axes are gone. No elements give the combination's identity.
    pub fn reduce(&self, combine: Combine, axes: &[usize]) -> Result<Node> {
        let axes = self.checked_axes(combine.name(), axes)?;
        if !combine.takes(self.ty()) {
            return Err(Error::Type { operation: combine.name().to_owned(), ty: self.ty() });
        }
        if axes.is_empty() {
            return Ok(self.clone());
        }
        if self.bound().is_empty() {
            let nothing = Node::fill(self.context(), self.bound().without(&axes, false), &combine.identity(self.ty()))?;
            return Ok(if axes.contains(&0) { nothing } else { nothing.with_length(self.length().cloned()) });
        }
        Node::apply_one(Reduce { combine, axes }, &[self])
    }
}

/// `reduce(x, combine: sum, axes: [0])`.
pub(super) fn read(call: &Call<'_>) -> Result<Vec<Node>> {
    let [input] = call.exactly()?;
    Ok(vec![input.reduce(call.combine(input.ty())?, &call.axes()?)?])
}

impl Operation for Reduce {
    fn name(&self) -> String {
        format!("{} over {:?}", self.combine.name(), self.axes.as_slice())
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("reduce").combine(&self.combine).axes(&self.axes))
    }

    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[0].ty(), inputs[0].bound().without(&self.axes, false))])
    }

    fn extents(&self, _: u8, ranks: &[usize], _: usize) -> SmallVec<[Extent; 4]> {
        Extent::without(0, ranks[0], &self.axes)
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(self.combine.identity(types[0]))]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let mut result = HostArray::filled(ty, shape.clone(), &self.combine.identity(ty));
        for from in 0..inputs[0].shape.count() {
            let to = place_without(from, &inputs[0].shape, &self.axes, shape);
            let sum = combined(&self.combine, result.at(to), inputs[0].at(from))?;
            result.set(to, &sum);
        }
        Ok(result)
    }

    fn feeds(&self, site: &Site) -> Vec<Feed> {
        feeds(site, &self.axes)
    }

    fn pattern(&self, parts: Parts) -> Result<Form> {
        pattern(parts, &self.axes)
    }

    fn joining(&self) -> Joining {
        Joining::Pass("reduce", self.axes.clone())
    }

    fn operator(&self, site: &Site, _: bool) -> Result<Option<Operator>> {
        Ok(Some(self.combine.operator(site.types[0])?))
    }

    fn reduced(&self) -> Option<&[u8]> {
        Some(&self.axes)
    }
}

/// The number of the place of a result to which the element with a number belongs.
pub(super) fn place_without(from: usize, shape: &Shape, axes: &Axes, result: &Shape) -> usize {
    let (mut rest, mut place, mut stride) = (from, 0, 1);
    let mut kept = result.rank();
    for axis in (0..shape.rank()).rev() {
        let extent = shape.extents()[axis];
        if !axes.contains(&(axis as u8)) {
            kept -= 1;
            place += rest % extent * stride;
            stride *= result.extents()[kept];
        }
        rest /= extent;
    }
    place
}

/// One function gives all inputs, over a line where all axes are reduced.
pub(super) fn feeds(site: &Site, axes: &Axes) -> Vec<Feed> {
    vec![Feed::new(0..site.types.len(), site.ranks[0] == axes.len())]
}

/// The pattern of a reduction over axes.
pub(super) fn pattern(mut parts: Parts, axes: &Axes) -> Result<Form> {
    let reduced = match parts.line {
        true => vec![true],
        false => (0..parts.axes).map(|axis| axes.contains(&(axis as u8))).collect(),
    };
    let (source, operator) = (parts.source()?, parts.operator()?);
    let spread = Spread { along_kept: false, blocks: false, split: false, rows: [1, 1] };
    let kernel = Kernel { domain: parts.domain, reduced, source, operator, sink: parts.sink, spread };
    Ok(Form::Several(Box::new(Spreads { kernel, repeats: parts.repeats })))
}

/// A reduction whose threads are spread as suits the sizes.
#[derive(Debug)]
struct Spreads {
    kernel: Kernel,
    /// True if a thread can have several rows of results.
    repeats: bool,
}

impl Variants for Spreads {
    fn best(&self, machine: &Machine, sizes: &[u64], shares: bool) -> u64 {
        let spread = Spread::of(machine, sizes, &self.kernel.reduced);
        let is_shared = Costs::of(machine).rows_share() && self.repeats && shares;
        (if is_shared { spread.sharing(sizes, &self.kernel.reduced) } else { spread }).number()
    }

    fn pattern(&self, variant: u64) -> Pattern {
        Kernel { spread: Spread::from_number(variant), ..self.kernel.clone() }.into()
    }
}
