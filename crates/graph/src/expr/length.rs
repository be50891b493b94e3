//! Lengths that only the device knows: the number of elements that a pack has selected, the sum of other
//! lengths.
//!
//! The first extent of an array with such a length has an upper bound on the host. Memory is allocated for
//! the bound. Kernels that read the array are launched for the bound. They read the length on the device and
//! do nothing beyond it. The host therefore waits only when a caller asks for the shape or the elements.
//!
//! - The bytes beyond the length are undefined, and no kernel computes with them.
//! - Arrays with the same [`Length`] are known to be equally long. So are arrays whose lengths were promised
//!   to be equal ([`Length::unite`]). An operation on arrays whose lengths are not known to be equal reads
//!   the lengths, so it waits.
//! - An operation that needs a certain length relies on it and does not wait: see
//!   [`expect`](crate::expr::expect).
//! - Only the first axis can have such a length. An operation that would move it to another axis waits;
//!   `docs/ARRAYS.md` lists all operations that do.
//! - When the host learns the length, an array that uses less than a quarter of its memory is copied, and the
//!   memory is freed. If the bound of an array takes more than an eighth of the device's memory
//!   ([`WASTE`](crate::limits::WASTE)), the host reads the length as soon as the array is computed. That
//!   costs one wait.

use crate::expr::amount::Amount;
use crate::expr::check::same_context;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::known::known;
use crate::expr::node::{Context, Derivation, EqualLength, Length, LengthData, Node, State};
use crate::expr::op::{Op, Scalar};
use crate::expr::shape::Shape;
use crate::expr::view::{AxisMap, View};
use broadloom_device::{Buffer, Stream};
use broadloom_scalar::{BinaryOp, Builder, Element, Lanes, Literal, Type};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, OnceLock};

/// Reciprocal of the fraction of an array's memory that must be used to keep the memory.
const USED: usize = 4;

impl Length {
    /// Creates a length from the integer of an array without axes, clamped to `0..=bound`.
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

    /// Creates a length from a `u32` that is known to be at most the bound.
    pub(crate) fn of(count: Node, bound: impl Into<Amount>) -> Length {
        Length(Arc::new(LengthData {
            count,
            bound: bound.into(),
            known: OnceLock::new(),
            origin: None,
            equal: EqualLength::default(),
        }))
    }

    fn derived(&self, count: Node, bound: Amount, way: Derivation) -> Length {
        Length(Arc::new(LengthData {
            count,
            bound,
            known: OnceLock::new(),
            origin: Some((self.clone(), way)),
            equal: EqualLength::default(),
        }))
    }

    /// Returns the length multiplied by a factor; `None` if the product may be too large for a length.
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
            true => self.derived(count, bound, Derivation::Times(factor.value() as usize)),
            false => Length::of(count, bound),
        }))
    }

    /// Returns the extent between two positions, both clamped to the axis. It is at most `bound`.
    pub(crate) fn part(&self, start: usize, end: Option<usize>, bound: Amount) -> Result<Length> {
        let way = match (start, end) {
            (0, None) => return Ok(self.clone()),
            (_, Some(end)) => Derivation::Part(start, end),
            (_, None) => match &self.root().0.origin {
                // Slices of slices are known to be equal to other slices.
                Some((whole, Derivation::Less(less))) => return whole.part(less.saturating_add(start), None, bound),
                _ => Derivation::Less(start),
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
        Ok(self.derived(count, bound, way))
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
        Ok(self.derived(count, whole_parts(self.amount(), by, up), Derivation::Quotient(by, up)))
    }

    /// Returns whether this is known to be the number of whole parts of another length.
    pub(crate) fn counts_parts(&self, whole: &Length, size: usize) -> bool {
        let is_quotient = |length: &Length| matches!(&length.0.origin, Some((of, Derivation::Quotient(by, false))) if *by == size && of.is_same(whole));
        size == 1 && self.is_same(whole) || is_quotient(self) || is_quotient(self.root())
    }

    /// Promises that two lengths are equal: arrays with one can be used beside arrays with the other, and no
    /// number is compared.
    ///
    /// The promise is not checked. If it does not hold, arrays computed from both have the elements of either
    /// length, and no access is outside them.
    pub fn unite(&self, other: &Length) {
        let (own, theirs) = (self.root(), other.root());
        if Arc::ptr_eq(&own.0, &theirs.0) {
            return;
        }
        if let Some(known) = own.known_amount().or(theirs.known_amount()) {
            own.learn(known.clone());
            theirs.learn(known);
        }
        // A length that is in memory represents one that is not.
        let (from, to) = if theirs.0.count.is_pending() && !own.0.count.is_pending() { (theirs, own) } else { (own, theirs) };
        // Another thread may have united them in the opposite direction.
        if !Arc::ptr_eq(&to.root().0, &from.0) {
            let _ = from.0.equal.0.set(to.clone());
        }
    }

    /// Returns the number if the host has learned it. Does not wait. During tracing, the trace becomes valid
    /// for this number only.
    pub fn known(&self) -> Option<usize> {
        self.known_amount().map(|known| known.get() as usize)
    }

    /// Returns the number if the host has learned it; it may depend on the extents of a function's inputs.
    /// Does not wait.
    pub fn known_amount(&self) -> Option<Amount> {
        self.0.known.get().or_else(|| self.root().0.known.get()).cloned()
    }

    /// Tells the host the number, which it has read together with other numbers. A number above the bound
    /// counts as the bound.
    pub fn learn(&self, count: impl Into<Amount>) {
        let count = count.into().min(&self.0.bound);
        let _ = self.0.known.set(count.clone());
        let _ = self.root().0.known.set(count);
    }

    /// Returns the bound. During tracing, the trace becomes valid for this bound only.
    pub fn bound(&self) -> usize {
        self.0.bound.get() as usize
    }

    /// Returns the bound, which may depend on the extents of a function's inputs.
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

    /// Reads the number to the host; waits for it.
    pub fn read(&self) -> Result<usize> {
        if let Some(known) = self.known() {
            return Ok(known.min(self.0.bound.value() as usize));
        }
        let count = self.count().read()?.lanes.first().and_then(|count| count.as_i128()).unwrap_or(0);
        self.learn(usize::try_from(count).unwrap_or(0));
        Ok(self.known().unwrap_or(0))
    }

    /// Returns the sum of the first extents of the parts, some known to the host and some to the device only.
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

/// Returns the array with a shape that the host knows.
fn hosted(node: &Node) -> Result<Node> {
    let Some(length) = node.length() else { return Ok(node.clone()) };
    let all = node.evaluate()?;
    let mut extents = node.bound().extents().to_vec();
    extents[0] = length.read()?;
    let shape = Shape::from(extents);
    let bytes = shape.count() * node.ty().bytes() as usize;
    let failed = || Error::Plan { what: "a length".into(), reason: "an array is shorter than it".into() };
    let mut buffer = all.slice(0, bytes).ok_or_else(failed)?;
    // A clamped index is the index of the first element, even if the array is empty: one row is kept.
    let row = all.len() / node.bound().extents()[0].max(1);
    if bytes.max(row) < all.len() / USED {
        // Otherwise memory for many elements would live as long as a few.
        let own: Buffer<u8> = node.context().device().allocate(bytes.max(row))?;
        own.copy_from(Stream::default(), &all.slice(0, bytes.max(row)).ok_or_else(failed)?)?;
        buffer = own.slice(0, bytes).ok_or_else(failed)?;
        node.settle(State::Ready(own));
    }
    Node::from_buffer(node.context(), node.ty(), shape, buffer)
}

/// Returns the common length of the inputs of an elementwise operation; `Err(())` if they are not known to be
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
    /// Returns the shape. If only the device knows the length, computes the array and waits; see
    /// [`Node::bound`]. Returns the bound inside a traced function, and if the device failed.
    pub fn shape(&self) -> &Shape {
        match self.length() {
            None => self.bound(),
            Some(_) => self.known().map_or(self.bound(), Node::bound),
        }
    }

    /// Returns the array with a shape that the host knows. If only the device knows the length, computes the
    /// array and waits.
    pub fn hosted(&self) -> Result<Node> {
        if self.length().is_none() { Ok(self.clone()) } else { self.known().cloned() }
    }

    /// Returns the array with the length known to the host.
    fn known(&self) -> Result<&Node> {
        match self.hosted_cell().get() {
            Some(known) => Ok(known),
            None => {
                let known = hosted(self)?;
                Ok(self.hosted_cell().get_or_init(|| known))
            }
        }
    }

    /// Returns the first elements along the first axis, up to a length that the device knows. The first
    /// extent of this array must be the bound of the length.
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

    /// Returns the first elements along the first axis: up to a length that is promised to be no greater than
    /// that of this array, or `bound` of them if there is no length. Does not wait.
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

    /// Creates an `i64` without axes from an amount, which may depend on the extents of a function's inputs.
    pub fn counting(context: &Context, amount: &Amount) -> Node {
        Node::counting_in(context, Shape::from([]), amount)
    }

    /// Creates an array with such a number at every position.
    pub(crate) fn counting_in(context: &Context, shape: Shape, amount: &Amount) -> Node {
        Node::pending(context, Type::I64, shape, Op::Fill(Scalar::counting(amount)), smallvec![])
    }

    /// Creates an array of this shape that has one value at every position. Does not wait.
    pub fn fill_like(&self, value: &[Literal]) -> Result<Node> {
        Ok(Node::fill(self.context(), self.bound().clone(), value)?.with_length(self.length().cloned()))
    }

    /// Creates an array of this shape that holds the position along an axis. Does not wait.
    pub fn position_like(&self, axis: usize, element: Element) -> Result<Node> {
        Ok(Node::position(self.context(), self.bound().clone(), axis, element)?.with_length(self.length().cloned()))
    }

    /// Returns an array of indices unchanged, or with a signed type if only the device knows its length:
    /// beyond its end it has [`nowhere`].
    pub(crate) fn signed_with_length(&self) -> Result<Node> {
        if self.length().is_none() || self.ty().element().is_signed() {
            return Ok(self.clone());
        }
        Node::elementwise(Elementwise::Convert(Element::I64), &[self])
    }

    /// Returns the extent of the first axis, an `i64` without axes. Does not wait.
    pub fn first_extent(&self) -> Result<Node> {
        match self.length() {
            Some(length) => Node::elementwise(Elementwise::Convert(Element::I64), &[length.count()]),
            None if self.bound().rank() > 0 => Ok(Node::counting(self.context(), &self.bound().amount(0))),
            None => self.number(1),
        }
    }

    /// Returns whether two arrays are known to have the same length, which only the device knows. Does not
    /// wait.
    pub fn is_as_long(&self, other: &Node) -> bool {
        self.length().is_some_and(|own| other.length().is_some_and(|theirs| own.is_same(theirs)))
    }

    /// Returns whether two arrays have the same shape. If that is not known, reads the lengths and waits.
    pub fn is_shaped_like(&self, other: &Node) -> bool {
        match (self.length(), other.length()) {
            (Some(own), Some(theirs)) if own.is_same(theirs) => self.bound() == other.bound(),
            _ => self.shape() == other.shape(),
        }
    }
}

/// Returns the value of a signed type that is no index: -1.
pub(crate) fn nowhere(ty: Type) -> Option<Lanes> {
    ty.element().is_signed().then(|| smallvec![Literal::from_i128(ty.element(), -1)])
}
