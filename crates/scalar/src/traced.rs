//! Symbolic values with the operators and functions of Rust's numbers.
//!
//! A front end calls a closure once with [`Traced`] values, which record the operations on them. Numbers that
//! are combined with traced values become constants of the code.

use crate::{BinaryOp, Builder, CompareOp, Lanes, Literal, MathFunction, Precision, Type, Value};
use half::f16;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

/// Type of traced values.
pub trait Kind: Copy {
    /// Type in the code.
    const TYPE: Type;
    /// Returns the value as literals, one per lane.
    fn lanes(self) -> Lanes;
}

/// Kind with arithmetic: numbers, and vectors of them.
pub trait Arithmetic: Kind {}

/// Ordered kind of one lane: all numbers.
pub trait Number: Arithmetic {}

/// Traced integer: a number with bitwise operations.
pub trait Integer: Number + Bits {}

/// Float of one lane, or vector of floats.
pub trait Floating: Arithmetic {}

/// Kind with bitwise operations: integers and truth values.
pub trait Bits: Kind {}

/// Value in a traced closure. The lifetime is invariant, and each closure has its own, so values of two closures
/// cannot be mixed.
pub struct Traced<'t, T> {
    /// Builder that records the operations.
    pub builder: &'t Builder,
    /// Handle in the builder.
    pub value: Value,
    kind: PhantomData<fn() -> T>,
    /// Invariant lifetime, unique to each closure.
    closure: PhantomData<fn(&'t ()) -> &'t ()>,
}

impl<T> Clone for Traced<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Traced<'_, T> {}

impl<'t, T> Traced<'t, T> {
    /// Wraps a value of a builder, with the operators of a kind.
    pub fn new(builder: &'t Builder, value: Value) -> Traced<'t, T> {
        Traced { builder, value, kind: PhantomData, closure: PhantomData }
    }

    /// Creates a constant of the same closure.
    #[must_use]
    #[track_caller]
    pub fn constant<U: Kind>(self, value: U) -> Traced<'t, U> {
        Traced::new(self.builder, value.term(self.builder))
    }

    /// Converts like Rust's `as`.
    #[must_use]
    #[track_caller]
    pub fn cast<U: Kind>(self) -> Traced<'t, U> {
        Traced::new(self.builder, self.builder.convert(self.value, U::TYPE))
    }
}

/// Second operand of an operation on a traced value: another traced value, or a constant.
pub trait Term<'t, T> {
    /// Returns the value in a builder.
    fn term(self, builder: &'t Builder) -> Value;
}

impl<'t, T> Term<'t, T> for Traced<'t, T> {
    fn term(self, _: &'t Builder) -> Value {
        self.value
    }
}

impl<'t, T: Kind> Term<'t, T> for T {
    #[track_caller]
    fn term(self, builder: &'t Builder) -> Value {
        let lanes: Vec<Value> = self.lanes().iter().map(|lane| builder.literal(*lane)).collect();
        builder.vector(&lanes)
    }
}

macro_rules! kinds {
    ($($rust:ty, $ty:ident: $($bound:ident)*;)*) => {
        $(impl Kind for $rust {
            const TYPE: Type = Type::$ty;
            fn lanes(self) -> Lanes {
                std::iter::once(Literal::from(self)).collect()
            }
        }
        $(impl $bound for $rust {})*)*
    };
}

kinds! {
    bool, BOOL: Bits;
    i8, I8: Arithmetic Number Integer Bits;
    i16, I16: Arithmetic Number Integer Bits;
    i32, I32: Arithmetic Number Integer Bits;
    i64, I64: Arithmetic Number Integer Bits;
    u8, U8: Arithmetic Number Integer Bits;
    u16, U16: Arithmetic Number Integer Bits;
    u32, U32: Arithmetic Number Integer Bits;
    u64, U64: Arithmetic Number Integer Bits;
    f16, F16: Arithmetic Number Floating;
    f32, F32: Arithmetic Number Floating;
    f64, F64: Arithmetic Number Floating;
}

impl Kind for [f32; 4] {
    const TYPE: Type = match Type::vector(crate::Element::F32, 4) {
        Some(ty) => ty,
        None => Type::F32,
    };
    fn lanes(self) -> Lanes {
        self.iter().map(|lane| Literal::from(*lane)).collect()
    }
}

impl Arithmetic for [f32; 4] {}
impl Floating for [f32; 4] {}

macro_rules! operators {
    ($($bound:ident $operator:ident $method:ident $op:ident: $($scalar:ty)*;)*) => {
        $(
            impl<'t, T: $bound, R: Term<'t, T>> $operator<R> for Traced<'t, T> {
                type Output = Traced<'t, T>;
                #[track_caller]
                fn $method(self, other: R) -> Traced<'t, T> {
                    let other = other.term(self.builder);
                    Traced::new(self.builder, self.builder.binary(BinaryOp::$op, self.value, other))
                }
            }
            $(impl<'t> $operator<Traced<'t, $scalar>> for $scalar {
                type Output = Traced<'t, $scalar>;
                #[track_caller]
                fn $method(self, other: Traced<'t, $scalar>) -> Traced<'t, $scalar> {
                    $operator::$method(other.constant(self), other)
                }
            })*
        )*
    };
}

operators! {
    Arithmetic Add add Add: i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 [f32; 4];
    Arithmetic Sub sub Sub: i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 [f32; 4];
    Arithmetic Mul mul Mul: i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 [f32; 4];
    Arithmetic Div div Div: i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 [f32; 4];
    Number Rem rem Rem: i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64;
    Bits BitAnd bitand And: ;
    Bits BitOr bitor Or: ;
    Bits BitXor bitxor Xor: ;
    Integer Shl shl Shl: ;
    Integer Shr shr Shr: ;
}

impl<'t, T: Arithmetic> Neg for Traced<'t, T> {
    type Output = Traced<'t, T>;
    #[track_caller]
    fn neg(self) -> Traced<'t, T> {
        Traced::new(self.builder, self.builder.neg(self.value))
    }
}

impl<'t, T: Bits> Not for Traced<'t, T> {
    type Output = Traced<'t, T>;
    #[track_caller]
    fn not(self) -> Traced<'t, T> {
        Traced::new(self.builder, self.builder.not(self.value))
    }
}

/// Methods that call the builder's method of the same name.
macro_rules! methods {
    ($bound:ident: $($(#[$doc:meta])* $name:ident($($other:ident)?);)*) => {
        impl<'t, T: $bound> Traced<'t, T> {
            $($(#[$doc])*
            #[must_use]
            #[track_caller]
            pub fn $name(self $(, $other: impl Term<'t, T>)?) -> Traced<'t, T> {
                Traced::new(self.builder, self.builder.$name(self.value $(, $other.term(self.builder))?))
            })*
        }
    };
}

methods! {
    Arithmetic:
    /// Returns the minimum. A number takes precedence over NaN.
    min(other);
    /// Returns the maximum. A number takes precedence over NaN.
    max(other);
    /// Returns the absolute value.
    abs();
}

methods! {
    Floating:
    /// Returns the square root, correctly rounded.
    sqrt();
    /// Rounds down.
    floor();
    /// Rounds up.
    ceil();
    /// Rounds towards zero.
    trunc();
    /// Rounds to the nearest integer, halves to even.
    round_even();
    /// Rounds to the nearest integer, halves away from zero.
    round();
}

macro_rules! comparisons {
    ($($name:ident $op:ident $text:literal;)*) => {
        impl<'t, T: Number> Traced<'t, T> {
            $(#[doc = concat!("Tests if it is ", $text, ".")]
            #[must_use]
            #[track_caller]
            pub fn $name(self, other: impl Term<'t, T>) -> Traced<'t, bool> {
                let other = other.term(self.builder);
                Traced::new(self.builder, self.builder.compare(CompareOp::$op, self.value, other))
            })*
        }
    };
}

crate::for_comparisons!(comparisons);

macro_rules! functions {
    (one { $($one:ident $first:ident;)* } two { $($two:ident $second:ident;)* }) => {
        impl<'t, T: Floating> Traced<'t, T> {
            $(#[doc = concat!("Returns [`MathFunction::", stringify!($first), "`].")]
            #[must_use]
            #[track_caller]
            pub fn $one(self) -> Traced<'t, T> {
                Traced::new(self.builder, self.builder.math(MathFunction::$first, Precision::Accurate, &[self.value]))
            })*
            $(#[doc = concat!("Returns [`MathFunction::", stringify!($second), "`].")]
            #[must_use]
            #[track_caller]
            pub fn $two(self, other: impl Term<'t, T>) -> Traced<'t, T> {
                let arguments = [self.value, other.term(self.builder)];
                Traced::new(self.builder, self.builder.math(MathFunction::$second, Precision::Accurate, &arguments))
            })*
        }
    };
}

crate::for_functions!(functions);

impl<'t> Traced<'t, bool> {
    /// Returns logical and.
    #[must_use]
    #[track_caller]
    pub fn and(self, other: impl Term<'t, bool>) -> Traced<'t, bool> {
        self & other
    }

    /// Returns logical or.
    #[must_use]
    #[track_caller]
    pub fn or(self, other: impl Term<'t, bool>) -> Traced<'t, bool> {
        self | other
    }

    /// Selects one of two values; both are computed.
    #[must_use]
    #[track_caller]
    pub fn select<T: Kind>(self, yes: impl Term<'t, T>, no: impl Term<'t, T>) -> Traced<'t, T> {
        let (yes, no) = (yes.term(self.builder), no.term(self.builder));
        Traced::new(self.builder, self.builder.select(self.value, yes, no))
    }

    /// Calls [`Traced::select`], under the name that arrays use.
    #[must_use]
    #[track_caller]
    pub fn cond<T: Kind>(self, yes: impl Term<'t, T>, no: impl Term<'t, T>) -> Traced<'t, T> {
        self.select(yes, no)
    }
}

impl<'t> Traced<'t, i32> {
    /// Returns the float with these bits.
    #[must_use]
    #[track_caller]
    pub fn from_bits(self) -> Traced<'t, f32> {
        Traced::new(self.builder, self.builder.bitcast(self.value, Type::F32))
    }
}

/// `log2(1 + f) / f` for `f` between √½ − 1 and √2 − 1, lowest power first. The error of the logarithm is
/// below 5·10⁻⁸.
const LOG2: [f32; 8] =
    [1.442_694_8, -0.721_357_1, 0.480_939_4, -0.360_088_1, 0.286_708_6, -0.250_061_48, 0.236_882_15, -0.145_756_24];
/// `2^r` for `r` between −½ and ½, lowest power first.
const EXP2: [f32; 7] =
    [1.0, std::f32::consts::LN_2, 0.240_226_52, 0.055_503_27, 0.009_617_995, 0.001_340_043_1, 0.000_154_780_18];
/// Number whose addition rounds to integers. The integers are in the lowest bits of the sum.
const ROUNDER: f32 = 12_582_912.0;

impl<'t> Traced<'t, f32> {
    /// Returns the bits as an integer.
    #[must_use]
    #[track_caller]
    pub fn to_bits(self) -> Traced<'t, i32> {
        Traced::new(self.builder, self.builder.bitcast(self.value, Type::I32))
    }

    /// Broadcasts the value to all four lanes.
    #[must_use]
    #[track_caller]
    pub fn splat(self) -> Traced<'t, [f32; 4]> {
        Traced::new(self.builder, self.builder.vector(&[self.value; 4]))
    }

    fn polynomial(self, coefficients: &[f32]) -> Traced<'t, f32> {
        let (last, rest) = coefficients.split_last().map_or((0.0, coefficients), |(last, rest)| (*last, rest));
        rest.iter().rev().fold(self.constant(last), |sum, coefficient| sum * self + *coefficient)
    }

    /// Returns a power of a number from 0 to 1, with a positive exponent. It takes half of the operations of
    /// [`pow`](Traced::pow) and returns the same bits on all devices. The relative error is below (1 +
    /// exponent)·2⁻²² + |log₂ result|·2⁻²⁴. Numbers below 2⁻¹²⁶ count as 0.
    #[must_use]
    #[track_caller]
    pub fn power_of_unit(self, exponent: impl Term<'t, f32>) -> Traced<'t, f32> {
        let b = self.builder;
        let exponent: Traced<'t, f32> = Traced::new(b, exponent.term(b));
        // 2^e m with m between √½ and √2.
        let bits = self.to_bits();
        let e: Traced<'t, i32> = Traced::new(b, b.and(b.sub(bits.value, 0x3f35_04f3i32), -0x0080_0000i32));
        let f = (bits - e).from_bits() - 1.0;
        let log = f * f.polynomial(&LOG2) + e.cast::<f32>() * (1.0 / 8_388_608.0);
        let product = (log * exponent).max(-126.0);
        let shifted = product + ROUNDER;
        let power = (product - (shifted - ROUNDER)).polynomial(&EXP2);
        let scale: Traced<'t, i32> = Traced::new(b, b.shl(shifted.to_bits().value, 23));
        self.lt(f32::MIN_POSITIVE).select(0.0, (power.to_bits() + scale).from_bits())
    }
}

impl<'t> Traced<'t, [f32; 4]> {
    /// Builds a vector from one value per lane.
    #[must_use]
    #[track_caller]
    pub fn from_lanes(lanes: [Traced<'t, f32>; 4]) -> Traced<'t, [f32; 4]> {
        Traced::new(lanes[0].builder, lanes[0].builder.vector(&lanes.map(|lane| lane.value)))
    }

    /// Returns one of the four lanes.
    #[must_use]
    #[track_caller]
    pub fn lane(self, lane: usize) -> Traced<'t, f32> {
        Traced::new(self.builder, self.builder.lane(self.value, lane))
    }
}
