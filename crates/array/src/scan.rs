//! Scans: elements along an axis combined with all before them.

use crate::array::Array;
use crate::element::{Arithmetic, Element};
use broadloom_graph::{Combine, Result};

impl<T: Element> Array<T> {
    fn scan(&self, combine: Combine, axis: usize, inclusive: bool) -> Result<Array<T>> {
        Ok(Array::from_node_unchecked(self.node().scan(combine, axis, inclusive)?))
    }
}

impl<T: Arithmetic> Array<T> {
    /// Along an axis, the sum of each element and all before it.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::new(&context(), &[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(a.cumulative_sum(1)?.to_vec()?, [1, 3, 6, 4, 9, 15]);
    /// assert_eq!(a.cumulative_sum(0)?.to_vec()?, [1, 2, 3, 5, 7, 9]);
    /// assert_eq!(a.sum_before(1)?.to_vec()?, [0, 1, 3, 0, 4, 9]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn cumulative_sum(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Sum, axis, true)
    }

    /// Along an axis, the sum of all elements before each; 0 before the first.
    pub fn sum_before(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Sum, axis, false)
    }

    /// Along an axis, the product of each element and all before it.
    pub fn cumulative_product(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Product, axis, true)
    }

    /// Along an axis, the least of each element and all before it.
    pub fn cumulative_min(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Min, axis, true)
    }

    /// Along an axis, the greatest of each element and all before it.
    pub fn cumulative_max(&self, axis: usize) -> Result<Array<T>> {
        self.scan(Combine::Max, axis, true)
    }
}
