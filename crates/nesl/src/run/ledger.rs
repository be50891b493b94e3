//! Limits of a traced call: its memory and steps as sums that depend on the sizes of columns.
//!
//! A run has limits on its memory and on its steps. A template serves calls of other sizes, so the trace
//! records both as sums of amounts. At its end the sums are compared with the limits, and the outcomes become
//! conditions of the template. If one does not hold for a call, the machine executes the call and stops where
//! the limit is reached.

use crate::eval::Charge;
use broadloom_graph::Amount;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A sum of multiples of amounts, none of which is negative.
#[derive(Clone, Debug, Default)]
struct Sum(Vec<(Amount, i64)>);

impl Sum {
    fn add(&mut self, amount: &Amount, factor: i64) {
        match self.0.iter_mut().find(|(own, _)| own.is_identical(amount)) {
            Some((_, own)) => *own = own.saturating_add(factor),
            None => self.0.push((amount.clone(), factor)),
        }
    }

    /// Returns the number for the sizes of the trace.
    fn value(&self) -> i64 {
        self.0.iter().fold(0, |sum, (amount, factor)| sum.saturating_add(amount.value().saturating_mul(*factor)))
    }

    /// Tests if the sum is at least another one for all sizes.
    fn covers(&self, other: &Sum) -> bool {
        let factor = |amount: &Amount| self.0.iter().find(|(own, _)| own.is_identical(amount)).map_or(0, |(_, factor)| *factor);
        other.0.iter().all(|(amount, own)| factor(amount) >= *own)
    }

    fn total(&self) -> Amount {
        self.0.iter().fold(Amount::from(0), |sum, (amount, factor)| sum.plus(&amount.times(&Amount::from(*factor))))
    }
}

/// Number of elements on a device that count as one step: the device processes many at once.
pub(crate) const ELEMENTS_OF_A_STEP: usize = 64;

/// Memory and steps of a traced call.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Live bytes before the trace.
    before: usize,
    /// Bytes of live vectors.
    live: RefCell<Sum>,
    /// Sums of bytes that were live at the same time. No entry covers another.
    peaks: RefCell<Vec<Sum>>,
    /// Elements of all operations.
    elements: RefCell<Sum>,
    /// Steps for these elements, for the sizes of the trace.
    steps: Cell<u64>,
}

impl Ledger {
    /// Begins the trace of a region. `before` is the number of live bytes; it differs between calls.
    pub(crate) fn of_region(before: usize) -> Ledger {
        Ledger { before, ..Ledger::default() }
    }

    /// Returns the steps of a region, and its peaks of charged bytes beyond those that were live before.
    /// `counted` are the steps for the sizes of the trace. No peak covers another.
    pub(crate) fn of_sizes(&self, counted: u64) -> (Amount, Vec<Amount>) {
        let constant = counted.saturating_sub(self.steps.get());
        let mut steps = Amount::from(i64::try_from(constant).unwrap_or(i64::MAX));
        for (count, times) in &self.elements.borrow().0 {
            let each = count.minus(&Amount::from(ELEMENTS_OF_A_STEP - 1)).divided_up(ELEMENTS_OF_A_STEP);
            steps = steps.plus(&each.times(&Amount::from(*times)));
        }
        (steps, self.peaks.borrow().iter().map(Sum::total).collect())
    }

    /// Charges bytes for each element of a vector. `live` is the number of bytes charged to the meter of the
    /// run.
    pub(crate) fn charge(self: &Rc<Self>, count: &Amount, bytes: usize, live: usize) {
        let mut own = self.live.borrow_mut();
        if !count.is_known() {
            own.add(count, bytes as i64);
        }
        // All other live memory does not depend on sizes.
        let mut peak = own.clone();
        let other = (live as i64).saturating_sub(self.before as i64).saturating_sub(own.value());
        peak.add(&Amount::from(1), other);
        let mut peaks = self.peaks.borrow_mut();
        if !peaks.iter().any(|other| other.covers(&peak)) {
            peaks.retain(|other| !peak.covers(other));
            peaks.push(peak);
        }
    }

    /// Counts the elements of a result.
    pub(crate) fn count(&self, count: &Amount) {
        if count.is_known() {
            return;
        }
        self.elements.borrow_mut().add(count, 1);
        self.steps.set(self.steps.get() + count.value().max(0).unsigned_abs() / ELEMENTS_OF_A_STEP as u64);
    }

    /// Compares memory and steps with the limits; the outcomes become conditions of the trace. `steps` are
    /// those of the whole call.
    pub(crate) fn conclude(&self, memory: usize, steps: u64, max_steps: u64) {
        let most = |number: u64| Amount::from(i64::try_from(number).unwrap_or(i64::MAX));
        for peak in self.peaks.borrow().iter() {
            most(memory as u64).is_less(&peak.total());
        }
        let mut total = most(steps.saturating_sub(self.steps.get()));
        for (count, times) in &self.elements.borrow().0 {
            total = total.plus(&count.divided_up(ELEMENTS_OF_A_STEP).times(&Amount::from(*times)));
        }
        most(max_steps).is_less(&total);
    }
}

/// Charge for a vector. It is released with the vector.
pub(crate) struct VectorCharge {
    _charge: Charge,
    traced: Option<(Rc<Ledger>, Amount, usize)>,
}

impl VectorCharge {
    /// Holds a charge. `traced` is the ledger of the traced call, the number of elements and the bytes of
    /// each.
    pub(crate) fn new(charge: Charge, traced: Option<(Rc<Ledger>, Amount, usize)>) -> VectorCharge {
        VectorCharge { _charge: charge, traced: traced.filter(|(_, count, _)| !count.is_known()) }
    }
}

impl Drop for VectorCharge {
    fn drop(&mut self) {
        if let Some((ledger, count, bytes)) = &self.traced {
            ledger.live.borrow_mut().add(count, -(*bytes as i64));
        }
    }
}
