//! Statements.

use super::call::are;
use super::expr::read;
use super::{Context, Lowerer, suggest};
use crate::language::codes;
use crate::language::core::{
    Binary, Create, Created, DeclaredType, Distribution, Expr, ExprKind, MessageSend, Role, Stmt, StmtKind, Type, Value,
};
use crate::language::format::{Item, Sample};
use crate::language::syntax::ast;
use crate::language::text::plural;
use broadloom_diag::{Diagnostic, Span};
use std::collections::HashMap;
use std::sync::Arc;

impl Lowerer {
    pub(super) fn block(&mut self, statements: &[ast::Stmt]) -> Vec<Stmt> {
        self.unit().scopes.push(HashMap::new());
        let lowered = statements.iter().map(|stmt| self.stmt(stmt)).collect();
        self.unit().scopes.pop();
        lowered
    }

    fn scoped(&mut self, stmt: &ast::Stmt) -> Box<Stmt> {
        self.unit().scopes.push(HashMap::new());
        let lowered = self.stmt(stmt);
        self.unit().scopes.pop();
        Box::new(lowered)
    }

    fn in_loop(&mut self, stmt: &ast::Stmt) -> Box<Stmt> {
        self.unit().loops += 1;
        let lowered = self.scoped(stmt);
        self.unit().loops -= 1;
        lowered
    }

    fn stmt(&mut self, stmt: &ast::Stmt) -> Stmt {
        let span = stmt.span;
        let kind = match &stmt.kind {
            ast::StmtKind::Block(inner) => StmtKind::Block(self.block(inner)),
            ast::StmtKind::Declare(variables) => {
                StmtKind::Block(variables.iter().map(|variable| self.declare(variable, span)).collect())
            }
            ast::StmtKind::Assign(target, operator, value) => self.assign(target, *operator, value),
            ast::StmtKind::Expr(expr) => self.effect(expr),
            ast::StmtKind::Push(value) => self.push(value, span),
            ast::StmtKind::If(condition, then, otherwise) => {
                let condition = self.condition(condition);
                let then = self.scoped(then);
                StmtKind::If(condition, then, otherwise.as_ref().map(|stmt| self.scoped(stmt)))
            }
            ast::StmtKind::While(condition, body) => {
                let condition = self.condition(condition);
                StmtKind::Loop(Some(condition), None, self.in_loop(body), true)
            }
            ast::StmtKind::DoWhile(body, condition) => {
                let body = self.in_loop(body);
                let condition = self.condition(condition);
                StmtKind::Loop(Some(condition), None, body, false)
            }
            ast::StmtKind::For(init, condition, step, body) => {
                self.unit().scopes.push(HashMap::new());
                let init = init.as_ref().map(|stmt| self.stmt(stmt));
                let condition = condition.as_ref().map(|condition| self.condition(condition));
                let step = step.as_ref().map(|stmt| Box::new(self.stmt(stmt)));
                let body = self.in_loop(body);
                self.unit().scopes.pop();
                let repeat = Stmt { kind: StmtKind::Loop(condition, step, body, true), span };
                StmtKind::Block(init.into_iter().chain([repeat]).collect())
            }
            ast::StmtKind::Break | ast::StmtKind::Continue => {
                let is_break = matches!(stmt.kind, ast::StmtKind::Break);
                if self.unit().loops == 0 {
                    let word = if is_break { "break" } else { "continue" };
                    let error = Diagnostic::error(codes::MISPLACED, format!("`{word}` stands outside of a loop"));
                    self.error(error.at(span, "").help("use `return` or `if` to leave out statements"));
                }
                if is_break { StmtKind::Break } else { StmtKind::Continue }
            }
            ast::StmtKind::Return(value) => self.leave(value.as_ref(), span),
            ast::StmtKind::Send(target, function, arguments, latency) => self.send(target, function, arguments, latency, span),
            ast::StmtKind::Add(create) => {
                self.graph_statement("add", &[ast::Composite::Pipeline, ast::Composite::SplitJoin], span);
                StmtKind::Create(Role::Child, Box::new(self.create(create)))
            }
            ast::StmtKind::Body(create) => {
                self.graph_statement("body", &[ast::Composite::FeedbackLoop], span);
                StmtKind::Create(Role::Body, Box::new(self.create(create)))
            }
            ast::StmtKind::Loop(create) => {
                self.graph_statement("loop", &[ast::Composite::FeedbackLoop], span);
                StmtKind::Create(Role::Loop, Box::new(self.create(create)))
            }
            ast::StmtKind::Split(distribution) => {
                self.graph_statement("split", &[ast::Composite::SplitJoin, ast::Composite::FeedbackLoop], span);
                StmtKind::Split(self.distribution(distribution, span))
            }
            ast::StmtKind::Join(distribution) => {
                self.graph_statement("join", &[ast::Composite::SplitJoin, ast::Composite::FeedbackLoop], span);
                if matches!(distribution, ast::Distribution::Duplicate) {
                    let error = Diagnostic::error(codes::MISPLACED, "a joiner cannot duplicate").at(span, "");
                    self.error(error.help("write `join roundrobin`, with weights where they are not 1"));
                }
                StmtKind::Join(self.distribution(distribution, span))
            }
            ast::StmtKind::Enqueue(value) => {
                self.graph_statement("enqueue", &[ast::Composite::FeedbackLoop], span);
                StmtKind::Enqueue(self.expr(value))
            }
        };
        Stmt { kind, span }
    }

    fn graph_statement(&mut self, word: &str, allowed: &[ast::Composite], span: Span) {
        let here = match self.unit().context {
            Context::Composite(composite) if allowed.contains(&composite) => return,
            Context::Composite(ast::Composite::Pipeline) => "a pipeline",
            Context::Composite(ast::Composite::SplitJoin) => "a splitjoin",
            Context::Composite(ast::Composite::FeedbackLoop) => "a feedbackloop",
            _ => "the code of a filter",
        };
        let error = Diagnostic::error(codes::MISPLACED, format!("`{word}` has no meaning in {here}")).at(span, "");
        let help = match (word, here) {
            ("add", "a feedbackloop") => "a feedbackloop has one `body` and one `loop` stream",
            (_, "the code of a filter") => "streams are connected in the body of a pipeline, splitjoin or feedbackloop",
            _ => {
                "`add` belongs to pipelines and splitjoins, `split` and `join` to splitjoins and feedbackloops, the others to feedbackloops"
            }
        };
        self.error(error.help(help));
    }

    fn declare(&mut self, variable: &ast::Variable, span: Span) -> Stmt {
        let declared = self.declared(&variable.ty);
        self.not_void(&declared.ty, &variable.name);
        if !matches!(self.unit().context, Context::Composite(_)) {
            self.no_portal_here(&declared.ty, &variable.name);
        }
        let value = variable.value.as_ref().map(|value| self.initialiser(value, &declared.ty, &variable.name.name));
        let local = self.local(&variable.name, declared.ty.clone());
        Stmt { kind: StmtKind::Declare(local, declared, value), span }
    }

    fn assign(&mut self, target: &ast::Expr, operator: Option<ast::Binary>, value: &ast::Expr) -> StmtKind {
        let place = self.writable(target);
        let value = self.expr(value);
        let Some(place) = place else { return StmtKind::Block(vec![]) };
        let name = match &target.kind {
            ast::ExprKind::Name(name) => format!("the value for `{name}`"),
            _ => "the value".to_owned(),
        };
        let core = match operator {
            None => None,
            Some(operator) => {
                // The operator must be defined for both sides. Its result is converted back by the rule of
                // assignment.
                let span = target.span.to(value.span);
                if self.binary(operator, read(place.clone()), value.clone(), span).ty == Type::Unknown {
                    return StmtKind::Block(vec![]);
                }
                match operator {
                    ast::Binary::Add => Some(Binary::Add),
                    ast::Binary::Subtract => Some(Binary::Subtract),
                    ast::Binary::Multiply => Some(Binary::Multiply),
                    ast::Binary::Divide => Some(Binary::Divide),
                    ast::Binary::ShiftLeft => Some(Binary::ShiftLeft),
                    ast::Binary::ShiftRight => Some(Binary::ShiftRight),
                    _ => None,
                }
            }
        };
        let value = self.coerce(value, &place.ty, &name);
        StmtKind::Assign(place, core, value)
    }

    fn effect(&mut self, expr: &ast::Expr) -> StmtKind {
        if let ast::ExprKind::Call(name, arguments) = &expr.kind
            && matches!(&*name.name, "print" | "println")
            && !self.unit().functions.contains_key(&name.name)
        {
            let value = match &arguments[..] {
                [] => Expr { kind: ExprKind::Const(Value::Text("".into())), ty: Type::Text, span: expr.span },
                [argument] => self.expr(argument),
                _ => {
                    let message = format!("`{}` takes 1 argument, but {} are given", name.name, arguments.len());
                    let error = Diagnostic::error(codes::ARGUMENT_COUNT, message).at(expr.span, "");
                    self.error(error.help("join the parts with `+`"));
                    self.broken(expr.span)
                }
            };
            if matches!(value.ty, Type::Void | Type::Array(_) | Type::Struct(_) | Type::Portal(_)) {
                let message = format!("a value of type {} cannot be printed", self.show(&value.ty));
                let error = Diagnostic::error(codes::MISMATCH, message).at(value.span, "");
                self.error(error.help("print its parts one by one"));
            }
            return StmtKind::Print(value, &*name.name == "println");
        }
        StmtKind::Expr(self.expr(expr))
    }

    fn push(&mut self, value: &ast::Expr, span: Span) -> StmtKind {
        let value = self.expr(value);
        let unit = self.unit();
        let (context, output) = (unit.context, unit.output.clone());
        if context != Context::Work {
            self.no_tapes_here("push()", span);
        } else if output == Type::Void {
            let error = Diagnostic::error(codes::NO_TAPE, "`push()` in a filter without output");
            self.error(
                error.at(span, "").note("the output type of the filter is void").help("give the filter an output type: `…->int`"),
            );
        } else {
            return StmtKind::Push(self.coerce(value, &output, "the pushed value"));
        }
        StmtKind::Block(vec![])
    }

    fn leave(&mut self, value: Option<&ast::Expr>, span: Span) -> StmtKind {
        let wanted = self.unit().result.clone();
        match (value, wanted) {
            (None, Type::Void) => StmtKind::Return(None),
            (None, _) => {
                let error = Diagnostic::error(codes::NO_RESULT, "`return` without a value in a function that has a result");
                self.error(error.at(span, "").help("return a value, or make the result void"));
                StmtKind::Return(None)
            }
            (Some(value), Type::Void) => {
                let value = self.expr(value);
                let error = Diagnostic::error(codes::MISMATCH, "a value is returned where the result is void");
                self.error(error.at(value.span, "").help("leave the value out, or give the function a result type"));
                StmtKind::Return(None)
            }
            (Some(value), wanted) => {
                let value = self.expr(value);
                StmtKind::Return(Some(self.coerce(value, &wanted, "the returned value")))
            }
        }
    }

    fn send(
        &mut self,
        target: &ast::Ident,
        function: &ast::Ident,
        arguments: &[ast::Expr],
        latency: &ast::Latency,
        span: Span,
    ) -> StmtKind {
        if self.packages.contains_key(&target.name) && self.variable(&target.name).is_none() {
            return StmtKind::Expr(self.package_call(target, function, arguments, span));
        }
        let name = ast::Expr { kind: ast::ExprKind::Name(target.name.clone()), span: target.span, height: 1 };
        let portal = self.expr(&name);
        let Type::Portal(stream) = portal.ty else {
            if portal.ty != Type::Unknown {
                let message = format!("`{}` is neither a portal nor a helper package", target.name);
                let error = Diagnostic::error(codes::MISMATCH, message).at(target.span, "");
                self.error(error.help("messages go to a parameter of type `portal<Filter>`"));
            }
            return StmtKind::Block(vec![]);
        };
        if !matches!(self.unit().context, Context::Work | Context::Handler) {
            let error = Diagnostic::error(codes::MISPLACED, "a message is sent outside of the code of firings").at(span, "");
            self.error(error.help("send it in `work` or a function that `work` calls"));
        }
        let handlers = &self.signatures[cranelift_entity::EntityRef::index(stream)].handlers;
        let Some((_, types)) = handlers.iter().find(|(name, _)| *name == function.name) else {
            let message = format!("the receivers of `{}` have no handler `{}`", target.name, function.name);
            let error = Diagnostic::error(codes::BAD_MESSAGE, message).at(function.span, "");
            let names: Vec<Arc<str>> = handlers.iter().map(|(name, _)| name.clone()).collect();
            self.error(suggest(error, &function.name, names.iter()));
            return StmtKind::Block(vec![]);
        };
        let types = types.clone();
        if types.len() != arguments.len() {
            let wanted = plural(types.len() as u64, "argument");
            let message = format!("the handler `{}` takes {wanted}, but {} given", function.name, are(arguments.len()));
            self.error(Diagnostic::error(codes::ARGUMENT_COUNT, message).at(span, "").help("give one value for each parameter"));
            return StmtKind::Block(vec![]);
        }
        let mut args = vec![];
        for (argument, ty) in arguments.iter().zip(&types) {
            let value = self.expr(argument);
            args.push(self.coerce(value, ty, &format!("the argument of `{}`", function.name)));
        }
        let latency = match latency {
            ast::Latency::None | ast::Latency::Any => None,
            ast::Latency::Range(min, max) => {
                let min = min.as_ref().map(|min| self.int(min, "the least latency"));
                let max = max.as_ref().map(|max| self.int(max, "the greatest latency"));
                max.or(min)
            }
        };
        StmtKind::Send(Box::new(MessageSend { portal, handler: function.name.clone(), args, latency }))
    }

    fn distribution(&mut self, distribution: &ast::Distribution, span: Span) -> Distribution {
        match distribution {
            ast::Distribution::Duplicate => Distribution::Duplicate,
            ast::Distribution::Even(None) => {
                Distribution::Even(Expr { kind: ExprKind::Const(Value::Int(1)), ty: Type::Int, span })
            }
            ast::Distribution::Even(Some(weight)) => Distribution::Even(self.int(weight, "the weight")),
            ast::Distribution::Weights(weights) => {
                Distribution::Weights(weights.iter().map(|weight| self.int(weight, "a weight")).collect())
            }
        }
    }

    fn create(&mut self, create: &ast::Create) -> Create {
        let (stream, args) = match &create.stream {
            ast::Created::Named(name, ty, arguments) => self.named(name, ty.as_ref(), arguments, create.span),
            ast::Created::Anonymous(stream) => {
                let (lowered, mut captures) = self.stream(stream, true);
                for capture in &mut captures {
                    capture.span = create.span;
                    if let ExprKind::Read(place) = &mut capture.kind {
                        place.span = create.span;
                    }
                }
                let id = self.streams.push(Some(lowered));
                (Created::Stream(id), captures)
            }
        };
        let mut portals = vec![];
        for portal in &create.portals {
            let name = ast::Expr { kind: ast::ExprKind::Name(portal.name.clone()), span: portal.span, height: 1 };
            let value = self.expr(&name);
            if !matches!(value.ty, Type::Portal(_) | Type::Unknown) {
                let error = Diagnostic::error(codes::MISMATCH, format!("`{}` is no portal", portal.name)).at(portal.span, "");
                self.error(error.help("declare it in the stream: `portal<Filter> p;`"));
            }
            portals.push(value);
        }
        Create { stream, args, portals, span: create.span }
    }

    fn named(&mut self, name: &ast::Ident, ty: Option<&ast::Type>, arguments: &[ast::Expr], span: Span) -> (Created, Vec<Expr>) {
        let Some(id) = self.stream_names.get(&name.name).copied() else {
            return self.built_in(name, ty, arguments, span);
        };
        if let Some(ty) = ty {
            let message = format!("`{}` takes no type argument", name.name);
            self.error(Diagnostic::error(codes::ARGUMENT_COUNT, message).at(ty.span, "").help("leave out what stands in `<…>`"));
        }
        let params = self.signatures[cranelift_entity::EntityRef::index(id)].params.clone();
        // Values from outside take the place of arguments. With values for all parameters, arguments may be left out.
        let set: Vec<Option<ast::Expr>> = params.iter().map(|(param, _)| self.set_outside(Some(&name.name), param)).collect();
        let is_set = arguments.is_empty() && set.iter().all(Option::is_some);
        if params.len() != arguments.len() && !is_set {
            let wanted = plural(params.len() as u64, "parameter");
            let message = format!("`{}` has {wanted}, but {} given", name.name, are(arguments.len()));
            let names: Vec<String> = params.iter().map(|(name, _)| format!("`{name}`")).collect();
            let error = Diagnostic::error(codes::ARGUMENT_COUNT, message).at(span, "");
            self.error(match names.is_empty() {
                true => error.help("leave the arguments out"),
                false => error.help(format!("give values for {}", names.join(", "))),
            });
        }
        let mut args = vec![];
        for (at, (param, ty)) in params.iter().enumerate() {
            let Some(argument) = set[at].as_ref().or(arguments.get(at)) else { break };
            let value = self.argument(argument, ty, set[at].is_some());
            args.push(self.coerce(value, ty, &format!("the parameter `{param}` of `{}`", name.name)));
        }
        (Created::Stream(id), args)
    }

    /// Lowers an argument. One from outside may be a list.
    fn argument(&mut self, argument: &ast::Expr, ty: &Type, is_outside: bool) -> Expr {
        match &argument.kind {
            ast::ExprKind::List(_) if is_outside => self.initialiser(argument, ty, "the parameter"),
            _ => self.expr(argument),
        }
    }

    /// Returns the type of a tape for numbers of a file that a program names in place of a type: `FileReader<short>`.
    fn file_numbers(&self, ty: &ast::Type) -> Option<(DeclaredType, Sample)> {
        let ast::Base::Named(name) = &ty.base else { return None };
        let sample = Sample::parse(name).filter(|_| ty.lengths.is_empty() && !self.struct_names.contains_key(name))?;
        let item = match sample.item() {
            Item::Bit => Type::Bit,
            Item::Int => Type::Int,
            Item::Float => Type::Float,
            Item::Double => Type::Double,
            Item::Complex => Type::Complex,
        };
        Some((DeclaredType { ty: item, lengths: vec![], span: ty.span }, sample))
    }

    fn built_in(
        &mut self,
        name: &ast::Ident,
        ty: Option<&ast::Type>,
        arguments: &[ast::Expr],
        span: Span,
    ) -> (Created, Vec<Expr>) {
        let nothing = DeclaredType { ty: Type::Unknown, lengths: vec![], span };
        let wanted = match &*name.name {
            "Identity" => 0,
            "FileReader" | "FileWriter" => 2,
            _ => {
                let error = Diagnostic::error(codes::UNDEFINED, format!("there is no stream `{}`", name.name)).at(name.span, "");
                let mut names: Vec<Arc<str>> = self.stream_names.keys().cloned().collect();
                names.extend(["Identity", "FileReader", "FileWriter"].map(Arc::from));
                self.error(suggest(error, &name.name, names.iter()));
                return (Created::Identity(nothing), vec![]);
            }
        };
        let Some(ty) = ty else {
            let error = Diagnostic::error(codes::ARGUMENT_COUNT, format!("`{}` needs the type of its items", name.name));
            self.error(error.at(span, "").help(format!("write it behind the name: `{}<float>`", name.name)));
            return (Created::Identity(nothing), vec![]);
        };
        let (declared, sample) = match self.file_numbers(ty).filter(|_| wanted > 0) {
            Some((declared, sample)) => (declared, Some(sample)),
            None => (self.declared(ty), None),
        };
        if arguments.len() > wanted || arguments.is_empty() && wanted > 0 {
            let count = if wanted == 0 { "no parameters" } else { "one or two parameters" };
            let message = format!("`{}` has {count}, but {} given", name.name, are(arguments.len()));
            let help =
                if wanted == 0 { "leave the arguments out" } else { "give it the name of a file, and its format if needed" };
            self.error(Diagnostic::error(codes::ARGUMENT_COUNT, message).at(span, "").help(help));
        }
        let mut args = vec![];
        for argument in arguments.iter().take(wanted) {
            let value = self.expr(argument);
            args.push(self.coerce(value, &Type::Text, if args.is_empty() { "the file name" } else { "the format" }));
        }
        let created = match &*name.name {
            "FileReader" => Created::FileReader(declared, sample),
            "FileWriter" => Created::FileWriter(declared, sample),
            _ => Created::Identity(declared),
        };
        (created, args)
    }
}
