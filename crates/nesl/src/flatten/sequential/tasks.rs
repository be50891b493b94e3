//! Tasks: calls that another warp may run, or another thread in the form for cores. In the form for cores, a
//! function with few elements has none, and its calls run in a plain loop.
//!
//! An apply-to-each whose elements are calls of a recursive function puts all calls except the last into a
//! queue. It runs the last one, and then those that have not been taken. Warps without a call of their own
//! take tasks from the queue.
//!
//! - A warp takes the next number and waits for the task with this number, so warps do not compete for one.
//!   It stops when all calls have ended.
//! - A warp waits only for tasks that a running warp has taken, and that one waits only for tasks of its own.
//!   No warp therefore waits forever.
//! - Arguments are in the arena of the caller, which waits. Results stay in the arena of the warp that took
//!   the task until the kernel ends. If a task may need more memory than is left in its arena, a warp leaves
//!   the task to the warp that made it.
//! - A task is published with release and read after a fence, at the scope of the device.
//!
//! The queue has these `u32` fields, see the constants: the number of tasks so far, the minimum number of
//! elements of a task, the number of tasks that fit into the memory, the next number to take, the number of
//! calls that have ended. Records of [`RECORD`] bytes follow.

use super::code::{Class, Code, Kind, Label, Reg};
use super::expr::{Seq, Writer};
use super::{CodeResult, FrameRegisters, Module, Signature};
use crate::core::{DefinitionKind, Each, Expr, ExprId};
use crate::flatten::Callee;
use crate::flatten::callee::Node;
use crate::vcode::Shape;
use crate::vcode::task::{CAPACITY, ENDED, FIRST, GRAIN, NEXT, RECORD};
use broadloom_ptx::Modifier as M;
use broadloom_ptx::builder::Instructions;
use std::rc::Rc;

/// Maximum number of slots of arguments of a task, and of results.
const MAX_SLOTS: usize = 12;
/// Offsets in a record: the state, the number of the function, the depth, the number of elements, the fuel,
/// the slots of arguments and of results.
const FUNCTION: u32 = 4;
const DEPTH: u32 = 8;
const SIZE: u32 = 12;
const FUEL: u32 = 16;
const ARGUMENTS: u32 = 32;
const RESULTS: u32 = ARGUMENTS + 8 * MAX_SLOTS as u32;

/// States of a task.
const READY: u32 = 1;
const TAKEN: u32 = 2;
const DONE: u32 = 3;
const FAILED: u32 = 4;

/// Bytes of memory that a task may need: per element of a task of warps, per element of a task of threads,
/// and in addition.
const ARENA_OF_ELEMENT: u32 = 96;
const THREAD_ARENA_OF_ELEMENT: u32 = 192;
const ARENA_BESIDES: u32 = 1 << 12;

/// Maximum number of functions whose calls are tasks.
const MAX_FUNCTIONS: usize = 8;

/// A warp that takes tasks.
pub(super) struct Worker {
    /// The start and the end of its free memory.
    pub(super) base: Reg,
    pub(super) limit: Reg,
    pub(super) state: Reg,
    pub(super) calls: Reg,
    pub(super) end: Label,
}

/// Records the end of a call.
pub(super) fn end_call(code: &mut Code, queue: Reg) {
    code.sync();
    let old = code.reg(Class::B32);
    code.in_first_lane(|code| code.to(old).atom((M::Global, M::Add, M::U32), queue.at(ENDED), 1));
}

/// Returns the address of a record.
fn record(code: &mut Code, queue: Reg, number: Reg) -> Reg {
    let to = code.reg(Class::B64);
    code.to(to).mad((M::Wide, M::U32), number, RECORD, queue);
    code.to(to).add(M::U64, to, FIRST);
    to
}

/// Loads the state of a task. A fence must follow before data stored earlier is read: a load with acquire
/// semantics would invalidate the L1 cache of the multiprocessor each time.
fn state_of(code: &mut Code, record: Reg) -> Reg {
    let state = code.length(0);
    code.in_first_lane(|code| code.to(state).ld((M::Relaxed, M::Gpu, M::Global, M::U32), record.at(0)));
    code.lane_value(Kind::Length, state, None)
}

/// Takes a task. Returns its previous state. The warp that made the task needs no fence.
fn take(code: &mut Code, record: Reg) -> Reg {
    let state = code.length(0);
    code.in_first_lane(|code| {
        code.to(state).atom_with((M::Relaxed, M::Gpu, M::Global, M::Cas, M::B32), (record.at(0), READY, TAKEN))
    });
    let state = code.lane_value(Kind::Length, state, None);
    code.sync();
    state
}

impl Module<'_, '_> {
    /// Returns the number of a function whose calls are tasks.
    fn task(&mut self, signature: &Signature) -> Option<usize> {
        if let Some(number) = self.tasks.iter().position(|known| known.name == signature.name) {
            return Some(number);
        }
        let fits = signature.params.len() <= MAX_SLOTS && signature.results.len() <= MAX_SLOTS;
        if !fits || self.tasks.len() >= MAX_FUNCTIONS {
            return None;
        }
        self.tasks.push(signature.clone());
        Some(self.tasks.len() - 1)
    }

    fn load_slots(&self, code: &mut Code, kinds: &[Kind], record: Reg, offset: u32) -> Vec<Reg> {
        let mut regs = vec![];
        for (number, kind) in (0u32..).zip(kinds) {
            let to = if *kind == Kind::Bool { code.reg(Class::B32) } else { code.of(*kind) };
            code.to(to).ld((M::Global, self.param_type(*kind)), record.at(offset + 8 * number));
            regs.push(to);
        }
        regs
    }

    fn store_slots(&self, code: &mut Code, kinds: &[Kind], regs: &[Reg], record: Reg, offset: u32) {
        for ((number, kind), reg) in (0u32..).zip(kinds).zip(regs) {
            code.run().st((M::Global, self.param_type(*kind)), record.at(offset + 8 * number), reg);
        }
    }

    /// Writes the loop of a warp without a call of its own.
    pub(super) fn take_tasks(&self, code: &mut Code, queue: Reg, worker: &Worker) {
        if self.tasks.is_empty() {
            return;
        }
        let Worker { base, limit, state, calls, end } = worker;
        let (next, wait, run) = (code.label(), code.label(), code.label());
        let [room, need] = [(); 2].map(|()| code.reg(Class::B64));
        let capacity = code.reg(Class::B32);
        code.to(capacity).ld((M::Global, M::U32), queue.at(CAPACITY));
        code.place(next);
        let (full, beyond, number) = (code.reg(Class::Pred), code.reg(Class::Pred), code.length(0));
        code.in_first_lane(|code| code.to(number).atom((M::Global, M::Add, M::U32), queue.at(NEXT), 1));
        let number = code.lane_value(Kind::Length, number, None);
        code.to(beyond).setp((M::Ge, M::U32), number, capacity);
        code.go_if(beyond, *end);
        let task = record(code, queue, number);
        code.place(wait);
        let [is_ready, is_over, is_gone, has_ended, has_failed] = [(); 5].map(|()| code.reg(Class::Pred));
        let own = state_of(code, task);
        code.to(is_ready).setp((M::Eq, M::U32), own, READY);
        code.go_if(is_ready, run);
        code.to(is_gone).setp((M::Ne, M::U32), own, 0);
        code.go_if(is_gone, next);
        let (ended, flags) = (code.length(0), code.length(0));
        code.in_first_lane(|code| {
            code.to(ended).ld((M::Relaxed, M::Gpu, M::Global, M::U32), queue.at(ENDED));
            code.to(flags).ld((M::Relaxed, M::Gpu, M::Global, M::U32), state.at(4));
        });
        let (ended, flags) = (code.lane_value(Kind::Length, ended, None), code.lane_value(Kind::Length, flags, None));
        code.to(has_ended).setp((M::Ge, M::U32), ended, calls);
        code.to(has_failed).setp((M::Ne, M::U32), flags, 0);
        code.to(is_over).or(M::Pred, has_ended, has_failed);
        code.go_if(is_over, *end);
        code.run().nanosleep(M::U32, 200);
        code.go(wait);
        code.place(run);
        code.run().fence((M::AcqRel, M::Gpu));
        let size = code.reg(Class::B32);
        code.to(size).ld((M::Global, M::U32), task.at(SIZE));
        let of_element = if code.lane.is_some() { ARENA_OF_ELEMENT } else { THREAD_ARENA_OF_ELEMENT };
        code.to(need).mul((M::Wide, M::U32), size, of_element);
        code.to(need).add(M::U64, need, ARENA_BESIDES);
        code.to(room).sub(M::U64, limit, base);
        code.to(full).setp((M::Lt, M::U64), room, need);
        code.go_if(full, next);
        let (taken, was_taken) = (take(code, task), code.reg(Class::Pred));
        code.to(was_taken).setp((M::Ne, M::U32), taken, READY);
        code.go_if(was_taken, next);
        let (function, depth, fuel) = (code.reg(Class::B32), code.reg(Class::B32), code.reg(Class::B64));
        code.to(function).ld((M::Global, M::U32), task.at(FUNCTION));
        code.to(depth).ld((M::Global, M::U32), task.at(DEPTH));
        code.to(fuel).ld((M::Global, M::U64), task.at(FUEL));
        let failed = code.label();
        for (number, signature) in (0u32..).zip(&self.tasks) {
            let (other, is_other, is_wrong) = (code.label(), code.reg(Class::Pred), code.reg(Class::Pred));
            code.to(is_other).setp((M::Ne, M::U32), function, number);
            code.go_if(is_other, other);
            let regs = self.load_slots(code, &signature.params, task, ARGUMENTS);
            let given = FrameRegisters { top: *base, limit: *limit, depth, fuel, queue: Some(queue), team: None };
            let called = self.call(code, signature, &given, &regs);
            code.to(is_wrong).setp((M::Ne, M::U32), called.status, 0);
            code.go_if(is_wrong, failed);
            code.to(base).mov(M::B64, called.top);
            code.sync();
            code.in_first_lane(|code| {
                self.store_slots(code, &signature.results, &called.results, task, RESULTS);
                code.run().st((M::Release, M::Gpu, M::Global, M::U32), task.at(0), DONE);
            });
            code.sync();
            code.go(next);
            code.place(other);
        }
        code.place(failed);
        code.sync();
        code.in_first_lane(|code| code.run().st((M::Release, M::Gpu, M::Global, M::U32), task.at(0), FAILED));
        // Its arena is not used again.
        code.go(*end);
    }
}

impl Writer<'_, '_, '_> {
    /// Returns the function and the argument of an apply-to-each whose elements are calls of a recursive
    /// function.
    pub(super) fn recurring_call(&mut self, each: &Each) -> Option<(Callee, ExprId)> {
        let body = self.body.clone();
        let Expr::Call(function, argument) = &body.exprs[each.body] else { return None };
        let Expr::Definition(definition, instance) = &body.exprs[*function] else { return None };
        let is_function = matches!(self.m.c.env.definitions[*definition].kind, DefinitionKind::Function(_));
        let recurs = is_function && self.m.c.recurs(Node::Definition(*definition));
        recurs.then(|| (Callee::Definition(*definition, instance.clone()), *argument))
    }

    /// Writes an apply-to-each whose elements are calls of a recursive function. Returns false for any other
    /// apply-to-each.
    pub(super) fn each_in_tasks(
        &mut self,
        each: &Each,
        sources: &[Rc<Seq>],
        length: Reg,
        (shape, arrays): (&Shape, &[Reg]),
    ) -> CodeResult<bool> {
        let (Some(queue), None, false, None) = (self.queue, self.code.team, self.varying, each.filter) else { return Ok(false) };
        let Some((callee, argument)) = self.recurring_call(each) else { return Ok(false) };
        let signature = self.m.function(&callee, false)?;
        // Threads make no tasks without sequences: such a task would never be large.
        if self.size.is_some() && !signature.params.contains(&Kind::Length) {
            return Ok(false);
        }
        let Some(function) = self.m.task(&signature) else { return Ok(false) };
        let (_, result) = self.m.c.shapes(&callee)?;
        let grain = self.code.reg(Class::B32);
        self.code.to(grain).ld((M::Global, M::U32), queue.at(GRAIN));
        let (whole, end) = (self.code.label(), self.code.label());
        if let Some(size) = self.size {
            let is_small = self.code.reg(Class::Pred);
            self.code.to(is_small).setp((M::Lt, M::U32), size, grain);
            self.code.go_if(is_small, whole);
        }
        let numbers = self.take(length, Kind::Length);

        let around = self.begin(length);
        self.bind_elements(each, sources, around.index)?;
        let value = self.expr(argument)?;
        let regs = self.stored(&value)?;
        let regs: Vec<Reg> =
            regs.iter().map(|reg| if reg.class == Class::Pred { self.code.number(*reg) } else { *reg }).collect();
        let (here, next) = (self.code.label(), self.code.label());
        let number = self.code.reg(Class::B32);
        self.code.to(number).mov(M::U32, 0xffffffffu32);
        let (behind, size) = (self.code.reg(Class::B32), self.code.length(0));
        let [is_last, is_small, is_full] = [(); 3].map(|()| self.code.reg(Class::Pred));
        self.code.to(behind).add(M::U32, around.index, 1);
        self.code.to(is_last).setp((M::Eq, M::U32), behind, length);
        self.code.go_if(is_last, here);
        for (reg, _) in regs.iter().zip(&signature.params).filter(|(_, kind)| **kind == Kind::Length) {
            self.code.to(size).add(M::U32, size, reg);
        }
        self.code.to(is_small).setp((M::Lt, M::U32), size, grain);
        self.code.go_if(is_small, here);
        let (own, capacity) = (self.code.length(0), self.code.reg(Class::B32));
        self.code.to(capacity).ld((M::Global, M::U32), queue.at(CAPACITY));
        self.code.in_first_lane(|code| code.to(own).atom((M::Global, M::Add, M::U32), queue.at(0), 1));
        let own = self.code.lane_value(Kind::Length, own, None);
        self.code.to(is_full).setp((M::Ge, M::U32), own, capacity);
        self.code.go_if(is_full, here);
        self.code.to(number).mov(M::U32, own);
        let task = record(&mut self.code, queue, own);
        let (depth, fuel) = (self.depth, self.fuel);
        self.code.sync();
        let m = &*self.m;
        self.code.in_first_lane(|code| {
            code.run().st((M::Global, M::U32), task.at(FUNCTION), function as u32);
            code.run().st((M::Global, M::U32), task.at(DEPTH), depth);
            code.run().st((M::Global, M::U32), task.at(SIZE), size);
            code.run().st((M::Global, M::U64), task.at(FUEL), fuel);
            m.store_slots(code, &signature.params, &regs, task, ARGUMENTS);
            code.run().st((M::Release, M::Gpu, M::Global, M::U32), task.at(0), READY);
        });
        self.code.sync();
        self.code.go(next);
        self.code.place(here);
        let value = self.called(&signature, &result, &regs)?;
        self.put(arrays, shape, around.index, &value)?;
        self.code.place(next);
        self.code.store_at(Kind::Length, numbers, around.index, number);
        self.end(around);

        // Tasks that have not been taken are run here; for the others, the warp waits.
        let around = self.begin(length);
        let (next, wait, there) = (self.code.label(), self.code.label(), self.code.label());
        let [is_none, was_taken, is_done, is_wrong] = [(); 4].map(|()| self.code.reg(Class::Pred));
        let number = self.code.load_at(Kind::Length, numbers, around.index);
        self.code.to(is_none).setp((M::Eq, M::U32), number, 0xffffffffu32);
        self.code.go_if(is_none, next);
        let task = record(&mut self.code, queue, number);
        let taken = take(&mut self.code, task);
        self.code.to(was_taken).setp((M::Ne, M::U32), taken, READY);
        self.code.go_if(was_taken, wait);
        let regs = self.m.load_slots(&mut self.code, &signature.params, task, ARGUMENTS);
        let value = self.called(&signature, &result, &regs)?;
        self.put(arrays, shape, around.index, &value)?;
        self.code.go(next);
        self.code.place(wait);
        let state = state_of(&mut self.code, task);
        self.code.to(is_done).setp((M::Ge, M::U32), state, DONE);
        self.code.go_if(is_done, there);
        self.code.run().nanosleep(M::U32, 100);
        self.code.go(wait);
        self.code.place(there);
        self.code.to(is_wrong).setp((M::Ne, M::U32), state, DONE);
        self.fail_if(is_wrong);
        self.code.run().fence((M::AcqRel, M::Gpu));
        self.code.sync();
        let regs = self.m.load_slots(&mut self.code, &signature.results, task, RESULTS);
        let value = self.returned(&signature, &result, &regs)?;
        self.put(arrays, shape, around.index, &value)?;
        self.code.place(next);
        self.end(around);
        if self.size.is_some() {
            self.code.go(end);
            self.code.place(whole);
            self.each_in_order(each, sources, length, (shape, arrays))?;
            self.code.place(end);
        }
        Ok(true)
    }
}
