//! Declarations.

use super::{ParseResult, Parser};
use crate::language::codes;
use crate::language::syntax::ast::{
    Composite, Expr, ExprKind, Filter, Function, Include, Package, Program, Rate, Rates, Setting, Static, Stream, StreamKind,
    Struct, Type, Variable, Work,
};
use crate::language::syntax::token::Token;
use broadloom_diag::{Diagnostic, Span};

impl Parser {
    pub(super) fn program(&mut self) -> Program {
        let mut program = Program::default();
        while *self.peek(0) != Token::End && !self.errors.is_full() {
            let start = self.at;
            self.nesting = 0;
            if let Err(error) = self.declaration(&mut program) {
                self.errors.push(*error);
                self.recover(start);
            }
        }
        program
    }

    /// Skips the declaration that began at a token, up to the end of its closing brace.
    fn recover(&mut self, start: usize) {
        let failed = self.at;
        self.at = start;
        let mut open = 0u32;
        while *self.peek(0) != Token::End {
            let closes = match self.peek(0) {
                Token::Word("{") => {
                    open += 1;
                    false
                }
                Token::Word("}") => {
                    open = open.saturating_sub(1);
                    open == 0
                }
                _ => false,
            };
            self.at += 1;
            if closes && self.at > failed {
                return;
            }
        }
    }

    fn declaration(&mut self, program: &mut Program) -> ParseResult<()> {
        match self.peek(0) {
            Token::Word("struct") => program.structs.push(self.structure()?),
            Token::Word("static") => program.statics.push(self.statics()?),
            Token::Word("helper" | "native") => program.packages.push(self.package()?),
            Token::Name(name) if &**name == "include" => program.includes.push(self.include()?),
            _ => {
                let start = self.at;
                let input = self.ty()?;
                self.no_member_at_top(start..self.at)?;
                self.expect("->")?;
                let output = self.ty()?;
                program.streams.push(self.stream(Some((input, output)), true)?);
            }
        }
        // A `;` after a declaration is not in the grammar. It is accepted.
        self.accept(";");
        Ok(())
    }

    fn include(&mut self) -> ParseResult<Include> {
        self.name("`include`")?;
        let from = self.span();
        let is_block = self.accept("<");
        let name = match self.peek(0).clone() {
            Token::Text(name) if !is_block => {
                self.at += 1;
                name
            }
            Token::Name(name) if is_block => {
                self.at += 1;
                self.expect(".")?;
                let ending = self.name("the ending `str`")?;
                self.expect(">")?;
                format!("{name}.{}", ending.name).into()
            }
            _ => return Err(self.unexpected("the text in quotes, or a file of the library: `include <fir.str>;`")),
        };
        Ok(Include { name, is_block, span: from.to(self.before()) })
    }

    /// Parses `name=value` or `Stream.name=value`, up to the end.
    pub(super) fn setting(&mut self) -> ParseResult<Setting> {
        let mut name = self.name("the name of a static variable or of a parameter")?;
        let mut stream = None;
        if self.accept(".") {
            stream = Some(std::mem::replace(&mut name, self.name("the name of a parameter")?));
        }
        self.expect("=")?;
        let value = self.initialiser()?;
        match self.peek(0) {
            Token::End => Ok(Setting { stream, name, value }),
            _ => Err(self.unexpected("the end of the value")),
        }
    }

    fn structure(&mut self) -> ParseResult<Struct> {
        self.expect("struct")?;
        let name = self.name("the name of the struct")?;
        self.expect("{")?;
        let mut members = vec![];
        while !self.accept("}") {
            let start = self.at;
            let ty = self.ty()?;
            let end = self.at;
            members.push(crate::language::syntax::ast::Parameter { ty, name: self.name("the name of a member")? });
            self.no_lengths_behind_name(start..end)?;
            self.expect(";")?;
        }
        Ok(Struct { name, members })
    }

    fn statics(&mut self) -> ParseResult<Static> {
        self.expect("static")?;
        self.expect("{")?;
        let mut statics = Static { fields: vec![], init: None };
        while !self.accept("}") {
            if self.is("init") {
                let span = self.expect("init")?;
                let body = self.block()?;
                Self::once(&mut statics.init, body, "init", span)?;
            } else {
                statics.fields.extend(self.variables()?);
                self.expect(";")?;
            }
        }
        Ok(statics)
    }

    fn package(&mut self) -> ParseResult<Package> {
        let native = self.is("native");
        self.at += 1;
        let name = self.name("the name of the package")?;
        self.expect("{")?;
        let mut functions = vec![];
        while !self.accept("}") {
            functions.push(self.function(!native)?);
        }
        Ok(Package { name, functions })
    }

    pub(super) fn stream(&mut self, types: Option<(Type, Type)>, named: bool) -> ParseResult<Stream> {
        let stateful = self.accept("stateful");
        let span = self.span();
        let composite = match self.peek(0) {
            Token::Word("filter") => None,
            Token::Word("pipeline") if !stateful => Some(Composite::Pipeline),
            Token::Word("splitjoin") if !stateful => Some(Composite::SplitJoin),
            Token::Word("feedbackloop") if !stateful => Some(Composite::FeedbackLoop),
            _ => return Err(self.unexpected("`filter`, `pipeline`, `splitjoin` or `feedbackloop`")),
        };
        self.at += 1;
        let name = if named { Some(self.name("the name of the stream")?) } else { None };
        let params = if named && self.is("(") { self.params()? } else { vec![] };
        let kind = match composite {
            None => StreamKind::Filter(Box::new(self.nested(|parser| parser.filter(stateful, span))?)),
            Some(composite) => StreamKind::Composite(composite, self.nested(Self::block)?),
        };
        if types.is_none() && matches!(kind, StreamKind::Filter(_)) {
            let error = Diagnostic::error(codes::BAD_DECLARATION, "an anonymous filter needs its types");
            return Err(Box::new(error.at(span, "").help("write them before `filter`: `int->int filter { … }`")));
        }
        Ok(Stream { name, params, types, kind, span })
    }

    fn once<T>(slot: &mut Option<T>, value: T, word: &str, span: Span) -> ParseResult<()> {
        if slot.replace(value).is_some() {
            let error = Diagnostic::error(codes::BAD_DECLARATION, format!("there are two `{word}` functions"));
            return Err(Box::new(error.at(span, "this is the second").help("merge them")));
        }
        Ok(())
    }

    fn filter(&mut self, stateful: bool, start: Span) -> ParseResult<Filter> {
        let mut filter = Filter { stateful, ..Filter::default() };
        self.expect("{")?;
        while !self.accept("}") {
            let span = self.span();
            if let (Token::Word("void"), Token::Word(word @ ("init" | "work" | "prework")))
            | (Token::Word(word @ ("init" | "work" | "prework")), Token::Word("(")) = (self.peek(0), self.peek(1))
            {
                return Err(self.work_as_function(word));
            }
            match self.peek(0) {
                Token::Word("init") => {
                    self.at += 1;
                    let body = self.block()?;
                    Self::once(&mut filter.init, body, "init", span)?;
                }
                Token::Word(word @ ("work" | "prework")) => {
                    let word = *word;
                    self.at += 1;
                    let rates = self.rates()?;
                    let work = Work { rates, body: self.block()?, span };
                    Self::once(if word == "work" { &mut filter.work } else { &mut filter.prework }, work, word, span)?;
                }
                Token::Word("handler") => {
                    self.at += 1;
                    let name = self.name("the name of the handler")?;
                    let params = self.params()?;
                    let result = Type { base: crate::language::syntax::ast::Base::Void, lengths: vec![], span };
                    let body = Some(self.block()?);
                    filter.handlers.push(Function { result, name, params, rates: Rates::default(), body });
                }
                // An empty declaration is not in the grammar. It is accepted.
                Token::Word(";") => self.at += 1,
                _ => match self.behind_type() {
                    Some(ahead) if matches!(self.peek(ahead), Token::Name(_)) && self.is_at(ahead + 1, "(") => {
                        filter.functions.push(self.function(true)?);
                    }
                    _ => {
                        filter.fields.extend(self.variables()?);
                        self.expect(";")?;
                    }
                },
            }
        }
        if filter.work.is_none() {
            let error = Diagnostic::error(codes::BAD_DECLARATION, "the filter has no `work` function").at(start, "");
            return Err(Box::new(error.help("add `work push … pop … { … }`")));
        }
        Ok(filter)
    }

    fn function(&mut self, with_body: bool) -> ParseResult<Function> {
        let result = self.ty()?;
        let name = self.name("the name of a function")?;
        let params = self.params()?;
        let rates = self.rates()?;
        let body = if with_body { Some(self.block()?) } else { None };
        if !with_body {
            self.expect(";")?;
        }
        Ok(Function { result, name, params, rates, body })
    }

    fn rates(&mut self) -> ParseResult<Rates> {
        let mut rates = Rates::default();
        loop {
            let word = match self.peek(0) {
                Token::Word(word @ ("push" | "pop" | "peek")) => *word,
                _ => return Ok(rates),
            };
            let span = self.span();
            self.at += 1;
            let rate = self.rate()?;
            let slot = match word {
                "push" => &mut rates.push,
                "pop" => &mut rates.pop,
                _ => &mut rates.peek,
            };
            if slot.replace(rate).is_some() {
                let error = Diagnostic::error(codes::BAD_DECLARATION, format!("the {word} rate stands twice"));
                return Err(Box::new(error.at(span, "this is the second")));
            }
        }
    }

    fn rate(&mut self) -> ParseResult<Rate> {
        let from = self.span();
        if self.accept("*") {
            return Ok(Rate::Range(None, None, from));
        }
        if !self.accept("[") {
            return Ok(Rate::Exact(self.expr()?));
        }
        let mut bounds = vec![self.bound()?];
        while self.accept(",") {
            bounds.push(self.bound()?);
        }
        self.expect("]")?;
        let span = from.to(self.before());
        if !(2..=3).contains(&bounds.len()) {
            let error = Diagnostic::error(codes::UNEXPECTED, "a range of rates has two or three parts");
            return Err(Box::new(error.at(span, "").help("write `[min, max]` or `[min, average, max]`")));
        }
        let max = bounds.pop().flatten();
        let min = bounds.swap_remove(0);
        Ok(Rate::Range(min, max, span))
    }

    fn bound(&mut self) -> ParseResult<Option<Expr>> {
        if self.accept("*") { Ok(None) } else { self.expr().map(Some) }
    }

    /// Parses fields or locals of one type, without the `;`.
    pub(super) fn variables(&mut self) -> ParseResult<Vec<Variable>> {
        let start = self.at;
        let ty = self.ty()?;
        let end = self.at;
        let mut variables = vec![];
        loop {
            let name = self.name("a name")?;
            self.no_lengths_behind_name(start..end)?;
            let value = if self.accept("=") { Some(self.initialiser()?) } else { None };
            variables.push(Variable { ty: ty.clone(), name, value });
            if !self.accept(",") {
                return Ok(variables);
            }
        }
    }

    fn initialiser(&mut self) -> ParseResult<Expr> {
        let from = self.span();
        if !self.accept("{") {
            return self.expr();
        }
        let mut items: Vec<Expr> = vec![];
        while !self.accept("}") {
            if !items.is_empty() {
                self.expect(",")?;
                if self.accept("}") {
                    break;
                }
            }
            items.push(self.nested(Self::initialiser)?);
        }
        let heights: Vec<u32> = items.iter().map(|item| item.height).collect();
        self.make(ExprKind::List(items), from.to(self.before()), &heights)
    }
}
