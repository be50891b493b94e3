//! Division by a number that is known before the kernel runs.

use broadloom_scalar::{Builder, Divisor, Function, Type};

fn quotient(bits: u32) -> Function {
    let b = Builder::function("quotient");
    let x = b.parameter("x", Type::U32);
    let x = if bits < 32 { b.assume(x, 0, (1 << bits) - 1) } else { x };
    let divisor = b.fast_divisor("d", u32::MAX);
    let (q, r) = b.fast_div_rem(x, divisor);
    b.finish_function(&[q, r]).unwrap()
}

#[test]
fn quotients_are_those_of_division() {
    let mut values: Vec<u32> = (0..40).collect();
    values.extend((5..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, (1 << bit) + 1]));
    values.extend([640, 1000, 1_000_003, 0x7fff_fffe, 0xffff_fffe, u32::MAX, 0xaaaa_aaab]);
    for bits in [31, 32] {
        let function = quotient(bits);
        for d in values.iter().copied().filter(|d| *d > 0) {
            let Divisor { divisor, multiplier, shift } = Divisor::new(d);
            for x in values.iter().copied().filter(|x| u64::from(*x) < 1 << bits) {
                let found = function.evaluate(&[x, divisor, multiplier, shift].map(Into::into)).unwrap();
                assert_eq!(found, [(x / d).into(), (x % d).into()], "{x} / {d}");
            }
        }
    }
}
