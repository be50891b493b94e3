//! The parser: recursive descent over tokens.
//!
//! A declaration with an error is left out and reported. The parser continues with the next declaration.

mod declare;
mod expr;
mod foreign;
mod stmt;

use super::ast::{Base, Expr, ExprKind, Ident, Parameter, Program, Type};
use super::lex::lex;
use super::token::{SpannedToken, Token};
use crate::language::codes;
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Span};

/// Maximum nesting of statements and streams, and maximum height of an expression.
const MAX_NESTING: u32 = 256;

/// The result of a part of the parser. An error is not yet reported.
type ParseResult<T> = Result<T, Box<Diagnostic>>;

/// Parses a program.
pub fn parse(source: SourceId, text: &str) -> Result<Program, Diagnostics> {
    let (tokens, errors) = lex(source, text);
    if errors.has_errors() {
        return Err(errors);
    }
    let mut parser = Parser { tokens, at: 0, nesting: 0, errors };
    let program = parser.program();
    if parser.errors.has_errors() { Err(parser.errors) } else { Ok(program) }
}

/// Parses a value that is set from outside: `name=value` or `Stream.name=value`.
pub fn parse_setting(source: SourceId, text: &str) -> Result<Program, Diagnostics> {
    let (tokens, errors) = lex(source, text);
    if errors.has_errors() {
        return Err(errors);
    }
    let mut parser = Parser { tokens, at: 0, nesting: 0, errors };
    let setting = parser.setting().map_err(|error| Diagnostics::from(*error))?;
    Ok(Program { settings: vec![setting], ..Program::default() })
}

struct Parser {
    tokens: Vec<SpannedToken>,
    at: usize,
    nesting: u32,
    errors: Diagnostics,
}

impl Parser {
    fn peek(&self, ahead: usize) -> &Token {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].token
    }

    fn span(&self) -> Span {
        self.tokens[self.at.min(self.tokens.len() - 1)].span
    }

    /// Returns the place of the token before the current one.
    fn before(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }

    fn is_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek(ahead), Token::Word(found) if *found == word)
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> ParseResult<Span> {
        if self.accept(word) { Ok(self.before()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    /// Returns the error that something else was expected at the current token.
    fn unexpected(&self, wanted: &str) -> Box<Diagnostic> {
        let found = self.peek(0);
        let mut error = Diagnostic::error(codes::UNEXPECTED, format!("expected {wanted}, found {found}"));
        error = error.at(self.span(), format!("expected {wanted}"));
        if wanted == "`;`" {
            error = error.label(self.before().after(), "the statement ends here").help("put `;` behind it");
        }
        if let Token::Word(word) = found
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && wanted.contains("name")
        {
            error = error.note(format!("`{word}` is a reserved word")).help("choose another name");
        }
        if matches!(found, Token::End) {
            error = error.help("close what is still open: a `}`, `)` or `]` is missing before");
        }
        Box::new(error)
    }

    fn name(&mut self, wanted: &str) -> ParseResult<Ident> {
        match self.peek(0).clone() {
            Token::Name(name) => {
                self.at += 1;
                Ok(Ident { name, span: self.before() })
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// Parses nested syntax, to a bounded depth.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.nesting >= MAX_NESTING {
            return Err(self.too_deep(self.span()));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    fn too_deep(&self, span: Span) -> Box<Diagnostic> {
        let message = format!("more than {MAX_NESTING} levels of nesting");
        Box::new(
            Diagnostic::error(codes::TOO_DEEP, message).at(span, "too deep here").help("split the expression or the statement"),
        )
    }

    fn make(&self, kind: ExprKind, span: Span, inner: &[u32]) -> ParseResult<Expr> {
        let height = inner.iter().max().copied().unwrap_or(0) + 1;
        if height > MAX_NESTING {
            return Err(self.too_deep(span));
        }
        Ok(Expr { kind, span, height })
    }

    /// Returns the base type that the current token names, if it is a primitive type.
    fn primitive(&self) -> Option<Base> {
        self.primitive_at(0)
    }

    fn primitive_at(&self, ahead: usize) -> Option<Base> {
        Some(match self.peek(ahead) {
            Token::Word("boolean") => Base::Boolean,
            Token::Word("bit") => Base::Bit,
            Token::Word("int") => Base::Int,
            Token::Word("float") => Base::Float,
            Token::Word("double") => Base::Double,
            Token::Word("complex") => Base::Complex,
            _ => return None,
        })
    }

    fn ty(&mut self) -> ParseResult<Type> {
        self.no_constants()?;
        let from = self.span();
        if self.accept("void") {
            return Ok(Type { base: Base::Void, lengths: vec![], span: from });
        }
        if self.accept("portal") {
            self.expect("<")?;
            let name = self.name("the name of a filter")?;
            self.expect(">")?;
            return Ok(Type { base: Base::Portal(name.name), lengths: vec![], span: from.to(self.before()) });
        }
        let base = match (self.primitive(), self.peek(0)) {
            (Some(base), _) => base,
            (None, Token::Name(name)) => Base::Named(name.clone()),
            (None, Token::Word(word @ ("float2" | "float3" | "float4"))) => {
                let error = Diagnostic::error(codes::UNEXPECTED, format!("the vector type `{word}` is not supported"));
                return Err(Box::new(error.at(from, "").help("use a struct of floats, or an array")));
            }
            (None, _) => return Err(self.unexpected("a type")),
        };
        self.at += 1;
        let mut lengths = vec![];
        while self.accept("[") {
            if self.is("]") {
                let error = Diagnostic::error(codes::UNEXPECTED, "the array has no length");
                return Err(Box::new(error.at(self.span(), "").help("write it between the brackets: `int[4] a;`")));
            }
            lengths.push(self.expr()?);
            self.expect("]")?;
        }
        Ok(Type { base, lengths, span: from.to(self.before()) })
    }

    /// Returns the offset after a type that begins at the current token, without parsing its lengths.
    fn behind_type(&self) -> Option<usize> {
        let mut ahead = 1;
        match self.peek(0) {
            Token::Word("void") => return Some(1),
            Token::Word("portal") => return Some(4),
            Token::Name(_) => {}
            _ => drop(self.primitive()?),
        }
        while self.is_at(ahead, "[") {
            let mut open = 0;
            loop {
                match self.peek(ahead) {
                    Token::Word("[") => open += 1,
                    Token::Word("]") => open -= 1,
                    Token::Word(";" | "{" | "}") | Token::End => return None,
                    _ => {}
                }
                ahead += 1;
                if open == 0 {
                    break;
                }
            }
        }
        Some(ahead)
    }

    fn params(&mut self) -> ParseResult<Vec<Parameter>> {
        self.expect("(")?;
        let mut params = vec![];
        while !self.accept(")") {
            if !params.is_empty() {
                self.expect(",")?;
            }
            let start = self.at;
            let ty = self.ty()?;
            let end = self.at;
            params.push(Parameter { ty, name: self.name("the name of a parameter")? });
            self.no_lengths_behind_name(start..end)?;
        }
        Ok(params)
    }
}
