//! Literals as text: written text reads back as the same bits.

use crate::types::{Element, Literal, half_from};

/// Returns the text of a literal, without its type. NaN is written with its bits, unless they are the default
/// ones.
pub fn literal_text(literal: Literal) -> String {
    let usual = Literal::from_f64(literal.element(), f64::NAN);
    match literal.is_nan() && usual != Some(literal) {
        true => format!("nan({:#x})", literal.bits()),
        false => literal.to_string(),
    }
}

/// Splits the element type off the end of the text of a literal.
pub(super) fn typed(text: &str) -> (&str, Option<Element>) {
    let named = |element: &Element| text.strip_suffix(element.name()).map(|rest| (rest, *element));
    // Digits of hexadecimal numbers may look like a type.
    let hexadecimal = text.trim_start_matches('-').starts_with("0x");
    let found = Element::ALL.iter().find_map(named).filter(|(rest, _)| !rest.is_empty() && !hexadecimal);
    found.map_or((text, None), |(rest, element)| (rest, Some(element)))
}

/// Reads a literal of a type: `-3`, `0.5`, `1e-3`, `0xff`, `inf`, `NaN`, `nan(0x7fc00001)`, `true`. Returns
/// `None` if the type cannot represent the value, or if the text names another type.
pub fn literal(element: Element, text: &str) -> Option<Literal> {
    let (text, named) = typed(text);
    if named.is_some_and(|named| named != element) {
        return None;
    }
    if let Some(bits) = text.strip_prefix("nan(").and_then(|rest| rest.strip_suffix(')')) {
        let bits = u64::from_str_radix(bits.strip_prefix("0x")?, 16).ok()?;
        return Some(Literal::from_bits(element, bits)).filter(|literal| literal.is_nan() && literal.bits() == bits);
    }
    if element == Element::Bool {
        return text.parse::<bool>().ok().map(Literal::from);
    }
    if element.is_integer() {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let value = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok()?,
            None => digits.parse::<i128>().ok()?,
        };
        let (low, high) = element.range()?;
        let value = sign * value;
        return (low..=high).contains(&value).then(|| Literal::from_i128(element, value));
    }
    match element {
        Element::F32 => text.parse::<f32>().ok().map(Literal::from),
        Element::F16 => text.parse::<f64>().ok().map(|value| half_from(value).into()),
        _ => text.parse::<f64>().ok().map(Literal::from),
    }
}
