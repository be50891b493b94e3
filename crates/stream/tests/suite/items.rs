//! Items as the words of kernels, and as the text that `print` writes.

use broadloom_stream::compiled::words::{decode, encode};
use broadloom_stream::core::{Layout, StructId, Type, Value};
use broadloom_stream::eval::show_value;
use broadloom_stream::translate::Words;
use cranelift_entity::EntityRef;
use std::sync::Arc;

/// Every item survives encoding and decoding.
#[test]
fn items_come_back() {
    let scalar = |ty: Type| Layout::Scalar(ty);
    let array = |inner: Layout, length: u32| Layout::Array(Arc::new(inner), length);
    let record = Layout::Struct(StructId::new(0), [scalar(Type::Int), array(scalar(Type::Float), 2)].into());
    let floats = |a: f32, b: f32| Value::Array([Value::Float(a), Value::Float(b)].into());
    let cases = [
        (scalar(Type::Bit), Value::Bit(true)),
        (scalar(Type::Double), Value::Double(-0.0)),
        (scalar(Type::Complex), Value::Complex(1.5, -2.0)),
        (array(scalar(Type::Complex), 2), Value::Array([Value::Complex(1.0, 2.0), Value::Complex(3.0, 4.0)].into())),
        (
            array(record, 2),
            Value::Array(
                [
                    Value::Struct([Value::Int(-7), floats(1.0, 2.0)].into()),
                    Value::Struct([Value::Int(8), floats(3.0, 4.0)].into()),
                ]
                .into(),
            ),
        ),
    ];
    for (layout, value) in cases {
        let words = Words::of(&layout).unwrap();
        let mut bytes = vec![];
        encode(&layout, words, &value, &mut bytes);
        assert_eq!(bytes.len() as u64, words.bytes(), "{layout:?}");
        assert_eq!(decode(&layout, words, &bytes), value);
    }
}

#[test]
fn floats_are_shown_as_java_shows_them() {
    let cases = [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1e7, "1.0E7"),
        (9_999_999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.000_1, "1.0E-4"),
        (1.234_567_9e-10, "1.2345679E-10"),
        (16_777_216.0, "1.6777216E7"),
        (123.456, "123.456"),
        (f32::INFINITY, "Infinity"),
        (f32::NEG_INFINITY, "-Infinity"),
        (f32::NAN, "NaN"),
        (f32::MAX, "3.4028235E38"),
        (f32::from_bits(1), "1.4E-45"),
        (f32::from_bits(3), "4.2E-45"),
        (2e10, "2.0E10"),
        (5.0, "5.0"),
        (0.5, "0.5"),
    ];
    for (value, expected) in cases {
        assert_eq!(show_value(&Value::Float(value)), expected);
    }
}
