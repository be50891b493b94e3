//! Type expressions. A comma binds looser than `->`: a function of two integers has the type `(int, int) ->
//! int`.

use super::{ParseResult, Parser};
use crate::codes;
use crate::syntax::{Mark, TokenKind, TypeExpr, TypeExprId, TypeSpec, Word};

impl Parser {
    /// Parses `type [:: (v in class; …)]`.
    pub(super) fn type_spec(&mut self) -> ParseResult<TypeSpec> {
        let ty = self.type_expr()?;
        let mut context = vec![];
        if self.eat(Mark::Context) {
            let open = self.eat(Mark::Open);
            loop {
                let start = self.here();
                let variable = self.name("a type variable")?;
                if !self.eat_word(Word::In) {
                    let found = self.kind().describe();
                    let message = format!("expected `in` behind the type variable `{variable}`, found {found}");
                    let error = self
                        .error(codes::EXPECTED, message, "expected `in`")
                        .help("a context is written `:: (a in number; b in any)`");
                    return self.fail(error);
                }
                let class = self.name("a type class")?;
                context.push((variable, class, start.to(self.previous())));
                let more = matches!((self.peek(1), self.peek(2)), (TokenKind::Name(_), TokenKind::Word(Word::In)));
                if !(self.at_mark(Mark::Semicolon) && (more || open)) {
                    break;
                }
                self.advance();
            }
            if open {
                self.expect(Mark::Close, "behind a context of type variables")?;
            }
        }
        Ok(TypeSpec { ty, context })
    }

    /// Parses a whole type: tuples and functions included.
    fn type_expr(&mut self) -> ParseResult<TypeExprId> {
        let left = self.type_tuple()?;
        if !self.eat(Mark::OldArrow) {
            return Ok(left);
        }
        let right = self.type_tuple()?;
        let span = self.ast.type_spans[left].to(self.previous());
        Ok(self.ast.ty(TypeExpr::Function(left, right), span))
    }

    fn type_tuple(&mut self) -> ParseResult<TypeExprId> {
        self.nested(|parser| {
            let left = parser.type_arrow()?;
            if !parser.eat(Mark::Comma) {
                return Ok(left);
            }
            let right = parser.type_tuple()?;
            let span = parser.ast.type_spans[left].to(parser.previous());
            Ok(parser.ast.ty(TypeExpr::Pair(left, right), span))
        })
    }

    fn type_arrow(&mut self) -> ParseResult<TypeExprId> {
        self.nested(|parser| {
            let left = parser.type_operand()?;
            if !parser.eat(Mark::Read) {
                return Ok(left);
            }
            let right = parser.type_arrow()?;
            let span = parser.ast.type_spans[left].to(parser.previous());
            Ok(parser.ast.ty(TypeExpr::Function(left, right), span))
        })
    }

    /// Parses a type without `,` and `->` outside brackets.
    pub(super) fn type_operand(&mut self) -> ParseResult<TypeExprId> {
        self.nested(Self::type_atom)
    }

    fn type_atom(&mut self) -> ParseResult<TypeExprId> {
        let start = self.here();
        if self.eat(Mark::Open) {
            let inner = self.type_expr()?;
            self.expect(Mark::Close, "behind a type in parentheses")?;
            return Ok(inner);
        }
        let ty = if self.eat(Mark::OpenBracket) {
            let element = self.type_expr()?;
            self.expect(Mark::CloseBracket, "behind the type of the elements")?;
            TypeExpr::Seq(element)
        } else {
            let name = match self.kind() {
                TokenKind::Name(name) => name.clone(),
                TokenKind::Word(word @ (Word::True | Word::False)) => word.text().into(),
                kind => {
                    let found = kind.describe();
                    let error = self
                        .error(codes::BAD_TYPE, format!("expected a type, found {found}"), "expected a type")
                        .help("types are `int`, `float`, `bool`, `char`, `[int]`, `(int, float)`, `int -> float`");
                    return self.fail(error);
                }
            };
            self.advance();
            if self.eat(Mark::Open) {
                let arguments = self.type_expr()?;
                self.expect(Mark::Close, "behind the arguments of a type")?;
                TypeExpr::Data(name, arguments)
            } else {
                TypeExpr::Name(name)
            }
        };
        Ok(self.ast.ty(ty, start.to(self.previous())))
    }
}
