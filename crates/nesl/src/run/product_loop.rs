//! Loops of elements that are the product of two matrices.
//!
//! `{{sum({x * y : x in r; y in c}) : c in columns} : r in rows}` is a loop for each element of the result. If
//! all rows have one length and lie one behind the other in memory, and the columns, too, it is the product of
//! the rows and the transposed columns. The form shows the sum of products of two sequences. Starts and lengths
//! show the rest: the device compares them with those of a product before it computes one.

use super::{Accelerator, on_device};
use crate::eval::Run;
use crate::vcode::{Check, LoopEnd, LoopFold, Op, Reg, Step, TailLoop, Type};
use broadloom_graph::{AxisMap, Combine, Node, Shape};
use broadloom_scalar::Element;

/// Minimum number of elements of a product, and of its terms. Smaller ones are faster as loops.
const MIN_ELEMENTS: usize = 1 << 12;
const MIN_TERMS: usize = 16;

/// A sum of products: the parameters and the tables of its two sequences.
#[derive(Clone, Copy)]
struct Factors {
    starts: [Reg; 2],
    lengths: [Reg; 2],
    tables: [usize; 2],
}

/// Returns the factors of a form that sums the products of the elements of two sequences.
fn factors(form: &TailLoop) -> Option<Factors> {
    let LoopEnd::Return(results) = &form.round.end else { return None };
    let mut fold: Option<&LoopFold> = None;
    let (mut compared, mut zero) = (None, None);
    for step in &form.round.steps {
        match step {
            Step::Const(to, 0) => zero = Some(*to),
            Step::Check(Check::Each, [a, b, _], _) => compared = Some([*a, *b]),
            Step::Fold(own) if fold.is_none() => fold = Some(own),
            _ => return None,
        }
    }
    let fold = fold?;
    let ([carried], [one, other, product, sum]) = (&fold.carried[..], &fold.steps[..]) else { return None };
    let (Step::Load { to: x, table: first, args: [i, start] }, Step::Load { to: y, table: second, args: [j, behind] }) =
        (one, other)
    else {
        return None;
    };
    let is_op = |step: &Step, wanted: Op, operands: [Reg; 2], result: Option<Reg>| match step {
        Step::Op { to, op, ty: Type::Float, args, .. } => {
            *op == wanted && args[..2] == operands && result.is_none_or(|result| result == *to)
        }
        _ => false,
    };
    let Step::Op { to: term, .. } = product else { return None };
    let lengths = compared?;
    let is_sum = is_op(product, Op::Multiply, [*x, *y], None)
        && is_op(sum, Op::Add, [carried.reg, *term], Some(carried.next))
        && [*i, *j] == [fold.index; 2]
        && zero == Some(carried.start)
        && results[..] == [carried.reg]
        && lengths.contains(&fold.length);
    let is_param = |reg: &Reg| (*reg as usize) < form.params.len();
    let starts = [*start, *behind];
    let found = Factors { starts, lengths, tables: [*first, *second] };
    (is_sum && starts.iter().chain(&lengths).all(is_param)).then_some(found)
}

impl Accelerator {
    /// Computes loops as the product of two matrices. Returns `None` if they are none.
    pub(super) fn product_of_loops(
        &mut self,
        form: &TailLoop,
        calls: usize,
        params: &[Node],
        tables: &[Node],
    ) -> Run<Option<Node>> {
        let Some(factors) = (calls >= MIN_ELEMENTS).then(|| factors(form)).flatten() else { return Ok(None) };
        let param = |reg: Reg| params.get(reg as usize);
        let (Some(left), Some(right)) = (tables.get(factors.tables[0]), tables.get(factors.tables[1])) else { return Ok(None) };
        let (Some(row), Some(column), Some(length), Some(other)) =
            (param(factors.starts[0]), param(factors.starts[1]), param(factors.lengths[0]), param(factors.lengths[1]))
        else {
            return Ok(None);
        };
        if left.ty() != right.ty() || !left.ty().element().is_float() {
            return Ok(None);
        }
        let wide = |accelerator: &mut Accelerator, node: &Node| accelerator.convert(node, Element::I64);
        let [row, column, length, other] = [wide(self, row)?, wide(self, column)?, wide(self, length)?, wide(self, other)?];
        let (terms, last) = (on_device(length.reduce(Combine::Max, &[0]))?, on_device(column.reduce(Combine::Max, &[0]))?);
        let [terms, last] = self.two_numbers(&terms, &last)?;
        if terms < MIN_TERMS || !last.is_multiple_of(terms) {
            return Ok(None);
        }
        let columns = last / terms + 1;
        let size = |node: &Node| node.bound().size().get() as usize;
        let rows = calls / columns;
        if rows * columns != calls || size(left) < rows * terms || size(right) < columns * terms {
            return Ok(None);
        }
        let context = self.context()?;
        let position = on_device(Node::position(&context, Shape::from(calls), 0, Element::I64))?;
        let (across, deep) = (self.one((columns as i64).into())?, self.one((terms as i64).into())?);
        let inputs = [&position, &across, &deep, &row, &column, &length, &other];
        let differs = self.call("no product", &inputs, |f, x| {
            let (at, across, terms) = (x[0], x[1], x[2]);
            let rows = f.ne(f.mul(f.div(at, across), terms), x[3]);
            let columns = f.ne(f.mul(f.rem(at, across), terms), x[4]);
            f.or(f.or(rows, columns), f.or(f.ne(x[5], terms), f.ne(x[6], terms)))
        })?;
        let differs = on_device(differs.reduce(Combine::Any, &[0]))?;
        let differs = self.convert(&differs, Element::I64)?;
        let [differs, _] = self.two_numbers(&differs, &differs)?;
        if differs != 0 {
            return Ok(None);
        }
        let matrix = |node: &Node, rows: usize| {
            let own = if size(node) == rows * terms {
                node.clone()
            } else {
                on_device(node.affine("part", &[AxisMap::same(0)], Shape::from(rows * terms), None))?
            };
            on_device(own.reshape(Shape::from(vec![rows, terms])))
        };
        let (left, right) = (matrix(left, rows)?, matrix(right, columns)?);
        let turned = [AxisMap::same(1), AxisMap::same(0)];
        let right = on_device(right.affine("transpose", &turned, Shape::from(vec![terms, columns]), None))?;
        let product = on_device(left.product(&right))?;
        self.made += 4;
        on_device(product.reshape(Shape::from(calls))).map(Some)
    }
}
