//! Where pure nodes are computed.
//!
//! Each is computed once, in the innermost block that has all its uses inside, right before the first statement there that needs it;
//! but where a block further out, in fewer loops, has all that it depends on, it moves out there. So equal expressions are computed
//! once wherever they stand, nothing is computed before it is needed, and loops do not repeat what does not change. Nodes are total
//! functions, so computing one that is not needed in the end does no harm.
//!
//! Nodes have larger numbers than their operands: one walk from the last to the first sees every use before the node itself.
//!
//! A kernel that streams memory it only reads through a thread may be scheduled [eagerly](Schedule::eager) instead: whatever follows from such a load is
//! computed right behind it, so that the loaded value need not be kept for later. That is done where fewer values are alive at once
//! ([`Schedule::pressure`]): sums of many loads that overlap are all open at the same time then.

use crate::body::{Body, Statement};
use crate::id::{BlockId, Id};
use crate::memory::Cache;
use crate::op::Op;
use crate::structure::Structure;
use std::collections::HashMap;

/// For each place of a block, the nodes that are computed there.
pub(crate) struct Schedule {
    places: HashMap<(BlockId, usize), Vec<Id>>,
    /// Block in which a node is computed or defined.
    pub(crate) place_of: Vec<Option<(BlockId, usize)>>,
    /// Number of nodes and statements that use a node.
    pub(crate) uses: Vec<u32>,
}

impl Schedule {
    pub(crate) fn of(body: &Body, structure: &Structure, results: &[Id]) -> Schedule {
        let count = body.nodes.len();
        let mut schedule = Schedule { places: HashMap::new(), place_of: vec![None; count], uses: vec![0; count] };
        let mut wanted: Vec<Option<(BlockId, usize)>> = vec![None; count];
        let want = |wanted: &mut Vec<Option<(BlockId, usize)>>, uses: &mut Vec<u32>, id: Id, place: (BlockId, usize)| {
            uses[id.index()] += 1;
            let slot = &mut wanted[id.index()];
            *slot = Some(slot.map_or(place, |other| structure.meet(other, place)));
        };
        for block in &structure.order {
            for (index, statement) in body.block(*block).statements.iter().enumerate() {
                let place = (*block, index);
                statement.each_operand(|id| want(&mut wanted, &mut schedule.uses, id, place));
                match statement {
                    Statement::Define(id) => {
                        schedule.place_of[id.index()] = Some(place);
                        body.node(*id).op.each_operand(|operand| want(&mut wanted, &mut schedule.uses, operand, place));
                    }
                    Statement::While { head, condition, .. } => {
                        let end = (*head, body.block(*head).statements.len());
                        want(&mut wanted, &mut schedule.uses, *condition, end);
                    }
                    Statement::For { counter, body: inner, .. } => schedule.place_of[counter.index()] = Some((*inner, 0)),
                    _ => {}
                }
            }
        }
        let end = (Body::ENTRY, body.block(Body::ENTRY).statements.len());
        results.iter().for_each(|id| want(&mut wanted, &mut schedule.uses, *id, end));
        for (id, node) in body.nodes().rev() {
            if !node.op.is_pure() {
                continue;
            }
            let (Some(place), Some(home)) = (wanted[id.index()], structure.homes[id.index()]) else { continue };
            let place = hoist(body, structure, place, home);
            schedule.place_of[id.index()] = Some(place);
            if !matches!(node.op, Op::Literal(_)) {
                schedule.places.entry(place).or_default().push(id);
            }
            node.op.each_operand(|operand| want(&mut wanted, &mut schedule.uses, operand, place));
        }
        // They were found from the last to the first.
        schedule.places.values_mut().for_each(|list| list.reverse());
        schedule
    }

    /// Moves nodes that are computed from loads of read-only memory in the same block to the first place at which all of their operands are there.
    pub(crate) fn eager(mut self, body: &Body) -> Schedule {
        let mut streamed = vec![false; body.nodes.len()];
        for (id, node) in body.nodes() {
            if !node.op.is_pure() {
                streamed[id.index()] = match &node.op {
                    Op::Shuffle(_, _, value, ..) => streamed[value.index()],
                    op => is_streamed(op),
                };
                continue;
            }
            let Some((block, wanted)) = self.place_of[id.index()] else { continue };
            let (mut first, mut streams) = (0, false);
            node.op.each_operand(|operand| {
                let Some((_, place)) = self.place_of[operand.index()].filter(|(own, _)| *own == block) else { return };
                streams |= streamed[operand.index()];
                first = first.max(match &body.node(operand).op {
                    Op::Counter(_) => 0,
                    op if op.is_pure() => place,
                    _ => place + 1,
                });
            });
            streamed[id.index()] = streams;
            if streams && first < wanted {
                self.place_of[id.index()] = Some((block, first));
            }
        }
        self.places.clear();
        for (id, _) in body.nodes().filter(|(_, node)| node.op.is_pure() && !matches!(node.op, Op::Literal(_))) {
            if let Some(place) = self.place_of[id.index()] {
                self.places.entry(place).or_default().push(id);
            }
        }
        self
    }

    /// Returns the most values that are alive at once in a block, of those that are computed, loaded or defined in it.
    pub(crate) fn pressure(&self, body: &Body, structure: &Structure) -> usize {
        // Steps of a block: each node and each statement is one. The step of each node, and of each statement.
        let mut made: Vec<Option<(BlockId, usize)>> = vec![None; body.nodes.len()];
        let mut statements: HashMap<(BlockId, usize), usize> = HashMap::new();
        let mut steps: HashMap<BlockId, usize> = HashMap::new();
        for block in &structure.order {
            let own = &body.block(*block).statements;
            let mut step = 0;
            for index in 0..=own.len() {
                for id in self.before(*block, index) {
                    made[id.index()] = Some((*block, step));
                    step += 1;
                }
                statements.insert((*block, index), step);
                if let Some(Statement::Define(id)) = own.get(index) {
                    made[id.index()] = Some((*block, step));
                }
                step += 1;
            }
            steps.insert(*block, step);
        }
        let mut last: Vec<usize> = made.iter().map(|made| made.map_or(0, |(_, step)| step)).collect();
        let mut used = |id: Id, (block, step): (BlockId, usize)| {
            let Some((home, _)) = made[id.index()] else { return };
            // A use in an inner block is one by the statement that the block stands in.
            let (mut block, mut step) = (block, step);
            while block != home {
                let Some(outer) = structure.parents[block.index()] else { return };
                (block, step) = (outer.0, statements.get(&outer).copied().unwrap_or_default());
            }
            last[id.index()] = last[id.index()].max(step);
        };
        for (id, node) in body.nodes() {
            if let Some(place) = made[id.index()] {
                node.op.each_operand(|operand| used(operand, place));
            }
        }
        for block in &structure.order {
            for (index, statement) in body.block(*block).statements.iter().enumerate() {
                let place = (*block, statements.get(&(*block, index)).copied().unwrap_or_default());
                statement.each_operand(|id| used(id, place));
            }
        }
        let mut alive: HashMap<BlockId, Vec<i64>> = steps.into_iter().map(|(block, steps)| (block, vec![0; steps + 1])).collect();
        for (made, last) in made.iter().zip(&last) {
            if let Some((block, step)) = made
                && let Some(changes) = alive.get_mut(block)
            {
                changes[*step] += 1;
                changes[*last + 1] -= 1;
            }
        }
        let most = |changes: &Vec<i64>| {
            let mut alive = 0;
            changes.iter().fold(0, |most: i64, change| {
                alive += change;
                most.max(alive)
            })
        };
        alive.values().map(most).max().unwrap_or(0) as usize
    }

    /// The nodes that are computed right before a statement, operands first.
    pub(crate) fn before(&self, block: BlockId, index: usize) -> &[Id] {
        self.places.get(&(block, index)).map_or(&[], Vec::as_slice)
    }
}

/// The innermost block with the fewest loops between where a node is wanted and its home.
fn hoist(body: &Body, structure: &Structure, place: (BlockId, usize), home: BlockId) -> (BlockId, usize) {
    let mut best = place;
    let mut here = place;
    while here.0 != home {
        let Some(parent) = structure.parents[here.0.index()] else { break };
        here = parent;
        if body.block(here.0).loops < body.block(best.0).loops {
            best = here;
        }
    }
    best
}

/// Returns whether an operation loads from memory that is not written while the kernel runs.
pub(crate) fn is_streamed(op: &Op) -> bool {
    matches!(op, Op::Load(_, _, access) if access.is_plain() && matches!(access.cache, Cache::ReadOnly | Cache::ReadOnlyStreaming))
}
