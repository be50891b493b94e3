//! Counts the items that code pops and pushes, and moves the positions on the tapes.

use super::position::{ItemCounts, TapePosition};
use super::reason::Reason;
use super::translator::Translator;
use super::value::{Atom, Term};
use crate::language::core::{Access, Expr, ExprKind, FunctionId, Place, Root, Stmt, StmtKind, Value, locals_written};
use broadloom_scalar::Type as ScalarType;

/// The possible exits of a statement.
#[derive(Clone, Copy, Debug, Default)]
struct StatementExits {
    jumps: bool,
    returns: bool,
}

impl<'a> Translator<'a> {
    /// Counts the items that a statement moves.
    pub(super) fn moved(&mut self, stmt: &'a Stmt) -> ItemCounts {
        self.followed(stmt).0
    }

    /// Analyses a statement with the constants that are known here.
    fn followed(&mut self, stmt: &'a Stmt) -> (ItemCounts, StatementExits) {
        let kept: Option<Vec<Option<Value>>> =
            self.frames.last().map(|frame| frame.locals.iter().map(|local| local.known.clone()).collect());
        let found = self.moved_by_stmt(stmt, 0);
        if let (Some(frame), Some(kept)) = (self.frames.last_mut(), kept) {
            frame.locals.iter_mut().zip(kept).for_each(|(local, known)| local.known = known);
        }
        found
    }

    /// Records the value of a local during the analysis.
    fn note(&mut self, local: usize, value: Option<Value>) {
        if let Some(entry) = self.frames.last_mut().and_then(|frame| frame.locals.get_mut(local)) {
            entry.known = value;
        }
    }

    /// Drops the values of locals that a statement writes.
    fn forget(&mut self, stmt: &'a Stmt) {
        let count = self.frames.last().map_or(0, |frame| frame.locals.len());
        let written = written_locals(std::slice::from_ref(stmt), self, count);
        written.into_iter().enumerate().filter(|(_, written)| *written).for_each(|(local, _)| self.note(local, None));
    }

    /// Returns whether a statement can leave the enclosing loop or function.
    pub(super) fn leaves(&mut self, stmt: &'a Stmt) -> bool {
        let exits = self.followed(stmt).1;
        exits.jumps || exits.returns
    }

    fn moved_by_stmt(&mut self, stmt: &'a Stmt, depth: u32) -> (ItemCounts, StatementExits) {
        let none = StatementExits::default();
        match &stmt.kind {
            StmtKind::Block(inner) => self.moved_by_block(inner, depth),
            StmtKind::Declare(local, _, value) => {
                let moved = value.as_ref().map_or(ItemCounts::NOTHING, |value| self.moved_by(value, depth));
                let known = value.as_ref().and_then(|value| self.known_value(value));
                self.note(*local, known);
                (moved, none)
            }
            StmtKind::Assign(place, operator, value) => {
                let moved = self.moved_by_place(place, depth).add(self.moved_by(value, depth));
                if let Root::Local(local) = place.root {
                    let known = self.known_value(value).filter(|_| operator.is_none() && place.path.is_empty());
                    self.note(local, known);
                }
                (moved, none)
            }
            StmtKind::Expr(value) => {
                let moved = self.moved_by(value, depth);
                self.forget(stmt);
                (moved, none)
            }
            StmtKind::Push(value) => (self.moved_by(value, depth).add(ItemCounts { pops: Some(0), pushes: Some(1) }), none),
            StmtKind::If(condition, then, otherwise) => {
                let moved = self.moved_by(condition, depth);
                if let Some(taken) = self.known_truth(condition) {
                    let branch = if taken { Some(then) } else { otherwise.as_ref() };
                    let (inner, exits) = branch.map_or((ItemCounts::NOTHING, none), |stmt| self.moved_by_stmt(stmt, depth));
                    return (moved.add(inner), exits);
                }
                // Neither branch sees the writes of the other.
                self.forget(then);
                let (yes, left) = self.moved_by_stmt(then, depth);
                self.forget(then);
                let (no, right) = match otherwise {
                    Some(stmt) => self.moved_by_stmt(stmt, depth),
                    None => (ItemCounts::NOTHING, none),
                };
                self.forget(stmt);
                let exits = StatementExits { jumps: left.jumps || right.jumps, returns: left.returns || right.returns };
                (moved.add(yes.or(no)), exits)
            }
            StmtKind::Loop(condition, step, body, tested_first) => {
                let rounds = self.rounds(stmt).map(|counted| counted.2);
                self.forget(stmt);
                let (mut moved, exits) = self.moved_by_stmt(body, depth);
                self.forget(stmt);
                if let Some(step) = step {
                    moved = moved.add(self.moved_by_stmt(step, depth).0);
                }
                let mut tests = condition.as_ref().map_or(ItemCounts::NOTHING, |condition| self.moved_by(condition, depth));
                if tests != ItemCounts::NOTHING {
                    tests = ItemCounts { pops: None, pushes: None };
                }
                let moved = moved.add(tests);
                let rounds = rounds.filter(|_| !exits.jumps && !exits.returns && *tested_first);
                (moved.times(rounds), StatementExits { jumps: false, returns: exits.returns })
            }
            StmtKind::Break | StmtKind::Continue => (ItemCounts::NOTHING, StatementExits { jumps: true, returns: false }),
            StmtKind::Return(value) => {
                let moved = value.as_ref().map_or(ItemCounts::NOTHING, |value| self.moved_by(value, depth));
                (moved, StatementExits { jumps: false, returns: true })
            }
            StmtKind::Print(..)
            | StmtKind::Send(_)
            | StmtKind::Create(..)
            | StmtKind::Split(_)
            | StmtKind::Join(_)
            | StmtKind::Enqueue(_) => (ItemCounts::NOTHING, none),
        }
    }

    fn moved_by_block(&mut self, statements: &'a [Stmt], depth: u32) -> (ItemCounts, StatementExits) {
        let (mut moved, mut exits) = (ItemCounts::NOTHING, StatementExits::default());
        for stmt in statements {
            let (own, found) = self.moved_by_stmt(stmt, depth);
            // Statements after a possible exit may or may not run.
            if (exits.jumps || exits.returns) && own != ItemCounts::NOTHING {
                moved = ItemCounts { pops: None, pushes: None };
            }
            moved = moved.add(own);
            exits = StatementExits { jumps: exits.jumps || found.jumps, returns: exits.returns || found.returns };
        }
        (moved, exits)
    }

    pub(super) fn moved_by_function(&mut self, id: FunctionId, args: &[Option<Value>], depth: u32) -> ItemCounts {
        if depth > 8 {
            return ItemCounts { pops: None, pushes: None };
        }
        let program = self.subject.program;
        let function = &program.functions[id];
        // The callee has its own locals.
        let hidden = self.frames.last_mut().map(|frame| std::mem::take(&mut frame.locals));
        if let Some(frame) = self.frames.last_mut() {
            frame.locals = vec![Default::default(); function.locals.len()];
            frame.locals.iter_mut().zip(args).for_each(|(local, known)| local.known = known.clone());
        }
        let (moved, exits) = function
            .body
            .as_ref()
            .map_or((ItemCounts::NOTHING, StatementExits::default()), |body| self.moved_by_block(body, depth + 1));
        let _ = exits;
        if let (Some(frame), Some(hidden)) = (self.frames.last_mut(), hidden) {
            frame.locals = hidden;
        }
        moved
    }

    fn moved_by_place(&mut self, place: &'a Place, depth: u32) -> ItemCounts {
        let indices = place.path.iter().filter_map(|access| match access {
            Access::Index(index) => Some(index),
            Access::Member(_) | Access::Real | Access::Imaginary => None,
        });
        indices.fold(ItemCounts::NOTHING, |moved, index| moved.add(self.moved_by(index, depth)))
    }

    /// Counts the items that an expression moves.
    pub(super) fn moved_by(&mut self, expr: &'a Expr, depth: u32) -> ItemCounts {
        let mut all =
            |exprs: &[&'a Expr]| exprs.iter().fold(ItemCounts::NOTHING, |sum, expr| sum.add(self.moved_by(expr, depth)));
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Random | ExprKind::Iter => ItemCounts::NOTHING,
            ExprKind::Pop => ItemCounts { pops: Some(1), pushes: Some(0) },
            ExprKind::Read(place) | ExprKind::Step(place, ..) => self.moved_by_place(place, depth),
            ExprKind::Part(inner, access) => match &**access {
                Access::Index(index) => all(&[inner, index]),
                Access::Member(_) | Access::Real | Access::Imaginary => all(&[inner]),
            },
            ExprKind::Convert(inner)
            | ExprKind::Negate(inner)
            | ExprKind::Not(inner)
            | ExprKind::Complement(inner)
            | ExprKind::Peek(inner) => all(&[inner]),
            ExprKind::Binary(_, _, left, right) | ExprKind::Concat(left, right) | ExprKind::FileArray(left, right) => {
                all(&[left, right])
            }
            ExprKind::And(left, right) | ExprKind::Or(left, right) => {
                let right = all(&[right]).or(ItemCounts::NOTHING);
                all(&[left]).add(right)
            }
            ExprKind::Choose(condition, yes, no) => {
                let either = all(&[yes]).or(all(&[no]));
                all(&[condition]).add(either)
            }
            ExprKind::Math(_, args) | ExprKind::List(args) => all(&args.iter().collect::<Vec<_>>()),
            ExprKind::Call(id, args) => {
                let moved = all(&args.iter().collect::<Vec<_>>());
                let known: Vec<Option<Value>> = args.iter().map(|arg| self.known_value(arg)).collect();
                moved.add(self.moved_by_function(*id, &known, depth))
            }
        }
    }

    /// Turns positions into variables if the items that a statement moves are not known before it runs.
    pub(super) fn prepare(&mut self, moved: ItemCounts) {
        if moved.pops.is_none() {
            let head = self.popped.clone();
            self.popped = self.counted(head);
        }
        if moved.pushes.is_none() {
            let head = self.pushed.clone();
            self.pushed = self.counted(head);
        }
    }

    fn counted(&self, head: TapePosition) -> TapePosition {
        match head {
            TapePosition::Counted(variable) => TapePosition::Counted(variable),
            TapePosition::Fixed(atom) => TapePosition::Counted(self.b.variable_with(self.made(&atom))),
        }
    }

    pub(super) fn position(&self, head: &TapePosition) -> Atom {
        match head {
            TapePosition::Fixed(atom) => atom.clone(),
            TapePosition::Counted(variable) => Atom::ScalarValue(self.b.get(*variable)),
        }
    }

    /// Returns a position advanced by a number of items.
    pub(super) fn advanced(&self, head: &TapePosition, by: i32) -> TapePosition {
        match head {
            TapePosition::Fixed(Atom::Known(Value::Int(at))) => TapePosition::Fixed(Atom::Known(Value::Int(at.wrapping_add(by)))),
            TapePosition::Fixed(atom) => TapePosition::Fixed(Atom::ScalarValue(self.b.add(self.made(atom), by))),
            TapePosition::Counted(variable) => {
                self.b.set(*variable, self.b.add(self.b.get(*variable), by));
                TapePosition::Counted(*variable)
            }
        }
    }

    pub(super) fn pop(&mut self) -> Result<Term, Reason> {
        let head = self.popped.clone();
        let at = self.position(&head);
        let at = self.checked_index(at, 0, i64::from(self.window.pop));
        self.popped = self.advanced(&head, 1);
        self.read_item(at)
    }

    pub(super) fn peek(&mut self, index: Atom) -> Result<Term, Reason> {
        let at = self.position(&self.popped.clone());
        // The index itself must not be negative. The sum is checked against the window.
        if let Atom::ScalarValue(value) = &index
            && self.b.range(*value).0 < 0
        {
            let negative = self.b.lt(*value, 0);
            self.fail_if(negative);
        }
        if let Atom::Known(Value::Int(..0)) = index {
            self.b.set(self.bad, true);
        }
        let sum = match (&at, &index) {
            (Atom::Known(Value::Int(at)), Atom::Known(Value::Int(index))) => Atom::Known(Value::Int(at.saturating_add(*index))),
            (Atom::Known(Value::Int(0)), _) => index,
            _ => {
                // The sum is computed in 64 bits, because the sum of two integers may wrap.
                let wide = |value| self.b.convert(value, ScalarType::I64);
                let (at, index) = (self.made(&at), self.made(&index));
                let ((low, high), (least, most)) = (self.b.range(at), self.b.range(index));
                if low + least >= i128::from(i32::MIN) && high + most <= i128::from(i32::MAX) {
                    Atom::ScalarValue(self.b.add(at, index))
                } else {
                    let sum = self.b.add(wide(at), wide(index));
                    let sum = self.b.max(self.b.min(sum, i64::from(i32::MAX)), -1i64);
                    Atom::ScalarValue(self.b.convert(sum, ScalarType::I32))
                }
            }
        };
        let at = self.checked_index(sum, 0, i64::from(self.window.peek));
        self.read_item(at)
    }

    pub(super) fn push(&mut self, value: &Term) -> Result<(), Reason> {
        let head = self.pushed.clone();
        let at = self.position(&head);
        let at = self.checked_index(at, 0, i64::from(self.window.push));
        self.pushed = self.advanced(&head, 1);
        self.write_item(at, value)
    }

    /// Checks that the firing popped and pushed the declared numbers of items.
    pub(super) fn check_rates(&mut self) -> Result<(), Reason> {
        for (head, rate) in [(self.popped.clone(), self.window.pop), (self.pushed.clone(), self.window.push)] {
            match head {
                TapePosition::Fixed(Atom::Known(Value::Int(count))) if i64::from(count) == i64::from(rate) => {}
                TapePosition::Fixed(Atom::Known(_)) => return Err("its firings do not keep their declared rates".into()),
                head => {
                    let count = self.made(&self.position(&head));
                    let differs = self.b.ne(count, rate as i32);
                    self.fail_if(differs);
                }
            }
        }
        Ok(())
    }
}

/// Returns a flag for each local: true if the statements write it after its declaration.
pub(super) fn written_locals(body: &[Stmt], translator: &Translator<'_>, count: usize) -> Vec<bool> {
    let mut written = vec![];
    body.iter().for_each(|stmt| locals_written(stmt, &translator.subject.program.functions, &mut written));
    let mut flags = vec![false; count];
    written.into_iter().for_each(|local| flags[local] = true);
    flags
}
