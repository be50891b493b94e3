//! Instances of functions: bodies without type variables.

use crate::core::Primitive;
use crate::core::{Body, DefId, DefinitionKind, Environment, ExprId, Instantiate, LambdaId, Origin};
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
    pub(super) codes: PrimaryMap<CodeId, Rc<Code>>,
    pub(super) definitions: HashMap<(DefId, Vec<TypeId>), CodeId>,
    pub(super) lambdas: HashMap<(LambdaId, Vec<TypeId>), CodeId>,
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
    pub(super) fn new(body: Body) -> Self {
        BodyCode { body, targets: std::cell::RefCell::default() }
    }
}

/// Makes an instance of a definition.
pub(super) fn make(env: &mut Environment, definition: DefId, instance: &[TypeId]) -> Code {
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
