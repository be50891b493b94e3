//! Loads that only one side of selections needs are executed only if that side is taken.
//!
//! `select(inside, bilinear(x, y), 0)` reads four places for points outside of the image too. If several such
//! loads depend on one condition, they move under an `if`, together with the computations on them. Threads
//! beyond the edge then load nothing, as in code written by hand. Only loads at places that are computed from
//! floats or from other loads are worth it. A row that is read in order costs less than a branch.

use crate::body::{Block, Body, Statement};
use crate::id::{BlockId, Id, Var};
use crate::memory::Cache;
use crate::op::Op;
use crate::schedule::Schedule;
use crate::structure::Structure;

/// Minimum number of loads that are worth a branch.
const FEWEST: usize = 4;
/// Maximum number of conditions of a kernel that are guarded.
const MOST: usize = 16;

/// A condition, and one of its sides.
type Side = (Id, bool);

/// The condition under which a node is needed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NeedCondition {
    Never,
    OnlyIf(Side),
    Always,
}

impl NeedCondition {
    fn or(self, other: NeedCondition) -> NeedCondition {
        match (self, other) {
            (NeedCondition::Never, need) | (need, NeedCondition::Never) => need,
            (a, b) if a == b => a,
            _ => NeedCondition::Always,
        }
    }
}

/// Returns the body of a kernel with such loads moved, or `None` if there are none.
pub(super) fn guard(body: &Body) -> Option<Body> {
    let mut guarded: Option<Body> = None;
    for _ in 0..MOST {
        let before = guarded.as_ref().unwrap_or(body);
        let Some(next) = guard_one(before) else { break };
        guarded = Some(next);
    }
    guarded
}

fn guard_one(body: &Body) -> Option<Body> {
    let found = found(body);
    let is_movable = |id: Id| matches!(body.node(id).op, Op::Load(_, _, access) if access.is_plain()) && found[id.index()];
    if body.nodes().filter(|(id, _)| is_movable(*id)).count() < FEWEST {
        return None;
    }
    let structure = Structure::of(body);
    let schedule = Schedule::of(body, &structure, &[]);
    let needs = needs(body, &structure);
    let mut tried: Vec<(Id, BlockId)> = vec![];
    for (id, _) in body.nodes().filter(|(id, _)| is_movable(*id)) {
        let (NeedCondition::OnlyIf((condition, _)), Some((block, _))) = (needs[id.index()], schedule.place_of[id.index()]) else {
            continue;
        };
        if tried.contains(&(condition, block)) {
            continue;
        }
        tried.push((condition, block));
        let hangs = |id: Id| matches!(needs[id.index()], NeedCondition::OnlyIf((on, _)) if on == condition);
        let statements = &body.block(block).statements;
        let loads = (0..statements.len())
            .filter(|index| matches!(statements[*index], Statement::Define(id) if is_movable(id) && hangs(id)));
        let group =
            Group { body, structure: &structure, schedule: &schedule, needs: &needs, condition, block, loads: loads.collect() };
        if let Some(moved) = group.moved() {
            return Some(moved);
        }
    }
    None
}

/// Returns for each node: true if it depends on a conversion of a float, or on a load.
fn found(body: &Body) -> Vec<bool> {
    let mut found = vec![false; body.nodes.len()];
    for (id, node) in body.nodes() {
        let mut any = false;
        node.op.each_operand(|operand| any |= found[operand.index()] || matches!(body.node(operand).op, Op::Load(..)));
        let rounded = |from: Id| body.type_of(from).element().is_float() && !node.ty.element().is_float();
        found[id.index()] = any || matches!(node.op, Op::Convert(from) if rounded(from));
    }
    found
}

/// Returns the condition under which each node is needed.
fn needs(body: &Body, structure: &Structure) -> Vec<NeedCondition> {
    let mut needs = vec![NeedCondition::Never; body.nodes.len()];
    for block in &structure.order {
        for statement in &body.block(*block).statements {
            statement.each_operand(|id| needs[id.index()] = NeedCondition::Always);
            match statement {
                Statement::Define(id) if !body.node(*id).op.is_removable() => needs[id.index()] = NeedCondition::Always,
                Statement::While { condition, .. } => needs[condition.index()] = NeedCondition::Always,
                _ => {}
            }
        }
    }
    for (id, node) in body.nodes().rev() {
        let need = needs[id.index()];
        let mut want = |id: Id, need: NeedCondition| needs[id.index()] = needs[id.index()].or(need);
        match node.op {
            Op::Select(condition, yes, no) if need == NeedCondition::Always => {
                want(condition, NeedCondition::Always);
                want(yes, NeedCondition::OnlyIf((condition, true)));
                want(no, NeedCondition::OnlyIf((condition, false)));
            }
            _ => node.op.each_operand(|operand| want(operand, need)),
        }
    }
    needs
}

/// Loads of one block that depend on one condition.
struct Group<'a> {
    body: &'a Body,
    structure: &'a Structure,
    schedule: &'a Schedule,
    needs: &'a [NeedCondition],
    condition: Id,
    block: BlockId,
    /// Statements that define the loads.
    loads: Vec<usize>,
}

impl Group<'_> {
    /// Returns the body with the loads under a condition. Returns `None` if that would change results or not
    /// pay.
    fn moved(&self) -> Option<Body> {
        let body = self.body;
        let (first, last) = (*self.loads.first()?, *self.loads.last()?);
        if self.loads.len() < FEWEST || body.depth(self.block) + 1 > crate::body::MAX_NESTING {
            return None;
        }
        let selections = self.selections();
        let there = self.there();
        let operands = selections.iter().flat_map(|(_, yes, no)| [*yes, *no]).chain([self.condition]);
        let place = operands.map(|id| there[id.index()]).try_fold(last + 1, |most, place| Some(most.max(place?)))?;
        let is_first_used_behind = |id: Id| self.first_use(id).is_some_and(|first| first >= place);
        if !selections.iter().all(|(id, _, _)| is_first_used_behind(*id)) {
            return None;
        }
        let statements = &body.block(self.block).statements;
        let is_read_only = |index: &usize| match &statements[*index] {
            Statement::Define(id) => {
                matches!(&body.node(*id).op, Op::Load(_, _, access) if matches!(access.cache, Cache::ReadOnly | Cache::ReadOnlyStreaming))
            }
            _ => false,
        };
        if !self.loads.iter().all(is_read_only) && !statements[first..place].iter().all(|statement| self.keeps_memory(statement))
        {
            return None;
        }
        Some(self.rewrite(&selections, place))
    }

    /// Returns the selections that the loads depend on: the node and its two sides.
    fn selections(&self) -> Vec<(Id, Id, Id)> {
        let mut of_loads = vec![false; self.body.nodes.len()];
        let statements = &self.body.block(self.block).statements;
        for index in &self.loads {
            if let Statement::Define(id) = statements[*index] {
                of_loads[id.index()] = true;
            }
        }
        let mut selections = vec![];
        for (id, node) in self.body.nodes() {
            let mut any = false;
            node.op.each_operand(|operand| any |= of_loads[operand.index()]);
            match node.op {
                Op::Select(condition, yes, no)
                    if any && condition == self.condition && self.needs[id.index()] == NeedCondition::Always =>
                {
                    selections.push((id, yes, no));
                }
                _ => of_loads[id.index()] |= any,
            }
        }
        selections
    }

    /// Returns the first statement of the block at which each node can be computed. Returns `None` for a node
    /// that needs a definition further inside.
    fn there(&self) -> Vec<Option<usize>> {
        let mut there = vec![None; self.body.nodes.len()];
        for (id, node) in self.body.nodes() {
            let index = id.index();
            there[index] = if node.op.is_pure() {
                let mut place = Some(0);
                node.op.each_operand(|operand| place = place.zip(there[operand.index()]).map(|(a, b): (usize, usize)| a.max(b)));
                place
            } else {
                match self.schedule.place_of[index] {
                    Some((block, statement)) if block == self.block => {
                        Some(if matches!(node.op, Op::Counter(_)) { 0 } else { statement + 1 })
                    }
                    Some((block, _)) if self.structure.is_inside(self.block, block) => Some(0),
                    _ => None,
                }
            };
        }
        there
    }

    /// Returns the first statement of the block that needs a node, itself or in a nested block.
    fn first_use(&self, id: Id) -> Option<usize> {
        let mut place = self.schedule.place_of[id.index()]?;
        while place.0 != self.block {
            place = self.structure.parents[place.0.index()]?;
        }
        Some(place.1)
    }

    /// Returns true if a statement neither changes memory nor synchronises.
    fn keeps_memory(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Define(id) => self.body.node(*id).op.is_removable(),
            Statement::Set(..) => true,
            _ => false,
        }
    }

    fn rewrite(&self, selections: &[(Id, Id, Id)], place: usize) -> Body {
        let mut body = self.body.clone();
        let Block { statements, loops, .. } = body.blocks[self.block.index()].clone();
        let inner = |statements: Vec<Statement>| Block { statements, parent: Some(self.block), loops };
        let (mut then, mut otherwise, mut behind) = (vec![], vec![], vec![]);
        for index in &self.loads {
            let Statement::Define(id) = statements[*index] else { continue };
            let is_then = self.needs[id.index()] == NeedCondition::OnlyIf((self.condition, true));
            if is_then { &mut then } else { &mut otherwise }.push(statements[*index].clone());
        }
        for (id, yes, no) in selections {
            let var = Var(body.vars.len() as u32);
            body.vars.push(body.type_of(*id).element());
            then.push(Statement::Set(var, *yes));
            otherwise.push(Statement::Set(var, *no));
            // After the condition the variable holds the selected value.
            body.nodes[id.index()].op = Op::Get(var);
            behind.push(Statement::Define(*id));
        }
        let first = body.blocks.len() as u32;
        body.blocks.extend([inner(then), inner(otherwise)]);
        let condition = Statement::If { condition: self.condition, then: BlockId(first), otherwise: BlockId(first + 1) };
        let mut written = vec![];
        for (index, statement) in statements.iter().enumerate() {
            if index == place {
                written.push(condition.clone());
                written.append(&mut behind);
            }
            if !self.loads.contains(&index) {
                written.push(statement.clone());
            }
        }
        if place == statements.len() {
            written.push(condition);
            written.append(&mut behind);
        }
        body.blocks[self.block.index()].statements = written;
        body
    }
}
