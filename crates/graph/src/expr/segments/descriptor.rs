//! Descriptors of segments: what they are made from, and checks against lines.

use super::elements::{binary, call, convert, integers, scalar};
use super::form_cache::{FormCache, StoredForms};
use super::measure::{SegmentCount, Total};
use super::offsets::{bounds, held_length, narrow_sum, padded};
use crate::expr::amount::Amount;
use crate::expr::check::same_context;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Length, Node};
use crate::expr::shape::Shape;
use broadloom_scalar::{BinaryOp, Builder, Element, Literal, Type};
use broadloom_skeleton::{Boundary, Combine};
use std::sync::Arc;

/// Segments of a line; cheap to clone. Clones share all forms.
///
/// ```
/// use broadloom_graph::{Combine, Context, Node, Segments, Total};
/// use broadloom_device::Device;
/// use broadloom_interp::Interp;
/// use broadloom_scalar::Type;
///
/// let context = Context::new(&Device::new(Interp::new(Default::default())));
/// let x = Node::upload(&context, Type::U8, 6.into(), &[1, 2, 3, 4, 5, 6])?;
/// // (1, 2, 3), (), (4, 5, 6)
/// let segments = Segments::from_lengths(&Node::upload(&context, Type::U8, 3.into(), &[3, 0, 3])?, Total::Host(6))?;
/// let found = segments.reduce(&[(&x, Combine::Sum), (&x, Combine::Max)])?;
/// assert_eq!(context.explain(&found)?.kernels.len(), 2);
/// assert_eq!(found[0].read()?.to_bytes(), [6, 0, 15]);
/// assert_eq!(found[1].read()?.to_bytes(), [3, 0, 6]);
/// # Ok::<(), broadloom_graph::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Segments {
    pub(super) data: Arc<SegmentsData>,
    /// Upper bound of the lengths, if one is known.
    pub(super) longest: Option<Amount>,
}

#[derive(Debug)]
pub(super) struct SegmentsData {
    pub(super) count: SegmentCount,
    pub(super) total: SegmentCount,
    /// Offsets, one more than the bound on the number of segments, an `i32` or `i64`. They never decrease if
    /// the descriptor is valid; those after the last segment are the number of elements.
    pub(super) bounds: Node,
    pub(super) forms: FormCache,
    /// The segments and flags of the pack that made these, if any.
    pub(super) origin: Option<PackOrigin>,
}

/// Segments from which a pack selected elements.
#[derive(Debug)]
pub(super) struct PackOrigin {
    pub(super) segments: Segments,
    pub(super) flags: Node,
    /// Packed lines, each with the line that it was packed from.
    pub(super) lines: Vec<(Node, Node)>,
}

impl Segments {
    /// Makes segments from the number of elements of each: a line of integers, which may have a length that
    /// only the device knows. Negative numbers count as 0.
    ///
    /// The lengths should sum up to the total. If the sum is less, the last segment gets the remaining
    /// elements; elements beyond the total are left out.
    pub fn from_lengths(lengths: &Node, total: Total) -> Result<Segments> {
        integers("segments", lengths)?;
        let context = lengths.context();
        let count = SegmentCount::of(lengths)?;
        let sum = || -> Result<Node> {
            let [lengths] = call(&held_length(lengths.ty(), false)?, &[lengths])?;
            lengths.reduce(Combine::Sum, &[0])
        };
        let total = SegmentCount::of_total(context, total, sum)?;
        Segments::with_lengths(lengths, count, total, None)
    }

    /// Makes segments with known numbers. Lengths that the device itself counted are kept as a form.
    pub(super) fn with_lengths(
        lengths: &Node,
        count: SegmentCount,
        total: SegmentCount,
        origin: Option<PackOrigin>,
    ) -> Result<Segments> {
        let forms = FormCache::default();
        if count.is_none() {
            let bounds = Node::fill(lengths.context(), Shape::from(1), &[Literal::from(0i64)])?;
            return Ok(Segments::made(count, total, bounds, forms, origin));
        }
        let narrow = total.is_narrow() && count.is_narrow();
        // Offsets are stored in the form that operations read: one more than there are segments, and clamped
        // to the line.
        let lengths = padded(lengths, count.one_more())?;
        let [held] = call(&held_length(lengths.ty(), narrow)?, &[&lengths])?;
        let combine = if narrow { narrow_sum()? } else { Combine::Sum };
        let bounds = forms.keep(bounds(&held.scan(combine, 0, false)?, &count.count, &total, narrow)?);
        Ok(Segments::made(count, total, bounds, forms, origin))
    }

    /// Makes segments from offsets: segment `k` has the indices from `offsets[k]` up to but not including
    /// `offsets[k + 1]`, so there is one more offset than there are segments. The line may have a length that
    /// only the device knows.
    ///
    /// The first segment always starts at the start of the line, and the last one ends at its end, whatever
    /// the first and the last offset are. Offsets never decrease; for others the results are arbitrary, but
    /// no access is outside the line. [`Total::Within`] and [`Total::Unknown`] use the last offset.
    pub fn from_offsets(offsets: &Node, total: Total) -> Result<Segments> {
        offsets.checked_offsets("segments")?;
        let context = offsets.context();
        let count = match offsets.length() {
            None => SegmentCount::host(context, offsets.bound().size().minus(&1.into()))?,
            Some(length) => {
                let fewer = binary(BinaryOp::Sub, &SegmentCount::device(length)?.count, &scalar(context, 1i64)?)?;
                SegmentCount::device(&Length::new(&fewer, length.amount().minus(&1.into()))?)?
            }
        };
        let last = || -> Result<Node> {
            let last = offsets.gather(&[&count.count], &Boundary::Clamp)?;
            let [last] = call(&held_length(offsets.ty(), false)?, &[&last])?;
            Ok(last)
        };
        let total = SegmentCount::of_total(context, total, last)?;
        let bounds = match total.length.is_none() && offsets.holds_segments(&total.bound) {
            true => offsets.clone(),
            false => bounds(&padded(offsets, offsets.bound().clone())?, &count.count, &total, false)?,
        };
        Ok(Segments::made(count, total, bounds, FormCache::default(), None))
    }

    /// Makes segments from forms that [`Segments::stored_forms`] or [`Segments::kept_forms`] returned for the
    /// same number of elements, from their first elements, or from symbols in their place. The caller
    /// promises that they are such forms: they are used unchecked.
    pub fn from_stored_forms(stored: &StoredForms, total: impl Into<Amount>) -> Result<Segments> {
        let offsets = &stored.offsets;
        offsets.checked_offsets("segments")?;
        let count = SegmentCount::host(offsets.context(), offsets.bound().size().minus(&1.into()))?;
        let (total, forms) = (SegmentCount::host(offsets.context(), total)?, FormCache::default());
        stored.ids.iter().for_each(|ids| forms.set_ids(ids));
        stored.heads.iter().for_each(|heads| forms.set_heads(heads));
        Ok(Segments::made(count, total, offsets.clone(), forms, None))
    }

    /// Makes segments from flags, one for each element: a segment starts at each true flag, and at the first
    /// element. No segment is empty.
    ///
    /// If the host does not know the number of segments, the device counts them; the bound is then the number
    /// of elements.
    pub fn from_heads(heads: &Node, count: Option<usize>) -> Result<Segments> {
        heads.check_line("segments")?;
        heads.check_type("segments", Type::BOOL)?;
        let (context, total) = (heads.context(), SegmentCount::of(heads)?);
        let f = Builder::function("head");
        let (place, head) = (f.parameter("place", Type::I64), f.parameter("head", Type::BOOL));
        let function = f.finish_function(&[f.or(head, f.eq(place, 0i64))])?;
        let [heads] = call(&function, &[&total.places(Element::I64)?, heads])?;
        let forms = FormCache::default();
        forms.set_heads(&heads);
        if total.is_none() || count == Some(0) {
            let bounds = Node::fill(context, Shape::from(1), &[Literal::from(0i64)])?;
            return Ok(Segments::made(SegmentCount::host(context, 0)?, total, bounds, forms, None));
        }
        let (starts, found) = total.places(Element::I64)?.pack_counted(&heads)?;
        let (starts, found) = (forms.keep(starts), forms.keep(found));
        let limit = convert(&found, Element::I64)?;
        let (count, limit) = match count {
            Some(count) => {
                let count = SegmentCount::host(context, count)?;
                let limit = binary(BinaryOp::Min, &limit, &count.count)?;
                (count, limit)
            }
            None => (SegmentCount::device(&Length::of(found, total.bound.clone()))?, limit),
        };
        // There are as many starts as true flags.
        let places = Node::position(context, count.one_more(), 0, Element::I64)?;
        let bounds = bounds(&starts.gather(&[&places], &Boundary::Clamp)?, &limit, &total, false)?;
        Ok(Segments::made(count, total, bounds, forms, None))
    }

    pub(super) fn made(
        count: SegmentCount,
        total: SegmentCount,
        bounds: Node,
        forms: FormCache,
        origin: Option<PackOrigin>,
    ) -> Segments {
        Segments { data: Arc::new(SegmentsData { count, total, bounds, forms, origin }), longest: None }
    }

    /// Replaces lengths by numbers that the host has learned ([`Length::learn`]). Forms made so far are
    /// shared.
    pub fn learned(&self) -> Result<Segments> {
        let (count, total) = (&self.data.count, &self.data.total);
        let is_learned = |measure: &SegmentCount| measure.length.as_ref().is_some_and(|length| length.known_amount().is_some());
        if !is_learned(count) && !is_learned(total) {
            return Ok(self.clone());
        }
        let (count, total) = (count.learned(self.context())?, total.learned(self.context())?);
        // Offsets after the last segment are the number of elements, so the first ones suffice.
        let bounds = self.data.bounds.first_elements(None, count.bound.plus(&1.into()))?;
        let forms = self.data.forms.learned(&count, &total)?;
        let data = SegmentsData { count, total, bounds, forms, origin: None };
        Ok(Segments { data: Arc::new(data), longest: self.longest.clone() })
    }

    /// Returns these segments with the promise that none has more elements than `longest`. Short segments are
    /// then sorted faster. The promise is not checked: of a longer segment only the start is sorted, and the
    /// rest is arbitrary.
    pub fn no_longer_than(&self, longest: impl Into<Amount>) -> Segments {
        Segments { longest: Some(longest.into()), ..self.clone() }
    }

    /// Returns the context of the forms.
    pub fn context(&self) -> &Context {
        self.data.bounds.context()
    }

    /// Returns the number of segments if only the device knows it.
    pub fn count_length(&self) -> Option<&Length> {
        self.data.count.length.as_ref()
    }

    /// Returns the number of elements, or an upper bound if only the device knows it. Does not wait.
    pub fn total_bound(&self) -> usize {
        self.data.total.fixed()
    }

    /// Returns the number of elements if only the device knows it.
    pub fn total_length(&self) -> Option<&Length> {
        self.data.total.length.as_ref()
    }

    /// Returns the number of elements.
    pub fn total(&self) -> Total {
        match &self.data.total.length {
            Some(length) => Total::Device(length.clone()),
            None => Total::Amount(self.data.total.bound.clone()),
        }
    }

    /// Returns whether both are clones of one descriptor.
    pub fn is_same(&self, other: &Segments) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }

    /// Refuses a line whose length differs from a number.
    pub(super) fn checked(&self, operation: &str, measure: &SegmentCount, line: &Node) -> Result<()> {
        same_context(operation, &[line, &self.data.bounds])?;
        if line.bound().rank() == 1 && SegmentCount::of(line)?.equals(measure)? {
            return Ok(());
        }
        let (left, right) = (line.shape().clone(), Shape::from(measure.read()?));
        Err(Error::Shapes { operation: operation.to_owned(), left, right })
    }

    /// Refuses a line that does not have one value for each element.
    pub(super) fn check_elements(&self, operation: &str, line: &Node) -> Result<()> {
        self.checked(operation, &self.data.total, line)
    }

    /// Refuses a line that does not have one value for each segment.
    pub(super) fn check_segments(&self, operation: &str, line: &Node) -> Result<()> {
        self.checked(operation, &self.data.count, line)
    }

    /// Refuses a descriptor with another number of segments.
    pub(super) fn check_alike(&self, operation: &str, other: &Segments) -> Result<()> {
        same_context(operation, &[&self.data.bounds, &other.data.bounds])?;
        let (own, theirs) = (&self.data.count, &other.data.count);
        if own.equals(theirs)? {
            return Ok(());
        }
        let (left, right) = (Shape::from(own.read()?), Shape::from(theirs.read()?));
        Err(Error::Shapes { operation: operation.to_owned(), left, right })
    }
}
