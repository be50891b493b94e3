//! Conditions and loops.
//!
//! Each has two forms: closures for code that is written by hand, and `begin_…`/`end_…` pairs for code that
//! is generated from a tree. Both can be mixed.

use super::{Builder, Frame, Operand, Value};
use crate::body::{MAX_NESTING, Statement, Unroll};
use crate::id::BlockId;
use crate::op::{Node, Op};
use crate::range;
use crate::types::{Literal, Type};

impl Builder {
    /// Runs the body if the condition is true.
    #[track_caller]
    pub fn if_then(&self, condition: impl Into<Operand>, body: impl FnOnce()) {
        self.begin_if(condition);
        body();
        self.end_if();
    }

    /// Runs one of two bodies.
    #[track_caller]
    pub fn if_else(&self, condition: impl Into<Operand>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        self.begin_if(condition);
        then();
        self.begin_else();
        otherwise();
        self.end_if();
    }

    /// Runs one of two bodies, which return values of one type. Unlike [`select`](Self::select), only one
    /// value is computed.
    #[track_caller]
    pub fn choose(
        &self,
        condition: impl Into<Operand>,
        then: impl FnOnce() -> Value,
        otherwise: impl FnOnce() -> Value,
    ) -> Value {
        self.begin_if(condition);
        let value = then();
        if self.checked(value).is_none() {
            self.begin_else();
            self.end_if();
            return self.poison();
        }
        // The variable is declared before the condition. Only its values are set inside.
        let result = self.variable(self.type_of(value));
        self.set(result, value);
        self.begin_else();
        self.set(result, otherwise());
        self.end_if();
        self.get(result)
    }

    /// Counts from `start` by 1 while less than `end`.
    ///
    /// ```
    /// use broadloom_scalar::{Builder, Type};
    /// let b = Builder::function("sum_to");
    /// let n = b.parameter("n", Type::I32);
    /// let sum = b.variable_with(b.constant(Type::I32, 0));
    /// b.for_range(0, n, |i| b.set(sum, b.add(b.get(sum), i)));
    /// let sum = b.finish_function(&[b.get(sum)]).unwrap();
    /// assert_eq!(sum.evaluate(&[5i32.into()]).unwrap(), [10i32.into()]);
    /// ```
    #[track_caller]
    pub fn for_range(&self, start: impl Into<Operand>, end: impl Into<Operand>, body: impl FnOnce(Value)) {
        self.for_step(start, end, 1, Unroll::Auto, body);
    }

    /// Counts from `start` by `step` while less than `end`, or while greater if the step is a negative
    /// number. The counter wraps like its type. At least one of the bounds must be a value.
    #[track_caller]
    pub fn for_step(
        &self,
        start: impl Into<Operand>,
        end: impl Into<Operand>,
        step: impl Into<Operand>,
        unroll: Unroll,
        body: impl FnOnce(Value),
    ) {
        let counter = self.begin_for(start, end, step, unroll);
        body(counter);
        self.end_for();
    }

    /// Repeats the body while the condition is true. The condition is computed before each iteration.
    #[track_caller]
    pub fn while_loop(&self, condition: impl FnOnce() -> Value, body: impl FnOnce()) {
        self.begin_while();
        let condition = condition();
        self.begin_while_body(condition);
        body();
        self.end_while();
    }

    // `begin_…`/`end_…` pairs of these constructs.

    /// Opens a block. Returns `None` if the nesting is too deep, and records this mistake once.
    #[track_caller]
    fn enter(&self, parent: BlockId, is_loop: bool) -> Option<BlockId> {
        let mut state = self.state.borrow_mut();
        if state.refused == 0
            && let Some(block) = state.open_block(parent, is_loop)
        {
            return Some(block);
        }
        state.refused += 1;
        let first = state.refused == 1;
        drop(state);
        if first {
            self.fail(format!("blocks are nested more than {MAX_NESTING} deep"));
        }
        None
    }

    /// Returns true if the construct that ends now was refused when it began.
    fn leave_refused(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let refused = state.refused > 0;
        state.refused = state.refused.saturating_sub(1);
        refused
    }

    /// Returns the condition, or `false` after a mistake, so that the following code still has its frame.
    #[track_caller]
    fn condition(&self, condition: Operand) -> Value {
        self.resolve(condition, Type::BOOL).unwrap_or_else(|| self.literal(false))
    }

    /// Begins code that runs if the condition is true, up to [`begin_else`](Self::begin_else) or
    /// [`end_if`](Self::end_if).
    #[track_caller]
    pub fn begin_if(&self, condition: impl Into<Operand>) {
        let condition = self.condition(condition.into());
        let current = self.current_block();
        let Some(then) = self.enter(current, false) else { return };
        self.state.borrow_mut().frames.push(Frame::If { condition: condition.id, then, otherwise: None });
    }

    /// Begins code that runs if the condition is false.
    #[track_caller]
    pub fn begin_else(&self) {
        let mut state = self.state.borrow_mut();
        if state.refused > 0 {
            return;
        }
        match state.frames.pop() {
            Some(Frame::If { condition, then, otherwise: None }) => {
                let parent = state.body.block(then).parent.unwrap_or(then);
                state.close_block(then, parent);
                // It is as deep as the block before it, so it is never refused.
                let otherwise = state.open_block(parent, false);
                state.frames.push(Frame::If { condition, then, otherwise });
            }
            frame => {
                state.frames.extend(frame);
                drop(state);
                self.fail("`begin_else` without `begin_if`");
            }
        }
    }

    /// Ends a condition.
    #[track_caller]
    pub fn end_if(&self) {
        if self.leave_refused() {
            return;
        }
        let mut state = self.state.borrow_mut();
        match state.frames.pop() {
            Some(Frame::If { condition, then, otherwise }) => {
                let parent = state.body.block(then).parent.unwrap_or(then);
                let otherwise = match otherwise {
                    Some(block) => block,
                    None => {
                        state.close_block(then, parent);
                        state.open_block(parent, false).unwrap_or(then)
                    }
                };
                state.close_block(otherwise, parent);
                let is_empty = |block: BlockId| state.body.block(block).statements.is_empty();
                if !(state.folding && is_empty(then) && is_empty(otherwise)) {
                    state.statement(Statement::If { condition, then, otherwise });
                }
            }
            frame => {
                state.frames.extend(frame);
                drop(state);
                self.fail("`end_if` without `begin_if`");
            }
        }
    }

    /// Begins the body of a loop and returns its counter; see [`for_step`](Self::for_step).
    #[track_caller]
    pub fn begin_for(
        &self,
        start: impl Into<Operand>,
        end: impl Into<Operand>,
        step: impl Into<Operand>,
        unroll: Unroll,
    ) -> Value {
        let (start, end, step) = (start.into(), end.into(), step.into());
        let typed = |operand: Operand| match operand {
            Operand::Value(value) => Some(self.type_of(value)),
            Operand::Integer(_) | Operand::Float(_) | Operand::Bool(_) => None,
        };
        let ty = typed(start).or(typed(end)).or(typed(step)).unwrap_or(Type::I32);
        let resolved = if ty.is_scalar() && ty.element().is_integer() {
            match (self.resolve(start, ty), self.resolve(end, ty), self.resolve(step, ty)) {
                (Some(start), Some(end), Some(step)) => Some((start, end, step)),
                _ => None,
            }
        } else {
            self.fail(format!("a loop counts integers, not `{ty}`"));
            None
        };
        let is_stuck = resolved.is_some_and(|(_, _, step)| self.as_literal(step).is_some_and(|step| step.as_i128() == Some(0)));
        if is_stuck {
            self.fail("a loop that counts by 0");
        }
        // After a mistake, an empty loop keeps the frames in order.
        let (ty, (start, end, step)) = match resolved.filter(|_| !is_stuck) {
            Some(bounds) => (ty, bounds),
            None => (Type::I32, (self.literal(0i32), self.literal(0i32), self.literal(1i32))),
        };
        let current = self.current_block();
        let Some(body) = self.enter(current, true) else { return self.poison() };
        let mut state = self.state.borrow_mut();
        let Some(counter) = state.push(Node { op: Op::Counter(body), ty }, body) else {
            drop(state);
            return self.fail("there is too much code");
        };
        {
            let [first, last] = [start, end].map(|value| state.ranges[value.id.index()]);
            let by = match state.body.literal(step.id).and_then(Literal::as_i128) {
                Some(step) => (step, step),
                // Only a literal step counts downwards.
                None => Some(state.ranges[step.id.index()]).filter(|(low, _)| *low > 0).unwrap_or((0, 0)),
            };
            state.ranges[counter.index()] = range::counter(ty.element(), first, last, by);
        }
        state.frames.push(Frame::For { counter, start: start.id, end: end.id, step: step.id, body, unroll });
        self.wrap(counter)
    }

    /// Ends a counting loop.
    #[track_caller]
    pub fn end_for(&self) {
        if self.leave_refused() {
            return;
        }
        let mut state = self.state.borrow_mut();
        match state.frames.pop() {
            Some(Frame::For { counter, start, end, step, body, unroll }) => {
                let parent = state.body.block(body).parent.unwrap_or(body);
                state.close_block(body, parent);
                if state.folding && state.body.block(body).statements.is_empty() {
                    return;
                }
                state.statement(Statement::For { counter, start, end, step, body, unroll });
            }
            frame => {
                state.frames.extend(frame);
                drop(state);
                self.fail("`end_for` without `begin_for`");
            }
        }
    }

    /// Begins the condition of a loop, up to [`begin_while_body`](Self::begin_while_body).
    #[track_caller]
    pub fn begin_while(&self) {
        let current = self.current_block();
        let Some(head) = self.enter(current, true) else { return };
        self.state.borrow_mut().frames.push(Frame::WhileHead { head });
    }

    /// Begins code that is repeated while the condition is true, up to [`end_while`](Self::end_while).
    #[track_caller]
    pub fn begin_while_body(&self, condition: impl Into<Operand>) {
        if self.state.borrow().refused > 0 {
            return;
        }
        let condition = self.condition(condition.into());
        let frame = self.state.borrow_mut().frames.pop();
        match frame {
            Some(Frame::WhileHead { head }) => {
                let opened = self.state.borrow_mut().open_block(head, false);
                match opened {
                    Some(body) => {
                        self.state.borrow_mut().frames.push(Frame::WhileBody { head, condition: condition.id, body });
                    }
                    None => {
                        let mut state = self.state.borrow_mut();
                        let parent = state.body.block(head).parent.unwrap_or(head);
                        state.close_block(head, parent);
                        state.refused += 1;
                        drop(state);
                        self.fail(format!("blocks are nested more than {MAX_NESTING} deep"));
                    }
                }
            }
            frame => {
                self.state.borrow_mut().frames.extend(frame);
                self.fail("`begin_while_body` without `begin_while`");
            }
        }
    }

    /// Ends a loop with a condition.
    #[track_caller]
    pub fn end_while(&self) {
        if self.leave_refused() {
            return;
        }
        let mut state = self.state.borrow_mut();
        match state.frames.pop() {
            Some(Frame::WhileBody { head, condition, body }) => {
                let parent = state.body.block(head).parent.unwrap_or(head);
                state.close_block(body, head);
                state.close_block(head, parent);
                state.statement(Statement::While { head, condition, body });
            }
            frame => {
                state.frames.extend(frame);
                drop(state);
                self.fail("`end_while` without `begin_while`");
            }
        }
    }

    fn in_loop(&self) -> bool {
        let state = self.state.borrow();
        state.refused > 0 || state.frames.iter().any(|frame| matches!(frame, Frame::For { .. } | Frame::WhileBody { .. }))
    }

    /// Leaves the innermost loop. Code that follows in the same block is unreachable.
    #[track_caller]
    pub fn break_loop(&self) {
        if self.in_loop() {
            self.statement(Statement::Break);
        } else {
            self.fail("`break_loop` outside of loops");
        }
    }

    /// Continues with the next iteration of the innermost loop. Code that follows in the same block is
    /// unreachable.
    #[track_caller]
    pub fn continue_loop(&self) {
        if self.in_loop() {
            self.statement(Statement::Continue);
        } else {
            self.fail("`continue_loop` outside of loops");
        }
    }

    /// Returns the block that is still open when the code ends, if any.
    pub(super) fn unfinished(&self) -> Option<&'static str> {
        let state = self.state.borrow();
        state.frames.last().map(|frame| match frame {
            Frame::If { .. } => "a condition",
            Frame::For { .. } => "a counting loop",
            Frame::WhileHead { .. } | Frame::WhileBody { .. } => "a loop",
        })
    }
}
