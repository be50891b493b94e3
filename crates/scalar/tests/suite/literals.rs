//! Texts of literals.

use broadloom_scalar::text::{literal, literal_text};
use broadloom_scalar::{Element, Literal};

#[test]
fn literals_read_back_as_the_same_bits() {
    let patterns = [0u64, 1, 0x7f, 0x80, 0xff, 0x7c00, 0x7e01, 0x8000, 0x3f80_0000, 0x7fc0_0001, 0xff80_0000, 0x0000_0001];
    let wide = [0x7ff8_0000_0000_0001u64, 0x3ff0_0000_0000_0001, 0x8000_0000_0000_0000, u64::MAX];
    for element in Element::ALL {
        for bits in patterns.into_iter().chain(wide) {
            let mask = u64::MAX >> (64 - element.bits());
            let bits = if element == Element::Bool { bits & 1 } else { bits & mask };
            let value = Literal::from_bits(element, bits);
            for text in [literal_text(value), format!("{}{element}", literal_text(value))] {
                assert_eq!(literal(element, &text), Some(value), "{text}");
            }
        }
    }
}

#[test]
fn literals_out_of_range_are_refused() {
    for (element, text) in [
        (Element::U8, "256"),
        (Element::U8, "-1"),
        (Element::I8, "128"),
        (Element::Bool, "1"),
        (Element::F32, "true"),
        (Element::F32, "1.0f64"),
        (Element::I32, "1.5"),
        (Element::F32, "nan(0x1)"),
        (Element::I32, ""),
    ] {
        assert_eq!(literal(element, text), None, "{text}");
    }
}
