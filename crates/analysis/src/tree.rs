//! Tree of immediate dominators of any rooted graph.
//!
//! The algorithm is that of Cooper, Harvey and Kennedy (*A simple, fast dominance algorithm*): a node's
//! immediate dominator is the nearest common ancestor, in the tree found so far, of its predecessors. In
//! reverse post-order this converges in one round, plus one to confirm, for reducible graphs. Semi-NCA is
//! faster from about ten thousand blocks on, which functions do not have.
//!
//! Nodes are numbers from zero, so that dominators and post-dominators share the code.

/// No node.
const NONE: u32 = u32::MAX;

/// Immediate dominators of the nodes that the root reaches.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    parent: Vec<u32>,
    children: Vec<Vec<u32>>,
    /// Time at which a walk of the tree enters a node and leaves it; zero for unreachable nodes.
    enter: Vec<u32>,
    leave: Vec<u32>,
}

impl Tree {
    pub(crate) fn new(root: u32, successors: &[Vec<u32>]) -> Tree {
        let order = reverse_post_order(root, successors);
        let mut position = vec![NONE; successors.len()];
        for (index, node) in order.iter().enumerate() {
            position[*node as usize] = index as u32;
        }
        let mut predecessors: Vec<Vec<u32>> = vec![vec![]; order.len()];
        for (index, node) in order.iter().enumerate() {
            for target in &successors[*node as usize] {
                predecessors[position[*target as usize] as usize].push(index as u32);
            }
        }
        // In positions of the order, so that an ancestor has the smaller number.
        let mut dominator = vec![NONE; order.len()];
        dominator[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for index in 1..order.len() {
                let known = predecessors[index].iter().copied().filter(|from| dominator[*from as usize] != NONE);
                let Some(found) = known.reduce(|a, b| common(&dominator, a, b)) else { continue };
                changed |= std::mem::replace(&mut dominator[index], found) != found;
            }
        }
        let mut parent = vec![NONE; successors.len()];
        let mut children = vec![vec![]; successors.len()];
        for (index, node) in order.iter().enumerate().skip(1) {
            let above = order[dominator[index] as usize];
            parent[*node as usize] = above;
            children[above as usize].push(*node);
        }
        let (enter, leave) = number(root, &children);
        Tree { parent, children, enter, leave }
    }

    /// Returns the immediate dominator; `None` for the root and unreachable nodes.
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parent[node as usize]).filter(|parent| *parent != NONE)
    }

    /// Returns the nodes whose immediate dominator this is, in reverse post-order.
    pub(crate) fn children(&self, node: u32) -> &[u32] {
        &self.children[node as usize]
    }

    /// Returns whether every path from the root to `b` goes through `a`. Returns `false` for unreachable
    /// nodes.
    pub(crate) fn dominates(&self, a: u32, b: u32) -> bool {
        let (a, b) = (a as usize, b as usize);
        self.enter[b] != 0 && self.enter[a] != 0 && self.enter[a] <= self.enter[b] && self.leave[b] <= self.leave[a]
    }

    /// Returns the nearest node that dominates both; `None` if one of them is unreachable.
    pub(crate) fn common(&self, a: u32, b: u32) -> Option<u32> {
        let mut above = a;
        while !self.dominates(above, b) {
            above = self.parent(above)?;
        }
        Some(above)
    }

    /// Returns the dominance frontier of each node: successors of it or of nodes that it dominates which it
    /// does not strictly dominate. In the order of nodes, each once.
    pub(crate) fn frontiers(&self, successors: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let mut frontiers: Vec<Vec<u32>> = vec![vec![]; successors.len()];
        for (node, targets) in successors.iter().enumerate().filter(|(node, _)| self.enter[*node] != 0) {
            for target in targets {
                let mut above = node as u32;
                while Some(above) != self.parent(*target) {
                    frontiers[above as usize].push(*target);
                    match self.parent(above) {
                        Some(parent) => above = parent,
                        None => break,
                    }
                }
            }
        }
        for frontier in &mut frontiers {
            frontier.sort_unstable();
            frontier.dedup();
        }
        frontiers
    }
}

fn common(dominator: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while a > b {
            a = dominator[a as usize];
        }
        while b > a {
            b = dominator[b as usize];
        }
    }
    a
}

fn reverse_post_order(root: u32, successors: &[Vec<u32>]) -> Vec<u32> {
    let mut seen = vec![false; successors.len()];
    let mut order = vec![];
    let mut stack = vec![(root, 0)];
    seen[root as usize] = true;
    while let Some((node, next)) = stack.last_mut() {
        match successors[*node as usize].get(*next) {
            Some(target) => {
                *next += 1;
                if !std::mem::replace(&mut seen[*target as usize], true) {
                    stack.push((*target, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

fn number(root: u32, children: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>) {
    let (mut enter, mut leave) = (vec![0; children.len()], vec![0; children.len()]);
    let mut time = 1;
    enter[root as usize] = time;
    let mut stack = vec![(root, 0)];
    while let Some((node, next)) = stack.last_mut() {
        time += 1;
        match children[*node as usize].get(*next) {
            Some(child) => {
                *next += 1;
                enter[*child as usize] = time;
                stack.push((*child, 0));
            }
            None => {
                leave[*node as usize] = time;
                stack.pop();
            }
        }
    }
    (enter, leave)
}
