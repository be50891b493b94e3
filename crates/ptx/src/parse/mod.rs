//! PTX text to [`Module`].
//!
//! Recursive descent over tokens. A mistake is reported and the parser goes on behind the next `;` or `}`, so one run finds
//! several. A module is returned only when there was no error.
//!
//! Limits, all checked: [`MAX_INPUT`] bytes of text, [`MAX_DEPTH`] levels of braces, brackets or parentheses,
//! [`MAX_VECTOR`] elements in braces of an operand. Memory stays a small multiple of the input: `%r<4000000000>` costs
//! nothing until a register of it is used, and array sizes are numbers, not storage.

mod body;
pub mod codes;
mod declare;
mod directive;
mod expression;
mod instruction;
mod lexer;
mod names;
mod operand;

use crate::inst::Symbol;
use crate::module::{Alias, Func, Item, Module, Target};
use crate::types::IsaVersion;
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Sources, Span};
use lexer::{Token, TokenKind, shorten};
use std::collections::HashMap;

/// The largest text that is read, in bytes.
pub const MAX_INPUT: usize = 256 << 20;
/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;
/// The most elements of a vector operand.
pub const MAX_VECTOR: usize = 256;

/// Something was wrong and has been reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

pub(crate) type Parsed<T> = Result<T, Reported>;

/// Parses a source that `sources` holds.
///
/// ```
/// use broadloom_diag::Sources;
///
/// let mut sources = Sources::new();
/// let id = sources.add("k.ptx", ".version 7.0 .target sm_75 .address_size 64 .entry k() { ret; }");
/// let module = broadloom_ptx::parse(&sources, id).unwrap();
/// assert_eq!(module.kernels().count(), 1);
/// ```
pub fn parse(sources: &Sources, id: SourceId) -> Result<Module, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let text = sources.get(id).map_or("", |source| source.text());
    if text.len() > MAX_INPUT {
        let place = Span { source: id, start: 0, end: 0 };
        let message = format!("the text has {} bytes, more than the {MAX_INPUT} that are read", text.len());
        return Err(Diagnostic::error(codes::INPUT_TOO_LARGE, message).at(place, "").into());
    }
    let tokens = lexer::lex(id, text, &mut diagnostics);
    let mut parser = Parser {
        source: id,
        text,
        tokens,
        at: 0,
        diagnostics,
        module: Module::new(IsaVersion::new(0, 0), Target::sm(0)),
        globals: HashMap::new(),
        seen: Header::default(),
    };
    parser.module();
    if parser.diagnostics.has_errors() { Err(parser.diagnostics) } else { Ok(parser.module) }
}

/// Which header directives were there.
#[derive(Default)]
struct Header {
    version: bool,
    target: bool,
    complained: bool,
}

pub(crate) struct Parser<'a> {
    source: SourceId,
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    diagnostics: Diagnostics,
    module: Module,
    globals: HashMap<&'a str, Symbol>,
    seen: Header,
}

impl<'a> Parser<'a> {
    fn token(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    fn kind_ahead(&self, ahead: usize) -> TokenKind {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn span_of(&self, token: Token) -> Span {
        Span { source: self.source, start: token.start, end: token.end }
    }

    /// The place of the next token.
    fn here(&self) -> Span {
        self.span_of(self.token())
    }

    /// The place of the last token.
    fn last(&self) -> Span {
        self.span_of(self.tokens[self.at.saturating_sub(1)])
    }

    fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// The word of a dotted token, without its dot.
    fn word_of(&self, token: Token) -> &'a str {
        let text = self.text_of(token);
        text.strip_prefix('.').unwrap_or(text)
    }

    fn is_sign(&self, sign: u8) -> bool {
        self.kind() == TokenKind::Sign(sign)
    }

    fn eat(&mut self, sign: u8) -> bool {
        let there = self.is_sign(sign);
        if there {
            self.bump();
        }
        there
    }

    /// The word behind a dot, if one comes.
    fn dotted(&self) -> Option<&'a str> {
        (self.kind() == TokenKind::Dotted).then(|| self.word_of(self.token()))
    }

    fn is_dotted(&self, word: &str) -> bool {
        self.dotted() == Some(word)
    }

    fn eat_dotted(&mut self, word: &str) -> bool {
        let there = self.is_dotted(word);
        if there {
            self.bump();
        }
        there
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        self.diagnostics.push(diagnostic);
        Reported
    }

    /// What comes next, in words for a message.
    fn found(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", shorten(self.text_of(self.token()))),
        }
    }

    fn unexpected(&mut self, wanted: &str) -> Reported {
        let (found, place) = (self.found(), self.here());
        self.report(
            Diagnostic::error(codes::UNEXPECTED, format!("expected {wanted}, found {found}"))
                .at(place, format!("expected {wanted}")),
        )
    }

    fn expect(&mut self, sign: u8) -> Parsed<Span> {
        if self.is_sign(sign) {
            let token = self.bump();
            return Ok(self.span_of(token));
        }
        let wanted = format!("`{}`", char::from(sign));
        // A missing `;` is best shown behind what it should have ended.
        if sign == b';' {
            let (found, place) = (self.found(), self.last().after());
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("expected {wanted}, found {found}"));
            return Err(self.report(diagnostic.at(place, "`;` is missing here")));
        }
        Err(self.unexpected(&wanted))
    }

    fn expect_name(&mut self, what: &str) -> Parsed<(&'a str, Span)> {
        if self.kind() == TokenKind::Name {
            let token = self.bump();
            return Ok((self.text_of(token), self.span_of(token)));
        }
        Err(self.unexpected(what))
    }

    fn expect_integer(&mut self, what: &str) -> Parsed<u64> {
        let place = self.here();
        match self.kind() {
            TokenKind::Imm(imm) if imm.integer_bits().is_some() => {
                self.bump();
                Ok(imm.integer_bits().unwrap_or(0))
            }
            _ if self.is_sign(b'(') || self.is_sign(b'+') => match self.integer_expression()? {
                value if value >= 0 => Ok(value as u64),
                _ => {
                    Err(self.report(Diagnostic::error(codes::BAD_EXPRESSION, format!("{what} cannot be negative")).at(place, "")))
                }
            },
            _ => Err(self.unexpected(what)),
        }
    }

    fn expect_u32(&mut self, what: &str) -> Parsed<u32> {
        let place = self.here();
        let value = self.expect_integer(what)?;
        u32::try_from(value).map_err(|_| {
            self.report(Diagnostic::error(codes::LIMIT, format!("{what} does not fit 32 bits")).at(place, "too large"))
        })
    }

    fn expect_text(&mut self, what: &str) -> Parsed<String> {
        if self.kind() != TokenKind::Text {
            return Err(self.unexpected(what));
        }
        let token = self.bump();
        let text = self.text_of(token);
        Ok(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned())
    }

    /// Goes on behind the next `;`, or before a `}` or the next thing that can only stand at the top.
    fn recover(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Sign(b'{') => depth += 1,
                TokenKind::Sign(b'}') if depth == 0 => return,
                TokenKind::Sign(b'}') => depth -= 1,
                TokenKind::Sign(b';') if depth == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::Dotted
                    if depth == 0 && matches!(self.word_of(self.token()), "entry" | "func" | "visible" | "version") =>
                {
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    fn module(&mut self) {
        while self.kind() != TokenKind::End && !self.diagnostics.is_full() {
            let before = self.at;
            if self.item().is_err() {
                // Behind an error: leave a stray `}` behind too, and never stand still.
                self.recover();
                self.eat(b'}');
                if self.at == before {
                    self.bump();
                }
            }
        }
        if !self.seen.version && !self.diagnostics.has_errors() {
            let place = Span { source: self.source, start: 0, end: 0 };
            self.report(
                Diagnostic::error(codes::BAD_HEADER, "the module has no `.version`")
                    .at(place, "expected `.version` here")
                    .help("a module starts with `.version 8.0`, `.target sm_75` and `.address_size 64`"),
            );
        }
    }

    fn item(&mut self) -> Parsed<()> {
        let token = self.token();
        let TokenKind::Dotted = token.kind else {
            return match token.kind {
                TokenKind::Sign(b';') => {
                    self.bump();
                    Ok(())
                }
                TokenKind::Sign(b'}') => {
                    let place = self.here();
                    Err(self
                        .report(Diagnostic::error(codes::UNBALANCED, "a `}` that closes nothing").at(place, "no `{` before it")))
                }
                TokenKind::Dwarf => {
                    let line = self.text_of(token).to_owned();
                    self.bump();
                    self.module.items.push(Item::Section(crate::module::Section { name: "@@DWARF".into(), lines: vec![line] }));
                    Ok(())
                }
                _ => Err(self.unexpected("a directive such as `.entry`, `.func` or `.global`")),
            };
        };
        let word = self.word_of(token);
        if !matches!(word, "version" | "target" | "address_size" | "file" | "section") {
            self.demand_header(token);
        }
        match word {
            "version" => self.version(),
            "target" => self.target(),
            "address_size" => self.address_size(),
            "file" => self.file(),
            "section" => self.section(),
            "pragma" => {
                self.bump();
                let text = self.expect_text("a string")?;
                self.expect(b';')?;
                self.module.items.push(Item::Pragma(text));
                Ok(())
            }
            "alias" => self.alias(),
            "loc" => self.loc_directive().map(drop),
            "visible" | "extern" | "weak" | "common" | "entry" | "func" => self.linked(),
            "global" | "const" | "shared" | "local" | "tex" | "param" => self.module_variables(crate::module::Linkage::Private),
            _ => {
                let place = self.here();
                let known = [
                    "version",
                    "target",
                    "address_size",
                    "entry",
                    "func",
                    "global",
                    "const",
                    "shared",
                    "visible",
                    "extern",
                    "weak",
                ];
                let mut diagnostic = Diagnostic::error(
                    codes::UNKNOWN_DIRECTIVE,
                    format!("`.{}` does not start anything at the top of a module", shorten(word)),
                )
                .at(place, "not known here");
                if let Some(near) = crate::select::nearest(word, known.into_iter()) {
                    diagnostic = diagnostic.help(format!("did you mean `.{near}`?"));
                }
                Err(self.report(diagnostic))
            }
        }
    }

    fn demand_header(&mut self, token: Token) {
        if (self.seen.version && self.seen.target) || self.seen.complained {
            return;
        }
        self.seen.complained = true;
        let missing = if self.seen.version { ".target" } else { ".version" };
        let place = self.span_of(token);
        self.report(
            Diagnostic::error(codes::BAD_HEADER, format!("`{missing}` must come before anything else"))
                .at(place, format!("expected `{missing}` before this"))
                .help("a module starts with `.version 8.0`, `.target sm_75` and `.address_size 64`"),
        );
    }

    fn alias(&mut self) -> Parsed<()> {
        self.bump();
        let alias = self.declared_function()?;
        self.expect(b',')?;
        let aliasee = self.declared_function()?;
        self.expect(b';')?;
        self.module.items.push(Item::Alias(Alias { alias, aliasee }));
        Ok(())
    }

    fn declared_function(&mut self) -> Parsed<Func> {
        let (name, span) = self.expect_name("the name of a function")?;
        match self.globals.get(name) {
            Some(Symbol::Func(func)) => Ok(*func),
            Some(Symbol::Var(_) | Symbol::Local(_)) | None => {
                let message = format!("no function `{}` is declared before its alias", shorten(name));
                Err(self.report(Diagnostic::error(codes::UNDECLARED, message).at(span, "not declared before its use")))
            }
        }
    }
}
