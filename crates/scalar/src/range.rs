//! Ranges of integers.
//!
//! The range of a node is computed from those of its operands: intervals of exact integers, or all values of
//! the type if the result may overflow. Facts about launches bound the indices of threads. Promises and loop
//! bounds give further ranges.

use crate::body::{Body, Statement};
use crate::id::Id;
use crate::kernel::LaunchBounds;
use crate::op::{Axis, BinaryOp, Node, Op, Special, UnaryOp};
use crate::structure::Structure;
use crate::types::{Element, Literal};

/// The least and the greatest value. Meaningless for floats.
pub(crate) type Range = (i128, i128);

/// Returns the range of all values of a type.
pub(crate) fn whole(element: Element) -> Range {
    element.range().unwrap_or((i128::MIN, i128::MAX))
}

/// Returns the range if it fits the type, otherwise all values of the type.
fn held(element: Element, range: Option<Range>) -> Range {
    let (low, high) = whole(element);
    range.filter(|(a, b)| low <= *a && *b <= high).unwrap_or((low, high))
}

/// Returns the maximum number of threads or blocks along an axis.
fn most(limits: Option<[u32; 3]>, axis: Axis, default: u32) -> i128 {
    i128::from(limits.map_or(default, |limits| limits[axis as usize].max(1)))
}

fn special(special: Special, bounds: &LaunchBounds) -> Range {
    let threads = bounds.max_threads.unwrap_or(1024).min(1024);
    let size = |axis| most(bounds.block, axis, if axis == Axis::Z { threads.min(64) } else { threads });
    let grid = |axis| most(bounds.max_grid, axis, if axis == Axis::X { i32::MAX as u32 } else { 65_535 });
    match special {
        Special::Thread(axis) => (0, size(axis) - 1),
        Special::BlockSize(axis) => (if bounds.block.is_some() { size(axis) } else { 1 }, size(axis)),
        Special::Block(axis) => (0, grid(axis) - 1),
        Special::GridSize(axis) => (1, grid(axis)),
        Special::Lane => (0, 31),
        Special::DynamicSharedBytes => (0, 1 << 20),
        Special::LaneMaskEq | Special::LaneMaskLt | Special::LaneMaskLe | Special::LaneMaskGt | Special::LaneMaskGe => {
            (0, i128::from(u32::MAX))
        }
    }
}

/// Returns the range of a sum, product and so on, or `None` if it is too large.
fn corners(a: Range, b: Range, op: impl Fn(i128, i128) -> Option<i128>) -> Option<Range> {
    let all = [op(a.0, b.0)?, op(a.0, b.1)?, op(a.1, b.0)?, op(a.1, b.1)?];
    Some((all.into_iter().min()?, all.into_iter().max()?))
}

/// Returns the number with all bits set up to the highest bit of a non-negative number.
fn ones(value: i128) -> i128 {
    if value <= 0 { 0 } else { i128::MAX >> (value.leading_zeros() - 1) }
}

fn binary(op: BinaryOp, element: Element, a: Range, b: Range) -> Range {
    let natural = a.0 >= 0 && b.0 >= 0;
    let found = match op {
        BinaryOp::Add => corners(a, b, i128::checked_add),
        BinaryOp::Sub => corners(a, b, i128::checked_sub),
        BinaryOp::Mul => corners(a, b, i128::checked_mul),
        BinaryOp::MulHigh => corners(a, b, i128::checked_mul).map(|(low, high)| (low >> element.bits(), high >> element.bits())),
        BinaryOp::Div if natural && b.0 > 0 => Some((a.0 / b.1, a.1 / b.0)),
        // Division by 0 gives 0, otherwise the result is not further from 0 than the dividend. The least
        // value may remain unchanged.
        BinaryOp::Div if a.0 > whole(element).0 || !element.is_signed() => {
            let far = a.0.abs().max(a.1.abs());
            Some(if natural { (0, far) } else { (-far, far) })
        }
        BinaryOp::Div => None,
        // Remainder by 0 gives the dividend. Otherwise the result is less than the divisor and not further
        // from 0 than the dividend.
        BinaryOp::Rem => {
            let limit = if b.0 > 0 || b.1 < 0 { b.0.abs().max(b.1.abs()) - 1 } else { i128::MAX };
            let low = if a.0 >= 0 { 0 } else { a.0.max(-limit) };
            let high = if a.1 <= 0 { 0 } else { a.1.min(limit) };
            Some((low, high))
        }
        BinaryOp::Min => Some((a.0.min(b.0), a.1.min(b.1))),
        BinaryOp::Max => Some((a.0.max(b.0), a.1.max(b.1))),
        BinaryOp::And if natural => Some((0, a.1.min(b.1))),
        BinaryOp::And if a.0 >= 0 => Some((0, a.1)),
        BinaryOp::And if b.0 >= 0 => Some((0, b.1)),
        BinaryOp::Or if natural => Some((a.0.max(b.0), ones(a.1 | b.1))),
        BinaryOp::Xor if natural => Some((0, ones(a.1 | b.1))),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => None,
        BinaryOp::Shl if b.1 < 64 => corners(a, b, |a, b| a.checked_mul(1i128.checked_shl(b as u32)?)),
        BinaryOp::Shl => None,
        BinaryOp::Shr => {
            let (least, most) = (b.0.min(127), b.1.min(127));
            Some((a.0 >> if a.0 < 0 { least } else { most }, a.1 >> if a.1 < 0 { most } else { least }))
        }
        BinaryOp::AddSaturating | BinaryOp::SubSaturating => {
            let exact =
                if op == BinaryOp::AddSaturating { corners(a, b, i128::checked_add) } else { corners(a, b, i128::checked_sub) };
            let (low, high) = whole(element);
            exact.map(|(a, b)| (a.clamp(low, high), b.clamp(low, high)))
        }
        BinaryOp::CopySign | BinaryOp::DivApprox => None,
    };
    held(element, found)
}

/// Computes the range of a node from those of its operands. [`counter`] handles counters.
pub(crate) fn of(node: &Node, bounds: &LaunchBounds, range: impl Fn(Id) -> Range, from: impl Fn(Id) -> Element) -> Range {
    let element = node.ty.element();
    if element.is_float() || !node.ty.is_scalar() {
        return whole(element);
    }
    match &node.op {
        Op::Literal(literal) => literal.as_i128().map_or(whole(element), |value| (value, value)),
        Op::Special(value) => special(*value, bounds),
        Op::Unary(op, x) => {
            let (low, high) = range(*x);
            let bits = i128::from(element.bits());
            match op {
                UnaryOp::Neg => held(element, Some((-high, -low))),
                UnaryOp::Abs => {
                    let least = if low <= 0 && high >= 0 { 0 } else { low.abs().min(high.abs()) };
                    held(element, Some((least, low.abs().max(high.abs()))))
                }
                UnaryOp::Popcount | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros => (0, bits),
                _ => whole(element),
            }
        }
        Op::Binary(op, x, y) => binary(*op, element, range(*x), range(*y)),
        Op::Select(_, x, y) => {
            let (a, b) = (range(*x), range(*y));
            (a.0.min(b.0), a.1.max(b.1))
        }
        Op::Convert(x) => match from(*x) {
            Element::F16 | Element::F32 | Element::F64 => whole(element),
            _ => held(element, Some(range(*x))),
        },
        Op::Bitcast(x) if from(*x).is_integer() => held(element, Some(range(*x))),
        Op::Assume(x, low, high) => {
            let (a, b) = range(*x);
            let (low, high) = (a.max(*low), b.min(*high));
            if low <= high { (low, high) } else { (a, b) }
        }
        Op::Shuffle(_, _, x, ..) => range(*x),
        Op::BarrierCount(_) => (0, 1024),
        _ => whole(element),
    }
}

/// Returns the range of the counter of a loop inside of it.
pub(crate) fn counter(element: Element, start: Range, end: Range, step: Range) -> Range {
    let (low, high) = whole(element);
    // The bound by the end is tested before each iteration. The bound by the start holds unless the counter
    // wraps.
    if step.0 > 0 {
        let last = (end.1 - 1).min(high);
        let first = if last + step.1 <= high { start.0 } else { low };
        if first <= last { (first, last) } else { (last, last) }
    } else if step.1 < 0 {
        let last = (end.0 + 1).max(low);
        let first = if last + step.0 >= low { start.1 } else { high };
        if last <= first { (last, first) } else { (last, last) }
    } else {
        (low, high)
    }
}

/// The ranges of all nodes of a body.
pub(crate) struct Ranges(Vec<Range>);

impl Ranges {
    pub(crate) fn of(body: &Body, structure: &Structure, bounds: &LaunchBounds) -> Ranges {
        let mut counters = vec![None; body.nodes.len()];
        for block in &structure.order {
            for statement in &body.block(*block).statements {
                if let Statement::For { counter, start, end, step, .. } = statement {
                    counters[counter.index()] = Some((*start, *end, *step));
                }
            }
        }
        let mut ranges: Vec<Range> = Vec::with_capacity(body.nodes.len());
        for (id, node) in body.nodes() {
            let look = |id: Id| ranges.get(id.index()).copied().unwrap_or(whole(node.ty.element()));
            let found = match counters[id.index()] {
                Some((start, end, step)) => {
                    let step_range = match body.literal(step).and_then(Literal::as_i128) {
                        Some(step) => (step, step),
                        // Only a literal step counts downwards.
                        None => {
                            let (low, high) = look(step);
                            if low > 0 { (low, high) } else { whole(node.ty.element()) }
                        }
                    };
                    counter(node.ty.element(), look(start), look(end), step_range)
                }
                None => of(node, bounds, look, |id| body.type_of(id).element()),
            };
            ranges.push(found);
        }
        Ranges(ranges)
    }

    pub(crate) fn get(&self, id: Id) -> Range {
        self.0[id.index()]
    }
}
