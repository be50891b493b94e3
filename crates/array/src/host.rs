//! Conversion between arrays and those of the `ndarray` library.

use crate::array::Array;
use crate::element::Element;
use broadloom_graph::{Context, Result};
use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

impl<T: Element> Array<T> {
    /// Creates an array from an `ndarray` array with any layout.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let host = ndarray::array![[1, 2, 3], [4, 5, 6]];
    /// let a = Array::from_ndarray(&context, &host.t())?;
    /// assert_eq!(a.shape().extents(), [3, 2]);
    /// assert_eq!((a + 1).to_ndarray()?, (host + 1).t().into_dyn());
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn from_ndarray<S: Data<Elem = T>, D: Dimension>(context: &Context, host: &ArrayBase<S, D>) -> Result<Array<T>> {
        match host.as_slice() {
            Some(values) => Array::new(context, values, host.shape()),
            None => Array::new(context, &host.iter().copied().collect::<Vec<T>>(), host.shape()),
        }
    }

    /// Converts to an `ndarray` array. Waits for the elements.
    pub fn to_ndarray(&self) -> Result<ArrayD<T>> {
        let values = self.to_vec()?;
        let count = values.len();
        ArrayD::from_shape_vec(IxDyn(self.shape().extents()), values).map_err(|_| broadloom_graph::Error::Count {
            operation: "to_ndarray".into(),
            count,
            shape: self.shape().clone(),
        })
    }
}
