//! Ints and lengths that depend on the sizes of columns, during the trace of a call.
//!
//! The host computes with them like with other ints, and keeps the relation to the sizes. A comparison
//! becomes a condition of the template. Operations that keep no relation are executed on the device.

use super::Machine;
use crate::eval::Run;
use crate::run::Entry;
use crate::vcode::{Check, Op};
use broadloom_graph::Amount;

/// Returns a quotient of a number that is not negative, rounded down.
fn quotient(amount: &Amount, by: i64) -> Option<Amount> {
    let by = usize::try_from(by).ok().filter(|by| *by > 0)?;
    let positive = !amount.is_less(&0.into());
    positive.then(|| amount.minus(&Amount::from(by - 1)).divided_up(by))
}

impl Machine<'_, '_, '_> {
    /// Makes an int. It keeps its relation to sizes if the call is traced for all sizes.
    pub(super) fn number(&mut self, amount: &Amount) -> Run<Entry> {
        let amount = self.related(amount);
        let entry = Entry::int_of(self.world.meter(), &amount);
        self.charged(1, entry)
    }

    /// Makes a descriptor of one segment.
    pub(super) fn single(&mut self, length: &Amount) -> Run<Entry> {
        let length = self.related(length);
        if length.is_known() || !self.is_int(&length) {
            return self.segdes(vec![length.get()]);
        }
        let entry = Entry::segdes_of(self.world.meter(), &length);
        self.charged(1, entry)
    }

    /// Returns an amount, or only its number if the call is traced for these sizes alone.
    fn related(&self, amount: &Amount) -> Amount {
        let is_general = self.accelerator.as_ref().is_some_and(|accelerator| accelerator.ledger.is_some());
        if is_general { amount.clone() } else { Amount::from(amount.get()) }
    }

    /// Tests if a number is within the range of ints of the program.
    fn is_int(&self, amount: &Amount) -> bool {
        let (least, largest) = (self.world.widths().least_int(), self.world.widths().largest_int());
        amount.is_less(&largest.into()) && Amount::from(least).is_less(amount)
    }

    /// Computes an elementwise instruction on single ints, one of which depends on sizes. Returns `None` if
    /// the result does not.
    pub(super) fn of_amounts(&mut self, op: Op, operands: &[Entry]) -> Run<Option<Entry>> {
        let Some(ints) = operands.iter().map(Entry::only_int).collect::<Option<Vec<Amount>>>() else { return Ok(None) };
        let [a, b] = &ints[..] else { return Ok(None) };
        let number = match op {
            Op::Add => Some(a.plus(b)),
            Op::Subtract => Some(a.minus(b)),
            Op::Multiply => Some(a.times(b)),
            Op::Divide if b.is_known() => quotient(a, b.value()),
            _ => None,
        };
        if let Some(number) = number.filter(|number| self.is_int(number)) {
            return self.number(&number).map(Some);
        }
        let holds = match op {
            Op::Less => a.is_less(b),
            Op::GreaterEqual => !a.is_less(b),
            Op::Greater => b.is_less(a),
            Op::LessEqual => !b.is_less(a),
            Op::Equal => a.equals(b),
            Op::NotEqual => !a.equals(b),
            _ => return Ok(None),
        };
        self.bools(vec![holds]).map(Some)
    }

    fn has_amounts(&self, count: usize) -> bool {
        let start = self.stack.len().saturating_sub(count);
        self.stack[start..].iter().any(|entry| entry.amount().is_some())
    }

    /// Executes an instruction on numbers that depend on sizes. Returns false for other operands.
    pub(super) fn op_on_amounts(&mut self, op: Op) -> Run<bool> {
        let count = op.operands().len();
        if !self.has_amounts(count) {
            return Ok(false);
        }
        let start = self.range(count as u32, 0)?.start;
        let result = match (op, &self.stack[start..]) {
            (Op::MakeSegdes, [Entry::Int(_)]) => match self.stack[start].amount() {
                Some(length) if !length.is_less(&0.into()) && self.is_int(&length) => Some(self.single(&length)?),
                _ => None,
            },
            (Op::Lengths, [Entry::Segdes(segments)]) => match segments.single() {
                Some(length) => Some(self.number(&length)?),
                None => None,
            },
            // The condition has been compared already.
            (Op::Select, [Entry::Bool(flags), yes @ Entry::Int(_), no @ Entry::Int(_)])
                if flags.len() == 1 && yes.len() == 1 && no.len() == 1 =>
            {
                Some(if flags[0] { yes.clone() } else { no.clone() })
            }
            (_, operands) if op.is_elementwise() && !op.has_effect() => {
                let operands = operands.to_vec();
                self.of_amounts(op, &operands)?
            }
            _ => None,
        };
        let Some(result) = result else { return Ok(false) };
        self.stack.truncate(start);
        self.stack.push(result);
        self.count(1)?;
        Ok(true)
    }

    /// Compares numbers that depend on sizes. Returns false if that is not enough, or if the check fails.
    pub(super) fn check_on_amounts(&mut self, check: Check) -> Run<bool> {
        let count = check.operands().len();
        if !self.has_amounts(count) {
            return Ok(false);
        }
        let range = self.range(count as u32, 0)?;
        let ints: Vec<Option<Amount>> = self.stack[range.clone()].iter().map(Entry::only_int).collect();
        let is_natural = |a: &Amount| !a.is_less(&0.into());
        let is_up_to = |a: &Amount, b: &Amount| !b.is_less(a);
        let holds = match (check, &ints[..]) {
            (Check::Index, [Some(index), Some(length)]) => is_natural(index) && index.is_less(length),
            (Check::Each | Check::Put | Check::Unpack, [Some(a), Some(b)]) => a.equals(b),
            (Check::Count | Check::Length, [Some(count)]) => is_natural(count),
            (Check::Range, [Some(start), Some(step), Some(end)]) => {
                is_up_to(&1.into(), step) && is_up_to(start, end) && self.is_int(&end.minus(start))
            }
            (Check::Part, [Some(start), Some(end), Some(length)]) => {
                is_natural(start) && is_up_to(start, end) && is_up_to(end, length)
            }
            (Check::Total, [Some(length), None]) => match &self.stack[range.end - 1] {
                Entry::Segdes(segments) => {
                    is_natural(length) && self.is_int(length) && segments.single().is_some_and(|count| count.equals(&1.into()))
                }
                _ => false,
            },
            _ => false,
        };
        if holds {
            self.stack.truncate(range.start);
            self.count(1)?;
        }
        Ok(holds)
    }
}
