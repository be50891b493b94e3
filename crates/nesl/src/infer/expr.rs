//! Expressions.

use super::{BodyFrame, Infer, Ty};
use crate::codes;
use crate::core::{self, Lambda};
use crate::infer::unify::Node;
use crate::syntax::{self, Expr, ExprId, Name, Pattern, UnaryOp, foreign_word};
use crate::types::Base;
use broadloom_diag::{Diagnostic, Span};

impl Infer<'_> {
    /// Infers an expression and writes it into the current body.
    pub(super) fn expr(&mut self, expr: ExprId) -> core::ExprId {
        let done = self.expr_inner(expr);
        let ty = self.type_of(done);
        self.seen.insert(expr, ty);
        done
    }

    fn expr_inner(&mut self, expr: ExprId) -> core::ExprId {
        let ast = self.ast.clone();
        let span = ast.expr_spans[expr];
        match &ast.exprs[expr] {
            Expr::Int(value) => self.int_literal(*value, false, span),
            Expr::Float(value) => self.float_literal(*value, span),
            Expr::Bool(value) => self.leaf(core::Expr::Bool(*value), Base::Bool, span),
            Expr::Char(value) => self.leaf(core::Expr::Char(*value), Base::Char, span),
            Expr::Text(text) => {
                let element = self.tys.base(Base::Char);
                let ty = self.tys.seq(element);
                self.push(core::Expr::Text(text.clone()), ty, span)
            }
            Expr::Name(name) => self.name(name, span),
            Expr::Pair(first, rest) => {
                let (first, rest) = (self.expr(*first), self.expr(*rest));
                self.pair(first, rest, span)
            }
            Expr::Apply(function, argument) => self.apply(*function, *argument, span),
            Expr::Index(sequence, index) => self.index(*sequence, *index, span),
            Expr::Time(timed) => {
                let timed = self.expr(*timed);
                let (value, seconds) = (self.type_of(timed), self.tys.base(Base::Float));
                let ty = self.tys.add(Node::Pair(value, seconds));
                self.push(core::Expr::Time(timed), ty, span)
            }
            Expr::Unary(UnaryOp::Negate, operand) if matches!(ast.exprs[*operand], Expr::Int(_)) => {
                let Expr::Int(value) = ast.exprs[*operand] else { unreachable!("matched above") };
                self.int_literal(value, true, span)
            }
            Expr::Unary(op, operand) => self.unary(*op, *operand, span),
            Expr::Binary(op, left, right) => self.binary(*op, *left, *right, span),
            Expr::If(condition, then, otherwise) => self.conditional(*condition, *then, *otherwise, span),
            Expr::Let(bindings, body) => self.bindings(bindings, *body, span),
            Expr::Each(each) => self.each(each, span),
            Expr::Sequence(elements) => self.sequence(elements, span),
            Expr::Empty(ty) => {
                let element = self.written(*ty, &[]);
                let ty = self.tys.seq(element);
                self.push(core::Expr::Sequence(vec![]), ty, span)
            }
            Expr::Range(start, end, step) => self.range(*start, *end, *step, span),
            Expr::Lambda(pattern, body) => self.lambda(*pattern, *body, span),
            Expr::Keyword(name, _) => {
                let error =
                    Diagnostic::error(codes::BAD_OPTIONAL, format!("`{name} := …` can stand among the arguments of a call only"))
                        .at(span, "an optional argument")
                        .note("the function that is called must have such a parameter: `function g(x, k := 3) = …`");
                self.broken(error, span)
            }
            Expr::Broken => {
                let ty = self.tys.add(Node::Error);
                self.push(core::Expr::Bool(false), ty, span)
            }
        }
    }

    /// Reports an error and returns a replacement expression that agrees with every type.
    pub(super) fn broken(&mut self, error: Diagnostic, span: Span) -> core::ExprId {
        let ty = self.report(error);
        self.push(core::Expr::Bool(false), ty, span)
    }

    fn leaf(&mut self, expr: core::Expr, base: Base, span: Span) -> core::ExprId {
        let ty = self.tys.base(base);
        self.push(expr, ty, span)
    }

    pub(super) fn pair(&mut self, first: core::ExprId, rest: core::ExprId, span: Span) -> core::ExprId {
        let (first_ty, rest_ty) = (self.type_of(first), self.type_of(rest));
        let ty = self.tys.add(Node::Pair(first_ty, rest_ty));
        self.push(core::Expr::Pair(first, rest), ty, span)
    }

    fn int_literal(&mut self, value: u64, negative: bool, span: Span) -> core::ExprId {
        let bits = if self.widths.wide_int { 64 } else { 32 };
        let largest = (1u64 << (bits - 1)) - u64::from(!negative);
        if value > largest {
            let error = Diagnostic::error(codes::LITERAL_RANGE, format!("the number does not fit in an int of {bits} bits"))
                .at(span, if negative { format!("the least int is -{largest}") } else { format!("the largest int is {largest}") })
                .help("a float has a larger range: write it with a point");
            return self.broken(error, span);
        }
        let value = if negative { (value as i64).wrapping_neg() } else { value as i64 };
        self.leaf(core::Expr::Int(value), Base::Int, span)
    }

    fn float_literal(&mut self, value: f64, span: Span) -> core::ExprId {
        let value = if self.widths.narrow_float { f64::from(value as f32) } else { value };
        if value.is_infinite() {
            let error = Diagnostic::error(codes::LITERAL_RANGE, "the number does not fit in a float").at(span, "too large");
            return self.broken(error, span);
        }
        self.leaf(core::Expr::Float(value), Base::Float, span)
    }

    /// Tells whether a name is that of a variable or a definition.
    pub(super) fn is_known(&self, name: &Name) -> bool {
        let is_local = self.frames.iter().any(|frame| frame.scope.iter().any(|(local, _)| local == name));
        is_local || self.own.as_ref().is_some_and(|(own, ..)| own == name) || self.env.lookup(name).is_some()
    }

    fn name(&mut self, name: &Name, span: Span) -> core::ExprId {
        if let Some((local, ty)) = self.find_local(name) {
            return self.push(core::Expr::Local(local), ty, span);
        }
        if let Some((own, definition, ty)) = self.own.clone()
            && own == *name
        {
            let expr = self.push(core::Expr::Definition(definition, vec![]), ty, span);
            self.frame().recursive.push(expr);
            return expr;
        }
        if let Some(definition) = self.env.lookup(name) {
            return self.definition(definition, span).0;
        }
        let locals: Vec<Name> = self.frames.iter().flat_map(|frame| frame.scope.iter().map(|(name, _)| name.clone())).collect();
        let mut error = Diagnostic::error(codes::UNDEFINED, format!("`{name}` is not defined")).at(span, "unknown name");
        let similar = self.env.similar(name.as_str(), locals.iter());
        error = match (foreign_word(name.as_str()), &similar) {
            (Some(help), _) => error.help(help),
            (None, Some(similar)) => error.help(format!("did you mean `{similar}`?")),
            (None, None) => error.help("a name is defined before it is used"),
        };
        if foreign_word(name.as_str()).is_none() && self.own.is_some() {
            error = error
                .help(format!("functions that call each other need a declaration before: `function {name}(x) : int -> int;`"));
        }
        self.broken(error, span)
    }

    fn conditional(&mut self, condition: ExprId, then: ExprId, otherwise: ExprId, span: Span) -> core::ExprId {
        let test = self.expr(condition);
        let (found, bool) = (self.type_of(test), self.tys.base(Base::Bool));
        if let Err(clash) = self.tys.unify(found, bool) {
            let place = self.ast.expr_spans[condition];
            self.mismatch(place, "the condition of an `if` must be a bool", found, bool, clash);
        }
        let (yes, no) = (self.expr(then), self.expr(otherwise));
        let (mut ty, other) = (self.type_of(yes), self.type_of(no));
        if let Err(clash) = self.tys.unify(ty, other) {
            let places = (self.ast.expr_spans[then], self.ast.expr_spans[otherwise]);
            let message = "the branches of an `if` must have one type";
            let (one, another) = (self.show(ty), self.show(other));
            let mut error = Diagnostic::error(codes::MISMATCH, message)
                .at(places.1, format!("this is `{another}`"))
                .label(places.0, format!("this is `{one}`"));
            error = match (&self.ast.exprs[otherwise], self.tys.node(ty)) {
                (Expr::Pair(..), Node::Pair(..)) => self.advise(error, clash),
                (Expr::Pair(..), _) => error.help("`else` takes all that follows, commas too: put the `if` into parentheses"),
                _ => self.advise(error, clash),
            };
            ty = self.report(error);
        }
        self.push(core::Expr::If(test, yes, no), ty, span)
    }

    fn bindings(&mut self, bindings: &[(syntax::PatternId, ExprId)], body: ExprId, span: Span) -> core::ExprId {
        let scope = self.frame().scope.len();
        let mut bound = vec![];
        for &(pattern, value) in bindings {
            let done = self.expr(value);
            let found = self.type_of(done);
            let place = self.ast.pattern_spans[pattern];
            let (pattern, wanted) = self.pattern(pattern);
            if let Err(clash) = self.tys.unify(wanted, found) {
                self.misfit(
                    "the value does not fit the pattern of a `let`",
                    place,
                    wanted,
                    self.ast.expr_spans[value],
                    found,
                    clash,
                );
            }
            bound.push((pattern, done));
        }
        let mut result = self.expr(body);
        let ty = self.type_of(result);
        for (pattern, value) in bound.into_iter().rev() {
            result = self.push(core::Expr::Let(pattern, value, result), ty, span);
        }
        self.frame().scope.truncate(scope);
        result
    }

    fn misfit(&mut self, message: &str, pattern: Span, wanted: Ty, value: Span, found: Ty, clash: super::unify::Clash) {
        let (wanted, found) = (self.show(wanted), self.show(found));
        let error = Diagnostic::error(codes::MISMATCH, message)
            .at(value, format!("this is `{found}`"))
            .label(pattern, format!("the pattern takes `{wanted}` apart"));
        let error = self.advise(error, clash);
        self.report(error);
    }

    fn each(&mut self, each: &syntax::Each, span: Span) -> core::ExprId {
        let mut sources = vec![];
        for generator in &each.generators {
            let place = self.ast.pattern_spans[generator.pattern];
            let (source, place) = match (generator.source, self.ast.patterns[generator.pattern].clone()) {
                (Some(source), _) => (self.expr(source), self.ast.expr_spans[source]),
                (None, Pattern::Name(name)) => (self.name(&name, place), place),
                (None, _) => {
                    let error = Diagnostic::error(codes::EXPECTED, "a generator needs a sequence").at(place, "expected `in`");
                    (self.broken(error, place), place)
                }
            };
            let found = self.type_of(source);
            let element = self.tys.any();
            let wanted = self.tys.seq(element);
            if let Err(clash) = self.tys.unify(wanted, found) {
                let shown = self.show(found);
                let mut error = Diagnostic::error(codes::MISMATCH, "an apply-to-each goes over sequences")
                    .at(place, format!("this is `{shown}`, expected a sequence"));
                error = match self.tys.node(found) {
                    Node::Base(Base::Int) => error.help("`[0:n]` and `index(n)` are the sequence from 0 to n-1"),
                    _ => self.advise(error, clash),
                };
                self.report(error);
            }
            sources.push((source, element, place));
        }
        let scope = self.frame().scope.len();
        self.parallel += u32::from(!each.serial);
        let serial_level = if each.serial { std::mem::take(&mut self.parallel) } else { 0 };
        let mut generators = vec![];
        for (generator, (source, element, place)) in each.generators.iter().zip(sources) {
            let at = self.ast.pattern_spans[generator.pattern];
            let (pattern, wanted) = self.pattern(generator.pattern);
            if let Err(clash) = self.tys.unify(wanted, element) {
                self.misfit("the elements do not fit the pattern of an apply-to-each", at, wanted, place, element, clash);
            }
            generators.push((pattern, source));
        }
        let body = match each.body {
            Some(body) => self.expr(body),
            None => self.rebuild(each.generators[0].pattern),
        };
        let filter = each.filter.map(|filter| {
            let done = self.expr(filter);
            let (found, bool) = (self.type_of(done), self.tys.base(Base::Bool));
            if let Err(clash) = self.tys.unify(found, bool) {
                let place = self.ast.expr_spans[filter];
                self.mismatch(place, "the filter of an apply-to-each must be a bool", found, bool, clash);
            }
            done
        });
        self.parallel -= u32::from(!each.serial);
        self.parallel += serial_level;
        self.frame().scope.truncate(scope);
        let element = self.type_of(body);
        let ty = self.tys.seq(element);
        self.push(core::Expr::Each(Box::new(core::Each { serial: each.serial, generators, filter, body })), ty, span)
    }

    /// Writes an expression with the value that a pattern was bound to.
    fn rebuild(&mut self, pattern: syntax::PatternId) -> core::ExprId {
        let ast = self.ast.clone();
        let span = ast.pattern_spans[pattern];
        match &ast.patterns[pattern] {
            Pattern::Name(name) | Pattern::Optional(name, _) => self.name(name, span),
            Pattern::Pair(first, rest) => {
                let (first, rest) = (self.rebuild(*first), self.rebuild(*rest));
                self.pair(first, rest, span)
            }
            Pattern::Data(name, content) => {
                let content = self.rebuild(*content);
                let constructor = self.env.type_names.get(name).and_then(|&data| self.env.datatypes[data].constructor);
                match constructor {
                    Some(constructor) => {
                        let (function, ty) = self.definition(constructor, span);
                        self.call(function, ty, content, span)
                    }
                    None => content,
                }
            }
            Pattern::Broken => {
                let ty = self.tys.add(Node::Error);
                self.push(core::Expr::Bool(false), ty, span)
            }
        }
    }

    fn sequence(&mut self, elements: &[ExprId], span: Span) -> core::ExprId {
        let done: Vec<core::ExprId> = elements.iter().map(|&element| self.expr(element)).collect();
        let element = self.tys.any();
        for (&written, &expr) in elements.iter().zip(&done) {
            let found = self.type_of(expr);
            if let Err(clash) = self.tys.unify(element, found) {
                let first = self.ast.expr_spans[elements[0]];
                let place = self.ast.expr_spans[written];
                self.differ("all elements of a sequence must have one type", (first, element), (place, found), clash);
                break;
            }
        }
        let ty = self.tys.seq(element);
        self.push(core::Expr::Sequence(done), ty, span)
    }

    fn range(&mut self, start: ExprId, end: ExprId, step: Option<ExprId>, span: Span) -> core::ExprId {
        let mut parts = vec![];
        for part in [Some(start), step, Some(end)] {
            let Some(part) = part else {
                parts.push(self.leaf(core::Expr::Int(1), Base::Int, span));
                continue;
            };
            let done = self.expr(part);
            let (found, int) = (self.type_of(done), self.int());
            if let Err(clash) = self.tys.unify(found, int) {
                let (found, place) = (self.show(found), self.ast.expr_spans[part]);
                let error = Diagnostic::error(codes::MISMATCH, "the bounds and the step of a range must be ints")
                    .at(place, format!("this is `{found}`, expected `int`"));
                let error = match clash {
                    super::unify::Clash::Types(..) if found == "float" => {
                        error.help("`fseq(s, d, e)` is the sequence of floats from s by d up to e")
                    }
                    _ => self.advise(error, clash),
                };
                self.report(error);
            }
            parts.push(done);
        }
        let inner = self.pair(parts[1], parts[2], span);
        let argument = self.pair(parts[0], inner, span);
        let (function, ty) = self.built_in("iseq", span);
        self.call(function, ty, argument, span)
    }

    fn lambda(&mut self, pattern: syntax::PatternId, body: ExprId, span: Span) -> core::ExprId {
        self.frames.push(BodyFrame::default());
        let (parameter, argument) = self.pattern(pattern);
        let result = self.expr(body);
        let result_ty = self.type_of(result);
        let mut frame = self.frames.pop().unwrap_or_default();
        frame.body.parameter = Some(parameter);
        frame.body.result = Some(result);
        let captures = std::mem::take(&mut frame.captures);
        let captured: Vec<Ty> = captures.iter().map(|&(_, inner)| frame.local_types[inner]).collect();
        let id = self.env.lambdas.push(Lambda { captures: vec![], body: Default::default() });
        self.lambdas.push((id, frame, captures));
        let identity = self.tys.add(Node::Closure(id, captured));
        let ty = self.tys.add(Node::Function(identity, argument, result_ty));
        self.push(core::Expr::Lambda(id), ty, span)
    }
}
