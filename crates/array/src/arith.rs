//! Element-wise operations: operators, functions, comparisons, selection.
//!
//! Shapes broadcast as in NumPy: axes of extent 1 are repeated, and missing leading axes are added. The other
//! operand may be a single value.
//!
//! Every operator has a method that returns a `Result`. The operator panics where the method returns an
//! error, because an operator cannot report incompatible shapes in another way.

use crate::array::{Array, or_panic};
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
    /// Returns the sum, or an error if the shapes are incompatible.
    add Add;
    /// Returns the difference, or an error if the shapes are incompatible.
    sub Sub;
    /// Returns the product, or an error if the shapes are incompatible.
    mul Mul;
    /// Returns the quotient, or an error if the shapes are incompatible. Integer division rounds towards
    /// zero; division by 0 gives 0.
    div Div;
    /// Returns the element-wise minimum. A number takes precedence over NaN.
    minimum Min;
    /// Returns the element-wise maximum. A number takes precedence over NaN.
    ///
    /// ```
    /// # use broadloom_array::Array;
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[-1.0f32, f32::NAN, 2.0])?;
    /// assert_eq!(a.maximum(0.0)?.to_vec()?, [0.0, 0.0, 2.0]);
    /// assert_eq!(a.maximum(&(-&a))?.slice(&broadloom_array::span![.. ; 2])?.to_vec()?, [1.0, 2.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    maximum Max;
}

binary_methods! { Number:
    /// Returns the remainder with the sign of the dividend, or an error if the shapes are incompatible.
    rem Rem;
}

binary_methods! { Bits:
    /// Returns the bitwise AND; for truth values, the logical AND.
    and And;
    /// Returns the bitwise OR; for truth values, the logical OR.
    or Or;
    /// Returns the bitwise exclusive OR.
    xor Xor;
}

binary_methods! { Integer:
    /// Returns the saturating sum.
    add_saturating AddSaturating;
    /// Returns the saturating difference.
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
                    or_panic(Array::apply(Elementwise::Binary(BinaryOp::$op), &[self.node(), other.node()]))
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
                    $operator::$method(self, &self.filled_like(other))
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
                        $operator::$method(&other.filled_like(self), other)
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
        or_panic(Array::apply(Elementwise::Unary(op), &[self.node()]))
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
    /// Returns the absolute values.
    abs Abs;
}

unary_methods! { Floating:
    /// Returns the square roots, correctly rounded.
    sqrt Sqrt;
    /// Rounds down.
    floor Floor;
    /// Rounds up.
    ceil Ceil;
    /// Rounds towards zero.
    trunc Trunc;
    /// Rounds to the nearest integer, halves to even.
    round_even RoundEven;
}

unary_methods! { Integer:
    /// Counts the one bits.
    popcount Popcount;
    /// Counts the leading zero bits.
    leading_zeros LeadingZeros;
    /// Counts the trailing zero bits.
    trailing_zeros TrailingZeros;
}

macro_rules! functions {
    (one { $($one:ident $first:ident;)* } two { $($two:ident $second:ident;)* }) => {
        impl<T: Floating> Array<T> {
            $(#[doc = concat!("[`MathFunction::", stringify!($first), "`] of every element.")]
            #[must_use]
            pub fn $one(&self) -> Array<T> {
                or_panic(Array::apply(Elementwise::Math(MathFunction::$first, Precision::Accurate), &[self.node()]))
            })*
            $(#[doc = concat!("[`MathFunction::", stringify!($second), "`] of pairs of elements.")]
            pub fn $two(&self, other: impl Operand<T>) -> Result<Array<T>> {
                let op = Elementwise::Math(MathFunction::$second, Precision::Accurate);
                Array::apply(op, &[self.node(), other.operand(self).node()])
            })*
        }
    };
}

broadloom_scalar::for_functions!(functions);

impl<T: Floating> Array<T> {
    /// Rounds to the nearest integer, halves away from zero. NumPy's `round` is
    /// [`round_even`](Self::round_even).
    #[must_use]
    pub fn round(&self) -> Array<T> {
        or_panic(self.map(|x| x.round()))
    }
}

impl<T: Float> Array<T> {
    /// Tests elements for NaN.
    #[must_use]
    pub fn is_nan(&self) -> Array<bool> {
        or_panic(self.ne(self))
    }

    /// Tests if elements are neither infinite nor NaN.
    #[must_use]
    pub fn is_finite(&self) -> Array<bool> {
        // An infinite value or NaN minus itself is NaN.
        or_panic(self.sub(self).and_then(|nothing| nothing.eq(&nothing)))
    }

    /// Returns `self * factor + addend`, rounded once.
    pub fn mul_add(&self, factor: impl Operand<T>, addend: impl Operand<T>) -> Result<Array<T>> {
        Array::apply(Elementwise::Fma, &[self.node(), factor.operand(self).node(), addend.operand(self).node()])
    }
}

/// Operand of an operation on arrays: another array, or a single value.
pub trait Operand<T: Element> {
    /// Converts to an array in the context of another array.
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
        beside.filled_like(*self)
    }
}

macro_rules! comparisons {
    ($($name:ident $op:ident $text:literal;)*) => {
        impl<T: Number> Array<T> {
            $(#[doc = concat!("Tests if elements are ", $text, ".")]
            pub fn $name(&self, other: impl Operand<T>) -> Result<Array<bool>> {
                let other = other.operand(self);
                Array::apply(Elementwise::Compare(CompareOp::$op), &[self.node(), other.node()])
            })*
        }
    };
}

broadloom_scalar::for_comparisons!(comparisons);

impl<T: Number> Array<T> {
    /// Selects `yes` where an element is greater than 0, otherwise `no`.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[-1.0f32, 0.0, 2.0])?;
    /// assert_eq!(a.select(&a, 0.5f32)?.to_vec()?, [0.5, 0.5, 2.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn select<U: Element>(&self, yes: impl Operand<U>, no: impl Operand<U>) -> Result<Array<U>> {
        self.gt(self.scalar_in_context(T::ZERO))?.cond(yes, no)
    }

    /// Clamps elements to a range.
    pub fn clamp(&self, low: impl Operand<T>, high: impl Operand<T>) -> Result<Array<T>> {
        self.maximum(low.operand(self))?.minimum(high.operand(self))
    }
}

impl Array<bool> {
    /// Tests if truth values are equal.
    pub fn eq(&self, other: impl Operand<bool>) -> Result<Array<bool>> {
        Ok(!self.xor(other)?)
    }

    /// Tests if truth values are not equal.
    pub fn ne(&self, other: impl Operand<bool>) -> Result<Array<bool>> {
        self.xor(other)
    }

    /// Selects `yes` where an element is true, otherwise `no`.
    pub fn cond<U: Element>(&self, yes: impl Operand<U>, no: impl Operand<U>) -> Result<Array<U>> {
        let (yes, no) = (yes.operand(self), no.operand(self));
        if U::TYPE.is_scalar() {
            return Array::apply(Elementwise::Select, &[self.node(), yes.node(), no.node()]);
        }
        // The condition is the same for all lanes.
        let lanes = vec![self.node(); U::TYPE.lanes()];
        let each = broadloom_graph::Node::elementwise(Elementwise::Vector, &lanes)?;
        Array::apply(Elementwise::Select, &[&each, yes.node(), no.node()])
    }
}

impl Array<f32> {
    /// Broadcasts the value to all four lanes.
    #[must_use]
    pub fn splat(&self) -> Array<F32x4> {
        or_panic(Array::apply(Elementwise::Vector, &[self.node(); 4]))
    }
}

impl Array<F32x4> {
    /// Builds vectors from one array per lane.
    pub fn from_lanes(lanes: [&Array<f32>; 4]) -> Result<Array<F32x4>> {
        Array::apply(Elementwise::Vector, &lanes.map(Array::node))
    }

    /// Returns one of the four lanes.
    pub fn lane(&self, lane: usize) -> Result<Array<f32>> {
        Array::apply(Elementwise::Lane(u8::try_from(lane).unwrap_or(u8::MAX)), &[self.node()])
    }
}
