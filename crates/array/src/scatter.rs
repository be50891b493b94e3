//! Elements sent to places.

use crate::array::Array;
use crate::closure::{Traced, combine};
use crate::element::{Arithmetic, Element, Integer};
use broadloom_graph::{Combine, Node, Result};

impl<T: Element> Array<T> {
    fn sent<I: Integer>(&self, indices: &[&Array<I>], values: &Array<T>, combine: Option<Combine>) -> Result<Array<T>> {
        let indices: Vec<&Node> = indices.iter().map(|index| index.node()).collect();
        Array::from_node(self.node().scatter(&indices, values.node(), combine)?)
    }

    /// This array with other values at the places that index arrays say, one array for each axis: `R[I[k], J[k]] = V[k]`. Of several that go to
    /// one place the last stays; what goes to no place is dropped. Values stretch to the shape of the indices.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
    /// let a = Array::line(&context, &[0, 0, 0, 0])?;
    /// let at = Array::line(&context, &[2, 0, 2, 9])?;
    /// let values = Array::line(&context, &[10, 20, 30, 40])?;
    /// assert_eq!(a.scatter(&[&at], &values)?.to_vec()?, [20, 0, 30, 0]);
    /// assert_eq!(a.scatter_sum(&[&at], &values)?.to_vec()?, [20, 0, 40, 0]);
    /// // The inverse of a permutation.
    /// let order = Array::line(&context, &[2, 0, 3, 1])?;
    /// assert_eq!(a.scatter(&[&order], &Array::iota(&context, 4)?)?.to_vec()?, [1, 3, 0, 2]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn scatter<I: Integer>(&self, indices: &[&Array<I>], values: &Array<T>) -> Result<Array<T>> {
        self.sent(indices, values, None)
    }

    /// This array with values combined with its elements, by a closure, at the places that index arrays say: in the order of the values, this array's element first. The closure
    /// must be associative and have this identity: see [`Array::reduce_with`].
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
    /// let flags = Array::line(&context, &[1u8, 0, 0])?;
    /// let (at, bits) = (Array::line(&context, &[2, 0, 2])?, Array::line(&context, &[4u8, 2, 8])?);
    /// assert_eq!(flags.scatter_with(&[&at], &bits, 0, |x, y| x | y)?.to_vec()?, [3, 0, 12]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn scatter_with<I: Integer>(
        &self,
        indices: &[&Array<I>],
        values: &Array<T>,
        identity: T,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
    ) -> Result<Array<T>> {
        self.sent(indices, values, Some(combine("closure", identity, closure)?))
    }
}

impl<T: Arithmetic> Array<T> {
    /// This array with values added at the places that index arrays say. Sums of floats are taken in the order of the values, so they repeat bit for
    /// bit.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
    /// let a = Array::full(&context, [2, 2], 1.0f32)?;
    /// let (rows, columns) = (Array::line(&context, &[1, 1, 0])?, Array::line(&context, &[0, 0, 1])?);
    /// let sum = a.scatter_sum(&[&rows, &columns], &Array::line(&context, &[0.5, 0.25, 4.0])?)?;
    /// assert_eq!(sum.to_vec()?, [1.0, 5.0, 1.75, 1.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn scatter_sum<I: Integer>(&self, indices: &[&Array<I>], values: &Array<T>) -> Result<Array<T>> {
        self.sent(indices, values, Some(Combine::Sum))
    }

    /// This array multiplied by values at the places that index arrays say.
    pub fn scatter_product<I: Integer>(&self, indices: &[&Array<I>], values: &Array<T>) -> Result<Array<T>> {
        self.sent(indices, values, Some(Combine::Product))
    }

    /// The least of this array and what is sent to the places that index arrays say.
    pub fn scatter_min<I: Integer>(&self, indices: &[&Array<I>], values: &Array<T>) -> Result<Array<T>> {
        self.sent(indices, values, Some(Combine::Min))
    }

    /// The greatest of this array and what is sent to the places that index arrays say.
    pub fn scatter_max<I: Integer>(&self, indices: &[&Array<I>], values: &Array<T>) -> Result<Array<T>> {
        self.sent(indices, values, Some(Combine::Max))
    }
}

impl Array<bool> {
    /// Whether this array and all that is sent to the places that index arrays say are true.
    pub fn scatter_all<I: Integer>(&self, indices: &[&Array<I>], values: &Array<bool>) -> Result<Array<bool>> {
        self.sent(indices, values, Some(Combine::All))
    }

    /// Whether this array or one of those that are sent to the places that index arrays say is true.
    pub fn scatter_any<I: Integer>(&self, indices: &[&Array<I>], values: &Array<bool>) -> Result<Array<bool>> {
        self.sent(indices, values, Some(Combine::Any))
    }
}
