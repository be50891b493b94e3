//! Operations on elements: operators, functions, comparisons, selection.
//!
//! Shapes stretch as in NumPy: axes of extent 1 are repeated, missing axes in front are added. Every operator has a method beside it that
//! gives a `Result`; the operator panics where the method would give an error, as there is no other way for an operator to say that shapes do
//! not fit. Beside an array there may be a single value.

use crate::array::{Array, sure};
use crate::element::{Arithmetic, Bits, Element, F32x4, Float, Floating, Integer, Number};
use broadloom_graph::{Elementwise, Result};
use broadloom_scalar::{BinaryOp, CompareOp, MathFunction, Precision, UnaryOp};
use half::f16;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};
use std::ops::{
    AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign, ShlAssign, ShrAssign, SubAssign,
};

macro_rules! binary_methods {
    ($bound:ident: $($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl<T: $bound> Array<T> {
            $($(#[$doc])*
            pub fn $name(&self, other: impl Operand<T>) -> Result<Array<T>> {
                Array::apply(Elementwise::Binary(BinaryOp::$op), &[self.node(), other.operand(self).node()])
            })*
        }
    };
}

binary_methods! { Arithmetic:
    /// The sum, or why there is none.
    add Add;
    /// The difference, or why there is none.
    sub Sub;
    /// The product, or why there is none.
    mul Mul;
    /// The quotient, or why there is none. Of integers: towards zero, 0 where the divisor is 0.
    div Div;
    /// The lesser one; a number beats NaN.
    minimum Min;
    /// The greater one; a number beats NaN.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::line(&context(), &[-1.0f32, f32::NAN, 2.0])?;
    /// assert_eq!(a.maximum(0.0)?.to_vec()?, [0.0, 0.0, 2.0]);
    /// assert_eq!(a.maximum(&(-&a))?.slice(&broadloom_array::span![.. ; 2])?.to_vec()?, [1.0, 2.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    maximum Max;
}

binary_methods! { Number:
    /// The remainder with the sign of the dividend, or why there is none.
    rem Rem;
}

binary_methods! { Bits:
    /// The bits that both have; of truth values: whether both are true.
    and And;
    /// The bits that one has; of truth values: whether one is true.
    or Or;
    /// The bits in which they differ.
    xor Xor;
}

binary_methods! { Integer:
    /// The sum, held to the range of the type.
    add_saturating AddSaturating;
    /// The difference, held to the range of the type.
    sub_saturating SubSaturating;
}

macro_rules! operators {
    ($($bound:ident $operator:ident $method:ident $assign:ident $to:ident $op:ident: $($scalar:ty),*;)*) => {
        $(
            impl<T: $bound, R> $assign<R> for Array<T>
            where
                for<'a> &'a Array<T>: $operator<R, Output = Array<T>>,
            {
                #[track_caller]
                fn $to(&mut self, other: R) {
                    *self = $operator::$method(&*self, other);
                }
            }
            impl<T: $bound> $operator<&Array<T>> for &Array<T> {
                type Output = Array<T>;
                #[track_caller]
                fn $method(self, other: &Array<T>) -> Array<T> {
                    sure(Array::apply(Elementwise::Binary(BinaryOp::$op), &[self.node(), other.node()]))
                }
            }
            impl<T: $bound> $operator<Array<T>> for &Array<T> {
                type Output = Array<T>;
                #[track_caller]
                fn $method(self, other: Array<T>) -> Array<T> {
                    $operator::$method(self, &other)
                }
            }
            impl<T: $bound> $operator<&Array<T>> for Array<T> {
                type Output = Array<T>;
                #[track_caller]
                fn $method(self, other: &Array<T>) -> Array<T> {
                    $operator::$method(&self, other)
                }
            }
            impl<T: $bound> $operator<Array<T>> for Array<T> {
                type Output = Array<T>;
                #[track_caller]
                fn $method(self, other: Array<T>) -> Array<T> {
                    $operator::$method(&self, &other)
                }
            }
            impl<T: $bound> $operator<T> for &Array<T> {
                type Output = Array<T>;
                #[track_caller]
                fn $method(self, other: T) -> Array<T> {
                    $operator::$method(self, &self.like(other))
                }
            }
            impl<T: $bound> $operator<T> for Array<T> {
                type Output = Array<T>;
                #[track_caller]
                fn $method(self, other: T) -> Array<T> {
                    $operator::$method(&self, other)
                }
            }
            $(
                impl $operator<&Array<$scalar>> for $scalar {
                    type Output = Array<$scalar>;
                    #[track_caller]
                    fn $method(self, other: &Array<$scalar>) -> Array<$scalar> {
                        $operator::$method(&other.like(self), other)
                    }
                }
                impl $operator<Array<$scalar>> for $scalar {
                    type Output = Array<$scalar>;
                    #[track_caller]
                    fn $method(self, other: Array<$scalar>) -> Array<$scalar> {
                        $operator::$method(self, &other)
                    }
                }
            )*
        )*
    };
}

operators! {
    Arithmetic Add add AddAssign add_assign Add: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Arithmetic Sub sub SubAssign sub_assign Sub: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Arithmetic Mul mul MulAssign mul_assign Mul: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Arithmetic Div div DivAssign div_assign Div: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Number Rem rem RemAssign rem_assign Rem: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64;
    Bits BitAnd bitand BitAndAssign bitand_assign And: bool, i8, i16, i32, i64, u8, u16, u32, u64;
    Bits BitOr bitor BitOrAssign bitor_assign Or: bool, i8, i16, i32, i64, u8, u16, u32, u64;
    Bits BitXor bitxor BitXorAssign bitxor_assign Xor: bool, i8, i16, i32, i64, u8, u16, u32, u64;
    Integer Shl shl ShlAssign shl_assign Shl: ;
    Integer Shr shr ShrAssign shr_assign Shr: ;
}

impl<T: Arithmetic> Neg for &Array<T> {
    type Output = Array<T>;
    fn neg(self) -> Array<T> {
        self.unary(UnaryOp::Neg)
    }
}

impl<T: Arithmetic> Neg for Array<T> {
    type Output = Array<T>;
    fn neg(self) -> Array<T> {
        -&self
    }
}

impl<T: Bits> Not for &Array<T> {
    type Output = Array<T>;
    fn not(self) -> Array<T> {
        self.unary(UnaryOp::Not)
    }
}

impl<T: Bits> Not for Array<T> {
    type Output = Array<T>;
    fn not(self) -> Array<T> {
        !&self
    }
}

impl<T: Element> Array<T> {
    #[track_caller]
    fn unary(&self, op: UnaryOp) -> Array<T> {
        sure(Array::apply(Elementwise::Unary(op), &[self.node()]))
    }
}

macro_rules! unary_methods {
    ($bound:ident: $($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl<T: $bound> Array<T> {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(&self) -> Array<T> {
                self.unary(UnaryOp::$op)
            })*
        }
    };
}

unary_methods! { Arithmetic:
    /// The absolute values.
    abs Abs;
}

unary_methods! { Floating:
    /// Square roots, correctly rounded.
    sqrt Sqrt;
    /// Rounded down.
    floor Floor;
    /// Rounded up.
    ceil Ceil;
    /// Rounded towards zero.
    trunc Trunc;
    /// Rounded to the nearest integer, halves to the even one.
    round_even RoundEven;
}

unary_methods! { Integer:
    /// How many bits are one.
    popcount Popcount;
    /// How many zero bits stand before the first one.
    leading_zeros LeadingZeros;
    /// How many zero bits stand behind the last one.
    trailing_zeros TrailingZeros;
}

macro_rules! math_methods {
    ($($name:ident $function:ident;)*) => {
        impl<T: Floating> Array<T> {
            $(#[doc = concat!("[`MathFunction::", stringify!($function), "`] of every element.")]
            #[must_use]
            pub fn $name(&self) -> Array<T> {
                sure(Array::apply(Elementwise::Math(MathFunction::$function, Precision::Accurate), &[self.node()]))
            })*
        }
    };
}

math_methods! {
    exp Exp; exp2 Exp2; exp10 Exp10; expm1 Expm1; log Log; log2 Log2; log10 Log10; log1p Log1p;
    sin Sin; cos Cos; tan Tan; asin Asin; acos Acos; atan Atan; sinh Sinh; cosh Cosh; tanh Tanh;
    asinh Asinh; acosh Acosh; atanh Atanh; rsqrt Rsqrt; cbrt Cbrt; erf Erf; erfc Erfc;
    lgamma Lgamma; tgamma Tgamma; sigmoid Sigmoid; normcdf NormCdf;
}

macro_rules! math_pairs {
    ($($name:ident $function:ident;)*) => {
        impl<T: Floating> Array<T> {
            $(#[doc = concat!("[`MathFunction::", stringify!($function), "`] of pairs of elements.")]
            pub fn $name(&self, other: impl Operand<T>) -> Result<Array<T>> {
                let op = Elementwise::Math(MathFunction::$function, Precision::Accurate);
                Array::apply(op, &[self.node(), other.operand(self).node()])
            })*
        }
    };
}

math_pairs! { atan2 Atan2; hypot Hypot; pow Pow; fmod Fmod; }

impl<T: Floating> Array<T> {
    /// Rounded to the nearest integer, halves away from zero. [`round_even`](Self::round_even) is what NumPy has.
    #[must_use]
    pub fn round(&self) -> Array<T> {
        sure(self.map(|x| x.round()))
    }
}

impl<T: Float> Array<T> {
    /// Where elements are not a number.
    #[must_use]
    pub fn is_nan(&self) -> Array<bool> {
        sure(self.ne(self))
    }

    /// Where elements are neither infinite nor NaN.
    #[must_use]
    pub fn is_finite(&self) -> Array<bool> {
        // What is infinite or NaN leaves NaN.
        sure(self.sub(self).and_then(|nothing| nothing.eq(&nothing)))
    }

    /// `self * factor + addend`, rounded once.
    pub fn mul_add(&self, factor: impl Operand<T>, addend: impl Operand<T>) -> Result<Array<T>> {
        Array::apply(Elementwise::Fma, &[self.node(), factor.operand(self).node(), addend.operand(self).node()])
    }
}

/// What can stand beside an array: another, or a single value.
pub trait Operand<T: Element> {
    /// As an array in the context of another.
    fn operand<U: Element>(&self, beside: &Array<U>) -> Array<T>;
}

impl<T: Element> Operand<T> for Array<T> {
    fn operand<U: Element>(&self, _: &Array<U>) -> Array<T> {
        self.clone()
    }
}

impl<T: Element> Operand<T> for &Array<T> {
    fn operand<U: Element>(&self, _: &Array<U>) -> Array<T> {
        (*self).clone()
    }
}

impl<T: Element> Operand<T> for T {
    fn operand<U: Element>(&self, beside: &Array<U>) -> Array<T> {
        beside.like(*self)
    }
}

macro_rules! comparisons {
    ($bound:ident: $($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl<T: $bound> Array<T> {
            $($(#[$doc])*
            pub fn $name(&self, other: impl Operand<T>) -> Result<Array<bool>> {
                let other = other.operand(self);
                Array::apply(Elementwise::Compare(CompareOp::$op), &[self.node(), other.node()])
            })*
        }
    };
}

comparisons! { Number:
    /// Where elements are less.
    lt Lt;
    /// Where elements are less or equal.
    le Le;
    /// Where elements are greater.
    gt Gt;
    /// Where elements are greater or equal.
    ge Ge;
    /// Where elements are equal.
    eq Eq;
    /// Where elements are not equal.
    ne Ne;
}

impl<T: Number> Array<T> {
    /// `yes` where an element is greater than 0, else `no`.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::line(&context(), &[-1.0f32, 0.0, 2.0])?;
    /// assert_eq!(a.select(&a, 0.5f32)?.to_vec()?, [0.5, 0.5, 2.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn select<U: Element>(&self, yes: impl Operand<U>, no: impl Operand<U>) -> Result<Array<U>> {
        self.gt(self.beside(T::ZERO))?.cond(yes, no)
    }

    /// Held between two values.
    pub fn clamp(&self, low: impl Operand<T>, high: impl Operand<T>) -> Result<Array<T>> {
        self.maximum(low.operand(self))?.minimum(high.operand(self))
    }
}

impl Array<bool> {
    /// Where truth values are equal.
    pub fn eq(&self, other: impl Operand<bool>) -> Result<Array<bool>> {
        Ok(!self.xor(other)?)
    }

    /// Where truth values are not equal.
    pub fn ne(&self, other: impl Operand<bool>) -> Result<Array<bool>> {
        self.xor(other)
    }

    /// `yes` where an element is true, else `no`.
    pub fn cond<U: Element>(&self, yes: impl Operand<U>, no: impl Operand<U>) -> Result<Array<U>> {
        let (yes, no) = (yes.operand(self), no.operand(self));
        if U::TYPE.is_scalar() {
            return Array::apply(Elementwise::Select, &[self.node(), yes.node(), no.node()]);
        }
        // All lanes are chosen alike.
        let lanes = vec![self.node(); U::TYPE.lanes()];
        let each = broadloom_graph::Node::elementwise(Elementwise::Vector, &lanes)?;
        Array::apply(Elementwise::Select, &[&each, yes.node(), no.node()])
    }
}

impl Array<f32> {
    /// The same value in all four lanes.
    #[must_use]
    pub fn splat(&self) -> Array<F32x4> {
        sure(Array::apply(Elementwise::Vector, &[self.node(); 4]))
    }
}

impl Array<F32x4> {
    /// From one array for each lane.
    pub fn from_lanes(lanes: [&Array<f32>; 4]) -> Result<Array<F32x4>> {
        Array::apply(Elementwise::Vector, &lanes.map(Array::node))
    }

    /// One of the four lanes.
    pub fn lane(&self, lane: usize) -> Result<Array<f32>> {
        Array::apply(Elementwise::Lane(u8::try_from(lane).unwrap_or(u8::MAX)), &[self.node()])
    }
}
