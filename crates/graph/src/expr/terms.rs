//! Terms: the integers of a trace that follow from the extents of the inputs, and the conditions on them.
//!
//! Each term comes after its operands. A condition is a relation of two terms with the outcome that it had
//! during tracing: the trace is valid for all extents that give the same outcomes.

use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// The number of a term of a trace.
pub(crate) type TermId = u32;

/// List of the terms of the extents of a shape.
pub(crate) type TermList = SmallVec<[TermId; 4]>;

/// Integer that follows from the extents of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Term {
    /// A constant.
    Known(i64),
    /// The extent of an input along an axis.
    Input(u32, u8),
    Sum(TermId, TermId),
    Product(TermId, TermId),
    /// A term divided by a positive number, rounded up.
    Quotient(TermId, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Relation {
    Equal,
    Less,
}

impl Relation {
    pub(crate) fn of(self, left: i64, right: i64) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::Less => left < right,
        }
    }
}

/// Relation of two terms, and whether it held during tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TermRelation {
    relation: Relation,
    left: TermId,
    right: TermId,
    holds: bool,
}

/// Terms of a trace, and the conditions under which the trace is valid. Each term comes after its operands.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    terms: Vec<(Term, i64)>,
    numbers: HashMap<Term, TermId>,
    conditions: Vec<TermRelation>,
    noted: HashSet<TermRelation>,
}

impl Terms {
    pub(crate) fn term(&mut self, term: Term, value: i64) -> TermId {
        *self.numbers.entry(term).or_insert_with(|| {
            self.terms.push((term, value));
            (self.terms.len() - 1) as TermId
        })
    }

    pub(crate) fn known(&mut self, value: i64) -> TermId {
        self.term(Term::Known(value), value)
    }

    pub(crate) fn is_known(&self, term: TermId) -> bool {
        matches!(self.terms[term as usize].0, Term::Known(_))
    }

    /// Returns the terms of the extents of an input.
    pub(crate) fn input(&mut self, number: usize, extents: &[usize]) -> TermList {
        let extents = (0..).zip(extents);
        extents.map(|(axis, extent)| self.term(Term::Input(number as u32, axis), *extent as i64)).collect()
    }

    pub(crate) fn note(&mut self, relation: Relation, left: TermId, right: TermId) -> bool {
        let holds = relation.of(self.terms[left as usize].1, self.terms[right as usize].1);
        if left == right || self.is_known(left) && self.is_known(right) {
            return holds;
        }
        let (left, right) = if relation == Relation::Equal { (left.min(right), left.max(right)) } else { (left, right) };
        let condition = TermRelation { relation, left, right, holds };
        if self.noted.insert(condition) {
            self.conditions.push(condition);
        }
        holds
    }

    /// Returns the part that calls need.
    pub(crate) fn finish(self) -> Conditions {
        Conditions { terms: self.terms.into_iter().map(|(term, _)| term).collect(), conditions: self.conditions }
    }
}

/// Terms of a traced function, and the conditions under which the trace is valid.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    terms: Vec<Term>,
    conditions: Vec<TermRelation>,
}

impl Conditions {
    /// Returns the values of all terms for inputs with these extents, or `None` if a condition fails. The
    /// inputs must have the ranks of the trace.
    pub(crate) fn values<'s>(&self, inputs: impl Fn(usize) -> &'s [usize]) -> Option<Vec<i64>> {
        let mut values: Vec<i64> = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let value = match *term {
                Term::Known(value) => value,
                Term::Input(number, axis) => inputs(number as usize)[usize::from(axis)] as i64,
                Term::Sum(a, b) => values[a as usize].saturating_add(values[b as usize]),
                Term::Product(a, b) => values[a as usize].saturating_mul(values[b as usize]),
                Term::Quotient(a, by) => quotient(values[a as usize], by),
            };
            values.push(value);
        }
        let holds = |c: &TermRelation| c.relation.of(values[c.left as usize], values[c.right as usize]) == c.holds;
        self.conditions.iter().all(holds).then_some(values)
    }
}

/// Returns a number divided by a positive number and rounded up. A negative number counts as 0.
pub(crate) fn quotient(value: i64, by: i64) -> i64 {
    value.max(0).unsigned_abs().div_ceil(by.max(1).unsigned_abs()) as i64
}
