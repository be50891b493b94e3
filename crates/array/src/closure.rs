//! Rust closures as device code.
//!
//! [`Array::map`], [`Array::zip_with`] and [`Array::window`] call a closure once with [`Traced`] values,
//! which record the operations on them. The result is a function that runs for every element. Numbers in the
//! closure are compiled in. A value that changes from call to call should be an array without axes
//! ([`Array::scalar`]), which is a parameter.

use crate::array::Array;
use crate::element::{Arithmetic, Bits, Element, F32x4, Floating, Integer, Number};
use broadloom_graph::{Boundary, Combine, Error, Node, Result};
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Function, MathFunction, Precision, Value};
use half::f16;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

/// Element value in a traced closure. Values of two closures cannot be mixed, even if one closure is nested
/// in the other:
///
/// ```compile_fail
/// # use broadloom_array::Array;
/// fn mixed(a: &Array<f32>) {
///     let _ = a.map(|x| {
///         let _ = a.map(|y| {
///             let _ = y + x;
///             y
///         });
///         x
///     });
/// }
/// ```
pub struct Traced<'t, T> {
    builder: &'t Builder,
    value: Value,
    element: PhantomData<fn() -> T>,
    /// Invariant lifetime, unique to each closure.
    closure: PhantomData<fn(&'t ()) -> &'t ()>,
}

impl<T> Clone for Traced<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Traced<'_, T> {}

impl<'t, T: Element> Traced<'t, T> {
    fn new(builder: &'t Builder, value: Value) -> Traced<'t, T> {
        Traced { builder, value, element: PhantomData, closure: PhantomData }
    }

    /// Creates a constant.
    #[must_use]
    #[track_caller]
    pub fn constant<U: Element>(self, value: U) -> Traced<'t, U> {
        let lanes: Vec<Value> = value.lanes().iter().map(|lane| self.builder.literal(*lane)).collect();
        Traced::new(self.builder, self.builder.vector(&lanes))
    }

    /// Converts like Rust's `as`.
    #[must_use]
    #[track_caller]
    pub fn cast<U: Element>(self) -> Traced<'t, U> {
        Traced::new(self.builder, self.builder.convert(self.value, U::TYPE))
    }
}

/// Operand beside a traced value: another traced value, or a constant.
pub trait Term<'t, T> {
    /// Converts to a value of the other operand's builder.
    fn term<U: Element>(self, beside: Traced<'t, U>) -> Traced<'t, T>;
}

impl<'t, T> Term<'t, T> for Traced<'t, T> {
    fn term<U: Element>(self, _: Traced<'t, U>) -> Traced<'t, T> {
        self
    }
}

impl<'t, T: Element> Term<'t, T> for T {
    fn term<U: Element>(self, beside: Traced<'t, U>) -> Traced<'t, T> {
        beside.constant(self)
    }
}

macro_rules! operators {
    ($($bound:ident $operator:ident $method:ident $op:ident: $($scalar:ty),*;)*) => {
        $(
            impl<'t, T: $bound, R: Term<'t, T>> $operator<R> for Traced<'t, T> {
                type Output = Traced<'t, T>;
                #[track_caller]
                fn $method(self, other: R) -> Traced<'t, T> {
                    let other = other.term(self);
                    Traced::new(self.builder, self.builder.binary(BinaryOp::$op, self.value, other.value))
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
    Arithmetic Add add Add: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Arithmetic Sub sub Sub: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Arithmetic Mul mul Mul: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Arithmetic Div div Div: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64, F32x4;
    Number Rem rem Rem: i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64;
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

impl<'t, T: Arithmetic> Traced<'t, T> {
    /// Returns the minimum. A number takes precedence over NaN.
    #[must_use]
    #[track_caller]
    pub fn min(self, other: impl Term<'t, T>) -> Traced<'t, T> {
        Traced::new(self.builder, self.builder.min(self.value, other.term(self).value))
    }

    /// Returns the maximum. A number takes precedence over NaN.
    #[must_use]
    #[track_caller]
    pub fn max(self, other: impl Term<'t, T>) -> Traced<'t, T> {
        Traced::new(self.builder, self.builder.max(self.value, other.term(self).value))
    }

    /// Returns the absolute value.
    #[must_use]
    #[track_caller]
    pub fn abs(self) -> Traced<'t, T> {
        Traced::new(self.builder, self.builder.abs(self.value))
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl<'t, T: Number> Traced<'t, T> {
            $($(#[$doc])*
            #[must_use]
            #[track_caller]
            pub fn $name(self, other: impl Term<'t, T>) -> Traced<'t, bool> {
                Traced::new(self.builder, self.builder.compare(CompareOp::$op, self.value, other.term(self).value))
            })*
        }
    };
}

comparisons! {
    /// Tests if it is less.
    lt Lt;
    /// Tests if it is less or equal.
    le Le;
    /// Tests if it is greater.
    gt Gt;
    /// Tests if it is greater or equal.
    ge Ge;
    /// Tests if they are equal.
    eq Eq;
    /// Tests if they are not equal.
    ne Ne;
}

impl<'t> Traced<'t, bool> {
    /// Selects one of two values; both are computed.
    #[must_use]
    #[track_caller]
    pub fn cond<T: Element>(self, yes: impl Term<'t, T>, no: impl Term<'t, T>) -> Traced<'t, T> {
        let (yes, no) = (yes.term(self), no.term(self));
        Traced::new(self.builder, self.builder.select(self.value, yes.value, no.value))
    }
}

macro_rules! functions {
    ($($name:ident $function:ident ($($argument:ident),*);)*) => {
        impl<'t, T: Floating> Traced<'t, T> {
            $(#[doc = concat!("[`MathFunction::", stringify!($function), "`].")]
            #[must_use]
            #[track_caller]
            pub fn $name(self $(, $argument: impl Term<'t, T>)*) -> Traced<'t, T> {
                let arguments = [self.value $(, $argument.term(self).value)*];
                Traced::new(self.builder, self.builder.math(MathFunction::$function, Precision::Accurate, &arguments))
            })*
        }
    };
}

functions! {
    exp Exp(); exp2 Exp2(); exp10 Exp10(); expm1 Expm1(); log Log(); log2 Log2(); log10 Log10(); log1p Log1p();
    sin Sin(); cos Cos(); tan Tan(); asin Asin(); acos Acos(); atan Atan(); atan2 Atan2(x);
    sinh Sinh(); cosh Cosh(); tanh Tanh(); asinh Asinh(); acosh Acosh(); atanh Atanh();
    rsqrt Rsqrt(); cbrt Cbrt(); hypot Hypot(y); pow Pow(y); erf Erf(); erfc Erfc(); lgamma Lgamma(); tgamma Tgamma();
    fmod Fmod(y); sigmoid Sigmoid(); normcdf NormCdf();
}

macro_rules! roundings {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl<'t, T: Floating> Traced<'t, T> {
            $($(#[$doc])*
            #[must_use]
            #[track_caller]
            pub fn $name(self) -> Traced<'t, T> {
                Traced::new(self.builder, self.builder.$name(self.value))
            })*
        }
    };
}

roundings! {
    /// Returns the square root, correctly rounded.
    sqrt;
    /// Rounds down.
    floor;
    /// Rounds up.
    ceil;
    /// Rounds towards zero.
    trunc;
    /// Rounds to the nearest integer, halves to even.
    round_even;
    /// Rounds to the nearest integer, halves away from zero.
    round;
}

/// Neighbourhood of an element in a traced closure.
pub struct Window<'t, T> {
    builder: &'t Builder,
    rank: usize,
    /// Offsets read so far, each with its parameter.
    seen: &'t RefCell<Vec<(Vec<i64>, Value)>>,
    element: PhantomData<fn() -> T>,
}

impl<'t, T: Element> Window<'t, T> {
    /// Returns the element at an offset along each axis.
    #[must_use]
    #[track_caller]
    pub fn at(&self, offsets: &[i64]) -> Traced<'t, T> {
        if offsets.len() != self.rank {
            let problem = format!("a window of {} axes is looked at with {} offsets", self.rank, offsets.len());
            return Traced::new(self.builder, self.builder.fail(problem));
        }
        let mut seen = self.seen.borrow_mut();
        if let Some((_, value)) = seen.iter().find(|(known, _)| known == offsets) {
            return Traced::new(self.builder, *value);
        }
        let value = self.builder.parameter("x", T::TYPE);
        seen.push((offsets.to_vec(), value));
        Traced::new(self.builder, value)
    }
}

impl<'t> Traced<'t, f32> {
    /// Broadcasts the value to all four lanes.
    #[must_use]
    #[track_caller]
    pub fn splat(self) -> Traced<'t, F32x4> {
        Traced::new(self.builder, self.builder.vector(&[self.value; 4]))
    }
}

impl<'t> Traced<'t, F32x4> {
    /// Builds a vector from one value per lane.
    #[must_use]
    #[track_caller]
    pub fn from_lanes(lanes: [Traced<'t, f32>; 4]) -> Traced<'t, F32x4> {
        Traced::new(lanes[0].builder, lanes[0].builder.vector(&lanes.map(|lane| lane.value)))
    }

    /// Returns one of the four lanes.
    #[must_use]
    #[track_caller]
    pub fn lane(self, lane: usize) -> Traced<'t, f32> {
        Traced::new(self.builder, self.builder.lane(self.value, lane))
    }
}

/// Traces a closure of two elements as a combining operator.
pub(crate) fn combine<T: Element>(
    name: &str,
    identity: T,
    closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
) -> Result<Combine> {
    let builder = Builder::function(name);
    let (x, y) = (builder.parameter("x", T::TYPE), builder.parameter("y", T::TYPE));
    let result = closure(Traced::new(&builder, x), Traced::new(&builder, y)).value;
    Ok(Combine::by(builder.finish_function(&[result])?, &identity.lanes())?)
}

fn called<U: Element>(builder: &Builder, result: Value, inputs: &[&Node]) -> Result<Array<U>> {
    call(&builder.finish_function(&[result])?, inputs)
}

fn call<U: Element>(function: &Function, inputs: &[&Node]) -> Result<Array<U>> {
    let mut results = Node::call(function, inputs)?;
    match results.pop() {
        Some(node) => Array::from_node(node),
        None => Err(Error::Plan { what: "a closure".into(), reason: "it has no result".into() }),
    }
}

impl<T: Element> Array<T> {
    /// Applies a closure to every element.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::line(&context(), &[1.0f32, 4.0, -9.0])?;
    /// let b = a.map(|x| x.lt(0.0).cond(x * x, x.sqrt()))?;
    /// assert_eq!(b.to_vec()?, [1.0, 2.0, 81.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn map<U: Element>(&self, closure: impl for<'t> FnOnce(Traced<'t, T>) -> Traced<'t, U>) -> Result<Array<U>> {
        let builder = Builder::function("map");
        let x = builder.parameter("x", T::TYPE);
        let result = closure(Traced::new(&builder, x)).value;
        called(&builder, result, &[self.node()])
    }

    /// Applies a closure to the elements of two arrays.
    pub fn zip_with<U: Element, V: Element>(
        &self,
        other: &Array<U>,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, U>) -> Traced<'t, V>,
    ) -> Result<Array<V>> {
        let builder = Builder::function("zip");
        let (x, y) = (builder.parameter("x", T::TYPE), builder.parameter("y", U::TYPE));
        let result = closure(Traced::new(&builder, x), Traced::new(&builder, y)).value;
        called(&builder, result, &[self.node(), other.node()])
    }

    /// Applies a closure to the elements of three arrays.
    pub fn zip_with_two<U: Element, V: Element, W: Element>(
        &self,
        second: &Array<U>,
        third: &Array<V>,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, U>, Traced<'t, V>) -> Traced<'t, W>,
    ) -> Result<Array<W>> {
        let builder = Builder::function("zip");
        let (x, y, z) = (builder.parameter("x", T::TYPE), builder.parameter("y", U::TYPE), builder.parameter("z", V::TYPE));
        let result = closure(Traced::new(&builder, x), Traced::new(&builder, y), Traced::new(&builder, z)).value;
        called(&builder, result, &[self.node(), second.node(), third.node()])
    }

    /// Applies a closure to the neighbourhood of every element.
    ///
    /// ```
    /// # use broadloom_array::{Array, Boundary};
    /// # fn context() -> broadloom_array::Context {
    /// #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
    /// # }
    /// let a = Array::line(&context(), &[1, 2, 4, 8])?;
    /// let b = a.window(Boundary::Clamp, |w| w.at(&[1]) - w.at(&[-1]))?;
    /// assert_eq!(b.to_vec()?, [1, 3, 6, 4]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn window<U: Element>(
        &self,
        outside: Boundary<T>,
        closure: impl for<'t> FnOnce(Window<'t, T>) -> Traced<'t, U>,
    ) -> Result<Array<U>> {
        let builder = Builder::function("window");
        let seen = RefCell::new(vec![]);
        let window = Window { builder: &builder, rank: self.rank(), seen: &seen, element: PhantomData };
        let result = closure(window).value;
        let function = builder.finish_function(&[result])?;
        let places: Vec<Vec<i64>> = seen.borrow().iter().map(|(offsets, _)| offsets.clone()).collect();
        let mut neighbours = vec![];
        for offsets in &places {
            let by: Vec<i64> = offsets.iter().map(|offset| offset.saturating_neg()).collect();
            neighbours.push(self.shift(&by, outside)?);
        }
        let nodes: Vec<&Node> = neighbours.iter().map(|array| array.node()).collect();
        if nodes.is_empty() {
            let reason = "the closure looks at no element".to_owned();
            return Err(Error::Range { operation: "window".into(), shape: self.shape().clone(), reason });
        }
        call(&function, &nodes)
    }
}
