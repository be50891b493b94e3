//! Vectors of a device, and facts about the elements of int vectors that the host knows without reading from
//! the device.
//!
//! The device computes lengths of segments, and the host allocates memory for elements. Facts about sums of
//! lengths avoid a wait: the sum of the `LENGTHS` of a descriptor is the number of its elements; packing
//! lengths or moving them to distinct indices does not make their sum larger.

use super::bound::{Bound, Sum, exact, plus};
use super::extent::Extent;
use super::fault::on_device;
use crate::eval::Run;
use crate::vcode::Op;
use broadloom_graph::{Amount, Node, Segments, SortKey};
use std::cell::OnceCell;
use std::rc::Rc;

/// Vector as a node.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    /// The elements, in one axis. A node of one element represents equal elements, whatever the extent.
    pub(crate) node: Node,
    pub(crate) extent: Extent,
    /// The elements, followed by arbitrary ones up to the bound of the extent.
    pub(crate) padded: Option<Node>,
    /// True if the elements are computed from their index, scalars of the host and lengths. They are then
    /// never stored.
    pub(crate) generated: bool,
    /// Number of elementwise operations between stored vectors and the elements.
    pub(crate) depth: u16,
    pub(crate) facts: Facts,
    /// The vector before the pack, and the flags, if a pack made it.
    pub(crate) packed: Option<BeforePack>,
}

impl Vector {
    /// Makes a vector from the elements of a node.
    pub(crate) fn of(node: Node) -> Vector {
        let extent = match node.length() {
            Some(length) => Extent::Device(length.clone()),
            None => Extent::Host(node.bound().size()),
        };
        Vector::new(node, extent)
    }

    /// Makes a vector from elements, or from one that represents equal ones.
    pub(crate) fn new(node: Node, extent: Extent) -> Vector {
        Vector { node, extent, padded: None, generated: false, depth: 0, facts: Facts::default(), packed: None }
    }

    /// Makes a vector from the first elements of a node. The node has as many elements as the bound of the
    /// extent.
    pub(crate) fn shortened(node: Node, extent: &Extent) -> Run<Vector> {
        match extent {
            Extent::Host(count) => Ok(Vector::of(on_device(node.first_elements(None, count.clone()))?)),
            Extent::Device(length) => {
                let short = on_device(node.shortened(length))?;
                Ok(Vector { padded: Some(node), ..Vector::new(short, extent.clone()) })
            }
        }
    }

    #[must_use]
    pub(crate) fn generated(self, generated: bool) -> Vector {
        Vector { generated, ..self }
    }

    /// Returns the vector with its number of elements known to the host, if the host has learned it.
    pub(crate) fn learned(&self) -> Run<Vector> {
        let Extent::Device(length) = &self.extent else { return Ok(self.clone()) };
        let Some(count) = length.known_amount() else { return Ok(self.clone()) };
        let extent = Extent::Host(count.clone());
        if self.is_uniform() {
            return Ok(Vector { extent, packed: None, ..self.clone() });
        }
        let from = self.stored();
        // Elements in memory are read there, not in the unpacked vector.
        let packed = self.packed.clone().filter(|_| from.buffer().is_none());
        let node = on_device(from.first_elements(None, count))?;
        Ok(Vector { node, extent, padded: None, packed, ..self.clone() })
    }

    /// Returns the node that is computed for the vector.
    pub(crate) fn stored(&self) -> &Node {
        self.padded.as_ref().unwrap_or(&self.node)
    }

    /// Tells whether one element represents all.
    pub(crate) fn is_uniform(&self) -> bool {
        self.node.length().is_none() && self.node.bound().size().equals(&1.into())
    }
}

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
    pub(crate) chosen: Option<Rc<ChosenFlags>>,
    /// Set if the elements are the ranks of other elements within their segments.
    pub(crate) ranked: Option<Rc<RankedElements>>,
}

/// Elements that were ranked.
#[derive(Debug)]
pub(crate) struct RankedElements {
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
pub(crate) struct ChosenFlags {
    pub(crate) flags: Vector,
    /// The number of true flags before each index, if it was needed.
    pub(crate) ranks: OnceCell<Node>,
}

/// Vector before a pack.
#[derive(Clone, Debug)]
pub(crate) struct BeforePack {
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

/// Tests if a number fits an int of 32 bits.
pub(crate) fn is_narrow(amount: &Amount) -> bool {
    !Amount::from(i32::MAX).is_less(amount) && !amount.is_less(&i32::MIN.into())
}

/// Returns a number unless it is negative.
fn natural(value: &Amount) -> Option<&Amount> {
    Some(value).filter(|value| !value.is_less(&0.into()))
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
