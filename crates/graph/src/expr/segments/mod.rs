//! Ragged data: lines whose elements are grouped into segments of any length.
//!
//! A [`Segments`] is a descriptor. It defines where each segment of a line begins and ends, and is used with
//! any number of lines of that length. Its forms are made on first use and kept in the descriptor:
//!
//! | form | element | one for each |
//! | --- | --- | --- |
//! | [lengths](Segments::lengths) | `i64` | segment |
//! | [offsets](Segments::offsets) | `i64` | segment, and one more |
//! | [head flags](Segments::heads) | `bool` | element |
//! | [ids](Segments::ids) | `i32` | element |
//!
//! Forms are nodes, so nothing is computed before it is used. A form that a plan computes anyway is written
//! to memory while the descriptor is alive, and no later evaluation computes it again.
//!
//! The number of elements and the number of segments are each known on the host, or a [`Length`] that only
//! the device knows. Nothing waits for a length. If a line is not known to have the length of the descriptor,
//! the numbers are compared, which waits.
//!
//! Work is spread over elements. An empty segment costs at most as much as an element.

mod arrange;
mod forms;
mod line;
mod order;
mod pack;
mod pick;
mod reduce;
mod scan;

pub use pick::Checked;
pub use scan::Direction;

use crate::expr::amount::Amount;
use crate::expr::check::same_context;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::known::known;
use crate::expr::node::{Context, Length, Node};
use crate::expr::op::zeros;
use crate::expr::shape::Shape;
use crate::expr::view::AxisMap;
use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type};
use broadloom_skeleton::{Boundary, Combine};
use forms::Forms;
pub use forms::StoredForms;
use line::{NARROW, held_length, held_offset};
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
    data: Arc<Data>,
    /// Upper bound of the lengths, if one is known.
    longest: Option<Amount>,
}

#[derive(Debug)]
struct Data {
    count: Measure,
    total: Measure,
    /// Offsets, one more than the bound on the number of segments, an `i32` or `i64`. They never decrease if
    /// the descriptor is valid; those after the last segment are the number of elements.
    bounds: Node,
    forms: Forms,
    /// The segments and flags of the pack that made these, if any.
    origin: Option<pack::Origin>,
}

/// Number of elements of all segments.
#[derive(Clone, Debug)]
pub enum Total {
    /// Number known to the host.
    Host(usize),
    /// Number known to the host that may depend on the extents of a function's inputs.
    Amount(Amount),
    /// Number that only the device knows.
    Device(Length),
    /// Sum of the lengths, computed by the device, with this upper bound.
    Within(usize),
    /// Sum of the lengths. The host waits for it once, when the descriptor is made.
    Unknown,
}

impl Total {
    /// Returns the number of elements of a line. Does not wait.
    pub fn of(line: &Node) -> Total {
        match line.length() {
            Some(length) => Total::Device(length.clone()),
            None => Total::Amount(line.bound().size()),
        }
    }
}

/// Number of segments or elements.
#[derive(Clone, Debug)]
struct Measure {
    /// Upper bound; the number itself if there is no length.
    bound: Amount,
    length: Option<Length>,
    /// The number as an `i64` without axes.
    count: Node,
}

impl Measure {
    fn host(context: &Context, bound: impl Into<Amount>) -> Result<Measure> {
        let bound = bound.into();
        let count = number(context, &bound)?;
        Ok(Measure { bound, length: None, count })
    }

    fn device(length: &Length) -> Result<Measure> {
        let count = Node::elementwise(Elementwise::Convert(Element::I64), &[length.count()])?;
        Ok(Measure { bound: length.amount().clone(), length: Some(length.clone()), count })
    }

    /// Returns the number of elements of a line.
    fn of(line: &Node) -> Result<Measure> {
        match line.length() {
            Some(length) => Measure::device(length),
            None => Measure::host(line.context(), line.bound().size()),
        }
    }

    /// Returns the shape of a line with room for the bound.
    fn shape(&self) -> Shape {
        Shape::from_amounts(std::slice::from_ref(&self.bound))
    }

    /// Returns the shape of a line with room for one more than the bound.
    fn one_more(&self) -> Shape {
        Shape::from_amounts(&[self.bound.plus(&1.into())])
    }

    /// Returns whether the bound is zero.
    fn is_none(&self) -> bool {
        self.bound.equals(&0.into())
    }

    /// Returns whether 32-bit indices suffice for the bound.
    fn is_narrow(&self) -> bool {
        !Amount::from(NARROW).is_less(&self.bound)
    }

    /// Returns the bound as a number. During tracing, the trace becomes valid for this bound only.
    fn fixed(&self) -> usize {
        usize::try_from(self.bound.get()).unwrap_or(0)
    }

    /// Reads the number to the host; waits for a length.
    fn read(&self) -> Result<usize> {
        self.length.as_ref().map_or_else(|| Ok(self.fixed()), Length::read)
    }

    /// Returns whether both numbers are equal. Waits if that is not known.
    fn equals(&self, other: &Measure) -> Result<bool> {
        match (&self.length, &other.length) {
            (None, None) => Ok(self.bound.equals(&other.bound)),
            (Some(own), Some(theirs)) if own.is_same(theirs) => Ok(true),
            _ => Ok(self.read()? == other.read()?),
        }
    }

    /// Replaces a length by its number if the host has learned it.
    fn learned(&self, context: &Context) -> Result<Measure> {
        match self.length.as_ref().and_then(Length::known_amount) {
            Some(known) => Measure::host(context, known),
            None => Ok(self.clone()),
        }
    }

    /// Returns the first elements of a line, up to the number.
    fn first_of(&self, line: &Node) -> Result<Node> {
        line.first_elements(self.length.as_ref(), self.bound.clone())
    }

    /// Shortens a line with room for the bound to the number.
    fn cut(&self, line: Node) -> Result<Node> {
        match &self.length {
            // A pattern without other users takes the length itself, so its result needs no copy.
            Some(length) if line.is_own_pattern() => Ok(line.with_length(Some(length.clone()))),
            Some(length) => line.shortened(length),
            None => Ok(line),
        }
    }

    /// Returns the indices of a line with this number of elements.
    fn places(&self, element: Element) -> Result<Node> {
        Ok(Node::position(self.count.context(), self.shape(), 0, element)?.with_length(self.length.clone()))
    }

    /// Returns a line of this number of elements, all with one value.
    fn filled(&self, value: &[Literal]) -> Result<Node> {
        Ok(Node::fill(self.count.context(), self.shape(), value)?.with_length(self.length.clone()))
    }

    /// Returns the sum of two numbers.
    fn plus(&self, other: &Measure) -> Result<Measure> {
        let bound = self.bound.plus(&other.bound);
        if self.length.is_none() && other.length.is_none() {
            return Measure::host(self.count.context(), bound);
        }
        Measure::device(&Length::new(&binary(BinaryOp::Add, &self.count, &other.count)?, bound)?)
    }
}

/// Returns an amount as an `i64` without axes.
fn number(context: &Context, amount: &Amount) -> Result<Node> {
    match amount.is_known() {
        true => scalar(context, amount.get()),
        false => Ok(Node::counting(context, amount)),
    }
}

/// Returns a value without axes.
fn scalar(context: &Context, value: impl Into<Literal>) -> Result<Node> {
    Node::fill(context, Shape::from([]), &[value.into()])
}

fn binary(op: BinaryOp, a: &Node, b: &Node) -> Result<Node> {
    Node::elementwise(Elementwise::Binary(op), &[a, b])
}

fn convert(node: &Node, element: Element) -> Result<Node> {
    if node.ty().element() == element {
        return Ok(node.clone());
    }
    Node::elementwise(Elementwise::Convert(element), &[node])
}

/// Returns the results of a function of elements.
fn call<const N: usize>(function: &Function, inputs: &[&Node]) -> Result<[Node; N]> {
    let results = Node::call(function, inputs)?;
    let wrong = |_| Error::Plan { what: function.name().to_owned(), reason: "a function with other results".into() };
    <[Node; N]>::try_from(results).map_err(wrong)
}

/// Returns the second operand if the first is true, else the third; for vectors, all lanes.
fn choose(condition: &Node, yes: &Node, no: &Node) -> Result<Node> {
    let lanes = yes.ty().lanes();
    if lanes == 1 {
        return Node::elementwise(Elementwise::Select, &[condition, yes, no]);
    }
    let all = Node::elementwise(Elementwise::Vector, &vec![condition; lanes])?;
    Node::elementwise(Elementwise::Select, &[&all, yes, no])
}

/// Refuses an array that is not a line of integers.
fn integers(operation: &str, line: &Node) -> Result<()> {
    line.check_line(operation)?;
    line.check_integers(operation)
}

/// Pads a line to a shape with zeros after its length.
fn padded(line: &Node, shape: Shape) -> Result<Node> {
    let zero = Boundary::Constant(zeros(line.ty()));
    match line.length() {
        None => line.affine("segments", &[AxisMap::same(0)], shape, Some(&zero)),
        Some(_) => line.gather(&[&Node::position(line.context(), shape, 0, Element::I64)?], &zero),
    }
}

/// Returns the saturating sum of two numbers, with [`NARROW`] as the maximum.
fn narrow_sum() -> Result<Combine> {
    let function = known("ends", Type::U32, || {
        let f = Builder::function("ends");
        let (a, b) = (f.parameter("a", Type::U32), f.parameter("b", Type::U32));
        Ok(f.finish_function(&[f.min(f.add(a, b), NARROW as u32)])?)
    })?;
    Ok(Combine::commutative(function, &[Literal::zero(Element::U32)])?)
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
        let count = Measure::of(lengths)?;
        let sum = || -> Result<Node> {
            let [lengths] = call(&held_length(lengths.ty(), false)?, &[lengths])?;
            lengths.reduce(Combine::Sum, &[0])
        };
        let total = match total {
            Total::Host(total) => Measure::host(context, total)?,
            Total::Amount(total) => Measure::host(context, total)?,
            Total::Device(length) => Measure::device(&length)?,
            Total::Within(bound) => Measure::device(&Length::new(&sum()?, bound)?)?,
            Total::Unknown => Measure::host(context, read_number(&sum()?)?)?,
        };
        Segments::with_lengths(lengths, count, total, None)
    }

    /// Makes segments with known numbers. Lengths that the device itself counted are kept as a form.
    fn with_lengths(lengths: &Node, count: Measure, total: Measure, origin: Option<pack::Origin>) -> Result<Segments> {
        let forms = Forms::default();
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
            None => Measure::host(context, offsets.bound().size().minus(&1.into()))?,
            Some(length) => {
                let fewer = binary(BinaryOp::Sub, &Measure::device(length)?.count, &scalar(context, 1i64)?)?;
                Measure::device(&Length::new(&fewer, length.amount().minus(&1.into()))?)?
            }
        };
        let last = || -> Result<Node> {
            let last = offsets.gather(&[&count.count], &Boundary::Clamp)?;
            let [last] = call(&held_length(offsets.ty(), false)?, &[&last])?;
            Ok(last)
        };
        let total = match total {
            Total::Host(total) => Measure::host(context, total)?,
            Total::Amount(total) => Measure::host(context, total)?,
            Total::Device(length) => Measure::device(&length)?,
            Total::Within(bound) => Measure::device(&Length::new(&last()?, bound)?)?,
            Total::Unknown => Measure::host(context, read_number(&last()?)?)?,
        };
        let bounds = match total.length.is_none() && offsets.holds_segments(&total.bound) {
            true => offsets.clone(),
            false => bounds(&padded(offsets, offsets.bound().clone())?, &count.count, &total, false)?,
        };
        Ok(Segments::made(count, total, bounds, Forms::default(), None))
    }

    /// Makes segments from forms that [`Segments::stored_forms`] or [`Segments::kept_forms`] returned for the
    /// same number of elements, from their first elements, or from symbols in their place. The caller
    /// promises that they are such forms: they are used unchecked.
    pub fn from_stored_forms(stored: &StoredForms, total: impl Into<Amount>) -> Result<Segments> {
        let offsets = &stored.offsets;
        offsets.checked_offsets("segments")?;
        let count = Measure::host(offsets.context(), offsets.bound().size().minus(&1.into()))?;
        let (total, forms) = (Measure::host(offsets.context(), total)?, Forms::default());
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
        let (context, total) = (heads.context(), Measure::of(heads)?);
        let f = Builder::function("head");
        let (place, head) = (f.parameter("place", Type::I64), f.parameter("head", Type::BOOL));
        let function = f.finish_function(&[f.or(head, f.eq(place, 0i64))])?;
        let [heads] = call(&function, &[&total.places(Element::I64)?, heads])?;
        let forms = Forms::default();
        forms.set_heads(&heads);
        if total.is_none() || count == Some(0) {
            let bounds = Node::fill(context, Shape::from(1), &[Literal::from(0i64)])?;
            return Ok(Segments::made(Measure::host(context, 0)?, total, bounds, forms, None));
        }
        let (starts, found) = total.places(Element::I64)?.pack_counted(&heads)?;
        let (starts, found) = (forms.keep(starts), forms.keep(found));
        let limit = convert(&found, Element::I64)?;
        let (count, limit) = match count {
            Some(count) => {
                let count = Measure::host(context, count)?;
                let limit = binary(BinaryOp::Min, &limit, &count.count)?;
                (count, limit)
            }
            None => (Measure::device(&Length::of(found, total.bound.clone()))?, limit),
        };
        // There are as many starts as true flags.
        let places = Node::position(context, count.one_more(), 0, Element::I64)?;
        let bounds = bounds(&starts.gather(&[&places], &Boundary::Clamp)?, &limit, &total, false)?;
        Ok(Segments::made(count, total, bounds, forms, None))
    }

    fn made(count: Measure, total: Measure, bounds: Node, forms: Forms, origin: Option<pack::Origin>) -> Segments {
        Segments { data: Arc::new(Data { count, total, bounds, forms, origin }), longest: None }
    }

    /// Replaces lengths by numbers that the host has learned ([`Length::learn`]). Forms made so far are
    /// shared.
    pub fn learned(&self) -> Result<Segments> {
        let (count, total) = (&self.data.count, &self.data.total);
        let is_learned = |measure: &Measure| measure.length.as_ref().is_some_and(|length| length.known_amount().is_some());
        if !is_learned(count) && !is_learned(total) {
            return Ok(self.clone());
        }
        let (count, total) = (count.learned(self.context())?, total.learned(self.context())?);
        // Offsets after the last segment are the number of elements, so the first ones suffice.
        let bounds = self.data.bounds.first_elements(None, count.bound.plus(&1.into()))?;
        let forms = self.data.forms.learned(&count, &total)?;
        let data = Data { count, total, bounds, forms, origin: None };
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
    fn checked(&self, operation: &str, measure: &Measure, line: &Node) -> Result<()> {
        same_context(operation, &[line, &self.data.bounds])?;
        if line.bound().rank() == 1 && Measure::of(line)?.equals(measure)? {
            return Ok(());
        }
        let (left, right) = (line.shape().clone(), Shape::from(measure.read()?));
        Err(Error::Shapes { operation: operation.to_owned(), left, right })
    }

    /// Refuses a line that does not have one value for each element.
    fn check_elements(&self, operation: &str, line: &Node) -> Result<()> {
        self.checked(operation, &self.data.total, line)
    }

    /// Refuses a line that does not have one value for each segment.
    fn check_segments(&self, operation: &str, line: &Node) -> Result<()> {
        self.checked(operation, &self.data.count, line)
    }

    /// Refuses a descriptor with another number of segments.
    fn check_alike(&self, operation: &str, other: &Segments) -> Result<()> {
        same_context(operation, &[&self.data.bounds, &other.data.bounds])?;
        let (own, theirs) = (&self.data.count, &other.data.count);
        if own.equals(theirs)? {
            return Ok(());
        }
        let (left, right) = (Shape::from(own.read()?), Shape::from(theirs.read()?));
        Err(Error::Shapes { operation: operation.to_owned(), left, right })
    }
}

/// Reads a number that the device has computed; waits for it.
fn read_number(number: &Node) -> Result<usize> {
    let number = number.read()?.lanes.first().and_then(|number| number.as_i128()).unwrap_or(0);
    usize::try_from(number).map_err(|_| Error::Range {
        operation: "segments".into(),
        shape: Shape::from([]),
        reason: format!("{number} elements"),
    })
}

/// Clamps offsets to the line: the first becomes 0, those from the index `from` on become the number of
/// elements. They have 32 bits if `narrow`.
fn bounds(offsets: &Node, from: &Node, total: &Measure, narrow: bool) -> Result<Node> {
    let places = Node::position(offsets.context(), offsets.bound().clone(), 0, Element::I64)?;
    let function = held_offset(offsets.ty(), narrow)?;
    Node::elementwise(Elementwise::Call(function, 0), &[&places, offsets, from, &total.count])
}
