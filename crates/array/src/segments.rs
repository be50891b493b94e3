//! Segments of a line: parts of any length, each reduced, scanned or sorted for itself.

use crate::array::{Array, evaluate_all};
use crate::closure::{Traced, combine};
use crate::element::{Arithmetic, Element, Integer, Number};
use broadloom_graph::{Combine, Direction, Extreme, Result, SortKey, Total};
use broadloom_scalar::Element as Scalar;

/// Where the segments of a line begin and end: made once, used for any lines of that length.
///
/// Segments follow each other, each with any number of elements, also none. The work is spread over elements, so that it does not matter how long
/// segments are.
///
/// ```
/// # use broadloom_array::{Array, Segments};
/// # fn context() -> broadloom_array::Context {
/// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
/// # }
/// let context = context();
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

    /// Segments of a line of so many elements, by where they begin and end: segment `k` has the places from `offsets[k]` up to but not including
    /// `offsets[k + 1]`, so there is one more offset than there are segments. The first segment starts where the line does, and the last one ends where it ends,
    /// whatever the first and the last offset say. Offsets never decrease; for others results are anything.
    pub fn from_offsets<I: Integer>(offsets: &Array<I>, length: usize) -> Result<Segments> {
        Segments::new(broadloom_graph::Segments::from_offsets(offsets.node(), Total::Host(length))?)
    }

    /// Segments of a line of so many elements, by how many each has; the last one has what is left.
    pub fn from_lengths<I: Integer>(lengths: &Array<I>, length: usize) -> Result<Segments> {
        Segments::new(broadloom_graph::Segments::from_lengths(lengths.node(), Total::Host(length))?)
    }

    /// Segments of a line, by flags: one starts where a flag is true, and at the first element. Only the device knows how many there are; nothing waits.
    pub fn from_heads(heads: &Array<bool>) -> Result<Segments> {
        Segments::new(broadloom_graph::Segments::from_heads(heads.node(), None)?)
    }

    /// The same segments, of which none has more elements than this: short ones, of up to 1024 (on a CPU 512 where it is places that are wanted, or elements of 8 bytes), are sorted faster where that is known. It is not looked at whether it is
    /// true: of a longer segment only the start is sorted, and the rest is anything.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
    /// let segments = Segments::from_lengths(&Array::line(&context, &[3, 2])?, 5)?.no_longer_than(3);
    /// let sorted = Array::line(&context, &[3, 1, 2, 9, 8])?.segmented_sort(&segments)?;
    /// assert!(sorted.plan()?.kernels.iter().any(|kernel| kernel.name == "segmented sort"));
    /// assert_eq!(sorted.to_vec()?, [1, 2, 3, 8, 9]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn no_longer_than(self, longest: usize) -> Segments {
        Segments { inner: self.inner.no_longer_than(longest), ..self }
    }

    /// How many segments there are. Waits where only the device knows it.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many elements the lines have. Waits where only the device knows it.
    pub fn length(&self) -> usize {
        match self.inner.total_length() {
            Some(length) => length.read().unwrap_or(self.inner.total_bound()),
            None => self.inner.total_bound(),
        }
    }

    /// Where they begin, and, last, where they end.
    pub fn offsets(&self) -> &Array<i64> {
        &self.offsets
    }

    /// How many elements each has.
    pub fn lengths(&self) -> Result<Array<i64>> {
        Array::from_node(self.inner.lengths()?)
    }

    /// Whether a segment begins at each element.
    pub fn heads(&self) -> Result<Array<bool>> {
        Array::from_node(self.inner.heads()?)
    }

    /// The number of the segment of each element.
    pub fn ids(&self) -> Result<Array<i32>> {
        Array::from_node(self.inner.ids()?)
    }

    /// The place of each element within its segment.
    pub fn places(&self) -> Result<Array<i64>> {
        Array::from_node(self.inner.places()?)
    }

    /// Computes what all uses share, without waiting. Evaluations keep it anyway; this is for the first of them to be short.
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

    /// The value of each element's segment: this line has one for each segment.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
    /// let a = Array::line(&context, &[1.0, 3.0, 5.0, 5.0])?;
    /// let segments = Segments::from_lengths(&Array::line(&context, &[1, 0, 3])?, 4)?;
    /// let shares = a.div(&a.segmented_sum(&segments)?.distributed(&segments)?)?;
    /// assert_eq!(shares.to_vec()?, [1.0, 3.0 / 13.0, 5.0 / 13.0, 5.0 / 13.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn distributed(&self, segments: &Segments) -> Result<Array<T>> {
        Array::from_node(segments.inner.distribute(self.node())?)
    }

    /// The elements where a flag is true, and the segments that they form: as many as before, each with what is left of the old one. Only the device knows how many
    /// elements there are; nothing waits.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
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

    /// The elements of each segment of a line combined by a closure, in their order; of none: `identity`. See [`Array::reduce_with`].
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
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

    /// Each element combined, by a closure, with all before it in its segment. See [`Array::reduce_with`].
    pub fn segmented_scan_with(
        &self,
        segments: &Segments,
        identity: T,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
    ) -> Result<Array<T>> {
        self.scanned(segments, combine("closure", identity, closure)?, true)
    }
}

impl<T: Arithmetic> Array<T> {
    /// The sum of each segment of a line; of none: 0. See [`Segments`].
    pub fn segmented_sum(&self, segments: &Segments) -> Result<Array<T>> {
        self.segmented(segments, Combine::Sum)
    }

    /// The product of each segment of a line; of none: 1.
    pub fn segmented_product(&self, segments: &Segments) -> Result<Array<T>> {
        self.segmented(segments, Combine::Product)
    }

    /// The least element of each segment of a line; of none: the greatest value of the type.
    pub fn segmented_min(&self, segments: &Segments) -> Result<Array<T>> {
        self.segmented(segments, Combine::Min)
    }

    /// The greatest element of each segment of a line; of none: the least value of the type.
    pub fn segmented_max(&self, segments: &Segments) -> Result<Array<T>> {
        self.segmented(segments, Combine::Max)
    }

    /// The sum of each element and all before it in its segment.
    pub fn segmented_cumulative_sum(&self, segments: &Segments) -> Result<Array<T>> {
        self.scanned(segments, Combine::Sum, true)
    }

    /// The product of each element and all before it in its segment.
    pub fn segmented_cumulative_product(&self, segments: &Segments) -> Result<Array<T>> {
        self.scanned(segments, Combine::Product, true)
    }

    /// The least of each element and all before it in its segment.
    pub fn segmented_cumulative_min(&self, segments: &Segments) -> Result<Array<T>> {
        self.scanned(segments, Combine::Min, true)
    }

    /// The greatest of each element and all before it in its segment.
    pub fn segmented_cumulative_max(&self, segments: &Segments) -> Result<Array<T>> {
        self.scanned(segments, Combine::Max, true)
    }
}

impl Array<bool> {
    /// Whether all elements of each segment of a line are true; of none: yes.
    pub fn segmented_all(&self, segments: &Segments) -> Result<Array<bool>> {
        self.segmented(segments, Combine::All)
    }

    /// Whether an element of each segment of a line is true; of none: no.
    pub fn segmented_any(&self, segments: &Segments) -> Result<Array<bool>> {
        self.segmented(segments, Combine::Any)
    }
}

impl<T: Number> Array<T> {
    /// The sum of all elements before each in its segment; 0 before the first.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
    /// let a = Array::line(&context, &[1, 2, 3, 4])?;
    /// let segments = Segments::from_offsets(&Array::line(&context, &[0, 3, 4])?, 4)?;
    /// assert_eq!(a.segmented_sum_before(&segments)?.to_vec()?, [0, 1, 3, 0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn segmented_sum_before(&self, segments: &Segments) -> Result<Array<T>> {
        self.scanned(segments, Combine::Sum, false)
    }

    /// The place within each segment of its least element, the first of equal ones; -1 for a segment without elements. NaN is less than no number.
    pub fn segmented_argmin(&self, segments: &Segments) -> Result<Array<i64>> {
        Array::from_node(segments.inner.extreme(self.node(), Extreme::Least, Scalar::I64)?)
    }

    /// The place within each segment of its greatest element, the first of equal ones; -1 for a segment without elements. NaN is greater than no number.
    pub fn segmented_argmax(&self, segments: &Segments) -> Result<Array<i64>> {
        Array::from_node(segments.inner.extreme(self.node(), Extreme::Greatest, Scalar::I64)?)
    }

    /// The elements of each segment of a line from the least to the greatest; NaN is behind all numbers.
    pub fn segmented_sort(&self, segments: &Segments) -> Result<Array<T>> {
        self.sorted_in_segments(segments, false)
    }

    /// The elements of each segment of a line from the greatest to the least; NaN is behind all numbers.
    pub fn segmented_sort_descending(&self, segments: &Segments) -> Result<Array<T>> {
        self.sorted_in_segments(segments, true)
    }

    /// Where the elements of each segment in order come from, as places of the whole line; equal ones keep their order.
    ///
    /// ```
    /// # use broadloom_array::{Array, Segments};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let context = context();
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
