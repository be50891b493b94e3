//! Text to programs.
//!
//! Tokens are those of the original: words of letters, digits and `-+*/%<>=!._`, integers, floats, strings
//! without escapes, parentheses around vectors, comments in braces. A program starts at `MAIN`, or at its
//! first function.

use super::extension::{Check, Foreign, Layout};
use super::{Choice, Constant, FuncId, Function, Inst, Op, Program, Type};
use crate::codes;
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Span};
use std::collections::HashMap;

/// Maximum nesting of conditionals.
const MAX_NESTING: usize = 400;

/// Maximum number of errors that are reported for one text.
const MAX_ERRORS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum VcodeToken<'a> {
    Word(&'a str),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Open,
    Close,
    Bad(&'static str),
}

/// Reads a program.
pub fn parse(source: SourceId, text: &str) -> Result<Program, Diagnostics> {
    let tokens = lex(source, text);
    let mut parser =
        VcodeParser { tokens, at: 0, source, end: text.len(), errors: Diagnostics::new(), count: 0, program: Program::default() };
    parser.program();
    if parser.count == 0 { Ok(parser.program) } else { Err(parser.errors) }
}

fn lex(source: SourceId, text: &str) -> Vec<(VcodeToken<'_>, Span)> {
    let bytes = text.as_bytes();
    let mut tokens = vec![];
    let mut at = 0;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-+*/%<>=!._".contains(&byte);
    while at < bytes.len() {
        let start = at;
        let token = match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' => {
                at += 1;
                continue;
            }
            b'{' => match text[at..].find('}') {
                Some(length) => {
                    at += length + 1;
                    continue;
                }
                None => {
                    at = bytes.len();
                    VcodeToken::Bad("a comment has no closing brace")
                }
            },
            b'"' => match text[at + 1..].find('"') {
                Some(length) => {
                    at += length + 2;
                    VcodeToken::Text(&text[start + 1..at - 1])
                }
                None => {
                    at = bytes.len();
                    VcodeToken::Bad("a string has no closing quotation mark")
                }
            },
            b'(' | b')' => {
                at += 1;
                if bytes[start] == b'(' { VcodeToken::Open } else { VcodeToken::Close }
            }
            byte if is_word(byte) => {
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                word(&text[start..at])
            }
            _ => {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
                VcodeToken::Bad("this character begins no token")
            }
        };
        tokens.push((token, Span { source, start: start as u32, end: at as u32 }));
    }
    tokens
}

fn word(text: &str) -> VcodeToken<'_> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse() {
                Ok(value) => VcodeToken::Int(value),
                Err(_) => VcodeToken::Bad("this integer has more than 64 bits"),
            };
        }
        let plain = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
        if let (true, true, Ok(value)) = (plain, unsigned.contains('.'), text.parse()) {
            return VcodeToken::Float(value);
        }
    }
    match text {
        "NAN" => VcodeToken::Float(f64::NAN),
        "+INF" => VcodeToken::Float(f64::INFINITY),
        "-INF" => VcodeToken::Float(f64::NEG_INFINITY),
        _ => VcodeToken::Word(text),
    }
}

struct VcodeParser<'a> {
    tokens: Vec<(VcodeToken<'a>, Span)>,
    at: usize,
    source: SourceId,
    end: usize,
    errors: Diagnostics,
    count: usize,
    program: Program,
}

type ParseResult<T> = Result<T, ()>;

impl<'a> VcodeParser<'a> {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.count += 1;
        if self.count <= MAX_ERRORS {
            self.errors.push(Diagnostic::error(codes::VCODE, message).at(span, ""));
        }
    }

    fn here(&self) -> Span {
        let end = Span { source: self.source, start: self.end as u32, end: self.end as u32 };
        self.tokens.get(self.at).map_or(end, |&(_, span)| span)
    }

    fn fail<T>(&mut self, message: impl Into<String>) -> ParseResult<T> {
        let span = self.here();
        match self.peek() {
            Some(VcodeToken::Bad(reason)) => self.error(span, reason),
            _ => self.error(span, message),
        }
        Err(())
    }

    fn peek(&self) -> Option<VcodeToken<'a>> {
        self.tokens.get(self.at).map(|&(token, _)| token)
    }

    fn next(&mut self) -> Option<VcodeToken<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(VcodeToken::Word(word));
        self.at += usize::from(found);
        found
    }

    fn program(&mut self) {
        let mut names: HashMap<&'a str, FuncId> = HashMap::new();
        let mut calls: Vec<(FuncId, usize, &'a str, Span)> = vec![];
        while self.at < self.tokens.len() {
            if !self.eat("FUNC") {
                let _ = self.fail::<()>("expected `FUNC` and the name of a function");
                self.skip_function();
                continue;
            }
            let span = self.here();
            let Some(VcodeToken::Word(name)) = self.next() else {
                self.at -= 1;
                let _ = self.fail::<()>("expected the name of a function");
                self.skip_function();
                continue;
            };
            let id = self.program.functions.next_key();
            if names.insert(name, id).is_some() {
                self.error(span, format!("the function `{name}` is defined twice"));
            }
            let first = self.program.main.is_none();
            if first || name == "MAIN" {
                self.program.main = Some(id);
            }
            let function = match self.function(name, id, &mut calls) {
                Ok(function) => function,
                Err(()) => {
                    self.skip_function();
                    Function { name: name.to_owned(), ..Function::default() }
                }
            };
            self.program.functions.push(function);
        }
        if self.program.functions.is_empty() && self.count == 0 {
            let _ = self.fail::<()>("the program has no function");
        }
        for (caller, index, name, span) in calls {
            match (names.get(name), self.program.functions[caller].code.get_mut(index)) {
                (Some(&callee), Some(inst)) => *inst = Inst::Call(callee),
                (None, _) => self.error(span, format!("the function `{name}` is not defined")),
                (Some(_), None) => {}
            }
        }
    }

    fn skip_function(&mut self) {
        while self.at < self.tokens.len() && self.peek() != Some(VcodeToken::Word("FUNC")) {
            self.at += 1;
        }
    }

    fn types(&mut self) -> Vec<Type> {
        let mut types = vec![];
        while let Some(VcodeToken::Word(word)) = self.peek()
            && let Some(ty) = Type::by_name(word)
        {
            self.at += 1;
            types.push(ty.stacked());
        }
        types
    }

    fn function(&mut self, name: &str, id: FuncId, calls: &mut Vec<(FuncId, usize, &'a str, Span)>) -> ParseResult<Function> {
        let mut function = Function { name: name.to_owned(), ..Function::default() };
        if self.eat("I") {
            let operands = self.types();
            if !self.eat("O") {
                return self.fail("expected `O` and the types of the results");
            }
            function.signature = Some((operands, self.types()));
        }
        // Open conditionals: the index of `IF` or `ELSE`, and whether it is an `ELSE`.
        let mut open: Vec<(usize, bool)> = vec![];
        loop {
            let span = self.here();
            let index = function.code.len();
            let Some(VcodeToken::Word(word)) = self.peek() else {
                return self.fail(format!("expected an instruction or the `RET` that ends `{name}`"));
            };
            self.at += 1;
            let inst = match word {
                "RET" => Inst::Return,
                "COPY" => self.positions().map(|(count, from)| Inst::Copy(count, from))?,
                "POP" => self.positions().map(|(count, from)| Inst::Pop(count, from))?,
                "CPOP" => self.positions().map(|(count, from)| Inst::CopyPop(count, from))?,
                "PAIR" => Inst::Pair,
                "UNPAIR" => Inst::Unpair,
                "EXIT" => Inst::Exit,
                "CONST" => Inst::Const(self.constant()?),
                "CALL" => {
                    let span = self.here();
                    let Some(VcodeToken::Word(callee)) = self.peek() else { return self.fail("expected the name of a function") };
                    self.at += 1;
                    calls.push((id, index, callee, span));
                    Inst::Call(id)
                }
                "IF" => {
                    if open.len() >= MAX_NESTING {
                        self.error(span, format!("conditionals nest deeper than {MAX_NESTING}"));
                        return Err(());
                    }
                    open.push((index, false));
                    Inst::If(0)
                }
                "ELSE" | "ENDIF" => {
                    let Some((start, is_else)) = open.pop().filter(|&(_, is_else)| !(is_else && word == "ELSE")) else {
                        self.error(span, format!("this `{word}` has no `IF`"));
                        return Err(());
                    };
                    let target = index as u32 + 1;
                    function.code[start] = if is_else { Inst::Else(target) } else { Inst::If(target) };
                    if word == "ELSE" {
                        open.push((index, true));
                        Inst::Else(0)
                    } else {
                        Inst::EndIf
                    }
                }
                "CHECK" => {
                    let found = match self.peek() {
                        Some(VcodeToken::Text(name)) => Check::ALL.iter().find(|check| check.name() == name).copied(),
                        _ => None,
                    };
                    let Some(check) = found else { return self.fail("expected the name of a check in quotation marks") };
                    self.at += 1;
                    Inst::Check(check)
                }
                "SMALL" => Inst::Small,
                "HOST" => Inst::Foreign(Box::new(self.foreign()?)),
                _ => self.op(word)?,
            };
            let last = inst == Inst::Return;
            if last && !open.is_empty() {
                self.error(span, "`RET` stands inside of a conditional that has no `ENDIF`");
                return Err(());
            }
            function.code.push(inst);
            function.spans.push(span);
            if last {
                return Ok(function);
            }
        }
    }

    fn op(&mut self, word: &str) -> ParseResult<Inst> {
        let Some(op) = Op::by_name(word) else {
            self.at -= 1;
            return self.fail(format!("`{word}` is no instruction"));
        };
        if let Choice::Fixed(ty) = op.choice() {
            return Ok(Inst::Op(op, ty));
        }
        let ty = match self.peek() {
            Some(VcodeToken::Word(word)) => Type::by_name(word).filter(|&ty| op.choice().allows(ty)),
            _ => None,
        };
        let Some(ty) = ty else {
            let all = [Type::Int, Type::Float, Type::Bool, Type::Segdes, Type::Char];
            let names: Vec<&str> = all.into_iter().filter(|&ty| op.choice().allows(ty)).map(Type::name).collect();
            return self.fail(format!("expected a type behind `{}`: {}", op.name(), names.join(" or ")));
        };
        self.at += 1;
        Ok(Inst::Op(op, ty))
    }

    fn positions(&mut self) -> ParseResult<(u32, u32)> {
        let mut number = || match self.peek() {
            Some(VcodeToken::Int(value)) if (0..1 << 20).contains(&value) => {
                self.at += 1;
                Ok(value as u32)
            }
            _ => self.fail("expected a number of entries of the stack, 0 to 1048575"),
        };
        Ok((number()?, number()?))
    }

    fn constant(&mut self) -> ParseResult<Constant> {
        let ty = match self.peek() {
            Some(VcodeToken::Word(word)) => Type::by_name(word),
            _ => None,
        };
        let Some(ty) = ty else { return self.fail("expected the type of a constant") };
        self.at += 1;
        if ty == Type::Char {
            let Some(VcodeToken::Text(text)) = self.peek() else { return self.fail("expected a string in quotation marks") };
            self.at += 1;
            return Ok(Constant::Text(text.as_bytes().into()));
        }
        let (start, mut tokens) = (self.here(), vec![]);
        if self.peek() == Some(VcodeToken::Open) {
            self.at += 1;
            while self.peek() != Some(VcodeToken::Close) {
                match self.next() {
                    Some(token @ (VcodeToken::Int(_) | VcodeToken::Float(_) | VcodeToken::Word(_))) => tokens.push(token),
                    _ => {
                        self.at -= 1;
                        return self.fail("expected a value or the `)` that ends the vector");
                    }
                }
            }
            self.at += 1;
        } else if let Some(token) = self.next() {
            tokens.push(token);
        }
        let constant = match ty {
            Type::Int => collect(&tokens, int).map(Constant::Int),
            Type::Segdes => collect(&tokens, |token| int(token).filter(|length| (0..=i64::from(u32::MAX)).contains(length)))
                .map(Constant::Segdes),
            Type::Float => collect(&tokens, |token| match token {
                VcodeToken::Float(value) => Some(value),
                _ => None,
            })
            .map(Constant::Float),
            Type::Bool => collect(&tokens, |token| match token {
                VcodeToken::Word("T") => Some(true),
                VcodeToken::Word("F") => Some(false),
                _ => None,
            })
            .map(Constant::Bool),
            Type::Char => None,
        };
        let Some(constant) = constant else {
            self.error(start, format!("this is no constant of the type {}", ty.name()));
            return Err(());
        };
        Ok(constant)
    }

    fn foreign(&mut self) -> ParseResult<Foreign> {
        let mut texts = vec![];
        for what in ["the name of a function of the host", "the type of its argument", "the type of its result"] {
            let Some(VcodeToken::Text(text)) = self.peek() else {
                return self.fail(format!("expected {what} in quotation marks"));
            };
            if !texts.is_empty() && Layout::parse(text).is_none() {
                return self.fail(format!("`{text}` is no type"));
            }
            self.at += 1;
            texts.push(text);
        }
        let layout = |text: &str| Layout::parse(text).unwrap_or(Layout::Nothing);
        Ok(Foreign { name: texts[0].to_owned(), argument: layout(texts[1]), result: layout(texts[2]) })
    }
}

fn int(token: VcodeToken<'_>) -> Option<i64> {
    match token {
        VcodeToken::Int(value) => Some(value),
        VcodeToken::Word("STDIN") => Some(0),
        VcodeToken::Word("STDOUT") => Some(1),
        VcodeToken::Word("STDERR") => Some(2),
        VcodeToken::Word("NULL_STREAM") => Some(-1),
        _ => None,
    }
}

fn collect<'a, T, C: FromIterator<T>>(tokens: &[VcodeToken<'a>], convert: impl Fn(VcodeToken<'a>) -> Option<T>) -> Option<C> {
    tokens.iter().map(|&token| convert(token)).collect()
}
