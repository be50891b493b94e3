//! Reductions, scans and ranks within segments.

use super::extent::Extent;
use super::vector::{Affine, Facts, RankedElements, Vector};
use super::{Accelerator, DeviceSegdes, on_device};
use crate::eval::Run;
use crate::infer::Widths;
use crate::primitives::Fold;
use crate::vcode::{Combination, Op};
use broadloom_graph::{Amount, Combine, Direction, Elementwise, Node, SortKey};
use broadloom_scalar::{BinaryOp, Element, Literal};
use std::rc::Rc;

/// Returns the extremum of an empty set of floats, which is finite.
fn extremum(fold: Fold, widths: Widths, element: Element) -> Option<Literal> {
    match fold.combination() {
        Combination::Extremum(_) => Literal::from_f64(element, fold.neutral(widths).float),
        Combination::Operation(_) => None,
    }
}

impl Accelerator {
    /// Computes a reduction or a scan; `None` for other instructions.
    pub(super) fn fold(&mut self, op: Op, values: &Vector, segdes: &DeviceSegdes) -> Run<Option<Vector>> {
        let Some((fold, is_scan)) = op.fold() else { return Ok(None) };
        self.made += 2;
        if is_scan {
            let nodes = self.whole(values)?;
            let step = values.facts.constant().filter(|value| fold == Fold::Sum && segdes.is_single() && *value > 0);
            let affine = match step {
                Some(step) => {
                    let start = self.one(Literal::zero(values.node.ty().element()))?;
                    Some(Affine { start, known: Some(0), step })
                }
                None => None,
            };
            let facts = Facts { distinct: step.is_some(), affine, ..Facts::default() };
            return Ok(Some(self.scan(fold, &nodes, segdes)?.with_facts(facts)));
        }
        let is_int = values.node.ty().element() == self.int();
        if fold == Fold::Sum && is_int {
            if segdes.is_single()
                && self.is_counted(values)
                && (values.sum().is_some() || values.sum_bound().is_some_and(|bound| self.affords(&bound)))
            {
                // The sum is the number of elements of another vector.
                let sum = match values.sum() {
                    Some(sum) => sum,
                    None => self.sum_of(values)?,
                };
                let int = self.int();
                let count = self.count_of(&sum, int)?;
                let facts = match &sum {
                    Extent::Host(count) => Facts::of_value(count.clone()),
                    Extent::Device(_) => Facts { sum: values.facts.sum.clone(), ..Facts::default() },
                };
                return Ok(Some(Vector::of(self.as_vector(&count)?).generated(true).with_facts(facts)));
            }
            let facts = Facts::of_bound(values.terms());
            let nodes = self.whole(values)?;
            return Ok(Some(self.reduced(fold, values, &nodes, segdes)?.with_facts(facts)));
        }
        let nodes = self.whole(values)?;
        Ok(Some(self.reduced(fold, values, &nodes, segdes)?))
    }

    /// Reduces values. Elements of a pack that are not in memory are combined in the unpacked vector.
    fn reduced(&mut self, fold: Fold, values: &Vector, nodes: &Node, segdes: &DeviceSegdes) -> Run<Vector> {
        if let (Some(packed), Some((flags, from))) = (&values.packed, &segdes.packed)
            && packed.flags.is_same(flags)
            && values.padded.as_ref().unwrap_or(&values.node).buffer().is_none()
        {
            let identity = self.one(fold.device().identity(nodes.ty())[0])?;
            let chosen = self.elementwise(Elementwise::Select, &[flags, &packed.before, &identity])?;
            let result = self.reduce_plainly(fold.device(), &chosen, from)?;
            return self.extremum(fold, result, segdes);
        }
        let result = self.reduce_plainly(fold.device(), nodes, segdes)?;
        self.extremum(fold, result, segdes)
    }

    fn reduce_plainly(&mut self, combine: Combine, values: &Node, segdes: &DeviceSegdes) -> Run<Node> {
        if segdes.is_single() {
            let result = on_device(values.reduce(combine, &[0]))?;
            return self.as_vector(&result);
        }
        let segments = self.segments(segdes)?;
        Ok(on_device(segments.reduce(&[(values, combine)]))?.swap_remove(0))
    }

    /// Replaces the results of empty segments by the finite extremum of an empty set of floats.
    fn extremum(&mut self, fold: Fold, node: Node, segdes: &DeviceSegdes) -> Run<Vector> {
        let node = match extremum(fold, self.widths, node.ty().element()) {
            Some(of_none) => {
                let (of_none, lengths) = (self.one(of_none)?, &segdes.lengths.node);
                let inputs = [lengths, &of_none, &node];
                self.call("extremum", &inputs, |f, x| f.select(f.eq(x[0], 0), x[1], x[2]))?
            }
            None => node,
        };
        Ok(Vector { extent: segdes.count().clone(), ..Vector::of(node) })
    }

    /// Computes an exclusive scan.
    fn scan(&mut self, fold: Fold, values: &Node, segdes: &DeviceSegdes) -> Run<Vector> {
        let limit = extremum(fold, self.widths, values.ty().element());
        let mut node = if segdes.is_single() {
            on_device(values.scan(fold.device(), 0, false))?
        } else {
            let segments = self.segments(segdes)?;
            on_device(segments.scan(&[(values, fold.device())], false, Direction::Forwards))?.swap_remove(0)
        };
        if let Some(limit) = limit {
            let limit = self.one(limit)?;
            node = self.elementwise(
                Elementwise::Binary(if fold == Fold::Max { BinaryOp::Max } else { BinaryOp::Min }),
                &[&node, &limit],
            )?;
        }
        Ok(Vector::of(node))
    }

    /// Ranks elements within their segments; equal elements in their order.
    pub(super) fn rank(
        &mut self,
        values: &Vector,
        segdes: &DeviceSegdes,
        longest: Option<Amount>,
        descending: bool,
    ) -> Run<Vector> {
        let (int, whole) = (self.int(), self.whole(values)?);
        // Zeros of both signs are equal.
        let is_float = whole.ty().element().is_float();
        let key = if is_float { self.call("key", &[&whole], |f, x| f.add(x[0], 0))? } else { self.convert(&whole, int)? };
        let mut segments = self.segments(segdes)?;
        if let Some(longest) = longest {
            segments = segments.no_longer_than(longest);
        }
        self.made += 4;
        let ranks = on_device(segments.rank(&key, descending, int))?;
        let order = SortKey { descending, bits: None };
        let ranked = Rc::new(RankedElements {
            values: whole,
            key,
            order,
            segments,
            lengths: (!segdes.is_single()).then(|| segdes.lengths.node.clone()),
        });
        Ok(Vector::of(ranks).with_facts(Facts { ranked: Some(ranked), ..Facts::default() }))
    }

    /// Returns the elements in the order of their ranks: the keys are sorted, and nothing is scattered to
    /// computed indices. `None` if the ranks belong to other values.
    pub(super) fn ordered(&mut self, values: &Vector, ranks: &Vector, segdes: &DeviceSegdes) -> Run<Option<Vector>> {
        let Some(ranked) = &ranks.facts.ranked else { return Ok(None) };
        if !segdes.has_ranks(ranked) || !values.node.is_same(&ranked.values) || values.node.length().is_some() {
            return Ok(None);
        }
        self.made += 4;
        let keys = [(&ranked.key, ranked.order)];
        // The key of a float has lost the sign of zero.
        let element = ranked.values.ty().element();
        let others = if element.is_float() { vec![&ranked.values] } else { vec![] };
        let Some(sorted) = on_device(ranked.segments.sort(&keys, &others))?.pop() else { return Ok(None) };
        Ok(Some(Vector::new(self.convert(&sorted, element)?, values.extent.clone())))
    }

    /// Returns the length of the longest of several segments. The host waits for it. If all segments are
    /// short, each is sorted in place, which takes a fraction of the time. Otherwise elements go through
    /// several passes.
    pub(super) fn longest(&mut self, segdes: &DeviceSegdes) -> Run<Option<Amount>> {
        if segdes.is_single() || segdes.count().is_host(0) {
            return Ok(None);
        }
        if let Some(value) = &segdes.lengths.facts.value {
            return Ok(Some(value.clone()).filter(|value| !value.is_less(&0.into())));
        }
        if let Some(longest) = segdes.longest.get() {
            return Ok(Some(longest.clone()));
        }
        let lengths = self.whole(&segdes.lengths)?;
        let wide = self.convert(&lengths, Element::I64)?;
        let longest = on_device(wide.reduce(Combine::Max, &[0]))?;
        let longest = usize::try_from(self.wait_for(Some(&longest))?).unwrap_or(0);
        Ok(Some(segdes.longest.get_or_init(|| longest.into()).clone()))
    }
}
