//! Diagnostics as text: the source line, a caret, notes and help.
//!
//! Only the lines around a label reach the renderer, and of very long lines only the part around it, so that an error in
//! a huge or hostile file costs no more than one in a small file.

use crate::{Diagnostic, Diagnostics, Label, Severity, Sources};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt::Write as _;
use std::ops::Range;

/// Bytes of a line shown on each side of a label before the line is cut.
const MARGIN: usize = 200;

/// A cut-out of a source that holds one label.
struct Window<'a> {
    name: &'a str,
    text: &'a str,
    first_line: usize,
    marked: Range<usize>,
}

impl Sources {
    /// One diagnostic as plain text, ending in a newline.
    pub fn render(&self, diagnostic: &Diagnostic) -> String {
        self.render_with(diagnostic, &Renderer::plain())
    }

    /// One diagnostic with colours for a terminal, ending in a newline.
    pub fn render_styled(&self, diagnostic: &Diagnostic) -> String {
        self.render_with(diagnostic, &Renderer::styled())
    }

    /// All diagnostics as plain text, and how many were left out.
    pub fn render_all(&self, diagnostics: &Diagnostics) -> String {
        let mut text: String = diagnostics.iter().map(|d| self.render(d)).collect();
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
        let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.0);
        let mut group = Group::with_title(title);
        let primary = diagnostic.primary.iter().map(|label| (AnnotationKind::Primary, label));
        let others = diagnostic.labels.iter().map(|label| (AnnotationKind::Context, label));
        let mut windows: Vec<(AnnotationKind, &Label, Window<'_>)> = vec![];
        for (kind, label) in primary.chain(others) {
            windows.extend(self.window(label).map(|window| (kind, label, window)));
        }
        for (kind, label, window) in &windows {
            let mut mark = kind.span(window.marked.clone());
            if !label.text.is_empty() {
                mark = mark.label(label.text.as_str());
            }
            let snippet = Snippet::source(window.text).path(window.name).line_start(window.first_line).annotation(mark);
            group = group.element(snippet);
        }
        for note in &diagnostic.notes {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        for help in &diagnostic.helps {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let mut text = renderer.render(&[group]);
        text.push('\n');
        text
    }

    fn window(&self, label: &Label) -> Option<Window<'_>> {
        let source = self.get(label.span.source)?;
        let text = source.text();
        let start = source.clip(label.span.start as usize);
        let line = source.line_of(start);
        let (line_start, line_end) = (source.line_start(line), source.line_start(line + 1));
        // A label that runs over several lines is shown on its first: that is where a person starts to read.
        let last = line_start + text[line_start..line_end].trim_end_matches(['\n', '\r']).len();
        let start = start.min(last);
        let end = source.clip(label.span.end as usize).clamp(start, last.min(start + MARGIN).max(start));
        let end = source.clip(end);
        let from = if start - line_start > MARGIN { source.clip(start - MARGIN) } else { line_start };
        let to = source.clip(last.min(end + MARGIN)).max(end);
        Some(Window { name: source.name(), text: &text[from..to], first_line: line + 1, marked: start - from..end - from })
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
    }

    #[test]
    fn the_list_is_bounded() {
        let many: Diagnostics = (0..1000).map(|_| Diagnostic::error(Code("T0001"), "m")).collect();
        assert_eq!(many.iter().count(), Diagnostics::LIMIT);
        assert_eq!(many.error_count(), 1000);
        assert!(Sources::new().render_all(&many).contains("and 900 more"));
    }
}
