//! Patterns, converted from expressions.

use super::{ParseResult, Parser};
use crate::codes;
use crate::syntax::{Expr, ExprId, Pattern, PatternId};
use broadloom_diag::Diagnostic;

impl Parser {
    /// Converts an expression to a pattern.
    pub(super) fn pattern(&mut self, expr: ExprId) -> ParseResult<PatternId> {
        self.convert(expr, false)
    }

    /// Converts an expression to the parameter of a function, which may contain optional ones: `x, k := 3`.
    pub(super) fn parameter(&mut self, expr: ExprId) -> ParseResult<PatternId> {
        self.convert(expr, true)
    }

    fn convert(&mut self, expr: ExprId, optional: bool) -> ParseResult<PatternId> {
        let span = self.ast.expr_spans[expr];
        let pattern = match self.ast.exprs[expr].clone() {
            Expr::Name(name) => Pattern::Name(name),
            Expr::Pair(first, rest) => Pattern::Pair(self.convert(first, optional)?, self.convert(rest, optional)?),
            Expr::Apply(function, content) => match self.ast.exprs[function].clone() {
                Expr::Name(name) => Pattern::Data(name, self.convert(content, false)?),
                _ => return self.no_pattern(expr),
            },
            Expr::Keyword(name, default) if optional => Pattern::Optional(name, default),
            _ => return self.no_pattern(expr),
        };
        Ok(self.ast.pattern(pattern, span))
    }

    fn no_pattern(&mut self, expr: ExprId) -> ParseResult<PatternId> {
        let span = self.ast.expr_spans[expr];
        let error = match &self.ast.exprs[expr] {
            Expr::Bool(value) => {
                let name = if *value { "t" } else { "f" };
                Diagnostic::error(codes::RESERVED, format!("`{name}` is the value {value} and cannot be a variable"))
                    .at(span, "choose another name")
            }
            Expr::Sequence(_) | Expr::Empty(_) | Expr::Range(..) => {
                Diagnostic::error(codes::BAD_PATTERN, "square brackets cannot be used in a pattern")
                    .at(span, "not a pattern")
                    .help("take elements by their index, `v[0]`, or use `vsep(v)` for a sequence of two")
            }
            Expr::Index(..) => Diagnostic::error(codes::BAD_PATTERN, "an element of a sequence cannot be assigned")
                .at(span, "not a pattern")
                .help("`rep(v, x, i)` and `v <- [(i, x)]` give copies with other elements"),
            Expr::Keyword(..) => Diagnostic::error(codes::BAD_OPTIONAL, "`:=` stands for optional parameters of functions only")
                .at(span, "not a pattern"),
            _ => Diagnostic::error(codes::BAD_PATTERN, "this is not a pattern")
                .at(span, "expected a name, a tuple of patterns or a constructor")
                .help("a pattern is a name, `p, p` or `constructor(p)`"),
        };
        self.fail(error)
    }
}
