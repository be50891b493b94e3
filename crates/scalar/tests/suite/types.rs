//! Literals: values and how they print.

use broadloom_scalar::{Element, Literal};

#[test]
fn integers_keep_their_values() {
    for element in Element::ALL {
        let Some((low, high)) = element.range() else { continue };
        for value in [low, high, 0, 1] {
            assert_eq!(Literal::from_i128(element, value).as_i128(), Some(value), "{element}");
        }
    }
    assert_eq!(Literal::from_i128(Element::U8, 257).as_i128(), Some(1));
}

#[test]
fn literals_print_as_rust_writes_them() {
    let printed: Vec<String> =
        [Literal::from(0.1f32), Literal::from(-1i8), Literal::from(true), Literal::from(1.0f64)].map(|l| l.to_string()).into();
    assert_eq!(printed, ["0.1", "-1", "true", "1.0"]);
}
