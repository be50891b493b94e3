//! Parser from PTX text to [`Module`].
//!
//! Recursive descent over tokens. After a mistake the parser continues after the next `;` or `}`, so one run
//! finds several mistakes. A module is returned only if there was no error.
//!
//! Checked limits: [`MAX_INPUT`] bytes of text, [`MAX_DEPTH`] levels of braces, brackets or parentheses,
//! [`MAX_VECTOR`] elements in the braces of an operand. Memory use is a small multiple of the input:
//! `%r<4000000000>` costs nothing until one of its registers is used, and array sizes are numbers, not
//! storage.

mod body;
pub mod codes;
mod declare;
mod directive;
mod element;
mod expression;
mod initialiser;
mod instruction;
mod lexer;
mod locs;
mod mismatch;
mod names;
mod operand;
mod recover;

use crate::ids::Func;
use crate::inst::Symbol;
use crate::module::{Alias, Item, Module, Target};
use crate::types::IsaVersion;
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Sources, Span};
pub(crate) use declare::FUNCTION_DIRECTIVES;
use lexer::{Token, TokenKind, shorten};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Maximum size of a text in bytes.
pub const MAX_INPUT: usize = 256 << 20;
/// Maximum nesting depth.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of elements of a vector operand.
pub const MAX_VECTOR: usize = 256;

/// Start of a module, for messages.
const HEADER: &str = "a module starts with `.version 8.0`, `.target sm_75` and `.address_size 64`";

/// Directives at the top level of a module.
const DIRECTIVES: &[&str] = &[
    "version",
    "target",
    "address_size",
    "file",
    "section",
    "pragma",
    "alias",
    "loc",
    "visible",
    "extern",
    "weak",
    "common",
    "entry",
    "func",
    "global",
    "const",
    "shared",
    "local",
    "tex",
];

/// Marker of an error that was reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedError;

/// Result of a parser. Errors are already reported.
pub(crate) type ParseResult<T> = Result<T, ReportedError>;

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
    // Text extracted from a compiled program often ends with its terminating zero.
    let text = text.trim_end_matches('\0');
    if let Some(at) = text.find('\0') {
        return Err(binary(id, text, at).into());
    }
    let tokens = lexer::lex(id, text, &mut diagnostics);
    let mut mended: HashSet<u32> = diagnostics.iter().filter_map(|d| d.primary.as_ref()).map(|label| label.span.start).collect();
    if diagnostics.iter().any(|diagnostic| diagnostic.code == codes::OPEN_COMMENT) {
        mended.extend(tokens.last().map(|end| end.start));
    }
    let mut parser = Parser {
        source: id,
        text,
        tokens,
        at: 0,
        diagnostics,
        mended,
        declaring: None,
        stopped_at_item: false,
        module: Module::new(IsaVersion::new(0, 0), Target::sm(0)),
        globals: Rc::default(),
        seen: Header::default(),
    };
    parser.module();
    if parser.diagnostics.has_errors() { Err(parser.diagnostics) } else { Ok(parser.module) }
}

/// Reports binary data at its first zero byte.
fn binary(source: SourceId, text: &str, at: usize) -> Diagnostic {
    let place = Span { source, start: at as u32, end: at as u32 + 1 };
    let diagnostic = Diagnostic::error(codes::BINARY, "this is not PTX text").at(place, "a zero byte");
    let start: Vec<char> = text.chars().take(8).collect();
    if start.starts_with(&['\u{7f}', 'E', 'L', 'F']) {
        return diagnostic.note("it starts like a compiled program").help("`cuobjdump -ptx FILE` takes the PTX out of one");
    }
    if text.chars().take(32).filter(|c| *c == '\0').count() >= 8 && start.contains(&'\0') {
        return diagnostic.note("it looks like text in UTF-16").help("save it as UTF-8");
    }
    diagnostic.help("PTX is text, as `nvcc -ptx` writes it")
}

/// Header directives seen so far.
#[derive(Default)]
struct Header {
    version: bool,
    target: bool,
    address_size: bool,
    complained: bool,
}

pub(crate) struct Parser<'a> {
    source: SourceId,
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    diagnostics: Diagnostics,
    /// Positions where the lexer replaced unreadable input. No further errors are reported there.
    mended: HashSet<u32>,
    /// Variable of the module whose initialiser is being parsed.
    declaring: Option<&'a str>,
    /// True if a body ended because the next function starts here.
    stopped_at_item: bool,
    module: Module,
    globals: Rc<HashMap<&'a str, Symbol>>,
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

    /// Returns the location of the next token.
    fn here(&self) -> Span {
        self.span_of(self.token())
    }

    /// Returns the location of the last token.
    fn last(&self) -> Span {
        self.span_of(self.tokens[self.at.saturating_sub(1)])
    }

    /// Returns a location for the end of the file: after the last token.
    fn end_place(&self) -> Span {
        if self.at == 0 { self.here() } else { self.last().after() }
    }

    fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Returns the word of a dotted token, without its dot.
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

    /// Returns the next word if it is dotted.
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

    fn report(&mut self, diagnostic: Diagnostic) -> ReportedError {
        let known = diagnostic.primary.as_ref().is_some_and(|label| self.mended.contains(&label.span.start));
        if !known || !self.diagnostics.has_errors() {
            self.diagnostics.push(diagnostic);
        }
        ReportedError
    }

    /// Describes the next token for a message.
    fn found(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", shorten(self.text_of(self.token()))),
        }
    }

    /// Reports an unexpected token in a statement. If the next token is on another line, the location is
    /// after the last token, where something is missing.
    fn unexpected(&mut self, wanted: &str) -> ReportedError {
        let place = if self.at > 0 && self.starts_line(self.at) { self.last().after() } else { self.here() };
        self.unexpected_at(place, wanted)
    }

    fn unexpected_at(&mut self, place: Span, wanted: &str) -> ReportedError {
        let message = format!("expected {wanted}, found {}", self.found());
        self.report(Diagnostic::error(codes::UNEXPECTED, message).at(place, format!("expected {wanted}")))
    }

    fn expect(&mut self, sign: u8) -> ParseResult<Span> {
        if self.is_sign(sign) {
            let token = self.bump();
            return Ok(self.span_of(token));
        }
        // A missing `;` is best reported after the statement that it should have ended.
        if sign == b';' && self.starts_line(self.at) {
            let (found, place) = (self.found(), self.last().after());
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("expected `;`, found {found}"));
            return Err(self.report(diagnostic.at(place, "`;` is missing here")));
        }
        Err(self.unexpected(&format!("`{}`", char::from(sign))))
    }

    /// Parses the `,` or the end of a list.
    fn expect_end(&mut self, sign: u8) -> ParseResult<Span> {
        if self.is_sign(sign) || sign == b';' && self.starts_line(self.at) {
            return self.expect(sign);
        }
        Err(self.unexpected(&format!("`,` or `{}`", char::from(sign))))
    }

    fn expect_name(&mut self, what: &str) -> ParseResult<(&'a str, Span)> {
        if self.kind() == TokenKind::Name {
            let token = self.bump();
            return Ok((self.text_of(token), self.span_of(token)));
        }
        Err(self.unexpected(what))
    }

    fn expect_integer(&mut self, what: &str) -> ParseResult<u64> {
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

    fn expect_u32(&mut self, what: &str) -> ParseResult<u32> {
        let place = self.here();
        let value = self.expect_integer(what)?;
        u32::try_from(value).map_err(|_| {
            self.report(Diagnostic::error(codes::LIMIT, format!("{what} does not fit 32 bits")).at(place, "too large"))
        })
    }

    fn expect_text(&mut self, what: &str) -> ParseResult<String> {
        if self.kind() != TokenKind::Text {
            return Err(self.unexpected(what));
        }
        let token = self.bump();
        let text = self.text_of(token);
        Ok(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned())
    }

    fn module(&mut self) {
        while self.kind() != TokenKind::End && !self.diagnostics.is_full() {
            let before = self.at;
            if self.item().is_err() && !std::mem::take(&mut self.stopped_at_item) {
                self.recover_item(before);
                // Guarantees progress.
                if self.at == before {
                    self.bump();
                }
            }
        }
        let missing = if self.seen.version { "`.target`" } else { "`.version`" };
        let complete = self.seen.version && self.seen.target;
        if !complete && !self.diagnostics.has_errors() {
            let place = if self.at == 0 { Span { source: self.source, start: 0, end: 0 } } else { self.last().after() };
            self.report(
                Diagnostic::error(codes::BAD_HEADER, format!("the module has no {missing}"))
                    .at(place, format!("expected {missing} here"))
                    .help(HEADER),
            );
        }
    }

    fn item(&mut self) -> ParseResult<()> {
        let token = self.token();
        match token.kind {
            TokenKind::Dotted => self.directive(token),
            TokenKind::Sign(b';') => {
                self.bump();
                Ok(())
            }
            TokenKind::Sign(b'}') => {
                let place = self.here();
                // One report for a run of them.
                while self.eat(b'}') {}
                let diagnostic = Diagnostic::error(codes::UNBALANCED, "a `}` that closes nothing");
                self.report(diagnostic.at(place, "no `{` before it"));
                Ok(())
            }
            TokenKind::Dwarf => {
                let line = self.text_of(token).to_owned();
                self.bump();
                self.module.items.push(Item::Section(crate::module::Section { name: "@@DWARF".into(), lines: vec![line] }));
                Ok(())
            }
            TokenKind::Name | TokenKind::Imm(_) | TokenKind::Text | TokenKind::Sign(_) | TokenKind::End => {
                Err(self.no_item(token))
            }
        }
    }

    fn directive(&mut self, token: Token) -> ParseResult<()> {
        let word = self.word_of(token);
        if !matches!(word, "version" | "target" | "address_size" | "file" | "section") && DIRECTIVES.contains(&word) {
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
            "global" | "const" | "shared" | "local" | "tex" => self.module_variables(crate::module::Linkage::Private),
            "reg" | "param" => {
                let place = self.here();
                let message = format!("`.{word}` can only be declared inside of a function");
                Err(self.report(Diagnostic::error(codes::UNKNOWN_DIRECTIVE, message).at(place, "outside of any function")))
            }
            _ => {
                self.seen.complained = true;
                let place = self.here();
                let message = format!("`.{}` does not start anything at the top of a module", shorten(word));
                let diagnostic = Diagnostic::error(codes::UNKNOWN_DIRECTIVE, message).at(place, "not known here");
                Err(self.report(match crate::select::nearest(word, DIRECTIVES.iter().copied()) {
                    Some(near) => diagnostic.help(format!("did you mean `.{near}`?")),
                    None => diagnostic,
                }))
            }
        }
    }

    /// Reports an item at the top level that is not a directive.
    fn no_item(&mut self, token: Token) -> ReportedError {
        let (place, text) = (self.here(), self.text_of(token));
        if token.kind == TokenKind::Name && self.seen.version {
            let instruction = crate::select::is_known_root(text);
            if instruction || self.kind_ahead(1) == TokenKind::Sign(b':') {
                let what = if instruction { "an instruction" } else { "a label" };
                let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("{what} outside of any function"));
                return self.report(diagnostic.at(place, "expected a directive such as `.entry`, `.func` or `.global`"));
            }
        }
        if token.kind == TokenKind::Name && DIRECTIVES.contains(&text) {
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, format!("expected a directive, found `{text}`"));
            return self.report(diagnostic.at(place, "a directive starts with a dot").help(format!("did you mean `.{text}`?")));
        }
        if !self.seen.version && !self.seen.complained {
            self.seen.complained = true;
            let diagnostic = Diagnostic::error(codes::BAD_HEADER, "this does not look like PTX");
            return self.report(diagnostic.at(place, "expected `.version` before this").help(HEADER));
        }
        self.unexpected_at(place, "a directive such as `.entry`, `.func` or `.global`")
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
                .help(HEADER),
        );
    }

    fn alias(&mut self) -> ParseResult<()> {
        self.bump();
        let alias = self.declared_function()?;
        self.expect(b',')?;
        let aliasee = self.declared_function()?;
        self.expect(b';')?;
        self.module.items.push(Item::Alias(Alias { alias, aliasee }));
        Ok(())
    }

    fn declared_function(&mut self) -> ParseResult<Func> {
        let (name, span) = self.expect_name("the name of a function")?;
        match self.globals.get(name) {
            Some(Symbol::Func(func)) => Ok(*func),
            Some(Symbol::Var(_) | Symbol::Local(_)) => {
                let message = format!("`{}` is a variable; only functions have aliases", shorten(name));
                Err(self.report(Diagnostic::error(codes::WRONG_NAME, message).at(span, "not a function")))
            }
            None => {
                let message = format!("no function `{}` is declared", shorten(name));
                Err(self.report(
                    Diagnostic::error(codes::UNDECLARED, message)
                        .at(span, "not declared before its use")
                        .help("both names of an `.alias` are declared before it, as `.func`"),
                ))
            }
        }
    }
}
