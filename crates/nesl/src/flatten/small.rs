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

/// Functions that calls may be executed by.
struct ExecutionModes {
    form: Arc<Sequential>,
    /// The flattened function for the original forms of the sequences.
    direct: FuncId,
    /// The flattened function for virtual sequences.
    flattened: FuncId,
    result: TypeId,
}

/// Function under construction that executes the calls of another one.
pub(super) struct CallLowering<'c, 'e> {
    pub(super) lowering: Lowering<'c, 'e>,
    /// The types of the captured variables and of the argument.
    pub(super) types: Vec<TypeId>,
    /// The flattened function for virtual sequences.
    pub(super) flattened: FuncId,
    pub(super) result: TypeId,
}

impl<'e> Compiler<'e> {
    /// Compiles a function that separates small calls from large ones.
    pub(super) fn lower_small(&mut self, id: FuncId, key: &Key, form: Arc<Sequential>) -> Run<()> {
        let (plain, source) = (self.name(&key.callee).0, self.program.functions[id].source.clone());
        let direct = self.function(Key { plain: true, ..key.clone() }, &plain, source)?;
        let CallLowering { mut lowering, types, flattened, result } = self.call_lowering(id, key)?;
        let (context, mut forms) = (lowering.context(), key.forms.iter().copied());
        let values: Vec<Val> = types.into_iter().map(|ty| lowering.parameter(ty, context, &mut forms)).collect();
        let modes = ExecutionModes { form, direct, flattened, result };
        self.program.functions[id] = lowering.execution_modes(&Val::Function(Rc::new(values)), &modes);
        Ok(())
    }

    /// Starts a function that executes the calls of another one in a mode of its own.
    pub(super) fn call_lowering(&mut self, id: FuncId, key: &Key) -> Run<CallLowering<'_, 'e>> {
        let body = self.body(&key.callee)?;
        let (name, source) = (self.program.functions[id].name.clone(), self.program.functions[id].source.clone());
        let Some(result) = body.result else { return internal("a function has no result") };
        let mut types: Vec<TypeId> = vec![];
        if let super::Callee::Lambda(lambda, _) = &key.callee {
            types.extend(self.env.lambdas[*lambda].captures.iter().map(|(_, inner)| body.locals[*inner].ty));
        }
        types.push(self.argument_type(&key.callee, &body)?);
        let (plain, forms) = (self.name(&key.callee).0, vec![true; key.forms.len()]);
        let flattened = self.function(Key { plain: true, forms, ..key.clone() }, &plain, source.clone())?;
        let mut lowering = Lowering::new(self, body.clone(), name, source);
        lowering.b.span = body.spans[result];
        lowering.push_root();
        let root = lowering.root();
        let segment = lowering.b.param(Type::Segdes, root.space);
        let context = Context { segment, space: lowering.pool_space(segment), single: false };
        lowering.push_level(context, Origin::Distribute(segment));
        Ok(CallLowering { lowering, types, flattened, result: body.types[result] })
    }
}

impl Lowering<'_, '_> {
    /// Compiles the three execution modes of calls.
    fn execution_modes(mut self, values: &Val, modes: &ExecutionModes) -> flat::Function {
        let (context, root) = (self.context(), self.root());
        let sizes = match self.sizes(values, context) {
            Some(sizes) => sizes,
            None => self.int(0, context),
        };
        let chosen = self.b.push(flat::Op::Small, smallvec![sizes], &[(Type::Int, root.space), (Type::Int, root.space)]);
        let [mode, limit] = chosen[..] else { return self.b.finish(vec![]) };
        let (some, all) = (self.int(1, root), self.int(2, root));
        let is_all = self.b.element(Op::Equal, Type::Int, &[mode, all]);
        let is_some = self.b.element(Op::Equal, Type::Int, &[mode, some]);

        self.begin_mode(context, Origin::Scope);
        let parts = self.as_parts(values, context);
        let value = self.call_in_mode(&parts, flat::Op::Sequential(modes.form.clone(), modes.flattened), modes.result);
        let sequentially = self.end_mode(&value, context);

        self.begin_mode(context, Origin::Scope);
        let value = self.in_both_modes(values, sizes, limit, modes);
        let both = self.end_mode(&value, context);

        self.begin_mode(context, Origin::Scope);
        let value = self.call_in_mode(values, flat::Op::Call(modes.direct), modes.result);
        let flattened = self.end_mode(&value, context);

        self.begin_mode(context, Origin::Scope);
        let value = self.results(modes.result, flat::Op::If(Box::new((both, flattened))), vec![is_some]);
        let otherwise = self.end_mode(&value, context);
        let value = self.results(modes.result, flat::Op::If(Box::new((sequentially, otherwise))), vec![is_all]);
        let mut results = vec![];
        value.vectors(&mut results);
        self.b.finish(results)
    }

    pub(super) fn begin_mode(&mut self, context: Context, origin: Origin) {
        self.b.open();
        self.push_level(context, origin);
    }

    pub(super) fn end_mode(&mut self, value: &Val, context: Context) -> flat::Block {
        let value = self.materialise(value, context);
        self.levels.pop();
        let mut results = vec![];
        value.vectors(&mut results);
        self.b.close(results)
    }

    /// Calls a function for the current context.
    fn call_in_mode(&mut self, values: &Val, op: flat::Op, result: TypeId) -> Val {
        let mut args = vec![self.context().segment];
        values.vectors(&mut args);
        self.results(result, op, args)
    }

    /// Runs small calls sequentially and large ones flattened.
    fn in_both_modes(&mut self, values: &Val, sizes: VarId, limit: VarId, modes: &ExecutionModes) -> Val {
        let context = self.context();
        let parts = self.as_parts(values, context);
        let limit = self.b.dist(limit, context.segment, context.space);
        let small = self.b.element(Op::LessEqual, Type::Int, &[sizes, limit]);
        let large = self.b.element(Op::Not, Type::Bool, &[small]);
        let mut results: Vec<Part> = vec![];
        for (flags, op) in
            [(small, flat::Op::Sequential(modes.form.clone(), modes.flattened)), (large, flat::Op::Call(modes.flattened))]
        {
            let (indices, part) = self.restricted(flags, context);
            let values = self.restrict(&parts, context, flags, part);
            self.push_level(part, Origin::Restrict(flags));
            let value = self.call_in_mode(&values, op, modes.result);
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
    pub(super) fn sizes(&mut self, value: &Val, context: Context) -> Option<VarId> {
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
