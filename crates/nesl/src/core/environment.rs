//! The definitions of a session.

use crate::core::{Body, DatatypeId, DefId, Lambda, LambdaId};
use crate::syntax::{Ast, Name, edit_distance};
use crate::types::{Class, Scheme, TypeId, TypePrinter, TypeStore};
use broadloom_diag::Span;
use cranelift_entity::PrimaryMap;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Everything that a program can refer to.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// All types; others refer to them by id.
    pub types: TypeStore,
    /// All datatypes that were defined.
    pub datatypes: PrimaryMap<DatatypeId, Datatype>,
    /// The definitions, also those that newer ones have replaced: older functions may still call them.
    pub definitions: PrimaryMap<DefId, Definition>,
    /// The function values.
    pub lambdas: PrimaryMap<LambdaId, Lambda>,
    /// The current definition of each name.
    pub names: BTreeMap<Name, DefId>,
    /// The current datatype of each name.
    pub type_names: HashMap<Name, DatatypeId>,
    /// The definitions of the library, also those whose names a program has redefined.
    pub built_in: HashMap<Name, DefId>,
}

/// A datatype: one constructor around a content.
#[derive(Clone, Debug)]
pub struct Datatype {
    /// The name of the type and of its constructor.
    pub name: Name,
    /// The classes of the parameters.
    pub parameters: Vec<Class>,
    /// The type of the content; its variables are the parameters.
    pub content: TypeId,
    /// The definition of its constructor; `None` until it is made.
    pub constructor: Option<DefId>,
}

/// A function, a constructor or a global variable.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name in programs.
    pub name: Name,
    /// The type.
    pub scheme: Scheme,
    /// What is defined: a function, a primitive, a constant, a constructor.
    pub kind: DefinitionKind,
    /// Its author.
    pub origin: Origin,
    /// The optional parameters, in order; they are the last ones.
    pub optional: Vec<Optional>,
    /// The number of parameters before the optional ones.
    pub required: usize,
    /// True if it cannot be called inside an apply-to-each.
    pub serial: bool,
    /// The text that `describe` shows.
    pub doc: Option<String>,
    /// The head as written, for `describe`.
    pub interface: String,
    /// The definition as written, for `show code`.
    pub code: String,
    /// The place of the name.
    pub span: Span,
}

/// What a definition stands for.
#[derive(Clone, Debug)]
pub enum DefinitionKind {
    /// A function in NESL.
    Function(Arc<Body>),
    /// A function that the implementation provides.
    Primitive(super::Primitive),
    /// A declared function whose definition follows later.
    Declared,
    /// The constructor of a datatype.
    Constructor(DatatypeId),
    /// A global variable.
    Value,
}

/// Author of a definition, and permission to redefine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The library; the name cannot be redefined.
    BuiltIn,
    /// The library; the name may be redefined.
    Redefinable,
    /// A program.
    User,
}

/// An optional parameter.
#[derive(Clone, Debug)]
pub struct Optional {
    /// The name that a call may set.
    pub name: Name,
    /// The tree that holds its default.
    pub ast: Arc<Ast>,
    /// The expression that is used if a call does not set it.
    pub default: crate::syntax::ExprId,
}

impl Environment {
    /// Returns the definition that a name refers to.
    pub fn lookup(&self, name: &Name) -> Option<DefId> {
        self.names.get(name).copied()
    }

    /// Prints a type with the classes of its variables.
    pub fn print_scheme(&self, scheme: &Scheme) -> String {
        let name = |datatype: DatatypeId| self.datatypes[datatype].name.to_string();
        TypePrinter { types: &self.types, datatype: &name }.scheme(scheme)
    }

    /// Returns the most similar name, if any is similar enough.
    pub fn similar<'a>(&'a self, name: &str, more: impl Iterator<Item = &'a Name>) -> Option<String> {
        let distance = |other: &str| edit_distance(name.as_bytes(), other.as_bytes());
        if name.len() < 3 {
            return None;
        }
        let limit = (name.len() / 3).max(1);
        let known = self.names.keys().chain(more).map(|other| (distance(other.as_str()), other.as_str()));
        known.filter(|&(distance, other)| distance <= limit && other.len() > 1).min().map(|(_, other)| other.to_owned())
    }
}
