//! Equality of trees without regard to places.

use crate::syntax::ast::*;

/// Two trees under comparison.
struct Pair<'a>(&'a Ast, &'a Ast);

impl Ast {
    /// Tells whether an expression of this tree has the shape of one of another tree.
    pub fn same(&self, mine: ExprId, other: &Ast, theirs: ExprId) -> bool {
        Pair(self, other).expr(mine, theirs)
    }
}

/// Tells whether two texts were parsed to the same forms.
pub fn same_program(a: &Program, b: &Program) -> bool {
    let pair = Pair(&a.ast, &b.ast);
    a.forms.len() == b.forms.len() && a.forms.iter().zip(&b.forms).all(|(a, b)| pair.form(&a.kind, &b.kind))
}

impl Pair<'_> {
    fn form(&self, a: &FormKind, b: &FormKind) -> bool {
        match (a, b) {
            (FormKind::Function(a), FormKind::Function(b)) => {
                let spec = match (&a.spec, &b.spec) {
                    (Some(a), Some(b)) => self.spec(a, b),
                    (a, b) => a.is_none() && b.is_none(),
                };
                a.name == b.name
                    && spec
                    && a.doc == b.doc
                    && self.pattern(a.parameter, b.parameter)
                    && self.option(a.body, b.body)
            }
            (FormKind::Datatype(a), FormKind::Datatype(b)) => a.name == b.name && self.spec(&a.spec, &b.spec),
            (FormKind::Bind(p, e, x), FormKind::Bind(q, g, y)) => x == y && self.pattern(*p, *q) && self.expr(*e, *g),
            (FormKind::Expr(a), FormKind::Expr(b)) => self.expr(*a, *b),
            (FormKind::Command(a, x), FormKind::Command(b, y)) => a == b && x == y,
            (FormKind::Load(a), FormKind::Load(b)) => self.option(*a, *b),
            (FormKind::DumpVcode(a, x), FormKind::DumpVcode(b, y)) => a == b && self.expr(*x, *y),
            _ => false,
        }
    }

    fn spec(&self, a: &TypeSpec, b: &TypeSpec) -> bool {
        let names = |spec: &TypeSpec| spec.context.iter().map(|(v, c, _)| (v.clone(), c.clone())).collect::<Vec<_>>();
        self.ty(a.ty, b.ty) && names(a) == names(b)
    }

    fn option(&self, a: Option<ExprId>, b: Option<ExprId>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => self.expr(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    fn expr(&self, a: ExprId, b: ExprId) -> bool {
        match (&self.0.exprs[a], &self.1.exprs[b]) {
            (Expr::Int(a), Expr::Int(b)) => a == b,
            (Expr::Float(a), Expr::Float(b)) => a.to_bits() == b.to_bits(),
            (Expr::Bool(a), Expr::Bool(b)) => a == b,
            (Expr::Char(a), Expr::Char(b)) => a == b,
            (Expr::Text(a), Expr::Text(b)) => a == b,
            (Expr::Name(a), Expr::Name(b)) => a == b,
            (Expr::Pair(a, x), Expr::Pair(b, y))
            | (Expr::Apply(a, x), Expr::Apply(b, y))
            | (Expr::Index(a, x), Expr::Index(b, y)) => self.expr(*a, *b) && self.expr(*x, *y),
            (Expr::Time(a), Expr::Time(b)) => self.expr(*a, *b),
            (Expr::Unary(o, a), Expr::Unary(p, b)) => o == p && self.expr(*a, *b),
            (Expr::Binary(o, a, x), Expr::Binary(p, b, y)) => o == p && self.expr(*a, *b) && self.expr(*x, *y),
            (Expr::If(a, b, c), Expr::If(x, y, z)) => self.expr(*a, *x) && self.expr(*b, *y) && self.expr(*c, *z),
            (Expr::Let(a, x), Expr::Let(b, y)) => {
                let bound = |((p, e), (q, g)): (&(_, _), &(_, _))| self.pattern(*p, *q) && self.expr(*e, *g);
                a.len() == b.len() && a.iter().zip(b).all(bound) && self.expr(*x, *y)
            }
            (Expr::Each(a), Expr::Each(b)) => {
                let generator =
                    |(a, b): (&Generator, &Generator)| self.pattern(a.pattern, b.pattern) && self.option(a.source, b.source);
                a.serial == b.serial
                    && self.option(a.body, b.body)
                    && a.generators.len() == b.generators.len()
                    && a.generators.iter().zip(&b.generators).all(generator)
                    && self.option(a.filter, b.filter)
            }
            (Expr::Sequence(a), Expr::Sequence(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.expr(*a, *b)),
            (Expr::Empty(a), Expr::Empty(b)) => self.ty(*a, *b),
            (Expr::Range(a, b, c), Expr::Range(x, y, z)) => self.expr(*a, *x) && self.expr(*b, *y) && self.option(*c, *z),
            (Expr::Lambda(p, a), Expr::Lambda(q, b)) => self.pattern(*p, *q) && self.expr(*a, *b),
            (Expr::Keyword(p, a), Expr::Keyword(q, b)) => p == q && self.expr(*a, *b),
            _ => false,
        }
    }

    fn pattern(&self, a: PatternId, b: PatternId) -> bool {
        match (&self.0.patterns[a], &self.1.patterns[b]) {
            (Pattern::Name(a), Pattern::Name(b)) => a == b,
            (Pattern::Pair(a, x), Pattern::Pair(b, y)) => self.pattern(*a, *b) && self.pattern(*x, *y),
            (Pattern::Data(a, x), Pattern::Data(b, y)) => a == b && self.pattern(*x, *y),
            (Pattern::Optional(a, x), Pattern::Optional(b, y)) => a == b && self.expr(*x, *y),
            _ => false,
        }
    }

    fn ty(&self, a: TypeExprId, b: TypeExprId) -> bool {
        match (&self.0.types[a], &self.1.types[b]) {
            (TypeExpr::Name(a), TypeExpr::Name(b)) => a == b,
            (TypeExpr::Seq(a), TypeExpr::Seq(b)) => self.ty(*a, *b),
            (TypeExpr::Pair(a, x), TypeExpr::Pair(b, y)) | (TypeExpr::Function(a, x), TypeExpr::Function(b, y)) => {
                self.ty(*a, *b) && self.ty(*x, *y)
            }
            (TypeExpr::Data(a, x), TypeExpr::Data(b, y)) => a == b && self.ty(*x, *y),
            _ => false,
        }
    }
}
