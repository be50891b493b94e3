//! Statements.

use super::{ParseResult, Parser};
use crate::language::codes;
use crate::language::syntax::ast::{Binary, Create, Created, Distribution, Expr, ExprKind, Latency, Stmt, StmtKind};
use crate::language::syntax::token::Token;
use broadloom_diag::Diagnostic;

impl Parser {
    pub(super) fn block(&mut self) -> ParseResult<Vec<Stmt>> {
        self.expect("{")?;
        let mut statements = vec![];
        while !self.accept("}") {
            if *self.peek(0) == Token::End {
                return Err(self.unexpected("`}`"));
            }
            statements.push(self.nested(Self::statement)?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> ParseResult<Stmt> {
        let from = self.span();
        let word = match self.peek(0) {
            Token::Word(word) => *word,
            _ => "",
        };
        let kind = match word {
            "{" => StmtKind::Block(self.block()?),
            ";" => {
                self.at += 1;
                StmtKind::Block(vec![])
            }
            "add" | "body" | "loop" => {
                self.at += 1;
                let create = self.create()?;
                match word {
                    "add" => StmtKind::Add(create),
                    "body" => StmtKind::Body(create),
                    _ => StmtKind::Loop(create),
                }
            }
            "split" | "join" => {
                self.at += 1;
                let distribution = self.distribution()?;
                self.expect(";")?;
                if word == "split" { StmtKind::Split(distribution) } else { StmtKind::Join(distribution) }
            }
            "enqueue" => {
                self.at += 1;
                let value = self.expr()?;
                self.expect(";")?;
                StmtKind::Enqueue(value)
            }
            "push" => {
                self.at += 1;
                self.expect("(")?;
                let value = self.expr()?;
                self.expect(")")?;
                self.expect(";")?;
                StmtKind::Push(value)
            }
            "break" | "continue" => {
                self.at += 1;
                self.expect(";")?;
                if word == "break" { StmtKind::Break } else { StmtKind::Continue }
            }
            "return" => {
                self.at += 1;
                let value = if self.is(";") { None } else { Some(self.expr()?) };
                self.expect(";")?;
                StmtKind::Return(value)
            }
            "if" => self.if_statement()?,
            "while" => {
                self.at += 1;
                let condition = self.condition()?;
                StmtKind::While(condition, Box::new(self.nested(Self::statement)?))
            }
            "do" => {
                self.at += 1;
                let body = Box::new(self.nested(Self::statement)?);
                self.expect("while")?;
                let condition = self.condition()?;
                self.expect(";")?;
                StmtKind::DoWhile(body, condition)
            }
            "for" => self.for_statement()?,
            "switch" | "case" | "default" | "template" => {
                let error = Diagnostic::error(codes::UNEXPECTED, format!("`{word}` is reserved and has no meaning"));
                return Err(Box::new(error.at(from, "").help("use `if` and `else`")));
            }
            _ => {
                let simple = self.simple_statement()?;
                self.expect(";")?;
                simple
            }
        };
        Ok(Stmt { kind, span: from.to(self.before()) })
    }

    fn condition(&mut self) -> ParseResult<Expr> {
        self.expect("(")?;
        let condition = self.expr()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn if_statement(&mut self) -> ParseResult<StmtKind> {
        self.expect("if")?;
        let condition = self.condition()?;
        let then = Box::new(self.nested(Self::statement)?);
        let otherwise = if self.accept("else") { Some(Box::new(self.nested(Self::statement)?)) } else { None };
        Ok(StmtKind::If(condition, then, otherwise))
    }

    fn for_statement(&mut self) -> ParseResult<StmtKind> {
        self.expect("for")?;
        self.expect("(")?;
        let init = self.part_of_for(";")?;
        self.expect(";")?;
        let condition = if self.is(";") { None } else { Some(self.expr()?) };
        self.expect(";")?;
        let step = self.part_of_for(")")?;
        self.expect(")")?;
        let body = Box::new(self.nested(Self::statement)?);
        Ok(StmtKind::For(init, condition, step, body))
    }

    fn part_of_for(&mut self, end: &str) -> ParseResult<Option<Box<Stmt>>> {
        if self.is(end) {
            return Ok(None);
        }
        let from = self.span();
        let kind = self.simple_statement()?;
        Ok(Some(Box::new(Stmt { kind, span: from.to(self.before()) })))
    }

    /// Parses a declaration, an assignment, a step, a call or a message, without the `;`.
    fn simple_statement(&mut self) -> ParseResult<StmtKind> {
        self.no_constants()?;
        if self.behind_type().is_some_and(|ahead| matches!(self.peek(ahead), Token::Name(_))) {
            return Ok(StmtKind::Declare(self.variables()?));
        }
        if matches!(self.peek(0), Token::Word("portal" | "float2" | "float3" | "float4")) || self.primitive().is_some() {
            // A type at the start of a statement can only begin a declaration. The error in it is reported.
            return Ok(StmtKind::Declare(self.variables()?));
        }
        if let (Token::Name(_), true, Token::Name(_), true) = (self.peek(0), self.is_at(1, "."), self.peek(2), self.is_at(3, "("))
        {
            return self.send();
        }
        let target = self.unary()?;
        let operator = match self.peek(0) {
            Token::Word("=") => None,
            Token::Word("+=") => Some(Binary::Add),
            Token::Word("-=") => Some(Binary::Subtract),
            Token::Word("*=") => Some(Binary::Multiply),
            Token::Word("/=") => Some(Binary::Divide),
            Token::Word("<<=") => Some(Binary::ShiftLeft),
            Token::Word(">>=") => Some(Binary::ShiftRight),
            Token::Word("%" | "&" | "|" | "^") if self.is_at(1, "=") => {
                let error = Diagnostic::error(codes::UNEXPECTED, "there is no compound assignment with this operator");
                return Err(Box::new(error.at(self.span(), "").help("write the operation out: `a = a % b;`")));
            }
            _ => {
                return match target.kind {
                    ExprKind::Call(..) | ExprKind::Step(..) | ExprKind::Pop | ExprKind::Peek(_) | ExprKind::Iter => {
                        Ok(StmtKind::Expr(target))
                    }
                    _ => {
                        let error = Diagnostic::error(codes::UNEXPECTED, format!("expected a statement, found {}", self.peek(0)));
                        let error = error.at(self.span(), "").label(target.span, "this expression is no statement");
                        Err(Box::new(error.help("assign it, push it, or leave it out")))
                    }
                };
            }
        };
        self.at += 1;
        let value = self.expr()?;
        Ok(StmtKind::Assign(target, operator, value))
    }

    fn send(&mut self) -> ParseResult<StmtKind> {
        let target = self.name("a name")?;
        self.expect(".")?;
        let function = self.name("a name")?;
        let arguments = self.arguments()?;
        let mut latency = Latency::None;
        if self.accept("[") {
            if self.accept("*") {
                latency = Latency::Any;
            } else {
                let min = if self.is(":") { None } else { Some(Box::new(self.expr()?)) };
                self.expect(":")?;
                let max = if self.is("]") { None } else { Some(Box::new(self.expr()?)) };
                latency = Latency::Range(min, max);
            }
            self.expect("]")?;
        }
        Ok(StmtKind::Send(target, function, arguments, latency))
    }

    fn create(&mut self) -> ParseResult<Create> {
        let from = self.span();
        let typed = self.behind_type().filter(|ahead| self.is_at(*ahead, "->"));
        let anonymous = match self.peek(0) {
            Token::Word("filter" | "pipeline" | "splitjoin" | "feedbackloop" | "stateful") => true,
            _ => typed.is_some(),
        };
        if anonymous {
            let types = match typed {
                Some(_) => {
                    let input = self.ty()?;
                    self.expect("->")?;
                    Some((input, self.ty()?))
                }
                None => None,
            };
            let stream = self.nested(|parser| parser.stream(types, false))?;
            let span = stream.span;
            let portals = self.portals()?;
            if portals.is_empty() {
                self.accept(";");
            } else {
                self.expect(";")?;
            }
            return Ok(Create { stream: Created::Anonymous(Box::new(stream)), portals, span });
        }
        let name = self.name("the name of a stream, or an anonymous stream")?;
        let mut ty = None;
        if self.accept("<") {
            ty = Some(self.ty()?);
            self.expect(">")?;
        }
        let arguments = if self.is("(") { self.arguments()? } else { vec![] };
        let span = from.to(self.before());
        let portals = self.portals()?;
        self.expect(";")?;
        Ok(Create { stream: Created::Named(name, ty, arguments), portals, span })
    }

    fn portals(&mut self) -> ParseResult<Vec<crate::language::syntax::ast::Ident>> {
        let mut portals = vec![];
        if self.accept("to") {
            loop {
                portals.push(self.name("the name of a portal")?);
                if !self.accept(",") {
                    break;
                }
            }
        }
        Ok(portals)
    }

    fn distribution(&mut self) -> ParseResult<Distribution> {
        if self.accept("duplicate") {
            if self.accept("(") {
                self.expect(")")?;
            }
            return Ok(Distribution::Duplicate);
        }
        if !self.accept("roundrobin") {
            return Err(self.unexpected("`duplicate` or `roundrobin`"));
        }
        if !self.is("(") {
            return Ok(Distribution::Even(None));
        }
        let mut weights = self.arguments()?;
        Ok(if weights.len() > 1 { Distribution::Weights(weights) } else { Distribution::Even(weights.pop()) })
    }
}
