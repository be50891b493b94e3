//! Text to tokens (manual: "Syntax").
//!
//! A word behind a dot is one token, so that `ld.global.f32` is a name and two dotted words, and `%tid.x` a name and one.
//! Comments, white space and `#` lines vanish. What cannot be a token is reported once per run of bad characters.

use super::codes;
use crate::inst::Imm;
use crate::literal::{self, LiteralError};
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Span};

/// What a token is. The text of a name or word is found through its span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name: `add`, `%r1`, `$L__BB0_1`, `_`.
    Name,
    /// A word behind a dot: `.global`, `.shared::cta`.
    Dotted,
    /// A constant.
    Imm(Imm),
    /// A string, quotes included.
    Text,
    /// One character: `,;:[]{}()<>|!@+-*/%&^~=?`.
    Sign(u8),
    /// `@@DWARF` and the rest of its line: debug information in the old style.
    Dwarf,
    /// Behind the last.
    End,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

pub(crate) fn lex(source: SourceId, text: &str, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let mut lexer = Lexer { source, text, bytes: text.as_bytes(), at: 0, diagnostics };
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        let token = lexer.next();
        tokens.push(token);
        if token.kind == TokenKind::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    source: SourceId,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    diagnostics: &'a mut Diagnostics,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span { source: self.source, start: start as u32, end: end as u32 }
    }

    fn next(&mut self) -> Token {
        loop {
            self.skip_blank();
            let start = self.at;
            let kind = match self.peek(0) {
                0 if self.at >= self.bytes.len() => TokenKind::End,
                b'"' => self.string(start),
                b'.' if is_word(self.peek(1)) => {
                    self.at += 1;
                    self.word();
                    // `::` joins words of one modifier: `.L1::evict_last`.
                    while self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) {
                        self.at += 2;
                        self.word();
                    }
                    TokenKind::Dotted
                }
                b'@' if self.text[self.at..].starts_with("@@DWARF") => {
                    self.line();
                    TokenKind::Dwarf
                }
                b'0'..=b'9' => self.number(start),
                b'%' if is_word(self.peek(1)) && !self.peek(1).is_ascii_digit() => {
                    self.at += 1;
                    self.word();
                    TokenKind::Name
                }
                byte if is_word(byte) => {
                    self.word();
                    TokenKind::Name
                }
                byte if b",;:[]{}()<>|!@+-*/%&^~=?".contains(&byte) => {
                    self.at += 1;
                    TokenKind::Sign(byte)
                }
                _ => {
                    self.unknown(start);
                    continue;
                }
            };
            return Token { kind, start: start as u32, end: self.at as u32 };
        }
    }

    fn word(&mut self) {
        while is_word(self.peek(0)) {
            self.at += 1;
        }
    }

    fn line(&mut self) {
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
    }

    fn skip_blank(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, _) => self.at += 1,
                (b'/', b'/') => self.line(),
                (b'#', _) if self.at == 0 || self.bytes[self.at - 1] == b'\n' => self.line(),
                (b'/', b'*') => {
                    let start = self.at;
                    match self.text[self.at + 2..].find("*/") {
                        Some(length) => self.at += 2 + length + 2,
                        None => {
                            self.at = self.bytes.len();
                            let place = self.span(start, start + 2);
                            self.diagnostics.push(
                                Diagnostic::error(codes::OPEN_COMMENT, "a comment is never closed")
                                    .at(place, "opened here")
                                    .help("add `*/` where it ends"),
                            );
                        }
                    }
                }
                _ => return,
            }
        }
    }

    fn string(&mut self, start: usize) -> TokenKind {
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return TokenKind::Text;
                }
                b'\n' => break,
                b'\\' if self.at + 1 < self.bytes.len() && self.bytes[self.at + 1] != b'\n' => self.at += 2,
                _ => self.at += 1,
            }
        }
        // An escape may have jumped into a character.
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        let place = self.span(start, self.at);
        self.diagnostics.push(
            Diagnostic::error(codes::OPEN_STRING, "a string is not closed on its line")
                .at(place, "opened here")
                .help("add the closing `\"`"),
        );
        TokenKind::Text
    }

    fn number(&mut self, start: usize) -> TokenKind {
        self.word();
        let hexadecimal =
            self.bytes[start] == b'0' && matches!(self.bytes.get(start + 1), Some(b'x' | b'X' | b'f' | b'F' | b'd' | b'D'));
        if !hexadecimal {
            if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
                self.at += 1;
                self.word();
            }
            let exponent = matches!(self.bytes[self.at - 1], b'e' | b'E');
            if exponent && matches!(self.peek(0), b'+' | b'-') && self.peek(1).is_ascii_digit() {
                self.at += 1;
                self.word();
            }
        }
        let text = &self.text[start..self.at];
        match literal::read(text) {
            Ok(imm) => TokenKind::Imm(imm),
            Err(error) => {
                let place = self.span(start, self.at);
                let diagnostic = Diagnostic::error(codes::BAD_NUMBER, format!("`{}` is not a constant of PTX", shorten(text)));
                self.diagnostics.push(match error {
                    LiteralError::Digit => diagnostic
                        .at(place, "a digit that does not belong here")
                        .help("integers are written 42, 0x2A, 052 or 0b101010; floats 1.5, 0f3FC00000 or 0d3FF8000000000000"),
                    LiteralError::TooLarge => diagnostic.at(place, "does not fit 64 bits"),
                    LiteralError::FloatDigits => diagnostic
                        .at(place, "the bits of a float in the wrong number of digits")
                        .help("`0f` takes exactly 8 hexadecimal digits, `0d` exactly 16"),
                });
                TokenKind::Imm(Imm::Int(0))
            }
        }
    }

    fn unknown(&mut self, start: usize) {
        let known = |byte: u8| is_word(byte) || byte.is_ascii_whitespace() || b"\",;:[]{}()<>|!@+-*/%&^~=?".contains(&byte);
        self.at += 1;
        while self.at < self.bytes.len() && !known(self.bytes[self.at]) {
            self.at += 1;
        }
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        let place = self.span(start, self.at);
        let text = shorten(&self.text[start..self.at]);
        self.diagnostics.push(
            Diagnostic::error(codes::BAD_CHARACTER, format!("`{}` has no meaning in PTX", text.escape_default()))
                .at(place, "not part of any token"),
        );
    }
}

/// A text short enough for a message.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(std::iter::once('…')).collect() }
}
