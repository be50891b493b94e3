//! Tokens.

use broadloom_diag::Span;
use std::fmt;
use std::sync::Arc;

/// Reserved words.
pub(super) const KEYWORDS: [&str; 52] = [
    "add",
    "bit",
    "body",
    "boolean",
    "break",
    "case",
    "complex",
    "continue",
    "default",
    "do",
    "double",
    "duplicate",
    "else",
    "enqueue",
    "false",
    "feedbackloop",
    "filter",
    "float",
    "float2",
    "float3",
    "float4",
    "for",
    "handler",
    "helper",
    "if",
    "init",
    "int",
    "iter",
    "join",
    "loop",
    "native",
    "peek",
    "pi",
    "pipeline",
    "pop",
    "portal",
    "prework",
    "push",
    "return",
    "roundrobin",
    "split",
    "splitjoin",
    "stateful",
    "static",
    "struct",
    "switch",
    "template",
    "to",
    "true",
    "void",
    "while",
    "work",
];

/// Operators and punctuation, the longest first.
pub(super) const PUNCTUATION: [&str; 41] = [
    "<<=", ">>=", "->", "++", "--", "+=", "-=", "*=", "/=", "&&", "||", "<<", ">>", "==", "!=", "<=", ">=", "(", ")", "{", "}",
    "[", "]", "+", "-", "*", "/", "%", "&", "|", "^", "~", "=", "<", ">", "?", ":", ";", ",", ".", "!",
];

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// An identifier.
    Name(Arc<str>),
    /// An integer of 32 bits.
    Int(i32),
    /// A number with a point, an exponent or the suffix `f`, or an integer beyond 32 bits.
    Float(f32),
    /// An imaginary number.
    Imaginary(f32),
    /// A string, its escapes replaced.
    Text(Arc<str>),
    /// A reserved word, an operator or punctuation.
    Word(&'static str),
    /// The end of the text.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Int(value) => write!(f, "`{value}`"),
            Token::Float(_) | Token::Imaginary(_) => f.write_str("a number"),
            Token::Text(_) => f.write_str("a string"),
            Token::Word(word) => write!(f, "`{word}`"),
            Token::End => f.write_str("the end of the file"),
        }
    }
}

/// A token and its place.
#[derive(Clone, Debug)]
pub(super) struct SpannedToken {
    pub token: Token,
    /// Its place.
    pub span: Span,
}
