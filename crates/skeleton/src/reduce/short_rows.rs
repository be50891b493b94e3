//! Reductions of short rows by threads of a GPU, one row for each thread.
//!
//! The length of a row is a constant of the code. Inputs whose elements follow each other along the row are read
//! by accesses of 16 bytes, so that a warp needs fewer accesses than a row has elements. Other inputs are read
//! element by element.

use super::{Reduce, ReduceEmitter};
use crate::kit::{Accumulator, Writer};
use crate::{Count, Source};
use broadloom_scalar::{BinaryOp, Body, Function, Id, Op, Statement, Type, Value};

/// Maximum length of a short row.
const LONGEST: u64 = 32;
/// Bytes of an access.
const ACCESS: u32 = 16;

/// Rows that one thread each reads.
pub(super) struct ShortRows {
    /// For each input: true if its elements of a row follow each other.
    inputs: Vec<bool>,
    /// Number of elements of an access.
    width: u32,
    /// Number of elements of a row.
    length: u32,
}

/// Form of an index that reads an input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexForm {
    /// A multiple of the width.
    Multiple,
    /// The last index of the position plus a multiple of the width.
    Last,
    Other,
}

/// Returns the form of the value of each node of a function of a position with `axes` indices.
fn forms(function: &Function, axes: usize, width: u32) -> Vec<IndexForm> {
    let body = function.body();
    let mut known: Vec<IndexForm> = vec![];
    for (_, node) in body.nodes() {
        let of = |id: &Id| known[id.index()];
        let is_multiple = |id: &Id| {
            let value = body.literal(*id).and_then(|value| value.as_i128());
            of(id) == IndexForm::Multiple || value.is_some_and(|value| value % i128::from(width) == 0)
        };
        let form = match &node.op {
            Op::Parameter(number) if *number as usize + 1 == axes => IndexForm::Last,
            Op::Literal(value) if value.as_i128().is_some_and(|value| value % i128::from(width) == 0) => IndexForm::Multiple,
            // Numbers wrap modulo a power of two, of which the width is a divisor.
            Op::Convert(value) if node.ty.element().is_integer() => of(value),
            Op::Assume(value, ..) => of(value),
            Op::Binary(BinaryOp::Mul, a, b) if is_multiple(a) || is_multiple(b) => IndexForm::Multiple,
            Op::Binary(BinaryOp::Add, a, b) => match (of(a), of(b)) {
                (IndexForm::Multiple, form) | (form, IndexForm::Multiple) => form,
                _ => IndexForm::Other,
            },
            _ => IndexForm::Other,
        };
        known.push(form);
    }
    known
}

/// Returns for each input of a source whether it is read once, in any case, at the last index of the position
/// plus a multiple of `width`, and its elements have `bytes` bytes.
fn rows_of(source: &Source, width: u32, bytes: u32) -> Vec<bool> {
    let function = source.function();
    let (body, forms) = (function.body(), forms(function, source.axes(), width));
    let mut reads = vec![0u32; function.accessors().len()];
    for (_, node) in body.nodes() {
        if let Op::Read(accessor, _) = &node.op {
            reads[accessor.index()] += 1;
        }
    }
    let mut found = vec![false; reads.len()];
    for statement in &body.block(Body::ENTRY).statements {
        if let Statement::Define(id) = statement
            && let Op::Read(accessor, position) = &body.node(*id).op
            && let [index] = position[..]
        {
            let ty = function.accessors()[accessor.index()].ty;
            let is_row = forms[index.index()] == IndexForm::Last && ty.is_scalar() && ty.bytes() == bytes;
            found[accessor.index()] = is_row && reads[accessor.index()] == 1;
        }
    }
    found
}

impl Reduce {
    /// Returns whether a thread of a GPU can read short rows of known length by wide accesses.
    pub fn has_short_rows(&self) -> bool {
        self.short_rows().is_some()
    }

    fn short_rows(&self) -> Option<ShortRows> {
        let axes = self.domain.axes();
        let (last, above) = self.reduced.split_last()?;
        if !*last || above.is_empty() || above.contains(&true) {
            return None;
        }
        let Count::Constant(length) = self.domain.size(axes - 1) else { return None };
        let bytes = self.source.inputs().into_iter().map(Type::bytes).max()?;
        let width = ACCESS.checked_div(bytes).filter(|width| [2, 4].contains(width))?;
        if length > LONGEST || length % u64::from(width) != 0 {
            return None;
        }
        let inputs = rows_of(&self.source, width, bytes);
        inputs.contains(&true).then_some(ShortRows { inputs, width, length: length as u32 })
    }
}

impl ReduceEmitter<'_> {
    /// Adds the elements of a short row to a sum, by wide accesses if inputs are aligned.
    pub(super) fn add_short_row(&self, k: &Writer, kept: &[Value], sum: &Accumulator<'_>) {
        let Some(rows) = self.reduce.short_rows() else { return };
        let position = |item: u32| self.position(kept, &[k.constant(self.index, item)]);
        let inputs =
            (0..).zip(&rows.inputs).filter(|(_, is_row)| **is_row).map(|(index, _)| k.address(self.inlet.input(k, index)));
        let wide = || {
            for start in (0..rows.length).step_by(rows.width as usize) {
                let positions: Vec<Vec<Value>> = (start..start + rows.width).map(position).collect();
                self.inlet.at_neighbours(k, &positions, &rows.inputs).iter().for_each(|values| sum.add(k, values));
            }
        };
        let one_by_one = || (0..rows.length).for_each(|item| sum.add(k, &self.inlet.at(k, &position(item))));
        k.if_else(k.aligned(inputs.collect::<Vec<Value>>()), wide, one_by_one);
    }
}
