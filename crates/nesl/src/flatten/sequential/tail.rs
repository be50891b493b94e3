//! Tails of functions that threads run: results of `++` that are made in the memory of the function's result,
//! and calls whose result is that of a short branch.

use super::CodeResult;
use super::code::{Class, Kind, Reg, slots};
use super::expr::{Items, Seq, Val, Writer};
use crate::core::{Body, DefinitionKind, Expr, ExprId, Primitive};
use crate::flatten::Callee;
use crate::flatten::expr::is_simple;
use crate::flatten::instance::visit;
use crate::primitives::Elementwise;
use broadloom_ptx::Modifier as M;
use broadloom_ptx::builder::Instructions;
use std::rc::Rc;

/// Maximum number of expressions of a branch that is executed at the call, including its condition.
const MAX_BRANCH: usize = 24;

impl Writer<'_, '_, '_> {
    /// Appends sequences. The result is that of the function: its memory begins at the mark, and nothing else
    /// above the mark is used again. Parts are moved there one by one if that overwrites none of the others.
    pub(super) fn append_at_end(&mut self, parts: &[Val]) -> CodeResult<Val> {
        let Some((kind, stored)) = self.one_column(parts) else { return self.append(parts) };
        let length = self.appended_length(&stored)?;
        let (apart, end) = (self.code.label(), self.code.label());
        let (mark, limit, bytes) = (self.mark, self.limit, self.code.bytes(kind));
        let to = self.code.copy(Kind::Pointer, mark);
        for part in &stored {
            let Items::Stored(arrays) = &part.items else { return Err("a part is not stored".to_owned()) };
            let [low, high, any, before] = [(); 4].map(|()| self.code.reg(Class::Pred));
            let fits = self.code.label();
            self.code.to(low).setp((M::Lt, M::U64), arrays[0], mark);
            self.code.to(high).setp((M::Ge, M::U64), arrays[0], limit);
            self.code.to(any).or(M::Pred, low, high);
            self.code.go_if(any, fits);
            self.code.to(before).setp((M::Lt, M::U64), arrays[0], to);
            self.code.go_if(before, apart);
            self.code.place(fits);
            self.code.to(to).mad((M::Wide, M::U32), part.length, bytes, to);
        }
        let (all, result, full) =
            (self.code.copy(Kind::Pointer, to), self.code.copy(Kind::Pointer, mark), self.code.reg(Class::Pred));
        self.code.to(full).setp((M::Gt, M::U64), all, limit);
        self.fail_if(full);
        self.burn(length);
        self.code.set(Kind::Pointer, to, mark);
        for part in &stored {
            let Items::Stored(arrays) = &part.items else { return Err("a part is not stored".to_owned()) };
            let (there, same) = (self.code.label(), self.code.reg(Class::Pred));
            self.code.to(same).setp((M::Eq, M::U64), arrays[0], to);
            self.code.go_if(same, there);
            self.move_down(kind, arrays[0], to, part.length);
            self.code.place(there);
            self.code.to(to).mad((M::Wide, M::U32), part.length, bytes, to);
        }
        self.code.to(all).add(M::U64, all, 7);
        self.code.to(self.top).and(M::B64, all, -8);
        self.code.go(end);
        self.code.place(apart);
        let Val::Seq(made) = self.append(parts)? else { return Err("no sequence".to_owned()) };
        let arrays = self.arrays(&made)?;
        self.code.set(Kind::Pointer, result, arrays[0]);
        self.code.place(end);
        Ok(Val::seq(length, made.shape.clone(), Items::Stored(vec![result])))
    }

    /// Returns the parts of a `++` in a thread, if they are stored and have one column of scalars.
    fn one_column(&self, parts: &[Val]) -> Option<(Kind, Vec<Rc<Seq>>)> {
        let (mut kinds, mut stored) = (vec![], vec![]);
        for part in parts {
            let Val::Seq(seq) = part else { return None };
            if !matches!(seq.items, Items::Stored(_)) || !seq.shape.is_scalar() {
                return None;
            }
            kinds.clear();
            slots(&seq.shape, &mut kinds);
            stored.push(seq.clone());
        }
        match &kinds[..] {
            [kind] if self.code.lane.is_none() => Some((*kind, stored)),
            _ => None,
        }
    }

    /// Calls a PTX function, unless the function is an `if` with a short first branch that is taken here.
    pub(super) fn call_or_branch(&mut self, callee: &Callee, taken: &[Val], body: &Rc<Body>) -> CodeResult<Option<Val>> {
        let Some((condition, then)) = self.short_branch(body) else { return Ok(None) };
        let signature = self.m.function(callee, false)?;
        let (_, result) = self.m.c.shapes(callee)?;
        let mut kinds = vec![];
        slots(&result, &mut kinds);
        let (other, end) = (self.code.label(), self.code.label());
        let results: Vec<Reg> = kinds.iter().map(|kind| self.code.of(*kind)).collect();
        self.within(callee, taken, body.clone(), |w| {
            w.bind_argument(taken)?;
            let holds = w.scalar(condition)?;
            w.code.go_unless(holds, other);
            let value = w.expr(then)?;
            w.keep(&kinds, &results, &value)
        })?;
        self.code.go(end);
        self.code.place(other);
        let mut regs = vec![];
        for value in taken {
            regs.extend(self.stored(value)?);
        }
        let value = self.called(&signature, &result, &regs)?;
        self.keep(&kinds, &results, &value)?;
        self.code.place(end);
        self.unslot(&result, &mut results.into_iter()).map(Some)
    }

    /// Copies a value to registers.
    fn keep(&mut self, kinds: &[Kind], results: &[Reg], value: &Val) -> CodeResult<()> {
        let regs = self.stored(value)?;
        for ((kind, to), from) in kinds.iter().zip(results).zip(regs) {
            self.code.set(*kind, *to, from);
        }
        Ok(())
    }

    /// Returns the condition and the first branch of an `if`, if both consist of few primitives without
    /// loops.
    fn short_branch(&self, body: &Body) -> Option<(ExprId, ExprId)> {
        if self.code.lane.is_some() {
            return None;
        }
        let Expr::If(condition, then, _) = body.exprs[body.result?] else { return None };
        let (mut count, mut is_short) = (0, true);
        for root in [condition, then] {
            visit(body, root, &mut |_, expr| {
                count += 1;
                is_short &= match expr {
                    Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) | Expr::Char(_) | Expr::Local(_) | Expr::Pair(..) => true,
                    Expr::Call(function, _) => matches!(body.exprs[*function], Expr::Definition(..)),
                    Expr::Definition(definition, _) => match self.m.c.env.definitions[*definition].kind {
                        DefinitionKind::Primitive(primitive) => is_plain(primitive),
                        _ => false,
                    },
                    _ => false,
                }
            });
        }
        (is_short && count <= MAX_BRANCH).then_some((condition, then))
    }
}

/// Tells whether a primitive takes few instructions.
fn is_plain(primitive: Primitive) -> bool {
    match primitive {
        Primitive::Elementwise(operation) => {
            operation.is_simple() || matches!(operation, Elementwise::Divide | Elementwise::Modulo)
        }
        Primitive::CodeChar | Primitive::Identity | Primitive::Length | Primitive::Elt => true,
        _ => is_simple(primitive),
    }
}
