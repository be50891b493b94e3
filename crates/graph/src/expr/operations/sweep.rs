//! Sweep: a state carried along an axis, with results at every position.

use crate::expr::apply::Typing;
use crate::expr::check::same_context;
use crate::expr::elementwise::check_size;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::op::zeros;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel, Variants};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::{Setting, Spelling};
use crate::limits::MOST_OPERATIONS;
use broadloom_device::Machine;
use broadloom_scalar::{AccessorKind, Environment, Function, Lanes, Literal, Type};
use broadloom_skeleton::{Boundary, cost};
use broadloom_skeleton::{Operator, Pattern, Split, Sweep as Kernel, SweepSpread};
use smallvec::SmallVec;

/// Step of a sweep.
///
/// The parameters of the function are the state and the constants of a line. It has a window of one index for
/// each array; its offsets count along the axis. Its results are the next state, then those of the position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The code of one position: from states and inputs to new states and results.
    pub function: Function,
    /// The number of values of the state.
    pub states: usize,
    /// Declared window: the distances before and after its position that the function reads. Larger offsets
    /// are clamped to these.
    pub reach: (u32, u32),
    /// True if lines are swept from their ends to their starts.
    pub backwards: bool,
    /// Boundary rule before and after a line; a constant has one value for each array.
    pub boundary: Boundary<Vec<Lanes>>,
    /// Operators to combine steps if states are associative: long lines are then split.
    pub split: Option<Split>,
}

/// A sweep along an axis. The inputs are the arrays, then the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sweep {
    step: Step,
    axis: u8,
    /// True if each part of a line has its own start.
    restarts: bool,
}

/// Maximum number of parts of a line: the blocks of a grid in its second direction.
const MOST_PARTS: usize = cost::GRID_ROWS as usize;

impl Node {
    /// Sweeps along an axis of arrays of one shape. `start` has the state before the first step, then the
    /// constants of a line. Both are broadcast to the shape without the axis. Returns an array for each
    /// result of the step after the state.
    ///
    /// If a start has the rank of the arrays, lines are cut into parts of equal length, one for each of its
    /// elements along the axis. The length is the extent of the axis divided by their number, rounded up.
    /// Each part starts with its own state; parts are counted in the order of the sweep.
    pub fn sweep(step: &Step, axis: usize, arrays: &[&Node], start: &[&Node]) -> Result<Vec<Node>> {
        let name = step.function.name().to_owned();
        same_context(&name, &[arrays, start].concat())?;
        check_size(&step.function, MOST_OPERATIONS)?;
        let (Some(first), false) = (arrays.first(), start.is_empty()) else {
            return Err(Error::Plan { what: name, reason: "a sweep without arrays or without a start".into() });
        };
        let axes = first.checked_axes(&name, &[axis])?;
        let rank = first.shape().rank();
        let parts = start.iter().filter(|node| node.bound().rank() == rank);
        let parts = parts.map(|node| node.shape().extents()[axis]).max();
        let lines = match parts {
            Some(parts) => {
                let mut extents = first.shape().extents().to_vec();
                extents[axis] = parts;
                Shape::from(extents)
            }
            None => first.shape().without(&axes, false),
        };
        if parts.is_some_and(|parts| parts == 0 || parts > MOST_PARTS || step.split.is_some()) {
            let reason = format!(
                "lines in {} parts; 1 to {MOST_PARTS} are possible, and not in a sweep that is split",
                parts.unwrap_or(0)
            );
            return Err(Error::Range { operation: name, shape: first.shape().clone(), reason });
        }
        for array in arrays {
            if array.shape() != first.shape() {
                return Err(Error::Shapes { operation: name, left: first.shape().clone(), right: array.shape().clone() });
            }
        }
        let start = start.iter().map(|node| node.broadcast_to(&lines)).collect::<Result<Vec<Node>>>()?;
        let bad = |reason: String| Err(Error::Range { operation: name.clone(), shape: first.shape().clone(), reason });
        let (types, results) = (start.iter().map(Node::ty).collect::<Vec<Type>>(), step.function.result_types());
        let takes: Vec<Type> = step.function.parameters().iter().map(|parameter| parameter.ty).collect();
        if takes != types
            || results.len() <= step.states
            || types.len() < step.states
            || results[..step.states] != types[..step.states]
        {
            return bad(format!(
                "the step does not take what the start gives, or gives no state of {} values and results",
                step.states
            ));
        }
        let windows = step.function.accessors();
        let fits = windows.len() == arrays.len()
            && windows
                .iter()
                .zip(arrays)
                .all(|(window, array)| window.kind == AccessorKind::Window && window.rank == 1 && window.ty == array.ty());
        if !fits {
            return bad("the step does not have a window of one index for each array".into());
        }
        let inputs: Vec<&Node> = arrays.iter().copied().chain(&start).collect();
        let sweep = Sweep { step: step.clone(), axis: axes[0], restarts: parts.is_some() };
        // The pattern has checks of its own; the call returns their errors, too.
        Node::apply(sweep, &inputs)
    }
}

/// Position of a line on the host.
struct LinePosition<'a> {
    step: &'a Step,
    arrays: &'a [&'a HostArray],
    first: usize,
    stride: usize,
    length: i64,
    at: i64,
}

impl Environment for LinePosition<'_> {
    fn window(&mut self, accessor: usize, offsets: &[i128]) -> Option<Lanes> {
        let (before, behind) = self.step.reach;
        let offset = (*offsets.first()?).clamp(-i128::from(before), behind.into()) as i64;
        match self.step.boundary.rule().index(self.at + offset, self.length) {
            Some(index) => Some(self.arrays.get(accessor)?.at(self.first + index as usize * self.stride).into()),
            None => self.step.boundary.constant()?.get(accessor).cloned(),
        }
    }
}

/// Reads `sweep(arrays, start, function: @f, axis: 0, states: 1, reach: [0, 0], outside: clamp)`; optionally
/// `backwards: true`, and to split lines `lift: @a, operator: @b, identity: [0.0], apply: @c`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let (function, inputs) = (call.function("function")?, call.inputs());
    let windows: Vec<Type> = function.accessors().iter().map(|accessor| accessor.ty).collect();
    if inputs.len() <= windows.len() || windows.is_empty() {
        return Err(call.error(format!("the function has {} windows, and there are {} inputs", windows.len(), inputs.len())));
    }
    let (arrays, start) = inputs.split_at(windows.len());
    let reach = match call.reach()?[..] {
        [reach] => reach,
        _ => return Err(call.error("`reach` has two numbers")),
    };
    let split = match call.has("lift") {
        false => None,
        true => {
            let operator = call.function("operator")?;
            let identity = call.values("identity", &operator.result_types())?.concat();
            let operator = Operator::new(operator, &identity, call.flag("commutative")?)?;
            Some(Split { lift: call.function("lift")?, operator, apply: call.function("apply")? })
        }
    };
    let (states, backwards, boundary) = (call.number("states")?, call.flag("backwards")?, call.boundary(&windows)?);
    let step = Step { function, states, reach, backwards, boundary, split };
    Node::sweep(&step, call.number("axis")?, arrays, start)
}

impl Typing for Sweep {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let types = self.step.function.result_types().split_off(self.step.states);
        Ok(types.into_iter().map(|ty| (ty, inputs[0].shape().clone())).collect())
    }
}

impl Operation for Sweep {
    fn name(&self) -> String {
        let direction = if self.step.backwards { "backwards" } else { "forwards" };
        format!("sweep {} {direction} along {}", self.step.function.name(), self.axis)
    }

    fn spelling(&self) -> Option<Spelling> {
        let Step { function, states, reach, backwards, boundary, split } = &self.step;
        let spelling = Spelling::new("sweep").with("function", Setting::Function(function.clone()));
        let spelling = spelling.number("axis", self.axis.into()).number("states", *states);
        let reach = vec![i64::from(reach.0), i64::from(reach.1)];
        let mut spelling = spelling.with("reach", Setting::Numbers(reach)).boundary(boundary);
        if *backwards {
            spelling = spelling.with("backwards", Setting::Word("true".into()));
        }
        let Some(Split { lift, operator, apply }) = split else { return Some(spelling) };
        let (mut identity, mut values) = (operator.identity(), vec![]);
        for ty in operator.types() {
            let (lanes, rest) = identity.split_at_checked(ty.lanes())?;
            values.push(Lanes::from_slice(lanes));
            identity = rest;
        }
        if operator.is_commutative() {
            spelling = spelling.with("commutative", Setting::Word("true".into()));
        }
        let spelling = spelling.with("lift", Setting::Function(lift.clone())).with("apply", Setting::Function(apply.clone()));
        let combine = Setting::Function(operator.function().clone());
        Some(spelling.with("operator", combine).with("identity", Setting::Values(values)))
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(0, rank)
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        (0..self.step.function.accessors().len()).collect()
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (arrays, start) = inputs.split_at(self.step.function.accessors().len());
        let axis = usize::from(self.axis);
        let (stride, length) = (shape.strides()[axis], shape.extents()[axis]);
        let types = self.step.function.result_types();
        let lanes = |count: usize| types[..count].iter().map(|ty| ty.lanes()).sum::<usize>();
        let (states, own) = (lanes(self.step.states), lanes(self.step.states + usize::from(result)));
        let mut found = HostArray::filled(ty, shape.clone(), &zeros(ty));
        let firsts = (0..shape.count()).filter(|number| number / stride % length == 0);
        let parts = if self.restarts { start[0].shape.extents()[axis] } else { 1 };
        let run = length.div_ceil(parts);
        for (line, first) in firsts.enumerate() {
            let mut given: Vec<Literal> = vec![];
            for number in 0..length {
                if number % run == 0 {
                    let place = line / stride * stride * parts + number / run * stride + line % stride;
                    given = start.iter().flat_map(|start| start.at(place).to_vec()).collect();
                }
                let at = if self.step.backwards { length - 1 - number } else { number };
                let mut host = LinePosition { step: &self.step, arrays, first, stride, length: length as i64, at: at as i64 };
                let results = self.step.function.evaluate_in(&given, &mut host).map_err(Error::from)?;
                given[..states].copy_from_slice(&results[..states]);
                found.set(first + at * stride, &results[own..own + ty.lanes()]);
            }
        }
        Ok(found)
    }

    fn feeds(&self, application: &Application) -> Vec<Feed> {
        let arrays = self.step.function.accessors().len();
        vec![Feed::new(0..arrays, false), Feed::new(arrays..application.types.len(), false)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (source, start) = (parts.source()?, parts.source()?);
        let step = self.step.clone();
        let kernel = Kernel {
            domain: parts.domain,
            axis: usize::from(self.axis),
            backwards: step.backwards,
            source,
            start,
            restarts: self.restarts,
            states: step.states,
            step: step.function,
            reach: step.reach,
            boundary: step.boundary,
            sink: parts.sink,
            split: step.split,
            spread: SweepSpread::default(),
        };
        Ok(OperationPattern::Several(Box::new(kernel)))
    }

    fn values(&self, _: &Application) -> Vec<Type> {
        self.step.function.result_types().split_off(self.step.states)
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    fn rereads(&self) -> bool {
        self.step.reach != (0, 0)
    }

    fn sizes(&self, domain: &[u64], inputs: &[&Shape], _: &Shape) -> Vec<u64> {
        let start = self.restarts.then(|| inputs.get(self.step.function.accessors().len())).flatten();
        let parts = start.map(|start| start.extents()[usize::from(self.axis)] as u64);
        domain.iter().copied().chain(parts).collect()
    }
}

impl Variants for Kernel {
    fn best(&self, machine: &Machine, sizes: &[u64], _: bool) -> u64 {
        let spread = Kernel::best(self, machine, sizes);
        u64::from(spread.staged) | u64::from(spread.split) << 1
    }

    fn pattern(&self, variant: u64) -> Pattern {
        let spread = SweepSpread { staged: variant & 1 != 0, split: variant & 2 != 0 };
        Kernel { spread, ..self.clone() }.into()
    }
}
