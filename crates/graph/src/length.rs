//! Lengths that only the device knows: how many elements a pack has chosen, the sum of other lengths.
//!
//! An array with such a length has an upper bound of its first extent on the host. Memory is taken for the bound. Kernels behind it are
//! launched for the bound, read the length where they run, and do nothing beyond it. So nothing waits until somebody asks for the shape or
//! the elements.
//!
//! - The bytes behind the length are anything, and no kernel computes with them.
//! - Arrays with the same [`Length`] are known to be equally long. An operation on arrays whose lengths are not known to be equal asks for
//!   the numbers, so it waits; so does an operation that needs an extent on the host: an index from the end, a reshape that divides the
//!   length.
//! - When the host learns the length, an array that uses less than a quarter of its memory is copied and gives the memory back. An array
//!   whose bound takes more than an eighth of the device's memory ([`WASTE`]) learns its length right when it is computed: that is one wait,
//!   for the memory.

use crate::amount::Amount;
use crate::build::same_context;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::node::{Node, State};
use crate::op::{Elementwise, Op, Scalar};
use crate::shape::Shape;
use crate::view::View;
use broadloom_device::{Buffer, Stream};
use broadloom_scalar::{BinaryOp, Builder, Element, Literal, Type};
use smallvec::smallvec;
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
    known: OnceLock<usize>,
    /// How it follows from another length.
    origin: Option<(Length, Way)>,
}

/// A way to make a length from another. Lengths that are made in the same way from equal lengths are known to be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// A multiple of the length.
    Times(usize),
    /// The distance between two places.
    Part(usize, Option<usize>),
}

impl Length {
    /// The length that an array without axes holds, an integer, where it is at most `bound`; else `bound`.
    pub fn new(count: &Node, bound: usize) -> Result<Length> {
        let f = Builder::function("length");
        let (count_in, bound_in) = (f.parameter("count", count.ty()), f.parameter("bound", Type::U64));
        if !count.ty().is_scalar() || !count.ty().element().is_integer() {
            return Err(Error::Type { operation: "length".into(), ty: count.ty() });
        }
        if count.bound().rank() != 0 || bound > u32::MAX as usize {
            let reason = format!("a length is one number below 2^32, and the bound is {bound}");
            return Err(Error::Range { operation: "length".into(), shape: count.bound().clone(), reason });
        }
        let held = f.convert(f.max(count_in, 0), Type::U64);
        let function = f.finish_function(&[f.convert(f.min(held, bound_in), Type::U32)])?;
        let bound_in = Node::fill(count.context(), Shape::from([]), &[Literal::from(bound as u64)])?;
        Ok(Length::of(Node::elementwise(Elementwise::Call(function, 0), &[count, &bound_in])?, bound))
    }

    /// The length that a `u32` holds which is known to be at most the bound.
    pub(crate) fn of(count: Node, bound: impl Into<Amount>) -> Length {
        Length(Arc::new(Data { count, bound: bound.into(), known: OnceLock::new(), origin: None }))
    }

    fn made(&self, count: Node, bound: Amount, way: Way) -> Length {
        Length(Arc::new(Data { count, bound, known: OnceLock::new(), origin: Some((self.clone(), way)) }))
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
        if start == 0 && end.is_none() {
            return Ok(self.clone());
        }
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
        Ok(self.made(count, bound, Way::Part(start, end)))
    }

    /// The number, as a `u32` without axes.
    pub fn count(&self) -> &Node {
        &self.0.count
    }

    /// Its bound. A function that is traced relies on it.
    pub fn bound(&self) -> usize {
        self.0.bound.get() as usize
    }

    /// Its bound, for code that notes itself what it relies on.
    pub(crate) fn amount(&self) -> &Amount {
        &self.0.bound
    }

    /// Returns whether both are known to be equal.
    pub fn is_same(&self, other: &Length) -> bool {
        let (mut own, mut theirs) = (self, other);
        loop {
            if Arc::ptr_eq(&own.0, &theirs.0) || own.0.count.is_same(&theirs.0.count) {
                return true;
            }
            match (&own.0.origin, &theirs.0.origin) {
                (Some((a, by)), Some((b, other))) if by == other => (own, theirs) = (a, b),
                _ => return false,
            }
        }
    }

    /// The number on the host; waits for it.
    pub fn read(&self) -> Result<usize> {
        if let Some(known) = self.0.known.get() {
            return Ok(*known);
        }
        let count = self.0.count.read()?.lanes.first().and_then(|count| count.as_i128()).unwrap_or(0);
        Ok(*self.0.known.get_or_init(|| usize::try_from(count).unwrap_or(0).min(self.0.bound.value() as usize)))
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
            let reason = format!("its first extent is not {}, which the length is at most", length.bound());
            return Err(Error::Range { operation: "shorten".into(), shape: array.bound().clone(), reason });
        }
        Ok(array.seen(View::whole(array.bound())).with_length(Some(length.clone())))
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

    /// How many elements there are along the first axis, an `i64` without axes. Never waits.
    pub fn first_extent(&self) -> Result<Node> {
        match self.length() {
            Some(length) => Node::elementwise(Elementwise::Convert(Element::I64), &[length.count()]),
            None if self.bound().rank() > 0 => Ok(Node::counting(self.context(), &self.bound().amount(0))),
            None => self.number(1),
        }
    }

    /// Returns whether two arrays are known to have one shape; where that is not known it asks, and waits.
    pub fn is_shaped_like(&self, other: &Node) -> bool {
        match (self.length(), other.length()) {
            (Some(own), Some(theirs)) if own.is_same(theirs) => self.bound() == other.bound(),
            _ => self.shape() == other.shape(),
        }
    }
}
