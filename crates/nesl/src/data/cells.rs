//! Columns of values of one type, and errors with their place in a file.

use crate::infer::Widths;
use crate::vcode::Layout;

/// Format of a text with one value on each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFormat {
    Csv,
    Json,
}

impl LineFormat {
    /// Returns the format for its number in the library.
    pub(crate) fn of(number: i64) -> LineFormat {
        if number == 0 { LineFormat::Csv } else { LineFormat::Json }
    }
}

/// Error in a file: the byte at which it was found, and the reason.
#[derive(Debug)]
pub(crate) struct DataError {
    pub(crate) at: usize,
    pub(crate) reason: String,
}

pub(super) type Read<T> = Result<T, DataError>;

pub(super) fn fail<T>(at: usize, reason: impl Into<String>) -> Read<T> {
    Err(DataError { at, reason: reason.into() })
}

/// Values of one type: a vector for each scalar.
#[derive(Debug)]
pub(crate) enum Cells {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Char(Vec<u8>),
    /// The lengths of sequences, and their elements.
    Seq(Vec<usize>, Box<Cells>),
    Pair(Box<(Cells, Cells)>),
}

impl Cells {
    /// Makes cells without values; `None` for a type with functions.
    pub(crate) fn new(layout: &Layout) -> Option<Cells> {
        Some(match layout {
            Layout::Int => Cells::Int(vec![]),
            Layout::Float => Cells::Float(vec![]),
            Layout::Bool => Cells::Bool(vec![]),
            Layout::Char => Cells::Char(vec![]),
            Layout::Nothing => return None,
            Layout::Seq(element) => Cells::Seq(vec![], Box::new(Cells::new(element)?)),
            Layout::Pair(first, rest) => Cells::Pair(Box::new((Cells::new(first)?, Cells::new(rest)?))),
        })
    }

    /// Lists the fields of tuples in order.
    pub(super) fn fields<'a>(&'a mut self, out: &mut Vec<&'a mut Cells>) {
        match self {
            Cells::Pair(parts) => {
                let (first, rest) = &mut **parts;
                first.fields(out);
                rest.fields(out);
            }
            field => out.push(field),
        }
    }

    /// Describes the type.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Cells::Int(_) => "an int",
            Cells::Float(_) => "a float",
            Cells::Bool(_) => "a bool",
            Cells::Char(_) => "a character",
            Cells::Seq(_, element) if matches!(**element, Cells::Char(_)) => "a string",
            Cells::Seq(..) => "a sequence",
            Cells::Pair(_) => "a tuple",
        }
    }

    /// Adds the value that a word stands for.
    pub(super) fn push_word(&mut self, word: &[u8], widths: Widths, at: usize) -> Read<()> {
        let text = String::from_utf8_lossy(word);
        let text = text.trim();
        let pushed = match self {
            Cells::Int(values) => match text.parse::<i64>() {
                Ok(value) if widths.wide_int || i32::try_from(value).is_ok() => {
                    values.push(value);
                    true
                }
                Ok(_) => return fail(at, format!("{text} is outside of the range of ints; `--int 64` has a larger one")),
                Err(_) => false,
            },
            Cells::Float(values) => {
                let value = text.parse::<f64>().ok().map(|value| rounded(value, widths));
                values.extend(value);
                value.is_some()
            }
            Cells::Bool(values) => {
                let value = match text {
                    "T" | "t" | "true" | "True" | "TRUE" | "1" => Some(true),
                    "F" | "f" | "false" | "False" | "FALSE" | "0" => Some(false),
                    _ => None,
                };
                values.extend(value);
                value.is_some()
            }
            Cells::Char(values) => {
                values.extend(Some(word).filter(|word| word.len() == 1).into_iter().flatten());
                word.len() == 1
            }
            Cells::Seq(lengths, element) => match &mut **element {
                Cells::Char(characters) => {
                    lengths.push(word.len());
                    characters.extend_from_slice(word);
                    true
                }
                _ => false,
            },
            Cells::Pair(_) => false,
        };
        if pushed { Ok(()) } else { fail(at, format!("`{}` is not {}", shortened(text), self.name())) }
    }
}

pub(super) fn rounded(value: f64, widths: Widths) -> f64 {
    if widths.narrow_float { f64::from(value as f32) } else { value }
}

/// Returns the beginning of a text for a message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
