//! Facts about the elements of int vectors that the host knows without reading from the device.
//!
//! The device computes lengths of segments, and the host allocates memory for elements. Facts about sums of
//! lengths avoid a wait: the sum of the `LENGTHS` of a descriptor is the number of its elements; packing
//! lengths or moving them to distinct indices does not make their sum larger.
//!
//! A bound is a sum of terms. A term is the sum of another vector, or of every n-th element of it. Terms for
//! different residues of one vector are disjoint, so together they are at most its sum. A term becomes exact
//! when the host learns its sum.

use super::DeviceSegdes;
use super::vector::{Extent, Vector};
use crate::vcode::Op;
use broadloom_graph::{Amount, Node, Segments, SortKey};
use std::cell::OnceCell;
use std::rc::Rc;

/// Sum of the elements of a vector, once it is known. No element is negative. Clones share it.
pub(crate) type Sum = Rc<OnceCell<Extent>>;

/// Facts about a vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The value of all elements.
    pub(crate) value: Option<Amount>,
    /// True if no element is 0.
    pub(crate) nonzero: bool,
    /// The sum of the elements.
    pub(crate) sum: Sum,
    /// Upper bound of the sum of the elements, none of which is negative.
    pub(crate) bound: Option<Bound>,
    /// True if the bound is that of a larger vector, so the sum may be much less.
    pub(crate) loose: bool,
    /// True if no two elements are equal.
    pub(crate) distinct: bool,
    /// Set if the elements are an arithmetic progression.
    pub(crate) affine: Option<Affine>,
    /// Set if the elements are the indices of true flags.
    pub(crate) chosen: Option<Rc<Chosen>>,
    /// Set if the elements are the ranks of other elements within their segments.
    pub(crate) ranked: Option<Rc<Ranked>>,
}

/// Elements that were ranked.
#[derive(Debug)]
pub(crate) struct Ranked {
    /// The elements.
    pub(crate) values: Node,
    /// The keys of the comparison.
    pub(crate) key: Node,
    pub(crate) order: SortKey,
    /// The segments, with the length of the longest if it is known.
    pub(crate) segments: Segments,
    /// The lengths of the segments; `None` for a single one.
    pub(crate) lengths: Option<Node>,
}

impl Ranked {
    /// Tells whether the ranks refer to the segments of a descriptor.
    pub(crate) fn is_within(&self, segdes: &DeviceSegdes) -> bool {
        match &self.lengths {
            Some(lengths) => segdes.lengths.node.is_same(lengths),
            None => segdes.is_single(),
        }
    }
}

/// An arithmetic progression.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    /// The first element, an int, as a vector of one element.
    pub(crate) start: Node,
    /// The first element, if the host knows it.
    pub(crate) known: Option<i64>,
    /// The difference of neighbours, which is positive.
    pub(crate) step: i64,
}

/// Flags by which indices were packed.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) flags: Vector,
    /// The number of true flags before each index, if it was needed.
    pub(crate) ranks: OnceCell<Node>,
}

/// An upper bound of a sum: a sum of terms.
#[derive(Clone, Debug)]
pub(crate) struct Bound(Rc<[Term]>);

#[derive(Clone, Debug)]
struct Term {
    /// The sum of a vector.
    sum: Sum,
    /// An upper bound of it.
    most: Amount,
    /// The counted elements: those whose index has this residue modulo this step; `None` for all.
    part: Option<(i64, i64)>,
}

/// Maximum number of terms of a bound.
const MAX_TERMS: usize = 16;

impl Term {
    fn amount(&self) -> Amount {
        self.sum.get().map_or_else(|| self.most.clone(), |sum| sum.learned().bound().min(&self.most))
    }
}

impl Bound {
    fn term(sum: &Sum, most: Amount, part: Option<(i64, i64)>) -> Bound {
        Bound([Term { sum: sum.clone(), most, part }].into())
    }

    /// Adds two bounds.
    fn plus(&self, other: &Bound) -> Option<Bound> {
        let all = Bound(self.0.iter().chain(other.0.iter()).cloned().collect());
        if all.0.len() <= MAX_TERMS { Some(all) } else { Some(Bound::term(&Sum::default(), all.total()?, None)) }
    }

    /// Returns the sums in the bound that have been computed.
    pub(crate) fn sums(&self) -> impl Iterator<Item = &Extent> {
        self.0.iter().filter_map(|term| term.sum.get())
    }

    /// Returns the bound as a number.
    fn total(&self) -> Option<Amount> {
        let mut total = Amount::from(0);
        let mut seen: Vec<(&Term, Vec<i64>)> = vec![];
        for term in self.0.iter() {
            if let Some((step, residue)) = term.part {
                let is_alike = |other: &Term| Rc::ptr_eq(&other.sum, &term.sum) && other.part.is_some_and(|(own, _)| own == step);
                match seen.iter_mut().find(|(other, residues)| is_alike(other) && !residues.contains(&residue)) {
                    Some((_, residues)) => {
                        residues.push(residue);
                        continue;
                    }
                    None => seen.push((term, vec![residue])),
                }
            }
            total = exact(total.plus(&term.amount()))?;
        }
        Some(total)
    }
}

/// Vector before a pack.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// The flags.
    pub(crate) flags: Node,
    /// The elements before the pack; a single one represents equal elements.
    pub(crate) before: Node,
}

impl Facts {
    pub(crate) fn of_value(value: impl Into<Amount>) -> Facts {
        let value = value.into();
        Facts { nonzero: !value.equals(&0.into()), value: Some(value), ..Facts::default() }
    }

    /// Returns the value of all elements, unless it depends on the sizes of columns.
    pub(crate) fn constant(&self) -> Option<i64> {
        self.value.as_ref().filter(|value| value.is_known()).map(Amount::value)
    }

    /// Returns the facts that hold for any part of equal elements.
    pub(crate) fn of_equal(&self) -> Facts {
        Facts { value: self.value.clone(), nonzero: self.nonzero, ..Facts::default() }
    }

    /// Tells whether the bound contains sums that only the device knows.
    pub(crate) fn has_unknown(&self) -> bool {
        self.bound.iter().flat_map(Bound::sums).any(|sum| sum.unknown().is_some())
    }

    pub(crate) fn of_bound(bound: Option<Bound>) -> Facts {
        Facts { bound, ..Facts::default() }
    }

    /// Returns facts about a vector with a sum.
    pub(crate) fn of_sum(sum: Extent) -> Facts {
        Facts { sum: Rc::new(OnceCell::from(sum)), ..Facts::default() }
    }

    /// Returns facts about the sum of elements: the sum, or an upper bound of it. No element may be negative.
    pub(crate) fn of_sum_or_bound(sum: Option<Amount>, bound: Option<Amount>) -> Facts {
        let bound = bound.map(|most| Bound::term(&Sum::default(), most, None));
        let facts = sum.map_or_else(Facts::default, |sum| Facts::of_sum(Extent::Host(sum)));
        Facts { bound, ..facts }
    }

    /// Returns facts about the result of an elementwise instruction.
    pub(crate) fn of_element(op: Op, inputs: &[Vector]) -> Facts {
        let (Op::Add | Op::Subtract, [a, b]) = (op, inputs) else { return Facts::default() };
        let by_equal = |a: &Vector, b: &Vector| a.facts.distinct && b.is_uniform();
        let distinct = by_equal(a, b) || by_equal(b, a);
        if op == Op::Subtract {
            return Facts { distinct, ..Facts::default() };
        }
        let value = match (&a.facts.value, &b.facts.value) {
            (Some(a), Some(b)) => Some(a.plus(b)).filter(is_narrow),
            _ => None,
        };
        let (bound, loose) = (plus(a.terms(), b.terms()), a.facts.loose || b.facts.loose);
        Facts { value, bound, loose, distinct, ..Facts::default() }
    }
}

/// Returns a number unless it is too large to be exact.
fn exact(amount: Amount) -> Option<Amount> {
    Some(amount).filter(|amount| amount.is_less(&i64::MAX.into()))
}

/// Tests if a number fits an int of 32 bits.
pub(crate) fn is_narrow(amount: &Amount) -> bool {
    !Amount::from(i32::MAX).is_less(amount) && !amount.is_less(&i32::MIN.into())
}

/// Returns a number unless it is negative.
fn natural(value: &Amount) -> Option<&Amount> {
    Some(value).filter(|value| !value.is_less(&0.into()))
}

/// Adds two bounds; `None` if one is not known.
pub(crate) fn plus(a: Option<Bound>, b: Option<Bound>) -> Option<Bound> {
    a?.plus(&b?)
}

impl Vector {
    /// Returns the start and the step of an arithmetic progression that is not stored.
    pub(crate) fn progression(&self) -> Option<(i64, i64)> {
        let affine = self.facts.affine.as_ref().filter(|_| self.generated)?;
        Some((affine.known?, affine.step))
    }

    #[must_use]
    pub(crate) fn with_facts(self, facts: Facts) -> Vector {
        Vector { facts, ..self }
    }

    /// Returns the sum of the elements if it is known and no element is negative.
    pub(crate) fn sum(&self) -> Option<Extent> {
        match (self.facts.sum.get(), &self.facts.value, self.extent.learned()) {
            (Some(sum), ..) => Some(sum.learned()),
            (None, Some(value), Extent::Host(count)) => Some(Extent::Host(exact(natural(value)?.times(&count))?)),
            _ => None,
        }
    }

    /// Returns an upper bound of the sum of the elements if one is known and no element is negative.
    pub(crate) fn terms(&self) -> Option<Bound> {
        // If the host does not know a sum, its terms say more than its bound.
        match (self.sum(), &self.facts.bound) {
            (Some(Extent::Device(_)), Some(bound)) => return Some(bound.clone()),
            (Some(sum), _) => {
                let _ = self.facts.sum.set(sum.clone());
                return Some(Bound::term(&self.facts.sum, sum.bound().clone(), None));
            }
            (None, _) => {}
        }
        if let Some(value) = &self.facts.value {
            return Some(Bound::term(&Sum::default(), exact(natural(value)?.times(self.extent.bound()))?, None));
        }
        self.facts.bound.clone()
    }

    /// Returns the bound as a number.
    pub(crate) fn sum_bound(&self) -> Option<Amount> {
        self.terms()?.total()
    }

    /// Returns a bound for the elements at indices that are distinct.
    pub(crate) fn terms_at(&self, places: &Facts) -> Option<Bound> {
        let most = self.sum_bound()?;
        match &places.affine {
            Some(Affine { known: Some(start), step, .. }) => {
                Some(Bound::term(&self.facts.sum, most, Some((*step, start.rem_euclid(*step)))))
            }
            _ => self.terms(),
        }
    }
}
