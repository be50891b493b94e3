//! Type inference: syntax tree to typed program.
//!
//! Functions are polymorphic over their type variables, each in a class; variables bound inside a function
//! are not. A function is monomorphic in its own body. A declared type narrows the inferred one; it is not
//! checked to be as general as written. All errors of a form are reported: a wrong expression gets a type
//! that agrees with everything.

mod call;
mod check;
mod declare;
mod explain;
mod expr;
mod pattern;
mod unify;

pub use check::{CheckedFunction, TypedExpression, check_expr, check_function, define_datatype};

use crate::core::{self, Body, DefId, Environment, Lambda, LambdaId, LocalId};
use crate::syntax::{self, Ast, Name};
use crate::types::{Base, Class, Type, TypeId};
use broadloom_diag::{Diagnostic, Diagnostics, Span};
use cranelift_entity::PrimaryMap;
use std::collections::HashMap;
use std::sync::Arc;
use unify::{Export, Node, Ty, Tys};

/// Widths of numbers, which determine the allowed literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// True if integers have 64 bits instead of 32.
    pub wide_int: bool,
    /// True if floats have 32 bits instead of 64.
    pub narrow_float: bool,
}

impl Widths {
    /// Wraps an int to the width of ints.
    pub(crate) fn wrap(self, value: i64) -> i64 {
        if self.wide_int { value } else { i64::from(value as i32) }
    }

    /// Rounds a float to the width of floats.
    pub(crate) fn round(self, value: f64) -> f64 {
        if self.narrow_float { f64::from(value as f32) } else { value }
    }

    /// Converts a float to an int, toward 0 and saturating at the range of ints.
    pub(crate) fn to_int(self, value: f64) -> i64 {
        if self.wide_int { value as i64 } else { i64::from(value as i32) }
    }

    pub(crate) fn least_int(self) -> i64 {
        if self.wide_int { i64::MIN } else { i64::from(i32::MIN) }
    }

    pub(crate) fn largest_int(self) -> i64 {
        !self.least_int()
    }

    /// Returns the bits of the count of a shift that are used.
    pub(crate) fn low_bits(self) -> i64 {
        if self.wide_int { 63 } else { 31 }
    }
}

/// Inference of one form.
struct Infer<'a> {
    env: &'a mut Environment,
    ast: Arc<Ast>,
    tys: Tys,
    widths: Widths,
    diagnostics: Diagnostics,
    /// The bodies under construction, the innermost function value last.
    frames: Vec<BodyFrame>,
    /// The function under definition: its name, its id and its type.
    own: Option<(Name, DefId, Ty)>,
    /// Types of the expressions of the syntax tree, for messages.
    seen: HashMap<syntax::ExprId, Ty>,
    /// Number of apply-to-each forms around the current place.
    parallel: u32,
    /// True if a serial function was used.
    serial: bool,
    /// Function values whose bodies wait for their final types.
    lambdas: Vec<(LambdaId, BodyFrame, Captures)>,
}

/// Variables of a surrounding body, with the inner variables that hold their values.
type Captures = Vec<(LocalId, LocalId)>;

/// A body under construction.
#[derive(Default)]
struct BodyFrame {
    body: Body,
    types: PrimaryMap<core::ExprId, Ty>,
    local_types: PrimaryMap<LocalId, Ty>,
    /// Types that replace type variables of definitions.
    instances: Vec<(core::ExprId, Vec<Ty>)>,
    /// Names in scope, the innermost last.
    scope: Vec<(Name, LocalId)>,
    /// Variables of the surrounding frame, with the variables that hold them here.
    captures: Captures,
    /// References of the function under definition to itself.
    recursive: Vec<core::ExprId>,
}

impl<'a> Infer<'a> {
    fn new(env: &'a mut Environment, ast: Arc<Ast>, widths: Widths) -> Self {
        Infer {
            env,
            tys: Tys::new(ast.exprs.len()),
            ast,
            widths,
            diagnostics: Diagnostics::new(),
            frames: vec![BodyFrame::default()],
            own: None,
            seen: HashMap::new(),
            parallel: 0,
            serial: false,
            lambdas: vec![],
        }
    }

    fn frame(&mut self) -> &mut BodyFrame {
        self.frames.last_mut().expect("there is a frame while inference runs")
    }

    fn push(&mut self, expr: core::Expr, ty: Ty, span: Span) -> core::ExprId {
        let frame = self.frame();
        frame.types.push(ty);
        frame.body.spans.push(span);
        frame.body.exprs.push(expr)
    }

    fn type_of(&mut self, expr: core::ExprId) -> Ty {
        self.frame().types[expr]
    }

    fn report(&mut self, error: Diagnostic) -> Ty {
        self.diagnostics.push(error);
        self.tys.add(Node::Error)
    }

    fn bind_local(&mut self, name: Name, ty: Ty) -> LocalId {
        let int = self.env.types.base(Base::Int);
        let frame = self.frame();
        frame.local_types.push(ty);
        let local = frame.body.locals.push(core::Local { name: name.clone(), ty: int });
        frame.scope.push((name, local));
        local
    }

    /// Finds a variable; captures it if it belongs to an outer body.
    fn find_local(&mut self, name: &Name) -> Option<(LocalId, Ty)> {
        let found = (0..self.frames.len()).rev().find_map(|depth| {
            let scope = &self.frames[depth].scope;
            scope.iter().rev().find(|(known, _)| known == name).map(|&(_, local)| (depth, local))
        });
        let (depth, mut local) = found?;
        let ty = self.frames[depth].local_types[local];
        let int = self.env.types.base(Base::Int);
        for frame in &mut self.frames[depth + 1..] {
            local = match frame.captures.iter().find(|(outer, _)| *outer == local) {
                Some(&(_, inner)) => inner,
                None => {
                    frame.local_types.push(ty);
                    let inner = frame.body.locals.push(core::Local { name: name.clone(), ty: int });
                    frame.captures.push((local, inner));
                    inner
                }
            };
        }
        Some((local, ty))
    }

    /// Replaces the types under inference of all bodies by final types.
    fn finish(&mut self, root: Option<Ty>) -> Option<(Body, Option<crate::types::Scheme>)> {
        let mut frame = self.frames.pop().unwrap_or_default();
        let mut export = Export::new(&self.tys, &mut self.env.types);
        let scheme = match root {
            Some(root) => Some(export.export(root)?),
            None => None,
        };
        export.closed = true;
        let own: Vec<TypeId> = (0..export.classes.len()).map(|index| export.store.intern(Type::Variable(index as u32))).collect();
        Self::settle(&mut frame, &mut export, &own)?;
        let mut lambdas = vec![];
        for (id, mut frame, captures) in self.lambdas.drain(..) {
            Self::settle(&mut frame, &mut export, &own)?;
            lambdas.push((id, Lambda { captures, body: Arc::new(frame.body) }));
        }
        let variables = export.classes;
        for (id, lambda) in lambdas {
            self.env.lambdas[id] = lambda;
        }
        Some((frame.body, scheme.map(|ty| crate::types::Scheme { variables, ty })))
    }

    fn settle(frame: &mut BodyFrame, export: &mut Export<'_>, own: &[TypeId]) -> Option<()> {
        for ty in frame.types.values() {
            frame.body.types.push(export.export(*ty)?);
        }
        for (local, ty) in frame.local_types.iter() {
            frame.body.locals[local].ty = export.export(*ty)?;
        }
        for (expr, types) in &frame.instances {
            let types = types.iter().map(|&ty| export.export(ty)).collect::<Option<Vec<_>>>()?;
            if let core::Expr::Definition(_, instance) = &mut frame.body.exprs[*expr] {
                *instance = types;
            }
        }
        for &expr in &frame.recursive {
            if let core::Expr::Definition(_, instance) = &mut frame.body.exprs[expr] {
                *instance = own.to_vec();
            }
        }
        Some(())
    }

    /// Prints a type for a message.
    fn show(&mut self, ty: Ty) -> String {
        let mut export = Export::new(&self.tys, &mut self.env.types);
        match export.export(ty) {
            Some(ty) => {
                let variables = export.classes;
                self.env.print_scheme(&crate::types::Scheme { variables, ty })
            }
            None => "a type that is too large to show".to_owned(),
        }
    }

    /// Returns a reference to a definition of the library.
    fn built_in(&mut self, name: &str, span: Span) -> (core::ExprId, Ty) {
        match self.env.built_in.get(&Name::new(name)).copied() {
            Some(definition) => self.definition(definition, span),
            None => {
                let ty = self.tys.add(Node::Error);
                (self.push(core::Expr::Bool(false), ty, span), ty)
            }
        }
    }

    fn definition(&mut self, definition: DefId, span: Span) -> (core::ExprId, Ty) {
        let known = &self.env.definitions[definition];
        let scheme = known.scheme.clone();
        if known.serial {
            self.serial = true;
            if self.parallel > 0 {
                self.explain_serial(definition, span);
            }
        }
        let (ty, variables) = self.tys.instantiate(&self.env.types, &scheme);
        let expr = self.push(core::Expr::Definition(definition, vec![]), ty, span);
        self.frame().instances.push((expr, variables));
        (expr, ty)
    }

    fn int(&mut self) -> Ty {
        self.tys.base(Base::Int)
    }

    fn fresh_function(&mut self, argument: Ty, result: Ty) -> Ty {
        let identity = self.tys.var(Class::ANY);
        self.tys.add(Node::Function(identity, argument, result))
    }
}
