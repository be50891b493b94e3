//! Functions: what front ends hand to patterns, to be inlined into kernels.

use crate::body::Body;
use crate::builder::{AccessorDecl, ParameterDecl};
use crate::op::{Id, Op};
use crate::types::Type;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A function of one thread: parameters, accessors, code, results. It is a value: cheap to clone, compared and hashed by what it is, so it
/// can be part of a key.
#[derive(Clone)]
pub struct Function(Arc<Data>);

#[derive(PartialEq, Eq)]
struct Data {
    hash: u64,
    name: String,
    parameters: Vec<ParameterDecl>,
    accessors: Vec<AccessorDecl>,
    body: Body,
    results: Vec<Id>,
}

impl Function {
    pub(crate) fn new(
        name: String,
        parameters: Vec<ParameterDecl>,
        accessors: Vec<AccessorDecl>,
        body: Body,
        results: Vec<Id>,
    ) -> Function {
        let mut hasher = DefaultHasher::new();
        // Names say nothing about what is computed.
        parameters.iter().for_each(|parameter| parameter.ty.hash(&mut hasher));
        accessors.iter().for_each(|accessor| (accessor.kind, accessor.ty, accessor.rank).hash(&mut hasher));
        (&body, &results).hash(&mut hasher);
        Function(Arc::new(Data { hash: hasher.finish(), name, parameters, accessors, body, results }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[ParameterDecl] {
        &self.0.parameters
    }

    /// Its accessors.
    pub fn accessors(&self) -> &[AccessorDecl] {
        &self.0.accessors
    }

    /// Its code.
    pub fn body(&self) -> &Body {
        &self.0.body
    }

    /// How many simple operations it has, about, when it is written out.
    pub fn operations(&self) -> u64 {
        let operations = |op: &Op| match op {
            Op::Literal(_) | Op::Parameter(_) => 0,
            Op::Math(function, precision, _) => function.operations(*precision),
            _ => 1,
        };
        self.body().nodes().map(|(_, node)| operations(&node.op)).sum()
    }

    /// Its results, as nodes of the body.
    pub fn results(&self) -> &[Id] {
        &self.0.results
    }

    /// The types of its results.
    pub fn result_types(&self) -> Vec<Type> {
        self.0.results.iter().map(|id| self.0.body.type_of(*id)).collect()
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
