//! Functions of a number that are sums of multiples of its digits, in a mixed-radix base.

use broadloom_scalar::{Builder, Value};

/// A number computed from the number of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The value for the number zero.
    pub start: i64,
    /// Digits: the place value, the base, and the factor of each.
    pub terms: Vec<(i64, i64, i64)>,
}

impl Digits {
    /// Returns a function of the numbers below `count` as a sum over digits. Returns `None` if it has no such
    /// form.
    pub fn of(count: i64, at: &dyn Fn(i64) -> i64) -> Option<Digits> {
        let start = at(0);
        let mut terms: Vec<(i64, i64, i64)> = vec![];
        let (mut place, mut base) = (1, 2);
        while place < count {
            if count / place % base != 0 {
                base += 1;
                continue;
            }
            let factor = at(place) - start;
            match terms.last_mut() {
                Some(last) if last.2 * last.1 == factor => last.1 *= base,
                _ => terms.push((place, base, factor)),
            }
            place *= base;
        }
        terms.retain(|term| term.2 != 0);
        let found = Digits { start, terms };
        (0..count).all(|number| found.value(number) == at(number)).then_some(found)
    }

    /// Returns the value of the function for a number.
    pub fn value(&self, number: i64) -> i64 {
        self.terms.iter().fold(self.start, |sum, (place, base, factor)| sum + number / place % base * factor)
    }

    /// Writes the code of the sum without its start.
    pub(super) fn sum(&self, k: &Builder, number: Value, count: i64) -> Value {
        self.terms.iter().fold(k.literal(0i32), |sum, (place, base, factor)| {
            let digit = if *place == 1 { number } else { k.div(number, *place as i32) };
            let digit = if place * base == count { digit } else { k.rem(digit, *base as i32) };
            k.add(sum, k.mul(digit, *factor as i32))
        })
    }

    /// Returns whether the sum without its start is always a multiple of `of`.
    pub(super) fn is_multiple_of(&self, of: i64) -> bool {
        self.terms.iter().all(|term| term.2 % of == 0)
    }
}
