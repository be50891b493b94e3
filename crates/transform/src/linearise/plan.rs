//! Plan of linearisation: the control flow that stays, and that which becomes masks.
//!
//! A *region* of a level is a set of nodes with a single entry. In a region, a node with a divergent branch
//! is a *head*. After it, up to the node where all its paths meet again (its *join*), come nodes that only
//! some lanes reach. They are laid out one after the other, each under its own mask ([`MaskedCode`]). At the
//! join all lanes are back. All other nodes of the region keep their branches.
//!
//! The nodes after a head must be entered through it only. If they are not, the nearest node that dominates
//! both entries becomes a head too, although its branch is uniform. Heads are therefore nested or disjoint.
//!
//! The nodes after a head are grouped into *parts*: the largest sets with one entry and one exit node. A part
//! is a region itself, with the mask of its entry, so uniform branches and loops inside it stay. A node whose
//! exits cannot be closed this way is a part on its own, whose branch becomes masks.
//!
//! A loop is *divergent* if a head decides which lanes iterate again or leave: lanes leave it one by one.

use super::levels::{Kind, Level, Levels, Node};
use super::reason::Reason;
use broadloom_ptx::{Block, Function};
use std::collections::BTreeSet;

/// Maximum nesting of divergent branches. Code is emitted by recursive functions.
pub const DEEPEST: usize = 100;

/// Plan of a region.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Nodes that keep their branches, in topological order, the entry first. Heads include the code after
    /// them.
    pub(super) steps: Vec<RegionStep>,
}

/// Node of a region.
#[derive(Clone, Debug)]
pub(super) struct RegionStep {
    pub(super) node: Node,
    /// Code after it, if it is a head.
    pub(super) masked: Option<MaskedCode>,
}

/// Code after a head.
#[derive(Clone, Debug)]
pub(super) struct MaskedCode {
    /// Node where all paths meet; `None` if no lane returns.
    pub(super) join: Option<Node>,
    /// Parts in topological order.
    pub(super) parts: Vec<MaskedPart>,
    /// Exits of the loop after the head.
    pub(super) sinks: Vec<Node>,
}

/// Nodes that run under one mask.
#[derive(Clone, Debug)]
pub(super) struct MaskedPart {
    /// Entry node.
    pub(super) entry: Node,
    /// Plan of the nodes, if they have one exit node.
    pub(super) inner: Option<Plan>,
    /// Exit node of the nodes, if control returns at all.
    pub(super) stop: Option<Node>,
    /// All of its nodes.
    pub(super) members: BTreeSet<Node>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LevelPlan {
    /// Region of the whole level.
    pub(super) plan: Plan,
    /// True if lanes leave this loop one by one.
    pub(super) divergent: bool,
}

/// Plans all levels.
pub(super) fn plan(function: &Function, levels: &Levels, is_divergent: &dyn Fn(Block) -> bool) -> Result<Vec<LevelPlan>, Reason> {
    let mut plans: Vec<LevelPlan> = vec![LevelPlan::default(); levels.levels.len()];
    // Inner loops first: whether a loop is a head depends on its contents.
    for index in (0..levels.levels.len()).rev() {
        let level = &levels.levels[index];
        let splits = |node: Node| match level.kinds[node] {
            Kind::Block(block) => function.blocks[block].edges.len() > 1 && is_divergent(block),
            Kind::Loop(inner) => plans[inner].divergent && level.successors[node].len() > 1,
            Kind::Back | Kind::Exit(_) | Kind::End => false,
        };
        let mut planner = Planner { level, heads: BTreeSet::new(), depth: 0 };
        planner.heads = planner.find_heads(&splits);
        let plan = planner.region(&level.members(), 0)?;
        let divergent = plan.steps.iter().filter_map(|step| step.masked.as_ref()).any(|masked| !masked.sinks.is_empty());
        plans[index] = LevelPlan { plan, divergent };
    }
    Ok(plans)
}

struct Planner<'l> {
    level: &'l Level,
    /// Heads of the whole level. A region inside it has those of them that it contains: the cause of a head
    /// comes after it.
    heads: BTreeSet<Node>,
    /// Number of enclosing parts.
    depth: usize,
}

impl Planner<'_> {
    fn region(&mut self, members: &BTreeSet<Node>, entry: Node) -> Result<Plan, Reason> {
        if self.depth > DEEPEST {
            return Err(Reason::new("divergent branches are nested too deeply", None));
        }
        let mut behind_heads = BTreeSet::new();
        let mut plan = Plan::default();
        for node in members.iter().copied().filter(|node| *node >= entry) {
            if behind_heads.contains(&node) {
                continue;
            }
            let masked = if self.heads.contains(&node) { Some(self.masked(node)?) } else { None };
            if masked.is_some() {
                behind_heads.extend(self.behind(node));
            }
            plan.steps.push(RegionStep { node, masked });
        }
        Ok(plan)
    }

    /// Returns the nodes after a node and before its join.
    fn behind(&self, node: Node) -> BTreeSet<Node> {
        self.level.between(node, self.level.post_dominator(node))
    }

    fn find_heads(&self, splits: &dyn Fn(Node) -> bool) -> BTreeSet<Node> {
        let mut heads: BTreeSet<Node> = self.level.members().into_iter().filter(|node| splits(*node)).collect();
        let mut work: Vec<Node> = heads.iter().copied().collect();
        while let Some(head) = work.pop() {
            let behind = self.behind(head);
            for node in behind.iter().copied().filter(|node| !self.level.is_sink(*node)) {
                for from in self.level.predecessors[node].iter().copied() {
                    if from == head || behind.contains(&from) {
                        continue;
                    }
                    let common = self.level.common_dominator(head, from);
                    if heads.insert(common) {
                        work.push(common);
                    }
                }
            }
        }
        heads
    }

    fn masked(&mut self, head: Node) -> Result<MaskedCode, Reason> {
        let behind = self.behind(head);
        let (sinks, nodes): (Vec<Node>, Vec<Node>) = behind.iter().partition(|node| self.level.is_sink(**node));
        let inside: BTreeSet<Node> = nodes.iter().copied().collect();
        let mut parts: Vec<MaskedPart> = vec![];
        let mut taken: BTreeSet<Node> = BTreeSet::new();
        for node in nodes {
            if taken.contains(&node) {
                continue;
            }
            let part = self.part(node, &inside)?;
            taken.extend(&part.members);
            parts.push(part);
        }
        Ok(MaskedCode { join: self.level.post_dominator(head), parts, sinks })
    }

    /// Returns the largest part that starts at a node.
    fn part(&mut self, entry: Node, inside: &BTreeSet<Node>) -> Result<MaskedPart, Reason> {
        let mut members = BTreeSet::from([entry]);
        let mut closed = false;
        let mut stop = None;
        let mut at = entry;
        loop {
            let next = self.level.post_dominator(at);
            let between = self.level.between(at, next);
            let enters =
                |node: &Node| !self.level.predecessors[*node].iter().all(|from| members.contains(from) || between.contains(from));
            if !between.is_subset(inside) || between.iter().any(enters) {
                break;
            }
            members.extend(&between);
            closed = true;
            stop = next;
            let Some(next) = next.filter(|next| inside.contains(next)) else { break };
            if !self.level.predecessors[next].iter().all(|from| members.contains(from)) {
                break;
            }
            // After the join the part continues, if it can be closed again; else it ends here.
            let further = self.level.between(next, self.level.post_dominator(next));
            let mut larger = members.clone();
            larger.insert(next);
            larger.extend(&further);
            let enters = |node: &Node| !self.level.predecessors[*node].iter().all(|from| larger.contains(from));
            if !further.is_subset(inside) || further.iter().any(enters) {
                break;
            }
            members.insert(next);
            at = next;
        }
        self.depth += 1;
        let inner = if closed { Some(self.region(&members, entry)?) } else { None };
        self.depth -= 1;
        Ok(MaskedPart { entry, inner, stop, members })
    }
}

/// Returns the outermost divergent loop around `home` that `reader` is outside of.
pub(super) fn left(levels: &Levels, plans: &[LevelPlan], home: usize, reader: usize) -> Option<usize> {
    let mut outermost = None;
    let mut at = Some(home);
    while let Some(level) = at {
        if plans[level].divergent && !levels.is_inside(reader, level) {
            outermost = Some(level);
        }
        at = levels.levels[level].parent;
    }
    outermost
}
