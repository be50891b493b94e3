//! Function as a nest of loops, each level an acyclic graph.
//!
//! A level is the function or one of its loops. Its nodes are the blocks directly in it, its inner loops (one
//! node each), and the places where control leaves. These are [`Kind::Back`] to the header of the loop,
//! [`Kind::Exit`] to a block outside, and [`Kind::End`] after all of them. Nodes are numbered in topological
//! order; the first is the entry.
//!
//! Blocks without a way out (a `trap`, an endless loop) are *dead*: post-dominance ignores them, since no
//! lane returns from them.

use super::reason::Reason;
use broadloom_analysis::{Cfg, Dominators, Loops, loops::Loop};
use broadloom_ptx::{Block, Function, Opcode, Reg};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeSet, HashMap};

/// Node of a level.
pub(super) type Node = usize;

/// Meaning of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Block of this level.
    Block(Block),
    /// Inner loop, by its level.
    Loop(usize),
    /// Header of this loop, reached again.
    Back,
    /// Block outside this loop.
    Exit(Block),
    /// End after everything.
    End,
}

/// Loop, or the function.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Enclosing level; the function has none.
    pub(super) parent: Option<usize>,
    /// Block at which control enters.
    pub(super) header: Block,
    /// Meaning of each node.
    pub(super) kinds: Vec<Kind>,
    /// Successors of each node, without duplicates.
    pub(super) successors: Vec<Vec<Node>>,
    /// Predecessors of each node, without duplicates.
    pub(super) predecessors: Vec<Vec<Node>>,
    dominator: Vec<Node>,
    post_dominator: Vec<Option<Node>>,
    numbers: HashMap<Kind, Node>,
}

impl Level {
    /// Returns whether nothing of this level follows a node.
    pub(super) fn is_sink(&self, node: Node) -> bool {
        match self.kinds[node] {
            Kind::Block(_) | Kind::Loop(_) => false,
            Kind::Back | Kind::Exit(_) | Kind::End => true,
        }
    }

    /// Returns the nodes that are blocks or loops.
    pub(super) fn members(&self) -> BTreeSet<Node> {
        (0..self.kinds.len()).filter(|node| !self.is_sink(*node)).collect()
    }

    /// Returns the blocks outside the loop at which control leaves it.
    pub(super) fn exits(&self) -> Vec<(Node, Block)> {
        let exit = |(node, kind): (Node, &Kind)| match kind {
            Kind::Exit(block) => Some((node, *block)),
            Kind::Block(_) | Kind::Loop(_) | Kind::Back | Kind::End => None,
        };
        self.kinds.iter().enumerate().filter_map(exit).collect()
    }

    /// Returns the node of a kind, if it has one.
    pub(super) fn node(&self, kind: Kind) -> Option<Node> {
        self.numbers.get(&kind).copied()
    }

    /// Returns the nearest node on every path from here; a dead node has none.
    pub(super) fn post_dominator(&self, node: Node) -> Option<Node> {
        self.post_dominator[node]
    }

    /// Returns whether every path from the entry to `b` goes through `a`.
    pub(super) fn dominates(&self, a: Node, mut b: Node) -> bool {
        while b > a {
            b = self.dominator[b];
        }
        a == b
    }

    /// Returns the nearest node that dominates both.
    pub(super) fn common_dominator(&self, mut a: Node, mut b: Node) -> Node {
        while a != b {
            if a < b { b = self.dominator[b] } else { a = self.dominator[a] }
        }
        a
    }

    /// Returns the nodes that are reachable from `from` before `to`.
    pub(super) fn between(&self, from: Node, to: Option<Node>) -> BTreeSet<Node> {
        let mut found = vec![false; self.kinds.len()];
        let mut work = self.successors[from].clone();
        while let Some(node) = work.pop() {
            if Some(node) != to && !std::mem::replace(&mut found[node], true) {
                work.extend(&self.successors[node]);
            }
        }
        found.into_iter().enumerate().filter(|(_, found)| *found).map(|(node, _)| node).collect()
    }
}

/// All levels of a function, outer ones before inner ones; the first is the function itself.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    pub(super) levels: Vec<Level>,
    /// Innermost level of each block.
    innermost: SecondaryMap<Block, usize>,
}

impl Levels {
    /// Computes the levels of a function in SSA form. Returns a reason if a loop has several entries.
    pub(super) fn new(function: &Function, cfg: &Cfg, dominators: &Dominators) -> Result<Levels, Reason> {
        let loops = Loops::new(cfg, dominators);
        if let Some((from, _)) = loops.irreducible_edges().first() {
            let inst = function.blocks[*from].insts.last().copied();
            return Err(Reason::new("a loop has more than one entry", inst));
        }
        // Level 0 is the function, so a loop's level is one more than its number.
        let level = |id: Loop| id.as_u32() as usize + 1;
        let mut innermost: SecondaryMap<Block, usize> = SecondaryMap::new();
        for block in cfg.order() {
            innermost[*block] = loops.innermost(*block).map_or(0, level);
        }
        let parents: Vec<Option<usize>> =
            [None].into_iter().chain(loops.iter().map(|(_, data)| Some(data.parent.map_or(0, level)))).collect();
        let headers: Vec<Block> = [cfg.entry()].into_iter().chain(loops.iter().map(|(_, data)| data.header)).collect();
        let mut levels = Levels { levels: vec![], innermost };
        for (index, parent) in parents.iter().enumerate() {
            let level = levels.level(function, cfg, &parents, index, *parent, headers[index]);
            levels.levels.push(level);
        }
        Ok(levels)
    }

    /// Returns the innermost level of a block.
    pub(super) fn innermost(&self, block: Block) -> usize {
        self.innermost[block]
    }

    /// Returns whether `inner` is `outer` or nested in it.
    pub(super) fn is_inside(&self, mut inner: usize, outer: usize) -> bool {
        while inner > outer {
            inner = self.levels[inner].parent.unwrap_or(0);
        }
        inner == outer
    }

    /// Returns the kind of a block as seen from within a level.
    pub(super) fn kind_in(&self, level: usize, block: Block) -> Kind {
        let parents = |index: usize| self.levels[index].parent;
        kind_in(&self.innermost, parents, level, self.levels[level].header, block)
    }

    /// Returns the registers that predecessors of a node define. Those of an exit belong to its target.
    pub(super) fn params<'f>(&self, function: &'f Function, level: usize, node: Node) -> &'f [Reg] {
        match self.levels[level].kinds[node] {
            Kind::Block(block) | Kind::Exit(block) => &function.blocks[block].params,
            Kind::Loop(inner) => &function.blocks[self.levels[inner].header].params,
            Kind::Back => &function.blocks[self.levels[level].header].params,
            Kind::End => &[],
        }
    }

    fn level(
        &self,
        function: &Function,
        cfg: &Cfg,
        parents: &[Option<usize>],
        index: usize,
        parent: Option<usize>,
        header: Block,
    ) -> Level {
        let parent_of = |level: usize| parents[level];
        let mut edges: HashMap<Kind, Vec<Kind>> = HashMap::new();
        for block in cfg.order().iter().filter(|block| is_in(&self.innermost, parent_of, index, **block)) {
            let kind = match kind_in(&self.innermost, parent_of, index, header, *block) {
                // Seen from within, the header is the start of the level.
                Kind::Back => Kind::Block(header),
                kind => kind,
            };
            let targets = edges.entry(kind).or_default();
            for target in cfg.successors(*block) {
                let to = kind_in(&self.innermost, parent_of, index, header, *target);
                if to != kind && !targets.contains(&to) {
                    targets.push(to);
                }
            }
            if cfg.successors(*block).is_empty() && !traps(function, *block) {
                targets.push(Kind::End);
            }
        }
        let sinks: Vec<Kind> =
            edges.values().flatten().copied().filter(|kind| matches!(kind, Kind::Back | Kind::Exit(_))).collect();
        for sink in sinks {
            edges.entry(sink).or_insert_with(|| vec![Kind::End]);
        }
        let start = match kind_in(&self.innermost, parent_of, index, header, header) {
            Kind::Back => Kind::Block(header),
            kind => kind,
        };
        sorted(parent, header, start, &edges)
    }
}

/// Returns whether a block ends in a `trap` without a guard.
fn traps(function: &Function, block: Block) -> bool {
    let last = function.blocks[block].insts.last().map(|last| &function.insts[*last]);
    last.is_some_and(|last| last.opcode() == Some(Opcode::Trap) && last.guard.is_none())
}

fn is_in(innermost: &SecondaryMap<Block, usize>, parent: impl Fn(usize) -> Option<usize>, level: usize, block: Block) -> bool {
    let mut at = innermost[block];
    while at > level {
        at = parent(at).unwrap_or(0);
    }
    at == level
}

fn kind_in(
    innermost: &SecondaryMap<Block, usize>,
    parent: impl Fn(usize) -> Option<usize>,
    level: usize,
    header: Block,
    block: Block,
) -> Kind {
    if level > 0 && block == header {
        return Kind::Back;
    }
    let mut at = innermost[block];
    let mut inner = None;
    while at > level {
        inner = Some(at);
        at = parent(at).unwrap_or(0);
    }
    match (at == level, inner) {
        (false, _) => Kind::Exit(block),
        (true, Some(inner)) => Kind::Loop(inner),
        (true, None) => Kind::Block(block),
    }
}

/// Numbers the nodes in topological order and computes dominators.
fn sorted(parent: Option<usize>, header: Block, start: Kind, edges: &HashMap<Kind, Vec<Kind>>) -> Level {
    let none = vec![];
    let targets = |kind: &Kind| edges.get(kind).unwrap_or(&none);
    let mut order = vec![];
    let mut seen = BTreeSet::from([start]);
    let mut stack = vec![(start, 0)];
    while let Some((kind, next)) = stack.last_mut() {
        match targets(kind).get(*next) {
            Some(target) => {
                *next += 1;
                if *target != Kind::End && seen.insert(*target) {
                    stack.push((*target, 0));
                }
            }
            None => {
                order.push(*kind);
                stack.pop();
            }
        }
    }
    order.reverse();
    order.push(Kind::End);
    let numbers: HashMap<Kind, Node> = order.iter().enumerate().map(|(node, kind)| (*kind, node)).collect();
    let successors: Vec<Vec<Node>> = order.iter().map(|kind| targets(kind).iter().map(|to| numbers[to]).collect()).collect();
    let mut predecessors = vec![vec![]; order.len()];
    for (node, targets) in successors.iter().enumerate() {
        targets.iter().for_each(|target| predecessors[*target].push(node));
    }
    let mut dominator: Vec<Node> = vec![0; order.len()];
    for node in 1..order.len() {
        let common = |mut a: Node, mut b: Node| {
            while a != b {
                if a < b { b = dominator[b] } else { a = dominator[a] }
            }
            a
        };
        dominator[node] = predecessors[node].iter().copied().reduce(common).unwrap_or(0);
    }
    let end = order.len() - 1;
    let mut post_dominator: Vec<Option<Node>> = vec![None; order.len()];
    for node in (0..end).rev() {
        let post = |node: Node| post_dominator[node].unwrap_or(end);
        let common = |mut a: Node, mut b: Node| {
            while a != b {
                if a < b { a = post(a) } else { b = post(b) }
            }
            a
        };
        let live = successors[node].iter().copied().filter(|to| *to == end || post_dominator[*to].is_some());
        post_dominator[node] = live.reduce(common);
    }
    Level { parent, header, kinds: order, successors, predecessors, dominator, post_dominator, numbers }
}
