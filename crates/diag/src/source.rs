//! Named texts and places in them.

use std::fmt;
use std::sync::Arc;

/// Names one text in a [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(u32);

/// A range of bytes in one source.
///
/// The default span is empty, at the start of the first source: what is made by a program and not by a person.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The text.
    pub source: SourceId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of `self` to the end of `other`, both in the same source.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { source: self.source, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The empty span right behind this one.
    #[must_use]
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }

    /// Whether this span names nothing in a text: the span of things made by a program.
    pub fn is_synthetic(self) -> bool {
        self == Span::default()
    }
}

impl Default for Span {
    fn default() -> Self {
        Span { source: SourceId(0), start: 0, end: 0 }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}..{}", self.source.0, self.start, self.end)
    }
}

/// A line and a column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// One text with its name and an index of its lines.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: Arc<str>,
    line_starts: Vec<u32>,
}

impl Source {
    fn new(name: String, text: Arc<str>) -> Self {
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect();
        Source { name, text, line_starts }
    }

    /// Its name for a person: a path, or a word such as `<stdin>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte; an offset beyond the end is the end.
    pub fn position(&self, offset: u32) -> Position {
        let offset = self.clip(offset as usize);
        let line = self.line_of(offset);
        let start = self.line_starts[line] as usize;
        let column = self.text[start..offset].chars().count() as u32 + 1;
        Position { line: line as u32 + 1, column }
    }

    /// The line of text, from 1, without its end; `None` past the last line.
    pub fn line(&self, line: u32) -> Option<&str> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.line_starts.get(index)? as usize;
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |&next| next as usize);
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// Index from 0 of the line that holds a byte.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start as usize <= offset) - 1
    }

    /// First byte of a line, by index from 0; the end of the text past the last line.
    pub(crate) fn line_start(&self, index: usize) -> usize {
        self.line_starts.get(index).map_or(self.text.len(), |&start| start as usize)
    }

    /// One past the last byte of a line, its end not counted, by index from 0.
    pub(crate) fn line_end(&self, index: usize) -> usize {
        let start = self.line_start(index);
        start + self.text[start..self.line_start(index + 1)].trim_end_matches(['\n', '\r']).len()
    }

    /// The nearest character boundary at or below an offset.
    pub(crate) fn clip(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// All texts of one run.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    sources: Vec<Source>,
}

impl Sources {
    /// No texts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a text in. Texts beyond 4 GiB cannot be addressed by spans: callers limit their input far below that.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> SourceId {
        self.sources.push(Source::new(name.into(), text.into()));
        SourceId(self.sources.len() as u32 - 1)
    }

    /// The text behind an id that this table handed out.
    pub fn get(&self, id: SourceId) -> Option<&Source> {
        self.sources.get(id.0 as usize)
    }

    /// A span in one of the texts.
    pub fn span(&self, source: SourceId, start: u32, end: u32) -> Span {
        Span { source, start, end: end.max(start) }
    }

    /// The text that a span covers, empty when it points nowhere.
    pub fn text(&self, span: Span) -> &str {
        let Some(source) = self.get(span.source) else { return "" };
        let (start, end) = (source.clip(span.start as usize), source.clip(span.end as usize));
        &source.text()[start..end.max(start)]
    }

    /// `name:line:column` of the start of a span.
    pub fn place(&self, span: Span) -> String {
        match self.get(span.source) {
            Some(source) => {
                let at = source.position(span.start);
                format!("{}:{}:{}", source.name(), at.line, at.column)
            }
            None => "<nowhere>".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let mut sources = Sources::new();
        let id = sources.add("t", "ab\nüx\n\nend");
        let source = sources.get(id).unwrap();
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(3), Position { line: 2, column: 1 });
        assert_eq!(source.position(5), Position { line: 2, column: 2 });
        assert_eq!(source.position(99), Position { line: 4, column: 4 });
        assert_eq!(source.line(2), Some("üx"));
        assert_eq!(source.line(3), Some(""));
        assert_eq!(source.line(5), None);
    }

    #[test]
    fn spans_inside_characters_are_clipped() {
        let mut sources = Sources::new();
        let id = sources.add("t", "üü");
        assert_eq!(sources.text(sources.span(id, 1, 3)), "ü");
    }
}
