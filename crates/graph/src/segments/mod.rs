//! Ragged data: lines whose elements are grouped into segments of any length.
//!
//! A [`Segments`] is a descriptor. It says where each segment of a line begins and ends, and is used with any number of lines of
//! that length. Its forms are made when they are first asked for and kept in the descriptor:
//!
//! | form | element | one for each |
//! | --- | --- | --- |
//! | [lengths](Segments::lengths) | `i64` | segment |
//! | [offsets](Segments::offsets) | `i64` | segment, and one more |
//! | [head flags](Segments::heads) | `bool` | element |
//! | [ids](Segments::ids) | `i32` | element |
//!
//! Forms are nodes, so nothing is computed before it is used. A form that a plan computes anyway is written to memory as long as the
//! descriptor is alive: no later evaluation computes it again.
//!
//! The number of elements and the number of segments are each known on the host, or a [`Length`] that only the device knows. Nothing waits for a
//! length. Lines that are not known to be as long as the descriptor says are compared with it by number, which waits.
//!
//! Work is spread over elements. Segments without elements cost as much as an element at most.

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

use crate::amount::Amount;
use crate::check::same_context;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::known::known;
use crate::length::Length;
use crate::node::Node;
use crate::op::{Combine, Elementwise, zeros};
use crate::shape::Shape;
use crate::view::{AxisMap, Boundary};
use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type};
use forms::Forms;
pub use forms::StoredForms;
use line::{NARROW, held_length, held_offset};
use std::sync::Arc;

/// Segments of a line; cheap to clone. Clones share all forms. See the [module](self).
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
    /// An upper bound of the lengths, if one is known.
    longest: Option<Amount>,
}

#[derive(Debug)]
struct Data {
    count: Measure,
    total: Measure,
    /// One offset more than the bound on the number of segments, an `i32` or `i64`. They never decrease where the descriptor is valid; those behind the last segment
    /// are the number of elements.
    bounds: Node,
    forms: Forms,
    /// The segments and flags of which a pack made these.
    origin: Option<pack::Origin>,
}

/// The number of elements of all segments.
#[derive(Clone, Debug)]
pub enum Total {
    /// A number of the host.
    Host(usize),
    /// A number of the host that may follow from the extents of a function's inputs.
    Amount(Amount),
    /// A number that only the device knows.
    Device(Length),
    /// The sum of the lengths, computed by the device, and this number at most.
    Within(usize),
    /// The sum of the lengths. The host waits for it once, when the descriptor is made.
    Unknown,
}

impl Total {
    /// The number of elements of a line. Never waits.
    pub fn of(line: &Node) -> Total {
        match line.length() {
            Some(length) => Total::Device(length.clone()),
            None => Total::Amount(line.bound().size()),
        }
    }
}

/// A number of segments or elements.
#[derive(Clone, Debug)]
struct Measure {
    /// An upper bound; the number itself if there is no length.
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

    /// The number of elements of a line.
    fn of(line: &Node) -> Result<Measure> {
        match line.length() {
            Some(length) => Measure::device(length),
            None => Measure::host(line.context(), line.bound().size()),
        }
    }

    /// The shape of a line with room for the bound.
    fn shape(&self) -> Shape {
        Shape::from_amounts(std::slice::from_ref(&self.bound))
    }

    /// The shape of a line with one more.
    fn one_more(&self) -> Shape {
        Shape::from_amounts(&[self.bound.plus(&1.into())])
    }

    /// Returns whether there are none, whatever the device knows.
    fn is_none(&self) -> bool {
        self.bound.equals(&0.into())
    }

    /// Returns whether numbers up to it have 32 bits.
    fn is_narrow(&self) -> bool {
        !Amount::from(NARROW).is_less(&self.bound)
    }

    /// The bound as a number, on which a function that is traced relies.
    fn fixed(&self) -> usize {
        usize::try_from(self.bound.get()).unwrap_or(0)
    }

    /// The number on the host; waits for a length.
    fn read(&self) -> Result<usize> {
        self.length.as_ref().map_or_else(|| Ok(self.fixed()), Length::read)
    }

    /// Returns whether both numbers are equal; waits where that is not known.
    fn equals(&self, other: &Measure) -> Result<bool> {
        match (&self.length, &other.length) {
            (None, None) => Ok(self.bound.equals(&other.bound)),
            (Some(own), Some(theirs)) if own.is_same(theirs) => Ok(true),
            _ => Ok(self.read()? == other.read()?),
        }
    }

    /// The number as one of the host, where that has learned it.
    fn learned(&self, context: &Context) -> Result<Measure> {
        match self.length.as_ref().and_then(Length::known_amount) {
            Some(known) => Measure::host(context, known),
            None => Ok(self.clone()),
        }
    }

    /// The first elements of a line, as many as the number says.
    fn first_of(&self, line: &Node) -> Result<Node> {
        line.first_elements(self.length.as_ref(), self.bound.clone())
    }

    /// A line with room for the bound, cut to the number.
    fn cut(&self, line: Node) -> Result<Node> {
        match &self.length {
            // A pattern that nobody else uses has the length itself, so that its result needs no copy.
            Some(length) if line.is_own_pattern() => Ok(line.with_length(Some(length.clone()))),
            Some(length) => line.shortened(length),
            None => Ok(line),
        }
    }

    /// The position in a line of so many elements.
    fn places(&self, element: Element) -> Result<Node> {
        Ok(Node::position(self.count.context(), self.shape(), 0, element)?.with_length(self.length.clone()))
    }

    /// One value in a line of so many elements.
    fn filled(&self, value: &[Literal]) -> Result<Node> {
        Ok(Node::fill(self.count.context(), self.shape(), value)?.with_length(self.length.clone()))
    }

    /// The sum of two numbers.
    fn plus(&self, other: &Measure) -> Result<Measure> {
        let bound = self.bound.plus(&other.bound);
        if self.length.is_none() && other.length.is_none() {
            return Measure::host(self.count.context(), bound);
        }
        Measure::device(&Length::new(&binary(BinaryOp::Add, &self.count, &other.count)?, bound)?)
    }
}

/// A number as an `i64` without axes.
fn number(context: &Context, amount: &Amount) -> Result<Node> {
    match amount.is_known() {
        true => scalar(context, amount.get()),
        false => Ok(Node::counting(context, amount)),
    }
}

/// A value without axes.
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

/// The results of a function of elements.
fn call<const N: usize>(function: &Function, inputs: &[&Node]) -> Result<[Node; N]> {
    let results = Node::call(function, inputs)?;
    let wrong = |_| Error::Plan { what: function.name().to_owned(), reason: "a function with other results".into() };
    <[Node; N]>::try_from(results).map_err(wrong)
}

/// The second where the first is true, else the third; of vectors, all lanes.
fn choose(condition: &Node, yes: &Node, no: &Node) -> Result<Node> {
    let lanes = yes.ty().lanes();
    if lanes == 1 {
        return Node::elementwise(Elementwise::Select, &[condition, yes, no]);
    }
    let all = Node::elementwise(Elementwise::Vector, &vec![condition; lanes])?;
    Node::elementwise(Elementwise::Select, &[&all, yes, no])
}

/// A line of integers is wanted.
fn integers(operation: &str, line: &Node) -> Result<()> {
    line.check_line(operation)?;
    line.check_integers(operation)
}

/// A line with more elements, of a shape: behind its length stand zeros.
fn padded(line: &Node, shape: Shape) -> Result<Node> {
    let zero = Boundary::Constant(zeros(line.ty()));
    match line.length() {
        None => line.affine("segments", &[AxisMap::same(0)], shape, Some(&zero)),
        Some(_) => line.gather(&[&Node::position(line.context(), shape, 0, Element::I64)?], &zero),
    }
}

/// The sum of two numbers that are at most [`NARROW`]; larger ones become that.
fn narrow_sum() -> Result<Combine> {
    let function = known("ends", Type::U32, || {
        let f = Builder::function("ends");
        let (a, b) = (f.parameter("a", Type::U32), f.parameter("b", Type::U32));
        Ok(f.finish_function(&[f.min(f.add(a, b), NARROW as u32)])?)
    })?;
    Ok(Combine::commutative(function, &[Literal::zero(Element::U32)])?)
}

impl Segments {
    /// Makes segments from how many elements each has: a line of integers, which may have a length that only the device knows. Negative numbers count as 0.
    ///
    /// The lengths sum up to the total. If they sum up to less, the last segment has the elements that are left; elements beyond the total are left out.
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

    /// Makes segments whose numbers are known. Lengths that were counted by the device itself are kept as a form.
    fn with_lengths(lengths: &Node, count: Measure, total: Measure, origin: Option<pack::Origin>) -> Result<Segments> {
        let forms = Forms::default();
        if count.is_none() {
            let bounds = Node::fill(lengths.context(), Shape::from(1), &[Literal::from(0i64)])?;
            return Ok(Segments::made(count, total, bounds, forms, origin));
        }
        let narrow = total.is_narrow() && count.is_narrow();
        // Offsets are kept as they are read: with one more than there are segments, and held to the line.
        let lengths = padded(lengths, count.one_more())?;
        let [held] = call(&held_length(lengths.ty(), narrow)?, &[&lengths])?;
        let combine = if narrow { narrow_sum()? } else { Combine::Sum };
        let bounds = forms.keep(bounds(&held.scan(combine, 0, false)?, &count.count, &total, narrow)?);
        Ok(Segments::made(count, total, bounds, forms, origin))
    }

    /// Makes segments from where they begin and end: segment `k` has the places from `offsets[k]` up to but not including `offsets[k + 1]`, so there is one
    /// offset more than there are segments. The line may have a length that only the device knows.
    ///
    /// The first segment starts where the line does, and the last one ends where it ends, whatever the first and the last offset say. Offsets never
    /// decrease; for others results are anything, but nothing outside is touched. [`Total::Within`] and [`Total::Unknown`] take the last offset.
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

    /// Makes segments from forms that [`Segments::stored_forms`] or [`Segments::kept_forms`] returned for the same number of elements, or the first elements of them, or
    /// from symbols in their place. That they are such forms is a promise, which is not checked: they are read as they are.
    pub fn from_stored_forms(stored: &StoredForms, total: impl Into<Amount>) -> Result<Segments> {
        let offsets = &stored.offsets;
        offsets.checked_offsets("segments")?;
        let count = Measure::host(offsets.context(), offsets.bound().size().minus(&1.into()))?;
        let (total, forms) = (Measure::host(offsets.context(), total)?, Forms::default());
        stored.ids.iter().for_each(|ids| forms.set_ids(ids));
        stored.heads.iter().for_each(|heads| forms.set_heads(heads));
        Ok(Segments::made(count, total, offsets.clone(), forms, None))
    }

    /// Makes segments from flags, one for each element: a segment starts where a flag is true, and at the first element. No segment is empty.
    ///
    /// Where the host does not know the number of segments, the device counts them, and its bound is the number of elements.
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
        // There are as many starts as were found.
        let places = Node::position(context, count.one_more(), 0, Element::I64)?;
        let bounds = bounds(&starts.gather(&[&places], &Boundary::Clamp)?, &limit, &total, false)?;
        Ok(Segments::made(count, total, bounds, forms, None))
    }

    fn made(count: Measure, total: Measure, bounds: Node, forms: Forms, origin: Option<pack::Origin>) -> Segments {
        Segments { data: Arc::new(Data { count, total, bounds, forms, origin }), longest: None }
    }

    /// Returns these segments with numbers that the host has learned ([`Length::learn`]) in place of lengths. Forms that were made are shared.
    pub fn learned(&self) -> Result<Segments> {
        let (count, total) = (&self.data.count, &self.data.total);
        let is_learned = |measure: &Measure| measure.length.as_ref().is_some_and(|length| length.known_amount().is_some());
        if !is_learned(count) && !is_learned(total) {
            return Ok(self.clone());
        }
        let (count, total) = (count.learned(self.context())?, total.learned(self.context())?);
        // Offsets behind the last segment are the number of elements, so fewer of them are enough.
        let bounds = self.data.bounds.first_elements(None, count.bound.plus(&1.into()))?;
        let forms = self.data.forms.learned(&count, &total)?;
        let data = Data { count, total, bounds, forms, origin: None };
        Ok(Segments { data: Arc::new(data), longest: self.longest.clone() })
    }

    /// Returns the same segments, with the promise that none has more elements than this. Short ones are sorted faster where that is known. The promise is not checked: of a
    /// longer segment only the start is sorted, and the rest is anything.
    pub fn no_longer_than(&self, longest: impl Into<Amount>) -> Segments {
        Segments { longest: Some(longest.into()), ..self.clone() }
    }

    /// The context of its forms.
    pub fn context(&self) -> &Context {
        self.data.bounds.context()
    }

    /// The number of segments, where only the device knows it.
    pub fn count_length(&self) -> Option<&Length> {
        self.data.count.length.as_ref()
    }

    /// The number of elements, or where only the device knows it an upper bound. Never waits.
    pub fn total_bound(&self) -> usize {
        self.data.total.fixed()
    }

    /// The number of elements, where only the device knows it.
    pub fn total_length(&self) -> Option<&Length> {
        self.data.total.length.as_ref()
    }

    /// The number of elements.
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

    /// Refuses a line that is not as long as a number says.
    fn checked(&self, operation: &str, measure: &Measure, line: &Node) -> Result<()> {
        same_context(operation, &[line, &self.data.bounds])?;
        if line.bound().rank() == 1 && Measure::of(line)?.equals(measure)? {
            return Ok(());
        }
        let (left, right) = (line.shape().clone(), Shape::from(measure.read()?));
        Err(Error::Shapes { operation: operation.to_owned(), left, right })
    }

    /// Refuses a line that has not one value for each element.
    fn check_elements(&self, operation: &str, line: &Node) -> Result<()> {
        self.checked(operation, &self.data.total, line)
    }

    /// Refuses a line that has not one value for each segment.
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

/// A number that the device has computed; waits for it.
fn read_number(number: &Node) -> Result<usize> {
    let number = number.read()?.lanes.first().and_then(|number| number.as_i128()).unwrap_or(0);
    usize::try_from(number).map_err(|_| Error::Range {
        operation: "segments".into(),
        shape: Shape::from([]),
        reason: format!("{number} elements"),
    })
}

/// Offsets held to the line: the first is 0, those from a number on are the number of elements. They have 32 bits if `narrow`.
fn bounds(offsets: &Node, from: &Node, total: &Measure, narrow: bool) -> Result<Node> {
    let places = Node::position(offsets.context(), offsets.bound().clone(), 0, Element::I64)?;
    let function = held_offset(offsets.ty(), narrow)?;
    Node::elementwise(Elementwise::Call(function, 0), &[&places, offsets, from, &total.count])
}
