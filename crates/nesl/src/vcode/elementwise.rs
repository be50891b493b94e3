//! Columns of elementwise operations: how each execution computes them.

use super::Type;
use crate::infer::Widths;
use crate::primitives::{Elementwise, elementwise_rows};
use broadloom_ptx::{Modifier, Opcode};
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, MathFunction, UnaryOp, Value};

/// Value of an operand that ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadOperand {
    Zero,
    Negative,
}

impl BadOperand {
    /// Returns the name of the test.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BadOperand::Zero => "zero",
            BadOperand::Negative => "negative",
        }
    }

    /// Tests an operand in a scalar function.
    pub(crate) fn test(self, f: &Builder, operand: Value) -> Value {
        match self {
            BadOperand::Zero => f.eq(operand, 0),
            BadOperand::Negative => f.lt(operand, 0),
        }
    }
}

/// Error of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    /// The number of the operand that is checked.
    pub(crate) operand: usize,
    /// The value that it must not have.
    pub(crate) value: BadOperand,
    pub(crate) message: &'static str,
}

/// Operation of graphs and of scalar functions.
pub(crate) enum DeviceForm {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare(CompareOp),
    Convert(Type),
    Math(MathFunction),
    /// Code of a scalar function with this name. It takes the operands and the type of ints.
    Code(&'static str, fn(&Builder, &[Value], Element) -> Value),
}

/// Code of one thread in a sequential form.
#[derive(Clone, Copy)]
pub(crate) enum ThreadForm {
    /// Instruction with the type of the operands: for ints and for floats.
    Typed([(Opcode, Option<Modifier>); 2]),
    /// Instruction on untyped bits.
    Bits(Opcode),
    /// Comparison of ints and of floats.
    Compare([Modifier; 2]),
    Divide,
    Remainder,
    LeftShift,
    RightShift,
    /// Conversion of a float to an int, with this rounding.
    ToInt(Modifier),
    ToFloat,
    OfBool,
    /// Call of an elementary function.
    Elementary(MathFunction),
    /// No primitive of NESL is this operation.
    Absent,
}

/// Type of scalars on the host.
pub(super) trait Scalar: Copy + Default + PartialOrd {
    /// Returns the value in the width of numbers.
    fn fit(self, widths: Widths) -> Self;
    /// Returns an int, the bits of a float, or a bool as 0 or 1.
    fn bits(self) -> i64;
    fn of_bits(bits: i64) -> Self;
    fn result(self) -> ScalarResult;
    fn slice<'a>(elements: &Slice<'a>) -> Option<&'a [Self]>;
    fn elements(values: Vec<Self>) -> Elements;

    fn is(self, value: BadOperand) -> bool {
        match value {
            BadOperand::Zero => self == Self::default(),
            BadOperand::Negative => self < Self::default(),
        }
    }
}

/// Scalar that was computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScalarResult {
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// Elements of a vector of the host.
pub(crate) enum Slice<'a> {
    Int(&'a [i64]),
    Float(&'a [f64]),
    Bool(&'a [bool]),
}

/// Elements that were computed.
pub(crate) enum Elements {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
}

macro_rules! scalars {
    ($($ty:ty, $variant:ident, $fit:expr, $bits:expr, $of_bits:expr;)*) => { $(
        impl Scalar for $ty {
            #[inline]
            fn fit(self, widths: Widths) -> Self {
                $fit(widths, self)
            }
            #[inline]
            fn bits(self) -> i64 {
                $bits(self)
            }
            #[inline]
            fn of_bits(bits: i64) -> Self {
                $of_bits(bits)
            }
            #[inline]
            fn result(self) -> ScalarResult {
                ScalarResult::$variant(self)
            }
            fn slice<'a>(elements: &Slice<'a>) -> Option<&'a [Self]> {
                if let Slice::$variant(values) = elements { Some(values) } else { None }
            }
            fn elements(values: Vec<Self>) -> Elements {
                Elements::$variant(values)
            }
        }
    )* };
}

scalars! {
    i64, Int, Widths::wrap, std::convert::identity, std::convert::identity;
    f64, Float, Widths::round, |value: f64| value.to_bits() as i64, |bits: i64| f64::from_bits(bits as u64);
    bool, Bool, |_, value| value, i64::from, |bits: i64| bits != 0;
}

/// Execution of an operation on the host.
pub(super) trait Execution: Sized {
    type Output;
    fn one<A: Scalar, R: Scalar>(self, compute: impl Fn(A) -> R) -> Option<Self::Output>;
    fn two<A: Scalar, R: Scalar>(self, compute: impl Fn(A, A) -> R) -> Option<Self::Output>;
}

#[inline]
fn one<A: Scalar, R: Scalar>(widths: Widths, compute: impl Fn(Widths, A) -> R) -> impl Fn(A) -> R {
    move |a| compute(widths, a).fit(widths)
}

#[inline]
fn two<A: Scalar, R: Scalar>(widths: Widths, compute: impl Fn(Widths, A, A) -> R) -> impl Fn(A, A) -> R {
    move |a, b| compute(widths, a, b).fit(widths)
}

/// Returns the bits of a shift count that are used.
fn low_bits(int: Element) -> i64 {
    i64::from(int.bits() - 1)
}

macro_rules! columns {
    (elementwise { $($variant:ident [$($name:literal)|*] $vcode:literal $choice:ident
        ($($operand:ident)*) -> ($($result:ident)*) {
            $(fails: $failing:literal $value:ident $message:literal,)?
            host: { $($ty:ident: $arity:ident($host:expr)),* },
            device: $device:expr,
            thread: $thread:expr,
        })* }
    ) => {
        impl Elementwise {
            /// Returns the error that it may end with.
            #[inline]
            pub(crate) fn failure(self) -> Option<Failure> {
                match self {
                    $($(Elementwise::$variant => {
                        Some(Failure { operand: $failing, value: BadOperand::$value, message: $message })
                    })?)*
                    #[allow(unreachable_patterns, reason = "if all operations can fail")]
                    _ => None,
                }
            }

            /// Returns its form in graphs and scalar functions.
            pub(crate) fn device(self) -> DeviceForm {
                use DeviceForm::{Binary, Code, Compare, Convert, Math, Unary};
                match self { $(Elementwise::$variant => $device,)* }
            }

            /// Returns its form in sequential forms.
            pub(crate) fn thread(self) -> ThreadForm {
                use ThreadForm::{
                    Absent, Bits, Compare, Divide, Elementary, LeftShift, OfBool, Remainder, RightShift, ToFloat, ToInt, Typed,
                };
                use broadloom_ptx::Modifier::{Eq, Ge, Gt, Le, Lo, Lt, Ne, Neu, Rmi, Rn, Rpi, Rzi};
                match self { $(Elementwise::$variant => $thread,)* }
            }

            /// Executes it on operands of a type. `None`: it does not take them.
            #[inline]
            pub(super) fn execute<E: Execution>(self, ty: Type, widths: Widths, execution: E) -> Option<E::Output> {
                match (self, ty) {
                    $($((Elementwise::$variant, Type::$ty) => execution.$arity($arity(widths, $host)),)*)*
                    _ => None,
                }
            }
        }
    };
}

elementwise_rows! { columns! }

struct OnVectors<'a>(&'a [Slice<'a>]);

impl Execution for OnVectors<'_> {
    type Output = Elements;

    fn one<A: Scalar, R: Scalar>(self, compute: impl Fn(A) -> R) -> Option<Elements> {
        let [a] = self.0 else { return None };
        Some(R::elements(A::slice(a)?.iter().map(|a| compute(*a)).collect()))
    }

    fn two<A: Scalar, R: Scalar>(self, compute: impl Fn(A, A) -> R) -> Option<Elements> {
        let [a, b] = self.0 else { return None };
        Some(R::elements(A::slice(a)?.iter().zip(A::slice(b)?).map(|(a, b)| compute(*a, *b)).collect()))
    }
}

/// Operands as bits.
struct OnScalars([i64; 2]);

impl Execution for OnScalars {
    type Output = ScalarResult;

    #[inline]
    fn one<A: Scalar, R: Scalar>(self, compute: impl Fn(A) -> R) -> Option<ScalarResult> {
        Some(compute(A::of_bits(self.0[0])).result())
    }

    #[inline]
    fn two<A: Scalar, R: Scalar>(self, compute: impl Fn(A, A) -> R) -> Option<ScalarResult> {
        let [a, b] = self.0;
        Some(compute(A::of_bits(a), A::of_bits(b)).result())
    }
}

impl ScalarResult {
    /// Returns an int, the bits of a float, or a bool as 0 or 1.
    #[inline]
    pub(crate) fn bits(self) -> i64 {
        match self {
            ScalarResult::Int(value) => value,
            ScalarResult::Float(value) => value.bits(),
            ScalarResult::Bool(value) => value.bits(),
        }
    }
}

impl Slice<'_> {
    fn has(&self, value: BadOperand) -> bool {
        match self {
            Slice::Int(values) => values.iter().any(|element| element.is(value)),
            Slice::Float(values) => values.iter().any(|element| element.is(value)),
            Slice::Bool(values) => values.iter().any(|element| element.is(value)),
        }
    }
}

impl Elementwise {
    /// Computes it on vectors of one length. `None`: it does not take operands of these types.
    pub(crate) fn of_vectors(self, ty: Type, widths: Widths, operands: &[Slice<'_>]) -> Option<Result<Elements, &'static str>> {
        if let Some(Failure { operand, value, message }) = self.failure()
            && operands.get(operand).is_some_and(|operand| operand.has(value))
        {
            return Some(Err(message));
        }
        self.execute(ty, widths, OnVectors(operands)).map(Ok)
    }

    /// Computes it on scalars: ints, bits of floats, and bools as 0 or 1. An operation on one ignores the
    /// second. `None`: it does not take operands of this type.
    #[inline]
    pub(crate) fn of_scalars(self, ty: Type, widths: Widths, operands: [i64; 2]) -> Option<Result<ScalarResult, &'static str>> {
        if let Some(Failure { operand, value, message }) = self.failure() {
            let bits = operands[operand];
            if if ty == Type::Float { f64::of_bits(bits).is(value) } else { bits.is(value) } {
                return Some(Err(message));
            }
        }
        self.execute(ty, widths, OnScalars(operands)).map(Ok)
    }

    /// Tells whether it takes one instruction or a few, and cannot fail.
    pub(crate) fn is_simple(self) -> bool {
        self.is_total() && !matches!(self.thread(), ThreadForm::Elementary(_))
    }

    /// Tells whether it cannot fail.
    pub(crate) fn is_total(self) -> bool {
        self.failure().is_none()
    }
}
