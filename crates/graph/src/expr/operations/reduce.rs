//! Reduce: combines elements along axes, or finds the index of the minimum or maximum.

use super::reduction::{Reduction, extreme_named};
use crate::expr::apply::Typing;
use crate::expr::error::Result;
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::op::Extreme;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel, Variants};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::{Axes, Shape};
use crate::expr::spelling::Spelling;
use broadloom_device::Machine;
use broadloom_scalar::{Element, Lanes, Literal, Type};
use broadloom_skeleton::Combine;
use broadloom_skeleton::cost::Costs;
use broadloom_skeleton::{Operator, Pattern, ReadSteps, Reduce as Kernel, Spread};
use smallvec::SmallVec;

/// Reduction along some axes, which are removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reduce {
    by: Reduction,
    axes: Axes,
}

impl Node {
    /// Combines the elements along axes and removes the axes. Without elements the result is the operator's
    /// identity.
    pub fn reduce(&self, combine: Combine, axes: &[usize]) -> Result<Node> {
        let axes = self.checked_axes(combine.name(), axes)?;
        self.check_combined(combine.name(), &combine)?;
        if axes.is_empty() {
            return Ok(self.clone());
        }
        if self.bound().is_empty() {
            return self.filled_without(&axes, &combine.identity(self.ty()));
        }
        Node::apply_one(Reduce { by: Reduction::Combine(combine), axes }, &[self])
    }

    /// Returns the index of the extreme along an axis, the first of equal ones, and removes the axis. An
    /// empty axis is an error.
    pub fn extreme(&self, which: Extreme, axis: usize, element: Element) -> Result<Node> {
        let axes = self.checked_axes(which.name(), &[axis])?;
        self.check_numbers(which.name())?;
        let is_empty = self.bound().without(&axes, false).is_empty();
        if self.bound().amount(axis).equals(&0.into()) && !is_empty {
            return Err(self.refused(which.name(), format!("axis {axis} has no elements")));
        }
        if is_empty {
            return self.filled_without(&axes, &[Literal::zero(element)]);
        }
        let labels = self.position_like(axis, element)?;
        Node::apply_one(Reduce { by: Reduction::Extreme(which), axes }, &[self, &labels])
    }

    /// Returns an array with one value everywhere, in the shape of this array without some axes.
    fn filled_without(&self, axes: &Axes, value: &[Literal]) -> Result<Node> {
        let filled = Node::fill(self.context(), self.bound().without(axes, false), value)?;
        Ok(if axes.contains(&0) { filled } else { filled.with_length(self.length().cloned()) })
    }
}

/// Reads `reduce(x, combine: sum, axes: [0])`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [input] = call.exactly()?;
    Ok(vec![input.reduce(call.combine(input.ty())?, &call.axes()?)?])
}

/// Reads `argmin(x, axes: [0])`, or `argmin(x, labels, axes: [0, 1])`.
pub(super) fn read_extreme(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let (inputs, axes) = (call.inputs(), call.axes()?);
    Ok(vec![match (&inputs[..], &axes[..]) {
        ([values], [axis]) => values.extreme(extreme_named(call), *axis, Element::I64)?,
        ([values, labels], [_, ..]) => {
            let axes = values.checked_axes(call.name(), &axes)?;
            Node::apply_one(Reduce { by: Reduction::read_extreme(call, values, labels)?, axes }, &inputs)?
        }
        _ => return Err(call.error("expected an array and one axis, or an array, labels of the same shape and axes")),
    }])
}

impl Typing for Reduce {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[self.by.inputs() - 1].ty(), inputs[0].bound().without(&self.axes, false))])
    }
}

impl Operation for Reduce {
    fn name(&self) -> String {
        format!("{} over {:?}", self.by.name(), self.axes.as_slice())
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(self.by.spelling("").axes(&self.axes))
    }

    fn extents(&self, _: u8, ranks: &[usize], _: usize) -> SmallVec<[Extent; 4]> {
        Extent::without(0, ranks[0], &self.axes)
    }

    fn alike(&self, inputs: usize) -> SmallVec<[usize; 4]> {
        (0..inputs).collect()
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        self.by.absent(types)
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (extents, strides) = (inputs[0].shape.extents(), inputs[0].shape.strides());
        let mut places = vec![vec![]; shape.count()];
        for from in 0..inputs[0].shape.count() {
            let kept = (0..extents.len()).filter(|axis| !self.axes.contains(&(*axis as u8)));
            let to = kept.fold(0, |to, axis| to * extents[axis] + from / strides[axis] % extents[axis]);
            places[to].push(from);
        }
        HostArray::of(ty, shape, places.into_iter().map(|places| self.by.naive(inputs, places.into_iter(), ty)))
    }

    /// Returns one feed for all inputs, on a one-dimensional domain if all axes are reduced.
    fn feeds(&self, application: &Application) -> Vec<Feed> {
        vec![Feed::new(0..application.types.len(), application.ranks[0] == self.axes.len())]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let reduced = match parts.line {
            true => vec![true],
            false => (0..parts.axes).map(|axis| self.axes.contains(&(axis as u8))).collect(),
        };
        let (source, operator) = (parts.source()?, parts.operator()?);
        let (spread, reads) = (Spread::default(), ReadSteps::of(&source));
        let kernel = Kernel { domain: parts.domain, reduced, source, operator, sink: parts.sink, spread };
        let short_rows = kernel.has_short_rows();
        Ok(OperationPattern::Several(Box::new(Spreads { kernel, repeats: parts.repeats, reads, short_rows })))
    }

    /// Returns the types of the values: one element of each input.
    fn values(&self, application: &Application) -> Vec<Type> {
        application.types.to_vec()
    }

    fn value(&self, application: &Application, _: u8) -> usize {
        application.types.len() - 1
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Pass("reduce", self.axes.clone())
    }

    /// Returns the operator. Labels that are positions increase in the order of the values.
    fn operator(&self, application: &Application, in_order: bool) -> Result<Option<Operator>> {
        let is_position = application.positions.last() == Some(&true);
        Ok(Some(self.by.operator(&application.types, in_order && is_position)?))
    }

    fn reduced(&self) -> Option<&[u8]> {
        Some(&self.axes)
    }
}

/// Reduction with a spread of threads that depends on the sizes.
#[derive(Debug)]
struct Spreads {
    kernel: Kernel,
    /// True if a thread can compute several rows of results.
    repeats: bool,
    /// Steps of the reads of its source.
    reads: ReadSteps,
    /// True if a thread can read short rows by wide accesses.
    short_rows: bool,
}

impl Variants for Spreads {
    fn best(&self, machine: &Machine, sizes: &[u64], shares: bool) -> u64 {
        let rows = sizes.split_last().map_or(1, |(_, rows)| rows.iter().fold(1u64, |rows, length| rows.saturating_mul(*length)));
        if self.short_rows && Costs::of(machine).reads_short_rows(rows) {
            return Spread { along_kept: true, ..Spread::default() }.number();
        }
        let spread = Spread::for_reads(machine, sizes, &self.kernel.reduced, Some(&self.reads));
        let is_shared = Costs::of(machine).rows_share() && self.repeats && shares;
        (if is_shared { spread.sharing(sizes, &self.kernel.reduced) } else { spread }).number()
    }

    fn pattern(&self, variant: u64) -> Pattern {
        Kernel { spread: Spread::from_number(variant), ..self.kernel.clone() }.into()
    }
}
