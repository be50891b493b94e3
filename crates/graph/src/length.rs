//! Lengths that only the device knows: how many elements a pack has chosen, the sum of other lengths.
//!
//! An array with such a length has an upper bound of its first extent on the host. Memory is taken for the bound. Kernels behind it are
//! launched for the bound, read the length where they run, and do nothing beyond it. So nothing waits until somebody asks for the shape or
//! the elements.
//!
//! - The bytes behind the length are undefined, and no kernel computes with them.
//! - Arrays with the same [`Length`] are known to be equally long, and so are arrays whose lengths were promised to be equal
//!   ([`Length::unite`]). An operation on arrays whose lengths are not known to be equal asks for the numbers, so it waits.
//! - An operation that needs the length to be a certain number relies on it and does not wait: see [`expect`](crate::expect).
//! - Only the first axis can have such a length. An operation that would move it to another axis waits; `docs/ARRAYS.md` lists all
//!   operations that do.
//! - When the host learns the length, an array that uses less than a quarter of its memory is copied and gives the memory back. An array
//!   whose bound takes more than an eighth of the device's memory ([`WASTE`]) learns its length right when it is computed: that is one wait,
//!   for the memory.

use crate::amount::Amount;
use crate::check::same_context;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::known::known;
use crate::node::{Node, State};
use crate::op::{Elementwise, Op, Scalar};
use crate::shape::Shape;
use crate::view::{AxisMap, View};
use broadloom_device::{Buffer, Stream};
use broadloom_scalar::{BinaryOp, Builder, Element, Lanes, Literal, Type};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, OnceLock};

/// The part of the device's memory from which on a bound is worth a wait.
pub(crate) const WASTE: u64 = 8;

/// The part of an array's memory that must be used for it to be kept.
const USED: usize = 4;

/// A length that only the device knows; cheap to clone. Clones are known to be equal.
#[derive(Clone, Debug)]
pub struct Length(Arc<Data>);

#[derive(Debug)]
struct Data {
    count: Node,
    bound: Amount,
    known: OnceLock<Amount>,
    /// The length that it was made from, and the way.
    origin: Option<(Length, Way)>,
    /// A length that it was promised to be equal to.
    same: Link,
}

/// A length that stands for another one.
#[derive(Debug, Default)]
struct Link(OnceLock<Length>);

impl Drop for Link {
    /// Drops a chain of any length without recursion.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(length) = next {
            next = Arc::into_inner(length.0).and_then(|mut data| data.same.0.take());
        }
    }
}

/// A way to make a length from another. Lengths that are made in the same way from equal lengths are known to be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// A multiple of the length.
    Times(usize),
    /// The distance between two places.
    Part(usize, usize),
    /// The length without a number of elements, at least 0.
    Less(usize),
    /// A quotient, rounded up or down.
    Quotient(usize, bool),
}

impl Length {
    /// The length that an array without axes holds, an integer, where it is at most `bound`; else `bound`.
    pub fn new(count: &Node, bound: impl Into<Amount>) -> Result<Length> {
        count.check_integers("length")?;
        let bound = bound.into();
        if count.bound().rank() != 0 || Amount::from(i64::from(u32::MAX)).is_less(&bound) {
            let bound = bound.get();
            return Err(count.refused("length", format!("a length is one number below 2^32, and the bound is {bound}")));
        }
        let function = known("length", count.ty(), || {
            let f = Builder::function("length");
            let (count_in, bound_in) = (f.parameter("count", count.ty()), f.parameter("bound", Type::U64));
            let held = f.convert(f.max(count_in, 0), Type::U64);
            Ok(f.finish_function(&[f.convert(f.min(held, bound_in), Type::U32)])?)
        })?;
        let bound_in = match bound.is_known() {
            true => Node::fill(count.context(), Shape::from([]), &[Literal::from(bound.value() as u64)])?,
            false => Node::elementwise(Elementwise::Convert(Element::U64), &[&Node::counting(count.context(), &bound)])?,
        };
        Ok(Length::of(Node::elementwise(Elementwise::Call(function, 0), &[count, &bound_in])?, bound))
    }

    /// The length that a `u32` holds which is known to be at most the bound.
    pub(crate) fn of(count: Node, bound: impl Into<Amount>) -> Length {
        Length(Arc::new(Data { count, bound: bound.into(), known: OnceLock::new(), origin: None, same: Link::default() }))
    }

    fn made(&self, count: Node, bound: Amount, way: Way) -> Length {
        Length(Arc::new(Data { count, bound, known: OnceLock::new(), origin: Some((self.clone(), way)), same: Link::default() }))
    }

    /// The length that is so many times as long; `None` if that may be too long for a length.
    pub(crate) fn times(&self, factor: &Amount) -> Result<Option<Length>> {
        if factor.equals(&1.into()) {
            return Ok(Some(self.clone()));
        }
        let bound = self.amount().times(factor);
        if Amount::from(i64::from(u32::MAX)).is_less(&bound) {
            return Ok(None);
        }
        let context = self.count().context();
        let each = match factor.is_known() {
            true => Node::fill(context, Shape::from([]), &[Literal::from(factor.value() as u32)])?,
            false => Node::elementwise(Elementwise::Convert(Element::U32), &[&Node::counting(context, factor)])?,
        };
        let count = Node::elementwise(Elementwise::Binary(BinaryOp::Mul), &[self.count(), &each])?;
        Ok(Some(match factor.is_known() {
            true => self.made(count, bound, Way::Times(factor.value() as usize)),
            false => Length::of(count, bound),
        }))
    }

    /// The length of what is between two places, both cut to the axis, where it is at most `bound`.
    pub(crate) fn part(&self, start: usize, end: Option<usize>, bound: Amount) -> Result<Length> {
        let way = match (start, end) {
            (0, None) => return Ok(self.clone()),
            (_, Some(end)) => Way::Part(start, end),
            (_, None) => match &self.root().0.origin {
                // Parts of parts are known to be equal to other parts.
                Some((whole, Way::Less(less))) => return whole.part(less.saturating_add(start), None, bound),
                _ => Way::Less(start),
            },
        };
        let f = Builder::function("part");
        let (length, low, high) =
            (f.parameter("length", Type::U32), f.parameter("low", Type::U32), f.parameter("high", Type::U32));
        let (low, high) = (f.min(low, length), f.min(high, length));
        let function = f.finish_function(&[f.sub(f.max(high, low), low)])?;
        let number = |place: usize| {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            Node::fill(self.count().context(), Shape::from([]), &[Literal::from(place)])
        };
        let inputs = [self.count(), &number(start)?, &number(end.unwrap_or(usize::MAX))?];
        let count = Node::elementwise(Elementwise::Call(function, 0), &inputs)?;
        Ok(self.made(count, bound, way))
    }

    /// Returns the length divided by a positive number, rounded up or down.
    pub(crate) fn divided(&self, by: usize, up: bool) -> Result<Length> {
        if by == 1 {
            return Ok(self.clone());
        }
        let divisor = u32::try_from(by).unwrap_or(u32::MAX);
        let more = if up { divisor - 1 } else { 0 };
        let function = known("divided", Type::U32, || {
            let f = Builder::function("divided");
            let [length, more, by] = ["length", "more", "by"].map(|name| f.parameter(name, Type::U32));
            let sum = f.add(f.convert(length, Type::U64), f.convert(more, Type::U64));
            Ok(f.finish_function(&[f.convert(f.div(sum, f.convert(by, Type::U64)), Type::U32)])?)
        })?;
        let number = |value: u32| Node::fill(self.count().context(), Shape::from([]), &[Literal::from(value)]);
        let inputs = [self.count(), &number(more)?, &number(divisor)?];
        let count = Node::elementwise(Elementwise::Call(function, 0), &inputs)?;
        Ok(self.made(count, whole_parts(self.amount(), by, up), Way::Quotient(by, up)))
    }

    /// Returns whether this is known to be the number of whole parts of another length.
    pub(crate) fn counts_parts(&self, whole: &Length, size: usize) -> bool {
        let is_quotient = |length: &Length| matches!(&length.0.origin, Some((of, Way::Quotient(by, false))) if *by == size && of.is_same(whole));
        size == 1 && self.is_same(whole) || is_quotient(self) || is_quotient(self.root())
    }

    /// The number, as a `u32` without axes.
    pub fn count(&self) -> &Node {
        &self.root().0.count
    }

    /// The length that stands for all that were promised to be equal.
    fn root(&self) -> &Length {
        let mut root = self;
        while let Some(same) = root.0.same.0.get() {
            root = same;
        }
        root
    }

    /// Promises that two lengths are equal: arrays with one can be used beside arrays with the other, and no number is compared.
    ///
    /// The promise is not checked. Where it does not hold, arrays that are computed from both have the elements of either length, and nothing
    /// outside of them is touched.
    pub fn unite(&self, other: &Length) {
        let (own, theirs) = (self.root(), other.root());
        if Arc::ptr_eq(&own.0, &theirs.0) {
            return;
        }
        if let Some(known) = own.known_amount().or(theirs.known_amount()) {
            own.learn(known.clone());
            theirs.learn(known);
        }
        // A number that is in memory stands for one that is not.
        let (from, to) = if theirs.0.count.is_pending() && !own.0.count.is_pending() { (theirs, own) } else { (own, theirs) };
        // Another thread may have done the same the other way round.
        if !Arc::ptr_eq(&to.root().0, &from.0) {
            let _ = from.0.same.0.set(to.clone());
        }
    }

    /// The number, where the host has learned it. Never waits. A function that is traced relies on it.
    pub fn known(&self) -> Option<usize> {
        self.known_amount().map(|known| known.get() as usize)
    }

    /// The number, where the host has learned it; it may follow from the extents of a function's inputs. Never waits.
    pub fn known_amount(&self) -> Option<Amount> {
        self.0.known.get().or_else(|| self.root().0.known.get()).cloned()
    }

    /// Tells the number to the host, which has read it with other numbers. A number above the bound counts as the bound.
    pub fn learn(&self, count: impl Into<Amount>) {
        let count = count.into().min(&self.0.bound);
        let _ = self.0.known.set(count.clone());
        let _ = self.root().0.known.set(count);
    }

    /// Its bound. A function that is traced relies on it.
    pub fn bound(&self) -> usize {
        self.0.bound.get() as usize
    }

    /// Its bound, which may follow from the extents of a function's inputs.
    pub fn amount(&self) -> &Amount {
        &self.0.bound
    }

    /// Returns whether both are known to be equal.
    pub fn is_same(&self, other: &Length) -> bool {
        let (mut own, mut theirs) = (self.root(), other.root());
        loop {
            if Arc::ptr_eq(&own.0, &theirs.0) || own.0.count.is_same(&theirs.0.count) {
                return true;
            }
            match (&own.0.origin, &theirs.0.origin) {
                (Some((a, by)), Some((b, other))) if by == other => (own, theirs) = (a.root(), b.root()),
                _ => return false,
            }
        }
    }

    /// The number on the host; waits for it.
    pub fn read(&self) -> Result<usize> {
        if let Some(known) = self.known() {
            return Ok(known.min(self.0.bound.value() as usize));
        }
        let count = self.count().read()?.lanes.first().and_then(|count| count.as_i128()).unwrap_or(0);
        self.learn(usize::try_from(count).unwrap_or(0));
        Ok(self.known().unwrap_or(0))
    }

    /// The number, if nobody else has it.
    pub(crate) fn into_count(self) -> Option<Node> {
        let data = Arc::into_inner(self.0)?;
        // Lengths that it was made from go one after the other: a chain of a million must not need a million frames.
        let mut origin = data.origin;
        while let Some((length, _)) = origin {
            origin = Arc::into_inner(length.0).and_then(|mut data| data.origin.take());
        }
        Some(data.count)
    }

    /// The sum of lengths and of numbers that the host knows.
    pub(crate) fn sum(context: &Context, parts: &[&Node]) -> Result<Length> {
        let sum =
            |parts: &mut dyn Iterator<Item = &&Node>| parts.fold(Amount::from(0), |sum, part| sum.plus(&part.bound().amount(0)));
        let (host, bound) = (sum(&mut parts.iter().filter(|part| part.length().is_none())), sum(&mut parts.iter()));
        if Amount::from(i64::from(u32::MAX)).is_less(&bound) {
            let (operation, shape) = ("concatenate".to_owned(), parts[0].bound().clone());
            return Err(Error::Range { operation, shape, reason: "a length is below 2^32".into() });
        }
        let mut sum = match host.is_known() {
            true => Node::fill(context, Shape::from([]), &[Literal::from(host.value() as u32)])?,
            false => Node::elementwise(Elementwise::Convert(Element::U32), &[&Node::counting(context, &host)])?,
        };
        for length in parts.iter().filter_map(|part| part.length()) {
            sum = Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&sum, length.count()])?;
        }
        Ok(Length::of(sum, bound))
    }
}

/// Divides an amount by a positive number, rounded up or down.
pub(crate) fn whole_parts(amount: &Amount, by: usize, up: bool) -> Amount {
    if up { amount.divided_up(by) } else { amount.minus(&(by - 1).into()).divided_up(by) }
}

/// The array with a shape that the host knows.
pub(crate) fn hosted(node: &Node) -> Result<Node> {
    let Some(length) = node.length() else { return Ok(node.clone()) };
    let all = node.evaluate()?;
    let mut extents = node.bound().extents().to_vec();
    extents[0] = length.read()?;
    let shape = Shape::from(extents);
    let bytes = shape.count() * node.ty().bytes() as usize;
    let failed = || Error::Plan { what: "a length".into(), reason: "an array is shorter than it".into() };
    let mut buffer = all.slice(0, bytes).ok_or_else(failed)?;
    // A place that is held to the array is that of its first element, also where there is none.
    let row = all.len() / node.bound().extents()[0].max(1);
    if bytes.max(row) < all.len() / USED {
        // Memory for many would live as long as a few do.
        let own: Buffer<u8> = node.context().device().allocate(bytes.max(row))?;
        own.copy_from(Stream::default(), &all.slice(0, bytes.max(row)).ok_or_else(failed)?)?;
        buffer = own.slice(0, bytes).ok_or_else(failed)?;
        node.settle(State::Ready(own));
    }
    Node::from_buffer(node.context(), node.ty(), shape, buffer)
}

/// The length that arrays have in common that are used position by position, of so many axes at most; `Err(())` if they are not known to be
/// equally long.
pub(crate) fn common<'n>(inputs: &[&'n Node]) -> std::result::Result<Option<&'n Length>, ()> {
    let Some(length) = inputs.iter().find_map(|input| input.length()) else { return Ok(None) };
    let rank = inputs.iter().map(|input| input.bound().rank()).max().unwrap_or(0);
    let fits = |input: &&Node| match input.length() {
        Some(own) => own.is_same(length) && input.bound().rank() == rank,
        None => input.bound().rank() < rank || input.bound().amount(0).equals(&1.into()),
    };
    if inputs.iter().all(fits) { Ok(Some(length)) } else { Err(()) }
}

impl Node {
    /// The first elements along the first axis, as many as a length says that is known on the device. This array has as many as the length
    /// is at most.
    pub fn shortened(&self, length: &Length) -> Result<Node> {
        same_context("shorten", &[self, length.count()])?;
        let array = self.hosted()?;
        if array.bound().rank() == 0 || !array.bound().amount(0).equals(length.amount()) {
            return Err(
                array.refused("shorten", format!("its first extent is not {}, which the length is at most", length.bound()))
            );
        }
        Ok(array.seen(View::whole(array.bound())).with_length(Some(length.clone())))
    }

    /// The first elements along the first axis: as many as a length says that is promised to be no greater than this array's own, or `bound` of them
    /// where there is no length. Never waits.
    ///
    /// `bound` is the bound of the length. It is at most that of this array.
    pub fn first_elements(&self, length: Option<&Length>, bound: impl Into<Amount>) -> Result<Node> {
        if let Some(length) = length {
            same_context("first elements", &[self, length.count()])?;
        }
        let bound = bound.into();
        let is_short = self.bound().rank() == 0 || self.bound().amount(0).is_less(&bound);
        if is_short || length.is_some_and(|length| !length.amount().equals(&bound)) {
            let bound = bound.get();
            return Err(self.refused("first elements", format!("it has no {bound} elements along its first axis")));
        }
        let is_as_long = match (self.length(), length) {
            (None, None) => true,
            (Some(own), Some(length)) => own.is_same(length),
            _ => false,
        };
        if is_as_long && self.bound().amount(0).equals(&bound) {
            return Ok(self.clone());
        }
        let shape = self.bound().with(0, bound);
        if let (false, State::Ready(buffer)) = (shape.is_traced(), &*self.lock()) {
            let part = buffer.slice(0, shape.count() * self.ty().bytes() as usize);
            let failed = || Error::Plan { what: "a length".into(), reason: "an array is shorter than it".into() };
            return Ok(Node::ready(self.context(), self.ty(), shape, part.ok_or_else(failed)?).with_length(length.cloned()));
        }
        let axes: SmallVec<[AxisMap; 4]> = (0..shape.rank()).map(AxisMap::same).collect();
        self.view_in(View::new("first elements", self.bound(), &axes, shape, None)?, length)
    }

    /// A number as an `i64` without axes; it may follow from the extents of a function's inputs.
    pub fn counting(context: &Context, amount: &Amount) -> Node {
        Node::counting_in(context, Shape::from([]), amount)
    }

    /// Such a number everywhere in a shape.
    pub(crate) fn counting_in(context: &Context, shape: Shape, amount: &Amount) -> Node {
        Node::pending(context, Type::I64, shape, Op::Fill(Scalar::counting(amount)), smallvec![])
    }

    /// One value in the shape of this array. Never waits.
    pub fn fill_like(&self, value: &[Literal]) -> Result<Node> {
        Ok(Node::fill(self.context(), self.bound().clone(), value)?.with_length(self.length().cloned()))
    }

    /// The position along an axis of this array. Never waits.
    pub fn position_like(&self, axis: usize, element: Element) -> Result<Node> {
        Ok(Node::position(self.context(), self.bound().clone(), axis, element)?.with_length(self.length().cloned()))
    }

    /// An array of places as it is, or with a signed type where only the device knows its length: [`nowhere`] stands behind its end.
    pub(crate) fn signed_with_length(&self) -> Result<Node> {
        if self.length().is_none() || self.ty().element().is_signed() {
            return Ok(self.clone());
        }
        Node::elementwise(Elementwise::Convert(Element::I64), &[self])
    }

    /// Returns the extent of the first axis, an `i64` without axes. Never waits.
    pub fn first_extent(&self) -> Result<Node> {
        match self.length() {
            Some(length) => Node::elementwise(Elementwise::Convert(Element::I64), &[length.count()]),
            None if self.bound().rank() > 0 => Ok(Node::counting(self.context(), &self.bound().amount(0))),
            None => self.number(1),
        }
    }

    /// Returns whether two arrays are known to have one length that only the device knows. Never waits.
    pub fn is_as_long(&self, other: &Node) -> bool {
        self.length().is_some_and(|own| other.length().is_some_and(|theirs| own.is_same(theirs)))
    }

    /// Returns whether two arrays are known to have one shape; where that is not known it asks, and waits.
    pub fn is_shaped_like(&self, other: &Node) -> bool {
        match (self.length(), other.length()) {
            (Some(own), Some(theirs)) if own.is_same(theirs) => self.bound() == other.bound(),
            _ => self.shape() == other.shape(),
        }
    }
}

/// Returns the value of a signed type that is no place.
pub(crate) fn nowhere(ty: Type) -> Option<Lanes> {
    ty.element().is_signed().then(|| smallvec![Literal::from_i128(ty.element(), -1)])
}
