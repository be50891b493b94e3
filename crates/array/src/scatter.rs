//! Scatter operations.

use crate::array::Array;
use crate::closure::{Traced, combine};
use crate::element::{Arithmetic, Element, Integer};
use broadloom_graph::{Combine, Node, Result};

impl<T: Element> Array<T> {
    fn sent<I: Integer>(&self, indices: &[&Array<I>], values: &Array<T>, combine: Option<Combine>) -> Result<Array<T>> {
        let indices: Vec<&Node> = indices.iter().map(|index| index.node()).collect();
        Array::from_node(self.node().scatter(&indices, values.node(), combine)?)
    }

    /// Replaces elements at given indices, one index array per axis: `R[I[k], J[k]] = V[k]`. The last of
    /// several values with equal indices is kept. Values with out-of-range indices are dropped. Values
    /// broadcast to the shape of the indices.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
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

    /// Combines values with this array's elements at given indices, using a closure. Values are combined in
    /// their order, starting with this array's element. The closure must be associative and have the identity
    /// `identity`: see [`Array::reduce_with`].
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
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

/// Defines methods that combine values with elements at given indices by an operator.
macro_rules! scatters {
    ([$($generics:tt)*] $ty:ty: $($(#[$doc:meta])* $name:ident $combine:ident;)*) => {
        impl $($generics)* Array<$ty> {
            $($(#[$doc])*
            pub fn $name<I: Integer>(&self, indices: &[&Array<I>], values: &Array<$ty>) -> Result<Array<$ty>> {
                self.sent(indices, values, Some(Combine::$combine))
            })*
        }
    };
}

scatters! { [<T: Arithmetic>] T:
    /// Adds values at given indices. Floats are summed in the order of the values, so the result is
    /// deterministic.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::full(&context, [2, 2], 1.0f32)?;
    /// let (rows, columns) = (Array::line(&context, &[1, 1, 0])?, Array::line(&context, &[0, 0, 1])?);
    /// let sum = a.scatter_sum(&[&rows, &columns], &Array::line(&context, &[0.5, 0.25, 4.0])?)?;
    /// assert_eq!(sum.to_vec()?, [1.0, 5.0, 1.75, 1.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    scatter_sum Sum;
    /// Multiplies by values at given indices.
    scatter_product Product;
    /// Computes the minimum with values at given indices.
    scatter_min Min;
    /// Computes the maximum with values at given indices.
    scatter_max Max;
}

scatters! { [] bool:
    /// Computes the logical AND with values at given indices.
    scatter_all All;
    /// Computes the logical OR with values at given indices.
    scatter_any Any;
}
