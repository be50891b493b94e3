//! Segments of a line: parts of any length, each reduced, scanned or sorted for itself.

use crate::array::{Array, evaluate_all};
use crate::closure::{Traced, combine};
use crate::element::{Arithmetic, Element, Integer, Number};
use broadloom_graph::{Combine, Elementwise, Error, Node, Result, SortKey};
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
    offsets: Array<i64>,
    starts: Array<bool>,
    longest: Option<usize>,
}

impl Segments {
    /// Segments of a line of so many elements, by where they begin and end: segment `k` has the places from `offsets[k]` up to but not including
    /// `offsets[k + 1]`, so there is one more offset than there are segments. The first segment starts where the line does, and the last one ends where it ends,
    /// whatever the first and the last offset say. Offsets never decrease; for others results are anything.
    pub fn from_offsets<I: Integer>(offsets: &Array<I>, length: usize) -> Result<Segments> {
        let offsets = offsets.node().segment_offsets(length)?;
        let starts = Array::from_node(offsets.segment_starts(length)?)?;
        Ok(Segments { offsets: Array::from_node(offsets)?, starts, longest: None })
    }

    /// Segments of a line of so many elements, by how many each has; the last one has what is left.
    pub fn from_lengths<I: Integer>(lengths: &Array<I>, length: usize) -> Result<Segments> {
        if lengths.rank() != 1 {
            let (operation, reason) = ("segments".to_owned(), "an array with one axis is wanted".to_owned());
            return Err(Error::Range { operation, shape: lengths.shape().clone(), reason });
        }
        let ends = lengths.cast::<i64>()?.cumulative_sum(0)?;
        Segments::from_offsets(&Array::concatenate(0, &[&Array::full(lengths.context(), 1, 0i64)?, &ends])?, length)
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
        Segments { longest: Some(longest), ..self }
    }

    /// How many segments there are.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many elements the lines have.
    pub fn length(&self) -> usize {
        self.starts.len()
    }

    /// Where they begin, and, last, where they end.
    pub fn offsets(&self) -> &Array<i64> {
        &self.offsets
    }

    /// How many elements each has.
    pub fn lengths(&self) -> Result<Array<i64>> {
        let part = |first: i64| self.offsets.section(&[(first, self.count(), 1)], None);
        part(1)?.sub(&part(0)?)
    }

    /// Computes what all uses share, without waiting. Worth it where the same segments are used in more than one evaluation.
    pub fn evaluate(&self) -> Result<()> {
        evaluate_all(&[self.offsets.node(), self.starts.node()])
    }

    /// A line of another length is refused.
    fn check<T: Element>(&self, operation: &str, line: &Array<T>) -> Result<()> {
        if line.node().is_shaped_like(self.starts.node()) {
            return Ok(());
        }
        let (left, right) = (line.shape().clone(), self.starts.shape().clone());
        Err(Error::Shapes { operation: operation.to_owned(), left, right })
    }
}

impl<T: Element> Array<T> {
    fn segmented(&self, segments: &Segments, combine: Combine) -> Result<Array<T>> {
        segments.check(&format!("segmented {}", combine.name()), self)?;
        Array::from_node(self.node().segmented_reduce(segments.offsets.node(), combine)?)
    }

    fn segmented_scan(&self, segments: &Segments, combine: Combine) -> Result<Array<T>> {
        segments.check(&format!("segmented {} scan", combine.name()), self)?;
        Array::from_node(self.node().segmented_scan(segments.starts.node(), combine, 0)?)
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
        self.segmented_scan(segments, combine("closure", identity, closure)?)
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
        self.segmented_scan(segments, Combine::Sum)
    }

    /// The product of each element and all before it in its segment.
    pub fn segmented_cumulative_product(&self, segments: &Segments) -> Result<Array<T>> {
        self.segmented_scan(segments, Combine::Product)
    }

    /// The least of each element and all before it in its segment.
    pub fn segmented_cumulative_min(&self, segments: &Segments) -> Result<Array<T>> {
        self.segmented_scan(segments, Combine::Min)
    }

    /// The greatest of each element and all before it in its segment.
    pub fn segmented_cumulative_max(&self, segments: &Segments) -> Result<Array<T>> {
        self.segmented_scan(segments, Combine::Max)
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
        segments.check("segmented sum scan", self)?;
        // A segment starts with nothing, and each place has what is before it.
        let zero = self.beside(T::ZERO);
        let before = self.shift(&[1], crate::Boundary::Constant(T::ZERO))?;
        let before = Node::elementwise(Elementwise::Select, &[segments.starts.node(), zero.node(), before.node()])?;
        Array::<T>::from_node(before)?.segmented_scan(segments, Combine::Sum)
    }

    /// The elements of each segment of a line from the least to the greatest; NaN is behind all numbers.
    pub fn segmented_sort(&self, segments: &Segments) -> Result<Array<T>> {
        self.sorted_in_segments(segments, false, false)
    }

    /// The elements of each segment of a line from the greatest to the least; NaN is behind all numbers.
    pub fn segmented_sort_descending(&self, segments: &Segments) -> Result<Array<T>> {
        self.sorted_in_segments(segments, true, false)
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
        self.sorted_in_segments(segments, false, true)
    }

    /// The elements of each segment in order, or where they come from.
    fn sorted_in_segments<U: Element>(&self, segments: &Segments, descending: bool, places: bool) -> Result<Array<U>> {
        segments.check("segmented sort", self)?;
        let origins = self.node().position_like(0, Scalar::I64)?;
        let key = (self.node(), SortKey { descending, bits: None });
        let values: &[&Node] = if places { &[&origins] } else { &[] };
        let mut sorted = Node::segmented_sort(segments.offsets.node(), segments.longest, &[key], values)?;
        Array::from_node(sorted.swap_remove(usize::from(places)))
    }
}
