//! Removal of operations whose results are not used.
//!
//! Operations that may end the run with an error stay, and so do effects. Unused results of calls and
//! conditionals stay too; the emitted program drops them.

use super::{Block, Function, Program, VarId};
use cranelift_entity::EntitySet;

/// Removes dead values of all functions.
pub fn remove_dead_values(program: &mut Program) {
    program.functions.values_mut().for_each(function);
}

fn function(function: &mut Function) {
    let mut needed = EntitySet::new();
    block(&mut function.body, &mut needed);
}

fn block(block: &mut Block, needed: &mut EntitySet<VarId>) {
    needed.extend(block.results.iter().copied());
    let mut kept = vec![];
    for mut stmt in std::mem::take(&mut block.stmts).into_iter().rev() {
        if stmt.op.is_pure() && !stmt.results.iter().any(|&var| needed.contains(var)) {
            continue;
        }
        if let super::Op::If(branches) = &mut stmt.op {
            // Unused results are dropped in both branches.
            let used: Vec<bool> = stmt.results.iter().map(|&var| needed.contains(var)).collect();
            let kept = || {
                let mut flags = used.iter();
                move || flags.next().copied().unwrap_or(true)
            };
            let (mut own, mut first, mut second) = (kept(), kept(), kept());
            stmt.results.retain(|_| own());
            branches.0.results.retain(|_| first());
            branches.1.results.retain(|_| second());
            self::block(&mut branches.0, needed);
            self::block(&mut branches.1, needed);
        }
        needed.extend(stmt.args.iter().copied());
        kept.push(stmt);
    }
    kept.reverse();
    block.stmts = kept;
}
