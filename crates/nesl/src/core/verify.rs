//! Checks the invariants of a body.
//!
//! Checked: every expression has a type and a place; expressions refer to lesser ids only; patterns,
//! variables and captures exist; types agree wherever an expression takes a value apart, calls a function or
//! joins branches; a reference to a definition has the type of its instance. Not checked: that a variable is
//! bound before it is used.

use crate::core::{Body, DefinitionKind, Environment, Expr, ExprId, Instantiate, Lambda, LocalId, Pattern, PatternId};
use crate::invariant::BrokenInvariant;
use crate::types::{Base, Type, TypeId};

/// Checks a body and the function values in it. The error names the expression and the reason.
pub fn verify(env: &mut Environment, body: &Body) -> Result<(), BrokenInvariant> {
    if body.types.len() != body.exprs.len() || body.spans.len() != body.exprs.len() {
        return Err("the tables have different lengths".into());
    }
    let result = body.result.ok_or("there is no result")?;
    if !body.exprs.is_valid(result) {
        return Err("the result does not exist".into());
    }
    for (id, expr) in body.exprs.iter() {
        Verifier { env, body, id }.expr(expr).map_err(|broken| broken.at(id))?;
    }
    Ok(())
}

/// Checks all functions of a session.
pub fn verify_all(env: &mut Environment) -> Result<(), BrokenInvariant> {
    let definitions: Vec<_> = env.definitions.values().map(|known| (known.name.clone(), known.kind.clone())).collect();
    for (name, kind) in definitions {
        if let DefinitionKind::Function(body) = kind {
            verify(env, &body).map_err(|broken| broken.at(format_args!("`{name}`")))?;
        }
    }
    Ok(())
}

struct Verifier<'a> {
    env: &'a mut Environment,
    body: &'a Body,
    id: ExprId,
}

impl Verifier<'_> {
    fn expr(&mut self, expr: &Expr) -> Result<(), BrokenInvariant> {
        let ty = self.body.types[self.id];
        match expr {
            Expr::Int(_) => self.is_base(ty, Base::Int),
            Expr::Float(_) => self.is_base(ty, Base::Float),
            Expr::Bool(_) => self.is_base(ty, Base::Bool),
            Expr::Char(_) => self.is_base(ty, Base::Char),
            Expr::Text(_) => {
                let element = self.element(ty)?;
                self.is_base(element, Base::Char)
            }
            Expr::Local(local) => {
                let local = self.body.locals.get(*local).ok_or("a variable does not exist")?;
                same(local.ty, ty, "the type of a variable")
            }
            Expr::Definition(definition, instance) => {
                let known = self.env.definitions.get(*definition).map(|known| known.scheme.clone());
                // A function refers to itself before its definition exists.
                let Some(scheme) = known else { return Ok(()) };
                if scheme.variables.len() != instance.len() {
                    return Err("an instance has another number of types than its definition has variables".into());
                }
                let expected = Instantiate::new(&mut self.env.types, instance).ty(scheme.ty);
                same(expected, ty, "the type of an instance")
            }
            Expr::Pair(first, rest) => {
                let Type::Pair(p, q) = self.env.types[ty] else { return Err("a pair has no type of a pair".into()) };
                same(self.part(*first)?, p, "the first part")?;
                same(self.part(*rest)?, q, "the second part")
            }
            Expr::Call(function, argument) => {
                let function = self.part(*function)?;
                let Type::Function { argument: wanted, result, .. } = self.env.types[function] else {
                    return Err("what is called is no function".into());
                };
                same(self.part(*argument)?, wanted, "the argument")?;
                same(result, ty, "the result")
            }
            Expr::If(condition, then, otherwise) => {
                let condition = self.part(*condition)?;
                self.is_base(condition, Base::Bool)?;
                same(self.part(*then)?, ty, "the first branch")?;
                same(self.part(*otherwise)?, ty, "the second branch")
            }
            Expr::Let(pattern, value, body) => {
                let value = self.part(*value)?;
                self.pattern(*pattern, value)?;
                same(self.part(*body)?, ty, "the body")
            }
            Expr::Each(each) => {
                for (pattern, source) in &each.generators {
                    let source = self.part(*source)?;
                    let element = self.element(source)?;
                    self.pattern(*pattern, element)?;
                }
                if let Some(filter) = each.filter {
                    let filter = self.part(filter)?;
                    self.is_base(filter, Base::Bool)?;
                }
                same(self.part(each.body)?, self.element(ty)?, "the elements")
            }
            Expr::Sequence(elements) => {
                let element = self.element(ty)?;
                elements.iter().try_for_each(|&part| same(self.part(part)?, element, "an element"))
            }
            Expr::Lambda(lambda) => {
                let lambda = self.env.lambdas.get(*lambda).cloned().ok_or("a function value does not exist")?;
                self.lambda(&lambda)?;
                verify(self.env, &lambda.body)
            }
            Expr::Time(timed) => match self.env.types[ty] {
                Type::Pair(value, _) => same(self.part(*timed)?, value, "the timed value"),
                _ => Err("a timed value has no type of a pair".into()),
            },
        }
    }

    /// Returns the type of an expression that this one refers to.
    fn part(&self, part: ExprId) -> Result<TypeId, BrokenInvariant> {
        if part >= self.id { Err(format!("refers to {part}, which comes later").into()) } else { Ok(self.body.types[part]) }
    }

    fn element(&self, ty: TypeId) -> Result<TypeId, BrokenInvariant> {
        match self.env.types[ty] {
            Type::Seq(element) => Ok(element),
            _ => Err("a sequence has no type of a sequence".into()),
        }
    }

    fn is_base(&self, ty: TypeId, base: Base) -> Result<(), BrokenInvariant> {
        if self.env.types[ty] == Type::Base(base) { Ok(()) } else { Err(format!("expected `{}`", base.text()).into()) }
    }

    /// Checks a pattern against the type of the value. Values of datatypes are their contents.
    fn pattern(&mut self, pattern: PatternId, ty: TypeId) -> Result<(), BrokenInvariant> {
        match *self.body.patterns.get(pattern).ok_or("a pattern does not exist")? {
            Pattern::Local(local) => {
                let local = self.body.locals.get(local).ok_or("a variable of a pattern does not exist")?.ty;
                // A constructor around the variable is not part of the pattern.
                if local == ty { Ok(()) } else { self.pattern_of_content(pattern, ty) }
            }
            Pattern::Pair(first, rest) => match self.env.types[ty] {
                Type::Pair(p, q) => {
                    self.pattern(first, p)?;
                    self.pattern(rest, q)
                }
                _ => self.pattern_of_content(pattern, ty),
            },
        }
    }

    fn pattern_of_content(&mut self, pattern: PatternId, ty: TypeId) -> Result<(), BrokenInvariant> {
        let Type::Data(datatype, arguments) = self.env.types[ty].clone() else {
            return Err("a pattern does not fit its value".into());
        };
        let content = self.env.datatypes[datatype].content;
        let content = Instantiate::new(&mut self.env.types, &arguments).ty(content);
        self.pattern(pattern, content)
    }

    fn lambda(&self, lambda: &Lambda) -> Result<(), BrokenInvariant> {
        let ty = |body: &Body, local: LocalId| body.locals.get(local).map(|local| local.ty);
        for &(outer, inner) in &lambda.captures {
            if ty(self.body, outer).is_none() || ty(self.body, outer) != ty(&lambda.body, inner) {
                return Err("a captured variable has another type inside than outside".into());
            }
        }
        Ok(())
    }
}

fn same(found: TypeId, expected: TypeId, what: &str) -> Result<(), BrokenInvariant> {
    if found == expected { Ok(()) } else { Err(format!("{what} has another type: {found} instead of {expected}").into()) }
}
