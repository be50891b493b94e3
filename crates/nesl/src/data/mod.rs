//! Data in files: CSV, JSON lines and NumPy's `.npy`, as columns of the values of one type.
//!
//! A reader fills [`Cells`], one vector for each scalar of the type, and never holds a row as a value. An error has
//! the byte at which it was found; [`place`] gives its line and column.

mod cells;
mod csv;
mod json;
mod npy;
mod write;

pub(crate) use cells::{Cells, LineFormat};
pub(crate) use npy::read as read_npy;
pub(crate) use write::{Cell, npy as npy_of, text as text_of};

use crate::infer::Widths;
use crate::vcode::Layout;
use cells::{Read, fail};

/// Reads a text with one value on each line. `names`: the fields of JSON objects. Returns a single sequence.
pub(crate) fn read_lines(format: LineFormat, text: &[u8], element: &Layout, names: &[Vec<u8>], widths: Widths) -> Read<Cells> {
    let Some(mut cells) = Cells::new(element) else { return fail(0, "a file holds no functions") };
    let count = match format {
        LineFormat::Csv => csv::read(text, &mut cells, widths)?,
        LineFormat::Json => json::read(text, &mut cells, names, widths)?,
    };
    Ok(Cells::Seq(vec![count], Box::new(cells)))
}

/// Returns the line and the column of a byte, both from 1.
pub(crate) fn place(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    (line, at.min(text.len()) - start + 1)
}
