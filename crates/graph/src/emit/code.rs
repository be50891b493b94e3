//! Code of a function of a kernel, with the nodes and the scalars that it takes.

use crate::emit::trace::ExtentCondition;
use crate::tape::bindings::Bindings;
use crate::tape::entries::Id;
use crate::tape::number::Number;
use broadloom_scalar::{Element, Function, Literal};
use std::sync::Arc;

/// Value of a scalar of a kernel, known when the plan runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KernelScalar {
    /// A number, as an index.
    Number(Number),
    /// A lane of a slot of the values.
    Lane(u32, u8),
    /// The first position along an axis that is in the interior.
    First(u8, Arc<Vec<ExtentCondition>>),
    /// The position behind the last one in the interior.
    End(u8, Arc<Vec<ExtentCondition>>),
}

/// A function, with the nodes and scalars that it takes.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) function: Function,
    /// The nodes behind its accessors.
    pub(crate) inputs: Vec<Id>,
    pub(crate) scalars: Vec<KernelScalar>,
    /// Number of axes of its position.
    pub(crate) axes: usize,
    /// Cost of an element, in simple operations.
    pub(crate) cost: u64,
    /// Inputs that are read at the position itself only.
    pub(crate) aligned: Vec<bool>,
    /// True if boundary rules are applied near edges only.
    pub(crate) interior: bool,
}

/// Returns the interior along an axis: the positions at which all conditions on the axis hold.
pub(crate) fn interior(axis: u8, conditions: &[ExtentCondition], bindings: &Bindings) -> (i64, i64) {
    let (mut first, mut end) = (0i128, i128::from(i64::MAX));
    for condition in conditions.iter().filter(|condition| condition.axis == axis) {
        let [stride, offset, extent] =
            [&condition.stride, &condition.offset, &condition.extent].map(|number| i128::from(number.of(bindings)));
        let (least, most) = (&condition.others.0, &condition.others.1);
        let (least, most) = (offset + i128::from(least.of(bindings)), offset + i128::from(most.of(bindings)));
        // 0 <= least + stride * position, most + stride * position < extent
        let (low, high) = match stride {
            0 if least >= 0 && most < extent => continue,
            0 => (1, 0),
            1.. => (-(least.div_euclid(stride)), (extent - 1 - most).div_euclid(stride) + 1),
            _ => (-((extent - 1 - most).div_euclid(-stride)), least.div_euclid(-stride) + 1),
        };
        first = first.max(low);
        end = end.min(high);
    }
    if first >= end { (0, 0) } else { (first as i64, end as i64) }
}

/// Returns the bounds of the interior along axes under conditions.
pub(crate) fn bounds(axes: impl Iterator<Item = u8>, conditions: Vec<ExtentCondition>) -> Vec<KernelScalar> {
    let conditions = Arc::new(conditions);
    axes.flat_map(|axis| [KernelScalar::First(axis, conditions.clone()), KernelScalar::End(axis, conditions.clone())]).collect()
}

impl KernelScalar {
    /// Returns its value in a run, for indices of this type.
    pub(crate) fn literal(&self, index: Element, bindings: &Bindings) -> Literal {
        let held = |value: i64| match index {
            Element::I32 => Literal::from(value.clamp(0, i32::MAX.into()) as i32),
            _ => Literal::from(value),
        };
        match self {
            KernelScalar::Number(number) => Literal::from_i128(index, number.of(bindings).into()),
            KernelScalar::Lane(slot, lane) => bindings.values[*slot as usize][usize::from(*lane)],
            KernelScalar::First(axis, conditions) => held(interior(*axis, conditions, bindings).0),
            KernelScalar::End(axis, conditions) => held(interior(*axis, conditions, bindings).1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::shape::Shape;

    /// Compares with a test of every position.
    #[test]
    fn the_interior_is_where_all_indices_are_inside() {
        for (stride, offset, extent) in (-3i64..4).flat_map(|s| (-5..12).flat_map(move |o| [1, 2, 7].map(move |e| (s, o, e)))) {
            let mut bindings = Bindings::default();
            bindings.shapes.push(Shape::from(extent as usize));
            for (least, most) in [(0, 0), (-2, 0), (0, 3)] {
                let condition = ExtentCondition {
                    axis: 0,
                    stride: Number::Known(stride),
                    offset: Number::Known(offset),
                    extent: Number::Extent(0, 0),
                    others: (Number::Known(least), Number::Known(most)),
                };
                let (first, end) = interior(0, &[condition], &bindings);
                for position in 0..40 {
                    let inside = (least..=most).all(|other| (0..extent).contains(&(offset + other + stride * position)));
                    assert_eq!((first..end).contains(&position), inside, "{stride} {offset} {extent} {position}");
                }
            }
        }
    }
}
