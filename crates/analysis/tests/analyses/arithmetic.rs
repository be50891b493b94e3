//! Ranges of results and claims of exactness, compared with the operations on sampled numbers.

use crate::testing::{Random, limits, mask};
use broadloom_analysis::Range;
use broadloom_analysis::arithmetic::{exact, result};
use broadloom_analysis::integer::{Arg, Op, Relation, Step};
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

/// Returns whether an integer of `bits` bits can have this value.
fn fits(value: i128, bits: u32, signed: bool) -> bool {
    let (least, most) = limits(bits, signed);
    (least..=most).contains(&value)
}

/// Computes the result on numbers, as the manual says.
fn reference(op: Op, ty: Type, args: [u64; 3]) -> (u64, i128, i128) {
    let bits = ty.bits();
    let signed = |value: u64| i128::from(broadloom_eval::sign_extend(value & mask(bits), bits));
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
                    if from.is_signed() { i128::from(broadloom_eval::sign_extend(low, from.bits())) } else { low as i128 }
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
                        assert!(fits(signed, result_bits, true), "{op:?} {ty:?} {a:#x} {b:#x} {c:#x}");
                    }
                    if claims.unsigned && op != Op::MulWide {
                        assert!(fits(unsigned, result_bits, false), "{op:?} {ty:?} {a:#x} {b:#x} {c:#x}");
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
