//! Streams: filters and the bodies of composites.

use super::{Context, Lowerer, Unit};
use crate::language::codes;
use crate::language::core::{DeclaredType, Expr, Filter, Rate, Stream, StreamKind, Type, Variable, Work};
use crate::language::syntax::ast;
use broadloom_diag::{Diagnostic, Span};
use std::sync::Arc;

impl Lowerer {
    /// Lowers a stream. Returns it with the values that it captures from the enclosing unit.
    pub(super) fn stream(&mut self, stream: &ast::Stream, anonymous: bool) -> (Stream, Vec<Expr>) {
        let mut params: Vec<Variable> = vec![];
        for param in &stream.params {
            if params.iter().any(|other| other.name == param.name.name) {
                self.repeated("parameter", &param.name);
            }
            let ty = self.type_of(&param.ty);
            self.not_void(&ty, &param.name);
            params.push(Variable { name: param.name.name.clone(), ty, span: param.name.span });
        }
        self.units.push(Unit { anonymous, params, ..Unit::default() });
        // Lengths of parameters are only checked: an array brings its own length.
        for param in &stream.params {
            self.declared(&param.ty);
        }
        let types = stream.types.as_ref().map(|(input, output)| (self.tape(input), self.tape(output)));
        if let Some((input, output)) = &types {
            let (input, output) = (input.ty.clone(), output.ty.clone());
            let unit = self.unit();
            unit.input = input;
            unit.output = output;
        }
        let kind = match &stream.kind {
            ast::StreamKind::Filter(filter) => StreamKind::Filter(Box::new(self.filter(filter, stream.span))),
            ast::StreamKind::Composite(composite, body) => {
                let function = self.nameless_function("body", Context::Composite(*composite), body, stream.span);
                StreamKind::Composite(*composite, function)
            }
        };
        let unit = self.units.pop().unwrap_or_default();
        let (name, span): (Arc<str>, Span) = match (&stream.name, &stream.kind) {
            (Some(name), _) => (name.name.clone(), name.span),
            (None, ast::StreamKind::Filter(_)) => ("filter".into(), stream.span),
            (None, ast::StreamKind::Composite(ast::Composite::Pipeline, _)) => ("pipeline".into(), stream.span),
            (None, ast::StreamKind::Composite(ast::Composite::SplitJoin, _)) => ("splitjoin".into(), stream.span),
            (None, ast::StreamKind::Composite(ast::Composite::FeedbackLoop, _)) => ("feedbackloop".into(), stream.span),
        };
        (Stream { name, params: unit.params, types, kind, span }, unit.captures)
    }

    fn tape(&mut self, ty: &ast::Type) -> DeclaredType {
        let declared = self.declared(ty);
        if matches!(declared.ty, Type::Portal(_)) {
            let error = Diagnostic::error(codes::MISMATCH, "a portal cannot travel on a tape").at(ty.span, "");
            self.error(error.help("hand it to the filter as a parameter"));
        }
        declared
    }

    fn filter(&mut self, filter: &ast::Filter, span: Span) -> Filter {
        let mut fields = vec![];
        for field in &filter.fields {
            if self.unit().fields.iter().any(|(name, _)| *name == field.name.name) {
                self.repeated("field", &field.name);
            }
            let hidden =
                self.unit().params.iter().find(|param| param.name == field.name.name && !param.span.is_synthetic()).cloned();
            if let Some(param) = hidden {
                let message = format!("the field `{}` hides the stream parameter of that name", param.name);
                let error = Diagnostic::error(codes::HIDES_PARAMETER, message).at(field.name.span, "");
                self.error(error.label(param.span, "the parameter").help("choose another name"));
            }
            let lowered = self.field(field);
            self.unit().fields.push((lowered.name.clone(), lowered.declared.ty.clone()));
            fields.push(lowered);
        }
        let mut ids = vec![];
        for function in &filter.functions {
            let id = self.declare_function(function);
            if self.unit().functions.insert(function.name.name.clone(), id).is_some() {
                self.repeated("function", &function.name);
            }
            ids.push(id);
        }
        // A handler can be called like a function.
        let mut handlers: Vec<(Arc<str>, _)> = vec![];
        for handler in &filter.handlers {
            let id = self.declare_function(handler);
            if self.unit().functions.insert(handler.name.name.clone(), id).is_some() {
                self.repeated("handler", &handler.name);
            }
            handlers.push((handler.name.name.clone(), id));
        }
        for (id, function) in ids.iter().zip(&filter.functions) {
            self.function_body(*id, function, Context::Work);
        }
        for ((_, id), handler) in handlers.iter().zip(&filter.handlers) {
            self.function_body(*id, handler, Context::Handler);
        }
        let init = filter.init.as_ref().map(|body| self.nameless_function("init", Context::Init, body, span));
        let prework = filter.prework.as_ref().map(|work| self.work(work, "prework"));
        let nothing = ast::Work { rates: ast::Rates::default(), body: vec![], span };
        let work = self.work(filter.work.as_ref().unwrap_or(&nothing), "work");
        Filter { fields, init, prework, work, handlers, stateful: filter.stateful }
    }

    fn work(&mut self, work: &ast::Work, name: &str) -> Work {
        self.unit().context = Context::Constant;
        let push = self.rate(work.rates.push.as_ref(), "push");
        let pop = self.rate(work.rates.pop.as_ref(), "pop");
        let peek = self.rate(work.rates.peek.as_ref(), "peek");
        let function = self.nameless_function(name, Context::Work, &work.body, work.span);
        Work { function, push, pop, peek, span: work.span }
    }

    fn rate(&mut self, rate: Option<&ast::Rate>, word: &str) -> Rate {
        let purpose = format!("the {word} rate");
        match rate {
            None => Rate::None,
            Some(ast::Rate::Exact(rate)) => Rate::Exact(self.int(rate, &purpose)),
            Some(ast::Rate::Range(min, max, _)) => {
                let min = min.as_ref().map(|min| self.int(min, &purpose));
                Rate::Range(min, max.as_ref().map(|max| self.int(max, &purpose)))
            }
        }
    }
}
