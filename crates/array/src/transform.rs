//! Views and index transformations (tables 3 and 4 of the Accelerator paper), and NumPy slicing.

use crate::arith::Operand;
use crate::array::Array;
use crate::element::{Element, Integer};
use crate::span::Span;
use broadloom_graph::{Amount, AxisMap, Boundary, Error, Node, Result, Shape};
use broadloom_scalar::Element as Scalar;
use std::cmp::Ordering;

impl<T: Element> Array<T> {
    fn refuse<U>(&self, operation: &str, reason: String) -> Result<U> {
        Err(Error::Range { operation: operation.to_owned(), shape: self.shape().clone(), reason })
    }

    fn per_axis(&self, operation: &str, given: usize) -> Result<()> {
        if given == self.rank() {
            return Ok(());
        }
        self.refuse(operation, format!("{given} numbers are given for {} axes", self.rank()))
    }

    fn axis(&self, operation: &str, axis: usize) -> Result<()> {
        if axis < self.rank() {
            return Ok(());
        }
        Err(Error::Axis { operation: operation.to_owned(), axis, shape: self.shape().clone() })
    }

    fn affine(&self, operation: &str, axes: &[AxisMap], shape: Shape, outside: Option<Boundary<T>>) -> Result<Array<T>> {
        let outside = outside.map(|outside| outside.map(T::lanes));
        Ok(Array::from_node_unchecked(self.node().affine(operation, axes, shape, outside.as_ref())?))
    }

    /// Creates a view that keeps the whole first axis of this array, whose length only the device may know.
    /// `axes`, `offsets` and `extents` describe all axes.
    fn affine_rows(&self, operation: &str, axes: &[AxisMap], offsets: &[Amount], extents: &[Amount]) -> Result<Array<T>> {
        let shape = Shape::from_amounts(&extents[1..]);
        Ok(Array::from_node_unchecked(self.node().affine_rows(operation, &axes[1..], &offsets[1..], &shape, None)?))
    }

    fn has_length(&self) -> bool {
        self.node().length().is_some()
    }

    /// Shifts each axis by its own offset, keeping the shape.
    fn shift_each_axis(&self, operation: &str, by: &[i64], outside: Boundary<T>) -> Result<Array<T>> {
        self.per_axis(operation, by.len())?;
        self.node().moved(operation, by, &outside.map(T::lanes)).map(Array::from_node_unchecked)
    }

    /// Takes elements by first index, count and step for each axis: `R[i] = A[first + step * i]`. The
    /// boundary defines out-of-range elements.
    ///
    /// ```
    /// # use broadloom_array::{Array, Boundary};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::<i32>::iota(&context, 6)?;
    /// assert_eq!(a.section(&[(1, 3, 2)], None)?.to_vec()?, [1, 3, 5]);
    /// assert_eq!(a.section(&[(4, 4, 1)], Some(Boundary::Clamp))?.to_vec()?, [4, 5, 5, 5]);
    /// let error = a.section(&[(4, 4, 1)], None).unwrap_err();
    /// assert_eq!(error.to_string(), "`section` of an array of shape [6]: indices from 4 to 7 leave axis 0");
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn section(&self, axes: &[(i64, usize, i64)], outside: Option<Boundary<T>>) -> Result<Array<T>> {
        self.per_axis("section", axes.len())?;
        let maps: Vec<AxisMap> = axes.iter().enumerate().map(|(axis, (first, _, step))| at(axis, *first, *step)).collect();
        let shape: Vec<usize> = axes.iter().map(|(_, count, _)| *count).collect();
        self.affine("section", &maps, shape.into(), outside)
    }

    /// Returns a slice, as in NumPy: see [`Span`]. Unnamed axes are taken whole.
    ///
    /// ```
    /// # use broadloom_array::{span, Array, Span};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::<i32>::iota(&context, 12)?.reshape([3, 4])?;
    /// assert_eq!(a.slice(&span![1..])?.shape().extents(), [2, 4]);
    /// assert_eq!(a.slice(&span![.., 1])?.to_vec()?, [1, 5, 9]);
    /// assert_eq!(a.slice(&[Span::ALL.by(-1), Span::At(0)])?.to_vec()?, [8, 4, 0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn slice(&self, spans: &[Span]) -> Result<Array<T>> {
        let named = spans.iter().filter(|span| **span != Span::Added).count();
        if named > self.rank() {
            return self.refuse("slice", format!("{named} axes are named"));
        }
        let (mut maps, mut offsets, mut extents) = (vec![], vec![], vec![]);
        let rest = std::iter::repeat_n(Span::ALL, self.rank() - named);
        if let Some(Span::At(index)) = spans.first()
            && self.has_length()
        {
            let row = Array::from_node_unchecked(self.node().index_first("slice", *index as i64)?);
            return row.slice(&spans[1..]);
        }
        if let Some(part) = self.first_part(spans)? {
            return part.slice(&std::iter::once(Span::ALL).chain(spans[1..].iter().copied()).collect::<Vec<Span>>());
        }
        let shape = match spans.first() {
            None | Some(&Span::ALL) => self.node().bound(),
            Some(_) => self.shape(),
        };
        for span in spans.iter().copied().chain(rest) {
            let axis = maps.len();
            if span == Span::Added {
                extents.push(Amount::from(1));
                continue;
            }
            let Some((first, count, step)) = span.resolve(&shape.amount(axis)) else {
                let reason = match span {
                    Span::At(index) => format!("axis {axis} has no index {index}"),
                    Span::Part { .. } | Span::Added => format!("a step of 0 along axis {axis}"),
                };
                return self.refuse("slice", reason);
            };
            match span {
                Span::At(_) => maps.push(AxisMap::fixed(0)),
                Span::Part { .. } | Span::Added => {
                    maps.push(at(extents.len(), 0, step));
                    extents.push(count);
                }
            }
            offsets.push(first);
        }
        if self.has_length() && matches!(spans.first(), None | Some(&Span::ALL)) {
            return self.affine_rows("slice", &maps, &offsets, &extents);
        }
        let shape = Shape::from_amounts(&extents);
        Ok(Array::from_node_unchecked(self.node().affine_at("slice", &maps, &offsets, shape, None)?))
    }

    /// Returns a span of the first axis of an array whose length only the device knows; `None` if that needs
    /// a wait.
    fn first_part(&self, spans: &[Span]) -> Result<Option<Array<T>>> {
        let Some(Span::Part { start, end, step }) = spans.first().filter(|span| **span != Span::ALL) else { return Ok(None) };
        if !self.has_length() || *step == 0 {
            return Ok(None);
        }
        let (node, start) = (self.node(), start.unwrap_or(0));
        let part = match (usize::try_from(start), end.map(usize::try_from)) {
            (Ok(low), None) => node.first_part(low, None)?,
            (Ok(low), Some(Ok(high))) => node.first_part(low, Some(high))?,
            (Ok(low), Some(Err(_))) => node.without_last(end.unwrap_or(0).unsigned_abs())?.first_part(low, None)?,
            (Err(_), None) => node.last(start.unsigned_abs())?,
            (Err(_), Some(Err(_))) => {
                let behind = end.unwrap_or(0).unsigned_abs();
                node.without_last(behind)?.last(start.unsigned_abs().saturating_sub(behind))?
            }
            // The length determines if the span begins before it ends.
            (Err(_), Some(Ok(_))) => return Ok(None),
        };
        let part = if *step < 0 { part.reversed("slice", &[0])? } else { part };
        Ok(Some(Array::from_node_unchecked(part.every(step.unsigned_abs())?)))
    }

    /// Replaces a slice, NumPy's `a[1:-1] = b`. The values broadcast to the shape of the slice.
    ///
    /// ```
    /// # use broadloom_array::{span, Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::full(&context, [3, 4], 0)?;
    /// let b = a.replace_slice(&span![1.., 1..-1], 7)?.replace_slice(&span![0, .. ; 2], &Array::line(&context, &[1, 2])?)?;
    /// assert_eq!(b.plan()?.kernels.len(), 1);
    /// assert_eq!(b.to_vec()?, [1, 0, 2, 0, 0, 7, 7, 0, 0, 7, 7, 0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn replace_slice(&self, spans: &[Span], values: impl Operand<T>) -> Result<Array<T>> {
        let part = self.slice(spans)?;
        let values = values.operand(&part);
        let Ok(mut values) = values.broadcast_to(part.shape()) else {
            let (left, right) = (part.shape().clone(), values.shape().clone());
            return Err(Error::Shapes { operation: "replace_slice".into(), left, right });
        };
        if part.is_empty() {
            return Ok(self.clone());
        }
        let named = spans.iter().copied().filter(|span| *span != Span::Added).chain(std::iter::repeat(Span::ALL));
        let along = self.shape().extents().iter().zip(named).filter_map(|(extent, span)| span.resolve(&(*extent).into()));
        let along: Vec<(i64, usize, i64)> =
            along.map(|(first, count, step)| (first.get(), usize::try_from(count.get()).unwrap_or(0), step)).collect();
        values = values.reshape(along.iter().map(|(_, count, _)| *count).collect::<Vec<usize>>())?;
        let mut inside: Option<Array<bool>> = None;
        let mut places = vec![];
        for (axis, (first, count, step)) in along.into_iter().enumerate() {
            let extent = self.shape().extents()[axis];
            if step < 0 {
                values = values.reverse(&[axis])?;
            }
            let (first, step) = (first.min(first + step * (count as i64 - 1)), step.unsigned_abs() as usize);
            places.push((-first, extent, 1));
            // Each value is spread over all indices up to the next value. The mask keeps only the first of
            // them.
            let mut meant = Array::full(self.context(), [count, 1], true)?;
            if step > 1 {
                let mut extents = values.shape().extents().to_vec();
                extents[axis] *= step;
                values = values.add_axis(axis + 1, step)?.reshape(extents)?;
                meant = meant.pad(&[(0, 0), (0, step - 1)], false)?;
            } else if count == extent {
                continue;
            }
            let meant = meant.flatten().section(&[(-first, extent, 1)], Some(Boundary::Constant(false)))?;
            let meant = meant.reshape([&[extent], vec![1; self.rank() - axis - 1].as_slice()].concat())?;
            inside = Some(match inside {
                Some(inside) => inside.and(meant)?,
                None => meant,
            });
        }
        let values = values.section(&places, Some(Boundary::Clamp))?;
        match inside {
            Some(inside) => inside.cond(values, self),
            None => Ok(values),
        }
    }

    /// Shifts along each axis: `R[i] = A[i - by]`.
    pub fn shift(&self, by: &[i64], outside: Boundary<T>) -> Result<Array<T>> {
        self.shift_each_axis("shift", by, outside)
    }

    /// Rotates along each axis.
    pub fn rotate(&self, by: &[i64]) -> Result<Array<T>> {
        if self.node().bound().is_empty() {
            return self.per_axis("rotate", by.len()).map(|()| self.clone());
        }
        let short = |(axis, by): (usize, &i64)| {
            if axis >= self.rank() || axis == 0 && self.has_length() {
                return *by;
            }
            if Amount::from(by.saturating_abs().saturating_mul(2)).is_less(&self.node().bound().amount(axis)) {
                return *by;
            }
            // Rotates in the shorter direction.
            let extent = self.node().bound().amount(axis).get();
            let by = by.rem_euclid(extent);
            if extent - by < by { by - extent } else { by }
        };
        let by: Vec<i64> = by.iter().enumerate().map(short).collect();
        self.shift_each_axis("rotate", &by, Boundary::Wrap)
    }

    /// Reverses some axes.
    pub fn reverse(&self, axes: &[usize]) -> Result<Array<T>> {
        axes.iter().try_for_each(|axis| self.axis("reverse", *axis))?;
        Ok(Array::from_node_unchecked(self.node().reversed("reverse", axes)?))
    }

    /// Repeats the array to fill another shape of the same rank: `R[i] = A[i mod size]`.
    pub fn replicate(&self, shape: impl Into<Shape>) -> Result<Array<T>> {
        let shape = shape.into();
        self.per_axis("replicate", shape.rank())?;
        let maps: Vec<AxisMap> = (0..self.rank()).map(|axis| at(axis, 0, 1)).collect();
        self.affine("replicate", &maps, shape, Some(Boundary::Wrap))
    }

    /// Extends each axis before and after. The boundary defines the new elements.
    pub fn extend(&self, sides: &[(usize, usize)], outside: Boundary<T>) -> Result<Array<T>> {
        self.enlarged("extend", sides, outside)
    }

    /// Extends each axis before and after with wrapped elements.
    pub fn expand(&self, sides: &[(usize, usize)]) -> Result<Array<T>> {
        self.enlarged("expand", sides, Boundary::Wrap)
    }

    /// Pads each axis before and after with a constant.
    pub fn pad(&self, sides: &[(usize, usize)], value: T) -> Result<Array<T>> {
        self.enlarged("pad", sides, Boundary::Constant(value))
    }

    fn enlarged(&self, operation: &str, sides: &[(usize, usize)], outside: Boundary<T>) -> Result<Array<T>> {
        self.per_axis(operation, sides.len())?;
        if sides.iter().any(|(before, behind)| *before >= 1 << 40 || *behind >= 1 << 40) {
            return self.refuse(operation, "it would be too large".to_owned());
        }
        Ok(Array::from_node_unchecked(self.node().enlarged(operation, sides, &outside.map(T::lanes))?))
    }

    /// Permutes the axes: axis `i` of the result is axis `order[i]` of this array.
    pub fn transpose(&self, order: &[usize]) -> Result<Array<T>> {
        self.per_axis("transpose", order.len())?;
        let mut maps = vec![None; self.rank()];
        let mut extents = vec![];
        let shape = if order.first() == Some(&0) { self.node().bound() } else { self.shape() };
        for (to, from) in order.iter().enumerate() {
            self.axis("transpose", *from)?;
            if maps[*from].replace(AxisMap::same(to)).is_some() {
                return Err(Error::Axis { operation: "transpose".into(), axis: *from, shape: self.shape().clone() });
            }
            extents.push(shape.amount(*from));
        }
        let maps = maps.into_iter().flatten().collect::<Vec<_>>();
        if self.has_length() && order.first() == Some(&0) {
            return self.affine_rows("transpose", &maps, &vec![Amount::from(0); maps.len()], &extents);
        }
        self.affine("transpose", &maps, Shape::from_amounts(&extents), None)
    }

    /// Reverses the order of all axes.
    #[must_use]
    pub fn t(&self) -> Array<T> {
        let order: Vec<usize> = (0..self.rank()).rev().collect();
        crate::array::or_panic(self.transpose(&order))
    }

    /// Removes an axis of extent 1: `R[i] = A[i, 0]`. [`Array::index_axis`] takes an index of a longer one. If
    /// only the device knows the extent, the next read returns the error of another extent.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let device = broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default()));
    /// let a = Array::<i32>::iota(&broadloom_array::Context::new(&device), 6)?.reshape([2, 1, 3])?;
    /// assert_eq!(a.drop_axis(1)?.shape().extents(), [2, 3]);
    /// assert!(a.drop_axis(2).is_err());
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn drop_axis(&self, axis: usize) -> Result<Array<T>> {
        self.axis("drop_axis", axis)?;
        if self.has_length() && axis == 0 {
            return Ok(Array::from_node_unchecked(self.node().drop_first("drop_axis")?));
        }
        let extent = self.node().bound().amount(axis);
        if !extent.equals(&1.into()) {
            return Err(Error::not_single("drop_axis", axis, self.node().bound(), extent.value()));
        }
        self.index_axis(axis, 0)
    }

    /// Removes an axis by taking an index.
    pub fn index_axis(&self, axis: usize, index: usize) -> Result<Array<T>> {
        self.axis("index_axis", axis)?;
        if self.has_length() && axis == 0 {
            let index = i64::try_from(index).unwrap_or(i64::MAX - 1);
            return Ok(Array::from_node_unchecked(self.node().index_first("index_axis", index)?));
        }
        let map = |own: usize| match own {
            _ if own < axis => AxisMap::same(own),
            _ if own == axis => AxisMap::fixed(i64::try_from(index).unwrap_or(i64::MAX)),
            _ => AxisMap::same(own - 1),
        };
        let maps: Vec<AxisMap> = (0..self.rank()).map(map).collect();
        let shape = if axis > 0 { self.node().bound() } else { self.shape() }.without(&[axis as u8], false);
        if self.has_length() && axis > 0 {
            let offsets: Vec<Amount> = maps.iter().map(|map| map.offset.into()).collect();
            return self.affine_rows("index_axis", &maps, &offsets, &shape.amounts());
        }
        self.affine("index_axis", &maps, shape, None)
    }

    /// Inserts an axis along which the elements are repeated: `R[i, j, k] = A[i, k]`.
    pub fn add_axis(&self, axis: usize, extent: usize) -> Result<Array<T>> {
        if axis > self.rank() {
            return Err(Error::Axis { operation: "add_axis".into(), axis, shape: self.shape().clone() });
        }
        let maps: Vec<AxisMap> = (0..self.rank()).map(|own| AxisMap::same(if own < axis { own } else { own + 1 })).collect();
        let mut extents = if axis > 0 { self.node().bound() } else { self.shape() }.amounts();
        extents.insert(axis, extent.into());
        if self.has_length() && axis > 0 {
            return self.affine_rows("add_axis", &maps, &vec![Amount::from(0); maps.len()], &extents);
        }
        self.affine("add_axis", &maps, Shape::from_amounts(&extents), None)
    }

    /// Broadcasts to a shape.
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Array<T>> {
        Ok(Array::from_node_unchecked(self.node().broadcast_to(&shape.into())?))
    }

    /// Broadcasts this array to the common shape of both arrays, as arithmetic on them does.
    ///
    /// The planner does not assume that arrays of equal shapes stay equal in size: a plan also serves other
    /// sizes, and computes positions in each array separately. This call declares the sizes equal.
    ///
    /// ```
    /// # use broadloom_array::{Array, Boundary, Context};
    /// # let device = broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default()));
    /// # let context = Context::new(&device);
    /// let (red, green) = (Array::line(&context, &[1, 2, 3])?, Array::line(&context, &[4, 5, 6])?);
    /// let places = Array::line(&context, &[2, 9])?;
    /// let turned = |plane: &Array<i32>| plane.broadcast_with(&red)?.gather(&[&places], Boundary::Clamp);
    /// assert_eq!((turned(&red)? + turned(&green)?).to_vec()?, [9, 9]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn broadcast_with<U: Element>(&self, other: &Array<U>) -> Result<Array<T>> {
        self.zip_with(other, |own, _| own)
    }

    /// Reshapes to another shape with the same number of elements.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Array<T>> {
        Ok(Array::from_node_unchecked(self.node().reshape(shape.into())?))
    }

    /// Returns all elements in rows of a width: `R[i, j] = A[i * width + j]`. The last elements are dropped
    /// if they do not fill a row. Unlike [`reshape`](Self::reshape) it accepts any length that only the
    /// device knows.
    ///
    /// ```
    /// # use broadloom_array::{Array, span};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::<i32>::iota(&context, 9)?;
    /// let pairs = a.pack(&a.ne(4)?)?.slice(&span![1..])?.rows_of(2)?;
    /// assert_eq!(pairs.sum_along(&[1])?.to_vec()?, [3, 8, 13]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn rows_of(&self, width: usize) -> Result<Array<T>> {
        Ok(Array::from_node_unchecked(self.node().rows_of(width)?))
    }

    /// Flattens to one axis.
    #[must_use]
    pub fn flatten(&self) -> Array<T> {
        if self.rank() == 1 {
            return self.clone();
        }
        crate::array::or_panic(self.node().flattened().map(Array::from_node_unchecked))
    }

    /// Concatenates arrays along an axis.
    pub fn concatenate(axis: usize, parts: &[&Array<T>]) -> Result<Array<T>> {
        if parts.is_empty() {
            let reason = "there are no arrays".to_owned();
            return Err(Error::Range { operation: "concatenate".into(), shape: Shape::from(0), reason });
        }
        let nodes: Vec<&Node> = parts.iter().map(|part| part.node()).collect();
        Ok(Array::from_node_unchecked(Node::concatenate(axis, &nodes)?))
    }

    /// Gathers elements at given indices, one index array per axis: `R[i, j] = A[I[i, j], J[i, j]]`. The
    /// index arrays broadcast to one shape. [`take`](Self::take) is for indices along one axis.
    ///
    /// ```
    /// # use broadloom_array::{Array, Boundary};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[10, 20, 30])?;
    /// let at = Array::line(&context, &[2u8, 0, 9])?;
    /// assert_eq!(a.gather(&[&at], Boundary::Constant(-1))?.to_vec()?, [30, 10, -1]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn gather<I: Integer>(&self, indices: &[&Array<I>], outside: Boundary<T>) -> Result<Array<T>> {
        let indices: Vec<&Node> = indices.iter().map(|index| index.node()).collect();
        Ok(Array::from_node_unchecked(self.node().gather(&indices, &outside.map(T::lanes))?))
    }

    /// Takes elements at indices along an axis. The axes of the indices replace that axis: `R[i, j] = A[I[i],
    /// j]`. An index without axes removes the axis. Unlike the index of [`index_axis`](Self::index_axis), it
    /// is a parameter of the plan, so a loop over indices plans once.
    ///
    /// ```
    /// # use broadloom_array::{Array, Boundary};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[30, 31, 10, 11, 20, 21], [3, 2])?;
    /// let at = Array::line(&context, &[2, 0, 2])?;
    /// assert_eq!(a.take(0, &at, Boundary::Clamp)?.to_vec()?, [20, 21, 30, 31, 20, 21]);
    /// // Rows in the order of what stands first in them.
    /// let order = a.index_axis(1, 0)?.argsort(0)?;
    /// assert_eq!(a.take(0, &order, Boundary::Clamp)?.to_vec()?, [10, 11, 20, 21, 30, 31]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn take<I: Integer>(&self, axis: usize, indices: &Array<I>, outside: Boundary<T>) -> Result<Array<T>> {
        self.axis("take", axis)?;
        if self.rank() == 1 {
            return self.gather(&[indices], outside);
        }
        if let Some(length) = self.node().length().filter(|_| axis > 0 && !indices.has_length()) {
            // Only the device knows the number of rows. Elements are taken from each row in the same way.
            let (own, at) = (self.node().bound().amounts(), indices.shape().amounts());
            let shape = Shape::from_amounts(&[&own[..axis], &at, &own[axis + 1..]].concat());
            let row = shape.without(&[0], false);
            let ones = vec![Amount::from(1); own.len() - axis - 1];
            let mut nodes = vec![Node::position(self.context(), shape, 0, Scalar::I64)?.shortened(length)?];
            for other in 1..own.len() {
                nodes.push(match other.cmp(&axis) {
                    Ordering::Less => Node::position(self.context(), row.clone(), other - 1, Scalar::I64)?,
                    Ordering::Equal => indices.node().reshape(Shape::from_amounts(&[&at[..], &ones].concat()))?,
                    Ordering::Greater => Node::position(self.context(), row.clone(), other + at.len() - 2, Scalar::I64)?,
                });
            }
            let nodes: Vec<&Node> = nodes.iter().collect();
            return Ok(Array::from_node_unchecked(self.node().gather(&nodes, &outside.map(T::lanes))?));
        }
        if axis == 0 && (self.has_length() || indices.has_length()) {
            // Only the device knows the number of rows, or the number of rows that are taken.
            let behind = Shape::from_amounts(&self.node().bound().amounts()[1..]);
            let mut row: Vec<Amount> = indices.node().bound().amounts().into_iter().skip(1).collect();
            row.extend(std::iter::repeat_n(Amount::from(1), behind.rank()));
            let mut nodes = vec![match indices.rank() {
                0 => indices.node().clone(),
                _ => indices.node().reshape_rows(&Shape::from_amounts(&row))?,
            }];
            for axis in 0..behind.rank() {
                nodes.push(Node::position(self.context(), behind.clone(), axis, Scalar::I64)?);
            }
            let nodes: Vec<&Node> = nodes.iter().collect();
            return Ok(Array::from_node_unchecked(self.node().gather(&nodes, &outside.map(T::lanes))?));
        }
        let (own, at) = (self.shape().amounts(), indices.shape().amounts());
        let (before, behind) = (&own[..axis], &own[axis + 1..]);
        let shape = Shape::from_amounts(&[before, &at, behind].concat());
        let along = |own: usize| match own.cmp(&axis) {
            Ordering::Less => Node::position(self.context(), shape.clone(), own, Scalar::I64),
            Ordering::Equal => {
                let ones = vec![Amount::from(1); behind.len()];
                indices.reshape(Shape::from_amounts(&[&at[..], &ones].concat())).map(|at| at.node().clone())
            }
            Ordering::Greater => Node::position(self.context(), shape.clone(), own + indices.rank() - 1, Scalar::I64),
        };
        let nodes = (0..self.rank()).map(along).collect::<Result<Vec<Node>>>()?;
        let nodes: Vec<&Node> = nodes.iter().collect();
        Ok(Array::from_node_unchecked(self.node().gather(&nodes, &outside.map(T::lanes))?))
    }
}

fn at(axis: usize, offset: i64, stride: i64) -> AxisMap {
    AxisMap { offset, stride, ..AxisMap::same(axis) }
}
