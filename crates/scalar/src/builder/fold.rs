//! Folding to simpler values that are exactly equal: literals are computed, identities applied, comparisons
//! decided by ranges.
//!
//! Float arithmetic is never reassociated. Approximations are not computed here, because a device may give
//! other last bits. Every rule makes code smaller or brings it nearer to one form (literals to the right, the
//! node with the smaller number first), so folding terminates.

use super::{Builder, Value, narrow};
use crate::id::Id;
use crate::math_function::Precision;
use crate::op::{Axis, BinaryOp, CompareOp, Op, Special, UnaryOp, placed_op};
use crate::semantics;
use crate::types::{Element, Literal, Type};

impl Builder {
    /// Returns a pure node: an existing one or a new one. Its operands must be usable.
    pub(crate) fn pure(&self, op: Op, ty: impl Into<Type>) -> Value {
        let ty = ty.into();
        let op = self.preferred(op, ty);
        if self.folding
            && let Some(simpler) = fold(self, &op, ty)
        {
            return simpler;
        }
        self.intern(op, ty)
    }

    fn preferred(&self, op: Op, ty: Type) -> Op {
        match op {
            Op::Math(function, _, arguments) if self.fast.get() => Op::Math(function, Precision::Fast, arguments),
            Op::Binary(BinaryOp::Div, x, y) if self.fast.get() && ty == Type::F32 => Op::Binary(BinaryOp::DivApprox, x, y),
            Op::Unary(UnaryOp::Sqrt, x) if self.fast.get() && ty == Type::F32 => Op::Unary(UnaryOp::SqrtApprox, x),
            op => op,
        }
    }
}

/// Returns a simpler value that is equal to the result of the operation.
pub(super) fn fold(b: &Builder, op: &Op, ty: Type) -> Option<Value> {
    let element = ty.element();
    let literal = |id: Id| b.as_literal(b.wrap(id));
    match op {
        Op::Unary(op, x) => match literal(*x) {
            Some(x) if !op.name().ends_with("_approx") => Some(b.literal(semantics::unary(*op, x))),
            _ => unary(b, *op, b.wrap(*x), element),
        },
        Op::Binary(BinaryOp::DivApprox, ..) => None,
        Op::Binary(op, x, y) => match (literal(*x), literal(*y)) {
            (Some(x), Some(y)) => Some(b.literal(semantics::binary(*op, x, y))),
            _ => binary(b, *op, b.wrap(*x), b.wrap(*y), element),
        },
        Op::Compare(op, x, y) => match (literal(*x), literal(*y)) {
            (Some(x), Some(y)) => Some(b.literal(semantics::compare(*op, x, y))),
            _ => compare(b, *op, b.wrap(*x), b.wrap(*y)),
        },
        Op::Fma(x, y, z) => match (literal(*x), literal(*y), literal(*z)) {
            (Some(x), Some(y), Some(z)) => Some(b.literal(semantics::fma(x, y, z))),
            (_, Some(y), _) if y.as_f64() == Some(1.0) => Some(b.add(b.wrap(*x), b.wrap(*z))),
            (Some(x), _, _) if x.as_f64() == Some(1.0) => Some(b.add(b.wrap(*y), b.wrap(*z))),
            _ => None,
        },
        Op::Select(c, x, y) => select(b, b.wrap(*c), b.wrap(*x), b.wrap(*y)),
        Op::Convert(x) => match literal(*x) {
            Some(x) => Some(b.literal(semantics::convert(x, element))),
            None => convert(b, b.wrap(*x), element),
        },
        Op::Bitcast(x) => match (literal(*x), b.op(b.wrap(*x))) {
            (Some(x), _) => Some(b.literal(semantics::bitcast(x, element))),
            (None, Some(Op::Bitcast(inner))) => Some(b.bitcast(b.wrap(inner), ty)),
            _ => None,
        },
        Op::Table(table, index) => {
            literal(*index).and_then(|index| b.table_entry(*table, index.bits())).map(|entry| b.literal(entry))
        }
        Op::Assume(x, low, high) => {
            let (least, most) = b.range(b.wrap(*x));
            if let Some(Op::Assume(inner, other_low, other_high)) = b.op(b.wrap(*x))
                && (*low).max(other_low) <= (*high).min(other_high)
            {
                return Some(b.assume(b.wrap(inner), (*low).max(other_low), (*high).min(other_high)));
            }
            (literal(*x).is_some() || (*low <= least && most <= *high)).then(|| b.wrap(*x))
        }
        Op::Special(special) => fixed(b, *special),
        Op::Literal(_)
        | Op::Parameter(_)
        | Op::Math(..)
        | Op::Vector(_)
        | Op::Lane(..)
        | Op::SharedAddress(_)
        | Op::LocalAddress(_)
        | placed_op!() => None,
    }
}

/// Folds registers that the launch bounds determine.
fn fixed(b: &Builder, special: Special) -> Option<Value> {
    let bounds = b.bounds();
    let known = match special {
        Special::BlockSize(axis) => bounds.block.map(|block| block[axis as usize]),
        Special::Thread(axis) => bounds.block.and_then(|block| (block[axis as usize] == 1).then_some(0)),
        Special::GridSize(axis) => bounds.max_grid.and_then(|grid| (grid[axis as usize] == 1).then_some(1)),
        Special::Block(axis) => bounds.max_grid.and_then(|grid| (grid[axis as usize] == 1).then_some(0)),
        Special::Lane => match bounds.block {
            // Warps consist of consecutive threads, so in a one-dimensional block the lane is the low bits.
            Some([_, 1, 1]) => return Some(b.and(b.special(Special::Thread(Axis::X)), 31)),
            _ => None,
        },
        Special::LaneMaskEq
        | Special::LaneMaskLt
        | Special::LaneMaskLe
        | Special::LaneMaskGt
        | Special::LaneMaskGe
        | Special::DynamicSharedBytes => None,
    };
    known.map(|value| b.literal(value))
}

fn unary(b: &Builder, op: UnaryOp, x: Value, element: Element) -> Option<Value> {
    match (op, b.op(x)?) {
        (UnaryOp::Neg, Op::Unary(UnaryOp::Neg, inner)) | (UnaryOp::Not, Op::Unary(UnaryOp::Not, inner)) => Some(b.wrap(inner)),
        (UnaryOp::Abs, Op::Unary(UnaryOp::Abs, _)) => Some(x),
        (UnaryOp::Abs, Op::Unary(UnaryOp::Neg, inner)) if element.is_float() || element.is_signed() => Some(b.abs(b.wrap(inner))),
        (UnaryOp::Abs, _) if element.is_float() => Some(b.abs(subtracted(b, x).or_else(|| cleared(b, x))?)),
        (UnaryOp::Abs, _) if element.is_integer() && b.range(x).0 >= 0 => Some(x),
        (UnaryOp::Not, Op::Compare(compare, x, y)) => {
            let exact = !b.type_of(b.wrap(x)).element().is_float() || matches!(compare, CompareOp::Eq | CompareOp::Ne);
            exact.then(|| b.compare(compare.inverse(), b.wrap(x), b.wrap(y)))
        }
        (UnaryOp::Neg, Op::Binary(BinaryOp::Sub, x, y)) if element.is_integer() => Some(b.sub(b.wrap(y), b.wrap(x))),
        _ => None,
    }
}

fn is_commutative(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Mul
        | BinaryOp::MulHigh
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::AddSaturating => true,
        BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::SubSaturating
        | BinaryOp::CopySign
        | BinaryOp::DivApprox => false,
    }
}

fn binary(b: &Builder, op: BinaryOp, x: Value, y: Value, element: Element) -> Option<Value> {
    // Literals to the right, otherwise the node with the smaller number first.
    if is_commutative(op) {
        let (left, right) = (b.as_literal(x).is_some(), b.as_literal(y).is_some());
        if left || (!right && x.id > y.id) {
            return Some(b.binary(op, y, x));
        }
    }
    if element.is_float() {
        return float(b, op, x, y, element);
    }
    if element == Element::Bool {
        return logic(b, op, x, y);
    }
    integer(b, op, x, y, element).or_else(|| narrow::binary(b, op, x, y, element))
}

fn is_positive_zero(b: &Builder, x: Value) -> bool {
    b.as_literal(x).and_then(Literal::as_f64).is_some_and(|value| value == 0.0 && !value.is_sign_negative())
}

/// Returns `x` of the float `0 - x`, which is the negation except that both zeros give +0.
fn subtracted(b: &Builder, value: Value) -> Option<Value> {
    match b.op(value)? {
        Op::Binary(BinaryOp::Sub, zero, x) if is_positive_zero(b, b.wrap(zero)) => Some(b.wrap(x)),
        _ => None,
    }
}

/// Returns `x` of the float `x + 0`, which is `x` except that both zeros give +0.
fn cleared(b: &Builder, value: Value) -> Option<Value> {
    match b.op(value)? {
        Op::Binary(BinaryOp::Add, x, zero) if is_positive_zero(b, b.wrap(zero)) => Some(b.wrap(x)),
        _ => None,
    }
}

/// Returns a product of floats without negations, if a negated number is a factor twice: `(0 - x) * (0 - x)`,
/// `((0 - x) * y) * (0 - x)`, `-x * -y`.
fn positive(b: &Builder, x: Value, y: Value) -> Option<Value> {
    if let (Some(x), Some(y)) = (negated_of(b, x), negated_of(b, y)) {
        return Some(b.mul(x, y));
    }
    let squared = |product: Value, factor: Value| {
        let own = subtracted(b, factor)?;
        if product == factor {
            return Some(b.mul(own, own));
        }
        match b.op(product)? {
            Op::Binary(BinaryOp::Mul, inner, c) if inner == factor.id => Some(b.mul(b.mul(own, b.wrap(c)), own)),
            Op::Binary(BinaryOp::Mul, c, inner) if inner == factor.id => Some(b.mul(b.mul(b.wrap(c), own), own)),
            _ => None,
        }
    };
    squared(x, y).or_else(|| squared(y, x))
}

fn float(b: &Builder, op: BinaryOp, x: Value, y: Value, element: Element) -> Option<Value> {
    let without_sign = match op {
        BinaryOp::Mul => positive(b, x, y),
        BinaryOp::Sub if is_positive_zero(b, x) => subtracted(b, y).map(|y| b.add(y, x)),
        _ => None,
    };
    if without_sign.is_some() {
        return without_sign;
    }
    let literal = b.as_literal(y)?;
    let value = literal.as_f64()?;
    let negative_zero = value == 0.0 && value.is_sign_negative();
    let positive_zero = value == 0.0 && !value.is_sign_negative();
    match op {
        BinaryOp::Add if negative_zero => Some(x),
        BinaryOp::Sub if positive_zero => Some(x),
        BinaryOp::Mul | BinaryOp::Div if value == 1.0 => Some(x),
        BinaryOp::Mul | BinaryOp::Div if value == -1.0 => Some(b.neg(x)),
        // The reciprocal of a power of two is exact if both are normal numbers.
        BinaryOp::Div => {
            let inverse = Literal::from_f64(element, 1.0 / value)?;
            let (mantissa, least) = match element {
                Element::F16 => (0x3ff, 2f64.powi(-14)),
                Element::F32 => (0x7f_ffff, f64::from(f32::MIN_POSITIVE)),
                _ => (0xf_ffff_ffff_ffff, f64::MIN_POSITIVE),
            };
            let normal = |literal: Literal| literal.as_f64().is_some_and(|value| value.is_finite() && value.abs() >= least);
            let exact = literal.bits() & mantissa == 0 && normal(literal) && normal(inverse);
            exact.then(|| b.mul(x, b.literal(inverse)))
        }
        _ => None,
    }
}

fn logic(b: &Builder, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
    let known = b.as_literal(y).and_then(Literal::as_bool);
    match (op, known) {
        (BinaryOp::And, Some(true)) | (BinaryOp::Or | BinaryOp::Xor, Some(false)) => Some(x),
        (BinaryOp::And, Some(false)) | (BinaryOp::Or, Some(true)) => Some(y),
        (BinaryOp::Xor, Some(true)) => Some(b.not(x)),
        (BinaryOp::And | BinaryOp::Or, None) if x == y => Some(x),
        (BinaryOp::Xor, None) if x == y => Some(b.literal(false)),
        _ => None,
    }
}

/// Returns the parts of `x + c`.
fn plus(b: &Builder, value: Value) -> Option<(Value, i128)> {
    match b.op(value)? {
        Op::Binary(BinaryOp::Add, x, c) => Some((b.wrap(x), b.as_literal(b.wrap(c))?.as_i128()?)),
        _ => None,
    }
}

fn integer(b: &Builder, op: BinaryOp, x: Value, y: Value, element: Element) -> Option<Value> {
    let constant = b.as_literal(y).and_then(Literal::as_i128);
    let number = |value: i128| b.literal(Literal::from_i128(element, value));
    let (xr, yr) = (b.range(x), b.range(y));
    match (op, constant) {
        (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr, Some(0)) => Some(x),
        (BinaryOp::AddSaturating | BinaryOp::SubSaturating, Some(0)) => Some(x),
        (BinaryOp::Add, Some(c)) => plus(b, x).map(|(x, d)| b.add(x, number(c + d))),
        (BinaryOp::Add, None) => match (plus(b, x), plus(b, y)) {
            // Constants move outward, where offsets of addresses take them.
            (Some((x, c)), Some((y, d))) => Some(b.add(b.add(x, y), number(c + d))),
            (Some((x, c)), None) => Some(b.add(b.add(x, y), number(c))),
            (None, Some((y, d))) => Some(b.add(b.add(x, y), number(d))),
            (None, None) => None,
        },
        (BinaryOp::Sub, Some(c)) => Some(b.add(x, number(-c))),
        (BinaryOp::Sub, None) if x == y => Some(number(0)),
        (BinaryOp::Sub, None) => match (plus(b, x), plus(b, y), b.as_literal(x).map(Literal::bits)) {
            (_, _, Some(0)) => Some(b.neg(y)),
            (Some((x, c)), Some((y, d)), _) => Some(b.add(b.sub(x, y), number(c - d))),
            (Some((x, c)), None, _) => Some(b.add(b.sub(x, y), number(c))),
            (None, Some((y, d)), None) => Some(b.add(b.sub(x, y), number(-d))),
            _ => cancelled(b, x, y),
        },
        (BinaryOp::Mul | BinaryOp::And, Some(0)) => Some(y),
        (BinaryOp::Mul | BinaryOp::Div, Some(1)) => Some(x),
        (BinaryOp::Mul, Some(c)) => match b.op(x)? {
            Op::Binary(BinaryOp::Mul, inner, d) => {
                let d = b.as_literal(b.wrap(d))?.as_i128()?;
                Some(b.mul(b.wrap(inner), number(c.wrapping_mul(d))))
            }
            Op::Binary(BinaryOp::Add, inner, d) => {
                let d = b.as_literal(b.wrap(d))?.as_i128()?;
                Some(b.add(b.mul(b.wrap(inner), y), number(c.wrapping_mul(d))))
            }
            _ => None,
        },
        (BinaryOp::Div, _) if xr.0 >= 0 && xr.1 < yr.0 => Some(number(0)),
        (BinaryOp::Rem, _) if xr.0 >= 0 && xr.1 < yr.0 => Some(x),
        (BinaryOp::Rem, Some(1 | -1)) => Some(number(0)),
        (BinaryOp::Div, Some(c)) if xr.0 >= 0 && c > 0 && c & (c - 1) == 0 => Some(b.shr(x, c.trailing_zeros())),
        (BinaryOp::Rem, Some(c)) if xr.0 >= 0 && c > 0 && c & (c - 1) == 0 => Some(b.and(x, number(c - 1))),
        // An unsigned division is shorter.
        (BinaryOp::Div | BinaryOp::Rem, _) if element.is_signed() && element.bits() >= 32 && xr.0 >= 0 && yr.0 >= 0 => {
            let unsigned = Type::of(element.unsigned()?);
            let result = b.binary(op, b.bitcast(x, unsigned), b.bitcast(y, unsigned));
            Some(b.bitcast(result, element))
        }
        (BinaryOp::And, Some(mask)) if mask > 0 && (mask & (mask + 1)) == 0 && xr.0 >= 0 && xr.1 <= mask => Some(x),
        (BinaryOp::And, Some(-1)) => Some(x),
        (BinaryOp::And, Some(c)) if b.as_literal(y).map(Literal::bits) == Some(element.mask()) && c != 0 => Some(x),
        (BinaryOp::And | BinaryOp::Or | BinaryOp::Min | BinaryOp::Max, _) if x == y => Some(x),
        (BinaryOp::Xor, _) if x == y => Some(number(0)),
        (BinaryOp::Min, _) if xr.1 <= yr.0 => Some(x),
        (BinaryOp::Min, _) if yr.1 <= xr.0 => Some(y),
        (BinaryOp::Max, _) if xr.0 >= yr.1 => Some(x),
        (BinaryOp::Max, _) if yr.0 >= xr.1 => Some(y),
        (BinaryOp::Shl, Some(c)) if c >= i128::from(element.bits()) => Some(number(0)),
        (BinaryOp::Shl, Some(c)) => {
            // As a product it meets the rules for products. The lowering turns it back into a shift.
            Some(b.mul(x, number(1i128 << c)))
        }
        (BinaryOp::Shr, Some(c)) if xr.0 >= 0 && (xr.1 >> c.min(127)) == 0 => Some(number(0)),
        _ => None,
    }
}

/// Folds `(x + y) - x` and `(x + y) - y`.
fn cancelled(b: &Builder, sum: Value, part: Value) -> Option<Value> {
    match b.op(sum)? {
        Op::Binary(BinaryOp::Add, x, y) if x == part.id => Some(b.wrap(y)),
        Op::Binary(BinaryOp::Add, x, y) if y == part.id => Some(b.wrap(x)),
        _ => None,
    }
}

fn compare(b: &Builder, op: CompareOp, x: Value, y: Value) -> Option<Value> {
    let element = b.type_of(x).element();
    if b.as_literal(x).is_some() {
        return Some(b.compare(op.swapped(), y, x));
    }
    if element.is_float() {
        // The number itself is compared, not its negation.
        let negated = negated_of(b, x).or_else(|| subtracted(b, x));
        let limit = b.as_literal(y)?;
        return negated.map(|x| b.compare(op.swapped(), x, b.literal(semantics::unary(UnaryOp::Neg, limit))));
    }
    if element == Element::Bool {
        return match (op, b.as_literal(y).and_then(Literal::as_bool)) {
            (CompareOp::Eq, Some(true)) | (CompareOp::Ne, Some(false)) => Some(x),
            (CompareOp::Eq, Some(false)) | (CompareOp::Ne, Some(true)) => Some(b.not(x)),
            _ => None,
        };
    }
    if x == y {
        return Some(b.literal(matches!(op, CompareOp::Eq | CompareOp::Le | CompareOp::Ge)));
    }
    let (xr, yr) = (b.range(x), b.range(y));
    let decided = match op {
        CompareOp::Lt if xr.1 < yr.0 => Some(true),
        CompareOp::Lt if xr.0 >= yr.1 => Some(false),
        CompareOp::Le if xr.1 <= yr.0 => Some(true),
        CompareOp::Le if xr.0 > yr.1 => Some(false),
        CompareOp::Gt if xr.0 > yr.1 => Some(true),
        CompareOp::Gt if xr.1 <= yr.0 => Some(false),
        CompareOp::Ge if xr.0 >= yr.1 => Some(true),
        CompareOp::Ge if xr.1 < yr.0 => Some(false),
        CompareOp::Eq if xr.1 < yr.0 || yr.1 < xr.0 => Some(false),
        CompareOp::Ne if xr.1 < yr.0 || yr.1 < xr.0 => Some(true),
        _ => None,
    };
    match decided {
        Some(decided) => Some(b.literal(decided)),
        None => narrow::compare(b, op, x, y, element),
    }
}

fn select(b: &Builder, c: Value, x: Value, y: Value) -> Option<Value> {
    if let Some(known) = b.as_literal(c).and_then(Literal::as_bool) {
        return Some(if known { x } else { y });
    }
    if x == y {
        return Some(x);
    }
    if let Some(Op::Unary(UnaryOp::Not, inner)) = b.op(c) {
        return Some(b.select(b.wrap(inner), y, x));
    }
    if let Some(magnitude) = magnitude(b, c, x, y) {
        return Some(magnitude);
    }
    match (b.as_literal(x).and_then(Literal::as_bool), b.as_literal(y).and_then(Literal::as_bool)) {
        (Some(true), Some(false)) => Some(c),
        (Some(false), Some(true)) => Some(b.not(c)),
        (Some(true), None) => Some(b.or(c, y)),
        (Some(false), None) => Some(b.and(b.not(c), y)),
        (None, Some(false)) => Some(b.and(c, x)),
        (None, Some(true)) => Some(b.or(b.not(c), x)),
        _ => None,
    }
}

/// Returns the magnitude of a float, if a selection takes the number or `0 - x` by its sign, and +0 for both
/// zeros.
fn magnitude(b: &Builder, c: Value, x: Value, y: Value) -> Option<Value> {
    let Op::Compare(op, number, zero) = b.op(c)? else { return None };
    let number = b.wrap(number);
    if !b.type_of(number).element().is_float() || b.as_literal(b.wrap(zero))?.as_f64()? != 0.0 {
        return None;
    }
    let (plus, minus, plus_has_zeros) = match op {
        CompareOp::Gt => (x, y, false),
        CompareOp::Ge => (x, y, true),
        CompareOp::Lt => (y, x, true),
        CompareOp::Le => (y, x, false),
        CompareOp::Eq | CompareOp::Ne => return None,
    };
    let is_plus = cleared(b, plus) == Some(number) || (plus == number && !plus_has_zeros);
    let is_minus = subtracted(b, minus) == Some(number) || (plus_has_zeros && negated_of(b, minus) == Some(number));
    (is_plus && is_minus).then(|| b.abs(number))
}

fn negated_of(b: &Builder, value: Value) -> Option<Value> {
    match b.op(value)? {
        Op::Unary(UnaryOp::Neg, x) => Some(b.wrap(x)),
        _ => None,
    }
}

fn convert(b: &Builder, x: Value, to: Element) -> Option<Value> {
    let from = b.type_of(x).element();
    let Some(Op::Convert(inner)) = b.op(x) else { return None };
    let inner = b.wrap(inner);
    let first = b.type_of(inner).element();
    if from.is_float() {
        // Widened and narrowed back, or widened twice.
        let kept = first.is_float() && first.bits() < from.bits();
        return (kept && to.is_float() && (to == first || to.bits() > from.bits())).then(|| b.convert(inner, to));
    }
    if !first.is_integer() || !from.is_integer() || !to.is_integer() {
        return None;
    }
    // The first conversion preserved the value, or the second drops the lost bits anyway.
    let (low, high) = b.range(inner);
    let kept = from.range().is_some_and(|(least, most)| least <= low && high <= most);
    (kept || to.bits() <= from.bits()).then(|| b.convert(inner, to))
}
