//! Entry points: one for each kind of form.

use super::declare::taken;
use super::{Infer, Widths};
use crate::codes;
use crate::core::{Body, Datatype, DatatypeId, DefId, Environment, Optional};
use crate::infer::unify::{Export, Node};
use crate::syntax::{Ast, DatatypeForm, ExprId, FunctionForm, Name, Pattern, PatternId};
use crate::types::{Base, Scheme, Type};
use broadloom_diag::{Diagnostic, Diagnostics, Span};
use std::sync::Arc;

/// A top-level expression with its type.
#[derive(Clone, Debug)]
pub struct TypedExpression {
    /// The code.
    pub body: Body,
    /// The type.
    pub scheme: Scheme,
}

/// A function with its type.
#[derive(Clone, Debug)]
pub struct CheckedFunction {
    /// The code; absent for a declaration.
    pub body: Option<Body>,
    /// The type.
    pub scheme: Scheme,
    /// The optional parameters.
    pub optional: Vec<Optional>,
    /// The number of parameters before them.
    pub required: usize,
    /// True if the function can be called in serial code only.
    pub serial: bool,
}

/// Refuses a name that belongs to the library.
fn refuse(infer: &mut Infer<'_>, name: &Name, span: Span) {
    if taken(infer.env, name) {
        infer.diagnostics.push(
            Diagnostic::error(codes::BUILT_IN, format!("`{name}` is built in, it cannot be redefined"))
                .at(span, "choose another name")
                .note("parameters and variables of a `let` may have this name"),
        );
    }
}

fn too_large(infer: &mut Infer<'_>, span: Span) {
    if !infer.diagnostics.has_errors() {
        infer.diagnostics.push(Diagnostic::error(codes::TYPE_TOO_LARGE, "a type is too large").at(span, "in this form").note(
            format!(
                "types nest at most {} levels and have at most {} parts",
                crate::types::MAX_TYPE_DEPTH,
                crate::types::MAX_TYPE_SIZE
            ),
        ));
    }
}

/// Infers a top-level expression. `pattern` is bound to its value; it must not contain names of the library.
pub fn check_expr(
    env: &mut Environment,
    ast: &Arc<Ast>,
    expr: ExprId,
    pattern: Option<PatternId>,
    widths: Widths,
) -> Result<TypedExpression, Diagnostics> {
    let mut infer = Infer::new(env, ast.clone(), widths);
    let result = infer.expr(expr);
    let ty = infer.type_of(result);
    if let Some(pattern) = pattern {
        let scope = infer.frame().scope.len();
        let (_, wanted) = infer.pattern(pattern);
        let bound: Vec<Name> = infer.frame().scope.drain(scope..).map(|(name, _)| name).collect();
        for name in bound {
            refuse(&mut infer, &name, ast.pattern_spans[pattern]);
        }
        if let Err(clash) = infer.tys.unify(wanted, ty) {
            let (wanted, found) = (infer.show(wanted), infer.show(ty));
            let error = Diagnostic::error(codes::MISMATCH, "the value does not fit the pattern")
                .at(ast.expr_spans[expr], format!("this is `{found}`"))
                .label(ast.pattern_spans[pattern], format!("the pattern takes `{wanted}` apart"));
            let error = infer.advise(error, clash);
            infer.report(error);
        }
    }
    infer.frame().body.result = Some(result);
    if infer.diagnostics.has_errors() {
        return Err(infer.diagnostics);
    }
    let span = ast.expr_spans[expr];
    match infer.finish(Some(ty)) {
        Some((body, Some(scheme))) => Ok(TypedExpression { body, scheme }),
        _ => {
            too_large(&mut infer, span);
            Err(infer.diagnostics)
        }
    }
}

/// Infers a function. `own` is the id for recursive calls.
pub fn check_function(
    env: &mut Environment,
    ast: &Arc<Ast>,
    form: &FunctionForm,
    own: DefId,
    widths: Widths,
    library: bool,
) -> Result<CheckedFunction, Diagnostics> {
    let mut infer = Infer::new(env, ast.clone(), widths);
    if !library {
        refuse(&mut infer, &form.name, form.name_span);
    }
    let (optional, required) = optional_parameters(&mut infer, ast, form.parameter);
    let (parameter, argument) = infer.pattern(form.parameter);
    let result = infer.tys.any();
    let identity = infer.tys.add(Node::Definition(own));
    let ty = infer.tys.add(Node::Function(identity, argument, result));
    infer.own = Some((form.name.clone(), own, ty));
    if let Some(spec) = &form.spec {
        let span = ast.type_spans[spec.ty];
        let (declared, _) = infer.declared(spec);
        match infer.tys.node(declared) {
            Node::Function(..) | Node::Error => {
                if let Err(clash) = infer.tys.unify(declared, ty) {
                    let message = format!("the declared type of `{}` does not fit its parameters", form.name);
                    let (wanted, found) = (infer.show(declared), infer.show(argument));
                    let error = Diagnostic::error(codes::MISMATCH, message)
                        .at(span, format!("this is `{wanted}`"))
                        .label(ast.pattern_spans[form.parameter], format!("the parameters are `{found}`"));
                    let error = infer.advise(error, clash);
                    infer.report(error);
                }
            }
            _ => {
                let error = Diagnostic::error(codes::BAD_TYPE, format!("the type of `{}` is not that of a function", form.name))
                    .at(span, "expected `type -> type`")
                    .help("`->` binds tighter than `,`: a function of two ints has the type `(int, int) -> int`");
                infer.report(error);
            }
        }
    }
    if let Some(body) = form.body {
        let done = infer.expr(body);
        let found = infer.type_of(done);
        if let Err(clash) = infer.tys.unify(found, result) {
            let reason = if form.spec.is_some() { "its declared type or its recursive calls" } else { "its recursive calls" };
            let message = format!("the body of `{}` does not agree with {reason}", form.name);
            infer.mismatch(ast.expr_spans[body], &message, found, result, clash);
        }
        infer.frame().body.result = Some(done);
    }
    infer.frame().body.parameter = Some(parameter);
    if infer.diagnostics.has_errors() {
        return Err(infer.diagnostics);
    }
    let serial = infer.serial;
    match infer.finish(Some(ty)) {
        Some((body, Some(scheme))) => Ok(CheckedFunction { body: form.body.map(|_| body), scheme, optional, required, serial }),
        _ => {
            too_large(&mut infer, form.name_span);
            Err(infer.diagnostics)
        }
    }
}

/// Collects the optional parameters, which are the last ones.
fn optional_parameters(infer: &mut Infer<'_>, ast: &Arc<Ast>, parameter: PatternId) -> (Vec<Optional>, usize) {
    let mut spine = vec![];
    let mut rest = parameter;
    while let Pattern::Pair(first, more) = ast.patterns[rest] {
        spine.push(first);
        rest = more;
    }
    spine.push(rest);
    let mut optional = vec![];
    let mut required = 0;
    for part in spine {
        match &ast.patterns[part] {
            Pattern::Optional(name, default) => {
                optional.push(Optional { name: name.clone(), ast: ast.clone(), default: *default });
            }
            _ if optional.is_empty() => required += 1,
            _ => {
                infer.diagnostics.push(
                    Diagnostic::error(codes::BAD_OPTIONAL, "optional parameters stand behind all others")
                        .at(ast.pattern_spans[part], "this parameter is not optional"),
                );
            }
        }
    }
    if required == 0 {
        infer.diagnostics.push(
            Diagnostic::error(codes::BAD_OPTIONAL, "a function needs a parameter that is not optional")
                .at(ast.pattern_spans[parameter], "all of these are optional"),
        );
    }
    (optional, required)
}

/// Defines a datatype and returns it with the type of its constructor.
pub fn define_datatype(
    env: &mut Environment,
    ast: &Arc<Ast>,
    form: &DatatypeForm,
    constructor: DefId,
    widths: Widths,
    library: bool,
) -> Result<(DatatypeId, Scheme), Diagnostics> {
    let mut infer = Infer::new(env, ast.clone(), widths);
    if !library {
        refuse(&mut infer, &form.name, form.name_span);
    }
    if !infer.diagnostics.has_errors() && Base::ALL.iter().any(|base| base.text() == form.name.as_str()) {
        let message = format!("`{}` is a type of the language, it cannot be redefined", form.name);
        infer.diagnostics.push(Diagnostic::error(codes::BUILT_IN, message).at(form.name_span, "choose another name"));
    }
    if infer.diagnostics.has_errors() {
        return Err(infer.diagnostics);
    }
    let (content, variables) = infer.declared(&form.spec);
    if infer.diagnostics.has_errors() {
        if form_mentions(ast, form) {
            infer.diagnostics.push(
                Diagnostic::error(codes::BAD_TYPE, format!("the datatype `{}` cannot contain itself", form.name))
                    .at(form.name_span, "recursive")
                    .help("keep the parts in a sequence and refer to them by their index"),
            );
        }
        return Err(infer.diagnostics);
    }
    let span = form.name_span;
    let mut export = Export::new(&infer.tys, &mut infer.env.types);
    // The parameters come first, so that their numbers are their positions.
    for &variable in &variables {
        let _ = export.export(variable);
    }
    let exported = export.export(content);
    let parameters = export.classes;
    let Some(content) = exported else {
        too_large(&mut infer, span);
        return Err(infer.diagnostics);
    };
    let id = infer.env.datatypes.push(Datatype {
        name: form.name.clone(),
        parameters: parameters.clone(),
        content,
        constructor: Some(constructor),
    });
    let types = &mut infer.env.types;
    let arguments = (0..parameters.len() as u32).map(|index| types.intern(Type::Variable(index))).collect();
    let result = types.intern(Type::Data(id, arguments));
    let identity = types.intern(Type::Definition(constructor));
    let ty = types.intern(Type::Function { identity, argument: content, result });
    infer.env.type_names.insert(form.name.clone(), id);
    Ok((id, Scheme { variables: parameters, ty }))
}

/// Tells whether a datatype occurs in its own definition.
fn form_mentions(ast: &Ast, form: &DatatypeForm) -> bool {
    use crate::syntax::TypeExpr;
    let mut open = vec![form.spec.ty];
    while let Some(ty) = open.pop() {
        match &ast.types[ty] {
            TypeExpr::Name(name) if *name == form.name => return true,
            TypeExpr::Data(name, _) if *name == form.name => return true,
            TypeExpr::Name(_) | TypeExpr::Broken => {}
            TypeExpr::Seq(part) | TypeExpr::Data(_, part) => open.push(*part),
            TypeExpr::Pair(a, b) | TypeExpr::Function(a, b) => open.extend([*a, *b]),
        }
    }
    false
}
