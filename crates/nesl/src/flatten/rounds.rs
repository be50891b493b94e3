//! Functions whose recursion is a loop, called from code that runs once.
//!
//! ```text
//! f(x) = if SMALL(size of x) = all
//!        then let (is_done, result, next) = loop f (x) in if is_done then result else f(next)
//!        else f-flattened (x)
//! ```
//!
//! The calls of `f` in the flattened function come here again, so the host starts a loop and one thread of the
//! device takes over after some rounds. The loop pauses between two rounds when it has run for long.

use super::value::Val;
use super::{Compiler, Key, Lowering, Origin, internal};
use crate::eval::Run;
use crate::flat::{self, FuncId};
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Constant, Op, Sequential, Type};
use smallvec::smallvec;
use std::sync::Arc;

/// Functions that rounds may be executed by.
struct RoundFunctions {
    form: Arc<Sequential>,
    /// The flattened function for the original forms of the sequences.
    direct: FuncId,
    /// The function that continues with the arguments of the next round.
    next: FuncId,
    /// The function that replaces the loop if it fails.
    fallback: FuncId,
    result: TypeId,
    /// The type of what the loop returns.
    returned: TypeId,
}

impl Compiler<'_> {
    /// Compiles a function that runs rounds of a loop in one thread if they are small.
    pub(super) fn lower_rounds(&mut self, id: FuncId, key: &Key, form: Arc<Sequential>) -> Run<()> {
        let body = self.body(&key.callee)?;
        let (name, source) = (self.program.functions[id].name.clone(), self.program.functions[id].source.clone());
        let Some(end) = body.result else { return internal("a function has no result") };
        let (result, argument) = (body.types[end], self.argument_type(&key.callee, &body)?);
        let is_done = self.env.types.base(Base::Bool);
        let both = self.env.types.intern(Nesl::Pair(result, argument));
        let returned = self.env.types.intern(Nesl::Pair(is_done, both));
        let (plain, count) = (self.name(&key.callee).0, key.forms.len());
        let direct = self.function(Key { plain: true, ..key.clone() }, &plain, source.clone())?;
        let parts = self.function(Key { plain: true, forms: vec![true; count], ..key.clone() }, &plain, source.clone())?;
        let next = self.function(Key { forms: vec![false; count], ..key.clone() }, &plain, source.clone())?;
        let fallback = self.program.functions.push(flat::Function::default());
        let name_of_fallback = format!("{name}_FLATTENED_{}", fallback.as_u32());

        let mut lowering = Lowering::new(self, body.clone(), name_of_fallback, source.clone());
        lowering.b.span = body.spans[end];
        lowering.push_root();
        let root = lowering.root();
        lowering.b.param(Type::Segdes, root.space);
        let value = lowering.parameter(argument, root, &mut std::iter::repeat(true));
        let mut args = vec![];
        value.vectors(&mut args);
        let value = lowering.results(result, flat::Op::Call(parts), args);
        let is_done = Val::Base(lowering.constant(Constant::Bool([true].into()), root));
        let neutral = lowering.neutral(argument, root)?;
        let value = lowering.materialise(&Val::pair(is_done, Val::pair(value, neutral)), root);
        let mut results = vec![];
        value.vectors(&mut results);
        let function = lowering.b.finish(results);
        self.program.functions[fallback] = function;

        let mut lowering = Lowering::new(self, body.clone(), name, source);
        lowering.b.span = body.spans[end];
        lowering.push_root();
        let value = lowering.parameter(argument, lowering.root(), &mut key.forms.iter().copied());
        let functions = RoundFunctions { form, direct, next, fallback, result, returned };
        let function = lowering.rounds(&value, &functions)?;
        self.program.functions[id] = function;
        Ok(())
    }
}

impl Lowering<'_, '_> {
    fn rounds(mut self, value: &Val, functions: &RoundFunctions) -> Run<flat::Function> {
        let context = self.root();
        let size = match self.sizes(value, context) {
            Some(size) => size,
            None => self.int(0, context),
        };
        let chosen = self.b.push(flat::Op::Small, smallvec![size], &[(Type::Int, context.space), (Type::Int, context.space)]);
        let [mode, _] = chosen[..] else { return internal("no execution mode") };
        let all = self.int(2, context);
        let is_all = self.b.element(Op::Equal, Type::Int, &[mode, all]);

        self.begin_mode(context, Origin::Scope);
        let (parts, mut args) = (self.as_parts(value, context), vec![context.segment]);
        parts.vectors(&mut args);
        let op = flat::Op::Sequential(functions.form.clone(), functions.fallback);
        let returned = self.results(functions.returned, op, args);
        let Val::Pair(returned) = returned else { return internal("a loop returns no pair") };
        let (Val::Base(is_done), Val::Pair(values)) = &*returned else { return internal("a loop returns no value") };
        self.begin_mode(context, Origin::Scope);
        let finished = self.end_mode(&values.0, context);
        let next = self.called_in_mode(functions.next, &values.1, functions.result);
        let made = self.results(functions.result, flat::Op::If(Box::new((finished, next))), vec![*is_done]);
        let in_rounds = self.end_mode(&made, context);

        let flattened = self.called_in_mode(functions.direct, value, functions.result);
        let made = self.results(functions.result, flat::Op::If(Box::new((in_rounds, flattened))), vec![is_all]);
        let mut results = vec![];
        made.vectors(&mut results);
        Ok(self.b.finish(results))
    }

    /// Makes the block that calls a function.
    fn called_in_mode(&mut self, function: FuncId, value: &Val, result: TypeId) -> flat::Block {
        let context = self.root();
        self.begin_mode(context, Origin::Scope);
        let mut args = vec![];
        value.vectors(&mut args);
        let made = self.results(result, flat::Op::Call(function), args);
        self.end_mode(&made, context)
    }
}
