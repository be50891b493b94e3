//! Index arithmetic of splitters and joiners.
//!
//! Items of a tape are numbered from the start of the program. The item *i* of a splitter's output is the item
//! (*i* / w) · W + o + *i* mod w of its input, where w is the weight of the output, W the sum of all weights and o the
//! sum of those before it. The same holds for the input of a joiner and its output. So neither moves anything: a
//! reader of a splitter and a writer of a joiner compute where their items lie.

use broadloom_scalar::{Builder, Value};

/// A step from the number of an item on one tape to that on another.
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
    /// A joiner right behind a splitter, all weights of each equal: a permutation.
    Shuffle {
        /// Branches.
        branches: i64,
        /// Items that the splitter gives a branch at a time; none where it duplicates.
        split: Option<i64>,
        /// Items that the joiner takes from a branch at a time.
        join: i64,
        /// Steps within each branch.
        inner: Vec<Step>,
    },
}

fn spread(index: i64, weight: i64, total: i64, offset: i64) -> i64 {
    index.div_euclid(weight) * total + offset + index.rem_euclid(weight)
}

/// Items, from the first to the one behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub start: i64,
    /// The one behind the last.
    pub end: i64,
}

impl Range {
    /// Returns a range.
    pub fn new(start: i64, end: i64) -> Range {
        Range { start, end }
    }

    /// Returns the smallest range that holds both.
    #[must_use]
    pub fn hull(self, other: Range) -> Range {
        Range { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the number of items.
    pub fn len(self) -> i64 {
        (self.end - self.start).max(0)
    }

    /// Returns whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Returns a range that holds the targets of all items of a range.
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
    })
}

/// Returns the items whose targets lie in a range, for steps of joiners.
pub fn preimage(steps: &[Step], range: Range) -> Range {
    steps.iter().rev().fold(range, |range, step| match step {
        Step::Spread { weight, total, offset } => {
            let below = |bound: i64| bound.div_euclid(*total) * weight + (bound.rem_euclid(*total) - offset).clamp(0, *weight);
            Range { start: below(range.start), end: below(range.end) }
        }
        Step::Shuffle { .. } => range,
    })
}

/// Returns whether `length` items from every multiple of `length` stay side by side.
pub fn keeps_runs(steps: &[Step], length: i64) -> bool {
    steps.iter().all(|step| match step {
        Step::Spread { weight, total, offset } => weight % length == 0 && total % length == 0 && offset % length == 0,
        Step::Shuffle { split, join, inner, .. } => {
            join % length == 0 && split.is_none_or(|split| split % length == 0) && keeps_runs(inner, length)
        }
    })
}

/// Writes the code of the steps, for numbers that may be as low as `least`.
pub(crate) fn apply(k: &Builder, steps: &[Step], index: Value, least: i64) -> Value {
    let (mut index, mut least) = (index, least);
    for step in steps {
        // Divisions round towards zero, so numbers are kept from being negative.
        let round = match step {
            Step::Spread { weight, .. } => *weight,
            Step::Shuffle { branches, join, .. } => branches * join,
        };
        let lift = if least < 0 { (-least + round - 1) / round } else { 0 };
        let lifted = if lift > 0 { k.add(index, lift * round) } else { index };
        let (moved, target) = match step {
            Step::Spread { weight, total, offset } => {
                let moved = match (*weight, lifted) {
                    (1, one) => k.add(k.mul(one, *total), *offset),
                    (weight, one) => {
                        let (quotient, rest) = (k.div(one, weight), k.rem(one, weight));
                        k.add(k.add(k.mul(quotient, *total), rest), *offset)
                    }
                };
                (moved, lift * total)
            }
            Step::Shuffle { branches, split, join, inner } => {
                let (quotient, rest) = (k.div(lifted, round), k.rem(lifted, round));
                let (branch, item) = (k.div(rest, *join), k.rem(rest, *join));
                let item = k.add(k.mul(quotient, *join), item);
                let item = apply(k, inner, item, 0);
                let moved = match split {
                    None => item,
                    Some(split) => {
                        let (quotient, rest) = (k.div(item, *split), k.rem(item, *split));
                        let outer = k.add(k.mul(quotient, split * branches), k.mul(branch, *split));
                        k.add(outer, rest)
                    }
                };
                (moved, lift * join * if split.is_some() { *branches } else { 1 })
            }
        };
        index = if target > 0 { k.sub(moved, target) } else { moved };
        least = image(std::slice::from_ref(step), Range::new(least, least + 1)).start;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use broadloom_scalar::Type;

    fn value(steps: &[Step], index: i64) -> i64 {
        steps.iter().fold(index, |index, step| match step {
            Step::Spread { weight, total, offset } => spread(index, *weight, *total, *offset),
            Step::Shuffle { branches, split, join, inner } => {
                let (quotient, rest) = (index.div_euclid(branches * join), index.rem_euclid(branches * join));
                let item = value(inner, quotient * join + rest % join);
                let branch = rest / join;
                split.map_or(item, |split| item.div_euclid(split) * split * branches + branch * split + item.rem_euclid(split))
            }
        })
    }

    /// Code, ranges and their inverse agree with the definition, for negative numbers too.
    #[test]
    fn steps_agree_with_their_definition() {
        let port = |weight, total, offset| Step::Spread { weight, total, offset };
        let shuffle = |inner| Step::Shuffle { branches: 2, split: Some(1), join: 4, inner };
        let chains = [
            vec![port(2, 5, 3)],
            vec![port(1, 3, 0), port(3, 4, 1)],
            vec![shuffle(vec![])],
            vec![Step::Shuffle { branches: 3, split: None, join: 2, inner: vec![] }],
        ];
        for steps in &chains {
            let b = Builder::function("index");
            let i = b.parameter("i", Type::I32);
            let moved = apply(&b, steps, i, -24);
            let code = b.finish_function(&[moved]).unwrap();
            for index in -24i64..24 {
                let wanted = value(steps, index);
                let found = code.evaluate(&[(index as i32).into()]).unwrap()[0].as_i128();
                assert_eq!(found, Some(wanted.into()), "{steps:?} at {index}");
                let range = image(steps, Range::new(index, index + 5));
                assert!((index..index + 5).all(|index| (range.start..range.end).contains(&value(steps, index))));
            }
        }
        for index in -20i64..20 {
            for steps in &chains[..2] {
                let items = preimage(steps, Range::new(index, index + 7));
                let inside = |item: i64| (index..index + 7).contains(&value(steps, item));
                assert!((items.start - 9..items.end + 9).all(|item| inside(item) == (items.start..items.end).contains(&item)));
            }
        }
    }
}
