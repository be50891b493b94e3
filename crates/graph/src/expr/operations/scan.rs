//! Scan: combines elements along an axis with those before them, in the whole line or in their segment.

use crate::expr::apply::Typing;
use crate::expr::arithmetic::combined;
use crate::expr::check::same_context;
use crate::expr::error::Result;
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel, Variants};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::{Setting, Spelling};
use broadloom_device::Machine;
use broadloom_scalar::{Lanes, Literal, Type};
use broadloom_skeleton::{Combine, Operator, Pattern, Scan as Kernel, ScanSpread};
use smallvec::{SmallVec, smallvec};

/// Scan of the last input along an axis: each element combined with all before it; an inclusive scan includes
/// the element itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scan {
    combine: Combine,
    axis: u8,
    inclusive: bool,
    /// True if the first of two inputs has flags for the starts of segments.
    segmented: bool,
}

impl Node {
    /// Combines each element along an axis with all elements before it. An inclusive scan includes the
    /// element itself; an exclusive one begins with the operator's identity.
    pub fn scan(&self, combine: Combine, axis: usize, inclusive: bool) -> Result<Node> {
        self.scanned(None, combine, axis, inclusive)
    }

    /// Combines each element along an axis with all before it, and itself, beginning at the last true flag of
    /// `starts`, an array of the same shape.
    pub fn segmented_scan(&self, starts: &Node, combine: Combine, axis: usize) -> Result<Node> {
        self.scanned(Some(starts), combine, axis, true)
    }

    fn scanned(&self, starts: Option<&Node>, combine: Combine, axis: usize, inclusive: bool) -> Result<Node> {
        let mut scan = Scan { combine, axis: 0, inclusive, segmented: starts.is_some() };
        let operation = scan.title();
        let inputs: SmallVec<[&Node; 2]> = starts.into_iter().chain([self]).collect();
        same_context(&operation, &inputs)?;
        scan.axis = self.checked_axes(&operation, &[axis])?[0];
        if let Some(starts) = starts {
            starts.check_type(&operation, Type::BOOL)?;
        }
        self.check_combined(&operation, &scan.combine)?;
        Node::apply_one(scan, &inputs)
    }
}

impl Scan {
    /// Returns the name in errors.
    fn title(&self) -> String {
        format!("{}{} scan", if self.segmented { "segmented " } else { "" }, self.combine.name())
    }
}

/// Reads `scan(x, combine: sum, axis: 0)`, which is inclusive, or `exclusive: true`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [input] = call.exactly()?;
    Ok(vec![input.scan(call.combine(input.ty())?, call.number("axis")?, !call.flag("exclusive")?)?])
}

/// Reads `segmented_scan(starts, x, combine: sum, axis: 0)`.
pub(super) fn read_segmented(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [starts, input] = call.exactly()?;
    Ok(vec![input.segmented_scan(starts, call.combine(input.ty())?, call.number("axis")?)?])
}

impl Typing for Scan {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let values = inputs[usize::from(self.segmented)];
        if inputs[0].bound() != values.bound() {
            return Err(inputs[0].mismatch(&self.title(), values));
        }
        Ok(vec![(values.ty(), values.bound().clone())])
    }
}

impl Operation for Scan {
    fn name(&self) -> String {
        format!("{} along {}", self.title(), self.axis)
    }

    fn spelling(&self) -> Option<Spelling> {
        let spelling = Spelling::new(if self.segmented { "segmented_scan" } else { "scan" });
        let spelling = spelling.combine(&self.combine).number("axis", self.axis.into());
        Some(if self.inclusive { spelling } else { spelling.with("exclusive", Setting::Word("true".into())) })
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(0, rank)
    }

    fn alike(&self, inputs: usize) -> SmallVec<[usize; 4]> {
        (0..inputs).collect()
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        let start = self.segmented.then(|| Some(smallvec![Literal::from(false)]));
        start.into_iter().chain([Some(self.combine.identity(types[types.len() - 1]))]).collect()
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let axis = usize::from(self.axis);
        let (stride, extent) = (shape.strides()[axis], shape.extents()[axis]);
        let (starts, values) = (inputs[0], inputs[usize::from(self.segmented)]);
        let mut result = HostArray::filled(ty, shape.clone(), &self.combine.identity(ty));
        for here in 0..shape.count() {
            let is_start = here / stride % extent == 0 || self.segmented && starts.at(here)[0].bits() != 0;
            // The prefix that ends with the previous element.
            let before = here.wrapping_sub(stride);
            let sum = match (is_start, self.inclusive) {
                (true, true) => values.at(here).into(),
                (true, false) => continue,
                (false, true) => combined(&self.combine, result.at(before), values.at(here))?,
                (false, false) => combined(&self.combine, result.at(before), values.at(before))?,
            };
            result.set(here, &sum);
        }
        Ok(result)
    }

    /// Returns one feed for all inputs.
    fn feeds(&self, application: &Application) -> Vec<Feed> {
        vec![Feed::new(0..application.types.len(), application.ranks[0] == 1)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (source, operator) = (parts.source()?, parts.operator()?);
        let spread = ScanSpread { along_axis: false, split: false };
        let (axis, inclusive, sink) = (usize::from(self.axis), self.inclusive, parts.sink);
        Ok(OperationPattern::Several(Box::new(Kernel { domain: parts.domain, axis, source, operator, inclusive, sink, spread })))
    }

    /// Returns the types of the values: the start flag of a segment, and its prefix.
    fn values(&self, application: &Application) -> Vec<Type> {
        application.types.to_vec()
    }

    fn value(&self, application: &Application, _: u8) -> usize {
        application.types.len() - 1
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Pass("scan", smallvec![self.axis, self.inclusive.into()])
    }

    fn operator(&self, application: &Application, _: bool) -> Result<Option<Operator>> {
        let operator = self.combine.operator(application.types[application.types.len() - 1])?;
        Ok(Some(if self.segmented { operator.segmented()? } else { operator }))
    }
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
