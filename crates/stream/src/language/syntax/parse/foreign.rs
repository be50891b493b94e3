//! Errors for forms of other languages, with what to write instead.

use super::{ParseResult, Parser};
use crate::language::codes;
use crate::language::syntax::ast::Base;
use crate::language::syntax::token::Token;
use broadloom_diag::{Diagnostic, Span};
use std::ops::Range;

fn error(message: impl Into<String>, span: Span, help: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(codes::UNEXPECTED, message).at(span, "").help(help))
}

impl Parser {
    /// Returns the text of tokens.
    fn text(&self, tokens: Range<usize>) -> String {
        let text = |token: &Token| match token {
            Token::Float(value) => value.to_string(),
            Token::Imaginary(value) => format!("{value}i"),
            other => other.to_string().trim_matches('`').to_owned(),
        };
        self.tokens[tokens].iter().map(|spanned| text(&spanned.token)).collect()
    }

    /// Fails at the lengths of an array behind its name, just parsed: `float h[n]`. `ty` is its type.
    pub(super) fn no_lengths_behind_name(&self, ty: Range<usize>) -> ParseResult<()> {
        if !self.is("[") {
            return Ok(());
        }
        let (mut end, mut open) = (self.at, 0u32);
        loop {
            match &self.tokens[end].token {
                Token::Word("[") => open += 1,
                Token::Word("]") => open = open.saturating_sub(1),
                Token::Word(";" | "{" | "}") | Token::End => break,
                _ if open == 0 => break,
                _ => {}
            }
            end += 1;
        }
        let (ty, name, lengths) = (self.text(ty), self.text(self.at - 1..self.at), self.text(self.at..end));
        let span = self.span().to(self.tokens[end - 1].span);
        Err(error("the lengths of an array stand behind its type", span, format!("write `{ty}{lengths} {name}`")))
    }

    /// Fails at `const` and `final` before a type.
    pub(super) fn no_constants(&self) -> ParseResult<()> {
        let Token::Name(word) = self.peek(0) else { return Ok(()) };
        let is_before_type =
            self.primitive_at(1).is_some() || matches!((self.peek(1), self.peek(2)), (Token::Name(_), Token::Name(_)));
        if !is_before_type || !matches!(&**word, "const" | "final") {
            return Ok(());
        }
        let help =
            format!("leave `{word}` out; constants of the whole program stand in `static {{ float x = 1; }}` at the top level");
        Err(error(format!("`{word}` is no word of StreamIt"), self.span(), help))
    }

    /// Fails at a function or a variable at the top level, whose type was just parsed. `ty` is that type.
    pub(super) fn no_member_at_top(&self, ty: Range<usize>) -> ParseResult<()> {
        let Token::Name(name) = self.peek(0) else { return Ok(()) };
        let (ty, span) = (self.text(ty), self.span());
        if self.is_at(1, "(") {
            let message = format!("the function `{name}` stands outside of a filter");
            let help = format!(
                "write `helper tools {{ {ty} {name}(…) {{ … }} }}` and call `tools.{name}(…)`, or move it into its filter"
            );
            return Err(error(message, span, help));
        }
        if ["=", ";", ",", "["].iter().any(|word| self.is_at(1, word)) {
            let message = format!("the variable `{name}` stands outside of a filter");
            return Err(error(
                message,
                span,
                format!("write `static {{ {ty} {name} = …; }}`; it is constant when the program runs"),
            ));
        }
        Ok(())
    }

    /// Returns the error for a type before `work`, `prework` or `init`, or for parentheses behind it.
    pub(super) fn work_as_function(&self, word: &str) -> Box<Diagnostic> {
        let help = match word {
            "init" => "write `init { … }`".to_owned(),
            _ => format!("write `{word} push 1 pop 1 {{ … }}`, with the numbers of items that a firing pushes and pops"),
        };
        error(format!("`{word}` has neither a type nor parameters"), self.span(), help)
    }

    /// Fails at `and` and `or` behind an expression.
    pub(super) fn no_words_as_operators(&self) -> ParseResult<()> {
        let Token::Name(word) = self.peek(0) else { return Ok(()) };
        let symbol = match &**word {
            "and" => "&&",
            "or" => "||",
            _ => return Ok(()),
        };
        Err(error(format!("`{word}` is no operator"), self.span(), format!("write `{symbol}`")))
    }

    /// Fails at `not` before an operand that is not in parentheses. With parentheses it is a call.
    pub(super) fn no_word_as_sign(&self) -> ParseResult<()> {
        let is_before_operand = matches!(self.peek(1), Token::Name(_) | Token::Int(_) | Token::Float(_));
        match self.peek(0) {
            Token::Name(word) if &**word == "not" && is_before_operand => {
                Err(error("`not` is no operator", self.span(), "write `!`"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for the operator `**`.
    pub(super) fn no_power(&self) -> Box<Diagnostic> {
        let span = self.span().to(self.tokens[self.at + 1].span);
        error("there is no operator `**`", span, "write `pow(x, y)`, or `x * x` for a square")
    }

    /// Returns the error for a type that is called like a function.
    pub(super) fn type_as_function(&self, base: &Base) -> Box<Diagnostic> {
        let ty = self.text(self.at..self.at + 1);
        let help = match base {
            Base::Complex => "write `a + b * 1i`, or set the members `real` and `imag` of a variable".to_owned(),
            _ => format!("write `({ty}) x`"),
        };
        error(format!("the type `{ty}` is no function"), self.span(), help)
    }
}
