//! Statements: assignments, conditions, loops.

use super::{Emitter, OpenLoop, compute_type, move_type};
use crate::body::{Statement, Unroll};
use crate::id::{BlockId, Id};
use crate::op::{Op, pure_op};
use crate::types::{Element, Literal};
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier, Operand, Type};

impl Emitter<'_> {
    /// Variables are zero at first.
    pub(super) fn begin_variables(&mut self) {
        for (reg, element) in self.vars.clone().into_iter().zip(self.body.vars.clone()) {
            let zero = match element {
                Element::F32 => Operand::from(0.0f32),
                Element::F64 => Operand::from(0.0f64),
                _ => Operand::from(0),
            };
            self.f.to(reg).mov(move_type(element), zero);
        }
    }

    fn computed(&mut self, block: BlockId, place: usize) {
        for id in self.schedule.before(block, place).to_vec() {
            self.pure(id);
        }
    }

    pub(super) fn block(&mut self, block: BlockId) {
        let body = self.body;
        let statements = &body.block(block).statements;
        for (index, statement) in statements.iter().enumerate() {
            self.computed(block, index);
            self.statement(statement);
            if matches!(statement, Statement::Break | Statement::Continue) {
                return;
            }
        }
        self.computed(block, statements.len());
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Define(id) => self.define(*id),
            Statement::Set(var, value) => {
                let value = self.operand(*value);
                let (reg, element) = (self.vars[var.index()], self.body.variable(*var));
                self.f.to(reg).mov(move_type(element), value);
            }
            Statement::SetElement { array, index, value } => self.set_element(*array, *index, *value),
            Statement::Store { base, index, value, access, condition } => {
                self.store(*base, *index, *access, *value, *condition);
            }
            Statement::Prefetch { base, index, access, level } => self.prefetch(*base, *index, *access, *level),
            Statement::Barrier => self.f.bar(Modifier::Sync, 0),
            Statement::WarpBarrier(members) => {
                let members = self.operand(*members);
                self.f.bar_warp_sync((), members);
            }
            Statement::Fence(scope) => self.f.fence((Modifier::AcqRel, super::memory::scope_word(*scope))),
            Statement::If { condition, then, otherwise } => self.condition(*condition, *then, *otherwise),
            Statement::For { counter, start, end, step, body, unroll } => {
                self.count(*counter, [*start, *end, *step], *body, *unroll);
            }
            Statement::While { head, condition, body } => self.repeat(*head, *condition, *body),
            Statement::Break => {
                if let Some(end) = self.loops.last().map(|open| open.end) {
                    self.f.bra((), end);
                }
            }
            Statement::Continue => {
                if let Some(again) = self.loops.last().map(|open| open.again) {
                    self.f.bra((), again);
                }
            }
            // Kernels have no accessors.
            Statement::Write { .. } | Statement::Push { .. } => {}
        }
    }

    fn is_empty(&self, block: BlockId) -> bool {
        self.body.block(block).statements.is_empty()
    }

    fn condition(&mut self, condition: Id, then: BlockId, otherwise: BlockId) {
        let condition = self.reg(condition);
        match (self.is_empty(then), self.is_empty(otherwise)) {
            (true, true) => {}
            (false, true) => {
                let end = self.f.block("$end_if");
                self.f.guard(!condition).bra((), end);
                self.block(then);
                self.f.place(end);
            }
            (true, false) => {
                let end = self.f.block("$end_if");
                self.f.guard(condition).bra((), end);
                self.block(otherwise);
                self.f.place(end);
            }
            (false, false) => {
                let (other, end) = (self.f.block("$else"), self.f.block("$end_if"));
                self.f.guard(!condition).bra((), other);
                self.block(then);
                if self.f.falls_through() {
                    self.f.bra((), end);
                }
                self.f.place(other);
                self.block(otherwise);
                self.f.place(end);
            }
        }
    }

    fn count(&mut self, counter: Id, [start, end, step]: [Id; 3], body: BlockId, unroll: Unroll) {
        let element = self.element(counter);
        let downwards = self.body.literal(step).and_then(Literal::as_i128).is_some_and(|step| step < 0);
        let going = if downwards { Modifier::Gt } else { Modifier::Lt };
        let ty = compute_type(element);
        let (start, end, step) = (self.operand(start), self.operand(end), self.operand(step));
        let count = self.register(element);
        self.f.to(count).mov(move_type(element), start);
        let (head, again, done) = (self.f.block("$for"), self.f.block("$next"), self.f.block("$end_for"));
        let enters = self.f.setp((going, ty), count, end.clone());
        self.f.guard(!enters).bra((), done);
        self.f.place(head);
        if unroll == Unroll::Never {
            self.f.pragma("nounroll");
        }
        // What the body sees does not change when the counter does.
        self.give(counter, count);
        self.loops.push(OpenLoop { again, end: done });
        self.block(body);
        self.loops.pop();
        self.f.place(again);
        self.f.to(count).add(ty, count, step);
        self.normalise(element, count);
        let goes_on = self.f.setp((going, ty), count, end);
        self.f.guard(goes_on).bra((), head);
        self.f.place(done);
    }

    fn repeat(&mut self, head: BlockId, condition: Id, body: BlockId) {
        let (again, done) = (self.f.block("$while"), self.f.block("$end_while"));
        self.f.place(again);
        self.loops.push(OpenLoop { again, end: done });
        self.block(head);
        let condition = self.reg(condition);
        self.f.guard(!condition).bra((), done);
        self.block(body);
        self.loops.pop();
        if self.f.falls_through() {
            self.f.bra((), again);
        }
        self.f.place(done);
    }

    fn define(&mut self, id: Id) {
        let body = self.body;
        let node = body.node(id);
        let element = node.ty.element();
        match &node.op {
            Op::Get(var) => {
                let reg = self.register(element);
                let var = self.vars[var.index()];
                self.f.to(reg).mov(move_type(element), var);
                self.give(id, reg);
            }
            Op::Element(array, index) => {
                let value = self.get_element(*array, *index);
                self.give(id, value);
            }
            Op::Load(base, index, access) => {
                let lanes = self.load(*base, *index, node.ty, *access);
                self.values[id.index()] = Some(lanes);
            }
            Op::Atomic(op, base, index, access, value, expected) => {
                let value = self.atomic(*op, *base, *index, *access, *value, *expected);
                self.give(id, value);
            }
            Op::Shuffle(kind, width, value, amount, members) => {
                let value = self.shuffle(*kind, *width, *value, *amount, *members);
                self.give(id, value);
            }
            Op::Vote(vote, predicate, members) => {
                let value = self.vote(*vote, *predicate, *members);
                self.give(id, value);
            }
            Op::Ballot(predicate, members) => {
                let (predicate, members) = (self.reg(*predicate), self.operand(*members));
                let value = self.f.vote_sync((Modifier::Ballot, Type::B32), predicate, members);
                self.give(id, value);
            }
            Op::Match(value, members) => {
                let value = self.match_any(*value, *members);
                self.give(id, value);
            }
            Op::WarpReduce(op, value, members) => {
                let value = self.warp_reduce(*op, *value, *members);
                self.give(id, value);
            }
            Op::ActiveMask => {
                let value = self.f.activemask(Type::B32);
                self.give(id, value);
            }
            Op::BarrierCount(predicate) => {
                let predicate = self.reg(*predicate);
                let value = self.f.bar_result((Modifier::Red, Modifier::Popc, Type::U32), (0, predicate));
                self.give(id, value);
            }
            // Kernels have no accessors; counters come with their loops; pure nodes are scheduled.
            Op::Read(..) | Op::Window(..) | Op::Pop(_) | Op::Peek(..) | Op::Counter(_) => {}
            pure_op!() => {}
        }
    }
}
