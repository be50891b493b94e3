//! Expressions. Precedence from low to high:
//! `?:`, `||`, `&&`, `& | ^`, `== !=`, `< <= > >=`, `+ -`, `* / % << >>`, casts, `! ++ --`, `- ~`.

use super::{ParseResult, Parser};
use crate::language::syntax::ast::{Binary, Expr, ExprKind, Ident};
use crate::language::syntax::token::Token;
use broadloom_diag::Span;

/// The levels of binary operators, from low to high.
const LEVELS: [&[(&str, Binary)]; 7] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("&", Binary::BitAnd), ("|", Binary::BitOr), ("^", Binary::BitXor)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[("<", Binary::Less), ("<=", Binary::LessEqual), (">", Binary::Greater), (">=", Binary::GreaterEqual)],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[
        ("*", Binary::Multiply),
        ("/", Binary::Divide),
        ("%", Binary::Modulo),
        ("<<", Binary::ShiftLeft),
        (">>", Binary::ShiftRight),
    ],
];

impl Parser {
    pub(super) fn expr(&mut self) -> ParseResult<Expr> {
        self.nested(|parser| {
            let condition = parser.binary(0)?;
            parser.no_words_as_operators()?;
            if !parser.accept("?") {
                return Ok(condition);
            }
            let yes = parser.expr()?;
            parser.expect(":")?;
            let no = parser.expr()?;
            let (span, heights) = (condition.span.to(no.span), [condition.height, yes.height, no.height]);
            parser.make(ExprKind::Choose(Box::new(condition), Box::new(yes), Box::new(no)), span, &heights)
        })
    }

    fn binary(&mut self, level: usize) -> ParseResult<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let found = match self.peek(0) {
                Token::Word(word) => operators.iter().find(|(symbol, _)| symbol == word),
                _ => None,
            };
            let Some((_, operator)) = found else { return Ok(left) };
            if self.is("*") && self.is_at(1, "*") {
                return Err(self.no_power());
            }
            self.at += 1;
            let right = self.binary(level + 1)?;
            let (span, heights) = (left.span.to(right.span), [left.height, right.height]);
            left = self.make(ExprKind::Binary(*operator, Box::new(left), Box::new(right)), span, &heights)?;
        }
    }

    /// Parses an operand with the casts, signs and steps before and after it.
    ///
    /// The original compiler allows one sign and none before a cast. Any sequence is accepted here, because
    /// it cannot be ambiguous.
    pub(super) fn unary(&mut self) -> ParseResult<Expr> {
        let from = self.span();
        let word = match self.peek(0) {
            Token::Word(word) => *word,
            _ => return self.postfix(),
        };
        if word == "(" {
            self.at += 1;
            let base = self.primitive().filter(|_| self.is_at(1, ")"));
            if let Some(base) = base {
                self.at += 2;
                let operand = self.nested(Self::unary)?;
                let (span, height) = (from.to(operand.span), operand.height);
                return self.make(ExprKind::Cast(base, Box::new(operand)), span, &[height]);
            }
            self.at -= 1;
            return self.postfix();
        }
        if !matches!(word, "-" | "!" | "~" | "++" | "--") {
            return self.postfix();
        }
        self.at += 1;
        let operand = self.nested(Self::unary)?;
        let (span, height) = (from.to(operand.span), operand.height);
        let operand = Box::new(operand);
        let kind = match word {
            "-" => ExprKind::Negate(operand),
            "!" => ExprKind::Not(operand),
            "~" => ExprKind::Complement(operand),
            "++" => ExprKind::Step(operand, 1, true),
            _ => ExprKind::Step(operand, -1, true),
        };
        self.make(kind, span, &[height])
    }

    fn postfix(&mut self) -> ParseResult<Expr> {
        let mut value = self.primary()?;
        loop {
            let height = value.height;
            let from = value.span;
            value = if self.accept("[") {
                let index = self.expr()?;
                self.expect("]")?;
                let heights = [height, index.height];
                self.make(ExprKind::Index(Box::new(value), Box::new(index)), from.to(self.before()), &heights)?
            } else if self.accept(".") {
                let member = self.name("the name of a member")?;
                if let (ExprKind::Name(name), true) = (&value.kind, self.is("(")) {
                    let package = Ident { name: name.clone(), span: from };
                    let arguments = self.arguments()?;
                    let heights: Vec<u32> = arguments.iter().map(|argument| argument.height).collect();
                    self.make(ExprKind::PackageCall(package, member, arguments), from.to(self.before()), &heights)?
                } else {
                    self.make(ExprKind::Member(Box::new(value), member), from.to(self.before()), &[height])?
                }
            } else if self.is("++") || self.is("--") {
                let step = if self.is("++") { 1 } else { -1 };
                self.at += 1;
                self.make(ExprKind::Step(Box::new(value), step, false), from.to(self.before()), &[height])?
            } else {
                return Ok(value);
            };
        }
    }

    pub(super) fn arguments(&mut self) -> ParseResult<Vec<Expr>> {
        self.expect("(")?;
        let mut arguments = vec![];
        while !self.accept(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.expr()?);
        }
        Ok(arguments)
    }

    fn leaf(&mut self, kind: ExprKind, span: Span) -> ParseResult<Expr> {
        self.at += 1;
        self.make(kind, span, &[])
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        let from = self.span();
        match self.peek(0).clone() {
            Token::Int(value) => self.leaf(ExprKind::Int(value), from),
            Token::Float(value) => self.leaf(ExprKind::Float(value), from),
            Token::Imaginary(value) => self.leaf(ExprKind::Imaginary(value), from),
            Token::Text(value) => self.leaf(ExprKind::Text(value), from),
            Token::Word("true") => self.leaf(ExprKind::Boolean(true), from),
            Token::Word("false") => self.leaf(ExprKind::Boolean(false), from),
            Token::Word("pi") => self.leaf(ExprKind::Float(std::f32::consts::PI), from),
            Token::Word("(") => {
                self.at += 1;
                let mut inner = self.expr()?;
                self.expect(")")?;
                inner.span = from.to(self.before());
                Ok(inner)
            }
            Token::Word(word @ ("pop" | "iter")) => {
                self.at += 1;
                self.expect("(")?;
                self.expect(")")?;
                let kind = if word == "pop" { ExprKind::Pop } else { ExprKind::Iter };
                self.make(kind, from.to(self.before()), &[])
            }
            Token::Word("peek") => {
                self.at += 1;
                self.expect("(")?;
                let index = self.expr()?;
                self.expect(")")?;
                let height = index.height;
                self.make(ExprKind::Peek(Box::new(index)), from.to(self.before()), &[height])
            }
            Token::Name(name) => {
                self.no_word_as_sign()?;
                self.at += 1;
                if !self.is("(") {
                    return self.make(ExprKind::Name(name), from, &[]);
                }
                let arguments = self.arguments()?;
                let heights: Vec<u32> = arguments.iter().map(|argument| argument.height).collect();
                self.make(ExprKind::Call(Ident { name, span: from }, arguments), from.to(self.before()), &heights)
            }
            _ => match self.primitive().filter(|_| self.is_at(1, "(")) {
                Some(base) => Err(self.type_as_function(&base)),
                None => Err(self.unexpected("an expression")),
            },
        }
    }
}
