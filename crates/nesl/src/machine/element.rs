//! Instructions that work element by element.

use super::{Machine, wrong_lengths, wrong_types};
use crate::eval::{Fault, Run};
use crate::run::Entry;
use crate::vcode::elementwise::{Elements, Slice};
use crate::vcode::{Op, Type};

impl Machine<'_, '_, '_> {
    pub(super) fn element(&mut self, op: Op, ty: Type) -> Run<Entry> {
        let range = self.range(op.operands().len() as u32, 0)?;
        let operands: Vec<Entry> = self.stack.drain(range).collect();
        let length = operands[0].len();
        if let Some(other) = operands.iter().find(|operand| operand.len() != length) {
            return wrong_lengths(op, length, other.len());
        }
        self.reserve(length)?;
        match (op, &operands[..]) {
            (Op::Select, [Entry::Bool(flags), a, b]) => match (a, b) {
                (Entry::Int(a), Entry::Int(b)) if ty == Type::Int => self.ints(select(flags, a, b)),
                (Entry::Bytes(a), Entry::Bytes(b)) if ty == Type::Int => self.bytes(select(flags, a, b).into()),
                (Entry::Float(a), Entry::Float(b)) if ty == Type::Float => self.floats(select(flags, a, b)),
                (Entry::Bool(a), Entry::Bool(b)) if ty == Type::Bool => self.bools(select(flags, a, b)),
                _ => wrong_types(op, &operands),
            },
            (Op::Random, [Entry::Int(bounds)]) => {
                let numbers = bounds.iter().map(|bound| self.world.random_int(*bound)).collect::<Run<Vec<i64>>>()?;
                self.ints(numbers)
            }
            _ => {
                let slices: Option<Vec<Slice<'_>>> = operands.iter().map(slice).collect();
                let computed = op
                    .elementwise()
                    .zip(slices)
                    .and_then(|(operation, slices)| operation.of_vectors(ty, self.world.widths(), &slices));
                match computed {
                    Some(Ok(elements)) => self.computed(elements),
                    Some(Err(message)) => Fault::at_run_time(message),
                    None => wrong_types(op, &operands),
                }
            }
        }
    }

    /// Makes an entry of elements.
    pub(super) fn computed(&mut self, elements: Elements) -> Run<Entry> {
        match elements {
            Elements::Int(values) => self.ints(values),
            Elements::Float(values) => self.floats(values),
            Elements::Bool(values) => self.bools(values),
        }
    }
}

/// Returns the elements of a vector of the host.
pub(super) fn slice(entry: &Entry) -> Option<Slice<'_>> {
    Some(match entry {
        Entry::Int(values) => Slice::Int(values),
        Entry::Float(values) => Slice::Float(values),
        Entry::Bool(values) => Slice::Bool(values),
        Entry::Bytes(_) | Entry::Segdes(_) | Entry::Pair(_) | Entry::Device(_) | Entry::DeviceSegdes(_) => return None,
    })
}

fn select<T: Copy>(flags: &[bool], a: &[T], b: &[T]) -> Vec<T> {
    flags.iter().zip(a.iter().zip(b)).map(|(&flag, (&a, &b))| if flag { a } else { b }).collect()
}
