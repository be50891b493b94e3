//! Firings that are split along their loop, so that threads share one firing.
//!
//! A filter such as a stage of a Fourier transform has few firings with many independent rounds:
//!
//! ```text
//! for (i …) { out[i] = …; out[i + n / 2] = …; }    or    for (i …) { …; push(…); }
//! for (i …) { push(out[i]); pop(); }                      for (i …) pop();
//! ```
//!
//! The code of one round recomputes the statements before the loop, and pushes its items at their final
//! positions. Every position of the array must be written once. This is checked for all rounds.

use super::cooperate::main_shape;
use super::position::TapePosition;
use super::reason::Reason;
use super::stmt::Reachability;
use super::translator::{CountedLoop, Local, Split, Translator};
use super::value::{Atom, Term};
use crate::language::core::{Access, Expr, ExprKind, Place, Program, Root, Stmt, StmtKind, Value};
use broadloom_scalar::Value as ScalarValue;
use broadloom_skeleton::cost::dataflow;

/// Lists the statements of a body, with nested blocks flattened.
pub(super) fn flat<'s>(body: &'s [Stmt], into: &mut Vec<&'s Stmt>) {
    for stmt in body {
        match &stmt.kind {
            StmtKind::Block(inner) => flat(inner, into),
            _ => into.push(stmt),
        }
    }
}

fn is_pop(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::Expr(Expr { kind: ExprKind::Pop, .. }))
}

/// Returns the array whose elements a loop pushes in order, besides its pops.
pub(super) fn pushed_array(body: &Stmt, step: Option<&Stmt>) -> Option<usize> {
    let mut statements = vec![];
    flat(std::slice::from_ref(body), &mut statements);
    let counter = match &step?.kind {
        StmtKind::Expr(Expr { kind: ExprKind::Step(place, 1, _), .. }) if place.path.is_empty() => place.root,
        _ => return None,
    };
    let mut array = None;
    for stmt in statements {
        match &stmt.kind {
            StmtKind::Push(Expr { kind: ExprKind::Read(place), .. }) if array.is_none() => {
                let (Root::Local(local), [Access::Index(index)]) = (place.root, &place.path[..]) else { return None };
                let ExprKind::Read(at) = &index.kind else { return None };
                array = (at.root == counter && at.path.is_empty()).then_some(local);
                array?;
            }
            _ if is_pop(stmt) => {}
            _ => return None,
        }
    }
    array
}

/// Finds the loop along which firings can be split.
pub(super) fn find<'a>(program: &'a Program, body: &'a [Stmt], round: ScalarValue) -> Option<Split<'a>> {
    let mut statements = vec![];
    flat(body, &mut statements);
    let mut main: Option<(&Stmt, Vec<usize>, bool)> = None;
    let mut emit: Option<(usize, &Stmt)> = None;
    for stmt in statements {
        match &stmt.kind {
            StmtKind::Declare(..) | StmtKind::Assign(..) if main.is_none() => {}
            StmtKind::Declare(_, _, None) => {}
            // A counter that is reset for the next loop.
            StmtKind::Declare(_, _, Some(Expr { kind: ExprKind::Const(_), .. })) => {}
            StmtKind::Assign(Place { root: Root::Local(_), path, .. }, None, Expr { kind: ExprKind::Const(_), .. })
                if path.is_empty() => {}
            _ if is_pop(stmt) => {}
            StmtKind::Loop(_, step, body, _) => {
                let mut inner = vec![];
                flat(std::slice::from_ref(&**body), &mut inner);
                if !inner.is_empty() && inner.iter().all(|stmt| is_pop(stmt)) {
                    continue;
                }
                if let (Some(array), Some(_), None) = (pushed_array(body, step.as_deref()), &main, emit) {
                    emit = Some((array, stmt));
                    continue;
                }
                if main.is_some() {
                    return None;
                }
                let (outs, pushes) = main_shape(program, body)?;
                main = Some((stmt, outs, pushes));
            }
            _ => return None,
        }
    }
    let (main, outs, pushes) = main?;
    let out = match (&outs[..], pushes, emit) {
        ([], true, None) => None,
        ([array], false, Some((pushed, stmt))) if *array == pushed => Some((*array, stmt)),
        _ => return None,
    };
    Some(Split { main, out, round })
}

impl<'a> Translator<'a> {
    /// Returns whether this is the loop that is split.
    pub(super) fn is_split(&self, stmt: &'a Stmt) -> bool {
        self.rounds.is_some_and(|split| std::ptr::eq(split.main, stmt))
    }

    /// Returns whether a place is an element of the array that is pushed directly.
    pub(super) fn is_pushed(&self, place: &Place) -> bool {
        let array = self.rounds.and_then(|split| split.out).filter(|_| self.in_round && self.frames.len() == 1);
        array.is_some_and(|(array, _)| place.root == Root::Local(array))
    }

    /// Writes one round of the loop. The code ends after it.
    pub(super) fn one_round(&mut self, body: &'a Stmt, counted: CountedLoop) -> Result<Reachability, Reason> {
        let CountedLoop { local, start, stride, count } = counted;
        let Some(split) = self.rounds else { return Err("it has no loop to split".into()) };
        let moved = self.moved(body);
        let (Some(pops), Some(pushes)) = (moved.pops, moved.pushes) else { return Err("its rounds differ".into()) };
        if !(2..=dataflow::INDEPENDENT_ROUNDS).contains(&count) || self.nesting != 1 || self.frames.len() != 1 {
            return Err("its loop has too few rounds, or too many".into());
        }
        let before = |head: &TapePosition| matches!(head, TapePosition::Fixed(Atom::Known(Value::Int(0))));
        if !before(&self.pushed) || !matches!(self.popped, TapePosition::Fixed(_)) {
            return Err("it pushes before its loop".into());
        }
        match split.out {
            None if u64::from(pushes) * u64::from(count) == u64::from(self.window.push) => {}
            Some((array, emit)) if pushes == 0 => {
                self.check_emit(emit)?;
                self.check_cover(body, array, counted)?;
            }
            _ => return Err("its loop does not push everything".into()),
        }
        let b = self.b;
        let round = b.assume(split.round, 0, i128::from(count) - 1);
        let counter = b.add(b.mul(round, stride), start);
        let popped = self.made(&self.position(&self.popped.clone()));
        self.popped = TapePosition::Fixed(Atom::ScalarValue(b.add(b.mul(round, pops as i32), popped)));
        self.pushed = TapePosition::Fixed(Atom::ScalarValue(b.mul(round, pushes as i32)));
        self.frame()?.locals[local] = Local { term: Some(Term::Atom(Atom::ScalarValue(counter))), set: true, ..Local::default() };
        self.in_round = true;
        let done = self.stmt(body);
        self.in_round = false;
        done?;
        self.stopped = true;
        self.count = count;
        Ok(Reachability::Closed)
    }

    /// Checks that a loop pushes the number of elements that a firing pushes, from the first on.
    fn check_emit(&mut self, emit: &'a Stmt) -> Result<(), Reason> {
        let StmtKind::Loop(_, Some(step), _, _) = &emit.kind else { return Err("it pushes out of order".into()) };
        let StmtKind::Expr(Expr { kind: ExprKind::Step(place, 1, _), .. }) = &step.kind else {
            return Err("it pushes out of order".into());
        };
        let Root::Local(counter) = place.root else { return Err("it pushes out of order".into()) };
        let entry = &mut self.frame()?.locals[counter];
        let kept = entry.known.replace(Value::Int(0));
        let rounds = self.rounds(emit);
        self.frame()?.locals[counter].known = kept;
        match rounds {
            Some((own, 1, count)) if own == counter && count == self.window.push => Ok(()),
            _ => Err("it does not push its array once".into()),
        }
    }

    /// Checks that the rounds write every element of an array once.
    fn check_cover(&mut self, body: &'a Stmt, array: usize, counted: CountedLoop) -> Result<(), Reason> {
        let CountedLoop { local, start, stride, count } = counted;
        let mut statements = vec![];
        flat(std::slice::from_ref(body), &mut statements);
        let kept: Vec<Local> = self.frame()?.locals.clone();
        let mut seen = vec![false; self.window.push as usize];
        let mut fits = true;
        for round in 0..count {
            let counter = start.wrapping_add((round as i32).wrapping_mul(stride));
            self.frame()?.locals[local] = Local { known: Some(Value::Int(counter)), set: true, ..Local::default() };
            for stmt in &statements {
                let stmt: &'a Stmt = stmt;
                match &stmt.kind {
                    StmtKind::Declare(own, _, Some(value)) => {
                        let known = self.known_value(value);
                        self.frame()?.locals[*own] = Local { known, set: true, ..Local::default() };
                    }
                    StmtKind::Assign(Place { root: Root::Local(own), path, .. }, _, _) if *own == array => {
                        let index = match &path[..] {
                            [Access::Index(index)] => self.known_value(index),
                            _ => None,
                        };
                        let slot = match index {
                            Some(Value::Int(index)) => usize::try_from(index).ok().and_then(|index| seen.get_mut(index)),
                            _ => None,
                        };
                        fits &= slot.is_some_and(|slot| !std::mem::replace(slot, true));
                    }
                    StmtKind::Assign(Place { root: Root::Local(own), .. }, _, _) => {
                        self.frame()?.locals[*own].known = None;
                    }
                    _ => {}
                }
            }
            if !fits {
                break;
            }
        }
        self.frame()?.locals = kept;
        if fits && seen.iter().all(|seen| *seen) { Ok(()) } else { Err("its rounds do not write every element once".into()) }
    }
}
