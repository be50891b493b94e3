//! Amounts: extents of a function that is traced.
//!
//! While a function is traced ([`Context::template`](crate::Context::template)), each extent of its inputs is
//! a *term*. A [`Shape`](crate::Shape) carries the terms of its extents, and shapes derived from others carry
//! terms too: sums for a concatenation, products for a flattened array. Plans can therefore be fitted to
//! other extents without calling the function.
//!
//! Code that decides by a number makes the trace valid for some extents only. Each decision is recorded as a
//! [condition](crate::expr::terms) on terms:
//!
//! - Reading extents as numbers ([`Shape::extents`](crate::Shape::extents),
//!   [`Shape::count`](crate::Shape::count), [`Amount::get`]) relies on these numbers.
//! - Comparing shapes or amounts relies on the outcome.
//! - Operations of this crate rely on their checks: that shapes agree, that a view stays inside, that an axis
//!   has elements.
//!
//! A template serves all inputs for which its conditions hold, and no others. A number that comes from
//! elsewhere is a constant.

use crate::expr::terms::{Relation, Term, TermId, quotient};
use crate::expr::tracing::Tracing;
use std::sync::Arc;

/// Number that may depend on the extents of a function's inputs.
///
/// ```
/// use broadloom_graph::{Amount, Shape};
///
/// let rows = Shape::from([6, 4]).amount(0);
/// let halves = Shape::from_amounts(&[rows.times(&2.into()), 2.into()]);
/// assert_eq!(halves, Shape::from([12, 2]));
/// assert!(Amount::from(3usize).is_less(&rows));
/// assert_eq!(rows.minus(&1.into()).get(), 5);
/// ```
#[derive(Clone, Debug)]
pub struct Amount {
    value: i64,
    term: Option<(Arc<Tracing>, TermId)>,
}

impl From<i64> for Amount {
    fn from(value: i64) -> Amount {
        Amount { value, term: None }
    }
}

impl From<usize> for Amount {
    fn from(value: usize) -> Amount {
        Amount::from(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<i32> for Amount {
    fn from(value: i32) -> Amount {
        Amount::from(i64::from(value))
    }
}

impl Amount {
    pub(crate) fn of_term(value: i64, tracing: &Arc<Tracing>, term: TermId) -> Amount {
        Amount { value, term: Some((tracing.clone(), term)) }
    }

    /// Returns the number. During tracing, the trace becomes valid for this number only: a call with another
    /// number traces the function again.
    pub fn get(&self) -> i64 {
        self.equals(&Amount::from(self.value));
        self.value
    }

    /// Returns the number without recording a condition. The caller records the conditions that it relies on.
    pub fn value(&self) -> i64 {
        self.value
    }

    /// Returns whether the amount is a constant, that is, independent of the extents of the inputs of a
    /// function being traced.
    pub fn is_known(&self) -> bool {
        !self.is_traced()
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.term.as_ref().is_some_and(|(tracing, _)| tracing.terms().is_some())
    }

    pub(crate) fn tracing(&self) -> Option<&Arc<Tracing>> {
        self.term.as_ref().map(|(tracing, _)| tracing)
    }

    /// Returns the term of the amount in a trace.
    pub(crate) fn term_in(&self, tracing: &Arc<Tracing>) -> TermId {
        match &self.term {
            Some((own, term)) if Arc::ptr_eq(own, tracing) => *term,
            _ => tracing.terms().as_mut().map_or(0, |terms| terms.known(self.value)),
        }
    }

    /// Returns the trace that two amounts share. Traces do not mix: an amount of another trace counts as a
    /// constant.
    fn common<'a>(&'a self, other: &'a Amount) -> Option<&'a Arc<Tracing>> {
        let tracing = self.tracing().or_else(|| other.tracing());
        tracing.filter(|tracing| tracing.terms().is_some())
    }

    fn combined(&self, other: &Amount, value: i64, make: fn(TermId, TermId) -> Term) -> Amount {
        let Some(tracing) = self.common(other) else { return Amount::from(value) };
        let (left, right) = (self.term_in(tracing), other.term_in(tracing));
        match tracing.terms().as_mut() {
            Some(terms) if terms.is_known(left) && terms.is_known(right) => Amount::from(value),
            Some(terms) => Amount { value, term: Some((tracing.clone(), terms.term(make(left, right), value))) },
            None => Amount::from(value),
        }
    }

    fn compared(&self, other: &Amount, relation: Relation) -> bool {
        let Some(tracing) = self.common(other) else { return relation.of(self.value, other.value) };
        let (left, right) = (self.term_in(tracing), other.term_in(tracing));
        if let Some(terms) = tracing.terms().as_mut() {
            terms.note(relation, left, right);
        }
        relation.of(self.value, other.value)
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(&self, other: &Amount) -> Amount {
        match (self, other) {
            (Amount { value: 0, term: None }, _) => other.clone(),
            (_, Amount { value: 0, term: None }) => self.clone(),
            _ => self.combined(other, self.value.saturating_add(other.value), Term::Sum),
        }
    }

    /// Returns the difference.
    #[must_use]
    pub fn minus(&self, other: &Amount) -> Amount {
        self.plus(&other.times(&Amount::from(-1)))
    }

    /// Returns the product.
    #[must_use]
    pub fn times(&self, other: &Amount) -> Amount {
        match (self, other) {
            (Amount { value: 1, term: None }, _) => other.clone(),
            (_, Amount { value: 1, term: None }) => self.clone(),
            _ => self.combined(other, self.value.saturating_mul(other.value), Term::Product),
        }
    }

    /// Returns the quotient by a positive number, rounded up. A negative amount counts as 0.
    #[must_use]
    pub fn divided_up(&self, by: usize) -> Amount {
        let by = i64::try_from(by).unwrap_or(i64::MAX).max(1);
        let value = quotient(self.value, by);
        let Some(tracing) = self.tracing().filter(|tracing| tracing.terms().is_some()) else { return Amount::from(value) };
        let own = self.term_in(tracing);
        match tracing.terms().as_mut() {
            Some(terms) if !terms.is_known(own) => {
                Amount { value, term: Some((tracing.clone(), terms.term(Term::Quotient(own, by), value))) }
            }
            Some(_) | None => Amount::from(value),
        }
    }

    /// Returns whether both are equal. During tracing, the outcome becomes a condition of the trace.
    pub fn equals(&self, other: &Amount) -> bool {
        self.compared(other, Relation::Equal)
    }

    /// Returns whether this amount is less than another. During tracing, the outcome becomes a condition of
    /// the trace.
    pub fn is_less(&self, other: &Amount) -> bool {
        self.compared(other, Relation::Less)
    }

    /// Returns the lesser amount. During tracing, the outcome of the comparison becomes a condition of the
    /// trace.
    #[must_use]
    pub fn min(&self, other: &Amount) -> Amount {
        if other.is_less(self) { other.clone() } else { self.clone() }
    }

    /// Returns the greater amount. During tracing, the outcome of the comparison becomes a condition of the
    /// trace.
    #[must_use]
    pub fn max(&self, other: &Amount) -> Amount {
        if self.is_less(other) { other.clone() } else { self.clone() }
    }

    /// Returns whether both are the same term of a trace, or equal constants. Records no condition.
    pub fn is_identical(&self, other: &Amount) -> bool {
        self.value == other.value
            && match (&self.term, &other.term) {
                (None, None) => true,
                (Some((a, x)), Some((b, y))) => Arc::ptr_eq(a, b) && x == y,
                _ => false,
            }
    }
}
