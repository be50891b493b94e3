//! Bounds of sums of elements.
//!
//! A bound is a sum of terms. A term is the sum of another vector, or of every n-th element of it. Terms for
//! different residues of one vector are disjoint, so together they are at most its sum. A term becomes exact
//! when the host learns its sum.

use super::extent::Extent;
use broadloom_graph::Amount;
use std::cell::OnceCell;
use std::rc::Rc;

/// Sum of the elements of a vector, once it is known. No element is negative. Clones share it.
pub(crate) type Sum = Rc<OnceCell<Extent>>;

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
    pub(super) fn term(sum: &Sum, most: Amount, part: Option<(i64, i64)>) -> Bound {
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
    pub(super) fn total(&self) -> Option<Amount> {
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

/// Returns a number unless it is too large to be exact.
pub(super) fn exact(amount: Amount) -> Option<Amount> {
    Some(amount).filter(|amount| amount.is_less(&i64::MAX.into()))
}

/// Adds two bounds; `None` if one is not known.
pub(crate) fn plus(a: Option<Bound>, b: Option<Bound>) -> Option<Bound> {
    a?.plus(&b?)
}
