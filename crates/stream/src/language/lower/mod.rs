//! Lowering from the syntax tree to [`core`](crate::language::core): names, types, conversions.
//!
//! Every declaration is lowered once, even if it is not used, so that all errors are found. An error is
//! reported and its expression gets the type [`Type::Unknown`], which fits everywhere. The result is returned
//! only if there was no error.

mod call;
mod expr;
mod operator;
mod stmt;
mod stream;

use crate::language::codes;
use crate::language::core::{
    DeclaredType, Expr, ExprKind, Field, Function, FunctionId, Place, Program, Root, Stmt, Stream, StreamId, Struct, StructId,
    Type, Value, Variable, mark_written_parameters,
};
use crate::language::syntax::ast;
use broadloom_diag::{Diagnostic, Diagnostics, Span};
use cranelift_entity::{EntityRef, PrimaryMap};
use std::collections::HashMap;
use std::sync::Arc;

/// Lowers a program.
pub fn lower(program: &ast::Program) -> Result<Program, Diagnostics> {
    let mut lowerer =
        Lowerer { settings: program.settings.iter().map(|setting| (setting.clone(), false)).collect(), ..Lowerer::default() };
    lowerer.declare_structs(program);
    lowerer.declare_streams(program);
    lowerer.declare_packages(program);
    lowerer.lower_static_fields(program);
    lowerer.lower_structs(program);
    let static_init = lowerer.lower_static_inits(program);
    lowerer.lower_packages(program);
    for (index, stream) in program.streams.iter().enumerate() {
        let id = StreamId::new(index);
        let lowered = lowerer.stream(stream, false).0;
        lowerer.streams[id] = Some(lowered);
    }
    let top = lowerer.find_top(program);
    lowerer.report_unused_settings(program);
    let Lowerer { structs, streams, mut functions, statics, errors, .. } = lowerer;
    match top {
        Some((top, top_args)) if !errors.has_errors() => {
            mark_written_parameters(&mut functions);
            let streams = streams.into_iter().filter_map(|(_, stream)| stream).collect();
            Ok(Program { structs, streams, functions, statics, static_init, top, top_args })
        }
        _ => Err(errors),
    }
}

/// The interface of a named stream.
struct Signature {
    params: Vec<(Arc<str>, Type)>,
    handlers: Vec<(Arc<str>, Vec<Type>)>,
}

#[derive(Default)]
struct Lowerer {
    structs: PrimaryMap<StructId, Struct>,
    struct_names: HashMap<Arc<str>, StructId>,
    streams: PrimaryMap<StreamId, Option<Stream>>,
    stream_names: HashMap<Arc<str>, StreamId>,
    signatures: Vec<Signature>,
    functions: PrimaryMap<FunctionId, Function>,
    packages: HashMap<Arc<str>, HashMap<Arc<str>, FunctionId>>,
    statics: Vec<Field>,
    /// Values from outside, and whether something took them.
    settings: Vec<(ast::Setting, bool)>,
    units: Vec<Unit>,
    errors: Diagnostics,
}

/// The stream, package or section that is being lowered.
#[derive(Default)]
struct Unit {
    /// True if names of the enclosing unit are visible.
    anonymous: bool,
    params: Vec<Variable>,
    /// For an anonymous stream, the values of its parameters in the enclosing unit.
    captures: Vec<Expr>,
    fields: Vec<(Arc<str>, Type)>,
    functions: HashMap<Arc<str>, FunctionId>,
    input: Type,
    output: Type,
    context: Context,
    locals: Vec<Variable>,
    scopes: Vec<HashMap<Arc<str>, usize>>,
    loops: u32,
    result: Type,
}

/// The kind of code that is being lowered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Context {
    /// Lengths, rates, field initialisers.
    #[default]
    Constant,
    /// `init` of a `static` section.
    Static,
    /// A function of a package.
    Package,
    /// `init` of a filter.
    Init,
    /// `work`, `prework`, or a function they may call.
    Work,
    /// A message handler.
    Handler,
    /// The body of a composite stream.
    Composite(ast::Composite),
}

impl Lowerer {
    /// Reports an error once. Some parts are lowered twice.
    fn error(&mut self, error: Diagnostic) {
        let same = |other: &Diagnostic| other.message == error.message && other.primary == error.primary;
        if !self.errors.iter().any(same) {
            self.errors.push(error);
        }
    }

    fn unit(&mut self) -> &mut Unit {
        if self.units.is_empty() {
            self.units.push(Unit::default());
        }
        let last = self.units.len() - 1;
        &mut self.units[last]
    }

    fn show(&self, ty: &Type) -> String {
        ty.show(&self.structs)
    }

    /// Returns the expression that replaces one with a reported error.
    fn broken(&self, span: Span) -> Expr {
        Expr { kind: ExprKind::Const(Value::Unset), ty: Type::Unknown, span }
    }

    fn declare_structs(&mut self, program: &ast::Program) {
        for structure in &program.structs {
            let id = self.structs.push(Struct { name: structure.name.name.clone(), members: vec![] });
            if self.struct_names.insert(structure.name.name.clone(), id).is_some() {
                self.repeated("struct", &structure.name);
            }
        }
    }

    fn lower_structs(&mut self, program: &ast::Program) {
        for (index, structure) in program.structs.iter().enumerate() {
            let mut members: Vec<(Arc<str>, DeclaredType)> = vec![];
            for member in &structure.members {
                if members.iter().any(|(name, _)| *name == member.name.name) {
                    self.repeated("member", &member.name);
                }
                let declared = self.declared(&member.ty);
                // A struct may only contain structs declared before it, so that no struct contains itself.
                if let Type::Struct(inner) = element_of(&declared.ty)
                    && inner.index() >= index
                {
                    let message =
                        format!("`{}` has to stand before the struct that contains it", self.show(&Type::Struct(*inner)));
                    let error = Diagnostic::error(codes::UNDEFINED, message).at(member.ty.span, "");
                    self.error(error.help("move its declaration up; a struct cannot contain itself"));
                }
                members.push((member.name.name.clone(), declared));
            }
            self.structs[StructId::new(index)].members = members;
        }
    }

    fn declare_streams(&mut self, program: &ast::Program) {
        for stream in &program.streams {
            let id = self.streams.push(None);
            let Some(name) = &stream.name else { continue };
            if self.stream_names.insert(name.name.clone(), id).is_some() {
                self.repeated("stream", name);
            }
        }
        for stream in &program.streams {
            let params = stream.params.iter().map(|param| (param.name.name.clone(), self.type_of(&param.ty))).collect();
            let mut handlers = vec![];
            if let ast::StreamKind::Filter(filter) = &stream.kind {
                for handler in &filter.handlers {
                    let types = handler.params.iter().map(|param| self.type_of(&param.ty)).collect();
                    handlers.push((handler.name.name.clone(), types));
                }
            }
            self.signatures.push(Signature { params, handlers });
        }
    }

    fn declare_packages(&mut self, program: &ast::Program) {
        for package in &program.packages {
            let mut functions = HashMap::new();
            for function in &package.functions {
                let id = self.declare_function(function);
                if functions.insert(function.name.name.clone(), id).is_some() {
                    self.repeated("function", &function.name);
                }
            }
            if self.packages.insert(package.name.name.clone(), functions).is_some() {
                self.repeated("package", &package.name);
            }
        }
    }

    fn lower_packages(&mut self, program: &ast::Program) {
        for package in &program.packages {
            let names = self.packages.get(&package.name.name).cloned().unwrap_or_default();
            let functions = names.clone();
            self.units.push(Unit { functions, context: Context::Package, ..Unit::default() });
            for function in &package.functions {
                if let Some(id) = names.get(&function.name.name) {
                    self.function_body(*id, function, Context::Package);
                }
            }
            self.units.pop();
        }
    }

    fn lower_static_fields(&mut self, program: &ast::Program) {
        for field in program.statics.iter().flat_map(|section| &section.fields) {
            if self.statics.iter().any(|other| other.name == field.name.name) {
                self.repeated("static variable", &field.name);
            }
            let set = self.set_outside(None, &field.name.name);
            let field = ast::Variable { value: set.or_else(|| field.value.clone()), ..field.clone() };
            let lowered = self.field(&field);
            self.statics.push(lowered);
        }
        self.units.clear();
    }

    fn lower_static_inits(&mut self, program: &ast::Program) -> Vec<FunctionId> {
        let mut inits = vec![];
        for section in &program.statics {
            if let Some(body) = &section.init {
                let span = body.first().map_or_else(Span::default, |stmt| stmt.span);
                inits.push(self.nameless_function("init", Context::Static, body, span));
            }
        }
        self.units.clear();
        inits
    }

    /// Returns the value from outside for a static variable, or for a parameter of a stream.
    fn set_outside(&mut self, stream: Option<&str>, name: &str) -> Option<ast::Expr> {
        let is_it =
            |setting: &ast::Setting| &*setting.name.name == name && setting.stream.as_ref().map(|stream| &*stream.name) == stream;
        // The last one counts, as on a command line.
        let mut found = None;
        for (setting, is_used) in self.settings.iter_mut().filter(|(setting, _)| is_it(setting)) {
            *is_used = true;
            found = Some(setting.value.clone());
        }
        found
    }

    /// Returns the values of the parameters of the top-level stream.
    fn top_arguments(&mut self, top: &ast::Stream) -> Vec<Expr> {
        let mut args = vec![];
        for param in &top.params {
            let name = &param.name.name;
            let own = top.name.as_ref().and_then(|stream| self.set_outside(Some(&stream.name), name));
            let Some(value) = own.or_else(|| self.set_outside(None, name)) else {
                let message = format!("the parameter `{name}` of the top-level stream has no value");
                let error = Diagnostic::error(codes::TOP_LEVEL, message).at(param.name.span, "");
                self.error(error.help(format!("set it where the program is run: `-- {name}=…`, or make it a static variable")));
                continue;
            };
            let ty = self.type_of(&param.ty);
            args.push(self.initialiser(&value, &ty, name));
        }
        self.units.clear();
        args
    }

    /// Reports values from outside that nothing took.
    fn report_unused_settings(&mut self, program: &ast::Program) {
        let unused: Vec<ast::Setting> =
            self.settings.iter().filter(|(_, is_used)| !is_used).map(|(setting, _)| setting.clone()).collect();
        let statics = program.statics.iter().flat_map(|section| &section.fields).map(|field| field.name.name.clone());
        let mut names: Vec<Arc<str>> = statics.collect();
        for stream in &program.streams {
            let own = stream.params.iter().map(|param| &param.name.name);
            names.extend(own.flat_map(|param| stream.name.as_ref().map(|name| format!("{}.{param}", name.name).into())));
        }
        for setting in unused {
            let written = match &setting.stream {
                Some(stream) => format!("{}.{}", stream.name, setting.name.name),
                None => setting.name.name.to_string(),
            };
            let message = format!("no static variable or parameter of an added stream is called `{written}`");
            let span = setting.stream.as_ref().map_or(setting.name.span, |stream| stream.span.to(setting.name.span));
            let error = Diagnostic::error(codes::UNDEFINED, message).at(span, "");
            let error = if names.is_empty() { error } else { error.note(format!("there are {}", names.join(", "))) };
            self.error(error.help("write `name=value`, or `Stream.parameter=value`"));
        }
    }

    fn find_top(&mut self, program: &ast::Program) -> Option<(StreamId, Vec<Expr>)> {
        let is_void = |ty: &ast::Type| ty.base == ast::Base::Void;
        let tops: Vec<usize> = program
            .streams
            .iter()
            .enumerate()
            .filter(|(_, stream)| stream.types.as_ref().is_some_and(|(input, output)| is_void(input) && is_void(output)))
            .map(|(index, _)| index)
            .collect();
        match tops[..] {
            [index] => return Some((StreamId::new(index), self.top_arguments(&program.streams[index]))),
            [] => {
                let error = Diagnostic::error(codes::TOP_LEVEL, "the program has no top-level stream");
                self.error(error.help("declare one stream of type `void->void`, or name a stream to run (`--stream 'Fir(64)'`)"));
            }
            [first, second, ..] => {
                let error = Diagnostic::error(codes::TOP_LEVEL, "the program has two top-level streams");
                let error = error.at(program.streams[second].span, "this is `void->void`");
                self.error(error.label(program.streams[first].span, "and so is this").help("keep one of them"));
            }
        }
        None
    }

    fn repeated(&mut self, kind: &str, name: &ast::Ident) {
        let error = Diagnostic::error(codes::REPEATED, format!("there are two declarations of the {kind} `{}`", name.name));
        self.error(error.at(name.span, "this is the second").help("rename or remove one of them"));
    }

    /// Returns the type of a written type, without its lengths.
    fn type_of(&mut self, ty: &ast::Type) -> Type {
        let base = match &ty.base {
            ast::Base::Void => Type::Void,
            ast::Base::Boolean => Type::Boolean,
            ast::Base::Bit => Type::Bit,
            ast::Base::Int => Type::Int,
            ast::Base::Float => Type::Float,
            ast::Base::Double => Type::Double,
            ast::Base::Complex => Type::Complex,
            ast::Base::Named(name) => match self.struct_names.get(name) {
                Some(id) => Type::Struct(*id),
                None => {
                    let error = Diagnostic::error(codes::UNDEFINED, format!("there is no type `{name}`")).at(ty.span, "");
                    let names: Vec<Arc<str>> = self.struct_names.keys().cloned().collect();
                    let error = error.note("types are boolean, bit, int, float, double, complex and the structs of the program");
                    self.error(suggest(error, name, names.iter()));
                    Type::Unknown
                }
            },
            ast::Base::Portal(name) => match self.stream_names.get(name) {
                Some(id) => Type::Portal(*id),
                None => {
                    let error = Diagnostic::error(codes::UNDEFINED, format!("there is no stream `{name}`")).at(ty.span, "");
                    let names: Vec<Arc<str>> = self.stream_names.keys().cloned().collect();
                    self.error(suggest(error, name, names.iter()));
                    Type::Unknown
                }
            },
        };
        ty.lengths.iter().fold(base, |element, _| Type::Array(Arc::new(element)))
    }

    fn declared(&mut self, ty: &ast::Type) -> DeclaredType {
        let lowered = self.type_of(ty);
        let lengths = ty.lengths.iter().map(|length| self.int(length, "the length of an array")).collect();
        DeclaredType { ty: lowered, lengths, span: ty.span }
    }

    fn field(&mut self, field: &ast::Variable) -> Field {
        let declared = self.declared(&field.ty);
        self.not_void(&declared.ty, &field.name);
        self.no_portal_here(&declared.ty, &field.name);
        let value = field.value.as_ref().map(|value| self.initialiser(value, &declared.ty, &field.name.name));
        Field { name: field.name.name.clone(), declared, value, span: field.name.span }
    }

    /// Reports a portal that is declared in filter code. Portals are made where receivers are registered: in
    /// the bodies of composite streams.
    fn no_portal_here(&mut self, ty: &Type, name: &ast::Ident) {
        if matches!(element_of(ty), Type::Portal(_)) {
            let error =
                Diagnostic::error(codes::MISPLACED, format!("the portal `{}` is declared in code of a filter", name.name));
            self.error(error.at(name.span, "").help("declare it in the stream around, and hand it to the filter as a parameter"));
        }
    }

    fn not_void(&mut self, ty: &Type, name: &ast::Ident) {
        if *ty == Type::Void {
            let message = format!("`{}` has type void, which has no values", name.name);
            self.error(Diagnostic::error(codes::MISMATCH, message).at(name.span, "").help("give it another type"));
        }
    }

    /// Finds a variable by its name.
    fn variable(&mut self, name: &Arc<str>) -> Option<(Root, Type)> {
        let level = self.units.len().checked_sub(1);
        level.and_then(|level| self.variable_at(level, name)).or_else(|| {
            let index = self.statics.iter().position(|field| field.name == *name)?;
            Some((Root::Static(index), self.statics[index].declared.ty.clone()))
        })
    }

    fn variable_at(&mut self, level: usize, name: &Arc<str>) -> Option<(Root, Type)> {
        let unit = &self.units[level];
        if let Some(local) = unit.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return Some((Root::Local(*local), unit.locals[*local].ty.clone()));
        }
        if let Some(index) = unit.fields.iter().position(|(field, _)| field == name) {
            return Some((Root::Field(index), unit.fields[index].1.clone()));
        }
        if let Some(index) = unit.params.iter().position(|param| param.name == *name) {
            return Some((Root::Param(index), unit.params[index].ty.clone()));
        }
        if !unit.anonymous || level == 0 {
            return None;
        }
        let (root, ty) = self.variable_at(level - 1, name)?;
        let unit = &mut self.units[level];
        let place = Place { root, name: name.clone(), path: vec![], ty: ty.clone(), span: Span::default() };
        unit.captures.push(Expr { kind: ExprKind::Read(place), ty: ty.clone(), span: Span::default() });
        unit.params.push(Variable { name: name.clone(), ty: ty.clone(), span: Span::default() });
        Some((Root::Param(unit.params.len() - 1), ty))
    }

    /// Makes a local in the innermost scope.
    fn local(&mut self, name: &ast::Ident, ty: Type) -> usize {
        let hidden =
            self.unit().params.iter().take_while(|param| !param.span.is_synthetic()).find(|param| param.name == name.name);
        if let Some(param) = hidden.cloned() {
            let error =
                Diagnostic::error(codes::HIDES_PARAMETER, format!("`{}` hides the stream parameter of that name", name.name));
            self.error(error.at(name.span, "").label(param.span, "the parameter").help("choose another name"));
        }
        let unit = self.unit();
        let index = unit.locals.len();
        unit.locals.push(Variable { name: name.name.clone(), ty, span: name.span });
        let repeated = match unit.scopes.last_mut() {
            Some(scope) => scope.insert(name.name.clone(), index).is_some(),
            None => false,
        };
        if repeated {
            self.repeated("local", name);
        }
        index
    }

    /// Reserves an id for a function, so that calls before its body find it.
    fn declare_function(&mut self, function: &ast::Function) -> FunctionId {
        let result = self.type_of(&function.result);
        let locals: Vec<Variable> = function
            .params
            .iter()
            .map(|param| Variable { name: param.name.name.clone(), ty: self.type_of(&param.ty), span: param.name.span })
            .collect();
        let params = locals.len();
        let (name, span) = (function.name.name.clone(), function.name.span);
        self.functions.push(Function { name, params, written: vec![false; params], result, locals, body: None, span })
    }

    fn function_body(&mut self, id: FunctionId, function: &ast::Function, context: Context) {
        let Some(body) = &function.body else { return };
        let result = self.functions[id].result.clone();
        let unit = self.unit();
        unit.context = context;
        unit.locals.clear();
        unit.scopes = vec![HashMap::new()];
        unit.loops = 0;
        unit.result = result.clone();
        for param in &function.params {
            let ty = self.type_of(&param.ty);
            self.not_void(&ty, &param.name);
            self.local(&param.name, ty);
        }
        let lowered = self.block(body);
        if result != Type::Void && !lowered.iter().any(always_returns) {
            let message = format!("the function `{}` can end without returning a value", function.name.name);
            let error = Diagnostic::error(codes::NO_RESULT, message).at(function.name.span, "");
            self.error(error.help("end every path with `return`"));
        }
        self.functions[id].locals = std::mem::take(&mut self.unit().locals);
        self.functions[id].body = Some(lowered);
        self.unit().scopes.clear();
    }

    fn nameless_function(&mut self, name: &str, context: Context, body: &[ast::Stmt], span: Span) -> FunctionId {
        let unit = self.unit();
        unit.context = context;
        unit.locals.clear();
        unit.scopes = vec![HashMap::new()];
        unit.loops = 0;
        unit.result = Type::Void;
        let lowered = self.block(body);
        let unit = self.unit();
        let locals = std::mem::take(&mut unit.locals);
        unit.scopes.clear();
        unit.context = Context::Constant;
        let body = Some(lowered);
        self.functions.push(Function { name: name.into(), params: 0, written: vec![], result: Type::Void, locals, body, span })
    }
}

/// Returns the element type inside all array dimensions.
fn element_of(ty: &Type) -> &Type {
    let mut inner = ty;
    while let Type::Array(element) = inner {
        inner = element;
    }
    inner
}

/// Returns whether a statement never ends normally: it returns, or loops forever.
fn always_returns(stmt: &Stmt) -> bool {
    use crate::language::core::StmtKind;
    match &stmt.kind {
        StmtKind::Return(_) => true,
        StmtKind::Block(inner) => inner.iter().any(always_returns),
        StmtKind::If(_, then, otherwise) => always_returns(then) && otherwise.as_deref().is_some_and(always_returns),
        StmtKind::Loop(None, _, _, _) => true,
        StmtKind::Loop(Some(condition), ..) => matches!(condition.kind, ExprKind::Const(Value::Boolean(true))),
        _ => false,
    }
}

/// Adds the most similar name as a help text.
fn suggest<'a>(error: Diagnostic, name: &str, names: impl Iterator<Item = &'a Arc<str>>) -> Diagnostic {
    let best = names.map(|other| (distance(name, other), other)).min();
    match best {
        Some((changes, other)) if changes <= 1 + name.len() / 4 => error.help(format!("did you mean `{other}`?")),
        _ => error.help("check the spelling, or declare it"),
    }
}

/// Returns the number of single-character changes between two names. Letters are compared without case.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<u8> = left.bytes().take(64).map(|byte| byte.to_ascii_lowercase()).collect();
    let right: Vec<u8> = right.bytes().take(64).map(|byte| byte.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substitute = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
