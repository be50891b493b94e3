//! Post-dominators, compared with the definition on random graphs.

use crate::testing::{Random, blocks, graph, random_graph, reaches};
use broadloom_analysis::cfg::Cfg;
use broadloom_analysis::post_dominators::PostDominators;
use broadloom_ptx::Block;

/// Returns whether a path leads from a block to the end that avoids another block.
fn gets_out(cfg: &Cfg, count: usize, from: Block, without: Option<Block>, connected: &[Block]) -> bool {
    let end = |block: &Block| cfg.successors(*block).is_empty() || connected.contains(block);
    Some(from) != without && reaches(cfg, count, from, without).iter().any(end)
}

#[test]
fn agrees_with_the_definition_on_random_graphs() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let (cfg, count) = random_graph(&mut random, 14);
        let found = PostDominators::new(&cfg);
        let connected = found.connected();
        let post_dominates = |a: Block, b: Block| {
            let reachable = cfg.is_reachable(a) && cfg.is_reachable(b);
            reachable && (a == b || !gets_out(&cfg, count, b, Some(a), connected))
        };
        let dependence = found.control_dependence(&cfg);
        for a in blocks(count) {
            for b in blocks(count) {
                assert_eq!(found.post_dominates(a, b), post_dominates(a, b), "{a} {b} in {cfg:?}");
            }
            let above: Vec<Block> = blocks(count).filter(|b| *b != a && post_dominates(*b, a)).collect();
            let nearest = above.iter().find(|b| above.iter().all(|other| post_dominates(*other, **b)));
            assert_eq!(found.immediate(a), nearest.copied());
            let mut expected: Vec<Block> = blocks(count)
                .filter(|from| cfg.is_reachable(*from) && cfg.successors(*from).iter().any(|to| post_dominates(a, *to)))
                .filter(|from| a == *from || !post_dominates(a, *from))
                .collect();
            expected.sort_by_key(|block| cfg.position(*block));
            assert_eq!(dependence[a], expected, "what {a} depends on in {cfg:?}");
        }
    }
}

#[test]
fn only_blocks_without_a_way_out_are_connected() {
    let mut random = Random::new(4);
    let mut endless = 0;
    for _ in 0..300 {
        let (cfg, count) = random_graph(&mut random, 10);
        let found = PostDominators::new(&cfg);
        for block in found.connected() {
            assert!(!gets_out(&cfg, count, *block, None, &[]), "{block} in {cfg:?}");
        }
        assert!(cfg.order().iter().all(|block| gets_out(&cfg, count, *block, None, found.connected())));
        endless += found.connected().len();
    }
    assert!(endless > 20, "the graphs have endless loops: {endless}");
}

#[test]
fn an_endless_loop_ends_behind_its_last_block() {
    let cfg = graph(&[&[1, 3], &[2], &[1], &[]]);
    let found = PostDominators::new(&cfg);
    let block = Block::from_u32;
    assert_eq!(found.connected(), [block(2)].as_slice());
    assert_eq!(found.immediate(block(1)), Some(block(2)));
    assert_eq!(found.immediate(block(0)), None);
    assert_eq!(found.roots().len(), 3);
    assert_eq!(found.common(block(1), block(2)), Some(block(2)));
    assert_eq!(found.common(block(1), block(3)), None);
}
