//! Scans within segments on a CPU, where a block is one warp.
//!
//! [`segmented_row`](super::segmented_row) scans a row. A part passes on the sum since its last
//! head, so it is read backwards to that head.

use super::ScanEmitter;
use crate::kit::{Accumulator, Writer, broadcast, choose, last_bit, reduce_warp};
use crate::operator::InSegments;
use broadloom_scalar::Value;

impl ScanEmitter<'_> {
    /// Returns the parts of the operator if all of it works within segments and a block is one warp.
    pub(super) fn segments(&self) -> Option<Vec<InSegments<'_>>> {
        if self.is_cpu { self.operator().in_segments() } else { None }
    }

    /// Combines the values of a part of a line since its last head, or all values if it has no head. Thread 0
    /// has the result.
    pub(super) fn reduce_last(&self, k: &Writer, parts: &[InSegments<'_>], line: &[Value], from: Value, to: Value) -> Vec<Value> {
        let lane = k.thread(broadloom_scalar::Axis::X);
        let operator = self.operator();
        let sums: Vec<Accumulator<'_>> = parts.iter().map(|part| Accumulator::new(k, part.operator)).collect();
        let heads: Vec<_> = parts.iter().map(|_| k.variable_with(k.literal(false))).collect();
        let all_found = || heads.iter().fold(k.literal(true), |all, head| k.and(all, k.get(*head)));
        let end = k.variable_with(to);
        k.while_loop(
            || k.and(k.gt(k.get(end), from), k.not(all_found())),
            || {
                // Only the row that is read first may be incomplete.
                let behind = k.get(end);
                let last = k.and(k.sub(k.sub(behind, from), 1), 31);
                let first = k.sub(k.sub(behind, 1), last);
                let place = k.add(first, self.wide(k, lane));
                let some = || k.choose_list(k.lt(place, behind), || self.at(k, line, place), || operator.nothing(k));
                let own = k.choose_list(k.eq(last, 31), || self.at(k, line, place), some);
                for ((part, sum), head) in parts.iter().zip(&sums).zip(&heads) {
                    let row = k.ballot(own[part.head], None);
                    let is_open = k.not(k.get(*head));
                    // The values from the last head on count, or all values if the row has no head.
                    let counts = k.and(is_open, k.ge(lane, last_bit(k, row)));
                    let values = choose(k, counts, &own[part.values.clone()], &part.operator.nothing(k));
                    let values = match part.operator.is_commutative() {
                        true => values,
                        false => broadcast(k, &reduce_warp(k, part.operator, &values, 32), 0),
                    };
                    sum.set(k, &part.operator.combine(k, &values, &sum.get(k)));
                    k.set(*head, k.or(k.get(*head), k.ne(row, 0)));
                }
                k.set(end, first);
            },
        );
        let whole = |(part, sum): (&InSegments<'_>, &Accumulator<'_>)| match part.operator.is_commutative() {
            true => reduce_warp(k, part.operator, &sum.get(k), 32),
            false => sum.get(k),
        };
        let values = parts.iter().zip(&sums).map(whole);
        heads.iter().zip(values).flat_map(|(head, values)| std::iter::once(k.get(*head)).chain(values)).collect()
    }
}
