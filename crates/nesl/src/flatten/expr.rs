//! Expressions.

use super::instance::visit;
use super::value::{Context, Form, Part, Val, zero};
use super::{Callee, Lowering, Origin, internal};
use crate::core::Primitive;
use crate::core::{DefinitionKind, Each, Expr, ExprId, Pattern, PatternId};
use crate::eval::Run;
use crate::flat::{self, VarId};
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Check, Constant, Op, Type};
use smallvec::smallvec;
use std::rc::Rc;

impl Lowering<'_, '_> {
    /// Compiles an expression for the current context.
    pub(super) fn expr(&mut self, id: ExprId) -> Run<Val> {
        let before = std::mem::replace(&mut self.b.span, self.body.spans[id]);
        let value = self.expr_inside(id);
        self.b.span = before;
        value
    }

    fn expr_inside(&mut self, id: ExprId) -> Run<Val> {
        if let Some(value) = self.element_loop(id)? {
            return Ok(value);
        }
        let body = self.body.clone();
        let context = self.context();
        match &body.exprs[id] {
            Expr::Int(value) => Ok(Val::Base(self.int(*value, context))),
            Expr::Float(value) => Ok(Val::Base(self.constant(Constant::Float([*value].into()), context))),
            Expr::Bool(value) => Ok(Val::Base(self.constant(Constant::Bool([*value].into()), context))),
            Expr::Char(value) => Ok(Val::Base(self.int(i64::from(*value), context))),
            Expr::Text(text) => Ok(self.shared(Constant::Text(text.clone()), text.len())),
            Expr::Local(local) => self.local(*local),
            Expr::Definition(..) => self.definition(id),
            Expr::Pair(first, rest) => {
                let first = self.expr(*first)?;
                Ok(Val::pair(first, self.expr(*rest)?))
            }
            Expr::Call(function, argument) => self.call(id, *function, *argument),
            Expr::If(condition, then, otherwise) => {
                let Val::Base(condition) = self.expr(*condition)? else { return internal("a condition is no bool") };
                self.conditional(condition, *then, *otherwise, body.types[id])
            }
            Expr::Let(..) => {
                // A chain of bindings is compiled in a loop, so its length costs no stack.
                let mut rest = id;
                while let Expr::Let(pattern, value, next) = &body.exprs[rest] {
                    let value = self.expr(*value)?;
                    self.bind(*pattern, value)?;
                    rest = *next;
                }
                self.expr(rest)
            }
            Expr::Each(each) => self.each(id, each),
            Expr::Sequence(elements) => self.sequence(elements, body.types[id]),
            Expr::Lambda(lambda) => {
                let captures = self.c.env.lambdas[*lambda].captures.clone();
                self.c.closures.insert(body.types[id], Callee::Lambda(*lambda, self.instance.clone()));
                let captured = captures.iter().map(|&(outer, _)| self.local(outer)).collect::<Run<Vec<Val>>>()?;
                Ok(Val::Function(Rc::new(captured)))
            }
            Expr::Time(timed) => {
                self.b.push(flat::Op::Vector(Op::StartTimer, Type::Int), flat::Vars::new(), &[]);
                let value = self.expr(*timed)?;
                let root = self.root();
                let seconds =
                    self.b.push(flat::Op::Vector(Op::StopTimer, Type::Int), flat::Vars::new(), &[(Type::Float, root.space)])[0];
                let seconds = if context.single { seconds } else { self.b.dist(seconds, context.segment, context.space) };
                Ok(Val::pair(value, Val::Base(seconds)))
            }
        }
    }

    /// Makes a sequence from a constant vector of the program. All elements of the context share it.
    pub(super) fn shared(&mut self, constant: Constant, length: usize) -> Val {
        let root = self.root();
        let segments = self.b.constant(Constant::Segdes([length as i64].into()), root.space);
        let pool = self.pool(segments, root);
        let elements = self.b.constant(constant, pool.space);
        let value = Val::seq(Form::Dense(segments), Val::Base(elements), pool);
        self.brought(&value)
    }

    /// Brings a value of the outermost context into the current one.
    pub(super) fn brought(&mut self, value: &Val) -> Val {
        let (root, context) = (self.root(), self.context());
        if context.single { value.clone() } else { self.distribute(value, root, context.segment, context) }
    }

    pub(super) fn bind(&mut self, pattern: PatternId, value: Val) -> Run<()> {
        match self.body.patterns[pattern] {
            Pattern::Local(local) => self.bind_local(local, value),
            Pattern::Pair(first, rest) => {
                let Val::Pair(parts) = value else { return internal("a pattern does not fit its value") };
                self.bind(first, parts.0.clone())?;
                self.bind(rest, parts.1.clone())?;
            }
        }
        Ok(())
    }

    fn conditional(&mut self, condition: VarId, then: ExprId, otherwise: ExprId, ty: TypeId) -> Run<Val> {
        let context = self.context();
        if !context.single && self.is_scalar(ty) && self.is_cheap(then, 0) && self.is_cheap(otherwise, 0) {
            let then = self.expr(then)?;
            let otherwise = self.expr(otherwise)?;
            return self.select(condition, &then, &otherwise);
        }
        if context.single {
            let then = self.block(then)?;
            let otherwise = self.block(otherwise)?;
            return Ok(self.results(ty, flat::Op::If(Box::new((then, otherwise))), vec![condition]));
        }
        let inverse = self.b.element(Op::Not, Type::Bool, &[condition]);
        let mut parts: Vec<Part> = vec![];
        for (flags, expr) in [(condition, then), (inverse, otherwise)] {
            let (indices, part) = self.restricted(flags, context);
            self.push_level(part, Origin::Restrict(flags));
            let value = self.ending(expr, ty);
            self.levels.pop();
            parts.push((value?, part, indices));
        }
        Ok(self.place(None, &parts, context))
    }

    /// Makes the context of the elements with a true flag, and their indices.
    pub(super) fn restricted(&mut self, flags: VarId, context: Context) -> (VarId, Context) {
        let root = self.root();
        let (start, step) = (self.int(0, root), self.int(1, root));
        let all = self.b.index(start, step, context.segment, context.space);
        let fresh = self.b.space();
        let (indices, segment) = self.b.pack(all, flags, context.segment, fresh);
        (indices, Context { segment, space: self.b.space_of(indices), single: false })
    }

    /// Compiles an expression in a separate block.
    fn block(&mut self, expr: ExprId) -> Run<flat::Block> {
        let context = self.context();
        self.b.open();
        self.push_level(context, Origin::Scope);
        let value = self.expr(expr);
        self.levels.pop();
        let value = self.materialise(&value?, context);
        let mut results = vec![];
        value.vectors(&mut results);
        Ok(self.b.close(results))
    }

    /// Compiles an expression for a new context, which may be empty. An expression that may recur is executed
    /// only if the context has elements.
    fn ending(&mut self, expr: ExprId, ty: TypeId) -> Run<Val> {
        if self.c.may_recur(&self.body.clone(), expr) { self.guarded(expr, ty) } else { self.expr(expr) }
    }

    /// Compiles an expression, to be executed only if the context has elements.
    fn guarded(&mut self, expr: ExprId, ty: TypeId) -> Run<Val> {
        let (root, context) = (self.root(), self.context());
        let count = self.b.lengths(context.segment);
        let none = self.int(0, root);
        let some = self.b.element(Op::Greater, Type::Int, &[count, none]);
        let block = self.block(expr)?;
        self.b.open();
        let empty = block.results.clone().into_iter().map(|var| {
            let constant = match self.b.ty_of(var) {
                Type::Int | Type::Char => Constant::Int([].into()),
                Type::Float => Constant::Float([].into()),
                Type::Bool => Constant::Bool([].into()),
                Type::Segdes => Constant::Segdes([].into()),
            };
            let space = self.b.space();
            self.b.constant(constant, space)
        });
        let empty: Vec<VarId> = empty.collect();
        let other = self.b.close(empty);
        Ok(self.results(ty, flat::Op::If(Box::new((block, other))), vec![some]))
    }

    pub(super) fn select(&mut self, condition: VarId, a: &Val, b: &Val) -> Run<Val> {
        match (a, b) {
            (Val::Base(a), Val::Base(b)) => {
                let ty = self.b.ty_of(*a);
                Ok(Val::Base(self.b.element(Op::Select, ty, &[condition, *a, *b])))
            }
            (Val::Pair(a), Val::Pair(b)) => {
                let first = self.select(condition, &a.0, &b.0)?;
                Ok(Val::pair(first, self.select(condition, &a.1, &b.1)?))
            }
            _ => internal("a selection of sequences"),
        }
    }

    /// Tells whether a type consists of scalars.
    pub(super) fn is_scalar(&mut self, ty: TypeId) -> bool {
        let ty = self.c.resolve(ty);
        match self.c.env.types[ty] {
            Nesl::Base(_) => true,
            Nesl::Pair(first, rest) => self.is_scalar(first) && self.is_scalar(rest),
            _ => false,
        }
    }

    /// Tells whether an expression can be computed for all elements: it cannot fail, has no effect and takes
    /// few steps.
    fn is_cheap(&mut self, expr: ExprId, depth: u32) -> bool {
        let body = self.body.clone();
        let env = &*self.c.env;
        let mut steps = 0;
        let mut cheap = true;
        visit(&body, expr, &mut |_, expr| {
            steps += 1;
            cheap &= match expr {
                Expr::Int(_)
                | Expr::Float(_)
                | Expr::Bool(_)
                | Expr::Char(_)
                | Expr::Local(_)
                | Expr::Pair(..)
                | Expr::If(..)
                | Expr::Let(..)
                | Expr::Call(..) => true,
                Expr::Definition(definition, _) => match &env.definitions[*definition].kind {
                    DefinitionKind::Primitive(primitive) => is_total(*primitive),
                    DefinitionKind::Constructor(_) => true,
                    DefinitionKind::Function(body) => depth < 2 && is_cheap_body(env, body, depth + 1),
                    DefinitionKind::Declared | DefinitionKind::Value => false,
                },
                Expr::Text(_) | Expr::Each(_) | Expr::Sequence(_) | Expr::Lambda(_) | Expr::Time(_) => false,
            };
        });
        // A call of a function value may have any effect.
        cheap && steps <= 40 && !self.calls_values(expr)
    }

    fn calls_values(&self, expr: ExprId) -> bool {
        let mut found = false;
        visit(&self.body, expr, &mut |_, expr| {
            if let Expr::Call(function, _) = expr {
                found |= !matches!(self.body.exprs[*function], Expr::Definition(..));
            }
        });
        found
    }

    fn each(&mut self, id: ExprId, each: &Each) -> Run<Val> {
        let context = self.context();
        let body = self.body.clone();
        let ordered = |part: ExprId| self.c.has_effect(&body, part);
        if each.serial && context.single && (ordered(each.body) || each.filter.is_some_and(ordered)) {
            return self.serial(id, each);
        }
        let mut sources = vec![];
        for (_, source) in &each.generators {
            let Val::Seq(seq) = self.expr(*source)? else { return internal("a generator has no sequence") };
            sources.push(seq);
        }
        let Some(first) = sources.first().cloned() else { return internal("an apply-to-each has no generator") };
        let lengths = self.lengths(&first);
        let (segments, _, pool) = self.dense(&first, context);
        let mut elements = vec![];
        for (index, seq) in sources.iter().enumerate() {
            if index > 0 {
                let other = self.lengths(seq);
                if other != lengths {
                    self.b.check(Check::Each, &[lengths, other]);
                }
            }
            let (_, value, other) = self.dense(seq, context);
            self.b.join_spaces(pool.space, other.space);
            elements.push(value);
        }
        self.push_level(pool, Origin::Distribute(segments));
        let value = self.each_body(each, elements);
        self.levels.pop();
        let (value, flags) = value?;
        let Some(flags) = flags else { return Ok(Val::seq(Form::Dense(segments), value, pool)) };
        Ok(self.filter(&value, flags, segments, pool))
    }

    /// Keeps the elements of segments whose flag is true.
    pub(super) fn filter(&mut self, value: &Val, flags: VarId, segments: VarId, pool: Context) -> Val {
        let (_, kept) = self.restricted(flags, pool);
        let new = if segments == pool.segment {
            kept.segment
        } else {
            let fresh = self.b.space();
            self.b.pack(flags, flags, segments, fresh).1
        };
        self.pools.entry(new).or_insert(kept.space);
        let value = self.restrict(value, pool, flags, kept);
        Val::seq(Form::Dense(new), value, kept)
    }

    fn each_body(&mut self, each: &Each, elements: Vec<Val>) -> Run<(Val, Option<VarId>)> {
        for ((pattern, _), value) in each.generators.iter().zip(elements) {
            self.bind(*pattern, value)?;
        }
        let has_elements = each.generators.iter().any(|(_, source)| self.has_elements(*source));
        let mut part = |part: ExprId| match has_elements {
            true => self.expr(part),
            false => self.ending(part, self.body.types[part]),
        };
        let value = part(each.body)?;
        let flags = match each.filter {
            None => None,
            Some(filter) => match part(filter)? {
                Val::Base(flags) => Some(flags),
                _ => return internal("a filter is no bool"),
            },
        };
        Ok((value, flags))
    }

    /// Tells whether the text of a sequence shows that it has elements.
    fn has_elements(&self, source: ExprId) -> bool {
        match &self.body.exprs[source] {
            Expr::Sequence(elements) => !elements.is_empty(),
            Expr::Text(text) => !text.is_empty(),
            _ => false,
        }
    }

    fn sequence(&mut self, elements: &[ExprId], ty: TypeId) -> Run<Val> {
        let context = self.context();
        if let Some(value) = self.literal(elements, ty) {
            return Ok(self.brought(&value));
        }
        let mut values = vec![];
        for &element in elements {
            values.push(self.expr(element)?);
        }
        if values.is_empty() {
            let Nesl::Seq(element) = self.c.env.types[ty] else { return internal("a sequence has no type of one") };
            return Ok(self.empty_sequence(element, context));
        }
        let count = self.int(values.len() as i64, context);
        let segments = self.b.make_segdes(count);
        let pool = self.pool(segments, context);
        let root = self.root();
        let step = self.int(values.len() as i64, root);
        let mut parts: Vec<Part> = vec![];
        for (index, value) in values.into_iter().enumerate() {
            let start = self.int(index as i64, root);
            let indices = self.b.index(start, step, context.segment, context.space);
            parts.push((value, context, indices));
        }
        let elements = self.place(None, &parts, pool);
        Ok(Val::seq(Form::Dense(segments), elements, pool))
    }

    /// Makes an empty sequence for every element of a context.
    pub(super) fn empty_sequence(&mut self, element: TypeId, context: Context) -> Val {
        let none = self.int(0, context);
        let segments = self.b.make_segdes(none);
        let pool = self.pool(segments, context);
        let elements = self.nothing(element, pool);
        Val::seq(Form::Dense(segments), elements, pool)
    }

    /// Makes a value of no elements.
    fn nothing(&mut self, ty: TypeId, context: Context) -> Val {
        let value = self.unflatten(
            ty,
            context,
            &mut |this, ty, space| {
                let constant = match zero(ty) {
                    Constant::Float(_) => Constant::Float([].into()),
                    Constant::Bool(_) => Constant::Bool([].into()),
                    Constant::Segdes(_) => Constant::Segdes([].into()),
                    Constant::Int(_) | Constant::Text(_) => Constant::Int([].into()),
                };
                // A separate vector: spaces of empty vectors are not shared.
                let var = this.b.var(ty, space);
                this.b.define(flat::Op::Const(constant), flat::Vars::new(), smallvec![var]);
                var
            },
            None,
        );
        self.with_pools(&value, context)
    }

    /// Returns a sequence of literals as constant vectors of the program.
    fn literal(&mut self, elements: &[ExprId], ty: TypeId) -> Option<Val> {
        let Nesl::Seq(element) = self.c.env.types[ty] else { return None };
        let mut vectors = vec![Constant::Segdes([elements.len() as i64].into())];
        self.literals(elements, element, &mut vectors)?;
        Some(self.held(ty, vectors))
    }

    /// Lists the vectors of literals of one type; returns `None` if there is another expression.
    fn literals(&mut self, exprs: &[ExprId], ty: TypeId, out: &mut Vec<Constant>) -> Option<()> {
        let body = self.body.clone();
        let of = |id: &ExprId| &body.exprs[*id];
        let ty = self.c.resolve(ty);
        match self.c.env.types[ty] {
            Nesl::Base(Base::Int) => {
                let values = exprs.iter().map(|id| if let Expr::Int(value) = of(id) { Some(*value) } else { None });
                out.push(Constant::Int(values.collect::<Option<_>>()?));
            }
            Nesl::Base(Base::Char) => {
                let values = exprs.iter().map(|id| if let Expr::Char(value) = of(id) { Some(i64::from(*value)) } else { None });
                out.push(Constant::Int(values.collect::<Option<_>>()?));
            }
            Nesl::Base(Base::Float) => {
                let values = exprs.iter().map(|id| if let Expr::Float(value) = of(id) { Some(*value) } else { None });
                out.push(Constant::Float(values.collect::<Option<_>>()?));
            }
            Nesl::Base(Base::Bool) => {
                let values = exprs.iter().map(|id| if let Expr::Bool(value) = of(id) { Some(*value) } else { None });
                out.push(Constant::Bool(values.collect::<Option<_>>()?));
            }
            Nesl::Pair(first, rest) => {
                let parts = exprs.iter().map(|id| if let Expr::Pair(a, b) = of(id) { Some((*a, *b)) } else { None });
                let (firsts, rests): (Vec<ExprId>, Vec<ExprId>) = parts.collect::<Option<Vec<_>>>()?.into_iter().unzip();
                self.literals(&firsts, first, out)?;
                self.literals(&rests, rest, out)?;
            }
            Nesl::Seq(element) => {
                let texts = exprs.iter().map(|id| if let Expr::Text(text) = of(id) { Some(text.clone()) } else { None });
                if let Some(texts) = texts.collect::<Option<Vec<_>>>() {
                    out.push(Constant::Segdes(texts.iter().map(|text| text.len() as i64).collect()));
                    let all = texts.iter().flat_map(|text| text.iter().map(|&byte| i64::from(byte)));
                    out.push(Constant::Int(all.collect()));
                    // A list without texts may be a sequence of any type.
                    return if texts.is_empty() { None } else { Some(()) };
                }
                let parts = exprs.iter().map(|id| if let Expr::Sequence(parts) = of(id) { Some(parts.clone()) } else { None });
                let parts = parts.collect::<Option<Vec<_>>>()?;
                out.push(Constant::Segdes(parts.iter().map(|part| part.len() as i64).collect()));
                self.literals(&parts.concat(), element, out)?;
            }
            Nesl::Data(..) | Nesl::Variable(_) | Nesl::Definition(_) | Nesl::Closure(..) | Nesl::Function { .. } => return None,
        }
        Some(())
    }

    /// Returns the base type of a type, datatypes resolved.
    pub(super) fn base(&mut self, ty: TypeId) -> Option<Base> {
        let ty = self.c.resolve(ty);
        match self.c.env.types[ty] {
            Nesl::Base(base) => Some(base),
            _ => None,
        }
    }
}

/// Tells whether a whole function can be computed for elements that do not need it.
fn is_cheap_body(env: &crate::core::Environment, body: &crate::core::Body, depth: u32) -> bool {
    body.exprs.len() <= 40
        && body.exprs.values().all(|expr| match expr {
            Expr::Definition(definition, _) => match &env.definitions[*definition].kind {
                DefinitionKind::Primitive(primitive) => is_total(*primitive),
                DefinitionKind::Constructor(_) => true,
                DefinitionKind::Function(body) => depth < 3 && is_cheap_body(env, body, depth + 1),
                DefinitionKind::Declared | DefinitionKind::Value => false,
            },
            Expr::Call(function, _) => matches!(body.exprs[*function], Expr::Definition(..)),
            Expr::Int(_)
            | Expr::Float(_)
            | Expr::Bool(_)
            | Expr::Char(_)
            | Expr::Local(_)
            | Expr::Pair(..)
            | Expr::If(..)
            | Expr::Let(..) => true,
            Expr::Text(_) | Expr::Each(_) | Expr::Sequence(_) | Expr::Lambda(_) | Expr::Time(_) => false,
        })
}

/// Tells whether a primitive on scalars takes one instruction or a few, and cannot fail.
pub(super) fn is_simple(primitive: Primitive) -> bool {
    match primitive {
        Primitive::Elementwise(operation) => operation.is_simple(),
        _ => matches!(primitive, Primitive::Negate | Primitive::CharCode),
    }
}

/// Tells whether a primitive on scalars cannot fail.
fn is_total(primitive: Primitive) -> bool {
    match primitive {
        Primitive::Elementwise(operation) => operation.is_total(),
        Primitive::IntToAny | Primitive::AsFloat | Primitive::Length => true,
        _ => is_simple(primitive),
    }
}
