//! Top-level forms.

use super::{COMMANDS, LostForm, ParseResult, Parser};
use crate::codes;
use crate::syntax::foreign::{first_word, misspelt_keyword};
use crate::syntax::{CommandWord, DatatypeForm, Expr, FormKind, FunctionForm, Mark, Name, TokenKind, Word};
use broadloom_diag::Diagnostic;

impl Parser {
    /// Parses one form and its terminator. If it is broken and begins with a word of another language, the
    /// error says what to write instead.
    pub(super) fn form(&mut self) -> ParseResult<FormKind> {
        let (first, span) = (self.kind().clone(), self.here());
        let is_misspelt = match (&first, self.peek(1)) {
            (TokenKind::Name(name), TokenKind::Name(_)) => misspelt_keyword(name.as_str()).is_some(),
            _ => false,
        };
        let form = if is_misspelt { Err(LostForm) } else { self.form_inside() };
        if let (Err(_), TokenKind::Name(name)) = (&form, &first)
            && let Some(advice) = first_word(name.as_str())
        {
            let message = format!("`{name}` does not begin a form");
            self.errors = Diagnostic::error(codes::UNEXPECTED, message).at(span, "unknown word").help(advice).into();
        }
        form
    }

    fn form_inside(&mut self) -> ParseResult<FormKind> {
        let kind = match self.kind().clone() {
            TokenKind::Word(Word::Function) => self.function()?,
            TokenKind::Word(Word::Datatype) => self.datatype()?,
            TokenKind::Mark(Mark::Question) => {
                self.advance();
                FormKind::Command("help".into(), vec![])
            }
            TokenKind::Name(name) if COMMANDS.contains(&name.as_str()) => self.command(name)?,
            _ => self.binding_or_expr()?,
        };
        if self.kind().ends_form() {
            if *self.kind() != TokenKind::End {
                self.advance();
            }
            return Ok(kind);
        }
        let found = self.kind().describe();
        let message = format!("expected `;` behind the form, found {found}");
        let error = if matches!(self.kind(), TokenKind::Word(Word::Function | Word::Datatype)) {
            Diagnostic::error(codes::EXPECTED, message)
                .at(self.previous().after(), "expected `;`")
                .label(self.here(), "the next definition begins here")
        } else {
            self.error(codes::EXPECTED, message, "cannot stand here")
        };
        self.fail(error)
    }

    fn function(&mut self) -> ParseResult<FormKind> {
        self.advance();
        let name_span = self.here();
        let name = match self.kind() {
            TokenKind::Name(name) => name.clone(),
            TokenKind::Word(word @ (Word::And | Word::Or | Word::Xor | Word::Nand | Word::Nor)) => word.text().into(),
            TokenKind::Mark(mark) if Self::is_operator(*mark) => mark.text().into(),
            TokenKind::Word(word) => {
                let error = self
                    .error(codes::RESERVED, format!("`{word}` is reserved and cannot be a function"), "choose another name")
                    .note("`t` and `f` are the values true and false");
                return self.fail(error);
            }
            _ => self.name("the name of a function")?,
        };
        self.advance();
        let parameter = self.function_parameter(&name)?;
        let spec = if self.eat(Mark::Colon) { Some(self.type_spec()?) } else { None };
        let doc = match self.kind() {
            TokenKind::Text(text) => Some(text.clone()),
            _ => None,
        };
        if doc.is_some() {
            self.advance();
        }
        if spec.is_some() && self.kind().ends_form() {
            return Ok(FormKind::Function(FunctionForm { name, name_span, parameter, spec, doc, body: None }));
        }
        if !self.at_mark(Mark::Bind) {
            let found = self.kind().describe();
            let after = if spec.is_some() { "`=` behind the type" } else { "`=` or `:` behind the parameters" };
            let mut error = self.error(codes::EXPECTED, format!("expected {after} of a function, found {found}"), "expected `=`");
            if self.at_mark(Mark::OpenBrace) {
                error = error.help("the body of a function is an expression: `function g(x) = x + 1;`");
            }
            return self.fail(error);
        }
        self.advance();
        let body = Some(self.whole()?);
        Ok(FormKind::Function(FunctionForm { name, name_span, parameter, spec, doc, body }))
    }

    fn is_operator(mark: Mark) -> bool {
        let infix = crate::syntax::BinaryOp::ALL.iter().any(|op| op.text() == mark.text());
        infix || matches!(mark, Mark::Length | Mark::Show | Mark::Bind)
    }

    fn function_parameter(&mut self, name: &Name) -> ParseResult<crate::syntax::PatternId> {
        let expr = match self.kind() {
            TokenKind::Name(parameter) => {
                let (expr, span) = (Expr::Name(parameter.clone()), self.here());
                self.advance();
                self.node(expr, span, &[])?
            }
            TokenKind::Mark(Mark::Open) => {
                self.advance();
                if self.at_mark(Mark::Close) {
                    let error = self
                        .error(codes::EXPECTED, format!("`{name}` has no parameter"), "a parameter is missing")
                        .help("a function takes at least one argument; it may ignore it, as in `function g(ignore) = …`")
                        .help(format!("a value needs no function: `{name} = …;`"));
                    return self.fail(error);
                }
                let inner = self.whole()?;
                self.expect(Mark::Close, "behind the parameters of a function")?;
                inner
            }
            kind => {
                let found = kind.describe();
                let message = format!("expected the parameters of `{name}`, found {found}");
                let error = self.error(codes::EXPECTED, message, "expected `(`").help(format!("write `function {name}(x) = …`"));
                return self.fail(error);
            }
        };
        self.parameter(expr)
    }

    fn datatype(&mut self) -> ParseResult<FormKind> {
        self.advance();
        let name_span = self.here();
        let name = self.name("the name of a datatype")?;
        if self.at_mark(Mark::Bind) {
            let error = self
                .error(codes::EXPECTED, format!("expected the type of the content of `{name}`, found `=`"), "expected `(`")
                .help(format!("a datatype has no `=`: write `datatype {name}(int, float);`"));
            return self.fail(error);
        }
        let spec = self.type_spec()?;
        Ok(FormKind::Datatype(DatatypeForm { name, name_span, spec }))
    }

    fn binding_or_expr(&mut self) -> ParseResult<FormKind> {
        let left = self.whole()?;
        if self.at_mark(Mark::BackgroundBind) {
            let error = self
                .error(codes::COMMAND, "work in the background is not supported", "")
                .help("`x = e;` computes the value at once");
            return self.fail(error);
        }
        let file = self.at_mark(Mark::FileBind);
        if !(file || self.at_mark(Mark::Bind)) {
            return Ok(FormKind::Expr(left));
        }
        self.advance();
        let pattern = self.pattern(left)?;
        let value = self.whole()?;
        Ok(FormKind::Bind(pattern, value, file))
    }

    fn command(&mut self, name: Name) -> ParseResult<FormKind> {
        self.advance();
        if name.as_str() == "load" {
            return Ok(FormKind::Load(if self.kind().ends_form() { None } else { Some(self.whole()?) }));
        }
        if name.as_str() == "dump" && *self.kind() == TokenKind::Name("vcode".into()) {
            self.advance();
            let file = self.command_word();
            let expr = self.whole()?;
            return Ok(FormKind::DumpVcode(file, expr));
        }
        let mut words = vec![];
        while !self.kind().ends_form() {
            words.push(self.command_word());
        }
        Ok(FormKind::Command(name, words))
    }

    fn command_word(&mut self) -> CommandWord {
        let word = match self.kind() {
            TokenKind::Name(name) => CommandWord::Word(name.to_string()),
            TokenKind::Word(word) => CommandWord::Word(word.to_string()),
            TokenKind::Mark(mark) => CommandWord::Word(mark.to_string()),
            TokenKind::Int(value) => CommandWord::Int(*value),
            TokenKind::Float(value) => CommandWord::Word(value.to_string()),
            TokenKind::Char(value) => CommandWord::Text([*value].into()),
            TokenKind::Text(text) => CommandWord::Text(text.clone()),
            TokenKind::End => CommandWord::Word(String::new()),
        };
        self.advance();
        word
    }
}
