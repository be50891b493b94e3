//! `.npy` files of NumPy, versions 1 to 3, in C order. The depth of nesting of the type is the number of axes.

use super::cells::{Cells, Read, fail, rounded};
use crate::infer::Widths;
use crate::vcode::Layout;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array as one value of a type.
pub(crate) fn read(bytes: &[u8], layout: &Layout, widths: Widths) -> Read<Cells> {
    let Some(mut cells) = Cells::new(layout) else { return fail(0, "a file holds no functions") };
    let length = match bytes.get(..MAGIC.len() + 2) {
        Some(start) if start.starts_with(MAGIC) && start[6] == 1 => {
            bytes.get(8..10).map(|l| (10usize, u16::from_le_bytes([l[0], l[1]]) as usize))
        }
        Some(start) if start.starts_with(MAGIC) && (2..=3).contains(&start[6]) => {
            bytes.get(8..12).map(|l| (12usize, u32::from_le_bytes([l[0], l[1], l[2], l[3]]) as usize))
        }
        _ => return fail(0, "the file is not in the format of NumPy"),
    };
    let header = length.and_then(|(start, length)| Some((bytes.get(start..start.checked_add(length)?)?, start + length)));
    let Some((header, start)) = header else { return fail(8, "the header has no end") };
    let header = String::from_utf8_lossy(header).into_owned();
    let value = |name: &str| header.split_once(&format!("'{name}':")).map(|(_, rest)| rest.trim_start());
    if value("fortran_order").is_some_and(|order| order.starts_with("True")) {
        return fail(10, "the array is in Fortran order; `np.ascontiguousarray` converts it");
    }
    let ty = value("descr").and_then(|text| text.strip_prefix('\'')).and_then(|text| text.split_once('\'')).map(|(ty, _)| ty);
    let shape =
        value("shape").and_then(|text| text.strip_prefix('(')).and_then(|text| text.split_once(')')).map(|(shape, _)| shape);
    let (Some(ty), Some(shape)) = (ty, shape) else {
        return fail(10, "the header has no type or no shape, or the type is a record");
    };
    let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty()).map(str::parse::<usize>);
    let Ok(sizes) = sizes.collect::<Result<Vec<usize>, _>>() else {
        return fail(10, format!("the shape ({shape}) is not a list of sizes"));
    };
    let element = ElementType::of(ty).filter(|element| element.size > 0);
    let Some(element) = element else { return fail(10, format!("elements of the type `{ty}` cannot be read")) };
    let count = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    let data = count.and_then(|count| bytes.get(start..start.checked_add(count.checked_mul(element.size)?)?));
    let Some(data) = data else { return fail(bytes.len(), "the file ends before the elements do") };
    let mut own = &mut cells;
    let mut groups = 1;
    for size in &sizes {
        let Cells::Seq(lengths, inner) = own else {
            return fail(10, format!("the array has {} axes, more than the type has levels", sizes.len()));
        };
        if groups > bytes.len() {
            return fail(10, "the array has too many empty rows");
        }
        lengths.resize(groups, *size);
        groups *= size;
        own = &mut **inner;
    }
    let elements = data.chunks_exact(element.size).map(|bytes| element.value(bytes));
    let at = |index: usize| start + index * element.size;
    match own {
        Cells::Float(values) => values.extend(elements.map(|value| rounded(value.float(), widths))),
        Cells::Bool(values) if element.kind == b'b' => values.extend(elements.map(|value| value.int() != 0)),
        Cells::Char(values) if element.size == 1 => values.extend(elements.map(|value| value.int() as u8)),
        Cells::Int(values) if element.kind != b'f' => {
            for (index, value) in elements.enumerate() {
                let value = i64::try_from(value.wide()).ok().filter(|value| widths.wide_int || i32::try_from(*value).is_ok());
                let Some(value) = value else {
                    return fail(at(index), "an element is outside of the range of ints; `--int 64` has a larger one");
                };
                values.push(value);
            }
        }
        other => {
            let name = other.name();
            return fail(10, format!("an element of the type `{ty}` is not {name}, or the array has too few axes"));
        }
    }
    Ok(cells)
}

struct ElementType {
    kind: u8,
    size: usize,
    is_big: bool,
}

/// Element: an int or a float.
enum Element {
    Int(i128),
    Float(f64),
}

impl Element {
    fn wide(&self) -> i128 {
        match self {
            Element::Int(value) => *value,
            Element::Float(value) => *value as i128,
        }
    }

    fn int(&self) -> i64 {
        self.wide() as i64
    }

    fn float(&self) -> f64 {
        match self {
            Element::Int(value) => *value as f64,
            Element::Float(value) => *value,
        }
    }
}

impl ElementType {
    fn of(ty: &str) -> Option<ElementType> {
        let (order, kind) = match ty.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), kind, ..] => (*order, *kind),
            _ => return None,
        };
        let size: usize = ty.get(2..)?.parse().ok()?;
        let is_known = match kind {
            b'b' => size == 1,
            b'i' | b'u' => matches!(size, 1 | 2 | 4 | 8),
            b'f' => matches!(size, 4 | 8),
            _ => false,
        };
        is_known.then_some(ElementType { kind, size, is_big: order == b'>' })
    }

    fn value(&self, bytes: &[u8]) -> Element {
        let mut word = [0u8; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        if self.is_big {
            word[..bytes.len()].reverse();
        }
        let word = u64::from_le_bytes(word);
        let shift = 64 - 8 * self.size as u32;
        match (self.kind, self.size) {
            (b'f', 4) => Element::Float(f64::from(f32::from_bits(word as u32))),
            (b'f', _) => Element::Float(f64::from_bits(word)),
            (b'i', _) => Element::Int(i128::from((word << shift) as i64 >> shift)),
            _ => Element::Int(i128::from(word)),
        }
    }
}
