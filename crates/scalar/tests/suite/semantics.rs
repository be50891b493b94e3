//! Results of operations, computed by evaluating functions of one operation.

use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type, Value};
use half::f16;

/// Returns a function of parameters of these types with one operation.
fn function(types: &[Element], write: impl FnOnce(&Builder, &[Value]) -> Value) -> Function {
    let b = Builder::function("one");
    let values: Vec<Value> = types.iter().enumerate().map(|(at, ty)| b.parameter(&format!("x{at}"), Type::from(*ty))).collect();
    let result = write(&b, &values);
    b.finish_function(&[result]).unwrap()
}

fn binary(op: BinaryOp, x: Literal, y: Literal) -> Literal {
    function(&[x.element(), y.element()], |b, values| b.binary(op, values[0], values[1])).evaluate(&[x, y]).unwrap()[0]
}

fn convert(x: Literal, to: Element) -> Literal {
    function(&[x.element()], |b, values| b.convert(values[0], to)).evaluate(&[x]).unwrap()[0]
}

#[test]
fn integer_division_is_total() {
    let lit = |value: i32| Literal::from(value);
    assert_eq!(binary(BinaryOp::Div, lit(7), lit(0)), lit(0));
    assert_eq!(binary(BinaryOp::Rem, lit(7), lit(0)), lit(7));
    assert_eq!(binary(BinaryOp::Div, lit(i32::MIN), lit(-1)), lit(i32::MIN));
    assert_eq!(binary(BinaryOp::Rem, lit(i32::MIN), lit(-1)), lit(0));
    assert_eq!(binary(BinaryOp::Rem, lit(-7), lit(3)), lit(-1));
}

#[test]
fn the_upper_half_of_a_product() {
    let high = |a: u64, b: u64| binary(BinaryOp::MulHigh, a.into(), b.into());
    assert_eq!(high(u64::MAX, u64::MAX), (u64::MAX - 1).into());
    assert_eq!(binary(BinaryOp::MulHigh, i64::MIN.into(), i64::MIN.into()), (1i64 << 62).into());
    assert_eq!(binary(BinaryOp::MulHigh, (-1i8).into(), 1i8.into()), (-1i8).into());
}

/// Compares with exact integers: every half is a multiple of 2^-24.
#[test]
fn halves_are_multiplied_and_added_with_one_rounding() {
    let exact = |bits: u16| (f16::from_bits(bits).to_f64() * 2f64.powi(24)) as i128;
    let fma = function(&[Element::F16; 3], |b, values| b.fma(values[0], values[1], values[2]));
    let mut random = broadloom_random::Random::new(1);
    for _ in 0..200_000 {
        let seed = random.bits();
        let [a, b, c] = [seed >> 48, (seed >> 32) & 0xffff, (seed >> 16) & 0xffff].map(|bits| bits as u16);
        if [a, b, c].iter().any(|bits| bits & 0x7c00 == 0x7c00) {
            continue;
        }
        // In units of 2^-48. The nearest half is one of the two neighbours of the rough result.
        let sum = exact(a) * exact(b) + (exact(c) << 24);
        let result = fma.evaluate(&[a, b, c].map(|bits| f16::from_bits(bits).into())).unwrap()[0];
        let distance = |bits: u16| (exact(bits) * (1 << 24) - sum).abs();
        let found = result.bits() as u16;
        if found & 0x7c00 == 0x7c00 {
            assert!(sum.abs() >= (65520i128 << 48), "{a:x} {b:x} {c:x}");
            continue;
        }
        for other in [found.wrapping_add(1), found.wrapping_sub(1)] {
            if other & 0x7c00 != 0x7c00 && (other ^ found) & 0x8000 == 0 {
                let (near, far) = (distance(found), distance(other));
                assert!(near < far || (near == far && found & 1 == 0), "{a:x} {b:x} {c:x}: {found:x}");
            }
        }
    }
}

#[test]
fn conversions_are_those_of_rust() {
    for value in [0.0f64, -0.9, 3.7, -3.7, 300.0, -1e30, 1e30, f64::NAN, f64::INFINITY, 4294967295.5] {
        assert_eq!(convert(value.into(), Element::I8), (value as i8).into());
        assert_eq!(convert(value.into(), Element::U32), (value as u32).into());
        assert_eq!(convert(value.into(), Element::I64), (value as i64).into());
        assert_eq!(convert(value.into(), Element::U64), (value as u64).into());
    }
    assert_eq!(convert(u64::MAX.into(), Element::F32), (u64::MAX as f32).into());
    assert_eq!(convert((-1i8).into(), Element::U32), u32::MAX.into());
}
