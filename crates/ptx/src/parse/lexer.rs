//! Lexer (manual: "Syntax").
//!
//! A word after a dot is one token: `ld.global.f32` is a name and two dotted words, and `%tid.x` is a name
//! and one. Comments, white space, `#` lines and a byte order mark are skipped. Invalid input is reported
//! once per run of bad characters.

use super::codes;
use crate::inst::Imm;
use crate::literal::{self, LiteralError};
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Span};

/// Kind of a token. The span gives the text of a name or word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name: `add`, `%r1`, `$L__BB0_1`, `_`.
    Name,
    /// Word after a dot: `.global`, `.shared::cta`.
    Dotted,
    /// A constant.
    Imm(Imm),
    /// String with its quotes.
    Text,
    /// One character: `,;:[]{}()<>|!@+-*/%&^~=?`.
    Sign(u8),
    /// `@@DWARF` and the rest of its line: debug information in the old style.
    Dwarf,
    /// End of the input.
    End,
}

/// Token with its location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

pub(crate) fn lex(source: SourceId, text: &str, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut lexer = Lexer { source, text, bytes: text.as_bytes(), at: start, diagnostics };
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
                b'\'' => self.character(start),
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
                byte if is_word(byte) || !byte.is_ascii() && self.letter().is_some() => {
                    self.word();
                    TokenKind::Name
                }
                byte if b",;:[]{}()<>|!@+-*/%&^~=?".contains(&byte) => {
                    self.at += 1;
                    TokenKind::Sign(byte)
                }
                _ if self.text[start..].starts_with(['“', '”', '„']) => self.curly_string(start),
                _ => {
                    self.unknown(start);
                    continue;
                }
            };
            return Token { kind, start: start as u32, end: self.at as u32 };
        }
    }

    /// Returns the next character if it is a non-ASCII letter or digit.
    fn letter(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next().filter(|letter| !letter.is_ascii() && letter.is_alphanumeric())
    }

    /// Advances to the end of a word. Non-ASCII letters are included, so that a name with one is reported
    /// once and stays a name.
    fn word(&mut self) {
        let start = self.at;
        let mut foreign = None;
        loop {
            if is_word(self.peek(0)) {
                self.at += 1;
            } else if let Some(letter) = self.letter() {
                foreign.get_or_insert((self.at, letter));
                self.at += letter.len_utf8();
            } else {
                break;
            }
        }
        if let Some((at, letter)) = foreign {
            let place = self.span(at, at + letter.len_utf8());
            let name = shorten(&self.text[start..self.at]);
            self.diagnostics.push(
                Diagnostic::error(codes::BAD_CHARACTER, format!("a name of PTX cannot hold `{letter}`"))
                    .at(place, format!("in `{name}`"))
                    .help("names are made of the letters a to z and A to Z, digits, `_` and `$`"),
            );
        }
    }

    /// Reports `'a'`, which PTX does not have.
    fn character(&mut self, start: usize) -> TokenKind {
        let line = self.text[start + 1..].split('\n').next().unwrap_or("");
        let inside = line.split_once('\'').map(|(inside, _)| inside).filter(|inside| inside.chars().count() <= 4);
        self.at = start + 1 + inside.map_or(0, |inside| inside.len() + 1);
        let diagnostic = Diagnostic::error(codes::BAD_CHARACTER, "PTX has no character constants");
        let diagnostic = diagnostic.at(self.span(start, self.at), "not part of PTX");
        let mut letters = inside.unwrap_or("").chars();
        self.diagnostics.push(match (letters.next(), letters.next()) {
            (Some(letter), None) => diagnostic.help(format!("write its number: {}", u32::from(letter))),
            _ => diagnostic.help("write the number of the character"),
        });
        TokenKind::Imm(Imm::Int(0))
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
        // An escape may have ended inside a character.
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

    /// Reports a string in typographic quotes.
    fn curly_string(&mut self, start: usize) -> TokenKind {
        let line = self.text[start..].split('\n').next().unwrap_or("");
        let quotes = ['“', '”', '„', '"'];
        let first = line.chars().next().map_or(1, char::len_utf8);
        let end = line[first..].find(quotes).map(|at| first + at);
        self.at = start + end.map_or(first, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
        let diagnostic = Diagnostic::error(codes::BAD_CHARACTER, "a string of PTX stands in straight quotes");
        self.diagnostics.push(diagnostic.at(self.span(start, self.at), "in curly quotes").help("write `\"` on both sides"));
        TokenKind::Text
    }

    fn number(&mut self, start: usize) -> TokenKind {
        self.word();
        let hexadecimal =
            self.bytes[start] == b'0' && matches!(self.bytes.get(start + 1), Some(b'x' | b'X' | b'f' | b'F' | b'd' | b'D'));
        if !hexadecimal {
            // `1.5`, `1.` and `1.e5`, but not `1.x`.
            let exponent = matches!(self.peek(1), b'e' | b'E') && matches!(self.peek(2), b'0'..=b'9' | b'+' | b'-');
            if self.peek(0) == b'.' && (self.peek(1).is_ascii_digit() || !is_word(self.peek(1)) || exponent) {
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
                self.diagnostics.push(bad_number(text, error, place));
                TokenKind::Imm(Imm::Int(0))
            }
        }
    }

    fn unknown(&mut self, start: usize) {
        let known = |at: usize| {
            let byte = self.bytes[at];
            is_word(byte)
                || byte.is_ascii_whitespace()
                || b"\"',;:[]{}()<>|!@+-*/%&^~=?".contains(&byte)
                || byte == b'.' && self.bytes.get(at + 1).is_some_and(|next| is_word(*next))
        };
        self.at += 1;
        while self.at < self.bytes.len() && !known(self.at) {
            self.at += 1;
        }
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        let place = self.span(start, self.at);
        let text = &self.text[start..self.at];
        let diagnostic = match text {
            "." => Diagnostic::error(codes::BAD_CHARACTER, "a `.` without a word")
                .at(place, "expected a word right behind it, as in `.f32`"),
            text => Diagnostic::error(codes::BAD_CHARACTER, format!("{} has no meaning in PTX", visible(text)))
                .at(place, "not part of any token"),
        };
        self.diagnostics.push(diagnostic);
    }
}

/// Formats characters for a message: as they are, or as code points if they are invisible.
fn visible(text: &str) -> String {
    let seen = |c: char| c.is_ascii_graphic() || !c.is_ascii() && !c.is_control() && !c.is_whitespace() && c != '\u{feff}';
    if text.chars().all(seen) {
        return format!("`{}`", shorten(text));
    }
    let numbers: Vec<String> = text.chars().take(4).map(|c| format!("U+{:04X}", u32::from(c))).collect();
    let more = if text.chars().nth(4).is_some() { " …" } else { "" };
    let plural = if numbers.len() > 1 { "s" } else { "" };
    format!("the character{plural} {}{more}", numbers.join(" "))
}

fn bad_number(text: &str, error: LiteralError, place: Span) -> Diagnostic {
    const NOTATIONS: &str = "integers are written 42, 0x2A, 052 or 0b101010; floats 1.5, 0f3FC00000 or 0d3FF8000000000000";
    let diagnostic = Diagnostic::error(codes::BAD_NUMBER, format!("`{}` is not a constant of PTX", shorten(text)));
    match error {
        LiteralError::Digit { letter, base: 8 } => diagnostic
            .at(place, format!("`{letter}` is not an octal digit"))
            .help("a leading 0 makes a number octal; leave it out for a decimal one"),
        LiteralError::Digit { letter, base: 10 } if letter.is_ascii_hexdigit() => {
            diagnostic.at(place, format!("`{letter}` is not a decimal digit")).help("a hexadecimal number starts with `0x`")
        }
        LiteralError::Digit { letter, base } => {
            let kind = match base {
                2 => "a binary",
                16 => "a hexadecimal",
                _ => "a decimal",
            };
            diagnostic.at(place, format!("`{letter}` is not {kind} digit")).help(NOTATIONS)
        }
        LiteralError::NoDigits => diagnostic.at(place, "digits are missing").help(NOTATIONS),
        LiteralError::Float if text.ends_with(['f', 'F', 'h', 'd']) => {
            diagnostic.at(place, "a float of PTX has no suffix").help(NOTATIONS)
        }
        LiteralError::Float => diagnostic.at(place, "not a float").help(NOTATIONS),
        LiteralError::TooLarge => {
            let message = format!("`{}` does not fit 64 bits", shorten(text));
            Diagnostic::error(codes::BAD_NUMBER, message)
                .at(place, "too large")
                .note(format!("the largest integer is {}", u64::MAX))
        }
        LiteralError::FloatDigits => diagnostic
            .at(place, "the bits of a float in the wrong number of digits")
            .help("`0f` takes exactly 8 hexadecimal digits, `0d` exactly 16"),
    }
}

/// Shortens a text for a message.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
