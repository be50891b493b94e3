//! Joining of filters over the same sequences in consecutive `let` bindings into one loop.
//!
//! A thread reads the elements once, and short sequences cost one loop instead of several. Each filter has
//! memory for all elements, since the number that it keeps is not known.

use super::CodeResult;
use super::code::{Kind, Reg};
use super::expr::{Items, Val, Writer};
use crate::core::{Body, Each, Expr, ExprId, LocalId, Pattern, PatternId};
use crate::flatten::instance::visit;
use crate::vcode::Shape;
use broadloom_ptx::Modifier as M;
use broadloom_ptx::builder::Instructions;
use std::collections::HashSet;

/// Result of a filter under construction.
struct List {
    shape: Shape,
    arrays: Vec<Reg>,
    kept: Reg,
}

impl Writer<'_, '_, '_> {
    /// Writes one loop for consecutive filters, beginning with a `let`, and binds their patterns. Returns the
    /// expression after them; `None` if there is only one, or if lanes share a loop.
    pub(super) fn filters(&mut self, first: ExprId) -> CodeResult<Option<ExprId>> {
        if self.code.lane.is_some() {
            return Ok(None);
        }
        let body = self.body.clone();
        let (mut members, mut bound, mut rest, mut over): (Vec<(PatternId, &Each, ExprId)>, _, _, _) =
            (vec![], HashSet::new(), first, None);
        while let Expr::Let(pattern, value, next) = &body.exprs[rest]
            && let Expr::Each(each) = &body.exprs[*value]
            && let (Some(filter), false) = (each.filter, each.serial)
            && let Some(sources) = locals(&body, each)
            && over.get_or_insert_with(|| sources.clone()) == &sources
            && self.is_scalar_each(each)
            && !self.uses(each, &bound)
        {
            bind(&body, *pattern, &mut bound);
            members.push((*pattern, each, filter));
            rest = *next;
        }
        let [(_, each, _), _, ..] = &members[..] else { return Ok(None) };
        let sources = self.sources(each)?;
        let Some(length) = sources.first().map(|first| first.length) else { return Err("no generator".to_owned()) };
        let mut lists = vec![];
        for (_, each, _) in &members {
            self.burn(length);
            let shape = self.m.c.shape(body.types[each.body])?;
            let arrays = self.room(length, &shape);
            lists.push(List { shape, arrays, kept: self.code.length(0) });
        }
        let around = self.begin(length);
        let mark = self.code.copy(Kind::Pointer, self.top);
        let elements = sources.iter().map(|seq| self.element(seq, around.index)).collect::<CodeResult<Vec<Val>>>()?;
        let mut rounds = vec![];
        for (_, each, filter) in &members {
            for ((pattern, _), element) in each.generators.iter().zip(&elements) {
                self.bind(*pattern, element)?;
            }
            let value = self.expr(each.body)?;
            rounds.push((self.stored(&value)?, self.scalar(*filter)?));
        }
        for (List { shape, arrays, kept }, (regs, holds)) in lists.iter().zip(&rounds) {
            self.store(arrays, shape, *kept, regs);
            let one = self.code.number(*holds);
            self.code.to(kept).add(M::U32, kept, one);
        }
        self.code.to(self.top).mov(M::B64, mark);
        self.end(around);
        if let Some(List { shape, arrays, kept }) = lists.last() {
            self.release_behind(shape, arrays, *kept);
        }
        for ((pattern, ..), List { shape, arrays, kept }) in members.iter().zip(lists) {
            self.bind(*pattern, &Val::seq(kept, shape, Items::Stored(arrays)))?;
        }
        Ok(Some(rest))
    }

    /// Tells whether an apply-to-each uses one of these variables in its body or its filter.
    fn uses(&self, each: &Each, locals: &HashSet<LocalId>) -> bool {
        let mut found = false;
        for root in [Some(each.body), each.filter].into_iter().flatten() {
            visit(&self.body, root, &mut |_, expr| {
                found |= match expr {
                    Expr::Local(local) => locals.contains(local),
                    Expr::Lambda(lambda) => {
                        self.m.c.env.lambdas[*lambda].captures.iter().any(|(outer, _)| locals.contains(outer))
                    }
                    _ => false,
                }
            });
        }
        found
    }
}

/// Lists the variables whose elements an apply-to-each takes, if its sequences are variables.
fn locals(body: &Body, each: &Each) -> Option<Vec<LocalId>> {
    let local = |source: ExprId| match body.exprs[source] {
        Expr::Local(local) => Some(local),
        _ => None,
    };
    each.generators.iter().map(|(_, source)| local(*source)).collect()
}

/// Adds the variables of a pattern.
fn bind(body: &Body, pattern: PatternId, bound: &mut HashSet<LocalId>) {
    match body.patterns[pattern] {
        Pattern::Local(local) => drop(bound.insert(local)),
        Pattern::Pair(first, rest) => {
            bind(body, first, bound);
            bind(body, rest, bound);
        }
    }
}
