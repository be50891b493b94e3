//! Declared types.

use super::{Infer, Ty};
use crate::codes;
use crate::core::Environment;
use crate::infer::unify::Node;
use crate::syntax::{self, Name, TypeExpr, TypeSpec};
use crate::types::{Base, Class};
use broadloom_diag::{Diagnostic, Span};

impl Infer<'_> {
    /// Makes a type from a declaration, with its variables in the order of the context.
    pub(super) fn declared(&mut self, spec: &TypeSpec) -> (Ty, Vec<Ty>) {
        let mut variables: Vec<(Name, Ty)> = vec![];
        for (variable, class, span) in &spec.context {
            let class = Class::by_name(class.as_str()).unwrap_or_else(|| {
                self.diagnostics.push(
                    Diagnostic::error(codes::UNKNOWN_TYPE, format!("there is no type class `{class}`"))
                        .at(*span, "not a type class")
                        .help("type classes are `any`, `number`, `ordinal` and `logical`"),
                );
                Class::ANY
            });
            let ty = self.tys.var(class);
            variables.push((variable.clone(), ty));
        }
        let ty = self.written(spec.ty, &variables);
        (ty, variables.into_iter().map(|(_, ty)| ty).collect())
    }

    /// Makes a type from a type expression.
    pub(super) fn written(&mut self, ty: syntax::TypeExprId, variables: &[(Name, Ty)]) -> Ty {
        let ast = self.ast.clone();
        let span = ast.type_spans[ty];
        match &ast.types[ty] {
            TypeExpr::Name(name) => self.named(name, variables, span),
            TypeExpr::Seq(element) => {
                let element = self.written(*element, variables);
                self.tys.seq(element)
            }
            TypeExpr::Pair(first, rest) => {
                let first = self.written(*first, variables);
                let rest = self.written(*rest, variables);
                self.tys.add(Node::Pair(first, rest))
            }
            TypeExpr::Function(argument, result) => {
                let argument = self.written(*argument, variables);
                let result = self.written(*result, variables);
                self.fresh_function(argument, result)
            }
            TypeExpr::Data(name, arguments) => self.applied(name, *arguments, variables, span),
            TypeExpr::Broken => self.tys.add(Node::Error),
        }
    }

    fn named(&mut self, name: &Name, variables: &[(Name, Ty)], span: Span) -> Ty {
        if let Some(base) = Base::ALL.into_iter().find(|base| base.text() == name.as_str()) {
            return self.tys.base(base);
        }
        if let Some((_, ty)) = variables.iter().find(|(known, _)| known == name) {
            return *ty;
        }
        if let Some(&datatype) = self.env.type_names.get(name) {
            let count = self.env.datatypes[datatype].parameters.len();
            if count == 0 {
                return self.tys.add(Node::Data(datatype, vec![]));
            }
            let error = Diagnostic::error(codes::BAD_TYPE, format!("the datatype `{name}` takes {count} types"))
                .at(span, "its types are missing");
            return self.report(error);
        }
        let error = Diagnostic::error(codes::UNKNOWN_TYPE, format!("there is no type `{name}`")).at(span, "not a type");
        let error = match known_elsewhere(name.as_str()) {
            Some(ours) => error.help(format!("NESL calls it `{ours}`")),
            None if name.as_str().len() == 1 => error.help(format!("a type variable needs a class: `… :: ({name} in any)`")),
            None => error.help("types are `int`, `float`, `bool`, `char`, `[type]`, `(type, type)` and datatypes"),
        };
        self.report(error)
    }

    fn applied(&mut self, name: &Name, arguments: syntax::TypeExprId, variables: &[(Name, Ty)], span: Span) -> Ty {
        let Some(&datatype) = self.env.type_names.get(name) else {
            let error =
                Diagnostic::error(codes::UNKNOWN_TYPE, format!("there is no datatype `{name}`")).at(span, "not a datatype");
            return self.report(error);
        };
        let classes = self.env.datatypes[datatype].parameters.clone();
        let mut types = vec![];
        let mut rest = arguments;
        for (index, &class) in classes.iter().enumerate() {
            let last = index + 1 == classes.len();
            let part = match self.ast.types[rest].clone() {
                TypeExpr::Pair(first, more) if !last => {
                    rest = more;
                    first
                }
                _ if last => rest,
                _ => break,
            };
            let ty = self.written(part, variables);
            let parameter = self.tys.var(class);
            if let Err(clash) = self.tys.unify(parameter, ty) {
                let error = Diagnostic::error(codes::WRONG_CLASS, format!("a type of `{name}` is outside of its class"))
                    .at(self.ast.type_spans[part], format!("expected {}", class.members()));
                let error = self.advise(error, clash);
                self.report(error);
            }
            types.push(ty);
        }
        if types.len() < classes.len() || classes.is_empty() {
            let count = classes.len();
            let error = Diagnostic::error(codes::BAD_TYPE, format!("the datatype `{name}` takes {count} types")).at(span, "");
            return self.report(error);
        }
        self.tys.add(Node::Data(datatype, types))
    }
}

/// Returns the NESL name of a type that has another name in other languages.
fn known_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "integer" | "i32" | "i64" | "long" => "int",
        "double" | "real" | "f32" | "f64" => "float",
        "boolean" => "bool",
        "character" => "char",
        "string" | "str" => "[char]",
        _ => return None,
    })
}

/// Tells whether a name is reserved by the library.
pub(super) fn taken(env: &Environment, name: &Name) -> bool {
    let origin = env.built_in.get(name).map(|&definition| env.definitions[definition].origin);
    origin == Some(crate::core::Origin::BuiltIn)
}
