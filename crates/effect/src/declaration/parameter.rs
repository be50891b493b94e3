//! Parameters of effects and their values as text.

use super::choice::Choice;
use broadloom_skeleton::Rule;
use std::fmt;
use std::path::PathBuf;

/// A parameter of an effect.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name in `--set`.
    pub name: &'static str,
    /// Values that it accepts.
    pub kind: Kind,
    /// Default as text; `None` if a value is required.
    pub default: Option<&'static str>,
    /// One line of documentation.
    pub doc: &'static str,
}

/// Values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Integers in an inclusive range.
    Integer(i64, i64),
    /// Odd integers in an inclusive range.
    Odd(i64, i64),
    /// Finite numbers in an inclusive range.
    Number(f64, f64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Comma-separated numbers up to 10³⁰: the given count, or any even count of at least 4 if it is 0.
    Numbers(usize),
    /// Comma-separated planes: names, or `NEW=OLD` for a plane under another name, or `NEW=0.5` for a plane of one
    /// value.
    Planes,
    /// The path of a file that is read.
    File,
}

/// Plane of a list of planes.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaneChoice {
    /// Name in the result.
    pub name: String,
    /// Content of the plane.
    pub source: PlaneSource,
}

/// Content of a plane of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum PlaneSource {
    /// The plane of the image with this name.
    Plane(String),
    /// One value everywhere.
    Value(f64),
}

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// A word of a list.
    Choice(&'static str),
    /// Several numbers.
    Numbers(Vec<f64>),
    /// Selected planes, in their order.
    Planes(Vec<PlaneChoice>),
    /// The path of a file that is read.
    File(PathBuf),
}

/// Boundary rule of an effect that reads around a pixel.
pub(super) const BOUNDARY: Parameter = Parameter {
    name: "boundary",
    kind: Kind::Choice(Rule::WORDS),
    default: None,
    doc: "pixels outside of the image: the nearest, mirrored without repeating the edge, wrapped, or constant",
};

/// Value outside the image if the rule is `constant`.
pub(super) const BORDER: Parameter = Parameter {
    name: "border",
    kind: Kind::Number(-1e30, 1e30),
    default: Some("0"),
    doc: "value outside of the image with boundary=constant",
};

/// Maximum value in a list, because devices compute in `f32`.
const MAX_NUMBER: f64 = 1e30;

/// Maximum number of values in a list.
const MAX_NUMBERS: usize = 1024;

/// Text that is no value of a parameter. The message lists the possible values.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("it takes {0}")]
pub struct InvalidValue(Kind);

impl Kind {
    /// Parses a value.
    pub fn parse(self, text: &str) -> Result<Value, InvalidValue> {
        let text = text.trim();
        match self {
            Kind::Integer(low, high) | Kind::Odd(low, high) => {
                let is_odd = |value: &i64| !matches!(self, Kind::Odd(..)) || value % 2 == 1;
                let value = text.parse().ok().filter(|value| (low..=high).contains(value) && is_odd(value));
                value.map(Value::Integer)
            }
            Kind::Number(low, high) => number(text).filter(|value| (low..=high).contains(value)).map(Value::Number),
            Kind::Choice(words) => words.iter().find(|word| **word == text).map(|word| Value::Choice(word)),
            Kind::Numbers(count) => {
                let small = |value: &f64| value.abs() <= MAX_NUMBER;
                let numbers = text.split(',').take(MAX_NUMBERS + 1).map(|word| number(word.trim()).filter(small));
                let numbers = numbers.collect::<Option<Vec<f64>>>();
                let fits = |len: usize| match count {
                    0 => len >= 4 && len.is_multiple_of(2) && len <= MAX_NUMBERS,
                    _ => len == count,
                };
                numbers.filter(|numbers| fits(numbers.len())).map(Value::Numbers)
            }
            Kind::Planes => planes(text).map(Value::Planes),
            Kind::File => (!text.is_empty()).then(|| Value::File(text.into())),
        }
        .ok_or(InvalidValue(self))
    }

    /// Returns a short name of the kind: `integer`, `number`, `choice`, `numbers`, `planes`, `file`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Integer(..) | Kind::Odd(..) => "integer",
            Kind::Number(..) => "number",
            Kind::Choice(_) => "choice",
            Kind::Numbers(_) => "numbers",
            Kind::Planes => "planes",
            Kind::File => "file",
        }
    }
}

/// Parses a list of planes with different names.
fn planes(text: &str) -> Option<Vec<PlaneChoice>> {
    let plane = |word: &str| {
        let word = word.trim();
        let (name, source) = word.split_once('=').map_or((word, word), |(name, source)| (name.trim(), source.trim()));
        let value = number(source).filter(|value| word.contains('=') && value.abs() <= MAX_NUMBER);
        let source = value.map_or_else(|| PlaneSource::Plane(source.to_owned()), PlaneSource::Value);
        let is_named = !name.is_empty() && source != PlaneSource::Plane(String::new());
        is_named.then(|| PlaneChoice { name: name.to_owned(), source })
    };
    let planes = text.split(',').take(MAX_NUMBERS + 1).map(plane).collect::<Option<Vec<PlaneChoice>>>()?;
    let is_new = |(index, plane): (usize, &PlaneChoice)| planes[..index].iter().all(|other| other.name != plane.name);
    (planes.len() <= MAX_NUMBERS && planes.iter().enumerate().all(is_new)).then_some(planes)
}

/// Parses a finite number.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Integer(low, high) => write!(out, "an integer from {low} to {high}"),
            Kind::Odd(low, high) => write!(out, "an odd integer from {low} to {high}"),
            Kind::Number(low, high) => write!(out, "a number from {} to {}", Bound(*low), Bound(*high)),
            Kind::Choice(words) => write!(out, "one of {}", words.join(", ")),
            Kind::Numbers(0) => write!(out, "an even number of at least 4 numbers from -1e30 to 1e30, with commas between them"),
            Kind::Numbers(count) => write!(out, "{count} numbers from -1e30 to 1e30, with commas between them"),
            Kind::Planes => {
                write!(
                    out,
                    "planes with commas between them: names, NEW=OLD for a plane under another name, or NEW=0.5 for one value"
                )
            }
            Kind::File => write!(out, "a file"),
        }
    }
}

/// End of a range, formatted for readers: `10000`, `0.01`, `1e30`.
struct Bound(f64);

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 == 0.0 || (1e-3..=1e6).contains(&self.0.abs()) {
            true => write!(out, "{}", self.0),
            false => write!(out, "{:e}", self.0),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => write!(out, "{value}"),
            Value::Number(value) => write!(out, "{value}"),
            Value::Choice(word) => out.write_str(word),
            Value::Numbers(values) => {
                let words: Vec<String> = values.iter().map(f64::to_string).collect();
                out.write_str(&words.join(","))
            }
            Value::Planes(planes) => {
                let words: Vec<String> = planes.iter().map(PlaneChoice::to_string).collect();
                out.write_str(&words.join(","))
            }
            Value::File(path) => write!(out, "{}", path.display()),
        }
    }
}

impl fmt::Display for PlaneChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            PlaneSource::Plane(name) if *name == self.name => out.write_str(name),
            PlaneSource::Plane(name) => write!(out, "{}={name}", self.name),
            PlaneSource::Value(value) => write!(out, "{}={value}", self.name),
        }
    }
}
