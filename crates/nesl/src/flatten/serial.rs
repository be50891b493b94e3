//! Apply-to-eachs whose elements are computed one after the other, `{* …}`.
//!
//! Without effects the order is not visible, and the elements are computed at once. Otherwise a function
//! computes the elements of a range: one index directly, a longer range by its halves in order. The depth of
//! calls is therefore the logarithm of the length. The function takes the sequences and the variables that
//! the body uses.

use super::callee::Steps;
use super::primitive::sequence;
use super::value::{Context, Form, Val};
use super::{Callee, Compiler, Key, Lowering, internal};
use crate::core::{Body, Each, Environment, Expr, ExprId, LocalId, Pattern, PatternId};
use crate::eval::Run;
use crate::flat::{self, FuncId, VarId};
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Check, Constant, Op, Type};
use std::collections::HashSet;

impl Lowering<'_, '_> {
    pub(super) fn serial(&mut self, id: ExprId, each: &Each) -> Run<Val> {
        let context = self.context();
        let mut sources = vec![];
        for (_, source) in &each.generators {
            sources.push(sequence(&self.expr(*source)?)?);
        }
        let Some(first) = sources.first().cloned() else { return internal("an apply-to-each has no generator") };
        let length = self.lengths(&first);
        for seq in &sources[1..] {
            let other = self.lengths(seq);
            if other != length {
                self.b.check(Check::Each, &[length, other]);
            }
        }
        let roots: Vec<ExprId> = [Some(each.body), each.filter].into_iter().flatten().collect();
        let mut free = free_locals(self.c.env, &self.body, &roots);
        let mut bound = HashSet::new();
        each.generators.iter().for_each(|(pattern, _)| bind(&self.body, *pattern, &mut bound));
        free.retain(|local| !bound.contains(local));
        let mut values = vec![];
        for source in sources {
            values.push(Val::Seq(source));
        }
        for &local in &free {
            values.push(self.local(local)?);
        }
        let steps = Steps { body: self.body.clone(), instance: self.instance.clone(), each: id, free };
        let index = self.c.serial.len();
        self.c.serial.push(steps);
        let zero = self.int(0, context);
        let values: Vec<Val> = values.iter().map(|value| self.argument(value)).collect();
        let ty = self.body.types[id];
        self.steps(index, zero, length, &values, ty)
    }

    /// Calls the function for a range.
    fn steps(&mut self, index: usize, start: VarId, end: VarId, values: &[Val], ty: TypeId) -> Run<Val> {
        let (mut forms, mut args) = (vec![], vec![start, end]);
        for value in values {
            value.forms(&mut forms);
            value.vectors(&mut args);
        }
        let key = Key { callee: Callee::Serial(index), single: true, forms, plain: false };
        let id = self.c.function(key, "serial", None)?;
        Ok(self.results(ty, flat::Op::Call(id), args))
    }

    fn range(&mut self, index: usize, each: &Each, (start, end): (VarId, VarId), values: &[Val], ty: TypeId) -> Run<Val> {
        let context = self.context();
        let count = self.b.element(Op::Subtract, Type::Int, &[end, start]);
        let one = self.int(1, context);
        let none = self.b.element(Op::Less, Type::Int, &[count, one]);
        let Nesl::Seq(element) = self.c.env.types[ty] else { return internal("an apply-to-each has no sequence") };
        self.branch(none, ty, &mut |this| Ok(this.empty_sequence(element, context)), &mut |this| {
            let single = this.b.element(Op::Equal, Type::Int, &[count, one]);
            this.branch(single, ty, &mut |this| this.step(each, start, values, context), &mut |this| {
                // The middle is computed without the sum, which may overflow.
                let half = this.b.element(Op::RightShift, Type::Int, &[count, one]);
                let middle = this.b.element(Op::Add, Type::Int, &[start, half]);
                let first = this.steps(index, start, middle, values, ty)?;
                let second = this.steps(index, middle, end, values, ty)?;
                this.append(&Val::pair(first, second))
            })
        })
    }

    /// Makes a real branch.
    fn branch<'f>(
        &mut self,
        condition: VarId,
        ty: TypeId,
        then: &'f mut dyn FnMut(&mut Self) -> Run<Val>,
        otherwise: &'f mut dyn FnMut(&mut Self) -> Run<Val>,
    ) -> Run<Val> {
        let context = self.context();
        let mut blocks = vec![];
        for make in [then, otherwise] {
            self.b.open();
            self.push_level(context, super::Origin::Scope);
            let value = make(self);
            self.levels.pop();
            let value = self.materialise(&value?, context);
            let mut results = vec![];
            value.vectors(&mut results);
            blocks.push(self.b.close(results));
        }
        let (Some(otherwise), Some(then)) = (blocks.pop(), blocks.pop()) else { return internal("a branch is missing") };
        Ok(self.results(ty, flat::Op::If(Box::new((then, otherwise))), vec![condition]))
    }

    /// Computes one element, as a sequence of one or none.
    fn step(&mut self, each: &Each, index: VarId, values: &[Val], context: Context) -> Run<Val> {
        for ((pattern, _), source) in each.generators.iter().zip(values) {
            let element = self.elt(&Val::pair(source.clone(), Val::Base(index)))?;
            self.bind(*pattern, element)?;
        }
        let value = self.expr(each.body)?;
        let one = self.constant(Constant::Segdes([1].into()), context);
        let pool = self.pool(one, context);
        let value = self.distribute(&value, context, one, pool);
        let Some(filter) = each.filter else { return Ok(Val::seq(Form::Dense(one), value, pool)) };
        let flag = self.expr(filter)?;
        let Val::Base(flags) = self.distribute(&flag, context, one, pool) else { return internal("a filter is no bool") };
        Ok(self.filter(&value, flags, one, pool))
    }
}

impl Compiler<'_> {
    pub(super) fn lower_serial(&mut self, id: FuncId, key: &Key, index: usize) -> Run<()> {
        let steps = self.serial[index].clone();
        let body = steps.body.clone();
        let Expr::Each(each) = &body.exprs[steps.each] else { return internal("steps are no apply-to-each") };
        let name = self.program.functions[id].name.clone();
        let int = self.env.types.base(Base::Int);
        let mut lowering = Lowering::new(self, body.clone(), name, None);
        lowering.instance = steps.instance.clone();
        lowering.b.span = body.spans[steps.each];
        lowering.push_root();
        let context = lowering.context();
        let mut none = std::iter::empty();
        let (Val::Base(start), Val::Base(end)) =
            (lowering.parameter(int, context, &mut none), lowering.parameter(int, context, &mut none))
        else {
            return internal("an index is no int");
        };
        let mut forms = key.forms.iter().copied();
        let mut values = vec![];
        for (_, source) in &each.generators {
            values.push(lowering.parameter(body.types[*source], context, &mut forms));
        }
        for &local in &steps.free {
            let value = lowering.parameter(body.locals[local].ty, context, &mut forms);
            lowering.bind_local(local, value.clone());
            values.push(value);
        }
        let value = lowering.range(index, each, (start, end), &values, body.types[steps.each])?;
        let mut results = vec![];
        value.vectors(&mut results);
        self.program.functions[id] = lowering.b.finish(results);
        Ok(())
    }
}

/// Lists the variables of a body that expressions use but do not bind.
pub(super) fn free_locals(env: &Environment, body: &Body, roots: &[ExprId]) -> Vec<LocalId> {
    let (mut used, mut bound) = (vec![], HashSet::new());
    // Variables have unique names, so those bound inside are bound nowhere else.
    for &root in roots {
        super::instance::visit(body, root, &mut |_, expr| match expr {
            Expr::Local(local) => used.push(*local),
            Expr::Lambda(lambda) => used.extend(env.lambdas[*lambda].captures.iter().map(|&(outer, _)| outer)),
            Expr::Let(pattern, _, _) => bind(body, *pattern, &mut bound),
            Expr::Each(inner) => inner.generators.iter().for_each(|(pattern, _)| bind(body, *pattern, &mut bound)),
            _ => {}
        });
    }
    let mut seen = HashSet::new();
    used.retain(|local| !bound.contains(local) && seen.insert(*local));
    used
}

fn bind(body: &Body, pattern: PatternId, bound: &mut HashSet<LocalId>) {
    match body.patterns[pattern] {
        Pattern::Local(local) => {
            bound.insert(local);
        }
        Pattern::Pair(first, rest) => {
            bind(body, first, bound);
            bind(body, rest, bound);
        }
    }
}
