//! Expressions and calls.

use super::code::{BodyCode, Code, CodeKind};
use super::fault::{Fault, Run};
use super::value::{Function, Seq, Value};
use super::{Evaluation, TailCall};
use crate::codes;
use crate::core::{Each, Expr, ExprId, LocalId, Pattern, PatternId};
use broadloom_diag::Span;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Stack reserved for the expressions of one function, which nest up to the limit of the parser, and for
/// primitives.
const STACK_MARGIN: usize = 8 << 20;

/// Variables of a call.
type Locals = [Value];

impl Evaluation<'_> {
    pub(super) fn start(&mut self, code: &Rc<Code>) -> Run<Value> {
        let CodeKind::Body(body) = &code.kind else { return Fault::at_run_time("internal error: no body; please report it") };
        let mut locals = vec![Value::Int(0); body.body.locals.len()];
        let Some(result) = body.body.result else { return Fault::at_run_time("internal error: no result; please report it") };
        self.eval(code, body, &mut locals, result, false)
    }

    fn count_step(&mut self, code: &Code, span: Span) -> Run<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(256) && self.state.options.is_stopped() {
            let mut fault = self.state.options.stopped();
            fault.span = Some(span);
            return Err(fault);
        }
        if self.steps > self.state.options.max_steps {
            let mut fault =
                Fault::new(codes::STEPS, format!("`{}` was stopped after {} steps", code.name, self.state.options.max_steps));
            fault.span = Some(span);
            fault.help = Some("does a recursion never end?".to_owned());
            return Err(fault);
        }
        Ok(())
    }

    /// Evaluates an expression. With `tail` a call may be left to the caller as [`Evaluation::pending`].
    fn eval(&mut self, code: &Rc<Code>, body: &BodyCode, locals: &mut Locals, expr: ExprId, tail: bool) -> Run<Value> {
        let span = body.body.spans[expr];
        self.count_step(code, span)?;
        match &body.body.exprs[expr] {
            Expr::Int(value) => Ok(Value::Int(*value)),
            Expr::Float(value) => Ok(Value::Float(*value)),
            Expr::Bool(value) => Ok(Value::Bool(*value)),
            Expr::Char(value) => Ok(Value::Char(*value)),
            Expr::Text(text) => self.located(span, |machine| machine.shared_text(text.clone())),
            Expr::Local(local) => Ok(locals[local.as_u32() as usize].clone()),
            Expr::Definition(..) => self.definition(body, expr, span),
            Expr::Pair(first, rest) => {
                let first = self.eval(code, body, locals, *first, false)?;
                let rest = self.eval(code, body, locals, *rest, false)?;
                Ok(Value::pair(first, rest))
            }
            Expr::Call(function, argument) => self.call(code, body, locals, (*function, *argument), span, tail),
            Expr::If(condition, then, otherwise) => {
                let chosen = if self.eval(code, body, locals, *condition, false)?.bool() { *then } else { *otherwise };
                self.eval(code, body, locals, chosen, tail)
            }
            Expr::Let(..) => {
                // A chain of bindings is evaluated in a loop, so its length costs no stack.
                let mut rest = expr;
                while let Expr::Let(pattern, value, next) = &body.body.exprs[rest] {
                    let value = self.eval(code, body, locals, *value, false)?;
                    bind(body, locals, *pattern, value);
                    rest = *next;
                }
                self.eval(code, body, locals, rest, tail)
            }
            Expr::Each(each) => self.each(code, body, locals, each, span),
            Expr::Sequence(elements) => {
                let mut values = Vec::with_capacity(elements.len());
                for &element in elements {
                    values.push(self.eval(code, body, locals, element, false)?);
                }
                self.located(span, |machine| machine.seq(values))
            }
            Expr::Lambda(lambda) => {
                let captures = self.env.lambdas[*lambda].captures.clone();
                let captured = captures.into_iter().map(|(outer, inner)| (inner, locals[outer.as_u32() as usize].clone()));
                let captured: Vec<(LocalId, Value)> = captured.collect();
                let code = self.lambda_code(*lambda, code);
                Ok(Value::Function(Rc::new(Function { code, captured })))
            }
            Expr::Time(timed) => {
                let start = Instant::now();
                let value = self.eval(code, body, locals, *timed, false)?;
                let seconds = self.round(start.elapsed().as_secs_f64());
                Ok(Value::pair(value, Value::Float(seconds)))
            }
        }
    }

    /// Adds a place to a fault.
    fn located<T>(&mut self, span: Span, part: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        part(self).map_err(|mut fault| {
            fault.span = fault.span.or(Some(span));
            fault
        })
    }

    fn definition(&mut self, body: &BodyCode, expr: ExprId, span: Span) -> Run<Value> {
        let target = self.located(span, |machine| machine.target(body, expr))?;
        if let CodeKind::Global(definition) = self.code(target).kind {
            return match &self.state.globals[definition] {
                Some(value) => Ok(value.clone()),
                None => self.located(span, |_| Fault::at_run_time("the variable has no value")),
            };
        }
        Ok(Value::Function(Rc::new(Function { code: target, captured: vec![] })))
    }

    fn call(
        &mut self,
        code: &Rc<Code>,
        body: &BodyCode,
        locals: &mut Locals,
        (function, argument): (ExprId, ExprId),
        site: Span,
        tail: bool,
    ) -> Run<Value> {
        let direct = matches!(body.body.exprs[function], Expr::Definition(..));
        let (mut target, mut captured) = (super::code::nowhere(), None);
        if direct {
            target = self.located(site, |machine| machine.target(body, function))?;
        }
        if (!direct || matches!(self.code(target).kind, CodeKind::Global(_)))
            && let Value::Function(function) = self.eval(code, body, locals, function, false)?
        {
            target = function.code;
            captured = Some(function);
        }
        let argument = self.eval(code, body, locals, argument, false)?;
        if let CodeKind::Primitive(primitive) = self.code(target).kind {
            let callee = self.code(target);
            return self.located(site, |machine| machine.primitive(primitive, argument, callee.argument, callee.result));
        }
        if tail {
            self.pending = Some(TailCall { code: target, captured, argument, site });
            return Ok(Value::Bool(false));
        }
        self.invoke(TailCall { code: target, captured, argument, site })
    }

    /// Calls a function, and then its tail calls.
    fn invoke(&mut self, mut call: TailCall) -> Run<Value> {
        let here = 0u8;
        let used = self.base.abs_diff(std::ptr::from_ref(&here).addr());
        if self.depth >= self.state.options.max_depth || used + STACK_MARGIN > self.state.stack {
            let code = self.code(call.code);
            let mut fault =
                Fault::new(codes::RECURSION, format!("`{}` calls itself too deeply: {} calls", code.name, self.depth));
            fault.span = Some(call.site);
            fault.help = Some("does the recursion end? A call that is the last thing a function does is not counted".to_owned());
            return Err(fault);
        }
        self.depth += 1;
        let mut site = call.site;
        let result = loop {
            let code = self.code(call.code);
            if !self.is_library(call.site) {
                site = call.site;
            }
            let result = self.enter(&code, call.captured.as_deref(), call.argument);
            match (result, self.pending.take()) {
                (Ok(_), Some(next)) => call = next,
                (Ok(value), None) => break Ok(value),
                (Err(fault), _) => break Err(self.blame(fault, &code, site)),
            }
        };
        self.depth -= 1;
        result
    }

    pub(crate) fn is_library(&self, span: Span) -> bool {
        self.state.library.is_some_and(|last| span.source <= last)
    }

    /// Moves the place of a fault out of the library and records the function.
    fn blame(&self, mut fault: Box<Fault>, code: &Code, site: Span) -> Box<Fault> {
        let inside = fault.span.is_none_or(|span| self.is_library(span));
        if inside {
            fault.span = Some(site);
        } else if !code.library && fault.trace.last().is_none_or(|(name, _)| *name != code.name) && fault.trace.len() < 4 {
            fault.trace.push((code.name.clone(), site));
        }
        fault
    }

    fn enter(&mut self, code: &Rc<Code>, captured: Option<&Function>, argument: Value) -> Run<Value> {
        match &code.kind {
            CodeKind::Body(body) => {
                let mut locals = vec![Value::Int(0); body.body.locals.len()];
                for (local, value) in captured.map_or(&[][..], |function| &function.captured) {
                    locals[local.as_u32() as usize] = value.clone();
                }
                if let Some(parameter) = body.body.parameter {
                    bind(body, &mut locals, parameter, argument);
                }
                match body.body.result {
                    Some(result) => self.eval(code, body, &mut locals, result, true),
                    None => Fault::at_run_time("internal error: no result; please report it"),
                }
            }
            CodeKind::Primitive(primitive) => self.primitive(*primitive, argument, code.argument, code.result),
            CodeKind::Constructor => Ok(argument),
            CodeKind::Declared => Fault::at_run_time(format!("`{}` was declared but is not defined with this type", code.name)),
            CodeKind::Global(_) => Fault::at_run_time("internal error: a variable was called; please report it"),
        }
    }

    fn each(&mut self, code: &Rc<Code>, body: &BodyCode, locals: &mut Locals, each: &Each, span: Span) -> Run<Value> {
        let mut sources: Vec<Seq> = Vec::with_capacity(each.generators.len());
        for (_, source) in &each.generators {
            if let Value::Seq(values) = self.eval(code, body, locals, *source, false)? {
                sources.push(values);
            }
        }
        let length = sources.first().map_or(0, |values| values.len());
        if let Some(other) = sources.iter().find(|values| values.len() != length) {
            let lengths = (length, other.len());
            return self.located(span, |_| {
                Fault::at_run_time(format!(
                    "the sequences of an apply-to-each have different lengths: {} and {}",
                    lengths.0, lengths.1
                ))
            });
        }
        if !self.state.meter.allows(length, None) {
            return self.located(span, |machine| machine.out_of_memory(length));
        }
        let mut values = Vec::with_capacity(length);
        for index in 0..length {
            for ((pattern, _), source) in each.generators.iter().zip(&sources) {
                bind(body, locals, *pattern, source[index].clone());
            }
            let value = self.eval(code, body, locals, each.body, false)?;
            let keep = match each.filter {
                Some(filter) => self.eval(code, body, locals, filter, false)?.bool(),
                None => true,
            };
            if keep {
                values.push(value);
            }
        }
        self.located(span, |machine| machine.seq(values))
    }

    pub(crate) fn out_of_memory<T>(&mut self, length: usize) -> Run<T> {
        let limit = self.state.options.max_bytes >> 20;
        Err(Fault::new(
            codes::MEMORY,
            format!("a sequence of {length} elements needs more than the {limit} MiB that sequences may use"),
        ))
    }

    /// Makes a sequence within the limit on memory.
    pub(crate) fn seq(&mut self, values: Vec<Value>) -> Run<Value> {
        let length = values.len();
        match self.state.meter.seq(values) {
            Some(values) => Ok(Value::Seq(values)),
            None => self.out_of_memory(length),
        }
    }

    pub(crate) fn text(&mut self, text: &[u8]) -> Run<Value> {
        self.shared_text(text.into())
    }

    /// Makes a string of shared characters.
    pub(crate) fn shared_text(&mut self, text: Arc<[u8]>) -> Run<Value> {
        let length = text.len();
        match self.state.meter.text(text) {
            Some(values) => Ok(Value::Seq(values)),
            None => self.out_of_memory(length),
        }
    }
}

fn bind(body: &BodyCode, locals: &mut Locals, pattern: PatternId, value: Value) {
    match body.body.patterns[pattern] {
        Pattern::Local(local) => locals[local.as_u32() as usize] = value,
        Pattern::Pair(first, rest) => {
            let (a, b) = value.parts();
            let (a, b) = (a.clone(), b.clone());
            bind(body, locals, first, a);
            bind(body, locals, rest, b);
        }
    }
}
