//! Parameters of blocks for SSA form.

use crate::testing::{Random, random_code, random_graph};
use broadloom_analysis::cfg::Cfg;
use broadloom_analysis::dominators::Dominators;
use broadloom_analysis::liveness::Liveness;
use broadloom_analysis::ssa::BlockParameters;
use broadloom_ptx::BodyForm;
use broadloom_ptx::{Block, Function, Reg};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeSet;

/// Value of a register: of the entry, of a block that writes it, or of a block parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Entry,
    Written(Block),
    Param(Block),
}

/// Propagates the value of a register along control flow. Returns `false` if two different ones meet
/// where it is live and has no parameter.
fn is_enough(function: &Function, cfg: &Cfg, liveness: &Liveness, params: &BlockParameters, reg: Reg) -> bool {
    let mut into: SecondaryMap<Block, Option<Value>> = SecondaryMap::new();
    let mut work = vec![(cfg.entry(), Value::Entry)];
    while let Some((block, mut value)) = work.pop() {
        if params.of(block).contains(&reg) {
            value = Value::Param(block);
        }
        match into[block] {
            Some(old) if old == value => continue,
            Some(_) if liveness.live_in(block).contains(reg) => return false,
            Some(_) => continue,
            None => into[block] = Some(value),
        }
        if function.blocks[block].insts.iter().any(|inst| function.insts[*inst].writes().contains(&reg)) {
            value = Value::Written(block);
        }
        work.extend(cfg.successors(block).iter().map(|target| (*target, value)));
    }
    true
}

#[test]
fn parameters_are_enough_and_none_too_many() {
    let mut random = Random::new(7);
    let mut total = 0;
    for _ in 0..300 {
        let (cfg, count) = random_graph(&mut random, 10);
        let function = random_code(&mut random, &cfg, count, BodyForm::Registers);
        let dominators = Dominators::new(&cfg);
        let liveness = Liveness::new(&function, &cfg);
        let found = BlockParameters::new(&function, &cfg, &dominators, &liveness);
        let frontiers = dominators.frontiers(&cfg);
        for reg in function.regs.keys() {
            assert!(is_enough(&function, &cfg, &liveness, &found, reg), "{reg}");
            // Iterated frontier, as a set that grows to a fixed point.
            let writes =
                |block: &Block| function.blocks[*block].insts.iter().any(|inst| function.insts[*inst].writes().contains(&reg));
            let mut from: BTreeSet<Block> = cfg.order().iter().copied().filter(writes).collect();
            if !from.is_empty() {
                from.insert(cfg.entry());
            }
            let mut joins: BTreeSet<Block> = BTreeSet::new();
            while let Some(join) = from.iter().flat_map(|block| &frontiers[*block]).find(|join| !joins.contains(join)) {
                let join = *join;
                joins.insert(join);
                from.insert(join);
            }
            let expected: Vec<Block> = joins.into_iter().filter(|join| liveness.live_in(*join).contains(reg)).collect();
            let has: Vec<Block> = function.blocks.keys().filter(|block| found.of(*block).contains(&reg)).collect();
            assert_eq!(has, expected, "{reg}");
            total += has.len();
        }
    }
    assert!(total > 500, "the functions need parameters: {total}");
}
