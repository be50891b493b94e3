//! CSV as in RFC 4180: fields between commas, quoted fields with `""` for a quote. Blank lines are skipped, and so is
//! a first line with a word where a number or a bool belongs.

use super::cells::{Cells, Read, fail};
use crate::infer::Widths;
use std::borrow::Cow;

/// Reads rows into cells; returns their number.
pub(super) fn read(text: &[u8], cells: &mut Cells, widths: Widths) -> Read<usize> {
    let mut fields = vec![];
    cells.fields(&mut fields);
    if let Some(field) = fields.iter().find(|field| matches!(field, Cells::Seq(..)) && field.name() == "a sequence") {
        return fail(0, format!("a field of a CSV file is a number, a bool, a character or a string, not {}", field.name()));
    }
    let (mut at, mut count) = (0, 0);
    let mut is_first = true;
    while at < text.len() {
        if let Some(blank) = end_of_line(text, at) {
            at = blank;
            continue;
        }
        if std::mem::take(&mut is_first) && is_header(text, &fields, widths)? {
            while end_of_line(text, at).is_none() && at < text.len() {
                at = field(text, at)?.1;
                at += usize::from(text.get(at) == Some(&b','));
            }
            continue;
        }
        for (number, cells) in fields.iter_mut().enumerate() {
            if number > 0 {
                if text.get(at) != Some(&b',') {
                    return fail(at, format!("the line has {number} fields, not {}", fields.len()));
                }
                at += 1;
            }
            let (word, end) = field(text, at)?;
            cells.push_word(&word, widths, at)?;
            at = end;
        }
        if at < text.len() && end_of_line(text, at).is_none() {
            return fail(at, format!("the line has more than {} fields", fields.len()));
        }
        count += 1;
    }
    Ok(count)
}

/// Returns the place behind the end of a line if there is one.
fn end_of_line(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..) {
        Some([b'\r', b'\n', ..]) => Some(at + 2),
        Some([b'\n', ..]) => Some(at + 1),
        _ => None,
    }
}

/// Returns the field at a place and the place behind it.
fn field(text: &[u8], at: usize) -> Read<(Cow<'_, [u8]>, usize)> {
    if text.get(at) != Some(&b'"') {
        let length = text[at..].iter().position(|byte| matches!(byte, b',' | b'\n')).unwrap_or(text.len() - at);
        let mut end = at + length;
        if text.get(end) != Some(&b',') && end > at && text[end - 1] == b'\r' {
            end -= 1;
        }
        return Ok((text[at..end].into(), end));
    }
    let (mut word, mut end) = (vec![], at + 1);
    loop {
        match text.get(end..) {
            Some([b'"', b'"', ..]) => {
                word.push(b'"');
                end += 2;
            }
            Some([b'"', ..]) => {
                end += 1;
                let is_end = end == text.len() || text[end] == b',' || end_of_line(text, end).is_some();
                return if is_end { Ok((word.into(), end)) } else { fail(end, "a comma belongs behind a quoted field") };
            }
            Some([byte, ..]) => {
                word.push(*byte);
                end += 1;
            }
            _ => return fail(at, "the quoted field has no end"),
        }
    }
}

/// Tells whether the first line has words where numbers or bools belong.
fn is_header(text: &[u8], fields: &[&mut Cells], widths: Widths) -> Read<bool> {
    let mut at = 0;
    for cells in fields {
        let (word, end) = field(text, at)?;
        let mut sample = match cells {
            Cells::Int(_) | Cells::Float(_) => Cells::Float(vec![]),
            Cells::Bool(_) => Cells::Bool(vec![]),
            Cells::Char(_) | Cells::Seq(..) | Cells::Pair(_) => {
                at = end + usize::from(text.get(end) == Some(&b','));
                continue;
            }
        };
        if sample.push_word(&word, widths, at).is_err() {
            return Ok(true);
        }
        at = end + usize::from(text.get(end) == Some(&b','));
    }
    Ok(false)
}
