//! Control characters in texts of inputs, shown as symbols.

use std::borrow::Cow;

/// Replaces control characters by visible symbols, except for newlines and tabs. A name in an untrusted file
/// therefore cannot send control sequences to a terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let symbol = |c: char| match c {
        '\n' | '\t' => c,
        '\u{7f}' => '␡',
        // Unicode has a symbol for each of the first 32 characters.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\u{80}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        _ => c,
    };
    Cow::Owned(text.chars().map(symbol).collect())
}

#[cfg(test)]
mod tests {
    use super::printable;
    use crate::{Code, Diagnostic, Sources};

    #[test]
    fn control_characters_become_symbols() {
        assert_eq!(printable("a\u{1b}[31m\u{7f}\u{9b}1m\0\n\tb"), "a␛[31m␡\u{fffd}1m␀\n\tb");
        assert_eq!(printable("größe"), "größe");
    }

    /// No part of a diagnostic that an input decides reaches the terminal as a control sequence.
    #[test]
    fn diagnostics_have_no_control_sequences() {
        let mut sources = Sources::new();
        let id = sources.add("\u{1b}[31mx.ptx", "one \u{1b}[31m line\n");
        let diagnostic = Diagnostic::error(Code("T0001"), "message \u{1b}[31m")
            .at(sources.span(id, 0, 3), "label \u{1b}[31m")
            .note("note \u{1b}[31m")
            .help("help \u{1b}[31m");
        let text = sources.render(&diagnostic);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        for part in ["␛[31mx.ptx:1:1", "one ␛[31m line", "message ␛", "label ␛", "note ␛", "help ␛"] {
            assert!(text.contains(part), "{part:?} missing in\n{text}");
        }
    }
}
