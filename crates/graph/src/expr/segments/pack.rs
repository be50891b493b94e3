//! Packing of segments: the elements selected by flags, and the segments that they form.

use super::descriptor::{PackOrigin, Segments};
use super::elements::{choose, convert};
use super::measure::SegmentCount;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::Result;
use crate::expr::node::{Expression, Inputs, Length, Node, State};
use crate::expr::op::Op;
use crate::expr::shape::Shape;
use broadloom_scalar::{Element, Type};
use broadloom_skeleton::{Combine, Rule};
use std::collections::HashMap;

/// Maximum number of operations per element that are moved before a pack: they are also computed for elements
/// that are not selected.
const MOST_OPERATIONS: u64 = broadloom_skeleton::cost::UNCHOSEN;

impl Segments {
    /// Keeps the elements of lines whose flag is true, with the segments that they form. The number of
    /// segments stays, and each keeps the selected elements of the old one. Only the device knows the number
    /// of elements; nothing waits.
    ///
    /// A reduction of the result combines elements in the unpacked lines: see [`Segments::reduce`].
    pub fn pack(&self, flags: &Node, values: &[&Node]) -> Result<(Segments, Vec<Node>)> {
        self.check_elements("segmented pack", flags)?;
        flags.check_type("segmented pack", Type::BOOL)?;
        values.iter().try_for_each(|line| self.check_elements("segmented pack", line))?;
        // Counts have 32 bits if the total fits 32 bits, which saves memory traffic.
        let counter = if self.data.total.is_narrow() { Element::I32 } else { Element::I64 };
        let counts = convert(flags, counter)?.reduce_segments(&self.data.bounds, Combine::Sum)?;
        let lengths = self.data.count.cut(counts)?;
        if self.data.total.is_none() {
            let segments = Segments::with_lengths(&lengths, self.data.count.clone(), self.data.total.clone(), None)?;
            return Ok((segments, values.iter().map(|line| (*line).clone()).collect()));
        }
        let (packed, count) = Node::pack_lines(flags, values)?;
        let length = Length::of(count, packed.first().map_or_else(|| flags.bound().size(), |line| line.bound().size()));
        let packed: Vec<Node> = packed.into_iter().map(|line| line.with_length(Some(length.clone()))).collect();
        let lines = packed.iter().cloned().zip(values.iter().map(|line| (*line).clone())).collect();
        let origin = PackOrigin { segments: self.clone(), flags: flags.clone(), lines };
        let (count, total) = (self.data.count.clone(), SegmentCount::device(&length)?);
        let segments = Segments::with_lengths(&lengths, count, total, Some(origin))?;
        segments.data.forms.set_lengths(&convert(&lengths, Element::I64)?);
        Ok((segments, packed))
    }

    /// Returns the segments before the pack, and a line of them with the same reduction as this line: the
    /// values before the pack where the flag is true, the identity elsewhere. `None` if the line is not
    /// computed elementwise from packed lines, or if its elements are in memory.
    pub(super) fn unpacked(&self, line: &Node, combine: &Combine) -> Result<Option<(&Segments, Node)>> {
        let Some(origin) = &self.data.origin else { return Ok(None) };
        let Some(before) = origin.before(self, line, &mut WorkBeforePack::default())? else { return Ok(None) };
        let nothing = Node::fill(line.context(), Shape::from([]), &combine.identity(line.ty()))?;
        let chosen = choose(&origin.flags, &before, &nothing)?;
        Ok(Some((&origin.segments, chosen)))
    }
}

/// Elementwise work moved before a pack so far.
#[derive(Default)]
struct WorkBeforePack {
    nodes: HashMap<usize, Node>,
    operations: u64,
}

impl WorkBeforePack {
    /// Adds the cost of an operation; returns whether the total is still cheap.
    fn affords(&mut self, op: &Elementwise) -> bool {
        self.operations += match op {
            Elementwise::Call(function, _) => function.operations(),
            Elementwise::Math(..) => MOST_OPERATIONS / 4,
            _ => 1,
        };
        self.operations <= MOST_OPERATIONS
    }
}

impl PackOrigin {
    /// Returns the line before the pack that corresponds to a line: elementwise work is moved before the
    /// pack.
    fn before(&self, packed: &Segments, line: &Node, known: &mut WorkBeforePack) -> Result<Option<Node>> {
        let state = line.state();
        let State::Pending(Expression { op, inputs }) = &state else { return Ok(None) };
        if let Some((_, before)) = self.lines.iter().find(|(packed, _)| packed.is_same(line)) {
            return Ok(Some(before.clone()));
        }
        if let Some(before) = known.nodes.get(&line.identity()) {
            return Ok(Some(before.clone()));
        }
        let total = &self.segments.data.total;
        let before = match (op, &inputs[..]) {
            (Op::Fill(_), _) => line.filled(total.shape(), op).with_length(total.length.clone()),
            // One value for all elements.
            (Op::View(_), [input]) if input.bound().rank() == 0 => input.stretched(&total.shape(), total.length.as_ref())?,
            (Op::Gather(Rule::Inside, _), [values, ids]) if packed.data.forms.has_ids(ids) => self.segments.spread(values)?,
            (Op::Elementwise(op), inputs) if known.affords(op) => {
                let mut moved = Inputs::new();
                for input in inputs {
                    let Some(input) = self.before(packed, input, known)? else { return Ok(None) };
                    moved.push(input);
                }
                Node::elementwise(op.clone(), &moved.iter().collect::<Vec<&Node>>())?
            }
            _ => return Ok(None),
        };
        known.nodes.insert(line.identity(), before.clone());
        Ok(Some(before))
    }
}
