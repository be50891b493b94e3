//! Values as CSV, JSON lines and `.npy`.

use super::cells::LineFormat;
use crate::infer::Widths;
use std::fmt;

/// A value that is written.
#[derive(Debug)]
pub(crate) enum Cell {
    Int(i64),
    Float(f64),
    Bool(bool),
    Char(u8),
    Text(Vec<u8>),
    Seq(Vec<Cell>),
    /// The fields of a tuple.
    Fields(Vec<Cell>),
}

/// Reason why a format cannot hold a value.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// Another number of names than of fields.
    Names {
        names: usize,
        fields: usize,
    },
    CsvField,
    /// A tuple in an array of NumPy.
    Tuple,
    /// Two rows of an array with different numbers of elements.
    Ragged {
        size: usize,
        length: usize,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Names { names, fields } => write!(f, "{names} names are given for {fields} fields"),
            WriteError::CsvField => f.write_str("a field of a CSV file is a number, a bool, a character or a string"),
            WriteError::Tuple => f.write_str("an array of NumPy holds numbers, bools or characters, not tuples"),
            WriteError::Ragged { size, length } => {
                write!(f, "the rows of an array have one length: here they have {size} and {length} elements")
            }
        }
    }
}

/// Writes a value on each line.
pub(crate) fn text(format: LineFormat, rows: &[Cell], names: &[Vec<u8>]) -> Result<Vec<u8>, WriteError> {
    let mut out = vec![];
    for row in rows {
        let fields = if let Cell::Fields(fields) = row { &fields[..] } else { std::slice::from_ref(row) };
        match format {
            LineFormat::Csv => {
                for (number, field) in fields.iter().enumerate() {
                    out.extend((number > 0).then_some(b','));
                    csv(field, &mut out)?;
                }
            }
            LineFormat::Json if names.is_empty() => json(row, &mut out),
            LineFormat::Json if names.len() != fields.len() => {
                return Err(WriteError::Names { names: names.len(), fields: fields.len() });
            }
            LineFormat::Json => {
                for (number, (name, field)) in names.iter().zip(fields).enumerate() {
                    out.push(if number == 0 { b'{' } else { b',' });
                    quoted(name, &mut out);
                    out.push(b':');
                    json(field, &mut out);
                }
                out.push(b'}');
            }
        }
        out.push(b'\n');
    }
    Ok(out)
}

fn csv(field: &Cell, out: &mut Vec<u8>) -> Result<(), WriteError> {
    match field {
        Cell::Text(text) => csv_text(text, out),
        Cell::Char(code) => csv_text(&[*code], out),
        Cell::Seq(_) | Cell::Fields(_) => {
            return Err(WriteError::CsvField);
        }
        Cell::Int(_) | Cell::Float(_) | Cell::Bool(_) => scalar(field, out),
    }
    Ok(())
}

fn csv_text(text: &[u8], out: &mut Vec<u8>) {
    let blank = text.first().is_none_or(u8::is_ascii_whitespace) || text.last().is_some_and(u8::is_ascii_whitespace);
    if !blank && !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        out.extend((*byte == b'"').then_some(b'"'));
        out.push(*byte);
    }
    out.push(b'"');
}

fn scalar(value: &Cell, out: &mut Vec<u8>) {
    let text = match value {
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => format!("{value:?}"),
        Cell::Bool(value) => value.to_string(),
        Cell::Char(_) | Cell::Text(_) | Cell::Seq(_) | Cell::Fields(_) => return,
    };
    out.extend_from_slice(text.as_bytes());
}

fn json(value: &Cell, out: &mut Vec<u8>) {
    match value {
        Cell::Text(text) => quoted(text, out),
        Cell::Char(code) => quoted(&[*code], out),
        Cell::Seq(values) | Cell::Fields(values) => {
            out.push(b'[');
            for (number, value) in values.iter().enumerate() {
                out.extend((number > 0).then_some(b','));
                json(value, out);
            }
            out.push(b']');
        }
        // JSON has no number that is not finite.
        Cell::Float(value) if !value.is_finite() => out.extend_from_slice(b"null"),
        Cell::Int(_) | Cell::Float(_) | Cell::Bool(_) => scalar(value, out),
    }
}

fn quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            0..=31 => out.extend(format!("\\u{byte:04x}").into_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// Writes a value as an array of NumPy. Sequences of one level must have one length.
pub(crate) fn npy(value: &Cell, widths: Widths) -> Result<Vec<u8>, WriteError> {
    let (mut sizes, mut own) = (vec![], value);
    loop {
        own = match own {
            Cell::Seq(values) => {
                sizes.push(values.len());
                match values.first() {
                    Some(first) => first,
                    None => break,
                }
            }
            Cell::Text(text) => {
                sizes.push(text.len());
                break;
            }
            _ => break,
        };
    }
    let ty = match own {
        Cell::Int(_) if widths.wide_int => "<i8",
        Cell::Int(_) => "<i4",
        Cell::Float(_) | Cell::Seq(_) if !widths.narrow_float => "<f8",
        Cell::Float(_) | Cell::Seq(_) => "<f4",
        Cell::Bool(_) => "|b1",
        Cell::Char(_) | Cell::Text(_) => "|u1",
        Cell::Fields(_) => return Err(WriteError::Tuple),
    };
    let list: String = sizes.iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({}), }}", list.trim_end());
    header.push_str(&" ".repeat((64 - (10 + header.len() + 1) % 64) % 64));
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.into_bytes());
    elements(value, &sizes, ty, &mut out)?;
    Ok(out)
}

fn elements(value: &Cell, sizes: &[usize], ty: &str, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let ragged = |length: usize, size: usize| Err(WriteError::Ragged { size, length });
    match value {
        Cell::Seq(values) => {
            let Some((size, sizes)) = sizes.split_first() else { return ragged(values.len(), 0) };
            if *size != values.len() {
                return ragged(values.len(), *size);
            }
            values.iter().try_for_each(|value| elements(value, sizes, ty, out))?;
        }
        Cell::Text(text) => {
            if sizes != [text.len()] {
                return ragged(text.len(), sizes.first().copied().unwrap_or(0));
            }
            out.extend_from_slice(text);
        }
        Cell::Int(value) if ty == "<i8" => out.extend(value.to_le_bytes()),
        Cell::Int(value) => out.extend((*value as i32).to_le_bytes()),
        Cell::Float(value) if ty == "<f4" => out.extend((*value as f32).to_le_bytes()),
        Cell::Float(value) => out.extend(value.to_le_bytes()),
        Cell::Bool(value) => out.push(u8::from(*value)),
        Cell::Char(code) => out.push(*code),
        Cell::Fields(_) => return Err(WriteError::Tuple),
    }
    Ok(())
}
