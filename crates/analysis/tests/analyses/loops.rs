//! Loops, compared with the definition on random graphs.

use crate::testing::{Random, blocks, graph, random_graph, random_structure, reaches};
use broadloom_analysis::cfg::Cfg;
use broadloom_analysis::dominators::Dominators;
use broadloom_analysis::loops::Loops;
use broadloom_ptx::Block;

/// Returns whether the graph shrinks to one block when self-edges are removed and blocks with one
/// predecessor are merged into it: the definition of reducibility by Hecht and Ullman.
fn shrinks(cfg: &Cfg) -> bool {
    let mut edges: Vec<(Block, Block)> =
        cfg.order().iter().flat_map(|from| cfg.successors(*from).iter().map(move |to| (*from, *to))).collect();
    loop {
        edges.retain(|(from, to)| from != to);
        edges.sort();
        edges.dedup();
        let joins = |to: Block| to != cfg.entry() && edges.iter().filter(|edge| edge.1 == to).count() == 1;
        let Some((into, block)) = edges.iter().copied().find(|edge| joins(edge.1)) else { break };
        edges.retain(|edge| *edge != (into, block));
        edges.iter_mut().filter(|edge| edge.0 == block).for_each(|edge| edge.0 = into);
    }
    edges.is_empty()
}

#[test]
fn agree_with_the_definition_on_random_graphs() {
    let mut random = Random::new(8);
    let mut reducible = 0;
    for round in 0..400 {
        let (cfg, count) = match round % 2 {
            0 => random_graph(&mut random, 9),
            _ => random_structure(&mut random, 5),
        };
        let dominators = Dominators::new(&cfg);
        let found = Loops::new(&cfg, &dominators);
        assert_eq!(found.is_reducible(), shrinks(&cfg), "{cfg:?}");
        reducible += usize::from(found.is_reducible());
        for header in blocks(count) {
            let mut latches: Vec<Block> = cfg.predecessors(header).to_vec();
            latches.retain(|from| cfg.is_reachable(header) && dominators.dominates(header, *from));
            assert_eq!(found.headed_by(header).is_some(), !latches.is_empty());
            let Some(id) = found.headed_by(header) else { continue };
            let inside = |block: &Block| {
                let way = reaches(&cfg, count, *block, Some(header));
                *block == header || cfg.is_reachable(*block) && latches.iter().any(|latch| way.contains(latch))
            };
            let members: Vec<Block> = cfg.order().iter().copied().filter(inside).collect();
            assert_eq!(found[id].blocks, members, "loop of {header} in {cfg:?}");
            for block in blocks(count) {
                assert_eq!(found.contains(id, block), members.contains(&block));
            }
            assert!(found[id].latches.iter().all(|latch| latches.contains(latch)) && !latches.is_empty());
            for (from, to) in &found[id].exits {
                assert!(members.contains(from) && !members.contains(to) && cfg.successors(*from).contains(to));
            }
            let leaving = members.iter().flat_map(|from| cfg.successors(*from).iter().map(move |to| (*from, *to)));
            assert!(leaving.filter(|edge| !members.contains(&edge.1)).all(|edge| found[id].exits.contains(&edge)));
        }
        for block in blocks(count) {
            let around = found.iter().filter(|(_, data)| data.blocks.contains(&block)).count();
            assert_eq!(found.depth(block) as usize, around);
        }
        if found.is_reducible() {
            contiguous(&cfg, &found);
        }
    }
    assert!(reducible > 150, "{reducible}");
}

fn contiguous(cfg: &Cfg, loops: &Loops) {
    let order = loops.contiguous_order(cfg);
    let place = |block: Block| order.iter().position(|other| *other == block).unwrap();
    assert_eq!(order.len(), cfg.order().len());
    for (from, to) in order.iter().flat_map(|from| cfg.successors(*from).iter().map(move |to| (*from, *to))) {
        let back = loops.headed_by(to).is_some_and(|id| loops.contains(id, from));
        assert!(back || place(from) < place(to), "{from} {to} in {order:?}");
    }
    for (_, data) in loops.iter() {
        let start = place(data.header);
        assert!(data.blocks.iter().all(|block| (start..start + data.blocks.len()).contains(&place(*block))));
    }
}

#[test]
fn a_loop_in_a_loop() {
    let cfg = graph(&[&[1], &[2, 5], &[2, 3], &[1, 4], &[5], &[]]);
    let found = Loops::new(&cfg, &Dominators::new(&cfg));
    let block = Block::from_u32;
    let outer = found.headed_by(block(1)).unwrap();
    let inner = found.headed_by(block(2)).unwrap();
    assert_eq!(found[inner].parent, Some(outer));
    assert_eq!(found[outer].latches, [block(3)]);
    assert_eq!(found[outer].exits, [(block(1), block(5)), (block(3), block(4))]);
    assert_eq!(found.depth(block(2)), 2);
    assert!(found.is_reducible());
    let twisted = graph(&[&[1, 2], &[2], &[1]]);
    let found = Loops::new(&twisted, &Dominators::new(&twisted));
    assert_eq!(found.irreducible_edges().len(), 1);
    assert!(found.is_empty());
}
