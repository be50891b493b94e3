//! Sorting within segments.

use super::descriptor::Segments;
use super::elements::convert;
use super::measure::Total;
use crate::expr::amount::Amount;
use crate::expr::check::same_context;
use crate::expr::error::{Error, Result};
use crate::expr::node::Node;
use broadloom_device::Machine;
use broadloom_scalar::{Element, Literal, Type};
use broadloom_skeleton::{SegmentedSort, SortKey};

/// Returns the longest segment of the pattern that sorts segments in place, if no segment is longer than
/// `longest`; `None` if that is too long. During tracing, only the outcome becomes a condition of the trace.
fn in_place(machine: &Machine, types: &[Type], values: bool, longest: &Amount) -> Option<u32> {
    let mut length = 1;
    loop {
        let taken = SegmentedSort::longest(machine, types, values, length)?;
        if !Amount::from(i64::from(taken)).is_less(longest) {
            return Some(taken);
        }
        length = 2 * u64::from(taken);
    }
}

impl Node {
    /// Sorts lines of one length by keys within each segment. The sort is stable. Keys come first in the
    /// result. NaN comes after all numbers.
    ///
    /// If `longest` promises segments that are short enough, each segment is sorted in place. Of a longer
    /// segment, only the start is then sorted, and the rest is arbitrary. Otherwise all are sorted at once,
    /// with the segment number as first key.
    pub fn segmented_sort(
        offsets: &Node,
        longest: Option<Amount>,
        keys: &[(&Node, SortKey)],
        values: &[&Node],
    ) -> Result<Vec<Node>> {
        offsets.checked_offsets("segmented sort")?;
        let Some((first, _)) = keys.first() else {
            return Err(offsets.refused("segmented sort", "there are no keys"));
        };
        same_context("segmented sort", &[offsets, first])?;
        first.check_line("segmented sort")?;
        let segments = Segments::from_offsets(offsets, Total::of(first))?;
        match longest {
            Some(longest) => segments.no_longer_than(longest).sort(keys, values),
            None => segments.sort(keys, values),
        }
    }
}

impl Segments {
    /// Sorts lines within segments by keys, the first of which is the most significant. The sort is stable.
    /// Keys come first in the result. NaN comes after all numbers.
    ///
    /// If [`Segments::no_longer_than`] promises short segments, each is sorted in place. Otherwise all are
    /// sorted at once, with the segment number as first key.
    pub fn sort(&self, keys: &[(&Node, SortKey)], values: &[&Node]) -> Result<Vec<Node>> {
        let name = "segmented sort";
        let lines = keys.iter().map(|(line, _)| *line).chain(values.iter().copied());
        lines.clone().try_for_each(|line| self.check_elements(name, line))?;
        let Some((first, _)) = keys.first() else {
            let (shape, reason) = (self.data.total.shape(), "there are no keys".to_owned());
            return Err(Error::Range { operation: name.into(), shape, reason });
        };
        let types: Vec<_> = keys.iter().map(|(line, _)| line.ty()).collect();
        let machine = first.context().device().machine();
        let has_lengths = lines.clone().any(|line| line.length().is_some());
        let count = &self.data.count;
        let longest = self.longest.as_ref().filter(|_| !has_lengths && !count.is_none());
        if let Some(longest) = longest.and_then(|longest| in_place(machine, &types, !values.is_empty(), longest)) {
            return Node::sorted(keys, values, Some((longest, &self.data.bounds)));
        }
        if !Amount::from(1).is_less(&count.bound) {
            return Node::sort(keys, values);
        }
        let numbers = convert(&self.ids()?, Element::U32)?;
        // Each round of the sort handles eight bits.
        let bits = [8, 16, 24].into_iter().find(|bits| count.bound.is_less(&Amount::from(1i64 << bits))).unwrap_or(32);
        let mut all = vec![(&numbers, SortKey { descending: false, bits: Some(bits) })];
        all.extend(keys);
        let mut sorted = Node::sort(&all, values)?;
        sorted.remove(0);
        Ok(sorted)
    }

    /// Returns the index that each element gets within its segment by a stable sort, an integer from 0 on.
    pub fn rank(&self, line: &Node, descending: bool, element: Element) -> Result<Node> {
        self.check_elements("rank", line)?;
        if !element.is_integer() {
            return Err(Error::Type { operation: "rank".into(), ty: element.into() });
        }
        let total = &self.data.total;
        if total.is_none() || self.data.count.is_none() {
            return total.filled(&[Literal::zero(element)]);
        }
        let places = total.places(Element::I64)?;
        let sorted = self.sort(&[(line, SortKey { descending, bits: None })], &[&places])?;
        let Some(origins) = sorted.last() else {
            return Err(Error::Plan { what: "rank".into(), reason: "a sort without its values".into() });
        };
        // Elements stay in their segment, so the index within the segment depends only on the position on the
        // line.
        let ranks = convert(&self.places()?, element)?;
        let nothing = Node::fill(self.context(), total.shape(), &[Literal::zero(element)])?;
        total.cut(nothing.scatter(&[origins], &ranks, None)?)
    }

    /// Returns the indices on the line of the elements of each segment in sorted order, an `i64`. The sort is
    /// stable.
    pub fn sorted_places(&self, line: &Node, descending: bool) -> Result<Node> {
        let places = self.data.total.places(Element::I64)?;
        let mut sorted = self.sort(&[(line, SortKey { descending, bits: None })], &[&places])?;
        Ok(sorted.swap_remove(1))
    }
}
