//! Blocks and loops at which lanes part and meet, compared with random paths of two lanes.

use crate::testing::{Random, random_structure};
use broadloom_analysis::Dominators;
use broadloom_analysis::cfg::Cfg;
use broadloom_analysis::divergence::Paths;
use broadloom_analysis::loops::Loops;
use broadloom_ptx::Block;
use std::collections::BTreeMap;

/// Positions of a lane, step by step: a block, and the visit counts of the headers of the loops around
/// it.
type Visits = Vec<(Block, Vec<u32>)>;

/// Takes a path through the graph with choices by `choose`, up to a maximum length.
fn way(cfg: &Cfg, loops: &Loops, choose: &mut dyn FnMut(Block, usize, &[u32]) -> usize) -> Visits {
    let mut counts: BTreeMap<Block, u32> = BTreeMap::new();
    let (mut block, mut visits) = (cfg.entry(), vec![]);
    for _ in 0..40 {
        if let Some(id) = loops.headed_by(block) {
            loops[id].blocks[1..].iter().for_each(|inner| _ = counts.remove(inner));
            *counts.entry(block).or_default() += 1;
        }
        let iteration: Vec<u32> = loops.around(block).map(|id| counts[&loops[id].header]).collect();
        visits.push((block, iteration.clone()));
        let targets = cfg.successors(block);
        if targets.is_empty() {
            break;
        }
        let next = targets[choose(block, targets.len(), &iteration)];
        loops.around(block).filter(|id| !loops.contains(*id, next)).for_each(|id| _ = counts.remove(&loops[id].header));
        block = next;
    }
    visits
}

/// Two lanes take the same edge everywhere except at one block, where each chooses independently.
#[test]
fn lanes_that_part_at_one_branch_meet_where_it_is_said() {
    let mut random = Random::new(12);
    let (mut joins, mut leaves) = (0, 0);
    for _ in 0..1500 {
        let (cfg, count) = random_structure(&mut random, 4);
        let loops = Loops::new(&cfg, &Dominators::new(&cfg));
        let ending = cfg.exits().collect();
        let paths = Paths::with_ends(&cfg, &loops, ending);
        let from = cfg.order()[random.below(cfg.order().len())];
        let found = paths.apart(from);
        let seed = random.bits();
        let lane = |own: u64| {
            let choose = &mut |block: Block, edges: usize, iteration: &[u32]| {
                let mut drawn = seed ^ u64::from(block.as_u32()) << 32;
                iteration.iter().for_each(|number| drawn = drawn.wrapping_mul(31) + u64::from(*number));
                if block == from {
                    drawn ^= own;
                }
                Random::new(drawn).below(edges)
            };
            way(&cfg, &loops, choose)
        };
        let (a, b) = (lane(0x1111), lane(0x2222));
        let short = a.len().max(b.len()) == 40;
        for (index, visit) in a.iter().enumerate() {
            let Some(other) = b.iter().position(|candidate| candidate == visit) else {
                assert!(short || found.partial.contains(visit.0), "one lane only comes to {visit:?} behind {from} of {count}");
                continue;
            };
            // They meet, but from different blocks: a parameter of the block would differ.
            if index > 0 && other > 0 && a[index - 1] != b[other - 1] {
                let (left, right) = (&a[index - 1], &b[other - 1]);
                if left.0 != right.0 {
                    assert!(found.joins.contains(visit.0), "lanes join at {visit:?} from {left:?} and {right:?} behind {from}");
                    joins += 1;
                } else {
                    // Same edge in different iterations: out of a loop that they leave apart.
                    let left_loops = loops.around(left.0).filter(|id| !loops.contains(*id, visit.0));
                    let apart = left_loops.filter(|id| found.loops.contains(id)).count();
                    assert!(apart > 0, "lanes leave a loop apart at {left:?} and {right:?} behind {from}");
                    leaves += 1;
                }
            }
        }
    }
    assert!(joins > 100 && leaves > 20, "{joins} {leaves}");
}
