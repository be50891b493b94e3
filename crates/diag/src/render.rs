//! Rendering of diagnostics: source line, caret, notes and help.
//!
//! Only the lines around a label are passed to the renderer, and only a part of very long lines. An error in
//! a huge or malicious file therefore costs no more than one in a small file. Labels near each other are
//! shown in one excerpt.

use crate::{Diagnostic, Diagnostics, Label, Position, Severity, Sources, printable};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt::Write as _;
use std::ops::Range;

/// Bytes of a line shown on each side of a label before the line is cut.
const MARGIN: usize = 200;

/// Maximum number of lines between labels in one excerpt.
const NEAR: usize = 30;

/// Excerpt of a source with one label, or several near each other.
struct Window<'a> {
    name: &'a str,
    text: &'a str,
    first_line: usize,
    /// Line and column of the first mark, if the line is cut and the renderer cannot compute them.
    cut: Option<Position>,
    marks: Vec<(AnnotationKind, Range<usize>, &'a str)>,
}

impl Sources {
    /// Renders a diagnostic as plain text, ending in a newline.
    pub fn render(&self, diagnostic: &Diagnostic) -> String {
        self.render_with(diagnostic, &Renderer::plain())
    }

    /// Renders a diagnostic with terminal colours, ending in a newline.
    pub fn render_styled(&self, diagnostic: &Diagnostic) -> String {
        self.render_with(diagnostic, &Renderer::styled())
    }

    /// Renders all diagnostics as plain text, with the number of those left out.
    pub fn render_all(&self, diagnostics: &Diagnostics) -> String {
        let mut text: String = diagnostics.condensed().iter().map(|d| self.render(d)).collect();
        if diagnostics.left_out() > 0 {
            let _ = writeln!(text, "… and {} more", diagnostics.left_out());
        }
        text
    }

    fn render_with(&self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(printable(&diagnostic.message)).id(diagnostic.code.0);
        let mut group = Group::with_title(title);
        let primary = diagnostic.primary.iter().map(|label| (AnnotationKind::Primary, label));
        let others = diagnostic.labels.iter().map(|label| (AnnotationKind::Context, label));
        for window in self.windows(primary.chain(others).collect()) {
            let marks = window.marks.into_iter().map(|(kind, place, text)| {
                let mark = kind.span(place);
                if text.is_empty() { mark } else { mark.label(printable(text)) }
            });
            let mut snippet = Snippet::source(window.text).line_start(window.first_line);
            match window.cut {
                None => snippet = snippet.path(printable(window.name)),
                Some(Position { line, column }) => {
                    let origin = Origin::path(printable(window.name)).line(line as usize).char_column(column as usize);
                    group = group.element(origin);
                }
            }
            group = group.element(snippet.annotations(marks));
        }
        for note in &diagnostic.notes {
            group = group.element(Level::NOTE.message(printable(note)));
        }
        for help in &diagnostic.helps {
            group = group.element(Level::HELP.message(printable(help)));
        }
        let mut text = renderer.render(&[group]);
        text.push('\n');
        text
    }

    /// Puts all labels into one excerpt if they are near each other, otherwise each into its own.
    fn windows<'a>(&'a self, labels: Vec<(AnnotationKind, &'a Label)>) -> Vec<Window<'a>> {
        let together = self.shared_window(&labels);
        together.map_or_else(|| labels.into_iter().filter_map(|(kind, label)| self.window(kind, label)).collect(), |w| vec![w])
    }

    fn shared_window<'a>(&'a self, labels: &[(AnnotationKind, &'a Label)]) -> Option<Window<'a>> {
        let [(_, first), _, ..] = labels else { return None };
        let source = self.get(first.span.source)?;
        let line_of = |label: &Label| source.line_of(source.clip(label.span.start as usize));
        let lines: Vec<usize> = labels.iter().map(|(_, label)| line_of(label)).collect();
        let (top, bottom) = (*lines.iter().min()?, *lines.iter().max()?);
        let (start, end) = (source.line_start(top), source.line_start(bottom + 1));
        let near = labels.iter().all(|(_, label)| label.span.source == first.span.source) && bottom - top <= NEAR;
        if !near || (top..=bottom).any(|line| source.line_start(line + 1) - source.line_start(line) > 2 * MARGIN) {
            return None;
        }
        let mut marks = vec![];
        for ((kind, label), line) in labels.iter().zip(lines) {
            let last = source.line_end(line);
            let from = source.clip(label.span.start as usize).min(last);
            let to = source.clip(label.span.end as usize).clamp(from, last);
            marks.push((*kind, from - start..to - start, label.text.as_str()));
        }
        let text = source.text()[start..end].trim_end_matches(['\n', '\r']);
        Some(Window { name: source.name(), text, first_line: source.number_of(top) as usize, cut: None, marks })
    }

    fn window<'a>(&'a self, kind: AnnotationKind, label: &'a Label) -> Option<Window<'a>> {
        let source = self.get(label.span.source)?;
        let text = source.text();
        let start = source.clip(label.span.start as usize);
        let line = source.line_of(start);
        // A label that spans several lines is shown on its first line.
        let (line_start, last) = (source.line_start(line), source.line_end(line));
        let start = start.min(last);
        let end = source.clip(label.span.end as usize).clamp(start, last.min(start + MARGIN).max(start));
        let end = source.clip(end);
        let from = if start - line_start > MARGIN { source.clip(start - MARGIN) } else { line_start };
        let to = source.clip(last.min(end + MARGIN)).max(end);
        let marks = vec![(kind, start - from..end - from, label.text.as_str())];
        let cut = (from > line_start).then(|| source.position(start as u32));
        Some(Window { name: source.name(), text: &text[from..to], first_line: source.number_of(line) as usize, cut, marks })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Code, Diagnostic, Diagnostics, Sources};

    #[test]
    fn shows_place_caret_notes_and_help() {
        let mut sources = Sources::new();
        let id = sources.add("a.ptx", "first\nsecond line\nthird\n");
        let text = sources.render(
            &Diagnostic::error(Code("T0001"), "something is off")
                .at(sources.span(id, 6, 12), "this")
                .label(sources.span(id, 0, 5), "because of that")
                .note("a fact")
                .help("an advice"),
        );
        for part in ["error[T0001]: something is off", "a.ptx:2:1", "^^^^^^ this", "because of that", "a fact", "an advice"] {
            assert!(text.contains(part), "{part:?} missing in\n{text}");
        }
    }

    #[test]
    fn labels_near_each_other_share_a_piece() {
        let mut sources = Sources::new();
        let text = "first a\n".to_owned() + &"between\n".repeat(9) + "second a\n" + &"far\n".repeat(99) + "third a\n";
        let id = sources.add("a.ptx", text.as_str());
        let span = |word: &str| {
            let start = text.find(word).unwrap() as u32;
            sources.span(id, start, start + word.len() as u32)
        };
        let error = Diagnostic::error(Code("T0001"), "m").at(span("second"), "again");
        let near = sources.render(&error.clone().label(span("first"), "before"));
        assert_eq!(near.matches("a.ptx").count(), 1, "{near}");
        assert!(near.find("before") < near.find("again"), "{near}");
        let far = sources.render(&error.label(span("third"), "later"));
        assert_eq!(far.matches("a.ptx").count(), 2, "{far}");
    }

    #[test]
    fn survives_spans_that_point_nowhere() {
        let mut sources = Sources::new();
        let id = sources.add("a.ptx", "üü");
        for (start, end) in [(0, 999), (1, 1), (3, 1), (4, 4), (77, 99)] {
            let span = crate::Span { source: id, start, end };
            assert!(sources.render(&Diagnostic::warning(Code("T0002"), "w").at(span, "x")).contains("warning"));
        }
        let empty = sources.add("", "");
        assert!(sources.render(&Diagnostic::error(Code("T0003"), "e").at(sources.span(empty, 0, 0), "x")).contains("error"));
    }

    #[test]
    fn long_lines_are_cut() {
        let mut sources = Sources::new();
        let id = sources.add("a.ptx", "x".repeat(1 << 20));
        let text = sources.render(&Diagnostic::error(Code("T0001"), "m").at(sources.span(id, 500_000, 600_000), "here"));
        assert!(text.len() < 4096);
        assert!(text.contains("a.ptx:1:500001"), "{text}");
    }

    #[test]
    fn the_list_is_bounded() {
        let many: Diagnostics = (0..1000).map(|_| Diagnostic::error(Code("T0001"), "m")).collect();
        assert_eq!(many.iter().count(), Diagnostics::LIMIT);
        assert_eq!(many.error_count(), 1000);
        assert!(Sources::new().render_all(&many).contains("and 900 more"));
    }
}
