//! The lexer: text to tokens.
//!
//! Names are case-insensitive. `%` opens and closes a comment. A backquote makes any next character a
//! literal. In a string a backslash takes the next character unchanged, so `"\n"` is the string `n`. Texts
//! are bytes: a character outside ASCII is several elements of a string.

use crate::codes;
use crate::syntax::{Mark, Name, Token, TokenKind, Word};
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Span};

/// Splits a text into tokens, the last of which is [`TokenKind::End`]. Characters that start no token are
/// reported and skipped.
pub fn lex(source: SourceId, text: &str, diagnostics: &mut Diagnostics) -> Vec<Token> {
    // Some editors start a text with a byte order mark.
    let first = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Lexer { source, text: text.as_bytes(), at: first, diagnostics };
    let mut tokens = vec![];
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        let at_margin = start == first || lexer.text[start - 1] == b'\n';
        if let Some(kind) = lexer.next_kind() {
            let end = kind == TokenKind::End;
            tokens.push(Token { kind, span: lexer.span(start), at_margin });
            if end {
                return tokens;
            }
        }
    }
}

struct Lexer<'a> {
    source: SourceId,
    text: &'a [u8],
    at: usize,
    diagnostics: &'a mut Diagnostics,
}

impl Lexer<'_> {
    fn span(&self, start: usize) -> Span {
        Span { source: self.source, start: start as u32, end: self.at as u32 }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_blank(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            if byte == b'%' {
                let open = self.at;
                match self.text[open + 1..].iter().position(|&byte| byte == b'%') {
                    Some(length) => self.at = open + length + 2,
                    None => {
                        self.at = open + 1;
                        let place = self.span(open);
                        self.at = self.text.len();
                        self.diagnostics.push(
                            Diagnostic::error(codes::OPEN_COMMENT, "a comment is not closed")
                                .at(place, "the comment begins here")
                                .help("a comment begins and ends with `%`; the remainder of an integer division is `rem(a, b)`"),
                        );
                    }
                }
            } else if byte.is_ascii_whitespace() {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn next_kind(&mut self) -> Option<TokenKind> {
        let Some(&byte) = self.text.get(self.at) else { return Some(TokenKind::End) };
        match byte {
            b'"' => Some(self.string()),
            b'`' => self.character(),
            b'0'..=b'9' => Some(self.number()),
            b'.' if self.peek(1).is_ascii_digit() => Some(self.number()),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Some(self.word()),
            _ => self.mark(),
        }
    }

    fn string(&mut self) -> TokenKind {
        let open = self.at;
        self.at += 1;
        let mut bytes = vec![];
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => return TokenKind::Text(bytes.into()),
                b'\\' if self.at < self.text.len() => {
                    bytes.push(self.text[self.at]);
                    self.at += 1;
                }
                _ => bytes.push(byte),
            }
        }
        let place = Span { source: self.source, start: open as u32, end: open as u32 + 1 };
        self.diagnostics.push(
            Diagnostic::error(codes::OPEN_STRING, "a string is not closed")
                .at(place, "the string begins here")
                .help("a string ends with `\"`; a quote inside of a string is written `\\\"`"),
        );
        TokenKind::Text(bytes.into())
    }

    fn character(&mut self) -> Option<TokenKind> {
        self.at += 1;
        let Some(&byte) = self.text.get(self.at) else {
            let place = self.span(self.at - 1);
            self.diagnostics.push(Diagnostic::error(codes::BAD_CHARACTER, "no character behind the backquote").at(place, ""));
            return None;
        };
        self.at += 1;
        if !byte.is_ascii() {
            let start = self.at - 2;
            while self.peek(0) & 0xC0 == 0x80 {
                self.at += 1;
            }
            let place = self.span(start);
            self.diagnostics.push(
                Diagnostic::error(codes::BAD_CHARACTER, "a character literal is one byte")
                    .at(place, "this character takes several bytes")
                    .help("a string can hold it: its bytes are separate elements"),
            );
        }
        Some(TokenKind::Char(byte))
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        let mut float = false;
        self.digits();
        if self.peek(0) == b'.' {
            float = true;
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                float = true;
                self.at += 1 + sign;
                self.digits();
            }
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("0");
        if float {
            TokenKind::Float(text.parse().unwrap_or(f64::INFINITY))
        } else {
            TokenKind::Int(text.parse().unwrap_or(u64::MAX))
        }
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
            self.at += 1;
        }
        let name = Name::new(std::str::from_utf8(&self.text[start..self.at]).unwrap_or("_"));
        match Word::ALL.iter().find(|word| word.text() == name.as_str()) {
            Some(&word) => TokenKind::Word(word),
            None => TokenKind::Name(name),
        }
    }

    fn mark(&mut self) -> Option<TokenKind> {
        let rest = &self.text[self.at..];
        if let Some(&mark) = Mark::ALL.iter().find(|mark| rest.starts_with(mark.text().as_bytes())) {
            self.at += mark.text().len();
            return Some(TokenKind::Mark(mark));
        }
        let start = self.at;
        self.at += 1;
        while self.peek(0) & 0xC0 == 0x80 {
            self.at += 1;
        }
        let (place, text) = (self.span(start), String::from_utf8_lossy(&self.text[start..self.at]).into_owned());
        let text: String = text.chars().flat_map(char::escape_default).collect();
        self.diagnostics.push(
            Diagnostic::error(codes::BAD_CHARACTER, format!("`{text}` does not belong to NESL outside of strings"))
                .at(place, "this character has no meaning here"),
        );
        None
    }
}
