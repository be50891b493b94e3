//! Expressions.

use super::{ParseResult, Parser};
use crate::codes;
use crate::syntax::{
    BinaryOp, COMMA, Each, Expr, ExprId, Generator, LAMBDA, Mark, POSTFIX, PREFIX, Pattern, TokenKind, UnaryOp, Word,
};
use broadloom_diag::{Diagnostic, Span};

/// Strength above which a whole expression is parsed: with pairs, without bindings.
pub(super) const WHOLE: u8 = 3;

/// Strength above which an element of a list is parsed: everything except pairs.
const ELEMENT: u8 = COMMA;

/// Role of the current token after a complete operand.
enum TokenRole {
    Stop,
    Binary(BinaryOp, u8, u8),
    Comma,
    Lambda,
    Keyword,
    Call,
    Index,
    Juxtaposed,
}

impl Parser {
    /// Parses a whole expression.
    pub(super) fn whole(&mut self) -> ParseResult<ExprId> {
        self.expr(WHOLE)
    }

    /// Parses while operators bind tighter than `strength`.
    pub(super) fn expr(&mut self, strength: u8) -> ParseResult<ExprId> {
        self.nested(|parser| {
            let mut left = parser.operand()?;
            while let Some(next) = parser.extend(left, strength)? {
                left = next;
            }
            Ok(left)
        })
    }

    fn next(&self) -> TokenRole {
        match self.kind() {
            TokenKind::Name(_)
            | TokenKind::Int(_)
            | TokenKind::Float(_)
            | TokenKind::Char(_)
            | TokenKind::Text(_)
            | TokenKind::Word(Word::True | Word::False | Word::If | Word::Let | Word::Time)
            | TokenKind::Mark(Mark::OpenBrace | Mark::Length | Mark::Show) => TokenRole::Juxtaposed,
            TokenKind::Mark(Mark::Open) => TokenRole::Call,
            TokenKind::Mark(Mark::OpenBracket) => TokenRole::Index,
            TokenKind::Mark(Mark::Comma) => TokenRole::Comma,
            TokenKind::Mark(Mark::Lambda) => TokenRole::Lambda,
            TokenKind::Mark(Mark::Keyword) => TokenRole::Keyword,
            TokenKind::Mark(mark) => Self::operator(mark.text()),
            TokenKind::Word(word) => Self::operator(word.text()),
            TokenKind::End => TokenRole::Stop,
        }
    }

    fn operator(text: &str) -> TokenRole {
        match BinaryOp::ALL.iter().copied().find(|op| op.text() == text) {
            Some(op) => TokenRole::Binary(op, op.binding().0, op.binding().1),
            None => TokenRole::Stop,
        }
    }

    /// Extends an operand by the next operator, if that binds tightly enough.
    fn extend(&mut self, left: ExprId, strength: u8) -> ParseResult<Option<ExprId>> {
        let start = self.ast.expr_spans[left];
        let (expr, parts) = match self.next() {
            TokenRole::Binary(op, before, behind) if strength < before => {
                self.advance();
                let right = self.expr(behind)?;
                (Expr::Binary(op, left, right), [left, right])
            }
            TokenRole::Comma if strength < COMMA => {
                self.advance();
                let right = self.expr(COMMA - 1)?;
                (Expr::Pair(left, right), [left, right])
            }
            TokenRole::Lambda if strength < LAMBDA => {
                self.advance();
                let pattern = self.pattern(left)?;
                let body = self.expr(LAMBDA - 1)?;
                (Expr::Lambda(pattern, body), [body, left])
            }
            TokenRole::Keyword if strength < LAMBDA => {
                let Expr::Name(name) = self.ast.exprs[left].clone() else {
                    let error = self.error(codes::BAD_OPTIONAL, "`:=` needs a name on its left", "");
                    return self.fail(error);
                };
                self.advance();
                let value = self.expr(LAMBDA)?;
                (Expr::Keyword(name, value), [value, left])
            }
            TokenRole::Call if strength < POSTFIX => {
                self.advance();
                if self.at_mark(Mark::Close) {
                    let error = self
                        .error(codes::EXPECTED, "a function takes at least one argument", "an argument is missing")
                        .help("give it one that it ignores, as in `g(0)`");
                    return self.fail(error);
                }
                let argument = self.whole()?;
                self.expect(Mark::Close, "behind the arguments of a call")?;
                (Expr::Apply(left, argument), [left, argument])
            }
            TokenRole::Index if strength < POSTFIX => {
                self.advance();
                let index = self.whole()?;
                self.expect(Mark::CloseBracket, "behind an index")?;
                (Expr::Index(left, index), [left, index])
            }
            TokenRole::Juxtaposed if strength < POSTFIX => {
                let argument = self.nested(Self::operand)?;
                (Expr::Apply(left, argument), [left, argument])
            }
            _ => return Ok(None),
        };
        let span = start.to(self.previous());
        self.node(expr, span, &parts).map(Some)
    }

    /// Parses an operand: a literal, a name, a bracketed expression, a prefix operator, `if`, `let`.
    fn operand(&mut self) -> ParseResult<ExprId> {
        let start = self.here();
        let leaf = match self.kind() {
            TokenKind::Name(name) => Expr::Name(name.clone()),
            TokenKind::Int(value) => Expr::Int(*value),
            TokenKind::Float(value) => Expr::Float(*value),
            TokenKind::Char(value) => Expr::Char(*value),
            TokenKind::Text(value) => Expr::Text(value.clone()),
            TokenKind::Word(Word::True) => Expr::Bool(true),
            TokenKind::Word(Word::False) => Expr::Bool(false),
            TokenKind::Word(Word::If) => return self.conditional(start),
            TokenKind::Word(Word::Let) => return self.bindings(start),
            TokenKind::Word(Word::Time) => return self.time(start),
            TokenKind::Mark(Mark::Open) => return self.parenthesised(),
            TokenKind::Mark(Mark::OpenBracket) => return self.bracketed(start),
            TokenKind::Mark(Mark::OpenBrace) => return self.each(start),
            TokenKind::Mark(Mark::Minus) => return self.prefix(UnaryOp::Negate, start),
            TokenKind::Mark(Mark::Length) => return self.prefix(UnaryOp::Length, start),
            TokenKind::Mark(Mark::Show) => return self.prefix(UnaryOp::Show, start),
            TokenKind::Word(_) | TokenKind::Mark(_) | TokenKind::End => return self.no_operand(),
        };
        self.advance();
        self.node(leaf, start, &[])
    }

    fn no_operand(&mut self) -> ParseResult<ExprId> {
        let found = self.kind().describe();
        let is_operator =
            matches!(self.next(), TokenRole::Binary(..) | TokenRole::Comma | TokenRole::Lambda | TokenRole::Keyword);
        let mut error = if is_operator {
            self.error(codes::UNEXPECTED, format!("{found} is missing its left operand"), "expected an expression before this")
        } else {
            self.error(codes::UNEXPECTED, format!("expected an expression, found {found}"), "expected an expression")
        };
        if self.at_mark(Mark::Divide) && self.peek(1) == &TokenKind::Mark(Mark::Divide) {
            error = error.help("a comment stands between two `%`");
        }
        if self.at_mark(Mark::Divide) && self.at > 0 && self.tokens[self.at - 1].kind == TokenKind::Mark(Mark::Divide) {
            error = error.help("a comment stands between two `%`");
        }
        if let TokenRole::Binary(op, ..) = self.next()
            && matches!(self.peek(1), TokenKind::Mark(Mark::Comma | Mark::Close))
        {
            error = error.help(format!("an operator is not a value; a function value is `(a, b) => a {} b`", op.text()));
        }
        if self.at_mark(Mark::Bind) && self.at > 0 {
            error = error.help("`=` binds a name; write `==` to compare");
        }
        self.fail(error)
    }

    fn prefix(&mut self, op: UnaryOp, start: Span) -> ParseResult<ExprId> {
        self.advance();
        let operand = self.expr(PREFIX)?;
        let span = start.to(self.previous());
        self.node(Expr::Unary(op, operand), span, &[operand])
    }

    fn time(&mut self, start: Span) -> ParseResult<ExprId> {
        self.advance();
        self.expect(Mark::Open, "behind `time`")?;
        let timed = self.whole()?;
        self.expect(Mark::Close, "behind the argument of `time`")?;
        let span = start.to(self.previous());
        self.node(Expr::Time(timed), span, &[timed])
    }

    fn parenthesised(&mut self) -> ParseResult<ExprId> {
        self.advance();
        let inner = self.whole()?;
        self.expect(Mark::Close, "behind an expression in parentheses")?;
        Ok(inner)
    }

    fn conditional(&mut self, start: Span) -> ParseResult<ExprId> {
        self.advance();
        let condition = self.whole()?;
        self.keyword(Word::Then, start, "behind the condition of `if`")?;
        let then = self.whole()?;
        self.keyword(Word::Else, start, "behind the first branch of `if`")?;
        let otherwise = self.whole()?;
        let span = start.to(self.previous());
        self.node(Expr::If(condition, then, otherwise), span, &[condition, then, otherwise])
    }

    fn keyword(&mut self, word: Word, opened: Span, place: &str) -> ParseResult<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        let found = self.kind().describe();
        let message = format!("expected `{word}` {place}, found {found}");
        let mut error = self.error(codes::EXPECTED, message, format!("expected `{word}`"));
        error = error.label(opened, if word == Word::In { "the `let` begins here" } else { "the `if` begins here" });
        if self.at_mark(Mark::Bind) {
            error = error.help(match word {
                Word::In => "bindings of a `let` are separated by `;`",
                _ => "`=` binds a name; write `==` to compare",
            });
        } else if word == Word::Else && self.at_word(Word::Then) {
            error = error.help("a second condition stands behind `else if`: `if a then x else if b then y else z`");
        } else if word == Word::Else {
            error = error.help("an `if` is an expression and always has an `else`");
        } else if word == Word::In {
            error = error.help("write `let a = …; b = … in …`");
        }
        self.fail(error)
    }

    fn bindings(&mut self, start: Span) -> ParseResult<ExprId> {
        self.advance();
        let mut bindings = vec![];
        let mut parts = vec![];
        loop {
            if self.at_word(Word::Function) {
                let error = self.error(codes::UNEXPECTED, "a function cannot be defined inside of an expression", "");
                return self.fail(error);
            }
            let left = self.whole()?;
            if !self.at_mark(Mark::Bind) {
                let found = self.kind().describe();
                let message = format!("expected `=` behind the pattern of a `let`, found {found}");
                let mut error = self.error(codes::EXPECTED, message, "expected `=`").label(start, "the `let` begins here");
                if !bindings.is_empty() {
                    error = error.help("the body of a `let` stands behind `in`: `let a = …; b = … in …`");
                }
                return self.fail(error);
            }
            self.advance();
            let pattern = self.pattern(left)?;
            let value = self.whole()?;
            bindings.push((pattern, value));
            parts.push(value);
            if !self.eat(Mark::Semicolon) || self.at_word(Word::In) {
                break;
            }
        }
        self.keyword(Word::In, start, "behind the bindings of `let`")?;
        let body = self.whole()?;
        parts.push(body);
        let span = start.to(self.previous());
        self.node(Expr::Let(bindings, body), span, &parts)
    }

    fn bracketed(&mut self, start: Span) -> ParseResult<ExprId> {
        self.advance();
        if self.eat(Mark::CloseBracket) {
            return self.empty(start);
        }
        let first = self.expr(ELEMENT)?;
        let mut parts = vec![first];
        let expr = if self.eat(Mark::Colon) {
            let end = self.whole()?;
            parts.push(end);
            let step = if self.eat(Mark::Colon) { Some(self.whole()?) } else { None };
            parts.extend(step);
            self.expect(Mark::CloseBracket, "behind a range")?;
            Expr::Range(first, end, step)
        } else {
            while self.eat(Mark::Comma) {
                parts.push(self.expr(ELEMENT)?);
            }
            self.close(Mark::CloseBracket, start, "behind the elements of a sequence")?;
            Expr::Sequence(parts.clone())
        };
        let span = start.to(self.previous());
        self.node(expr, span, &parts)
    }

    fn empty(&mut self, start: Span) -> ParseResult<ExprId> {
        let types = matches!(self.kind(), TokenKind::Name(_) | TokenKind::Mark(Mark::Open | Mark::OpenBracket));
        if !types {
            let error = Diagnostic::error(codes::EXPECTED, "an empty sequence needs the type of its elements")
                .at(start.to(self.previous()), "expected a type behind `[]`")
                .help("write `[] int`, `[] [char]` or `[] (int, float)`");
            return self.fail(error);
        }
        let ty = self.type_operand()?;
        let span = start.to(self.previous());
        self.node(Expr::Empty(ty), span, &[])
    }

    fn close(&mut self, mark: Mark, opened: Span, place: &str) -> ParseResult<()> {
        if self.eat(mark) {
            return Ok(());
        }
        let found = self.kind().describe();
        let message = format!("expected `{mark}` {place}, found {found}");
        let mut error = self.error(codes::EXPECTED, message, format!("expected `{mark}`")).label(opened, "opened here");
        if mark == Mark::CloseBracket && (self.at_word(Word::In) || self.at_mark(Mark::Bar)) {
            error = error.help("an apply-to-each is written in braces, the result first: `{x * 2 : x in v | x > 0}`");
        }
        if mark == Mark::CloseBracket && self.at_mark(Mark::Dot) {
            error.helps = vec!["a range is written with `:`, and ends before its second bound: `[a:b]`".to_owned()];
        }
        self.fail(error)
    }

    fn each(&mut self, start: Span) -> ParseResult<ExprId> {
        self.advance();
        let serial = self.eat(Mark::Times);
        let mut parts = vec![];
        let first = self.whole()?;
        let body = self.eat(Mark::Colon).then_some(first);
        parts.extend(body);
        let first = if body.is_some() { self.whole()? } else { first };
        let mut generators = vec![self.generator(first, start, &mut parts)?];
        while self.eat(Mark::Semicolon) {
            let next = self.whole()?;
            generators.push(self.generator(next, start, &mut parts)?);
        }
        let filter = if self.eat(Mark::Bar) { Some(self.whole()?) } else { None };
        parts.extend(filter);
        if filter.is_some() && self.at_mark(Mark::Semicolon) {
            let error = self
                .error(codes::EXPECTED, "expected `}` behind the filter of an apply-to-each", "expected `}`")
                .help("generators stand before the filter: `{x + y : x in v; y in w | x > y}`");
            return self.fail(error);
        }
        if self.at_word(Word::In) || self.at_mark(Mark::Comma) {
            let is_pair =
                |generator: &Generator| generator.source.is_some_and(|source| matches!(self.ast.exprs[source], Expr::Pair(..)));
            if generators.last().is_some_and(is_pair) {
                let error = self
                    .error(codes::EXPECTED, "expected `;` between the generators of an apply-to-each", "")
                    .help("generators are separated by `;`: `{x + y : x in v; y in w}`");
                return self.fail(error);
            }
            let error = self
                .error(codes::EXPECTED, "expected `}` behind an apply-to-each", "expected `}`")
                .help("the result stands before `:` and the filter behind `|`: `{x * x : x in v | x > 0}`");
            return self.fail(error);
        }
        self.close(Mark::CloseBrace, start, "behind an apply-to-each")?;
        let span = start.to(self.previous());
        self.node(Expr::Each(Box::new(Each { serial, body, generators, filter })), span, &parts)
    }

    fn generator(&mut self, left: ExprId, opened: Span, parts: &mut Vec<ExprId>) -> ParseResult<Generator> {
        if self.eat_word(Word::In) {
            let pattern = self.pattern(left)?;
            let source = self.whole()?;
            parts.push(source);
            return Ok(Generator { pattern, source: Some(source) });
        }
        if let Expr::Name(_) = self.ast.exprs[left] {
            let pattern = self.pattern(left)?;
            debug_assert!(matches!(self.ast.patterns[pattern], Pattern::Name(_)));
            return Ok(Generator { pattern, source: None });
        }
        let error = Diagnostic::error(codes::EXPECTED, "a generator of an apply-to-each is `pattern in sequence`")
            .at(self.ast.expr_spans[left], "expected `… in …`")
            .label(opened, "the apply-to-each begins here")
            .help("write `{e : x in v}`; `{e : v}` is short for `{e : v in v}` when `v` is a name");
        let error = if self.at_mark(Mark::Bar) {
            error.help("a filter stands behind `|`, generators stand behind `:`: `{x * x : x in v | x > 0}`")
        } else {
            error
        };
        self.fail(error)
    }
}
