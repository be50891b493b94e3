//! Primitives on values of any type: equality, hashes, neutral values.

use super::value::{Context, Val};
use super::{Lowering, internal};
use crate::eval::Run;
use crate::flat::{self, VarId};
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Check, Constant, Foreign, Layout, Op, Type};
use smallvec::smallvec;
use std::rc::Rc;

/// Factor of hashes, the same as in the evaluator.
const ODD: i64 = 0x2545_F491;

impl Lowering<'_, '_> {
    /// Compares values of one type part by part.
    pub(super) fn equal(&mut self, a: &Val, b: &Val, context: Context) -> Run<VarId> {
        match (a, b) {
            (Val::Base(a), Val::Base(b)) => {
                let ty = self.b.ty_of(*a);
                if ty != Type::Bool {
                    return Ok(self.b.element(Op::Equal, ty, &[*a, *b]));
                }
                let different = self.b.element(Op::Xor, ty, &[*a, *b]);
                Ok(self.b.element(Op::Not, ty, &[different]))
            }
            (Val::Pair(a), Val::Pair(b)) => {
                let first = self.equal(&a.0, &b.0, context)?;
                let rest = self.equal(&a.1, &b.1, context)?;
                Ok(self.b.element(Op::And, Type::Bool, &[first, rest]))
            }
            (Val::Function(_), Val::Function(_)) => Ok(self.constant(Constant::Bool([true].into()), context)),
            (Val::Seq(x), Val::Seq(y)) => {
                let (p, q) = (self.lengths(x), self.lengths(y));
                let same = self.b.element(Op::Equal, Type::Int, &[p, q]);
                // Elements are compared for the pairs of sequences with equal lengths.
                let (indices, part) = self.restricted(same, context);
                let (a, b) = (self.restrict(a, context, same, part), self.restrict(b, context, same, part));
                let (Val::Seq(x), Val::Seq(y)) = (a, b) else { return internal("a sequence was expected") };
                let (segments, x, pool) = self.dense(&x, part);
                let (_, y, other) = self.dense(&y, part);
                self.b.join_spaces(pool.space, other.space);
                let equal = self.equal(&x, &y, pool)?;
                let equal = self.b.reduce(Op::AndReduce, equal, segments);
                let all = self.constant(Constant::Bool([false].into()), context);
                let args = [equal, indices, all, part.segment, context.segment];
                Ok(self.b.vector(Op::DefaultPermute, Type::Bool, &args, context.space))
            }
            _ => internal("values of two types are compared"),
        }
    }

    /// Computes the hash of a value as in the evaluator.
    pub(super) fn hash(&mut self, value: &Val, context: Context) -> Run<VarId> {
        match value {
            Val::Base(var) => Ok(match self.b.ty_of(*var) {
                Type::Bool => self.b.element(Op::BoolToInt, Type::Bool, &[*var]),
                Type::Float => {
                    let call = Foreign { name: "prim_hash".to_owned(), argument: Layout::Float, result: Layout::Int };
                    self.b.push(flat::Op::Foreign(Box::new(call)), smallvec![*var], &[(Type::Int, context.space)])[0]
                }
                _ => *var,
            }),
            Val::Pair(parts) => {
                let first = self.hash(&parts.0, context)?;
                let rest = self.hash(&parts.1, context)?;
                let (one, odd) = (self.int(1, context), self.int(ODD, context));
                let rest = self.b.element(Op::Add, Type::Int, &[rest, one]);
                let rest = self.b.element(Op::Multiply, Type::Int, &[rest, odd]);
                Ok(self.b.element(Op::Add, Type::Int, &[first, rest]))
            }
            Val::Function(_) => Ok(self.int(0, context)),
            Val::Seq(seq) => {
                let lengths = self.lengths(seq);
                let (segments, elements, pool) = self.dense(seq, context);
                let hashes = self.hash(&elements, pool)?;
                let (zero, step) = (self.int(0, context), self.int(1, context));
                let index = self.b.index(zero, step, segments, pool.space);
                let (one, odd, factor) = (self.int(1, pool), self.int(ODD, pool), self.int(0x5851_F42D, pool));
                let weight = self.b.element(Op::Multiply, Type::Int, &[index, factor]);
                let weight = self.b.element(Op::Add, Type::Int, &[weight, odd]);
                let weight = self.b.element(Op::Multiply, Type::Int, &[weight, weight]);
                let hashes = self.b.element(Op::Add, Type::Int, &[hashes, one]);
                let terms = self.b.element(Op::Multiply, Type::Int, &[hashes, weight]);
                let sum = self.b.reduce(Op::AddReduce, terms, segments);
                Ok(self.b.element(Op::Add, Type::Int, &[lengths, sum]))
            }
        }
    }

    /// Returns the neutral value of a type for every element of a context.
    pub(super) fn neutral(&mut self, ty: TypeId, context: Context) -> Run<Val> {
        let ty = self.c.resolve(ty);
        Ok(match self.c.env.types[ty].clone() {
            Nesl::Base(base) => Val::Base(self.constant(
                match base {
                    Base::Int => Constant::Int([0].into()),
                    Base::Float => Constant::Float([0.0].into()),
                    Base::Bool => Constant::Bool([false].into()),
                    Base::Char => Constant::Int([i64::from(b' ')].into()),
                },
                context,
            )),
            Nesl::Pair(first, rest) => {
                let first = self.neutral(first, context)?;
                Val::pair(first, self.neutral(rest, context)?)
            }
            Nesl::Seq(element) => self.empty_sequence(element, context),
            Nesl::Function { identity, .. } => {
                let parts = match &self.c.env.types[identity] {
                    Nesl::Closure(_, parts) => parts.clone(),
                    _ => vec![],
                };
                let captured = parts.into_iter().map(|part| self.neutral(part, context)).collect::<Run<Vec<Val>>>()?;
                Val::Function(Rc::new(captured))
            }
            Nesl::Data(..) | Nesl::Variable(_) | Nesl::Definition(_) | Nesl::Closure(..) => Val::Function(Rc::default()),
        })
    }

    /// Ends the run with a text, if the context has an element.
    pub(super) fn fail(&mut self, check: Check, text: &Val) -> Run<()> {
        let (starts, lengths, pool) = self.text(text)?;
        self.b.check(check, &[starts, lengths, pool]);
        Ok(())
    }

    /// Returns starts and lengths of texts in a pool of characters.
    pub(super) fn text(&mut self, text: &Val) -> Run<(VarId, VarId, VarId)> {
        let context = self.context();
        let Val::Seq(seq) = text else { return internal("a text is no sequence") };
        let (starts, lengths) = self.starts_and_lengths(seq, context);
        let Val::Base(pool) = seq.elements else { return internal("a text has no characters") };
        Ok((starts, lengths, pool))
    }

    /// Calls a function of the implementation for every element of the context.
    pub(super) fn foreign(&mut self, name: &str, argument: &Val, argument_type: TypeId, result: TypeId) -> Val {
        let context = self.context();
        let argument = self.materialise(argument, context);
        let mut args = vec![];
        self.without_functions(&argument).vectors(&mut args);
        let layouts = (self.c.layout(argument_type), self.c.layout(result));
        let call = Foreign { name: name.to_owned(), argument: layouts.0, result: layouts.1 };
        self.results(result, flat::Op::Foreign(Box::new(call)), args)
    }

    /// Drops the captured variables of functions in a value.
    fn without_functions(&self, value: &Val) -> Val {
        match value {
            Val::Base(_) => value.clone(),
            Val::Pair(parts) => Val::pair(self.without_functions(&parts.0), self.without_functions(&parts.1)),
            Val::Seq(seq) => Val::seq(seq.form, self.without_functions(&seq.elements), seq.pool),
            Val::Function(_) => Val::Function(Rc::default()),
        }
    }
}
