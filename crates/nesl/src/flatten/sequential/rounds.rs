//! Tail calls of a function to itself: rounds of a loop.
//!
//! A call that is the last thing a function does, and that calls the same function, sets the parameters and
//! jumps to the start. Depth and memory do not depend on the number of rounds: if much of the memory above the
//! mark is dead, the sequences of the parameters are moved down to the mark. They are first copied to free
//! memory, so their order in memory does not matter. Parameters with nested sequences are not moved; such a
//! loop ends when the arena is full.
//!
//! The loop form of a function is one module for one call at a time. Its kernel returns whether the function
//! has finished, its result, and the arguments of the next round. When much of its fuel is gone it returns
//! between two rounds, so that the host can look at the limits of the run and call it again.

use super::code::{Class, Code, Kind, Reg, slots};
use super::expr::{Rounds, Val, Writer, flat_columns};
use super::form::is_flat;
use super::{CodeResult, Module, Workers};
use crate::core::{Body, DefinitionKind, Expr, ExprId};
use crate::flatten::callee::Node;
use crate::flatten::instance::visit;
use crate::flatten::{Callee, Compiler};
use crate::vcode::{PAUSE_FUEL, Sequential, Shape};
use broadloom_ptx::Modifier as M;
use broadloom_ptx::builder::Instructions;
use std::sync::Arc;

/// Live sequences are moved down when the used memory is this many times theirs, and this many bytes more.
const USED_PER_LIVE: u32 = 8;
const USED_AT_LEAST: u32 = 4096;

/// Tells whether an expression calls a function.
fn calls(body: &Body, id: ExprId, callee: &Callee) -> bool {
    let (Expr::Call(function, _), Callee::Definition(own, types)) = (&body.exprs[id], callee) else { return false };
    matches!(&body.exprs[*function], Expr::Definition(definition, instance) if definition == own && instance == types)
}

/// Counts calls of a function that are the last thing the body does.
fn last_calls(body: &Body, id: ExprId, callee: &Callee) -> usize {
    match &body.exprs[id] {
        Expr::Let(_, _, next) => last_calls(body, *next, callee),
        Expr::If(_, then, otherwise) => last_calls(body, *then, callee) + last_calls(body, *otherwise, callee),
        _ => usize::from(calls(body, id, callee)),
    }
}

impl Compiler<'_> {
    /// Returns the loop form of a function: all recursion in it is that of calls of itself that are the last
    /// thing it does, and neither its parameters nor its result have nested sequences.
    pub(in crate::flatten) fn loop_module(&mut self, callee: &Callee) -> Option<Arc<Sequential>> {
        let Callee::Definition(own, _) = callee else { return None };
        let widths = self.widths?;
        if !self.recurs(Node::Definition(*own)) {
            return None;
        }
        if let Some(known) = self.loop_modules.get(callee) {
            return known.clone();
        }
        let form = self.has_only_rounds(callee).then(|| self.loop_text(callee)).and_then(Result::ok);
        let form = form.map(|(name, text, argument, result)| {
            Arc::new(Sequential {
                name,
                source: self.name(callee).0,
                text_for_warps: text.clone(),
                text,
                text_for_cores: None,
                text_for_teams: None,
                widths,
                argument,
                result,
                is_loop: true,
            })
        });
        self.loop_modules.insert(callee.clone(), form.clone());
        form
    }

    fn has_only_rounds(&mut self, callee: &Callee) -> bool {
        let Callee::Definition(own, _) = callee else { return false };
        let Ok(body) = self.body(callee) else { return false };
        let Some(result) = body.result else { return false };
        let rounds = last_calls(&body, result, callee);
        let (mut uses, mut others) = (0, vec![]);
        visit(&body, result, &mut |_, expr| match expr {
            Expr::Definition(definition, _) if definition == own => uses += 1,
            Expr::Definition(definition, _) => others.push(Node::Definition(*definition)),
            Expr::Lambda(lambda) => others.push(Node::Lambda(*lambda)),
            _ => {}
        });
        let is_function = |c: &Self, node: &Node| match node {
            Node::Definition(definition) => matches!(c.env.definitions[*definition].kind, DefinitionKind::Function(_)),
            Node::Lambda(_) => true,
        };
        rounds > 0 && uses == rounds && !others.into_iter().any(|node| is_function(self, &node) && self.recurs(node))
    }

    fn loop_text(&mut self, callee: &Callee) -> CodeResult<(String, String, Shape, Shape)> {
        let Some(widths) = self.widths else { return Err("no widths".to_owned()) };
        let (argument, result) = self.shapes(callee)?;
        if !is_flat(&argument) || !is_flat(&result) {
            return Err("it has nested sequences".to_owned());
        }
        let result = Shape::Tuple(vec![Shape::Bool, result, argument.clone()]);
        let (name, text, _) = self.sequential_text(callee, widths, (Workers::Threads, true), (&argument, &result))?;
        Ok((name, text, argument, result))
    }
}

impl Module<'_, '_> {
    /// Returns the shape of what a new function returns. Only the first function pauses: it is the only
    /// recursive one.
    pub(super) fn returned_shape(&self, argument: Shape, result: Shape) -> Shape {
        match self.pauses && self.functions.is_empty() {
            true => Shape::Tuple(vec![Shape::Bool, result, argument]),
            false => result,
        }
    }
}

impl Writer<'_, '_, '_> {
    /// Begins the loop of a function that calls itself last.
    pub(super) fn begin_rounds(&mut self, callee: &Callee, body: &Body, argument: &Shape, params: &[Reg]) {
        let rounds = body.result.map_or(0, |result| last_calls(body, result, callee));
        if rounds == 0 || self.code.team.is_some() {
            return;
        }
        let (mut kinds, head) = (vec![], self.code.label());
        slots(argument, &mut kinds);
        self.code.place(head);
        let (params, pauses) = (params.to_vec(), self.m.pauses);
        self.rounds = Some(Rounds { callee: callee.clone(), head, params, kinds, argument: argument.clone(), pauses }.into());
    }

    /// Writes the code of a round.
    pub(super) fn round(&mut self, taken: &[Val], rounds: &Rounds) -> CodeResult<()> {
        self.bind_argument(taken)?;
        let Some(result) = self.body.result else { return Err("it has no result".to_owned()) };
        self.tail(result, rounds)
    }

    /// Writes an expression whose value is that of the function.
    fn tail(&mut self, id: ExprId, rounds: &Rounds) -> CodeResult<()> {
        let body = self.body.clone();
        match &body.exprs[id] {
            Expr::Let(..) => {
                let rest = self.bindings(id)?;
                self.tail(rest, rounds)
            }
            Expr::If(condition, then, otherwise) => {
                let (condition, other) = (self.scalar(*condition)?, self.code.label());
                self.code.go_unless(condition, other);
                self.tail(*then, rounds)?;
                self.code.place(other);
                self.tail(*otherwise, rounds)
            }
            Expr::Call(_, argument) if calls(&body, id, &rounds.callee) => {
                let argument = self.expr(*argument)?;
                self.again(&argument, rounds)
            }
            _ => {
                self.at_end = !rounds.pauses;
                let value = self.expr(id)?;
                let mark = self.mark;
                if !rounds.pauses {
                    return self.give(&value, mark);
                }
                let (is_done, next) = (self.code.bool(true), self.empty(&rounds.argument)?);
                self.give(&Val::Tuple([Val::Base(Kind::Bool, is_done), value, next].into()), mark)
            }
        }
    }

    /// Returns a value without elements.
    fn empty(&mut self, shape: &Shape) -> CodeResult<Val> {
        let mut kinds = vec![];
        slots(shape, &mut kinds);
        let zero = |code: &mut Code, kind: Kind, mark: Reg| match kind {
            Kind::Int => code.int(0),
            Kind::Float => code.float(0.0),
            Kind::Bool => code.bool(false),
            Kind::Length => code.length(0),
            Kind::Pointer => mark,
        };
        let (mark, code) = (self.mark, &mut self.code);
        let regs: Vec<Reg> = kinds.into_iter().map(|kind| zero(code, kind, mark)).collect();
        self.unslot(shape, &mut regs.into_iter())
    }

    /// Goes to the next round.
    fn again(&mut self, argument: &Val, rounds: &Rounds) -> CodeResult<()> {
        let Val::Tuple(shapes) = self.unslot(&rounds.argument, &mut rounds.params.iter().copied())? else {
            return Err("no arguments".to_owned());
        };
        // Captured variables are those of the first call.
        let captured: usize = self.stored(&Val::Tuple(shapes[..shapes.len() - 1].into()))?.len();
        let regs = self.stored(argument)?;
        let slots = || rounds.kinds.iter().zip(&rounds.params).skip(captured);
        let next: Vec<Reg> = slots().zip(&regs).map(|((kind, _), reg)| self.code.copy(*kind, *reg)).collect();
        for ((kind, param), reg) in slots().zip(next) {
            self.code.set(*kind, *param, reg);
        }
        let mut columns = vec![];
        if flat_columns(&rounds.argument, &mut 0, &mut columns) {
            self.move_to_mark(&rounds.params, &columns);
        }
        if rounds.pauses {
            let late = self.code.reg(Class::Pred);
            self.code.to(late).setp((M::Gt, M::S64), self.fuel, PAUSE_FUEL as i64);
            self.code.go_if(late, rounds.head);
            let (_, result) = self.m.c.shapes(&rounds.callee)?;
            let (is_done, result) = (self.code.bool(false), self.empty(&result)?);
            let next = self.unslot(&rounds.argument, &mut rounds.params.iter().copied())?;
            let mark = self.mark;
            return self.give(&Val::Tuple([Val::Base(Kind::Bool, is_done), result, next].into()), mark);
        }
        self.code.go(rounds.head);
        Ok(())
    }

    /// Moves columns, each a length, a pointer and a kind, to the mark if much of the memory above it is dead.
    fn move_to_mark(&mut self, regs: &[Reg], columns: &[(usize, usize, Kind)]) {
        let (mark, top, limit, keep) = (self.mark, self.top, self.limit, self.code.label());
        let [live, used, most, half, behind] = [(); 5].map(|()| self.code.reg(Class::B64));
        let [is_little, is_full] = [(); 2].map(|()| self.code.reg(Class::Pred));
        self.code.to(live).mov(M::U64, 0);
        for &(length, pointer, kind) in columns {
            let next = self.code.label();
            let outside = self.is_outside(regs[pointer], mark);
            self.code.go_if(outside, next);
            self.add_bytes(live, regs[length], kind);
            self.code.place(next);
        }
        self.code.to(used).sub(M::U64, top, mark);
        self.code.to(half).sub(M::U64, limit, mark);
        self.code.to(half).shr(M::U64, half, 1);
        self.code.to(most).mul((M::Lo, M::U64), live, USED_PER_LIVE);
        self.code.to(most).add(M::U64, most, USED_AT_LEAST);
        self.code.to(most).min(M::U64, most, half);
        self.code.to(is_little).setp((M::Le, M::U64), used, most);
        self.code.go_if(is_little, keep);
        self.code.to(behind).add(M::U64, top, live);
        self.code.to(is_full).setp((M::Gt, M::U64), behind, limit);
        self.code.go_if(is_full, keep);
        // Free memory receives the columns one after the other; then all of them move down.
        let to = self.code.copy(Kind::Pointer, top);
        for &(length, pointer, kind) in columns {
            let next = self.code.label();
            let outside = self.is_outside(regs[pointer], mark);
            self.code.go_if(outside, next);
            self.move_down(kind, regs[pointer], to, regs[length]);
            self.code.to(regs[pointer]).sub(M::U64, to, used);
            self.add_bytes(to, regs[length], kind);
            self.code.place(next);
        }
        let (words, count) = (self.code.reg(Class::B64), self.code.reg(Class::B32));
        self.code.to(words).shr(M::U64, live, 3);
        self.code.to(count).cvt((M::U32, M::U64), words);
        self.move_down(Kind::Pointer, top, mark, count);
        self.code.to(top).add(M::U64, mark, live);
        self.code.place(keep);
    }

    /// Adds the bytes of a column to a number, and rounds it up.
    fn add_bytes(&mut self, to: Reg, length: Reg, kind: Kind) {
        let bytes = self.code.bytes(kind);
        self.code.to(to).mad((M::Wide, M::U32), length, bytes, to);
        self.code.to(to).add(M::U64, to, 7);
        self.code.to(to).and(M::B64, to, -8);
    }
}
