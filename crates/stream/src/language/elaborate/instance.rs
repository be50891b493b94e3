//! Filters: fields, `init` and rates of an instance.

use super::builder::{Builder, OpenEnd, OpenStream, PartialFilter};
use super::site::{CompositeParts, CompositeSite};
use crate::language::codes;
use crate::language::core::{
    self, DeclaredType, Field, Filter, Layout, Stream, StreamId, Type, Value, Work, construction, identify,
};
use crate::language::eval::{Code, Stop, World};
use crate::language::graph::{Instance, NodeKind, Rate, Rates, Tree};
use broadloom_diag::{Diagnostic, Span};
use std::sync::Arc;

/// Evaluates the first value of a field or static variable.
pub(super) fn field_value<'a, W: World>(code: &mut Code<'a, W>, field: &'a Field) -> Result<Value, Stop> {
    let value = match &field.value {
        None => {
            // The memory is counted before it is taken.
            let layout = code.layout(&field.declared)?;
            let budget = code.world.budget();
            if budget.cells.saturating_add(layout.cells()) > budget.limits.cells {
                return Err(too_large(budget.limits.cells, field.span));
            }
            layout.zero()
        }
        Some(value) if matches!(field.declared.ty, Type::Array(_)) => code.initial(&field.declared, value)?,
        Some(value) => code.eval(value)?,
    };
    let budget = code.world.budget();
    budget.cells = budget.cells.saturating_add(value.cells());
    if budget.cells > budget.limits.cells {
        return Err(too_large(budget.limits.cells, field.span));
    }
    Ok(value)
}

fn too_large(limit: u64, span: Span) -> Stop {
    let message = format!("the fields need more memory than the limit of {limit} scalars");
    Stop::error(codes::MEMORY, message, span).help("make arrays smaller, or instances fewer")
}

/// Evaluates the type of a tape. Returns `None` for void.
pub(super) fn tape_layout<'a, W: World>(code: &mut Code<'a, W>, declared: &'a DeclaredType) -> Result<Option<Layout>, Stop> {
    if declared.ty == Type::Void { Ok(None) } else { code.layout(declared).map(Some) }
}

/// Evaluates the rates of a work function.
fn rates<'a, W: World>(code: &mut Code<'a, W>, work: &'a Work) -> Result<Rates, Stop> {
    let push = rate(code, &work.push, "push", work.span)?;
    let pop = rate(code, &work.pop, "pop", work.span)?;
    let mut peek = rate(code, &work.peek, "peek", work.span)?;
    // Items that are popped also count as peeked.
    peek.min = peek.min.max(pop.min);
    peek.max = peek.max.zip(pop.max).map(|(peek, pop)| peek.max(pop));
    Ok(Rates { push, pop, peek })
}

fn rate<'a, W: World>(code: &mut Code<'a, W>, rate: &'a core::Rate, word: &str, span: Span) -> Result<Rate, Stop> {
    let mut number = |expr: &'a core::Expr| {
        let value = code.int(expr)?;
        u32::try_from(value).map_err(|_| {
            let message = format!("the {word} rate is {value}, which is negative");
            Stop::error(codes::BAD_RATE, message, expr.span).help("check the values that the stream is given")
        })
    };
    match rate {
        core::Rate::None => Ok(Rate::exact(0)),
        core::Rate::Exact(expr) => Ok(Rate::exact(number(expr)?)),
        core::Rate::Range(min, max) => {
            let min = min.as_ref().map(&mut number).transpose()?.unwrap_or(0);
            let max = max.as_ref().map(&mut number).transpose()?;
            if let Some(max) = max.filter(|max| *max < min) {
                let message = format!("the {word} rate is at least {min} and at most {max}");
                return Err(Stop::error(codes::BAD_RATE, message, span).help("write the smaller bound first"));
            }
            Ok(Rate { min, max })
        }
    }
}

/// Returns the error for a rate of 0 on a side with items.
fn zero_rate(message: String, declared: &core::Rate, word: &str, span: Span) -> Stop {
    let error = Diagnostic::error(codes::BAD_RATE, message).at(span, "");
    let Some(field) = field_in(declared) else {
        return Stop::Error(Box::new(error.help(format!("declare the rate behind `work`: `work {word} 1`"))));
    };
    let help = format!("set `{field}` in `init`, or make it a parameter of the stream; a rate that changes is `{word} [0, *]`");
    Stop::Error(Box::new(error.note(format!("the rate reads the field `{field}` once, after `init`")).help(help)))
}

/// Returns the name of a field that a rate reads.
fn field_in(rate: &core::Rate) -> Option<&str> {
    fn find(expr: &core::Expr) -> Option<&str> {
        if let core::ExprKind::Read(core::Place { root: core::Root::Field(_), name, .. }) = &expr.kind {
            return Some(name);
        }
        let mut found = None;
        core::each_operand(expr, &mut |operand| found = found.or_else(|| find(operand)));
        found
    }
    match rate {
        core::Rate::Exact(expr) => find(expr),
        core::Rate::None | core::Rate::Range(..) => None,
    }
}

impl Builder<'_> {
    /// Evaluates fields, `init`, types and rates of a filter.
    fn make(&mut self, stream: &Stream, filter: &Filter, params: &[Value]) -> Result<PartialFilter, Stop> {
        let program = self.program;
        let statics = self.statics.clone();
        let mut site = CompositeSite { builder: self, parts: CompositeParts::default() };
        let mut code = Code::new(program, params, vec![], statics, &mut site);
        for field in &filter.fields {
            let value = field_value(&mut code, field)?;
            code.fields.push(value);
        }
        if let Some(init) = filter.init {
            code.enter(init, vec![])?;
        }
        let (input, output) = match &stream.types {
            Some((input, output)) => (tape_layout(&mut code, input)?, tape_layout(&mut code, output)?),
            None => (None, None),
        };
        let work = rates(&mut code, &filter.work)?;
        let prework = filter.prework.as_ref().map(|work| rates(&mut code, work)).transpose()?;
        let fields: Arc<[Value]> = std::mem::take(&mut code.fields).into();
        Ok(PartialFilter { cells: fields.iter().map(Value::cells).sum(), fields, input, output, work, prework })
    }

    /// Returns an equal instance that was built before, or builds one.
    fn make_once(&mut self, id: StreamId, filter: &Filter, params: &[Value]) -> Result<PartialFilter, Stop> {
        let stream = &self.program.streams[id];
        let matters = self.known.params.entry(id).or_insert_with(|| construction(self.program, stream, filter));
        let Some(matters) = matters else { return self.make(stream, filter, params) };
        let mut words = vec![];
        matters.iter().for_each(|param| identify(&params[*param], &mut words));
        let key = (id, words);
        if let Some(made) = self.known.made.get(&key) {
            let budget = &mut self.budget;
            budget.cells = budget.cells.saturating_add(made.cells);
            if budget.cells > budget.limits.cells {
                return Err(too_large(budget.limits.cells, stream.span));
            }
            return Ok(made.clone());
        }
        let made = self.make(stream, filter, params)?;
        self.known.made.insert(key, made.clone());
        Ok(made)
    }

    /// Fails if the items that `prework` pushes have no room on the tape, before it pushes them.
    fn check_first_push(&self, filter: &Filter, output: &Option<Layout>, prework: Option<Rates>) -> Result<(), Stop> {
        let (Some(layout), Some(rates), Some(prework)) = (output, prework, &filter.prework) else { return Ok(()) };
        let limit = self.budget.limits.cells;
        if layout.cells().saturating_mul(u64::from(rates.push.min)) <= limit {
            return Ok(());
        }
        let message = format!("`prework` pushes {} items, more than the limit of {limit} scalars on tapes", rates.push.min);
        Err(Stop::error(codes::MEMORY, message, prework.span)
            .help("push fewer items, or delay by `work` with an array as a ring"))
    }

    pub(super) fn filter(&mut self, id: StreamId, filter: &Filter, params: Arc<[Value]>, span: Span) -> Result<OpenStream, Stop> {
        let program = self.program;
        let stream = &program.streams[id];
        let PartialFilter { fields, input, output, work, prework, .. } = self.make_once(id, filter, &params)?;
        let name = &stream.name;
        self.check_first_push(filter, &output, prework)?;
        for (layout, rate, word, does) in [(&input, work.pop, "pop", "takes"), (&output, work.push, "push", "produces")] {
            match layout {
                Some(layout) if rate.is_zero() => {
                    let ty = layout.show(&program.structs);
                    let message = format!("the filter `{name}` {does} items of type {ty}, but its {word} rate is 0");
                    let declared = if word == "pop" { &filter.work.pop } else { &filter.work.push };
                    return Err(zero_rate(message, declared, word, filter.work.span));
                }
                None if !rate.is_zero() => {
                    let message = format!("the filter `{name}` has a {word} rate, but its type on that side is void");
                    return Err(
                        Stop::error(codes::BAD_RATE, message, filter.work.span).help("remove the rate, or give that side a type")
                    );
                }
                _ => {}
            }
        }
        let ports = (usize::from(input.is_some()), usize::from(output.is_some()));
        let instance = Instance { stream: id, params: params.clone(), fields, work, prework };
        let node = self.node(name, NodeKind::Filter(Box::new(instance)), ports, span)?;
        let end = |layout: Option<Layout>| layout.map(|layout| OpenEnd { node, port: 0, layout });
        Ok(OpenStream { tree: Tree::Node(node), input: end(input), output: end(output), name: name.to_string() })
    }
}
