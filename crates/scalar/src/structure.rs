//! The structure of a body: the nesting of blocks, and the block in which each value is available.

use crate::body::{Body, Statement};
use crate::id::{BlockId, Id, Var};
use crate::op::Op;

/// The tree of blocks, and the home of each node: the innermost block in which all of its dependencies are
/// available.
pub(crate) struct Structure {
    /// The block and statement that contain a block. The body of a `while` is at the end of its head.
    pub(crate) parents: Vec<Option<(BlockId, usize)>>,
    /// Times at which a walk entered and left each block. `None` if the block is unreachable.
    spans: Vec<Option<(u32, u32)>>,
    /// Blocks in the order of the walk.
    pub(crate) order: Vec<BlockId>,
    /// Home of each node. `None` for placed nodes that no statement defines.
    pub(crate) homes: Vec<Option<BlockId>>,
    depths: Vec<u32>,
}

impl Structure {
    pub(crate) fn of(body: &Body) -> Structure {
        let count = body.blocks.len();
        let mut structure = Structure {
            parents: vec![None; count],
            spans: vec![None; count],
            order: vec![],
            homes: vec![None; body.nodes.len()],
            depths: vec![0; count],
        };
        let mut clock = 0;
        structure.enter(body, Body::ENTRY, &mut clock);
        for (id, node) in body.nodes() {
            if node.op.is_pure() {
                let mut home = Some(Body::ENTRY);
                node.op.each_operand(|operand| {
                    home = match (home, structure.homes[operand.index()]) {
                        (Some(a), Some(b)) if structure.depths[b.index()] > structure.depths[a.index()] => Some(b),
                        (Some(a), Some(_)) => Some(a),
                        _ => None,
                    };
                });
                structure.homes[id.index()] = home;
            }
        }
        structure
    }

    /// The depth of recursion is bounded, because nesting is.
    fn enter(&mut self, body: &Body, block: BlockId, clock: &mut u32) {
        let start = *clock;
        *clock += 1;
        self.order.push(block);
        let statements = &body.block(block).statements;
        for (index, statement) in statements.iter().enumerate() {
            match statement {
                Statement::Define(id) => self.homes[id.index()] = Some(block),
                Statement::For { counter, body: inner, .. } => self.homes[counter.index()] = Some(*inner),
                _ => {}
            }
            match statement {
                Statement::While { head, body: inner, .. } => {
                    self.parents[head.index()] = Some((block, index));
                    self.depths[head.index()] = self.depths[block.index()] + 1;
                    self.parents[inner.index()] = Some((*head, body.block(*head).statements.len()));
                    self.depths[inner.index()] = self.depths[head.index()] + 1;
                    // The body of a `while` is inside of its head.
                    let head_start = *clock;
                    self.enter(body, *head, clock);
                    self.enter(body, *inner, clock);
                    self.spans[head.index()] = Some((head_start, *clock));
                }
                other => {
                    for inner in other.blocks().into_iter().flatten() {
                        self.parents[inner.index()] = Some((block, index));
                        self.depths[inner.index()] = self.depths[block.index()] + 1;
                        self.enter(body, inner, clock);
                    }
                }
            }
        }
        self.spans[block.index()] = Some((start, *clock));
    }

    /// Returns true if a block is equal to another one or inside of it.
    pub(crate) fn is_inside(&self, block: BlockId, outer: BlockId) -> bool {
        match (self.spans[block.index()], self.spans[outer.index()]) {
            (Some(inner), Some(outer)) => outer.0 <= inner.0 && inner.1 <= outer.1,
            _ => false,
        }
    }

    pub(crate) fn depth(&self, block: BlockId) -> u32 {
        self.depths[block.index()]
    }

    /// Returns the innermost block that contains both places, and the earlier of their places in it.
    pub(crate) fn meet(&self, a: (BlockId, usize), b: (BlockId, usize)) -> (BlockId, usize) {
        let (mut a, mut b) = (a, b);
        while a.0 != b.0 {
            let climber = if self.depth(a.0) >= self.depth(b.0) { &mut a } else { &mut b };
            match self.parents[climber.0.index()] {
                Some(parent) => *climber = parent,
                None => return (Body::ENTRY, 0),
            }
        }
        (a.0, a.1.min(b.1))
    }
}

/// The variables and arrays that are set in some blocks, including nested ones.
#[derive(Default)]
pub(crate) struct AssignedItems {
    pub(crate) vars: Vec<Var>,
    pub(crate) arrays: Vec<crate::id::ArrayId>,
}

impl AssignedItems {
    pub(crate) fn within(body: &Body, blocks: &[BlockId]) -> AssignedItems {
        let mut found = AssignedItems::default();
        let mut stack = blocks.to_vec();
        while let Some(block) = stack.pop() {
            for statement in &body.block(block).statements {
                match statement {
                    Statement::Set(var, _) => found.vars.push(*var),
                    Statement::SetElement { array, .. } => found.arrays.push(*array),
                    other => stack.extend(other.blocks().into_iter().flatten()),
                }
            }
        }
        found.vars.sort();
        found.vars.dedup();
        found.arrays.sort();
        found.arrays.dedup();
        found
    }
}

/// The nodes, variables and arrays that live code depends on.
pub(crate) struct LiveItems {
    pub(crate) nodes: Vec<bool>,
    pub(crate) vars: Vec<bool>,
    pub(crate) arrays: Vec<bool>,
}

impl LiveItems {
    /// Finds the live nodes: those on which these results, side effects such as stores and writes, and the
    /// bounds and conditions of loops and branches depend.
    pub(crate) fn of(body: &Body, structure: &Structure, results: &[Id]) -> LiveItems {
        let mut live = LiveItems {
            nodes: vec![false; body.nodes.len()],
            vars: vec![false; body.vars.len()],
            arrays: vec![false; body.arrays.len()],
        };
        let mut sets: Vec<Vec<Id>> = vec![vec![]; body.vars.len()];
        let mut elements: Vec<Vec<Id>> = vec![vec![]; body.arrays.len()];
        let mut work: Vec<Id> = results.to_vec();
        for block in &structure.order {
            for statement in &body.block(*block).statements {
                match statement {
                    Statement::Define(id) if body.node(*id).op.is_removable() => {}
                    Statement::Define(id) => work.push(*id),
                    Statement::Set(var, value) => sets[var.index()].push(*value),
                    Statement::SetElement { array, index, value } => elements[array.index()].extend([*index, *value]),
                    Statement::While { condition, .. } => work.push(*condition),
                    other => other.each_operand(|id| work.push(id)),
                }
            }
        }
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut live.nodes[id.index()], true) {
                continue;
            }
            let op = &body.node(id).op;
            op.each_operand(|operand| work.push(operand));
            match op {
                Op::Get(var) if !std::mem::replace(&mut live.vars[var.index()], true) => work.append(&mut sets[var.index()]),
                Op::Element(array, _) | Op::LocalAddress(array) if !std::mem::replace(&mut live.arrays[array.index()], true) => {
                    work.append(&mut elements[array.index()]);
                }
                _ => {}
            }
        }
        live
    }
}
