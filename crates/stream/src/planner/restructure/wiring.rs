//! Index arithmetic of splitters and joiners.
//!
//! Items of a tape are numbered from the start of the program. An output of a splitter has a weight w; W is
//! the sum of all weights and o the sum of the weights before it. Item *i* of the output is the item
//!
//! (*i* / w) · W + o + *i* mod w
//!
//! of the input. The input of a joiner maps to its output in the same way. Neither moves any data: a reader
//! after a splitter and a writer before a joiner compute the places of their items.

use crate::language::schedule::gcd;
use broadloom_scalar::{Builder, Value};
use broadloom_skeleton::cost::dataflow;

/// A step from the number of an item on one tape to its number on another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A port of a splitter or joiner.
    Spread {
        /// Items of the port in a round.
        weight: i64,
        /// Items of all ports in a round.
        total: i64,
        /// Items of the ports before it.
        offset: i64,
    },
    /// A joiner directly after a splitter, each with equal weights: a permutation.
    Shuffle {
        /// Number of branches.
        branches: i64,
        /// Items that the splitter gives a branch at a time. `None` if it duplicates.
        split: Option<i64>,
        /// Items that the joiner takes from a branch at a time.
        join: i64,
        /// Steps within each branch.
        inner: Vec<Step>,
    },
    /// A joiner whose ports all lead to one tape, in turn.
    Select {
        /// For each port, its items in a round and the steps from there.
        ports: Vec<(i64, Vec<Step>)>,
        /// The number of items after which the targets repeat, and the distance by which they are then
        /// shifted.
        round: (i64, i64),
    },
}

impl Step {
    /// Returns a joiner with the given ports if its targets repeat after a few rounds.
    pub fn select(ports: Vec<(i64, Vec<Step>)>) -> Option<Step> {
        let total: i64 = ports.iter().map(|(weight, _)| weight).sum();
        if total == 0 || ports.iter().any(|(weight, _)| *weight == 0) {
            return None;
        }
        (1..=dataflow::JOINER_ROUNDS).find_map(|times| {
            let mut moved = ports.iter().map(|(weight, steps)| shift(steps, weight * times));
            let first = moved.next()??;
            let round = (total * times, first);
            moved.all(|other| other == Some(first)).then(|| Step::Select { ports: ports.clone(), round })
        })
    }

    /// Returns the inverse permutation.
    pub fn inverse(&self) -> Option<Step> {
        match self {
            Step::Shuffle { branches, split: Some(split), join, inner } => {
                let inner = inner.iter().rev().map(Step::inverse).collect::<Option<Vec<Step>>>()?;
                Some(Step::Shuffle { branches: *branches, split: Some(*join), join: *split, inner })
            }
            Step::Spread { .. } | Step::Shuffle { .. } | Step::Select { .. } => None,
        }
    }

    /// Returns the number of items that a permutation exchanges among themselves.
    pub fn period(&self) -> Option<i64> {
        match self {
            Step::Shuffle { branches, split: Some(split), join, inner } => {
                let own = inner.iter().try_fold(lcm(*split, *join), |all, step| Some(lcm(all, step.period()?)))?;
                Some(branches * own)
            }
            Step::Spread { .. } | Step::Shuffle { .. } | Step::Select { .. } => None,
        }
    }

    /// Returns whether every item is its own target.
    pub fn is_identity(&self) -> bool {
        match self {
            Step::Shuffle { branches: _, split, join, inner } => *split == Some(*join) && inner.iter().all(Step::is_identity),
            Step::Spread { .. } | Step::Select { .. } => false,
        }
    }

    /// Returns whether the targets repeat as generated code requires.
    pub fn repeats(&self) -> bool {
        let (items, moved) = self.round();
        shift(std::slice::from_ref(self), items) == Some(moved)
    }

    /// Returns the number of items after which targets repeat, and the distance by which they are then
    /// shifted.
    fn round(&self) -> (i64, i64) {
        match self {
            Step::Spread { weight, total, .. } => (*weight, *total),
            Step::Shuffle { branches, split, join, inner } => {
                let items = inner.iter().fold(lcm(*join, split.unwrap_or(1)), |all, step| lcm(all, step.round().0));
                let moved = shift(inner, items).unwrap_or(items);
                (branches * items, if split.is_some() { moved * branches } else { moved })
            }
            Step::Select { round, .. } => *round,
        }
    }
}

/// Returns the least common multiple.
pub(super) fn lcm(a: i64, b: i64) -> i64 {
    a / gcd(a, b).max(1) * b
}

/// Returns the distance between the targets of two items that are `count` apart, if it is equal for all
/// items.
pub fn shift(steps: &[Step], count: i64) -> Option<i64> {
    steps.iter().try_fold(count, |count, step| match step {
        Step::Spread { weight, total, .. } => (count % weight == 0).then(|| count / weight * total),
        Step::Shuffle { branches, split, join, inner } => {
            let round = branches * join;
            let items = (count % round == 0).then(|| count / round * join).and_then(|items| shift(inner, items))?;
            match split {
                None => Some(items),
                Some(split) => (items % split == 0).then(|| items * branches),
            }
        }
        Step::Select { round, .. } => (count % round.0 == 0).then(|| count / round.0 * round.1),
    })
}

/// Returns the target of an item.
pub fn target(steps: &[Step], index: i64) -> i64 {
    steps.iter().fold(index, |index, step| match step {
        Step::Spread { weight, total, offset } => spread(index, *weight, *total, *offset),
        Step::Shuffle { branches, split, join, inner } => {
            let (quotient, rest) = (index.div_euclid(branches * join), index.rem_euclid(branches * join));
            let item = target(inner, quotient * join + rest % join);
            let branch = rest / join;
            split.map_or(item, |split| item.div_euclid(split) * split * branches + branch * split + item.rem_euclid(split))
        }
        Step::Select { ports, .. } => {
            let total: i64 = ports.iter().map(|(weight, _)| weight).sum();
            let (quotient, mut rest) = (index.div_euclid(total), index.rem_euclid(total));
            for (weight, steps) in ports {
                if rest < *weight {
                    return target(steps, quotient * weight + rest);
                }
                rest -= weight;
            }
            index
        }
    })
}

fn spread(index: i64, weight: i64, total: i64, offset: i64) -> i64 {
    index.div_euclid(weight) * total + offset + index.rem_euclid(weight)
}

/// Items from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first item.
    pub start: i64,
    /// The end, after the last item.
    pub end: i64,
}

impl Range {
    /// Returns a range.
    pub fn new(start: i64, end: i64) -> Range {
        Range { start, end }
    }

    /// Returns the smallest range that contains both.
    #[must_use]
    pub fn hull(self, other: Range) -> Range {
        Range { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the number of items.
    pub fn len(self) -> i64 {
        (self.end - self.start).max(0)
    }

    /// Returns whether the range is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Returns a range that contains the targets of all items of a range.
pub fn image(steps: &[Step], range: Range) -> Range {
    steps.iter().fold(range, |range, step| match step {
        Step::Spread { weight, total, offset } => Range {
            start: spread(range.start, *weight, *total, *offset),
            end: spread(range.end - 1, *weight, *total, *offset) + 1,
        },
        Step::Shuffle { branches, split, join, inner } => {
            let round = branches * join;
            let items = Range::new(range.start.div_euclid(round) * join, (range.end + round - 1).div_euclid(round) * join);
            let items = image(inner, items);
            match split {
                None => items,
                Some(split) => Range {
                    start: items.start.div_euclid(*split) * split * branches,
                    end: (items.end + split - 1).div_euclid(*split) * split * branches,
                },
            }
        }
        Step::Select { ports, .. } => {
            let total: i64 = ports.iter().map(|(weight, _)| weight).sum();
            let rounds = Range::new(range.start.div_euclid(total), (range.end + total - 1).div_euclid(total));
            let each = ports.iter().map(|(weight, steps)| image(steps, Range::new(rounds.start * weight, rounds.end * weight)));
            each.reduce(Range::hull).unwrap_or(range)
        }
    })
}

/// Returns a range that contains the items whose targets are in a range, for the steps of a writer: joiners
/// and permutations. It is exact if the range consists of whole periods of the permutations.
pub fn preimage(steps: &[Step], range: Range) -> Range {
    steps.iter().rev().fold(range, |range, step| match step {
        Step::Spread { weight, total, offset } => {
            let below = |bound: i64| bound.div_euclid(*total) * weight + (bound.rem_euclid(*total) - offset).clamp(0, *weight);
            Range { start: below(range.start), end: below(range.end) }
        }
        Step::Shuffle { .. } | Step::Select { .. } => {
            let period = step.period().unwrap_or(1);
            Range::new(range.start.div_euclid(period) * period, (range.end + period - 1).div_euclid(period) * period)
        }
    })
}

/// Returns whether `length` items from every multiple of `length` stay contiguous.
pub fn keeps_runs(steps: &[Step], length: i64) -> bool {
    steps.iter().all(|step| match step {
        Step::Spread { weight, total, offset } => weight % length == 0 && total % length == 0 && offset % length == 0,
        Step::Shuffle { split, join, inner, .. } => {
            join % length == 0 && split.is_none_or(|split| split % length == 0) && keeps_runs(inner, length)
        }
        Step::Select { ports, .. } => ports.iter().all(|(weight, steps)| weight % length == 0 && keeps_runs(steps, length)),
    })
}

/// Returns an *anchor* for each of the `seen` items of a firing: another item of the firing, and the distance
/// from its target. The distance is equal for all firings.
///
/// A few items serve as anchors for all if the targets form rows. Firings begin `rate` items apart, from
/// `start` on. Their steps repeat after some multiple of `firings`. Returns an empty table if the steps do
/// not repeat soon enough, or if there are too many anchors.
pub fn anchors(steps: &[Step], start: i64, rate: i64, seen: i64, firings: i64) -> Vec<(i64, i64)> {
    let most = dataflow::TABLE_TARGETS / seen.max(1);
    let repeats = |count: &i64| shift(steps, count * rate).is_some();
    let Some(count) = (1..).map(|times| times * firings.max(1)).take_while(|count| *count <= most).find(repeats) else {
        return vec![];
    };
    let places = |item: i64| (0..count).map(move |firing| target(steps, start + firing * rate + item));
    let mut found: Vec<(i64, i64)> = vec![];
    let mut known: Vec<(i64, Vec<i64>)> = vec![];
    for item in 0..seen {
        let own: Vec<i64> = places(item).collect();
        let near = known.iter().rev().find_map(|(anchor, places)| {
            let distance = own.first()? - places.first()?;
            places.iter().zip(&own).all(|(place, own)| own - place == distance).then_some((*anchor, distance))
        });
        found.push(near.unwrap_or((item, 0)));
        if near.is_none() {
            known.push((item, own));
            if dataflow::anchors_differ(known.len() as i64, seen) {
                return vec![];
            }
        }
    }
    found
}

/// Writes the code of the steps, for numbers that may be as low as `least`.
#[doc(hidden)]
pub fn apply(k: &Builder, steps: &[Step], index: Value, least: i64) -> Value {
    let (mut index, mut least) = (index, least);
    for step in steps {
        // Divisions round towards zero, so numbers are kept from being negative.
        let (round, moved_by) = step.round();
        let lift = if least < 0 { (-least + round - 1) / round } else { 0 };
        let lifted = if lift > 0 { k.add(index, lift * round) } else { index };
        let moved = match step {
            Step::Spread { weight: 1, total, offset } => k.add(k.mul(lifted, *total), *offset),
            Step::Spread { weight, total, offset } => {
                let (quotient, rest) = (k.div(lifted, *weight), k.rem(lifted, *weight));
                k.add(k.add(k.mul(quotient, *total), rest), *offset)
            }
            Step::Shuffle { branches, split, join, inner } => {
                let (quotient, rest) = (k.div(lifted, branches * join), k.rem(lifted, branches * join));
                let (branch, item) = (k.div(rest, *join), k.rem(rest, *join));
                let item = k.add(k.mul(quotient, *join), item);
                let item = apply(k, inner, item, 0);
                match split {
                    None => item,
                    Some(split) => {
                        let (quotient, rest) = (k.div(item, *split), k.rem(item, *split));
                        let outer = k.add(k.mul(quotient, split * branches), k.mul(branch, *split));
                        k.add(outer, rest)
                    }
                }
            }
            Step::Select { ports, .. } => {
                let total: i64 = ports.iter().map(|(weight, _)| weight).sum();
                let (quotient, rest) = (k.div(lifted, total), k.rem(lifted, total));
                let mut offset = total;
                let mut chosen = None;
                for (weight, steps) in ports.iter().rev() {
                    offset -= weight;
                    let own = apply(k, steps, k.add(k.mul(quotient, *weight), k.sub(rest, offset)), 0);
                    chosen = Some(chosen.map_or(own, |others| k.select(k.ge(rest, offset + weight), others, own)));
                }
                chosen.unwrap_or(lifted)
            }
        };
        index = if lift > 0 { k.sub(moved, lift * moved_by) } else { moved };
        least = image(std::slice::from_ref(step), Range::new(least, least + 1)).start;
    }
    index
}
