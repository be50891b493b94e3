//! Filters whose firings are added up by the following filter.
//!
//! A reduction in two steps counts blocks of items in one filter and adds the counts of all blocks in
//! another:
//!
//! ```text
//! int[256] counts; for (i …) counts[pop()] += 1; for (i …) push(counts[i]);
//! int sum = 0; for (i …) sum += pop(); push(sum);
//! ```
//!
//! Sums of integers do not depend on their order. The loops of consecutive firings of the first filter can
//! therefore be merged into one long loop, after which the totals are pushed.

use super::cooperate::sums_of;
use super::rounds::{flat, pushed_array};
use crate::language::core::{Binary, Expr, ExprKind, FunctionId, Place, Program, Root, Stmt, StmtKind, Type, Value};

fn statements(program: &Program, id: FunctionId) -> Option<Vec<&Stmt>> {
    let mut found = vec![];
    flat(program.functions[id].body.as_deref()?, &mut found);
    Some(found)
}

/// Returns the local that a declaration or assignment sets to an integer constant, and the constant.
fn constant(stmt: &Stmt) -> Option<(usize, i32)> {
    let known = |value: &Expr| match value.kind {
        ExprKind::Const(Value::Int(known)) => Some(known),
        _ => None,
    };
    match &stmt.kind {
        StmtKind::Declare(local, _, Some(value)) => Some((*local, known(value)?)),
        StmtKind::Assign(Place { root: Root::Local(local), path, .. }, None, value) if path.is_empty() => {
            Some((*local, known(value)?))
        }
        _ => None,
    }
}

fn reads(expr: &Expr) -> Option<usize> {
    match &expr.kind {
        ExprKind::Read(Place { root: Root::Local(local), path, ty: Type::Int, .. }) if path.is_empty() => Some(*local),
        _ => None,
    }
}

/// Returns whether a firing pushes only sums of integers that start at zero. The items of consecutive firings
/// are then added up by one firing with the loops of all of them.
pub(super) fn pushes_sums(program: &Program, id: FunctionId) -> bool {
    let Some(statements) = statements(program, id) else { return false };
    let (mut zeros, mut sums, mut pushed) = (vec![], None, false);
    for stmt in statements {
        match &stmt.kind {
            // Loop counters are constants too.
            _ if let Some((local, known)) = constant(stmt) => {
                if sums.as_ref().is_some_and(|sums: &Vec<usize>| sums.contains(&local)) {
                    return false;
                }
                zeros.retain(|zero| *zero != local);
                if known == 0 {
                    zeros.push(local);
                }
            }
            StmtKind::Declare(local, declared, None) if !declared.lengths.is_empty() => zeros.push(*local),
            StmtKind::Declare(_, _, None) => {}
            StmtKind::Loop(_, step, body, true) => match &sums {
                None => {
                    let Some(found) = sums_of(program, id, body).filter(|found| found.iter().all(|own| zeros.contains(own)))
                    else {
                        return false;
                    };
                    sums = Some(found);
                }
                Some(sums) => {
                    if !pushed_array(body, step.as_deref()).is_some_and(|array| sums.contains(&array)) {
                        return false;
                    }
                    pushed = true;
                }
            },
            StmtKind::Push(value) => {
                let own = reads(value);
                if !sums.as_ref().is_some_and(|sums| own.is_some_and(|own| sums.contains(&own))) {
                    return false;
                }
                pushed = true;
            }
            _ => return false,
        }
    }
    pushed
}

/// Returns whether a firing pushes the sum of the integers that it pops.
pub(super) fn adds_items(program: &Program, id: FunctionId) -> bool {
    let Some(statements) = statements(program, id) else { return false };
    let is_pop = |expr: &Expr| matches!(expr.kind, ExprKind::Pop) && expr.ty == Type::Int;
    let (mut zeros, mut sum, mut pushed) = (vec![], None, false);
    for stmt in statements {
        match &stmt.kind {
            _ if let Some((local, known)) = constant(stmt) => {
                if sum == Some(local) {
                    return false;
                }
                zeros.retain(|zero| *zero != local);
                if known == 0 {
                    zeros.push(local);
                }
            }
            StmtKind::Declare(_, _, None) => {}
            StmtKind::Loop(_, _, body, true) if sum.is_none() => {
                let mut inner = vec![];
                flat(std::slice::from_ref(body), &mut inner);
                let [Stmt { kind: StmtKind::Assign(place, operator, value), .. }] = inner[..] else { return false };
                let adds = match (operator, &value.kind) {
                    (Some(Binary::Add), _) => is_pop(value),
                    (None, ExprKind::Binary(Binary::Add, Type::Int, left, right)) => {
                        let own = |expr: &Expr| matches!(place.root, Root::Local(local) if reads(expr) == Some(local));
                        (own(left) && is_pop(right)) || (is_pop(left) && own(right))
                    }
                    _ => false,
                };
                let (Root::Local(local), []) = (place.root, &place.path[..]) else { return false };
                if !adds || place.ty != Type::Int || !zeros.contains(&local) {
                    return false;
                }
                sum = Some(local);
            }
            StmtKind::Push(value) if sum.is_some() && !pushed && reads(value) == sum => pushed = true,
            _ => return false,
        }
    }
    pushed
}
