//! Instances of functions, and recursion.

use super::callee::Node;
use super::{Callee, Compiler, internal};
use crate::codes;
use crate::core::{Body, DefinitionKind, Expr, ExprId, Instantiate, LambdaId, Origin, Pattern, PatternId};
use crate::eval::{Fault, Run};
use crate::types::{Type, TypeId, TypeStore};
use std::rc::Rc;

impl Compiler<'_> {
    /// Returns the body of an instance.
    pub(super) fn body(&mut self, callee: &Callee) -> Run<Rc<Body>> {
        if let Some(body) = self.bodies.get(callee) {
            return Ok(body.clone());
        }
        let (generic, instance) = match callee {
            Callee::Definition(definition, instance) => match &self.env.definitions[*definition].kind {
                DefinitionKind::Function(body) => (body.clone(), instance),
                _ => return internal("a function has no body"),
            },
            Callee::Lambda(lambda, instance) => (self.env.lambdas[*lambda].body.clone(), instance),
            Callee::Serial(_) | Callee::Elements(_) => return internal("steps have no body of their own"),
        };
        let body = Rc::new(Instantiate::new(&mut self.env.types, instance).body(&generic));
        let limited = instance.iter().copied().chain(body.types.values().copied());
        if !limited.into_iter().all(|ty| self.env.types.is_within_limits(ty)) {
            let name = self.name(callee).0;
            return Err(Fault::new(codes::TYPE_TOO_LARGE, format!("calls of `{name}` nest types without end")));
        }
        self.bodies.insert(callee.clone(), body.clone());
        Ok(body)
    }

    /// Returns the name of a function, and whether it belongs to a program and not to the library.
    pub(super) fn name(&self, callee: &Callee) -> (String, bool) {
        match callee {
            Callee::Definition(definition, _) => {
                let known = &self.env.definitions[*definition];
                (known.name.to_string(), known.origin == Origin::User)
            }
            Callee::Lambda(..) => ("lambda".to_owned(), false),
            Callee::Serial(_) => ("serial".to_owned(), false),
            Callee::Elements(_) => ("elements".to_owned(), false),
        }
    }

    pub(super) fn argument_type(&mut self, callee: &Callee, body: &Body) -> Run<TypeId> {
        if let Callee::Definition(definition, instance) = callee {
            let scheme = self.env.definitions[*definition].scheme.ty;
            let ty = Instantiate::new(&mut self.env.types, instance).ty(scheme);
            return match self.env.types[ty] {
                Type::Function { argument, .. } => Ok(argument),
                _ => internal("a function has no type of a function"),
            };
        }
        match body.parameter {
            Some(parameter) => Ok(self.pattern_type(body, parameter)),
            None => internal("a function has no parameter"),
        }
    }

    /// Returns the type of the values that a pattern is bound to, datatypes as their contents.
    fn pattern_type(&mut self, body: &Body, pattern: PatternId) -> TypeId {
        match body.patterns[pattern] {
            Pattern::Local(local) => body.locals[local].ty,
            Pattern::Pair(first, rest) => {
                let first = self.pattern_type(body, first);
                let rest = self.pattern_type(body, rest);
                self.env.types.intern(Type::Pair(first, rest))
            }
        }
    }

    /// Returns the code for the type of a function.
    pub(super) fn callee(&mut self, ty: TypeId) -> Run<Callee> {
        let Type::Function { identity, .. } = self.env.types[ty] else { return internal("what is called is no function") };
        match self.env.types[identity] {
            Type::Definition(definition) => {
                let scheme = self.env.definitions[definition].scheme.clone();
                let mut instance = vec![None; scheme.variables.len()];
                self.matched(scheme.ty, ty, &mut instance);
                let int = self.env.types.base(crate::types::Base::Int);
                Ok(Callee::Definition(definition, instance.into_iter().map(|ty| ty.unwrap_or(int)).collect()))
            }
            _ if self.closures.contains_key(&ty) => Ok(self.closures[&ty].clone()),
            Type::Closure(lambda, _) => {
                // The code that makes the value may not have been compiled yet.
                let Some((generic, count)) = self.lambda_type(lambda) else {
                    return internal("a function value comes from nowhere");
                };
                let mut instance = vec![None; count];
                self.matched(generic, ty, &mut instance);
                let int = self.env.types.base(crate::types::Base::Int);
                let callee = Callee::Lambda(lambda, instance.into_iter().map(|ty| ty.unwrap_or(int)).collect());
                self.closures.insert(ty, callee.clone());
                Ok(callee)
            }
            _ => internal("a function is not known"),
        }
    }

    /// Returns the type of a function value in its definition, and the number of its variables.
    pub(super) fn lambda_type(&mut self, lambda: LambdaId) -> Option<(TypeId, usize)> {
        if self.lambda_types.is_empty() {
            // A variable may hold an instance. The general type is that of the body with the function value.
            let is_value = |kind: &DefinitionKind| matches!(kind, DefinitionKind::Value);
            let held = self.env.definitions.values().filter(|known| is_value(&known.kind));
            let held: Vec<TypeId> = held.map(|known| known.scheme.ty).collect();
            for ty in held {
                let count = variables(&self.env.types, ty);
                self.held_lambdas(ty, count);
            }
            for known in self.env.lambdas.values() {
                let count = known.body.types.values().map(|&ty| variables(&self.env.types, ty)).max().unwrap_or(0);
                for (id, expr) in known.body.exprs.iter() {
                    if let Expr::Lambda(lambda) = expr {
                        self.lambda_types.insert(*lambda, (known.body.types[id], count));
                    }
                }
            }
            for known in self.env.definitions.values() {
                let DefinitionKind::Function(body) = &known.kind else { continue };
                let mut open = vec![body.clone()];
                while let Some(body) = open.pop() {
                    for (id, expr) in body.exprs.iter() {
                        if let Expr::Lambda(lambda) = expr {
                            self.lambda_types.insert(*lambda, (body.types[id], known.scheme.variables.len()));
                            open.push(self.env.lambdas[*lambda].body.clone());
                        }
                    }
                }
            }
        }
        self.lambda_types.get(&lambda).copied()
    }

    /// Records the types of function values inside values of a type.
    fn held_lambdas(&mut self, ty: TypeId, count: usize) {
        match self.env.types[ty].clone() {
            Type::Base(_) | Type::Variable(_) | Type::Definition(_) => {}
            Type::Seq(element) => self.held_lambdas(element, count),
            Type::Pair(first, rest) => {
                self.held_lambdas(first, count);
                self.held_lambdas(rest, count);
            }
            Type::Function { identity, .. } => {
                if let Type::Closure(lambda, parts) = self.env.types[identity].clone() {
                    let known = self.lambda_types.get(&lambda).map(|(_, count)| *count);
                    if known.is_none_or(|known| known < count) {
                        self.lambda_types.insert(lambda, (ty, count));
                    }
                    parts.into_iter().for_each(|part| self.held_lambdas(part, count));
                }
            }
            Type::Data(_, parts) | Type::Closure(_, parts) => parts.into_iter().for_each(|part| self.held_lambdas(part, count)),
        }
    }

    /// Finds the types that replace the variables of a type.
    fn matched(&self, pattern: TypeId, ty: TypeId, out: &mut [Option<TypeId>]) {
        match (&self.env.types[pattern], &self.env.types[ty]) {
            (Type::Variable(index), _) => {
                if let Some(slot) = out.get_mut(*index as usize) {
                    slot.get_or_insert(ty);
                }
            }
            (Type::Seq(a), Type::Seq(b)) => self.matched(*a, *b, out),
            (Type::Pair(a, b), Type::Pair(c, d)) => {
                self.matched(*a, *c, out);
                self.matched(*b, *d, out);
            }
            (Type::Function { identity: a, argument: b, result: c }, Type::Function { identity: d, argument: e, result: f }) => {
                self.matched(*a, *d, out);
                self.matched(*b, *e, out);
                self.matched(*c, *f, out);
            }
            (Type::Data(_, a), Type::Data(_, b)) | (Type::Closure(_, a), Type::Closure(_, b)) => {
                a.iter().zip(b).for_each(|(&a, &b)| self.matched(a, b, out));
            }
            _ => {}
        }
    }

    /// Tells whether an expression may call a recursive function.
    pub(super) fn may_recur(&mut self, body: &Body, expr: ExprId) -> bool {
        let mut nodes = vec![];
        visit(body, expr, &mut |id, expr| {
            self.identities(body.types[id], &mut nodes);
            if let Expr::Lambda(lambda) = expr {
                nodes.push(Node::Lambda(*lambda));
            }
        });
        nodes.into_iter().any(|node| self.recurs(node))
    }

    /// Tells whether an expression may have an effect whose order matters: output, input, random numbers,
    /// timers.
    pub(super) fn has_effect(&self, body: &Body, expr: ExprId) -> bool {
        let mut open = vec![];
        visit(body, expr, &mut |id, expr| {
            self.identities(body.types[id], &mut open);
            if let Expr::Lambda(lambda) = expr {
                open.push(Node::Lambda(*lambda));
            }
        });
        let mut seen = std::collections::HashSet::new();
        while let Some(node) = open.pop() {
            if !seen.insert(node) {
                continue;
            }
            if let Node::Definition(definition) = node
                && let DefinitionKind::Primitive(primitive) = self.env.definitions[definition].kind
                && primitive.has_effect()
            {
                return true;
            }
            open.extend(self.edges(node));
        }
        false
    }

    /// Adds the functions that values of a type may be or contain.
    fn identities(&self, ty: TypeId, out: &mut Vec<Node>) {
        match &self.env.types[ty] {
            Type::Base(_) | Type::Variable(_) => {}
            Type::Seq(element) => self.identities(*element, out),
            Type::Pair(first, rest) => {
                self.identities(*first, out);
                self.identities(*rest, out);
            }
            Type::Function { identity, .. } => self.identities(*identity, out),
            Type::Definition(definition) => out.push(Node::Definition(*definition)),
            Type::Closure(lambda, parts) => {
                out.push(Node::Lambda(*lambda));
                parts.iter().for_each(|&part| self.identities(part, out));
            }
            Type::Data(_, parts) => parts.iter().for_each(|&part| self.identities(part, out)),
        }
    }

    fn edges(&self, node: Node) -> Vec<Node> {
        let body = match node {
            Node::Definition(definition) => match &self.env.definitions[definition].kind {
                DefinitionKind::Function(body) => body.clone(),
                _ => return vec![],
            },
            Node::Lambda(lambda) => self.env.lambdas[lambda].body.clone(),
        };
        let edge = |expr: &Expr| match expr {
            Expr::Definition(definition, _) => Some(Node::Definition(*definition)),
            Expr::Lambda(lambda) => Some(Node::Lambda(*lambda)),
            _ => None,
        };
        body.exprs.values().filter_map(edge).collect()
    }

    /// Tells whether a function reaches a recursive one, directly or through other calls.
    pub(super) fn recurs(&mut self, root: Node) -> bool {
        if let Some(&known) = self.recursive.get(&root) {
            return known;
        }
        // Depth-first: an edge to a function that is still open closes a cycle.
        let mut open: Vec<(Node, Vec<Node>)> = vec![(root, self.edges(root))];
        let mut done = std::collections::HashSet::new();
        let mut found = false;
        while let Some((node, edges)) = open.last_mut() {
            let node = *node;
            match edges.pop() {
                None => {
                    done.insert(node);
                    open.pop();
                }
                Some(next) if open.iter().any(|(known, _)| *known == next) || self.recursive.get(&next) == Some(&true) => {
                    found = true;
                    break;
                }
                Some(next) if done.contains(&next) || self.recursive.get(&next) == Some(&false) => {}
                Some(next) => open.push((next, self.edges(next))),
            }
        }
        if found {
            self.recursive.insert(root, true);
        } else {
            self.recursive.extend(done.into_iter().map(|node| (node, false)));
        }
        found
    }
}

/// Returns the largest number of a variable of a type plus one; 0 if it has none.
pub(super) fn variables(types: &TypeStore, ty: TypeId) -> usize {
    let all = |parts: &[TypeId]| parts.iter().map(|&part| variables(types, part)).max().unwrap_or(0);
    match &types[ty] {
        Type::Base(_) | Type::Definition(_) => 0,
        Type::Variable(index) => *index as usize + 1,
        Type::Seq(element) => variables(types, *element),
        Type::Pair(first, rest) => all(&[*first, *rest]),
        Type::Function { identity, argument, result } => all(&[*identity, *argument, *result]),
        Type::Data(_, parts) | Type::Closure(_, parts) => all(parts),
    }
}

/// Visits an expression and all expressions in it, except those of function values.
pub(super) fn visit(body: &Body, root: ExprId, see: &mut dyn FnMut(ExprId, &Expr)) {
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        let expr = &body.exprs[id];
        see(id, expr);
        match expr {
            Expr::Int(_)
            | Expr::Float(_)
            | Expr::Bool(_)
            | Expr::Char(_)
            | Expr::Text(_)
            | Expr::Local(_)
            | Expr::Definition(..)
            | Expr::Lambda(_) => {}
            Expr::Pair(a, b) | Expr::Call(a, b) | Expr::Let(_, a, b) => open.extend([*a, *b]),
            Expr::If(a, b, c) => open.extend([*a, *b, *c]),
            Expr::Each(each) => {
                open.extend(each.generators.iter().map(|(_, source)| *source));
                open.extend(each.filter);
                open.push(each.body);
            }
            Expr::Sequence(elements) => open.extend(elements),
            Expr::Time(timed) => open.push(*timed),
        }
    }
}
