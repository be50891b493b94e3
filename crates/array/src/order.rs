//! Sorting, selecting, counting, random numbers, matrix products.

use crate::array::Array;
use crate::element::{Element, Integer, Number};
use broadloom_graph::{Amount, Context, Node, Result, Shape, SortKey};
use broadloom_scalar::Element as Scalar;

impl<T: Number> Array<T> {
    /// Sorts along an axis in ascending order, with NaN last.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[3, 1, 2, 9, 7, 8], [2, 3])?;
    /// assert_eq!(a.sort(1)?.to_vec()?, [1, 2, 3, 7, 8, 9]);
    /// assert_eq!(a.argsort(1)?.to_vec()?, [1, 2, 0, 1, 2, 0]);
    /// assert_eq!(a.sort_descending(1)?.to_vec()?, [3, 2, 1, 9, 8, 7]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn sort(&self, axis: usize) -> Result<Array<T>> {
        self.sorted("sort", axis, false, false)
    }

    /// Sorts along an axis in descending order, with NaN last.
    pub fn sort_descending(&self, axis: usize) -> Result<Array<T>> {
        self.sorted("sort_descending", axis, true, false)
    }

    /// Returns the indices that sort along an axis in ascending order. The sort is stable.
    pub fn argsort(&self, axis: usize) -> Result<Array<i32>> {
        self.sorted("argsort", axis, false, true)
    }

    /// Returns the indices that sort along an axis in descending order, with NaN last. The sort is stable.
    ///
    /// ```
    /// # use broadloom_array::{Array, span};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[3u8, 9, 0, 9, 7])?;
    /// // The three greatest.
    /// assert_eq!(a.argsort_descending(0)?.slice(&span![..3])?.to_vec()?, [1, 3, 4]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn argsort_descending(&self, axis: usize) -> Result<Array<i32>> {
        self.sorted("argsort_descending", axis, true, true)
    }

    /// Sorts rows along an axis, or returns their sort indices. The axis becomes the last one, the rows are
    /// concatenated, and each row is a segment.
    fn sorted<U: Element>(&self, operation: &str, axis: usize, descending: bool, places: bool) -> Result<Array<U>> {
        let rank = self.rank();
        if axis >= rank {
            let (operation, shape) = (operation.to_owned(), self.shape().clone());
            return Err(broadloom_graph::Error::Axis { operation, axis, shape });
        }
        if rank == 1 {
            // Elements and indices of the same array are sorted once.
            let origins = self.node().position_like(0, Scalar::I32)?;
            let sorted = Node::sort(&[(self.node(), SortKey { descending, bits: None })], &[&origins])?;
            return Array::from_node(sorted[usize::from(places)].clone());
        }
        let order: Vec<usize> = (0..rank).filter(|own| *own != axis).chain([axis]).collect();
        let turned = self.transpose(&order)?;
        let (shape, length) = (turned.shape(), self.shape().amount(axis));
        let line = turned.flatten();
        let origins = Array::<i32>::positions(self.context(), turned.shape(), rank - 1)?.flatten();
        let (keys, values) = ([(line.node(), SortKey { descending, bits: None })], [origins.node()]);
        let mut sorted = if shape.size().equals(&length) {
            // Elements and indices of the same array are sorted once.
            Node::sort(&keys, &values)?
        } else {
            // Longer segments without indices are sorted in place.
            let values: &[&Node] = if places { &values } else { &[] };
            let mut lines = Amount::from(usize::from(!shape.is_empty()));
            (0..rank - 1).for_each(|axis| lines = lines.times(&shape.amount(axis)));
            let lines = Array::<i64>::positions(self.context(), Shape::from_amounts(&[lines.plus(&1.into())]), 0)?;
            let offsets = lines.mul(Array::from_node_unchecked(Node::counting(self.context(), &length)))?;
            Node::segmented_sort(offsets.node(), Some(length), &keys, values)?
        };
        let result = Array::<U>::from_node(sorted.swap_remove(usize::from(places)))?.reshape(turned.shape())?;
        let mut back = vec![0; rank];
        order.iter().enumerate().for_each(|(to, from)| back[*from] = to);
        result.transpose(&back)
    }

    /// Returns the product of two matrices. [`inner`](Self::inner) also accepts vectors and arrays with more
    /// axes. On a CPU, a product with a single row or column is computed as a sum along an axis of the
    /// element-wise product.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.matmul(&a)?.to_vec()?, [7.0, 10.0, 15.0, 22.0]);
    /// assert_eq!(a.matmul(&a.t())?.to_vec()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn matmul(&self, other: &Array<T>) -> Result<Array<T>> {
        Array::from_node(self.node().product(other.node())?)
    }

    /// Returns the product of the transpose of this matrix and another: `a.t().matmul(b)`. Does not wait if
    /// both have one length that only the device knows.
    ///
    /// ```
    /// # use broadloom_array::{Array, Boundary};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])?;
    /// assert_eq!(a.t_matmul(&a)?.to_vec()?, [35.0, 44.0, 44.0, 56.0]);
    /// // Of the rows that begin with more than 2.
    /// let chosen = Array::<i32>::iota(&context, 3)?.pack(&a.index_axis(1, 0)?.gt(2.0)?)?;
    /// let rows = a.take(0, &chosen, Boundary::Clamp)?;
    /// assert_eq!(rows.t_matmul(&rows)?.to_vec()?, [34.0, 42.0, 42.0, 52.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn t_matmul(&self, other: &Array<T>) -> Result<Array<T>> {
        Array::from_node(self.node().columns_product(other.node())?)
    }
}

impl<T: Number> Array<T> {
    /// Returns the indices of the nonzero elements of a one-dimensional array. Does not wait.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[3, 0, 7, 7, 0])?;
    /// assert_eq!(a.nonzero()?.to_vec()?, [0, 2, 3]);
    /// assert_eq!(a.unique()?.to_vec()?, [0, 3, 7]);
    /// let (values, lengths) = a.runs()?;
    /// assert_eq!((values.to_vec()?, lengths.to_vec()?), (vec![3, 0, 7, 0], vec![1, 1, 2, 1]));
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn nonzero(&self) -> Result<Array<i64>> {
        let places = self.node().position_like(0, Scalar::I64)?;
        Array::from_node(places.pack(self.ne(T::ZERO)?.node())?)
    }

    /// Returns the distinct values of a one-dimensional array in ascending order. Does not wait. Every NaN
    /// counts as a distinct value.
    pub fn unique(&self) -> Result<Array<T>> {
        Array::from_node(self.node().unique()?)
    }

    /// Returns the values and lengths of the runs of equal adjacent elements of a one-dimensional array. Does
    /// not wait.
    pub fn runs(&self) -> Result<(Array<T>, Array<i64>)> {
        let (values, lengths) = self.node().runs()?;
        Ok((Array::from_node(values)?, Array::from_node(lengths)?))
    }
}

impl<T: Integer> Array<T> {
    /// Counts the elements equal to 0, 1, 2, … up to the number of bins. Other elements are not counted.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1u8, 3, 1, 200, 0])?;
    /// assert_eq!(a.histogram(4)?.to_vec()?, [1, 2, 0, 1]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn histogram(&self, bins: usize) -> Result<Array<u32>> {
        Array::from_node(self.node().histogram(bins)?)
    }
}

impl<T: Element> Array<T> {
    /// Returns the elements where a mask of the same shape is true, as a one-dimensional array. Lazy, and
    /// does not wait. Only the device knows the length until the shape or the elements are requested.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[5, -1, 7, -2, 0])?;
    /// assert_eq!(a.pack(&a.ge(0)?)?.to_vec()?, [5, 7, 0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn pack(&self, chosen: &Array<bool>) -> Result<Array<T>> {
        self.same_shape("pack", chosen)?;
        Array::from_node(self.flatten().node().pack(chosen.flatten().node())?)
    }

    /// Repeats each element of a one-dimensional array. An array of integers holds the repetition counts. The
    /// length of the result is their sum, but at most `bound`. Does not wait.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let (a, times) = (Array::line(&context, &[5, 6, 7])?, Array::line(&context, &[2, 0, 1])?);
    /// assert_eq!(a.repeat_each(&times, 10)?.to_vec()?, [5, 5, 7]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn repeat_each<I: Integer>(&self, times: &Array<I>, bound: usize) -> Result<Array<T>> {
        Array::from_node(self.node().repeat_each(times.node(), bound)?)
    }

    /// Returns all elements as a one-dimensional array: first the elements where a mask of the same shape is
    /// true, then the others. Both parts keep their order. Also returns the length of the first part. Lazy,
    /// and does not wait.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[5, -1, 7, -2, 0])?;
    /// let (sides, count) = a.partition(&a.ge(0)?)?;
    /// assert_eq!(sides.to_vec()?, [5, 7, 0, -1, -2]);
    /// assert_eq!(count.item()?, 3);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn partition(&self, chosen: &Array<bool>) -> Result<(Array<T>, Array<u32>)> {
        self.same_shape("partition", chosen)?;
        let (values, count) = self.flatten().node().partition(chosen.flatten().node())?;
        Ok((Array::from_node(values)?, Array::from_node(count)?))
    }

    /// Checks that another array has the same shape.
    fn same_shape<U: Element>(&self, operation: &str, other: &Array<U>) -> Result<()> {
        if self.node().is_shaped_like(other.node()) {
            return Ok(());
        }
        let (left, right) = (self.shape().clone(), other.shape().clone());
        Err(broadloom_graph::Error::Shapes { operation: operation.to_owned(), left, right })
    }

    /// Sorts a one-dimensional array by keys, with NaN last. The sort is stable.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let (keys, values) = (Array::line(&context, &[3.0f32, -1.0, 2.0])?, Array::line(&context, &[30, 10, 20])?);
    /// assert_eq!(values.sort_by(&keys)?.to_vec()?, [10, 20, 30]);
    /// let error = values.sort_by(&Array::line(&context, &[1, 2])?).unwrap_err();
    /// assert_eq!(error.to_string(), "`sort_by`: the shapes [3] and [2] do not fit together");
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn sort_by<K: Number>(&self, keys: &Array<K>) -> Result<Array<T>> {
        self.same_shape("sort_by", keys)?;
        if self.rank() != 1 {
            let (operation, reason) = ("sort_by".to_owned(), "expected an array with one axis".to_owned());
            return Err(broadloom_graph::Error::Range { operation, shape: self.shape().clone(), reason });
        }
        let key = (keys.node(), SortKey { descending: false, bits: None });
        Array::from_node(Node::sort(&[key], &[self.node()])?.swap_remove(1))
    }

    /// Returns the elements where a mask of the same shape is true, as a one-dimensional array padded with
    /// `value` to the length of this array. Also returns the number of selected elements. Lazy, and does not
    /// wait.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[5, -1, 7, -2, 0])?;
    /// let (chosen, count) = a.pack_padded(&a.ge(0)?, -9)?;
    /// assert_eq!(chosen.to_vec()?, [5, 7, 0, -9, -9]);
    /// assert_eq!(count.item()?, 3);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn pack_padded(&self, chosen: &Array<bool>, value: T) -> Result<(Array<T>, Array<u32>)> {
        self.same_shape("pack_padded", chosen)?;
        let (values, count) = self.flatten().node().pack_padded(chosen.flatten().node(), &value.lanes())?;
        Ok((Array::from_node(values)?, Array::from_node(count)?))
    }
}

macro_rules! random {
    ($($rust:ty, $element:ident;)*) => {
        $(impl Array<$rust> {
            /// Returns random numbers in the range [0, 1). Equal seeds give equal numbers on every device.
            pub fn random(context: &Context, shape: impl Into<Shape>, seed: u64) -> Result<Array<$rust>> {
                Array::from_node(Node::random(context, shape.into(), Scalar::$element, seed)?)
            }
        })*
    };
}

random! { f32, F32; f64, F64; }
