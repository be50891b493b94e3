//! Reductions over the whole array or along axes (table 2 of the Accelerator paper), inner and outer
//! products.

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
        crate::array::or_panic(self.reduce(combine, &axes))
    }

    /// Combines the elements along some axes with a closure, in element order, and removes these axes. The
    /// closure is traced, as for [`Array::map`]. It must be associative, because elements are combined in
    /// groups. `identity` must leave every value unchanged. It is the result for no elements.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[12u32, 18, 30, 7, 14, 35], [2, 3])?;
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
    /// Sums all elements to an array without axes. The sum of no elements is 0. The sum has the element type
    /// and wraps around on overflow. [`cast`](Self::cast) the elements to a wider type first to avoid
    /// overflow.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(a.sum().item()?, 21);
    /// assert_eq!(a.sum_along(&[1])?.to_vec()?, [6, 15]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    sum, sum_along;
    Arithmetic Product:
    /// Multiplies all elements. The product of no elements is 1.
    product, product_along;
    Arithmetic Min:
    /// Returns the minimum, ignoring NaN. The minimum of no elements is the maximum value of the type, for
    /// floats infinity.
    min, min_along;
    Arithmetic Max:
    /// Returns the maximum, ignoring NaN. The maximum of no elements is the minimum value of the type, for
    /// floats minus infinity.
    max, max_along;
}

impl Array<bool> {
    /// Tests if all elements are true. Returns true for no elements.
    #[must_use]
    pub fn all(&self) -> Array<bool> {
        self.reduce_all(Combine::All)
    }

    /// Tests along some axes if all elements are true. The axes are removed.
    pub fn all_along(&self, axes: &[usize]) -> Result<Array<bool>> {
        self.reduce(Combine::All, axes)
    }

    /// Tests if any element is true. Returns false for no elements.
    #[must_use]
    pub fn any(&self) -> Array<bool> {
        self.reduce_all(Combine::Any)
    }

    /// Tests along some axes if any element is true. The axes are removed.
    pub fn any_along(&self, axes: &[usize]) -> Result<Array<bool>> {
        self.reduce(Combine::Any, axes)
    }
}

impl<T: Float> Array<T> {
    /// Returns the mean of all elements, or NaN for no elements. The mean of `f16` is computed in `f32`,
    /// which can represent their sum and count.
    pub fn mean(&self) -> Result<Array<T>> {
        let axes: Vec<usize> = (0..self.rank()).collect();
        self.mean_along(&axes)
    }

    /// Returns the mean along some axes.
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
            true => self.scalar_in_context(count.get() as f64),
            false => Array::<i64>::from_node(Node::counting(self.context(), &count))?.cast::<f64>()?,
        };
        if has_length {
            // Only the device knows the number of elements.
            let first = Array::<i64>::from_node(self.node().first_extent()?)?.cast::<f64>()?;
            return sum.div(&first.mul(&count)?.cast::<T>()?);
        }
        sum.div(&count.cast::<T>()?)
    }
}

impl<T: Number> Array<T> {
    /// Returns the inner product: the sum of products over the last axis of this array and the first axis of
    /// the other.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let m = Array::new(&context, &[1, 2, 3, 4], [2, 2])?;
    /// let v = Array::line(&context, &[10, 100])?;
    /// assert_eq!(m.inner(&v)?.to_vec()?, [210, 430]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn inner(&self, other: &Array<T>) -> Result<Array<T>> {
        let refused = || Error::Shapes { operation: "inner".into(), left: self.shape().clone(), right: other.shape().clone() };
        if self.rank() == 1 && other.rank() > 0 && self.node().is_as_long(other.node()) {
            // Only the device knows the common length.
            let column = Array::from_node(self.node().reshape_rows(&vec![1; other.rank() - 1].into())?)?;
            return column.mul(other)?.sum_along(&[0]);
        }
        if self.rank() == 0 || other.rank() == 0 || !self.shape().amount(self.rank() - 1).equals(&other.shape().amount(0)) {
            return Err(refused());
        }
        if self.rank() == 2 && other.rank() == 2 {
            return self.matmul(other);
        }
        // Axes of the product: all axes of this array except the last, all axes of the other except the
        // first, then the summed axis.
        let (before, behind) = (self.rank() - 1, other.rank() - 1);
        let mut left = self.clone();
        for _ in 0..behind {
            left = left.add_axis(before, 1)?;
        }
        let order: Vec<usize> = (1..other.rank()).chain([0]).collect();
        left.mul(&other.transpose(&order)?)?.sum_along(&[before + behind])
    }

    /// Returns the index of the minimum along an axis. The first of equal elements wins. NaN counts as
    /// greater than all numbers.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[3, 1, 2, 5, 9, 9], [2, 3])?;
    /// assert_eq!(a.argmin(1)?.to_vec()?, [1, 0]);
    /// assert_eq!(a.argmax(1)?.to_vec()?, [0, 1]);
    /// assert_eq!(a.flatten().argmax(0)?.item()?, 4);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn argmin(&self, axis: usize) -> Result<Array<i64>> {
        Array::from_node(self.node().extreme(Extreme::Least, axis, Scalar::I64)?)
    }

    /// Returns the index of the maximum along an axis. The first of equal elements wins. NaN counts as less
    /// than all numbers.
    pub fn argmax(&self, axis: usize) -> Result<Array<i64>> {
        Array::from_node(self.node().extreme(Extreme::Greatest, axis, Scalar::I64)?)
    }

    /// Returns the result of [`Array::argmin`] as another integer type. An axis that is too long for the type
    /// is an error.
    pub fn argmin_as<I: Integer>(&self, axis: usize) -> Result<Array<I>> {
        self.extreme_as(Extreme::Least, axis)
    }

    /// Returns the result of [`Array::argmax`] as another integer type. An axis that is too long for the type
    /// is an error.
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

    /// Returns the outer product: every element of this array times every element of the other.
    pub fn outer(&self, other: &Array<T>) -> Result<Array<T>> {
        let axes = vec![Amount::from(1); other.rank()];
        let refused = |_| Error::Shapes { operation: "outer".into(), left: self.shape().clone(), right: other.shape().clone() };
        let left = match self.node().length() {
            Some(_) => {
                let row = self.node().bound().amounts().into_iter().skip(1).chain(axes).collect::<Vec<Amount>>();
                self.node().reshape_rows(&Shape::from_amounts(&row)).map(Array::from_node_unchecked)
            }
            None => self.reshape(Shape::from_amounts(&[&self.shape().amounts()[..], &axes].concat())),
        };
        left.map_err(refused)?.mul(other)
    }
}
