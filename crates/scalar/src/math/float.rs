//! Values of the builder with the operators of Rust, so that an expansion reads like its formula.
//!
//! A [`Float`] is an `f32` or `f64`. Its [`FloatBits`] are the signed integer of the same width, and
//! comparisons return a [`Truth`]. One code serves both widths: [`Float::pick`] chooses the parts that
//! differ, and numbers take the type of the other operand.
//!
//! Invariant: expansions consist only of basic operations, whose results are exact or rounded according to
//! IEEE 754. An expansion therefore has the same bits on every device.

use crate::builder::{Builder, Operand, Value};
use crate::op::{BinaryOp, CompareOp, UnaryOp};
use crate::types::{Element, Literal, Type};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

/// An `f32` or `f64`.
#[derive(Clone, Copy)]
pub(super) struct Float<'b> {
    builder: &'b Builder,
    value: Value,
    double: bool,
}

/// An `i32` or `i64`, as wide as the related float.
#[derive(Clone, Copy)]
pub(super) struct FloatBits<'b> {
    builder: &'b Builder,
    value: Value,
    double: bool,
}

/// A `bool`.
#[derive(Clone, Copy)]
pub(super) struct Truth<'b> {
    builder: &'b Builder,
    value: Value,
}

/// The coefficients of a polynomial for both widths, the constant one first.
#[derive(Clone, Copy)]
pub(super) struct Coefficients {
    pub(super) single: &'static [f64],
    pub(super) double: &'static [f64],
}

/// Maximum number of coefficients in one chain of multiplications. Longer polynomials have two chains, for
/// even and odd powers.
const LONGEST_CHAIN: usize = 8;

impl<'b> Float<'b> {
    /// Wraps an `f32` or `f64`. Returns `None` for any other value.
    pub(super) fn new(builder: &'b Builder, value: Value) -> Option<Float<'b>> {
        let ty = builder.type_of(value);
        let double = ty == Type::F64;
        (double || ty == Type::F32).then_some(Float { builder, value, double })
    }

    pub(super) fn value(self) -> Value {
        self.value
    }

    fn like(self, value: Value) -> Float<'b> {
        Float { value, ..self }
    }

    fn unary(self, op: UnaryOp) -> Float<'b> {
        self.like(self.builder.unary(op, self.value))
    }

    fn binary(self, op: BinaryOp, other: impl Into<Operand>) -> Float<'b> {
        self.like(self.builder.binary(op, self.value, other))
    }

    fn compare(self, op: CompareOp, other: impl Into<Operand>) -> Truth<'b> {
        Truth { builder: self.builder, value: self.builder.compare(op, self.value, other) }
    }

    // Properties of the width.

    /// Returns the first argument for `f32`, the second for `f64`.
    pub(super) fn pick<T>(self, single: T, double: T) -> T {
        if self.double { double } else { single }
    }

    /// Returns the number of stored mantissa bits.
    pub(super) fn mantissa_bits(self) -> u32 {
        self.pick(23, 52)
    }

    /// Returns the exponent bias of the format.
    pub(super) fn bias(self) -> i64 {
        self.pick(127, 1023)
    }

    pub(super) fn sign_bit(self) -> i64 {
        self.pick(i64::from(i32::MIN), i64::MIN)
    }

    /// Returns the least normal number.
    pub(super) fn least_normal(self) -> f64 {
        self.pick(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE)
    }

    /// Returns a power of two so large that its sum with a small number is rounded to an integer, which is
    /// then in the lowest bits.
    pub(super) fn rounder(self) -> f64 {
        self.pick(1.5 * 8_388_608.0, 1.5 * 4_503_599_627_370_496.0)
    }

    /// Returns the bits of the [`rounder`](Self::rounder).
    pub(super) fn rounder_bits(self) -> i64 {
        self.pick(0x4b40_0000, 0x4338_0000_0000_0000)
    }

    // Construction of values.

    /// Returns a number as a float of this width.
    pub(super) fn number(self, number: f64) -> Float<'b> {
        self.like(self.builder.constant(self.ty(), number))
    }

    fn ty(self) -> Type {
        self.pick(Type::F32, Type::F64)
    }

    /// Computes `self * a + b`, rounded once.
    pub(super) fn fma(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Float<'b> {
        self.like(self.builder.fma(self.value, a, b))
    }

    /// Evaluates the polynomial at this value.
    pub(super) fn polynomial(self, coefficients: Coefficients) -> Float<'b> {
        self.evaluate(self.pick(coefficients.single, coefficients.double))
    }

    /// Evaluates the polynomial with these coefficients, at least one, at this value.
    pub(super) fn evaluate(self, coefficients: &[f64]) -> Float<'b> {
        let chain = |x: Float<'b>, mut descending: Box<dyn Iterator<Item = f64> + '_>| {
            let top = x.number(descending.next().unwrap_or_default());
            descending.fold(top, |sum, coefficient| sum.fma(x, coefficient))
        };
        if coefficients.len() <= LONGEST_CHAIN {
            return chain(self, Box::new(coefficients.iter().rev().copied()));
        }
        let square = self * self;
        let of_parity = |parity: usize| -> Box<dyn Iterator<Item = f64> + '_> {
            let terms = coefficients.iter().enumerate().rev();
            Box::new(terms.filter(move |(power, _)| power % 2 == parity).map(|(_, coefficient)| *coefficient))
        };
        self.fma(chain(square, of_parity(1)), chain(square, of_parity(0)))
    }

    /// Returns the absolute value.
    pub(super) fn abs(self) -> Float<'b> {
        self.unary(UnaryOp::Abs)
    }

    /// Returns the square root.
    pub(super) fn sqrt(self) -> Float<'b> {
        self.unary(UnaryOp::Sqrt)
    }

    /// Rounds towards zero.
    pub(super) fn trunc(self) -> Float<'b> {
        self.unary(UnaryOp::Trunc)
    }

    /// Rounds to the nearest integer, halves to even.
    pub(super) fn round_even(self) -> Float<'b> {
        self.unary(UnaryOp::RoundEven)
    }

    /// Applies an approximate hardware operation.
    pub(super) fn approximate(self, op: UnaryOp) -> Float<'b> {
        self.unary(op)
    }

    /// Returns the approximate quotient.
    pub(super) fn divide_approximately(self, other: Float<'b>) -> Float<'b> {
        self.binary(BinaryOp::DivApprox, other)
    }

    /// Returns this magnitude with the sign of another value.
    pub(super) fn with_sign_of(self, other: Float<'b>) -> Float<'b> {
        self.binary(BinaryOp::CopySign, other)
    }

    /// Changes the sign if another value is negative.
    pub(super) fn times_sign_of(self, other: Float<'b>) -> Float<'b> {
        (self.bits() ^ (other.bits() & self.sign_bit())).float()
    }

    /// Returns the lesser of this value and the bound. NaN is preserved.
    pub(super) fn at_most(self, bound: f64) -> Float<'b> {
        self.gt(bound).select(self.number(bound), self)
    }

    /// Returns the greater of this value and the bound. NaN is preserved.
    pub(super) fn at_least(self, bound: f64) -> Float<'b> {
        self.lt(bound).select(self.number(bound), self)
    }

    /// Returns the bits as an integer.
    pub(super) fn bits(self) -> FloatBits<'b> {
        let value = self.builder.bitcast(self.value, self.pick(Type::I32, Type::I64));
        FloatBits { builder: self.builder, value, double: self.double }
    }

    /// Returns an integer of the same width.
    pub(super) fn integer(self, number: i64) -> FloatBits<'b> {
        let value = self.builder.constant(self.pick(Type::I32, Type::I64), number);
        FloatBits { builder: self.builder, value, double: self.double }
    }

    /// Converts to `f64`.
    pub(super) fn widen(self) -> Float<'b> {
        Float { value: self.builder.convert(self.value, Type::F64), double: true, ..self }
    }

    /// Rounds to the width of another value.
    pub(super) fn as_wide_as(self, other: Float<'b>) -> Float<'b> {
        Float { value: self.builder.convert(self.value, other.ty()), double: other.double, ..self }
    }

    // Comparisons.

    /// `<`
    pub(super) fn lt(self, other: impl Into<Operand>) -> Truth<'b> {
        self.compare(CompareOp::Lt, other)
    }

    /// `<=`
    pub(super) fn le(self, other: impl Into<Operand>) -> Truth<'b> {
        self.compare(CompareOp::Le, other)
    }

    /// `>`
    pub(super) fn gt(self, other: impl Into<Operand>) -> Truth<'b> {
        self.compare(CompareOp::Gt, other)
    }

    /// `>=`
    pub(super) fn ge(self, other: impl Into<Operand>) -> Truth<'b> {
        self.compare(CompareOp::Ge, other)
    }

    /// `==`
    pub(super) fn equals(self, other: impl Into<Operand>) -> Truth<'b> {
        self.compare(CompareOp::Eq, other)
    }

    /// Tests for NaN.
    pub(super) fn is_nan(self) -> Truth<'b> {
        self.compare(CompareOp::Ne, self)
    }

    // Control flow.

    /// Returns `rarely` if the condition is true, otherwise `usually`. A branch skips the rare code if no
    /// thread needs it.
    pub(super) fn unless<const N: usize>(
        condition: Truth<'b>,
        usually: [Float<'b>; N],
        rarely: impl FnOnce() -> [Float<'b>; N],
    ) -> [Float<'b>; N] {
        let builder = condition.builder;
        let variables = usually.map(|value| (value, builder.variable_with(value.value)));
        builder.if_then(condition.value, || {
            for ((_, variable), value) in variables.iter().zip(rarely()) {
                builder.set(*variable, value.value);
            }
        });
        variables.map(|(like, variable)| like.like(builder.get(variable)))
    }

    /// Repeats a step from this value on while the condition is true.
    pub(super) fn step_while(
        self,
        condition: impl FnOnce(Float<'b>) -> Truth<'b>,
        step: impl FnOnce(Float<'b>) -> Float<'b>,
    ) -> Float<'b> {
        let builder = self.builder;
        let variable = builder.variable_with(self.value);
        let current = || self.like(builder.get(variable));
        builder.while_loop(|| condition(current()).value, || builder.set(variable, step(current()).value));
        current()
    }
}

impl<'b> FloatBits<'b> {
    fn like(self, value: Value) -> FloatBits<'b> {
        FloatBits { value, ..self }
    }

    fn binary(self, op: BinaryOp, other: impl Into<Operand>) -> FloatBits<'b> {
        self.like(self.builder.binary(op, self.value, other))
    }

    fn compare(self, op: CompareOp, other: impl Into<Operand>) -> Truth<'b> {
        Truth { builder: self.builder, value: self.builder.compare(op, self.value, other) }
    }

    /// Returns another integer of the same width.
    pub(super) fn number(self, number: i64) -> FloatBits<'b> {
        self.like(self.builder.constant(self.ty(), number))
    }

    fn ty(self) -> Type {
        if self.double { Type::I64 } else { Type::I32 }
    }

    fn unsigned(self) -> Value {
        self.builder.bitcast(self.value, if self.double { Type::U64 } else { Type::U32 })
    }

    fn signed(self, value: Value) -> FloatBits<'b> {
        self.like(self.builder.bitcast(value, self.ty()))
    }

    /// Returns the float with these bits.
    pub(super) fn float(self) -> Float<'b> {
        let ty = if self.double { Type::F64 } else { Type::F32 };
        Float { builder: self.builder, value: self.builder.bitcast(self.value, ty), double: self.double }
    }

    /// Returns the float nearest to this integer.
    pub(super) fn to_float(self) -> Float<'b> {
        let ty = if self.double { Type::F64 } else { Type::F32 };
        Float { builder: self.builder, value: self.builder.convert(self.value, ty), double: self.double }
    }

    /// Shifts right and fills with zeros.
    pub(super) fn shift_right_logical(self, count: impl Into<Operand>) -> FloatBits<'b> {
        self.signed(self.builder.shr(self.unsigned(), count))
    }

    /// Shifts left. The result is 0 if the count is the width.
    pub(super) fn shift_left(self, count: impl Into<Operand>) -> FloatBits<'b> {
        self.like(self.builder.shl(self.value, count))
    }

    /// Returns the upper half of the unsigned product.
    pub(super) fn multiply_high(self, other: FloatBits<'b>) -> FloatBits<'b> {
        self.signed(self.builder.mul_high(self.unsigned(), other.unsigned()))
    }

    /// Returns the number of leading zero bits.
    pub(super) fn leading_zeros(self) -> FloatBits<'b> {
        self.like(self.builder.leading_zeros(self.value))
    }

    /// Tests if it is less, as unsigned numbers.
    pub(super) fn is_below(self, other: FloatBits<'b>) -> Truth<'b> {
        Truth { builder: self.builder, value: self.builder.compare(CompareOp::Lt, self.unsigned(), other.unsigned()) }
    }

    /// Tests if it is less than zero.
    pub(super) fn is_negative(self) -> Truth<'b> {
        self.compare(CompareOp::Lt, 0)
    }

    /// Tests if it is zero.
    pub(super) fn is_zero(self) -> Truth<'b> {
        self.compare(CompareOp::Eq, 0)
    }

    /// Returns the maximum.
    pub(super) fn at_least(self, other: i64) -> FloatBits<'b> {
        self.binary(BinaryOp::Max, other)
    }

    /// Returns the entry at this index of a table of 64-bit words.
    pub(super) fn lookup(self, words: &[u64]) -> FloatBits<'b> {
        let words: Vec<Literal> = words.iter().map(|word| Literal::from_bits(Element::I64, *word)).collect();
        let index = self.builder.convert(self.value, Type::U32);
        self.like(self.builder.lookup(self.builder.table(&words), index))
    }
}

impl<'b> Truth<'b> {
    /// Returns `yes` if this is true, otherwise `no`.
    pub(super) fn select(self, yes: impl Into<Operand>, no: Float<'b>) -> Float<'b> {
        no.like(self.builder.select(self.value, yes, no))
    }

    /// Returns `yes` if this is true, otherwise `no`.
    pub(super) fn select_bits(self, yes: i64, no: FloatBits<'b>) -> FloatBits<'b> {
        no.like(self.builder.select(self.value, yes, no))
    }
}

impl From<Float<'_>> for Operand {
    fn from(float: Float<'_>) -> Operand {
        Operand::Value(float.value)
    }
}

impl From<FloatBits<'_>> for Operand {
    fn from(bits: FloatBits<'_>) -> Operand {
        Operand::Value(bits.value)
    }
}

impl From<Truth<'_>> for Operand {
    fn from(truth: Truth<'_>) -> Operand {
        Operand::Value(truth.value)
    }
}

macro_rules! operators {
    ($type:ident: $($operator:ident $method:ident $op:ident,)*) => {
        $(impl<'b, T: Into<Operand>> $operator<T> for $type<'b> {
            type Output = $type<'b>;
            fn $method(self, other: T) -> $type<'b> {
                self.binary(BinaryOp::$op, other)
            }
        })*
    };
}

operators! { Float: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, }
operators! { FloatBits: Add add Add, Sub sub Sub, Mul mul Mul, BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor, }
operators! { Truth: BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor, }

impl<'b> Truth<'b> {
    fn binary(self, op: BinaryOp, other: impl Into<Operand>) -> Truth<'b> {
        Truth { value: self.builder.binary(op, self.value, other), ..self }
    }
}

impl<'b> Not for Truth<'b> {
    type Output = Truth<'b>;
    fn not(self) -> Truth<'b> {
        Truth { value: self.builder.not(self.value), ..self }
    }
}

impl<'b> Neg for Float<'b> {
    type Output = Float<'b>;
    fn neg(self) -> Float<'b> {
        self.unary(UnaryOp::Neg)
    }
}

impl<'b> Sub<Float<'b>> for f64 {
    type Output = Float<'b>;
    fn sub(self, other: Float<'b>) -> Float<'b> {
        other.number(self) - other
    }
}

impl<'b> Div<Float<'b>> for f64 {
    type Output = Float<'b>;
    fn div(self, other: Float<'b>) -> Float<'b> {
        other.number(self) / other
    }
}

impl<'b> Sub<FloatBits<'b>> for i64 {
    type Output = FloatBits<'b>;
    fn sub(self, other: FloatBits<'b>) -> FloatBits<'b> {
        other.number(self) - other
    }
}

impl<'b> Shl<u32> for FloatBits<'b> {
    type Output = FloatBits<'b>;
    fn shl(self, count: u32) -> FloatBits<'b> {
        self.like(self.builder.shl(self.value, count))
    }
}

impl<'b> Shr<u32> for FloatBits<'b> {
    type Output = FloatBits<'b>;
    fn shr(self, count: u32) -> FloatBits<'b> {
        self.like(self.builder.shr(self.value, count))
    }
}
