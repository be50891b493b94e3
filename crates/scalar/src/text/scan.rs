//! Lines, and the scanner of a line.

use super::UNEXPECTED;
use crate::types::{Element, Type};
use broadloom_diag::{Diagnostic, SourceId, Sources, Span};

/// The non-empty lines of a text. `//` starts a comment.
#[derive(Clone, Debug)]
pub struct Lines<'t> {
    source: SourceId,
    text: &'t str,
    /// Start of the next line.
    at: usize,
}

/// A line without its indentation and comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    source: SourceId,
    text: &'t str,
    start: usize,
    /// Column of its first character, from 0.
    pub indent: usize,
}

impl<'t> Lines<'t> {
    /// Returns the lines of a source.
    pub fn new(sources: &'t Sources, source: SourceId) -> Lines<'t> {
        Lines { source, text: sources.get(source).map_or("", |source| source.text()), at: 0 }
    }

    /// Returns the next line without taking it.
    pub fn peek(&self) -> Option<Line<'t>> {
        self.clone().next()
    }

    /// Returns the place after the last line.
    pub fn end(&self) -> Span {
        let end = self.text.trim_end().len() as u32;
        Span { source: self.source, start: end, end }
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        while self.at < self.text.len() {
            let start = self.at;
            let length = self.text[start..].find('\n').unwrap_or(self.text.len() - start);
            self.at = (start + length + 1).min(self.text.len());
            let line = &self.text[start..start + length];
            let line = line.split("//").next().unwrap_or("").trim_end();
            let indent = line.len() - line.trim_start().len();
            if indent < line.len() {
                return Some(Line { source: self.source, text: &line[indent..], start: start + indent, indent });
            }
        }
        None
    }
}

impl<'t> Line<'t> {
    /// Returns the line without its end and its comment.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns its place.
    pub fn span(&self) -> Span {
        Span { source: self.source, start: self.start as u32, end: (self.start + self.text.len()) as u32 }
    }

    /// Returns a scanner of the line.
    pub fn scan(&self) -> Scanner<'t> {
        Scanner { line: *self, at: 0 }
    }
}

/// A scanner that splits a line from left to right and skips blanks.
#[derive(Clone, Debug)]
pub struct Scanner<'t> {
    line: Line<'t>,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.line.text[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Takes a number of bytes.
    fn take(&mut self, length: usize) -> &'t str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    /// Returns the number of bytes taken so far, including blanks.
    pub fn at(&mut self) -> usize {
        self.skip();
        self.at
    }

    /// Returns the place of the text taken since [`Scanner::at`] returned this number.
    pub fn since(&self, start: usize) -> Span {
        let start = start.min(self.at);
        let end = start + self.line.text[start..self.at].trim_end().len();
        Span { source: self.line.source, start: (self.line.start + start) as u32, end: (self.line.start + end) as u32 }
    }

    /// Returns true if nothing is left.
    pub fn is_end(&mut self) -> bool {
        self.skip();
        self.rest().is_empty()
    }

    /// Returns true if this text comes next.
    pub fn sees(&mut self, text: &str) -> bool {
        self.skip();
        self.rest().starts_with(text)
    }

    /// Takes this text if it comes next.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.sees(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Takes this text. Returns an error if something else comes next.
    pub fn expect(&mut self, text: &str) -> Result<(), Box<Diagnostic>> {
        if self.eat(text) { Ok(()) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    /// Takes this word if it comes next as a whole.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let before = self.at;
        if self.word() == Some(word) {
            return true;
        }
        self.at = before;
        false
    }

    /// Takes a name: letters, digits and `_`, without a digit at the start.
    pub fn word(&mut self) -> Option<&'t str> {
        self.skip();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let length = self.rest().bytes().take_while(|byte| is_part(*byte)).count();
        let starts = self.rest().bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        (length > 0 && starts).then(|| self.take(length))
    }

    /// Takes a name. `what` describes it in the error.
    pub fn name(&mut self, what: &str) -> Result<&'t str, Box<Diagnostic>> {
        self.word().ok_or_else(|| self.unexpected(what))
    }

    /// Takes the text of a literal: a number, optionally followed by a type, or `true`, `false`, `inf`,
    /// `NaN`, `nan(0x…)`.
    pub fn literal(&mut self) -> Option<&'t str> {
        self.skip();
        let bytes = self.rest().as_bytes();
        let sign = usize::from(bytes.first() == Some(&b'-'));
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let mut length = sign + bytes[sign..].iter().take_while(|byte| is_word(byte)).count();
        let word = &self.rest()[sign..length];
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            let known = ["true", "false", "inf", "NaN", "nan"];
            if !known.iter().any(|name| word.strip_prefix(name).is_some_and(|type_| type_.is_empty() || is_type(type_))) {
                return None;
            }
            if bytes.get(length) == Some(&b'(') && word == "nan" {
                length += bytes[length..].iter().position(|byte| *byte == b')')? + 1;
                length += bytes[length..].iter().take_while(|byte| is_word(byte)).count();
            }
            return Some(self.take(length));
        }
        // A fraction, unless two points form a range. An exponent with its sign may follow.
        if bytes.get(length) == Some(&b'.') && bytes.get(length + 1).is_some_and(u8::is_ascii_digit) {
            length += 1 + bytes[length + 1..].iter().take_while(|byte| is_word(byte)).count();
        }
        let is_decimal = !word.starts_with("0x");
        if is_decimal && matches!(bytes[length - 1], b'e' | b'E') && matches!(bytes.get(length), Some(b'-' | b'+')) {
            length += 1 + bytes[length + 1..].iter().take_while(|byte| is_word(byte)).count();
        }
        Some(self.take(length))
    }

    /// Takes an integer.
    pub fn integer<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, Box<Diagnostic>> {
        let start = self.at();
        let length = usize::from(self.sees("-"));
        let digits = self.rest()[length..].bytes().take_while(u8::is_ascii_digit).count();
        let text = self.take(length + digits);
        text.parse().map_err(|_| match digits {
            0 => self.unexpected(what),
            _ => Box::new(
                Diagnostic::error(super::BAD_VALUE, format!("`{text}` is not {what}")).at(self.since(start), "out of range"),
            ),
        })
    }

    /// Takes a type.
    pub fn ty(&mut self) -> Result<Type, Box<Diagnostic>> {
        let start = self.at();
        let word = self.name("a type")?;
        type_of(word).ok_or_else(|| {
            let names = Element::ALL.map(Element::name).join(", ");
            let help = format!("types are {names}, and vectors of 2 to 4 lanes such as f32x4");
            Box::new(Diagnostic::error(UNEXPECTED, format!("`{word}` is not a type")).at(self.since(start), "here").help(help))
        })
    }

    /// Takes items separated by commas, up to the end of the list.
    pub fn list<T>(
        &mut self,
        end: &str,
        mut one: impl FnMut(&mut Self) -> Result<T, Box<Diagnostic>>,
    ) -> Result<Vec<T>, Box<Diagnostic>> {
        let mut found = vec![];
        if self.eat(end) {
            return Ok(found);
        }
        loop {
            found.push(one(self)?);
            if self.eat(end) {
                return Ok(found);
            }
            if !self.eat(",") {
                return Err(self.unexpected(&format!("`,` or `{end}`")));
            }
        }
    }

    /// Returns an error if something is left.
    pub fn finish(&mut self) -> Result<(), Box<Diagnostic>> {
        if self.is_end() { Ok(()) } else { Err(self.unexpected("the end of the line")) }
    }

    /// Returns an error for the next text, if something else is wanted.
    pub fn unexpected(&mut self, wanted: &str) -> Box<Diagnostic> {
        self.skip();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = self.rest().find(|c: char| !is_word(c)).unwrap_or(self.rest().len());
        let first = self.rest().chars().next().map_or(0, char::len_utf8);
        let start = self.at;
        let found = &self.rest()[..word.max(first)];
        let mut behind = self.clone();
        behind.at += found.len();
        let message = match found {
            "" => format!("{wanted} is missing at the end of the line"),
            found => format!("expected {wanted}, found `{found}`"),
        };
        Box::new(Diagnostic::error(UNEXPECTED, message).at(behind.since(start), "here"))
    }
}

/// Returns the type with this name.
pub(super) fn type_of(name: &str) -> Option<Type> {
    Element::ALL.into_iter().find_map(|element| {
        let rest = name.strip_prefix(element.name())?;
        match rest.strip_prefix('x') {
            None => rest.is_empty().then_some(element.into()),
            Some(lanes) => lanes.parse().ok().filter(|lanes| *lanes > 1).and_then(|lanes| Type::vector(element, lanes)),
        }
    })
}

fn is_type(name: &str) -> bool {
    Element::ALL.iter().any(|element| element.name() == name)
}
