//! Loops: fully unrolled if the number of iterations is known and small, partially unrolled on request,
//! narrowed if their counters fit into 32 bits.

use super::Rewrite;
use crate::body::{Statement, Unroll};
use crate::builder::{Value, narrow_bounds};
use crate::id::{BlockId, Id};
use crate::types::{Element, Literal};

/// Size of nested loops that are unrolled, as a multiple of that of a single loop. Windows of images are such loops: their
/// elements share parts of indices.
const NESTED: usize = 3;

impl Rewrite<'_, '_> {
    pub(super) fn repeat(&mut self, head: BlockId, condition: Id, body: BlockId) {
        self.forget(&[head, body]);
        self.builder.begin_while();
        self.block(head);
        let condition = self.value(condition);
        self.builder.begin_while_body(condition);
        self.block(body);
        self.builder.end_while();
        self.forget(&[head, body]);
    }

    /// Forgets the nodes inside of a block, so that they are made again.
    fn forget_nodes(&mut self, block: BlockId) {
        for inner in self.structure.order.clone() {
            if self.structure.is_inside(inner, block) {
                for id in &self.by_home[inner.index()] {
                    self.map[id.index()] = None;
                }
            }
        }
    }

    /// Returns the size of the code of a block. Inner loops with a known number of iterations count as unrolled.
    fn size(&self, block: BlockId) -> usize {
        let statements = &self.source.block(block).statements;
        let inner = statements.iter().map(|statement| {
            let times = match statement {
                Statement::For { counter, start, end, step, .. } => self.iterations(*counter, [*start, *end, *step]).unwrap_or(1),
                _ => 1,
            };
            let blocks = statement.blocks().into_iter().flatten().map(|block| self.size(block));
            blocks.fold(0, usize::saturating_add).saturating_mul(times)
        });
        let own = self.by_home[block.index()].len() + statements.len();
        inner.fold(own, usize::saturating_add).max(1)
    }

    /// Returns true if there are loops in a block.
    fn nests(&self, block: BlockId) -> bool {
        let mut statements = self.source.block(block).statements.iter();
        statements.any(|statement| matches!(statement, Statement::For { .. }))
    }

    /// Returns the number of iterations of a loop of the source whose bounds are literals.
    fn iterations(&self, counter: Id, bounds: [Id; 3]) -> Option<usize> {
        let literal = |id: Id| self.source.literal(id).and_then(Literal::as_i128);
        let [Some(first), Some(end), Some(step)] = bounds.map(literal) else { return None };
        rounds(self.source.type_of(counter).element(), first, end, step)
    }

    /// Returns true if a block leaves the loop whose body it is, or ends an iteration early.
    fn jumps(&self, block: BlockId) -> bool {
        self.source.block(block).statements.iter().any(|statement| match statement {
            Statement::Break | Statement::Continue => true,
            Statement::If { then, otherwise, .. } => self.jumps(*then) || self.jumps(*otherwise),
            _ => false,
        })
    }

    pub(super) fn count(&mut self, statement: &Statement) {
        let Statement::For { counter, start, end, step, body, unroll } = statement else { return };
        let (counter, body, unroll) = (*counter, *body, *unroll);
        let [start, end, step] = [*start, *end, *step].map(|id| self.value(id));
        let element = self.source.type_of(counter).element();
        if let Some(limit) = self.options.unroll
            && !self.jumps(body)
        {
            let literal = |value: Value| self.builder.as_literal(value).and_then(Literal::as_i128);
            let step_literal = literal(step);
            if let (Some(first), Some(end), Some(step)) = (literal(start), literal(end), step_literal)
                && let Some(rounds) = rounds(element, first, end, step)
            {
                let most = match unroll {
                    Unroll::Never => 1,
                    Unroll::Auto | Unroll::By(_) if self.nests(body) => NESTED * limit,
                    Unroll::Auto | Unroll::By(_) => limit,
                    Unroll::Full => 64 * limit,
                };
                let size = self.size(body).saturating_mul(rounds);
                if rounds <= 1 || (size <= most && self.unrolled.saturating_add(size) <= 64 * limit) {
                    self.unrolled += size;
                    for round in 0..rounds {
                        self.forget_nodes(body);
                        let value = Literal::from_i128(element, first + step * round as i128);
                        self.map[counter.index()] = Some(self.builder.literal(value));
                        self.block(body);
                    }
                    self.forget_nodes(body);
                    return;
                }
            }
            if let (Unroll::By(times @ 2..), Some(step_literal @ 1..)) = (unroll, step_literal)
                && let Some(long) = step_literal.checked_mul(i128::from(times)).filter(|long| fits(element, *long))
            {
                return self.count_by(counter, [start, end], step_literal, long, body);
            }
        }
        let unroll = if matches!(unroll, Unroll::By(_)) && self.options.unroll.is_some() { Unroll::Never } else { unroll };
        self.count_plainly(counter, [start, end, step], body, unroll);
    }

    fn count_plainly(&mut self, counter: Id, [start, end, step]: [Value; 3], body: BlockId, unroll: Unroll) {
        self.forget(&[body]);
        let narrow = self.options.narrow.then(|| narrow_bounds(self.builder, start, end, step)).flatten();
        let value = match narrow {
            Some([start, end, step]) => {
                let count = self.builder.begin_for(start, end, step, unroll);
                self.builder.convert(count, self.source.type_of(counter))
            }
            None => self.builder.begin_for(start, end, step, unroll),
        };
        self.forget_nodes(body);
        self.map[counter.index()] = Some(value);
        self.block(body);
        self.builder.end_for();
        self.forget(&[body]);
    }

    /// Emits a loop that executes several iterations at a time, then a loop for the remaining ones.
    fn count_by(&mut self, counter: Id, [start, end]: [Value; 2], step: i128, long: i128, body: BlockId) {
        let builder = self.builder;
        let element = self.source.type_of(counter).element();
        let literal = |value: i128| builder.literal(Literal::from_i128(element, value));
        let next = builder.variable_with(start);
        let limit = builder.sub_saturating(end, literal(long - step));
        self.forget(&[body]);
        let before = self.known.clone();
        let first = builder.begin_for(start, limit, literal(long), Unroll::Never);
        for offset in (0..long).step_by(step as usize) {
            self.forget_nodes(body);
            self.map[counter.index()] = Some(builder.add(first, literal(offset)));
            self.block(body);
        }
        builder.set(next, builder.add(first, literal(long)));
        builder.end_for();
        self.known = before;
        self.forget(&[body]);
        let rest = builder.get(next);
        self.count_plainly(counter, [rest, end, literal(step)], body, Unroll::Never);
    }
}

fn fits(element: Element, value: i128) -> bool {
    element.range().is_some_and(|(low, high)| (low..=high).contains(&value))
}

/// Returns the trip count of a loop whose counter never leaves its type.
fn rounds(element: Element, start: i128, end: i128, step: i128) -> Option<usize> {
    let distance = if step > 0 { end - start } else { start - end };
    if distance <= 0 {
        return Some(0);
    }
    let rounds = (distance + step.abs() - 1) / step.abs();
    fits(element, start + rounds * step).then(|| usize::try_from(rounds).ok()).flatten()
}
