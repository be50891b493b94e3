//! Dominators, compared with the definition on random graphs.

use crate::testing::{Random, blocks, graph, random_graph, reaches};
use broadloom_analysis::cfg::Cfg;
use broadloom_analysis::dominators::Dominators;
use broadloom_ptx::Block;

/// Checks the definition: without `a`, `b` is unreachable.
fn dominates(cfg: &Cfg, count: usize, a: Block, b: Block) -> bool {
    cfg.is_reachable(a) && cfg.is_reachable(b) && (a == b || !reaches(cfg, count, cfg.entry(), Some(a)).contains(&b))
}

#[test]
fn agrees_with_the_definition_on_random_graphs() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let (cfg, count) = random_graph(&mut random, 14);
        let found = Dominators::new(&cfg);
        let frontiers = found.frontiers(&cfg);
        for a in blocks(count) {
            for b in blocks(count) {
                assert_eq!(found.dominates(a, b), dominates(&cfg, count, a, b), "{a} {b} in {cfg:?}");
            }
            let above: Vec<Block> = blocks(count).filter(|b| *b != a && dominates(&cfg, count, *b, a)).collect();
            let nearest = above.iter().find(|b| above.iter().all(|other| dominates(&cfg, count, *other, **b)));
            assert_eq!(found.immediate(a), nearest.copied());
            if let Some(immediate) = found.immediate(a) {
                assert!(found.children(immediate).contains(&a));
            }
            let mut expected: Vec<Block> = blocks(count)
                .filter(|b| cfg.predecessors(*b).iter().any(|from| dominates(&cfg, count, a, *from)))
                .filter(|b| a == *b || !dominates(&cfg, count, a, *b))
                .collect();
            expected.sort_by_key(|block| cfg.position(*block));
            assert_eq!(frontiers[a], expected, "frontier of {a} in {cfg:?}");
        }
    }
}

#[test]
fn common_dominators_and_the_walk_of_the_tree() {
    let mut random = Random::new(2);
    for _ in 0..100 {
        let (cfg, count) = random_graph(&mut random, 10);
        let found = Dominators::new(&cfg);
        let preorder = found.preorder();
        assert_eq!(preorder.len(), cfg.order().len());
        for (index, block) in preorder.iter().enumerate() {
            let below = preorder.iter().filter(|other| found.dominates(*block, **other)).count();
            assert!(preorder[index..index + below].iter().all(|other| found.dominates(*block, *other)));
        }
        for (a, b) in blocks(count).flat_map(|a| blocks(count).map(move |b| (a, b))) {
            let both = |c: Block| found.dominates(c, a) && found.dominates(c, b);
            let expected = blocks(count).find(|c| both(*c) && blocks(count).all(|d| !both(d) || found.dominates(d, *c)));
            assert_eq!(found.common(a, b), expected);
        }
    }
}

#[test]
fn a_loop_around_a_branch() {
    let cfg = graph(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
    let found = Dominators::new(&cfg);
    let block = Block::from_u32;
    assert_eq!(found.children(block(1)), [block(3), block(2), block(4)].as_slice());
    assert_eq!(found.frontiers(&cfg)[block(4)], vec![block(1)]);
    assert_eq!(found.immediate(block(5)), Some(block(4)));
    assert!(!found.strictly_dominates(block(1), block(1)));
}
