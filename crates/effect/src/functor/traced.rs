//! Symbolic values: what a kernel computes with while it is traced.
//!
//! A [`Traced`] value writes down every operation on it. Numbers of Rust stand beside traced values and become constants of
//! the code. Values of another kernel are refused when the functor is built.

use broadloom_scalar::{BinaryOp, Builder, CompareOp, Literal, MathFunction, Precision, Type, Value};
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Not, Rem, Sub};

/// A type of traced values.
pub trait Kind: Copy + Into<Literal> {
    /// The scalar type.
    const TYPE: Type;
}

/// A type of numbers.
pub trait Number: Kind {}

/// A type of floating-point numbers.
pub trait Floating: Number {}

impl Kind for f32 {
    const TYPE: Type = Type::F32;
}

impl Kind for f64 {
    const TYPE: Type = Type::F64;
}

impl Kind for i32 {
    const TYPE: Type = Type::I32;
}

impl Kind for bool {
    const TYPE: Type = Type::BOOL;
}

impl Number for f32 {}
impl Number for f64 {}
impl Number for i32 {}
impl Floating for f32 {}
impl Floating for f64 {}

/// A value while a kernel is traced.
pub struct Traced<'k, T> {
    pub(crate) builder: &'k Builder,
    pub(crate) value: Value,
    kind: PhantomData<fn() -> T>,
}

/// A traced sample.
pub type Real<'k> = Traced<'k, f32>;
/// A traced number of a state, which moving averages carry in double precision.
pub type Precise<'k> = Traced<'k, f64>;
/// A traced integer.
pub type Whole<'k> = Traced<'k, i32>;
/// A traced condition.
pub type Truth<'k> = Traced<'k, bool>;

impl<T> Clone for Traced<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Traced<'_, T> {}

impl<'k, T> Traced<'k, T> {
    pub(crate) fn new(builder: &'k Builder, value: Value) -> Traced<'k, T> {
        Traced { builder, value, kind: PhantomData }
    }
}

impl<'k, T: Kind> Traced<'k, T> {
    /// Returns a constant of the same kernel.
    #[must_use]
    pub fn constant<U: Kind>(self, value: U) -> Traced<'k, U> {
        Traced::new(self.builder, self.builder.literal(value))
    }

    /// Converts to another type: floats to integers towards zero, saturating.
    #[must_use]
    #[track_caller]
    pub fn cast<U: Kind>(self) -> Traced<'k, U> {
        Traced::new(self.builder, self.builder.convert(self.value, U::TYPE))
    }
}

/// A traced value, or a number of Rust beside one.
pub trait Term<'k, T> {
    /// Returns the value in a builder.
    fn term(self, builder: &'k Builder) -> Value;
}

impl<'k, T> Term<'k, T> for Traced<'k, T> {
    fn term(self, _: &'k Builder) -> Value {
        self.value
    }
}

impl<'k, T: Kind> Term<'k, T> for T {
    fn term(self, builder: &'k Builder) -> Value {
        builder.literal(self)
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $op:ident;)*) => {
        $(
            impl<'k, T: Number, R: Term<'k, T>> $operator<R> for Traced<'k, T> {
                type Output = Traced<'k, T>;
                #[track_caller]
                fn $method(self, other: R) -> Traced<'k, T> {
                    let other = other.term(self.builder);
                    Traced::new(self.builder, self.builder.binary(BinaryOp::$op, self.value, other))
                }
            }
            operators!(left $operator $method: f32 f64 i32);
        )*
    };
    (left $operator:ident $method:ident: $($scalar:ty)*) => {
        $(impl<'k> $operator<Traced<'k, $scalar>> for $scalar {
            type Output = Traced<'k, $scalar>;
            #[track_caller]
            fn $method(self, other: Traced<'k, $scalar>) -> Traced<'k, $scalar> {
                $operator::$method(other.constant(self), other)
            }
        })*
    };
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

impl<'k, R: Term<'k, i32>> Rem<R> for Traced<'k, i32> {
    type Output = Traced<'k, i32>;
    /// The remainder with the sign of the left side; 0 for a right side of 0.
    #[track_caller]
    fn rem(self, other: R) -> Traced<'k, i32> {
        Traced::new(self.builder, self.builder.rem(self.value, other.term(self.builder)))
    }
}

impl<'k, T: Number> Neg for Traced<'k, T> {
    type Output = Traced<'k, T>;
    #[track_caller]
    fn neg(self) -> Traced<'k, T> {
        Traced::new(self.builder, self.builder.neg(self.value))
    }
}

impl<'k> Not for Traced<'k, bool> {
    type Output = Traced<'k, bool>;
    #[track_caller]
    fn not(self) -> Traced<'k, bool> {
        Traced::new(self.builder, self.builder.not(self.value))
    }
}

impl<'k> Traced<'k, bool> {
    /// Returns whether both hold.
    #[must_use]
    #[track_caller]
    pub fn and(self, other: impl Term<'k, bool>) -> Traced<'k, bool> {
        Traced::new(self.builder, self.builder.and(self.value, other.term(self.builder)))
    }

    /// Returns whether one of both holds.
    #[must_use]
    #[track_caller]
    pub fn or(self, other: impl Term<'k, bool>) -> Traced<'k, bool> {
        Traced::new(self.builder, self.builder.or(self.value, other.term(self.builder)))
    }

    /// Returns one of two values. Both are computed.
    #[must_use]
    #[track_caller]
    pub fn select<T: Kind>(self, yes: impl Term<'k, T>, no: impl Term<'k, T>) -> Traced<'k, T> {
        let (yes, no) = (yes.term(self.builder), no.term(self.builder));
        Traced::new(self.builder, self.builder.select(self.value, yes, no))
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl<'k, T: Number> Traced<'k, T> {
            $($(#[$doc])*
            #[must_use]
            #[track_caller]
            pub fn $name(self, other: impl Term<'k, T>) -> Traced<'k, bool> {
                let other = other.term(self.builder);
                Traced::new(self.builder, self.builder.compare(CompareOp::$op, self.value, other))
            })*
        }
    };
}

comparisons! {
    /// Returns whether it is less.
    lt Lt;
    /// Returns whether it is less or equal.
    le Le;
    /// Returns whether it is greater.
    gt Gt;
    /// Returns whether it is greater or equal.
    ge Ge;
    /// Returns whether both are equal.
    eq Eq;
    /// Returns whether both differ.
    ne Ne;
}

impl<'k, T: Number> Traced<'k, T> {
    /// Returns the lesser one; a number beats NaN.
    #[must_use]
    #[track_caller]
    pub fn min(self, other: impl Term<'k, T>) -> Traced<'k, T> {
        Traced::new(self.builder, self.builder.min(self.value, other.term(self.builder)))
    }

    /// Returns the greater one; a number beats NaN.
    #[must_use]
    #[track_caller]
    pub fn max(self, other: impl Term<'k, T>) -> Traced<'k, T> {
        Traced::new(self.builder, self.builder.max(self.value, other.term(self.builder)))
    }

    /// Returns the absolute value.
    #[must_use]
    #[track_caller]
    pub fn abs(self) -> Traced<'k, T> {
        Traced::new(self.builder, self.builder.abs(self.value))
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl<'k, T: Floating> Traced<'k, T> {
            $($(#[$doc])*
            #[must_use]
            #[track_caller]
            pub fn $name(self) -> Traced<'k, T> {
                Traced::new(self.builder, self.builder.$name(self.value))
            })*
        }
    };
}

unary! {
    /// Returns the square root, correctly rounded.
    sqrt;
    /// Rounds down.
    floor;
    /// Rounds up.
    ceil;
    /// Rounds towards zero.
    trunc;
    /// Rounds to the nearest integer, halves to the even one.
    round_even;
    /// Rounds to the nearest integer, halves away from zero.
    round;
}

macro_rules! functions {
    ($($name:ident $function:ident ($($argument:ident),*);)*) => {
        impl<'k, T: Floating> Traced<'k, T> {
            $(#[doc = concat!("Returns [`MathFunction::", stringify!($function), "`].")]
            #[must_use]
            #[track_caller]
            pub fn $name(self $(, $argument: impl Term<'k, T>)*) -> Traced<'k, T> {
                let arguments = [self.value $(, $argument.term(self.builder))*];
                Traced::new(self.builder, self.builder.math(MathFunction::$function, Precision::Accurate, &arguments))
            })*
        }
    };
}

functions! {
    exp Exp(); exp2 Exp2(); log Log(); log2 Log2(); sin Sin(); cos Cos(); tan Tan(); atan2 Atan2(x); tanh Tanh(); pow Pow(y);
    rsqrt Rsqrt(); cbrt Cbrt(); hypot Hypot(y);
}

impl<'k> Traced<'k, f32> {
    /// Returns the bits as an integer.
    #[must_use]
    #[track_caller]
    pub fn to_bits(self) -> Traced<'k, i32> {
        Traced::new(self.builder, self.builder.bitcast(self.value, Type::I32))
    }
}

impl<'k> Traced<'k, i32> {
    /// Returns the sample with these bits.
    #[must_use]
    #[track_caller]
    pub fn from_bits(self) -> Traced<'k, f32> {
        Traced::new(self.builder, self.builder.bitcast(self.value, Type::F32))
    }
}
