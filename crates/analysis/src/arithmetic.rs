//! Integer instructions on sets of integers.

use crate::integer::{Op, Step, mask};
use crate::range::{Range, fits};

/// Absence of overflow in a sum, product or shift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exact {
    /// Exact if operands and result are read as signed.
    pub signed: bool,
    /// Exact if operands and result are read as unsigned.
    pub unsigned: bool,
}

type Bounds = (i128, i128);

fn sum(a: Bounds, b: Bounds) -> Bounds {
    (a.0 + b.0, a.1 + b.1)
}

fn difference(a: Bounds, b: Bounds) -> Bounds {
    (a.0 - b.1, a.1 - b.0)
}

fn product(a: Bounds, b: Bounds) -> Bounds {
    // Products of unsigned 64-bit bounds have at most 128 bits. They saturate, since they do not fit anyway.
    let corners = [a.0.saturating_mul(b.0), a.0.saturating_mul(b.1), a.1.saturating_mul(b.0), a.1.saturating_mul(b.1)];
    corners.iter().fold((i128::MAX, i128::MIN), |(low, high), corner| (low.min(*corner), high.max(*corner)))
}

/// Returns the mathematical bounds of a step in a reading. Returns `None` for steps that cannot overflow in
/// this sense.
fn computed(step: &Step, args: &[Range; 3], signed: bool) -> Option<Bounds> {
    let [a, b, c] = args.map(|arg| arg.bounds(signed));
    Some(match step.op {
        Op::Add => sum(a, b),
        Op::Sub => difference(a, b),
        Op::Mul | Op::MulWide => product(a, b),
        Op::Mad | Op::MadWide => {
            let product = product(a, b);
            let bits = if step.op == Op::Mad { step.ty.bits() } else { 2 * step.ty.bits() };
            if !fits(product, bits, signed) {
                return Some((i128::MIN, i128::MAX));
            }
            sum(product, c)
        }
        Op::Shl => {
            let (least, most) = args[1].bounds(false);
            if most >= i128::from(step.ty.bits()) {
                return Some((i128::MIN, i128::MAX));
            }
            product(a, (1 << least, 1 << most))
        }
        _ => return None,
    })
}

/// Returns whether a step is the mathematical operation, in each reading.
pub fn exact(step: &Step, args: &[Range; 3]) -> Exact {
    let bits = match step.op {
        Op::MulWide | Op::MadWide => 2 * step.ty.bits(),
        _ => step.ty.bits(),
    };
    let is = |signed: bool| computed(step, args, signed).is_some_and(|bounds| fits(bounds, bits, signed));
    Exact { signed: is(true), unsigned: is(false) }
}

/// Returns the set of a step's results. Operands have the width that the step requires.
pub fn result(step: &Step, args: &[Range; 3], bits: u32) -> Range {
    let [a, b, c] = args;
    let signed = step.ty.is_signed();
    let made = |zeros: u32| {
        let bounds = |signed: bool| computed(step, args, signed).unwrap_or((i128::MIN, i128::MAX));
        Range::made(bits, bounds(true), bounds(false), zeros)
    };
    if let (Op::And | Op::Or | Op::Xor, Some(a), Some(b)) = (step.op, a.value(), b.value()) {
        let value = match step.op {
            Op::And => a & b,
            Op::Or => a | b,
            _ => a ^ b,
        };
        return Range::constant(bits, value);
    }
    match step.op {
        Op::Copy => *a,
        Op::Add | Op::Sub => made(a.zeros().min(b.zeros())),
        Op::Mul => made(a.zeros() + b.zeros()),
        Op::Mad => made((a.zeros() + b.zeros()).min(c.zeros())),
        Op::MulWide | Op::MadWide => {
            let own = computed(step, args, signed).unwrap_or((i128::MIN, i128::MAX));
            let zeros = if step.op == Op::MulWide { a.zeros() + b.zeros() } else { (a.zeros() + b.zeros()).min(c.zeros()) };
            // The bounds are in the type's reading; the other one follows from the value.
            let none = (i128::MIN, i128::MAX);
            if signed { Range::made(bits, own, none, zeros) } else { Range::made(bits, none, own, zeros) }
        }
        Op::Neg => {
            let (low, high) = a.bounds(true);
            Range::made(bits, (-high, -low), (i128::MIN, i128::MAX), a.zeros())
        }
        Op::Not => {
            let (low, high) = a.bounds(true);
            let (least, most) = a.bounds(false);
            let all = i128::from(mask(bits));
            Range::made(bits, (-high - 1, -low - 1), (all - most, all - least), 0)
        }
        Op::Abs => {
            let (low, high) = a.bounds(true);
            let least = if low > 0 {
                low
            } else if high < 0 {
                -high
            } else {
                0
            };
            Range::made(bits, (least, high.max(-low)), (i128::MIN, i128::MAX), a.zeros())
        }
        Op::Min | Op::Max => {
            let zeros = a.zeros().min(b.zeros());
            let pick = |x: Bounds, y: Bounds| match step.op {
                Op::Min => (x.0.min(y.0), x.1.min(y.1)),
                _ => (x.0.max(y.0), x.1.max(y.1)),
            };
            let own = pick(a.bounds(signed), b.bounds(signed));
            let both = a.union(b);
            let other = both.bounds(!signed);
            if signed { Range::made(bits, own, other, zeros) } else { Range::made(bits, other, own, zeros) }
        }
        Op::Div | Op::Rem => divided(step.op == Op::Div, a, b, signed, bits),
        Op::Shl => {
            let (least, most) = b.unsigned();
            if least >= u64::from(bits) {
                return Range::constant(bits, 0);
            }
            let zeros = a.zeros() + least as u32;
            if most >= u64::from(bits) { Range::made(bits, WIDE, WIDE, zeros.min(bits)) } else { made(zeros) }
        }
        Op::Shr => shifted_right(a, b, signed, bits),
        Op::And => {
            // A bit of the result is set only if it is set in both.
            let most = a.unsigned().1.min(b.unsigned().1);
            Range::made(bits, WIDE, (0, i128::from(most)), a.zeros().max(b.zeros()))
        }
        Op::Or | Op::Xor => {
            let most = a.unsigned().1 | b.unsigned().1;
            let ones = i128::from(mask(64 - most.leading_zeros()));
            let least = if step.op == Op::Or { a.unsigned().0.max(b.unsigned().0) } else { 0 };
            Range::made(bits, WIDE, (i128::from(least), ones), a.zeros().min(b.zeros()))
        }
        Op::Select => a.union(b),
        Op::BitField => match (b.value(), c.value()) {
            (Some(_), Some(length)) if !signed && length < u64::from(bits) => {
                Range::made(bits, WIDE, (0, i128::from(mask(length as u32))), 0)
            }
            _ => Range::full(bits),
        },
        Op::Convert(from) => converted(a, from.bits(), from.is_signed(), step.ty.bits(), signed, bits),
        Op::Count => Range::between(bits, 0, u64::from(step.ty.bits())),
        Op::Compare(_) | Op::Param(_) | Op::Load | Op::Other => Range::full(bits),
    }
}

/// Bounds that contain everything.
const WIDE: Bounds = (i128::MIN, i128::MAX);

/// Computes the quotient or remainder, rounded toward zero.
fn divided(quotient: bool, a: &Range, b: &Range, signed: bool, bits: u32) -> Range {
    let (low, high) = a.bounds(signed);
    let (least, most) = b.bounds(signed);
    // Division by zero gives a machine-dependent value.
    if least <= 0 {
        return Range::full(bits);
    }
    let own = match quotient {
        true => {
            let ends = [low / least, low / most, high / least, high / most];
            (ends.into_iter().fold(i128::MAX, i128::min), ends.into_iter().fold(i128::MIN, i128::max))
        }
        false => {
            let below = if low < 0 { low.max(1 - most) } else { 0 };
            let above = if high > 0 { high.min(most - 1) } else { 0 };
            (below, above)
        }
    };
    if signed { Range::made(bits, own, WIDE, 0) } else { Range::made(bits, WIDE, own, 0) }
}

fn shifted_right(a: &Range, b: &Range, signed: bool, bits: u32) -> Range {
    let (least, most) = b.unsigned();
    let (least, most) = (least.min(u64::from(bits)) as u32, most.min(u64::from(bits)) as u32);
    let (low, high) = a.bounds(signed);
    let shift = |value: i128, amount: u32| value >> amount;
    let own = (shift(low, least).min(shift(low, most)), shift(high, least).max(shift(high, most)));
    let zeros = if least == most { a.zeros().saturating_sub(least) } else { 0 };
    if signed { Range::made(bits, own, WIDE, zeros) } else { Range::made(bits, WIDE, own, zeros) }
}

/// Converts a value of `from` bits, signed or unsigned, to one of `to` bits, in a register of `bits`.
pub(crate) fn converted(a: &Range, from: u32, from_signed: bool, to: u32, to_signed: bool, bits: u32) -> Range {
    let source = resized(a, from, false);
    let value = resized(&source, to, from_signed);
    resized(&value, bits, to_signed)
}

/// Converts a set to another width: truncated, sign-extended or zero-extended.
pub(crate) fn resized(a: &Range, bits: u32, signed: bool) -> Range {
    if a.is_empty() {
        return Range::empty(bits);
    }
    if bits == a.bits() {
        return *a;
    }
    if bits < a.bits() {
        // Values that fit are unchanged, in the reading in which they fit.
        return Range::made(bits, a.bounds(true), a.bounds(false), a.zeros().min(bits));
    }
    let zeros = if a.value() == Some(0) { bits } else { a.zeros() };
    if signed { Range::made(bits, a.bounds(true), WIDE, zeros) } else { Range::made(bits, WIDE, a.bounds(false), zeros) }
}
