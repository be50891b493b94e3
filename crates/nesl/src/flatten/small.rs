//! Calls of functions with a sequential form: small ones run in one thread each, the others stay flattened.
//!
//! ```text
//! f(calls) = case SMALL(sizes) of
//!              all:  sequential f (calls)
//!              some: sequential f (small calls), f-flattened (large calls), results put together
//!              none: f-flattened (calls)
//! ```
//!
//! The size of a call is the number of elements of its sequences. Calls of `f` in the flattened function come
//! here again, so a recursion stays flattened while its calls are large. Sequences are passed to the
//! sequential form as starts and lengths of parts of a pool, so separating small calls from large ones moves
//! no elements.

use super::value::{Context, Form, Part, Val};
use super::{Compiler, Key, Lowering, Origin, internal};
use crate::eval::Run;
use crate::flat::{self, FuncId, VarId};
use crate::types::TypeId;
use crate::vcode::{Op, Sequential, Type};
use smallvec::smallvec;
use std::rc::Rc;
use std::sync::Arc;

/// Functions of a call.
struct Ways {
    form: Arc<Sequential>,
    /// The flattened function for the original forms of the sequences.
    direct: FuncId,
    /// The flattened function for virtual sequences.
    flattened: FuncId,
    result: TypeId,
}

impl Compiler<'_> {
    /// Compiles a function that separates small calls from large ones.
    pub(super) fn lower_small(&mut self, id: FuncId, key: &Key, form: Arc<Sequential>) -> Run<()> {
        let body = self.body(&key.callee)?;
        let (name, source) = (self.program.functions[id].name.clone(), self.program.functions[id].source.clone());
        let Some(result) = body.result.map(|result| body.types[result]) else { return internal("a function has no result") };
        let argument = self.argument_type(&key.callee, &body)?;
        let mut types: Vec<TypeId> = vec![];
        if let super::Callee::Lambda(lambda, _) = &key.callee {
            types.extend(self.env.lambdas[*lambda].captures.iter().map(|(_, inner)| body.locals[*inner].ty));
        }
        types.push(argument);
        let plain = self.name(&key.callee).0;
        let direct = self.function(Key { plain: true, ..key.clone() }, &plain, source.clone())?;
        let forms = vec![true; key.forms.len()];
        let flattened = self.function(Key { plain: true, forms, ..key.clone() }, &plain, source.clone())?;
        let mut lowering = Lowering::new(self, body.clone(), name, source);
        lowering.b.span = body.result.map(|result| body.spans[result]).unwrap_or_default();
        lowering.push_root();
        let root = lowering.root();
        let segment = lowering.b.param(Type::Segdes, root.space);
        let context = Context { segment, space: lowering.pool_space(segment), single: false };
        lowering.push_level(context, Origin::Distribute(segment));
        let mut forms = key.forms.iter().copied();
        let values: Vec<Val> = types.into_iter().map(|ty| lowering.parameter(ty, context, &mut forms)).collect();
        let ways = Ways { form, direct, flattened, result };
        self.program.functions[id] = lowering.ways(&Val::Function(Rc::new(values)), &ways);
        Ok(())
    }
}

impl Lowering<'_, '_> {
    /// Compiles the three execution modes of calls.
    fn ways(mut self, values: &Val, ways: &Ways) -> flat::Function {
        let (context, root) = (self.context(), self.root());
        let sizes = match self.sizes(values, context) {
            Some(sizes) => sizes,
            None => self.int(0, context),
        };
        let chosen = self.b.push(flat::Op::Small, smallvec![sizes], &[(Type::Int, root.space), (Type::Int, root.space)]);
        let [way, limit] = chosen[..] else { return self.b.finish(vec![]) };
        let (some, all) = (self.int(1, root), self.int(2, root));
        let is_all = self.b.element(Op::Equal, Type::Int, &[way, all]);
        let is_some = self.b.element(Op::Equal, Type::Int, &[way, some]);

        self.begin_way(context, Origin::Scope);
        let parts = self.as_parts(values, context);
        let value = self.call_way(&parts, flat::Op::Sequential(ways.form.clone(), ways.flattened), ways.result);
        let sequentially = self.end_way(&value, context);

        self.begin_way(context, Origin::Scope);
        let value = self.both_ways(values, sizes, limit, ways);
        let both = self.end_way(&value, context);

        self.begin_way(context, Origin::Scope);
        let value = self.call_way(values, flat::Op::Call(ways.direct), ways.result);
        let flattened = self.end_way(&value, context);

        self.begin_way(context, Origin::Scope);
        let value = self.results(ways.result, flat::Op::If(Box::new((both, flattened))), vec![is_some]);
        let otherwise = self.end_way(&value, context);
        let value = self.results(ways.result, flat::Op::If(Box::new((sequentially, otherwise))), vec![is_all]);
        let mut results = vec![];
        value.vectors(&mut results);
        self.b.finish(results)
    }

    fn begin_way(&mut self, context: Context, origin: Origin) {
        self.b.open();
        self.push_level(context, origin);
    }

    fn end_way(&mut self, value: &Val, context: Context) -> flat::Block {
        let value = self.materialise(value, context);
        self.levels.pop();
        let mut results = vec![];
        value.vectors(&mut results);
        self.b.close(results)
    }

    /// Calls a function for the current context.
    fn call_way(&mut self, values: &Val, op: flat::Op, result: TypeId) -> Val {
        let mut args = vec![self.context().segment];
        values.vectors(&mut args);
        self.results(result, op, args)
    }

    /// Runs small calls sequentially and large ones flattened.
    fn both_ways(&mut self, values: &Val, sizes: VarId, limit: VarId, ways: &Ways) -> Val {
        let context = self.context();
        let parts = self.as_parts(values, context);
        let limit = self.b.dist(limit, context.segment, context.space);
        let small = self.b.element(Op::LessEqual, Type::Int, &[sizes, limit]);
        let large = self.b.element(Op::Not, Type::Bool, &[small]);
        let mut results: Vec<Part> = vec![];
        for (flags, op) in
            [(small, flat::Op::Sequential(ways.form.clone(), ways.flattened)), (large, flat::Op::Call(ways.flattened))]
        {
            let (indices, part) = self.restricted(flags, context);
            let values = self.restrict(&parts, context, flags, part);
            self.push_level(part, Origin::Restrict(flags));
            let value = self.call_way(&values, op, ways.result);
            self.levels.pop();
            results.push((value, part, indices));
        }
        self.place(None, &results, context)
    }

    /// Converts sequences to parts of their pools.
    pub(super) fn as_parts(&mut self, value: &Val, context: Context) -> Val {
        match value {
            Val::Base(_) => value.clone(),
            Val::Pair(parts) => {
                let first = self.as_parts(&parts.0, context);
                let rest = self.as_parts(&parts.1, context);
                Val::pair(first, rest)
            }
            Val::Seq(seq) => {
                let (starts, lengths) = self.starts_and_lengths(seq, context);
                Val::seq(Form::Virtual(starts, lengths), seq.elements.clone(), seq.pool)
            }
            Val::Function(captured) => {
                Val::Function(Rc::new(captured.iter().map(|value| self.as_parts(value, context)).collect()))
            }
        }
    }

    /// Returns the number of elements of all sequences of each value of a context; `None` if there are no
    /// sequences.
    fn sizes(&mut self, value: &Val, context: Context) -> Option<VarId> {
        match value {
            Val::Base(_) => None,
            Val::Pair(parts) => {
                let (first, rest) = (self.sizes(&parts.0, context), self.sizes(&parts.1, context));
                self.added(first, rest)
            }
            Val::Seq(seq) => {
                let own = self.lengths(seq);
                if seq.elements.is_scalar() {
                    return Some(own);
                }
                let (segments, elements, pool) = self.dense(seq, context);
                let inner = self.sizes(&elements, pool).map(|inner| self.b.reduce(Op::AddReduce, inner, segments));
                self.added(Some(own), inner)
            }
            Val::Function(captured) => captured.iter().fold(None, |sum, value| {
                let own = self.sizes(value, context);
                self.added(sum, own)
            }),
        }
    }

    fn added(&mut self, a: Option<VarId>, b: Option<VarId>) -> Option<VarId> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.b.element(Op::Add, Type::Int, &[a, b])),
            (a, b) => a.or(b),
        }
    }
}
