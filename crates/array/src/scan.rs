//! Scans (prefix reductions) along an axis.

use crate::array::Array;
use crate::closure::{Traced, combine};
use crate::element::{Arithmetic, Element};
use broadloom_graph::{Combine, Result};

impl<T: Element> Array<T> {
    fn scan(&self, combine: Combine, axis: usize, inclusive: bool) -> Result<Array<T>> {
        Ok(Array::from_node_unchecked(self.node().scan(combine, axis, inclusive)?))
    }

    /// Returns the inclusive scan along an axis with a closure. The closure must be associative and have the
    /// identity `identity`: see [`Array::reduce_with`].
    ///
    /// ```
    /// # use broadloom_array::{Array, Traced};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// // Holes take the last value before them.
    /// let a = Array::line(&context, &[7, 0, 0, 3, 0, 4])?;
    /// assert_eq!(a.scan_with(0, 0, |x, y| y.eq(0).cond(x, y))?.to_vec()?, [7, 7, 7, 3, 3, 4]);
    /// assert_eq!(a.scan_before_with(0, 0, |x, y| y.eq(0).cond(x, y))?.to_vec()?, [0, 7, 7, 7, 3, 3]);
    ///
    /// // A recurrence, `x[i] = a[i] * x[i - 1] + b[i]`: linear functions, one applied behind the other.
    /// let (a, b) = (Array::line(&context, &[2.0, 3.0, 0.5])?, Array::line(&context, &[1.0, 1.0, 4.0])?);
    /// let none = Array::full(&context, 3, 0.0)?;
    /// let steps = Array::from_lanes([&a, &b, &none, &none])?;
    /// let all = steps.scan_with(0, [1.0, 0.0, 0.0, 0.0], |f, g| {
    ///     let nothing = f.constant(0.0f32);
    ///     Traced::from_lanes([f.lane(0) * g.lane(0), g.lane(0) * f.lane(1) + g.lane(1), nothing, nothing])
    /// })?;
    /// assert_eq!((all.lane(0)? * 10.0 + all.lane(1)?).to_vec()?, [21.0, 64.0, 36.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn scan_with(
        &self,
        axis: usize,
        identity: T,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
    ) -> Result<Array<T>> {
        self.scan(combine("closure", identity, closure)?, axis, true)
    }

    /// Returns the exclusive scan along an axis with a closure, starting with `identity`. See
    /// [`Array::scan_with`].
    pub fn scan_before_with(
        &self,
        axis: usize,
        identity: T,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
    ) -> Result<Array<T>> {
        self.scan(combine("closure", identity, closure)?, axis, false)
    }
}

impl<T: Arithmetic> Array<T> {
    /// Returns the inclusive prefix sums along an axis.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(a.cumulative_sum(1)?.to_vec()?, [1, 3, 6, 4, 9, 15]);
    /// assert_eq!(a.cumulative_sum(0)?.to_vec()?, [1, 2, 3, 5, 7, 9]);
    /// assert_eq!(a.sum_before(1)?.to_vec()?, [0, 1, 3, 0, 4, 9]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn cumulative_sum(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Sum, axis, true)
    }

    /// Returns the exclusive prefix sums along an axis, starting with 0.
    pub fn sum_before(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Sum, axis, false)
    }

    /// Returns the inclusive prefix products along an axis.
    pub fn cumulative_product(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Product, axis, true)
    }

    /// Returns the inclusive prefix minima along an axis, ignoring NaN. See [`Array::min`].
    pub fn cumulative_min(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Min, axis, true)
    }

    /// Returns the inclusive prefix maxima along an axis, ignoring NaN. See [`Array::max`].
    pub fn cumulative_max(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Max, axis, true)
    }
}
