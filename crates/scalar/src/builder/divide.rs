//! Division by a value that is known before a kernel starts, as a product and a shift.
//!
//! For a divisor d let l be the least number with 2^l >= d, and m = floor(2^32 (2^l - d) / d) + 1. Then n / d
//! is (n + floor(n m / 2^32)) / 2^l for every 32-bit n (Granlund and Montgomery, *Division by invariant
//! integers using multiplication*, theorem 4.2). The sum has 33 bits in general, and 32 if n has 31. The host
//! computes l and m once. A thread executes two instructions, or four if n may have 32 bits.

use super::{Builder, Operand, Value};
use crate::types::Type;

/// A divisor with the precomputed numbers for fast division: three arguments of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Divisor {
    /// The divisor itself.
    pub divisor: u32,
    /// Factor.
    pub multiplier: u32,
    /// Shift of the result.
    pub shift: u32,
}

impl Divisor {
    /// Returns the precomputed numbers of a divisor. 0 counts as 1.
    pub const fn new(divisor: u32) -> Divisor {
        let divisor = if divisor == 0 { 1 } else { divisor };
        let shift = 32 - (divisor - 1).leading_zeros();
        let multiplier = ((1u64 << 32) * ((1u64 << shift) - divisor as u64) / divisor as u64 + 1) as u32;
        Divisor { divisor, multiplier, shift }
    }
}

/// The parameters of a kernel that hold a [`Divisor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FastDivisor {
    divisor: Value,
    multiplier: Value,
    shift: Value,
}

impl FastDivisor {
    /// Returns the divisor itself, a `u32`.
    pub const fn value(self) -> Value {
        self.divisor
    }
}

impl Builder {
    /// Declares three `u32` parameters that hold a [`Divisor`]: `name`, `name_multiplier`, `name_shift`. The
    /// divisor is promised to be between 1 and `most`.
    ///
    /// ```
    /// use broadloom_scalar::{Builder, Divisor, Type};
    /// let b = Builder::function("row_and_column");
    /// let index = b.assume(b.parameter("index", Type::U32), 0, 1 << 30);
    /// let width = b.fast_divisor("width", 1 << 16);
    /// let (row, column) = b.fast_div_rem(index, width);
    /// let f = b.finish_function(&[row, column]).unwrap();
    /// let Divisor { divisor, multiplier, shift } = Divisor::new(640);
    /// let arguments = [1300u32, divisor, multiplier, shift].map(Into::into);
    /// assert_eq!(f.evaluate(&arguments).unwrap(), [2u32.into(), 20u32.into()]);
    /// ```
    #[track_caller]
    pub fn fast_divisor(&self, name: &str, most: u32) -> FastDivisor {
        let divisor = self.assume(self.parameter(name, Type::U32), 1, i128::from(most.max(1)));
        let multiplier = self.parameter(&format!("{name}_multiplier"), Type::U32);
        let shift = self.assume(self.parameter(&format!("{name}_shift"), Type::U32), 0, 32);
        FastDivisor { divisor, multiplier, shift }
    }

    /// Returns `x / divisor` of a `u32`. The code is shorter if `x` is known to have 31 bits: see
    /// [`assume`](Self::assume).
    #[track_caller]
    pub fn fast_div(&self, x: impl Into<Operand>, divisor: FastDivisor) -> Value {
        let Some(x) = self.resolve(x.into(), Type::U32) else { return self.poison() };
        // For a literal divisor, later stages choose the best code.
        if self.as_literal(divisor.divisor).is_some() {
            return self.div(x, divisor.divisor);
        }
        let product = self.mul_high(x, divisor.multiplier);
        let (low, high) = self.range(x);
        let quotient = if high <= i128::from(i32::MAX) {
            self.shr(self.add(product, x), divisor.shift)
        } else {
            // Halved before the sum, so that it has 32 bits. A shift of 0 means that the divisor is 1.
            let half = self.add(self.shr(self.sub(x, product), 1), product);
            let shifted = self.shr(half, self.sub(divisor.shift, 1));
            self.select(self.eq(divisor.shift, 0), x, shifted)
        };
        let least = self.range(divisor.divisor).0.max(1);
        self.assume(quotient, 0.min(low), high / least)
    }

    /// Returns the quotient and the remainder of a `u32`.
    #[track_caller]
    pub fn fast_div_rem(&self, x: impl Into<Operand>, divisor: FastDivisor) -> (Value, Value) {
        let Some(x) = self.resolve(x.into(), Type::U32) else { return (self.poison(), self.poison()) };
        if self.as_literal(divisor.divisor).is_some() {
            return (self.div(x, divisor.divisor), self.rem(x, divisor.divisor));
        }
        let quotient = self.fast_div(x, divisor);
        let remainder = self.sub(x, self.mul(quotient, divisor.divisor));
        let most = (self.range(divisor.divisor).1 - 1).min(self.range(x).1);
        (quotient, self.assume(remainder, 0, most.max(0)))
    }
}
