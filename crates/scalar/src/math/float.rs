//! Values of the builder with the operators of Rust, so that an expansion reads as the formula that it is.
//!
//! A [`Float`] is an `f32` or `f64`; its [`Bits`] are the signed integer of the same width, and comparisons give a [`Truth`]. One text
//! serves both widths: [`Float::pick`] chooses what differs between them, and numbers take the type of what they stand beside.
//!
//! Invariant: what is written here is basic operations only, whose results are exact or rounded as IEEE 754 says, so an expansion
//! has the same bits on every device.

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

/// An `i32` or `i64`, as wide as the float beside it.
#[derive(Clone, Copy)]
pub(super) struct Bits<'b> {
    builder: &'b Builder,
    value: Value,
    double: bool,
}

/// A truth value.
#[derive(Clone, Copy)]
pub(super) struct Truth<'b> {
    builder: &'b Builder,
    value: Value,
}

/// The coefficients of a polynomial for either width, the constant one first.
#[derive(Clone, Copy)]
pub(super) struct Coefficients {
    pub(super) single: &'static [f64],
    pub(super) double: &'static [f64],
}

/// The greatest number of coefficients that are multiplied in one chain; longer polynomials take two chains, for even and odd powers.
const LONGEST_CHAIN: usize = 8;

impl<'b> Float<'b> {
    /// A value that is an `f32` or `f64`; `None` for any other.
    pub(super) fn new(builder: &'b Builder, value: Value) -> Option<Float<'b>> {
        let ty = builder.type_of(value);
        let double = ty == Type::F64;
        (double || ty == Type::F32).then_some(Float { builder, value, double })
    }

    /// The value.
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

    // What depends on the width.

    /// The first for `f32`, the second for `f64`.
    pub(super) fn pick<T>(self, single: T, double: T) -> T {
        if self.double { double } else { single }
    }

    /// Bits of the mantissa that are stored.
    pub(super) fn mantissa_bits(self) -> u32 {
        self.pick(23, 52)
    }

    /// Returns the exponent bias of the format.
    pub(super) fn bias(self) -> i64 {
        self.pick(127, 1023)
    }

    /// The sign bit.
    pub(super) fn sign_bit(self) -> i64 {
        self.pick(i64::from(i32::MIN), i64::MIN)
    }

    /// The least number that is not subnormal.
    pub(super) fn least_normal(self) -> f64 {
        self.pick(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE)
    }

    /// A power of two so large that its sum with a small number is rounded to an integer, which then stands in the lowest bits.
    pub(super) fn rounder(self) -> f64 {
        self.pick(1.5 * 8_388_608.0, 1.5 * 4_503_599_627_370_496.0)
    }

    /// The bits of the [`rounder`](Self::rounder).
    pub(super) fn rounder_bits(self) -> i64 {
        self.pick(0x4b40_0000, 0x4338_0000_0000_0000)
    }

    // Making values.

    /// A number.
    pub(super) fn number(self, number: f64) -> Float<'b> {
        self.like(self.builder.constant(self.ty(), number))
    }

    fn ty(self) -> Type {
        self.pick(Type::F32, Type::F64)
    }

    /// `self * a + b`, rounded once.
    pub(super) fn fma(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Float<'b> {
        self.like(self.builder.fma(self.value, a, b))
    }

    /// The polynomial at this place.
    pub(super) fn polynomial(self, coefficients: Coefficients) -> Float<'b> {
        self.evaluate(self.pick(coefficients.single, coefficients.double))
    }

    /// The polynomial with these coefficients, at least one, at this place.
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

    /// The absolute value.
    pub(super) fn abs(self) -> Float<'b> {
        self.unary(UnaryOp::Abs)
    }

    /// The square root.
    pub(super) fn sqrt(self) -> Float<'b> {
        self.unary(UnaryOp::Sqrt)
    }

    /// Rounded towards zero.
    pub(super) fn trunc(self) -> Float<'b> {
        self.unary(UnaryOp::Trunc)
    }

    /// Rounded to the nearest integer, halves to the even one.
    pub(super) fn round_even(self) -> Float<'b> {
        self.unary(UnaryOp::RoundEven)
    }

    /// An operation of the hardware that is not exact.
    pub(super) fn approximate(self, op: UnaryOp) -> Float<'b> {
        self.unary(op)
    }

    /// About the quotient.
    pub(super) fn divide_approximately(self, other: Float<'b>) -> Float<'b> {
        self.binary(BinaryOp::DivApprox, other)
    }

    /// This magnitude with the sign of another.
    pub(super) fn with_sign_of(self, other: Float<'b>) -> Float<'b> {
        self.binary(BinaryOp::CopySign, other)
    }

    /// The other sign where another is negative.
    pub(super) fn times_sign_of(self, other: Float<'b>) -> Float<'b> {
        (self.bits() ^ (other.bits() & self.sign_bit())).float()
    }

    /// This, or the bound where it is greater; NaN stays.
    pub(super) fn at_most(self, bound: f64) -> Float<'b> {
        self.gt(bound).select(self.number(bound), self)
    }

    /// This, or the bound where it is less; NaN stays.
    pub(super) fn at_least(self, bound: f64) -> Float<'b> {
        self.lt(bound).select(self.number(bound), self)
    }

    /// The bits as an integer.
    pub(super) fn bits(self) -> Bits<'b> {
        let value = self.builder.bitcast(self.value, self.pick(Type::I32, Type::I64));
        Bits { builder: self.builder, value, double: self.double }
    }

    /// An integer as wide as this.
    pub(super) fn integer(self, number: i64) -> Bits<'b> {
        let value = self.builder.constant(self.pick(Type::I32, Type::I64), number);
        Bits { builder: self.builder, value, double: self.double }
    }

    /// As `f64`.
    pub(super) fn widen(self) -> Float<'b> {
        Float { value: self.builder.convert(self.value, Type::F64), double: true, ..self }
    }

    /// Rounded to as many bits as another has.
    pub(super) fn as_wide_as(self, other: Float<'b>) -> Float<'b> {
        Float { value: self.builder.convert(self.value, other.ty()), double: other.double, ..self }
    }

    // Comparing.

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

    /// Returns whether it is no number.
    pub(super) fn is_nan(self) -> Truth<'b> {
        self.compare(CompareOp::Ne, self)
    }

    // Control.

    /// Returns `rarely` where the condition is true, else `usually`: a branch skips the rare code where no thread needs it.
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

    /// Goes on from this value by steps while the condition is true.
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

impl<'b> Bits<'b> {
    fn like(self, value: Value) -> Bits<'b> {
        Bits { value, ..self }
    }

    fn binary(self, op: BinaryOp, other: impl Into<Operand>) -> Bits<'b> {
        self.like(self.builder.binary(op, self.value, other))
    }

    fn compare(self, op: CompareOp, other: impl Into<Operand>) -> Truth<'b> {
        Truth { builder: self.builder, value: self.builder.compare(op, self.value, other) }
    }

    /// Another integer of the same width.
    pub(super) fn number(self, number: i64) -> Bits<'b> {
        self.like(self.builder.constant(self.ty(), number))
    }

    fn ty(self) -> Type {
        if self.double { Type::I64 } else { Type::I32 }
    }

    fn unsigned(self) -> Value {
        self.builder.bitcast(self.value, if self.double { Type::U64 } else { Type::U32 })
    }

    fn signed(self, value: Value) -> Bits<'b> {
        self.like(self.builder.bitcast(value, self.ty()))
    }

    /// The float that has these bits.
    pub(super) fn float(self) -> Float<'b> {
        let ty = if self.double { Type::F64 } else { Type::F32 };
        Float { builder: self.builder, value: self.builder.bitcast(self.value, ty), double: self.double }
    }

    /// The float nearest to this integer.
    pub(super) fn to_float(self) -> Float<'b> {
        let ty = if self.double { Type::F64 } else { Type::F32 };
        Float { builder: self.builder, value: self.builder.convert(self.value, ty), double: self.double }
    }

    /// Shifted right, with zeros coming in.
    pub(super) fn shift_right_logical(self, count: impl Into<Operand>) -> Bits<'b> {
        self.signed(self.builder.shr(self.unsigned(), count))
    }

    /// Shifted left; 0 when the count is the width.
    pub(super) fn shift_left(self, count: impl Into<Operand>) -> Bits<'b> {
        self.like(self.builder.shl(self.value, count))
    }

    /// The upper half of the product, both without a sign.
    pub(super) fn multiply_high(self, other: Bits<'b>) -> Bits<'b> {
        self.signed(self.builder.mul_high(self.unsigned(), other.unsigned()))
    }

    /// Returns the number of leading zero bits.
    pub(super) fn leading_zeros(self) -> Bits<'b> {
        self.like(self.builder.leading_zeros(self.value))
    }

    /// Returns whether it is less, both without a sign.
    pub(super) fn is_below(self, other: Bits<'b>) -> Truth<'b> {
        Truth { builder: self.builder, value: self.builder.compare(CompareOp::Lt, self.unsigned(), other.unsigned()) }
    }

    /// Returns whether it is less than zero.
    pub(super) fn is_negative(self) -> Truth<'b> {
        self.compare(CompareOp::Lt, 0)
    }

    /// Returns whether it is zero.
    pub(super) fn is_zero(self) -> Truth<'b> {
        self.compare(CompareOp::Eq, 0)
    }

    /// The greater one.
    pub(super) fn at_least(self, other: i64) -> Bits<'b> {
        self.binary(BinaryOp::Max, other)
    }

    /// The entry of a table of 64-bit words at this index.
    pub(super) fn lookup(self, words: &[u64]) -> Bits<'b> {
        let words: Vec<Literal> = words.iter().map(|word| Literal::from_bits(Element::I64, *word)).collect();
        let index = self.builder.convert(self.value, Type::U32);
        self.like(self.builder.lookup(self.builder.table(&words), index))
    }
}

impl<'b> Truth<'b> {
    /// The first where this is true, else the second.
    pub(super) fn select(self, yes: impl Into<Operand>, no: Float<'b>) -> Float<'b> {
        no.like(self.builder.select(self.value, yes, no))
    }

    /// The first where this is true, else the second.
    pub(super) fn select_bits(self, yes: i64, no: Bits<'b>) -> Bits<'b> {
        no.like(self.builder.select(self.value, yes, no))
    }
}

impl From<Float<'_>> for Operand {
    fn from(float: Float<'_>) -> Operand {
        Operand::Value(float.value)
    }
}

impl From<Bits<'_>> for Operand {
    fn from(bits: Bits<'_>) -> Operand {
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
operators! { Bits: Add add Add, Sub sub Sub, Mul mul Mul, BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor, }
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

impl<'b> Sub<Bits<'b>> for i64 {
    type Output = Bits<'b>;
    fn sub(self, other: Bits<'b>) -> Bits<'b> {
        other.number(self) - other
    }
}

impl<'b> Shl<u32> for Bits<'b> {
    type Output = Bits<'b>;
    fn shl(self, count: u32) -> Bits<'b> {
        self.like(self.builder.shl(self.value, count))
    }
}

impl<'b> Shr<u32> for Bits<'b> {
    type Output = Bits<'b>;
    fn shr(self, count: u32) -> Bits<'b> {
        self.like(self.builder.shr(self.value, count))
    }
}
