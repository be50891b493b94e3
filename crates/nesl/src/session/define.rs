//! Definitions: functions, datatypes, variables.
//!
//! A definition with the name and type of an existing one replaces it, also for older callers. A definition
//! with another type is a new one: older callers keep the old one. The library always keeps its own
//! definitions.

use super::Output;
use super::library::{HIDDEN, REDEFINABLE};
use super::output::Binding;
use super::worker::Worker;
use crate::core::Primitive;
use crate::core::{DefId, Definition, DefinitionKind, Instantiate, Origin, verify};
use crate::eval::{Value, show_value};
use crate::infer::{TypedExpression, check_expr, check_function, define_datatype};
use crate::syntax::{Ast, DatatypeForm, ExprId, FunctionForm, Name, Pattern, PatternId, Word, print_parameter, print_pattern};
use crate::types::{Scheme, Type, TypeId};
use broadloom_diag::{Diagnostics, Span};
use std::sync::Arc;

/// The parts of a definition besides its name and type.
struct DefinitionContent {
    kind: DefinitionKind,
    optional: Vec<crate::core::Optional>,
    required: usize,
    serial: bool,
    doc: Option<String>,
    interface: String,
    code: String,
    span: Span,
}

impl DefinitionContent {
    fn value(span: Span) -> Self {
        DefinitionContent {
            kind: DefinitionKind::Value,
            optional: vec![],
            required: 1,
            serial: false,
            doc: None,
            interface: String::new(),
            code: String::new(),
            span,
        }
    }
}

impl Worker {
    fn origin(&self, name: &Name) -> Origin {
        match (self.loading_library, REDEFINABLE.contains(&name.as_str())) {
            (false, _) => Origin::User,
            (true, true) => Origin::Redefinable,
            (true, false) => Origin::BuiltIn,
        }
    }

    /// Returns the definition that a new one of the same type replaces.
    fn replaceable(&self, name: &Name) -> Option<DefId> {
        let old = self.env.lookup(name)?;
        let user = self.env.definitions[old].origin == Origin::User;
        (user || self.loading_library).then_some(old)
    }

    /// Tells whether two types are equal except for the identity of the function.
    fn same_type(&self, a: &Scheme, b: &Scheme) -> bool {
        let parts = |scheme: &Scheme| match self.env.types[scheme.ty] {
            Type::Function { argument, result, .. } => (argument, Some(result)),
            _ => (scheme.ty, None),
        };
        parts(a) == parts(b) && a.variables == b.variables
    }

    fn install(&mut self, id: DefId, name: &Name, scheme: Scheme, parts: DefinitionContent) {
        let origin = self.origin(name);
        let DefinitionContent { kind, optional, required, serial, doc, interface, code, span } = parts;
        let definition =
            Definition { name: name.clone(), scheme, kind, origin, optional, required, serial, doc, interface, code, span };
        if self.env.definitions.is_valid(id) {
            self.env.definitions[id] = definition;
            self.state.renew(&mut self.env, id);
        } else {
            let pushed = self.env.definitions.push(definition);
            debug_assert_eq!(pushed, id);
            let known = self.env.names.insert(name.clone(), id).is_some();
            if known && !self.loading_library && name.as_str() != "it" {
                self.emit(Output::Note(format!("Redefining {name} with a new type. Old calls keep the old definition.")));
            }
            if self.loading_library {
                self.env.built_in.insert(name.clone(), id);
            }
        }
    }

    /// Hides the helpers of the library from programs.
    pub(super) fn seal_library(&mut self) {
        self.env.names.retain(|name, _| !name.as_str().starts_with(HIDDEN));
        self.env.built_in.retain(|name, _| !name.as_str().starts_with(HIDDEN));
    }

    pub(super) fn define_function(&mut self, ast: &Arc<Ast>, form: &FunctionForm, span: Span) -> Result<(), Diagnostics> {
        let old = self.replaceable(&form.name);
        let next = self.env.definitions.next_key();
        let guess = old.unwrap_or(next);
        let widths = self.state.options.widths;
        let library = self.loading_library;
        let mut id = guess;
        let mut checked = check_function(&mut self.env, ast, form, guess, widths, library)?;
        if let Some(old) = old
            && !self.same_type(&self.env.definitions[old].scheme, &checked.scheme)
        {
            id = next;
            checked = check_function(&mut self.env, ast, form, next, widths, library)?;
        }
        let primitive = if library { Primitive::by_name(form.name.as_str()) } else { None };
        let (kind, serial) = match (checked.body, primitive) {
            (Some(body), _) => (DefinitionKind::Function(Arc::new(body)), checked.serial),
            (None, Some(primitive)) => (DefinitionKind::Primitive(primitive), primitive.is_serial()),
            (None, None) => (DefinitionKind::Declared, false),
        };
        let interface = format!("{}({})", form.name, print_parameter(ast, form.parameter));
        let doc = form.doc.as_ref().map(|doc| String::from_utf8_lossy(doc).into_owned());
        let code = self.sources.text(span).trim_end_matches([';', '$', ' ', '\n']).to_owned() + ";";
        let parts = DefinitionContent {
            kind,
            optional: checked.optional,
            required: checked.required,
            serial,
            doc,
            interface,
            code,
            span: form.name_span,
        };
        let ty = self.env.print_scheme(&checked.scheme);
        let body = match &parts.kind {
            DefinitionKind::Function(body) => Some(body.clone()),
            _ => None,
        };
        self.install(id, &form.name, checked.scheme, parts);
        debug_assert_eq!(body.map_or(Ok(()), |body| verify(&mut self.env, &body)), Ok(()), "{}", form.name);
        self.emit(Output::Result(Binding { name: form.name.to_string(), value: "fn".to_owned(), ty }));
        Ok(())
    }

    /// Defines a datatype and its constructor.
    pub(super) fn define_datatype(&mut self, ast: &Arc<Ast>, form: &DatatypeForm) -> Result<(), Diagnostics> {
        let id = self.env.definitions.next_key();
        let widths = self.state.options.widths;
        let (datatype, scheme) = define_datatype(&mut self.env, ast, form, id, widths, self.loading_library)?;
        let ty = self.env.print_scheme(&scheme);
        let doc = Some(format!("The constructor of the datatype {}.", form.name));
        let parts = DefinitionContent {
            kind: DefinitionKind::Constructor(datatype),
            doc,
            interface: format!("{}(a)", form.name),
            ..DefinitionContent::value(form.name_span)
        };
        self.install(id, &form.name, scheme, parts);
        self.emit(Output::Result(Binding { name: form.name.to_string(), value: "fn".to_owned(), ty }));
        Ok(())
    }

    /// Evaluates an expression and binds it to a pattern, or to `it`.
    pub(super) fn bind(
        &mut self,
        ast: &Arc<Ast>,
        pattern: Option<PatternId>,
        expr: ExprId,
        file: bool,
    ) -> Result<(), Diagnostics> {
        let (value, TypedExpression { body, scheme }) = self.evaluate(ast, expr, pattern)?;
        let span = ast.expr_spans[expr];
        let name = match pattern {
            Some(pattern) => {
                self.bind_parts(ast, pattern, &value, &scheme, scheme.ty);
                if self.loading_library
                    && let Pattern::Name(name) = &ast.patterns[pattern]
                    && let Some(id) = self.env.lookup(name)
                {
                    self.variables.push((id, Arc::new(body)));
                }
                print_pattern(ast, pattern)
            }
            None => {
                self.bind_name(&Name::new("it"), value.clone(), scheme.clone(), span);
                "it".to_owned()
            }
        };
        let ty = self.env.print_scheme(&scheme);
        if file {
            self.emit(Output::Text(format!("{name} : {ty}\n").into_bytes()));
            return Ok(());
        }
        let narrow = self.state.options.widths.narrow_float;
        let value = show_value(&mut self.env, &value, scheme.ty, self.print_length, narrow);
        self.emit(Output::Result(Binding { name, value, ty }));
        Ok(())
    }

    /// Infers and evaluates an expression.
    pub(super) fn evaluate(
        &mut self,
        ast: &Arc<Ast>,
        expr: ExprId,
        pattern: Option<PatternId>,
    ) -> Result<(Value, TypedExpression), Diagnostics> {
        let checked = match (pattern, self.loading_library) {
            (Some(_), true) => check_expr(&mut self.env, ast, expr, None, self.state.options.widths)?,
            _ => check_expr(&mut self.env, ast, expr, pattern, self.state.options.widths)?,
        };
        let value = self.run(&checked.body).map_err(|fault| Diagnostics::from(self.advised(&fault, &checked.body)))?;
        Ok((value, checked))
    }

    fn bind_parts(&mut self, ast: &Ast, pattern: PatternId, value: &Value, scheme: &Scheme, ty: TypeId) {
        match &ast.patterns[pattern] {
            Pattern::Name(name) | Pattern::Optional(name, _) => {
                let scheme = Scheme { variables: scheme.variables.clone(), ty };
                self.bind_name(name, value.clone(), scheme, ast.pattern_spans[pattern]);
            }
            Pattern::Pair(first, rest) => {
                let Type::Pair(first_ty, rest_ty) = self.env.types[ty] else { return };
                let (a, b) = value.parts();
                self.bind_parts(ast, *first, a, scheme, first_ty);
                self.bind_parts(ast, *rest, b, scheme, rest_ty);
            }
            Pattern::Data(_, content) => {
                let Type::Data(datatype, arguments) = self.env.types[ty].clone() else { return };
                let inner = self.env.datatypes[datatype].content;
                let inner = Instantiate::new(&mut self.env.types, &arguments).ty(inner);
                self.bind_parts(ast, *content, value, scheme, inner);
            }
            Pattern::Broken => {}
        }
    }

    fn bind_name(&mut self, name: &Name, value: Value, scheme: Scheme, span: Span) {
        if Word::ALL.iter().any(|word| word.text() == name.as_str()) {
            return;
        }
        let old = self.replaceable(name).filter(|&old| {
            let known = &self.env.definitions[old];
            matches!(known.kind, DefinitionKind::Value) && self.same_type(&known.scheme, &scheme)
        });
        let id = match old {
            Some(old) => old,
            None => {
                let id = self.env.definitions.next_key();
                self.install(id, name, scheme, DefinitionContent::value(span));
                id
            }
        };
        self.state.globals[id] = Some(value);
    }
}
