//! Statements of a firing.

use super::count::written_locals;
use super::position::{ItemCounts, TapePosition};
use super::reason::Reason;
use super::translator::{CountedLoop, Frame, Local, Translator};
use super::value::{Atom, Ref, Term};
use crate::language::core::{
    Access, Binary, DeclaredType, Expr, ExprKind, Function, FunctionId, Layout, Place, Root, Stmt, StmtKind, Type, Value,
    locals_written,
};
use broadloom_scalar::Unroll;
use broadloom_skeleton::cost::dataflow;
use std::rc::Rc;

/// The reachability of the code after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    Open,
    Closed,
}

/// Values and definite assignment of locals at a point of the code.
type Facts = Vec<Fact>;
/// The value of a local, and a flag that is true if it is definitely set.
type Fact = (Option<Value>, bool);

impl<'a> Translator<'a> {
    pub(super) fn function(&self, id: FunctionId) -> &'a Function {
        &self.subject.program.functions[id]
    }

    /// Translates a call with evaluated arguments. Returns the result and the places of the parameters.
    pub(super) fn invoke(&mut self, id: FunctionId, args: Vec<Term>) -> Result<(Term, Vec<Option<Ref>>), Reason> {
        let function = self.function(id);
        let Some(body) = &function.body else { return Err(format!("it calls the native function `{}`", function.name).into()) };
        if self.frames.len() >= dataflow::CALL_DEPTH || self.frames.iter().any(|frame| frame.function == id) {
            return Err(format!("it calls the recursive function `{}`", function.name).into());
        }
        let written = written_locals(body, self, function.locals.len());
        let mut frame = Frame {
            function: id,
            locals: vec![Local::default(); function.locals.len()],
            result: None,
            returned: None,
            left: None,
            written: written.clone(),
        };
        let returns_early = returns_early(body);
        if returns_early {
            let moved = self.moved_by_function(id, &[], 0);
            let hangs = |count: Option<u32>| count.filter(|count| *count == 0);
            self.prepare(ItemCounts { pops: hangs(moved.pops), pushes: hangs(moved.pushes) });
        }
        for (index, arg) in args.into_iter().enumerate() {
            let local = &mut frame.locals[index];
            local.set = true;
            // A parameter is also copied if its argument is a stored field, so that writes to the field do
            // not change it.
            let is_field =
                matches!(&arg, Term::Ref(place) if self.state.values().any(|own| Rc::ptr_eq(&own.store, &place.store)));
            if written[index] || is_field {
                let layout = self.layout_of_term(&arg, &function.locals[index].ty)?;
                let place = self.allocate(&layout)?;
                self.store(&place, &arg)?;
                local.known = known(&arg);
                local.place = Some(place);
            } else {
                local.term = Some(arg);
            }
        }
        if returns_early {
            frame.left = Some(self.b.variable_with(self.b.literal(false)));
            if function.result != Type::Void {
                let scalar = !matches!(function.result, Type::Array(_) | Type::Struct(_));
                if !scalar {
                    return Err(format!("`{}` returns an array from several places", function.name).into());
                }
                frame.result = Some(self.allocate(&Layout::Scalar(function.result.clone()))?);
            }
        }
        self.frames.push(frame);
        let done = if returns_early {
            // A loop with one round, which a return leaves.
            let once = self.b.literal(true);
            self.b.begin_while();
            self.b.begin_while_body(once);
            let end = self.block(body);
            if matches!(end, Ok(Reachability::Open)) {
                self.b.break_loop();
            }
            self.b.end_while();
            end
        } else {
            self.block(body)
        };
        let frame = self.frames.pop();
        done?;
        let Some(frame) = frame else { return Err("its code stands outside of a function".into()) };
        let result = match (&frame.result, frame.returned) {
            (Some(place), _) => self.load(place),
            (None, Some(term)) => term,
            (None, None) => Term::Void,
        };
        let places = frame.locals.into_iter().take(function.params).map(|local| local.place).collect();
        Ok((result, places))
    }

    fn layout_of_term(&self, term: &Term, ty: &Type) -> Result<Layout, Reason> {
        Ok(match term {
            Term::Void => return Err("it uses the value of a function without one".into()),
            Term::Atom(_) | Term::Complex(..) => Layout::Scalar(ty.clone()),
            Term::Ref(place) => place.layout.clone(),
        })
    }

    pub(super) fn block(&mut self, statements: &'a [Stmt]) -> Result<Reachability, Reason> {
        for stmt in statements {
            if self.stmt(stmt)? == Reachability::Closed {
                return Ok(Reachability::Closed);
            }
        }
        Ok(Reachability::Open)
    }

    pub(super) fn stmt(&mut self, stmt: &'a Stmt) -> Result<Reachability, Reason> {
        match &stmt.kind {
            StmtKind::Block(inner) => return self.block(inner),
            StmtKind::Declare(local, declared, value) => self.declare(*local, declared, value.as_ref())?,
            StmtKind::Assign(place, operator, value) => self.assign(place, *operator, value)?,
            StmtKind::Expr(expr) => drop(self.expr(expr)?),
            StmtKind::Push(value) => {
                let value = self.expr(value)?;
                self.push(&value)?;
            }
            StmtKind::Print(..) => return Err("it prints".into()),
            StmtKind::If(..) | StmtKind::Loop(..) => {
                self.nesting += 1;
                let done = match &stmt.kind {
                    StmtKind::If(condition, then, otherwise) => self.branch(condition, then, otherwise.as_deref()),
                    _ => self.repeat(stmt),
                };
                self.nesting -= 1;
                return done;
            }
            StmtKind::Break => {
                self.b.break_loop();
                return Ok(Reachability::Closed);
            }
            StmtKind::Continue => {
                self.b.continue_loop();
                return Ok(Reachability::Closed);
            }
            StmtKind::Return(value) => {
                let value = value.as_ref().map(|value| self.expr(value)).transpose()?;
                let frame = self.frame()?;
                if let Some(left) = frame.left {
                    let place = frame.result.clone();
                    if let (Some(place), Some(value)) = (place, &value) {
                        self.store(&place, value)?;
                    }
                    self.b.set(left, true);
                    self.b.break_loop();
                } else {
                    frame.returned = value;
                }
                return Ok(Reachability::Closed);
            }
            StmtKind::Send(_) => return Err("it sends messages".into()),
            StmtKind::Create(..) | StmtKind::Split(_) | StmtKind::Join(_) | StmtKind::Enqueue(_) => {
                return Err("it changes the graph".into());
            }
        }
        Ok(Reachability::Open)
    }

    fn declare(&mut self, local: usize, declared: &'a DeclaredType, value: Option<&'a Expr>) -> Result<(), Reason> {
        let is_aggregate = matches!(declared.ty, Type::Array(_) | Type::Struct(_));
        let written = self.frame()?.written[local];
        if !is_aggregate
            && !written
            && let Some(value) = value
        {
            let term = self.expr(value)?;
            let entry = &mut self.frame()?.locals[local];
            *entry = Local { known: known(&term), term: Some(term), set: true, ..Local::default() };
            return Ok(());
        }
        let initial = match value {
            Some(Expr { kind: ExprKind::List(items), .. }) if is_aggregate => {
                let layout = self.layout(declared)?;
                let place = self.local_place(local, &layout)?;
                let full = matches!(&layout, Layout::Array(inner, length)
                    if matches!(**inner, Layout::Scalar(_)) && *length as usize == items.len());
                if !full {
                    self.clear(&place);
                }
                self.fill(&place, items)?;
                return self.mark_set(local, None);
            }
            Some(value) => Some(self.expr(value)?),
            None => None,
        };
        let layout = if is_aggregate { self.layout(declared)? } else { Layout::Scalar(declared.ty.clone()) };
        if initial.is_none()
            && let Some(place) = self.shared_array(local, &layout)?
        {
            self.frame()?.locals[local] = Local { place: Some(place), set: true, ..Local::default() };
            return Ok(());
        }
        let place = self.local_place(local, &layout)?;
        match &initial {
            Some(value) => {
                self.store(&place, value)?;
                self.mark_set(local, known(value))
            }
            None if is_aggregate => {
                self.clear(&place);
                self.mark_set(local, None)
            }
            None => {
                let flag = self.b.variable_with(self.b.literal(false));
                let entry = &mut self.frame()?.locals[local];
                entry.flag = Some(flag);
                entry.set = false;
                entry.known = None;
                Ok(())
            }
        }
    }

    fn mark_set(&mut self, local: usize, known: Option<Value>) -> Result<(), Reason> {
        let entry = &mut self.frame()?.locals[local];
        entry.set = true;
        entry.known = known;
        Ok(())
    }

    /// Returns the storage of a local. Allocates it if there is none of this layout.
    fn local_place(&mut self, local: usize, layout: &Layout) -> Result<Ref, Reason> {
        if let Some(place) = &self.frame()?.locals[local].place
            && place.layout == *layout
        {
            return Ok(place.clone());
        }
        let place = self.allocate(layout)?;
        let entry = &mut self.frame()?.locals[local];
        *entry = Local { place: Some(place.clone()), ..Local::default() };
        Ok(place)
    }

    /// Stores the elements of a list, nested lists included.
    fn fill(&mut self, place: &Ref, items: &'a [Expr]) -> Result<(), Reason> {
        if let Layout::Array(_, length) = &place.layout
            && items.len() > *length as usize
        {
            return Err("it gives an array more values than it has".into());
        }
        for (index, item) in items.iter().enumerate() {
            let element = self.element(place, Atom::Known(Value::Int(index as i32)))?;
            match &item.kind {
                ExprKind::List(inner) => self.fill(&element, inner)?,
                _ => {
                    let value = self.expr(item)?;
                    self.store(&element, &value)?;
                }
            }
        }
        Ok(())
    }

    fn assign(&mut self, place: &'a Place, operator: Option<Binary>, value: &'a Expr) -> Result<(), Reason> {
        let part = match place.path.last() {
            Some(Access::Real) => Some(0),
            Some(Access::Imaginary) => Some(1),
            _ => None,
        };
        if let Root::Field(field) = place.root
            && let Some(variable) = self.inductions.get(&field).copied()
        {
            let old = Term::Atom(Atom::ScalarValue(self.b.get(variable)));
            let right = self.expr(value)?;
            let new = match operator {
                None => right,
                Some(operator) => self.binary(operator, old, right)?,
            };
            let Term::Atom(new) = new else { return Err("it stores a value that is no number in a counter".into()) };
            self.b.set(variable, self.made(&new));
            return Ok(());
        }
        if self.is_shared(place) {
            return match operator {
                Some(Binary::Add) => self.add_to_shared(place, |translator| translator.atom(value)),
                _ => Err("it changes an array that rounds of a loop add to".into()),
            };
        }
        if self.is_pushed(place)
            && let [Access::Index(index)] = &place.path[..]
        {
            let index = self.atom(index)?;
            let value = self.expr(value)?;
            let index = self.checked_index(index, 0, i64::from(self.window.push));
            return self.write_item(index, &value);
        }
        let target = self.resolve(place)?;
        let value = match operator {
            None => self.expr(value)?,
            Some(operator) => {
                let old = self.read_resolved(place, &target, part)?;
                let right = self.expr(value)?;
                self.binary(operator, old, right)?
            }
        };
        self.write_resolved(place, &target, part, &value)
    }

    /// Writes a place whose indices were evaluated.
    pub(super) fn write_resolved(
        &mut self,
        place: &Place,
        target: &Ref,
        part: Option<usize>,
        value: &Term,
    ) -> Result<(), Reason> {
        match (part, value) {
            (Some(part), Term::Atom(value)) => {
                // Setting one part of an unset complex local: the other part is 0.
                if let Root::Local(local) = place.root
                    && place.path.len() == 1
                    && !self.frame()?.locals[local].set
                {
                    let flag = self.frame()?.locals[local].flag;
                    let zero = Atom::Known(Value::Float(0.0));
                    match flag {
                        Some(flag) => {
                            let unset = self.b.not(self.b.get(flag));
                            self.b.begin_if(unset);
                            let stored = self.store_part(target, 1 - part, &zero);
                            self.b.end_if();
                            stored?;
                        }
                        None => self.store_part(target, 1 - part, &zero)?,
                    }
                }
                self.store_part(target, part, value)?;
            }
            _ => self.store(target, value)?,
        }
        if let Root::Local(local) = place.root {
            let whole = place.path.is_empty();
            let flag = self.frame()?.locals[local].flag;
            if let Some(flag) = flag {
                self.b.set(flag, true);
            }
            let entry = &mut self.frame()?.locals[local];
            entry.set = true;
            entry.known = if whole { known(value) } else { None };
        }
        Ok(())
    }

    fn facts(&mut self) -> Result<Facts, Reason> {
        Ok(self.frame()?.locals.iter().map(|local| (local.known.clone(), local.set)).collect())
    }

    fn restore(&mut self, facts: &Facts) -> Result<(), Reason> {
        for (local, (known, set)) in self.frame()?.locals.iter_mut().zip(facts) {
            local.known = known.clone();
            local.set = *set;
        }
        Ok(())
    }

    fn branch(&mut self, condition: &'a Expr, then: &'a Stmt, otherwise: Option<&'a Stmt>) -> Result<Reachability, Reason> {
        let condition = self.atom(condition)?;
        if let Atom::Known(Value::Boolean(taken)) = condition {
            return match (taken, otherwise) {
                (true, _) => self.stmt(then),
                (false, Some(otherwise)) => self.stmt(otherwise),
                (false, None) => Ok(Reachability::Open),
            };
        }
        let no = otherwise.map_or(ItemCounts::NOTHING, |stmt| self.moved(stmt));
        let yes = self.moved(then);
        let leaves = self.leaves(then) || otherwise.is_some_and(|stmt| self.leaves(stmt));
        let differ = |a: Option<u32>, b: Option<u32>| if a == b && !(leaves && a != Some(0)) { a } else { None };
        self.prepare(ItemCounts { pops: differ(yes.pops, no.pops), pushes: differ(yes.pushes, no.pushes) });
        let (before, heads) = (self.facts()?, (self.popped.clone(), self.pushed.clone()));
        let condition = self.made(&condition);
        self.b.begin_if(condition);
        let first = self.stmt(then);
        let (after_then, heads_then) = (self.facts()?, (self.popped.clone(), self.pushed.clone()));
        self.restore(&before)?;
        (self.popped, self.pushed) = heads.clone();
        self.b.begin_else();
        let second = otherwise.map_or(Ok(Reachability::Open), |stmt| self.stmt(stmt));
        self.b.end_if();
        let (first, second) = (first?, second?);
        match (first, second) {
            (Reachability::Closed, Reachability::Closed) => return Ok(Reachability::Closed),
            (Reachability::Open, Reachability::Closed) => {
                self.restore(&after_then)?;
                (self.popped, self.pushed) = heads_then;
            }
            (Reachability::Closed, Reachability::Open) => {}
            (Reachability::Open, Reachability::Open) => {
                let after_else = self.facts()?;
                let merge = |(a, b): (&Fact, &Fact)| (a.0.clone().filter(|_| a.0 == b.0), a.1 && b.1);
                let merged = after_then.iter().zip(&after_else).map(merge).collect();
                self.restore(&merged)?;
                // Both branches moved the same number of items. A position computed inside of one branch is
                // not available after it.
                self.popped = self.same_head(&heads_then.0, &heads.0, yes.pops);
                self.pushed = self.same_head(&heads_then.1, &heads.1, yes.pushes);
            }
        }
        Ok(Reachability::Open)
    }

    /// Returns the position after a condition whose branches moved the same number of items.
    pub(super) fn same_head(&self, inside: &TapePosition, before: &TapePosition, moved: Option<u32>) -> TapePosition {
        match (before, moved) {
            (TapePosition::Fixed(_), Some(moved)) => self.advanced(before, moved as i32),
            _ => inside.clone(),
        }
    }

    /// Translates a loop. It becomes a counted loop if only its step changes its counter.
    fn repeat(&mut self, stmt: &'a Stmt) -> Result<Reachability, Reason> {
        let StmtKind::Loop(condition, step, body, tested_first) = &stmt.kind else { return Ok(Reachability::Open) };
        let moved = self.moved(stmt);
        self.prepare(moved);
        let count = self.frame()?.locals.len();
        let written = written_locals(std::slice::from_ref(stmt), self, count);
        let rounds = self.rounds(stmt);
        let leaves = self.leaves(body);
        let before = self.facts()?;
        for (local, written) in self.frame()?.locals.iter_mut().zip(&written) {
            if *written {
                local.known = None;
            }
        }
        let entered = self.facts()?;
        let heads = (self.popped.clone(), self.pushed.clone());
        if let Some(counted) = counted_loop(&before, rounds).filter(|_| !continues(body)) {
            let CountedLoop { local, start, stride, count } = counted;
            let outside = self.enclosing_rounds;
            self.enclosing_rounds = outside.saturating_mul(u64::from(count.max(1)));
            if self.enclosing_rounds > dataflow::COUNTED_ROUNDS {
                return Err(format!("its loops take more than {} rounds", dataflow::COUNTED_ROUNDS).into());
            }
            if self.is_split(stmt) {
                let end = self.one_round(body, counted);
                self.enclosing_rounds = outside;
                return end;
            }
            if !leaves && let Some(shape) = self.shared_shape(body, count) {
                let end = self.shared_loop(body, &shape, counted);
                self.enclosing_rounds = outside;
                return end;
            }
            let body_moved = self.moved(body);
            // A zero step needs no code. The counter counts rounds if positions depend on it.
            let end = start.wrapping_add((count as i32).wrapping_mul(stride));
            let counter = self.b.begin_for(self.b.literal(start), self.b.literal(end), stride, Unroll::Auto);
            let per_round = |translator: &Self, head: &TapePosition, moved: Option<u32>| match (head, moved) {
                (TapePosition::Fixed(atom), Some(moved @ 1..)) => {
                    let b = translator.b;
                    let round = b.sub(counter, start);
                    let round = if stride == 1 { round } else { b.div(round, stride) };
                    TapePosition::Fixed(Atom::ScalarValue(b.add(b.mul(round, moved as i32), translator.made(atom))))
                }
                _ => head.clone(),
            };
            self.popped = per_round(self, &heads.0, body_moved.pops);
            self.pushed = per_round(self, &heads.1, body_moved.pushes);
            let variable = self.frame()?.locals[local].place.clone();
            if let (true, Some(place)) = (leaves, &variable) {
                self.store(place, &Term::Atom(Atom::ScalarValue(counter)))?;
            }
            let entry = &mut self.frame()?.locals[local];
            let hidden = std::mem::replace(
                entry,
                Local { term: Some(Term::Atom(Atom::ScalarValue(counter))), set: true, ..Local::default() },
            );
            let inner = self.stmt(body);
            self.enclosing_rounds = outside;
            self.frame()?.locals[local] = hidden;
            if let (true, Some(place), Ok(Reachability::Open)) = (leaves, &variable, &inner) {
                let next = self.b.add(counter, stride);
                self.store(place, &Term::Atom(Atom::ScalarValue(next)))?;
            }
            self.b.end_for();
            inner?;
            let after = if count > 0 && !leaves { self.facts()? } else { entered.clone() };
            let merged: Facts = entered.iter().zip(&after).map(|(a, b)| (a.0.clone(), b.1)).collect();
            self.restore(&merged)?;
            let moved_in = |translator: &Self, head: &TapePosition, moved: Option<u32>| match (head, moved) {
                (TapePosition::Fixed(_), Some(moved)) => translator.advanced(head, (moved * count) as i32),
                _ => head.clone(),
            };
            self.popped = moved_in(self, &heads.0, body_moved.pops);
            self.pushed = moved_in(self, &heads.1, body_moved.pushes);
            if !leaves && let Some(place) = variable {
                self.store(&place, &Term::Atom(Atom::Known(Value::Int(end))))?;
                let entry = &mut self.frame()?.locals[local];
                entry.known = Some(Value::Int(end));
                entry.set = true;
            }
            self.leave_outer_loop()?;
            return Ok(Reachability::Open);
        }
        // A loop with a condition. The step runs before the condition in every round except the first.
        let first = self.b.variable_with(self.b.literal(true));
        self.b.begin_while();
        if let Some(step) = step {
            let again = self.b.not(self.b.get(first));
            self.b.begin_if(again);
            let stepped = self.stmt(step);
            self.b.end_if();
            stepped?;
            self.restore(&entered)?;
        }
        let mut condition = match condition {
            Some(condition) if *tested_first => self.atom(condition)?,
            Some(condition) => {
                // The condition is not tested before the first round.
                let result = self.b.variable_with(self.b.literal(true));
                let again = self.b.not(self.b.get(first));
                self.b.begin_if(again);
                let value = self.atom(condition);
                if let Ok(value) = &value {
                    self.b.set(result, self.made(value));
                }
                self.b.end_if();
                value?;
                Atom::ScalarValue(self.b.get(result))
            }
            None => Atom::Known(Value::Boolean(true)),
        };
        if let Atom::Known(_) = condition {
            condition = Atom::ScalarValue(self.made(&condition));
        }
        let condition = self.made(&condition);
        let bounded = self.b.lt(self.b.get(self.looped), dataflow::CONDITIONAL_ROUNDS);
        self.b.begin_while_body(self.b.and(condition, bounded));
        self.b.set(first, false);
        self.b.set(self.looped, self.b.add(self.b.get(self.looped), 1));
        let inner = self.stmt(body);
        self.b.end_while();
        inner?;
        self.fail_if(self.b.ge(self.b.get(self.looped), dataflow::CONDITIONAL_ROUNDS));
        let mut after = entered.clone();
        for (fact, before) in after.iter_mut().zip(&before) {
            fact.1 = before.1;
        }
        self.restore(&after)?;
        if matches!(heads.0, TapePosition::Fixed(_)) {
            self.popped = heads.0;
        }
        if matches!(heads.1, TapePosition::Fixed(_)) {
            self.pushed = heads.1;
        }
        self.leave_outer_loop()?;
        Ok(Reachability::Open)
    }

    /// Leaves the enclosing loop if the function was left in an inner loop.
    fn leave_outer_loop(&mut self) -> Result<(), Reason> {
        if let Some(left) = self.frame()?.left {
            let gone = self.b.get(left);
            self.b.begin_if(gone);
            self.b.break_loop();
            self.b.end_if();
        }
        Ok(())
    }

    /// Returns the counter, stride and number of rounds of a loop. The counter must start and end at known
    /// values, and only its step may change it.
    pub(super) fn rounds(&mut self, stmt: &'a Stmt) -> Option<(usize, i32, u32)> {
        let StmtKind::Loop(Some(condition), Some(step), body, true) = &stmt.kind else { return None };
        let (local, stride) = step_of(step)?;
        let mut written = vec![];
        locals_written(body, &self.subject.program.functions, &mut written);
        if written.contains(&local) {
            return None;
        }
        let ExprKind::Binary(operator, Type::Int, left, right) = &condition.kind else { return None };
        let reads = |expr: &Expr| matches!(&expr.kind, ExprKind::Read(place) if place.root == Root::Local(local) && place.path.is_empty());
        let (operator, bound) = if reads(left) {
            (*operator, right)
        } else if reads(right) {
            (mirrored(*operator)?, left)
        } else {
            return None;
        };
        let (Value::Int(start), Value::Int(bound)) = (self.frames.last()?.locals[local].known.clone()?, self.known_value(bound)?)
        else {
            return None;
        };
        let (start, bound, by) = (i64::from(start), i64::from(bound), i64::from(stride));
        let rounds = match (operator, by) {
            (Binary::Less, 1..) => (bound - start).max(0).div_euclid(by) + i64::from((bound - start).max(0).rem_euclid(by) != 0),
            (Binary::LessEqual, 1..) if bound < start => 0,
            (Binary::LessEqual, 1..) => (bound - start) / by + 1,
            (Binary::Greater, ..=-1) => {
                (start - bound).max(0).div_euclid(-by) + i64::from((start - bound).max(0).rem_euclid(-by) != 0)
            }
            (Binary::GreaterEqual, ..=-1) if bound > start => 0,
            (Binary::GreaterEqual, ..=-1) => (start - bound) / -by + 1,
            (Binary::NotEqual, _) if (bound - start) % by == 0 && (bound - start) / by >= 0 => (bound - start) / by,
            _ => return None,
        };
        // Counters that wrap are not supported.
        i32::try_from(start + rounds * by).ok()?;
        Some((local, stride, u32::try_from(rounds).ok()?))
    }
}

/// Returns the counter of a loop if its first value is known.
fn counted_loop(before: &Facts, rounds: Option<(usize, i32, u32)>) -> Option<CountedLoop> {
    let (local, stride, count) = rounds?;
    let Some(Value::Int(start)) = before[local].0 else { return None };
    Some(CountedLoop { local, start, stride, count })
}

/// Returns whether a loop's body contains `continue`.
fn continues(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Continue => true,
        StmtKind::Block(inner) => inner.iter().any(continues),
        StmtKind::If(_, then, otherwise) => continues(then) || otherwise.iter().any(|stmt| continues(stmt)),
        _ => false,
    }
}

/// Returns the comparison with exchanged operands.
fn mirrored(operator: Binary) -> Option<Binary> {
    Some(match operator {
        Binary::Less => Binary::Greater,
        Binary::LessEqual => Binary::GreaterEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterEqual => Binary::LessEqual,
        Binary::NotEqual => Binary::NotEqual,
        _ => return None,
    })
}

/// Returns the local that a step changes by a constant, and the constant.
fn step_of(step: &Stmt) -> Option<(usize, i32)> {
    let plain = |place: &Place| match (place.root, place.path.is_empty(), &place.ty) {
        (Root::Local(local), true, Type::Int) => Some(local),
        _ => None,
    };
    let (local, by) = match &step.kind {
        StmtKind::Expr(Expr { kind: ExprKind::Step(place, by, _), .. }) => (plain(place)?, *by),
        StmtKind::Assign(place, Some(operator), Expr { kind: ExprKind::Const(Value::Int(by)), .. }) => {
            let by = match operator {
                Binary::Add => *by,
                Binary::Subtract => by.checked_neg()?,
                _ => return None,
            };
            (plain(place)?, by)
        }
        StmtKind::Assign(place, None, Expr { kind: ExprKind::Binary(operator, _, left, right), .. }) => {
            let local = plain(place)?;
            let ExprKind::Read(read) = &left.kind else { return None };
            let ExprKind::Const(Value::Int(by)) = right.kind else { return None };
            if plain(read)? != local {
                return None;
            }
            match operator {
                Binary::Add => (local, by),
                Binary::Subtract => (local, by.checked_neg()?),
                _ => return None,
            }
        }
        StmtKind::Block(inner) if inner.len() == 1 => return step_of(&inner[0]),
        _ => return None,
    };
    (by != 0).then_some((local, by))
}

/// Returns the value of a constant term.
fn known(term: &Term) -> Option<Value> {
    match term {
        Term::Atom(Atom::Known(value)) => Some(value.clone()),
        _ => None,
    }
}

/// Returns whether a function returns before its end.
fn returns_early(body: &[Stmt]) -> bool {
    fn inside(stmt: &Stmt, at_end: bool) -> bool {
        match &stmt.kind {
            StmtKind::Return(_) => !at_end,
            StmtKind::Block(inner) => block(inner, at_end),
            StmtKind::If(_, then, otherwise) => inside(then, false) || otherwise.iter().any(|stmt| inside(stmt, false)),
            StmtKind::Loop(_, _, body, _) => inside(body, false),
            _ => false,
        }
    }
    fn block(body: &[Stmt], at_end: bool) -> bool {
        body.iter().enumerate().any(|(index, stmt)| inside(stmt, at_end && index + 1 == body.len()))
    }
    block(body, true)
}
