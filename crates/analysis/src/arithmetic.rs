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
pub(crate) fn exact(step: &Step, args: &[Range; 3]) -> Exact {
    let bits = match step.op {
        Op::MulWide | Op::MadWide => 2 * step.ty.bits(),
        _ => step.ty.bits(),
    };
    let is = |signed: bool| computed(step, args, signed).is_some_and(|bounds| fits(bounds, bits, signed));
    Exact { signed: is(true), unsigned: is(false) }
}

/// Returns the set of a step's results. Operands have the width that the step requires.
pub(crate) fn result(step: &Step, args: &[Range; 3], bits: u32) -> Range {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integer::{Arg, Relation, is_integer};
    use crate::testing::Random;
    use broadloom_ptx::Type;

    /// Returns a random set of a few values with few bits, and a range around it.
    fn sample(random: &mut Random, bits: u32) -> (Vec<u64>, Range) {
        let edge = [0, 1, mask(bits), mask(bits) >> 1, (mask(bits) >> 1) + 1, 4, 7, 8, 12];
        let count = 1 + random.below(3);
        let shift = [0, 0, 0, 1, 2, 3][random.below(6)];
        let one = |random: &mut Random| match random.below(3) {
            0 => edge[random.below(edge.len())],
            1 => random.bits() & mask(bits),
            _ => random.bits() & 15,
        };
        let values: Vec<u64> = (0..count).map(|_| (one(random) << shift) & mask(bits)).collect();
        let range = values.iter().map(|value| Range::constant(bits, *value)).reduce(|a, b| a.union(&b)).unwrap();
        (values, range)
    }

    /// Computes the result on numbers, as the manual says.
    fn reference(op: Op, ty: Type, args: [u64; 3]) -> (u64, i128, i128) {
        let bits = ty.bits();
        let signed = |value: u64| i128::from(crate::range::sign_extended(value & mask(bits), bits));
        let unsigned = |value: u64| i128::from(value & mask(bits));
        let read = |value: u64| if ty.is_signed() { signed(value) } else { unsigned(value) };
        let [a, b, c] = args;
        let wide = match op {
            Op::Add => (signed(a) + signed(b), unsigned(a) + unsigned(b)),
            Op::Sub => (signed(a) - signed(b), unsigned(a) - unsigned(b)),
            Op::Mul => (signed(a) * signed(b), unsigned(a).saturating_mul(unsigned(b))),
            Op::Mad => (signed(a) * signed(b) + signed(c), unsigned(a).saturating_mul(unsigned(b)).saturating_add(unsigned(c))),
            Op::MulWide => (read(a) * read(b), read(a) * read(b)),
            Op::Shl if b >= u64::from(bits) => (0, 0),
            Op::Shl => (signed(a) << b, unsigned(a) << b),
            _ => {
                let value = match op {
                    Op::Neg => -signed(a),
                    Op::Not => !signed(a),
                    Op::Abs => signed(a).abs(),
                    Op::Min => read(a).min(read(b)),
                    Op::Max => read(a).max(read(b)),
                    Op::Div => read(a) / read(b),
                    Op::Rem => read(a) % read(b),
                    Op::Shr => read(a) >> b.min(u64::from(bits)),
                    Op::And => (a & b) as i128,
                    Op::Or => (a | b) as i128,
                    Op::Xor => (a ^ b) as i128,
                    Op::Convert(from) => {
                        let low = a & mask(from.bits());
                        if from.is_signed() { i128::from(crate::range::sign_extended(low, from.bits())) } else { low as i128 }
                    }
                    other => panic!("{other:?}"),
                };
                (value, value)
            }
        };
        (wide.0 as u64, wide.0, wide.1)
    }

    #[test]
    fn results_are_in_the_range_and_exactness_holds() {
        let mut random = Random::new(9);
        let types = [Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64];
        let ops = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::MulWide,
            Op::Mad,
            Op::Neg,
            Op::Not,
            Op::Abs,
            Op::Min,
            Op::Max,
            Op::Div,
            Op::Rem,
            Op::Shl,
            Op::Shr,
            Op::And,
            Op::Or,
            Op::Xor,
            Op::Convert(Type::S32),
            Op::Convert(Type::U8),
            Op::Convert(Type::S8),
            Op::Convert(Type::U32),
        ];
        let mut exact_seen = 0;
        for _ in 0..60_000 {
            let (op, ty) = (ops[random.below(ops.len())], types[random.below(types.len())]);
            assert!(is_integer(ty));
            let (result_bits, arg_bits) = match op {
                Op::MulWide if ty.bits() == 64 => continue,
                Op::MulWide => (2 * ty.bits(), ty.bits()),
                Op::Convert(from) if from.bits() == 8 => (ty.bits(), 16),
                Op::Convert(from) => (ty.bits(), from.bits()),
                _ => (ty.bits(), ty.bits()),
            };
            let step = Step { op, ty, result: None, args: [Arg::Other; 3] };
            let mut samples: Vec<(Vec<u64>, Range)> = (0..3).map(|_| sample(&mut random, arg_bits)).collect();
            if matches!(op, Op::Shl | Op::Shr) {
                samples[1] = sample(&mut random, 32);
                samples[1].0.iter_mut().for_each(|amount| *amount &= 63);
                samples[1].1 = samples[1].0.iter().map(|v| Range::constant(32, *v)).reduce(|a, b| a.union(&b)).unwrap();
            }
            let ranges = [samples[0].1, samples[1].1, samples[2].1];
            let found = result(&step, &ranges, result_bits);
            let claims = exact(&step, &ranges);
            exact_seen += usize::from(claims.signed) + usize::from(claims.unsigned);
            for a in &samples[0].0 {
                for b in &samples[1].0 {
                    for c in &samples[2].0 {
                        if matches!(op, Op::Div | Op::Rem) && *b == 0 {
                            continue;
                        }
                        let (value, signed, unsigned) = reference(op, ty, [*a, *b, *c]);
                        let value = value & mask(result_bits);
                        assert!(
                            found.contains(value),
                            "{op:?} {ty:?} {a:#x} {b:#x} {c:#x} = {value:#x} not in {found:?} from {ranges:?}"
                        );
                        if claims.signed && op != Op::MulWide {
                            assert!(fits((signed, signed), result_bits, true), "{op:?} {ty:?} {a:#x} {b:#x} {c:#x}");
                        }
                        if claims.unsigned && op != Op::MulWide {
                            assert!(fits((unsigned, unsigned), result_bits, false), "{op:?} {ty:?} {a:#x} {b:#x} {c:#x}");
                        }
                    }
                }
            }
        }
        assert!(exact_seen > 10_000, "{exact_seen}");
    }

    #[test]
    fn relations_keep_what_they_hold_for() {
        let mut random = Random::new(10);
        let relations = [Relation::Eq, Relation::Ne, Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge];
        for _ in 0..20_000 {
            let ((left, a), (right, b)) = (sample(&mut random, 32), sample(&mut random, 32));
            let (relation, signed) = (relations[random.below(6)], random.below(2) == 0);
            let read = |value: u64| if signed { i64::from(value as i32) } else { value as i64 };
            let holds = |x: u64, y: u64| match relation {
                Relation::Eq => read(x) == read(y),
                Relation::Ne => read(x) != read(y),
                Relation::Lt => read(x) < read(y),
                Relation::Le => read(x) <= read(y),
                Relation::Gt => read(x) > read(y),
                Relation::Ge => read(x) >= read(y),
            };
            let narrowed = a.related(relation, signed, &b);
            for (x, y) in left.iter().flat_map(|x| right.iter().map(move |y| (*x, *y))) {
                assert!(!holds(x, y) || narrowed.contains(x), "{relation:?} {x:#x} {y:#x} {narrowed:?}");
            }
            assert!(left.iter().all(|x| a.widened(&b).contains(*x)) && right.iter().all(|y| a.widened(&b).contains(*y)));
        }
    }
}
