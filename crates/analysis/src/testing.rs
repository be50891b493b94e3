//! Random graphs for tests, the same in every run.

use crate::cfg::Cfg;
use broadloom_ptx::Block;
use cranelift_entity::SecondaryMap;

/// A sequence of numbers that its seed decides (xorshift, then a multiplication).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 33) as usize) % bound
    }
}

pub(crate) fn blocks(count: usize) -> impl Iterator<Item = Block> {
    (0..count as u32).map(Block::from_u32)
}

/// The graph with these edges; the first block is the entry.
pub(crate) fn graph(edges: &[&[u32]]) -> Cfg {
    let mut successors = SecondaryMap::new();
    for (from, targets) in edges.iter().enumerate() {
        successors[Block::from_u32(from as u32)] = targets.iter().map(|to| Block::from_u32(*to)).collect();
    }
    Cfg::from_successors(Block::from_u32(0), successors)
}

/// Up to `most` blocks with up to three edges each, some double, some out of reach.
pub(crate) fn random_graph(random: &mut Random, most: usize) -> (Cfg, usize) {
    let count = 1 + random.below(most);
    let mut successors: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in blocks(count) {
        let edges = [0, 1, 1, 1, 2, 2, 2, 3][random.below(8)];
        successors[block] = (0..edges).map(|_| Block::from_u32(random.below(count) as u32)).collect();
    }
    (Cfg::from_successors(Block::from_u32(0), successors), count)
}

/// The blocks that a block reaches, itself among them, on ways that avoid another.
pub(crate) fn reaches(cfg: &Cfg, count: usize, from: Block, without: Option<Block>) -> Vec<Block> {
    let mut found: Vec<Block> = if Some(from) == without { vec![] } else { vec![from] };
    let mut next = 0;
    while next < found.len() {
        for target in cfg.successors(found[next]) {
            if Some(*target) != without && !found.contains(target) {
                found.push(*target);
            }
        }
        next += 1;
    }
    assert!(found.len() <= count);
    found
}
