//! Elements combined: over the whole array or along axes. Table 2 of the Accelerator paper, inner and outer products.

use crate::array::Array;
use crate::closure::{Traced, combine};
use crate::element::{Arithmetic, Element, Float, Integer, Number};
use broadloom_graph::{Amount, Combine, Error, Extreme, Node, Result, Shape};
use broadloom_scalar::{Element as Scalar, Type};

impl<T: Element> Array<T> {
    fn reduce(&self, combine: Combine, axes: &[usize]) -> Result<Array<T>> {
        Ok(Array::from_node_unchecked(self.node().reduce(combine, axes)?))
    }

    fn reduce_all(&self, combine: Combine) -> Array<T> {
        let axes: Vec<usize> = (0..self.rank()).collect();
        crate::array::sure(self.reduce(combine, &axes))
    }

    /// Elements along some axes combined by a closure, in their order; the axes are gone in the result. The closure is traced, as that of [`Array::map`] is. It must be associative, as
    /// elements are taken in groups, and combined with `identity` every value must stay what it is; of no elements that comes out.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::new(&context(), &[12u32, 18, 30, 7, 14, 35], [2, 3])?;
    /// assert_eq!(a.reduce_with(&[1], 0, |x, y| x | y)?.to_vec()?, [30, 47]);
    /// // The last one that is not 0.
    /// assert_eq!(a.reduce_with(&[0, 1], 0, |x, y| y.ne(0).cond(y, x))?.item()?, 35);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn reduce_with(
        &self,
        axes: &[usize],
        identity: T,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
    ) -> Result<Array<T>> {
        self.reduce(combine("reduce_with", identity, closure)?, axes)
    }
}

macro_rules! reductions {
    ($($bound:ident $combine:ident: $(#[$doc:meta])* $all:ident, $along:ident;)*) => {
        $(impl<T: $bound> Array<T> {
            $(#[$doc])*
            #[must_use]
            pub fn $all(&self) -> Array<T> {
                self.reduce_all(Combine::$combine)
            }

            #[doc = concat!("The same along some axes, which are gone in the result. See [`", stringify!($all), "`](Self::", stringify!($all), ").")]
            pub fn $along(&self, axes: &[usize]) -> Result<Array<T>> {
                self.reduce(Combine::$combine, axes)
            }
        })*
    };
}

reductions! {
    Arithmetic Sum:
    /// The sum of all elements, as an array without axes; of none: 0. It has their type, and wraps around where that is too small: [`cast`](Self::cast) them to a wider one before.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::new(&context(), &[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(a.sum().item()?, 21);
    /// assert_eq!(a.sum_along(&[1])?.to_vec()?, [6, 15]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    sum, sum_along;
    Arithmetic Product:
    /// The product of all elements; of none: 1.
    product, product_along;
    Arithmetic Min:
    /// The least element; of none: the greatest value of the type, of floats infinity. NaN counts as no element.
    min, min_along;
    Arithmetic Max:
    /// The greatest element; of none: the least value of the type, of floats minus infinity. NaN counts as no element.
    max, max_along;
}

impl Array<bool> {
    /// Whether all elements are true; of none: yes.
    #[must_use]
    pub fn all(&self) -> Array<bool> {
        self.reduce_all(Combine::All)
    }

    /// The same along some axes, which are gone in the result.
    pub fn all_along(&self, axes: &[usize]) -> Result<Array<bool>> {
        self.reduce(Combine::All, axes)
    }

    /// Whether an element is true; of none: no.
    #[must_use]
    pub fn any(&self) -> Array<bool> {
        self.reduce_all(Combine::Any)
    }

    /// The same along some axes, which are gone in the result.
    pub fn any_along(&self, axes: &[usize]) -> Result<Array<bool>> {
        self.reduce(Combine::Any, axes)
    }
}

impl<T: Float> Array<T> {
    /// The mean of all elements; of none: NaN. That of `f16` is taken in `f32`, which holds their sum and number.
    pub fn mean(&self) -> Result<Array<T>> {
        let axes: Vec<usize> = (0..self.rank()).collect();
        self.mean_along(&axes)
    }

    /// The mean along some axes.
    pub fn mean_along(&self, axes: &[usize]) -> Result<Array<T>> {
        if T::TYPE == Type::F16 {
            return self.cast::<f32>()?.mean_along(axes)?.cast();
        }
        let sum = self.sum_along(axes).map_err(|error| match error {
            Error::Axis { axis, shape, .. } => Error::Axis { operation: "mean".into(), axis, shape },
            other => other,
        })?;
        let (bound, has_length) = (self.node().bound(), axes.contains(&0) && self.node().length().is_some());
        let others = axes.iter().filter(|axis| **axis > 0 || !has_length);
        let count = others.fold(Amount::from(1), |product, axis| product.times(&bound.amount(*axis)));
        let count = match count.is_known() {
            true => self.beside(count.get() as f64),
            false => Array::<i64>::from_node(Node::counting(self.context(), &count))?.cast::<f64>()?,
        };
        if has_length {
            // Only the device knows how many there are.
            let first = Array::<i64>::from_node(self.node().first_extent()?)?.cast::<f64>()?;
            return sum.div(&first.mul(&count)?.cast::<T>()?);
        }
        sum.div(&count.cast::<T>()?)
    }
}

impl<T: Number> Array<T> {
    /// The inner product: the last axis of this array against the first of the other, elements multiplied and summed.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
    /// let m = Array::new(&context, &[1, 2, 3, 4], [2, 2])?;
    /// let v = Array::line(&context, &[10, 100])?;
    /// assert_eq!(m.inner(&v)?.to_vec()?, [210, 430]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn inner(&self, other: &Array<T>) -> Result<Array<T>> {
        let refused = || Error::Shapes { operation: "inner".into(), left: self.shape().clone(), right: other.shape().clone() };
        if self.rank() == 0 || other.rank() == 0 || !self.shape().amount(self.rank() - 1).equals(&other.shape().amount(0)) {
            return Err(refused());
        }
        if self.rank() == 2 && other.rank() == 2 {
            return self.matmul(other);
        }
        // Positions of the product: axes of this array but the last, axes of the other but the first, then the one that is summed over.
        let (before, behind) = (self.rank() - 1, other.rank() - 1);
        let mut left = self.clone();
        for _ in 0..behind {
            left = left.add_axis(before, 1)?;
        }
        let order: Vec<usize> = (1..other.rank()).chain([0]).collect();
        left.mul(&other.transpose(&order)?)?.sum_along(&[before + behind])
    }

    /// Along an axis, where the least element is, the first of equal ones; NaN counts as greater than all numbers.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::new(&context(), &[3, 1, 2, 5, 9, 9], [2, 3])?;
    /// assert_eq!(a.argmin(1)?.to_vec()?, [1, 0]);
    /// assert_eq!(a.argmax(1)?.to_vec()?, [0, 1]);
    /// assert_eq!(a.flatten().argmax(0)?.item()?, 4);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn argmin(&self, axis: usize) -> Result<Array<i64>> {
        Array::from_node(self.node().extreme(Extreme::Least, axis, Scalar::I64)?)
    }

    /// Along an axis, where the greatest element is, the first of equal ones; NaN counts as less than all numbers.
    pub fn argmax(&self, axis: usize) -> Result<Array<i64>> {
        Array::from_node(self.node().extreme(Extreme::Greatest, axis, Scalar::I64)?)
    }

    /// Like [`Array::argmin`], as another type of integers. An axis that is too long for the type is refused.
    pub fn argmin_as<I: Integer>(&self, axis: usize) -> Result<Array<I>> {
        self.extreme_as(Extreme::Least, axis)
    }

    /// Like [`Array::argmax`], as another type of integers. An axis that is too long for the type is refused.
    pub fn argmax_as<I: Integer>(&self, axis: usize) -> Result<Array<I>> {
        self.extreme_as(Extreme::Greatest, axis)
    }

    fn extreme_as<I: Integer>(&self, extreme: Extreme, axis: usize) -> Result<Array<I>> {
        let element = I::TYPE.element();
        let most = element.range().map_or(0, |(_, high)| high);
        let most = Amount::from(i64::try_from(most + 1).unwrap_or(i64::MAX));
        if axis < self.rank() && most.is_less(&self.node().bound().amount(axis)) {
            let reason = format!("positions along axis {axis} are no `{element}`");
            return Err(Error::Range { operation: extreme.name().to_owned(), shape: self.shape().clone(), reason });
        }
        Array::from_node(self.node().extreme(extreme, axis, element)?)
    }

    /// The outer product: every element of this array times every element of the other.
    pub fn outer(&self, other: &Array<T>) -> Result<Array<T>> {
        let axes = vec![Amount::from(1); other.rank()];
        let refused = |_| Error::Shapes { operation: "outer".into(), left: self.shape().clone(), right: other.shape().clone() };
        let left = self.reshape(Shape::from_amounts(&[&self.shape().amounts()[..], &axes].concat())).map_err(refused)?;
        left.mul(other)
    }
}
