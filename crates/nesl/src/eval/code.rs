//! Instances of functions: bodies without type variables, made at their first call.

use super::Machine;
use super::fault::{Fault, Run};
use crate::codes;
use crate::core::Primitive;
use crate::core::{Body, DefId, DefinitionKind, Environment, Expr, ExprId, Instantiate, LambdaId, Origin};
use crate::types::{Type, TypeId};
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl, packed_option::PackedOption};
use std::collections::HashMap;
use std::rc::Rc;

/// Names an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CodeId(u32);
entity_impl!(CodeId, "code");

/// All instances.
#[derive(Default)]
pub(super) struct Codes {
    codes: PrimaryMap<CodeId, Rc<Code>>,
    definitions: HashMap<(DefId, Vec<TypeId>), CodeId>,
    lambdas: HashMap<(LambdaId, Vec<TypeId>), CodeId>,
}

/// An instance.
pub(super) struct Code {
    /// The action of a call.
    pub(super) kind: CodeKind,
    /// The types that replace the variables of the definition.
    pub(super) instance: Vec<TypeId>,
    /// Types of the argument and the result.
    pub(super) argument: TypeId,
    pub(super) result: TypeId,
    /// The name of the function, for messages.
    pub(super) name: String,
    /// True if it belongs to the library.
    pub(super) library: bool,
}

pub(super) enum CodeKind {
    Body(BodyCode),
    Primitive(Primitive),
    /// A constructor: its value is its content.
    Constructor,
    /// A function that was declared but not defined.
    Declared,
    /// A global variable that holds a function.
    Global(DefId),
}

/// Body with the instances that it refers to, filled in on first use.
pub(super) struct BodyCode {
    pub(super) body: Body,
    pub(super) targets: std::cell::RefCell<SecondaryMap<ExprId, PackedOption<CodeId>>>,
}

impl BodyCode {
    fn new(body: Body) -> Self {
        BodyCode { body, targets: std::cell::RefCell::default() }
    }
}

impl Machine<'_> {
    /// Makes the code of a top-level expression.
    pub(super) fn top_level(&mut self, body: &Body) -> Rc<Code> {
        let int = self.env.types.base(crate::types::Base::Int);
        Rc::new(Code {
            kind: CodeKind::Body(BodyCode::new(body.clone())),
            instance: vec![],
            argument: int,
            result: int,
            name: "the top level".to_owned(),
            library: false,
        })
    }

    pub(super) fn code(&self, id: CodeId) -> Rc<Code> {
        self.state.codes.codes[id].clone()
    }

    /// Returns the instance that an expression of a body refers to.
    pub(super) fn target(&mut self, code: &BodyCode, expr: ExprId) -> Run<CodeId> {
        if let Some(id) = code.targets.borrow()[expr].expand() {
            return Ok(id);
        }
        let Expr::Definition(definition, instance) = &code.body.exprs[expr] else {
            return Fault::at_run_time("internal error: this is no definition; please report it");
        };
        let id = self.definition_code(*definition, instance)?;
        code.targets.borrow_mut()[expr] = id.into();
        Ok(id)
    }

    fn definition_code(&mut self, definition: DefId, instance: &[TypeId]) -> Run<CodeId> {
        if let Some(&id) = self.state.codes.definitions.get(&(definition, instance.to_vec())) {
            return Ok(id);
        }
        let code = Rc::new(make(self.env, definition, instance));
        let limited = instance.iter().chain([&code.argument, &code.result]);
        if !limited.copied().all(|ty| self.env.types.is_within_limits(ty)) {
            return Err(Fault::new(codes::TYPE_TOO_LARGE, format!("calls of `{}` nest types without end", code.name)));
        }
        let id = self.state.codes.codes.push(code);
        self.state.codes.definitions.insert((definition, instance.to_vec()), id);
        Ok(id)
    }

    /// Returns the instance of a function value within an instance.
    pub(super) fn lambda_code(&mut self, lambda: LambdaId, inside: &Code) -> CodeId {
        let key = (lambda, inside.instance.clone());
        if let Some(&id) = self.state.codes.lambdas.get(&key) {
            return id;
        }
        let body = self.env.lambdas[lambda].body.clone();
        let body = Instantiate::new(&mut self.env.types, &inside.instance).body(&body);
        let code = Rc::new(Code {
            kind: CodeKind::Body(BodyCode::new(body)),
            instance: inside.instance.clone(),
            argument: inside.argument,
            result: inside.result,
            name: format!("a function value in {}", inside.name),
            library: inside.library,
        });
        let id = self.state.codes.codes.push(code);
        self.state.codes.lambdas.insert(key, id);
        id
    }
}

/// Makes an instance of a definition.
fn make(env: &mut Environment, definition: DefId, instance: &[TypeId]) -> Code {
    let known = &env.definitions[definition];
    let (kind, name, scheme) = (known.kind.clone(), known.name.to_string(), known.scheme.clone());
    let library = known.origin != Origin::User;
    let kind = match kind {
        DefinitionKind::Function(body) => CodeKind::Body(BodyCode::new(Instantiate::new(&mut env.types, instance).body(&body))),
        DefinitionKind::Primitive(primitive) => CodeKind::Primitive(primitive),
        DefinitionKind::Declared => CodeKind::Declared,
        DefinitionKind::Constructor(_) => CodeKind::Constructor,
        DefinitionKind::Value => CodeKind::Global(definition),
    };
    let ty = Instantiate::new(&mut env.types, instance).ty(scheme.ty);
    let (argument, result) = match env.types[ty] {
        Type::Function { argument, result, .. } => (argument, result),
        _ => (ty, ty),
    };
    Code { kind, instance: instance.to_vec(), argument, result, name, library }
}

impl Codes {
    pub(super) fn instance(&self, id: CodeId) -> Vec<TypeId> {
        self.codes.get(id).map_or(vec![], |code| code.instance.clone())
    }

    /// Replaces the instances of a definition that has changed. Their ids stay, so callers and function
    /// values find the new ones.
    pub(super) fn renew(&mut self, env: &mut Environment, definition: DefId) {
        for ((known, instance), &id) in &self.definitions {
            if *known == definition {
                self.codes[id] = Rc::new(make(env, definition, instance));
            }
        }
    }
}

/// Returns an id without code, for values that are never called.
pub(super) fn nowhere() -> CodeId {
    CodeId::new(0)
}
