//! Selection: the first elements of a sorted line, without the sort of the others.
//!
//! Keys are numbers in the order of the sort. Histograms of their digits, from the most significant on, give
//! the number that the last wanted element has (Alabi et al., "Fast k-selection algorithms for graphics
//! processing units", 2012). The elements with lesser numbers, and as many of its equals as are wanted, keep
//! their order. They are sorted at the end, so the result is that of the stable sort of all elements.
//!
//! Rejected: a sort of all elements whose number is at most that of the last one. The host would have to learn
//! how many there are.

use crate::expr::elementwise::Elementwise;
use crate::expr::error::Result;
use crate::expr::node::Node;
use crate::expr::shape::Shape;
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, Literal, Type};
use broadloom_skeleton::cost::{LEAST_SELECTED, SELECTED_PART};
use broadloom_skeleton::{Boundary, Combine, SortKey, ordered};

/// Digits of a number of 32 bits: the number of the first bit, and the number of bits.
const DIGITS: [(u32, u32); 3] = [(21, 11), (10, 11), (0, 10)];

impl Node {
    /// Returns one of `lines` sorted by the first of them, up to `count` elements; `None` if a sort of all
    /// elements serves as well.
    pub(crate) fn first_sorted(lines: &[Node], key: SortKey, wanted: usize, count: usize) -> Result<Option<Node>> {
        let Some(keys) = lines.first() else { return Ok(None) };
        let element = keys.ty().element();
        let is_plain = keys.ty().is_scalar() && element.bits() <= 32 && lines.iter().all(|line| line.length().is_none());
        if !is_plain || count == 0 {
            return Ok(None);
        }
        // During tracing, these become conditions of the trace.
        let length = keys.bound().amount(0);
        let least = count.saturating_mul(SELECTED_PART).max(LEAST_SELECTED);
        if length.is_less(&least.into()) || !length.is_less(&(i32::MAX as usize).into()) {
            return Ok(None);
        }
        let f = Builder::function("ordered");
        let number = ordered(&f, f.parameter("key", keys.ty()), key.descending);
        let number = Node::elementwise(Elementwise::Call(f.finish_function(&[number])?, 0), &[keys])?;
        let last = number.number_at(count)?;
        let chosen = |compare: CompareOp| -> Result<(Node, Node)> {
            let chosen = Node::elementwise(Elementwise::Compare(compare), &[&number, &last])?;
            number.position_like(0, Element::I32)?.pack_counted(&chosen)
        };
        let ((less, before), (equal, _)) = (chosen(CompareOp::Lt)?, chosen(CompareOp::Eq)?);
        // Less elements come first, then equal ones.
        let own = Node::position(keys.context(), Shape::from(count), 0, Element::I32)?;
        let f = Builder::function("behind");
        let (own_place, before_in) = (f.parameter("place", Type::I32), f.parameter("before", Type::U32));
        let behind = f.finish_function(&[f.sub(own_place, f.convert(before_in, Type::I32))])?;
        let behind = Node::elementwise(Elementwise::Call(behind, 0), &[&own, &before])?;
        let f = Builder::function("chosen");
        let (behind_in, less_in) = (f.parameter("behind", Type::I32), f.parameter("less", Type::I32));
        let equal_in = f.parameter("equal", Type::I32);
        let place = f.finish_function(&[f.select(f.lt(behind_in, 0), less_in, equal_in)])?;
        let (less, equal) = (less.gather(&[&own], &Boundary::Clamp)?, equal.gather(&[&behind], &Boundary::Clamp)?);
        let place = Node::elementwise(Elementwise::Call(place, 0), &[&behind, &less, &equal])?;
        let taken = lines.iter().map(|line| line.gather(&[&place], &Boundary::Clamp)).collect::<Result<Vec<Node>>>()?;
        let Some((key_line, others)) = taken.split_first() else { return Ok(None) };
        let mut sorted = Node::sort(&[(key_line, key)], &others.iter().collect::<Vec<_>>())?;
        Ok((wanted < sorted.len()).then(|| sorted.swap_remove(wanted)))
    }

    /// Returns the number that the element at `count - 1` has in the sorted line of these numbers, a `u32`.
    fn number_at(&self, count: usize) -> Result<Node> {
        let number = |value: usize| Node::fill(self.context(), Shape::from([]), &[Literal::from(value as u32)]);
        let (mut found, mut rest) = (number(0)?, number(count)?);
        for (shift, bits) in DIGITS {
            let bins = 1usize << bits;
            let f = Builder::function("digit");
            let (own, above) = (f.parameter("number", Type::U32), f.parameter("found", Type::U32));
            let digit = f.and(f.shr(own, shift), bins as u32 - 1);
            // Numbers with other digits above are in no bin.
            let digit = match shift + bits {
                32 => digit,
                end => f.select(f.eq(f.shr(own, end), f.shr(above, end)), digit, bins as u32),
            };
            let digit = Elementwise::Call(f.finish_function(&[digit])?, 0);
            let digits = Node::elementwise(digit, &[self, &found])?;
            let up_to = digits.histogram(bins)?.scan(Combine::Sum, 0, true)?;
            let f = Builder::function("before");
            let (up_to_in, rest_in) = (f.parameter("up_to", Type::U32), f.parameter("rest", Type::U32));
            let is_before = f.lt(up_to_in, rest_in);
            let results = [f.convert(is_before, Type::U32), f.select(is_before, up_to_in, f.literal(0u32))];
            let function = f.finish_function(&results)?;
            let of = |result: u8| Node::elementwise(Elementwise::Call(function.clone(), result), &[&up_to, &rest]);
            let digit = of(0)?.reduce(Combine::Sum, &[0])?;
            let before = of(1)?.reduce(Combine::Max, &[0])?;
            rest = Node::elementwise(Elementwise::Binary(BinaryOp::Sub), &[&rest, &before])?;
            let f = Builder::function("found");
            let (above, digit_in) = (f.parameter("found", Type::U32), f.parameter("digit", Type::U32));
            let function = f.finish_function(&[f.or(above, f.shl(digit_in, shift))])?;
            found = Node::elementwise(Elementwise::Call(function, 0), &[&found, &digit])?;
        }
        Ok(found)
    }
}
