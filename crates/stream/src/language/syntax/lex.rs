//! The lexer.

use super::token::{KEYWORDS, PUNCTUATION, SpannedToken, Token};
use crate::language::codes;
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Span};

/// Splits a text into tokens. The last one is [`Token::End`].
pub(super) fn lex(source: SourceId, text: &str) -> (Vec<SpannedToken>, Diagnostics) {
    let mut lexer = Lexer { source, text, at: 0, tokens: vec![], errors: Diagnostics::new() };
    lexer.run();
    (lexer.tokens, lexer.errors)
}

struct Lexer<'a> {
    source: SourceId,
    text: &'a str,
    at: usize,
    tokens: Vec<SpannedToken>,
    errors: Diagnostics,
}

impl Lexer<'_> {
    fn span(&self, from: usize) -> Span {
        Span { source: self.source, start: from as u32, end: self.at as u32 }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) {
        while self.at < self.text.len() && !self.errors.is_full() {
            let from = self.at;
            let token = match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c => {
                    self.at += 1;
                    continue;
                }
                b'/' if self.byte(1) == b'/' => {
                    self.at = self.text[from..].find('\n').map_or(self.text.len(), |length| from + length);
                    continue;
                }
                b'/' if self.byte(1) == b'*' => {
                    self.comment();
                    continue;
                }
                b'0'..=b'9' => self.number(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
                b'"' => self.string(),
                _ => self.punctuation(),
            };
            if let Some(token) = token {
                let span = self.span(from);
                self.tokens.push(SpannedToken { token, span });
            }
        }
        self.at = self.text.len();
        let span = self.span(self.at);
        self.tokens.push(SpannedToken { token: Token::End, span });
    }

    fn comment(&mut self) {
        let from = self.at;
        match self.text[from + 2..].find("*/") {
            Some(length) => self.at = from + length + 4,
            None => {
                self.at = (from + 2).min(self.text.len());
                let error = Diagnostic::error(codes::OPEN_COMMENT, "the comment has no end");
                self.errors.push(error.at(self.span(from), "it begins here").help("close it with `*/`"));
                self.at = self.text.len();
            }
        }
    }

    fn skip_while(&mut self, test: impl Fn(u8) -> bool) {
        while test(self.byte(0)) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> Option<Token> {
        let from = self.at;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let word = &self.text[from..self.at];
        Some(match KEYWORDS.iter().find(|keyword| **keyword == word) {
            Some(keyword) => Token::Word(keyword),
            None => Token::Name(word.into()),
        })
    }

    fn number(&mut self) -> Option<Token> {
        let from = self.at;
        if self.byte(0) == b'0' && self.byte(1) == b'x' {
            self.at += 2;
            self.skip_while(|byte| byte.is_ascii_hexdigit());
            let digits = self.text[from + 2..self.at].trim_start_matches('0');
            if self.at == from + 2 || digits.len() > 8 {
                let error = Diagnostic::error(codes::BAD_NUMBER, "a hexadecimal number has 1 to 8 digits");
                self.errors.push(error.at(self.span(from), "").help("integers have 32 bits"));
                return Some(Token::Int(0));
            }
            return Some(Token::Int(u32::from_str_radix(digits, 16).unwrap_or(0) as i32));
        }
        self.skip_while(|byte| byte.is_ascii_digit());
        let mut whole = true;
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            whole = false;
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + sign).is_ascii_digit() {
            whole = false;
            self.at += 1 + sign;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        let digits = &self.text[from..self.at];
        let token = match self.byte(0) {
            b'i' => Token::Imaginary(digits.parse().unwrap_or(f32::INFINITY)),
            b'f' => Token::Float(digits.parse().unwrap_or(f32::INFINITY)),
            _ => match digits.parse() {
                Ok(value) if whole => Token::Int(value),
                _ => Token::Float(digits.parse().unwrap_or(f32::INFINITY)),
            },
        };
        self.at += usize::from(matches!(self.byte(0), b'i' | b'f'));
        if self.byte(0).is_ascii_alphabetic() || self.byte(0) == b'_' {
            self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let message = format!("`{}` is neither a number nor a name", &self.text[from..self.at]);
            let error = Diagnostic::error(codes::BAD_NUMBER, message).at(self.span(from), "");
            self.errors.push(error.help("names begin with a letter or `_`"));
        }
        Some(token)
    }

    fn string(&mut self) -> Option<Token> {
        let from = self.at;
        let mut value = String::new();
        self.at += 1;
        loop {
            let Some(next) = self.text[self.at..].chars().next().filter(|next| *next != '\n') else {
                let error = Diagnostic::error(codes::BAD_STRING, "the string has no end on its line");
                self.errors.push(error.at(self.span(from), "it begins here").help("close it with `\"`"));
                return Some(Token::Text(value.into()));
            };
            self.at += next.len_utf8();
            match next {
                '"' => return Some(Token::Text(value.into())),
                '\\' => self.escape(&mut value),
                _ => value.push(next),
            }
        }
    }

    fn escape(&mut self, value: &mut String) {
        let from = self.at - 1;
        let simple = match self.byte(0) {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            other @ (b'"' | b'\'' | b'\\') => other as char,
            b'0'..=b'7' => {
                let most = if self.byte(0) <= b'3' { 3 } else { 2 };
                let mut code = 0;
                for _ in 0..most {
                    if !matches!(self.byte(0), b'0'..=b'7') {
                        break;
                    }
                    code = code * 8 + u32::from(self.byte(0) - b'0');
                    self.at += 1;
                }
                value.extend(char::from_u32(code));
                return;
            }
            _ => {
                let error = Diagnostic::error(codes::BAD_STRING, "unknown escape in a string");
                let help = "the escapes are \\n \\r \\t \\b \\f \\\" \\' \\\\ and octal numbers";
                self.errors.push(error.at(self.span(from), "").help(help));
                return;
            }
        };
        self.at += 1;
        value.push(simple);
    }

    fn punctuation(&mut self) -> Option<Token> {
        let from = self.at;
        let rest = &self.text[from..];
        if let Some(word) = PUNCTUATION.iter().find(|word| rest.starts_with(**word)) {
            self.at += word.len();
            return Some(Token::Word(word));
        }
        let character = rest.chars().next().unwrap_or(' ');
        self.at += character.len_utf8();
        if rest.starts_with("#include") {
            // `include` is a declaration; the preprocessor's sign before it changes nothing.
            return None;
        }
        if character == '\'' {
            // The rest of a character literal causes no further errors.
            let end = rest[1..].find(['\'', '\n']).filter(|end| *end <= 4 && rest.as_bytes()[end + 1] == b'\'');
            self.at += end.map_or(0, |end| end + 1);
            let error = Diagnostic::error(codes::BAD_CHARACTER, "there are no character literals").at(self.span(from), "");
            self.errors.push(error.help("use the number of the character"));
            return Some(Token::Int(0));
        }
        let error =
            Diagnostic::error(codes::BAD_CHARACTER, format!("the character `{}` begins no token", character.escape_debug()));
        let error = error.at(self.span(from), "");
        self.errors.push(match character {
            '#' => error.help(
                "there is no preprocessor: constants stand in `static { int n = 4; }`, further files by `include \"part.str\";`",
            ),
            _ => error,
        });
        None
    }
}
