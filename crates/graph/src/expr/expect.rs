//! Conditions on lengths that only the device knows. Operations rely on them without waiting.
//!
//! An operation that needs a certain length computes as if the length had that value. The next read in the
//! context waits anyway; it compares the length and returns the error. Until then a wrong length gives wrong
//! elements, but no access outside an array: the memory has room for the bound.

use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::expectation::Expectation;
use crate::expr::node::{Context, Length, Node};
use broadloom_scalar::{BinaryOp, Element};
use broadloom_skeleton::Boundary;

/// Maximum number of unconfirmed conditions. At this number they are confirmed, with a wait.
const MAX_EXPECTED: usize = 256;

impl Context {
    /// Relies on a length. `wrong` returns the error if the length is not as expected. If the host knows the
    /// length, the error comes at once, else with the next [`Context::confirm`].
    fn expect(&self, length: &Length, wrong: impl Fn(usize) -> Option<Error> + Send + Sync + 'static) -> Result<()> {
        if let Some(known) = length.known() {
            return wrong(known).map_or(Ok(()), Err);
        }
        let count = length.count().evaluate()?;
        let waiting = {
            let mut expected = self.evaluator.expected();
            expected.push(Expectation { count, bound: length.bound(), wrong: Box::new(wrong) });
            expected.len()
        };
        if waiting < MAX_EXPECTED { Ok(()) } else { self.confirm() }
    }

    /// Compares the lengths that operations relied on with the lengths found by the device; waits if there
    /// are any. Each read of elements does so. Returns the first error and forgets all conditions.
    pub fn confirm(&self) -> Result<()> {
        let expected = std::mem::take(&mut *self.evaluator.expected());
        // All are compared, so that none is left for an unrelated read.
        expected.iter().map(Expectation::confirm).collect::<Vec<Result<()>>>().into_iter().collect()
    }
}

impl Node {
    /// Returns the first `rows` elements along the first axis of an array whose length only the device knows.
    /// `wrong` returns the error if the length is not as expected. The array is evaluated; nothing waits.
    pub(crate) fn expected_rows(
        &self,
        length: &Length,
        rows: usize,
        wrong: impl Fn(usize) -> Option<Error> + Send + Sync + 'static,
    ) -> Result<Node> {
        self.evaluate()?;
        self.context().expect(length, wrong)?;
        self.first_elements(None, rows)
    }

    /// Removes the first axis, which has extent 1. Does not wait: if only the device knows the length, the
    /// next read returns the error of another length.
    pub fn drop_first(&self, operation: &str) -> Result<Node> {
        self.checked_axes(operation, &[0])?;
        let (name, bound) = (operation.to_owned(), self.bound().clone());
        let wrong =
            move |found: usize| (found != 1).then(|| Error::not_single(&name, 0, &bound.with(0, found.into()), found as i64));
        let row = match self.length() {
            Some(length) => self.expected_rows(length, 1, wrong)?,
            None if self.bound().amount(0).equals(&1.into()) => self.clone(),
            None => return Err(Error::not_single(operation, 0, self.bound(), self.bound().amount(0).value())),
        };
        row.reshaped(row.bound().without(&[0], false), None)
    }

    /// Returns the elements at one index of the first axis and removes the axis. A negative index counts from
    /// the end. Does not wait: if only the device knows the length, the next read returns the error of an
    /// index that does not exist.
    pub fn index_first(&self, operation: &str, index: i64) -> Result<Node> {
        self.checked_axes(operation, &[0])?;
        let (name, shape, bound) = (operation.to_owned(), self.bound().clone(), self.bound().extents()[0]);
        let least = if index < 0 { index.unsigned_abs() } else { index as u64 + 1 };
        let wrong = move |found: usize| {
            let reason = format!("axis 0 has no index {index}");
            let shape = shape.with(0, found.into());
            ((found as u64) < least).then_some(Error::Range { operation: name.clone(), shape, reason })
        };
        if let Some(error) = wrong(bound) {
            return Err(error);
        }
        let rows = match self.length() {
            Some(length) => self.expected_rows(length, bound, wrong)?,
            None => self.clone(),
        };
        let from_end = [&self.first_extent()?, &self.number(index.unsigned_abs() as usize)?];
        let place = match index < 0 {
            true => Node::elementwise(Elementwise::Binary(BinaryOp::Sub), &from_end)?,
            false => from_end[1].clone(),
        };
        let row = rows.bound().without(&[0], false);
        let others = (0..row.rank()).map(|axis| Node::position(self.context(), row.clone(), axis, Element::I64));
        let others = others.collect::<Result<Vec<Node>>>()?;
        rows.gather(&std::iter::once(&place).chain(&others).collect::<Vec<_>>(), &Boundary::Clamp)
    }
}
