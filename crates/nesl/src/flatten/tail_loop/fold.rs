//! Reductions in loop forms.

use super::operands::{Sequence, Val};
use super::sequence::Item;
use super::{LoopResult, LoopWriter};
use crate::core::ExprId;
use crate::primitives::Fold;
use crate::types::{Base, Type as Nesl};
use crate::vcode::{Carried, Combination, LoopFold, Op, Reg, Step, Type};
use std::rc::Rc;

impl LoopWriter<'_, '_> {
    /// Writes a loop over the elements of a sequence. `next` returns the values of the carried registers for
    /// the next element; the results are those behind the last one.
    pub(super) fn fold(
        &mut self,
        seq: &Rc<Sequence>,
        start: &[(Type, Reg)],
        next: impl FnOnce(&mut Self, Item, &[Reg]) -> LoopResult<Vec<Reg>>,
    ) -> LoopResult<Vec<Reg>> {
        self.gains |= !self.is_own(seq);
        self.folds += 1;
        let (length, index) = (self.length(seq), self.reg(Type::Int));
        let regs: Vec<Reg> = start.iter().map(|(ty, _)| self.reg(*ty)).collect();
        let before = std::mem::take(&mut self.steps);
        let constants = self.constants.clone();
        self.depth += 1;
        let written = self.item(seq, index).and_then(|item| next(self, item, &regs));
        self.depth -= 1;
        self.constants = constants;
        let steps = std::mem::replace(&mut self.steps, before);
        let carried = regs.iter().zip(start).zip(written?);
        let carried = carried.map(|((reg, (_, start)), next)| Carried { reg: *reg, start: *start, next }).collect();
        self.push(Step::Fold(Box::new(LoopFold { length, index, carried, steps })))?;
        Ok(regs)
    }

    /// Tells whether elements of a sequence belong to one element of the context.
    fn is_own(&self, seq: &Sequence) -> bool {
        match seq {
            Sequence::Part(part) => self.own.contains(&part.table),
            Sequence::Range { .. } | Sequence::Equal { .. } | Sequence::List { .. } => false,
            Sequence::Gather { indices, .. } => self.is_own(indices),
            Sequence::Cut { values, .. } => self.is_own(values),
            Sequence::Each(each) => each.generators.iter().any(|(_, seq)| self.is_own(seq)),
        }
    }

    /// Writes a reduction.
    pub(super) fn reduce(&mut self, id: ExprId, fold: Fold, seq: &Rc<Sequence>) -> LoopResult<Val> {
        let Some(widths) = self.c.widths else { return Err("the widths of numbers are not known".to_owned()) };
        let result = self.c.resolve(self.body.types[id]);
        let neutral = fold.neutral(widths);
        let (ty, bits) = match self.c.env.types[result] {
            Nesl::Base(Base::Int) => (Type::Int, neutral.int),
            Nesl::Base(Base::Char) => (Type::Int, i64::from(fold.char())),
            Nesl::Base(Base::Float) => (Type::Float, neutral.float.to_bits() as i64),
            Nesl::Base(Base::Bool) => (Type::Bool, i64::from(neutral.bool)),
            _ => return Err("a reduction has no scalar".to_owned()),
        };
        let start = self.constant(ty, bits)?;
        let item = |item: &Val| match item {
            Val::Scalar(reg) => Ok(*reg),
            Val::Tuple(_) | Val::Seq(_) => Err("a reduction is not over scalars".to_owned()),
        };
        let results = match fold.combination() {
            Combination::Operation(operation) => self.fold(seq, &[(ty, start)], |w, (value, kept), carried| {
                let sum = w.op(id, Op::from(operation), ty, &[carried[0], item(&value)?])?;
                Ok(vec![w.kept(id, kept, ty, sum, carried[0])?])
            })?,
            Combination::Extremum(comparison) if ty == Type::Float => {
                // The neutral value of floats is finite, and an element may be beyond it.
                let none = self.constant(Type::Bool, 1)?;
                self.fold(seq, &[(ty, start), (Type::Bool, none)], |w, (value, kept), carried| {
                    let value = item(&value)?;
                    let is_next = w.op(id, Op::from(comparison), ty, &[value, carried[0]])?;
                    let is_next = w.op(id, Op::Or, Type::Bool, &[is_next, carried[1]])?;
                    let is_next = match kept {
                        Some(kept) => w.op(id, Op::And, Type::Bool, &[is_next, kept])?,
                        None => is_next,
                    };
                    let first = w.constant(Type::Bool, 0)?;
                    let first = w.kept(id, kept, Type::Bool, first, carried[1])?;
                    Ok(vec![w.op(id, Op::Select, ty, &[is_next, value, carried[0]])?, first])
                })?
            }
            Combination::Extremum(comparison) => self.fold(seq, &[(ty, start)], |w, (value, kept), carried| {
                let value = item(&value)?;
                let is_next = w.op(id, Op::from(comparison), ty, &[value, carried[0]])?;
                let is_next = match kept {
                    Some(kept) => w.op(id, Op::And, Type::Bool, &[is_next, kept])?,
                    None => is_next,
                };
                Ok(vec![w.op(id, Op::Select, ty, &[is_next, value, carried[0]])?])
            })?,
        };
        Ok(Val::Scalar(results[0]))
    }
}
