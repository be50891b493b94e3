//! The parser: tokens to tree, by operator precedence.
//!
//! Binding strengths are those of the original: `,` 4, `=>` 5, the operators of `BinaryOp::binding`, prefix
//! operators 25, calls and indices 30. Patterns are parsed as expressions and converted, so `a, b = e` needs
//! no parentheses.
//!
//! An error ends its form. The parser continues after the next `;` or `$` that is followed by a definition or
//! by a line without indentation, or at the next `function` or `datatype` at the left margin. A broken form
//! stays in the list with its errors, so that a session reports it at its place.
//!
//! No input overflows the stack: nesting beyond [`MAX_NESTING`] is an error.

mod expr;
mod form;
mod pattern;
mod types;

use crate::codes;
use crate::syntax::{Ast, Expr, ExprId, Form, FormKind, Mark, Name, Program, Token, TokenKind, Word, lex};
use broadloom_diag::{Code, Diagnostic, Diagnostics, SourceId, Span};
use std::sync::Arc;

/// Maximum nesting of expressions, patterns and types that the parser accepts.
pub const MAX_NESTING: u16 = 400;

/// Words that begin a command at the start of a form.
pub const COMMANDS: [&str; 13] =
    ["help", "exit", "lisp", "describe", "apropos", "get", "set", "show", "shell", "dump", "edit", "load", "defconfig"];

/// Parses a text. Forms with errors are kept as [`FormKind::Broken`].
pub fn parse(source: SourceId, text: &str) -> Program {
    let mut lexical = Diagnostics::new();
    let tokens = lex(source, text, &mut lexical);
    let mut parser = Parser::new(tokens);
    let mut program = Program::default();
    let mut lexical: Vec<Diagnostic> = lexical.iter().cloned().collect();
    loop {
        while parser.at_mark(Mark::Semicolon) || parser.at_mark(Mark::Dollar) {
            parser.advance();
        }
        let (start, first) = (parser.here(), parser.at);
        let at_end = *parser.kind() == TokenKind::End;
        let result = if at_end { Err(LostForm) } else { parser.form() };
        if result.is_err() && !at_end {
            parser.recover(first);
        }
        let span = start.to(parser.previous());
        let mut errors = Diagnostics::new();
        let next = if at_end { u32::MAX } else { parser.here().start };
        while lexical.first().is_some_and(|d| d.primary.as_ref().is_some_and(|label| label.span.start < next)) {
            errors.push(lexical.remove(0));
        }
        errors.extend(std::mem::take(&mut parser.errors));
        let kind = match result {
            Ok(kind) if !errors.has_errors() => kind,
            _ if errors.is_empty() => break,
            _ => {
                program.errors.push(errors);
                FormKind::Broken(program.errors.len() - 1)
            }
        };
        program.forms.push(Form { kind, span });
        if at_end {
            break;
        }
    }
    program.ast = Arc::new(parser.ast);
    program
}

/// Tells whether a text ends at the end of a form, so that an interactive session need not wait for more
/// lines.
pub fn is_complete(text: &str) -> bool {
    let mut lines = Lines::default();
    lines.push(text);
    lines.is_complete()
}

/// Text that comes line by line. Each line is scanned once, however many there are.
#[derive(Debug, Default)]
pub struct Lines {
    open: Open,
    /// The last token.
    last: Option<TokenKind>,
    /// An unclosed string or comment, including its first mark.
    unclosed: String,
}

impl Lines {
    /// Adds lines, with their line breaks.
    pub fn push(&mut self, text: &str) {
        let mark = self.unclosed.chars().next();
        self.unclosed += text;
        if mark.is_some_and(|mark| !text.contains(mark)) {
            return;
        }
        let text = std::mem::take(&mut self.unclosed);
        let mut errors = Diagnostics::new();
        let mut sources = broadloom_diag::Sources::new();
        let tokens = lex(sources.add("", ""), &text, &mut errors);
        let is_unclosed = |error: &&Diagnostic| error.code == codes::OPEN_COMMENT || error.code == codes::OPEN_STRING;
        let place = errors.iter().find(is_unclosed).and_then(|error| error.primary.as_ref());
        let end = place.map_or(text.len(), |label| label.span.start as usize);
        for token in tokens {
            if (token.span.start as usize) < end && token.kind != TokenKind::End {
                self.open.take(&token.kind);
                self.last = Some(token.kind);
            }
        }
        text[end..].clone_into(&mut self.unclosed);
    }

    /// Tells whether the lines end at the end of a form.
    pub fn is_complete(&self) -> bool {
        self.unclosed.is_empty() && self.open.is_empty() && self.last.as_ref().is_none_or(TokenKind::ends_form)
    }
}

/// Open brackets, and each `let` up to its `in`. A `;` inside them does not end a form.
#[derive(Debug, Default)]
struct Open {
    tokens: Vec<TokenKind>,
    form: FormStart,
}

/// Beginning of the current form.
#[derive(Debug, Default, PartialEq, Eq)]
enum FormStart {
    /// No token has come.
    #[default]
    None,
    /// A command with plain words behind it, such as `help let`. They open nothing.
    Command,
    /// Any other form.
    Other,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    fn take(&mut self, kind: &TokenKind) {
        if self.form == FormStart::None {
            self.form = if takes_words(kind) { FormStart::Command } else { FormStart::Other };
        }
        if self.form == FormStart::Other {
            self.nest(kind);
        }
        if kind.ends_form() && self.is_empty() {
            self.form = FormStart::None;
        }
    }

    fn nest(&mut self, kind: &TokenKind) {
        match kind {
            TokenKind::Mark(Mark::Open | Mark::OpenBracket | Mark::OpenBrace) | TokenKind::Word(Word::Let) => {
                self.tokens.push(kind.clone());
            }
            TokenKind::Mark(Mark::Close | Mark::CloseBracket | Mark::CloseBrace) => {
                while self.tokens.pop() == Some(TokenKind::Word(Word::Let)) {}
            }
            // The `in` of a generator is in braces.
            TokenKind::Word(Word::In) if self.tokens.last() == Some(&TokenKind::Word(Word::Let)) => drop(self.tokens.pop()),
            TokenKind::Mark(Mark::Dollar) => self.tokens.clear(),
            _ => {}
        }
    }
}

/// Tells whether a token begins a command with plain words behind it. `load` and `dump` take expressions.
fn takes_words(kind: &TokenKind) -> bool {
    matches!(kind, TokenKind::Name(name) if COMMANDS.contains(&name.as_str()) && !["load", "dump"].contains(&name.as_str()))
}

/// Mark of a form that is lost: its error has been reported.
struct LostForm;

type ParseResult<T> = Result<T, LostForm>;

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    ast: Ast,
    /// The height of each expression.
    heights: Vec<u16>,
    /// Nesting of calls of the parser.
    level: u16,
    errors: Diagnostics,
}

impl Parser {
    fn new(tokens: Vec<Token>) -> Self {
        Parser { tokens, at: 0, ast: Ast::default(), heights: vec![], level: 0, errors: Diagnostics::new() }
    }

    fn kind(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn peek(&self, ahead: usize) -> &TokenKind {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    fn here(&self) -> Span {
        self.tokens[self.at].span
    }

    fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn at_mark(&self, mark: Mark) -> bool {
        *self.kind() == TokenKind::Mark(mark)
    }

    fn at_word(&self, word: Word) -> bool {
        *self.kind() == TokenKind::Word(word)
    }

    fn eat(&mut self, mark: Mark) -> bool {
        let found = self.at_mark(mark);
        if found {
            self.advance();
        }
        found
    }

    fn eat_word(&mut self, word: Word) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Takes a mark, or reports that it is missing and names the place.
    fn expect(&mut self, mark: Mark, place: &str) -> ParseResult<()> {
        if self.eat(mark) {
            return Ok(());
        }
        let found = self.kind().describe();
        let error =
            self.error(codes::EXPECTED, format!("expected `{mark}` {place}, found {found}"), format!("expected `{mark}`"));
        self.fail(error)
    }

    fn error(&self, code: Code, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        let error = Diagnostic::error(code, message).at(self.here(), label);
        match self.kind() {
            TokenKind::Mark(Mark::Bang) if *self.peek(1) == TokenKind::Mark(Mark::Bind) => error.help("write `/=` for different"),
            TokenKind::Mark(Mark::Bang) => error.help("write `not(a)` for a negation"),
            TokenKind::Mark(Mark::Ampersand) => error.help("write `and` for a conjunction"),
            TokenKind::Mark(Mark::Quote) => error.help("a character is written with a backquote, as `` `a ``; a string is \"a\""),
            TokenKind::Mark(Mark::Dot) => error.help("NESL has no fields or methods: call a function, as in `#v` or `sum(v)`"),
            TokenKind::Word(Word::Function) => {
                error.help("functions are defined at the top level; a local one is a value: `let g = (x => x + 1) in …`")
            }
            _ => error,
        }
    }

    fn fail<T>(&mut self, error: Diagnostic) -> ParseResult<T> {
        self.errors.push(error);
        Err(LostForm)
    }

    /// Adds an expression whose parts are `parts`, unless it nests too deeply.
    fn node(&mut self, expr: Expr, span: Span, parts: &[ExprId]) -> ParseResult<ExprId> {
        let below = parts.iter().map(|part| self.heights[part.as_u32() as usize]).max().unwrap_or(0);
        if below >= MAX_NESTING {
            let error = Diagnostic::error(codes::TOO_DEEP, format!("expressions nest deeper than {MAX_NESTING} levels"))
                .at(span, "this is nested too deeply")
                .help("bind parts of it to names with `let`");
            return self.fail(error);
        }
        self.heights.push(below + 1);
        Ok(self.ast.expr(expr, span))
    }

    /// Runs a part of the parser one level deeper.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.level >= MAX_NESTING {
            let error =
                self.error(codes::TOO_DEEP, format!("the text nests deeper than {MAX_NESTING} levels"), "nested too deeply");
            return self.fail(error);
        }
        self.level += 1;
        let result = part(self);
        self.level -= 1;
        result
    }

    fn name(&mut self, what: &str) -> ParseResult<Name> {
        if let TokenKind::Name(name) = self.kind() {
            let name = name.clone();
            self.advance();
            return Ok(name);
        }
        let found = self.kind().describe();
        let error = self.error(codes::EXPECTED, format!("expected {what}, found {found}"), format!("expected {what}"));
        self.fail(error)
    }

    /// Skips the rest of a broken form.
    fn recover(&mut self, first: usize) {
        self.level = 0;
        let mut open = Open::default();
        self.tokens[first..self.at].iter().for_each(|token| open.take(&token.kind));
        loop {
            let ended = self.kind().ends_form();
            if *self.kind() == TokenKind::End {
                return;
            }
            // If nothing is open, the form ends here, unless the next token cannot begin a form.
            let closed = ended && open.is_empty();
            open.take(&self.tokens[self.at].kind);
            self.advance();
            let starts = matches!(self.kind(), TokenKind::Word(Word::Function | Word::Datatype));
            let margin = self.tokens[self.at].at_margin;
            let goes_on = matches!(
                self.kind(),
                TokenKind::Word(Word::Then | Word::Else | Word::In)
                    | TokenKind::Mark(Mark::Close | Mark::CloseBracket | Mark::CloseBrace)
            );
            if closed && !goes_on || (ended && (starts || margin)) || (starts && margin) || *self.kind() == TokenKind::End {
                return;
            }
        }
    }
}
