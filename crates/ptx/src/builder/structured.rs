//! Structured control flow: conditions and loops over closures.
//!
//! Each method places the blocks that it needs and continues after the end of the construct. A body may leave
//! early with its own branches. No branch is added after unreachable code.

use super::emit::Instructions;
use super::function::FunctionBuilder;
use crate::ids::Reg;
use crate::inst::{Guard, Operand};
use crate::table::Modifier;
use crate::types::Type;

impl FunctionBuilder {
    /// Runs the body where the predicate is true; with `!p`, where it is false.
    pub fn if_then(&mut self, condition: impl Into<Guard>, body: impl FnOnce(&mut Self)) {
        let end = self.block("$end_if");
        self.guard(!condition.into()).bra((), end);
        body(self);
        self.place(end);
    }

    /// Runs one of two bodies.
    pub fn if_else(&mut self, condition: impl Into<Guard>, yes: impl FnOnce(&mut Self), no: impl FnOnce(&mut Self)) {
        let (other, end) = (self.block("$else"), self.block("$end_if"));
        self.guard(!condition.into()).bra((), other);
        yes(self);
        if self.falls_through() {
            self.bra(Modifier::Uni, end);
        }
        self.place(other);
        no(self);
        self.place(end);
    }

    /// Runs the body while the condition, evaluated before each iteration, is true.
    pub fn while_loop(&mut self, condition: impl FnOnce(&mut Self) -> Guard, body: impl FnOnce(&mut Self)) {
        let (head, end) = (self.block("$while"), self.block("$end_while"));
        self.place(head);
        let going_on = condition(self);
        self.guard(!going_on).bra((), end);
        body(self);
        if self.falls_through() {
            self.bra(Modifier::Uni, head);
        }
        self.place(end);
    }

    /// Runs the body, then repeats it while the condition that it returns is true.
    pub fn do_while(&mut self, body: impl FnOnce(&mut Self) -> Guard) {
        let head = self.label("$do");
        let again = body(self);
        self.guard(again).bra((), head);
    }

    /// Counts an integer of type `ty` from `start` by `step` while it is less than `end`, and passes it to
    /// the body.
    pub fn for_range(
        &mut self,
        ty: Type,
        start: impl Into<Operand>,
        end: impl Into<Operand>,
        step: impl Into<Operand>,
        body: impl FnOnce(&mut Self, Reg),
    ) {
        let (end, step) = (end.into(), step.into());
        let counter = self.reg(ty);
        self.to(counter).mov(ty, start);
        self.while_loop(
            |b| b.setp((Modifier::Lt, ty), counter, end).into(),
            |b| {
                body(b, counter);
                b.to(counter).add(ty, counter, step);
            },
        );
    }
}
