//! Segments of a one-dimensional array, each reduced, scanned or sorted separately.

use crate::array::{Array, evaluate_all};
use crate::closure::{Traced, combine};
use crate::element::{Arithmetic, Element, Integer, Number};
use broadloom_graph::{Amount, Combine, Direction, Extreme, Result, SortKey, Total};
use broadloom_scalar::Element as Scalar;

/// Segments of a one-dimensional array: created once, usable for all arrays of that length.
///
/// Segments are consecutive, each with any number of elements, including none. Work is distributed over
/// elements, so speed does not depend on the lengths of the segments.
///
/// ```
/// # use broadloom_array::{Array, Segments};
/// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
/// let a = Array::line(&context, &[1, 2, 3, 4, 5, 6])?;
/// // (1, 2, 3), (), (4, 5, 6)
/// let segments = Segments::from_lengths(&Array::line(&context, &[3u32, 0, 3])?, 6)?;
/// assert_eq!(a.segmented_sum(&segments)?.to_vec()?, [6, 0, 15]);
/// assert_eq!(a.segmented_max(&segments)?.to_vec()?, [3, i32::MIN, 6]);
/// assert_eq!(a.segmented_cumulative_sum(&segments)?.to_vec()?, [1, 3, 6, 4, 9, 15]);
/// assert_eq!(a.segmented_sort_descending(&segments)?.to_vec()?, [3, 2, 1, 6, 5, 4]);
/// assert_eq!(segments.offsets().to_vec()?, [0, 3, 3, 6]);
/// # Ok::<(), broadloom_array::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Segments {
    inner: broadloom_graph::Segments,
    offsets: Array<i64>,
}

impl Segments {
    fn new(inner: broadloom_graph::Segments) -> Result<Segments> {
        let offsets = Array::from_node(inner.offsets()?)?;
        Ok(Segments { inner, offsets })
    }

    /// Creates segments of an array of `length` elements from offsets. Segment `k` has the indices from
    /// `offsets[k]` up to but not including `offsets[k + 1]`, so there is one more offset than segments. The
    /// first segment always starts at 0 and the last one ends at `length`, regardless of the first and last
    /// offset. Offsets must not decrease; otherwise results are unspecified.
    pub fn from_offsets<I: Integer>(offsets: &Array<I>, length: impl Into<Amount>) -> Result<Segments> {
        Segments::new(broadloom_graph::Segments::from_offsets(offsets.node(), Total::Amount(length.into()))?)
    }

    /// Creates segments of an array of `length` elements from their lengths. The last segment contains all
    /// remaining elements.
    pub fn from_lengths<I: Integer>(lengths: &Array<I>, length: impl Into<Amount>) -> Result<Segments> {
        Segments::new(broadloom_graph::Segments::from_lengths(lengths.node(), Total::Amount(length.into()))?)
    }

    /// Creates segments from flags. A segment starts at the first element and at every true flag. Only the
    /// device knows the number of segments. Does not wait.
    pub fn from_heads(heads: &Array<bool>) -> Result<Segments> {
        Segments::new(broadloom_graph::Segments::from_heads(heads.node(), None)?)
    }

    /// Declares a maximum segment length. Segments of up to 1024 elements are then sorted faster (on a CPU up
    /// to 512 for sort indices or elements of 8 bytes). The length is not checked: only the start of a longer
    /// segment is sorted, and the rest is unspecified.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let segments = Segments::from_lengths(&Array::line(&context, &[3, 2])?, 5)?.no_longer_than(3);
    /// let sorted = Array::line(&context, &[3, 1, 2, 9, 8])?.segmented_sort(&segments)?;
    /// assert!(sorted.plan()?.kernels.iter().any(|kernel| kernel.name == "segmented sort"));
    /// assert_eq!(sorted.to_vec()?, [1, 2, 3, 8, 9]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn no_longer_than(self, longest: impl Into<Amount>) -> Segments {
        Segments { inner: self.inner.no_longer_than(longest), ..self }
    }

    /// Returns the number of segments. Waits if only the device knows it.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the number of elements. Waits if only the device knows it.
    pub fn length(&self) -> usize {
        match self.inner.total_length() {
            Some(length) => length.read().unwrap_or(self.inner.total_bound()),
            None => self.inner.total_bound(),
        }
    }

    /// Returns the start of each segment, followed by the end of the last.
    pub fn offsets(&self) -> &Array<i64> {
        &self.offsets
    }

    /// Returns the length of each segment.
    pub fn lengths(&self) -> Result<Array<i64>> {
        Array::from_node(self.inner.lengths()?)
    }

    /// Returns, for each element, whether a segment starts there.
    pub fn heads(&self) -> Result<Array<bool>> {
        Array::from_node(self.inner.heads()?)
    }

    /// Returns the segment index of each element.
    pub fn ids(&self) -> Result<Array<i32>> {
        Array::from_node(self.inner.ids()?)
    }

    /// Returns the index of each element within its segment.
    pub fn places(&self) -> Result<Array<i64>> {
        Array::from_node(self.inner.places()?)
    }

    /// Computes the data that all uses share, without waiting. The first use would also compute and keep it,
    /// and becomes faster.
    pub fn evaluate(&self) -> Result<()> {
        evaluate_all(&[self.offsets.node(), &self.inner.heads()?])
    }
}

impl<T: Element> Array<T> {
    fn segmented(&self, segments: &Segments, combine: Combine) -> Result<Array<T>> {
        Array::from_node(segments.inner.reduce(&[(self.node(), combine)])?.swap_remove(0))
    }

    fn scanned(&self, segments: &Segments, combine: Combine, inclusive: bool) -> Result<Array<T>> {
        let lines = [(self.node(), combine)];
        Array::from_node(segments.inner.scan(&lines, inclusive, Direction::Forwards)?.swap_remove(0))
    }

    /// Distributes one value per segment to the elements of the segments.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1.0, 3.0, 5.0, 5.0])?;
    /// let segments = Segments::from_lengths(&Array::line(&context, &[1, 0, 3])?, 4)?;
    /// let shares = a.div(&a.segmented_sum(&segments)?.distributed(&segments)?)?;
    /// assert_eq!(shares.to_vec()?, [1.0, 3.0 / 13.0, 5.0 / 13.0, 5.0 / 13.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn distributed(&self, segments: &Segments) -> Result<Array<T>> {
        Array::from_node(segments.inner.distribute(self.node())?)
    }

    /// Filters elements by flags. Returns the remaining elements with their segments. The number of segments
    /// is unchanged. Only the device knows the number of elements. Does not wait.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1, -2, 3, -4, 5])?;
    /// let segments = Segments::from_lengths(&Array::line(&context, &[2, 1, 2])?, 5)?;
    /// let (positive, rest) = a.segmented_filter(&segments, &a.gt(0)?)?;
    /// let sums = positive.segmented_sum(&rest)?;
    /// // Nothing is packed for the sums.
    /// assert_eq!(sums.plan()?.kernels.iter().filter(|kernel| kernel.name == "pack").count(), 0);
    /// assert_eq!((sums.to_vec()?, rest.lengths()?.to_vec()?), (vec![1, 3, 5], vec![1, 1, 1]));
    /// assert_eq!(positive.to_vec()?, [1, 3, 5]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn segmented_filter(&self, segments: &Segments, chosen: &Array<bool>) -> Result<(Array<T>, Segments)> {
        let (packed, mut lines) = segments.inner.pack(chosen.node(), &[self.node()])?;
        Ok((Array::from_node(lines.swap_remove(0))?, Segments::new(packed)?))
    }

    /// Reduces each segment with a closure, in element order. The result for an empty segment is `identity`.
    /// See [`Array::reduce_with`].
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1u8, 2, 4, 8])?;
    /// let segments = Segments::from_lengths(&Array::line(&context, &[3, 0, 1])?, 4)?;
    /// assert_eq!(a.segmented_reduce_with(&segments, 0, |x, y| x | y)?.to_vec()?, [7, 0, 8]);
    /// assert_eq!(a.segmented_scan_with(&segments, 0, |x, y| x | y)?.to_vec()?, [1, 3, 7, 8]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn segmented_reduce_with(
        &self,
        segments: &Segments,
        identity: T,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
    ) -> Result<Array<T>> {
        self.segmented(segments, combine("closure", identity, closure)?)
    }

    /// Returns the inclusive scan of each segment with a closure. See [`Array::reduce_with`].
    pub fn segmented_scan_with(
        &self,
        segments: &Segments,
        identity: T,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
    ) -> Result<Array<T>> {
        self.scanned(segments, combine("closure", identity, closure)?, true)
    }
}

/// Defines methods that combine the elements of each segment with an operator.
macro_rules! in_segments {
    ([$($generics:tt)*] $ty:ty: $($(#[$doc:meta])* $name:ident $method:ident($combine:ident $(, $inclusive:literal)?);)*) => {
        impl $($generics)* Array<$ty> {
            $($(#[$doc])*
            pub fn $name(&self, segments: &Segments) -> Result<Array<$ty>> {
                self.$method(segments, Combine::$combine $(, $inclusive)?)
            })*
        }
    };
}

in_segments! { [<T: Arithmetic>] T:
    /// Returns the sum of each segment; 0 for an empty one. See [`Segments`].
    segmented_sum segmented(Sum);
    /// Returns the product of each segment; 1 for an empty one.
    segmented_product segmented(Product);
    /// Returns the minimum of each segment; the maximum value of the type for an empty one.
    segmented_min segmented(Min);
    /// Returns the maximum of each segment; the minimum value of the type for an empty one.
    segmented_max segmented(Max);
    /// Returns the inclusive prefix sums of each segment.
    segmented_cumulative_sum scanned(Sum, true);
    /// Returns the inclusive prefix products of each segment.
    segmented_cumulative_product scanned(Product, true);
    /// Returns the inclusive prefix minima of each segment.
    segmented_cumulative_min scanned(Min, true);
    /// Returns the inclusive prefix maxima of each segment.
    segmented_cumulative_max scanned(Max, true);
}

in_segments! { [] bool:
    /// Tests for each segment if all its elements are true. Returns true for an empty one.
    segmented_all segmented(All);
    /// Tests for each segment if any of its elements is true. Returns false for an empty one.
    segmented_any segmented(Any);
}

impl<T: Number> Array<T> {
    /// Returns the exclusive prefix sums of each segment, starting with 0.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1, 2, 3, 4])?;
    /// let segments = Segments::from_offsets(&Array::line(&context, &[0, 3, 4])?, 4)?;
    /// assert_eq!(a.segmented_sum_before(&segments)?.to_vec()?, [0, 1, 3, 0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn segmented_sum_before(&self, segments: &Segments) -> Result<Array<T>> {
        self.scanned(segments, Combine::Sum, false)
    }

    /// Returns the index of the minimum within each segment; -1 for an empty segment. The first of equal
    /// elements wins. NaN counts as greater than all numbers.
    pub fn segmented_argmin(&self, segments: &Segments) -> Result<Array<i64>> {
        Array::from_node(segments.inner.extreme(self.node(), Extreme::Least, Scalar::I64)?)
    }

    /// Returns the index of the maximum within each segment; -1 for an empty segment. The first of equal
    /// elements wins. NaN counts as less than all numbers.
    pub fn segmented_argmax(&self, segments: &Segments) -> Result<Array<i64>> {
        Array::from_node(segments.inner.extreme(self.node(), Extreme::Greatest, Scalar::I64)?)
    }

    /// Sorts each segment in ascending order, with NaN last.
    pub fn segmented_sort(&self, segments: &Segments) -> Result<Array<T>> {
        self.sorted_in_segments(segments, false)
    }

    /// Sorts each segment in descending order, with NaN last.
    pub fn segmented_sort_descending(&self, segments: &Segments) -> Result<Array<T>> {
        self.sorted_in_segments(segments, true)
    }

    /// Returns the indices, in the whole array, that sort each segment. The sort is stable.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[3.0f32, 1.0, 2.0, 9.0, 8.0])?;
    /// let segments = Segments::from_lengths(&Array::line(&context, &[3, 2])?, 5)?;
    /// assert_eq!(a.segmented_argsort(&segments)?.to_vec()?, [1, 2, 0, 4, 3]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn segmented_argsort(&self, segments: &Segments) -> Result<Array<i64>> {
        Array::from_node(segments.inner.sorted_places(self.node(), false)?)
    }

    fn sorted_in_segments(&self, segments: &Segments, descending: bool) -> Result<Array<T>> {
        let key = (self.node(), SortKey { descending, bits: None });
        Array::from_node(segments.inner.sort(&[key], &[])?.swap_remove(0))
    }
}
