//! Product: the product of two matrices.

use crate::expr::amount::Amount;
use crate::expr::apply::Typing;
use crate::expr::arithmetic::binary;
use crate::expr::check::{possible, same_context};
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::op::zeros;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, Variants};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::Spelling;
use crate::expr::view::AxisMap;
use broadloom_device::Machine;
use broadloom_scalar::{BinaryOp, Element, Lanes, Literal, Type};
use broadloom_skeleton::cost::{Costs, KernelWork};
use broadloom_skeleton::{Boundary, Combine};
use broadloom_skeleton::{Pattern, Product as Kernel, ReadSteps, Reduce, Spread};
use smallvec::{SmallVec, smallvec};

/// The product of two matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Product;

impl Node {
    /// Multiplies two matrices of numbers. Does not wait. If only the device knows the length of this matrix,
    /// the result has that length. If the length of the other matrix is not the number of columns of this
    /// one, the next read returns the error. See [`Node::columns_product`].
    pub fn product(&self, other: &Node) -> Result<Node> {
        if let Some(length) = other.length() {
            let common = self.bound().extents().get(1).copied().filter(|common| *common <= length.bound());
            let common = common.ok_or_else(|| self.mismatch("matrix product", other))?;
            let (left, right) = (self.bound().clone(), other.bound().clone());
            let operation = || "matrix product".to_owned();
            let mismatch = move |found: usize| Error::Shapes {
                operation: operation(),
                left: left.clone(),
                right: right.with(0, found.into()),
            };
            return self.product(&other.expected_rows(length, common, move |found| (found != common).then(|| mismatch(found)))?);
        }
        let context = same_context("matrix product", &[self, other])?;
        let (_, shape) = result(self, other)?;
        if shape.is_empty() || self.bound().is_empty() {
            return Ok(Node::fill(context, shape, &zeros(self.ty()))?.with_length(self.length().cloned()));
        }
        if self.length().is_some() {
            return Node::apply_one(Product, &[self, other]);
        }
        let is_one = |axis: usize| shape.amount(axis).equals(&1.into());
        // Reordering a factor pays only if it is used for many rows and columns.
        if Costs::of(context.device().machine()).orders_factors() && self.ty() != Type::F16 && (is_one(0) || is_one(1)) {
            return self.product_of_a_line(other, shape);
        }
        Node::apply_one(Product, &[self, other])
    }

    /// Multiplies the transpose of this matrix by another one with as many rows. Does not wait if both are
    /// known to have one length.
    pub fn columns_product(&self, other: &Node) -> Result<Node> {
        let context = same_context("matrix product", &[self, other])?;
        let (left, right) = (self.bound().amounts(), other.bound().amounts());
        let ([rows, across], [_, columns]) = (&left[..], &right[..]) else {
            return Err(self.mismatch("matrix product", other));
        };
        if !self.is_as_long(other) {
            let left = self.hosted()?;
            let shape = Shape::from_amounts(&[left.bound().amount(1), left.bound().amount(0)]);
            return left.affine("transpose", &[AxisMap::same(1), AxisMap::same(0)], shape, None)?.product(other);
        }
        // Rows beyond the length are zeros in both.
        let zero = Boundary::Constant(zeros(self.ty()));
        let taken = |node: &Node, extents: [&Amount; 2], axes: [usize; 2]| {
            let shape = Shape::from_amounts(&extents.map(Amount::clone));
            let [row, column] = axes.map(|axis| Node::position(context, shape.clone(), axis, Element::I64));
            node.gather(&[&row?, &column?], &zero)
        };
        taken(self, [across, rows], [1, 0])?.product(&taken(other, [rows, columns], [0, 1])?)
    }

    /// Computes a product with one row or one column: no element of the other factor is used twice.
    fn product_of_a_line(&self, other: &Node, shape: Shape) -> Result<Node> {
        let (common, one) = (other.bound().amount(0), Amount::from(1));
        let column = other.bound().amount(1).equals(&one);
        let (matrix, line, along) = match column {
            true => (self, other.reshape(Shape::from_amounts(&[one, common]))?, 1),
            false => (other, self.reshape(Shape::from_amounts(&[common, one]))?, 0),
        };
        let line = line.broadcast_to(matrix.bound())?;
        let products = Node::elementwise(Elementwise::Binary(BinaryOp::Mul), &[matrix, &line])?;
        products.reduce(Combine::Sum, &[along])?.reshape(shape)
    }
}

/// Returns the type and shape of a product.
fn result(left: &Node, right: &Node) -> Result<(Type, Shape)> {
    right.check_type("matrix product", left.ty())?;
    left.check_numbers("matrix product")?;
    let (a, b) = (left.bound(), right.bound());
    if a.rank() != 2 || b.rank() != 2 || !a.amount(1).equals(&b.amount(0)) {
        return Err(left.mismatch("matrix product", right));
    }
    let shape = Shape::from_amounts(&[a.amount(0), b.amount(1)]);
    possible("matrix product", &shape)?;
    Ok((left.ty(), shape))
}

/// Reads `product(a, b)`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [left, right] = call.exactly()?;
    Ok(vec![left.product(right)?])
}

impl Typing for Product {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![result(inputs[0], inputs[1])?])
    }
}

impl Operation for Product {
    fn name(&self) -> String {
        "matrix product".into()
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("product"))
    }

    fn extents(&self, _: u8, _: &[usize], _: usize) -> SmallVec<[Extent; 4]> {
        SmallVec::from_slice(&[Extent::Of(0, 0), Extent::Of(1, 1)])
    }

    /// Returns zeros for missing rows of the first factor. Those of the result are zeros, too.
    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(zeros(types[0])), None]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (columns, common) = (shape.extents()[1], inputs[0].shape.extents()[1]);
        let element = |place: usize| {
            let (row, column) = (place / columns, place % columns);
            let factors = (0..common).map(|k| (inputs[0].at(row * common + k)[0], inputs[1].at(k * columns + column)[0]));
            let products = factors.map(|(left, right)| binary(BinaryOp::Mul, left, right));
            Ok(smallvec![products.fold(Literal::zero(ty.element()), |sum, product| binary(BinaryOp::Add, sum, product))])
        };
        HostArray::of(ty, shape, (0..shape.count()).map(element))
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([0], false), Feed::new([1], false)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (left, right) = (parts.source()?, parts.source()?);
        let kernel = Kernel { left, right, sink: parts.sink };
        Ok(match kernel.as_sum()? {
            Some(sum) => {
                let reads = ReadSteps::of(&sum.source);
                OperationPattern::Several(Box::new(ProductForms { kernel, sum, reads }))
            }
            None => OperationPattern::One(kernel.into()),
        })
    }

    fn rereads(&self) -> bool {
        true
    }

    /// Counts one multiplication and one addition for each row, column and index along the common axis.
    fn further_work(&self, _: &[Type], sizes: &[u64]) -> KernelWork {
        let operations = sizes.iter().fold(2u64, |product, size| product.saturating_mul(*size));
        KernelWork { operations, ..KernelWork::default() }
    }

    /// Returns the numbers of rows and columns, and the common extent.
    fn sizes(&self, domain: &[u64], _: &[&Shape], result: &Shape) -> Vec<u64> {
        let extents = result.extents().iter().map(|extent| *extent as u64);
        extents.chain(domain.last().copied()).collect()
    }
}

/// The forms of a product: by tiles of both factors, or as a sum along the common axis, where each element of
/// a factor is used for few results.
#[derive(Debug)]
struct ProductForms {
    kernel: Kernel,
    sum: Reduce,
    /// Steps of the reads of the sum.
    reads: ReadSteps,
}

impl Variants for ProductForms {
    fn best(&self, machine: &Machine, sizes: &[u64], _: bool) -> u64 {
        let [rows, columns, common] = *sizes else { return 0 };
        let costs = Costs::of(machine);
        if !costs.sums_products(rows, columns, common) {
            return 0;
        }
        let spread = Spread::for_reads(machine, sizes, &self.sum.reduced, Some(&self.reads));
        let spread = if costs.rows_share() { spread.sharing(sizes, &self.sum.reduced) } else { spread };
        spread.number() << 1 | 1
    }

    fn pattern(&self, variant: u64) -> Pattern {
        match variant {
            0 => self.kernel.clone().into(),
            _ => Reduce { spread: Spread::from_number(variant >> 1), ..self.sum.clone() }.into(),
        }
    }
}
