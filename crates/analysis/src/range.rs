//! Set of integers of some width: between two signed bounds, between two unsigned bounds, and multiples of a
//! power of two. Every operation returns a set that contains all its results.

use crate::integer::{Relation, mask};

/// Integers of some width that are within all bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    bits: u32,
    /// Signed bounds.
    signed: (i64, i64),
    /// Unsigned bounds; the first is above the second if the set is empty.
    unsigned: (u64, u64),
    /// Number of low bits that are zero.
    zeros: u32,
}

/// Returns the smallest and the largest integer of `bits` bits.
pub(crate) fn limits(bits: u32, signed: bool) -> (i128, i128) {
    match signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    }
}

impl Range {
    /// Returns all integers of `bits` bits, 1 to 64.
    pub fn full(bits: u32) -> Range {
        let ((low, high), (_, most)) = (limits(bits, true), limits(bits, false));
        Range { bits, signed: (low as i64, high as i64), unsigned: (0, most as u64), zeros: 0 }
    }

    /// Returns the empty set.
    pub fn empty(bits: u32) -> Range {
        Range { unsigned: (1, 0), ..Range::full(bits) }
    }

    /// Returns the set of one integer, given as bits.
    pub fn constant(bits: u32, value: u64) -> Range {
        let value = value & mask(bits);
        let zeros = value.trailing_zeros().min(bits);
        let signed = sign_extended(value, bits);
        Range { bits, signed: (signed, signed), unsigned: (value, value), zeros }
    }

    /// Returns the integers between two unsigned bounds.
    pub fn between(bits: u32, low: u64, high: u64) -> Range {
        Range { unsigned: (low, high), ..Range::full(bits) }.settled()
    }

    /// Returns its width.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the signed bounds.
    pub fn signed(&self) -> (i64, i64) {
        self.signed
    }

    /// Returns the unsigned bounds.
    pub fn unsigned(&self) -> (u64, u64) {
        self.unsigned
    }

    /// Returns the number of low bits that are known to be zero.
    pub fn zeros(&self) -> u32 {
        self.zeros
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.unsigned.0 > self.unsigned.1
    }

    /// Returns its only value, if it has one.
    pub fn value(&self) -> Option<u64> {
        (self.unsigned.0 == self.unsigned.1).then_some(self.unsigned.0)
    }

    /// Returns whether the set contains an integer, given as bits.
    pub fn contains(&self, value: u64) -> bool {
        let value = value & mask(self.bits);
        let signed = sign_extended(value, self.bits);
        (self.unsigned.0..=self.unsigned.1).contains(&value)
            && (self.signed.0..=self.signed.1).contains(&signed)
            && (self.zeros >= 64 || value & mask(self.zeros) == 0)
    }

    /// Returns the bounds in a reading, as 128-bit integers.
    pub(crate) fn bounds(&self, signed: bool) -> (i128, i128) {
        match signed {
            true => (i128::from(self.signed.0), i128::from(self.signed.1)),
            false => (i128::from(self.unsigned.0), i128::from(self.unsigned.1)),
        }
    }

    /// Returns the set within bounds of both readings; bounds that do not fit the width are ignored.
    pub(crate) fn made(bits: u32, signed: (i128, i128), unsigned: (i128, i128), zeros: u32) -> Range {
        let mut range = Range { zeros: zeros.min(bits), ..Range::full(bits) };
        if fits(signed, bits, true) {
            range.signed = (signed.0 as i64, signed.1 as i64);
        }
        if fits(unsigned, bits, false) {
            range.unsigned = (unsigned.0 as u64, unsigned.1 as u64);
        }
        range.settled()
    }

    /// Narrows each reading by the other, and rounds the bounds to multiples.
    fn settled(mut self) -> Range {
        if self.zeros >= self.bits {
            return if self.contains_zero() { Range::constant(self.bits, 0) } else { Range::empty(self.bits) };
        }
        for _ in 0..2 {
            let half = 1u64 << (self.bits - 1);
            let (low, high) = self.unsigned;
            if low > high || self.signed.0 > self.signed.1 {
                return Range::empty(self.bits);
            }
            if high < half || low >= half {
                self.signed.0 = self.signed.0.max(sign_extended(low, self.bits));
                self.signed.1 = self.signed.1.min(sign_extended(high, self.bits));
            }
            let (low, high) = self.signed;
            if low >= 0 || high < 0 {
                self.unsigned.0 = self.unsigned.0.max(low as u64 & mask(self.bits));
                self.unsigned.1 = self.unsigned.1.min(high as u64 & mask(self.bits));
            }
            if self.zeros > 0 {
                let step = 1i128 << self.zeros;
                let up = |value: i128| (value + step - 1).div_euclid(step) * step;
                let down = |value: i128| value.div_euclid(step) * step;
                let (low, high) = self.bounds(true);
                let signed = (up(low), down(high));
                let (low, high) = self.bounds(false);
                let unsigned = (up(low), down(high));
                if signed.0 > signed.1 || unsigned.0 > unsigned.1 {
                    return Range::empty(self.bits);
                }
                self.signed = (signed.0 as i64, signed.1 as i64);
                self.unsigned = (unsigned.0 as u64, unsigned.1 as u64);
            }
        }
        self
    }

    fn contains_zero(&self) -> bool {
        self.unsigned.0 == 0 && self.signed.0 <= 0 && self.signed.1 >= 0
    }

    /// Returns a set that contains both.
    pub fn union(&self, other: &Range) -> Range {
        if self.is_empty() {
            return *other;
        }
        if other.is_empty() {
            return *self;
        }
        Range {
            bits: self.bits,
            signed: (self.signed.0.min(other.signed.0), self.signed.1.max(other.signed.1)),
            unsigned: (self.unsigned.0.min(other.unsigned.0), self.unsigned.1.max(other.unsigned.1)),
            zeros: self.zeros.min(other.zeros),
        }
    }

    /// Returns the values that both ranges contain.
    pub fn intersection(&self, other: &Range) -> Range {
        if self.is_empty() || other.is_empty() {
            return Range::empty(self.bits);
        }
        Range {
            bits: self.bits,
            signed: (self.signed.0.max(other.signed.0), self.signed.1.min(other.signed.1)),
            unsigned: (self.unsigned.0.max(other.unsigned.0), self.unsigned.1.min(other.unsigned.1)),
            zeros: self.zeros.max(other.zeros),
        }
        .settled()
    }

    /// Widens: returns a set that contains this one and the next. Bounds that moved go to the limit, so that
    /// a sequence of widenings is short.
    #[doc(hidden)]
    pub fn widened(&self, next: &Range) -> Range {
        if self.is_empty() {
            return *next;
        }
        let mut wide = self.union(next);
        let full = Range::full(self.bits);
        if wide.signed.0 < self.signed.0 {
            wide.signed.0 = if wide.signed.0 >= 0 { 0 } else { full.signed.0 };
        }
        if wide.signed.1 > self.signed.1 {
            wide.signed.1 = full.signed.1;
        }
        if wide.unsigned.0 < self.unsigned.0 {
            wide.unsigned.0 = 0;
        }
        if wide.unsigned.1 > self.unsigned.1 {
            wide.unsigned.1 = full.unsigned.1;
        }
        wide
    }

    /// Returns the values that can satisfy a relation to a value of another set.
    #[doc(hidden)]
    pub fn related(&self, relation: Relation, signed: bool, other: &Range) -> Range {
        if other.is_empty() || self.bits != other.bits {
            return *self;
        }
        let (low, high) = other.bounds(signed);
        let (least, most) = limits(self.bits, signed);
        let bounds = match relation {
            Relation::Eq => return self.intersection(other),
            Relation::Ne => return other.value().map_or(*self, |value| self.without(value)),
            Relation::Lt => (least, high - 1),
            Relation::Le => (least, high),
            Relation::Gt => (low + 1, most),
            Relation::Ge => (low, most),
        };
        if bounds.0 > bounds.1 {
            return Range::empty(self.bits);
        }
        let all = (limits(self.bits, true), limits(self.bits, false));
        let (signed, unsigned) = if signed { (bounds, all.1) } else { (all.0, bounds) };
        self.intersection(&Range::made(self.bits, signed, unsigned, 0))
    }

    /// Removes one value; that narrows only at a bound.
    fn without(&self, value: u64) -> Range {
        let (mut range, signed) = (*self, sign_extended(value, self.bits));
        if self.value() == Some(value) {
            return Range::empty(self.bits);
        }
        if range.unsigned.0 == value {
            range.unsigned.0 += 1;
        } else if range.unsigned.1 == value {
            range.unsigned.1 -= 1;
        }
        if range.signed.0 == signed && signed < range.signed.1 {
            range.signed.0 += 1;
        } else if range.signed.1 == signed && signed > range.signed.0 {
            range.signed.1 -= 1;
        }
        range.settled()
    }
}

/// Returns whether bounds fit integers of `bits` bits.
pub(crate) fn fits(bounds: (i128, i128), bits: u32, signed: bool) -> bool {
    let (least, most) = limits(bits, signed);
    least <= bounds.0 && bounds.1 <= most
}

/// Returns the signed value of bits of a width.
pub(crate) fn sign_extended(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}
