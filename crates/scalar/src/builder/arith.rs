//! Arithmetic, logic, comparison, selection, conversion.

use super::{Builder, Operand, Value, truth};
use crate::math_function::{MathFunction, Precision};
use crate::op::{BinaryOp, CompareOp, Op, UnaryOp};
use crate::types::{Element, Literal, Type};

/// Returns true if a unary operation takes a type.
fn unary_takes(op: UnaryOp, element: Element) -> bool {
    match op {
        UnaryOp::Neg | UnaryOp::Abs => element != Element::Bool,
        UnaryOp::Not => !element.is_float(),
        UnaryOp::Popcount | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros | UnaryOp::ReverseBits => element.is_integer(),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven | UnaryOp::Sqrt => element.is_float(),
        UnaryOp::RsqrtApprox => matches!(element, Element::F32 | Element::F64),
        UnaryOp::RcpApprox
        | UnaryOp::SqrtApprox
        | UnaryOp::Exp2Approx
        | UnaryOp::Log2Approx
        | UnaryOp::SinApprox
        | UnaryOp::CosApprox
        | UnaryOp::TanhApprox => element == Element::F32,
    }
}

/// Returns true if a binary operation takes a type.
fn binary_takes(op: BinaryOp, element: Element) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Min | BinaryOp::Max => element != Element::Bool,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => !element.is_float(),
        BinaryOp::MulHigh | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr | BinaryOp::AddSaturating | BinaryOp::SubSaturating => {
            element.is_integer()
        }
        BinaryOp::CopySign => element.is_float(),
        BinaryOp::DivApprox => element == Element::F32,
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident,)*) => {
        impl Builder {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self, x: Value) -> Value {
                self.unary(UnaryOp::$op, x)
            })*
        }
    };
}

unary! {
    /// Returns `-x`.
    neg Neg,
    /// Returns `!x`.
    not Not,
    /// Returns the absolute value.
    abs Abs,
    /// Returns the number of one bits.
    popcount Popcount,
    /// Returns the number of leading zero bits.
    leading_zeros LeadingZeros,
    /// Returns the number of trailing zero bits.
    trailing_zeros TrailingZeros,
    /// Reverses the order of the bits.
    reverse_bits ReverseBits,
    /// Rounds down.
    floor Floor,
    /// Rounds up.
    ceil Ceil,
    /// Rounds towards zero.
    trunc Trunc,
    /// Rounds to the nearest integer, halves to even.
    round_even RoundEven,
    /// Returns the square root, correctly rounded.
    sqrt Sqrt,
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $op:ident,)*) => {
        impl Builder {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
                self.binary(BinaryOp::$op, x, y)
            })*
        }
    };
}

binary! {
    /// Returns `x + y`.
    add Add,
    /// Returns `x - y`.
    sub Sub,
    /// Returns `x * y`.
    mul Mul,
    /// Returns the upper half of the product of integers.
    mul_high MulHigh,
    /// Returns `x / y`.
    div Div,
    /// Returns the minimum.
    min Min,
    /// Returns the maximum.
    max Max,
    /// Returns `x & y`.
    and And,
    /// Returns `x | y`.
    or Or,
    /// Returns `x ^ y`.
    xor Xor,
    /// Returns `x + y` of integers, clamped to the range of the type.
    add_saturating AddSaturating,
    /// Returns `x - y` of integers, clamped to the range of the type.
    sub_saturating SubSaturating,
    /// Returns the magnitude of `x` with the sign of `y`.
    copysign CopySign,
}

macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident $op:ident,)*) => {
        impl Builder {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
                self.compare(CompareOp::$op, x, y)
            })*
        }
    };
}

compare! {
    /// Returns `x == y`.
    eq Eq,
    /// Returns `x != y`.
    ne Ne,
    /// Returns `x < y`.
    lt Lt,
    /// Returns `x <= y`.
    le Le,
    /// Returns `x > y`.
    gt Gt,
    /// Returns `x >= y`.
    ge Ge,
}

macro_rules! math {
    ($($name:ident $function:ident ($($argument:ident),*),)*) => {
        impl Builder {
            $(#[doc = concat!("[`MathFunction::", stringify!($function), "`], accurate unless the builder [prefers](Builder::prefer) otherwise.")]
            #[track_caller]
            pub fn $name(&self, $($argument: Value),*) -> Value {
                self.math(MathFunction::$function, Precision::Accurate, &[$($argument),*])
            })*
        }
    };
}

math! {
    exp Exp(x), exp2 Exp2(x), exp10 Exp10(x), expm1 Expm1(x),
    log Log(x), log2 Log2(x), log10 Log10(x), log1p Log1p(x),
    sin Sin(x), cos Cos(x), tan Tan(x), asin Asin(x), acos Acos(x), atan Atan(x), atan2 Atan2(y, x),
    sinh Sinh(x), cosh Cosh(x), tanh Tanh(x), asinh Asinh(x), acosh Acosh(x), atanh Atanh(x),
    rsqrt Rsqrt(x), cbrt Cbrt(x), hypot Hypot(x, y), pow Pow(x, y),
    erf Erf(x), erfc Erfc(x), lgamma Lgamma(x), tgamma Tgamma(x),
    fmod Fmod(x, y), remainder Remainder(x, y), sigmoid Sigmoid(x), normcdf NormCdf(x),
}

impl Builder {
    /// Applies an operation to one value.
    #[track_caller]
    pub fn unary(&self, op: UnaryOp, x: Value) -> Value {
        let Some(x) = self.checked(x) else { return self.poison() };
        let ty = self.type_of(x);
        if !unary_takes(op, ty.element()) {
            return self.fail(format!("`{}` does not take `{ty}`", op.name()));
        }
        self.each_lane(&[x], |x| self.pure(Op::Unary(op, x[0].id), ty.element()))
    }

    /// Applies an operation to two values.
    #[track_caller]
    pub fn binary(&self, op: BinaryOp, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            return self.shift(op, x.into(), y.into());
        }
        let Some((x, y, ty)) = self.resolve_pair(x.into(), y.into()) else { return self.poison() };
        if op == BinaryOp::Rem && ty.element().is_float() {
            return self.math(MathFunction::Fmod, Precision::Accurate, &[x, y]);
        }
        if !binary_takes(op, ty.element()) {
            return self.fail(format!("`{}` does not take `{ty}`", op.name()));
        }
        self.each_lane(&[x, y], |v| self.pure(Op::Binary(op, v[0].id, v[1].id), ty.element()))
    }

    /// Returns `x % y`: the remainder with the sign of `x`, also for floats.
    #[track_caller]
    pub fn rem(&self, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        self.binary(BinaryOp::Rem, x, y)
    }

    /// Returns `x << count`, or 0 if the count is the width or more. The count is any integer. A negative one
    /// counts as very large.
    #[track_caller]
    pub fn shl(&self, x: Value, count: impl Into<Operand>) -> Value {
        self.shift(BinaryOp::Shl, x.into(), count.into())
    }

    /// Returns `x >> count`. If the count is the width or more, the result is 0, or the sign for a signed
    /// type. The count is any integer. A negative one counts as very large.
    #[track_caller]
    pub fn shr(&self, x: Value, count: impl Into<Operand>) -> Value {
        self.shift(BinaryOp::Shr, x.into(), count.into())
    }

    #[track_caller]
    fn shift(&self, op: BinaryOp, x: Operand, count: Operand) -> Value {
        let Operand::Value(x) = x else { return self.fail("a number without a type is shifted") };
        let Some(x) = self.checked(x) else { return self.poison() };
        let ty = self.type_of(x);
        if !ty.element().is_integer() {
            return self.fail(format!("`{}` does not take `{ty}`", op.name()));
        }
        let count = match count {
            Operand::Value(count) => self.checked(count),
            number => self.resolve(number, Type::U32),
        };
        let Some(count) = count else { return self.poison() };
        let count_ty = self.type_of(count);
        if !count_ty.element().is_integer() || (count_ty.lanes() != ty.lanes() && !count_ty.is_scalar()) {
            return self.fail(format!("`{ty}` cannot be shifted by `{count_ty}`"));
        }
        let count = self.splat(count, ty.lanes());
        self.each_lane(&[x, count], |v| {
            let count = self.shift_count(v[1]);
            self.pure(Op::Binary(op, v[0].id, count.id), ty.element())
        })
    }

    /// Converts an integer to a `u32` that shifts in the same way.
    fn shift_count(&self, count: Value) -> Value {
        match self.type_of(count).element() {
            Element::U32 => count,
            Element::I64 | Element::U64 => {
                let count = self.bitcast(count, Type::U64);
                self.convert(self.min(count, 255), Type::U32)
            }
            Element::I8 => self.convert(self.bitcast(count, Type::U8), Type::U32),
            Element::I16 => self.convert(self.bitcast(count, Type::U16), Type::U32),
            _ => self.convert(count, Type::U32),
        }
    }

    /// Applies a comparison.
    #[track_caller]
    pub fn compare(&self, op: CompareOp, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        let Some((x, y, ty)) = self.resolve_pair(x.into(), y.into()) else { return self.poison() };
        if ty.element() == Element::Bool && !matches!(op, CompareOp::Eq | CompareOp::Ne) {
            return self.fail(format!("`{}` does not take `{ty}`", op.name()));
        }
        self.each_lane(&[x, y], |v| self.pure(Op::Compare(op, v[0].id, v[1].id), Element::Bool))
    }

    /// Returns `x * y + z` of floats, rounded once.
    #[track_caller]
    pub fn fma(&self, x: impl Into<Operand>, y: impl Into<Operand>, z: impl Into<Operand>) -> Value {
        let (x, y, z) = (x.into(), y.into(), z.into());
        let typed = [x, y, z].into_iter().filter_map(|operand| match operand {
            Operand::Value(value) => Some(self.type_of(value)),
            _ => None,
        });
        let Some(ty) = typed.max_by_key(|ty| ty.lanes()) else { return self.fail("numbers without a type are multiplied") };
        if !ty.element().is_float() {
            return self.fail(format!("`fma` does not take `{ty}`"));
        }
        let (Some(x), Some(y), Some(z)) = (self.resolve(x, ty), self.resolve(y, ty), self.resolve(z, ty)) else {
            return self.poison();
        };
        self.each_lane(&[x, y, z], |v| self.pure(Op::Fma(v[0].id, v[1].id, v[2].id), ty.element()))
    }

    /// Returns `x` if the condition is true, otherwise `y`. Both are computed.
    #[track_caller]
    pub fn select(&self, condition: impl Into<Operand>, x: impl Into<Operand>, y: impl Into<Operand>) -> Value {
        let Some((x, y, ty)) = self.resolve_pair(x.into(), y.into()) else { return self.poison() };
        let Some(condition) = self.resolve(condition.into(), truth(ty)) else { return self.poison() };
        self.each_lane(&[condition, x, y], |v| self.pure(Op::Select(v[0].id, v[1].id, v[2].id), ty.element()))
    }

    /// Converts the value to another element type, like Rust's `as`. See the [table](crate::op).
    #[track_caller]
    pub fn convert(&self, x: Value, to: impl Into<Type>) -> Value {
        let (Some(x), to) = (self.checked(x), to.into()) else { return self.poison() };
        let from = self.type_of(x);
        let element = to.element();
        if !to.is_scalar() && to.lanes() != from.lanes() {
            return self.fail(format!("`{from}` does not become `{to}`"));
        }
        if from.element() == element {
            return x;
        }
        self.each_lane(&[x], |x| self.pure(Op::Convert(x[0].id), element))
    }

    /// Tests if a float is NaN.
    #[track_caller]
    pub fn is_nan(&self, x: Value) -> Value {
        self.ne(x, x)
    }

    /// Tests if a float is neither infinite nor NaN.
    #[track_caller]
    pub fn is_finite(&self, x: Value) -> Value {
        self.lt(self.abs(x), f64::INFINITY)
    }

    /// Rounds to the nearest integer, halves away from zero.
    #[track_caller]
    pub fn round(&self, x: Value) -> Value {
        let whole = self.trunc(x);
        let away = self.ge(self.abs(self.sub(x, whole)), 0.5);
        let step = self.copysign(self.constant(self.type_of(x), 1.0), x);
        // The sum would turn -0 into +0.
        self.select(away, self.add(whole, step), whole)
    }

    /// Returns `length` bits of an integer from `position` on, as an integer that starts at bit zero. Both
    /// must be less than its width.
    #[track_caller]
    pub fn extract_bits(&self, x: Value, position: impl Into<Operand>, length: u32) -> Value {
        let element = self.type_of(x).element();
        if length >= element.bits() {
            return self.shr(x, position);
        }
        let mask = Literal::from_bits(element, (1u64 << length) - 1);
        self.and(self.shr(x, position), self.literal(mask))
    }

    /// Applies an elementary function of floats.
    #[track_caller]
    pub fn math(&self, function: MathFunction, precision: Precision, arguments: &[Value]) -> Value {
        if arguments.len() != function.arguments() {
            return self.fail(format!("`{function}` takes {} arguments, not {}", function.arguments(), arguments.len()));
        }
        let (mut checked, mut ty) = (vec![], None);
        for argument in arguments {
            let Some(argument) = self.checked(*argument) else { return self.poison() };
            let own = self.type_of(argument);
            match ty {
                None => ty = Some(own),
                Some(ty) if ty == own => {}
                Some(ty) => return self.fail(format!("`{function}` of `{ty}` and `{own}`")),
            }
            checked.push(argument);
        }
        let Some(ty) = ty.filter(|ty| ty.element().is_float()) else {
            return self.fail(format!("`{function}` takes floats"));
        };
        self.each_lane(&checked, |v| self.pure(Op::Math(function, precision, self.ids(v)), ty.element()))
    }

    /// Returns the value with a promise: it is between two integers, both included. The promise makes index
    /// arithmetic narrower. If it is broken, results are undefined, and the evaluator reports an error.
    #[track_caller]
    pub fn assume(&self, x: Value, low: i128, high: i128) -> Value {
        let Some(x) = self.checked(x) else { return self.poison() };
        let ty = self.type_of(x);
        if !ty.is_scalar() || !ty.element().is_integer() || low > high {
            return self.fail(format!("`{ty}` between {low} and {high}"));
        }
        self.pure(Op::Assume(x.id, low, high), ty)
    }
}
