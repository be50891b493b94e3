//! The elements of an input: listed, counted, or random.

use super::BAD_ELEMENTS;
use crate::expr::parsed_call::value_of;
use crate::expr::shape::Shape;
use broadloom_diag::Diagnostic;
use broadloom_scalar::text::Scanner;
use broadloom_scalar::{Element, Lanes, Literal, Type};

/// Maximum size of an input in bytes.
const MAX_BYTES: usize = 1 << 30;

/// Reads the text after `input` and returns the bytes of the elements:
///
/// | written | elements |
/// | --- | --- |
/// | nothing, or `zero` | zeros |
/// | `iota` | 0, 1, 2, … |
/// | `random 7`, `random 7 in -1..1` | random numbers of row 7: floats from 0 to below 1 or of the range, integers of any bits or of the range |
/// | `[1, 2, 3]` | these, repeated if there are more elements |
pub(super) fn elements(scanner: &mut Scanner<'_>, ty: Type, shape: &Shape) -> Result<Vec<u8>, Box<Diagnostic>> {
    let start = scanner.at();
    let count = shape.count().saturating_mul(ty.lanes());
    if shape.count().saturating_mul(ty.bytes() as usize) > MAX_BYTES || !shape.is_possible() {
        let message = format!("an input of shape {shape} is too large: at most {MAX_BYTES} bytes are possible");
        return Err(Box::new(Diagnostic::error(BAD_ELEMENTS, message).at(scanner.since(0), "this input")));
    }
    let element = ty.element();
    let size = element.bytes() as usize;
    let bytes = |lanes: &mut dyn Iterator<Item = Literal>| {
        let mut bytes = Vec::with_capacity(count * size);
        lanes.for_each(|lane| bytes.extend_from_slice(&lane.bits().to_le_bytes()[..size]));
        bytes
    };
    if scanner.eat("[") {
        let values = scanner.list("]", |scanner| value(scanner, ty))?;
        let lanes: Vec<Literal> = values.into_iter().flatten().collect();
        if lanes.is_empty() && count > 0 {
            let message = format!("the shape {shape} has elements, and none are given");
            return Err(Box::new(Diagnostic::error(BAD_ELEMENTS, message).at(scanner.since(start), "here")));
        }
        return Ok(bytes(&mut lanes.into_iter().cycle().take(count)));
    }
    match scanner.word() {
        None => {
            scanner.finish()?;
            Ok(vec![0; count * size])
        }
        Some("zero") => Ok(vec![0; count * size]),
        Some("iota") => Ok(bytes(&mut (0..count).map(|index| Literal::from_i128(element, (index / ty.lanes()) as i128)))),
        Some("random") => {
            let row = if scanner.is_end() { 0 } else { scanner.integer::<u64>("the number of a row")? };
            let range = match scanner.eat_word("in") {
                false => None,
                true => {
                    let start = scanner.at();
                    let low: i64 = scanner.integer("the least value")?;
                    scanner.expect("..")?;
                    let high: i64 = scanner.integer("the end of the range")?;
                    let fits =
                        element.range().is_none_or(|(least, most)| i128::from(low) >= least && i128::from(high) - 1 <= most);
                    if low >= high || !fits {
                        let message = format!("{low}..{high} is no range of `{element}`");
                        return Err(Box::new(Diagnostic::error(BAD_ELEMENTS, message).at(scanner.since(start), "here")));
                    }
                    Some((low, high))
                }
            };
            Ok(bytes(&mut (0..count as u64).map(|index| drawn(element, row, index, range))))
        }
        Some(other) => {
            let message = format!("`{other}` is not what an input holds");
            let help = "inputs are `zero`, `iota`, `random 1`, `random 1 in 0..10`, or a list such as `[1, 2, 3]`";
            Err(Box::new(Diagnostic::error(BAD_ELEMENTS, message).at(scanner.since(start), "here").help(help)))
        }
    }
}

/// Reads a value of a type: a literal, or lanes in parentheses.
pub(super) fn value(scanner: &mut Scanner<'_>, ty: Type) -> Result<Lanes, Box<Diagnostic>> {
    let start = scanner.at();
    let mut texts = vec![];
    if scanner.eat("(") {
        loop {
            texts.push(scanner.literal().ok_or_else(|| scanner.unexpected("a value"))?);
            if !scanner.eat(",") {
                break;
            }
        }
        scanner.expect(")")?;
    } else {
        texts.push(scanner.literal().ok_or_else(|| scanner.unexpected("a value"))?);
    }
    value_of(ty, &texts).ok_or_else(|| {
        let message = format!("`{}` is not a value of `{ty}`", texts.join(", "));
        Box::new(Diagnostic::error(BAD_ELEMENTS, message).at(scanner.since(start), "here"))
    })
}

/// Returns a random number of a row. A row has the same numbers on all machines.
fn drawn(element: Element, row: u64, index: u64, range: Option<(i64, i64)>) -> Literal {
    let mut x = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index.wrapping_mul(0xbf58_476d_1ce4_e5b9));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    let (low, high) = range.unwrap_or((0, 1));
    // Exact in every float type except `f16`, which rounds.
    let share = (x >> 40) as f64 / (1u64 << 24) as f64;
    let float = || Literal::from_f64(element, low as f64 + (high as f64 - low as f64) * share);
    match (element, range) {
        (Element::Bool, _) => Literal::from(x & 1 != 0),
        (Element::F16 | Element::F32 | Element::F64, _) => float().unwrap_or(Literal::zero(element)),
        (_, None) => Literal::from_i128(element, i128::from(x)),
        (_, Some(_)) => {
            let width = (i128::from(high) - i128::from(low)).unsigned_abs();
            Literal::from_i128(element, i128::from(low) + (u128::from(x) % width) as i128)
        }
    }
}
