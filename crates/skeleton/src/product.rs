//! Matrix product.
//!
//! If both factors are matrices in memory and the device has a library for them, the library computes the
//! product ([`crate::plain`]). On other GPUs a block has a square tile of the result ([`tiles`]). On a CPU
//! the product is blocked for registers and caches (`product_panels`).

mod tiles;

use crate::cost::Costs;
use crate::kit::{Draft, Inlet, NestedSource, Outlet, Writer, ravel};
use crate::operator::Operator;
use crate::program::Program;
use crate::reduce::{Reduce, Spread};
use crate::{Count, Domain, Error, Result, Sink, Source};
use broadloom_device::Machine;
use broadloom_scalar::{Builder, Type, Value};

/// The product of two matrices. The result at (i, j) is the sum over k of the left [`Source`] at (i, k) times
/// the right one at (k, j). It goes to a [`Sink`].
///
/// Both sources return one number of the same type. Sums of `f16` are kept as `f32`. Floats are multiplied
/// and added with one rounding, in the order of k. On a CPU, sums over pieces of k are added up in their
/// order. The sizes of a call are the rows of the left factor, the columns of the right one, and their common
/// length.
///
/// A source is computed again for every tile of the result, so it should not cost much more than a read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// The left factor.
    pub left: Source,
    /// The right factor.
    pub right: Source,
    /// Use of the result.
    pub sink: Sink,
}

impl Product {
    /// Returns the product as a sum over the last of three axes, the others of which are the rows and the
    /// columns; `None` if sums have another type than the factors.
    pub fn as_sum(&self) -> Result<Option<Reduce>> {
        let types = self.left.results();
        let [ty] = types[..] else { return Ok(None) };
        if !ty.is_scalar() || matches!(ty, Type::BOOL | Type::F16) || self.right.results() != types {
            return Ok(None);
        }
        let wide = [&self.left, &self.right].iter().any(|source| source.index().element().bits() == 64);
        let index = if wide { Type::U64 } else { Type::U32 };
        let f = Builder::function("product");
        let [i, j, step] = ["i", "j", "k"].map(|name| f.parameter(name, index));
        let (left, right) = (NestedSource::new(&f, &self.left), NestedSource::new(&f, &self.right));
        let product = f.mul(left.at(&f, &[i, step])[0], right.at(&f, &[step, j])[0]);
        let source = Source::new(f.finish_function(&[product])?, 3)?;
        Ok(Some(Reduce {
            domain: Domain::with_axes(3),
            reduced: vec![false, false, true],
            source,
            operator: Operator::sum(ty)?,
            sink: self.sink.clone(),
            spread: Spread::default(),
        }))
    }

    /// Returns the program for a machine.
    pub fn program(&self, machine: &Machine) -> Result<Program> {
        let types = self.left.results();
        let ty = match types[..] {
            [ty] if ty.is_scalar() && ty != Type::BOOL && self.right.results() == types => ty,
            _ => {
                let reason = "the factors do not give one number of the same type".to_owned();
                return Err(Error::Pattern { pattern: "product", reason });
            }
        };
        self.sink.check("product", 2, &types)?;
        let index = Domain::with_axes(2).check("product", &[&self.left, &self.right], &self.sink)?;
        let mut draft = Draft::new("product", 3);
        let (left, right) = (draft.source(&self.left), draft.source(&self.right));
        let count = Count::product(0..2);
        let outlet = draft.sink(&self.sink, &types, &count);
        if index == Type::U32 {
            draft.limit(count);
            draft.limit(Count::size(0) * Count::size(2));
            draft.limit(Count::size(1) * Count::size(2));
        }
        let sum = if ty == Type::F16 { Type::F32 } else { ty };
        if outlet.stores_values() {
            draft.plain_product(&left, &right);
        }
        let parts = ProductEmitter { left, right, outlet, index, ty, sum };
        if Costs::of(machine).in_vectors() {
            parts.panels(&mut draft, machine)?
        } else {
            parts.tiles(&mut draft)?
        }
        Ok(draft.finish())
    }
}

/// Emitter of the kernels of a product.
pub(crate) struct ProductEmitter {
    pub(crate) left: Inlet,
    pub(crate) right: Inlet,
    pub(crate) outlet: Outlet,
    /// Type of an index.
    pub(crate) index: Type,
    pub(crate) ty: Type,
    /// Type of sums.
    pub(crate) sum: Type,
}

impl ProductEmitter {
    pub(crate) fn size(&self, k: &Writer, size: usize) -> Value {
        k.count(Count::size(size), self.index)
    }

    pub(crate) fn wide(&self, k: &Writer, value: Value) -> Value {
        k.convert(value, self.index)
    }

    pub(crate) fn multiply_add(&self, k: &Writer, a: Value, b: Value, sum: Value) -> Value {
        if self.sum.element().is_float() { k.fma(a, b, sum) } else { k.add(k.mul(a, b), sum) }
    }

    pub(crate) fn put(&self, k: &Writer, i: Value, j: Value, sum: Value) {
        let linear = ravel(k, &[i, j], &[self.size(k, 0), self.size(k, 1)]);
        self.outlet.put(k, &[i, j], linear, &[k.convert(sum, self.ty)]);
    }
}
