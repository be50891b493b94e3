//! Products whose factors are matrices in memory, for a device that has a library for them.
//!
//! A factor is such a matrix if its function reads one input at an index that is linear in the position. The
//! coefficients are computed from literals and scalars, so the call determines if rows or columns are
//! contiguous. If neither are contiguous, the kernels of the program run.

use crate::call::Call;
use crate::source::Source;
use broadloom_device::{Matrix, MatrixProduct, ProductElement};
use broadloom_scalar::{BinaryOp, Id, Op};

/// A product of scalars and a literal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Term {
    factor: i64,
    /// Numbers of the scalars in the call.
    scalars: Vec<usize>,
}

/// An affine index: the coefficients of the two indices of a position, and the constant term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Linear {
    of: [Vec<Term>; 2],
    rest: Vec<Term>,
}

/// An input that is read at a linear index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Factor {
    input: usize,
    index: Linear,
}

/// A product of two matrices in memory into the first output of a program. Its sizes are the rows, the
/// columns and the common length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainProduct {
    element: Element,
    factors: [Factor; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Element {
    F32,
    F64,
}

impl PlainProduct {
    /// Makes the product from two sources, with the numbers of their first inputs and scalars. Returns `None`
    /// if the sources are not plain matrices.
    pub(crate) fn of(left: (&Source, usize, usize), right: (&Source, usize, usize)) -> Option<PlainProduct> {
        let element = match left.0.results()[..] {
            [ty] if ty == broadloom_scalar::Type::F32 => Element::F32,
            [ty] if ty == broadloom_scalar::Type::F64 => Element::F64,
            _ => return None,
        };
        let factor = |(source, input, scalar): (&Source, usize, usize)| factor(source, input, scalar);
        Some(PlainProduct { element, factors: [factor(left)?, factor(right)?] })
    }

    /// Returns the arguments of the library call, if the library supports the layout of the matrices.
    pub(crate) fn call(&self, call: &Call<'_>) -> Option<MatrixProduct> {
        let [rows, columns, common] = *call.sizes else { return None };
        let element = match self.element {
            Element::F32 => ProductElement::F32,
            Element::F64 => ProductElement::F64,
        };
        let most = i32::MAX as u64;
        if common == 0 || rows > most || columns > most || common > most {
            return None;
        }
        let matrix = |factor: &Factor, rows: u64, columns: u64| -> Option<Matrix> {
            let value = |terms: &[Term]| terms.iter().try_fold(0i64, |sum, term| sum.checked_add(term.value(call)?));
            let [of_row, of_column] = [value(&factor.index.of[0])?, value(&factor.index.of[1])?];
            let start = u64::try_from(value(&factor.index.rest)?).ok()?;
            let long =
                |stride: i64, length: u64| u64::try_from(stride).is_ok_and(|stride| (length.max(1)..=most).contains(&stride));
            let (stride, transposed) = if of_column == 1 && long(of_row, columns) {
                (of_row, false)
            } else if of_row == 1 && long(of_column, rows) {
                (of_column, true)
            } else {
                return None;
            };
            let address = call.inputs[factor.input].address().checked_add(start.checked_mul(element.bytes())?)?;
            Some(Matrix { address, stride: stride as u64, transposed })
        };
        let left = matrix(&self.factors[0], rows, common)?;
        let right = matrix(&self.factors[1], common, columns)?;
        let result = Matrix { address: call.outputs[0].address(), stride: columns.max(1), transposed: false };
        let product = MatrixProduct { element, rows, columns, common, left, right, result };
        // The library must not read beyond the end of an input.
        let reach = product.bytes()?;
        let inside = |side: &Matrix, factor: &Factor, bytes: u64| {
            let input = &call.inputs[factor.input];
            side.address.checked_add(bytes).is_some_and(|end| end <= input.address() + input.len() as u64)
        };
        let all = inside(&product.left, &self.factors[0], reach[0]) && inside(&product.right, &self.factors[1], reach[1]);
        all.then_some(product)
    }
}

impl Term {
    fn value(&self, call: &Call<'_>) -> Option<i64> {
        let number = |scalar: &usize| i64::try_from(call.scalars[*scalar].as_i128()?).ok();
        self.scalars.iter().try_fold(self.factor, |product, scalar| product.checked_mul(number(scalar)?))
    }
}

fn factor(source: &Source, first_input: usize, first_scalar: usize) -> Option<Factor> {
    let function = source.function();
    let [result] = *function.results() else { return None };
    let Op::Read(accessor, position) = &function.body().node(result).op else { return None };
    let [index] = position[..] else { return None };
    let index = linear(source, index, first_scalar)?;
    Some(Factor { input: first_input + accessor.index(), index })
}

/// Decomposes an index into a sum of terms.
fn linear(source: &Source, id: Id, first_scalar: usize) -> Option<Linear> {
    let node = source.function().body().node(id);
    let below = |id: Id| linear(source, id, first_scalar);
    let one = |factor: i64, scalars: Vec<usize>| vec![Term { factor, scalars }];
    let mut found = Linear::default();
    match &node.op {
        Op::Literal(literal) => found.rest = one(i64::try_from(literal.as_i128()?).ok()?, vec![]),
        Op::Parameter(number) => {
            let number = *number as usize;
            match found.of.get_mut(number) {
                Some(terms) if number < source.axes() => *terms = one(1, vec![]),
                _ => found.rest = one(1, vec![first_scalar + number.checked_sub(source.axes())?]),
            }
        }
        // Positions and indices are in the range of both types.
        Op::Convert(value) if node.ty.element().is_integer() => return below(*value),
        Op::Assume(value, ..) => return below(*value),
        Op::Binary(BinaryOp::Add, a, b) => {
            let (a, b) = (below(*a)?, below(*b)?);
            return Some(a.plus(b));
        }
        Op::Binary(BinaryOp::Mul, a, b) => {
            let (a, b) = (below(*a)?, below(*b)?);
            return match (a.is_constant(), b.is_constant()) {
                (_, true) => a.times(&b.rest),
                (true, false) => b.times(&a.rest),
                (false, false) => None,
            };
        }
        _ => return None,
    }
    Some(found)
}

impl Linear {
    fn is_constant(&self) -> bool {
        self.of.iter().all(Vec::is_empty)
    }

    fn plus(mut self, other: Linear) -> Linear {
        let [row, column] = other.of;
        self.of[0].extend(row);
        self.of[1].extend(column);
        self.rest.extend(other.rest);
        self
    }

    fn times(&self, others: &[Term]) -> Option<Linear> {
        let each = |terms: &[Term]| -> Option<Vec<Term>> {
            let pairs = terms.iter().flat_map(|own| others.iter().map(move |other| (own, other)));
            pairs
                .map(|(own, other)| {
                    let scalars = own.scalars.iter().chain(&other.scalars).copied().collect();
                    Some(Term { factor: own.factor.checked_mul(other.factor)?, scalars })
                })
                .collect()
        };
        Some(Linear { of: [each(&self.of[0])?, each(&self.of[1])?], rest: each(&self.rest)? })
    }
}
