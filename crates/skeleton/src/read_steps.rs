//! Steps of the reads of a source: how far the elements that neighbouring positions read lie apart in memory.
//!
//! An index is linear in the position where it consists of sums and of products with numbers. Numbers that
//! only a call knows, such as extents, count as large. So a step is either none, one element, or far.

use crate::Source;
use broadloom_scalar::{BinaryOp, Id, Op, Type};

/// The distance of the elements that a read takes for two positions next to each other along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadStep {
    /// Both read the same element.
    #[default]
    Same,
    /// The elements are neighbours.
    Next,
    /// The elements are apart.
    Far,
}

/// The steps of all reads of a source, for each axis of its positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSteps(Vec<Vec<ReadStep>>);

impl ReadSteps {
    /// Finds the steps of a source.
    pub fn of(source: &Source) -> ReadSteps {
        let (body, axes) = (source.function().body(), source.axes());
        // Operands come before their users.
        let mut known: Vec<Vec<ReadStep>> = vec![];
        let mut reads = vec![];
        for (_, node) in body.nodes() {
            if let Op::Read(_, place) = &node.op {
                reads.extend(place.first().map(|index| known[index.index()].clone()));
            }
            let is_one = |id: Id| body.literal(id).is_some_and(|one| one.as_i128() == Some(1));
            let steps = steps_of(&node.op, node.ty, axes, &known, &is_one);
            known.push(steps);
        }
        ReadSteps(reads)
    }

    /// Returns the steps of each read along an axis.
    pub fn along(&self, axis: usize) -> impl Iterator<Item = ReadStep> {
        self.0.iter().map(move |steps| steps[axis])
    }
}

/// Returns the steps of the value of an operation, from those of its operands.
fn steps_of(op: &Op, ty: Type, axes: usize, known: &[Vec<ReadStep>], is_one: &dyn Fn(Id) -> bool) -> Vec<ReadStep> {
    let both = |a: &[ReadStep], b: &[ReadStep]| a.iter().zip(b).map(|(a, b)| sum(*a, *b)).collect::<Vec<ReadStep>>();
    match op {
        Op::Parameter(number) => {
            let mut steps = vec![ReadStep::Same; axes];
            if let Some(own) = steps.get_mut(*number as usize) {
                *own = ReadStep::Next;
            }
            steps
        }
        Op::Convert(value) if ty.element().is_integer() => known[value.index()].clone(),
        Op::Assume(value, ..) => known[value.index()].clone(),
        // A boundary rule changes few indices.
        Op::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max, a, b) => {
            both(&known[a.index()], &known[b.index()])
        }
        Op::Binary(BinaryOp::Mul, a, b) => {
            let product = both(&known[a.index()], &known[b.index()]);
            if is_one(*a) || is_one(*b) { product } else { product.into_iter().map(far).collect() }
        }
        // The value of a variable can depend on everything.
        Op::Get(_) | Op::Element(..) => vec![ReadStep::Far; axes],
        other => {
            let mut steps = vec![ReadStep::Same; axes];
            other.each_operand(|operand| {
                steps.iter_mut().zip(&known[operand.index()]).for_each(|(step, own)| *step = sum(*step, far(*own)));
            });
            steps
        }
    }
}

fn far(step: ReadStep) -> ReadStep {
    if step == ReadStep::Same { ReadStep::Same } else { ReadStep::Far }
}

fn sum(a: ReadStep, b: ReadStep) -> ReadStep {
    match (a, b) {
        (ReadStep::Same, other) | (other, ReadStep::Same) => other,
        (ReadStep::Next | ReadStep::Far, ReadStep::Next | ReadStep::Far) => ReadStep::Far,
    }
}
